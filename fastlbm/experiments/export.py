"""Export: owns the files in which the rows of a study are carried away, and the table for a paper."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from math import floor, isfinite, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._base import files
from . import strict_json

if TYPE_CHECKING:
    import pandas as pd

#: A p-value from which on an agent counts as no worse than the best one.
SIGNIFICANT = 0.05
#: Rows of which the texts are in memory at once.
_ROWS_AT_ONCE = 50_000


def new_file(
    name: str,
    path: str | Path,
    endings: tuple[str, ...],
    replace: bool = False,
    remedy: str = "replace=True",
) -> Path:
    """The path, if a file of one of the endings can be written there; a file that exists is not replaced.

    `remedy` is what replaces it, as it is told.
    """
    target = Path(path)
    if target.suffix.lower() not in endings:
        raise ValueError(f"{name} must end with one of {', '.join(endings)}, got {str(path)!r}")
    if not target.parent.is_dir():
        raise ValueError(f"{name} must be in a directory that exists, got {str(path)!r}")
    if target.exists() and not replace:
        raise FileExistsError(
            f"{name} must be a new file, got {str(path)!r}, which exists: {remedy} replaces it"
        )
    return target


def _parquet(frame: pd.DataFrame) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _csv(frame: pd.DataFrame) -> bytes:
    text = io.StringIO()
    frame.to_csv(text, index=False, lineterminator="\n")
    return text.getvalue().encode()


def _json(frame: pd.DataFrame) -> bytes:
    """A list of rows, with all digits: pandas itself writes 15 of 17.

    A number that is not there is null, an infinite one the text "inf" or "-inf": JSON has none.
    """
    parts = []
    for begin in range(0, len(frame), _ROWS_AT_ONCE):
        some = frame.iloc[begin : begin + _ROWS_AT_ONCE]
        fields = [_json_fields(str(name), some[name]) for name in some]
        parts.append("},\n{".join(map(",".join, zip(*fields, strict=True))).encode())
    return b"[{" + b"},\n{".join(parts) + b"}]\n" if parts else b"[]\n"


def _json_fields(name: str, column: pd.Series) -> list[str]:
    """The name with the value of each row; each value is written once."""
    codes, values = column.factorize(use_na_sentinel=False)
    begin = json.dumps(name) + ":"
    texts = [begin + _json_text(value) for value in values.tolist()]
    return [texts[code] for code in codes.tolist()]


def _json_text(value: Any) -> str:
    if type(value) is float and isfinite(value):
        return repr(value)
    return "null" if value != value else strict_json.dumps(value)


#: How a file of rows is made, by its ending.
ROWS: dict[str, Callable[[Any], bytes]] = {".parquet": _parquet, ".csv": _csv, ".json": _json}
#: What can be exported: the rows, and the summary as a table for a paper.
ENDINGS = (*ROWS, ".tex")


def write_rows(frame: pd.DataFrame, path: Path) -> None:
    """The rows, in the format that the ending of the path names."""
    files.write_atomically(path, ROWS[path.suffix.lower()](frame))


def latex_table(
    summary: pd.DataFrame, *, name: str, confidence: float, what: str = "cumulative expected reward"
) -> str:
    """The summary as a LaTeX table for the package booktabs: settings down, agents across.

    The best mean of a row is bold, and so is every mean that the paired test does not tell from it. `what`
    says what they are means of.

    >>> import pandas as pd
    >>> row = {"env": "e_1", "T": 10, "agent": "O3M", "seeds": 5, "mean": 7.25, "low": 7.0, "high": 7.5,
    ...        "p_vs_best": float("nan")}
    >>> print(latex_table(pd.DataFrame([row]), name="mine", confidence=0.95).splitlines()[7])
    e\\_1 & 10 & $\\mathbf{7.25}$ {\\scriptsize$[7.00, 7.50]$} \\\\
    """
    agents = list(dict.fromkeys(summary["agent"]))
    lines = []
    for (env, T), group in summary.groupby(["env", "T"], sort=False):
        mine = group.set_index("agent")
        cells = [_latex_cell(mine.loc[agent]) if agent in mine.index else "---" for agent in agents]
        lines.append(" & ".join([latex_text(str(env)), str(T), *cells]) + r" \\")
    seeds = sorted(set(summary["seeds"]))
    runs = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    caption = (
        f"{latex_text(name)}: {latex_text(what)}, mean over {runs} seeds with a "
        rf"{100 * confidence:g}\% bootstrap interval. Bold: the best, and what a paired Wilcoxon test "
        f"(Benjamini--Hochberg, level {SIGNIFICANT:g}) does not tell from it."
    )
    label = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "study"
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{lr{'r' * len(agents)}}}",
            r"\toprule",
            " & ".join(["Environment", "$T$", *map(latex_text, agents)]) + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{label}}}",
            r"\end{table}",
            "",
        ]
    )


def _latex_cell(row: Any) -> str:
    """The mean and its interval, with as many digits as the interval's width allows."""
    width = float(row["high"] - row["low"])
    scale = width if width > 0.0 and isfinite(width) else abs(float(row["mean"])) / 100.0
    digits = min(max(1 - floor(log10(scale)), 0), 6) if scale > 0.0 else 1
    mean, low, high = (f"{row[name]:.{digits}f}" for name in ("mean", "low", "high"))
    best = not row["p_vs_best"] < SIGNIFICANT  # NaN is the best one itself
    shown = rf"\mathbf{{{mean}}}" if best else mean
    return rf"${shown}$ {{\scriptsize$[{low}, {high}]$}}"


_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{character: "\\" + character for character in "&%$#_{}"},
}  # fmt: skip


def latex_text(text: str) -> str:
    """The text, with what LaTeX takes for commands escaped.

    >>> print(latex_text("rotting_1 (100%)"))
    rotting\\_1 (100\\%)
    """
    return "".join(_SPECIAL.get(character, character) for character in text)
