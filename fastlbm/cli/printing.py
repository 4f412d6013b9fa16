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
    """Whoever waits for the compiler is told so, once; on a terminal with the number of functions so far."""
    with deferred():
        from numba.core.registry import cpu_target

        cpu_target.target_context.refresh()  # imports what threads would import at their first call
    before = os.environ.get("FASTLBM_QUIET")
    os.environ["FASTLBM_QUIET"] = "1"  # the core, which tells whoever calls it from Python, is silent here
    try:
        with contextlib.nullcontext() if quiet else _told_of_compiling():
            yield
    finally:
        if before is None:
            del os.environ["FASTLBM_QUIET"]
        else:
            os.environ["FASTLBM_QUIET"] = before


@contextlib.contextmanager
def _told_of_compiling() -> Iterator[None]:
    import numba.core.event

    event: Any = numba.core.event  # without types

    notice = _CompileNotice()

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            notice.begin()

        def on_end(self, event: Any) -> None:
            notice.end()

    listener = Listener()
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)
        notice.close()


class _CompileNotice:
    """What is said while functions are compiled, one inside the other."""

    def __init__(self) -> None:
        self._done = 0
        self._told = False

    def begin(self) -> None:
        if not self._told:
            self._told = True
            complain(
                "compiling for this machine, which takes a minute or two and is kept for the next time; "
                "`fastlbm compile` does all of it ahead"
            )

    def end(self) -> None:
        self._done += 1
        if sys.stderr.isatty():
            print(f"\r{self._done} functions compiled ", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._done and sys.stderr.isatty():
            print(file=sys.stderr)
