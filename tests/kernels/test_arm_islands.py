"""Islands: which blocks they are, and that improving them loses nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.kernels import arm_grounds, arm_islands
from fastlbm.kernels._jit import kernel
from fastlbm.kernels.arm_grounds import KEPT, Found, RoundEffort, State
from fastlbm.kernels.arm_worth import Shape, make_room
from tests.kernels.test_arm_rounds import catalogue_of, ground_of, poles_for, value_of

pytestmark = pytest.mark.nojit


@kernel
def settled(blocks, most: int, n: int) -> Found:
    islands = arm_grounds.make_found(n)
    arm_islands._settle(islands, most, blocks, n)
    return islands


@kernel
def improved(ground, poles, shape, head, blocks, effort, rng) -> Found:
    """The blocks after a search by islands."""
    unit, block = arm_grounds.unit_of(ground.catalogue, poles), np.zeros(shape.n, dtype=np.int64)
    room = make_room(shape.m, 3)
    state = State(cycles=blocks, blocks=blocks, unit=unit, room=room, spent=np.zeros(1))
    desk = arm_grounds.desk_of(ground, shape.m, shape.n, poles)
    arm_islands.improve_islands(ground, ground, poles, shape, head, block, desk, state, effort, rng)
    return state.blocks


def found_of(arms: np.ndarray, values: np.ndarray, length: int) -> Found:
    """Blocks that are kept; the other places hold something shorter."""
    count, n = arms.shape
    blocks = Found(
        arms=np.zeros((KEPT, n), dtype=np.int64),
        lengths=np.full(KEPT, length),
        values=np.full(KEPT, 1e9 if length else -np.inf),
    )
    blocks.arms[:count], blocks.lengths[:count], blocks.values[:count] = arms, n, values
    return blocks


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 7), count=st.integers(0, KEPT), most=st.integers(1, 6), seed=st.integers(0, 100))
def test_islands_are_the_best_blocks_that_differ(n: int, count: int, most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arms, values = rng.integers(2, size=(count, n)), rng.normal(size=count)
    islands = settled(found_of(arms, values, n - 1), most, n)
    wanted: list[int] = []
    for x in np.argsort(-values):
        if len(wanted) < most and all((arms[x] == arms[y]).sum() <= n / 2 for y in wanted):
            wanted.append(int(x))
    np.testing.assert_array_equal(islands.lengths, n * (np.arange(KEPT) < len(wanted)))
    np.testing.assert_array_equal(islands.arms[: len(wanted)], arms[wanted])
    np.testing.assert_array_equal(islands.values[: len(wanted)], values[wanted])


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize(("d", "m", "head"), [(3, 2, 0), (3, 2, 2), (5, 2, 0)])
def test_islands_only_get_better(d: int, m: int, head: int, beta: float) -> None:
    K, n, rng = 30, m + 7, np.random.default_rng(1)
    catalogue, theta, V_inv = catalogue_of(K, d, beta, seed=4)
    poles, arms = poles_for(m, -2.0), rng.integers(K, size=(5, n))
    arms[:, :head] = arms[0, :head]
    values = np.array([value_of(catalogue, theta, V_inv, poles, m, block) for block in arms])
    effort = RoundEffort(
        budget=2e-3, cycles=0.0, mixed=0.0, slow=0.0, sweeps=4, stretch=4, hot=0.3, cold=0.03, islands=3
    )
    blocks, shape = found_of(arms, values, 0), Shape(m, n, False)
    ground, rng = ground_of(catalogue, np.arange(K)), np.random.default_rng(0)
    blocks = improved(ground, poles, shape, head, blocks, effort, rng)
    best = int(blocks.values.argmax())
    assert blocks.values[best] > values.max()
    np.testing.assert_array_equal(blocks.arms[best, :head], arms[0, :head])
    exact = value_of(catalogue, theta, V_inv, poles, m, blocks.arms[best])
    assert blocks.values[best] == pytest.approx(exact, rel=1e-8)
    # A search that is stopped changes nothing.
    stopped = effort._replace(stop=np.ones(1, dtype=np.int64))
    again = improved(ground, poles, shape, head, found_of(arms, values, 0), stopped, rng)
    np.testing.assert_array_equal(again.arms[:5], arms)
