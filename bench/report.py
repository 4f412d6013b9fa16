"""`python -m bench report`: the cost against d, m, L, K and T, and the history, as pictures and tables."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from fastlbm.plots import FONT, PAGE, SMALL, save

from . import growth, history
from .growth import Curve

#: One colour a line, from dark to light as well, so that grey keeps them apart; a marker each.
STYLES = (
    ("#08306b", "o"),
    ("#d94801", "s"),
    ("#5aae61", "^"),
    ("#9e9ac8", "D"),
    ("#c7a76c", "v"),
    ("#737373", "x"),
)
#: Seconds in the units of the curves' axes.
SCALES = {"window": (1e9, "ns a window"), "block": (1e6, "us a block"), "plan": (1e3, "ms a plan")}


def draw_growth(curves: Sequence[Curve]) -> Figure:
    """One panel an axis: measured points and, dashed, the power law fitted to the last of them."""
    axes = list(dict.fromkeys(curve.axis for curve in curves))
    figure, panels = _panels(len(axes), 3, 2.6)
    for panel, axis in zip(panels, axes, strict=True):
        chosen = [curve for curve in curves if curve.axis == axis]
        for curve, (colour, marker) in zip(chosen, STYLES, strict=False):
            _draw_curve(panel, curve, colour, marker)
        sizes = sorted({size for curve in chosen for size in curve.sizes if curve.axis != "T"})
        if sizes:
            panel.set_xticks(sizes[:: -(-len(sizes) // 7)], [f"{x:g}" for x in sizes[:: -(-len(sizes) // 7)]])
            panel.xaxis.set_minor_locator(NullLocator())
        panel.yaxis.set_minor_formatter(NullFormatter())
        panel.set_xlabel(axis, fontsize=FONT)
        panel.set_ylabel(_unit(chosen[0])[1], fontsize=FONT)
        panel.legend(
            fontsize=SMALL - 1, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2
        )
    return figure


def _panels(count: int, columns: int, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of a page's width with so many panels."""
    rows = -(-count // columns)
    figure = Figure(figsize=(PAGE, height * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for panel in panels[count:]:
        panel.remove()
    for panel in panels[:count]:
        panel.tick_params(which="both", labelsize=SMALL)
        panel.spines[["top", "right"]].set_visible(False)
    return figure, panels[:count]


def _unit(curve: Curve) -> tuple[float, str]:
    """What seconds are multiplied with, and the name of the result."""
    return SCALES.get(curve.unit, (1.0, f"s an {curve.unit}"))


def _draw_curve(panel: Axes, curve: Curve, colour: str, marker: str) -> None:
    x, y = np.array(curve.sizes), _unit(curve)[0] * np.array(curve.seconds)
    label = f"{curve.label}: {curve.axis}^{curve.exponent:.2f}"
    panel.loglog(x, y, marker=marker, color=colour, markersize=3, linewidth=1.0, label=label)
    tail = x[x >= curve.tail]
    # Through the middle of the points that were fitted.
    factor = np.exp(np.mean(np.log(y[x >= curve.tail]) - curve.exponent * np.log(tail)))
    panel.loglog(tail, factor * tail**curve.exponent, "--", color=colour, linewidth=0.8)


def draw_history(records: Sequence[dict[str, Any]]) -> Figure:
    """One panel an entry: its ratio over the records of one machine, the first being 1; the noise as bars."""
    names = list(dict.fromkeys(name for record in records for name in record["entries"]))
    figure, panels = _panels(len(names), 4, 1.5)
    for panel, name in zip(panels, names, strict=True):
        points = [(i, r["entries"][name]) for i, r in enumerate(records, 1) if name in r["entries"]]
        ratio, noise = (np.array([entry[key] for _, entry in points]) for key in ("ratio", "noise"))
        relative = ratio / ratio[0]
        panel.errorbar(
            [i for i, _ in points], relative, noise * relative, color=STYLES[0][0], marker="o", ms=3
        )
        panel.set_title(name, fontsize=SMALL)
        panel.set_xlim(0.5, len(records) + 0.5)
        panel.set_ylim(min(0.8, 0.95 * relative.min()), max(1.2, 1.05 * relative.max()))
        panel.xaxis.get_major_locator().set_params(integer=True)
    figure.supxlabel(f"record, {records[0]['day']} to {records[-1]['day']}", fontsize=FONT)
    figure.supylabel("cost beside the loop, first record = 1", fontsize=FONT)
    return figure


def tables(curves: Sequence[Curve]) -> tuple[pd.DataFrame, str]:
    """All points in a frame, and the exponents in a table of Markdown."""
    frame = pd.DataFrame(
        [
            {"axis": c.axis, "label": c.label, "unit": c.unit, "size": size, "seconds": seconds}
            for c in curves
            for size, seconds in zip(c.sizes, c.seconds, strict=True)
        ]
    )
    lines = ["| against | what | sizes | first | last | exponent |", "|---|---|---|---|---|---|"]
    for c in curves:
        scale, unit = _unit(c)
        first, last = scale * c.seconds[0], scale * c.seconds[-1]
        lines.append(
            f"| {c.axis} | {c.label} | {c.sizes[0]:g} to {c.sizes[-1]:g} | {first:.3g} | {last:.3g} {unit} "
            f"| {c.exponent:.2f} from {max(c.tail, c.sizes[0]):g} on |"
        )
    return frame, "\n".join(lines) + "\n"


def write(out: Path, curves: Sequence[Curve], records: Sequence[dict[str, Any]]) -> list[Path]:
    """All files of the report; the history only if there is one."""
    out.mkdir(parents=True, exist_ok=True)
    figures = {"growth": draw_growth(curves), **({"history": draw_history(records)} if records else {})}
    paths = [out / f"{name}{suffix}" for name in figures for suffix in (".png", ".pdf")]
    for path in paths:
        save(figures[path.stem], path)
    frame, markdown = tables(curves)
    frame.to_csv(out / "growth.csv", index=False)
    (out / "growth.md").write_text(markdown, encoding="utf-8")
    return [*paths, out / "growth.csv", out / "growth.md"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=Path("results/bench"), help="folder, default %(default)s")
    parser.add_argument(
        "--history", type=Path, default=history.PATH, metavar="FILE", help="another history file"
    )


def main(options: argparse.Namespace) -> int:
    records = history.of_machine(history.load(options.history), history.fingerprint())
    options.out.mkdir(parents=True, exist_ok=True)  # before anything is measured
    curves = []
    for case in growth.CASES:
        curves.append(growth.measure(case))
        print(f"{case.axis}, {case.label}: exponent {curves[-1].exponent:.2f}", flush=True)
    for path in write(options.out, curves, records):
        print(path)
    return 0
