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
    rows = -(-len(axes) // 3)
    figure = Figure(figsize=(PAGE, 2.4 * rows), layout="constrained")
    panels = figure.subplots(rows, 3, squeeze=False).ravel()
    for panel in panels[len(axes) :]:
        panel.remove()
    for panel, axis in zip(panels, axes, strict=False):
        chosen = [curve for curve in curves if curve.axis == axis]
        for curve, (colour, marker) in zip(chosen, STYLES, strict=False):
            _draw_curve(panel, curve, colour, marker)
        panel.set_xlabel(axis, fontsize=FONT)
        panel.set_ylabel(SCALES.get(chosen[0].unit, (1.0, f"s an {chosen[0].unit}"))[1], fontsize=FONT)
        _finish(panel)
    return figure


def _draw_curve(panel: Axes, curve: Curve, colour: str, marker: str) -> None:
    scale = SCALES.get(curve.unit, (1.0, ""))[0]
    x, y = np.array(curve.sizes), scale * np.array(curve.seconds)
    label = f"{curve.label}: {curve.axis}^{curve.exponent:.2f}"
    panel.loglog(x, y, marker=marker, color=colour, markersize=3, linewidth=1.0, label=label)
    tail = x[x >= curve.tail]
    middle = np.exp(np.mean(np.log(y[x >= curve.tail]))) / np.exp(np.mean(np.log(tail))) ** curve.exponent
    panel.loglog(tail, middle * tail**curve.exponent, "--", color=colour, linewidth=0.8)
    if len(x) <= 7:
        panel.set_xticks(x, [f"{size:g}" for size in x])
        panel.xaxis.set_minor_locator(NullLocator())
        panel.xaxis.set_minor_formatter(NullFormatter())


def draw_history(records: Sequence[dict[str, Any]]) -> Figure:
    """Every entry's ratio over the records of one machine, relative to the first; the noise as bars."""
    figure = Figure(figsize=(PAGE, 3.2), layout="constrained")
    panel = figure.subplots()
    names = list(dict.fromkeys(name for record in records for name in record["entries"]))
    greys = np.linspace(0.0, 0.7, max(len(names), 1))
    markers = "os^Dv<>ph*X8Pd"
    for k, name in enumerate(names):
        points = [(i, r["entries"][name]) for i, r in enumerate(records, 1) if name in r["entries"]]
        at = np.array([i for i, _ in points])
        ratio, noise = (np.array([entry[key] for _, entry in points]) for key in ("ratio", "noise"))
        panel.errorbar(
            at,
            ratio / ratio[0],
            yerr=noise * ratio / ratio[0],
            marker=markers[k % len(markers)],
            color=str(greys[k]),
            markersize=3,
            linewidth=0.8,
            label=name,
        )
    panel.set_xticks(range(1, len(records) + 1), [record["day"] for record in records])
    panel.set_ylabel("cost, first record = 1", fontsize=FONT)
    _finish(panel)
    panel.legend(fontsize=SMALL, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _finish(panel: Axes) -> None:
    panel.tick_params(labelsize=SMALL)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(fontsize=SMALL - 1, frameon=False)


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
        scale, unit = SCALES.get(c.unit, (1.0, f"s an {c.unit}"))
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
