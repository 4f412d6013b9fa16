"""Documents: own what a study file says before models and agents are made of it, and what it need not say."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: The keys at the top of the file.
TOP = ("name", "seed", "seeds", "T", "record", "spacing", "env", "agent", "code")
#: The name of a study that gives none.
UNNAMED = "study"
#: What a file need not say.
DEFAULTS: dict[str, Any] = {"name": UNNAMED, "seed": 0, "seeds": 20, "record": 200, "spacing": "linear"}


def is_of(path: Path, document: Mapping[str, Any]) -> bool:
    """Whether the file says what the document of a finished study does; not whether it is right.

    False as well if a class in it is of one's own: its module would have to be read.
    """
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
        said = {**DEFAULTS, **said}
        if "T" in said and not isinstance(said["T"], list):
            said["T"] = [said["T"]]
        one, two = (json.dumps(each, sort_keys=True) for each in (said, dict(document)))
    except (OSError, ValueError, TypeError, RecursionError):  # which the grammar explains
        return False
    return one == two and not any(":" in text for text in _types(said))


def _types(value: Any) -> list[str]:
    """All texts named `type`, also those of a grid."""
    found = []
    if isinstance(value, Mapping):
        for name, item in value.items():
            found += [str(item)] if name == "type" else _types(item)
    return found
