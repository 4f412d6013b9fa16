"""What an agent at work says of its beliefs: short texts, and pictures whose axes can be read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import fastlbm as lbm
from fastlbm.running.explanation import Explanation

THETA, SPREAD = np.array([0.6, 0.8]), np.array([0.1, 0.1])


@pytest.mark.nojit
def test_it_shows_itself_as_the_text() -> None:
    said = Explanation(7, memory={0: 1 / 3, 2: 2 / 3}, theta=THETA, spread=SPREAD)
    assert repr(said) == str(said)
    assert (
        repr(said) == "After 7 steps:\n  memory m: 2 (67%), 0 (33%)\n  theta: 0.600 +- 0.100, 0.800 +- 0.100"
    )


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("gamma", "words"),
    [
        ({-1.0: 1.0}, "-1 (100%)"),
        ({-1.0: 0.996, 0.0: 0.004}, "-1 (100%)"),
        ({-1.0: 0.7, 0.0: 0.3}, "-1 (70%), 0 (30%)"),
        ({g: 0.2 for g in range(5)}, "0 (20%), 1 (20%), 2 (20%), 3 (20%), 4 (20%)"),
        (
            {**{g: 0.19 for g in range(5)}, 5: 0.05},
            "0 (19%), 1 (19%), 2 (19%), 3 (19%), 4 (19%), and 1 other (5%)",
        ),
        ({-1.0: 0.97, **{g: 0.001 for g in range(30)}, 99: 0.0}, "-1 (97%), and 30 others (3%)"),
        ({g: 1 / 31 for g in range(31)}, "0 (3%), 1 (3%), 2 (3%), 3 (3%), 4 (3%), and 26 others (84%)"),
    ],
)
def test_the_most_probable_are_told_and_how_many_share_the_rest(gamma: Any, words: str) -> None:
    assert str(Explanation(1, gamma=gamma)).splitlines()[1] == f"  exponent gamma: {words}"


def test_no_line_is_long_at_the_beginning() -> None:
    live = lbm.Auto().start(lbm.Ball(2), seed=0)
    for _ in range(4):
        live.act()
        live.update(0.5)
    said = repr(live.explain())
    assert "others (" in said
    assert max(map(len, said.splitlines())) < 110


def axes_of(said: Explanation) -> dict[str, Any]:
    figure = said.plot()
    FigureCanvasAgg(figure).draw()
    return {axes.get_xlabel(): axes for axes in figure.axes}


def ticks(axes: Any) -> list[str]:
    """The labels of the horizontal axis that can be seen."""
    low, high = axes.get_xlim()
    pairs = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    return [label.get_text().replace("\N{MINUS SIGN}", "-") for at, label in pairs if low <= at <= high]


@pytest.mark.parametrize(
    ("memory", "shown"),
    [
        ({2: 1.0}, "0 1 2 3 4"),
        ({0: 1.0}, "0 1 2 3 4"),
        ({0: 0.5, 1: 0.5}, "0 1 2 3 4"),
        ({m: 0.1 for m in range(10)}, "0 2 4 6 8 10"),
        ({math.inf: 1.0}, "inf"),
        ({0: 0.5, 1: 0.25, math.inf: 0.25}, "0 1 inf"),
    ],
)
def test_memories_have_integer_ticks_and_bars_of_one_width(memory: Any, shown: str) -> None:
    axes = axes_of(Explanation(1, memory=memory))["memory m"]
    assert " ".join(ticks(axes)) == shown
    assert {round(bar.get_width(), 9) for bar in axes.patches} == {0.8}
    low, high = axes.get_xlim()
    assert high - low >= 4.0  # no bar fills the panel


@pytest.mark.parametrize("name", ["gamma", "decay"])
def test_one_value_does_not_fill_the_panel(name: str) -> None:
    value = {"gamma": -2.5, "decay": 0.9}[name]
    (axes,) = axes_of(Explanation(1, **{name: {value: 1.0}})).values()  # type: ignore[arg-type]
    low, high = axes.get_xlim()
    (bar,) = axes.patches
    assert bar.get_width() < 0.25 * (high - low)
    assert low < bar.get_x() < value < bar.get_x() + bar.get_width() < high


@pytest.mark.parametrize("d", [1, 2, 3, 12, 40])
def test_coordinates_are_numbered_by_integers(d: int) -> None:
    said = Explanation(1, memory={2: 1.0}, theta=np.full(d, 0.1), spread=np.full(d, 0.01))
    axes = axes_of(said)["coordinate of theta"]
    found = [int(label) for label in ticks(axes)]
    assert min(found) >= 1
    assert max(found) <= d
    assert len(found) == (d if d <= 3 else len(found))
    assert len(found) <= 7
    # The label beside the axis is shorter than the axis.
    box = axes.yaxis.label.get_window_extent()
    assert box.height < 0.8 * axes.get_window_extent().height
