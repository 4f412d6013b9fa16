"""Pictures of a plan, and of what an agent believes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.types import Array
from .style import COLUMN, FONT, PAGE, SMALL, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class _Bars(NamedTuple):
    """How probabilities of values look: how far apart bars are at most, and what the axis shows at least."""

    apart: float
    span: float
    low: float = -math.inf  # where the axis begins at the earliest
    high: float = math.inf
    integers: bool = True  # whether only these have ticks


_BARS = {
    "memory m": _Bars(apart=1.0, span=5.0, low=-0.75),
    "exponent gamma": _Bars(apart=0.25, span=4.0),
    "decay": _Bars(apart=0.05, span=0.5, high=1.05, integers=False),
}


def draw_plan(
    actions: ArrayLike, rewards: ArrayLike, *, theta: ArrayLike, counted_from: int = 0, title: str = ""
) -> Figure:
    """The coordinates of the `actions` (n, d) over time and, below them, the expected `rewards` (n,).

    The first `counted_from` steps, m of a block, are hatched; the mean is that of the others. The rows are
    labelled with `theta` (d,).

    >>> figure = draw_plan([[1.0, 0.0], [0.0, 1.0]], [0.6, 0.8], theta=[0.6, 0.8])
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['', 'expected reward', 'coordinate']
    """
    block = validation.array("actions", actions, (None, None))
    n, d = block.shape
    heights = validation.array("rewards", rewards, (n,))
    direction = validation.array("theta", theta, (d,))
    first = validation.integer("counted_from", counted_from, low=0, high=n - 1)

    rows = min(0.2 * d, 2.4)
    size = (min(max(COLUMN, 1.6 + 0.13 * n), PAGE), 2.4 + rows)
    figure = new_figure(size)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(0.4 + rows, 1.3))
    _draw_coordinates(top, block, direction)
    _draw_rewards(bottom, heights, first)
    if first:
        for axes in (top, bottom):
            axes.axvline(first + 0.5, color="black", linewidth=0.8, linestyle=":")
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=SMALL)
    if title:
        figure.suptitle(title, fontsize=FONT)
    return figure


def draw_beliefs(
    memory: Mapping[float, float] | None,
    gamma: Mapping[float, float] | None,
    theta: Array | None,
    spread: Array | None,
    *,
    decay: Mapping[float, float] | None = None,
    title: str = "",
) -> Figure:
    """Probabilities of memory, gamma and decay as bars, theta (d,) with its spread (d,); None is left out.

    A memory without end has the last bar.

    >>> figure = draw_beliefs({0: 0.1, 1: 0.9}, None, np.array([0.6, 0.8]), np.array([0.1, 0.1]))
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['memory m', 'coordinate of theta']
    """
    bars = {"memory m": memory, "exponent gamma": gamma, "decay": decay}
    shown = {name: values for name, values in bars.items() if values}
    panels = max(len(shown) + (theta is not None), 1)
    figure = new_figure((min(2.6 * panels, PAGE), 2.4))
    axes = list(figure.subplots(1, panels, squeeze=False)[0])
    for panel, (name, values) in zip(axes, shown.items(), strict=False):
        _draw_probabilities(panel, values, _BARS[name])
        panel.set(xlabel=name, ylabel="probability", ylim=(0.0, 1.0))
    if theta is not None:
        d, error = len(theta), None if spread is None else 2.0 * spread
        axes[-1].errorbar(np.arange(1, d + 1), theta, error, fmt="o", color="#0072B2", capsize=3)
        axes[-1].axhline(0.0, color="black", linewidth=0.6)
        axes[-1].set(xlabel="coordinate of theta", xlim=(0.5, d + 0.5), xticks=_integers(1, d))
        axes[-1].set_ylabel("estimate \N{PLUS-MINUS SIGN} 2 s.d.")
    for panel in axes:
        panel.tick_params(labelsize=SMALL)
        panel.xaxis.label.set_size(FONT)
        panel.yaxis.label.set_size(FONT)
    if title:
        figure.suptitle(title, fontsize=FONT)
    return figure


def _draw_probabilities(panel: Axes, values: Mapping[float, float], look: _Bars) -> None:
    """A bar for each value, of one width however many there are; infinity is the last one, after a gap."""
    places = np.array(list(values), dtype=np.float64)
    ends = places[np.isfinite(places)]
    beyond = float(ends.max(initial=0.0)) + 2.0
    places[np.isinf(places)] = beyond
    width = 0.8 * min(look.apart, float(np.diff(np.sort(places)).min(initial=look.apart)))
    left, right = float(places.min()) - look.apart, float(places.max()) + look.apart
    wider = max(look.span - (right - left), 0.0) / 2.0
    left, right = left - wider, right + wider
    shift = max(look.low - left, 0.0) - max(right - look.high, 0.0)
    left, right = left + shift, right + shift
    panel.bar(places, list(values.values()), width=width, color="#0072B2")
    panel.set_xlim(left, right)
    if len(ends) < len(places):
        ticks = _integers(math.ceil(left), int(ends.max())) if len(ends) else []
        panel.set_xticks([*ticks, beyond], [*map(str, ticks), "inf"])
    elif look.integers:
        panel.set_xticks(_integers(math.ceil(left), math.floor(right)))
    else:
        panel.locator_params("x", nbins=5)


def _integers(low: int, high: int) -> list[int]:
    """The integers of an interval, or every other one, ..., at most seven of them.

    >>> _integers(0, 4), _integers(1, 40)
    ([0, 1, 2, 3, 4], [6, 12, 18, 24, 30, 36])
    """
    step = -(-(high - low + 1) // 7)
    return list(range(-(-low // step) * step, high + 1, step))


def _draw_coordinates(axes: Axes, block: Array, direction: Array) -> None:
    """The actions (n, d) as columns of colours, with a bar that says what they mean."""
    n, d = block.shape
    # The lightness of cividis only grows, so the signs survive a print in grey.
    extent = (0.5, n + 0.5, d - 0.5, -0.5)
    limit = max(1.0, float(np.abs(block).max()))
    image = axes.imshow(
        block.T, "cividis", aspect="auto", interpolation="nearest", extent=extent, vmin=-limit, vmax=limit
    )
    shown = range(0, d, -(-d // 12))
    axes.set_yticks(shown, [rf"$\theta_{{{i + 1}}}={_short(direction[i])}$" for i in shown])
    axes.tick_params(length=0, labelsize=SMALL, labelbottom=False)
    bar = axes.figure.colorbar(image, ax=axes, ticks=[-limit, 0.0, limit], pad=0.02, aspect=12)
    bar.set_label("coordinate", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)


def _draw_rewards(axes: Axes, heights: Array, first: int) -> None:
    """A bar for each reward (n,), those before `first` hatched, and the mean of the others."""
    from matplotlib.ticker import MaxNLocator

    n = len(heights)
    steps = np.arange(1, n + 1)
    outline: dict[str, Any] = {"edgecolor": "0.2", "linewidth": 0.5, "width": 0.8}
    axes.bar(steps[first:], heights[first:], color="0.65", label="counted", **outline)
    mean = float(heights[first:].mean())
    axes.plot([first + 0.5, n + 0.5], [mean, mean], "--", color="black", linewidth=1.0)
    number = axes.annotate(
        f"mean\n{_short(mean, 3)}", (n + 0.5, mean), (4, 0), textcoords="offset points", va="center",
        fontsize=SMALL, annotation_clip=False,
    )  # fmt: skip
    number.set_in_layout(False)  # it has the room below the colour bar
    if first:
        axes.bar(steps[:first], heights[:first], color="white", hatch="/////", label="not counted", **outline)
    axes.axhline(0.0, color="black", linewidth=0.5)
    axes.set_xlim(0.5, n + 0.5)
    axes.set_xlabel("step", fontsize=FONT)
    axes.set_ylabel("expected reward", fontsize=FONT)
    axes.xaxis.set_major_locator(MaxNLocator(12, integer=True, min_n_ticks=1))
    axes.tick_params(labelsize=SMALL)
    axes.yaxis.get_offset_text().set_fontsize(SMALL)
    axes.spines[["top", "right"]].set_visible(False)


def _short(number: float, digits: int = 2) -> str:
    return f"{number:z.{digits}f}" if 1e-2 <= abs(number) < 1e4 or number == 0.0 else f"{number:.{digits}g}"
