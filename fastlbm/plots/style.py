"""Style: owns sizes, panels, texts that are never cut, and the files of figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .._base import validation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

T = TypeVar("T")

#: Points: a caption's size, and one below it for ticks and legends.
FONT, SMALL = 8, 7
#: Inches: the width of a column and of a page, and the height of a panel in each.
COLUMN, PAGE = 3.4, 7.0
HEIGHTS = {1: 2.4, 2: 2.4, 3: 1.9}
#: Panels of a figure at most: more of them go on another page.
MOST_PANELS = 12
#: Inches beside a panel that labels of its axis take.
_MARGIN = 0.65
#: Points from the axes down to what lies below their labels, and what the line beside a label takes.
_BELOW, _HANDLE = 30, 28
#: The distance of two lines, in sizes of their letters.
_SPACING = 1.5


def pages(panels: Mapping[str, T], most: int = MOST_PANELS) -> list[dict[str, T]]:
    """The panels in groups that fit on a page each, about the same number on all of them.

    >>> [list(page) for page in pages({"a": 1, "b": 2, "c": 3}, most=2)]
    [['a', 'b'], ['c']]
    """
    count = -(-len(panels) // most)
    names = list(panels)
    each = -(-len(names) // max(count, 1))
    return [{name: panels[name] for name in names[k * each : (k + 1) * each]} for k in range(count)]


@lru_cache(maxsize=4096)
def text_width(text: str, size: float) -> float:
    """The width of a line in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)
    return float(width)


def wrapped(text: str, width: float, size: float) -> str:
    """The text in lines of at most `width` points: clauses between semicolons stay whole where they fit.

    >>> wrapped("one; two", 1000, 8)
    'one; two'
    >>> wrapped("one; two", 30, 8).splitlines()
    ['one;', 'two']
    """
    if text_width(text, size) <= width:
        return text
    clauses = text.split("; ")
    lines = []
    for k, clause in enumerate(clauses):
        line = ""
        for word in (clause + (";" if k + 1 < len(clauses) else "")).split(" "):
            longer = f"{line} {word}" if line else word
            if text_width(longer, size) <= width:
                line = longer
                continue
            lines += [line] if line else []
            *whole, line = _broken(word, width, size)
            lines += whole
        lines.append(line)
    return "\n".join(lines)


def _broken(word: str, width: float, size: float) -> list[str]:
    """A word in parts that fit."""
    parts = [""]
    for character in word:
        if parts[-1] and text_width(parts[-1] + character, size) > width:
            parts.append("")
        parts[-1] += character
    return parts


def width_of(panels: int, size: tuple[float, float] | None = None) -> float:
    """The width in inches of a figure of so many panels, if `size` does not say it."""
    return _size(size)[0] if size is not None else COLUMN if panels == 1 else PAGE


@lru_cache(maxsize=1)
def _figure_class() -> type[Figure]:
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that a notebook shows as a picture also where pyplot was never imported."""

        def _repr_png_(self) -> bytes:
            content = BytesIO()
            self.savefig(content, format="png", dpi=110)
            return content.getvalue()

    return Picture


def new_figure(size: tuple[float, float]) -> Figure:
    """An empty figure of so many inches."""
    return _figure_class()(figsize=size, layout="constrained")


def root_of(panel: Any) -> Figure:
    """The figure that a panel is in, also if that is in a part of it."""
    figure: Figure = panel.figure.figure
    return figure


def as_axes(axes: Any) -> list[Axes]:
    """The axes that somebody gave: one, several, or an array of them as `plt.subplots` makes it."""
    from matplotlib.axes import Axes

    given = axes.ravel().tolist() if hasattr(axes, "ravel") else axes
    panels = list(given) if isinstance(given, Sequence) else [given]
    for panel in panels:
        if not isinstance(panel, Axes):
            raise TypeError(f"ax must be Matplotlib's axes, one or several, got {panel!r}")
    return panels


def make_panels(
    titles: Sequence[str],
    xlabel: str,
    ylabel: str,
    *,
    size: tuple[float, float] | None = None,
    axes: Axes | Sequence[Axes] | None = None,
    below: float = 0.0,
) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each title, at most three in a row; or these axes, one for each title.

    `size` is the width and height of the figure in inches, by default that of a column or page of a paper,
    high enough for the titles and for `below` inches under the panels.
    """
    if axes is not None:
        panels = as_axes(axes)
        if len(panels) != len(titles):
            raise ValueError(f"ax must be one axes for each of the {len(titles)} panels, got {len(panels)}")
        if size is not None:
            raise ValueError(f"size must not be given with ax, whose figure has a size, got {size!r}")
        figure = root_of(panels[0])
        width = figure.get_figwidth() * panels[0].get_position().width
        shown = [wrapped(title, 72.0 * width, FONT) for title in titles]
    else:
        rows, columns = -(-len(titles) // 3), min(len(titles), 3)
        width = width_of(len(titles), size)
        shown = [wrapped(title, 72.0 * (width / columns - _MARGIN), FONT) for title in titles]
        in_row = [max(map(_lines, shown[k : k + columns])) for k in range(0, len(shown), columns)]
        height = sum(HEIGHTS[columns] + FONT * _SPACING / 72.0 * (lines - 1) for lines in in_row) + below
        figure = new_figure((width, height) if size is None else _size(size))
        panels = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for panel, title in zip(panels, shown, strict=False):
        panel.set_title(title, fontsize=FONT, parse_math=False)
        panel.set_xlabel(xlabel, fontsize=FONT)
        panel.set_ylabel(ylabel, fontsize=FONT)
        panel.tick_params(which="both", labelsize=SMALL)
        panel.yaxis.get_offset_text().set_fontsize(SMALL)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in panels[len(titles) :]:
        panel.set_visible(False)
    return figure, panels[: len(titles)]


def tick_values(panel: Axes, values: Iterable[float]) -> None:
    """Ticks of the horizontal axis at these values and nowhere else, if the labels fit beside each other."""
    from math import isfinite, log

    from matplotlib.ticker import NullLocator

    every = sorted({float(value) for value in values if isfinite(value)})
    is_log = panel.get_xscale() == "log"
    places = [log(value) for value in every] if is_log else every
    labels = [f"{value:g}" for value in every]
    widths = [text_width(label, SMALL) for label in labels]
    room = 72.0 * root_of(panel).get_figwidth() * panel.get_position().width
    for k in range(len(every) - 1):
        apart = (places[k + 1] - places[k]) / (places[-1] - places[0]) * room
        if apart < (widths[k] + widths[k + 1]) / 2.0 + SMALL / 2.0:
            return
    if not every:
        return
    panel.set_xticks(every, labels)
    panel.xaxis.set_minor_locator(NullLocator())


def _size(size: Any) -> tuple[float, float]:
    values = validation.array("size", size, (2,))
    if not (values > 0.5).all():
        raise ValueError(f"size must be a width and a height in inches, each above 0.5, got {size!r}")
    return float(values[0]), float(values[1])


def _lines(text: str) -> int:
    return text.count("\n") + 1


class LegendLayout(NamedTuple):
    """Labels and title of a legend in lines that fit, and how many labels are side by side; inches high."""

    labels: list[str]
    title: str
    columns: int
    height: float


def lay_out_legend(labels: Iterable[str], title: str, width: float) -> LegendLayout:
    """A legend that is at most `width` inches wide."""
    shown = [wrapped(label, 72.0 * width - _HANDLE, SMALL) for label in labels]
    widest = max((text_width(line, SMALL) for label in shown for line in label.splitlines()), default=0.0)
    columns = int(min(max(72.0 * width // (widest + _HANDLE + SMALL), 1), max(len(shown), 1)))
    each = -(-len(shown) // columns)
    lines = max((sum(map(_lines, shown[k : k + each])) for k in range(0, len(shown), each)), default=0)
    words = wrapped(title, 72.0 * width, SMALL)
    height = SMALL * _SPACING * (lines + (_lines(words) if words else 0) + 1) / 72.0
    return LegendLayout(shown, words, columns, height)


def place_legend(
    owner: Figure | Axes, handles: Iterable[Any], layout: LegendLayout, *, outside: bool
) -> None:
    """A legend under the panels of a figure or, if not `outside`, under one of them: never on a line."""
    from matplotlib.transforms import ScaledTranslation

    place: dict[str, Any] = {"loc": "outside lower center"}
    if not outside:
        panel: Any = owner
        shift = ScaledTranslation(0.0, -_BELOW / 72.0, root_of(panel).dpi_scale_trans)
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "borderaxespad": 0.0}
        place["bbox_transform"] = panel.transAxes + shift
    made = owner.legend(
        list(handles), layout.labels, title=layout.title, ncols=layout.columns, frameon=False,
        fontsize=SMALL, title_fontsize=SMALL, columnspacing=1.0, handlelength=1.8, **place,
    )  # fmt: skip
    for text in [*made.get_texts(), made.get_title()]:
        text.set_parse_math(False)


def picture_path(name: str, replace: bool = True) -> Path:
    """`name` as a path that `save` can write: its directory exists, its ending names a format.

    A file that is there already is refused unless it may be replaced.
    """
    from matplotlib.backend_bases import FigureCanvasBase

    path = Path(name)
    formats = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.lower().removeprefix(".") not in formats:
        raise ValueError(f"out must end with one of .{', .'.join(formats)}, got {name!r}")
    if not path.parent.is_dir():
        raise ValueError(f"out must be in a directory that exists, got {name!r}")
    if path.exists() and not replace:
        raise FileExistsError(f"out must be a new file, got {name!r}, which exists: --force replaces it")
    return path


def save(figure: Figure, path: Path) -> None:
    """Write the figure; a PDF has fonts that journals accept."""
    save_pages([figure], path)


def page_paths(path: Path, count: int) -> list[Path]:
    """The files of so many figures: one for a PDF, which has pages; else NAME-1, NAME-2, ... of several.

    >>> [path.name for path in page_paths(Path("regret.png"), 2)]
    ['regret-1.png', 'regret-2.png']
    """
    if count == 1 or path.suffix.lower() == ".pdf":
        return [path]
    return [path.with_stem(f"{path.stem}-{number}") for number in range(1, count + 1)]


def save_pages(figures: Sequence[Figure], path: Path) -> list[Path]:
    """Write the figures to the files of `page_paths`, which are returned."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_pdf import PdfPages

    paths = page_paths(path, len(figures))
    with rc_context({"pdf.fonttype": 42, "svg.fonttype": "none"}):
        if len(paths) < len(figures):
            with PdfPages(path) as file:
                for figure in figures:
                    file.savefig(figure)
        else:
            for figure, each in zip(figures, paths, strict=True):
                figure.savefig(each, dpi=300)
    return paths
