"""`python -m bench arms`: what plans on sets of arms are worth and cost, and steps a second on catalogues.

Times are CPU times of one thread; beside them how many `numpy.linalg.eigh` of a d x d matrix, all of them in
one call, take as long in the same process. The best plans known are in `arm_records.json`, and `--search`
looks for better ones.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fastlbm as lbm

from . import arm_records
from .timing import Found

#: K, d, m, L, gamma, clusters (0: directions drawn uniformly), beta.
SHAPES = [
    (50, 5, 2, 16, -3.0, 0, 0.0),
    (100, 5, 3, 20, -1.0, 5, 0.0),
    (200, 8, 3, 20, -2.0, 0, 0.5),
    (200, 16, 4, 20, -2.0, 8, 0.3),
    (500, 8, 3, 24, -1.5, 10, 0.0),
    (500, 5, 4, 20, -2.0, 6, 0.5),
    (1000, 16, 2, 24, -3.0, 20, 0.5),
    (2000, 32, 4, 20, -1.0, 20, 0.3),
    (2000, 32, 5, 24, -2.0, 0, 0.0),
    (2000, 5, 5, 24, -2.0, 12, 0.0),
    (300, 10, 4, 16, 1.0, 0, 0.5),
    (1000, 8, 5, 18, 0.5, 10, 1.0),
    (500, 5, 3, 20, -0.7, 5, 1.0),
    (2000, 16, 3, 24, -2.3, 30, 0.2),
    (100, 32, 5, 24, -3.0, 6, 0.5),
    (2000, 8, 2, 16, 2.0, 0, 0.2),
]
#: The same, drawn with another root seed.
SECOND = [
    (50, 8, 3, 16, -2.0, 0, 0.3),
    (100, 32, 4, 24, -1.5, 8, 0.0),
    (150, 5, 2, 20, -0.7, 0, 1.0),
    (200, 5, 5, 16, -1.0, 5, 0.0),
    (300, 16, 3, 20, -3.0, 10, 0.2),
    (400, 8, 4, 24, -2.0, 0, 0.0),
    (500, 32, 2, 20, -2.5, 20, 0.5),
    (600, 5, 3, 24, -2.0, 8, 0.0),
    (800, 10, 5, 20, -1.0, 0, 0.5),
    (1000, 16, 4, 16, -2.0, 15, 0.0),
    (1000, 5, 4, 24, -3.0, 0, 0.2),
    (1500, 8, 2, 24, -1.5, 12, 0.5),
    (2000, 16, 5, 20, -2.0, 25, 0.3),
    (2000, 32, 3, 16, -1.0, 0, 0.0),
    (2000, 8, 3, 20, 1.0, 10, 0.3),
    (2000, 6, 4, 20, -2.0, 10, 0.0),
]
#: And again: the search was not tuned on these.
THIRD = [
    (60, 6, 4, 18, -1.5, 0, 0.4),
    (120, 16, 2, 20, -2.0, 10, 0.0),
    (250, 5, 3, 24, -2.5, 6, 0.0),
    (350, 8, 5, 16, -1.0, 0, 0.2),
    (450, 5, 2, 18, -3.0, 0, 0.6),
    (700, 8, 4, 20, -2.0, 14, 0.0),
    (900, 6, 3, 16, -0.8, 0, 0.8),
    (1200, 12, 3, 24, -2.0, 20, 0.1),
    (1600, 5, 4, 22, -1.2, 10, 0.0),
    (2000, 8, 5, 24, -2.5, 0, 0.0),
    (1800, 24, 4, 18, -1.5, 25, 0.2),
    (2000, 10, 2, 20, -2.0, 0, 0.3),
]
#: Seconds after which the threads of BLAS no longer wait for work: until then they count as computing.
REST = 0.3
#: With the root seed of each.
SETS = {"first": (2024, SHAPES), "second": (777, SECOND), "third": (31337, THIRD)}


def catalogue(K: int, d: int, clusters: int, rng: np.random.Generator) -> np.ndarray:
    """K unit vectors: directions drawn uniformly, or around the centres of clusters."""
    arms = rng.normal(size=(K, d))
    if clusters:
        centres = unit(rng.normal(size=(clusters, d)))
        arms = centres[rng.integers(clusters, size=K)] + 0.3 / np.sqrt(d) * arms
    return unit(arms)


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def problems(name: str = "first") -> list[dict[str, Any]]:
    """Planning problems on arms, as arguments of `plan_block`."""
    found = []
    root, shapes = SETS[name]
    for i, (K, d, m, L, gamma, clusters, beta) in enumerate(shapes):
        rng = np.random.default_rng([root, i])
        arms, theta = catalogue(K, d, clusters, rng), unit(rng.normal(size=d))
        data = 1.5 * rng.normal(size=(3 * d, d)) / np.sqrt(d)
        belief = {"V_inv": np.linalg.inv(np.eye(d) + data.T @ data), "beta": beta} if beta else {}
        shape = {"d": d, "m": m, "L": L, "gamma": gamma, "theta": theta, "actions": lbm.Finite(arms)}
        found.append({**shape, **belief})
    return found


def cpu_seconds(call: Callable[[], Found]) -> tuple[float, Found]:
    """CPU seconds of a call, and what it returns."""
    begin = time.process_time()
    found = call()
    return time.process_time() - begin, found


def eigh_seconds(d: int) -> float:
    """CPU seconds of one spectrum of size d, the fastest of a few calls for many of them."""
    X = np.random.default_rng(0).normal(size=(512, d, d))
    X = X @ X.transpose(0, 2, 1)
    time.sleep(REST)
    found = min(cpu_seconds(lambda: np.linalg.eigh(X))[0] for _ in range(5)) / len(X)
    time.sleep(REST)
    return found


def quality(name: str, seeds: int = 5) -> None:
    """Default plans beside the best that is known."""
    print(f"plans on arms, {name} set: worst and mean of {seeds} seeds beside the best known, and cost")
    known = arm_records.read().get(name)
    shares = []
    for i, (shape, p) in enumerate(zip(SETS[name][1], problems(name), strict=True)):
        lbm.plan_block(**p)  # compiles
        pairs = [cpu_seconds(lambda p=p, s=s: lbm.plan_block(**p, seed=s)) for s in range(seeds)]
        values = np.array([plan.value for _, plan in pairs])
        values /= max(values.max(), arm_records.value_of(p, known[i]) if known else -np.inf)
        seconds = float(np.median([seconds for seconds, _ in pairs]))
        shares.append(values.min())
        print(
            f"  K, d, m, L, gamma, clusters, beta = {shape}: {values.min():.4f}, {values.mean():.4f}, "
            f"{seconds * 1e3:.1f} ms = {seconds / eigh_seconds(p['d']):,.0f} eigh"
        )
    print(f"  at least 0.99: {np.sum(np.array(shares) >= 0.99)} of {len(shares)}, least {min(shares):.4f}")


def songs(K: int, d: int, m: int, T: int) -> None:
    """Rolling and OFUL on a catalogue: reward a step, and steps a second."""
    rng = np.random.default_rng(0)
    arms = lbm.Finite(catalogue(K, d, max(K // 20, 1), rng))
    env = lbm.LBM(unit(rng.normal(size=d)), m=m, gamma=-2.0, sigma=0.1, actions=arms)
    for agent in (lbm.Rolling(m=m, gamma=-2.0), lbm.OFUL(horizon=T)):
        lbm.run(env, agent, T=8)
        seconds, run = cpu_seconds(lambda agent=agent: lbm.run(env, agent, T=T, seed=1))
        print(
            f"  K={K}, d={d}, m={m}, {type(agent).__name__}: {run.reward[-1] / T:.4f} a step, "
            f"{T / seconds:,.0f} steps a second"
        )


def latency(K: int = 200, d: int = 16, m: int = 4, T: int = 600) -> None:
    """The 99th percentile of `act` of Rolling, in CPU time."""
    rng = np.random.default_rng(0)
    arms = lbm.Finite(catalogue(K, d, 10, rng))
    env = lbm.LBM(unit(rng.normal(size=d)), m=m, gamma=-2.0, sigma=0.1, actions=arms)
    live, past, times = lbm.Rolling(m=m, gamma=-2.0).start(arms, seed=0), np.zeros((m, d)), []
    for _ in range(T):
        seconds, action = cpu_seconds(live.act)
        times.append(seconds)
        live.update(env.expected_rewards([action], history=past)[0] + 0.1 * rng.normal())
        past = np.vstack((past, action))[1:]
    print(
        f"  act at K={K}, d={d}, m={m}: {1e3 * np.quantile(times[10:], 0.99):.1f} ms at the 99th percentile"
    )


def few(T: int = 20_000) -> None:
    """Steps a second with ten arms, and how many spectra of size 3 a step takes as long as."""
    rng, d = np.random.default_rng(0), 3
    arms = catalogue(10, d, 0, rng)
    sets = lbm.Contextual(unit(rng.normal(size=(T, 10, d))))
    pairs = [(m, gamma) for m in range(5) for gamma in (-4.0, -3.0, -2.0, -1.0, 0.5, 1.0)]
    theta, eigh = unit(rng.normal(size=d)), eigh_seconds(d)
    for name, agent, actions in (
        ("O3M", lbm.O3M(2, -3.0, T, L=20), lbm.Finite(arms)),
        ("Rolling", lbm.Rolling(2, -3.0), lbm.Finite(arms)),
        ("O3M, contextual", lbm.O3M(2, -3.0, T, L=20), sets),
        ("Rolling, contextual", lbm.Rolling(2, -3.0), sets),
        ("EvidenceSelector, 30 candidates", lbm.EvidenceSelector(pairs, T, L=20), lbm.Finite(arms)),
        ("Combiner", lbm.BanditCombiner([(2, -3.0), (2, -1.0), (1, -3.0)], T, L=20), lbm.Finite(arms)),
    ):
        env = lbm.LBM(theta, m=2, gamma=-3.0, sigma=0.1, actions=actions)
        lbm.run(env, agent, T=200)
        step = cpu_seconds(lambda env=env, agent=agent: lbm.run(env, agent, T=T))[0] / T
        print(f"  K=10, m=2, {name}: {1.0 / step:,.0f} steps a second, {step / eigh:.1f} eigh a step")


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--search", type=float, default=0.0, metavar="MINUTES", help="look for better plans than those known"
    )


def main(options: argparse.Namespace) -> None:
    if options.search > 0.0:
        arm_records.search({name: problems(name) for name in SETS}, options.search)
        return
    for name in SETS:
        quality(name)
    print("catalogues, gamma=-2, sigma=0.1")
    songs(200, 16, 4, 1500)
    songs(200, 5, 4, 1500)
    songs(10_000, 32, 4, 60)
    latency()
    few()
