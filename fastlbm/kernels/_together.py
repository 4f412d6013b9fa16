"""Compiling together: owns who compiles what where processes find the same cache empty.

Who is about to compile a kernel claims it by a lock beside its file; others wait for the file instead of
making it a second time. Nobody waits in a circle: who holds a kernel waits for what it calls only.

Meanwhile Python does not look for garbage: nearly all that Numba makes stays, and the search took a tenth of
the time.

Who finds a cache with nothing in it, for an episode with a search, starts a second process, which compiles
what the first comes to last (see `precompile.beside`). `FASTLBM_BESIDE=0` in the environment does without it.
"""

from __future__ import annotations

import atexit
import gc
import os
import pickle
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ._notice import NOTICE

#: Seconds to wait for another process that compiles a kernel; then it is compiled here as well.
PATIENCE = 60.0

_claims: dict[Path, FileLock] = {}
_cold: bool | None = None  # whether nothing was kept when the first kernel was missing
_second: subprocess.Popen[bytes] | None = None
_collected = False  # whether Python collected garbage before something was claimed


def claim(path: Path) -> bool:
    """Tell others that this process compiles what will be in a file; returns whether it may be there now."""
    if path in _claims:  # a compilation that failed before
        return False
    lock = FileLock(path.with_suffix(".lock"), timeout=PATIENCE)
    waited = False
    try:
        lock.acquire(timeout=0)
    except Timeout:
        waited = True
        with suppress(Timeout), NOTICE.shown():
            lock.acquire(poll_interval=0.01)
    if lock.is_locked:
        _collect_garbage(False)
        _claims[path] = lock
    return waited


def release(path: Path) -> None:
    """The file is there, or will not be."""
    lock = _claims.pop(path, None)
    if lock is not None:
        with suppress(OSError):
            lock.release()
            Path(lock.lock_file).unlink(missing_ok=True)
        if not _claims:
            _collect_garbage(True)


def _collect_garbage(again: bool) -> None:
    """Stop it before the first kernel that is claimed, or go on with it after the last, if it was on."""
    global _collected
    if again and _collected:
        gc.enable()
    elif not again and not _claims:
        _collected = gc.isenabled()
        gc.disable()


def release_all() -> None:
    """A compilation has failed."""
    for path in list(_claims):
        release(path)


def begin(places: list[Path], types: Any) -> None:
    """A kernel must be compiled for these types: where nothing is kept, do as above, once in a process."""
    global _cold
    if _cold is None:
        _cold = not any(next(place.glob("*.nbc"), None) for place in places)
    searches = any("memory" in getattr(kind, "fields", ()) for kind in types)
    if not (_cold and searches and _second is None) or os.environ.get("FASTLBM_BESIDE", "1") == "0":
        return
    if cores() > 1:
        with suppress(OSError, pickle.PicklingError):
            _start_second(types)


def cores() -> int:
    """How many this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


def _start_second(types: Any) -> None:
    """A process that runs this very package and, with -P, nothing of the current directory."""
    global _second
    from numba.core.serialize import dumps

    asked: bytes = dumps(types)  # type: ignore[no-untyped-call]
    root = str(Path(__file__).parents[2])
    path = f"import sys; {root!r} in sys.path or sys.path.insert(0, {root!r})"
    code = f"{path}; from fastlbm import precompile; precompile.beside(sys.stdin.buffer.read())"
    _second = subprocess.Popen(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, "FASTLBM_BESIDE": "0", "FASTLBM_QUIET": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(_end_second)
    assert _second.stdin is not None
    with _second.stdin as pipe:
        pipe.write(asked)


def _end_second() -> None:
    if _second is not None:
        _second.terminate()
        _second.wait()
