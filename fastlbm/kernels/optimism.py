"""Optimism: the value of a block's features and its derivative; the UCBs of the paper's Section 4, sec:algo.

Owns U and the values; reads the features. beta = 0 gives the plain reward of a block.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_norefcount
from ._types import Matrix, Rows, Vector
from .arithmetic import column
from .vectors import WIDTH, Several, at_least, read, root, where_above, write, zeros

#: sum_j <b_j, theta> + beta ||b_j||, the UCB of O3M (Remark 3, rmk:over_opt; Section 4 leaves the sum out)
O3M = 0
#: <s, theta> + beta ||s|| with s = sum_j b_j, the UCB of OM (equation (12), eq:oful_indiv)
OM = 1
#: <b, theta> + beta ||b|| with b in R^{d(m+L)}, its first m parts the actions: the block approach (equation
#: (9), eq:oful_block)
OM_BLOCK = 2

#: Squared norms up to this count as the kink of the norm at 0, whose gradient is taken as 0.
KINK = 1e-300


class Belief(NamedTuple):
    """What a learner knows: norms are ||b||^2 = b^T V_inv b."""

    theta: Vector
    V_inv: Matrix
    beta: float
    kind: int


@inline
def _row_times(V_inv: Matrix, i: int, B: Rows, first: int, count: int) -> Several:
    """Row i of V_inv b, six columns of V_inv a pass; a missing column counts as 0."""
    d, total = B.shape[0], zeros()
    for j in range(0, d, 6):
        j1, j2, j3 = min(j + 1, d - 1), min(j + 2, d - 1), min(j + 3, d - 1)
        j4, j5 = min(j + 4, d - 1), min(j + 5, d - 1)
        v1 = V_inv[i, j1] if j + 1 < d else 0.0
        v2 = V_inv[i, j2] if j + 2 < d else 0.0
        v3 = V_inv[i, j3] if j + 3 < d else 0.0
        v4 = V_inv[i, j4] if j + 4 < d else 0.0
        v5 = V_inv[i, j5] if j + 5 < d else 0.0
        pair = v1 * read(B, j1, first, count) + v2 * read(B, j2, first, count)
        last = v4 * read(B, j4, first, count) + v5 * read(B, j5, first, count)
        rest = pair + (v3 * read(B, j3, first, count) + last)
        total = (total + V_inv[i, j] * read(B, j, first, count)) + rest
    return total


@inline
def _add_group(
    theta: Vector,
    V_inv: Matrix,
    beta: float,
    first: int,
    count: int,
    start: int,
    B: Rows,
    U: Rows,
    scratch: Rows,
) -> None:
    """U of `count` windows from the column `first` on, and their UCBs in the scratch."""
    d = B.shape[0]
    value, squared = zeros(), zeros()
    for i in range(d if beta > 0.0 else 0):
        write(U, i, first, count, _row_times(V_inv, i, B, first, count))
    # <b, theta> and b^T V_inv b, three coordinates a pass; a missing one counts as 0.
    for i in range(0, d, 3):
        i1, i2 = min(i + 1, d - 1), min(i + 2, d - 1)
        one, two = 1.0 if i + 1 < d else 0.0, 1.0 if i + 2 < d else 0.0
        b0, b1, b2 = read(B, i, first, count), read(B, i1, first, count), read(B, i2, first, count)
        value = (value + theta[i] * b0) + (one * theta[i1] * b1 + two * theta[i2] * b2)
        if beta > 0.0:
            u0, u1, u2 = read(U, i, first, count), read(U, i1, first, count), read(U, i2, first, count)
            squared = (squared + u0 * b0) + (one * u1 * b1 + two * u2 * b2)
    if beta > 0.0:
        norm = root(at_least(squared, 0.0))
        value = value + beta * norm
        scale = where_above(squared, KINK, beta / (norm + 1e-300), zeros())
        for i in range(d):
            write(U, i, first, count, theta[i] + scale * read(U, i, first, count))
    else:
        for i in range(d):
            write(U, i, first, count, zeros() + theta[i])
    write(scratch, 0, first - start, count, value)


@kernel_norefcount
def additive(
    theta: Vector,
    V_inv: Matrix,
    beta: float,
    m: int,
    lanes: int,
    B: Rows,
    U: Rows,
    scratch: Rows,
    values: Vector,
) -> None:
    """O3M: one UCB for each window; values (lanes,), U = d value / d B. scratch is (2, N)."""
    N = B.shape[1]
    start = column(m * lanes)
    n = N - start
    whole = start + n // WIDTH * WIDTH
    for first in range(start, whole, WIDTH):
        _add_group(theta, V_inv, beta, first, WIDTH, start, B, U, scratch)
    if whole < N:
        _add_group(theta, V_inv, beta, whole, N - whole, start, B, U, scratch)
    if lanes == 1:
        total = 0.0
        for w in range(n):
            total += scratch[0, w]
        values[0] = total
    else:
        for s in range(lanes):
            values[s] = 0.0
        for w in range(0, n, lanes):
            for s in range(lanes):
                values[s] += scratch[0, w + s]


@kernel
def joint(belief: Belief, m: int, lanes: int, a: Rows, B: Rows, U: Rows, values: Vector) -> None:
    """OM and OM-Block: one UCB for a block, of the sum or of the concatenation of its features."""
    d, N = B.shape
    n = N // lanes
    stacked = belief.kind == OM_BLOCK
    first = 0 if stacked else m
    theta, V_inv, beta = belief.theta, belief.V_inv, belief.beta
    size = theta.shape[0]
    b = np.empty(size)
    u = np.empty(size)
    for s in range(lanes):
        for i in range(size):
            b[i] = 0.0
        for step in range(first, n):
            for i in range(d):
                column = step * lanes + s
                b[step * d + i if stacked else i] += B[i, column] if step >= m else a[i, column]
        squared, value = 0.0, 0.0
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += V_inv[i, j] * b[j]
            u[i] = total
            squared += b[i] * total
            value += b[i] * theta[i]
        scale = 0.0
        if squared > KINK:
            value += beta * math.sqrt(squared)
            scale = beta / math.sqrt(squared)
        values[s] = value
        for step in range(first, n):
            for i in range(d):
                row = step * d + i if stacked else i
                U[i, step * lanes + s] = theta[row] + scale * u[row]
