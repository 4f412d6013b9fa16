"""How the figures look: owns colours, dashes and markers of the agents, the same in every figure.

Colours are told apart by the colour-blind (Okabe and Ito); dashes and markers tell lines apart in grey.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastlbm.experiments.statistics import band_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
#: Points: a caption's size, and one below it for ticks and legends. Inches: a column and a page.
FONT, SMALL, COLUMN, PAGE = 8, 7, 3.4, 7.0
BAND = "bands: 95% bootstrap of the mean, pointwise"


class Look(NamedTuple):
    """How an agent is drawn, and its name in a figure."""

    color: str
    dashes: Any
    marker: str
    label: str


_SOLID, _DASHED, _DOTTED, _MIXED, _LONG = "-", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (7, 2))
LOOKS = {
    "O3M": Look("#0072B2", _SOLID, "o", "O3M"),
    "O3M, switch 1": Look("#0072B2", _DASHED, "d", "O3M, switch = 1"),
    "O3M, theory": Look("#00406B", _LONG, "^", "O3M, L of Theorem 1"),
    "O3M, sets known": Look("#0072B2", _DOTTED, "<", "O3M, sets known"),
    "OM": Look("#56B4E9", _DASHED, "s", "OM"),
    "OM-Block": Look("#CC79A7", _MIXED, "^", "OM-Block"),
    "OFUL": Look("#E69F00", _LONG, "v", "OFUL"),
    "OFUL, switch 1": Look("#E69F00", _DOTTED, "4", "OFUL, switch = 1"),
    "oracle greedy": Look("#7F7F7F", _SOLID, "x", "oracle greedy"),
    "Rolling": Look("#D55E00", _SOLID, "D", "Rolling"),
    "Rolling, noise known": Look("#882255", _DOTTED, "s", "Rolling, noise known"),
    "Rolling, switch 1": Look("#D55E00", _MIXED, "d", "Rolling, switch = 1"),
    "Auto": Look("#117733", _SOLID, ">", "Auto"),
    "pi_2": Look("#D55E00", _DASHED, "D", r"$\pi_2$"),
    "Combiner gamma": Look("#009E73", _DASHED, "P", r"Combiner $\gamma$"),
    "Combiner": Look("#009E73", _SOLID, "1", "Combiner"),
    "Combiner m": Look("#5B3A8E", _DOTTED, "X", r"Combiner $m$"),
    "Combiner m, scale 0.01": Look("#5B3A8E", _MIXED, "p", r"Combiner $m$, scale 0.01"),
    "EvidenceSelector": Look("#8C1C13", _LONG, "*", "EvidenceSelector"),
    "RegretBalancing": Look("#44AA99", _SOLID, "H", "RegretBalancing"),
    "CORRAL": Look("#999933", _DASHED, "8", "CORRAL"),
    "Doubling": Look("#3C6E47", _MIXED, "h", "O3M, doubling"),
    "best cycle": Look("#000000", _DOTTED, "", "best cycle"),
    "bound": Look("#000000", _DASHED, "", "bound"),
}


def look(agent: str) -> dict[str, Any]:
    """Matplotlib's keywords for the line of an agent."""
    chosen = LOOKS[agent]
    return {
        "color": chosen.color,
        "linestyle": chosen.dashes,
        "marker": chosen.marker,
        "markersize": 3.2,
        "linewidth": 1.2,
        "label": chosen.label,
    }


@contextmanager
def style() -> Iterator[None]:
    """Fonts and sizes of a paper; text in a PDF stays text."""
    from matplotlib import rc_context

    chosen: dict[Any, Any] = {
        "font.size": FONT,
        "axes.titlesize": FONT,
        "axes.labelsize": FONT,
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "legend.fontsize": SMALL,
        "legend.title_fontsize": SMALL,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "lines.markeredgewidth": 0.7,
        "pdf.fonttype": 42,
    }
    with rc_context(chosen):
        yield


def panels(
    count: int, width: float = PAGE, height: float = 2.7, rows: int = 1, **keywords: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side, row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(np.ravel(figure.subplots(rows, count, **keywords)))


def stacked(*rows: list[float], height: float) -> tuple[Figure, list[list[Axes]]]:
    """A figure with rows of panels of their own widths."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(PAGE, height), layout="constrained")
    parts: Any = figure.subfigures(len(rows), 1, squeeze=False)
    below = zip(parts.ravel(), rows, strict=True)
    return figure, [list(part.subplots(1, len(widths), width_ratios=widths)) for part, widths in below]


class Curve(NamedTuple):
    """Mean and band over runs at the steps t."""

    t: NDArray[Any]
    mean: Array
    low: Array
    high: Array
    runs: int


def curve(rows: pd.DataFrame) -> Curve:
    """The cumulative expected reward of one agent in some environments, over all runs in all of them."""
    table = rows.pivot(index="t", columns=["env", "seed"], values="reward")
    values = table.to_numpy()
    low, high = band_of(values, "bootstrap", 0.95)
    t, runs = table.index.to_numpy(), values.shape[1]
    return Curve(t=t, mean=values.mean(axis=1), low=low, high=high, runs=runs)


def draw(axes: Axes, agent: str, line: Curve) -> None:
    """Draw a curve with its band."""
    order, count = list(LOOKS).index(agent), len(line.t)
    axes.plot(line.t, line.mean, markevery=(order * count // 90, max(1, count // 6)), **look(agent))
    axes.fill_between(line.t, line.low, line.high, color=LOOKS[agent].color, alpha=0.25, linewidth=0)


def dots(axes: Axes, agent: str, x: NDArray[Any], values: Array, words: str) -> None:
    """Means of values (settings, runs) on log-log axes, with a band from the smallest to the largest."""
    axes.loglog(x, values.mean(axis=1), **{**look(agent), "linewidth": 0.9, "label": words})
    color = LOOKS[agent].color
    axes.fill_between(x, values.min(axis=1), values.max(axis=1), color=color, alpha=0.25, linewidth=0)


def label_ends(axes: Axes, ends: Mapping[str, float], room: float = 0.062) -> None:
    """Names at the ends of the lines, moved apart where they overlap; `room` is a line of text in axes."""
    low, high = axes.get_ylim()
    x = axes.get_xlim()[1]
    names = sorted(ends, key=lambda name: ends[name])
    wanted = np.array([(ends[name] - low) / (high - low) for name in names])
    places = wanted.copy()
    for _ in range(200):  # neighbours that are too close push each other away
        gaps = np.diff(places)
        close = gaps < room - 1e-9
        if not close.any():
            break
        push = np.where(close, (room - gaps) / 2.0, 0.0)
        places[:-1] -= push
        places[1:] += push
        places = np.clip(places, room / 2, 1.0)
    for name, place, end in zip(names, places, wanted, strict=True):
        axes.annotate(
            LOOKS[name].label,
            xy=(x, low + end * (high - low)),
            xytext=(1.03, place),
            textcoords=axes.transAxes,
            va="center",
            ha="left",
            fontsize=SMALL,
            color=LOOKS[name].color,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": LOOKS[name].color,
                "linewidth": 0.5,
                "shrinkA": 0,
                "shrinkB": 0,
                "relpos": (0.0, 0.5),
            },
        )


def finish(axes: Axes, title: str, x: str, y: str) -> None:
    """Title and names of the axes."""
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
