"""Docstrings: every public name has an example, and every method is in one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

import fastlbm as lbm

NAMES = [name for name in lbm.__all__ if name != "__version__"]


def examples(value: object) -> str:
    """The lines of a docstring that are code."""
    lines = (inspect.getdoc(value) or "").splitlines()
    return "\n".join(line for line in lines if line.strip().startswith((">>>", "...")))


def methods(kind: type) -> Iterator[tuple[str, object]]:
    """The public methods and properties of the package's own."""
    for name, value in inspect.getmembers(kind):
        function = value.fget if isinstance(value, property) else value
        is_ours = (getattr(function, "__module__", None) or "").startswith("fastlbm")
        if not name.startswith("_") and is_ours and callable(function):
            yield name, value


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example(name: str) -> None:
    assert examples(getattr(lbm, name)), f"help(fastlbm.{name}) shows no call of it"


@pytest.mark.parametrize("name", [name for name in NAMES if isinstance(getattr(lbm, name), type)])
def test_a_method_is_in_an_example(name: str) -> None:
    """In its own, or in that of its class."""
    kind = getattr(lbm, name)
    shown = examples(kind) + "".join(examples(value) for _, value in methods(kind))
    missing = [method for method, _ in methods(kind) if not re.search(rf"(\.|def ){method}\b", shown)]
    assert missing == [], f"no example of {name} has them"
