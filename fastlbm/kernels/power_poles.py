"""Powers as sums of inverses, to rounding: owns x^-alpha = sum_i w_i/(x + s_i) on an interval, 0 < alpha < 1.

With x = c (1 + z) the power is c^-alpha times the mean of 1/(1 + u z) over u of the Beta distribution with
parameters alpha and 1 - alpha. Its orthogonal polynomials have a tridiagonal matrix J in closed form, and the
mean is e^T (1 + z J)^-1 e with the first coordinate vector e. Projected on the span of (1 + z_i J)^-1 e the
matrix has n eigenvalues and weights, a quadrature with n nodes that is exact at the z_i, slopes as well: all
weights are positive, so no sum of them loses digits. Eight poles do where the largest eigenvalue is 6 times
the least, 12 where it is 50 times that (measured).

Other powers are made of these in `fractional_powers`; `arm_poles` has sums that are coarser and shorter.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ._jit import inline
from ._types import Matrix, Vector
from .powers import HALF, Power

#: From this d on; smaller matrices have their spectra, which are quick for half-integers (measured).
POLES_FROM, POLES_OF_HALVES_FROM = 3, 4
#: The most poles and factors x of the integer power beside them: there is room for as many.
MOST_TERMS = 30
#: The largest ratio of the ends of the interval, and what is asked of the sum relative to the power.
_WIDEST, _EXACT = 1e4, 3e-14
#: The interval is a little wider than what is known, for rounding.
_MARGIN = 1e-6
#: A gamma as close as this to an integer has spectra: one of the weights would be all but 0.
_CLOSEST = 1e-6
#: Where the squares of a matrix neither overflow nor underflow.
_LEAST, _LARGEST = 1e-6, 1e6

#: No poles.
NONE = np.zeros((2, 0))


@inline
def poles_from(kind: int) -> int:
    """The least d for poles, by the kind of the power."""
    return POLES_OF_HALVES_FROM if kind == HALF else POLES_FROM


def poles_of(A0: Matrix, weight: float, power: Power, longest: float = 1.0) -> Matrix:
    """Poles (2, n), the s_i and the w_i, for powers of A0 + sum of weights times a a^T; (2, 0): spectra.

    The weights add up to at most `weight`, no action is longer than `longest`.
    """
    d, gamma = len(A0), power.gamma
    order, distance = math.ceil(gamma), abs(gamma - round(gamma))
    if d < poles_from(power.kind) or power.kind > HALF or power.floor >= 0.0 or distance < _CLOSEST:
        return NONE
    spectrum = np.linalg.eigvalsh(A0)
    low = float(spectrum[0]) * (1.0 - _MARGIN)
    high = (float(spectrum[-1]) + weight * longest * longest) * (1.0 + _MARGIN)
    if not (low > _LEAST and high < min(_LARGEST, _WIDEST * low)):
        return NONE
    return fit_power(order - gamma, low, high, MOST_TERMS - abs(order)).copy()


@lru_cache(maxsize=256)
def fit_power(alpha: float, low: float, high: float, most: int) -> Matrix:
    """The fewest poles for x^-alpha on [low, high], at most so many; (2, 0) if these are not enough."""
    x = np.geomspace(low, high, 257)
    # What a pole adds to the digits, about: how many are needed is seen from one below on.
    ratio = math.log(16.0 * high / low)
    first = max(1, int(0.5 * ratio * -math.log(_EXACT) / math.pi**2) - 1)
    for n in range(first, most + 1):
        poles = _quadrature(alpha, low, high, n)
        error = np.abs((poles[1] / (x[:, None] + poles[0])).sum(axis=1) * x**alpha - 1.0).max()
        if error <= _EXACT:
            return poles
    return NONE


def _quadrature(alpha: float, low: float, high: float, n: int) -> Matrix:
    """The n poles that are exact at n points of [low, high], which lie as those of Chebyshev in log x."""
    center, half = math.sqrt(low * high), 0.5 * math.log(high / low)
    z = np.expm1(half * np.cos(math.pi * (np.arange(n) + 0.5) / n))
    # J is cut where a plain Gauss quadrature would be exact.
    root = math.sqrt(math.sqrt(high / low))
    size = n + math.ceil(20.0 / math.log((root + 1.0) / (root - 1.0)))
    i = np.arange(float(size))
    diagonal = 0.5 - (alpha - 0.5) / (4.0 * i * i - 1.0)
    i = i[1:]
    beside = 0.5 * np.sqrt((i - alpha) * (i - (1.0 - alpha))) / (2.0 * i - 1.0)
    beside[0] *= math.sqrt(2.0)
    Q, _ = np.linalg.qr(_resolvents(diagonal, beside, z))
    J_Q = diagonal[:, None] * Q
    J_Q[:-1] += beside[:, None] * Q[1:]
    J_Q[1:] += beside[:, None] * Q[:-1]
    u, V = np.linalg.eigh(Q.T @ J_Q)
    return np.array([center * (1.0 - u) / u, center ** (1.0 - alpha) * (Q[0] @ V) ** 2 / u])


def _resolvents(diagonal: Vector, beside: Vector, z: Vector) -> Matrix:
    """The columns (1 + z_i J)^-1 e."""
    size = len(diagonal)
    pivots, off = 1.0 + np.outer(diagonal, z), np.outer(beside, z)
    x, ratio = np.zeros((size, len(z))), np.empty((size - 1, len(z)))
    x[0] = 1.0
    for k in range(size - 1):
        ratio[k] = off[k] / pivots[k]
        pivots[k + 1] -= ratio[k] * off[k]
        x[k + 1] = -ratio[k] * x[k]
    x /= pivots
    for k in range(size - 2, -1, -1):
        x[k] -= ratio[k] * x[k + 1]
    return x
