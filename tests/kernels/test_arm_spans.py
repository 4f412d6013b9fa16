"""Inner products of all arms with those of a block, and what arms are about worth by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.kernels import arm_screens, arm_spans, arm_tables, arm_worth
from fastlbm.kernels._jit import kernel
from fastlbm.kernels.arm_tables import Tables
from fastlbm.kernels.arm_worth import Arms, Shape
from tests.kernels.test_arm_rounds import (
    assert_right,
    catalogue_of,
    desk_of,
    ground_of,
    poles_for,
    score_of,
)

pytestmark = pytest.mark.nojit


@kernel
def entered(catalogue, columns, block, j, K, tables, arms) -> None:
    """The arm at position j of a block is in the tables, and the inner products `arms` are right."""
    arms.theta[j], arms.squares[j] = catalogue.theta[block[j]], catalogue.squares[block[j]]
    arms.widths[j] = catalogue.widths[block[j]]
    arm_tables.enter(tables, columns, catalogue.A, catalogue.VA, block, j, K, arms)


@kernel
def screened_by_spans(arms, poles, shape, tables, j, room, spans, unit, scores) -> None:
    rows = np.arange(shape.n)
    free = arm_worth.prepare_at(arms, poles, shape, rows, rows, j, room)
    arm_spans.fill_spans(arms, poles, shape, tables, j, free, room, spans)
    arm_spans.screen_spans(tables, spans, arms.beta, unit, scores)


@kernel
def looked_up(tables, shape, j, tried, arms) -> None:
    arm_tables.look_up(tables, shape, j, tried, arms)


def empty_arms(n: int, c: int, beta: float) -> Arms:
    """Inner products of n arms with c, which are not known yet."""
    G, H = np.full((n, c), np.nan), np.full((n, c), np.nan)
    return Arms(G=G, H=H, theta=np.zeros(c), squares=np.zeros(c), widths=np.zeros(c), beta=beta)


def tables_of(catalogue: Any, K: int, n: int) -> Tables:
    """Empty tables of the first K arms of a catalogue for blocks of n."""
    facts = catalogue.theta, catalogue.squares, catalogue.widths
    return arm_tables.make_tables(*facts, K, n, catalogue.beta > 0.0)


@settings(max_examples=24, deadline=None)
@given(
    m=st.integers(1, 6),
    d=st.sampled_from([1, 3, 8, 9, 14]),
    gamma=st.sampled_from([-2.0, -0.7, -3.0]),
    beta=st.sampled_from([0.0, 0.6]),
    wrap=st.booleans(),
    past=st.booleans(),
    seed=st.integers(0, 100),
)
def test_screens_by_inner_products(
    m: int, d: int, gamma: float, beta: float, wrap: bool, past: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    K, n = 5 + 32 * (seed % 2), m + 1 + int(rng.integers(2 * m + 2))
    catalogue, theta, V_inv = catalogue_of(K + m, d, beta, seed)
    poles, shape, block = poles_for(m, gamma), Shape(m, n, wrap), rng.integers(K, size=n)
    if past:
        block[:m] = K + np.arange(m)
    j, room, spans = int(rng.integers(n)), arm_worth.make_room(m, 3), arm_spans.make_spans(m, 3)
    tables, arms, columns = tables_of(catalogue, K, n), empty_arms(n, n, beta), arm_tables.columns_of
    for t in range(n):
        entered(catalogue, columns(catalogue.A[:K]), block, t, K, tables, arms)
    assert_right(tables, catalogue, block, K)
    np.testing.assert_allclose(arms.G, catalogue.A[block] @ catalogue.A[block].T, rtol=0, atol=1e-12)
    scores = np.full(
        ((K + arm_screens.GROUP - 1) // arm_screens.GROUP, arm_screens.GROUP), np.nan, np.float32
    )
    for around in (int(rng.integers(n)), j):  # nothing is left of the position before
        screened_by_spans(arms, poles, shape, tables, around, room, spans, catalogue.unit, scores)
    expected = score_of(catalogue, theta, V_inv, poles, m, block, wrap, j)[:K]
    found = scores.ravel()[:K] * catalogue.unit
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * catalogue.unit)


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_tables_stay_right(beta: float) -> None:
    """Arms leave and come back, more of them than there are rows."""
    K, d, m, n, past, rng = 70, 6, 2, 5, 2, np.random.default_rng(8)
    catalogue, _, _ = catalogue_of(K + past, d, beta, seed=5)
    columns, tables = arm_tables.columns_of(catalogue.A[:K]), tables_of(catalogue, K, n)
    arms, block, shape = empty_arms(n, n + 3, beta), np.array([K, K + 1, 3, 3, 9]), Shape(m, n, False)
    for t in range(n):
        entered(catalogue, columns, block, t, K, tables, arms)
    assert tables.at[2] == tables.at[3]
    seen = set(block)
    for turn in range(150):
        j = int(rng.integers(past, n))
        block[j] = rng.integers(K) if turn % 3 else block[rng.integers(past, n)]
        seen.add(block[j])
        entered(catalogue, columns, block, j, K, tables, arms)
        assert_right(tables, catalogue, block, K)
        np.testing.assert_array_equal(tables.held[tables.at], block)
        inner = catalogue.A[block] @ catalogue.A[block].T
        np.testing.assert_allclose(arms.G[:, :n], inner, rtol=0, atol=1e-12)
        if beta:
            under = catalogue.A[block] @ catalogue.VA[block].T
            np.testing.assert_allclose(arms.H[:, :n], under, rtol=0, atol=1e-12)
    assert len(seen) > len(tables.held)
    tried = rng.integers(K, size=3)
    looked_up(tables, shape, 2, tried, arms)
    around = [0, 1, 3, 4]
    inner, under = catalogue.A[block] @ catalogue.A[tried].T, catalogue.VA[block] @ catalogue.A[tried].T
    np.testing.assert_allclose(arms.G[around, n:], inner[around], rtol=0, atol=1e-12)
    if beta:
        np.testing.assert_allclose(arms.H[around, n:], under[around], rtol=0, atol=1e-12)
    assert np.isnan(arms.G[2, n:]).all()


def test_inner_products_are_for_many_directions() -> None:
    """Where d <= 2m there are no tables."""
    for d, m in ((4, 2), (5, 2), (8, 4), (9, 4)):
        catalogue, _, _ = catalogue_of(20, d, 0.5, seed=0)
        desk = desk_of(ground_of(catalogue, np.arange(20)), m, m + 6, 3)
        assert (desk.tables.rows.shape[0] > 0) == (d > 2 * m)
