"""What a window of a memory without end costs beside one of m = 8: part of `python -m bench memories`."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

import numpy as np

import fastlbm as lbm
from tests.naive import GAMMAS

from .problems import prepare, problem, repeat
from .timing import race

M = 8
DIMENSIONS = range(1, 17)
#: Those of the tests, and others.
POWERS = (*GAMMAS, -2.0, -1.7, -1.5, 1.5)
LENGTHS = (20, 100, 400)
DECAYS = (0.5, 0.9)
ROUNDS, TURN = 15, 1e-3
#: Of the plans: d, gammas, blocks of L, and how often each is made.
PLANNED, PLANNED_POWERS, PLANNED_LENGTH, PLANS = (2, 3, 4, 8, 12, 16), (-3.0, -2.5, -1.7, 0.5, 1.0), 20, 3


def block_ratio(d: int, gamma: float, L: int, decay: float) -> float:
    """Time without end over that of m = 8 that fades, one block alone, value and gradient with a bonus."""
    p = problem(d, M, L, gamma)
    calls = {}
    for endless in (False, True):
        e = prepare(p, 1, decay, endless)
        calls[str(endless)] = lambda times, e=e: repeat(*e, times)
    found = race(calls, ROUNDS, TURN, time.process_time)
    return found["True"] / found["False"]


def plan_ratio(d: int, gamma: float, decay: float) -> float:
    """The same of a window inside of `plan_block`, per evaluation that the plan counts."""
    theta = problem(d, M, 1, gamma).theta
    best = {M: math.inf, math.inf: math.inf}
    for _ in range(PLANS + 1):  # the first may compile
        for m in best:
            begin = time.process_time()
            plan = lbm.plan_block(
                d=d, m=m, gamma=gamma, L=PLANNED_LENGTH, theta=theta, decay=decay, starts=8, moves=0
            )
            best[m] = min(best[m], (time.process_time() - begin) / plan.evaluations)
    return best[math.inf] / best[M]


def told(label: str, found: Iterable[tuple[float, str]]) -> None:
    """One line: the mean of ratios, the largest and what it belongs to."""
    ratios = sorted(found)
    mean = float(np.mean([ratio for ratio, _ in ratios]))
    print(f"  {label}: mean {mean:.2f}, largest {ratios[-1][0]:.2f} ({ratios[-1][1]})", flush=True)


def main() -> None:
    """One line for each d and length of a block, then for plans."""
    print(f"\nno end over m={M}, both fading: one block alone, gamma of {len(POWERS)}, decay of {DECAYS}")
    for d in DIMENSIONS:
        for L in LENGTHS:
            cases = [(gamma, decay) for gamma in POWERS for decay in DECAYS]
            told(
                f"d={d} L={L}",
                [(block_ratio(d, g, L, decay), f"gamma={g:g}, decay {decay:g}") for g, decay in cases],
            )
    print(f"\nThe same inside of plan_block, L={PLANNED_LENGTH}, per evaluation, gamma of {PLANNED_POWERS}")
    for d in PLANNED:
        cases = [(gamma, decay) for gamma in PLANNED_POWERS for decay in DECAYS]
        told(f"d={d}", [(plan_ratio(d, g, decay), f"gamma={g:g}, decay {decay:g}") for g, decay in cases])
