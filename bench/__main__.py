"""`python -m bench headline`: everything that is asked of fastlbm's speed, in one table.

`python -m bench track`: whether something got slower than the stored measurements of the same machine.

`python -m bench report`: the cost against d, m, L, K and T, and the history, as pictures and tables.

`python -m bench kernels`: the cost of value and gradient beside `numpy.linalg.eigh`, and how it grows.

`python -m bench plans`: how good plans are and what they cost, and how the bounds on OPT close.

`python -m bench arms`: plans on sets of arms, and steps a second on catalogues.

`python -m bench learners`: what learners collect, what a step costs, how regret grows.

`python -m bench selection`: what it costs not to know m and gamma.

`python -m bench choices`: who plans in Auto, by ways to choose.

`python -m bench misfits`: how often Auto tells that rewards follow none of its models.

`python -m bench memories`: what a window of a memory that fades costs, and what it is worth to know it.

`python -m bench studies`: how much of a study's time is spent in kernels, what it takes to go on.

`python -m bench sweep`: what a study of 27 environments x 3 agents x 100 seeds takes to be looked at.

`python -m bench steps`: what a step costs when Python decides, and 1,000 environments of Gymnasium at once.

`python -m bench live`: arms that are offered step by step, logs, and what the state of a user costs.

`python -m bench startup`: what the first call costs.
"""

from __future__ import annotations

import argparse
import os
import sys

# The yardstick is one thread of LAPACK, as the kernels are one thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from . import (
    arms,
    choices,
    headline,
    learners,
    live,
    memories,
    misfits,
    plans,
    report,
    selection,
    startup,
    steps,
    studies,
    sweep,
    track,
    windows,
)


def main(arguments: list[str] | None = None) -> int:
    """The command line; bad arguments end with the exit code 2."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    suites = {
        "kernels": windows,
        "plans": plans,
        "learners": learners,
        "selection": selection,
        "choices": choices,
        "misfits": misfits,
        "memories": memories,
        "studies": studies,
        "sweep": sweep,
        "steps": steps,
        "live": live,
        "startup": startup,
    }
    for name, module in (("headline", headline), ("track", track), ("report", report), ("arms", arms)):
        command = commands.add_parser(name, help=(module.__doc__ or "").partition("\n")[0])
        module.add_arguments(command)
        command.set_defaults(run=module.main)
    for name, module in suites.items():
        command = commands.add_parser(name, help=(module.__doc__ or "").partition("\n")[0])
        command.set_defaults(run=lambda _, module=module: module.main())
    options = parser.parse_args(arguments)
    try:
        return options.run(options) or 0
    except (ValueError, OSError) as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")


if __name__ == "__main__":
    sys.exit(main())
