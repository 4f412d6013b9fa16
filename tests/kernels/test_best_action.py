"""The best action of the ball and of a set of arms against bounds, ascents, samples and NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fastlbm.kernels.best_action import best_arm, best_in_ball
from tests import naive, problems
from tests.naive import Array

TOLERANCE = 1e-12
DIMENSIONS = (*range(1, 9), 15)


def ball_ascent(starts: Array, g: Array, W: Array, beta: float, steps: int = 100) -> Array:
    """Unit vectors (N, d), improved: a convex objective gains at least what its linearisation does."""
    a = starts / np.linalg.norm(starts, axis=1, keepdims=True)
    for _ in range(steps):
        slope = np.sqrt(np.maximum(((a @ W) * a).sum(axis=1, keepdims=True), 1e-300))
        up = g + beta * (a @ W) / slope
        size = np.linalg.norm(up, axis=1, keepdims=True)
        a = np.where(size > 0.0, up / np.where(size > 0.0, size, 1.0), a)
    return a


def solve(g: Array, W: Array, beta: float) -> tuple[float, Array]:
    """The value and the action, once it is clear that both belong together and the arguments are unharmed."""
    g, W = np.array(g, dtype=np.float64), np.array(W, dtype=np.float64)
    before, out = (g.copy(), W.copy()), np.full(len(g), np.nan)
    value = best_in_ball(g, W, beta, out)
    np.testing.assert_array_equal(g, before[0])
    np.testing.assert_array_equal(W, before[1])
    assert np.linalg.norm(out) == pytest.approx(1.0, abs=1e-14)
    assert value == pytest.approx(float(naive.linear_ucb(out, g, W, beta)), rel=TOLERANCE)
    return value, out


def check(g: Array, W: Array, beta: float, seed: int = 0) -> None:
    """Nothing is better: not what duality allows, no random vector, no ascent from one."""
    value, out = solve(g, W, beta)
    assert value == pytest.approx(naive.ball_bound(g, W, beta), rel=TOLERANCE)
    rng = np.random.default_rng(seed)
    d = len(g)
    some = rng.normal(size=(2000, d))
    some /= np.linalg.norm(some, axis=1, keepdims=True)
    assert naive.linear_ucb(some, g, W, beta).max() <= value * (1.0 + TOLERANCE)
    starts = np.vstack([some[:50], np.eye(d), -np.eye(d), out + 1e-3 * some[:10]])
    ascended = ball_ascent(starts, g, W, beta)
    assert naive.linear_ucb(ascended, g, W, beta).max() <= value * (1.0 + TOLERANCE)


def with_spectrum(lam: Array, Q: Array) -> Array:
    W = (Q * lam) @ Q.T
    return 0.5 * (W + W.T)


@pytest.mark.nojit
@pytest.mark.parametrize("beta", [1e-6, 0.3, 1.0, 20.0, 1e6])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_positive_definite(d: int, beta: float) -> None:
    for seed in range(3):
        rng = np.random.default_rng([d, seed])
        check(rng.normal(size=d), problems.precision(d, rng), beta)


@pytest.mark.nojit
@pytest.mark.parametrize("d", DIMENSIONS)
def test_singular(d: int) -> None:
    rng = np.random.default_rng(d)
    for rank in range(d):
        X = rng.normal(size=(d, rank))
        check(rng.normal(size=d), X @ X.T, 0.8)
        check(rng.normal(size=d), X @ X.T, 100.0)


@pytest.mark.nojit
@pytest.mark.parametrize("d", DIMENSIONS)
def test_without_a_bonus_it_is_the_direction_of_g(d: int) -> None:
    rng = np.random.default_rng(d)
    g = rng.normal(size=d)
    for W, beta in ((problems.precision(d, rng), 0.0), (np.zeros((d, d)), 2.0), (np.zeros((d, d)), 0.0)):
        value, out = solve(g, W, beta)
        assert value == pytest.approx(np.linalg.norm(g), rel=1e-14)
        np.testing.assert_allclose(out, g / np.linalg.norm(g), atol=1e-14)


@pytest.mark.nojit
@pytest.mark.parametrize("d", DIMENSIONS)
def test_without_g_it_is_a_widest_direction(d: int) -> None:
    W = problems.precision(d, np.random.default_rng(d))
    value, out = solve(np.zeros(d), W, 0.7)
    top = np.linalg.eigvalsh(W)[-1]
    assert value == pytest.approx(0.7 * math.sqrt(top), rel=1e-13)
    np.testing.assert_allclose(W @ out, top * out, atol=1e-12)


@pytest.mark.nojit
def test_nothing_to_gain_is_worth_nothing() -> None:
    out = np.full(3, np.nan)
    for W, beta in ((np.zeros((3, 3)), 1.0), (np.eye(3), 0.0)):
        assert best_in_ball(np.zeros(3), W, beta, out) == 0.0
        assert np.linalg.norm(out) <= 1.0


@pytest.mark.nojit
def test_a_multiple_of_the_identity_keeps_the_direction_of_g() -> None:
    g = np.array([0.3, -0.4, 1.2])
    value, out = solve(g, 4.0 * np.eye(3), 0.5)
    assert value == pytest.approx(1.3 + 1.0, rel=1e-14)
    np.testing.assert_allclose(out, g / 1.3, atol=1e-14)


@pytest.mark.nojit
def test_one_dimension() -> None:
    for g in (-2.0, 0.5):
        value, out = solve(np.array([g]), np.array([[9.0]]), 2.0)
        assert value == pytest.approx(abs(g) + 6.0, rel=1e-14)
        assert out[0] == math.copysign(1.0, g)


@pytest.mark.nojit
def test_by_hand() -> None:
    # g orthogonal to the top direction, W = diag(4, 1): u = (s, 1/3), g + W^(1/2) u = (2 s, 4/3).
    value, out = solve(np.array([0.0, 1.0]), np.diag([4.0, 1.0]), 1.0)
    s = math.sqrt(1.0 - 1.0 / 9.0)
    expected = np.array([2.0 * s, 4.0 / 3.0])
    assert value == pytest.approx(np.linalg.norm(expected), rel=1e-14)
    np.testing.assert_allclose(np.abs(out), expected / np.linalg.norm(expected), atol=1e-14)
    # A longer g and the top direction is not worth its while.
    value, out = solve(np.array([0.0, 5.0]), np.diag([4.0, 1.0]), 1.0)
    assert value == pytest.approx(6.0, rel=1e-14)
    np.testing.assert_allclose(out, [0.0, 1.0], atol=1e-14)


@pytest.mark.nojit
@pytest.mark.parametrize("along", [0.0, 1e-300, 1e-200, -1e-160, 1e-150, 1e-30, -1e-12, 1e-8, 1e-3])
@pytest.mark.parametrize("size", [1e-3, 0.1, 1.0, 2.9, 3.0, 3.1, 30.0, 1e4])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_little_of_g_along_the_widest_direction(d: int, size: float, along: float) -> None:
    # u is too short or too long without a share of the first direction: u = g sqrt(h) / (4 - 1), h = 1.
    lam = np.ones(d)
    lam[0] = 4.0
    g = np.zeros(d)
    g[0], g[-1] = along, size
    check(g, np.diag(lam), 1.0)
    check(g, np.diag(lam[::-1]), 1.0)
    Q = problems.orthogonal(d, np.random.default_rng(d))
    check(Q @ g, with_spectrum(lam, Q), 1.0)


@pytest.mark.nojit
@pytest.mark.parametrize("several", [2, 3])
@pytest.mark.parametrize("gap", [0.0, 1e-16, 1e-14, 1e-10, 1e-5])
def test_equal_and_nearly_equal_widest_directions(gap: float, several: int) -> None:
    d = 4
    rng = np.random.default_rng(several)
    lam = np.array([1.0 + gap * k if k < several else 0.3 for k in range(d)])
    for Q in (np.eye(d), problems.orthogonal(d, rng)):
        W = with_spectrum(lam, Q)
        for c in (np.array([0.2, 0.1, -0.5, 1.0]), np.array([0.0, 0.0, 0.0, 0.2]), np.array([0.0, 0, 0, 9])):
            for tiny in (0.0, 1e-12, 1e-200):
                c[0] = c[0] or tiny
                check(Q @ c, W, 1.0)
                check(Q @ c, W, 50.0)


@pytest.mark.nojit
@pytest.mark.parametrize("scale", [1e-70, 1e-30, 1e-8, 1e8, 1e30, 1e70])
@pytest.mark.parametrize("d", [1, 3, 15])
def test_scales(d: int, scale: float) -> None:
    rng = np.random.default_rng(d)
    g, W = rng.normal(size=d), problems.precision(d, rng)
    value, out = solve(g, W, 0.9)
    # All of it on another scale: the same action.
    scaled, same = solve(scale * g, W, scale * 0.9)
    assert scaled == pytest.approx(scale * value, rel=1e-13)
    np.testing.assert_allclose(same, out, atol=1e-12)
    scaled, same = solve(scale * g, scale * scale * W, 0.9)
    assert scaled == pytest.approx(scale * value, rel=1e-13)
    np.testing.assert_allclose(same, out, atol=1e-12)
    # Part of it, twice as many decades away.
    check(scale * scale * g, W, 0.9)
    check(g, W, scale * scale)
    check(g, scale * scale * W, 0.9)


@pytest.mark.nojit
@pytest.mark.parametrize("decades", [4, 8, 15])
def test_widths_of_many_scales(decades: int) -> None:
    for d in (2, 4, 7):
        rng = np.random.default_rng([d, decades])
        lam = np.logspace(-decades, 0, d)
        for Q in (np.eye(d), problems.orthogonal(d, rng)):
            check(Q @ rng.normal(size=d), with_spectrum(lam, Q), 1.3)
            check(Q @ (rng.normal(size=d) * np.sqrt(lam)), with_spectrum(lam, Q), 1.3)


@pytest.mark.nojit
def test_of_equal_actions_a_fixed_one() -> None:
    for g, W in ((np.zeros(3), np.eye(3)), (np.array([0.0, 0.1, 0.0]), np.diag([1.0, 0.2, 1.0]))):
        first = solve(g, W, 1.0)[1]
        np.testing.assert_array_equal(solve(g, W, 1.0)[1], first)


@pytest.mark.nojit
def test_turning_the_problem_turns_the_action() -> None:
    rng = np.random.default_rng(0)
    g, W, Q = rng.normal(size=4), problems.precision(4, rng), problems.orthogonal(4, rng)
    value, out = solve(g, W, 1.1)
    turned, action = solve(Q @ g, Q @ W @ Q.T, 1.1)
    assert turned == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(action, Q @ out, atol=1e-12)


# Squares of smaller numbers underflow; the tests above say what happens there.
entries = st.floats(-1.0, 1.0).map(lambda x: x if abs(x) > 1e-100 else 0.0)


@st.composite
def any_problem(draw: st.DrawFn) -> tuple[Array, Array, float]:
    d = draw(st.integers(1, 5))
    X = draw(arrays(np.float64, (d, draw(st.integers(0, d))), elements=entries))
    g = draw(arrays(np.float64, d, elements=entries)) * 10.0 ** draw(st.integers(-6, 6))
    return g, X @ X.T, draw(st.sampled_from([0.0, 1e-4, 0.5, 1.0, 3.0, 1e4]))


@pytest.mark.nojit
@settings(max_examples=150)
@given(any_problem())
def test_any_problem(problem: tuple[Array, Array, float]) -> None:
    g, W, beta = problem
    if not g.any() and not (beta * W).any():
        return
    check(g, W, beta)


# --- arms ---------------------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("beta", [0.0, 0.2, 5.0])
@pytest.mark.parametrize(("K", "d"), [(1, 1), (2, 1), (7, 3), (50, 6)])
def test_best_arm_against_numpy(K: int, d: int, beta: float) -> None:
    for seed in range(10):
        rng = np.random.default_rng([K, d, seed])
        arms, g, W = problems.ball(K, d, rng), rng.normal(size=d), problems.precision(d, rng)
        assert best_arm(arms, g, W, beta) == naive.linear_ucb(arms, g, W, beta).argmax()


@pytest.mark.nojit
@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_the_first_of_equal_arms(beta: float) -> None:
    arms = np.array([[0.1, 0.0], [0.6, 0.8], [0.8, 0.6], [0.6, 0.8], [1.0, 0.0]])
    assert best_arm(arms, np.array([1.0, 1.0]), np.eye(2), beta) == 1
    assert best_arm(arms, np.zeros(2), np.zeros((2, 2)), beta) == 0
    assert best_arm(arms[[4, 4, 0]], np.array([1.0, 0.0]), np.eye(2), beta) == 0


@pytest.mark.nojit
def test_rounding_does_not_part_equal_arms() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        Q = problems.orthogonal(4, rng)
        # One value for all of them, up to its last digits.
        assert best_arm(Q, Q.sum(axis=0), np.eye(4), 1.0) == 0
        assert best_arm(Q, -Q.sum(axis=0), np.eye(4), 0.5) == 0


@pytest.mark.nojit
def test_without_a_bonus_the_width_does_not_matter() -> None:
    arms = np.array([[0.0, 1.0], [0.1, 0.0]])
    assert best_arm(arms, np.array([1.0, 0.0]), np.full((2, 2), np.nan), 0.0) == 1
    assert best_arm(arms, np.array([1.0, 0.0]), np.eye(2), 1.0) == 0


@pytest.mark.nojit
def test_all_arms_may_lose() -> None:
    arms = np.array([[-1.0, 0.0], [-0.5, 0.0], [-0.7, 0.0]])
    assert best_arm(arms, np.array([2.0, 0.0]), np.zeros((2, 2)), 1.0) == 1
    assert best_arm(arms, np.array([1e200, 0.0]), np.zeros((2, 2)), 0.0) == 1
