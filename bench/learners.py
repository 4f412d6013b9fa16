"""`python -m bench learners`: what learners collect, what a step costs, and how regret grows."""

from __future__ import annotations

import itertools
import os
import time
import tracemalloc
import warnings
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

import fastlbm as lbm

from .plans import THETA
from .problems import eigh_seconds, problem
from .timing import fastest

#: The instance of the paper's Figure 1 left.
ROTTING = lbm.LBM(THETA, m=2, gamma=-3.0, sigma=0.1)
#: The instance of the supplement's regret figure, with a theta of this repository's choice.
RISING = lbm.LBM(THETA, m=1, gamma=2.0, sigma=0.1)
#: One in many dimensions.
WIDE = lbm.LBM.random(d=16, m=2, gamma=-2.0, sigma=0.1, seed=0)


def timed(
    agent: lbm.agents.Agent, T: int, seed: int = 0, env: lbm.LBM = ROTTING
) -> tuple[float, lbm.runs.Run]:
    """Seconds of a run, and the run; what it needs is compiled before."""
    lbm.run(env, agent, T=50)
    begin = time.perf_counter()
    run = lbm.run(env, agent, T=T, seed=seed)
    return time.perf_counter() - begin, run


def experiment() -> None:
    """The paper's rotting instance, T = 1218, 20 seeds; the cost of a step in 3x3 eigh of the same run."""
    T = 1218
    print(f"rotting, d=3, m=2, gamma=-3, sigma=0.1, L=20, delta=0.01, T={T}: total expected reward, 20 seeds")
    shape = {"m": 2, "gamma": -3.0, "horizon": T, "L": 20, "delta": 0.01}
    agents = {
        "Rolling": lbm.Rolling(2, -3.0, T, delta=0.01),
        "Rolling, noise known": lbm.Rolling(2, -3.0, T, delta=0.01, subgaussian=ROTTING.sigma),
        "Rolling, switch=1": lbm.Rolling(2, -3.0, T, delta=0.01, switch=1.0),
        "O3M": lbm.O3M(**shape),
        "O3M, switch=1": lbm.O3M(**shape, switch=1.0),
        "OM": lbm.OM(**shape),
        "OM-Block": lbm.OMBlock(**shape),
        "OFUL": lbm.OFUL(T, delta=0.01),
        "oracle greedy": lbm.OracleGreedy(),
        "best cycle": lbm.Cyclic(lbm.best_cycle(ROTTING, period=13).actions),
    }
    for name, agent in agents.items():
        pairs = [timed(agent, T, seed) for seed in range(20)]
        yardstick = eigh_seconds(problem(3, 2, 20, -3.0))
        rewards = np.array([run.reward[-1] for _, run in pairs])
        step = np.median([seconds for seconds, _ in pairs]) / T
        print(
            f"  {name:20} {rewards.mean():6.1f} ({rewards.min():.1f} to {rewards.max():.1f}), "
            f"{step * 1e6:6.2f} us = {step / yardstick:.2f} eigh a step, {1.0 / step:,.0f} steps a second"
        )


def known_instances(count: int, root: int) -> Iterator[lbm.LBM]:
    """Instances without noise; every second one has d <= m, where rests matter."""
    rng = np.random.default_rng(root)
    for i in range(count):
        rests = i % 2 == 1
        d = int(rng.integers(2, 6 if rests else 9))
        m = int(rng.integers(d, d + 4) if rests else rng.integers(0, min(d, 4)))
        yield lbm.LBM.random(d=d, m=m, gamma=float(rng.uniform(-4.0, 1.5)), seed=i, sigma=0.0)


def steady(reward: np.ndarray, begin: int, end: int, width: int = 144) -> float:
    """The reward a step between two steps, the mean over `width` pairs of them.

    One pair would count a part of a cycle: a harvest more or less is 0.2% of a thousand steps.
    """
    shifts = np.arange(width)
    return float(np.mean(reward[end - width + shifts] - reward[begin + shifts]) / (end - width - begin))


def theta_known(count: int = 40, roots: Sequence[int] = (77, 78, 79)) -> None:
    """Rolling without noise and without a bonus, beside the best cycle known: what is left is planning."""
    for root in roots:
        print(f"theta known, {count} instances of set {root}, half with d <= m: share of the best cycle")
        _theta_known(known_instances(count, root))


def _theta_known(envs: Iterable[lbm.LBM]) -> None:
    spans = ((100, 600), (500, 1500), (1500, 2999))
    shares = []
    for env in envs:
        m = int(env.m)
        best = lbm.best_cycle(env, max_period=4 * (m + 1)).average
        agent = lbm.Rolling(m, env.gamma, subgaussian=0.0, lam=1e-9)
        reward = lbm.run(env, agent, T=3000, record=np.arange(1, 3001)).reward
        shares.append([steady(reward, *span) / best for span in spans])
    for k, (begin, end) in enumerate(spans):
        found = np.array(shares)[:, k]
        told = f"mean {found.mean():.4f}, worst {found.min():.4f}, {(found < 0.999).sum()} below 0.999"
        print(f"  steps {begin:,} to {end:,}: {told}")


def told_nothing(seeds: int = 10) -> None:
    """What a step of Auto costs, what it collects, and its false alarms, beside Rolling; one core."""
    load = f", load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores" if hasattr(os, "getloadavg") else ""
    print(f"told nothing, sigma=0.1: steps a second on one core, median of {seeds} seeds{load}")
    for env, T in itertools.product((ROTTING, WIDE), (1000, 10_000)):
        agents = {"Auto": lbm.Auto(), "Rolling": lbm.Rolling(int(env.m), env.gamma)}
        for name, agent in agents.items():
            with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # alarms are counted
                pairs = [timed(agent, T, seed, env) for seed in range(seeds)]
            rate = T / np.median([seconds for seconds, _ in pairs])
            reward = np.mean([run.reward[-1] for _, run in pairs]) / T
            alarms = sum(run.details["misfit"][-1] for _, run in pairs if "misfit" in run.details)
            print(
                f"  d={env.d:2}, m={env.m}, gamma={env.gamma:g}, T={T:6,}, {name:7}: "
                f"{rate:7,.0f} steps a second, {reward:.4f} a step, {alarms} runs with a false alarm"
            )


def rarely() -> None:
    """switch=1 against drawing the noise alone, and against switch=0."""
    print("rotting, d=3, m=2, gamma=-3, switch=1; O3M with L from theory")
    for T, kind in itertools.product((10**5, 10**6, 10**7, 10**8), (lbm.O3M, lbm.Rolling)):
        agent = kind(2, -3.0, T, switch=1.0)
        seconds, run = min((timed(agent, T) for _ in range(3)), key=lambda pair: pair[0])
        draws = min(T, 10**7)
        drawing = fastest(lambda n=draws: np.random.default_rng(0).standard_normal(n), rounds=3) * T / draws
        tracemalloc.start()
        lbm.run(ROTTING, agent, T=min(T, 10**7))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(
            f"  {kind.__name__:7}, T={T:.0e}: {seconds:.3f} s = {seconds / drawing:.1f} times drawing the "
            f"normals, {run.reward[-1] / T:.4f} a step, {run.plans} plans, {peak / 1024:.0f} KiB"
        )
    T = 10**5
    for L in (13, 20):
        means = []
        for switch in (0.0, 1.0):
            agent = lbm.O3M(2, -3.0, T, L=L, switch=switch)
            means.append(np.mean([lbm.run(ROTTING, agent, T=T, seed=s).reward[-1] / T for s in range(3)]))
        often, rare = means
        print(f"  T=1e5, L={L}: switch=0 {often:.4f}, switch=1 {rare:.4f} a step, {rare / often:.1%}")


def regret(seeds: int = 3) -> None:
    """The exponent of the regret: rising, m=1, gamma=2, d=3, each horizon with an agent of its own."""
    print("rising, m=1, gamma=2, d=3, sigma=0.1: OPT - reward, mean of seeds")
    horizons = np.array([10**3, 10**4, 10**5, 10**6, 10**7])
    for switch in (0.0, 1.0):
        found = []
        for T in horizons.tolist():
            agent = lbm.O3M(1, 2.0, T, switch=switch)
            best = lbm.opt_bounds(RISING, T=T)
            runs = [lbm.run(RISING, agent, T=T, seed=s).reward[-1] for s in range(seeds)]
            found.append(best.lower - float(np.mean(runs)))
        bound = lbm.theory.regret_bound(horizons, d=3, m=1, gamma=2.0)
        slope = np.polyfit(np.log(horizons), np.log(found), 1)[0]
        print(f"  switch={switch:g}: exponent {slope:.3f} (theory: 0.75)")
        for T, r, b in zip(horizons, found, bound, strict=True):
            print(f"    T={T:.0e}: regret {r:10.1f}, bound {b:.3g}")


def main() -> None:
    experiment()
    theta_known()
    told_nothing()
    rarely()
    regret()
