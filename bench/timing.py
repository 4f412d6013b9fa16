"""How things are timed: in turns, so that all of them meet the same machine; the fastest turn counts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

Found = TypeVar("Found")

#: Seconds that a turn takes, at least: long against the clock, short against what else the machine does.
TURN = 2e-3


def fastest(call: Callable[[], object], rounds: int = 20) -> float:
    """Seconds of the fastest of several calls; the first, which may compile, does not count."""
    call()
    best = math.inf
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def seconds(
    call: Callable[[int], object], times: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Seconds of `times` repetitions, which the callee makes itself."""
    begin = clock()
    call(times)
    return clock() - begin


def repetitions(call: Callable[[int], object], turn: float = TURN, most: int = 10**7) -> int:
    """How often a turn repeats; the first call, which may compile, does not count."""
    call(1)
    times = 1
    while times < most and (spent := seconds(call, times)) < turn:
        times = min(most, max(2 * times, math.ceil(0.5 * times * turn / max(spent, 1e-9))))
    return times


def race(
    calls: Mapping[str, Callable[[int], object]],
    rounds: int = 15,
    turn: float = TURN,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Seconds of one repetition of each competitor: its fastest turn, all of them in turns.

    `time.process_time` counts what the process computes, whatever else the machine does.
    """
    times = {name: repetitions(call, turn) for name, call in calls.items()}
    best = dict.fromkeys(calls, math.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            best[name] = min(best[name], seconds(call, times[name], clock) / times[name])
    return best


def loop(call: Callable[[], Found]) -> Callable[[int], Found]:
    """A function of the number of repetitions, at least one, from one that makes one."""

    def run(times: int) -> Found:
        for _ in range(times - 1):
            call()
        return call()

    return run
