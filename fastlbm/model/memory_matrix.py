"""The memory matrix: owns the check of A0, the bound of the matrix's powers, and a power itself.

A = (A0 + sum of the last m a a^T)^gamma, equation (2), eq:A-def, of the paper.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from .._base.types import Array
from .._base.validation import array, bounded, symmetric
from ..kernels.fading import PAPER, Variant
from ..kernels.powers import NO_FLOOR, OWN, POWER, lowest, rounding, settled
from ..kernels.responses import Signature, compute_response

#: The bound of a power is at most e to this: kernels square features and differentiate powers.
_LARGEST_EXPONENT = 300.0
#: Beyond e to this a float overflows.
_OVERFLOW = 700.0
#: Where a response of one's own is looked at for its bound: so many points, at most so far.
GRID, _FAR = 1001, 1000.0
#: How far a slope may be from a quotient of differences, and the share of points where it may be farther.
_SLOPE_TOLERANCE, _KINKS = 1e-4, 0.01


def check_memory_matrix(
    A0: Any,
    d: int,
    m: int | float,
    gamma: float,
    *,
    differentiable: bool = False,
    variant: Variant = PAPER,
) -> tuple[Array, float]:
    """A0 (None is the identity) as a symmetric matrix, and the `power_bound` of what it becomes.

    `m` is the most that actions add to an eigenvalue, the sum of their weights.

    Where gradients are needed (`differentiable`), a singular A0 must come with gamma = 0 or gamma >= 1: the
    derivative of x^gamma is infinite at 0 between them.
    """
    if A0 is None:
        matrix, low, high = np.eye(d), 1.0, 1.0
    else:
        matrix = symmetric("A0", bounded("A0", array("A0", A0, (d, d))))
        spectrum = np.linalg.eigvalsh(matrix)
        low, high = lowest(spectrum), float(spectrum[-1])
        if spectrum[0] < -rounding(high, d) or high < 0.0:
            raise ValueError(f"A0 must be positive semidefinite, got the eigenvalue {spectrum[0]:.6g}")
    if variant.response != POWER:
        return matrix, response_bound(variant, gamma, low, high + m)
    if gamma < 0.0 and low == 0.0:
        raise ValueError(f"gamma must be >= 0 when A0 is singular (0 has no negative power), got {gamma:g}")
    if differentiable and low == 0.0 and 0.0 < gamma < 1.0:
        raise ValueError(f"gamma must be 0 or >= 1 for a gradient when A0 is singular, got {gamma:g}")
    steep = (gamma - 1.0) * math.log(low) if low > 0.0 and gamma != 0.0 else 0.0
    if differentiable and steep > 2.0 * _LARGEST_EXPONENT:
        raise ValueError(
            f"A0 must have larger eigenvalues for a gradient with gamma={gamma:g}, got {low:.6g}"
        )
    return matrix, power_bound(low, high, m, gamma)


def power_bound(low: float, high: float, m: int | float, gamma: float) -> float:
    """The largest operator norm of (A0 + sum of m a a^T)^gamma over the ball; A0 has eigenvalues low..high.

    `(high + m)^gamma` for gamma >= 0 and `low^gamma` for gamma < 0; equation (8), eq:bound_R, of the paper
    is that for A0 = I. A bound too large for the kernels raises a `ValueError`; m = inf has the bound inf.

    >>> power_bound(1.0, 1.0, m=2, gamma=2.0), power_bound(0.5, 1.0, m=2, gamma=-1.0)
    (9.0, 2.0)
    """
    if gamma == 0.0:
        return 1.0
    base = high + m if gamma > 0.0 else low
    exponent = gamma * math.log(base) if base > 0.0 else -math.inf
    if math.isfinite(base) and exponent > _LARGEST_EXPONENT:
        raise ValueError(
            f"gamma must keep the powers of the memory matrix below 1e130, got {gamma:g}: "
            f"an eigenvalue of {base:.6g} to that power overflows"
        )
    if math.isfinite(base) and base > 0.0:
        return float(base**gamma)
    return math.inf if exponent > _OVERFLOW else math.exp(exponent)


def response_bound(variant: Variant, gamma: float, low: float, high: float) -> float:
    """The largest |f| at eigenvalues from low to high, for a response f that is no power.

    The saturating one is monotone: one of the ends. One's own is looked at in GRID points, which proves
    nothing; they are those up to low + 1000 where there is no end. So is its slope, there.

    >>> from fastlbm.kernels.powers import SATURATING
    >>> response_bound(Variant(response=SATURATING), -1.0, 1.0, 5.0)
    1.0
    """
    if variant.response == OWN:
        return _bound_of_own(variant.value, variant.slope, gamma, low, min(high, low + _FAR))
    return max(abs(matrix_function_at(x, gamma, variant)) for x in (low, high))


@lru_cache(maxsize=256)
def _bound_of_own(value: int, slope: int, gamma: float, low: float, high: float) -> float:
    """The largest |f| of those in GRID points; refuses an f that is not finite there, or has another slope.

    A slope may differ from differences in a few points: f may have kinks.
    """
    f, derivative = Signature(value), Signature(slope)
    points = np.linspace(low, high, GRID)
    step = 1e-5 * (1.0 + points)  # ahead, as there need be no f below 0
    values, middle, ahead = (
        np.array([f(x, gamma) for x in points + shift * step]) for shift in (0.0, 1.0, 2.0)
    )
    if not np.isfinite(values).all():
        wrong = int(np.argmin(np.isfinite(values)))
        raise ValueError(
            f"response must be finite at all eigenvalues from {low:g} to {high:g}, got {values[wrong]} at "
            f"x={points[wrong]:g}, gamma={gamma:g}"
        )
    slopes = np.array([derivative(x, gamma) for x in points + step])
    with np.errstate(all="ignore"):
        quotients = (ahead - values) / (2.0 * step)
        size = np.abs(quotients) + np.abs(middle) + 1e-3 * np.abs(values).max()
        differs = ~(np.abs(slopes - quotients) <= _SLOPE_TOLERANCE * size)
    if differs.mean() > _KINKS:
        wrong = int(np.argmax(differs))
        raise ValueError(
            f"response must have the derivative of its value as slope, got {slopes[wrong]:.6g} at "
            f"x={points[wrong] + step[wrong]:g}, gamma={gamma:g}, where it is about {quotients[wrong]:.6g}"
        )
    return float(np.abs(values).max())


def matrix_function_at(x: float, gamma: float, variant: Variant) -> float:
    """f(x) of any response."""
    with np.errstate(all="ignore"):
        return float(compute_response(variant.response, variant.value, gamma, x))


def matrix_power(X: Array, gamma: float, floor: float = 0.0, variant: Variant = PAPER) -> Array:
    """X^gamma of a symmetric positive semidefinite X (d, d), or f(X); `floor` as of `eigenvalue_floor`.

    >>> matrix_power(np.diag([4.0, 9.0]), 0.5)
    array([[2., 0.],
           [0., 3.]])
    """
    spectrum, Q = np.linalg.eigh(X)
    if variant.response != POWER:
        values = np.array([matrix_function_at(max(float(x), 0.0), gamma, variant) for x in spectrum])
        result: Array = (Q * values) @ Q.T
        return result
    floor = floor if gamma < 1.0 else NO_FLOOR
    powers = np.array([settled(x, spectrum[-1], len(X), floor) for x in spectrum]) ** gamma
    product: Array = (Q * powers) @ Q.T
    return product
