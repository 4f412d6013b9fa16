"""Rows of `python -m bench headline`: what was asked beside what was measured, as text and as Markdown."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One line; `asked` is "" for what is only told, `ok` is None for that and for what was not measured."""

    number: int
    what: str
    asked: str
    measured: str
    value: float | None = None
    ok: bool | None = None
    #: What, ours, what is beside it, ratio: its line in the README's table, if it has one.
    readme: tuple[str, ...] = ()


def short(value: float) -> str:
    """Three digits, more if they are whole."""
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"


def at_least(number: int, what: str, bound: float, value: float, unit: str = "x", note: str = "") -> Row:
    """A row that asks for a lower bound."""
    return Row(
        number, what, f">= {bound:,g}{unit}", f"{short(value)}{unit}{note}", value=value, ok=value >= bound
    )


def at_most(number: int, what: str, bound: float, value: float, unit: str = "x", note: str = "") -> Row:
    """A row that asks for an upper bound."""
    return Row(
        number, what, f"<= {bound:,g}{unit}", f"{short(value)}{unit}{note}", value=value, ok=value <= bound
    )


def told(number: int, what: str, measured: str, value: float | None = None) -> Row:
    """A row that asks for nothing."""
    return Row(number, what, "", measured, value=value)


def line(row: Row) -> str:
    """One line of the table."""
    verdict = "" if not row.asked else {True: "ok", False: "MISSED", None: "-"}[row.ok]
    return f"{row.number} {row.what:52} {row.asked:>12}  {row.measured:44} {verdict}".rstrip()


def markdown(rows: list[Row]) -> str:
    """The rows as the table of bench/README.md."""
    lines = ["| | what | asked | measured | |", "|---|---|---|---|---|"]
    for row in rows:
        verdict = "" if not row.asked else {True: "ok", False: "**missed**", None: "-"}[row.ok]
        what, measured = (words.strip().replace("|", "\\|") for words in (row.what, row.measured))
        lines.append(f"| {row.number} | {what} | {row.asked} | {measured} | {verdict} |")
    return "\n".join(lines)


def for_readme(rows: list[Row]) -> str:
    """The table of the README, of those rows that have a line in it."""
    lines = ["| | fastlbm | beside it | ratio |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row.readme)} |" for row in rows if row.readme)])
