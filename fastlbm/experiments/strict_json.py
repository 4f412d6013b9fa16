"""Strict JSON: owns the numbers that JSON has not, infinities and NaN, which are the texts inf, -inf and nan.

Many programs refuse a whole file for one `Infinity`, as Python writes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

#: Where a value is in a nested one: the names and places that lead to it.
Place = Sequence[str | int]


def as_strict(value: Any) -> Any:
    """The value with texts for the numbers that JSON has not.

    >>> as_strict({"m": [2, math.inf]})
    {'m': [2, 'inf']}
    """
    if isinstance(value, dict):
        return {name: as_strict(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_strict(item) for item in value]
    return str(value) if _is_no_json(value) else value


def places(value: Any) -> list[list[str | int]]:
    """Where such numbers are in the value.

    >>> places({"m": [2, math.inf], "gamma": -1.0})
    [['m', 1]]
    """
    if _is_no_json(value):
        return [[]]
    items: Any = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, (list, tuple)) else items
    return [[name, *rest] for name, item in items for rest in places(item)]


def restore(value: Any, where: Sequence[Place]) -> None:
    """Make the texts in these places the numbers that they were; an error if there is none.

    >>> value = {"m": [2, "inf"], "name": "inf"}
    >>> restore(value, [["m", 1]])
    >>> value
    {'m': [2, inf], 'name': 'inf'}
    """
    for *way, last in where:
        part = value
        for name in way:
            part = part[name]
        part[last] = float(part[last])


def dumps(value: Any, indent: int | None = None) -> str:
    """The value as strict JSON."""
    return json.dumps(as_strict(value), indent=indent, allow_nan=False)


def _is_no_json(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
