"""The command line: owns arguments, printing and exit codes.

Everything heavy is imported by the command that needs it, so that `fastlbm --help` is quick.

    options    what options mean, and those that commands share
    printing   answers as a table or as JSON, notices about what takes long
    model      plan, bounds
    studies    study, plot, export, report
    upkeep     doctor, compile, completion
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import warnings
from collections.abc import Sequence

from .._version import __version__
from . import model, studies, upkeep
from .options import join_negative
from .printing import complain, print_warning

#: The largest numbers that commands take: beyond them a plan does not fit into memory, or never ends.
LARGEST = {"m": 10_000, "L": 100_000, "cycle": 100_000, "cycle_up_to": 10_000, "T": 2**53}
#: Exit codes, as the help has them.
EXIT_CODES = (
    "Exit codes: 0 the command did what it was asked; 1 the self-test failed, or a process that compiles; "
    "2 an argument, a file or a folder is not as it must be, and a sentence says what is wrong; "
    "130 stopped by Ctrl-C, what is finished is kept."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command (`argv` defaults to the arguments of the process).

    The exit code is 0 if all is well, 1 if a self-test or compiling fails, 2 for bad input and 130 after
    Ctrl-C, the last three with a sentence.

    >>> main(["doctor"])  # doctest: +ELLIPSIS
    fastlbm ...
    self-test    OK
    0
    """
    kept = ""
    try:
        options = _parse(argv)
        kept = getattr(options, "kept", "")
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = print_warning
            _refuse_huge(options)
            code: int = options.run(options)
            print(end="", flush=True)
    except KeyboardInterrupt:
        complain("stopped" + kept)
        return 130
    except MemoryError as error:
        complain(f"this needs more memory than there is: choose smaller numbers. {error}".strip())
        return 2
    except BrokenPipeError as error:
        if _has_readers():
            complain(str(error))
            return 2
        return 0  # as in `fastlbm ... | head`: whoever read has seen enough
    except (ValueError, OSError, OverflowError) as error:  # about an argument, a file or a folder
        complain(str(error) or type(error).__name__)
        return 2
    return code


def _has_readers() -> bool:
    """Whether somebody reads what is printed; if not, the rest of it is dropped."""
    try:
        print(flush=True)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return False
    return True


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    try:
        options = parser.parse_args(join_negative(sys.argv[1:] if argv is None else argv))
    except ValueError:  # of argparse itself, for the value "--"; or the value becomes an empty list
        options = argparse.Namespace(value=[])
    if [] in vars(options).values():
        parser.error("every option must have a value, got -- for one of them")
    options.parser = parser
    return options


def _refuse_huge(options: argparse.Namespace) -> None:
    for name, most in LARGEST.items():
        value = getattr(options, name, None)
        if value is not None and most < value < math.inf:
            raise ValueError(f"{name} must be at most {most}, got {value}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fastlbm", description="Linear bandits with memory.", epilog=EXIT_CODES
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for part in (upkeep, model, studies):
        part.add_commands(commands)
    return parser
