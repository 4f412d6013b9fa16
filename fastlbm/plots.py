"""Plots: owns the pictures. Matplotlib is imported by the function that draws, and pyplot by none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from . import _validate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Points: a caption's size, and one below it for ticks and legends.
FONT, SMALL = 8, 7
#: Inches: the width of a column and of a page.
COLUMN, PAGE = 3.4, 7.0


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
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    block = _validate.array("actions", actions, (None, None))
    n, d = block.shape
    heights = _validate.array("rewards", rewards, (n,))
    direction = _validate.array("theta", theta, (d,))
    first = _validate.integer("counted_from", counted_from, low=0, high=n - 1)

    rows = min(0.2 * d, 2.4)
    size = (min(max(COLUMN, 1.6 + 0.13 * n), PAGE), 2.4 + rows)
    figure = Figure(figsize=size, layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(0.4 + rows, 1.3))

    # The lightness of cividis only grows, so the signs survive a print in grey.
    extent = (0.5, n + 0.5, d - 0.5, -0.5)
    limit = max(1.0, float(np.abs(block).max()))
    image = top.imshow(
        block.T, "cividis", aspect="auto", interpolation="nearest", extent=extent, vmin=-limit, vmax=limit
    )
    shown = range(0, d, -(-d // 12))
    top.set_yticks(shown, [rf"$\theta_{{{i + 1}}}={_short(direction[i])}$" for i in shown])
    top.tick_params(length=0, labelsize=SMALL, labelbottom=False)
    bar = figure.colorbar(image, ax=top, ticks=[-limit, 0.0, limit], pad=0.02, aspect=12)
    bar.set_label("coordinate", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)

    steps = np.arange(1, n + 1)
    outline = {"edgecolor": "0.2", "linewidth": 0.5}
    bottom.bar(steps[first:], heights[first:], width=0.8, color="0.65", label="counted", **outline)
    mean = float(heights[first:].mean())
    bottom.plot([first + 0.5, n + 0.5], [mean, mean], "--", color="black", linewidth=1.0)
    number = bottom.annotate(
        f"mean\n{_short(mean, 3)}", (n + 0.5, mean), (4, 0), textcoords="offset points", va="center",
        fontsize=SMALL, annotation_clip=False,
    )  # fmt: skip
    number.set_in_layout(False)  # it has the room below the colour bar
    if first:
        bottom.bar(
            steps[:first],
            heights[:first],
            width=0.8,
            color="white",
            hatch="/////",
            label="not counted",
            **outline,
        )
        for axes in (top, bottom):
            axes.axvline(first + 0.5, color="black", linewidth=0.8, linestyle=":")
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=SMALL)
    bottom.axhline(0.0, color="black", linewidth=0.5)
    bottom.set_xlim(0.5, n + 0.5)
    bottom.set_xlabel("step", fontsize=FONT)
    bottom.set_ylabel("expected reward", fontsize=FONT)
    bottom.xaxis.set_major_locator(MaxNLocator(12, integer=True, min_n_ticks=1))
    bottom.tick_params(labelsize=SMALL)
    bottom.yaxis.get_offset_text().set_fontsize(SMALL)
    bottom.spines[["top", "right"]].set_visible(False)
    if title:
        figure.suptitle(title, fontsize=FONT)
    return figure


def _short(number: float, digits: int = 2) -> str:
    return f"{number:z.{digits}f}" if 1e-2 <= abs(number) < 1e4 or number == 0.0 else f"{number:.{digits}g}"


def picture_path(name: str) -> Path:
    """`name` as a path that `save` can write: its directory exists, its ending names a format."""
    from matplotlib.backend_bases import FigureCanvasBase

    path = Path(name)
    formats = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.lower().removeprefix(".") not in formats:
        raise ValueError(f"out must end with one of .{', .'.join(formats)}, got {name!r}")
    if not path.parent.is_dir():
        raise ValueError(f"out must be in a directory that exists, got {name!r}")
    return path


def save(figure: Figure, path: Path) -> None:
    """Write the figure; a PDF has fonts that journals accept."""
    from matplotlib import rc_context

    with rc_context({"pdf.fonttype": 42, "svg.fonttype": "none"}):
        figure.savefig(path, dpi=300)
