"""The references check each other: NumPy, SciPy, fifty digits, and cases by hand."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg

from . import naive, problems
from .naive import GAMMAS, OPTIMISM, Problem

EVERY_OPTIMISM = ("none", *OPTIMISM)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_power_against_scipy(d: int, gamma: float) -> None:
    X = naive.memory_matrix(problems.ball(4, d, np.random.default_rng(d)), None)
    np.testing.assert_allclose(
        naive.power(X, gamma), scipy.linalg.fractional_matrix_power(X, gamma), atol=1e-12
    )


@pytest.mark.parametrize("gamma", [-2, -1, 0, 1, 3])
def test_power_against_products(gamma: int) -> None:
    X = naive.memory_matrix(problems.ball(4, 3, np.random.default_rng(0)), None)
    np.testing.assert_allclose(naive.power(X, gamma), np.linalg.matrix_power(X, gamma), atol=1e-12)


def test_zero_to_the_zero_is_one() -> None:
    np.testing.assert_array_equal(naive.power(np.zeros((2, 2)), 0.0), np.eye(2))
    np.testing.assert_allclose(naive.power(np.diag([4.0, 0.0]), 0.5), np.diag([2.0, 0.0]))


def test_tiny_negative_eigenvalues_are_zero() -> None:
    np.testing.assert_array_equal(naive.power(np.diag([1.0, -1e-18]), 0.5), np.diag([1.0, 0.0]))


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("A0", ["default", "0.25", "corner", "dense"])
def test_features_against_scipy(gamma: float, A0: str) -> None:
    problem = problems.problem(d=3, m=2, L=4, A0=A0)
    a, matrix = problem["actions"], np.eye(3) if problem["A0"] is None else problem["A0"]
    expected = [
        scipy.linalg.fractional_matrix_power(matrix + a[j - 2 : j].T @ a[j - 2 : j], gamma) @ a[j]
        for j in range(2, 6)
    ]
    np.testing.assert_allclose(naive.features(a, 2, gamma, problem["A0"]), expected, atol=1e-12)


def test_expected_rewards_by_hand() -> None:
    actions = np.array([[1.0], [0.5], [0.25]])
    rewards = naive.expected_rewards(np.array([2.0]), 1, -1.0, None, actions)
    np.testing.assert_allclose(rewards, [2.0, 1.0 / 2.0, 0.5 / 1.25])
    rewards = naive.expected_rewards(
        np.array([2.0]), math.inf, -1.0, None, actions, history=np.array([[1.0], [1.0]])
    )
    np.testing.assert_allclose(rewards, [2.0 / 3.0, 1.0 / 4.0, 0.5 / 4.25])
    rewards = naive.expected_rewards(np.array([2.0]), 0, -1.0, np.array([[4.0]]), actions)
    np.testing.assert_allclose(rewards, [0.5, 0.25, 0.125])


@pytest.mark.parametrize("m", [0, 1, 3])
def test_only_the_last_m_actions_count(m: int) -> None:
    rng = np.random.default_rng(m)
    theta, history, actions = rng.normal(size=3), problems.ball(6, 3, rng), problems.ball(5, 3, rng)
    rewards = naive.expected_rewards(theta, m, -2.0, None, actions, history)
    padded = np.vstack([history[6 - m :], actions])
    np.testing.assert_allclose(rewards, naive.features(padded, m, -2.0, None) @ theta)
    from_zeros = np.vstack([np.zeros((m, 3)), actions])
    np.testing.assert_allclose(
        naive.expected_rewards(theta, m, -2.0, None, actions),
        naive.features(from_zeros, m, -2.0, None) @ theta,
    )


def test_block_values_by_hand() -> None:
    actions = np.array([[1.0], [0.5], [-1.0]])
    b = [0.25, -0.8]  # 0.5 / (1 + 1), -1 / (1 + 0.25)
    common = {"actions": actions, "m": 1, "gamma": -1.0, "A0": None, "beta": 2.0}
    theta, V_inv = np.array([3.0]), np.array([[4.0]])
    mean = 3 * (b[0] + b[1])
    for optimism, expected in {"none": mean, "O3M": mean + 4 * 1.05, "OM": mean + 4 * 0.55}.items():
        value = naive.block_value(theta=theta, V_inv=V_inv, optimism=optimism, **common)
        assert value == pytest.approx(expected)
    long = np.array([5.0, 3.0, 3.0])
    value = naive.block_value(theta=long, V_inv=4 * np.eye(3), optimism="OM-Block", **common)
    assert value == pytest.approx(5 + 3 * (b[0] + b[1]) + 4 * math.sqrt(1 + b[0] ** 2 + b[1] ** 2))


def test_one_window_without_memory_is_the_same_for_all() -> None:
    values = [
        naive.block_value(**problems.problem(d=3, m=0, L=1, optimism=optimism)) for optimism in OPTIMISM
    ]
    assert values == pytest.approx([values[0]] * len(OPTIMISM))


@pytest.mark.parametrize("gamma", GAMMAS)
def test_loewner_against_fifty_digits(gamma: float) -> None:
    lam = np.array([0.25, 0.25 + 1e-15, 0.25 + 1e-9, 1.0, 1.0 + 1e-5, 7.0])
    with mp.workdps(50):
        points = [mp.mpf(x) for x in lam.tolist()]
        exact = [
            [gamma * x ** (gamma - 1) if x == y else (x**gamma - y**gamma) / (x - y) for x in points]
            for y in points
        ]
        reference = np.array(exact, dtype=np.float64)
    np.testing.assert_allclose(naive.loewner(lam, gamma), reference, rtol=2e-14)


@pytest.mark.parametrize("gamma", [1.0, 1.5, 2.0])
def test_loewner_at_zero(gamma: float) -> None:
    secant = 4.0 ** (gamma - 1.0)
    expected = [[1.0 if gamma == 1.0 else 0.0, secant], [secant, gamma * secant]]
    np.testing.assert_allclose(naive.loewner(np.array([0.0, 4.0]), gamma), expected)


def small_problems(gamma: float, optimism: str) -> list[Problem]:
    common = {"gamma": gamma, "optimism": optimism}
    return [
        problems.problem(d=1, m=2, L=2, **common),
        problems.problem(d=2, m=1, L=2, A0="dense", **common),
        problems.problem(d=3, m=1, L=1, A0="0.25", **common),
        problems.problem(m=1, actions=[[0.0, 0.0], [0.6, 0.8]], **common),
    ]


@pytest.mark.parametrize("optimism", EVERY_OPTIMISM)
@pytest.mark.parametrize("gamma", [-3.0, -0.5, 0.0, 2.0, 3.7])
def test_gradient_is_the_slope_in_fifty_digits(gamma: float, optimism: str) -> None:
    for problem in small_problems(gamma, optimism):
        expected = naive.differences_mp(problem)
        _, grad = naive.block_ucb_mp(**problem)
        np.testing.assert_allclose(grad, expected, rtol=1e-15, atol=1e-18)


@pytest.mark.parametrize(
    "name",
    [
        "empty history",
        "orthonormal history",
        "gap 1e-07, A0 default",
        "gap 1e-15, A0 corner",
        "almost parallel to 1e-13",
    ],
)
def test_gradient_is_the_slope_in_fifty_digits_at_equal_eigenvalues(name: str) -> None:
    problem = problems.hard_problems(-2.5, "O3M")[name]
    _, grad = naive.block_ucb_mp(**problem)
    np.testing.assert_allclose(grad, naive.differences_mp(problem), rtol=1e-15, atol=1e-18)


@pytest.mark.parametrize("optimism", EVERY_OPTIMISM)
def test_values_agree(optimism: str) -> None:
    for gamma in GAMMAS:
        for problem in small_problems(gamma, optimism):
            value = naive.block_value(**problem)
            assert naive.block_ucb(**problem)[0] == pytest.approx(value, rel=1e-13, abs=1e-14)
            assert naive.block_ucb_mp(**problem)[0] == pytest.approx(value, rel=1e-13, abs=1e-14)
            with mp.workdps(50):
                actions = [[mp.mpf(x) for x in row] for row in problem["actions"].tolist()]
                exact = naive.block_value_mp(actions, problem)
            assert naive.block_ucb_mp(**problem)[0] == pytest.approx(float(exact), rel=1e-15, abs=1e-17)


@pytest.mark.parametrize("optimism", EVERY_OPTIMISM)
@pytest.mark.parametrize("gamma", [-3.0, 0.5])
def test_numpy_gradient_in_hard_cases(gamma: float, optimism: str) -> None:
    for name, problem in problems.hard_problems(gamma, optimism).items():
        value, grad = naive.block_ucb(**problem)
        value_mp, grad_mp = naive.block_ucb_mp(**problem)
        scale = np.abs(grad_mp).max()
        assert abs(value - value_mp) <= 1e-12 * max(abs(value_mp), scale), name
        assert np.abs(grad - grad_mp).max() <= 1e-12 * scale, name


@pytest.mark.parametrize("optimism", EVERY_OPTIMISM)
@pytest.mark.parametrize("gamma", [0.0, 1.0, 1.5, 3.7])
def test_numpy_gradient_with_singular_matrices(gamma: float, optimism: str) -> None:
    for name, problem in problems.singular_problems(gamma, optimism).items():
        value, grad = naive.block_ucb(**problem)
        value_mp, grad_mp = naive.block_ucb_mp(**problem)
        scale = np.abs(grad_mp).max()
        assert abs(value - value_mp) <= 1e-12 * max(abs(value_mp), scale), name
        assert np.abs(grad - grad_mp).max() <= 1e-12 * scale, name


@pytest.mark.parametrize("A0", ["default", "corner"])
def test_smaller_eigenproblems_are_exact(A0: str) -> None:
    problem = problems.problem(d=6, m=2, L=1, A0=A0)
    _, grad = naive.block_ucb_mp(**problem)
    np.testing.assert_allclose(grad, naive.differences_mp(problem), rtol=1e-15, atol=1e-18)


def test_double_differences() -> None:
    problem = problems.problem(d=3, m=2, L=2, A0="dense")
    np.testing.assert_allclose(naive.differences(problem), naive.block_ucb_mp(**problem)[1], atol=1e-7)
