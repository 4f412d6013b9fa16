"""Options: own what the text of an option may be, and the options that commands share."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence

Commands = argparse._SubParsersAction
Parser = argparse.ArgumentParser


def add_command(
    commands: Commands[Parser],
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    help: str,
    description: str,
    kept: str = "",
) -> Parser:
    """A command; `kept` is what is added to "stopped" after Ctrl-C."""
    command = commands.add_parser(name, help=help, description=description)
    command.set_defaults(run=run, kept=kept)
    return command


def add_json(command: Parser) -> None:
    command.add_argument("--json", action="store_true", help="The answer is JSON, with all digits.")


def add_force(command: Parser) -> None:
    command.add_argument("--force", action="store_true", help="A file that is there already is replaced.")


def add_model(command: Parser) -> None:
    command.add_argument(
        "--theta",
        type=numbers,
        required=True,
        metavar="X,Y,...",
        help="The parameter has a norm of at most 1.",
    )
    command.add_argument(
        "--m", type=float, default=2, help="The memory holds m actions. The default is %(default)s."
    )
    command.add_argument(
        "--gamma",
        type=float,
        default=-3.0,
        help="The exponent is negative for rotting, positive for rising rewards. The default is %(default)s.",
    )
    command.add_argument(
        "--A0",
        type=diagonal,
        metavar="X,Y,...",
        help="The initial matrix has this diagonal; I is the identity, the default.",
    )
    command.add_argument(
        "--seed", type=integer, default=0, help="The search draws from this seed. The default is %(default)s."
    )


def join_negative(arguments: Sequence[str]) -> list[str]:
    """The arguments with negative numbers tied to their options: argparse takes a list of them for an option.

    >>> join_negative(["plan", "--theta", "-0.6,0.8", "--json"])
    ['plan', '--theta=-0.6,0.8', '--json']
    """
    joined: list[str] = []
    for word in arguments:
        before = joined[-1] if joined else ""
        if re.match(r"-(\d|\.\d|inf)", word) and re.fullmatch(r"--[^=]+", before):
            joined[-1] = f"{before}={word}"
        else:
            joined.append(word)
    return joined


def integer(text: str) -> int:
    """An integer, also as 1e3.

    >>> integer("1e3"), integer("12")
    (1000, 12)
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
        if number == int(number):
            return int(number)
    except (ValueError, OverflowError):  # no number; infinity
        pass
    raise argparse.ArgumentTypeError(f"must be an integer such as 1000 or 1e3, got {text!r}")


def words(text: str) -> list[str]:
    """Names separated by commas; a comma in brackets is part of a name.

    >>> words("O3M(L=1, lam=2),OFUL")
    ['O3M(L=1, lam=2)', 'OFUL']
    """
    return [word.strip() for word in re.split(r",(?![^(]*\))", text)]


def numbers(text: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers separated by commas, got {text!r}") from None


def diagonal(text: str) -> list[float] | None:
    """The diagonal of A0; None for I, the identity."""
    return None if text == "I" else numbers(text)
