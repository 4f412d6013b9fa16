"""block_ucb against fifty digits, and where powers are hard to take."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import fastlbm
from fastlbm.kernels.blocks import compute_value, make_work
from fastlbm.kernels.memory import SLIDE_FROM, make_memory
from fastlbm.kernels.optimism import O3M, Belief
from tests import naive, problems
from tests.naive import GAMMAS, OPTIMISM, Problem

TOLERANCE = 1e-10
DIMENSIONS = (1, 2, 3, 5, 8, 16, 64)
MEMORIES = tuple(range(9))
MATRICES = ("default", "0.25", "3", "corner", "dense")


def error(problem: Problem) -> float:
    """The error of value and gradient, relative to the largest entry; NaN counts as infinite."""
    value, grad = fastlbm.block_ucb(**problem)
    value_mp, grad_mp = naive.block_ucb_mp(**problem)
    assert grad.shape == problem["actions"].shape
    scale = max(float(np.abs(grad_mp).max()), np.finfo(np.float64).tiny)
    value_error = abs(value - value_mp) / max(abs(value_mp), scale)
    grad_error = float(np.abs(grad - grad_mp).max()) / scale
    return max(value_error, grad_error) if math.isfinite(value_error + grad_error) else math.inf


def failures(cases: dict[str, Problem]) -> dict[str, float]:
    errors = {name: error(problem) for name, problem in cases.items()}
    return {name: e for name, e in errors.items() if e > TOLERANCE}


def grid_problem(d: int, m: int, gamma: float, optimism: str, A0: str) -> Problem:
    # Fifty digits of a dense 64 x 64 spectrum take half a minute; `corner` uses the same kernels.
    A0 = "corner" if A0 == "dense" and d > 8 else A0
    return problems.problem(d=d, m=m, gamma=gamma, optimism=optimism, A0=A0)


# Every pair of two parameters' values occurs.
GRID = [
    (
        DIMENSIONS[(i + j) % len(DIMENSIONS)],
        m,
        gamma,
        OPTIMISM[(i + 2 * j) % len(OPTIMISM)],
        MATRICES[(2 * i + j) % len(MATRICES)],
    )
    for (i, m), (j, gamma) in itertools.product(enumerate(MEMORIES), enumerate(GAMMAS))
]


@pytest.mark.parametrize(("d", "m", "gamma", "optimism", "A0"), GRID)
def test_fifty_digits(d: int, m: int, gamma: float, optimism: str, A0: str) -> None:
    assert error(grid_problem(d, m, gamma, optimism, A0)) <= TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("A0", MATRICES)
@pytest.mark.parametrize("optimism", OPTIMISM)
@pytest.mark.parametrize("m", MEMORIES)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_fifty_digits_everywhere(d: int, m: int, optimism: str, A0: str) -> None:
    assert failures({str(gamma): grid_problem(d, m, gamma, optimism, A0) for gamma in GAMMAS}) == {}


@pytest.mark.nojit
@pytest.mark.parametrize("optimism", OPTIMISM)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_fifty_digits_small(gamma: float, optimism: str) -> None:
    cases = {
        f"d={d}, m={m}, A0={A0}": problems.problem(d=d, m=m, gamma=gamma, optimism=optimism, A0=A0)
        for d, m, A0 in [(1, 1, "default"), (2, 0, "3"), (3, 2, "default"), (2, 3, "0.25"), (3, 1, "dense")]
    }
    assert failures(cases) == {}


@pytest.mark.parametrize(
    ("d", "m", "L", "gamma"),
    [
        (3, 2, 129, -3.0),
        (3, 2, 65, -0.7),
        (2, 3, 66, 1.3),
        (5, 4, 64, -2.5),
        (20, 1, 2, -3.0),
        (24, 2, 1, -1.7),
    ],
)
def test_fifty_digits_long_or_dense(d: int, m: int, L: int, gamma: float) -> None:
    # The kernels take 64 windows at a time.
    assert (
        error(problems.problem(d=d, m=m, L=L, gamma=gamma, A0="dense" if d > 8 else "default")) <= TOLERANCE
    )


@pytest.mark.nojit
@pytest.mark.parametrize(("d", "m"), [(2, 1), (3, 2), (4, 3), (2, 3)])
def test_long_block_agrees_with_numpy(d: int, m: int) -> None:
    for optimism in OPTIMISM:
        problem = problems.problem(d=d, m=m, L=67, gamma=-1.2, optimism=optimism)
        value, grad = fastlbm.block_ucb(**problem)
        value_np, grad_np = naive.block_ucb(**problem)
        np.testing.assert_allclose(value, value_np, rtol=1e-12)
        np.testing.assert_allclose(grad, grad_np, rtol=0, atol=1e-12 * np.abs(grad_np).max())


@pytest.mark.parametrize(("d", "m"), [(24, 21), (22, 30), (60, 25)])
def test_long_memory_agrees_with_numpy(d: int, m: int) -> None:
    for gamma, A0 in [(-3.0, "default"), (0.5, "dense"), (1.7, "0.25")]:
        problem = problems.problem(d=d, m=m, L=5, gamma=gamma, A0=A0)
        value, grad = fastlbm.block_ucb(**problem)
        value_np, grad_np = naive.block_ucb(**problem)
        np.testing.assert_allclose(value, value_np, rtol=1e-11)
        np.testing.assert_allclose(grad, grad_np, rtol=0, atol=1e-11 * np.abs(grad_np).max())


@pytest.mark.nojit
@pytest.mark.parametrize("L", [1, 2, 12, 13, 14, 30])
@pytest.mark.parametrize(("d", "m"), [(1, 13), (2, 13), (3, 20)])
def test_sliding_sums_have_fifty_digits(d: int, m: int, L: int) -> None:
    """Blocks shorter than a window, as long, and longer; the first m without sliding is 12."""
    assert m > SLIDE_FROM
    problem = problems.problem(d=d, m=m, gamma=-1.5, optimism="O3M", A0="default", L=L)
    assert error(problem) <= TOLERANCE


@pytest.mark.nojit
@pytest.mark.parametrize("m", [3, 12, 13, 17])
def test_blocks_side_by_side_are_as_if_alone(m: int) -> None:
    """Three blocks in lanes; the dense form, with and without sliding sums."""
    rng = np.random.default_rng(m)
    d, L, lanes = 3, 16, 3
    blocks = rng.standard_normal((lanes, m + L, d)) / 2.0
    memory, A0 = make_memory(np.diag([1.0, 2.0, 0.5]), m, -1.5)
    belief = Belief(rng.standard_normal(d), 0.3 * np.eye(d), 1.2, O3M)
    side_by_side = np.ascontiguousarray(blocks.transpose(2, 1, 0).reshape(d, -1))
    values, grad = np.empty(lanes), np.empty_like(side_by_side)
    work = make_work(memory, A0, side_by_side.shape[1], lanes)
    compute_value(memory, A0, belief, side_by_side, lanes, work, values, grad)
    for s, block in enumerate(blocks):
        alone, slope = np.empty(1), np.empty((d, m + L))
        compute_value(
            memory,
            A0,
            belief,
            np.ascontiguousarray(block.T),
            1,
            make_work(memory, A0, m + L, 1),
            alone,
            slope,
        )
        np.testing.assert_allclose(values[s], alone[0], rtol=1e-13)
        np.testing.assert_allclose(grad[:, s::lanes], slope, rtol=0.0, atol=1e-13 * np.abs(slope).max())


@pytest.mark.slow
@pytest.mark.parametrize("d", [32, 64])
def test_fifty_digits_dense_and_large(d: int) -> None:
    assert error(problems.problem(d=d, m=8, L=1, gamma=-2.5, A0="dense")) <= TOLERANCE


@pytest.mark.nojit
@pytest.mark.parametrize(("i", "gamma"), list(enumerate(GAMMAS)))
def test_hard_cases(i: int, gamma: float) -> None:
    assert failures(problems.hard_problems(gamma, OPTIMISM[i % len(OPTIMISM)])) == {}


@pytest.mark.slow
@pytest.mark.parametrize("optimism", OPTIMISM)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_hard_cases_everywhere(gamma: float, optimism: str) -> None:
    assert failures(problems.hard_problems(gamma, optimism)) == {}


@pytest.mark.nojit
@pytest.mark.parametrize("d", [4, 5, 6, 7, 8, 9, 10, 11])
def test_two_eigenvalues_of_A0(d: int) -> None:
    for seed in range(12):
        rng = np.random.default_rng([d, seed])
        Q = problems.orthogonal(d, rng)
        A0 = (Q * np.where(np.arange(d) < rng.integers(1, d), 1.0, 2.5)) @ Q.T
        problem = problems.problem(d=d, m=0, L=1, A0=0.5 * (A0 + A0.T))
        value, grad = fastlbm.block_ucb(**problem)
        value_np, grad_np = naive.block_ucb(**problem)
        np.testing.assert_allclose(value, value_np, rtol=1e-12)
        np.testing.assert_allclose(grad, grad_np, rtol=0, atol=1e-12 * np.abs(grad_np).max())


@pytest.mark.nojit
@pytest.mark.parametrize("optimism", OPTIMISM)
@pytest.mark.parametrize("gamma", [0.0, 1.0, 1.5, 2.0, 3.7])
def test_singular_A0(gamma: float, optimism: str) -> None:
    assert failures(problems.singular_problems(gamma, optimism)) == {}


@pytest.mark.nojit
@pytest.mark.parametrize("optimism", OPTIMISM)
@pytest.mark.parametrize("m", [0, 1, 3])
def test_no_bonus_gradient_at_zero(m: int, optimism: str) -> None:
    problem = problems.problem(
        d=2, m=m, actions=np.zeros((m + 2, 2)), optimism=optimism, gamma=-2.0, A0=2 * np.eye(2)
    )
    value, grad = fastlbm.block_ucb(**problem)
    theta = (
        problem["theta"].reshape(-1, 2) if optimism == "OM-Block" else np.tile(problem["theta"], (m + 2, 1))
    )
    history = theta[:m] if optimism == "OM-Block" else np.zeros((m, 2))
    assert value == 0.0
    np.testing.assert_allclose(grad, np.vstack([history, theta[m:] / 4.0]), rtol=1e-14)


@pytest.mark.nojit
def test_no_bonus_gradient_where_features_cancel() -> None:
    a = np.array([0.5, -0.25])
    problem = problems.problem(m=0, actions=[a, -a], optimism="OM")
    value, grad = fastlbm.block_ucb(**problem)
    assert value == 0.0
    np.testing.assert_array_equal(grad, np.tile(problem["theta"], (2, 1)))


@pytest.mark.nojit
@pytest.mark.parametrize("optimism", OPTIMISM)
@pytest.mark.parametrize("A0", ["default", "corner"])
@pytest.mark.parametrize("scale", [1e-100, 1e-155, 1e-200, 1e-310])
def test_vanishing_actions_stay_finite(scale: float, A0: str, optimism: str) -> None:
    problem = problems.problem(d=3, optimism=optimism, A0=A0, beta=0.0)
    problem["actions"] *= scale
    for beta in (0.0, 0.7):
        value, grad = fastlbm.block_ucb(**problem | {"beta": beta})
        assert math.isfinite(value)
        assert np.isfinite(grad).all()


@pytest.mark.nojit
@pytest.mark.parametrize("A0", ["default", "0.999", "corner"])
@pytest.mark.parametrize("gamma", [-250.0, -100.5, -30.0, -20.5, -8.0, 30.5, 100.0])
def test_steep_powers(gamma: float, A0: str) -> None:
    cases = {}
    for m, size in itertools.product((2, 3), (1.0, 0.5, 0.1)):
        cases[f"m={m}, actions up to {size}"] = problems.problem(d=4, m=m, L=1, gamma=gamma, A0=A0)
        cases[f"m={m}, actions up to {size}"]["actions"] *= size
    assert failures(cases) == {}


@pytest.mark.nojit
def test_powers_below_the_smallest_double_are_zero() -> None:
    problem = problems.problem(
        d=3, m=2, gamma=-3000.0, actions=np.vstack([np.eye(3), np.eye(3)[:1]]), beta=0.0
    )
    value, grad = fastlbm.block_ucb(**problem)
    assert value == pytest.approx(problem["theta"][2] + problem["theta"][0])
    assert np.isfinite(grad).all()


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("c", [2e-3, 0.03, 0.24])
@pytest.mark.parametrize("gamma", [-4.0, -2.5, -0.7])
def test_one_dimension_with_a_small_A0(gamma: float, c: float, m: int) -> None:
    """The power of c is far larger than that of c and an action: nothing may be subtracted from it."""
    actions = np.array([[1.0], [0.9], [-1.0], [0.8], [1.0], [1.0]])
    assert error(problems.problem(gamma=gamma, m=m, actions=actions, A0=[[c]])) <= 1e-12


@pytest.mark.parametrize("c", [1e-3, 0.03, 0.24])
@pytest.mark.parametrize("gamma", [-5.0, -2.5])
def test_windows_that_span_the_plane_with_a_small_A0(gamma: float, c: float) -> None:
    """The same in two dimensions, where two actions leave no direction in which c counts alone."""
    angles = np.array([0.1, 1.3, 2.9, 0.7, 2.2, 1.4])
    actions = np.column_stack((np.cos(angles), np.sin(angles)))
    assert error(problems.problem(d=2, gamma=gamma, m=2, actions=actions, A0=c * np.eye(2))) <= 1e-11


@pytest.mark.parametrize("length", [3.0, 30.0, 100.0])
@pytest.mark.parametrize(("d", "m"), [(1, 1), (1, 2), (1, 3), (2, 2)])
def test_long_actions(d: int, m: int, length: float) -> None:
    """A0 = I is small beside them, which is the same."""
    angles = np.array([0.1, 1.3, 2.9, 0.7, 2.2, 1.4])
    actions = length * np.column_stack((np.cos(angles), np.sin(angles)))[:, -d:]
    assert error(problems.problem(d=d, gamma=-4.0, m=m, actions=actions)) <= 1e-10
