"""A memory that fades, in the model: rewards, matrices, bounds and keys, against the definition."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastlbm as lbm
from tests import naive, problems


@settings(max_examples=80, deadline=None)
@given(
    d=st.integers(1, 5),
    m=st.one_of(st.integers(0, 8), st.just(math.inf)),
    gamma=st.one_of(st.sampled_from(naive.GAMMAS), st.floats(-4.0, 4.0)),
    decay=st.floats(1e-3, 1.0),
    A0=st.sampled_from(["default", "0.25", "dense"]),
    h=st.integers(0, 12),
    seed=st.integers(0, 10**6),
)
def test_rewards_are_those_of_the_definition(
    d: int, m: float, gamma: float, decay: float, A0: str, h: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    matrix = problems.initial_matrix(A0, d, rng)
    theta, actions, past = problems.ball(1, d, rng)[0], problems.ball(9, d, rng), problems.ball(h, d, rng)
    env = lbm.LBM(theta, m=m, gamma=gamma, A0=matrix, decay=decay)
    found = env.expected_rewards(actions, history=past)
    expected = naive.expected_rewards(theta, m, gamma, matrix, actions, past, decay)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * max(1.0, np.abs(expected).max()))
    assert np.abs(found).max() <= env.reward_bound * (1.0 + 1e-12)
    window = past[int(max(len(past) - m, 0)) :]
    X = naive.power(naive.memory_matrix(window.reshape(-1, d), matrix, decay), gamma)
    np.testing.assert_allclose(env.memory_matrix(past), X, rtol=1e-9, atol=1e-11 * np.abs(X).max())
    np.testing.assert_allclose(actions[0] @ X @ theta, found[0], rtol=1e-9, atol=1e-11 * np.abs(X).max())


def test_an_episode_has_the_same_bits() -> None:
    for m in (2, 5, math.inf):
        env = lbm.LBM([0.6, 0.0, 0.8], m=m, gamma=-2.0, decay=0.8, sigma=0.0)
        run = lbm.run(env, lbm.Random(), T=40, seed=3, record=40, keep_actions=True)
        np.testing.assert_array_equal(np.cumsum(env.expected_rewards(run.actions)), run.reward)


def test_decay_1_is_the_paper() -> None:
    plain = lbm.LBM([0.6, 0.8], m=2, gamma=-2.0)
    same = lbm.LBM([0.6, 0.8], m=2, gamma=-2.0, decay=1.0)
    other = lbm.LBM([0.6, 0.8], m=2, gamma=-2.0, decay=0.5)
    assert plain == same
    assert plain._key() == same._key()
    assert repr(plain) == repr(same)
    assert "decay" not in repr(plain)
    assert other != plain
    assert "decay=0.5" in repr(other)
    assert pickle.loads(pickle.dumps(other)) == other


def test_the_bound_is_the_sum_of_the_weights() -> None:
    assert lbm.LBM([1.0, 0.0], m=math.inf, gamma=2.0, decay=0.5).reward_bound == 9.0
    assert lbm.LBM([1.0, 0.0], m=2, gamma=2.0, decay=0.5).reward_bound == pytest.approx(2.5**2)
    assert lbm.LBM([1.0, 0.0], m=math.inf, gamma=2.0).reward_bound == math.inf


@pytest.mark.parametrize("decay", [0.0, -0.5, 1.5, math.nan, math.inf])
def test_other_decays_are_refused(decay: float) -> None:
    with pytest.raises(ValueError, match="decay must be a number in"):
        lbm.LBM([1.0, 0.0], decay=decay)


def test_no_number_is_refused() -> None:
    with pytest.raises(TypeError, match="decay must be a real number"):
        lbm.LBM([1.0, 0.0], decay="0.5")
