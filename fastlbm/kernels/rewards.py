"""Expected rewards of a sequence of actions: owns the cache of X^gamma theta along the sequence.

r_t = <a_t, X_t^gamma theta>, equation (1) of the paper without its noise. X_t changes only when the action
that enters the window differs from the one that leaves it; the windows that do change are collected and
solved side by side, as blocks of m + 1 actions whose last one is theta.
"""

from __future__ import annotations

import numpy as np

from ._jit import kernel
from ._types import Matrix, Vector
from .blocks import features, make_work
from .memory import Memory, make_memory
from .powers import make_power
from .spectra import TILE

#: Steps that are looked at before windows are solved even if fewer than TILE of them changed.
_STEPS = 4096


def expected_rewards(
    actions: Matrix, history: Matrix, A0: Matrix, m: int, gamma: float, theta: Vector
) -> Vector:
    """(T,) rewards of actions (T, d) after history (h, d); m = -1 is an infinite memory."""
    if m < 0:
        d = A0.shape[0]
        memory = Memory(d, 0, False, d, make_power(gamma, None))
        return _unbounded(memory, A0 + history.T @ history, actions, theta)
    memory, matrix = make_memory(A0, m, gamma)
    past = history[len(history) - min(m, len(history)) :]
    padding = np.zeros((m - len(past), A0.shape[0]))
    return _bounded(memory, matrix, np.concatenate((padding, past, actions)), theta)


@kernel
def _bounded(memory: Memory, A0: Matrix | None, sequence: Matrix, theta: Vector) -> Vector:
    """Rewards of all but the first m actions of the sequence (m + T, d)."""
    d, m = memory.d, memory.m
    T = sequence.shape[0] - m
    first = m * TILE
    blocks = np.zeros((d, first + TILE))
    for i in range(d):
        blocks[i, first:] = theta[i]
    work = make_work(memory, A0, first + TILE, TILE)
    slots = np.empty(_STEPS, dtype=np.int64)
    current = np.zeros(d)
    rewards = np.zeros(T)
    begin = 0
    while begin < T:
        count, end = 0, begin
        while end < T and end - begin < _STEPS:
            changed = end == 0
            if end > 0 and m > 0:
                for i in range(d):
                    changed = changed or sequence[end - 1, i] != sequence[end - 1 + m, i]
            if changed:
                if count == TILE:
                    break
                for s in range(m):
                    for i in range(d):
                        blocks[i, s * TILE + count] = sequence[end + s, i]
                count += 1
            slots[end - begin] = count - 1
            end += 1
        if count > 0:
            features(memory, A0, blocks, TILE, work)
        for t in range(begin, end):
            slot = slots[t - begin]
            if slot >= 0:
                for i in range(d):
                    current[i] = work.B[i, first + slot]
            for i in range(d):
                rewards[t] += current[i] * sequence[m + t, i]
        begin = end
    return rewards


@kernel
def _unbounded(memory: Memory, X: Matrix, actions: Matrix, theta: Vector) -> Vector:
    """Rewards when every action counts for ever; X (d, d) is the matrix before the first step, updated."""
    T, d = actions.shape
    block = theta.copy().reshape(d, 1)
    work = make_work(memory, X, 1, 1)
    rewards = np.zeros(T)
    changed = True
    for t in range(T):
        if changed:
            features(memory, X, block, 1, work)
        changed = False
        for i in range(d):
            rewards[t] += work.B[i, 0] * actions[t, i]
            for j in range(d):
                X[i, j] += actions[t, i] * actions[t, j]
            changed = changed or actions[t, i] != 0.0
    return rewards
