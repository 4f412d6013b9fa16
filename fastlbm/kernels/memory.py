"""Blocks of actions to features and back, the forward and backward steps, for any m, d and A0.

A block is kept time-contiguous: actions (d, N), one row a coordinate, one column an action. Several
blocks lie side by side, `lanes` of them, column t*lanes + s holding action t of block s: the actions of
a window are then the same row shifted by multiples of `lanes`, whatever the number of blocks, and every
loop runs with unit stride over windows of all blocks. A window is kept in the column of its action.

X_j = A0 + sum of the m actions before j, b_j = X_j^gamma a_j: equation (2), eq:A-def, of the paper, and
its action in equation (1), eq:reward.

Dense form: the spectrum of X_j, size d. Gram form, for A0 = c I and m < d, with U the d x m matrix of
the window: X^gamma = c^gamma I + U phi(U^T U) U^T with phi(x) = ((c + x)^gamma - c^gamma)/x, size m.
In the Gram form every inner product that a window needs is one of D_s[r] = <a_r, a_{r+s}>, s = 0..m,
shared by all windows, and so is the derivative with respect to it. In the dense form with many actions in
a window, the sums over windows slide: what they cost does not depend on m.

This module owns the tiles of both forms; the Gram form for m <= 2 has a module of its own, `pair`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel_internal
from ._types import Matrix, Rows, Tile, Tiles
from .arithmetic import column
from .eigen_tiles import TILE, is_extreme, spectra, spectra_of_any_size
from .matrix_functions import (
    apply,
    general_differences,
    make_layout,
    root_differences,
    rotate_in,
    settle,
    spectral_gradient,
)
from .powers import GENERAL, NO_FLOOR, Power, eigenvalue_floor, make_power

#: Below this c the Gram form subtracts numbers of the size of c^gamma: the dense form is used.
GRAM_FROM = 1e-3

#: With more actions than this in a window, the dense form does not sum them up anew for each window.
SLIDE_FROM = 12


class Memory(NamedTuple):
    """What the memory matrix is made of, beside A0. `k` is the size of the spectra."""

    d: int
    m: int
    gram: bool
    k: int
    power: Power


def isotropic_scale(A0: Matrix) -> float | None:
    """The c of A0 = c I, or None where A0 is no multiple of the identity."""
    c = float(A0[0, 0])
    return c if bool((c * np.eye(len(A0)) == A0).all()) else None


def make_memory(A0: Matrix, m: int, gamma: float) -> tuple[Memory, Matrix | None]:
    """The Memory, and what the kernels take for A0: None selects the closed forms of `pair`.

    None is a type of its own, so that a problem compiles only the kernels of its form.
    """
    d = A0.shape[0]
    c = isotropic_scale(A0) or 0.0
    isotropic = c >= GRAM_FROM
    if isotropic and m <= 2:
        return Memory(d=d, m=m, gram=True, k=2, power=make_power(gamma, c)), None
    gram = isotropic and m < d
    floor = NO_FLOOR if gram else eigenvalue_floor(A0, m, gamma)
    power = make_power(gamma, c if gram else None, floor)
    return Memory(d=d, m=m, gram=gram, k=m if gram else d, power=power), A0


@kernel_internal
def _shifted_products(a: Rows, m: int, lanes: int, D: Rows) -> None:
    """D_s[r] = <a_r, a_{r+s}>, s = 0..m."""
    D[:] = 0.0
    for s in range(m + 1):
        shift = column(s * lanes)
        for i in range(a.shape[0]):
            for w in range(a.shape[1] - shift):
                D[s, w] += a[i, w] * a[i, w + shift]


@kernel_internal
def _slide(x: Rows, count: int, m: int, lanes: int) -> None:
    """Row by row, x[t] becomes the sum of x over the m times before t, for t >= m.

    Time is cut into stretches of m. A window is the end of one and the beginning of the next, whose sums are
    kept: nothing is subtracted, so nothing is lost, and m does not matter. x has two rows beside its `count`.
    """
    N, length = x.shape[1], m * lanes
    begun, left = count, count + 1
    for row in range(count):
        for first in range(0, N, length):
            end = min(first + length, N)
            for s in range(lanes):
                ahead, back = 0.0, 0.0
                for w in range(first + s, end, lanes):
                    mirror = column(first + end - lanes + 2 * s - w)
                    ahead += x[row, w]
                    back += x[row, mirror]
                    x[begun, w] = ahead
                    x[left, mirror] = back
        for first in range(length, N, length):
            end = min(first + length, N)
            for w in range(first, min(first + lanes, end)):
                x[row, w] = x[begun, column(w - lanes)]
            for w in range(first + lanes, end):
                x[row, w] = x[left, column(w - length)] + x[begun, column(w - lanes)]


@kernel_internal
def _window_sums(a: Rows, m: int, lanes: int, D: Rows) -> None:
    """D (d(d+1)/2 + 2, ...): the upper triangle of the sum of a a^T over the window of each action."""
    d, N = a.shape
    row = 0
    for i in range(d):
        for j in range(i, d):
            for w in range(N):
                D[row, w] = a[i, w] * a[j, w]
            row += 1
    _slide(D, row, m, lanes)


@kernel_internal
def _add_window_sums(a: Rows, m: int, lanes: int, D: Rows, grad: Rows) -> None:
    """Adds to grad what comes through the window sums, given their derivative D, the upper triangle of H.

    An action is in the windows of the next m, which are those before the one after them: D goes on behind the
    last action for as long, with zeros.
    """
    d, N = a.shape
    _slide(D, D.shape[0] - 2, m, lanes)
    later = column((m + 1) * lanes)
    row = 0
    for i in range(d):
        for j in range(i, d):
            for w in range(N):
                grad[i, w] += D[row, later + w] * a[j, w]
            if i != j:
                for w in range(N):
                    grad[j, w] += D[row, later + w] * a[i, w]
            row += 1


@kernel_internal
def _add_products(a: Rows, m: int, lanes: int, K: Rows, grad: Rows) -> None:
    """Adds to grad what comes through D, given K_s[r] = d value / d D_s[r]."""
    for s in range(m + 1):
        shift = column(s * lanes)
        for i in range(a.shape[0]):
            for w in range(a.shape[1] - shift):
                grad[i, w] += K[s, w] * a[i, w + shift]
            for w in range(a.shape[1] - shift):
                grad[i, w + shift] += K[s, w] * a[i, w]


@inline
def _tile_forward(
    memory: Memory, A0: Matrix, lanes: int, a: Rows, D: Rows, start: int, n: int, t: Tile, B: Rows
) -> None:
    """Features B (d, N) of the n <= TILE windows from column `start`; leaves the spectra in t."""
    d, m, k, gram, power = memory.d, memory.m, memory.k, memory.gram, memory.power
    at = make_layout(k)
    if gram:
        # X = U^T U and q = U^T a; row s belongs to s + 1 steps ago.
        for s in range(m):
            for r in range(s, m):
                row, shift = at.X + s * m + r, column(start - (r + 1) * lanes)
                for w in range(n):
                    t[row, w] = D[r - s, shift + w]
            row, shift = at.q + s, column(start - (s + 1) * lanes)
            for w in range(n):
                t[row, w] = D[s + 1, shift + w]
    else:
        # X = A0 + sum of a a^T and q = a.
        slides = m > SLIDE_FROM
        pair = -1
        for i in range(d):
            for j in range(i, d):
                row = at.X + i * d + j
                pair += 1
                if slides:
                    initial = A0[i, j]
                    for w in range(n):
                        t[row, w] = initial + D[pair, start + w]
                for s in range(0, 0 if slides else max(m, 1), 2):
                    # Two actions of the window a pass; a missing one counts as 0.
                    shift, other = (
                        column(start - min(s + 1, m) * lanes),
                        column(start - min(s + 2, m) * lanes),
                    )
                    initial, keep = (A0[i, j], 0.0) if s == 0 else (0.0, 1.0)
                    one, two = 1.0 if s < m else 0.0, 1.0 if s + 1 < m else 0.0
                    for w in range(n):
                        t[row, w] = (initial + keep * t[row, w]) + (
                            one * a[i, shift + w] * a[j, shift + w] + two * a[i, other + w] * a[j, other + w]
                        )
            row = at.q + i
            for w in range(n):
                t[row, w] = a[i, start + w]
    # X is at least A0, and beyond it at most m: no other A0 makes it extreme.
    size = 1.0 if gram else 0.0
    for i in range(0 if gram else d):
        size = max(size, A0[i, i])
    if size == 0.0 or is_extreme(size):
        spectra_of_any_size(t, at.X, at.lam, at.Q, k, n)
    else:
        spectra(t, at.X, at.lam, at.Q, k, n)
    if power.floor >= 0.0:
        settle(t, at.lam, power.floor, k, n)
    if power.kind == GENERAL:
        general_differences(power, gram, t, k, n)
    else:
        root_differences(power, gram, t, k, n)
    rotate_in(t, at.Q, at.q, at.lam, k, n)
    apply(t, at.Q, at.f, at.lam, at.y, at.z, k, n)
    for i in range(d):
        if gram:
            for w in range(n):
                B[i, start + w] = power.c_power * a[i, start + w]
            for s in range(m):
                row, shift = at.z + s, column(start - (s + 1) * lanes)
                for w in range(n):
                    B[i, start + w] += t[row, w] * a[i, shift + w]
        else:
            row = at.z + i
            for w in range(n):
                B[i, start + w] = t[row, w]


@inline
def _tile_backward(
    memory: Memory, lanes: int, a: Rows, U: Rows, start: int, n: int, t: Tile, K: Rows, grad: Rows
) -> None:
    """Adds the share of n windows to grad (d, N) and, in the Gram form, to K_s[r] = d value / d D_s[r].

    Where window sums slide, K gets the upper triangle of H instead.
    """
    d, m, k, gram = memory.d, memory.m, memory.k, memory.gram
    at = make_layout(k)
    # p = U^T u or u.
    for s in range(k):
        row = at.p + s
        if gram:
            shift = column(start - (s + 1) * lanes)
            for w in range(n):
                t[row, w] = 0.0
            for i in range(d):
                for w in range(n):
                    t[row, w] += a[i, shift + w] * U[i, start + w]
        else:
            for w in range(n):
                t[row, w] = U[s, start + w]
    spectral_gradient(t, k, n)
    if gram:
        for s in range(m):
            row, shift = at.y + s, column(start - (s + 1) * lanes)
            for w in range(n):
                K[s + 1, shift + w] += t[row, w]
            for r in range(s, m):
                row, shift = at.X + s * m + r, column(start - (r + 1) * lanes)
                # `_add_products` differentiates <a, a> from both sides: the diagonal counts once.
                factor = 1.0 if r == s else 2.0
                for w in range(n):
                    K[r - s, shift + w] += factor * t[row, w]
    for i in range(d):
        if gram:
            for w in range(n):
                grad[i, start + w] += memory.power.c_power * U[i, start + w]
            for s in range(m):
                row, shift = at.z + s, column(start - (s + 1) * lanes)
                for w in range(n):
                    grad[i, shift + w] += t[row, w] * U[i, start + w]
        else:
            row = at.y + i
            for w in range(n):
                grad[i, start + w] += t[row, w]
            for s in range(0 if m > SLIDE_FROM else m):
                shift = column(start - (s + 1) * lanes)
                for j in range(0, d, 3):
                    # H a with H = 2 S, three columns of H a pass.
                    one, two = 2.0 if j + 1 < d else 0.0, 2.0 if j + 2 < d else 0.0
                    j1, j2 = min(j + 1, d - 1), min(j + 2, d - 1)
                    h0 = at.X + min(i, j) * d + max(i, j)
                    h1, h2 = at.X + min(i, j1) * d + max(i, j1), at.X + min(i, j2) * d + max(i, j2)
                    for w in range(n):
                        grad[i, shift + w] += (
                            2.0 * t[h0, w] * a[j, shift + w]
                            + one * t[h1, w] * a[j1, shift + w]
                            + two * t[h2, w] * a[j2, shift + w]
                        )
    if not gram and m > SLIDE_FROM:
        pair = 0
        for i in range(d):
            for j in range(i, d):
                row = at.X + i * d + j
                for w in range(n):
                    K[pair, start + w] = 2.0 * t[row, w]
                pair += 1


@kernel_internal
def general_forward(memory: Memory, A0: Matrix, lanes: int, a: Rows, D: Rows, tiles: Tiles, B: Rows) -> None:
    """Features B (d, N) of all windows of the blocks in a (d, N); leaves the spectra in the tiles."""
    N = a.shape[1]
    if memory.gram:
        _shifted_products(a, memory.m, lanes, D)
    elif memory.m > SLIDE_FROM:
        _window_sums(a, memory.m, lanes, D)
    for tile in range(tiles.shape[0]):
        start = column(memory.m * lanes + tile * TILE)
        t = tiles[tile].reshape(-1, TILE)
        _tile_forward(memory, A0, lanes, a, D, start, min(TILE, N - start), t, B)


@kernel_internal
def general_backward(memory: Memory, lanes: int, a: Rows, U: Rows, D: Rows, tiles: Tiles, grad: Rows) -> None:
    """The gradient, given U = d value / d B: adds to the first m columns of grad (d, N), fills the others.

    D is used up.
    """
    N = a.shape[1]
    D[:] = 0.0
    for i in range(a.shape[0]):
        for w in range(memory.m * lanes, N):
            grad[i, w] = 0.0
    for tile in range(tiles.shape[0]):
        start = column(memory.m * lanes + tile * TILE)
        t = tiles[tile].reshape(-1, TILE)
        _tile_backward(memory, lanes, a, U, start, min(TILE, N - start), t, D, grad)
    if memory.gram:
        _add_products(a, memory.m, lanes, D, grad)
    elif memory.m > SLIDE_FROM:
        _add_window_sums(a, memory.m, lanes, D, grad)
