"""What is there of Numba: owns how its internals are asked for, touches none of them."""

from __future__ import annotations

import re
from importlib import import_module

import numba

#: The first and the last version of Numba whose internals were tried, test by test.
TESTED = (0, 63), (0, 68)


def is_tested() -> bool:
    """Whether the version of Numba is among those TESTED."""
    found = re.match(r"(\d+)\.(\d+)", numba.__version__)
    return found is not None and TESTED[0] <= (int(found[1]), int(found[2])) <= TESTED[1]


def absent(*names: str) -> str | None:
    """The first of these names that is not there, as "module:attribute.attribute"; None if all are."""
    for name in names:
        module, _, attributes = name.partition(":")
        try:
            value: object = import_module(module)
            for attribute in attributes.split("."):
                value = getattr(value, attribute)
        except (ImportError, AttributeError):
            return name.replace(":", ".")
    return None
