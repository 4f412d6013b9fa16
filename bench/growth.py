"""How the cost grows with d, m, L, K and T, with fitted exponents, and what a run needs in memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

import fastlbm as lbm

from .learners import ROTTING
from .problems import problem, seconds_per_window
from .timing import fastest, loop, seconds


class Curve(NamedTuple):
    """Seconds against one size; `tail` is the size from which the exponent is fitted."""

    axis: str
    label: str
    unit: str  # of which `seconds` are the cost
    sizes: list[float]
    seconds: list[float]
    tail: float

    @property
    def exponent(self) -> float:
        """The slope of log cost against log size, by least squares from `tail` on."""
        return slope(self.sizes, self.seconds, self.tail)


def slope(sizes: Sequence[float], costs: Sequence[float], tail: float = 0.0) -> float:
    """The exponent of a power law through the points from `tail` on."""
    x, y = np.array(sizes, dtype=float), np.array(costs, dtype=float)
    return float(np.polyfit(np.log(x[x >= tail]), np.log(y[x >= tail]), 1)[0])


class Case(NamedTuple):
    """One curve before it is measured; `cost` gives the seconds of one unit at one size."""

    axis: str
    label: str
    unit: str
    sizes: Sequence[int]
    tail: float
    cost: Callable[[int], float]


def window(d: int = 3, m: int = 2, L: int = 20, beta: float = 1.5, isotropic: bool = True) -> float:
    """Seconds of value and gradient of one window."""
    return seconds_per_window(problem(d, m, L, -3.0, isotropic=isotropic)._replace(beta=beta))


def finite_plan(K: int) -> float:
    """Seconds of an exact plan over K arms."""
    arms = lbm.Finite(lbm.Ball(3).sample(K, seed=1))
    shape = {"d": 3, "m": 2, "gamma": -3.0, "L": 20, "theta": ROTTING.theta, "actions": arms}
    return fastest(lambda: lbm.plan_block(**shape), 3)


def episode(T: int, switch: float = 0.0) -> float:
    """Seconds of an episode of O3M with blocks of one length."""
    agent = lbm.O3M(2, -3.0, T, L=20, switch=switch)
    lbm.run(ROTTING, agent, T=50)  # compiles
    play = loop(lambda: lbm.run(ROTTING, agent, T=T))
    return min(seconds(play, 1) for _ in range(3 if T <= 10**4 else 1))


DIMENSIONS = (2, 4, 8, 16, 32, 64)
LONG = tuple(10**k for k in (3, 4, 5, 6, 7))
CASES = (
    Case("d", "with the bonus", "window", DIMENSIONS, tail=8, cost=lambda d: window(d=d)),
    Case("d", "without the bonus", "window", DIMENSIONS, tail=8, cost=lambda d: window(d=d, beta=0.0)),
    Case("d", "general A0", "window", DIMENSIONS[:5], tail=8, cost=lambda d: window(d=d, isotropic=False)),
    Case("m", "window sums, d=3", "window", (4, 8, 16, 32, 64), tail=0, cost=lambda m: window(m=m, L=640)),
    Case(
        "m", "spectra of size m, d=16", "window", (1, 2, 3, 4, 6, 8), tail=3, cost=lambda m: window(d=16, m=m)
    ),
    Case("L", "value and gradient", "block", (1, 4, 16, 64, 256), tail=64, cost=lambda L: L * window(L=L)),
    Case("K", "exact plan, m=2, L=20", "plan", (4, 8, 16, 32, 48), tail=16, cost=finite_plan),
    Case("T", "O3M", "episode", (1_000, 4_000, 16_000, 64_000), tail=0, cost=episode),
    Case("T", "O3M, switch=1", "episode", LONG, tail=10**6, cost=lambda T: episode(T, 1.0)),
)


def measure(case: Case, sizes: Sequence[int] | None = None, passes: int = 3) -> Curve:
    """The curve of one case, at its own sizes or at others: the fastest of several passes over them."""
    chosen = case.sizes if sizes is None else sizes
    costs = [[case.cost(size) for size in chosen] for _ in range(passes)]
    cost = np.min(costs, axis=0).tolist()
    return Curve(
        case.axis, case.label, case.unit, sizes=list(map(float, chosen)), seconds=cost, tail=case.tail
    )


def find(axis: str, label: str) -> Case:
    """The case of one axis and label."""
    return next(case for case in CASES if (case.axis, case.label) == (axis, label))


_PEAKS = """
import fastlbm as lbm
from bench.learners import ROTTING

def peak():
    with open("/proc/self/status") as status:
        return next(line.split()[1] for line in status if line.startswith("VmHWM"))

lbm.run(ROTTING, lbm.O3M(2, -3.0, 1000, L=20, switch={switch}), T=1000)
for T in {horizons}:
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    lbm.run(ROTTING, lbm.O3M(2, -3.0, T, L=20, switch={switch}), T=T)
    print(peak())
"""


def can_measure_peaks() -> bool:
    """Whether the system tells the largest memory of a stretch of a process."""
    return os.access("/proc/self/clear_refs", os.W_OK)


def peaks(horizons: Sequence[int], switch: float = 1.0) -> list[int]:
    """The largest memory in KiB during a run of each horizon, in a fresh process."""
    code = _PEAKS.format(horizons=list(horizons), switch=switch)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


def threads(episodes: int = 64, T: int = 2_000, rounds: int = 3) -> float:
    """How many times as fast two threads are as one, over equal episodes of O3M."""
    agents = {"O3M": lbm.O3M(2, -3.0, T, L=20)}
    best = {1: np.inf, 2: np.inf}
    lbm.run_many(ROTTING, agents, T=50, seeds=1)
    for _ in range(rounds):
        for count in best:
            begin = time.perf_counter()
            lbm.run_many(ROTTING, agents, T=T, seeds=episodes, executor=count, record=10)
            best[count] = min(best[count], time.perf_counter() - begin)
    return best[1] / best[2]
