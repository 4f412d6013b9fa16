"""The search by rounds: poles, worths and programs against definitions, what it finds against all blocks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastlbm as lbm
from fastlbm.kernels import (
    arm_annealing,
    arm_catalogue,
    arm_looks,
    arm_programs,
    arm_rounds,
    arm_screens,
    arm_windows,
    arm_worth,
)
from fastlbm.kernels._jit import kernel
from fastlbm.kernels.arm_annealing import Heat
from fastlbm.kernels.arm_grounds import Ground, RoundEffort
from fastlbm.kernels.arm_poles import GRID, fit_poles
from fastlbm.kernels.arm_tables import Tables
from fastlbm.kernels.arm_worth import Arms, Poles, Shape
from fastlbm.kernels.optimism import O3M, Belief
from fastlbm.kernels.vectors import WIDTH
from fastlbm.planning.effort import round_arms
from fastlbm.planning.finite.rounds import find_by_rounds, poles_of
from fastlbm.planning.finite.states import Model
from tests import naive, problems

EFFORT = RoundEffort(
    budget=4e-3,
    cycles=0.3,
    mixed=0.5,
    slow=0.6,
    sweeps=4,
    stretch=4,
    hot=0.1,
    cold=0.01,
    programs=0.3,
    few=4,
    program=1e-4,
)

#: With islands instead of rounds, after programs.
ISLANDS = EFFORT._replace(programs=0.0, islands=3)

pytestmark = pytest.mark.nojit


def catalogue_of(K: int, d: int, beta: float, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """A catalogue, theta and V^-1."""
    rng = np.random.default_rng([K, d, seed])
    arms, theta, V_inv = problems.ball(K, d, rng), rng.normal(size=d), problems.precision(d, rng)
    return arm_catalogue.make_catalogue(arms, theta, V_inv, beta), theta, V_inv


def ground_of(catalogue: Any, numbers: np.ndarray, past: int = 0) -> Ground:
    """Some arms of a catalogue, whose last `past` rows are actions of the past."""
    K = len(catalogue.A) - past
    rows, A = np.append(numbers, np.arange(K, K + past)), catalogue.A[numbers]
    parts = {name: getattr(catalogue, name)[rows] for name in ("A", "VA", "theta", "squares", "widths")}
    return Ground(
        catalogue=catalogue._replace(**parts),
        grouped=arm_screens.group_arms(A, catalogue.size),
        K=len(numbers),
        draws=arm_annealing.make_draws(np.full(len(numbers), -np.inf)),
        visit=4e-6,
        exact=6e-6,
    )


def desk_of(ground: Ground, m: int, n: int, p: int) -> Any:
    """Scratch for blocks of n arms."""
    return arm_looks.make_desk(ground.catalogue, ground.grouped, ground.K, m, n, p)


def arms_of(catalogue: Any, numbers: np.ndarray) -> Arms:
    """The inner products of some arms of a catalogue with each other."""
    A, VA = catalogue.A[numbers], catalogue.VA[numbers]
    one = {name: getattr(catalogue, name)[numbers] for name in ("theta", "squares", "widths")}
    return Arms(G=A @ A.T, H=A @ VA.T, beta=catalogue.beta, **one)


def all_values(catalogue, theta, V_inv, poles: Poles, m: int, L: int, past=()) -> dict[tuple, float]:
    """The values of all blocks of arms, or of those behind the rows of the past."""
    K = len(catalogue.A) - len(past)
    blocks = itertools.product(range(K), repeat=m + L - len(past))
    full = [np.append(past, block).astype(int) for block in blocks]
    return {tuple(block): value_of(catalogue, theta, V_inv, poles, m, block) for block in full}


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


@pytest.mark.parametrize("gamma", [-0.4, -0.7, -1.0, -1.5, -2.0, -2.3, -3.0, -6.0])
@pytest.mark.parametrize("c", [1.0, 0.25])
def test_powers_as_sums_of_inverses(gamma: float, c: float) -> None:
    errors = []
    for count in (1, 2, 3, 4):
        s, w, error = fit_poles(gamma, c, 5.0 * c, count, GRID)
        x = np.linspace(c, 5.0 * c, 200)
        worst = np.abs((w / (x[:, None] + s)).sum(1) - x**gamma).max() / c**gamma
        assert worst <= 1.5 * error + 1e-9  # between the points it is matched at as well
        errors.append(error)
    assert errors[2] < (2e-4 if gamma > -4.0 else 3e-2)
    assert errors[3] < 2e-3
    assert errors[3] <= errors[2] + 1e-12 <= errors[1] + 1e-11 <= errors[0] + 1e-10
    if gamma == -1.0:
        assert errors[0] < 1e-12


@kernel
def worths(catalogue, arms, poles, shape, block, tried, j, windows) -> None:
    """The worths of some arms at a position of a block (n,) are the last row of windows.tried."""
    free = arm_windows.fill_windows(arms, poles, shape, j, windows)
    arm_windows.worths_of_tried(catalogue, arms, poles, shape, block, tried, j, free, windows)


@kernel
def value_now(arms, poles, shape, windows) -> float:
    return arm_windows.value_by_windows(arms, poles, shape, windows)


@settings(max_examples=24, deadline=None)
@given(
    m=st.integers(1, 6),
    d=st.integers(1, 5),
    gamma=st.sampled_from([-2.0, -0.7, -3.0]),
    beta=st.sampled_from([0.0, 0.6]),
    wrap=st.booleans(),
    seed=st.integers(0, 100),
)
def test_worths_of_some_arms(m: int, d: int, gamma: float, beta: float, wrap: bool, seed: int) -> None:
    K, n, rng = 5, m + 1 + seed % 12, np.random.default_rng(seed)
    catalogue, theta, V_inv = catalogue_of(K, d, beta, seed)
    poles, shape, tried = poles_for(m, gamma), Shape(m, n, wrap), rng.integers(K, size=WIDTH)
    block, windows = rng.integers(K, size=n), arm_windows.make_windows(d, m, 3)
    # Beyond the end there is nothing.
    arms = arms_of(catalogue, block)
    arms = Arms(*(np.pad(x, (0, 1)) for x in arms[:-1]), beta=beta)
    for j in (int(rng.integers(n)), int(rng.integers(n))):  # nothing is left of the position before
        worths(catalogue, arms, poles, shape, block, tried, j, windows)
    ways = [np.append(np.append(block[:j], k), block[j + 1 :]) for k in tried]
    values = np.array([value_of(catalogue, theta, V_inv, poles, m, way, wrap) for way in ways])
    worth = windows.tried[-1]
    np.testing.assert_allclose(worth - worth[0], values - values[0], rtol=1e-6, atol=1e-7)
    value = value_now(arms, poles, shape, windows)
    expected = value_of(catalogue, theta, V_inv, poles, m, block, wrap)
    assert value == pytest.approx(expected, rel=1e-7, abs=1e-8)


@kernel
def drawn(scores, temperature, count, rng) -> np.ndarray:
    found, K, group = np.zeros(count, dtype=np.int64), scores.shape[0], arm_screens.GROUP
    groups = (K + group - 1) // group
    table, weights = np.zeros((groups, group), np.float32), np.full((groups + 1, group), np.inf, np.float32)
    for k in range(groups * group):
        table[k // group, k % group] = scores[k] if k < K else np.inf
    arm_screens.propose(table, K, temperature, weights, found, count, rng)
    return found


def assert_right(tables: Tables, catalogue: Any, block: np.ndarray, K: int) -> None:
    """The rows of the tables at all positions of a block are what they should be."""
    A, (inner, _, under) = catalogue.A[:K], tables.units
    np.testing.assert_array_equal(tables.held[tables.at], block)
    np.testing.assert_array_equal(tables.row_of[block], tables.at)
    np.testing.assert_array_equal(tables.needed, np.bincount(tables.at, minlength=len(tables.held)))
    expected = catalogue.A[block] @ A.T / inner
    np.testing.assert_allclose(tables.rows[tables.at, :K], expected, rtol=0, atol=1e-6)
    assert not tables.rows[:, K:].any()
    assert tables.under.shape[0] == (tables.rows.shape[0] if catalogue.beta else 0)
    if catalogue.beta:
        expected = catalogue.VA[block] @ A.T / under
        np.testing.assert_allclose(tables.under[tables.at, :K], expected, rtol=0, atol=1e-6)
        assert not tables.under[:, K:].any()


def assert_near(arms: Arms, catalogue: Any, block: np.ndarray, m: int, wrap: bool) -> None:
    """Arms of a block have their inner products with those that are up to m steps away."""
    n = len(block)
    for j, t in itertools.product(range(n), repeat=2):
        if abs(j - t) <= m or (wrap and n - abs(j - t) <= m):
            a, b = catalogue.A[block[j]], catalogue.A[block[t]]
            assert arms.G[j, t] == pytest.approx(a @ b, rel=1e-12, abs=1e-12)
            if catalogue.beta:
                assert arms.H[j, t] == pytest.approx(catalogue.VA[block[j]] @ b, rel=1e-12, abs=1e-12)


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


@pytest.mark.parametrize(("wrap", "head"), [(False, 0), (False, 2), (True, 0)])
@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize(("d", "m"), [(3, 2), (3, 1)])  # by inverses, by inner products
def test_annealing_without_temperature_loses_nothing(
    d: int, m: int, wrap: bool, head: int, beta: float
) -> None:
    K, n, rng = 30, 7, np.random.default_rng(3)
    catalogue, theta, V_inv = catalogue_of(K, d, beta, seed=4)
    poles, shape = poles_for(m, -2.0), Shape(m, n, wrap)
    ground = ground_of(catalogue, np.arange(K))
    desk, block, draws = desk_of(ground, m, n, 3), rng.integers(K, size=n), ground.draws
    values, before = [value_of(catalogue, theta, V_inv, poles, m, block, wrap)], block[:head].copy()
    for sweeps, count, among in ((0, n - head, K), (0, n - head, 4), (3, 3, 5), (0, n - head, K)):
        heat = Heat(0.1, 0.01, sweeps)
        value, seen = arm_annealing.anneal(
            catalogue, poles, shape, block, head, head, count, among, heat, desk, draws, rng
        )
        values.append(value_of(catalogue, theta, V_inv, poles, m, block, wrap))
        assert value == pytest.approx(values[-1], rel=1e-8)
        assert seen > 0
        if not sweeps:
            assert values[-1] >= values[-2] - 1e-12
        assert set(block) <= set(range(K))
        np.testing.assert_array_equal(block[:head], before)
        if d > 2 * m:
            assert_near(desk.arms, catalogue, block, m, wrap)
            assert_right(desk.tables, catalogue, block, K)
    assert values[1] > values[0]
    assert np.isfinite(draws.gains).all()
    # No change of one arm is worth much more than what is left.
    best = max(
        value_of(catalogue, theta, V_inv, poles, m, np.append(np.append(block[:j], k), block[j + 1 :]), wrap)
        for j in range(head, n)
        for k in range(K)
    )
    assert values[-1] >= best - 0.03 * abs(best)


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize(("d", "m", "L"), [(3, 1, 4), (2, 2, 3), (4, 3, 2)])
def test_programs_find_the_best_of_few(d: int, m: int, L: int, beta: float) -> None:
    K, n = 6, m + L
    catalogue, theta, V_inv = catalogue_of(K, d, beta, seed=1)
    poles, few = poles_for(m, -2.0), np.array([0, 2, 5])
    arms, room = arms_of(catalogue, np.arange(K)), arm_worth.make_room(m, 3)
    block, value = arm_programs.plan_of_few(arms, poles, arm_programs.make_program(3, m, n), few, room)
    values = [
        value_of(catalogue, theta, V_inv, poles, m, np.array(b)) for b in itertools.product(few, repeat=n)
    ]
    assert value == pytest.approx(max(values), rel=1e-8)
    assert value_of(catalogue, theta, V_inv, poles, m, block) == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize(("K", "d", "m", "L", "some"), [(5, 3, 2, 3, 5), (12, 3, 1, 2, 12), (12, 3, 1, 2, 6)])
def test_the_best_block_is_found(K: int, d: int, m: int, L: int, some: int, beta: float) -> None:
    n, nothing, no_past = m + L, np.zeros((0, m + L), dtype=np.int64), np.zeros(0, dtype=np.int64)
    catalogue, theta, V_inv = catalogue_of(K, d, beta, seed=2)
    poles, wide = poles_for(m, -2.0), ground_of(catalogue, np.arange(K))
    narrow = ground_of(catalogue, np.sort(np.argsort(-catalogue.theta)[:some]))

    def search(warm: np.ndarray, effort: RoundEffort, seed: int) -> tuple[np.ndarray, float]:
        rng = np.random.default_rng(seed)
        return arm_rounds.search_rounds(wide, narrow, poles, m, no_past, warm, effort, rng)

    found = [search(nothing, effort, 0)[0] for effort in (EFFORT, EFFORT, ISLANDS)]
    np.testing.assert_array_equal(*found[:2])
    values = all_values(catalogue, theta, V_inv, poles, m, L)
    best, top = max(values.items(), key=lambda item: item[1])
    for block in found:
        assert top + 1e-9 >= values[tuple(block)] >= top - 0.01 * abs(top)
    # From the best block nothing worse comes, and a search that is stopped returns a block.
    stopped = EFFORT._replace(stop=np.ones(1, dtype=np.int64))
    for effort in (EFFORT, ISLANDS, stopped):
        block, value = search(np.array([best]), effort, 1)
        assert value == pytest.approx(top, rel=1e-7)
        assert values[tuple(block)] == pytest.approx(top, rel=1e-7)
    block, value = search(nothing, stopped, 1)
    assert block.shape == (n,)
    assert set(block) <= set(range(K))


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize(("cycles", "warm", "d"), [(0.3, 0, 3), (0.3, 1, 3), (0.0, 2, 3), (0.0, 1, 5)])
def test_the_best_arms_after_others_are_found(cycles: float, warm: int, d: int, beta: float) -> None:
    K, m, L = 5, 2, 4
    catalogue, theta, V_inv = catalogue_of(K + m, d, beta, seed=3)
    poles, past, rng = poles_for(m, -2.0), K + np.arange(m), np.random.default_rng(0)
    ground = ground_of(catalogue, np.arange(K), past=m)
    starts, effort = rng.integers(K, size=(warm, m + L)), EFFORT._replace(cycles=cycles)
    block, value = arm_rounds.search_rounds(ground, ground, poles, m, past, starts, effort, rng)
    values = all_values(catalogue, theta, V_inv, poles, m, L, past)
    top = max(values.values())
    assert value == pytest.approx(values[tuple(block)], rel=1e-7)
    assert top + 1e-9 >= value >= top - 0.01 * abs(top)


@pytest.mark.parametrize(("d", "m", "gamma"), [(1, 3, -4.0), (3, 2, -2.5), (5, 2, -2.5), (9, 4, -3.3)])
def test_a_plan_after_a_history_is_the_best_and_says_so(d: int, m: int, gamma: float) -> None:
    rng = np.random.default_rng([d, m])
    A = rng.normal(size=(18, d))
    A /= 1.05 * np.linalg.norm(A, axis=1, keepdims=True).max()
    belief = {"theta": A[3] / np.linalg.norm(A[3]), "V_inv": np.eye(d) / 7.0, "beta": 0.4}
    model = {"m": m, "gamma": gamma, **belief}
    plan = lbm.plan_block(d=d, L=2, actions=lbm.Finite(A), history=A[:m], **model)
    assert plan.value == pytest.approx(lbm.block_ucb(np.vstack([A[:m], plan.actions]), **model)[0], rel=1e-12)
    pairs = [np.vstack([A[:m], A[i], A[j]]) for i in range(18) for j in range(18)]
    assert plan.value >= 0.995 * max(lbm.block_ucb(pair, **model)[0] for pair in pairs)


@pytest.mark.parametrize(("d", "m"), [(3, 2), (7, 2)])
@pytest.mark.parametrize("beta", [0.0, 0.4])
def test_a_search_returns_the_arms_that_it_says(d: int, m: int, beta: float) -> None:
    """Inside the search other arms come first than those of the model."""
    rng = np.random.default_rng([d, m])
    arms = rng.normal(size=(70, d))
    arms /= np.linalg.norm(arms, axis=1, keepdims=True)
    theta, V_inv, n = arms[5], np.diag(rng.uniform(0.1, 1.0, size=d)), m + 9
    model, belief = (
        Model(arms, m=m, gamma=-2.0, A0=None),
        Belief(theta=theta, V_inv=V_inv, beta=beta, kind=O3M),
    )
    poles = poles_of(model)
    assert poles is not None
    worth = {"m": m, "gamma": -2.0, "theta": theta, "V_inv": V_inv, "beta": beta}
    best, effort = -np.inf, round_arms(d, m, 70, n, poles=len(poles.shifts), bonus=beta > 0.0)
    block = np.zeros((0, n), dtype=np.int64)
    for share in (0.1, 0.02):  # the second one begins with what the first has found
        small = effort._replace(budget=share * effort.budget, width=4 * (d <= 2 * m))
        found, value = find_by_rounds(model, belief, n, poles, block, rng, effort=small)
        exact = lbm.block_ucb(arms[found], **worth)[0]
        assert value == pytest.approx(exact, rel=2e-3)
        assert exact >= best - 1e-9
        best, block = exact, found[None]
    drawn = arms[np.random.default_rng(0).integers(70, size=(200, n))]
    assert best > max(lbm.block_ucb(x, **worth)[0] for x in drawn)


def test_which_memories_poles_serve() -> None:
    arms = problems.ball(19, 3, np.random.default_rng(0))
    assert poles_of(Model(arms, m=3, gamma=-2.0, A0=None)) is not None
    assert poles_of(Model(arms[:9], m=3, gamma=-2.0, A0=None)) is None
    assert poles_of(Model(arms, m=3, gamma=-2.0, A0=0.5 * np.eye(3))) is not None
    assert poles_of(Model(arms, m=3, gamma=-2.0, A0=np.diag([1.0, 2.0, 1.0]))) is None
    assert poles_of(Model(arms, m=3, gamma=0.5, A0=None)) is None
    steep = poles_of(Model(arms, m=5, gamma=-6.0, A0=None))
    assert steep is not None
    assert len(steep.shifts) == 4
    assert poles_of(Model(arms, m=7, gamma=-2.0, A0=None)) is None
    assert poles_of(Model(100.0 * arms, m=3, gamma=-2.0, A0=None)) is None
