"""Misfit: its p-values are those of F-tests, small where the model is wrong and only there."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

import fastlbm as lbm
from fastlbm.agents.misfit import Misfit, Stretch, explained, harmonic_mean, orthonormal
from tests import naive, problems
from tests.naive_weighing import fading_features

Array = np.ndarray
THETA = np.array([0.5, 0.8, 0.33])


def past(m: int, gamma: float, n: int = 400, sigma: float = 0.1, seed: int = 0, d: int = 3) -> Stretch:
    """Random actions in a world with this memory, all rewards seen."""
    rng = np.random.default_rng(seed)
    actions = problems.ball(n, d, rng)
    B = naive.features(np.concatenate((np.zeros((m, d)), actions)), m, gamma, None)
    theta = THETA if d == 3 else rng.normal(size=d)
    return seen_all(actions, B @ theta + sigma * rng.normal(size=n))


def seen_all(actions: Array, rewards: Array) -> Stretch:
    """No reward is missing, and nothing is a probe."""
    return Stretch(actions, rewards, np.full(len(actions), True), np.full(len(actions), False))


def p_value(stretch: Stretch, m: int, gamma: float) -> float:
    return Misfit([stretch], np.eye(stretch.actions.shape[1]), m, gamma).p_value()


def test_an_f_test() -> None:
    rng = np.random.default_rng(0)
    B, Z, y = rng.normal(size=(80, 3)), rng.normal(size=(80, 4)), rng.normal(size=80)
    y += 0.3 * Z[:, 2]

    def rest(X: Array) -> float:
        return float(np.square(y - X @ np.linalg.lstsq(X, y)[0]).sum())

    basis = orthonormal(B)
    whole, single = explained(basis, y - basis @ (basis.T @ y), Z, 0.0)
    less = rest(np.hstack((B, Z)))
    assert whole == pytest.approx(stats.f.sf((rest(B) - less) / 4 / (less / 73), 4, 73))
    ones = [rest(np.column_stack((B, z))) for z in Z.T]
    t = [math.sqrt((rest(B) - one) / (one / 76)) for one in ones]
    assert single == pytest.approx(4 * 2 * stats.t.sf(max(t), 76))


def test_what_is_spanned_already_explains_nothing() -> None:
    B, errors = np.eye(6)[:, :2], np.array([0.0, 0.0, 1.0, -1.0, 2.0, 0.5])
    assert explained(orthonormal(B), errors, B @ [[1.0], [2.0]], 0.0) == (1.0, 1.0)
    assert orthonormal(np.column_stack((B, B @ [1.0, 1e-9], np.zeros(6)))).shape == (6, 2)


def test_p_values_of_right_models_are_not_small() -> None:
    found = [
        p_value(past(m, g, seed=s), m, round(4 * g) / 4) for s in range(25) for m, g in ((2, -1.9), (1, 0.8))
    ]
    assert np.mean(np.array(found) < 0.1) <= 0.1 + 3 * math.sqrt(0.09 / 50)
    assert min(found) > 1e-4


def test_without_noise_a_grid_of_exponents_is_no_misfit() -> None:
    for gamma in (-2.1, 0.6):
        assert p_value(past(2, gamma, sigma=0.0), 2, round(4 * gamma) / 4) > 0.5


@pytest.mark.parametrize(("m", "gamma"), [(1, -2.0), (3, -1.0), (0, 0.0)])
def test_another_memory_is_a_misfit(m: int, gamma: float) -> None:
    assert p_value(past(2, -2.0), m, gamma) < 1e-6


def test_a_theta_that_changes_and_errors_that_last() -> None:
    right = past(1, -2.0)
    drift = right.rewards + np.where(np.arange(400) > 200, 0.2, 0.0) * right.actions[:, 0]
    assert p_value(right._replace(rewards=drift), 1, -2.0) < 1e-6
    lasting = right.rewards + 0.2 * np.sin(np.arange(400) / 9.0)
    assert p_value(right._replace(rewards=lasting), 1, -2.0) < 1e-6


def test_coordinates_that_tire_each_by_itself() -> None:
    right, powers = past(0, 0.0, n=1000, sigma=0.05), np.array([-3.0, -1.5, -0.5])
    noise = right.rewards - right.actions @ THETA
    used = np.array([np.square(right.actions[max(t - 2, 0) : t]).sum(axis=0) for t in range(1000)])
    rewards = (right.actions * (1.0 + used) ** powers) @ THETA + noise
    test = Misfit([right._replace(rewards=rewards)], np.eye(3), 0, 0.0)
    columns, now = test._by_coordinate(2), right.actions[test.lags :]
    np.testing.assert_allclose(columns[:, :3], now / (1.0 + used[test.lags :]), atol=1e-12)
    np.testing.assert_allclose(columns[:, 3:], now / (1.0 + used[test.lags :]) ** 3, atol=1e-12)
    errors = test.y - now @ np.linalg.lstsq(now, test.y)[0]
    assert explained(orthonormal(now), errors, columns, 0.0)[0] < 1e-12
    assert test.p_value() < 1e-12


def test_what_was_not_seen_does_not_count() -> None:
    right = past(2, -2.0)
    seen = np.random.default_rng(1).random(400) < 0.7
    noise = np.where(seen, right.rewards, 1e6)
    stretch = right._replace(rewards=noise, seen=seen)
    assert p_value(stretch, 2, -2.0) > 1e-3
    assert p_value(stretch, 1, -2.0) < 1e-4
    nothing = stretch._replace(seen=np.zeros(400, dtype=bool))
    assert p_value(nothing, 1, -2.0) == 1.0


@pytest.mark.parametrize(("m", "decay"), [(math.inf, 0.7), (math.inf, 0.9), (3, 0.6)])
def test_memories_that_fade(m: float, decay: float) -> None:
    env = lbm.LBM(THETA, m=m, gamma=-2.0, decay=decay)
    rng = np.random.default_rng(4)
    actions = problems.ball(900, 3, rng)
    rewards = env.expected_rewards(actions) + 0.03 * rng.standard_normal(900)
    # Two stretches: what came before the second is not known.
    ends = (slice(0, 400), slice(450, 900))
    parts = [seen_all(actions[end], rewards[end]) for end in ends]

    def p_value_of(m: float, gamma: float, decay: float = 1.0) -> float:
        return Misfit(parts, np.eye(3), m, gamma, decay=decay).p_value()

    assert p_value_of(m, -2.0, decay) > 1e-3
    # Between decays on offer, and between exponents.
    assert p_value_of(m, -1.8, decay - 0.04) > 1e-3
    assert p_value_of(2, -2.0) < 1e-6
    test = Misfit(parts, np.eye(3), m, -2.0, decay=decay)
    B = fading_features(actions, m, -2.0, decay)
    expected = np.concatenate((B[test.lead : 400], B[450 + test.lead :]))
    np.testing.assert_allclose(test._features(-2.0), expected, atol=2e-3)
    np.testing.assert_allclose(test._features(-2.0)[: 400 - test.lead], B[test.lead : 400], atol=1e-12)
    assert test.decay == decay
    test._model()
    assert test.gamma == pytest.approx(-2.0, abs=0.2)
    assert test.decay == pytest.approx(decay, abs=0.03)


def test_older_actions_that_count_for_more_are_no_decay() -> None:
    """Nor are they nearly one: the derivative by the decay would explain them, to first order."""
    rng = np.random.default_rng(0)
    actions, rewards = problems.ball(600, 3, rng), np.zeros(600)
    for t in range(600):
        S = np.eye(3)
        for weight, s in ((1.0, 1), (1.6, 2)):
            if t >= s:
                S += weight * np.outer(actions[t - s], actions[t - s])
        rewards[t] = actions[t] @ np.linalg.inv(S) @ THETA + 0.05 * rng.normal()
    stretch = seen_all(actions, rewards)
    for decay in (0.95, 0.9):
        assert Misfit([stretch], np.eye(3), 2, -1.0, decay=decay).p_value() < 1e-4


def test_probes_are_held_against_what_the_rest_predicts() -> None:
    right, probed = past(2, -2.0), np.random.default_rng(1).random(400) < 0.1
    test = Misfit([right._replace(probed=probed)], np.eye(3), 2, -2.0)
    B, at = test._features(-2.0), probed[test.lead :]
    basis = orthonormal(B)
    errors = test.y - basis @ (basis.T @ test.y)
    [each] = [group for group in test._groups(THETA, errors) if group.shape[1] == at.sum()]

    def rest(X: Array, y: Array) -> float:
        return float(np.square(y - X @ np.linalg.lstsq(X, y)[0]).sum())

    # Chow's test: the errors of all together beside those of the others alone.
    less, q, f = rest(B[~at], test.y[~at]), int(at.sum()), int((~at).sum()) - 3
    chow = stats.f.sf((rest(B, test.y) - less) / q / (less / f), q, f)
    assert explained(basis, errors, each, 0.0)[0] == pytest.approx(chow)
    assert test.p_value() > 1e-3
    # What is wrong there alone is found, if it is known where to look.
    wrong = right.rewards + np.where(probed, 0.25 * np.sign(np.sin(np.arange(400.0))), 0.0)
    unknown = p_value(right._replace(rewards=wrong), 2, -2.0)
    known = p_value(right._replace(rewards=wrong, probed=probed), 2, -2.0)
    assert known < 1e-6 < unknown


def test_a_reward_that_is_bent_and_one_that_depends_on_the_sign_of_the_last_action() -> None:
    right = past(2, -2.0, n=600)
    noise = right.rewards - past(2, -2.0, n=600, sigma=0.0).rewards
    bent = np.tanh(2.0 * (right.rewards - noise)) + noise
    assert p_value(right._replace(rewards=bent), 2, -2.0) < 1e-6
    signs = right.rewards + 0.3 * right.actions[:, 0] * np.roll(right.actions[:, 1], 1)
    assert p_value(right._replace(rewards=signs), 2, -2.0) < 1e-6
    many = Misfit([past(2, -2.0, d=9)], np.eye(9), 2, -2.0)
    now, last = many._actions(0), many._actions(1)
    theta = np.arange(9.0)
    columns = many._beside_last(theta)
    np.testing.assert_allclose(columns[:, :9], np.einsum("ti,tj,j->ti", now, last, theta))
    np.testing.assert_allclose(columns[:, 9:], np.einsum("ti,tj,i->tj", now, last, theta))


def test_the_first_steps_count_if_nothing_was_played_before() -> None:
    whole = past(2, -2.0)
    test = Misfit([whole], np.eye(3), 2, -2.0, fresh=True)
    B = naive.features(np.concatenate((np.zeros((2, 3)), whole.actions)), 2, -2.0, None)
    np.testing.assert_allclose(test._features(-2.0), B, atol=1e-12)
    np.testing.assert_array_equal(test.y, whole.rewards)
    assert test.p_value() > 1e-3
    fades = Misfit([whole], np.eye(3), math.inf, -2.0, decay=0.9, fresh=True)
    np.testing.assert_allclose(
        fades._features(-2.0), fading_features(whole.actions, math.inf, -2.0, 0.9), atol=1e-12
    )


def test_the_harmonic_mean_of_p_values() -> None:
    assert harmonic_mean([0.2, 0.2, 0.2]) == pytest.approx(0.2)
    assert harmonic_mean([1e-6, 1.0, 3.0]) == pytest.approx(3e-6, rel=1e-5)
    assert harmonic_mean([2.0, 1.0]) == 1.0
    assert harmonic_mean([0.0, 1.0]) < 1e-200


def test_windows_do_not_reach_over_a_gap() -> None:
    whole = past(2, -2.0, n=900)
    parts = [Stretch(*(a[:400] for a in whole)), Stretch(*(a[500:] for a in whole))]
    test = Misfit(parts, np.eye(3), 2, -2.0)
    B = naive.features(np.concatenate((np.zeros((2, 3)), whole.actions)), 2, -2.0, None)
    lags = test.lags
    np.testing.assert_allclose(
        test._features(-2.0), np.concatenate((B[lags:400], B[500 + lags :])), atol=1e-12
    )
    errors = np.arange(1.0, 1.0 + len(test.y))
    before = test._errors_before(errors)
    first = 400 - lags
    assert before[first].tolist() == [0.0] * 30
    assert before[first - 1].tolist() == errors[first - 31 : first - 1].tolist()


@pytest.mark.parametrize("reward", [0.0, 1e-300, 1.0, 1e60, 1e99])
def test_rewards_that_never_differ(reward: float) -> None:
    """Nothing to explain, and nothing that overflows or divides by zero is told."""
    live = lbm.Auto().start(lbm.Ball(2), seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.filterwarnings("ignore", message="after .* steps the rewards do not")
        for _ in range(300):
            live.act()
            live.update(reward)


def test_singular_matrices_have_one_exponent() -> None:
    rng = np.random.default_rng(0)
    arms = problems.ball(300, 2, rng)
    env = lbm.LBM([0.6, 0.8], m=2, gamma=1.0, A0=np.diag([1.0, 0.0]))
    y = env.expected_rewards(arms) + 0.1 * rng.normal(size=300)
    assert Misfit([seen_all(arms, y)], env.A0, 2, 1.0).p_value() > 1e-3
