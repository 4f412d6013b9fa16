"""Cycles: what they promise, what playing them pays, and bad input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastlbm as lbm
from fastlbm.planning.cycles import reward_of_cycle
from fastlbm.planning.finite import FinitePlanner
from fastlbm.planning.plans import Cycle

THETA = np.array([0.4963, 0.7682, 0.0885]) / np.linalg.norm([0.4963, 0.7682, 0.0885])


def steady(env: lbm.LBM, cycle: np.ndarray) -> float:
    """Average reward of a cycle after many turns."""
    turns = np.tile(cycle, (12, 1))
    return float(env.expected_rewards(turns)[-len(cycle) :].mean())


@given(period=st.integers(1, 6), m=st.integers(0, 3), seed=st.integers(0, 5))
@settings(max_examples=15, deadline=None)
def test_the_average_of_a_cycle_is_what_playing_it_pays(period: int, m: int, seed: int) -> None:
    env = lbm.LBM.random(d=3, m=m, gamma=-2.0, seed=seed)
    cycle = lbm.best_cycle(env, period=period)
    assert cycle.actions.shape == (period, 3)
    assert cycle.average == pytest.approx(steady(env, cycle.actions), rel=1e-9)


def test_best_period() -> None:
    env = lbm.LBM(THETA, m=2, gamma=-3.0)
    best = lbm.best_cycle(env, max_period=13)
    assert best.average >= 0.6498
    assert len(best.actions) == 13
    assert lbm.best_cycle(env, max_period=4).average == pytest.approx(0.63270, abs=1e-4)


@pytest.mark.parametrize("T", [1, 2, 3, 5, 6, 7, 40, 41])
@pytest.mark.parametrize(("period", "m"), [(1, 2), (2, 3), (3, 2), (5, 1), (2, 0)])
def test_the_reward_of_a_cycle_is_what_its_steps_pay(period: int, m: int, T: int) -> None:
    env = lbm.LBM.random(d=3, m=m, gamma=-2.0, seed=0)
    cycle = lbm.Ball(3).sample(period, seed=1)
    played = env.expected_rewards(np.tile(cycle, (T, 1))[:T]).sum()
    assert reward_of_cycle(env, cycle, T) == pytest.approx(played, rel=1e-12)


def test_the_best_of_several_periods_is_exact_if_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    arms = lbm.Finite([[1.0, 0.0], [0.6, 0.8], [0.0, 0.7]])
    env = lbm.LBM([0.8, 0.6], m=1, gamma=-2.0, actions=arms)
    best = lbm.best_cycle(env, max_period=4)
    period, solve, long_run = len(best.actions), FinitePlanner.cycle, FinitePlanner.long_run
    assert best.exact
    assert period < 4

    def unproven(planner: FinitePlanner, theta: np.ndarray, period: int, rng: int) -> Cycle:
        return replace(solve(planner, theta, period, rng), exact=period < 4)

    def refuse(planner: FinitePlanner, theta: np.ndarray) -> Cycle:
        raise ValueError("tables")

    def better(planner: FinitePlanner, theta: np.ndarray) -> Cycle:
        return replace(long_run(planner, theta), average=best.average + 0.1)

    monkeypatch.setattr(FinitePlanner, "cycle", unproven)
    assert lbm.best_cycle(env, max_period=4).exact  # no policy is better in the long run
    for answer in (refuse, better):
        monkeypatch.setattr(FinitePlanner, "long_run", answer)
        assert not lbm.best_cycle(env, max_period=4).exact
        assert lbm.best_cycle(env, max_period=3).exact
        assert not lbm.best_cycle(env, period=4).exact


def test_stationary_cycles_and_blocks_are_exact_however_many_arms() -> None:
    K, m, L = 3000, 6, 5
    sets = lbm.Ball(3).sample(2 * K, seed=0).reshape(2, K, 3)[[0, 1] * 6]
    best = (sets @ THETA).max(axis=1)
    env = lbm.LBM(THETA, m=m, gamma=0.0, actions=lbm.Finite(sets[0]))
    cycle = lbm.best_cycle(env, max_period=3)
    assert cycle.exact
    assert cycle.average == pytest.approx(best[0], rel=1e-12)
    for actions in (env.actions, lbm.Contextual(sets)):
        block = lbm.best_block(lbm.LBM(THETA, m=m, gamma=0.0, actions=actions), L=L)
        assert block.exact
        assert block.actions.shape == (m + L, 3)
        assert actions.contains(block.actions).all()
        expected = best[m : m + L].sum() if isinstance(actions, lbm.Contextual) else L * best[0]
        assert block.value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(
            block.actions @ THETA, best[: m + L] if isinstance(actions, lbm.Contextual) else best[0]
        )


def test_bad_cycles() -> None:
    env = lbm.LBM([1.0, 0.0], m=1, gamma=-1.0)
    contextual = lbm.LBM([1.0, 0.0], m=1, gamma=-1.0, actions=lbm.Contextual(np.zeros((4, 2, 2))))
    with pytest.raises(ValueError, match="period"):
        lbm.best_cycle(env, period=0)
    with pytest.raises(ValueError, match="Contextual"):
        lbm.best_cycle(contextual, period=2)
