"""The model: special cases of the paper, a slow reference, history, bounds, noise, errors, values."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.model.actions import Ball, Contextual, Finite
from fastlbm.model.lbm import LBM
from tests import naive

pytestmark = pytest.mark.nojit


def positive_definite(d: int, seed: int) -> np.ndarray:
    factor = np.random.default_rng(seed).standard_normal((d, d))
    return 0.3 * np.eye(d) + factor @ factor.T / d


@st.composite
def models(draw: st.DrawFn) -> LBM:
    d = draw(st.integers(1, 5))
    m = draw(st.sampled_from([0, 1, 2, 3, 6, math.inf]))
    gamma = draw(st.sampled_from([-3.0, -2.5, -1.0, -0.37, 0.0, 0.5, 1.0, 2.0, 2.7]))
    seed = draw(st.integers(0, 1000))
    A0 = draw(st.sampled_from([None, 0.25 * np.eye(d), positive_definite(d, seed)]))
    return LBM.random(d, m, gamma, seed, A0=A0)


@settings(deadline=None)
@given(models(), st.integers(0, 12), st.integers(0, 9), st.integers(0, 1000))
def test_expected_rewards_match_the_reference(env: LBM, T: int, h: int, seed: int) -> None:
    actions, history = Ball(env.d).sample(T, seed), Ball(env.d).sample(h, seed + 1)
    expected = naive.expected_rewards(env.theta, env.m, env.gamma, env.A0, actions, history)
    result = env.expected_rewards(actions, history)
    assert result.shape == (T,)
    np.testing.assert_allclose(
        result, expected, rtol=1e-10, atol=1e-12 * max(1.0, np.abs(expected).max(initial=0))
    )


@settings(deadline=None)
@given(models(), st.integers(0, 1000))
def test_rewards_stay_within_their_bound(env: LBM, seed: int) -> None:
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((30, env.d))
    actions /= np.linalg.norm(actions, axis=1, keepdims=True)
    actions[::2] = env.theta / np.linalg.norm(env.theta)
    assert np.abs(env.expected_rewards(actions)).max() <= env.reward_bound * (1 + 1e-9)


@settings(deadline=None)
@given(models(), st.integers(0, 8), st.integers(0, 1000))
def test_rewards_follow_from_the_memory_matrix(env: LBM, h: int, seed: int) -> None:
    history = env.actions.sample(h, seed)
    action = env.actions.sample(1, seed + 1)
    A = env.memory_matrix(history)
    np.testing.assert_allclose(A, A.T, rtol=1e-12, atol=1e-12 * np.abs(A).max())
    np.testing.assert_allclose(
        env.expected_rewards(action, history), action @ A @ env.theta, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize(("m", "gamma"), [(0, -3.0), (0, 2.0), (3, 0.0), (math.inf, 0.0)])
def test_stationary_bandits(m: float, gamma: float) -> None:
    """Example 1."""
    env = LBM.random(d=4, m=m, gamma=gamma, seed=3)
    actions = env.actions.sample(10, seed=0)
    assert env.is_stationary
    assert env.reward_bound == pytest.approx(1.0)
    np.testing.assert_allclose(env.expected_rewards(actions, actions), actions @ env.theta, atol=1e-15)


def test_no_memory_keeps_the_power_of_A0() -> None:
    env = LBM([0.6, 0.8], m=0, gamma=-2.0, A0=np.diag([2.0, 0.5]))
    assert env.is_stationary
    assert env.reward_bound == pytest.approx(4.0)
    np.testing.assert_allclose(env.expected_rewards(np.eye(2), np.eye(2)), [0.15, 3.2])


@pytest.mark.parametrize("gamma", [-3.0, -0.5, 1.0, 1.7])
def test_rotting_and_rising_bandits(gamma: float) -> None:
    """Example 2: with m = inf an arm played n times before pays (1 + n)^gamma / sqrt(K)."""
    K = 5
    env = LBM(np.full(K, K**-0.5), m=math.inf, gamma=gamma, actions=Finite(np.eye(K)))
    arms = np.random.default_rng(0).integers(K, size=60)
    played = np.array([(arms[:t] == k).sum() for t, k in enumerate(arms)])
    expected = (1.0 + played) ** gamma / math.sqrt(K)
    np.testing.assert_allclose(env.expected_rewards(np.eye(K)[arms]), expected, rtol=1e-12)
    after = env.expected_rewards(np.eye(K)[arms[20:]], history=np.eye(K)[arms[:20]])
    np.testing.assert_allclose(after, expected[20:], rtol=1e-12)


def test_repeating_theta_rises_to_the_bound() -> None:
    env = LBM([0.0, 0.6, 0.8], m=3, gamma=1.5)
    rewards = env.expected_rewards(np.tile(env.theta, (6, 1)))
    np.testing.assert_allclose(rewards, [(1 + min(t, 3)) ** 1.5 for t in range(6)], rtol=1e-12)
    assert rewards.max() == pytest.approx(env.reward_bound)


@pytest.mark.parametrize("m", [0, 1, 3, math.inf])
def test_history_is_what_was_played_before(m: float) -> None:
    env = LBM.random(d=3, m=m, gamma=-1.5, seed=1)
    sequence = env.actions.sample(12, seed=2)
    whole = env.expected_rewards(sequence)
    for h in (0, 1, 2, 3, 7, 12):
        after = env.expected_rewards(sequence[h:], history=sequence[:h])
        np.testing.assert_allclose(after, whole[h:], rtol=1e-12, atol=1e-14)


def test_only_the_last_m_of_the_history_count() -> None:
    env = LBM.random(d=3, m=2, seed=1)
    actions, history = env.actions.sample(4, seed=2), env.actions.sample(5, seed=3)
    np.testing.assert_array_equal(
        env.expected_rewards(actions, history), env.expected_rewards(actions, history[-2:])
    )
    np.testing.assert_array_equal(env.memory_matrix(history), env.memory_matrix(history[-2:]))
    forever = dataclasses.replace(env, m=math.inf)
    assert not np.allclose(
        forever.expected_rewards(actions, history), forever.expected_rewards(actions, history[-2:])
    )


def test_a_short_history_is_padded_with_zeros() -> None:
    env = LBM.random(d=3, m=4, seed=1)
    actions, history = env.actions.sample(4, seed=2), env.actions.sample(1, seed=3)
    padded = np.vstack([np.zeros((3, 3)), history])
    np.testing.assert_allclose(
        env.expected_rewards(actions, history), env.expected_rewards(actions, padded), rtol=1e-12, atol=1e-15
    )
    np.testing.assert_array_equal(
        env.expected_rewards(actions), env.expected_rewards(actions, history=np.empty((0, 3)))
    )


def test_arguments_are_left_alone_and_may_have_any_layout() -> None:
    env = LBM.random(d=3, seed=1)
    actions = env.actions.sample(6, seed=2)
    expected = env.expected_rewards(actions)
    frozen = actions.copy()
    frozen.flags.writeable = False
    for same in (frozen, np.asfortranarray(actions), np.repeat(actions, 2, axis=0)[::2], actions.tolist()):
        np.testing.assert_array_equal(env.expected_rewards(same), expected)
    np.testing.assert_array_equal(
        env.expected_rewards(actions, actions[3:]), env.expected_rewards(frozen, frozen[3:])
    )
    np.testing.assert_array_equal(actions, frozen)


def test_a_singular_A0_may_rise() -> None:
    env = LBM([0.6, 0.8], m=1, gamma=2.0, A0=np.diag([1.0, 0.0]))
    np.testing.assert_allclose(env.expected_rewards([[0.0, 1.0], [0.0, 1.0]]), [0.0, 0.8], atol=1e-15)
    np.testing.assert_allclose(env.memory_matrix(), np.diag([1.0, 0.0]), atol=1e-15)
    assert env.reward_bound == 4.0


def test_overflow_is_an_error() -> None:
    env = LBM([1.0], m=math.inf, gamma=200.0)
    assert env.reward_bound == math.inf
    assert LBM([0.0], m=math.inf, gamma=200.0).reward_bound == 0.0
    ones = np.ones((40, 1))
    assert np.isfinite(env.expected_rewards(ones[:30])).all()
    with pytest.raises(ValueError, match=r"actions must .* powers that overflow"):
        env.expected_rewards(ones)
    with pytest.raises(ValueError, match=r"history must .* powers that overflow"):
        env.memory_matrix(ones)
    with pytest.raises(ValueError, match=r"history must .* powers that overflow"):
        env.memory_matrix([[1e200]])


@pytest.mark.parametrize(
    ("A0", "m", "gamma", "power"),
    [
        (None, 2, -3.0, 1.0),
        (None, 2, 1.5, 3.0**1.5),
        (np.diag([0.5, 2.0]), 2, -3.0, 8.0),
        (np.diag([0.5, 2.0]), 2, 3.0, 64.0),
        (np.diag([0.5, 2.0]), math.inf, -3.0, 8.0),
        (np.diag([0.5, 2.0]), 2, 0.0, 1.0),
        (None, math.inf, 1.0, math.inf),
    ],
)
def test_reward_bound(A0: Any, m: float, gamma: float, power: float) -> None:
    assert LBM([0.3, 0.4], m, gamma, A0).reward_bound == pytest.approx(0.5 * power)
    assert not LBM([0.3, 0.4], 2, -3.0).is_stationary


def test_random_models() -> None:
    first, again, other = LBM.random(seed=5), LBM.random(seed=5), LBM.random(seed=6)
    assert first == again != other
    assert (first.d, first.m, first.gamma, first.actions) == (3, 2, -3.0, Ball(3))
    arms = Finite(np.eye(2))
    env = LBM.random(d=2, m=1, gamma=1.0, seed=np.random.default_rng(0), sigma=0.3, actions=arms)
    assert (env.sigma, env.actions) == (0.3, arms)
    rng = np.random.default_rng(1)
    thetas = np.array([LBM.random(d=3, seed=rng).theta for _ in range(3000)])
    np.testing.assert_allclose(np.linalg.norm(thetas, axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(thetas.T @ thetas / 3000, np.eye(3) / 3, atol=0.03)


@pytest.mark.parametrize("noise", ["gaussian", "uniform", "rademacher"])
def test_noise_has_the_moments_and_the_tail_of_sigma(noise: str) -> None:
    sigma, n = 0.3, 100_000
    env = LBM([1.0], sigma=sigma, noise=noise)
    eta = env.draw_noise(n, seed=0)
    assert eta.shape == (n,)
    assert abs(eta.mean()) < 4 * sigma / math.sqrt(n)
    assert eta.std() == pytest.approx(sigma, rel=0.01)
    kurtosis = {"gaussian": 3.0, "uniform": 1.8, "rademacher": 1.0}[noise]
    assert np.mean(eta**4) == pytest.approx(kurtosis * sigma**4, rel=0.05)
    bound = {"gaussian": math.inf, "uniform": sigma * math.sqrt(3.0), "rademacher": sigma}[noise]
    assert np.abs(eta).max() <= bound
    for s in (-4.0, -1.0, 1.0, 4.0):  # sub-Gaussian: E exp(s eta) <= exp(s^2 sigma^2 / 2)
        assert np.exp(s * eta).mean() <= math.exp(s**2 * sigma**2 / 2) * 1.02
    np.testing.assert_array_equal(eta[:0], env.draw_noise(0, seed=0))
    np.testing.assert_array_equal(env.draw_noise(5, seed=1), env.draw_noise(5, seed=np.random.default_rng(1)))
    assert not LBM([1.0], sigma=0.0, noise=noise).draw_noise(5, seed=0).any()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("theta", [1.0, 0.1]),
        ("theta", [[1.0, 0.0]]),
        ("theta", []),
        ("theta", [math.nan, 0.0]),
        ("m", -1),
        ("m", 1.5),
        ("m", math.nan),
        ("m", -math.inf),
        ("gamma", math.inf),
        ("gamma", math.nan),
        ("gamma", 1e4),
        ("A0", np.eye(3)),
        ("A0", [[1.0, 0.5], [0.0, 1.0]]),
        ("A0", -np.eye(2)),
        ("sigma", -0.1),
        ("sigma", math.nan),
        ("noise", "cauchy"),
        ("actions", Ball(3)),
        ("actions", Contextual(np.zeros((4, 2, 1)))),
    ],
)
def test_bad_parameters(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must"):
        LBM(**{"theta": [1.0, 0.0], name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("theta", "ab"), ("m", "2"), ("m", True), ("gamma", None), ("sigma", "0.1"), ("actions", np.eye(2))],
)
def test_parameters_of_the_wrong_type(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name} must"):
        LBM(**{"theta": [1.0, 0.0], name: value})


def test_a_negative_power_needs_a_regular_A0() -> None:
    with pytest.raises(ValueError, match="gamma must be >= 0 when A0 is singular"):
        LBM([1.0, 0.0], gamma=-1.0, A0=np.diag([1.0, 0.0]))


def test_bad_arguments() -> None:
    env = LBM([1.0, 0.0])
    for bad in ([1.0, 0.0], [[1.0]], [[math.nan, 0.0]]):
        with pytest.raises(ValueError, match="actions must"):
            env.expected_rewards(bad)
        with pytest.raises(ValueError, match="history must"):
            env.expected_rewards(np.eye(2), history=bad)
        with pytest.raises(ValueError, match="history must"):
            env.memory_matrix(bad)
    with pytest.raises(ValueError, match="n must"):
        env.draw_noise(-1)
    with pytest.raises(ValueError, match="d must"):
        LBM.random(d=0)
    with pytest.raises(ValueError, match="seed must"):
        LBM.random(seed=-1)


VARIANTS: list[dict[str, Any]] = [
    {},
    {"theta": [0.0, 1.0]},
    {"m": 3},
    {"m": math.inf},
    {"gamma": -1.0},
    {"A0": np.diag([1.0, 2.0])},
    {"sigma": 0.2},
    {"actions": Finite(np.eye(2))},
    {"noise": "uniform"},
]


def test_models_are_values() -> None:
    envs = [LBM(**{"theta": [1.0, 0.0], **variant}) for variant in VARIANTS]
    assert len(set(envs)) == len(envs)
    for env, variant in zip(envs, VARIANTS, strict=True):
        again = LBM(**{"theta": np.array([1, 0]), "A0": [[1, 0], [0, 1]], "actions": Ball(2), **variant})
        shown = eval(repr(env), {"LBM": LBM, "Ball": Ball, "Finite": Finite, "inf": math.inf})
        for twin in (again, shown, copy.copy(env), copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
            assert twin == env
            assert hash(twin) == hash(env)
            assert twin.reward_bound == env.reward_bound
            assert not twin.theta.flags.writeable
            assert not twin.A0.flags.writeable
    assert envs[0] != "something else"


def test_models_are_immutable() -> None:
    theta = np.array([1.0, 0.0])
    env = LBM(theta)
    theta[:] = 0.0
    assert env.theta.tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        env.theta[0] = 0.5
    with pytest.raises(ValueError, match="read-only"):
        env.A0[0, 0] = 0.5
    with pytest.raises(dataclasses.FrozenInstanceError):
        env.m = 3  # type: ignore[misc]
    assert dataclasses.replace(env, m=3) == LBM([1.0, 0.0], m=3)


def test_repr_shows_the_parameters() -> None:
    assert repr(LBM([1.0], m=math.inf)) == (
        "LBM(theta=[1.0], m=inf, gamma=-3.0, A0=[[1.0]], sigma=0.1, actions=Ball(d=1), noise='gaussian')"
    )
