"""Integer powers of many memory matrices without their spectra: owns products and solutions in tiles.

b = X^-k a takes a Cholesky factor X = R^T R and k solutions, x_1 = X^-1 a, x_2 = X^-1 x_1, and so on; with
v_i = X^-i u the gradient of <u, b> with respect to X is minus the sum of v_i x_{k+1-i}^T over i = 1..k, made
symmetric. b = X^k a takes k products, and the gradient is the sum of v_i x_{k-1-i}^T over i = 0..k-1.

A spectrum of size d costs about ten times that (measured: d=16, gamma=-3). It serves a memory without end,
whose matrices have full rank however large d is; windows of fewer than d actions have the Gram form.
"""

from __future__ import annotations

import math

from ._jit import inline, kernel_internal
from ._types import Matrix, Rows, Tile, Tiles
from .arithmetic import column
from .eigen_tiles import TILE, is_extreme
from .matrix_functions import dot_rows, make_layout
from .memory import Memory
from .powers import INTEGER

#: From this d on; the spectra of smaller matrices have code of their own.
SOLVE_FROM = 4


@inline
def has_integer_power(memory: Memory, A0: Matrix) -> bool:
    """Whether these kernels serve: X is not close to singular where it is inverted, nor extreme."""
    power, size = memory.power, 0.0
    for i in range(A0.shape[0]):
        size = max(size, A0[i, i])
    # The vectors x_i, and v_i, must fit in the rows of a matrix.
    fits = memory.d >= SOLVE_FROM and 1.0 <= abs(power.gamma) <= memory.d
    plain = power.kind == INTEGER and power.floor < 0.0
    return fits and plain and (size == 0.0 or not is_extreme(size))


@kernel_internal
def _factor(t: Tile, X: int, s: int, d: int, n: int) -> None:
    """X becomes R, its upper triangle, with 1/R_ii on the diagonal; s is a row of scratch."""
    for j in range(d):
        pivot = X + j * d + j
        for i in range(j, d):
            row = X + j * d + i
            if j > 0:
                dot_rows(t, s, X + j, d, X + i, d, j, n)
                for w in range(n):
                    t[row, w] -= t[s, w]
            if i == j:
                for w in range(n):
                    t[row, w] = 1.0 / math.sqrt(t[row, w])
            else:
                for w in range(n):
                    t[row, w] *= t[pivot, w]


@kernel_internal
def _solve(t: Tile, R: int, x: int, out: int, s: int, d: int, n: int) -> None:
    """out = X^-1 x, with what `_factor` left."""
    for i in range(d):
        row, pivot, given = out + i, R + i * d + i, x + i
        if i > 0:
            dot_rows(t, s, R + i, d, out, 1, i, n)
            for w in range(n):
                t[row, w] = (t[given, w] - t[s, w]) * t[pivot, w]
        else:
            for w in range(n):
                t[row, w] = t[given, w] * t[pivot, w]
    for back in range(d):
        i = d - 1 - back
        row, pivot = out + i, R + i * d + i
        if back > 0:
            dot_rows(t, s, pivot + 1, 1, row + 1, 1, back, n)
            for w in range(n):
                t[row, w] -= t[s, w]
        for w in range(n):
            t[row, w] *= t[pivot, w]


@kernel_internal
def _multiply(t: Tile, X: int, x: int, out: int, s: int, d: int, n: int) -> None:
    """out = X x, X being the upper triangle of a symmetric matrix."""
    for i in range(d):
        row = out + i
        dot_rows(t, row, X + i * d + i, 1, x + i, 1, d - i, n)
        if i > 0:
            dot_rows(t, s, X + i, d, x, 1, i, n)
            for w in range(n):
                t[row, w] += t[s, w]


@inline
def _powers(negative: bool, order: int, t: Tile, first: int, x: int, out: int, d: int, n: int) -> None:
    """The vectors x_i or v_i, `order` of them, in the rows from `first` on; the last power in those of `out`.

    Their first is X^-1 x or x itself; the last power is the last of them, or X times it.
    """
    at = make_layout(d)
    if negative:
        _solve(t, at.X, x, first, at.scratch, d, n)
    for i in range(0 if negative else d):
        for w in range(n):
            t[first + i, w] = t[x + i, w]
    for i in range(1, order):
        before, row = first + (i - 1) * d, first + i * d
        if negative:
            _solve(t, at.X, before, row, at.scratch, d, n)
        else:
            _multiply(t, at.X, before, row, at.scratch, d, n)
    last = first + (order - 1) * d
    if not negative:
        _multiply(t, at.X, last, out, at.scratch, d, n)
    for i in range(d if negative else 0):
        for w in range(n):
            t[out + i, w] = t[last + i, w]


@kernel_internal
def integer_forward(memory: Memory, A0: Matrix, a: Rows, D: Rows, tiles: Tiles, B: Rows) -> None:
    """Features B (d, N) of the actions a (d, N), given the sums D before each; leaves factors in tiles."""
    d, negative, order = memory.d, memory.power.negative, int(abs(memory.power.gamma))
    at = make_layout(d)
    for tile in range(tiles.shape[0]):
        start = column(tile * TILE)
        n, t = min(TILE, a.shape[1] - start), tiles[tile].reshape(-1, TILE)
        pair = 0
        for i in range(d):
            for j in range(i, d):
                row, initial = at.X + i * d + j, A0[i, j]
                for w in range(n):
                    t[row, w] = initial + D[pair, start + w]
                pair += 1
            row = at.q + i
            for w in range(n):
                t[row, w] = a[i, start + w]
        if negative:
            _factor(t, at.X, at.scratch, d, n)
        _powers(negative, order, t, at.Q, at.q, at.z, d, n)
        for i in range(d):
            row = at.z + i
            for w in range(n):
                B[i, start + w] = t[row, w]


@kernel_internal
def integer_backward(memory: Memory, a: Rows, U: Rows, D: Rows, tiles: Tiles, grad: Rows) -> None:
    """Fills grad (d, N) with what comes from the actions themselves, and D with the upper triangles of H."""
    d, negative, order = memory.d, memory.power.negative, int(abs(memory.power.gamma))
    at, sign = make_layout(d), -1.0 if negative else 1.0
    for tile in range(tiles.shape[0]):
        start = column(tile * TILE)
        n, t = min(TILE, a.shape[1] - start), tiles[tile].reshape(-1, TILE)
        for i in range(d):
            row = at.p + i
            for w in range(n):
                t[row, w] = U[i, start + w]
        _powers(negative, order, t, at.gamma, at.p, at.y, d, n)
        last, one, other = at.gamma + (order - 1) * d, at.scratch, at.scratch + 1
        pair = 0
        for i in range(d):
            row = at.y + i
            for w in range(n):
                grad[i, start + w] = t[row, w]
            for j in range(i, d):
                dot_rows(t, one, at.Q + i, d, last + j, -d, order, n)
                dot_rows(t, other, at.Q + j, d, last + i, -d, order, n)
                for w in range(n):
                    D[pair, start + w] = sign * (t[one, w] + t[other, w])
                pair += 1
