"""Extreme arguments, all of them valid or refused with a sentence: nothing is NaN, nothing silently wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm.kernels.estimator import absorb_all, cholesky_of_sum, make_estimator
from fastlbm.kernels.powers import first_difference
from tests import naive, problems

TINY = [1e-60, 1e-77, 1e-80, 1e-100, 1e-150, 1e-155, 1e-160, 1e-200, 1e-310, 5e-324]


@pytest.mark.parametrize("size", TINY)
@pytest.mark.parametrize("gamma", [-1.0, 0.5, 2.0, 6.0])
def test_tiny_arms_are_nowhere_nan(gamma: float, size: float) -> None:
    d, m = 5, 4
    rng = np.random.default_rng(0)
    u = np.ones(d) / math.sqrt(d)
    rows = problems.ball(6, d, rng)
    for block in (size * rows, size * rows[[0, 0, 0, 0, 0, 1]], np.vstack((size * rows[:3], rows[3:]))):
        for A0 in (None, np.diag(np.arange(1.0, 6.0)), np.zeros((d, d)) if gamma > 0.0 else None):
            env = lbm.LBM(u, m=m, gamma=gamma, A0=A0)
            run = lbm.run(env, lbm.Cyclic(block), T=20, record=20)
            assert np.isfinite(run.reward).all()
            np.testing.assert_array_equal(
                np.cumsum(env.expected_rewards(np.tile(block, (4, 1))[:20])), run.reward
            )
            if gamma != 0.5 or A0 is None or A0.any():
                value, gradient = lbm.block_ucb(block, m=m, gamma=gamma, theta=u, A0=A0)
                assert math.isfinite(value)
                assert np.isfinite(gradient).all()
            arms = lbm.Finite(block[3:])
            assert math.isfinite(lbm.best_block(lbm.LBM(u, m=m, gamma=gamma, A0=A0, actions=arms), L=2).value)


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("size", [1.0, 1e-20, 1e-60, 1e-100, 1e-130])
def test_a_memory_of_tiny_arms_alone_is_as_precise_as_any(size: float, m: int) -> None:
    """A0 = 0, so that the memory matrix is tiny, too: (k s^2)^gamma s <u, theta> after k arms s u."""
    gamma, u = 0.5, np.array([0.48, 0.6, 0.64])
    theta = np.array([0.0, 0.6, 0.8])
    env = lbm.LBM(theta, m=m, gamma=gamma, A0=np.zeros((3, 3)))
    found = env.expected_rewards(np.tile(size * u, (5, 1)))
    window = np.minimum(np.arange(5), m)
    np.testing.assert_allclose(found, (np.sqrt(window) * size) * size * (u @ theta), rtol=1e-13)
    arms = lbm.LBM(theta, m=m, gamma=gamma, A0=np.zeros((3, 3)), actions=lbm.Finite([size * u]))
    assert lbm.best_block(arms, L=1).value == pytest.approx(math.sqrt(m) * size**2 * (u @ theta), rel=1e-13)


@pytest.mark.nojit
@pytest.mark.parametrize("gamma", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_what_is_rounding_for_the_check_is_rounding_for_the_power(d: int, gamma: float) -> None:
    for seed in range(5):
        Q = problems.orthogonal(d, np.random.default_rng(seed))
        A0 = np.outer(Q[0], Q[0])
        env = lbm.LBM(Q[1], m=2, gamma=gamma, A0=0.5 * (A0 + A0.T))
        assert abs(env.memory_matrix() @ Q[1]).max() < 1e-14
        np.testing.assert_allclose(env.expected_rewards([Q[1], Q[0], Q[1]]), [0.0, 0.0, 1.0], atol=1e-13)


@pytest.mark.nojit
@pytest.mark.parametrize("gamma", [-2.0, -0.5, 0.05, 0.5])
def test_below_the_lowest_eigenvalue_of_A0_there_is_none(gamma: float) -> None:
    """Beside a played direction that of A0 is lost in rounding; it is known all the same."""
    low, u = 1e-18, np.array([0.6, 0.8])
    env = lbm.LBM([0.8, -0.6], m=3, gamma=gamma, A0=low * np.eye(2))
    rewards = env.expected_rewards([u, u, u, [0.8, -0.6]])
    assert np.abs(rewards).max() <= env.reward_bound * (1.0 + 1e-12)
    assert rewards[-1] == pytest.approx(low**gamma, rel=1e-9)
    assert env.memory_matrix([u, u, u])[0] @ [0.8, -0.6] == pytest.approx(0.8 * low**gamma, rel=1e-6)


@pytest.mark.nojit
@pytest.mark.parametrize("gamma", [0.3, 1.0, 2.5, 6.0, 50.0])
@pytest.mark.parametrize("low", [1e-320, 1e-200, 1e-70, 1e-30])
def test_divided_differences_of_numbers_far_apart(low: float, gamma: float) -> None:
    assert first_difference(low, 1.0, gamma) == pytest.approx(-math.expm1(gamma * math.log(low)), rel=1e-12)


# --- features beside which lam is lost ----------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("size", [1e3, 1e8, 1e12, 1e60])
@pytest.mark.parametrize("D", [2, 5, 12])
def test_least_squares_of_large_features(D: int, size: float) -> None:
    rng = np.random.default_rng(D)
    e = make_estimator(D, 1.0)
    for _ in range(3):
        F = size * rng.normal(size=(2 if D > 2 else 1, D))
        y = F @ np.ones(D)
        absorb_all(e, F, np.ones(len(F)), y, y * y)
        assert np.isfinite(e.V_inv).all()
        assert np.isfinite(e.ledger).all()
        assert np.linalg.eigvalsh(e.V_inv * size**2)[0] >= -1e-9
        # What was seen is known.
        np.testing.assert_allclose(F @ e.theta, F @ np.ones(D), rtol=1e-3, atol=1e-3 * size)


@pytest.mark.nojit
def test_a_pivot_that_is_rounding_does_not_blow_up() -> None:
    b = np.random.default_rng(0).normal(size=12)
    V = np.eye(12) + 1e20 * np.outer(b, b)
    R = np.zeros((12, 12))
    assert math.isfinite(cholesky_of_sum(V, R))
    assert np.abs(R).max() <= 1.1e10 * np.abs(b).max()


@pytest.mark.parametrize("scale", [1e-6, 1e12])
@pytest.mark.parametrize("actions", [lbm.Ball(2), lbm.Finite(np.eye(2))])
def test_om_block_with_a_large_or_small_A0(actions: Any, scale: float) -> None:
    A0 = scale * np.eye(2)
    for gamma in (-3.0, -1.0, 1.0, 3.0):
        env = lbm.LBM([0.6, 0.8], m=1, gamma=gamma, A0=A0, actions=actions)
        for kind in (lbm.OMBlock, lbm.OM, lbm.O3M):
            live = kind(1, gamma, 100, L=2, A0=A0).start(actions)
            past: list[np.ndarray] = []
            for _ in range(30):
                past.append(live.act())
                live.update(float(env.expected_rewards(past)[-1]))
            assert np.isfinite(live.theta).all()
            assert math.isfinite(live.beta)
            assert np.isfinite(past).all()


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: lbm.LBM([1.0], sigma=1e308), "sigma must be a finite number"),
        (lambda: lbm.LBM([1.0], A0=[[1e200]], gamma=0.5), "A0 must hold numbers of at most 1e"),
        (lambda: lbm.LBM([1.0], m=10**400), "m must be an integer from 0 to"),
        (lambda: lbm.LBM([1.0], gamma=10**400), "gamma must be a finite number"),
        (lambda: lbm.EvidenceSelector([(1, -1.0)], 100, sigma=1e308), "sigma must be a finite number"),
        (lambda: lbm.EvidenceSelector([(1, -1.0)], 100, sigma=1e-170), "sigma must be a finite number"),
        (lambda: lbm.O3M(1, -1.0, 100, lam=1e-200), "lam must be a finite number"),
        (lambda: lbm.O3M(1, -1.0, 100, lam=1e200), "lam must be a finite number"),
        (lambda: lbm.OFUL(100, subgaussian=1e200), "subgaussian must be a finite number"),
        (lambda: lbm.OFUL(10**400), "horizon must be an integer from 1 to"),
        (lambda: lbm.BanditCombiner([(1, -1.0)], 100, scale=1e200), "scale must be a finite number"),
        (lambda: lbm.plan_block(d=1, m=0, gamma=0.0, L=1, theta=[1e200]), "theta must hold numbers"),
        (
            lambda: lbm.block_ucb([[1.0]], m=0, gamma=0.0, theta=[1.0], V_inv=[[1e200]], beta=1.0),
            "V_inv must",
        ),
        (
            lambda: lbm.block_ucb(np.eye(2), m=1, gamma=-0.1, theta=[1.0, 0.0], A0=1e-300 * np.eye(2)),
            "A0 must",
        ),
    ],
)
def test_what_no_float_can_hold_is_refused(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}"):
        make()


@pytest.mark.parametrize("y", [1e308, -1e200])
def test_a_reward_that_is_not_plausible_is_refused(y: float) -> None:
    live = lbm.OFUL(10).start(lbm.Ball(2))
    live.act()
    with pytest.raises(ValueError, match=r"^y must be a finite number in \[-1e\+100, 1e\+100\]"):
        live.update(y)
    live.update(1e100)
    live.act()
    assert np.isfinite(live.theta).all()


@pytest.mark.parametrize("sigma", [1e-100, 1e100])
def test_the_largest_and_the_smallest_noise(sigma: float) -> None:
    env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0, sigma=sigma)
    selector = lbm.EvidenceSelector([(0, 0.0), (1, -2.0)], 100, L=3, sigma=sigma)
    for agent in (lbm.O3M(1, -2.0, 100, L=3), lbm.OFUL(100), selector):
        run = lbm.run(env, agent, T=40, keep_actions=True)
        assert np.isfinite(run.observed).all()
        np.testing.assert_allclose(
            run.reward[-1], naive.expected_rewards(env.theta, 1, -2.0, None, run.actions).sum()
        )
