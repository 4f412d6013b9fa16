"""`python -m reproduce [NAME ...]`: the paper's figures and claims, all of them by default."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastlbm import precompile

from .claims import COLUMNS, Claim, rows, statements
from .page import Page, markdown

PAPER = ("fig1-left", "fig1-right", "fig2")
BEYOND = (
    "model", "statements", "confidence", "regret", "lengths", "scaling", "approximation", "greedy",
    "knowledge", "selection", "arms", "gradient", "rolling", "headline",
)  # fmt: skip
GROUPS = {"beyond": BEYOND, "claims": (*PAPER, *BEYOND)}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chosen experiments, say where their files are; 1 if a number left its interval."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce", description="The paper's figures and claims."
    )
    known = ", ".join((*PAPER, *BEYOND, *GROUPS))
    parser.add_argument(
        "names", nargs="*", metavar="NAME",
        help=f"any of {known}; beyond is {', '.join(BEYOND)}; claims, the default, is everything",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder, default %(default)s")
    parser.add_argument(
        "--runs",
        type=int,
        metavar="N",
        help="runs of each setting, where there is chance, instead of the usual number",
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer runs and shorter horizons, to see that all works"
    )
    parser.add_argument(
        "--gallery",
        type=Path,
        metavar="DIR",
        help="also write small pictures, and the tables, into this folder",
    )
    options = parser.parse_args(argv)
    chosen: list[str] = []
    for name in options.names or ["claims"]:
        if name not in (*PAPER, *BEYOND, *GROUPS):
            parser.error(f"NAME must be one of {known}, got {name}")
        chosen += GROUPS.get(name, (name,))
    if options.runs is not None and options.runs < 5:
        parser.error(f"--runs must be at least 5, got {options.runs}")
    try:
        if options.gallery is not None:
            options.gallery.mkdir(parents=True, exist_ok=True)
        common = (options.out, options.runs, options.quick, options.gallery)
        pages = [Page(name, *common) for name in dict.fromkeys(chosen)]
    except OSError as error:
        parser.error(f"--out and --gallery must be folders that can be written to: {error}")
    if precompile.is_cold() and len(pages) > 1:  # one of them compiles what it needs and no more
        print("compiling the core, which is done once and takes a minute or two ...", flush=True)
        with contextlib.suppress(subprocess.CalledProcessError):  # then it is compiled where it is needed
            precompile.compile_all()
    try:
        return _make(pages, common, not options.names or "claims" in options.names)
    except KeyboardInterrupt:
        print("interrupted: the same command goes on from here", file=sys.stderr)
        return 130


def _make(pages: Sequence[Page], common: Any, everything: bool) -> int:
    """Run the experiments; the exit code."""
    claims: list[Claim] = []
    for page in pages:
        begin = time.perf_counter()
        importlib.import_module(f".{page.name.replace('-', '_')}", __package__).make(page)
        print(f"{page.name}: {time.perf_counter() - begin:.1f} s")
        for path in page.written:
            print(f"  {path}")
        claims += page.claims
    if everything:
        page = Page("claims", *common)
        page.numbers(COLUMNS, rows(claims))
        page.text("Statements, checked:", markdown(COLUMNS, rows(claims)))
        print("claims:", *(f"  {path}" for path in page.written), sep="\n")
        unchecked = sorted(statements().keys() - {claim.name for claim in claims})
    else:
        unchecked = []
    return report(claims, unchecked)


def report(claims: Sequence[Claim], unchecked: Sequence[str] = ()) -> int:
    """Print the verdicts; 1 if a number is where it must not be, or a statement was not checked."""
    if claims:
        print("What was claimed, and what was measured (remarks are in reproduce/figures/claims.md):")
    for claim in claims:
        print(f"{claim.verdict:>19}  {claim.name}: {claim.measured} = {claim.number}")
    failed = [claim.failed for claim in claims if claim.failed]
    failed += [f"{name}: no experiment has checked it" for name in unchecked]
    for words in failed:
        print(f"FAILED {words}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
