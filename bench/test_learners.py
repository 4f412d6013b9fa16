"""Whole episodes of every agent, on the ball and on arms; drawing the noise alone for comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlbm as lbm

from .learners import ROTTING

ARMS = lbm.LBM(ROTTING.theta, m=2, gamma=-3.0, actions=lbm.Finite(lbm.Ball(3).sample(6, seed=0)))
PAIRS = [(m, gamma) for m in range(3) for gamma in (-3.0, -1.0)]
CASES = {
    "O3M": (ROTTING, lbm.O3M(2, -3.0, 2_000, L=20), 2_000),
    "Rolling": (ROTTING, lbm.Rolling(2, -3.0), 2_000),
    "Rolling, switch=1": (ROTTING, lbm.Rolling(2, -3.0, switch=1.0), 1_000_000),
    "Auto": (ROTTING, lbm.Auto(), 1_000),
    "O3M, T=200": (ROTTING, lbm.O3M(2, -3.0, 2_000, L=20), 200),
    "OM": (ROTTING, lbm.OM(2, -3.0, 2_000, L=20), 2_000),
    "OM-Block": (ROTTING, lbm.OMBlock(2, -3.0, 1_000, L=10), 1_000),
    "OFUL": (ROTTING, lbm.OFUL(5_000), 5_000),
    "doubling": (ROTTING, lbm.Doubling(lbm.O3M(2, -3.0, 500, L=20)), 2_000),
    "oracle greedy": (ROTTING, lbm.OracleGreedy(), 10_000),
    "cycle": (ROTTING, lbm.Cyclic(np.eye(3)), 100_000),
    "O3M, switch=1": (ROTTING, lbm.O3M(2, -3.0, 1_000_000, L=20, switch=1.0), 1_000_000),
    "Combiner": (ROTTING, lbm.BanditCombiner(PAIRS, 1_000, L=10, scale=0.01), 1_000),
    "balancing": (ROTTING, lbm.RegretBalancing(PAIRS, 1_000, L=10, scale=0.01), 1_000),
    "CORRAL": (ROTTING, lbm.Corral(PAIRS, 1_000, L=10), 1_000),
    "selector": (ROTTING, lbm.EvidenceSelector(PAIRS, 1_000, L=20), 1_000),
    "O3M on arms": (ARMS, lbm.O3M(2, -3.0, 2_000, L=20), 2_000),
    "Rolling on arms": (ARMS, lbm.Rolling(2, -3.0), 2_000),
    "OFUL on arms": (ARMS, lbm.OFUL(5_000), 5_000),
}


@pytest.mark.parametrize("name", CASES)
def test_episode(timed: Any, name: str) -> None:
    env, agent, T = CASES[name]
    lbm.run(env, agent, T=50)  # compiles
    run = timed(lambda: lbm.run(env, agent, T=T), step=T)
    assert run.t[-1] == T
    assert np.isfinite(run.reward).all()


@pytest.mark.parametrize("T", [10_000, 1_000_000])
def test_drawing_the_noise_alone(timed: Any, T: int) -> None:
    timed(lambda: np.random.default_rng(0).standard_normal(T), step=T)
