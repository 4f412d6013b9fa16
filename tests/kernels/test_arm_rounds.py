"""The search by rounds: poles, worths and programs against definitions, what it finds against all blocks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.kernels import arm_annealing, arm_programs, arm_rounds, arm_worth
from fastlbm.kernels.arm_poles import GRID, fit_poles
from fastlbm.kernels.arm_rounds import RoundEffort
from fastlbm.kernels.arm_worth import Poles, Shape
from fastlbm.planning.finite.rounds import poles_of
from fastlbm.planning.finite.states import Model
from tests import naive, problems

EFFORT = RoundEffort(
    budget=4e-3, cycles=0.4, sweeps=8, wide=12, pool=10, few=4, program=1e-4, visit=2e-6, arm=1e-8, pair=1e-9
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
