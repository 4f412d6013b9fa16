"""Figures as they are drawn: no text is cut, none lies on another, no legend lies on a panel."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from fastlbm import plots

LONG = "rotting(m=1, gamma=-1.0, random={'d': 2, 'seed': 0}, noise='rademacher', sigma=0.30000000000000004)"
NOTE = (
    "regret against OPT (upper bound where not exact); bands: 95% bootstrap of the mean, simultaneous over "
    "steps; not finished: 123456 runs are missing; page 1 of 3"
)
AGENTS = [
    "O3M",
    "BanditCombiner(scale=0.001, L=20, switch=1.0, subgaussian=0.1)",
    "a_name_without_spaces" * 6,
]


def curves(labels: list[str]) -> list[plots.Curve]:
    x = np.arange(1, 9)
    return [
        plots.Curve(label, x=x, mean=k * 1e5 * x, low=k * 9e4 * x, high=k * 2e5 * x)
        for k, label in enumerate(labels)
    ]


def growth(labels: list[str]) -> plots.Growth:
    lines = [plots.Line(f"{a}, exponent 0.75", np.array([10, 1000]), np.array([1.0, 50.0])) for a in labels]
    return plots.Growth(lines, bound=plots.Line("Theorem 1", np.array([10, 1000]), np.array([1e3, 1e7])))


def draw(kind: str, count: int, labels: list[str], size: tuple[float, float] | None) -> Figure:
    titles = [f"{k} $_{LONG}"[: 20 if k == 1 else None] for k in range(count)]
    if kind == "growth":
        return plots.draw_growth({title: growth(labels) for title in titles}, note=NOTE, size=size)
    panels = {title: curves(labels) for title in titles}
    if kind == "against":
        return plots.draw_against(panels, xlabel="gamma", ylabel="regret", note=NOTE, size=size)
    return plots.draw_curves(panels, ylabel="cumulative expected reward", note=NOTE, size=size)


def seen(figure: Figure) -> list[Bbox]:
    """Where everything is that is seen: panels with their titles, labels and legends, and what is outside."""
    FigureCanvasAgg(figure).draw()
    outside = [*figure.legends, *([figure._supxlabel] if figure.get_supxlabel() else [])]
    panels = [panel.get_tightbbox() for panel in figure.axes if panel.get_visible()]
    return [*panels, *(artist.get_window_extent() for artist in outside)]


def inside(small: Bbox, large: Bbox, slack: float = 1.0) -> bool:
    return bool(
        small.x0 >= large.x0 - slack
        and small.y0 >= large.y0 - slack
        and small.x1 <= large.x1 + slack
        and small.y1 <= large.y1 + slack
    )


def overlap(one: Bbox, two: Bbox) -> bool:
    shared = Bbox.intersection(one, two)
    return shared is not None and shared.width > 0.5 and shared.height > 0.5


@pytest.mark.parametrize("kind", ["curves", "against", "growth"])
@pytest.mark.parametrize(("count", "labels"), [(1, AGENTS), (2, AGENTS[:2]), (5, AGENTS), (12, AGENTS[:1])])
def test_no_text_is_cut_and_no_legend_lies_on_a_panel(kind: str, count: int, labels: list[str]) -> None:
    figure = draw(kind, count, labels, None)
    assert [box for box in seen(figure) if not inside(box, figure.bbox)] == []
    panels = [panel for panel in figure.axes if panel.get_visible()]
    titles = [panel.title.get_window_extent() for panel in panels]
    legends = [*figure.legends, *(panel.get_legend() for panel in panels if panel.get_legend())]
    assert legends
    boxes = [legend.get_window_extent() for legend in legends]
    lower = [figure._supxlabel.get_window_extent()] if figure.get_supxlabel() else []
    areas = [panel.get_window_extent() for panel in panels]
    labels_below = [panel.xaxis.label.get_window_extent() for panel in panels]
    for one, two in itertools.combinations([*titles, *boxes, *lower], 2):
        assert not overlap(one, two)
    for box in [*boxes, *lower, *titles]:
        assert not any(overlap(box, area) for area in [*areas, *labels_below])
    assert all(area.height > 0.6 * figure.dpi for area in areas)  # something is left for the lines


def test_the_size_is_that_of_a_paper_or_as_asked() -> None:
    widths = [draw("curves", count, ["a"], None).get_figwidth() for count in (1, 2, 3, 12)]
    assert widths == [plots.COLUMN, plots.PAGE, plots.PAGE, plots.PAGE]
    assert draw("curves", 1, ["a"], (5.0, 4.0)).get_size_inches().tolist() == [5.0, 4.0]
    with pytest.raises(ValueError, match=r"size must be a width and a height in inches"):
        draw("curves", 1, ["a"], (5.0, 0.0))


def test_the_same_agent_has_the_same_look_in_all_panels() -> None:
    labels = [f"agent {k}" for k in range(12)]
    figure = plots.draw_curves({"a": curves(labels), "b": curves(labels[::-1])}, ylabel="reward")
    looks = [
        {line.get_label(): (line.get_color(), line.get_linestyle()) for line in panel.lines}
        for panel in figure.axes
    ]
    assert looks[0] == looks[1]
    assert len(set(looks[0].values())) == 12


def test_axes_of_somebody_else_are_drawn_into() -> None:
    figure = Figure(figsize=(7.0, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    assert plots.draw_curves({"mine": curves(["a"])}, ylabel="regret", note="bands", axes=left) is figure
    assert left.get_title() == "mine"
    assert left.get_legend().get_title().get_text() == "bands"
    assert not right.lines
    assert not figure.legends
    figure = Figure(figsize=(7.0, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    plots.draw_growth({"x": growth(["a"]), "y": growth(["b"])}, axes=[left, right])
    assert right.get_title() == "y"
    assert all(inside(box, figure.bbox) for box in seen(figure))
    legend = right.get_legend().get_window_extent()
    assert inside(legend, figure.bbox)
    assert not overlap(legend, right.get_window_extent())
    with pytest.raises(ValueError, match="ax must be one axes for each of the 2 panels, got 1"):
        plots.draw_curves({"a": curves(["a"]), "b": curves(["a"])}, ylabel="regret", axes=left)


def test_many_panels_go_on_pages(tmp_path: Path) -> None:
    panels = {f"e{k}": curves(["a"]) for k in range(27)}
    made = plots.pages(panels)
    assert [len(page) for page in made] == [9, 9, 9]
    assert [name for page in made for name in page] == list(panels)
    figures = [plots.draw_curves(page, ylabel="regret") for page in made[:2]]
    paths = plots.save_pages(figures, tmp_path / "regret.png")
    assert [path.name for path in paths] == ["regret-1.png", "regret-2.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
    assert plots.save_pages(figures, tmp_path / "regret.pdf") == [tmp_path / "regret.pdf"]
    assert (tmp_path / "regret.pdf").read_bytes().count(b"/Type /Page\n") == 2 or b"/Count 2" in (
        tmp_path / "regret.pdf"
    ).read_bytes()


@pytest.mark.parametrize("kind", ["against", "growth"])
@pytest.mark.parametrize("values", [[1, 2], [1, 2, 4], [2], [-3.0, -2.5, -2.0], [100, 101, 5000]])
def test_ticks_are_at_the_values_if_their_labels_fit(kind: str, values: list[float]) -> None:
    if kind == "growth":
        x = np.abs(np.array(values, dtype=float))
        panel = plots.Growth([plots.Line("a", x, x)], bound=plots.Line("Theorem 1", x, x))
        figure = plots.draw_growth({str(k): panel for k in range(3)})
    else:
        x = np.array(values)
        line = plots.Curve("a", x=x, mean=x, low=x - 1, high=x + 1)
        figure = plots.draw_against({str(k): [line] for k in range(3)}, xlabel="m", ylabel="regret")
    FigureCanvasAgg(figure).draw()
    axis = figure.axes[0].xaxis
    shown = [label.get_text() for label in axis.get_ticklabels()]
    fits = values != [100, 101, 5000]
    assert (shown == [f"{value:g}" for value in sorted(x)]) == fits
    boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
    assert not any(overlap(one, two) for one, two in itertools.pairwise(boxes))
    if fits:
        assert axis.get_minorticklocs().tolist() == []
