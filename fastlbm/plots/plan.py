"""Pictures of a plan, and of what an agent believes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.types import Array
from .style import COLUMN, FONT, PAGE, SMALL, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
        places = np.array(list(values), dtype=np.float64)
        if np.isinf(places).any():
            ends = places[np.isfinite(places)]
            last = float(ends.max(initial=0.0)) + 2.0
            shown_ends = ends[:: max(1, len(ends) // 6)]
            panel.set_xticks([*shown_ends, last], [*(f"{m:g}" for m in shown_ends), "inf"])
            places[np.isinf(places)] = last
        width = 0.8 * float(np.diff(places).min()) if len(places) > 1 else 0.2
        panel.bar(places, list(values.values()), width=width, color="#0072B2")
        panel.set(xlabel=name, ylabel="probability", ylim=(0.0, 1.0))
    if theta is not None:
        error = None if spread is None else 2.0 * spread
        axes[-1].errorbar(np.arange(1, len(theta) + 1), theta, error, fmt="o", color="#0072B2", capsize=3)
        axes[-1].axhline(0.0, color="black", linewidth=0.6)
        axes[-1].set(xlabel="coordinate of theta", ylabel="estimate, 2 standard deviations")
    for panel in axes:
        panel.tick_params(labelsize=SMALL)
        panel.xaxis.label.set_size(FONT)
        panel.yaxis.label.set_size(FONT)
    if title:
        figure.suptitle(title, fontsize=FONT)
    return figure


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
