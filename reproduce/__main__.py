"""`python -m reproduce [FIGURE ...] [--out DIR]`: draw the paper's figures, all of them by default."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from . import fig1_right

#: Each entry writes its files into a directory and returns their paths.
FIGURES: dict[str, Callable[[Path], list[Path]]] = {"fig1-right": fig1_right.write}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files of the chosen figures and print where they are; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m reproduce", description="Draw the paper's figures.")
    names = ", ".join(FIGURES)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=f"any of {names}; all by default")
    parser.add_argument("--out", type=Path, default=Path("results"), help="directory, default %(default)s")
    options = parser.parse_args(argv)
    unknown = [name for name in options.figures if name not in FIGURES]
    if unknown:
        parser.error(f"FIGURE must be one of {names}, got {unknown[0]}")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out must be a directory that can be written to: {error}")
    for name in dict.fromkeys(options.figures or FIGURES):
        for path in FIGURES[name](options.out):
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
