"""Blocks, against references, closed forms and the paper's instances."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fastlbm as lbm
from tests import naive

THETA = np.array([0.4963, 0.7682, 0.0885]) / np.linalg.norm([0.4963, 0.7682, 0.0885])


def belief(d: int, seed: int = 0, beta: float = 0.5) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((3 * d, d))
    theta = rng.standard_normal(d)
    return {
        "theta": theta / np.linalg.norm(theta),
        "V_inv": np.linalg.inv(np.eye(d) + data.T @ data),
        "beta": beta,
    }


# --- blocks on the ball --------------------------------------------------------------------------------


@pytest.mark.parametrize("optimism", ["O3M", "OM"])
@pytest.mark.parametrize(("d", "m", "L", "gamma"), [(3, 2, 8, -3.0), (2, 3, 5, -0.5), (4, 3, 6, -1.7)])
def test_a_plan_is_what_it_says(d: int, m: int, L: int, gamma: float, optimism: str) -> None:
    problem = {"m": m, "gamma": gamma, "optimism": optimism, **belief(d)}
    plan = lbm.plan_block(d=d, L=L, **problem)
    assert plan.actions.shape == (m + L, d)
    assert (np.linalg.norm(plan.actions, axis=1) <= 1.0 + 1e-12).all()
    value = naive.block_value(plan.actions, A0=None, **problem)
    assert plan.value == pytest.approx(value, rel=1e-9)
    assert plan.converged
    assert not plan.exact
    assert plan.evaluations > 0
    # No feasible direction goes up: the projected gradient vanishes.
    _, grad = lbm.block_ucb(plan.actions, **problem)
    moved = lbm.Ball(d).project(plan.actions + 1e-3 * grad / np.abs(grad).max())
    assert naive.block_value(moved, A0=None, **problem) <= value * (1.0 + 1e-5)


def test_the_papers_rotting_block() -> None:
    plan = lbm.best_block(lbm.LBM(THETA, m=2, gamma=-3.0), L=20)
    # One random start reaches 0.589 a step in the median, 200 of them 0.640.
    assert plan.value / 20 >= 0.6599


def test_om_block_is_planned_over_positions() -> None:
    d, m, L = 2, 1, 3
    rng = np.random.default_rng(0)
    theta = rng.standard_normal(d * (m + L))
    plan = lbm.plan_block(
        d=d, m=m, L=L, gamma=-1.0, theta=theta, V_inv=np.eye(len(theta)), beta=0.1, optimism="OM-Block"
    )
    starts = [
        naive.block_value(
            lbm.Ball(d).sample(m + L, seed=s), m, -1.0, theta, np.eye(len(theta)), 0.1, "OM-Block", None
        )
        for s in range(300)
    ]
    assert plan.value >= max(starts)


@pytest.mark.parametrize("A0", [None, np.diag([1.0, 0.0])])
def test_rising_blocks_reach_the_closed_form(A0: np.ndarray | None) -> None:
    env = lbm.LBM([0.6, 0.8], m=2, gamma=1.0, A0=A0)
    plan = lbm.best_block(env, L=5)
    along_theta = np.tile(env.theta, (7, 1))
    rewards = env.expected_rewards(along_theta[2:], history=along_theta[:2])
    if A0 is None:
        assert plan.value == pytest.approx(5 * 3.0, rel=1e-6)
    assert plan.value >= rewards.sum() - 1e-9


def test_same_seed_same_bits_other_seed_same_value() -> None:
    shape = {"d": 3, "m": 2, "gamma": -3.0, "L": 12, "theta": THETA}
    one, two = (lbm.plan_block(**shape, seed=7) for _ in range(2))
    np.testing.assert_array_equal(one.actions, two.actions)
    assert one.value == two.value
    assert one.evaluations == two.evaluations
    assert lbm.plan_block(**shape, seed=8).value == pytest.approx(one.value, rel=1e-3)


def test_replanning_from_the_previous_block_is_cheap_and_good() -> None:
    shape = {"d": 3, "m": 2, "gamma": -3.0, "L": 20}
    old, new = belief(3, seed=1, beta=1.0), belief(3, seed=1, beta=1.05)
    previous = lbm.plan_block(**shape, **old)
    cold = lbm.plan_block(**shape, **new)
    warm = lbm.plan_block(**shape, **new, previous=previous.actions)
    assert warm.value >= 0.995 * cold.value
    assert warm.evaluations <= cold.evaluations / 5


def test_work_can_be_bounded() -> None:
    shape = {"d": 3, "m": 2, "gamma": -3.0, "L": 20, "theta": THETA}
    free = lbm.plan_block(**shape)
    bounded = lbm.plan_block(**shape, starts=8, max_evaluations=100)
    assert bounded.evaluations < free.evaluations / 2
    assert bounded.value <= free.value * (1.0 + 1e-6)


# --- finite and contextual sets through the public face ----------------------------------------------


def test_finite_plans_are_exact_and_members() -> None:
    arms = lbm.Ball(2).sample(4, seed=0)
    problem = {"m": 1, "gamma": -2.0, **belief(2)}
    plan = lbm.plan_block(d=2, L=3, actions=lbm.Finite(arms), **problem)
    assert plan.exact
    assert lbm.Finite(arms).contains(plan.actions).all()
    index = np.indices((4,) * 4).reshape(4, -1).T
    best = max(naive.block_value(arms[i], optimism="O3M", A0=None, **problem) for i in index)
    assert plan.value == pytest.approx(best, rel=1e-12)


def test_contextual_plans_use_the_set_of_each_step() -> None:
    arms = lbm.Ball(2).sample(5 * 3, seed=1).reshape(5, 3, 2)
    plan = lbm.plan_block(d=2, m=1, L=4, gamma=-2.0, theta=[0.6, 0.8], actions=lbm.Contextual(arms))
    assert lbm.Contextual(arms).contains(plan.actions).all()
    with pytest.raises(ValueError, match="actions"):
        lbm.plan_block(d=2, m=1, L=5, gamma=-2.0, theta=[0.6, 0.8], actions=lbm.Contextual(arms))


# --- bad input ---------------------------------------------------------------------------------------

GOOD = {"d": 2, "m": 1, "gamma": -1.0, "L": 2, "theta": [1.0, 0.0]}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("L", {"L": 0}),
        ("L", {"L": 1.5}),
        ("m", {"m": -1}),
        ("m", {"m": math.inf}),
        ("d", {"d": 0}),
        ("theta", {"theta": [1.0]}),
        ("beta", {"beta": -1.0}),
        ("V_inv", {"beta": 1.0}),
        ("V_inv", {"beta": 1.0, "V_inv": -np.eye(2)}),
        ("V_inv", {"beta": 1.0, "V_inv": np.ones((2, 2))}),
        ("gamma", {"gamma": math.nan}),
        ("gamma", {"gamma": -1.0, "A0": np.diag([1.0, 0.0])}),
        ("gamma", {"gamma": 0.5, "A0": np.diag([1.0, 0.0])}),
        ("optimism", {"optimism": "UCB"}),
        ("previous", {"previous": np.zeros((2, 2))}),
        ("starts", {"starts": 0}),
        ("moves", {"moves": -1}),
        ("max_evaluations", {"max_evaluations": 0}),
        ("tolerance", {"tolerance": 0.0}),
        ("actions", {"actions": lbm.Ball(3)}),
        ("exact", {"exact": True}),
    ],
)
def test_bad_plans(name: str, change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=name):
        lbm.plan_block(**{**GOOD, **change})


def test_a_memory_without_end_has_no_block() -> None:
    endless = lbm.LBM([1.0, 0.0], m=math.inf, gamma=-1.0)
    with pytest.raises(ValueError, match="m must"):
        lbm.best_block(endless, L=3)
