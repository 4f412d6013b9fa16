"""Plots: arrays in, figures out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fastlbm import plots

THETA = [0.5, 0.77, 0.09]


def test_a_drawing_marks_what_does_not_count() -> None:
    figure = plots.draw_plan(np.eye(3), [9.0, 0.25, 0.75], theta=THETA, counted_from=1)
    bottom = figure.axes[1]
    assert [text.get_text() for text in bottom.texts] == ["mean\n0.500"]
    assert [bool(bar.get_hatch()) for bar in bottom.patches] == [False, False, True]
    with pytest.raises(ValueError, match="counted_from must be an integer from 0 to 2, got 3"):
        plots.draw_plan(np.eye(3), np.ones(3), theta=THETA, counted_from=3)


def test_drawing_needs_no_experiments() -> None:
    """Arrays are enough: nothing above the plots is loaded, nor are compiled code and pyplot."""
    code = """
import sys
import numpy as np
from fastlbm import plots
one = plots.Curve("a", x=np.arange(3), mean=np.ones(3), low=np.zeros(3), high=np.ones(3))
plots.draw_curves({"e": [one]}, ylabel="reward")
line = plots.Line("a", np.array([1, 2]), np.array([1.0, 2.0]))
plots.draw_growth({"e": plots.Growth([line], bound=line)})
layers = ("experiments", "running", "agents", "planning", "model", "kernels")
loaded = [name for name in sys.modules if name.startswith(tuple(f"fastlbm.{layer}" for layer in layers))]
print([*loaded, *sorted({"pandas", "numba", "matplotlib.pyplot"} & set(sys.modules))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def curve(label: str, mean: list[float]) -> plots.Curve:
    values = np.array(mean)
    return plots.Curve(label, x=np.arange(1, len(mean) + 1), mean=values, low=values - 1, high=values + 1)


def test_curves_are_drawn_with_their_bands_and_a_note() -> None:
    lines = [curve("one", [1.0, 2.0]), curve("two", [0.0, 5.0])]
    figure = plots.draw_curves({f"e{k}": lines for k in range(4)}, ylabel="regret", note="bands: wide")
    visible = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in visible] == ["e0", "e1", "e2", "e3"]
    assert {(axes.get_xlabel(), axes.get_ylabel()) for axes in visible} == {("step", "regret")}
    np.testing.assert_array_equal(visible[3].lines[1].get_ydata(), [0.0, 5.0])
    edges = visible[3].collections[1].get_datalim(visible[3].transData)
    assert (edges.y0, edges.y1) == (-1.0, 6.0)
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "bands: wide"
    assert [text.get_text() for text in legend.get_texts()] == ["one", "two"]


def test_growth_is_drawn_on_logarithmic_axes_with_its_bound() -> None:
    mine = plots.Line("mine", np.array([10, 100]), np.array([1.0, 3.0]))
    bound = plots.Line("bound", np.array([10, 100]), np.array([np.nan, 30.0]))
    (axes,) = plots.draw_growth({"e": plots.Growth([mine], bound)}, note="against OPT").axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["mine", "bound"]
    assert axes.figure.get_supxlabel() == "against OPT"


@pytest.mark.parametrize("name", ["a.what", "nowhere/a.png"])
def test_a_picture_goes_where_it_can_be_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="out must"):
        plots.picture_path(str(tmp_path / name))
    path = plots.picture_path(str(tmp_path / "a.svg"))
    plots.save(plots.draw_plan(np.eye(3), np.ones(3), theta=THETA), path)
    assert "<text" in path.read_text()
