"""The spectrum of one small symmetric matrix: owns the eigensolver that steps use, one matrix at a time."""

from __future__ import annotations

import math

import numpy as np

from ._jit import kernel, kernel_internal
from ._types import Matrix
from .eigen_tiles import LAPACK_FROM, is_extreme, jacobi_tangent, turn_of


@kernel
def eigen(A: Matrix, Q: Matrix) -> None:
    """A = Q diag(lam) Q^T for a symmetric A, which is left with lam on its diagonal; for one small matrix."""
    k = A.shape[0]
    if k >= LAPACK_FROM:
        values, vectors = np.linalg.eigh(A)
        for i in range(k):
            A[i, i] = values[i]
            for j in range(k):
                Q[i, j] = vectors[i, j]
        return
    size = 0.0
    for i in range(k):
        size = max(size, abs(A[i, i]))
        for j in range(k):
            Q[i, j] = 1.0 if i == j else 0.0
    unit = 1.0
    if is_extreme(size):
        # A power of two near its size; of denormal numbers as near as it gets.
        unit = math.ldexp(1.0, max(math.frexp(size)[1], -1000))
        for i in range(k):
            for j in range(k):
                A[i, j] /= unit
    _rotate_away(A, Q)
    if unit != 1.0:
        for i in range(k):
            A[i, i] *= unit


@kernel_internal
def _rotate_away(A: Matrix, Q: Matrix) -> None:
    """Jacobi's rotations, until nothing is left off the diagonal of A; Q takes them in."""
    k = A.shape[0]
    for _ in range(30):
        diagonal, off = 0.0, 0.0
        for i in range(k):
            diagonal += A[i, i] * A[i, i]
            for j in range(i):
                off += A[i, j] * A[i, j]
        if off <= 1e-32 * diagonal:
            break
        for p in range(k - 1):
            for q in range(p + 1, k):
                if A[p, q] == 0.0:
                    continue
                tangent = jacobi_tangent(A[p, p], A[p, q], A[q, q])
                cosine, sine = turn_of(tangent)
                A[p, p] += tangent * A[p, q]
                A[q, q] -= tangent * A[p, q]
                A[p, q] = 0.0
                A[q, p] = 0.0
                for i in range(k):
                    if i != p and i != q:
                        left, right = A[i, p], A[i, q]
                        A[i, p] = cosine * left + sine * right
                        A[i, q] = cosine * right - sine * left
                        A[p, i], A[q, i] = A[i, p], A[i, q]
                    left, right = Q[i, p], Q[i, q]
                    Q[i, p] = cosine * left + sine * right
                    Q[i, q] = cosine * right - sine * left
