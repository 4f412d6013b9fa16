"""Blocks side by side, column t*lanes + s holding action t of block s: owns what is done lane by lane."""

from __future__ import annotations

import math

import numpy as np

from ._jit import kernel_internal, kernel_nested
from ._types import Rows, Vector
from .arithmetic import column

#: Starts that climb side by side.
LANES = 8


@kernel_internal
def project(x: Rows, scale: Vector) -> None:
    """Every column of x (d, N) into the unit ball; scale (N,) is scratch."""
    d, N = x.shape
    for w in range(N):
        scale[w] = 0.0
    for i in range(d):
        for w in range(N):
            scale[w] += x[i, w] * x[i, w]
    for w in range(N):
        scale[w] = 1.0 / math.sqrt(max(scale[w], 1.0))
    for i in range(d):
        for w in range(N):
            x[i, w] *= scale[w]


@kernel_internal
def load_start(x: Rows, count: int, index: int, point: Rows, direction: Rows, s: int, lanes: int) -> None:
    """Start number `index` into lane s, at rest."""
    d, N = point.shape
    for t in range(N // lanes):
        size = 0.0
        for i in range(d):
            size += x[i, t * count + index] * x[i, t * count + index]
        scale = 1.0 / math.sqrt(max(size, 1.0))
        for i in range(d):
            point[i, t * lanes + s] = scale * x[i, t * count + index]
            direction[i, t * lanes + s] = 0.0


@kernel_nested
def lane_sums(x: Rows, y: Rows, lanes: int, state: Rows, row: int) -> None:
    """Row `row` of the state = <x, y> of each lane."""
    d, N = x.shape
    if lanes == LANES:
        # Constant bounds keep the sums of all lanes in registers.
        total = np.zeros(LANES)
        for i in range(d):
            for t in range(0, N, LANES):
                for s in range(LANES):
                    total[s] += x[i, t + s] * y[i, t + s]
        for s in range(LANES):
            state[row, s] = total[s]
        return
    if lanes <= 2:
        # The same for the few lanes with which most ascents end.
        one, two, last = 0.0, 0.0, lanes - 1
        for i in range(d):
            for t in range(0, N, lanes):
                one += x[i, t] * y[i, t]
                two += x[i, t + last] * y[i, t + last]
        state[row, last] = two
        state[row, 0] = one
        return
    for s in range(lanes):
        state[row, s] = 0.0
    for i in range(d):
        for t in range(0, N, lanes):
            for s in range(lanes):
                state[row, s] += x[i, t + s] * y[i, t + s]


@kernel_internal
def largest_entry(x: Rows, s: int, lanes: int) -> float:
    """The largest entry in size of lane s."""
    largest = 0.0
    for i in range(x.shape[0]):
        for t in range(s, x.shape[1], lanes):
            largest = max(largest, abs(x[i, t]))
    return largest


@kernel_internal
def wrap(x: Rows, lead: int, block: Rows) -> None:
    """block (d, lead + N): the cycle x (d, N) behind its own last `lead` columns."""
    d, N = x.shape
    lead = column(lead)
    for i in range(d):
        for w in range(lead):
            block[i, w] = x[i, (w - lead) % N]
        for w in range(N):
            block[i, lead + w] = x[i, w]


@kernel_internal
def fold(block_grad: Rows, lead: int, grad: Rows) -> None:
    """The gradient of `wrap`: every copy of an action adds to it."""
    d, N = grad.shape
    lead = column(lead)
    for i in range(d):
        for w in range(N):
            grad[i, w] = block_grad[i, lead + w]
        for w in range(lead):
            grad[i, (w - lead) % N] += block_grad[i, w]


@kernel_internal
def hold(grad: Rows, head: int, tail: int) -> None:
    """Given actions do not move: no gradient in the first `head` columns and the last `tail`."""
    d, N = grad.shape
    for i in range(d):
        for w in range(head):
            grad[i, w] = 0.0
        for w in range(N - tail, N):
            grad[i, w] = 0.0
