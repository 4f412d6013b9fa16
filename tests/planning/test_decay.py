"""Memories that fade: block_ucb against fifty digits, plans and cycles against what they are said to be."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastlbm as lbm
from fastlbm.kernels.blocks import compute_value, make_work
from fastlbm.kernels.fading import Variant, reach_of
from fastlbm.kernels.memory import SLIDE_FROM, make_memory
from fastlbm.kernels.optimism import O3M, Belief
from tests import naive, naive_fading, problems
from tests.naive import GAMMAS, OPTIMISM, Problem
from tests.planning.test_objective import TOLERANCE

INF = math.inf
DIMENSIONS = (1, 2, 3, 5, 8, 16)
MEMORIES = (*range(1, 9), INF)
DECAYS = (0.5, 0.9, 1.0 - 1e-9, 1e-6)
MATRICES = ("default", "0.25", "dense", "corner")


def error(problem: Problem) -> float:
    """As in test_objective, against the reference that fades."""
    value, grad = lbm.block_ucb(**problem)
    value_mp, grad_mp = naive_fading.block_ucb_mp(**problem)
    scale = max(float(np.abs(grad_mp).max()), np.finfo(np.float64).tiny)
    found = abs(value - value_mp) / max(abs(value_mp), scale), float(np.abs(grad - grad_mp).max()) / scale
    return max(found) if math.isfinite(sum(found)) else INF


def failures(cases: dict[str, Problem]) -> dict[str, float]:
    errors = {name: error(problem) for name, problem in cases.items()}
    return {name: e for name, e in errors.items() if e > TOLERANCE}


def fading(problem: Problem, decay: float, endless: bool = False) -> Problem:
    """The same problem with a memory that fades; without end, all actions are counted."""
    return problem | {"decay": decay} | ({"m": INF} if endless else {})


def grid_problem(d: int, m: float, gamma: float, optimism: str, A0: str, decay: float) -> Problem:
    A0 = "corner" if A0 == "dense" and d > 8 else A0
    lead, L = (0, 5) if m == INF else (int(m), 2)
    made = problems.problem(d=d, m=lead, L=L, gamma=gamma, optimism=optimism, A0=A0)
    return fading(made, decay, m == INF)


# Every pair of two parameters' values occurs.
GRID = [
    (
        DIMENSIONS[(i + j) % len(DIMENSIONS)],
        m,
        gamma,
        OPTIMISM[(i + 2 * j) % len(OPTIMISM)],
        MATRICES[(2 * i + j) % len(MATRICES)],
        DECAYS[(i + 3 * j // 2) % len(DECAYS)],
    )
    for (i, m), (j, gamma) in itertools.product(enumerate(MEMORIES), enumerate(GAMMAS))
]


@pytest.mark.parametrize(("d", "m", "gamma", "optimism", "A0", "decay"), GRID)
def test_fifty_digits(d: int, m: float, gamma: float, optimism: str, A0: str, decay: float) -> None:
    assert error(grid_problem(d, m, gamma, optimism, A0, decay)) <= TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("m", MEMORIES)
@pytest.mark.parametrize("d", range(1, 17))
def test_fifty_digits_everywhere(d: int, m: float, decay: float) -> None:
    cases = {
        str(gamma): grid_problem(
            d, m, gamma, OPTIMISM[(d + i) % 3], MATRICES[(d + int(min(m, 9)) + i) % 4], decay
        )
        for i, gamma in enumerate(GAMMAS)
    }
    assert failures(cases) == {}


@pytest.mark.nojit
@pytest.mark.parametrize("endless", [False, True])
@pytest.mark.parametrize(("i", "gamma"), list(enumerate(GAMMAS)))
def test_hard_cases(i: int, gamma: float, endless: bool) -> None:
    hard = problems.hard_problems(gamma, OPTIMISM[i % len(OPTIMISM)])
    decays = (0.8, 1.0 - 1e-12, 1e-9)
    chosen = itertools.islice(enumerate(hard.items()), i % 3, None, 3)  # a third of them, in turn
    assert (
        failures(
            {
                f"{name}, {decays[k // 3 % 3]}": fading(p, decays[k // 3 % 3], endless)
                for k, (name, p) in chosen
            }
        )
        == {}
    )


@pytest.mark.slow
@pytest.mark.parametrize("endless", [False, True])
@pytest.mark.parametrize("decay", [0.8, 1.0 - 1e-12, 1e-9])
@pytest.mark.parametrize(("i", "gamma"), list(enumerate(GAMMAS)))
def test_hard_cases_everywhere(i: int, gamma: float, decay: float, endless: bool) -> None:
    hard = problems.hard_problems(gamma, OPTIMISM[i % len(OPTIMISM)])
    assert failures({name: fading(p, decay, endless) for name, p in hard.items()}) == {}


@pytest.mark.nojit
@pytest.mark.parametrize("optimism", OPTIMISM)
@pytest.mark.parametrize("gamma", [0.0, 1.0, 1.5, 2.0, 3.7])
def test_singular_A0(gamma: float, optimism: str) -> None:
    singular = problems.singular_problems(gamma, optimism)
    assert failures({name: fading(p, 0.7, endless=True) for name, p in singular.items()}) == {}
    assert failures({name: fading(p, 0.7) for name, p in singular.items()}) == {}


@pytest.mark.nojit
@pytest.mark.parametrize("gamma", [-5.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 5.0])
def test_integer_powers_without_spectra(gamma: float) -> None:
    """Where the memory has no end; some A0 have spectra."""
    rng, past = np.random.default_rng(3), problems.ball(4, 5, np.random.default_rng(4))
    rank_two = np.diag([1.0, 0.5, 0.0, 0.0, 0.0])
    matrices: list[tuple[str, object]] = [("0.25", 5), ("dense", 7), ("corner", 5), ("0.01", 5), ("40", 6)]
    cases = {
        f"{A0}, d={d}": problems.problem(d=d, m=0, L=5, gamma=gamma, A0=A0, optimism=OPTIMISM[i % 3])  # type: ignore[arg-type]
        for i, (A0, d) in enumerate(matrices)
    }
    for d in (1, 2, 3, 4, 9):
        cases[f"d={d}"] = problems.problem(d=d, m=0, L=3, gamma=gamma)
    cases["close to singular"] = problems.problem(d=5, m=0, L=2, gamma=gamma, A0=np.diag([1, 1, 1, 1, 1e-9]))
    cases["a cut tile"] = problems.problem(d=4, m=0, L=67, gamma=gamma, A0="corner")
    if gamma > 0.0:
        cases["singular"] = problems.problem(d=5, m=0, L=4, gamma=gamma, A0=rank_two)
        cases["zero"] = problems.problem(d=5, m=0, L=4, gamma=gamma, A0=np.zeros((5, 5)))
    cases = {name: fading(p, float(rng.uniform(0.3, 0.99)), endless=True) for name, p in cases.items()}
    cases["a history"] = cases["0.25, d=5"] | {"history": past}
    assert failures(cases) == {}


@pytest.mark.parametrize("L", [1, 2, 12, 13, 14, 30])
@pytest.mark.parametrize(("d", "m"), [(1, 13), (2, 13), (3, 20)])
def test_sliding_sums_have_fifty_digits(d: int, m: int, L: int) -> None:
    assert m > SLIDE_FROM
    assert error(fading(problems.problem(d=d, m=m, gamma=-1.5, L=L), 0.85)) <= TOLERANCE


@pytest.mark.parametrize("h", [0, 1, 7])
def test_a_history_of_any_length(h: int) -> None:
    problem = fading(problems.problem(d=3, m=0, L=4, gamma=-2.3, A0="dense"), 0.8, endless=True)
    past = problems.ball(h, 3, np.random.default_rng(h))
    assert error(problem | {"history": past}) <= TOLERANCE


@pytest.mark.parametrize(("d", "m"), [(3, 1), (3, 2), (5, 3), (3, 4), (2, 15), (3, INF), (6, INF)])
@pytest.mark.parametrize("gamma", [-1.5, -2.0])
def test_blocks_side_by_side_are_as_if_alone(d: int, m: float, gamma: float) -> None:
    rng = np.random.default_rng(d)
    lead, L, lanes = 0 if m == INF else int(m), 9, 3
    blocks = problems.ball(lanes * (lead + L), d, rng).reshape(lanes, lead + L, d)
    memory, form = make_memory(np.eye(d), m, gamma, Variant(0.7))
    belief = Belief(rng.standard_normal(d), 0.3 * np.eye(d), 1.2, O3M)
    columns = np.ascontiguousarray(blocks.transpose(2, 1, 0).reshape(d, -1))
    values, grad = np.empty(lanes), np.empty_like(columns)
    compute_value(
        memory, form, belief, columns, lanes, make_work(memory, form, columns.shape[1], lanes), values, grad
    )
    for s, block in enumerate(blocks):
        value, slope = lbm.block_ucb(
            block, m=m, gamma=gamma, theta=belief.theta, V_inv=belief.V_inv, beta=1.2, decay=0.7
        )
        assert values[s] == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(grad[:, s::lanes].T, slope, rtol=0.0, atol=1e-13 * np.abs(slope).max())


@settings(max_examples=60, deadline=None)
@given(
    d=st.integers(1, 6),
    m=st.one_of(st.integers(0, 15), st.just(INF)),
    gamma=st.floats(-4.0, 4.0),
    decay=st.floats(0.01, 1.0, exclude_max=True),
    seed=st.integers(0, 10**6),
)
def test_values_are_those_of_the_definition(d: int, m: float, gamma: float, decay: float, seed: int) -> None:
    lead = 0 if m == INF else int(m)
    problem = problems.problem(d=d, m=lead, L=5, gamma=gamma, A0="dense", seed=seed)
    problem = fading(problem, decay, m == INF)
    value, grad = lbm.block_ucb(**problem)
    assert value == pytest.approx(naive.block_value(**problem), rel=1e-9, abs=1e-12)
    direction = np.random.default_rng(seed).standard_normal(grad.shape)
    step = 1e-6
    ahead, back = (
        naive.block_value(**(problem | {"actions": problem["actions"] + s * step * direction}))
        for s in (1, -1)
    )
    scale = np.abs(grad).sum() * np.abs(direction).max() + abs(value)
    assert float((grad * direction).sum()) == pytest.approx((ahead - back) / (2 * step), abs=1e-6 * scale)


# --- what follows from it ------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 3, 5, 14])
def test_decay_1_is_the_papers_to_the_last_bit(m: int) -> None:
    problem = problems.problem(d=3, m=m, L=6, gamma=-2.3)
    value, grad = lbm.block_ucb(**problem)
    same, slope = lbm.block_ucb(**problem, decay=1.0)
    assert value == same
    np.testing.assert_array_equal(grad, slope)


def test_a_long_window_is_as_good_as_none() -> None:
    n, decay = 60, 0.5
    problem = problems.problem(d=3, m=0, L=n, gamma=-2.0) | {"decay": decay}
    value, grad = lbm.block_ucb(**problem | {"m": INF})
    padded = np.concatenate((np.zeros((n, 3)), problem["actions"]))
    same, slope = lbm.block_ucb(**problem | {"m": n, "actions": padded})
    assert value == pytest.approx(same, rel=1e-13)
    np.testing.assert_allclose(grad, slope[n:], rtol=0, atol=1e-13)


@pytest.mark.parametrize("m", [2, 4, INF])
def test_a_plan_is_what_it_says(m: float) -> None:
    problem = {"m": m, "gamma": -2.0, "theta": [0.6, 0.0, 0.8], "decay": 0.7}
    plan = lbm.plan_block(d=3, L=8, **problem)
    value, grad = lbm.block_ucb(plan.actions, **problem)
    assert plan.converged
    assert plan.value == pytest.approx(value, rel=1e-9)
    moved = lbm.Ball(3).project(plan.actions + 1e-3 * grad / np.abs(grad).max())
    assert lbm.block_ucb(moved, **problem)[0] <= value * (1.0 + 1e-5)
    drawn = [lbm.block_ucb(lbm.Ball(3).sample(len(plan.actions), seed=s), **problem)[0] for s in range(200)]
    assert value > max(drawn)


def test_a_plan_after_a_history() -> None:
    past = lbm.Ball(2).sample(5, seed=0)
    env = lbm.LBM([0.6, 0.8], m=INF, gamma=-2.0, decay=0.8)
    shape = {"d": 2, "m": INF, "gamma": -2.0, "decay": 0.8, "L": 6, "theta": env.theta}
    plan = lbm.plan_block(**shape, history=past)
    assert plan.value == pytest.approx(env.expected_rewards(plan.actions, history=past).sum(), rel=1e-9)
    other = lbm.plan_block(**shape)
    assert plan.value > env.expected_rewards(other.actions, history=past).sum() - 1e-9


@pytest.mark.parametrize(("d", "m"), [(3, 2), (3, 3), (3, INF), (5, INF)])
def test_a_cycle_is_worth_what_it_collects_in_the_end(d: int, m: float) -> None:
    env = lbm.LBM([0.6, *[0.0] * (d - 2), 0.8], m=m, gamma=-2.0, decay=0.7)
    cycle = lbm.best_cycle(env, max_period=8)
    rewards = env.expected_rewards(np.tile(cycle.actions, (60, 1)))
    assert rewards[-len(cycle.actions) :].mean() == pytest.approx(cycle.average, rel=1e-9)


def test_bounds_hold_what_they_say() -> None:
    env = lbm.LBM([0.6, 0.8], m=INF, gamma=-2.0, decay=0.7)
    bounds = lbm.opt_bounds(env, T=50)
    assert bounds.certified
    assert (
        bounds.lower
        <= lbm.plan_block(d=2, m=INF, gamma=-2.0, decay=0.7, L=50, theta=env.theta, starts=8, moves=0).value
        * (1.0 + 1e-9)
        <= bounds.upper * (1.0 + 1e-9)
    )
    rising = lbm.LBM([0.6, 0.8], m=INF, gamma=1.5, decay=0.7)
    exact = lbm.opt_bounds(rising, T=30)
    assert exact.exact
    assert exact.lower == pytest.approx(
        rising.expected_rewards(np.tile(rising.theta, (30, 1))).sum(), rel=1e-12
    )
    assert rising.expected_rewards(np.tile(rising.theta, (200, 1)))[-1] == pytest.approx(rising.reward_bound)


@pytest.mark.parametrize("T", [1, 7, 100, 3000])
@pytest.mark.parametrize("decay", [0.6, 0.999, 1.0 - 1e-9])
def test_a_memory_that_hardly_fades_is_bounded_as_well(decay: float, T: int) -> None:
    """What a cycle collects is added up as far as it is played, not until the memory is full."""
    env = lbm.LBM([0.6, 0.8], m=INF, gamma=-2.0, decay=decay)
    bounds = lbm.opt_bounds(env, T=T, max_period=3)
    cycle = bounds.cycle.actions  # type: ignore[union-attr]
    played = np.resize(cycle, (T + len(cycle), 2))
    starts = [env.expected_rewards(played[s : s + T]).sum() for s in range(len(cycle))]
    assert bounds.lower == pytest.approx(max(starts), rel=1e-12)


def test_long_horizons_of_a_memory_that_fades() -> None:
    rising = lbm.LBM([0.6, 0.8], m=INF, gamma=0.5, decay=0.8)
    exact = lbm.opt_bounds(rising, T=10**12)
    assert exact.exact
    assert exact.lower == pytest.approx(10**12 * 6.0**0.5, rel=1e-9)
    hardly = lbm.LBM([0.6, 0.8], m=INF, gamma=-2.0, decay=1.0 - 1e-9)
    with pytest.raises(ValueError, match="T must be at most 100000000 with a memory as long as that"):
        lbm.opt_bounds(hardly, T=10**10, max_period=1)


def test_arms_are_planned_exactly_in_any_order() -> None:
    """With a decay the order of the last arms matters: no two states are the same."""
    arms = lbm.Ball(2).sample(3, seed=4)
    problem = {"m": 2, "gamma": -2.0, "theta": [0.6, 0.8], "decay": 0.4}
    plan = lbm.plan_block(d=2, L=3, actions=lbm.Finite(arms), exact=True, **problem)
    index = np.indices((3,) * 5).reshape(5, -1).T
    assert plan.exact
    assert plan.value == pytest.approx(max(lbm.block_ucb(arms[i], **problem)[0] for i in index), rel=1e-12)
    env = lbm.LBM([0.6, 0.8], m=2, gamma=-2.0, decay=0.4, actions=lbm.Finite(arms))
    best = max(env.expected_rewards(arms[i]).sum() for i in index)
    assert lbm.opt_bounds(env, T=5).lower == pytest.approx(best, rel=1e-12)
    cycle = lbm.best_cycle(env, period=4)
    wrapped = [env.expected_rewards(np.tile(arms[i[:4]], (3, 1)))[-4:].mean() for i in index]
    assert cycle.exact
    assert cycle.average == pytest.approx(max(wrapped), rel=1e-12)


def test_what_is_below_rounding() -> None:
    for decay in (0.3, 0.9, 0.99):
        n = reach_of(decay)
        assert decay**n / (1.0 - decay) <= 2.0**-53 < decay ** (n - 2) / (1.0 - decay)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("decay", {"decay": 0.0}),
        ("decay", {"decay": 1.1}),
        ("decay", {"decay": math.nan}),
        ("m", {"m": INF, "decay": 1.0}),
        ("m", {"m": INF, "decay": 0.5, "actions": lbm.Finite(np.eye(2))}),
        ("history", {"m": INF, "decay": 0.5, "history": [[2.0, 0.0]]}),
        ("history", {"m": 1, "decay": 0.5, "history": np.zeros((2, 2))}),
    ],
)
def test_bad_plans(name: str, change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=name):
        lbm.plan_block(**{"d": 2, "m": 1, "gamma": -1.0, "L": 2, "theta": [1.0, 0.0], **change})


def test_bad_blocks() -> None:
    block = np.eye(2)
    with pytest.raises(ValueError, match="history"):
        lbm.block_ucb(block, m=1, gamma=-1.0, theta=[1.0, 0.0], decay=0.5, history=block)
    with pytest.raises(ValueError, match="m must"):
        lbm.block_ucb(block, m=INF, gamma=-1.0, theta=[1.0, 0.0])
    with pytest.raises(TypeError, match="decay"):
        lbm.block_ucb(block, m=1, gamma=-1.0, theta=[1.0, 0.0], decay="slow")
