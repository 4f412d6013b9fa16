"""Powers of many memory matrices as sums of inverses: owns what is kept of a group of windows.

x^gamma = x^k r(x) with k the next integer above gamma and r(x) = sum_i w_i/(x + s_i) of `power_poles`. With
X = H T H^T of `tridiagonal` an inverse costs O(d): b = H T^k sum_i w_i x_i with x_i = (T + s_i)^-1 H^T a. The
gradient of <u, b> with respect to X is H S H^T with a sum S of products of pairs of vectors, made symmetric:
of x_i and -w_i y_i, y_i = (T + s_i)^-1 T^k H^T u, and of the integer power as in `integer_powers`.

A spectrum of size d costs about twenty times that (measured: d=16, gamma=-1.7). It serves a memory without
end, whose matrices have full rank however large d is; windows of fewer than d actions have the Gram form.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ._jit import inline, kernel_internal
from ._types import Matrix, Rows, Tile, Tiles
from .arithmetic import fma
from .memory import Memory
from .triangles import add_pairs, triangle
from .tridiagonal import multiply, pivots, solve, to_tridiagonal, turn, turn_back, turn_matrix_back
from .vectors import WIDTH, line_of, pick, put, read, write, zeros


class _Kept(NamedTuple):
    """First places of what is kept of a group of WIDTH windows, for up to MOST_TERMS poles and factors."""

    X: int  # the matrices, then what `to_tridiagonal` leaves of them
    T: int
    inverses: int  # of the pivots, one set for each pole and one for T itself
    x: int  # the vectors x_i, each times the root of its weight, then those of the integer power


@inline
def _kept(d: int, poles: int, order: int, group: int) -> _Kept:
    X = group * (triangle(d) + (4 + 2 * poles + abs(order)) * d)
    T = X + triangle(d)
    return _Kept(X=X, T=T, inverses=T + 3 * d, x=T + (4 + poles) * d)


class _Scratch(NamedTuple):
    """First places of what is not kept."""

    S: int
    w: int
    now: int  # H^T a or H^T u; b or what of the gradient comes from the action itself
    y: int  # what belongs to the vectors x


@inline
def _scratch(d: int) -> _Scratch:
    w = triangle(d)
    return _Scratch(S=0, w=w, now=w + 2 * d, y=w + 3 * d)


@kernel_internal
def fractional_forward(
    memory: Memory, A0: Matrix, poles: Matrix, a: Rows, D: Rows, tiles: Tiles, group: Rows, B: Rows
) -> None:
    """Features B (d, N) of the actions a (d, N), given the sums D before each; fills the tiles."""
    d, N = a.shape
    t, s = tiles.reshape(-1)[line_of(tiles) :], group.reshape(-1)[line_of(group) :]
    room = _scratch(d)
    n, order = poles.shape[1], math.ceil(memory.power.gamma)
    for start in range(0, N, WIDTH):
        count, at = min(N - start, WIDTH), _kept(d, n, order, start // WIDTH)
        pair = 0
        for i in range(d):
            for j in range(i, d):
                put(t, at.X + pair, A0[i, j] + read(D, pair, start, count))
                pair += 1
            put(s, room.now + i, read(a, i, start, count))
        to_tridiagonal(t, at.X, at.T, s, room.w, room.now, d)
        pivots(t, at.T, poles[0], n + 1, at.inverses, d)
        _sum_poles(t, at, poles, s, room.now, t, at.x, d)
        for k in range(abs(order)):
            _times_power(t, at, n, order, s, room.now, t, at.x + (n + k) * d, 1.0, d)
        turn_back(t, at.X, at.T, s, room.now, d)
        for i in range(d):
            write(B, i, start, count, pick(s, room.now + i))


@kernel_internal
def fractional_backward(
    memory: Memory, poles: Matrix, U: Rows, D: Rows, tiles: Tiles, group: Rows, grad: Rows
) -> None:
    """Fills grad (d, N) with what comes from the actions themselves, and D with the upper triangles of H."""
    d, N = grad.shape
    t, s = tiles.reshape(-1)[line_of(tiles) :], group.reshape(-1)[line_of(group) :]
    room = _scratch(d)
    n, order = poles.shape[1], math.ceil(memory.power.gamma)
    pairs = n + abs(order)
    # All products are subtracted in the end.
    sign = -1.0 if order > 0 else 1.0
    for start in range(0, N, WIDTH):
        count, at = min(N - start, WIDTH), _kept(d, n, order, start // WIDTH)
        for i in range(d):
            put(s, room.now + i, read(U, i, start, count))
        turn(t, at.X, at.T, s, room.now, d)
        # The first vector of the forward step belongs to the last of this one.
        for k in range(pairs - 1, n - 1, -1):
            _times_power(t, at, n, order, s, room.now, s, room.y + k * d, sign, d)
        _sum_poles(t, at, poles, s, room.now, s, room.y, d)
        add_pairs(t, at.x, s, room.y, pairs, room.S, d)
        turn_matrix_back(t, at.X, at.T, s, room.S, room.w, room.now, d)
        for k in range(triangle(d)):
            write(D, k, start, count, -pick(s, room.S + k))
        for i in range(d):
            write(grad, i, start, count, pick(s, room.now + i))


@kernel_internal
def _sum_poles(t: Tile, at: _Kept, poles: Matrix, s: Tile, now: int, z: Tile, out: int, d: int) -> None:
    """The vectors at `now` become r(T) times them; z keeps the terms, over the roots of their weights."""
    n = poles.shape[1]
    for p in range(n):
        solve(t, at.T, at.inverses + p * d, s, now, z, out + p * d, math.sqrt(poles[1, p]), d)
    for i in range(d):
        total = zeros()
        for p in range(n):
            total = fma(math.sqrt(poles[1, p]), pick(z, out + p * d + i), total)
        put(s, now + i, total)


@kernel_internal
def _times_power(
    t: Tile, at: _Kept, n: int, order: int, s: Tile, now: int, z: Tile, out: int, sign: float, d: int
) -> None:
    """The vectors at `now` become T or T^-1 times them; z keeps them times the sign, or T^-1 times them."""
    if order < 0:
        solve(t, at.T, at.inverses + n * d, s, now, z, out, 1.0, d)
        for i in range(d):
            put(s, now + i, pick(z, out + i))
    else:
        for i in range(d):
            put(z, out + i, sign * pick(s, now + i))
        multiply(t, at.T, z, out, s, now, d)
        for i in range(d):
            put(s, now + i, sign * pick(s, now + i))
