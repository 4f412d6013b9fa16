"""Where a block stands: against a walk through a plain list of positions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastlbm.kernels._jit import kernel
from fastlbm.kernels.block_state import (
    BlockState,
    add_reward,
    clear_rewards,
    cursor,
    following,
    is_done,
    make_block_state,
    move_cursor,
    next_action,
    next_step,
    plans_made,
    play_forever,
    played_actions,
    set_next_step,
    start_block,
)

pytestmark = pytest.mark.nojit


def a_block(n: int, step: int = 0) -> BlockState:
    block = make_block_state(n, 2, step)
    block.actions[:] = np.arange(2.0 * n).reshape(n, 2)
    return block


@given(n=st.integers(1, 5), repeats=st.integers(1, 4), step=st.integers(0, 9))
def test_actions_come_in_order_until_the_block_is_done(n: int, repeats: int, step: int) -> None:
    block = a_block(n, step)
    assert is_done(block)
    assert len(played_actions(block)) == 0
    start_block(block, repeats)
    for k in range(n * repeats):
        assert not is_done(block)
        assert cursor(block) == (k % n, k // n, repeats)
        assert len(played_actions(block)) == k % n
        np.testing.assert_array_equal(next_action(block), [2.0 * (k % n), 2.0 * (k % n) + 1.0])
        assert next_step(block) == step + k + 1
    assert is_done(block)
    np.testing.assert_array_equal(played_actions(block), block.actions)
    assert plans_made(block) == 1


def test_an_action_is_a_copy() -> None:
    block = a_block(2)
    start_block(block, 1)
    next_action(block)[:] = 7.0
    np.testing.assert_array_equal(block.actions[0], [0.0, 1.0])


def test_a_block_that_is_played_forever_was_not_planned() -> None:
    block = a_block(3)
    play_forever(block)
    for _ in range(100):
        next_action(block)
    assert not is_done(block)
    assert plans_made(block) == 0


def test_a_new_block_begins_at_its_first_action_and_time_goes_on() -> None:
    block = a_block(3)
    start_block(block, 5)
    for _ in range(4):
        next_action(block)
    start_block(block, 2)
    assert cursor(block) == (0, 0, 2)
    assert (next_step(block), plans_made(block)) == (4, 2)
    set_next_step(block, 11)
    next_action(block)
    assert next_step(block) == 12


def test_rewards_add_up_by_position_until_they_are_cleared() -> None:
    block = a_block(3)
    for position, y in ((0, 0.5), (2, -1.0), (2, 0.25)):
        add_reward(block, position, 0, y)
    np.testing.assert_array_equal(block.reward_sums, [0.5, 0.0, -0.75])
    np.testing.assert_array_equal(block.reward_counts, [1.0, 0.0, 2.0])
    clear_rewards(block)
    assert not block.reward_sums.any()
    assert not block.reward_counts.any()


def test_the_rewards_of_a_first_pass_are_kept_apart_where_its_windows_are() -> None:
    block = make_block_state(3, 2, lead=2)
    for passes in range(3):
        for position in range(3):
            add_reward(block, position, passes, 10.0 * passes + position)
    # Two slots for the beginning of the first pass, then the positions.
    np.testing.assert_array_equal(block.reward_sums, [0.0, 1.0, 30.0, 32.0, 36.0])
    np.testing.assert_array_equal(block.reward_counts, [1.0, 1.0, 2.0, 2.0, 3.0])
    clear_rewards(block)
    assert not block.reward_counts.any()


@kernel
def walk(block: BlockState, steps: int) -> None:
    """Several steps at once, as an episode takes them."""
    position, passes, _ = cursor(block)
    for _ in range(steps):
        position, passes = following(position, passes, block.actions.shape[0])
    move_cursor(block, position, passes, steps)


@given(n=st.integers(1, 4), steps=st.integers(0, 12))
def test_compiled_steps_are_those_of_python(n: int, steps: int) -> None:
    fast, slow = a_block(n), a_block(n)
    for block in (fast, slow):
        start_block(block, 3)
    walk(fast, steps)
    for _ in range(steps):
        next_action(slow)
    np.testing.assert_array_equal(fast.counters, slow.counters)
