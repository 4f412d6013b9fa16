"""Printing: owns how answers, complaints and notices look; answers go to stdout, all else to stderr."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Iterator
from typing import Any

from .._base.interrupts import deferred


def complain(words: str) -> None:
    """Say what is wrong, on a line of its own: bars of progress make room for it."""
    bars = sys.modules.get("tqdm.auto")
    room = contextlib.nullcontext() if bars is None else bars.tqdm.external_write_mode(file=sys.stderr)
    with room:
        print(f"fastlbm: {words}", file=sys.stderr)


def print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    complain(str(message))


def print_json(answer: Any) -> None:
    """The answer as strict JSON: what is no finite number is null."""
    print(json.dumps(_strict(answer), indent=1, allow_nan=False))


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return _strict(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def progress() -> bool | str:
    """How progress is shown: as a bar on a terminal, elsewhere as a line a minute."""
    return sys.stderr.isatty() or "rarely"


def yes(fact: bool) -> str:
    return "yes" if fact else "no"


@contextlib.contextmanager
def telling_of_compiling(quiet: bool = False) -> Iterator[None]:
    """Whoever waits for the compiler is told so: by the core on a terminal, elsewhere here, once."""
    with deferred():
        from numba.core.registry import cpu_target

        cpu_target.target_context.refresh()  # imports what threads would import at their first call
    from ..kernels._notice import NOTICE

    before = os.environ.get("FASTLBM_QUIET")
    if quiet:
        os.environ["FASTLBM_QUIET"] = "1"
    NOTICE.in_words = _tell_of_compiling
    try:
        yield
    finally:
        NOTICE.in_words = None
        if before is not None:
            os.environ["FASTLBM_QUIET"] = before
        elif quiet:
            os.environ.pop("FASTLBM_QUIET", None)


def _tell_of_compiling() -> None:
    complain(
        "compiling for this machine, which takes a minute or two and is kept for the next time; "
        "`fastlbm compile` does all of it ahead"
    )
