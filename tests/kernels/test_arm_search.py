"""The search on arms: what it estimates against definitions, and what it finds against all blocks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.kernels import arm_scores, rolling_arms
from fastlbm.kernels.arm_climbs import ArmProblem, ArmTask
from fastlbm.kernels.arm_search import ArmEffort, find_arms, value_all
from fastlbm.kernels.memory import make_memory
from fastlbm.kernels.optimism import O3M, OM, Belief
from fastlbm.kernels.rewards import make_model_params
from fastlbm.planning.finite import FinitePlanner
from tests import naive, problems

NAMES = {O3M: "O3M", OM: "OM"}
EFFORT = ArmEffort(cycles=3, cycle_visits=50, starts=4, visits=200, candidates=4)

pytestmark = pytest.mark.nojit


def problem_of(
    K: int, d: int, m: int, n: int, gamma: float, seed: int, kind: int = O3M, **task: Any
) -> ArmProblem:
    rng = np.random.default_rng([K, d, m, n, seed])
    A0 = problems.initial_matrix("dense" if seed % 2 else "default", d, rng)
    A0 = np.eye(d) if A0 is None else A0
    theta = rng.normal(size=d)
    belief = Belief(theta=theta, V_inv=problems.precision(d, rng), beta=0.5 * (seed % 3), kind=kind)
    memory, form = make_memory(A0, m, gamma)
    columns = np.ascontiguousarray(problems.ball(K, d, rng).T)[None]
    given_task = {"given": np.zeros((d, n)), "head": 0, "tail": 0, "wrap": False, **task}
    which = np.zeros(n, dtype=np.int64)
    return ArmProblem(
        memory=memory,
        A0=form,
        model=make_model_params(np.zeros(d), A0, m, gamma),
        belief=belief,
        task=ArmTask(columns=columns, which=which, **given_task),
    )


def value_of(problem: ArmProblem, arms: np.ndarray) -> float:
    """The value of one block, or of one period of a cycle, by its definition."""
    task, belief, m = problem.task, problem.belief, problem.memory.m
    actions = task.columns[0].T[arms].copy()
    n = len(arms)
    actions[: task.head] = task.given.T[: task.head]
    actions[n - task.tail :] = task.given.T[n - task.tail :]
    if task.wrap:
        actions = actions[np.arange(-m, n) % n]
    return naive.block_value(
        actions, m, problem.model.gamma, belief.theta, belief.V_inv, belief.beta, NAMES[belief.kind],
        problem.model.A0,
    )  # fmt: skip


@pytest.mark.parametrize("gamma", [-3.0, -0.7, 0.5, 2.0])
@pytest.mark.parametrize(("d", "m"), [(4, 2), (3, 3), (2, 4), (5, 1)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_matrices_of_a_window(d: int, m: int, gamma: float, seed: int) -> None:
    problem = problem_of(3, d, m, m + 1, gamma, seed)
    rng = np.random.default_rng(seed)
    window, action = problems.ball(m, d, rng), problems.ball(1, d, rng)[0]
    P, S, u = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d)
    arm_scores.window_matrices(problem.model, problem.belief, window, action, u, P, S)
    X = naive.memory_matrix(window, problem.model.A0)
    np.testing.assert_allclose(P, naive.power(X, gamma), rtol=1e-9, atol=1e-11)
    S = np.triu(S) + np.triu(S, 1).T

    def worth(X: np.ndarray) -> float:
        b = naive.power(X, gamma) @ action
        belief = problem.belief
        return float(b @ belief.theta + belief.beta * np.sqrt(b @ belief.V_inv @ b))

    for _ in range(3):
        D = rng.normal(size=(d, d))
        D = 1e-5 * (D + D.T)
        slope = (worth(X + D) - worth(X - D)) / 2.0
        assert np.sum(S * D) == pytest.approx(slope, rel=1e-3, abs=1e-8)


@pytest.mark.parametrize("beta", [0.0, 0.7])
@pytest.mark.parametrize(("K", "d"), [(5, 1), (300, 4), (600, 7)])
def test_scores_and_shortlists(K: int, d: int, beta: float) -> None:
    rng = np.random.default_rng(K)
    A, lin = rng.normal(size=(d, K)), rng.normal(size=d)
    M, H = problems.precision(d, rng), rng.normal(size=(d, d))
    H = H + H.T
    scores = np.empty(K)
    arm_scores.score_arms(A, lin, M, beta, H, np.empty((3, arm_scores.STRIP)), scores)
    quadratic = np.einsum("ik,ij,jk->k", A, M, A)
    expected = lin @ A + beta * np.sqrt(quadratic) + np.einsum("ik,ij,jk->k", A, H, A)
    np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-10)
    found = np.zeros(4, dtype=np.int64)
    count = arm_scores.shortlist(scores, 2, found, np.empty(4))
    others = [k for k in np.argsort(-scores, kind="stable") if k != 2]
    assert count == min(4, K)
    assert found[:count].tolist() == [2, *others[: count - 1]]


@pytest.mark.parametrize("kind", [O3M, OM])
@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize(
    ("K", "d", "m", "n"), [(4, 3, 2, 6), (3, 2, 3, 7), (5, 4, 1, 5), (3, 2, 2, 2), (4, 2, 0, 4)]
)
def test_the_search_finds_the_best_of_few(K: int, d: int, m: int, n: int, wrap: bool, kind: int) -> None:
    if not wrap and n <= m:
        pytest.skip("a block has more than m actions")
    if wrap and kind == OM:
        pytest.skip("cycles are sums")
    problem = problem_of(K, d, m, n, -2.0, seed=2, kind=kind, wrap=wrap)
    arms, value, seen = find_arms(problem, np.zeros((0, n), dtype=np.int64), EFFORT, np.random.default_rng(0))
    blocks = np.array(list(itertools.product(range(K), repeat=n)))
    values = value_all(problem, blocks)
    some = np.random.default_rng(1).integers(len(blocks), size=5)
    np.testing.assert_allclose(values[some], [value_of(problem, blocks[i]) for i in some], rtol=1e-9)
    assert value == pytest.approx(value_of(problem, arms), rel=1e-9)
    assert value >= values.max() - 0.01 * abs(values.max())
    assert seen > 0


@settings(max_examples=15, deadline=None)
@given(
    K=st.integers(1, 6),
    d=st.integers(1, 4),
    m=st.integers(0, 3),
    free=st.integers(1, 5),
    tail=st.integers(0, 2),
    gamma=st.sampled_from([-2.0, -0.7, 1.5]),
    seed=st.integers(0, 100),
)
def test_given_actions_stay_and_values_are_true(
    K: int, d: int, m: int, free: int, tail: int, gamma: float, seed: int
) -> None:
    n = m + free + tail
    actions = problems.ball(n, d, np.random.default_rng(seed)).T.copy()
    problem = problem_of(K, d, m, n, gamma, seed, given=actions, head=m, tail=tail)
    warm = np.zeros((1, n), dtype=np.int64)
    effort = EFFORT._replace(cycles=1, visits=30)
    arms, value, _ = find_arms(problem, warm, effort, np.random.default_rng(seed))
    again, same, _ = find_arms(problem, warm, effort, np.random.default_rng(seed))
    np.testing.assert_array_equal(arms, again)
    assert value == same == pytest.approx(value_of(problem, arms), rel=1e-9, abs=1e-10)
    assert value >= value_of(problem, warm[0]) - 1e-10
    # No other arm at one position is better, as the shortlist holds all of few arms.
    if EFFORT.candidates >= K:
        for t, k in itertools.product(range(m, n - tail), range(K)):
            other = arms.copy()
            other[t] = k
            assert value_of(problem, other) <= value + 1e-9 * abs(value) + 1e-10


def test_what_follows_an_arm_of_a_revealed_set() -> None:
    d, K, m, step = 3, 4, 2, 5
    rng = np.random.default_rng(0)
    sets, recent = problems.ball(6 * K, d, rng).reshape(6, K, d), problems.ball(m, d, rng)
    sets[:] = sets[step]  # all futures are alike
    belief = Belief(theta=rng.normal(size=d), V_inv=problems.precision(d, rng), beta=0.4, kind=O3M)
    memory, form = make_memory(np.eye(d), m, -2.0)
    worth = rolling_arms.worth_of_arms(memory, form, belief, sets, recent, step, 2, 3, rng)
    for k in range(K):
        past = [*recent, sets[step, k]]
        b = naive.power(naive.memory_matrix(np.array(past[:m]), None), -2.0) @ past[-1]
        expected = b @ belief.theta + 0.4 * np.sqrt(b @ belief.V_inv @ b)
        for _ in range(2):
            direction = naive.power(naive.memory_matrix(np.array(past[-m:]), None), -2.0) @ belief.theta
            best = int(np.argmax(sets[step] @ direction))
            expected += float(sets[step, best] @ direction)
            past.append(sets[step, best])
        assert worth[k] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("beta", [0.0, 0.6])
def test_the_policy_of_the_long_run_earns_its_average(beta: float) -> None:
    arms, m = problems.ball(4, 2, np.random.default_rng(3)), 2
    planner = FinitePlanner(arms, m=m, gamma=-2.0)
    belief = Belief(theta=np.array([0.6, 0.8]), V_inv=0.3 * np.eye(2), beta=beta, kind=O3M)
    tables = planner.policy_tables()
    assert tables is not None
    found = rolling_arms.continued(tables, belief, np.array([0, 0]), 60)
    played = np.concatenate(([0, 0], found))
    ucbs = []
    for t in range(m, len(played)):
        b = naive.power(naive.memory_matrix(arms[played[t - m : t]], None), -2.0) @ arms[played[t]]
        ucbs.append(b @ belief.theta + beta * np.sqrt(0.3 * b @ b))
    # No cycle of few arms has a larger average than the one it ends in.
    best = max(
        value_all(
            cycle_problem(arms, belief, m, n), np.array(list(itertools.product(range(4), repeat=n)))
        ).max()
        / n
        for n in range(1, 7)
    )
    assert np.mean(ucbs[-12:]) >= best - 0.05 * abs(best)
    assert max(np.mean(ucbs[-n:]) for n in range(1, 13)) >= best - 1e-9
    np.testing.assert_array_equal(found, planner.continued(belief, np.array([0, 0]), 60))


def cycle_problem(arms: np.ndarray, belief: Belief, m: int, n: int) -> ArmProblem:
    problem = problem_of(len(arms), arms.shape[1], m, n, -2.0, seed=0, wrap=True)
    task = problem.task._replace(columns=np.ascontiguousarray(arms.T)[None])
    return problem._replace(belief=belief, task=task)
