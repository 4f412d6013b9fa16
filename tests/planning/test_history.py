"""plan_block with a history: L actions after what was played, against brute force and against the model."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import fastlbm as lbm
from tests import problems

THETA = np.array([0.5, 0.8, 0.1])


@pytest.mark.parametrize(("m", "gamma"), [(1, -1.5), (2, -3.0), (4, -2.0), (2, 1.0)])
def test_the_value_is_what_follows_the_history(m: int, gamma: float) -> None:
    env, history = lbm.LBM(THETA, m=m, gamma=gamma), lbm.Ball(3).sample(m, seed=m)
    plan = lbm.plan_block(d=3, m=m, gamma=gamma, L=7, theta=THETA, history=history)
    assert plan.actions.shape == (7, 3)
    assert plan.value == pytest.approx(env.expected_rewards(plan.actions, history=history).sum(), rel=1e-12)
    # As good as what plans from anywhere find for this history, and as a plan that starts from it.
    other = lbm.plan_block(d=3, m=m, gamma=gamma, L=7, theta=THETA).actions[m:]
    assert plan.value >= env.expected_rewards(other, history=history).sum() - 1e-9
    again = lbm.plan_block(d=3, m=m, gamma=gamma, L=7, theta=THETA, history=history, previous=plan.actions)
    assert again.value >= plan.value - 1e-9
    assert again.evaluations < plan.evaluations


@pytest.mark.parametrize("bonus", [0.0, 0.6])
@pytest.mark.parametrize("kind", ["finite", "scheduled"])
def test_on_arms_it_is_brute_force(kind: str, bonus: float) -> None:
    m, L, K = 2, 4, 3
    rng = np.random.default_rng(0)
    V_inv = 0.2 * np.eye(3) + 0.1
    for seed in range(3):
        arms = problems.ball(L * K, 3, rng).reshape(L, K, 3)
        arms = arms[0] if kind == "finite" else arms
        actions = lbm.Finite(arms) if kind == "finite" else lbm.Scheduled(arms)
        history = problems.ball(m, 3, rng) if seed else np.zeros((m, 3))
        problem = {"m": m, "gamma": -1.5, "theta": THETA, "V_inv": V_inv, "beta": bonus}
        plan = lbm.plan_block(d=3, L=L, history=history, actions=actions, **problem)
        sets = np.broadcast_to(arms, (L, K, 3))
        values = [
            lbm.block_ucb(np.concatenate((history, sets[np.arange(L), list(choice)])), **problem)[0]
            for choice in itertools.product(range(K), repeat=L)
        ]
        assert plan.value == pytest.approx(max(values), rel=1e-10)
        assert plan.exact
        np.testing.assert_array_equal(plan.actions, sets[np.arange(L), plan.indices])


def test_a_bad_history_is_named() -> None:
    problem = {"d": 3, "m": 2, "gamma": -1.0, "L": 3, "theta": THETA}
    with pytest.raises(ValueError, match=r"history must have shape \(2, 3\)"):
        lbm.plan_block(**problem, history=np.zeros((3, 3)))
    with pytest.raises(ValueError, match="history must lie in the unit ball"):
        lbm.plan_block(**problem, history=np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"previous must have shape \(3, 3\)"):
        lbm.plan_block(**problem, history=np.zeros((2, 3)), previous=np.zeros((5, 3)))
