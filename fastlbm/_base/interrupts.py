"""Ctrl-C: owns the thread in which long compiled work is done, so that it is heard, and when it must wait.

Python looks at signals in the main thread alone, between two of its own instructions. A search for a long
block may be a minute of compiled code without any. So the main thread hands such work to another one and
waits, which costs 0.1 to 0.2 ms a call: short work it does itself.

What a kernel returns is made into Python's objects by Python code that must not be interrupted: Numba does
not look whether it was, and the process may end there. Interrupts wait until that is over.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import math
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

#: Seconds between two looks at `is_over`, and at signals where waiting cannot be interrupted.
_LOOK = 0.1
#: Seconds of work that are not worth a thread.
_SHORT = 1.0
#: Where kernels are called, and what compiles them at their first call.
_KERNELS, _COMPILER = ("fastlbm.kernels._link", "fastlbm.kernels._jit"), "numba.core.dispatcher"
#: Seconds between two looks whether a thread is in a kernel.
_MOMENT = 1e-3


def _everywhere(frame: FrameType | None) -> bool:
    return True


def in_kernel(frame: FrameType | None) -> bool:
    """Whether this is in a kernel, or in what makes objects of its results, and not in the compiler."""
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if module == _COMPILER or module in _KERNELS:
            return bool(module != _COMPILER)
        frame = frame.f_back
    return False


@contextlib.contextmanager
def deferred(where: Callable[[FrameType | None], bool] = _everywhere) -> Iterator[None]:
    """Ctrl-C in here is heard at the end, or at once if it does not come in a frame `where` it must wait.

    For imports: an interrupt in the middle of one may be swallowed by the module, which is half there then,
    or leave a lock of Python's behind, for which other threads wait for ever. And for kernels.
    """
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        if not where(frame):
            raise KeyboardInterrupt
        heard.append(number)

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if heard:
        raise KeyboardInterrupt


def load(*names: str) -> None:
    """Import these modules, also if Ctrl-C comes meanwhile, as a whole; one that is not there is left out."""
    with deferred():
        for name in names:
            with contextlib.suppress(ImportError):  # whoever needs it says so
                importlib.import_module(name)


def interruptible(
    work: Callable[[], T],
    stop: Callable[[bool], None],
    is_over: Callable[[], bool] | None = None,
    seconds: float = math.inf,
) -> T:
    """What `work` returns, done by another thread if this is the main one, or if there is an `is_over`.

    If it takes a moment at most, of all the `seconds` between two of Python's instructions, it is done here.

    On Ctrl-C, or when `is_over` is true, `stop(True)` tells compiled code to end, Python code is interrupted,
    and when both are over a KeyboardInterrupt is raised here. `stop(False)` comes before all work.
    """
    if seconds < _SHORT:
        with deferred(in_kernel):
            return work()
    if is_over is None and threading.current_thread() is not threading.main_thread():
        return work()
    stop(False)
    outcome: dict[str, Any] = {}
    ending, is_ending = threading.Lock(), False

    def do() -> None:
        nonlocal is_ending
        with contextlib.suppress(KeyboardInterrupt):  # from below
            try:
                outcome["result"] = work()
            except BaseException as error:
                outcome["error"] = error
            finally:
                with ending:
                    is_ending = True

    worker = threading.Thread(target=do, daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(_LOOK)
            if is_over is not None and is_over():
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        stop(True)
        told = False
        while not told:
            with ending:  # a thread that is over may have left its number to another one
                told = is_ending or not in_kernel(sys._current_frames().get(worker.ident or 0))
                if not is_ending and told:
                    number, error = ctypes.c_ulong(worker.ident or 0), ctypes.py_object(KeyboardInterrupt)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(number, error)
            worker.join(None if told else _MOMENT)
        raise
    if "error" in outcome:
        raise outcome["error"]
    result: T = outcome["result"]
    return result
