"""block_ucb: what must hold for every problem, what does not matter, and bad input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fastlbm
from tests import naive, problems
from tests.naive import GAMMAS, OPTIMISM, Problem

MATRICES = ("default", "0.25", "3", "corner", "dense")

any_problem = st.builds(
    problems.problem,
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
@given(problem=any_problem)
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
@given(problem=any_problem, seed=st.integers(0, 2**32 - 1))
def test_rotation_rotates_the_gradient(problem: Problem, seed: int) -> None:
    n, d = problem["actions"].shape
    problem["A0"] = None
    Q = problems.orthogonal(d, np.random.default_rng(seed))
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
@given(problem=any_problem)
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
@given(problem=any_problem)
def test_o3m_is_at_least_as_optimistic_as_om(problem: Problem) -> None:
    assume(problem["optimism"] != "OM-Block")
    o3m, _ = fastlbm.block_ucb(**problem | {"optimism": "O3M"})
    om, _ = fastlbm.block_ucb(**problem | {"optimism": "OM"})
    assert o3m >= om - 1e-12 * max(1.0, abs(om))
    if len(problem["actions"]) == problem["m"] + 1:
        assert o3m == pytest.approx(om, rel=1e-12, abs=1e-12)


@pytest.mark.nojit
@settings(max_examples=40)
@given(problem=any_problem, factor=st.floats(0.1, 10.0))
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
    problem = problems.problem(optimism=optimism, A0="dense")
    other = {key: layouts(x)[layout] if isinstance(x, np.ndarray) else x for key, x in problem.items()}
    value, grad = fastlbm.block_ucb(**problem)
    value_other, grad_other = fastlbm.block_ucb(**other)
    assert value_other == value
    np.testing.assert_array_equal(grad_other, grad)


@pytest.mark.nojit
def test_numbers_of_any_type() -> None:
    problem = problems.problem(gamma=-3.0, beta=1.0)
    value, grad = fastlbm.block_ucb(**problem)
    other = problem | {"m": np.int64(2), "gamma": -3, "beta": np.float32(1.0)}
    value_other, grad_other = fastlbm.block_ucb(**other)
    assert value_other == value
    np.testing.assert_array_equal(grad_other, grad)


@pytest.mark.nojit
@pytest.mark.parametrize("A0", ["default", "dense"])
def test_result_is_fresh_and_arguments_are_kept(A0: str) -> None:
    problem = problems.problem(A0=A0)
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
    problem = problems.problem()
    value, grad = fastlbm.block_ucb(**problem | {"optimism": "O3M", "A0": np.eye(3)})
    del problem["optimism"], problem["A0"]
    value_default, grad_default = fastlbm.block_ucb(**problem)
    assert value_default == value
    np.testing.assert_array_equal(grad_default, grad)


@pytest.mark.nojit
@pytest.mark.parametrize("optimism", OPTIMISM)
def test_the_reward_of_a_block_needs_no_V_inv(optimism: str) -> None:
    problem = problems.problem(beta=0.0, optimism=optimism)
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
        fastlbm.block_ucb(**problems.problem() | change)


@pytest.mark.nojit
def test_good_input_beside_the_bad() -> None:
    for change in (
        {"m": 3},
        {"m": 2.0},
        {"A0": SINGULAR, "gamma": 1.0},
        {"A0": SINGULAR, "gamma": 0.0},
        {"beta": 0},
    ):
        value, grad = fastlbm.block_ucb(**problems.problem() | change)
        assert math.isfinite(value)
        assert np.isfinite(grad).all()
