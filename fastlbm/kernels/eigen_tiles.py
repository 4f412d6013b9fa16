"""Spectra of many small symmetric matrices at once: owns the eigensolver, touches one tile of windows.

A tile is an array (rows, TILE): t[row, w] is one number of window w. A matrix of size k is k*k rows, entry
(i, j) in row i*k + j behind a base. Each step of the solver is then a loop over windows with unit stride,
which LLVM vectorises. Rows are indexed, not sliced: a view t[row] costs more than the loop over it
(measured: 20 ns against 10 ns), and one flat index would be checked for its sign at every element.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import inline, kernel_internal, kernel_nested, kernel_norefcount
from ._types import Tile
from .arithmetic import dot2, fma

#: Windows in a tile: a few dozen rows of it stay in the first-level cache.
TILE = 64
#: From this size on LAPACK, one matrix at a time, is faster than rotations over windows (measured).
LAPACK_FROM = 12
_SWEEPS = 30
#: What may be left off the diagonal, in squared norm relative to the diagonal: below rounding.
_SMALL = 1e-31
#: Sweeps before the first look at what is left; nearly every matrix of size 3 or more needs them.
_SURE_SWEEPS = 3


@inline
def jacobi_tangent(pp: float, pq: float, qq: float) -> float:
    """The tangent of the rotation that annihilates pq, without a branch.

    Where the squares underflow, at 1e-162, it may be large and wrong, by up to 1e-23 in the eigenvalues: in
    matrices that are not `is_extreme` that is rounding.
    """
    diff = pp - qq
    off = 2.0 * pq
    tangent = off / (abs(diff) + math.sqrt(diff * diff + off * off) + 1e-300)
    return tangent if diff >= 0.0 else -tangent


@inline
def turn_of(tangent: float) -> tuple[float, float]:
    """Cosine and sine of the rotation with this tangent."""
    cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
    return cosine, tangent * cosine


@inline
def is_extreme(size: float) -> bool:
    """Whether a matrix with entries up to this size must be scaled: squares would overflow or underflow."""
    return size != 0.0 and not 1e-7 < size < 1e100


@kernel_norefcount
def spectra(t: Tile, X: int, lam: int, Q: int, k: int, n: int) -> None:
    """Eigendecompositions X_w = Q_w diag(lam_w) Q_w^T of the windows w in [0, n) of a tile.

    X, lam and Q are rows of t: k*k symmetric entries, of which the upper triangle is read and destroyed;
    k eigenvalues, in no particular order; k*k entries, i*k + j being entry i of the j-th eigenvector.
    """
    if k >= LAPACK_FROM:
        _lapack(t, X, lam, Q, k, n)
        return
    for i in range(k * k):
        entry = 1.0 if i % (k + 1) == 0 else 0.0
        for w in range(n):
            t[Q + i, w] = entry
    flat = t.reshape(-1)
    three = k == 3 and X == 0 and Q == 9 and lam == 36
    for sweep in range(_SWEEPS if k > 1 else 0):
        if three:
            if not _sweep_of_three(flat, n):
                break
            continue
        if (sweep >= _SURE_SWEEPS or k == 2) and _off_diagonal(t, X, k, n) <= _SMALL:
            break
        for p in range(k - 1):
            for q in range(p + 1, k):
                cosine, sine = lam, lam + 1
                _rotation(t, X + p * k + p, X + p * k + q, X + q * k + q, cosine, n)
                for i in range(k):
                    # Only the upper triangle of X is kept up to date.
                    if i != p and i != q:
                        left, right = min(i, p) * k + max(i, p), min(i, q) * k + max(i, q)
                        _turn(t, X + left, X + right, cosine, sine, n)
                    _turn(t, Q + i * k + p, Q + i * k + q, cosine, sine, n)
    for i in range(k):
        for w in range(n):
            t[lam + i, w] = t[X + i * k + i, w]


@kernel_internal
def spectra_of_any_size(t: Tile, X: int, lam: int, Q: int, k: int, n: int) -> None:
    """The same for positive semidefinite matrices whose squares may overflow or underflow."""
    for w in range(n):
        size = 0.0  # the diagonal bounds all entries
        for i in range(k):
            size = max(size, t[X + i * k + i, w])
        if is_extreme(size):
            _lapack(t, X, lam, Q, k, n)
            return
    spectra(t, X, lam, Q, k, n)


@kernel_internal
def _sweep_of_three(t: Tile, n: int) -> bool:
    """A sweep for size 3 with X in the rows 0 to 8, Q in 9 to 17 and scratch in 36 of the flat tile.

    All rows are literals, so that LLVM keeps a window's matrices in registers: twice as fast (measured).
    Returns whether another sweep is needed.
    """
    for w in range(n):
        a, b, c = t[w], t[TILE + w], t[2 * TILE + w]
        d, e, f = t[4 * TILE + w], t[5 * TILE + w], t[8 * TILE + w]
        x0, x1, x2 = t[9 * TILE + w], t[10 * TILE + w], t[11 * TILE + w]
        y0, y1, y2 = t[12 * TILE + w], t[13 * TILE + w], t[14 * TILE + w]
        z0, z1, z2 = t[15 * TILE + w], t[16 * TILE + w], t[17 * TILE + w]
        tan = jacobi_tangent(a, b, d)
        cos, sin = turn_of(tan)
        a, d = fma(tan, b, a), fma(-tan, b, d)
        c, e = dot2(cos, c, sin, e), dot2(cos, e, -sin, c)
        x0, x1 = dot2(cos, x0, sin, x1), dot2(cos, x1, -sin, x0)
        y0, y1 = dot2(cos, y0, sin, y1), dot2(cos, y1, -sin, y0)
        z0, z1 = dot2(cos, z0, sin, z1), dot2(cos, z1, -sin, z0)
        tan = jacobi_tangent(a, c, f)
        cos, sin = turn_of(tan)
        a, f = fma(tan, c, a), fma(-tan, c, f)
        b, e = sin * e, cos * e
        x0, x2 = dot2(cos, x0, sin, x2), dot2(cos, x2, -sin, x0)
        y0, y2 = dot2(cos, y0, sin, y2), dot2(cos, y2, -sin, y0)
        z0, z2 = dot2(cos, z0, sin, z2), dot2(cos, z2, -sin, z0)
        tan = jacobi_tangent(d, e, f)
        cos, sin = turn_of(tan)
        d, f = fma(tan, e, d), fma(-tan, e, f)
        b, c = cos * b, -sin * b
        t[w], t[TILE + w], t[2 * TILE + w] = a, b, c
        t[4 * TILE + w], t[5 * TILE + w], t[8 * TILE + w] = d, 0.0, f
        x1, x2 = dot2(cos, x1, sin, x2), dot2(cos, x2, -sin, x1)
        y1, y2 = dot2(cos, y1, sin, y2), dot2(cos, y2, -sin, y1)
        z1, z2 = dot2(cos, z1, sin, z2), dot2(cos, z2, -sin, z1)
        t[9 * TILE + w], t[10 * TILE + w], t[11 * TILE + w] = x0, x1, x2
        t[12 * TILE + w], t[13 * TILE + w], t[14 * TILE + w] = y0, y1, y2
        t[15 * TILE + w], t[16 * TILE + w], t[17 * TILE + w] = z0, z1, z2
        t[36 * TILE + w] = b * b + c * c - _SMALL * (a * a + d * d + f * f)
    again = False
    for w in range(n):
        again = again or t[36 * TILE + w] > 0.0
    return again


@kernel_internal
def _off_diagonal(t: Tile, X: int, k: int, n: int) -> float:
    """The largest share, over the windows, of what is off the diagonal in a matrix's squared norm."""
    largest = 0.0
    for w in range(n):
        diagonal, off = 1e-300, 0.0
        for i in range(k):
            diagonal += t[X + i * k + i, w] ** 2
            for j in range(i + 1, k):
                off += t[X + i * k + j, w] ** 2
        largest = max(largest, off / diagonal)
    return largest


@kernel_internal
def _rotation(t: Tile, pp: int, pq: int, qq: int, angle: int, n: int) -> None:
    """The rotations that annihilate X_pq, without a branch, applied to X_pp, X_pq and X_qq."""
    for w in range(n):
        t[angle, w] = jacobi_tangent(t[pp, w], t[pq, w], t[qq, w])
    for w in range(n):
        t[pp, w] += t[angle, w] * t[pq, w]
    for w in range(n):
        t[qq, w] -= t[angle, w] * t[pq, w]
        t[pq, w] = 0.0
    for w in range(n):
        t[angle, w], t[angle + 1, w] = turn_of(t[angle, w])


@kernel_internal
def _turn(t: Tile, p: int, q: int, cosine: int, sine: int, n: int) -> None:
    """Rows p and q of every window rotated by its angle."""
    for w in range(n):
        left, right = t[p, w], t[q, w]
        t[p, w] = t[cosine, w] * left + t[sine, w] * right
        t[q, w] = t[cosine, w] * right - t[sine, w] * left


@kernel_nested
def _lapack(t: Tile, X: int, lam: int, Q: int, k: int, n: int) -> None:
    """The same through LAPACK, for the sizes where its O(k^3) beats many sweeps of rotations.

    It scales matrices whose squares would overflow or underflow.
    """
    matrix = np.empty((k, k))
    for w in range(n):
        for i in range(k):
            for j in range(i, k):
                matrix[i, j] = t[X + i * k + j, w]
                matrix[j, i] = matrix[i, j]
        values, vectors = np.linalg.eigh(matrix)
        for i in range(k):
            t[lam + i, w] = values[i]
            for j in range(k):
                t[Q + i * k + j, w] = vectors[i, j]
