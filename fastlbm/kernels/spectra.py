"""Spectra of many small symmetric matrices at once: owns the eigensolver, touches one tile of windows.

A tile is an array (rows, TILE): t[row, w] is one number of window w. A matrix of size k is k*k rows, entry
(i, j) in row i*k + j behind a base. Each step of the solver is then a loop over windows with unit stride,
which LLVM vectorises. Rows are indexed, not sliced: a view t[row] costs more than the loop over it
(measured: 20 ns against 10 ns), and one flat index would be checked for its sign at every element.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import kernel
from ._types import Tile

#: Windows in a tile: a few dozen rows of it stay in the first-level cache.
TILE = 64
#: From this size on LAPACK, one matrix at a time, is faster than rotations over windows (measured).
LAPACK_FROM = 20
_SWEEPS = 30
#: Sweeps before the first look at what is left; nearly every matrix of size 3 or more needs them.
_SURE_SWEEPS = 3


@kernel
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
    last = False
    for sweep in range(_SWEEPS if k > 1 else 0):
        if last:
            break
        if sweep >= _SURE_SWEEPS or k == 2:
            off = _off_diagonal(t, X, k, n)
            if off <= 1e-34:
                break
            # Convergence is quadratic: from here one more sweep ends below rounding.
            last = off <= 1e-18
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


@kernel
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


@kernel
def _rotation(t: Tile, pp: int, pq: int, qq: int, angle: int, n: int) -> None:
    """The rotations that annihilate X_pq, without a branch, applied to X_pp, X_pq and X_qq."""
    for w in range(n):
        diff = t[pp, w] - t[qq, w]
        off = 2.0 * t[pq, w]
        tangent = off / (abs(diff) + math.sqrt(diff * diff + off * off) + 1e-300)
        t[angle, w] = tangent if diff >= 0.0 else -tangent
    for w in range(n):
        t[pp, w] += t[angle, w] * t[pq, w]
    for w in range(n):
        t[qq, w] -= t[angle, w] * t[pq, w]
        t[pq, w] = 0.0
    for w in range(n):
        tangent = t[angle, w]
        cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
        t[angle, w] = cosine
        t[angle + 1, w] = tangent * cosine


@kernel
def _turn(t: Tile, p: int, q: int, cosine: int, sine: int, n: int) -> None:
    """Rows p and q of every window rotated by its angle."""
    for w in range(n):
        left, right = t[p, w], t[q, w]
        t[p, w] = t[cosine, w] * left + t[sine, w] * right
        t[q, w] = t[cosine, w] * right - t[sine, w] * left


@kernel
def _lapack(t: Tile, X: int, lam: int, Q: int, k: int, n: int) -> None:
    """The same through LAPACK, for the sizes where its O(k^3) beats many sweeps of rotations."""
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
