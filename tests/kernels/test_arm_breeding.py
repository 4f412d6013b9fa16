"""The search on large sets: dynamic programs of few arms against all blocks, and what is bred of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.kernels import arm_breeding, arm_pools
from fastlbm.kernels.arm_search import ArmEffort, climb_all, value_all
from tests.kernels.test_arm_search import problem_of, value_of

EFFORT = ArmEffort(
    cycles=0, cycle_visits=80, starts=4, visits=400, candidates=4, pool=12, few=3, few_visits=20, wide=1.5
)

pytestmark = pytest.mark.nojit


def best_of(problem, blocks) -> float:
    return float(value_all(problem, np.array(blocks, dtype=np.int64)).max())


@settings(max_examples=15, deadline=None)
@given(
    K=st.integers(3, 7),
    d=st.integers(1, 4),
    m=st.integers(1, 3),
    L=st.integers(1, 3),
    gamma=st.sampled_from([-2.0, -0.7, 1.5]),
    seed=st.integers(0, 100),
)
def test_programs_find_the_best_of_few_arms(K: int, d: int, m: int, L: int, gamma: float, seed: int) -> None:
    n = m + L
    problem, rng = problem_of(K, d, m, n, gamma, seed), np.random.default_rng(seed)
    few = rng.choice(K, 3, replace=False)
    arms, value = arm_pools.plan_few(problem, few)
    assert set(arms) <= set(few)
    assert value == pytest.approx(value_of(problem, arms), rel=1e-9, abs=1e-10)
    top = best_of(problem, list(itertools.product(few, repeat=n)))
    assert value == pytest.approx(top, rel=1e-9, abs=1e-10)
    choices = rng.integers(K, size=(n, 2))
    between = arm_pools.plan_between(problem, choices)
    assert all(arm in row for arm, row in zip(between, choices, strict=True))
    top = best_of(problem, list(itertools.product(*choices)))
    assert value_of(problem, between) == pytest.approx(top, rel=1e-9, abs=1e-10)


def test_a_narrowed_problem_has_the_values_of_its_arms() -> None:
    problem, pool = problem_of(9, 3, 2, 6, -2.0, seed=1), np.array([1, 4, 7])
    narrow = arm_pools.narrowed(problem, pool)
    blocks = np.random.default_rng(0).integers(3, size=(5, 6))
    np.testing.assert_array_equal(value_all(narrow, blocks), value_all(problem, pool[blocks]))


@pytest.mark.parametrize("wrap", [False, True])
def test_useful_arms_are_those_with_the_best_scores(wrap: bool) -> None:
    """Where nothing comes after a position the score is what the arm earns there itself."""
    K, m, n = 9, 2, 5
    problem = problem_of(K, 3, m, n, -2.0, seed=2, wrap=wrap)
    block, counts = np.array([[3, 1, 4, 1, 5]]), np.zeros(K, dtype=np.int64)
    arm_pools.useful_arms(problem, block, counts, K)
    np.testing.assert_array_equal(counts, np.full(K, n))  # all arms are among the K best, everywhere
    counts[:] = 0
    arm_pools.useful_arms(problem, block, counts, 2)
    assert counts.sum() == 2 * n
    assert all(counts[arm] > 0 for arm in block[0])
    if not wrap:
        last = [value_of(problem, np.append(block[0, :-1], k)) for k in range(K)]
        others = [k for k in np.argsort(last)[::-1] if k != 5]
        assert counts[others[0]] > 0
        alternatives = arm_pools.alternatives(problem, block[0], 1, np.random.default_rng(0))
        assert alternatives[-1] == others[0]


def test_climbs_end_where_no_single_change_is_better() -> None:
    K, n = 4, 6
    problem, rng = problem_of(K, 3, 2, n, -2.0, seed=3), np.random.default_rng(0)
    starts = rng.integers(K, size=(11, n))
    ends, values, seen = climb_all(problem, starts, starts, False, EFFORT, rng)
    assert seen >= 11 * n
    for start, end, value in zip(starts, ends, values, strict=True):
        assert value == pytest.approx(value_of(problem, end), rel=1e-9)
        assert value >= value_of(problem, start) - 1e-12
        for t, k in itertools.product(range(n), range(K)):
            other = end.copy()
            other[t] = k
            assert value_of(problem, other) <= value + 1e-9


@pytest.mark.parametrize("pool", [4, 100])
@pytest.mark.parametrize(("K", "d", "m", "L"), [(7, 3, 2, 4), (6, 2, 3, 4), (9, 4, 1, 4)])
def test_the_best_block_is_bred(K: int, d: int, m: int, L: int, pool: int) -> None:
    n, nothing = m + L, np.zeros((0, m + L), dtype=np.int64)
    problem, effort = problem_of(K, d, m, n, -2.0, seed=2), EFFORT._replace(pool=pool)
    arms, value, _ = arm_breeding.breed_arms(problem, nothing, effort, np.random.default_rng(0))
    again, same, _ = arm_breeding.breed_arms(problem, nothing, effort, np.random.default_rng(0))
    np.testing.assert_array_equal(arms, again)
    assert value == same == pytest.approx(value_of(problem, arms), rel=1e-9)
    _, top = arm_pools.plan_few(problem, np.arange(K))
    assert top + 1e-9 >= value >= top - 0.01 * abs(top)
    # From the best block nothing worse comes.
    best, _ = arm_pools.plan_few(problem, np.arange(K))
    _, value, _ = arm_breeding.breed_arms(problem, best[None], effort, np.random.default_rng(1))
    assert value == pytest.approx(top, rel=1e-9)


def test_a_search_that_is_stopped_returns_a_block() -> None:
    problem = problem_of(30, 3, 2, 8, -2.0, seed=0)
    effort = EFFORT._replace(stop=np.ones(1, dtype=np.int64))
    nothing = np.zeros((0, 8), dtype=np.int64)
    arms, value, _ = arm_breeding.breed_arms(problem, nothing, effort, np.random.default_rng(0))
    assert value == pytest.approx(value_of(problem, arms), rel=1e-9)
