"""The search by rounds: poles, worths and programs against definitions, what it finds against all blocks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.kernels import arm_annealing, arm_programs, arm_rounds, arm_screens, arm_worth
from fastlbm.kernels._jit import kernel
from fastlbm.kernels.arm_annealing import Heat
from fastlbm.kernels.arm_poles import GRID, fit_poles
from fastlbm.kernels.arm_rounds import RoundEffort
from fastlbm.kernels.arm_worth import Poles, Shape
from fastlbm.planning.finite.rounds import poles_of
from fastlbm.planning.finite.states import Model
from tests import naive, problems

EFFORT = RoundEffort(
    budget=4e-3, cycles=0.4, sweeps=4, stretch=4, programs=0.3, few=4, program=1e-4, visit=4e-6, exact=6e-6
)

pytestmark = pytest.mark.nojit


def catalogue_of(K: int, d: int, beta: float, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """A catalogue, theta and V^-1."""
    rng = np.random.default_rng([K, d, seed])
    arms, theta, V_inv = problems.ball(K, d, rng), rng.normal(size=d), problems.precision(d, rng)
    return arm_annealing.make_catalogue(arms, theta, V_inv, beta), theta, V_inv


def poles_for(m: int, gamma: float, c: float = 1.0) -> Poles:
    s, w, _ = fit_poles(gamma, c, c + m, 3, GRID)
    return Poles(shifts=c + s, weights=w)


def power_of(poles: Poles, X: np.ndarray, c: float = 1.0) -> np.ndarray:
    """The fitted power of a matrix, by its definition."""
    one = np.eye(len(X))
    parts = zip(poles.shifts, poles.weights, strict=True)
    return sum(w * np.linalg.inv(X + (shift - c) * one) for shift, w in parts)


def value_of(catalogue, theta, V_inv, poles: Poles, m: int, block: np.ndarray, wrap: bool = False) -> float:
    """The value of a block or of one period of a cycle with the fitted power, window by window."""
    actions = catalogue.A[block]
    if wrap:
        actions = actions[np.arange(-m, len(block)) % len(block)]
    total = 0.0
    for t in range(m, len(actions)):
        b = power_of(poles, naive.memory_matrix(actions[t - m : t], np.eye(len(theta)))) @ actions[t]
        total += b @ theta + catalogue.beta * np.sqrt(max(b @ V_inv @ b, 0.0))
    return float(total)


@pytest.mark.parametrize("gamma", [-0.4, -0.7, -1.0, -1.5, -2.0, -2.3, -3.0])
@pytest.mark.parametrize("c", [1.0, 0.25])
def test_powers_as_sums_of_inverses(gamma: float, c: float) -> None:
    errors = []
    for count in (1, 2, 3):
        s, w, error = fit_poles(gamma, c, 5.0 * c, count, GRID)
        x = np.linspace(c, 5.0 * c, 200)
        worst = np.abs((w / (x[:, None] + s)).sum(1) - x**gamma).max() / c**gamma
        assert worst <= 1.5 * error + 1e-9  # between the points it is matched at as well
        errors.append(error)
    assert errors[2] < 2e-4
    assert errors[2] <= errors[1] + 1e-12 <= errors[0] + 1e-11
    if gamma == -1.0:
        assert errors[0] < 1e-12


@settings(max_examples=12, deadline=None)
@given(
    m=st.integers(1, 6),
    d=st.integers(1, 5),
    gamma=st.sampled_from([-2.0, -0.7, -3.0]),
    beta=st.sampled_from([0.0, 0.6]),
    wrap=st.booleans(),
    seed=st.integers(0, 100),
)
def test_worths_of_all_arms(m: int, d: int, gamma: float, beta: float, wrap: bool, seed: int) -> None:
    K, n, rng = 5, m + 1 + seed % 4, np.random.default_rng(seed)
    catalogue, theta, V_inv = catalogue_of(K, d, beta, seed)
    poles, shape, everything = poles_for(m, gamma), Shape(m, n, wrap), np.arange(K)
    arms, room = arm_annealing.arms_of(catalogue, everything, everything), arm_worth.make_room(m, 3)
    block, j = rng.integers(K, size=n), int(rng.integers(n))
    worth = arm_annealing.worths(arms, poles, shape, block, room)
    values = np.array([
        value_of(catalogue, theta, V_inv, poles, m, np.append(np.append(block[:j], k), block[j + 1 :]), wrap)
        for k in range(K)
    ])  # fmt: skip
    np.testing.assert_allclose(worth[j] - worth[j, 0], values - values[0], rtol=1e-6, atol=1e-7)
    value = arm_worth.value_of_block(arms, poles, shape, block, block, room)
    assert value == pytest.approx(values[block[j]], rel=1e-7, abs=1e-8)


@kernel
def screened(catalogue, arms, poles, shape, block, j, room, forms, scores) -> None:
    """The scores of all arms at position j of a block whose inner products `arms` has."""
    rows = np.arange(shape.n)
    free = arm_worth.prepare_at(arms, poles, shape, rows, rows, j, room)
    arm_screens.fill_forms(catalogue.A, catalogue.VA, arms, poles, shape, block, j, free, room, forms)
    arm_screens.screen(arm_screens.columns_of(catalogue.A), forms, catalogue.beta, scores)


@kernel
def drawn(scores, temperature, count, rng) -> np.ndarray:
    found = np.zeros(count, dtype=np.int64)
    lanes = np.zeros(arm_screens.STRIP)
    arm_screens.propose(scores, temperature, np.zeros(scores.shape[0]), lanes, found, rng)
    return found


def score_of(catalogue, theta, V_inv, poles: Poles, m: int, block: np.ndarray, wrap: bool, j: int):
    """What `arm_screens` says of all arms at position j, window by window, up to a constant."""
    A, beta, n, d = catalogue.A, catalogue.beta, len(block), len(theta)
    U, lost, R, scales = A[block], [], [], []
    own = np.zeros(len(A))
    for v in range(m + 1):
        t = j + v
        if not (wrap or m <= t < n):
            continue
        window = [s % n for s in range(t - m, t)]
        X = naive.memory_matrix(U[[s for s in window if s != j or v == 0]], np.eye(d))
        if v == 0:
            b = A @ power_of(poles, X)
            own += b @ theta + beta * np.sqrt(np.einsum("ki,ij,kj->k", b, V_inv, b))
            continue
        b = power_of(poles, X + np.outer(U[j], U[j])) @ U[t % n]
        optimistic = theta + (beta * V_inv @ b / np.sqrt(b @ V_inv @ b) if beta else 0.0)
        for shift, w in zip(poles.shifts, poles.weights, strict=True):
            inverse = np.linalg.inv(X + (shift - 1.0) * np.eye(d))
            R.append(inverse)
            scales.append(1.0 + U[j] @ inverse @ U[j])
            lost.append(w / scales[-1] * (A @ inverse @ U[t % n]) * (A @ inverse @ optimistic))
    if R:
        shared = 1.0 + np.einsum("ki,ij,kj->k", A, np.mean(R, axis=0), A)
        own -= np.sum(lost, axis=0) * np.mean(scales) / shared
    return own


@settings(max_examples=12, deadline=None)
@given(
    m=st.integers(1, 5),
    d=st.sampled_from([1, 3, 8, 9]),
    gamma=st.sampled_from([-2.0, -0.7, -3.0]),
    beta=st.sampled_from([0.0, 0.6]),
    wrap=st.booleans(),
    seed=st.integers(0, 100),
)
def test_screens(m: int, d: int, gamma: float, beta: float, wrap: bool, seed: int) -> None:
    K, n, rng = 5 + 32 * (seed % 2), m + 1 + seed % 4, np.random.default_rng(seed)
    catalogue, theta, V_inv = catalogue_of(K, d, beta, seed)
    poles, shape = poles_for(m, gamma), Shape(m, n, wrap)
    block, j, room = rng.integers(K, size=n), int(rng.integers(n)), arm_worth.make_room(m, 3)
    forms = arm_screens.make_forms(theta, V_inv, m, 3)
    scores = np.zeros(((K + arm_screens.GROUP - 1) // arm_screens.GROUP, arm_screens.GROUP))
    arms = arm_annealing.arms_of(catalogue, block, block)
    screened(catalogue, arms, poles, shape, block, j, room, forms, scores)
    expected = score_of(catalogue, theta, V_inv, poles, m, block, wrap, j)
    np.testing.assert_allclose(scores.ravel()[:K], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("K", [1, 5, 64, 150])
def test_arms_are_drawn_by_their_scores(K: int) -> None:
    rng, count = np.random.default_rng(K), 4000
    scores, temperature = rng.normal(size=K), 0.7
    found = drawn(scores, temperature, count, rng)
    weights = np.maximum(1.0 + (scores - scores.max()) / (64.0 * temperature), 0.0) ** 64
    share = weights / weights.sum()
    assert np.abs(np.bincount(found, minlength=K) / count - share).max() < 5.0 * np.sqrt(0.25 / count)
    cold = drawn(scores, 1e-6, 50, rng)
    assert set(cold) == {int(scores.argmax())}


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_annealing_without_temperature_loses_nothing(wrap: bool, beta: float) -> None:
    K, d, m, n, rng = 30, 3, 2, 7, np.random.default_rng(3)
    catalogue, theta, V_inv = catalogue_of(K, d, beta, seed=4)
    poles, shape, room = poles_for(m, -2.0), Shape(m, n, wrap), arm_worth.make_room(m, 3)
    desk = arm_annealing.make_desk(catalogue, arm_screens.columns_of(catalogue.A), m, n, 3)
    block, gains = rng.integers(K, size=n), np.full(K, -np.inf)
    values = [value_of(catalogue, theta, V_inv, poles, m, block, wrap)]
    for sweeps, count in ((0, n), (0, n), (3, 3), (0, n)):
        heat, before = Heat(0.1, 0.01, sweeps), block.copy()
        seen = arm_annealing.anneal(catalogue, poles, shape, block, 2, count, heat, desk, gains, room, rng)
        values.append(value_of(catalogue, theta, V_inv, poles, m, block, wrap))
        assert seen > 0
        if not sweeps:
            assert values[-1] >= values[-2] - 1e-12
        assert set(block) <= set(range(K))
        assert block.shape == before.shape
    assert values[1] > values[0]
    assert np.isfinite(gains).sum() >= 8
    # No change of one arm is worth much more than what is left.
    best = max(
        value_of(catalogue, theta, V_inv, poles, m, np.append(np.append(block[:j], k), block[j + 1 :]), wrap)
        for j in range(n)
        for k in range(K)
    )
    assert values[-1] >= best - 0.03 * abs(best)


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize(("d", "m", "L"), [(3, 1, 4), (2, 2, 3), (4, 3, 2)])
def test_programs_find_the_best_of_few(d: int, m: int, L: int, beta: float) -> None:
    K, n = 6, m + L
    catalogue, theta, V_inv = catalogue_of(K, d, beta, seed=1)
    poles, everything, few = poles_for(m, -2.0), np.arange(K), np.array([0, 2, 5])
    arms, room = arm_annealing.arms_of(catalogue, everything, everything), arm_worth.make_room(m, 3)
    block, value = arm_programs.plan_of_few(arms, poles, arm_programs.make_program(3, m, n), few, room)
    values = [
        value_of(catalogue, theta, V_inv, poles, m, np.array(b)) for b in itertools.product(few, repeat=n)
    ]
    assert value == pytest.approx(max(values), rel=1e-8)
    assert value_of(catalogue, theta, V_inv, poles, m, block) == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize(("K", "d", "m", "L"), [(6, 3, 2, 3), (20, 3, 1, 2)])
def test_the_best_block_is_found(K: int, d: int, m: int, L: int, beta: float) -> None:
    n, nothing = m + L, np.zeros((0, m + L), dtype=np.int64)
    catalogue, theta, V_inv = catalogue_of(K, d, beta, seed=2)
    poles, room, everything = poles_for(m, -2.0), arm_worth.make_room(m, 3), np.arange(K)
    found = [
        arm_rounds.search_rounds(catalogue, poles, m, n, nothing, EFFORT, np.random.default_rng(0))[0]
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*found)
    arms = arm_annealing.arms_of(catalogue, everything, everything)
    best, top = arm_programs.plan_of_few(arms, poles, arm_programs.make_program(K, m, n), everything, room)
    value = value_of(catalogue, theta, V_inv, poles, m, found[0])
    assert top + 1e-9 >= value >= top - 0.01 * abs(top)
    # From the best block nothing worse comes, and a search that is stopped returns a block.
    stopped = EFFORT._replace(stop=np.ones(1, dtype=np.int64))
    for effort in (EFFORT, stopped):
        block, value = arm_rounds.search_rounds(
            catalogue, poles, m, n, best[None], effort, np.random.default_rng(1)
        )
        assert value == pytest.approx(top, rel=1e-7)
        assert value_of(catalogue, theta, V_inv, poles, m, block) == pytest.approx(top, rel=1e-7)
    block, value = arm_rounds.search_rounds(
        catalogue, poles, m, n, nothing, stopped, np.random.default_rng(1)
    )
    assert block.shape == (n,)
    assert set(block) <= set(range(K))


def test_which_memories_poles_serve() -> None:
    arms = problems.ball(9, 3, np.random.default_rng(0))
    assert poles_of(Model(arms, m=3, gamma=-2.0, A0=None)) is not None
    assert poles_of(Model(arms, m=3, gamma=-2.0, A0=0.5 * np.eye(3))) is not None
    assert poles_of(Model(arms, m=3, gamma=-2.0, A0=np.diag([1.0, 2.0, 1.0]))) is None
    assert poles_of(Model(arms, m=3, gamma=0.5, A0=None)) is None
    assert poles_of(Model(arms, m=7, gamma=-2.0, A0=None)) is None
    assert poles_of(Model(100.0 * arms, m=3, gamma=-2.0, A0=None)) is None
