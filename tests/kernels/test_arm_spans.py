"""Inner products of all arms with those of a block, and what arms are about worth by them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.kernels import arm_screens, arm_spans, arm_tables, arm_windows
from fastlbm.kernels._jit import kernel
from fastlbm.kernels.arm_worth import Arms, Shape
from tests.kernels.test_arm_rounds import (
    assert_near,
    assert_right,
    catalogue_of,
    desk_of,
    ground_of,
    poles_for,
    score_of,
)

pytestmark = pytest.mark.nojit

#: d and m where these forms are used, d > 2m; elsewhere windows fill the space, and terms cancel.
USED = [(d, m) for d in (3, 5, 8, 9, 14) for m in range(1, 7) if d > 2 * m]


@kernel
def entered(catalogue, columns, shape, block, j, tables, arms) -> None:
    """The arm at position j of a block is in the tables, and the inner products `arms` are right."""
    arm_tables.enter(catalogue, columns, shape, block, j, tables, arms)


@kernel
def screened_by_spans(arms, poles, shape, tables, j, windows, spans, scores) -> None:
    arm_spans.look_by_spans(arms, poles, shape, tables, j, windows, spans, scores)


def empty_arms(n: int, beta: float) -> Arms:
    """Inner products of n arms, which are not known yet; beyond the end there is nothing."""
    G, H, one = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1)), np.zeros(n + 1)
    G[:n, :n], H[:n, :n] = np.nan, np.nan
    return Arms(G=G, H=H, theta=one, squares=one.copy(), widths=one.copy(), beta=beta)


@settings(max_examples=32, deadline=None)
@given(
    size=st.sampled_from(USED),
    gamma=st.sampled_from([-2.0, -0.7, -3.0]),
    beta=st.sampled_from([0.0, 0.6]),
    wrap=st.booleans(),
    past=st.booleans(),
    seed=st.integers(0, 100),
)
def test_screens_by_inner_products(
    size: tuple[int, int], gamma: float, beta: float, wrap: bool, past: bool, seed: int
) -> None:
    (d, m), rng = size, np.random.default_rng(seed)
    K, n = 5 + 32 * (seed % 4), m + 1 + int(rng.integers(2 * m + 2))
    catalogue, theta, V_inv = catalogue_of(K + m, d, beta, seed)
    poles, shape, block = poles_for(m, gamma), Shape(m, n, wrap), rng.integers(K, size=n)
    if past:
        block[:m] = K + np.arange(m)
    j, windows, spans = int(rng.integers(n)), arm_windows.make_windows(d, m, 3), arm_spans.make_spans(m, 3)
    tables, arms = arm_tables.make_tables(catalogue, K, n), empty_arms(n, beta)
    columns = arm_screens.group_arms(catalogue.A[:K], catalogue.size)
    for t in range(n):
        entered(catalogue, columns, shape, block, t, tables, arms)
    assert_right(tables, catalogue, block, K)
    assert_near(arms, catalogue, block, m, wrap)
    groups = (K + arm_screens.GROUP - 1) // arm_screens.GROUP
    scores = np.full((groups, arm_screens.GROUP), np.nan, np.float32)
    for around in (int(rng.integers(n)), j):  # nothing is left of the position before
        screened_by_spans(arms, poles, shape, tables, around, windows, spans, scores)
    expected = score_of(catalogue, theta, V_inv, poles, m, block, wrap, j)[:K]
    found = scores.ravel()[:K] * catalogue.unit
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-6 * catalogue.unit)


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_tables_stay_right(beta: float) -> None:
    """Arms leave and come back, more of them than there are rows."""
    K, d, m, n, past, rng = 70, 6, 2, 5, 2, np.random.default_rng(8)
    catalogue, _, _ = catalogue_of(K + past, d, beta, seed=5)
    columns, tables = (
        arm_screens.group_arms(catalogue.A[:K], catalogue.size),
        arm_tables.make_tables(catalogue, K, n),
    )
    arms, block, shape = empty_arms(n, beta), np.array([K, K + 1, 3, 3, 9]), Shape(m, n, False)
    for t in range(n):
        entered(catalogue, columns, shape, block, t, tables, arms)
    assert tables.at[2] == tables.at[3]
    seen = set(block)
    for turn in range(150):
        j = int(rng.integers(past, n))
        block[j] = rng.integers(K) if turn % 3 else block[rng.integers(past, n)]
        seen.add(block[j])
        entered(catalogue, columns, shape, block, j, tables, arms)
        assert_right(tables, catalogue, block, K)
        assert_near(arms, catalogue, block, m, False)
    assert len(seen) > len(tables.held)


def test_inner_products_are_for_many_directions() -> None:
    """Where d <= 2m there are no tables."""
    for d, m in ((4, 2), (5, 2), (8, 4), (9, 4)):
        catalogue, _, _ = catalogue_of(20, d, 0.5, seed=0)
        desk = desk_of(ground_of(catalogue, np.arange(20)), m, m + 6, 3)
        assert (desk.tables.rows.shape[0] > 0) == (d > 2 * m)
