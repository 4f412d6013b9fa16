"""Bounds on OPT, against closed forms and the paper's propositions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm.planning.bounds import OptSearch

THETA = np.array([0.4963, 0.7682, 0.0885]) / np.linalg.norm([0.4963, 0.7682, 0.0885])


def steady(env: lbm.LBM, cycle: np.ndarray) -> float:
    """Average reward of a cycle after many turns."""
    turns = np.tile(cycle, (12, 1))
    return float(env.expected_rewards(turns)[-len(cycle) :].mean())


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("gamma", [-3.0, -0.5, 0.0])
def test_proposition_3(m: int, gamma: float) -> None:
    d, L, T = m + 1, 2 * (m + 1), 60
    arms = np.vstack([np.zeros(d), np.eye(d)])
    env = lbm.LBM(np.ones(d) / math.sqrt(d), m=m, gamma=gamma, actions=lbm.Finite(arms))
    bounds = lbm.opt_bounds(env, T=T)
    assert bounds.exact
    assert bounds.lower == bounds.upper == pytest.approx(T / math.sqrt(d), rel=1e-12)
    block = lbm.best_block(env, L=L)
    assert block.exact
    assert block.value == pytest.approx(L / math.sqrt(d), rel=1e-12)
    # The paper's block: m zeros, then e_1 .. e_L, played again and again.
    papers = np.vstack([np.zeros((m, d)), np.eye(d)[np.arange(L) % d]])
    proxy = env.expected_rewards(papers[m:], history=papers[:m]).sum()
    assert proxy == pytest.approx(block.value, rel=1e-12)
    assert steady(env, papers) * math.sqrt(d) == pytest.approx(L / (m + L), rel=1e-12)
    # Of the blocks with the same proxy value the planner takes one that wastes nothing.
    assert steady(env, block.actions) >= steady(env, papers) - 1e-12
    if (m + L) % d == 0 or gamma == 0.0:
        assert steady(env, block.actions) == pytest.approx(1 / math.sqrt(d), rel=1e-12)


def greedy(env: lbm.LBM, T: int) -> np.ndarray:
    played = np.zeros((0, env.d))
    for _ in range(T):
        direction = env.memory_matrix(played) @ env.theta
        played = np.vstack([played, direction / np.linalg.norm(direction)])
    return env.expected_rewards(played)


def test_proposition_1_rotting() -> None:
    d, gamma, T = 3, -2.0, 30
    env = lbm.LBM(np.eye(d)[0], m=d - 1, gamma=gamma)
    rewards = greedy(env, T)
    np.testing.assert_allclose(rewards[d - 1 :], d**gamma, rtol=1e-9)
    cycle = np.eye(d)
    assert steady(env, cycle) == pytest.approx(1 / d, rel=1e-9)
    bounds = lbm.opt_bounds(env, T=T)
    assert bounds.lower >= T / d - 1e-9 > rewards.sum()


def test_proposition_1_rising() -> None:
    m, epsilon, T = 2, 0.3, 30
    theta = np.array([epsilon, 1.0]) / math.hypot(epsilon, 1.0)
    env = lbm.LBM(theta, m=m, gamma=1.0, A0=np.diag([1.0, 0.0]))
    rewards = greedy(env, T)
    np.testing.assert_allclose(rewards[m:], (m + 1) * theta[0], rtol=1e-9)
    always = env.expected_rewards(np.tile([0.0, 1.0], (T, 1)))
    np.testing.assert_allclose(always[m:], m * theta[1], rtol=1e-9)
    assert lbm.opt_bounds(env, T=T).lower >= always.sum() - 1e-9 > rewards.sum()


@pytest.mark.parametrize("T", [1, 7, 50])
def test_rising_isotropic_is_closed_form(T: int) -> None:
    env = lbm.LBM(0.5 * THETA, m=3, gamma=2.0)
    bounds = lbm.opt_bounds(env, T=T)
    assert bounds.exact
    assert bounds.lower == pytest.approx(greedy(env, T).sum(), rel=1e-12)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("c", [0.0, 0.5, 1.0])
def test_theta_s_direction_is_optimal_when_rising(c: float, gamma: float) -> None:
    # Against every sequence from a fine grid of the ball that holds theta's direction.
    angles = 2.0 * math.pi * np.arange(24) / 24.0
    grid = np.concatenate([r * np.column_stack((np.cos(angles), np.sin(angles))) for r in (0.4, 0.8, 1.0)])
    theta = 0.7 * grid[-19]
    for m in (1, 2):
        env = lbm.LBM(theta, m=m, gamma=gamma, A0=c * np.eye(2))
        on_grid = lbm.LBM(theta, m=m, gamma=gamma, A0=c * np.eye(2), actions=lbm.Finite(grid))
        for T in (1, 2, 3, 4):
            bounds, brute = lbm.opt_bounds(env, T=T), lbm.opt_bounds(on_grid, T=T)
            always = env.expected_rewards(np.tile(grid[-19], (T, 1))).sum()
            assert bounds.exact
            assert brute.method.startswith("dynamic programming")
            assert bounds.lower == pytest.approx(brute.lower, rel=1e-7) == pytest.approx(always, rel=1e-7)


def test_greedy_may_earn_nothing_where_the_first_reward_is_zero() -> None:
    env = lbm.LBM([0.6, 0.8], m=2, gamma=1.0, A0=np.zeros((2, 2)), sigma=0.0)
    assert lbm.run(env, lbm.OracleGreedy(), T=20).reward[-1] == 0.0
    assert lbm.opt_bounds(env, T=20).lower == pytest.approx(0.0 + 1.0 + 18 * 2.0, rel=1e-12)


def test_stationary_is_closed_form() -> None:
    for env in (lbm.LBM(THETA, m=0, gamma=-3.0), lbm.LBM(THETA, m=4, gamma=0.0)):
        bounds = lbm.opt_bounds(env, T=10)
        assert bounds.exact
        assert bounds.lower == pytest.approx(10.0, rel=1e-12)


@pytest.mark.parametrize(("m", "gamma"), [(0, -3.0), (9, 0.0), (math.inf, 0.0)])
def test_stationary_arms_are_closed_form_however_many(m: float, gamma: float) -> None:
    A0, T = np.diag([0.5, 1.0, 2.0]), 5000
    sets = lbm.Ball(3).sample(T * 40, seed=0).reshape(T, 40, 3)
    effective = (np.linalg.inv(A0) ** 3 if m == 0 else np.eye(3)) @ THETA
    for actions in (lbm.Finite(sets[0]), lbm.Contextual(sets)):
        env = lbm.LBM(THETA, m=m, gamma=gamma, A0=A0, actions=actions)
        bounds = lbm.opt_bounds(env, T=T)
        assert bounds.exact
        assert bounds.certified
        best = (np.broadcast_to(actions.arms, (T, 40, 3)) @ effective).max(axis=1).sum()
        assert bounds.lower == bounds.upper == pytest.approx(best, rel=1e-12)


def test_what_is_certified() -> None:
    ball = lbm.opt_bounds(lbm.LBM(THETA, m=2, gamma=-3.0), T=50, L=10, max_period=4)
    assert not ball.certified
    assert lbm.opt_bounds(lbm.LBM(THETA, m=2, gamma=2.0), T=50).certified
    arms = lbm.Finite(lbm.Ball(3).sample(4, seed=0))
    assert lbm.opt_bounds(lbm.LBM(THETA, m=2, gamma=-3.0, actions=arms), T=50).certified
    # Where T times the largest reward is the smaller bound nothing rests on the search.
    nothing = lbm.opt_bounds(lbm.LBM([0.0, 0.0], m=1, gamma=-1.0), T=20, L=4, max_period=2)
    assert nothing.certified
    assert nothing.exact


def test_the_sandwich_of_the_paper_s_instance() -> None:
    env = lbm.LBM(THETA, m=2, gamma=-3.0)
    coarse, fine = (lbm.opt_bounds(env, T=10_000, L=L) for L in (20, 60))
    assert not coarse.exact
    assert coarse.lower <= fine.upper <= coarse.upper
    assert fine.gap <= 0.01 < coarse.gap <= 0.02
    assert fine.cycle is not None
    turns = np.tile(fine.cycle.actions, (10_000 // len(fine.cycle.actions) + 1, 1))
    played = [env.expected_rewards(np.roll(turns, -s, axis=0)[:10_000]).sum() for s in range(13)]
    assert fine.lower == pytest.approx(max(played), rel=1e-9)


@pytest.mark.parametrize("T", [1, 2, 5, 23])
def test_short_horizons_are_bounded_too(T: int) -> None:
    env = lbm.LBM.random(d=2, m=2, gamma=-2.0, seed=3)
    bounds = lbm.opt_bounds(env, T=T, L=4)
    rng = np.random.default_rng(0)
    tries = [env.expected_rewards(lbm.Ball(2).sample(T, seed=rng)).sum() for _ in range(200)]
    assert max(tries) <= bounds.upper + 1e-9
    assert bounds.lower <= bounds.upper


def test_bad_horizons() -> None:
    env = lbm.LBM([1.0, 0.0], m=1, gamma=-1.0)
    contextual = lbm.LBM([1.0, 0.0], m=1, gamma=-1.0, actions=lbm.Contextual(np.zeros((4, 2, 2))))
    with pytest.raises(ValueError, match="T must"):
        lbm.opt_bounds(env, T=0)
    with pytest.raises(ValueError, match="T=9"):
        lbm.opt_bounds(contextual, T=9)


@pytest.mark.parametrize("gamma", [-2.0, 1.0, 0.0])
def test_many_horizons_have_the_bounds_of_each(gamma: float) -> None:
    env = lbm.LBM([0.6, 0.8], m=1, gamma=gamma)
    search = OptSearch(env)
    for T in (3, 70, 40, 70):
        one, other = search.bounds(T), lbm.opt_bounds(env, T)
        assert (one.lower, one.upper, one.exact, one.method) == (
            other.lower, other.upper, other.exact, other.method,
        )  # fmt: skip
