"""Pools: own the workers that many runs share, and the progress that is shown meanwhile."""

from __future__ import annotations

import os
import queue
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Self, TypeVar, cast

import numpy as np

from . import validation

Key = TypeVar("Key")
Result = TypeVar("Result")

#: Tasks that an executor is given at once if it is not known how many workers it has.
UNKNOWN_WORKERS = 64
#: Threads of a pool at most; systems refuse more of them somewhere beyond.
MOST_THREADS = 1024
#: How often an executor is handed a task that it loses.
TRIES = 3
#: Seconds of waiting after which somebody looks whether there is still a worker.
_LOOK = 5.0
#: Seconds between two lines of progress in a file.
_RARELY = 60.0


#: What a call returned, or what it raised.
_Outcome = tuple[Result | None, Exception | None]


class Pool:
    """Threads of its own, or an executor that somebody else owns; to be used as a context.

    `executor` is a number of threads, None for one a core, or any `concurrent.futures.Executor`. The end of
    the context sets `stop`, cancels what has not begun and, if the threads are its own, waits for them. An
    executor that was handed in stays open, and `stop` is None for it: an event does not reach its workers,
    which may be on another machine.

    >>> with Pool(2) as pool:
    ...     sorted(pool.completed(pow, [("a", {"base": 2, "exp": 3}), ("b", {"base": 3, "exp": 2})]))
    [('a', 8), ('b', 9)]
    """

    def __init__(self, executor: Executor | int | None = None) -> None:
        self.stop: threading.Event | None = None
        self._unfinished: set[Future[Any]] = set()
        if executor is None or isinstance(executor, (int, np.integer)):
            cores = os.cpu_count() or 1
            workers = cores if executor is None else validation.integer("executor", executor, low=1)
            if workers > MOST_THREADS:
                raise ValueError(f"executor must be at most {MOST_THREADS} threads, got {workers}")
            self._executor: Executor = ThreadPoolExecutor(workers)
            self.stop = threading.Event()
            self._at_once = workers + 1  # one is waiting when a worker becomes free
        elif isinstance(executor, Executor):
            self._executor = executor
            self._at_once = UNKNOWN_WORKERS
        else:
            allowed = "a concurrent.futures.Executor, a number of threads or None"
            raise TypeError(f"executor must be {allowed}, got {executor!r}")

    @property
    def has_own_threads(self) -> bool:
        """Whether the workers are threads of this process, which can use its progress bar and events."""
        return self.stop is not None

    def warm_up(self, function: Callable[..., object], calls: Iterable[Mapping[str, Any]]) -> None:
        """Make the calls here and now, so that own threads find everything compiled.

        Compilation takes a lock of the whole process: threads that begin with it wait for each other.
        """
        if self.has_own_threads:
            for arguments in calls:
                function(**arguments)

    def completed(
        self,
        function: Callable[..., Result],
        tasks: Iterable[tuple[Key, Mapping[str, Any]]],
        at_once: int | None = None,
    ) -> Iterator[tuple[Key, Result]]:
        """Call the function with the arguments of each task; (key, result) as they are finished.

        Tasks are taken when a worker needs one, so that later tasks may depend on earlier results. `at_once`
        is how many are handed to the executor at the same time, by default about as many as it has workers.
        A task that an executor loses, with a worker that dies, is handed over again; one that raises is not.
        """
        limit = self._at_once if at_once is None else at_once
        waiting, done = iter(tasks), queue.SimpleQueue[Future[_Outcome[Result]]]()
        # The key and the call of each task that is handed over, and how often it was.
        given: dict[Future[_Outcome[Result]], tuple[Key, Callable[[], _Outcome[Result]], int]] = {}

        def hand_over(key: Key, call: Callable[[], _Outcome[Result]], tries: int) -> None:
            future = self._executor.submit(call)
            self._unfinished.add(future)
            given[future] = (key, call, tries)
            future.add_done_callback(done.put)

        exhausted = False
        while True:
            while not exhausted and len(given) < limit:
                task = next(waiting, None)
                if task is None:
                    exhausted = True
                    break
                # Some executors take keywords as options of their own.
                hand_over(task[0], partial(_outcome, function, dict(task[1])), 1)
            if not given:
                return
            future = self._next(done)
            self._unfinished.discard(future)
            key, call, tries = given.pop(future)
            try:
                result, error = future.result()
            except Exception:  # the executor's own; Dask's may be a ValueError of its unpacking, for one
                if tries == TRIES:
                    raise
                hand_over(key, call, tries + 1)
                continue
            if error is not None:
                raise error
            yield key, cast(Result, result)

    def _next(self, done: queue.SimpleQueue[Future[Result]]) -> Future[Result]:
        """The next one that is finished; whoever waits for a cluster without workers is told so."""
        told = self.has_own_threads
        while True:
            try:
                return done.get(timeout=None if self.has_own_threads else _LOOK)
            except queue.Empty:
                gone = _count_workers(self._executor) == 0
                if gone and not told:
                    warnings.warn(
                        "all workers of the Dask cluster are gone: waiting for new ones; what is finished is "
                        "kept, and Ctrl-C stops waiting",
                        stacklevel=4,
                    )
                told = gone

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.stop is not None:
            self.stop.set()
        for future in self._unfinished:
            future.cancel()
        if self.has_own_threads:
            self._executor.shutdown(cancel_futures=True)


def _count_workers(executor: Any) -> int | None:
    """The workers of an executor of Dask's; None where nobody knows."""
    try:
        return len(executor._client.scheduler_info()["workers"])
    except Exception:  # another executor, another version, a scheduler that is gone
        return None


def _outcome(function: Callable[..., Result], arguments: Mapping[str, Any]) -> _Outcome[Result]:
    """What becomes of a call: whatever else comes out of an executor is the executor's own."""
    try:
        return function(**arguments), None
    except Exception as error:
        return None, error


class Progress:
    """A progress bar that threads may advance; nothing is shown for a total of 0 or without `shown`.

    `shown` is True or "rarely": a line a minute, for a file, and nothing for what is over by then.
    """

    def __init__(self, total: int, unit: str, done: int = 0, shown: bool | str = True) -> None:
        self._lock = threading.Lock()
        self._bar: Any = None
        if isinstance(shown, str):
            validation.choice("progress", shown, ("rarely",))
        if total > 0 and shown:
            with warnings.catch_warnings(
                action="ignore"
            ):  # of a notebook without widgets: plain text will do
                from tqdm.auto import tqdm

            rarely = {"mininterval": _RARELY, "delay": _RARELY} if shown == "rarely" else {}
            self._bar = tqdm(
                total=total, initial=done, unit=f" {unit}", unit_scale=True, smoothing=0.1, **rarely
            )

    def add(self, steps: int) -> None:
        """So many steps more are done."""
        if self._bar is not None:
            with self._lock:
                self._bar.update(steps)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
