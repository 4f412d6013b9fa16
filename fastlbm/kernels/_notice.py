"""What is said while kernels are compiled: owns the one line that counts them, and when it is there.

On a terminal the line is there just as long as the compiler works, so that nothing else is printed beside it.
In a notebook it stays a moment longer: a new line for each kernel would make the page jump. Elsewhere, and
with `FASTLBM_QUIET=1` in the environment, nothing is said. Kernels that another process makes count as well.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numba.core.event

#: Seconds before the first line, between two looks at the count, and that do not end a line in a notebook.
DELAY, TICK, STAY = 0.2, 0.25, 2.0

_event: Any = numba.core.event  # without types


class Notice:
    """Who compiles begins and ends; what is said meanwhile is written by a thread of its own."""

    def __init__(self) -> None:
        self.done = 0  # kernels that this process made
        self.in_words: Callable[[], None] | None = None  # called once where there is no line
        self._before: dict[Path, int] = {}
        self._depth = 0
        self._began = self._ended = -math.inf  # the first of those that followed soon after each other
        self._line: tuple[threading.Thread, threading.Event] | None = None
        self._lock = threading.Lock()

    def look_at(self, places: list[Path]) -> None:
        """Files that appear in these folders from now on are kernels, whoever made them."""
        for place in places:
            if place not in self._before:
                self._before[place] = _files(place)

    def count(self) -> int:
        """The kernels that were made since this process began to compile, or to look on."""
        return max(self.done, sum(_files(place) - before for place, before in self._before.items()))

    @contextmanager
    def shown(self) -> Iterator[None]:
        """While somebody compiles, or waits for another process that does."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    def begin(self) -> None:
        """Somebody compiles from now on, perhaps for somebody who does already."""
        with self._lock:
            self._depth += 1
            if self._depth > 1 or self._line is not None:
                return
            if time.time() - self._ended > STAY:
                self._began = time.time()
            if somebody_looks():
                _bars()
                over = threading.Event()
                thread = threading.Thread(target=self._show, args=(over,), daemon=True)
                thread.start()
                self._line = thread, over
            elif self.in_words is not None and not _is_quiet():
                say, self.in_words = self.in_words, None
                say()

    def end(self) -> None:
        """What began last is over; on a terminal the line is gone when the first is."""
        with self._lock:
            self._depth = max(0, self._depth - 1)  # an interrupt may have come before it was counted
            self._ended = time.time()
            if self._depth or self._line is None or _is_notebook():
                return
            (thread, over), self._line = self._line, None
            over.set()
        thread.join()

    def _show(self, over: threading.Event) -> None:
        """The line, from its beginning to its end."""
        bar: Any = None
        seconds = max(0.0, DELAY - (time.time() - self._began))
        while self._goes_on(over, seconds):
            if bar is None:
                bar = _make_bar(self._words(), self._began)
            else:
                bar.set_description_str(self._words())
            seconds = TICK
        if bar is not None:
            bar.close()

    def _goes_on(self, over: threading.Event, seconds: float) -> bool:
        if over.wait(seconds):
            return False
        with self._lock:
            if self._depth == 0 and time.time() - self._ended > STAY:
                self._line = None
                return False
        return True

    def _words(self) -> str:
        count, kept = self.count(), ", once for this version and machine" if self._before else ""
        return f"fastlbm compiles{kept}: {count} kernel{'s' * (count != 1)}"


NOTICE = Notice()
_kernels: WeakSet[Any] = WeakSet()


class _Listener(_event.Listener):  # type: ignore[misc]
    """What Numba tells of each function that it compiles, one inside the other."""

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"] in _kernels:
            NOTICE.begin()

    def on_end(self, event: Any) -> None:
        if event.data["dispatcher"] in _kernels:
            NOTICE.done += 1
            NOTICE.end()


def watch(dispatcher: Any) -> None:
    """Count this dispatcher among the kernels."""
    if not _kernels:
        _event.register("numba:compile", _Listener())
    _kernels.add(dispatcher)


def somebody_looks() -> bool:
    """Whether there is a terminal or a notebook, and words are wanted."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return not _is_quiet() and (terminal or _is_notebook())


def _is_quiet() -> bool:
    return os.environ.get("FASTLBM_QUIET", "0") == "1"


def _is_notebook() -> bool:
    return "ipykernel" in sys.modules


def _files(place: Path) -> int:
    return sum(1 for _ in place.glob("*.nbc"))


def _size() -> dict[str, int]:
    """Of a terminal that does not know it, on which nothing would be drawn; nothing for all others."""
    with suppress(AttributeError, OSError, ValueError):
        if 0 in os.get_terminal_size(sys.stderr.fileno()):
            return {"ncols": 80, "nrows": 24}
    return {}


@cache
def _bars() -> Any:
    """The class of bars, imported by who compiles: filters of warnings are those of all threads."""
    with warnings.catch_warnings(action="ignore"):  # of a notebook without widgets: plain text will do
        from tqdm.auto import tqdm

    return tqdm


def _make_bar(words: str, began: float) -> Any:
    # Without the delay it would be drawn before it is known when it began.
    bar = _bars()(desc=words, bar_format="{desc} [{elapsed}]", leave=False, delay=1e-9, **_size())
    bar.start_t = began
    bar.refresh()
    return bar
