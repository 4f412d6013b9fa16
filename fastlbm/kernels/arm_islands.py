"""Islands: owns how different blocks are improved side by side.

Where there are not many more directions than actions in a window, blocks that have hardly an arm in common
are worth nearly the same, and one that is improved alone stays much what it is. So an island is a block that
differs from all others. A stretch of it is annealed, and what comes of that takes its place and no other,
even if it is worth a little less. The worst islands are left, one after the other, and the last one has what
time remains.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import kernel_internal, kernel_nested
from ._types import Integers
from .arm_grounds import (
    Found,
    Ground,
    RoundEffort,
    State,
    annealed,
    keep,
    known,
    make_found,
    one_of,
    stretch_of,
)
from .arm_looks import Desk
from .arm_worth import Poles, Shape

#: Of the stretches, those that are whole blocks.
LONG = 0.05
#: What an island may lose by a change at first, in what a step of a good cycle is worth.
LOOSE = 0.025


@kernel_internal
def _settle(islands: Found, most: int, blocks: Found, n: int) -> None:
    """The best blocks, so many or fewer; no two have the same arms at more than half of the positions."""
    for q in range(most):
        found = -1
        for x in range(blocks.values.shape[0]):
            used = blocks.lengths[x] != n
            for y in range(q):
                alike = 0
                for t in range(n):
                    alike += islands.arms[y, t] == blocks.arms[x, t]
                used = used or 2 * alike > n
            if not used and (found < 0 or blocks.values[x] > blocks.values[found]):
                found = x
        if found < 0:
            return
        _land(islands, q, blocks.arms[found], blocks.values[found])


@kernel_internal
def _land(islands: Found, q: int, block: Integers, value: float) -> None:
    """An island becomes this block."""
    islands.lengths[q], islands.values[q] = block.shape[0], value
    for t in range(block.shape[0]):
        islands.arms[q, t] = block[t]


@kernel_nested
def improve_islands(
    wide: Ground,
    narrow: Ground,
    poles: Poles,
    shape: Shape,
    head: int,
    block: Integers,
    desk: Desk,
    state: State,
    effort: RoundEffort,
    rng: np.random.Generator,
) -> None:
    """Improves the blocks of the state until the budget is spent; `block` (n,) is scratch."""
    n, islands, begin = shape.n, make_found(shape.n), state.spent[0]
    _settle(islands, effort.islands, state.blocks, n)
    count = known(islands, n)
    while state.spent[0] < effort.budget and effort.stop[0] == 0:
        left = 1.0 - (state.spent[0] - begin) / (effort.budget - begin)
        q = one_of(islands, n, math.ceil(count * left), rng)
        for t in range(n):
            block[t] = islands.arms[q, t]
        first, length = stretch_of(n, shape.m, head, LONG, rng)
        between = effort.hot, effort.cold
        value = annealed(
            wide, poles, shape, block, head, first, length, narrow, between, effort.stretch, desk, state, rng
        )
        keep(state.blocks, block, value)
        if value >= islands.values[q] - LOOSE * left * state.unit:
            _land(islands, q, block, value)
