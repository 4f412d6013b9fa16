"""A catalogue: owns the arms that a search looks at, and what is known of each alone.

Rows of a catalogue behind those that may be played are actions of the past.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import kernel, kernel_nested
from ._types import Integers, Matrix, Rows, Vector
from .arm_worth import Arms

#: The last positions of a block have any arms, as its first m have; others need not look at all.
LAST = 2


class Catalogue(NamedTuple):
    """All arms, behind them actions of the past, and what is known of rewards."""

    A: Rows  # (K, d)
    VA: Rows  # (K, d) V^-1 a
    theta: Vector  # (K,) <a, theta>
    squares: Vector  # (K,)
    widths: Vector  # (K,)
    beta: float
    target: Vector  # (d,) theta itself
    V_inv: Matrix
    size: float  # that of the largest arm
    unit: float  # about what the best arm earns without memory


@kernel
def make_catalogue(A: Rows, theta: Vector, V_inv: Matrix, beta: float) -> Catalogue:
    K, d = A.shape
    VA, inner, squares, widths = np.zeros((K, d)), np.zeros(K), np.zeros(K), np.zeros(K)
    for k in range(K):
        for i in range(d):
            inner[k] += A[k, i] * theta[i]
            squares[k] += A[k, i] ** 2
            if beta > 0.0:
                for j in range(d):
                    VA[k, i] += V_inv[i, j] * A[k, j]
                widths[k] += A[k, i] * VA[k, i]
    size, unit = 0.0, 0.0
    for k in range(K):
        size = max(size, math.sqrt(squares[k]))
        unit = max(unit, abs(inner[k]) + beta * math.sqrt(max(widths[k], 0.0)))
    return Catalogue(
        A=A,
        VA=VA,
        theta=inner,
        squares=squares,
        widths=widths,
        beta=beta,
        target=theta,
        V_inv=V_inv,
        size=size if size > 0.0 else 1.0,
        unit=unit if unit > 0.0 else 1.0,
    )


@kernel_nested
def arms_of(catalogue: Catalogue, few: Integers) -> Arms:
    """The inner products of a few arms (k,)."""
    k, A, VA = few.shape[0], catalogue.A, catalogue.VA
    G, H, theta, squares, widths = np.zeros((k, k)), np.zeros((k, k)), np.empty(k), np.empty(k), np.empty(k)
    for r in range(k):
        theta[r], squares[r] = catalogue.theta[few[r]], catalogue.squares[few[r]]
        widths[r] = catalogue.widths[few[r]]
        for s in range(k):
            for i in range(A.shape[1]):
                G[r, s] += A[few[r], i] * A[few[s], i]
                H[r, s] += A[few[r], i] * VA[few[s], i]
    return Arms(G=G, H=H, theta=theta, squares=squares, widths=widths, beta=catalogue.beta)
