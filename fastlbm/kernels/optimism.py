"""Optimism: the value of a block's features and its derivative (Section 4 of the paper, the UCBs).

Owns U and the values; reads the features. beta = 0 gives the plain reward of a block.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import kernel
from ._types import Matrix, Rows, Vector

#: sum_j <b_j, theta> + beta ||b_j||, the UCB of O3M (Remark 2, with the sum that the paper leaves out)
O3M = 0
#: <s, theta> + beta ||s|| with s = sum_j b_j, the UCB of OM
OM = 1
#: <b, theta> + beta ||b|| with b in R^{d(m+L)}, its first m parts the actions: the block approach
OM_BLOCK = 2

#: Squared norms up to this count as the kink of the norm at 0, whose gradient is taken as 0.
_KINK = 1e-300


class Belief(NamedTuple):
    """What a learner knows: norms are ||b||^2 = b^T V_inv b."""

    theta: Vector
    V_inv: Matrix
    beta: float
    kind: int


@kernel
def additive(
    theta: Vector, V_inv: Matrix, beta: float, m: int, lanes: int, B: Rows, U: Rows, scratch: Rows, values: Vector
) -> None:
    """O3M: one UCB for each window; values (lanes,), U = d value / d B. scratch is (2, N)."""
    d, N = B.shape
    start = m * lanes
    n = N - start
    for w in range(n):
        scratch[0, w] = 0.0
        scratch[1, w] = 0.0
    for i in range(d):
        scale = theta[i]
        if beta == 0.0:
            for w in range(n):
                scratch[0, w] += scale * B[i, start + w]
            for w in range(n):
                U[i, start + w] = scale
            continue
        # V_inv b, four columns of V_inv at a time; a missing column counts as 0.
        for j in range(0, d, 4):
            j1, j2, j3 = min(j + 1, d - 1), min(j + 2, d - 1), min(j + 3, d - 1)
            v0 = V_inv[i, j]
            v1 = V_inv[i, j1] if j + 1 < d else 0.0
            v2 = V_inv[i, j2] if j + 2 < d else 0.0
            v3 = V_inv[i, j3] if j + 3 < d else 0.0
            keep = 0.0 if j == 0 else 1.0
            for w in range(start, N):
                U[i, w] = keep * U[i, w] + (v0 * B[j, w] + v1 * B[j1, w] + (v2 * B[j2, w] + v3 * B[j3, w]))
        for w in range(n):
            scratch[0, w] += scale * B[i, start + w]
            scratch[1, w] += U[i, start + w] * B[i, start + w]
    if beta > 0.0:
        for w in range(n):
            squared = scratch[1, w]
            root = math.sqrt(max(squared, 0.0))
            scratch[0, w] += beta * root
            scratch[1, w] = beta / (root + 1e-300) if squared > _KINK else 0.0
        for i in range(d):
            scale = theta[i]
            for w in range(n):
                U[i, start + w] = scale + scratch[1, w] * U[i, start + w]
    for s in range(lanes):
        total = 0.0
        for w in range(s, n, lanes):
            total += scratch[0, w]
        values[s] = total


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
        b[:] = 0.0
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
        if squared > _KINK:
            value += beta * math.sqrt(squared)
            scale = beta / math.sqrt(squared)
        values[s] = value
        for step in range(first, n):
            for i in range(d):
                row = step * d + i if stacked else i
                U[i, step * lanes + s] = theta[row] + scale * u[row]
