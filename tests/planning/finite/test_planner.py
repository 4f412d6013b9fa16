"""Blocks of arms, against the enumeration of every block."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.kernels.optimism import O3M, OM, OM_BLOCK
from fastlbm.planning.finite import FinitePlanner
from tests import naive
from tests.planning.finite.problems import (
    INSTANCES,
    NAMES,
    brute_force,
    check_plan,
    codes,
    make,
    plan_of,
    planner_of,
    rewards_of_cycle,
    sets_of,
    value_of,
    window_features,
)

# --- additive plans -----------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("beta", [0.0, 0.7])
@pytest.mark.parametrize("instance", INSTANCES)
def test_additive_plans_are_exact(instance: tuple[Any, ...], beta: float) -> None:
    problem = make(*instance, kind=O3M) | {"beta": beta}
    plan = plan_of(problem, require_exact=True)
    _, values = brute_force(problem)
    check_plan(problem, plan)
    assert plan.exact
    assert plan.value == pytest.approx(values.max(), rel=1e-12)
    assert plan.upper == pytest.approx(values.max(), rel=1e-12)


@pytest.mark.nojit
@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("instance", INSTANCES[:6])
def test_without_bonus_every_kind_is_exact(instance: tuple[Any, ...], kind: int) -> None:
    problem = make(*instance, kind=kind) | {"beta": 0.0, "V_inv": None}
    plan = plan_of(problem)
    _, values = brute_force(problem)
    check_plan(problem, plan)
    assert plan.exact
    assert plan.value == pytest.approx(values.max(), rel=1e-12)


@settings(max_examples=60)
@given(
    K=st.integers(1, 4),
    m=st.integers(0, 3),
    L=st.integers(1, 4),
    gamma=st.sampled_from(naive.GAMMAS),
    beta=st.sampled_from([0.0, 0.3, 2.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_additive_plan_is_exact(K: int, m: int, L: int, gamma: float, beta: float, seed: int) -> None:
    problem = make(K, m, L, 2, gamma, "dense" if seed % 2 else "default", O3M, seed) | {"beta": beta}
    plan = plan_of(problem)
    _, values = brute_force(problem)
    check_plan(problem, plan)
    assert plan.value == pytest.approx(values.max(), rel=1e-12)


@pytest.mark.nojit
def test_the_largest_enumeration() -> None:
    problem = make(4, 2, 6, 3, -3.0, "default", O3M)
    _, values = brute_force(problem)
    assert plan_of(problem).value == pytest.approx(values.max(), rel=1e-12)


@pytest.mark.nojit
@pytest.mark.parametrize("kind", [O3M, OM, OM_BLOCK])
@pytest.mark.parametrize("instance", [INSTANCES[i] for i in (0, 1, 2, 4, 8, 11)])
def test_contextual_plans(instance: tuple[Any, ...], kind: int) -> None:
    problem = make(*instance, kind=kind, n=instance[1] + instance[2])
    plan = plan_of(problem)
    _, values = brute_force(problem)
    check_plan(problem, plan)
    assert plan.exact or kind != O3M
    assert plan.upper >= values.max() - 1e-12
    assert plan.value == pytest.approx(values.max(), rel=1e-12 if kind == O3M else 0.02)


@pytest.mark.nojit
def test_the_same_arms_at_every_step_make_no_difference() -> None:
    problem = make(3, 2, 4, 2, -3.0, "default", O3M)
    plan = plan_of(problem)
    spelled_out = plan_of(problem | {"arms": np.array(sets_of(problem))})
    assert spelled_out.value == pytest.approx(plan.value, rel=1e-13)


# --- ties ---------------------------------------------------------------------------------------------


def best_closing(problem: dict[str, Any]) -> float:
    """The largest sum of rewards of a cycle whose block has the largest value."""
    m, theta = problem["m"], problem["theta"]
    blocks, values = brute_force(problem)
    rewards = window_features(sets_of(problem)[: m + 1], problem["gamma"], problem["A0"]) @ theta
    tied = blocks[:, values >= values.max() - 1e-9]
    wrapped = np.concatenate((tied[len(tied) - m :], tied[:m]))
    K = problem["arms"].shape[0]
    return float(values.max() + sum(rewards[codes(wrapped[i : i + m + 1], K)] for i in range(m)).max())


@settings(max_examples=60)
@given(
    m=st.integers(1, 3),
    L=st.integers(1, 4),
    gamma=st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]),
    rows=st.lists(st.tuples(*[st.integers(-1, 1)] * 2), min_size=1, max_size=4, unique=True),
    theta=st.tuples(*[st.sampled_from([-0.5, 0.0, 0.5])] * 2),
)
def test_ties_go_to_the_best_cycle(
    m: int, L: int, gamma: float, rows: list[tuple[int, int]], theta: tuple[float, float]
) -> None:
    arms = np.array(rows, dtype=np.float64)
    arms /= np.maximum(np.linalg.norm(arms, axis=1, keepdims=True), 1.0)
    if len(arms) ** (m + L) > 5000:
        L = 2
    problem = {"arms": arms, "m": m, "L": L, "gamma": gamma, "theta": np.array(theta), "V_inv": None}
    problem |= {"beta": 0.0, "kind": O3M, "A0": None}
    plan = plan_of(problem)
    cycled = rewards_of_cycle(arms, plan.indices, m, gamma, problem["theta"], None).sum()
    assert cycled == pytest.approx(best_closing(problem), rel=1e-9, abs=1e-9)


@pytest.mark.nojit
@pytest.mark.parametrize("gamma", [-3.0, -0.5, 0.0])
@pytest.mark.parametrize(("m", "L"), [(1, 3), (1, 4), (2, 4), (2, 2), (3, 1), (3, 5)])
def test_proposition_3(m: int, L: int, gamma: float) -> None:
    d = m + 1
    arms, theta = np.vstack((np.zeros(d), np.eye(d))), np.full(d, 1.0 / math.sqrt(d))
    model = {"arms": arms, "m": m, "gamma": gamma, "theta": theta}
    plan = plan_of(model | {"L": L})
    assert plan.exact
    assert plan.value == pytest.approx(L / math.sqrt(d), rel=1e-12)
    cycled = rewards_of_cycle(arms, plan.indices, m, gamma, theta, None)
    if (m + L) % d == 0 or gamma == 0.0:
        # The paper's block of m zeros and e_1, ..., e_L collects L rewards of m+L; this one all of them.
        assert cycled.sum() == pytest.approx((m + L) / math.sqrt(d), rel=1e-12)
    assert cycled.sum() >= L / math.sqrt(d) * (1.0 - 1e-12)
    assert planner_of(model).long_run(model["theta"]).average == pytest.approx(1.0 / math.sqrt(d), rel=1e-12)
    for T in (1, m, m + 1, 50):
        assert planner_of(model).optimum(model["theta"], T) == pytest.approx(T / math.sqrt(d), rel=1e-12)


def test_proposition_3_for_a_long_horizon() -> None:
    arms, theta = np.vstack((np.zeros(3), np.eye(3))), np.full(3, 1.0 / math.sqrt(3.0))
    best = FinitePlanner(arms, m=2, gamma=-3.0).optimum(theta, 100_000)
    assert best == pytest.approx(100_000 / math.sqrt(3.0), rel=1e-12)


# --- OM and OM-Block ----------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("kind", [OM, OM_BLOCK])
@pytest.mark.parametrize("instance", INSTANCES)
def test_joint_plans_are_close_to_the_best(instance: tuple[Any, ...], kind: int) -> None:
    problem = make(*instance, kind=kind)
    plan = plan_of(problem)
    _, values = brute_force(problem)
    check_plan(problem, plan)
    best = values.max()
    assert best <= plan.upper + 1e-12 * abs(best)
    assert plan.value >= best - 0.02 * abs(best)
    if plan.exact:
        assert plan.value == pytest.approx(best, rel=1e-11)
    if kind == OM:
        over_optimistic = plan_of(problem | {"kind": O3M})
        assert plan.value >= value_of(problem, over_optimistic.indices) * (1.0 - 1e-12)


def test_joint_plans_nearly_always_are_the_best() -> None:
    found = {OM: 0, OM_BLOCK: 0}
    for kind in found:
        for seed in range(60):
            K, m, L, gamma = [(3, 1, 4, -3.0), (3, 2, 3, -1.0), (2, 2, 6, 0.5), (4, 1, 4, 2.0)][seed % 4]
            problem = make(K, m, L, 2, gamma, "default", kind, seed) | {"beta": [0.3, 1.0, 3.0][seed % 3]}
            _, values = brute_force(problem)
            plan = plan_of(problem)
            assert plan.value <= values.max() + 1e-11
            assert plan.upper >= values.max() - 1e-11
            found[kind] += plan.value >= values.max() - 1e-10
    assert found[OM] >= 59
    assert found[OM_BLOCK] >= 58


@pytest.mark.nojit
def test_om_plans_depend_on_the_seed_alone() -> None:
    problem = make(4, 1, 5, 3, -1.0, "default", OM)
    first, second = (plan_of(problem, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.indices, second.indices)
    assert (first.value, first.upper, first.evaluations) == (second.value, second.upper, second.evaluations)


@pytest.mark.nojit
def test_a_zero_block_has_no_direction() -> None:
    problem = make(1, 1, 2, 2, -1.0, "default", OM) | {"arms": np.zeros((1, 2))}
    for kind in (O3M, OM):
        plan = plan_of(problem | {"kind": kind})
        assert plan.value == 0.0
        assert plan.exact


# --- without tables -----------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("instance", [INSTANCES[i] for i in (0, 1, 4, 8, 10)])
def test_search_without_tables(instance: tuple[Any, ...], kind: int) -> None:
    problem = make(*instance, kind=kind)
    plan = plan_of(problem, budget=1)
    _, values = brute_force(problem)
    check_plan(problem, plan)
    assert not plan.exact
    assert plan.upper >= values.max()
    assert plan.value >= values.max() - 0.02 * abs(values.max())


def test_search_where_tables_are_out_of_reach() -> None:
    problem = make(8, 12, 10, 3, -1.0, "default", O3M)
    plan = plan_of(problem)
    check_plan(problem, plan)
    assert not plan.exact
    with pytest.raises(ValueError, match=r"actions .* K=8 arms with m=12: 68719476736 states"):
        plan_of(problem, require_exact=True)
    planner = FinitePlanner(problem["arms"], m=12, gamma=-1.0)
    with pytest.raises(ValueError, match=r"actions .* states take \d+ bytes"):
        planner.long_run(problem["theta"])
    with pytest.raises(ValueError, match=r"actions .* states take \d+ bytes"):
        planner.optimum(problem["theta"], 12)


@pytest.mark.nojit
def test_contextual_search_without_tables() -> None:
    problem = make(3, 2, 4, 2, -3.0, "default", O3M, n=6)
    plan = plan_of(problem, budget=1)
    check_plan(problem, plan)
    assert plan.value >= 0.98 * brute_force(problem)[1].max()


@pytest.mark.nojit
def test_horizons_that_take_too_long() -> None:
    problem = {"arms": np.eye(2), "m": 1, "gamma": -1.0, "theta": np.array([0.6, 0.8])}
    with pytest.raises(ValueError, match="T must be at most 2500000001 "):
        planner_of(problem).optimum(problem["theta"], 10**10)
    with pytest.raises(ValueError, match="states take"):
        planner_of(problem, budget=2000).best_sequence(problem["theta"], 1000)
    assert planner_of(problem, budget=2000).optimum(problem["theta"], 1000) == pytest.approx(700.0, rel=1e-12)


def test_many_windows_side_by_side() -> None:
    problem = make(13, 2, 20, 3, -2.3, "dense", O3M)
    plan = plan_of(problem)
    check_plan(problem, plan)
    rng = np.random.default_rng(0)
    for _ in range(50):
        indices = np.where(rng.random(22) < 0.2, rng.integers(13, size=22), plan.indices)
        assert value_of(problem, indices) <= plan.value * (1.0 + 1e-12)
