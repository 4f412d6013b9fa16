"""Blocks side by side, column t*lanes + s holding action t of block s: owns what is done lane by lane."""

from __future__ import annotations

import math

from ._jit import inline, kernel_internal
from ._types import Rows
from .arithmetic import column, fma
from .vectors import WIDTH, load, read, store, zeros

#: Starts that climb side by side.
LANES = 8


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


@kernel_internal
def store_lane(point: Rows, lanes: int, s: int, x: Rows, count: int, index: int) -> None:
    """Lane s to the place of start number `index`."""
    for i in range(point.shape[0]):
        for t in range(point.shape[1] // lanes):
            x[i, t * count + index] = point[i, t * lanes + s]


@inline
def span_of(lanes: int, N: int) -> int:
    """Columns after which the lanes begin anew with a vector: one vector, or else all N."""
    return WIDTH if WIDTH % lanes == 0 else N


@inline
def spread(state: Rows, row: int, lanes: int, columns: Rows, N: int) -> None:
    """Row `row` of columns (rows, N + WIDTH): the state of its lane for every column, of one span."""
    s = 0
    for w in range(span_of(lanes, N)):
        columns[row, w] = state[row, s]
        s = s + 1 if s + 1 < lanes else 0


@inline
def sum_lanes(row: Rows, index: int, N: int, lanes: int, out: Rows, target: int) -> None:
    """Row `target` of out (rows, lanes): the sum of the columns of each lane in a row of N + WIDTH columns.

    One action after the other, so that a block has the same sums in whatever company.
    """
    if lanes == WIDTH:
        totals = zeros()
        for j in range(0, N, WIDTH):
            totals += load(row, index, j)
        store(out, target, 0, totals)
        return
    for s in range(lanes):
        total = 0.0
        for w in range(s, N, lanes):
            total += row[index, w]
        out[target, s] = total


@kernel_internal
def lane_sums(x: Rows, y: Rows, lanes: int, columns: Rows, state: Rows, row: int) -> None:
    """Row `row` of the state = <x, y> of each lane; columns (rows, N + WIDTH) is scratch."""
    d, N = x.shape
    for j in range(0, N, WIDTH):
        products = zeros()
        for i in range(d):
            products = fma(read(x, i, j, N - j), read(y, i, j, N - j), products)
        store(columns, row, j, products)
    sum_lanes(columns, row, N, lanes, state, row)


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
