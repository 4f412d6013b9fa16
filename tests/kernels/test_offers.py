"""What an offered arm is worth, against rewards computed from scratch."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fastlbm.kernels import offers
from fastlbm.kernels.rewards import make_model_params
from tests import naive, problems

pytestmark = pytest.mark.nojit


def feature(window: np.ndarray, gamma: float, A0: np.ndarray, a: np.ndarray) -> np.ndarray:
    return naive.power(A0 + window.T @ window, gamma) @ a


@pytest.mark.parametrize(
    ("d", "m", "gamma", "A0"),
    [(3, 2, -2.0, "default"), (2, 3, 1.5, "dense"), (4, 1, -0.5, "0.5"), (3, 0, 0.0, "default")],
)
def test_the_best_offer_is_that_of_all_futures(d: int, m: int, gamma: float, A0: str) -> None:
    rng = np.random.default_rng(d)
    matrix = problems.initial_matrix(A0, d, rng)
    matrix = np.eye(d) if matrix is None else matrix
    for _ in range(20):
        theta, V_inv, beta = rng.standard_normal(d), problems.precision(d, rng), float(rng.uniform(0, 1))
        recent, arms, pool = (problems.ball(n, d, rng).reshape(n, d) for n in (m, 7, 12))
        draws = rng.integers(12, size=(3, m, 4))
        model = make_model_params(theta, matrix, m, gamma)
        worth = []
        for a in arms:
            b = feature(recent, gamma, matrix, a)
            total = b @ theta + beta * math.sqrt(b @ V_inv @ b)
            for future in draws:
                window = np.vstack((recent, a))[1:]
                for numbers in future:
                    rewards = [feature(window, gamma, matrix, pool[k]) @ theta for k in numbers]
                    best = int(np.argmax(rewards))
                    total += rewards[best] / len(draws)
                    window = np.vstack((window, pool[numbers[best]]))[1:]
            worth.append(total)
        found = offers.best_offer(model, recent, V_inv, beta, arms, pool, draws)
        assert worth[found] == pytest.approx(max(worth), rel=1e-9)


def test_of_many_arms_the_most_promising_are_followed() -> None:
    rng = np.random.default_rng(0)
    d, m, K = 3, 1, offers.FOLLOWED + 20
    arms, theta, V_inv = problems.ball(K, d, rng), rng.standard_normal(d), problems.precision(d, rng)
    model = make_model_params(theta, np.eye(d), m, -1.0)
    recent, pool, draws = problems.ball(m, d, rng), problems.ball(5, d, rng), rng.integers(5, size=(2, m, 3))
    now = offers.optimistic_rewards(model, recent, V_inv, 0.3, arms)
    X = naive.power(np.eye(d) + recent.T @ recent, -1.0)
    B = arms @ X
    expected = B @ theta + 0.3 * np.sqrt(np.einsum("ki,ij,kj->k", B, V_inv, B))
    np.testing.assert_allclose(now, expected, rtol=1e-12, atol=1e-12)
    best = np.argsort(-now)[: offers.FOLLOWED]
    few = offers.best_offer(model, recent, V_inv, 0.3, np.ascontiguousarray(arms[best]), pool, draws)
    assert offers.best_offer(model, recent, V_inv, 0.3, arms, pool, draws) == best[few]
