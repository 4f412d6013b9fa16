"""`python -m bench selection`: what it costs not to know m and gamma, in reward and in time."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

import fastlbm as lbm

from .learners import ROTTING, timed
from .plans import THETA
from .problems import eigh_seconds, problem

T, SEEDS = 1200, 20
PAIRS = [(m, float(gamma)) for m in range(5) for gamma in range(-4, 2)]
GAMMAS = [(2, float(gamma)) for gamma in range(-4, 1)]
MEMORIES = [(0, -3.0), (2, -3.0), (3, -3.0)]


def play(env: lbm.LBM, agent: lbm.agents.Agent) -> tuple[np.ndarray, list[lbm.runs.Run]]:
    """Total expected rewards of all seeds, and the runs."""
    runs = [lbm.run(env, agent, T=T, seed=seed, record=1) for seed in range(SEEDS)]
    return np.array([run.reward[-1] for run in runs]), runs


def others(candidates: list[tuple[int, float]], L: int | list[int]) -> dict[str, lbm.agents.Agent]:
    """Those who choose by rewards as the Combiner does, by other rules."""
    return {
        **{
            f"RegretBalancing, scale {scale:g}": lbm.RegretBalancing(candidates, T, L=L, scale=scale)
            for scale in (1.0, 0.1, 0.03, 0.01)
        },
        "CORRAL": lbm.Corral(candidates, T, L=L),
        "CORRAL, not smooth, eta 10": lbm.Corral(candidates, T, L=L, smooth=False, eta=10.0),
    }


def rotting() -> None:
    """The paper's rotting instance: both methods, paired with O3M that knows the truth."""
    known, _ = play(ROTTING, lbm.O3M(2, -3.0, T, L=20))
    print(f"rotting, m=2, gamma=-3, T={T}, {SEEDS} seeds: O3M that knows them {known.mean():.1f}")
    found = {}
    for name, candidates, L in (("gamma -4..0", GAMMAS, 20), ("m 0, 2, 3", MEMORIES, [1, 15, 20])):
        for scale in (1.0, 0.1, 0.03, 0.01, 0.003, 0.001):
            rewards, runs = play(ROTTING, lbm.BanditCombiner(candidates, T, L=L, scale=scale))
            found[name, scale] = rewards
            share = np.mean(
                [np.bincount(r.details["candidate"], minlength=len(candidates)) for r in runs], axis=0
            )
            print(
                f"  Combiner over {name:11}, scale {scale:5g}: {rewards.mean():6.1f} = "
                f"{rewards.mean() / known.mean():.1%}, rounds of each {share.round(1).tolist()}"
            )
        for words, agent in others(candidates, L).items():
            rewards, _ = play(ROTTING, agent)
            print(f"  {words} over {name}: {rewards.mean():.1f} = {rewards.mean() / known.mean():.1%}")
        c = lbm.theory.combiner_constants(T, 3, candidates, L)
        print(f"    R_j/T_bc {(c.R / c.T_bc).round(2).tolist()}, C_j {c.C.round(1).tolist()}, T_bc {c.T_bc}")
    rewards, runs = play(ROTTING, lbm.EvidenceSelector(PAIRS, T, L=20))
    posterior = np.array([np.exp(r.details["log_posterior"][-1]).reshape(5, 6) for r in runs])
    right = (posterior.sum(axis=2).argmax(axis=1) == 2).sum()
    print(
        f"  EvidenceSelector, 30 pairs: {rewards.mean():.1f} = {rewards.mean() / known.mean():.1%} "
        f"({(rewards / known).min():.1%} to {(rewards / known).max():.1%}), "
        f"true m most probable in {right} of {SEEDS}"
    )
    for name, scale in (("gamma -4..0", 1.0), ("m 0, 2, 3", 1.0), ("m 0, 2, 3", 0.01)):
        p = stats.wilcoxon(rewards, found[name, scale], alternative="greater").pvalue
        print(f"    better than the Combiner over {name}, scale {scale:g}: paired Wilcoxon p = {p:.1e}")
    rewards, _ = play(ROTTING, lbm.EvidenceSelector(PAIRS, T, L=20, draw=True))
    print(f"  ... drawn from the posterior: {rewards.mean():.1f} = {rewards.mean() / known.mean():.1%}")


def elsewhere() -> None:
    """Rising, stationary, and truths that are not among the candidates."""
    A0, epsilon = np.diag([1.0, 0.0]), 0.01
    rising = lbm.LBM([math.sqrt(epsilon), math.sqrt(1.0 - epsilon)], m=2, gamma=1.0, A0=A0, sigma=0.1)
    up = [(m, float(gamma)) for m in range(5) for gamma in range(3)]
    cases = (
        ("rising, A0=diag(1,0)", rising, lbm.O3M(2, 1.0, T, L=10, A0=A0), up, 10, A0),
        ("stationary", lbm.LBM(THETA, m=0, gamma=0.0), lbm.OFUL(T), PAIRS, 20, None),
        (
            "gamma=-2.5 not offered",
            lbm.LBM(THETA, m=2, gamma=-2.5),
            lbm.O3M(2, -2.5, T, L=20),
            PAIRS,
            20,
            None,
        ),
        ("m=5 not offered", lbm.LBM(THETA, m=5, gamma=-3.0), lbm.O3M(5, -3.0, T, L=20), PAIRS, 20, None),
    )
    for name, env, informed, pairs, L, matrix in cases:
        known, _ = play(env, informed)
        rewards, runs = play(env, lbm.EvidenceSelector(pairs, T, L=L, A0=matrix))
        last = [pairs[int(r.details["log_posterior"][-1].argmax())] for r in runs]
        most = max(set(last), key=last.count)
        print(
            f"{name}: known {known.mean():.1f}, EvidenceSelector {rewards.mean():.1f} = "
            f"{rewards.mean() / known.mean():.1%}; most probable at the end: {most} "
            f"in {last.count(most)} of {SEEDS}"
        )


def cost() -> None:
    """A step with many candidates, in 3x3 eigh of the same run."""
    for N in (5, 30, 100):
        pairs = [(m, -4.0 + 0.25 * k) for m in range(1, 6) for k in range(20)][:: 100 // N]
        agent = lbm.EvidenceSelector(pairs, 1200, L=20)
        seconds = min(timed(agent, 1200)[0] for _ in range(5)) / 1200
        yardstick = eigh_seconds(problem(3, 2, 20, -3.0))
        print(f"{len(pairs)} candidates: {seconds * 1e6:.1f} us = {seconds / yardstick:.1f} eigh a step")


def main() -> None:
    rotting()
    elsewhere()
    cost()
