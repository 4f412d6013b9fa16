"""Whole episodes of every agent, on the ball and on arms; drawing the noise alone for comparison."""

from __future__ import annotations

import numpy as np
import pytest

import fastlbm as lbm

from .learners import ROTTING

ARMS = lbm.LBM(ROTTING.theta, m=2, gamma=-3.0, actions=lbm.Finite(lbm.Ball(3).sample(6, seed=0)))
CASES = {
    "O3M": (ROTTING, lbm.O3M(2, -3.0, 2_000, L=20), 2_000),
    "OM": (ROTTING, lbm.OM(2, -3.0, 2_000, L=20), 2_000),
    "OM-Block": (ROTTING, lbm.OMBlock(2, -3.0, 1_000, L=10), 1_000),
    "OFUL": (ROTTING, lbm.OFUL(5_000), 5_000),
    "oracle greedy": (ROTTING, lbm.OracleGreedy(), 10_000),
    "O3M, switch=1": (ROTTING, lbm.O3M(2, -3.0, 1_000_000, L=20, switch=1.0), 1_000_000),
    "O3M on arms": (ARMS, lbm.O3M(2, -3.0, 2_000, L=20), 2_000),
    "OFUL on arms": (ARMS, lbm.OFUL(5_000), 5_000),
}


@pytest.mark.parametrize("name", CASES)
def test_episode(benchmark, name: str) -> None:  # type: ignore[no-untyped-def]
    env, agent, T = CASES[name]
    lbm.run(env, agent, T=50)  # compiles
    benchmark.extra_info["steps"] = T
    run = benchmark(lbm.run, env, agent, T=T)
    assert run.t[-1] == T
    assert np.isfinite(run.reward).all()


def test_drawing_the_noise_alone(benchmark) -> None:  # type: ignore[no-untyped-def]
    benchmark.extra_info["steps"] = 1_000_000
    benchmark(lambda: np.random.default_rng(0).standard_normal(1_000_000))
