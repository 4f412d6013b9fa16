"""Models as the kernels take them, and what the tests of rewards and of playing share."""

from __future__ import annotations

import math

import numpy as np

from fastlbm.kernels.noise import GAUSSIAN, RADEMACHER, UNIFORM
from fastlbm.kernels.rewards import History, ModelParams, make_model_params
from tests import naive, problems
from tests.naive import Array

MEMORIES = (0, 1, 2, 3, 4, 5, math.inf)
GAMMAS = (-3.0, -1.7, 0.0, 0.5, 1.0, 2.3)
MATRICES = ("default", "0.25", "corner", "dense", "0.0005")
NOISES = (GAUSSIAN, UNIFORM, RADEMACHER)


def matrix(kind: str, d: int) -> Array:
    A0 = problems.initial_matrix(kind, d, np.random.default_rng(d))
    return np.eye(d) if A0 is None else A0


def unit(d: int, seed: int = 0) -> Array:
    theta = np.random.default_rng([seed, d]).normal(size=d)
    return theta / np.linalg.norm(theta)


def a_model(
    d: int = 3,
    m: float = 2,
    gamma: float = -1.7,
    A0: str = "default",
    sigma: float = 0.0,
    noise: int = GAUSSIAN,
) -> ModelParams:
    return make_model_params(unit(d), matrix(A0, d), m, gamma, sigma, noise)


def block(n: int, d: int, seed: int = 0) -> Array:
    return problems.ball(n, d, np.random.default_rng([seed, n, d]))


def reference(model: ModelParams, actions: Array) -> Array:
    m = math.inf if model.m < 0 else model.m
    return naive.expected_rewards(model.theta, m, model.gamma, model.A0, actions)


def assert_close(result: Array, expected: Array) -> None:
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12 * (1.0 + np.abs(expected).max()))


def check_history(model: ModelParams, history: History, actions: Array) -> None:
    """The history is what was played."""
    if model.m < 0:
        assert history.recent.shape[0] == 0
        X = model.A0 + actions.T @ actions
        np.testing.assert_allclose(history.X, X, rtol=1e-12, atol=1e-12)
        return
    padded = np.vstack([np.zeros((model.m, len(model.theta))), actions])
    np.testing.assert_array_equal(history.recent, padded[len(padded) - model.m :])
    np.testing.assert_array_equal(history.X, model.A0)
