"""Display: owns how results show themselves, in a line or, in a notebook, as a table with a picture."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Mapping
from typing import Any

import numpy as np

from .types import Array

#: The longest array and text that are shown whole, and the most columns and rows of a picture.
_NUMBERS, _TEXT, _COLUMNS, _ROWS = 12, 200, 200, 30


def short(value: Any) -> str:
    """The value in a few words.

    >>> short(np.zeros((30, 2))), short({"a": 1}), short(1 / 3), short(np.array([1 / 3, 1.0]))
    ('<array (30, 2)>', '<dict of 1>', '0.333333', '[0.333333, 1.0]')
    """
    if isinstance(value, np.ndarray):
        return _digits(value.tolist()) if value.size <= _NUMBERS else f"<array {value.shape}>"
    if isinstance(value, Mapping):
        return f"<dict of {len(value)}>"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = repr(value)
    return text if len(text) <= _TEXT else f"<{type(value).__name__}>"


def _digits(value: Any) -> str:
    """Nested lists with as many digits as a number has alone."""
    if isinstance(value, list):
        return f"[{', '.join(map(_digits, value))}]"
    return repr(float(f"{value:.6g}")) if isinstance(value, float) else repr(value)


def as_table(title: str, facts: Mapping[str, Any]) -> str:
    """An HTML table of names and values."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(short(value))}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table><caption>{html.escape(title)}</caption><tbody>{rows}</tbody></table>"


def as_picture(actions: Array) -> str:
    """The actions (n, d) as an SVG, a column a step, a row a coordinate: blue is -1, white 0, red 1."""
    block = actions[:_COLUMNS, :_ROWS]
    n, d = block.shape
    if not block.size:
        return ""
    cells = []
    for (step, row), x in np.ndenumerate(np.clip(block, -1.0, 1.0)):
        fade = int(255 * (1.0 - abs(x)))
        colour = f"rgb(255,{fade},{fade})" if x > 0.0 else f"rgb({fade},{fade},255)"
        cells.append(f"<rect x='{step}' y='{row}' width='1.02' height='1.02' fill='{colour}'/>")
    size = f"width='{min(10 * n, 800)}' height='{14 * d}' viewBox='0 0 {n} {d}' preserveAspectRatio='none'"
    words = f"<title>{n} actions, a row for each of {d} coordinates</title>"
    return f"<svg {size} role='img'>{words}{''.join(cells)}</svg>"


class Displayed:
    """A result with a short repr and, in notebooks, a table; a picture if it has actions."""

    __slots__ = ()

    def _facts(self) -> dict[str, Any]:
        """What is shown, by name."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        found = {field.name: getattr(self, field.name) for field in fields if field.repr}
        return {name: value for name, value in found.items() if value is not None}

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={short(value)}" for name, value in self._facts().items())
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        actions = getattr(self, "actions", None)
        picture = as_picture(actions) if isinstance(actions, np.ndarray) else ""
        return as_table(type(self).__name__, self._facts()) + picture
