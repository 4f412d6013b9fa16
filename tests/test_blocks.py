"""block_ucb against fifty digits, against differences, and against bad input."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fastlbm
from fastlbm.kernels.blocks import compute_value, make_work
from fastlbm.kernels.memory import SLIDE_FROM, make_memory
from fastlbm.kernels.optimism import O3M, Belief

from . import naive
from .naive import GAMMAS, OPTIMISM, Problem

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


def failures(problems: dict[str, Problem]) -> dict[str, float]:
    errors = {name: error(problem) for name, problem in problems.items()}
    return {name: e for name, e in errors.items() if e > TOLERANCE}


def grid_problem(d: int, m: int, gamma: float, optimism: str, A0: str) -> Problem:
    # Fifty digits of a dense 64 x 64 spectrum take half a minute; `corner` uses the same kernels.
    A0 = "corner" if A0 == "dense" and d > 8 else A0
    return naive.problem(d=d, m=m, gamma=gamma, optimism=optimism, A0=A0)


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
    problems = {
        f"d={d}, m={m}, A0={A0}": naive.problem(d=d, m=m, gamma=gamma, optimism=optimism, A0=A0)
        for d, m, A0 in [(1, 1, "default"), (2, 0, "3"), (3, 2, "default"), (2, 3, "0.25"), (3, 1, "dense")]
    }
    assert failures(problems) == {}


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
    assert error(naive.problem(d=d, m=m, L=L, gamma=gamma, A0="dense" if d > 8 else "default")) <= TOLERANCE


@pytest.mark.nojit
@pytest.mark.parametrize(("d", "m"), [(2, 1), (3, 2), (4, 3), (2, 3)])
def test_long_block_agrees_with_numpy(d: int, m: int) -> None:
    for optimism in OPTIMISM:
        problem = naive.problem(d=d, m=m, L=67, gamma=-1.2, optimism=optimism)
        value, grad = fastlbm.block_ucb(**problem)
        value_np, grad_np = naive.block_ucb(**problem)
        np.testing.assert_allclose(value, value_np, rtol=1e-12)
        np.testing.assert_allclose(grad, grad_np, rtol=0, atol=1e-12 * np.abs(grad_np).max())


@pytest.mark.parametrize(("d", "m"), [(24, 21), (22, 30), (60, 25)])
def test_long_memory_agrees_with_numpy(d: int, m: int) -> None:
    for gamma, A0 in [(-3.0, "default"), (0.5, "dense"), (1.7, "0.25")]:
        problem = naive.problem(d=d, m=m, L=5, gamma=gamma, A0=A0)
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
    problem = naive.problem(d=d, m=m, gamma=-1.5, optimism="O3M", A0="default", L=L)
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
    assert error(naive.problem(d=d, m=8, L=1, gamma=-2.5, A0="dense")) <= TOLERANCE


@pytest.mark.nojit
@pytest.mark.parametrize(("i", "gamma"), list(enumerate(GAMMAS)))
def test_hard_cases(i: int, gamma: float) -> None:
    assert failures(naive.hard_problems(gamma, OPTIMISM[i % len(OPTIMISM)])) == {}


@pytest.mark.slow
@pytest.mark.parametrize("optimism", OPTIMISM)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_hard_cases_everywhere(gamma: float, optimism: str) -> None:
    assert failures(naive.hard_problems(gamma, optimism)) == {}


@pytest.mark.nojit
@pytest.mark.parametrize("d", [4, 5, 6, 7, 8, 9, 10, 11])
def test_two_eigenvalues_of_A0(d: int) -> None:
    for seed in range(12):
        rng = np.random.default_rng([d, seed])
        Q = naive.orthogonal(d, rng)
        A0 = (Q * np.where(np.arange(d) < rng.integers(1, d), 1.0, 2.5)) @ Q.T
        problem = naive.problem(d=d, m=0, L=1, A0=0.5 * (A0 + A0.T))
        value, grad = fastlbm.block_ucb(**problem)
        value_np, grad_np = naive.block_ucb(**problem)
        np.testing.assert_allclose(value, value_np, rtol=1e-12)
        np.testing.assert_allclose(grad, grad_np, rtol=0, atol=1e-12 * np.abs(grad_np).max())


@pytest.mark.nojit
@pytest.mark.parametrize("optimism", OPTIMISM)
@pytest.mark.parametrize("gamma", [0.0, 1.0, 1.5, 2.0, 3.7])
def test_singular_A0(gamma: float, optimism: str) -> None:
    assert failures(naive.singular_problems(gamma, optimism)) == {}


@pytest.mark.nojit
@pytest.mark.parametrize("optimism", OPTIMISM)
@pytest.mark.parametrize("m", [0, 1, 3])
def test_no_bonus_gradient_at_zero(m: int, optimism: str) -> None:
    problem = naive.problem(
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
    problem = naive.problem(m=0, actions=[a, -a], optimism="OM")
    value, grad = fastlbm.block_ucb(**problem)
    assert value == 0.0
    np.testing.assert_array_equal(grad, np.tile(problem["theta"], (2, 1)))


@pytest.mark.nojit
@pytest.mark.parametrize("optimism", OPTIMISM)
@pytest.mark.parametrize("A0", ["default", "corner"])
@pytest.mark.parametrize("scale", [1e-100, 1e-155, 1e-200, 1e-310])
def test_vanishing_actions_stay_finite(scale: float, A0: str, optimism: str) -> None:
    problem = naive.problem(d=3, optimism=optimism, A0=A0, beta=0.0)
    problem["actions"] *= scale
    for beta in (0.0, 0.7):
        value, grad = fastlbm.block_ucb(**problem | {"beta": beta})
        assert math.isfinite(value)
        assert np.isfinite(grad).all()


@pytest.mark.nojit
@pytest.mark.parametrize("A0", ["default", "0.999", "corner"])
@pytest.mark.parametrize("gamma", [-250.0, -100.5, -30.0, -20.5, -8.0, 30.5, 100.0])
def test_steep_powers(gamma: float, A0: str) -> None:
    problems = {}
    for m, size in itertools.product((2, 3), (1.0, 0.5, 0.1)):
        problems[f"m={m}, actions up to {size}"] = naive.problem(d=4, m=m, L=1, gamma=gamma, A0=A0)
        problems[f"m={m}, actions up to {size}"]["actions"] *= size
    assert failures(problems) == {}


@pytest.mark.nojit
def test_powers_below_the_smallest_double_are_zero() -> None:
    problem = naive.problem(d=3, m=2, gamma=-3000.0, actions=np.vstack([np.eye(3), np.eye(3)[:1]]), beta=0.0)
    value, grad = fastlbm.block_ucb(**problem)
    assert value == pytest.approx(problem["theta"][2] + problem["theta"][0])
    assert np.isfinite(grad).all()


# --- properties ---------------------------------------------------------------------------------------

problems = st.builds(
    naive.problem,
    d=st.integers(1, 5),
    m=st.integers(0, 4),
    L=st.integers(1, 4),
    gamma=st.one_of(st.sampled_from(GAMMAS), st.floats(-4.0, 4.0)),
    beta=st.floats(0.0, 3.0),
    optimism=st.sampled_from(OPTIMISM),
    A0=st.sampled_from(MATRICES),
    seed=st.integers(0, 2**32 - 1),
)


@pytest.mark.nojit
@settings(max_examples=60)
@given(problem=problems)
def test_gradient_is_the_slope_of_the_value(problem: Problem) -> None:
    B = naive.features(problem["actions"], problem["m"], problem["gamma"], problem["A0"])
    # Differences blur the kink of the bonus.
    assume(np.linalg.norm(B, axis=1).min() > 1e-3 and np.linalg.norm(B.sum(axis=0)) > 1e-2)
    value, grad = fastlbm.block_ucb(**problem)
    assert value == pytest.approx(naive.block_value(**problem), rel=1e-10, abs=1e-12)
    np.testing.assert_allclose(
        grad, naive.differences(problem), rtol=0, atol=1e-5 * max(1.0, np.abs(grad).max())
    )


@pytest.mark.nojit
@settings(max_examples=60)
@given(problem=problems, seed=st.integers(0, 2**32 - 1))
def test_rotation_rotates_the_gradient(problem: Problem, seed: int) -> None:
    n, d = problem["actions"].shape
    problem["A0"] = None
    Q = naive.orthogonal(d, np.random.default_rng(seed))
    R = np.kron(np.eye(n), Q) if problem["optimism"] == "OM-Block" else Q
    V_inv = R @ problem["V_inv"] @ R.T
    rotated = problem | {
        "actions": problem["actions"] @ Q.T,
        "theta": R @ problem["theta"],
        "V_inv": 0.5 * (V_inv + V_inv.T),
    }
    value, grad = fastlbm.block_ucb(**problem)
    value_rotated, grad_rotated = fastlbm.block_ucb(**rotated)
    assert value_rotated == pytest.approx(value, rel=1e-9, abs=1e-11)
    np.testing.assert_allclose(grad_rotated, grad @ Q.T, rtol=0, atol=1e-9 * max(1.0, np.abs(grad).max()))


@pytest.mark.nojit
@settings(max_examples=40)
@given(problem=problems)
def test_gamma_zero_forgets_the_memory(problem: Problem) -> None:
    problem["gamma"] = 0.0
    m, beta, theta, V_inv = (problem[key] for key in ("m", "beta", "theta", "V_inv"))
    history, played = problem["actions"][:m], problem["actions"][m:]
    if problem["optimism"] == "O3M":
        x = played
    elif problem["optimism"] == "OM":
        x = played.sum(axis=0)[None]
    else:
        x = problem["actions"].reshape(1, -1)
    norms = np.sqrt(np.einsum("ji,ik,jk->j", x, V_inv, x))
    slope = theta + beta * x @ V_inv / norms[:, None]
    if problem["optimism"] == "OM-Block":
        expected = slope.reshape(problem["actions"].shape)
    else:
        expected = np.vstack([np.zeros_like(history), np.broadcast_to(slope, played.shape)])
    value, grad = fastlbm.block_ucb(**problem)
    assert value == pytest.approx((x @ theta).sum() + beta * norms.sum(), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(grad, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.nojit
@settings(max_examples=40)
@given(problem=problems)
def test_o3m_is_at_least_as_optimistic_as_om(problem: Problem) -> None:
    assume(problem["optimism"] != "OM-Block")
    o3m, _ = fastlbm.block_ucb(**problem | {"optimism": "O3M"})
    om, _ = fastlbm.block_ucb(**problem | {"optimism": "OM"})
    assert o3m >= om - 1e-12 * max(1.0, abs(om))
    if len(problem["actions"]) == problem["m"] + 1:
        assert o3m == pytest.approx(om, rel=1e-12, abs=1e-12)


@pytest.mark.nojit
@settings(max_examples=40)
@given(problem=problems, factor=st.floats(0.1, 10.0))
def test_beta_and_V_inv_trade_scale(problem: Problem, factor: float) -> None:
    value, grad = fastlbm.block_ucb(**problem)
    scaled = problem | {"beta": problem["beta"] * factor, "V_inv": problem["V_inv"] / factor**2}
    value_scaled, grad_scaled = fastlbm.block_ucb(**scaled)
    assert value_scaled == pytest.approx(value, rel=1e-11, abs=1e-11)
    np.testing.assert_allclose(grad_scaled, grad, rtol=0, atol=1e-11 * max(1.0, np.abs(grad).max()))


def layouts(x: Any) -> dict[str, Any]:
    """The same array in other memory layouts and types."""
    spread = np.full(tuple(2 * s for s in x.shape), np.nan)
    inner = tuple(slice(0, None, 2) for _ in x.shape)
    spread[inner] = x
    backward = tuple(slice(None, None, -1) for _ in x.shape)
    fixed = x.copy()
    fixed.flags.writeable = False
    return {
        "Fortran": np.asfortranarray(x),
        "strided": spread[inner],
        "reversed": x[backward].copy()[backward],
        "read-only": fixed,
        "list": x.tolist(),
        "big-endian": x.astype(">f8"),
    }


@pytest.mark.nojit
@pytest.mark.parametrize("optimism", OPTIMISM)
@pytest.mark.parametrize("layout", list(layouts(np.zeros(1))))
def test_memory_layout_does_not_matter(layout: str, optimism: str) -> None:
    problem = naive.problem(optimism=optimism, A0="dense")
    other = {key: layouts(x)[layout] if isinstance(x, np.ndarray) else x for key, x in problem.items()}
    value, grad = fastlbm.block_ucb(**problem)
    value_other, grad_other = fastlbm.block_ucb(**other)
    assert value_other == value
    np.testing.assert_array_equal(grad_other, grad)


@pytest.mark.nojit
def test_numbers_of_any_type() -> None:
    problem = naive.problem(gamma=-3.0, beta=1.0)
    value, grad = fastlbm.block_ucb(**problem)
    other = problem | {"m": np.int64(2), "gamma": -3, "beta": np.float32(1.0)}
    value_other, grad_other = fastlbm.block_ucb(**other)
    assert value_other == value
    np.testing.assert_array_equal(grad_other, grad)


@pytest.mark.nojit
@pytest.mark.parametrize("A0", ["default", "dense"])
def test_result_is_fresh_and_arguments_are_kept(A0: str) -> None:
    problem = naive.problem(A0=A0)
    before = {key: np.copy(x) for key, x in problem.items() if isinstance(x, np.ndarray)}
    value, grad = fastlbm.block_ucb(**problem)
    assert isinstance(value, float)
    assert grad.dtype == np.float64
    assert grad.flags.c_contiguous
    assert grad.flags.writeable
    kept = grad.copy()
    fastlbm.block_ucb(**problem | {"actions": problem["actions"][::-1]})
    np.testing.assert_array_equal(grad, kept)
    for key, x in before.items():
        np.testing.assert_array_equal(problem[key], x)


@pytest.mark.nojit
def test_defaults() -> None:
    problem = naive.problem()
    value, grad = fastlbm.block_ucb(**problem | {"optimism": "O3M", "A0": np.eye(3)})
    del problem["optimism"], problem["A0"]
    value_default, grad_default = fastlbm.block_ucb(**problem)
    assert value_default == value
    np.testing.assert_array_equal(grad_default, grad)


@pytest.mark.nojit
@pytest.mark.parametrize("optimism", OPTIMISM)
def test_the_reward_of_a_block_needs_no_V_inv(optimism: str) -> None:
    problem = naive.problem(beta=0.0, optimism=optimism)
    value, grad = fastlbm.block_ucb(**problem)
    del problem["V_inv"], problem["beta"]
    value_plain, grad_plain = fastlbm.block_ucb(**problem)
    assert value_plain == value
    np.testing.assert_array_equal(grad_plain, grad)


# --- bad input ----------------------------------------------------------------------------------------


def with_entry(x: Any, entry: float) -> Any:
    result = np.array(x, dtype=np.float64)
    result.flat[1] = entry
    return result


SYMMETRIC = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
ASYMMETRIC = np.array([[1.0, 0.5, 0.0], [0.4, 1.0, 0.0], [0.0, 0.0, 1.0]])
INDEFINITE = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
SINGULAR = np.diag([1.0, 0.5, 0.0])

BAD = [
    ("actions", {"actions": np.zeros(3)}, ValueError),
    ("actions", {"actions": np.zeros((1, 4, 3))}, ValueError),
    ("actions", {"actions": np.zeros((0, 3))}, ValueError),
    ("actions", {"actions": np.zeros((2, 3))}, ValueError),
    ("actions", {"actions": np.zeros((4, 0)), "theta": np.zeros(0), "V_inv": np.zeros((0, 0))}, ValueError),
    ("actions", {"actions": with_entry(np.zeros((4, 3)), math.nan)}, ValueError),
    ("actions", {"actions": with_entry(np.zeros((4, 3)), -math.inf)}, ValueError),
    ("actions", {"actions": "four"}, TypeError),
    ("actions", {"actions": None}, (TypeError, ValueError)),
    ("actions", {"actions": [[0.0, 0.0, 0.0], [0.0, 0.0], [0.0]]}, (TypeError, ValueError)),
    ("actions", {"m": 4}, ValueError),
    ("theta", {"theta": np.ones(2)}, ValueError),
    ("theta", {"theta": np.ones((3, 1))}, ValueError),
    ("theta", {"theta": 1.0}, ValueError),
    ("theta", {"theta": with_entry(np.ones(3), math.nan)}, ValueError),
    ("theta", {"theta": with_entry(np.ones(3), math.inf)}, ValueError),
    ("theta", {"theta": {"a": 1}}, TypeError),
    ("theta", {"optimism": "OM-Block", "V_inv": np.eye(12)}, ValueError),
    ("V_inv", {"V_inv": np.eye(2)}, ValueError),
    ("V_inv", {"V_inv": np.ones(3)}, ValueError),
    ("V_inv", {"V_inv": with_entry(np.eye(3), math.nan)}, ValueError),
    ("V_inv", {"V_inv": with_entry(np.eye(3), math.inf)}, ValueError),
    ("V_inv", {"V_inv": ASYMMETRIC}, ValueError),
    ("V_inv", {"V_inv": INDEFINITE}, ValueError),
    ("V_inv", {"V_inv": -np.eye(3)}, ValueError),
    ("V_inv", {"V_inv": "identity"}, TypeError),
    ("V_inv", {"V_inv": None}, ValueError),
    ("V_inv", {"optimism": "OM-Block", "theta": np.ones(12)}, ValueError),
    ("A0", {"A0": np.eye(2)}, ValueError),
    ("A0", {"A0": 1.0}, ValueError),
    ("A0", {"A0": with_entry(np.eye(3), math.nan)}, ValueError),
    ("A0", {"A0": with_entry(np.eye(3), math.inf)}, ValueError),
    ("A0", {"A0": ASYMMETRIC}, ValueError),
    ("A0", {"A0": INDEFINITE}, ValueError),
    ("A0", {"A0": -np.eye(3)}, ValueError),
    ("A0", {"A0": -np.eye(3), "gamma": 2.0}, ValueError),
    ("A0", {"A0": SINGULAR}, ValueError),
    ("A0", {"A0": SINGULAR, "gamma": -0.5}, ValueError),
    ("A0", {"A0": SINGULAR, "gamma": 0.5}, ValueError),
    ("A0", {"A0": SINGULAR, "gamma": 0.99}, ValueError),
    ("A0", {"A0": np.zeros((3, 3))}, ValueError),
    ("A0", {"A0": np.zeros((3, 3)), "gamma": 0.5}, ValueError),
    ("gamma", {"A0": SINGULAR}, ValueError),
    ("gamma", {"gamma": math.nan}, ValueError),
    ("gamma", {"gamma": math.inf}, ValueError),
    ("gamma", {"gamma": -math.inf}, ValueError),
    ("gamma", {"gamma": 5000}, ValueError),
    ("gamma", {"gamma": -5000.0, "A0": 0.5 * SYMMETRIC}, ValueError),
    ("gamma", {"gamma": "3"}, TypeError),
    ("gamma", {"gamma": None}, TypeError),
    ("gamma", {"gamma": np.array([1.0])}, TypeError),
    ("m", {"m": -1}, ValueError),
    ("m", {"m": 1.5}, ValueError),
    ("m", {"m": math.nan}, ValueError),
    ("m", {"m": math.inf}, ValueError),
    ("m", {"m": "2"}, TypeError),
    ("m", {"m": True}, TypeError),
    ("m", {"m": None}, TypeError),
    ("beta", {"beta": -0.1}, ValueError),
    ("beta", {"beta": math.nan}, ValueError),
    ("beta", {"beta": math.inf}, ValueError),
    ("beta", {"beta": "0.1"}, TypeError),
    ("beta", {"beta": None}, TypeError),
    ("beta", {"beta": True}, TypeError),
    ("optimism", {"optimism": "UCB"}, ValueError),
    ("optimism", {"optimism": "o3m"}, ValueError),
    ("optimism", {"optimism": None}, (TypeError, ValueError)),
    ("optimism", {"optimism": 3}, (TypeError, ValueError)),
]


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("name", "change", "exception"),
    [pytest.param(*case, id=f"{case[0]}{i}") for i, case in enumerate(BAD)],
)
def test_bad_input_is_named(name: str, change: Problem, exception: Any) -> None:
    with pytest.raises(exception, match=rf"\b{name}\b"):
        fastlbm.block_ucb(**naive.problem() | change)


@pytest.mark.nojit
def test_good_input_beside_the_bad() -> None:
    for change in (
        {"m": 3},
        {"m": 2.0},
        {"A0": SINGULAR, "gamma": 1.0},
        {"A0": SINGULAR, "gamma": 0.0},
        {"beta": 0},
    ):
        value, grad = fastlbm.block_ucb(**naive.problem() | change)
        assert math.isfinite(value)
        assert np.isfinite(grad).all()
