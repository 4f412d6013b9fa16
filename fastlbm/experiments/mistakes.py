"""Mistakes in study files: own their place, the line and the key as it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: The keys from the top of the file to a value.
KeyPath = tuple[str, ...]
#: The tables of lists in the table of an environment or agent.
LISTS = ("grid", "zip")


class StudyError(ValueError):
    """Something is wrong with a study file; the message says where and what is allowed."""


class Invalid(Exception):
    """The value at a key, or the key itself, is not allowed."""

    def __init__(self, path: KeyPath, words: str) -> None:
        super().__init__(words)
        self.path, self.words = path, words


def told(invalid: Invalid, document: Mapping[str, Any], source: str, text: str) -> str:
    """The words about what is not allowed, with its place in the `text` of the file `source`."""
    path = _path_as_written(document, invalid.path)
    line = _line(text, path)
    where = f"{source}:{line}" if line else source
    return f"{where}: {'.'.join(path) or 'the file'}: {invalid.words}"


def _path_as_written(document: Mapping[str, Any], path: KeyPath) -> KeyPath:
    """The key of an argument as it is written: it may be in a list of a grid or zip."""
    table: Any = document
    for key in path[:2]:
        table = table.get(key) if isinstance(table, Mapping) else None
    if len(path) == 3 and isinstance(table, Mapping) and path[2] not in table:
        for lists in LISTS:
            if isinstance(table.get(lists), Mapping) and path[2] in table[lists]:
                return (*path[:2], lists, path[2])
    return path


def _line(text: str, path: KeyPath) -> int:
    """The line of a key, or of the nearest table around it, or the first one in it; 0 if there is none."""
    table: KeyPath = ()
    best, length, inside = 0, 0, 0
    for number, row in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[\[?([^\[\]]+)\]\]?", row)
        key = re.match(r"\s*([^=#\[\]]+?)\s*=", row)
        if header:
            here = table = _keys(header[1])
        elif key:
            here = (*table, *_keys(key[1]))
        else:
            continue
        if len(here) > length and path[: len(here)] == here:
            best, length = number, len(here)
        elif path and here[: len(path)] == path and not inside:
            inside = number
    return best or inside


def _keys(dotted: str) -> KeyPath:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))
