"""Powers of many memory matrices as sums of inverses: owns what is kept of a group of windows.

x^gamma = x^k r(x) with k the next integer above gamma and r(x) = sum_i w_i/(x + s_i) of `power_poles`. With
X = H T H^T of `tridiagonal` an inverse costs O(d): b = H T^k sum_i w_i x_i with x_i = (T + s_i)^-1 H^T a. The
gradient of <u, b> with respect to X is a sum of products of pairs of vectors, made symmetric: of the terms
H x_i and -w_i H y_i, y_i = (T + s_i)^-1 T^k H^T u, and of the integer power as in `integer_powers`.

A spectrum of size d costs about ten times that (measured: d=16, gamma=-1.7). It serves a memory without end,
whose matrices have full rank however large d is; windows of fewer than d actions have the Gram form.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ._jit import inline, kernel_internal
from ._types import Matrix, Rows, Tiles
from .arithmetic import fma
from .matrix_functions import make_layout
from .memory import Memory
from .tridiagonal import multiply, solve, to_tridiagonal, triangle, turn, turn_back
from .vectors import WIDTH, load, read, store, write, zeros


class _Places(NamedTuple):
    """First rows of what a group of WIDTH windows holds, of those that `make_layout` gives to as many."""

    X: int  # the matrices, then what `to_tridiagonal` leaves of them
    T: int
    scratch: int
    x: int  # H^T a or H^T u; b or what of the gradient comes from the action itself
    pairs: int  # the vectors of the products, those of a pair one behind the other


@inline
def _places(d: int, group: int) -> _Places:
    X = group * make_layout(d).rows
    T = X + triangle(d)
    return _Places(X=X, T=T, scratch=T + 3 * d, x=T + 4 * d, pairs=T + 5 * d)


@inline
def _first(tiles: Tiles) -> int:
    """The first number of the tiles that begins a line of the cache: vectors across lines take twice as long.

    The rows of the last group leave room for that.
    """
    return -(tiles.ctypes.data // 8) % WIDTH


@kernel_internal
def fractional_forward(
    memory: Memory, A0: Matrix, poles: Matrix, a: Rows, D: Rows, tiles: Tiles, B: Rows
) -> None:
    """Features B (d, N) of the actions a (d, N), given the sums D before each; fills the tiles."""
    d, N = a.shape
    first = _first(tiles)
    t = tiles.reshape(-1)[first : tiles.size - WIDTH + first].reshape(-1, WIDTH)
    n, order = poles.shape[1], math.ceil(memory.power.gamma)
    for start in range(0, N, WIDTH):
        count, at = min(N - start, WIDTH), _places(d, start // WIDTH)
        pair = 0
        for i in range(d):
            for j in range(i, d):
                store(t, at.X + pair, 0, A0[i, j] + read(D, pair, start, count))
                pair += 1
            store(t, at.x + i, 0, read(a, i, start, count))
        to_tridiagonal(t, at.X, at.T, at.scratch, d)
        turn(t, at.X, at.T, at.x, d)
        _sum_poles(t, poles, at, at.pairs, d)
        _times_power(t, order, at, at.pairs + 2 * n * d, 2 * d, d)
        turn_back(t, at.X, at.T, at.x, 1, d)
        for i in range(d):
            write(B, i, start, count, load(t, at.x + i, 0))


@kernel_internal
def fractional_backward(memory: Memory, poles: Matrix, U: Rows, D: Rows, tiles: Tiles, grad: Rows) -> None:
    """Fills grad (d, N) with what comes from the actions themselves, and D with the upper triangles of H."""
    d, N = grad.shape
    first = _first(tiles)
    t = tiles.reshape(-1)[first : tiles.size - WIDTH + first].reshape(-1, WIDTH)
    n, order = poles.shape[1], math.ceil(memory.power.gamma)
    pairs = n + abs(order)
    for start in range(0, N, WIDTH):
        count, at = min(N - start, WIDTH), _places(d, start // WIDTH)
        for i in range(d):
            store(t, at.x + i, 0, read(U, i, start, count))
        turn(t, at.X, at.T, at.x, d)
        # The first vector of the forward step belongs to the last of this one.
        _times_power(t, order, at, at.pairs + (2 * pairs - 1) * d, -2 * d, d)
        _sum_poles(t, poles, at, at.pairs + d, d)
        turn_back(t, at.X, at.T, at.x, 1 + 2 * pairs, d)
        for p in range(pairs):
            row, weight = at.pairs + (2 * p + 1) * d, 1.0 if order > 0 else -1.0
            if p < n:
                weight = -poles[1, p]
            for i in range(d):
                store(t, row + i, 0, weight * load(t, row + i, 0))
        _products(t, pairs, at.pairs, d, start, count, D)
        for i in range(d):
            write(grad, i, start, count, load(t, at.x + i, 0))


@kernel_internal
def _sum_poles(t: Rows, poles: Matrix, at: _Places, first: int, d: int) -> None:
    """x becomes r(T) x; the terms of the sum without their weights are left in every other place of pairs."""
    for p in range(poles.shape[1]):
        solve(t, at.T, poles[0, p], at.x, first + 2 * p * d, at.scratch, d)
    for i in range(d):
        total = zeros()
        for p in range(poles.shape[1]):
            total = fma(poles[1, p], load(t, first + 2 * p * d + i, 0), total)
        store(t, at.x + i, 0, total)


@kernel_internal
def _times_power(t: Rows, order: int, at: _Places, first: int, step: int, d: int) -> None:
    """x becomes T^order x; leaves |order| vectors from `first` on: T^-1 x and so on, or x, T x and so on."""
    for s in range(abs(order)):
        row = first + s * step
        if order < 0:
            solve(t, at.T, 0.0, at.x, row, at.scratch, d)
        for i in range(d):
            if order < 0:
                store(t, at.x + i, 0, load(t, row + i, 0))
            else:
                store(t, row + i, 0, load(t, at.x + i, 0))
        if order > 0:
            multiply(t, at.T, row, at.x, d)


@kernel_internal
def _products(t: Rows, n: int, pairs: int, d: int, start: int, count: int, D: Rows) -> None:
    """D = the sum of x y^T + y x^T over n pairs, the upper triangle; four entries at once share what is read.

    Beyond the end of a row its last entry is computed again.
    """
    pair = 0
    for i in range(d):
        for j in range(i, d, 4):
            j1, j2, j3 = min(j + 1, d - 1), min(j + 2, d - 1), min(j + 3, d - 1)
            s0, s1, s2, s3 = zeros(), zeros(), zeros(), zeros()
            for p in range(n):
                x, y = pairs + 2 * p * d, pairs + (2 * p + 1) * d
                xi, yi = load(t, x + i, 0), load(t, y + i, 0)
                s0 = fma(xi, load(t, y + j, 0), fma(yi, load(t, x + j, 0), s0))
                s1 = fma(xi, load(t, y + j1, 0), fma(yi, load(t, x + j1, 0), s1))
                s2 = fma(xi, load(t, y + j2, 0), fma(yi, load(t, x + j2, 0), s2))
                s3 = fma(xi, load(t, y + j3, 0), fma(yi, load(t, x + j3, 0), s3))
            write(D, pair, start, count, s0)
            write(D, pair + j1 - j, start, count, s1)
            write(D, pair + j2 - j, start, count, s2)
            write(D, pair + j3 - j, start, count, s3)
            pair += j3 - j + 1
