"""The block that is being played: owns where it stands, how often it is played, and what came of it.

Nobody else knows the counters. The inlined functions serve kernels; called from Python they run as Python.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import inline
from ._types import Integers, Rows, Vector

#: More steps than any episode has.
MANY = 2**62

# The counters: the position in the block that comes next, how often the block is to be played, how often it
# was, the step of the episode that comes next, plans so far, actions of the block.
_POSITION, _REPEATS, _PASSES, _STEP, _PLANS, _LENGTH = 0, 1, 2, 3, 4, 5


class BlockState(NamedTuple):
    """A block at work, all of it changed in place: the first `length` of n actions that there is room for."""

    actions: Rows  # (n, d)
    expected: Vector  # (n,) expected rewards, once they repeat
    reward_sums: Vector  # (lead+n,) sum of the rewards observed in each `slot`
    reward_counts: Vector  # (lead+n,) how many they are
    reward_squares: Vector  # (lead+n,) sum of their squares
    counters: Integers  # (6,)


def make_block_state(n: int, d: int, step: int = 0, lead: int = 0) -> BlockState:
    """Room for blocks of n actions, with nothing to play; `step` is the first step of the episode.

    The rewards of the first `lead` actions of a first pass, before which something else was played, are kept
    apart from those of later passes.
    """
    counters = np.zeros(6, dtype=np.int64)
    counters[_STEP] = step
    counters[_LENGTH] = n
    return BlockState(
        actions=np.zeros((n, d)),
        expected=np.zeros(n),
        reward_sums=np.zeros(lead + n),
        reward_counts=np.zeros(lead + n),
        reward_squares=np.zeros(lead + n),
        counters=counters,
    )


def check_block(block: BlockState) -> None:
    """Raise a `ValueError` unless the block is one that can be played on."""
    room, (position, often, passes, step, plans, n) = len(block.actions), block.counters.tolist()
    played = 0 <= passes <= often <= MANY and 0 <= step < MANY and plans >= 0
    if not (1 <= n <= room and 0 <= position < n and played):
        raise ValueError(f"a block of {n} actions cannot stand at {block.counters.tolist()}")
    if passes == often and position > 0:
        raise ValueError(f"a block that is done cannot stand at {position}")
    if float(np.square(block.actions).sum(axis=1).max()) > 1.0 + 1e-6:
        raise ValueError("the actions of a block must lie in the unit ball")
    if (block.reward_counts < 0.0).any():
        raise ValueError("rewards must be counted from 0 on")


@inline
def is_done(block: BlockState) -> bool:
    """Whether the block was played as often as it was to be."""
    return block.counters[_PASSES] >= block.counters[_REPEATS]


@inline
def plans_made(block: BlockState) -> int:
    """How many blocks were started; 0 if there is none yet."""
    return block.counters[_PLANS]


@inline
def length(block: BlockState) -> int:
    """How many actions the block has."""
    return block.counters[_LENGTH]


@inline
def next_step(block: BlockState) -> int:
    """The step of the episode that comes next."""
    return block.counters[_STEP]


@inline
def set_next_step(block: BlockState, step: int) -> None:
    """The block goes on at this step of the episode."""
    block.counters[_STEP] = step


@inline
def start_block(block: BlockState, repeats: int) -> None:
    """The actions are a new block, which is to be played `repeats` times."""
    start_short_block(block, block.actions.shape[0], repeats)


@inline
def start_short_block(block: BlockState, n: int, repeats: int) -> None:
    """The first n actions are a new block, which is to be played `repeats` times."""
    block.counters[_LENGTH] = n
    block.counters[_POSITION] = 0
    block.counters[_PASSES] = 0
    block.counters[_REPEATS] = repeats
    block.counters[_PLANS] += 1


def play_forever(block: BlockState) -> None:
    """The actions were given, not planned, and are played without an end."""
    block.counters[_REPEATS] = MANY


@inline
def cursor(block: BlockState) -> tuple[int, int, int]:
    """The position that comes next, the passes that are over, and how many there are to be."""
    return block.counters[_POSITION], block.counters[_PASSES], block.counters[_REPEATS]


@inline
def move_cursor(block: BlockState, position: int, passes: int, steps: int) -> None:
    """`steps` actions were played, up to before this position."""
    block.counters[_POSITION] = position
    block.counters[_PASSES] = passes
    block.counters[_STEP] += steps


@inline
def following(position: int, passes: int, n: int) -> tuple[int, int]:
    """Position and passes after one more action of a block of n."""
    position += 1
    if position == n:
        return 0, passes + 1
    return position, passes


def end_block(block: BlockState) -> None:
    """The block is over where it stands; its rewards are cleared. Nothing of it counts as played any more."""
    clear_rewards(block)
    block.counters[_POSITION], block.counters[_PASSES], block.counters[_REPEATS] = 0, 0, 0


def next_action(block: BlockState) -> Vector:
    """A copy of the action (d,) that comes next, which counts as played."""
    position, passes, _ = cursor(block)
    move_cursor(block, *following(position, passes, length(block)), 1)
    return block.actions[position].copy()


def played_actions(block: BlockState) -> Rows:
    """The actions of the present pass that were played, all of them once the block is done."""
    position, passes, _ = cursor(block)
    if plans_made(block) == 0:
        return block.actions[:0]
    return block.actions[: length(block) if is_done(block) and passes > 0 else position]


@inline
def slot(position: int, passes: int, lead: int) -> int:
    """Where the reward of an action is kept: the first `lead` of a first pass, then all positions."""
    return position if passes == 0 and position < lead else lead + position


@inline
def add_reward(block: BlockState, position: int, passes: int, y: float) -> None:
    """The action at a position had the reward y, after so many passes."""
    at = slot(position, passes, block.reward_sums.shape[0] - block.actions.shape[0])
    block.reward_sums[at] += y
    block.reward_counts[at] += 1.0
    block.reward_squares[at] += y * y


@inline
def clear_rewards(block: BlockState) -> None:
    """What was collected is known and forgotten here."""
    for j in range(block.reward_sums.shape[0]):
        block.reward_counts[j] = 0.0
        block.reward_sums[j] = 0.0
        block.reward_squares[j] = 0.0
