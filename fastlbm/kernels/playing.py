"""Playing a block: owns what an episode records, and the steps between two plans.

A block is played from the true history, one draw of noise a step whatever is played, so that every policy
meets the same noise. Once the window holds repetitions of the block alone, its rewards repeat as well and a
step costs little more than its noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel
from ._types import Integers, Rows, Vector
from .block_state import MANY, BlockState, add_reward, cursor, following, length, move_cursor
from .noise import draw
from .rewards import History, ModelParams, product, push, response

# Entries of a recorder's clock: steps played, points recorded.
_TIME, _RECORDED = 0, 1


class Recorder(NamedTuple):
    """The record of an episode."""

    sums: Vector  # (2,) cumulative expected and observed reward
    clock: Integers  # (2,)
    points: Integers  # (P,) steps after which the sums are recorded, increasing
    reward: Vector  # (P,)
    observed: Vector  # (P,)
    actions: Rows  # (T, d), or (0, d) when they are not kept


def make_recorder(points: Integers, T: int, d: int) -> Recorder:
    """An empty record; T = 0 keeps no actions."""
    P = len(points)
    return Recorder(
        sums=np.zeros(2),
        clock=np.zeros(2, dtype=np.int64),
        points=points,
        reward=np.zeros(P),
        observed=np.zeros(P),
        actions=np.zeros((T, d)),
    )


@inline
def elapsed(recorder: Recorder) -> int:
    """Steps played so far."""
    return recorder.clock[_TIME]


def recorded(recorder: Recorder) -> int:
    """Points recorded so far."""
    return int(recorder.clock[_RECORDED])


def record_step(recorder: Recorder, action: Vector, observed: float, expected: float) -> None:
    """A step was played, in Python."""
    t, at = recorder.clock
    recorder.sums[0] += expected
    recorder.sums[1] += observed
    if len(recorder.actions) > 0:
        recorder.actions[t] = action
    if at < len(recorder.points) and recorder.points[at] == t + 1:
        recorder.reward[at], recorder.observed[at] = recorder.sums
        at += 1
    recorder.clock[:] = t + 1, at


@kernel
def play_block(
    model: ModelParams,
    history: History,
    recorder: Recorder,
    block: BlockState,
    noise: np.random.Generator,
    until: int,
) -> None:
    """Plays the block until it was played often enough or `until` steps are over."""
    n, d = length(block), block.actions.shape[1]
    m = model.m
    actions, reward = block.actions, block.expected
    repeats_from = MANY if m < 0 else (m + n - 1) // n  # passes after which the window is the block's own
    keep = recorder.actions.shape[0] > 0
    g, action = np.empty(d), np.empty(d)
    t, at = recorder.clock[_TIME], recorder.clock[_RECORDED]
    points = recorder.points.shape[0]
    upcoming = recorder.points[at] if at < points else MANY
    expected, observed = recorder.sums[0], recorder.sums[1]
    position, passes, often = cursor(block)
    repeating = passes > repeats_from
    begin = t
    while t < until and passes < often:
        if passes <= repeats_from:
            response(model, history, g)
            for i in range(d):
                action[i] = actions[position, i]
            reward[position] = product(g, action)
            push(model, history, action)
        repeating = passes > repeats_from
        y = reward[position] + draw(model.noise, model.sigma, noise)
        add_reward(block, position, passes, y)
        expected += reward[position]
        observed += y
        if keep:
            for i in range(d):
                recorder.actions[t, i] = actions[position, i]
        t += 1
        position, passes = following(position, passes, n)
        if t == upcoming:
            recorder.reward[at], recorder.observed[at] = expected, observed
            at += 1
            upcoming = recorder.points[at] if at < points else MANY
    if repeating:
        # The window was not kept up to date: it is the block's own past.
        for s in range(m):
            source = (position - m + s) % n
            for i in range(d):
                history.recent[s, i] = actions[source, i]
    move_cursor(block, position, passes, t - begin)
    recorder.sums[0], recorder.sums[1] = expected, observed
    recorder.clock[_TIME], recorder.clock[_RECORDED] = t, at
