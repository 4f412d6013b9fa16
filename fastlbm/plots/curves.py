"""Curves: what many runs give, over steps, over horizons, over a parameter; a panel for each title."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._base.types import Array
from .style import (
    SMALL,
    as_axes,
    lay_out_legend,
    make_panels,
    place_legend,
    root_of,
    tick_values,
    width_of,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Dashes of the lines after the first ten, which have the ten colours again.
_DASHES = ("-", "--", ":", "-.")


class Curve(NamedTuple):
    """A mean over runs (n,) with the edges of its band, at x (n,): steps, or values of a parameter."""

    label: str
    x: NDArray[Any]
    mean: Array
    low: Array
    high: Array


class Line(NamedTuple):
    """Values y (n,) at x (n,)."""

    label: str
    x: NDArray[Any]
    y: Array


class Growth(NamedTuple):
    """Regrets that grow with the horizon, one line for each agent, and a bound on them."""

    lines: Sequence[Line]
    bound: Line


def draw_curves(
    panels: Mapping[str, Sequence[Curve]],
    *,
    ylabel: str,
    note: str = "",
    size: tuple[float, float] | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Curves with bands over steps, a panel for each title; the `note` says what the bands are.

    >>> import numpy as np
    >>> curve = Curve("mine", x=np.arange(3), mean=np.ones(3), low=np.zeros(3), high=np.full(3, 2.0))
    >>> draw_curves({"one": [curve], "two": [curve]}, ylabel="reward").axes[1].get_title()
    'two'
    """
    looks = _looks(curve.label for curves in panels.values() for curve in curves)
    layout = lay_out_legend(looks, note, _legend_width(len(panels), size, axes))
    figure, drawn = make_panels(list(panels), "step", ylabel, size=size, axes=axes, below=layout.height)
    handles: dict[str, Any] = {}
    for panel, curves in zip(drawn, panels.values(), strict=True):
        for curve in curves:
            look = looks[curve.label]
            (line,) = panel.plot(curve.x, curve.mean, linewidth=1.2, label=curve.label, **look)
            panel.fill_between(curve.x, curve.low, curve.high, color=look["color"], alpha=0.25, linewidth=0)
            handles.setdefault(curve.label, line)
    for owner in [figure] if axes is None else drawn:
        place_legend(owner, (handles[label] for label in looks), layout, outside=axes is None)
    return figure


def draw_against(
    panels: Mapping[str, Sequence[Curve]],
    *,
    xlabel: str,
    ylabel: str,
    note: str = "",
    size: tuple[float, float] | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Points with bars over the values of a parameter, joined by lines, a panel for each title.

    No axis reaches an infinite value: where there is one, all values are as far from each other.

    >>> import numpy as np
    >>> curve = Curve("mine", x=np.array([1, 2]), mean=np.ones(2), low=np.zeros(2), high=np.full(2, 2.0))
    >>> draw_against({"d=3": [curve]}, xlabel="m", ylabel="regret").axes[0].get_xlabel()
    'm'
    """
    looks = _looks(curve.label for curves in panels.values() for curve in curves)
    layout = lay_out_legend(looks, note, _legend_width(len(panels), size, axes))
    figure, drawn = make_panels(list(panels), xlabel, ylabel, size=size, axes=axes, below=layout.height)
    handles: dict[str, Any] = {}
    every = np.unique([x for curves in panels.values() for curve in curves for x in curve.x])
    endless = bool(np.isinf(every).any())
    for panel, curves in zip(drawn, panels.values(), strict=True):
        for curve in curves:
            places = np.searchsorted(every, curve.x) if endless else curve.x
            error = abs(curve.mean - curve.low), abs(curve.high - curve.mean)
            look = looks[curve.label]
            bars = panel.errorbar(
                places, curve.mean, error, marker="o", markersize=3, linewidth=1.0, capsize=2, **look
            )
            handles.setdefault(curve.label, bars)
        if endless:
            panel.set_xticks(range(len(every)), [f"{x:g}" for x in every])
        else:
            tick_values(panel, (x for curve in curves for x in curve.x))
    for owner in [figure] if axes is None else drawn:
        place_legend(owner, (handles[label] for label in looks), layout, outside=axes is None)
    return figure


def draw_growth(
    panels: Mapping[str, Growth],
    *,
    note: str = "",
    size: tuple[float, float] | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Regrets against horizons on log-log axes, a panel for each title."""
    width = _legend_width(len(panels), size, axes)
    layouts = [
        lay_out_legend(
            [line.label for line in [*growth.lines, growth.bound]], "", width / min(len(panels), 3)
        )
        for growth in panels.values()
    ]
    words = wrapped(note, 72.0 * width, SMALL)
    in_rows = [max(layout.height for layout in layouts[k : k + 3]) for k in range(0, len(layouts), 3)]
    below = sum(in_rows) + 0.15 * (words.count("\n") + 1)
    figure, drawn = make_panels(list(panels), "horizon T", "regret", size=size, axes=axes, below=below)
    for panel, growth, layout in zip(drawn, panels.values(), layouts, strict=True):
        looks = _looks(str(k) for k in range(len(growth.lines))).values()
        handles = []
        for (label, x, y), look in zip(growth.lines, looks, strict=True):
            handles += panel.loglog(x, y, marker="o", markersize=3, linewidth=1.0, label=label, **look)
        label, x, y = growth.bound
        handles += panel.loglog(x, y, "--", color="0.4", linewidth=1.0, label=label)
        tick_values(panel, (x for line in growth.lines for x in line.x))
        place_legend(panel, handles, layout, outside=False)  # labels differ from panel to panel
    if axes is None:
        figure.supxlabel(words, fontsize=SMALL, parse_math=False)
    return figure


def _looks(labels: Iterable[str]) -> dict[str, dict[str, Any]]:
    """A colour and a dash for each label, the same in all panels."""
    every = list(dict.fromkeys(labels))
    return {
        label: {"color": f"C{k % 10}", "linestyle": _DASHES[k // 10 % len(_DASHES)]}
        for k, label in enumerate(every)
    }


def _legend_width(panels: int, size: tuple[float, float] | None, axes: Axes | Sequence[Axes] | None) -> float:
    """Inches: a figure's, or those of somebody else's axes."""
    if axes is None:
        return width_of(panels, size) - 0.2
    panel = as_axes(axes)[0]
    return float(root_of(panel).get_figwidth() * panel.get_position().width)
