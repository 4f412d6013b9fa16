"""Plots: owns the pictures. Matplotlib is imported by the function that draws, and pyplot by none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ._base import validation
from ._base.validation import Array

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .experiments.results import StudyResults

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

    block = validation.array("actions", actions, (None, None))
    n, d = block.shape
    heights = validation.array("rewards", rewards, (n,))
    direction = validation.array("theta", theta, (d,))
    first = validation.integer("counted_from", counted_from, low=0, high=n - 1)

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


def draw_curves(results: StudyResults, kind: str, comparator: str, band: str, confidence: float) -> Figure:
    """The panels of `StudyResults.plot`."""
    from matplotlib.figure import Figure

    names = list(results.frame["env"].unique())
    figure = Figure(figsize=(COLUMN * min(len(names), 3), 2.9 * -(-len(names) // 3)), layout="constrained")
    panels = figure.subplots(-(-len(names) // 3), min(len(names), 3), squeeze=False).ravel()
    for panel, env in zip(panels, names, strict=False):
        rows = results.frame[results.frame["env"] == env]
        if kind == "loglog":
            _loglog(panel, results, env, rows, comparator)
        else:
            _curves(panel, results, env, rows, kind, comparator, band, confidence)
        panel.set_title(env, fontsize=FONT)
        panel.set_xlabel("horizon T" if kind == "loglog" else "step", fontsize=FONT)
        panel.set_ylabel({"reward": "cumulative expected reward"}.get(kind, "regret"), fontsize=FONT)
        panel.tick_params(which="both", labelsize=SMALL)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    notes = [] if kind == "reward" else [f"regret against {_NAMES[comparator]}"]
    if kind != "loglog" and band != "none":
        notes.append({
            "bootstrap": f"bands: {confidence:.0%} bootstrap of the mean, pointwise",
            "simultaneous": f"bands: {confidence:.0%} bootstrap of the mean, simultaneous over steps",
            "quantiles": f"bands: quantiles, {confidence:.0%} of the runs inside",
        }[band])  # fmt: skip
    if kind == "loglog":
        # Exponents differ from panel to panel.
        for panel in panels[: len(names)]:
            panel.legend(frameon=False, fontsize=SMALL - 1)
        figure.supxlabel("; ".join(notes), fontsize=SMALL)
    else:
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL,
            title="; ".join(notes), title_fontsize=SMALL,
        )  # fmt: skip
    return figure


_NAMES = {
    "opt": "OPT (upper bound where not exact)",
    "lower": "the lower bound on OPT",
    "best cycle": "the best cycle",
    "oracle greedy": "oracle greedy",
}


def _curves(
    panel: Axes,
    results: StudyResults,
    env: str,
    rows: pd.DataFrame,
    kind: str,
    comparator: str,
    band: str,
    confidence: float,
) -> None:
    for agent in rows["agent"].unique():
        mine = rows[rows["agent"] == agent]
        mine = mine[mine["T"] == mine["T"].max()]
        table = mine.pivot(index="t", columns="seed", values="reward")
        t, values = table.index.to_numpy(), table.to_numpy()
        if kind == "regret":
            values = results.comparator(env, t, comparator)[:, None] - values
        (line,) = panel.plot(t, values.mean(axis=1), linewidth=1.2, label=agent)
        low, high = band_of(values, band, confidence)
        panel.fill_between(t, low, high, color=line.get_color(), alpha=0.25, linewidth=0)


def band_of(values: Array, band: str, confidence: float) -> tuple[Array, Array]:
    """The edges of the band around the mean of values (points, seeds)."""
    tails = [50.0 * (1.0 - confidence), 50.0 * (1.0 + confidence)]
    if band == "none" or values.shape[1] < 2:
        return values.mean(axis=1), values.mean(axis=1)
    if band == "quantiles":
        low, high = np.percentile(values, tails, axis=1)
        return low, high
    draws = np.random.default_rng(0).integers(values.shape[1], size=(500, values.shape[1]))
    means = np.stack([values[:, draw].mean(axis=1) for draw in draws])
    if band == "simultaneous":
        # The whole mean curve inside with this confidence: the largest studentised deviation of a draw.
        centre, error = values.mean(axis=1), means.std(axis=0) + 1e-300
        width = np.quantile(np.abs((means - centre) / error).max(axis=1), confidence) * error
        return centre - width, centre + width
    low, high = np.percentile(means, tails, axis=0)
    return low, high


def _loglog(panel: Axes, results: StudyResults, env: str, rows: pd.DataFrame, comparator: str) -> None:
    from .experiments.results import bound_of

    every = np.sort(rows["T"].unique())
    best = dict(zip(every.tolist(), results.comparator(env, every, comparator), strict=True))
    for agent in rows["agent"].unique():
        last = rows[(rows["agent"] == agent) & (rows["t"] == rows["T"])]
        means = last.groupby("T")["reward"].mean()
        horizons = means.index.to_numpy()
        regret = np.array([best[T] for T in horizons]) - means.to_numpy()
        positive = regret > 0.0
        label = agent
        if positive.sum() >= 2:
            slope = np.polyfit(np.log(horizons[positive]), np.log(regret[positive]), 1)[0]
            label += f", exponent {slope:.2f}"
        panel.loglog(horizons[positive], regret[positive], "o-", markersize=3, linewidth=1.0, label=label)
    bound = bound_of(results.envs[env], every)
    panel.loglog(every, bound, "--", color="0.4", linewidth=1.0, label="Theorem 1")


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
