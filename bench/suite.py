"""What `track` measures, and how: each entry beside a fixed compiled loop, in turns, as a ratio."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import numpy as np

import fastlbm as lbm
from fastlbm.kernels._jit import kernel
from fastlbm.kernels.arithmetic import fma
from fastlbm.kernels.estimator import absorb, make_estimator

from .learners import ROTTING
from .problems import prepare, problem, repeat
from .timing import loop, seconds

#: Repetitions of the loop in a turn. Turns take a millisecond or so: many of them meet no other process.
LOOPS = 4_000
#: Seconds of a stage, in which all entries take turns; the least and the largest number of stages.
STAGE, LEAST, MOST = 3.0, 3, 12
#: The stages end when no fastest turn has become faster by more than this in the last two of them.
SETTLED = 0.01


class Measured(NamedTuple):
    """The ratio to the loop, its noise, relative, and the work of one call."""

    ratio: float
    noise: float
    work: int


class Entry(NamedTuple):
    """Something to measure: `call` repeats it, `times` in a turn; `work` counts what it does."""

    call: Callable[[int], object]
    times: int
    work: int


@kernel
def _loop(t, times):  # type: ignore[no-untyped-def]
    """The yardstick: short passes of multiplications and additions over rows (7, 64) in the nearest cache.

    A busy neighbour slows such a loop down as it does the kernels; one that waits for divisions it would not.
    """
    for _ in range(times):
        for i in range(3):
            for w in range(62):
                t[3 + i, w] = fma(t[i, w], t[i, w + 1], 0.25 * t[6, w + 2])
        for i in range(3):
            for w in range(62):
                t[6, w] = fma(t[3 + i, w], t[i, w + 2], 0.5 * t[6, w])
        for w in range(62):
            t[6, w] = t[6, w] / math.sqrt(1.0 + t[6, w] * t[6, w])


def yardstick() -> Callable[[int], object]:
    """The loop as a function of the repetitions."""
    # At the beginning of a cache line: elsewhere it is up to a tenth slower (measured).
    room = np.full(7 * 64 + 8, 0.5)
    first = -room.ctypes.data // 8 % 8
    t = room[first : first + 7 * 64].reshape(7, 64)
    return lambda times: _loop(t, times)


def _gradient(times: int, **shape: float) -> Entry:
    p = problem(**shape)  # type: ignore[arg-type]
    e = prepare(p)
    return Entry(lambda n: repeat(*e, n), times, p.windows)


def _update(times: int) -> Entry:
    e, b = make_estimator(8, 1.0), np.full(8, 0.1)
    return Entry(lambda n: absorb_often(e, b, n), times, 1)


@kernel
def absorb_often(e, b, times):  # type: ignore[no-untyped-def]
    """The same feature seen again and again: Sherman-Morrison, and now and then a factorisation."""
    for _ in range(times):
        absorb(e, b, 1.0, 0.5, 0.25)


def _plan(times: int, **effort: object) -> Entry:
    shape = {"d": 3, "m": 2, "gamma": -3.0, "L": 6, "theta": ROTTING.theta}
    if effort.pop("warm", False):
        effort["previous"] = lbm.plan_block(**shape).actions  # type: ignore[arg-type]
    plan = lbm.plan_block(**shape, **effort)  # type: ignore[arg-type]
    return Entry(loop(lambda: lbm.plan_block(**shape, **effort)), times, plan.evaluations)  # type: ignore[arg-type]


def _episode(agent: lbm.agents.Agent, steps: int) -> Entry:
    """A turn is one episode of ten stretches."""
    run = lbm.run(ROTTING, agent, T=10 * steps, record=1)
    return Entry(lambda n: lbm.run(ROTTING, agent, T=n * steps, record=1), 10, run.plans)


#: The suite: makers of the entries by name. A turn has ten repetitions or more, so that tenths can be added.
ENTRIES: dict[str, Callable[[], Entry]] = {
    "gradient d=3 m=2": lambda: _gradient(1_000, d=3, m=2, L=20, gamma=-3.0),
    "gradient d=3 m=2 gamma=3.7": lambda: _gradient(200, d=3, m=2, L=20, gamma=3.7),
    "gradient d=3 m=2 A0": lambda: _gradient(300, d=3, m=2, L=20, gamma=-3.0, isotropic=False),
    "gradient d=16 m=4": lambda: _gradient(50, d=16, m=4, L=20, gamma=-3.0),
    "gradient d=50 m=2": lambda: _gradient(50, d=50, m=2, L=20, gamma=-3.0),
    "update of V^-1 d=8": lambda: _update(5_000),
    "cold plan": lambda: _plan(10, starts=2, moves=8),
    "warm plan": lambda: _plan(10, warm=True),
    "finite plan": lambda: _plan(10, actions=lbm.Finite(lbm.Ball(3).sample(6, seed=1))),
    "Rolling": lambda: _episode(lbm.Rolling(2, -3.0), 12),
    "O3M": lambda: _episode(lbm.O3M(2, -3.0, 1_000, L=20), 22),
    "OM": lambda: _episode(lbm.OM(2, -3.0, 1_000, L=20), 22),
    "OFUL": lambda: _episode(lbm.OFUL(10_000), 100),
    "greedy": lambda: _episode(lbm.OracleGreedy(), 200),
    "cycle": lambda: _episode(lbm.Cyclic(np.eye(3)), 2_000),
}


def measure(names: Collection[str], inject: Mapping[str, float] | None = None) -> dict[str, Measured]:
    """Ratios of the named entries; `inject` makes an entry do a share more of the same work than it says."""
    stages: list[dict[str, float]] = []
    while len(stages) < LEAST or (len(stages) < MOST and not settled(stages)):
        # Made anew: where its arrays lie in memory is part of the luck of a stage.
        entries = {"": Entry(yardstick(), LOOPS, 0), **{name: ENTRIES[name]() for name in names}}
        best = dict.fromkeys(entries, math.inf)
        begin = time.perf_counter()
        while time.perf_counter() < begin + STAGE:
            for name in names:
                for turn in ("", name):
                    call, times, _ = entries[turn]
                    really = round(times * (1.0 + (inject or {}).get(turn, 0.0)))
                    call(1)  # what the entry before left in the caches does not count
                    best[turn] = min(best[turn], seconds(call, really) / times)
        stages.append(best)
    return {name: summarise(stages, name, entries[name].work) for name in names}


def settled(stages: list[dict[str, float]]) -> bool:
    """Whether the last two stages brought nothing new."""
    return all(
        min(stage[name] for stage in stages[-2:])
        > (1.0 - SETTLED) * min(stage[name] for stage in stages[:-2])
        for name in stages[0]
    )


def summarise(stages: list[dict[str, float]], name: str, work: int) -> Measured:
    """The fastest turns of all stages; the noise is how far the second best stage is from the best one."""
    own, beside = (sorted(stage[key] for stage in stages) for key in (name, ""))
    noise = own[1] / own[0] - 1.0 + beside[1] / beside[0] - 1.0
    return Measured(own[0] / beside[0], noise, work)
