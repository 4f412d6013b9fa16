"""Plans, cycles and bounds on OPT, against references, closed forms and the paper's instances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


# --- cycles ------------------------------------------------------------------------------------------


def steady(env: lbm.LBM, cycle: np.ndarray) -> float:
    """Average reward of a cycle after many turns."""
    turns = np.tile(cycle, (12, 1))
    return float(env.expected_rewards(turns)[-len(cycle) :].mean())


@given(period=st.integers(1, 6), m=st.integers(0, 3), seed=st.integers(0, 5))
@settings(max_examples=15, deadline=None)
def test_the_average_of_a_cycle_is_what_playing_it_pays(period: int, m: int, seed: int) -> None:
    env = lbm.LBM.random(d=3, m=m, gamma=-2.0, seed=seed)
    cycle = lbm.best_cycle(env, period=period)
    assert cycle.actions.shape == (period, 3)
    assert cycle.average == pytest.approx(steady(env, cycle.actions), rel=1e-9)


def test_best_period() -> None:
    env = lbm.LBM(THETA, m=2, gamma=-3.0)
    best = lbm.best_cycle(env, max_period=13)
    assert best.average >= 0.6498
    assert len(best.actions) == 13
    assert lbm.best_cycle(env, max_period=4).average == pytest.approx(0.63270, abs=1e-4)


# --- OPT ---------------------------------------------------------------------------------------------


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


def test_stationary_is_closed_form() -> None:
    for env in (lbm.LBM(THETA, m=0, gamma=-3.0), lbm.LBM(THETA, m=4, gamma=0.0)):
        bounds = lbm.opt_bounds(env, T=10)
        assert bounds.exact
        assert bounds.lower == pytest.approx(10.0, rel=1e-12)


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


def test_bad_cycles_and_horizons() -> None:
    env = lbm.LBM([1.0, 0.0], m=1, gamma=-1.0)
    endless = lbm.LBM([1.0, 0.0], m=math.inf, gamma=-1.0)
    contextual = lbm.LBM([1.0, 0.0], m=1, gamma=-1.0, actions=lbm.Contextual(np.zeros((4, 2, 2))))
    with pytest.raises(ValueError, match="T must"):
        lbm.opt_bounds(env, T=0)
    with pytest.raises(ValueError, match="period"):
        lbm.best_cycle(env, period=0)
    with pytest.raises(ValueError, match="m must"):
        lbm.best_block(endless, L=3)
    with pytest.raises(ValueError, match="Contextual"):
        lbm.best_cycle(contextual, period=2)
    with pytest.raises(ValueError, match="T=9"):
        lbm.opt_bounds(contextual, T=9)
