"""Cycles of arms and the long run, against the enumeration of every cycle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.kernels.optimism import O3M
from fastlbm.planning.finite import planner
from tests import problems
from tests.naive import Array
from tests.planning.finite.problems import (
    INSTANCES,
    codes,
    everything,
    make,
    planner_of,
    rewards_of_cycle,
    window_features,
)


def cycle_averages(arms: Array, period: int, m: int, gamma: float, theta: Array, A0: Array | None) -> Array:
    """The average of every cycle of the period."""
    K = len(arms)
    rewards = window_features(np.broadcast_to(arms, (m + 1, *arms.shape)), gamma, A0) @ theta
    cycles = everything(K, period)
    return sum(rewards[codes(cycles[np.arange(t - m, t + 1) % period], K)] for t in range(period)) / period


@pytest.mark.nojit
@pytest.mark.parametrize("instance", INSTANCES)
def test_cycles_are_exact(instance: tuple[Any, ...]) -> None:
    problem = make(*instance, kind=O3M)
    arguments = {key: problem[key] for key in ("arms", "m", "gamma", "theta", "A0")}
    for period in (1, 2, 3, 4, 5):
        cycle = planner_of(arguments).cycle(arguments["theta"], period)
        assert cycle.indices.shape == (period,)
        assert cycle.exact
        assert cycle.average == pytest.approx(
            rewards_of_cycle(indices=cycle.indices, **arguments).mean(), rel=1e-12
        )
        assert cycle.average == pytest.approx(cycle_averages(period=period, **arguments).max(), rel=1e-12)


@pytest.mark.nojit
def test_cycles_without_tables() -> None:
    problem = make(3, 2, 4, 2, -3.0, "default", O3M)
    arguments = {key: problem[key] for key in ("arms", "m", "gamma", "theta", "A0")}
    for period in (1, 2, 5):
        cycle = planner_of(arguments, budget=1).cycle(arguments["theta"], period)
        assert not cycle.exact
        assert cycle.average == pytest.approx(
            rewards_of_cycle(indices=cycle.indices, **arguments).mean(), rel=1e-12
        )
        assert cycle.average == pytest.approx(cycle_averages(period=period, **arguments).max(), rel=0.02)


def test_cycles_beyond_the_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make(4, 2, 4, 2, -3.0, "default", O3M, seed=1)
    arguments = {key: problem[key] for key in ("arms", "m", "gamma", "theta", "A0")}
    exact = planner_of(arguments).cycle(arguments["theta"], 7)
    monkeypatch.setattr(planner, "_CYCLE_OPERATIONS", -1)
    searched = planner_of(arguments).cycle(arguments["theta"], 7)
    assert exact.exact
    assert not searched.exact
    assert exact.average * 0.98 <= searched.average <= exact.average * (1.0 + 1e-12)


@pytest.mark.nojit
@pytest.mark.parametrize(("K", "m"), [(2, 1), (3, 1), (2, 2), (4, 1), (2, 3), (5, 0)])
@pytest.mark.parametrize("gamma", [-3.0, 0.0, 2.0])
def test_long_run_optimum(K: int, m: int, gamma: float) -> None:
    for seed in range(3):
        problem = make(K, m, 1, 2, gamma, "default", O3M, seed)
        arguments = {key: problem[key] for key in ("arms", "m", "gamma", "theta", "A0")}
        best = planner_of(arguments).long_run(arguments["theta"])
        # Some maximum mean cycle visits no state twice.
        averages = [cycle_averages(period=period, **arguments).max() for period in range(1, K**m + 1)]
        assert best.exact
        assert best.average == pytest.approx(max(averages), rel=1e-12)
        assert best.average == pytest.approx(
            rewards_of_cycle(indices=best.indices, **arguments).mean(), rel=1e-12
        )


@settings(max_examples=40)
@given(K=st.integers(1, 6), m=st.integers(0, 3), seed=st.integers(0, 2**32 - 1), discrete=st.booleans())
def test_no_policy_beats_the_long_run_optimum(K: int, m: int, seed: int, discrete: bool) -> None:
    rng = np.random.default_rng(seed)
    arms = rng.integers(-1, 2, size=(K, 2)) / math.sqrt(2.0) if discrete else problems.ball(K, 2, rng)
    arguments = {
        "arms": arms,
        "m": m,
        "gamma": float(rng.choice([-3.0, -1.0, 0.5])),
        "theta": np.array([0.6, 0.8]),
    }
    best = planner_of(arguments).long_run(arguments["theta"])
    assert best.exact
    # OPT(T) - OPT(S) tends to (T - S) times the average: within m steps of it both ways.
    short, long = (planner_of(arguments).optimum(arguments["theta"], T) for T in (500, 2500))
    assert (long - short) / 2000 == pytest.approx(best.average, abs=0.01)
    for period in (1, 2, 3, 7):
        assert planner_of(arguments).cycle(arguments["theta"], period).average <= best.average + 1e-12
