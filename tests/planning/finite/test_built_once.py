"""A planner that is kept plans as a new one would: nothing of one belief, step or call stays for the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlbm.kernels.optimism import O3M, OM, OM_BLOCK, Belief
from fastlbm.planning.finite import FinitePlanner
from fastlbm.planning.finite.states import Model
from fastlbm.planning.plans import Plan
from tests import problems

SHAPES: list[tuple[int, int, int, int, float, str]] = [
    # K, m, L, d, gamma, A0
    (4, 2, 4, 3, -3.0, "default"),
    (3, 1, 5, 2, -1.3, "dense"),
    (3, 0, 3, 2, -1.0, "dense"),
    (3, 3, 2, 2, 1.0, "default"),
]


def belief(d: int, n: int, kind: int, rng: np.random.Generator) -> Belief:
    size = d * n if kind == OM_BLOCK else d
    theta = rng.normal(size=size)
    beta = float(rng.choice([0.0, 0.4, 3.0]))
    return Belief(theta=theta, V_inv=problems.precision(size, rng), beta=beta, kind=kind)


def assert_same(one: Plan, two: Plan) -> None:
    np.testing.assert_array_equal(one.indices, two.indices)
    np.testing.assert_array_equal(one.actions, two.actions)
    for name in ("value", "evaluations", "converged", "exact", "upper"):
        assert getattr(one, name) == getattr(two, name), name


@pytest.mark.nojit
@pytest.mark.parametrize("budget", [2**30, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_many_beliefs_one_planner(shape: tuple[Any, ...], budget: int) -> None:
    K, m, L, d, gamma, A0 = shape
    rng = np.random.default_rng([K, m, L])
    arms = problems.ball(K, d, rng)
    arguments = {"m": m, "gamma": gamma, "A0": problems.initial_matrix(A0, d, rng), "budget": budget}
    kept = FinitePlanner(arms, **arguments)
    for i in range(12):
        length = L + i % 2
        now = belief(d, m + length, (O3M, OM, OM_BLOCK)[i % 3], rng)
        assert_same(kept.plan(now, length, i), FinitePlanner(arms, **arguments).plan(now, length, i))


@pytest.mark.nojit
@pytest.mark.parametrize("kind", [O3M, OM, OM_BLOCK])
def test_a_step_of_contextual_sets(kind: int) -> None:
    d, K, m, L, T = 2, 3, 1, 3, 9
    rng = np.random.default_rng(5)
    sets = problems.ball(T * K, d, rng).reshape(T, K, d)
    kept = FinitePlanner(sets, m=m, gamma=-2.0)
    for start in (0, 3, 5, 7, 8, 20):
        now = belief(d, m + L, kind, rng)
        # A block that is cut by the end is planned as if the last set went on.
        part = sets[np.minimum(np.arange(start, start + m + L), T - 1)]
        plan = kept.plan(now, L, 0, start=start)
        assert_same(plan, FinitePlanner(part, m=m, gamma=-2.0).plan(now, L, 0))
        np.testing.assert_array_equal(plan.actions, part[np.arange(m + L), plan.indices])


@pytest.mark.nojit
def test_what_is_asked_before_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    arms, theta = problems.ball(4, 2, rng), np.array([0.6, 0.8])
    now = belief(2, 5, O3M, rng)._replace(beta=0.7)
    kept = FinitePlanner(arms, m=2, gamma=-2.0)
    before = kept.plan(now, 3)
    cycle, average, total = kept.cycle(theta, 5), kept.long_run(theta).average, kept.optimum(theta, 30)
    assert_same(kept.plan(now, 3), before)
    kept.plan(now._replace(theta=np.full(2, 1e300), V_inv=1e300 * np.eye(2)), 3)  # overflows
    assert_same(kept.plan(now, 3), before)
    np.testing.assert_array_equal(kept.cycle(theta, 5).indices, cycle.indices)
    assert kept.cycle(theta, 5).average == cycle.average
    assert kept.long_run(theta).average == average
    assert kept.optimum(theta, 30) == total == kept.best_sequence(theta, 30).value


@pytest.mark.nojit
def test_the_belief_is_left_alone() -> None:
    planner = FinitePlanner(np.eye(2), m=1, gamma=-1.0)
    now = Belief(theta=np.array([0.6, 0.8]), V_inv=np.eye(2), beta=0.5, kind=OM)
    frozen = [array.copy() for array in now[:2]]
    plan = planner.plan(now, 4)
    np.testing.assert_array_equal(now.theta, frozen[0])
    np.testing.assert_array_equal(now.V_inv, frozen[1])
    now.theta[:] = 0.0  # what an episode learns next
    assert plan.value > 0.0


@pytest.mark.nojit
@pytest.mark.parametrize(("budget", "times"), [(2**30, 1), (3000, 3)])
def test_features_are_computed_once_where_they_fit(
    monkeypatch: pytest.MonkeyPatch, budget: int, times: int
) -> None:
    calls = []
    apply = Model.apply
    monkeypatch.setattr(Model, "apply", lambda *arguments: calls.append(1) or apply(*arguments))
    rng = np.random.default_rng(0)
    # 10 windows of 4 arms in 6 dimensions: 1920 bytes, more than half of the smaller budget.
    planner = FinitePlanner(problems.ball(4, 6, rng), m=2, gamma=-1.0, budget=budget)
    planner.model.fits = lambda *_: True  # type: ignore[method-assign]
    for _ in range(3):
        planner.plan(belief(6, 5, O3M, rng)._replace(beta=0.5), 3)
    assert len(calls) == times


@pytest.mark.nojit
def test_workspaces_do_not_pile_up() -> None:
    model = Model(np.eye(2), 1, -1.0, None)
    first = model.work(4, 1)
    assert model.work(4, 1) is first
    for lanes in range(1, 100):
        model.work(4 * lanes, lanes)
    assert len(model._works) <= 16
