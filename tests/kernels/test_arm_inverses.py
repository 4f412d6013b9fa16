"""Inverses of windows while a block changes: what arms are worth by them, against definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.kernels import arm_catalogue, arm_inverses, arm_screens, arm_starts
from fastlbm.kernels._jit import kernel
from fastlbm.kernels.arm_worth import Shape
from fastlbm.kernels.vectors import WIDTH
from tests import naive
from tests.kernels.test_arm_rounds import catalogue_of, poles_for, score_of, value_of

pytestmark = pytest.mark.nojit


@kernel
def changed(catalogue, grouped, poles, shape, block, places, arms, j, f, inverses, scores) -> float:
    """Arms come to places of a block one after the other; then position j is looked at."""
    arm_starts.start_inverses(catalogue, poles, shape, block, f, inverses)
    for c in range(places.shape[0]):
        arm_inverses.forms_at(catalogue, poles, shape, block[places[c]], places[c], f, inverses)
        block[places[c]] = arms[c]
        arm_inverses.change_arm(catalogue, poles, shape, arms[c], places[c], f, inverses)
    arm_inverses.forms_at(catalogue, poles, shape, block[j], j, f, inverses)
    tried = np.arange(WIDTH)
    arm_inverses.worths_of_few(catalogue, poles, shape, tried, j, f, inverses)
    K, d = catalogue.A.shape
    arm_screens.screen(grouped, f.small, d, catalogue.beta > 0.0, K, scores)
    return arm_inverses.value_now(shape, poles.shifts.shape[0], inverses)


def after(
    catalogue: Any, poles: Any, m: int, block: np.ndarray, wrap: bool, changes: int, seed: int
) -> tuple[np.ndarray, int, float, np.ndarray, np.ndarray, Any]:
    """The block, a position, its value, all scores, exact worths of the first arms, and the inverses."""
    rng, (K, d), n = np.random.default_rng(seed), catalogue.A.shape, len(block)
    f = arm_screens.make_forms(catalogue.target, catalogue.V_inv)
    inverses, grouped = (
        arm_inverses.make_inverses(d, m, n, len(poles.shifts)),
        arm_screens.group_arms(catalogue.A, catalogue.size),
    )
    scores = np.zeros(((K + arm_screens.GROUP - 1) // arm_screens.GROUP, arm_screens.GROUP), dtype=np.float32)
    places, arms, j = rng.integers(n, size=changes), rng.integers(K, size=changes), int(rng.integers(n))
    block, shape = block.copy(), Shape(m, n, wrap)
    value = changed(catalogue, grouped, poles, shape, block, places, arms, j, f, inverses, scores)
    worths = inverses.worths
    return block, j, value, scores.ravel()[:K].astype(float) * catalogue.unit, worths.copy(), inverses


@settings(max_examples=25, deadline=None)
@given(
    m=st.integers(1, 6),
    d=st.sampled_from([1, 2, 3, 5, 8, 9, 12]),
    gamma=st.sampled_from([-2.0, -0.7, -3.0]),
    beta=st.sampled_from([0.0, 0.6]),
    wrap=st.booleans(),
    changes=st.sampled_from([0, 1, 30]),
    seed=st.integers(0, 100),
)
def test_inverses(m: int, d: int, gamma: float, beta: float, wrap: bool, changes: int, seed: int) -> None:
    K, n, rng = WIDTH + 33 * (seed % 2), m + 1 + seed % 7, np.random.default_rng(seed)
    catalogue, theta, V_inv = catalogue_of(K, d, beta, seed)
    poles, block = poles_for(m, gamma), rng.integers(K, size=n)
    block, j, value, scores, worths, inverses = after(catalogue, poles, m, block, wrap, changes, seed)
    now = value_of(catalogue, theta, V_inv, poles, m, block, wrap)
    assert value == pytest.approx(now, rel=1e-9, abs=1e-10)
    # Every window that counts has its inverses; of a cycle the first m come again.
    p = len(poles.shifts)
    for t in range(n + m):
        window = catalogue.A[block[[s % n for s in range(t - m, t)]]]
        X = naive.memory_matrix(window, np.zeros((d, d)))
        for i, shift in enumerate(poles.shifts):
            wanted = np.linalg.inv(X + shift * np.eye(d)) if wrap or m <= t < n else np.zeros((d, d))
            found = inverses.rows[:-2, t * p + i].reshape(d, -1)[:, :d]
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11)
    # What each of a few arms is exactly worth, and all about, up to a constant.
    blocks = [np.append(np.append(block[:j], k), block[j + 1 :]) for k in range(WIDTH)]
    values = np.array([value_of(catalogue, theta, V_inv, poles, m, b, wrap) for b in blocks])
    np.testing.assert_allclose(worths - worths[0], values - values[0], rtol=1e-8, atol=1e-9)
    expected = score_of(catalogue, theta, V_inv, poles, m, block, wrap, j)
    np.testing.assert_allclose(
        scores, expected, rtol=0, atol=1e-5 * max(catalogue.unit, np.abs(expected).max())
    )


@pytest.mark.parametrize("size", [1e-30, 1e-9, 1.0])
@pytest.mark.parametrize("unit", [1e-120, 1.0, 1e120])
def test_scores_of_any_size(size: float, unit: float) -> None:
    """Single precision ends at 1e38: what it holds is relative to the largest arm and the best worth."""
    K, d, m, rng = 40, 3, 2, np.random.default_rng(0)
    _, theta, V_inv = catalogue_of(K, d, 0.5, 0)
    A = size * rng.normal(size=(K, d))
    large = arm_catalogue.make_catalogue(A, unit * theta, V_inv, 0.5 * unit)
    block, poles = rng.integers(K, size=6), poles_for(m, -2.0)
    scores = after(large, poles, m, block, False, 5, 1)[3]
    assert np.isfinite(scores).all()
    if size < 1.0:  # the memory does not matter: each arm earns what it does alone
        j = after(large, poles, m, block, False, 5, 1)[1]
        alone = A @ theta + 0.5 * np.sqrt(np.einsum("ki,ij,kj->k", A, V_inv, A)) if m <= j else np.zeros(K)
        np.testing.assert_allclose(scores / (unit * size), alone / size, rtol=0, atol=2e-3)


def test_an_arm_that_no_later_window_knows() -> None:
    """Arms of length one at right angles: what is beside the windows of a position would divide by zero."""
    d, m, n = 5, 3, 7
    catalogue = arm_catalogue.make_catalogue(np.vstack([np.eye(d)] * 2), np.ones(d), np.eye(d), 0.0)
    poles, block = (
        poles_for(m, -1.0)._replace(shifts=np.array([1.0]), weights=np.array([1.0])),
        np.arange(n) % d,
    )
    for wrap in (False, True):
        _, _, value, scores, worths, inverses = after(catalogue, poles, m, block, wrap, 20, 0)
        assert np.isfinite(value)
        assert np.isfinite(scores).all()
        assert np.isfinite(worths).all()
        assert all(np.isfinite(part).all() for part in inverses)
