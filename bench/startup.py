"""`python -m bench startup`: what the first call costs, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import fastlbm as lbm

THETA = np.array([0.54, 0.83, 0.1])


def first_run() -> None:
    """O3M on the ball, A0 = I."""
    env = lbm.LBM(THETA, m=2, gamma=-3.0)
    lbm.run(env, lbm.O3M(2, -3.0, 1218, L=20), T=100)


def first_run_of_rolling() -> None:
    """Rolling on the ball, A0 = I."""
    lbm.run(lbm.LBM(THETA, m=2, gamma=-3.0), lbm.Rolling(2, -3.0), T=100)


def all_kernels() -> None:
    """Every kernel once, on problems as small as they can be; most are there after `fastlbm compile`."""
    first_run()
    A0, block = np.diag([1.0, 2.0, 3.0]), np.tile(THETA, (6, 1))
    arms = np.vstack((np.eye(3), THETA))
    finite, contextual = lbm.Finite(arms), lbm.Contextual(np.tile(arms, (40, 1, 1)))
    learners = (lbm.O3M, lbm.OM, lbm.OMBlock)
    for d, m, gamma, matrix, actions in (
        (3, 1, -3.0, None, None),
        (3, 2, -2.5, None, None),
        (4, 3, -3.0, None, None),
        (3, 2, -3.0, A0, None),
        (3, 2, -3.0, None, finite),
        (3, 2, -3.0, None, contextual),
        (3, 2, -3.0, A0, finite),
    ):
        theta = np.full(d, 0.5)
        env = lbm.LBM(theta, m=m, gamma=gamma, A0=matrix, actions=actions)
        for learner in learners:
            lbm.run(env, learner(m, gamma, 40, L=4, A0=matrix), T=20)
        for agent in (lbm.OFUL(40), lbm.OracleGreedy()):
            lbm.run(env, agent, T=20)
        belief = {"theta": theta, "V_inv": np.eye(d), "beta": 1.0}
        lbm.plan_block(d=d, m=m, gamma=gamma, L=4, A0=matrix, actions=actions, **belief)
        lbm.best_block(env, L=4)
        lbm.opt_bounds(env, T=20, L=4, max_period=4)
        if actions is not contextual:
            lbm.best_cycle(env, max_period=4)
        lbm.block_ucb(np.tile(theta, (6, 1)), m=m, gamma=gamma, A0=matrix, **belief)
    env = lbm.LBM(THETA, m=2, gamma=-3.0)
    agent = lbm.O3M(2, -3.0, 40, L=4)
    candidates = [(0, 0.0), (1, -2.0), (2, -3.0)]
    selector, *others = (
        c(candidates, 40, L=4)  # type: ignore[operator]
        for c in (lbm.EvidenceSelector, lbm.BanditCombiner, lbm.RegretBalancing, lbm.Corral)
    )
    rare = lbm.O3M(2, -3.0, 40, L=4, switch=1.0)
    for other in (lbm.Cyclic(block), selector, *others, lbm.Doubling(agent), rare):
        lbm.run(env, other, T=20)
    for other in (agent, lbm.OMBlock(2, -3.0, 40, L=4), lbm.OFUL(40), selector):
        live = other.start(lbm.Ball(3))
        for _ in range(12):
            live.act()
            live.update(0.5)
        live.act()
        live.update(0.5, step=12)
    env.expected_rewards(block, history=block)


def seconds(statement: str, cache: Path | None) -> tuple[float, float]:
    """CPU and wall time of a process that runs a statement, imports and all, with this cache or the usual."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    before, begin = os.times(), time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], env=environment, check=True)
    wall, after = time.perf_counter() - begin, os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return spent, wall


#: What is measured, and how many seconds it may take.
COLD = "first run, empty cache"
ASKED = {
    "import": 1.0,
    "first run, warm": 2.0,
    COLD: 15.0,
    "first run of Rolling, empty cache": 15.0,
    "all kernels, empty cache": 45.0,
}


def measure(quick: bool = False) -> dict[str, float]:
    """Wall seconds of fresh processes, by the names in ASKED; `quick` leaves out an empty cache."""
    return {name: wall for name, (_, wall) in measure_both(quick).items()}


def measure_both(quick: bool = False) -> dict[str, tuple[float, float]]:
    """CPU seconds, of all the processes that were started together, and wall seconds."""
    run = "from bench import startup; startup."
    found: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        one = None if quick else Path(folder, "one")
        cold = seconds(run + "first_run()", one)
        found["first run, warm"] = min((seconds(run + "first_run()", one) for _ in range(3)), key=_wall)
        found["import"] = min((seconds("import fastlbm; fastlbm.run", one) for _ in range(3)), key=_wall)
        if not quick:
            found[COLD] = cold
            other = seconds(run + "first_run_of_rolling()", Path(folder, "two"))
            found["first run of Rolling, empty cache"] = other
            every = "from fastlbm import precompile; precompile.compile_all(); " + run + "all_kernels()"
            found["all kernels, empty cache"] = seconds(every, Path(folder, "every"))
    return found


def _wall(both: tuple[float, float]) -> float:
    return both[1]


def main() -> None:
    for name, (spent, wall) in measure_both().items():
        print(f"{name:34} {wall:6.2f} s (asked: {ASKED[name]:g} s), {spent:6.2f} s of CPU time")
