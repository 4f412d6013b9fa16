"""The power x^gamma and its divided differences: owns their accuracy, touches scalars only.

With f(x) = x^gamma the kernels need f, the first difference f[x, y] = (f(x) - f(y))/(x - y) and,
in the Gram form, the second difference f[c, x, y]. The textbook quotients lose half of the digits
or more when arguments are close. None of the formulas below subtracts nearly equal numbers:

* gamma = +-k: with y = x or 1/x every difference is a complete homogeneous polynomial h_i(y0, y1, ..),
  a sum of products of positive numbers.
* gamma = +-k/2: the same in s = sqrt(x), then the chain rule x = s^2.
* any other gamma: expm1 and log1p, and for the second difference a series when the arguments are close.

The first two run without a branch inside vectorised loops; the third calls libm and does not.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._jit import inline, kernel_internal
from ._types import Matrix
from .arithmetic import fma

#: Highest degree of the polynomials; powers up to DEGREE + 1 (or half of it) are taken by multiplication.
DEGREE = 4

GENERAL, INTEGER, HALF = 0, 1, 2
#: Responses that are no powers, see `responses`; POWER stands for all that are.
POWER, SATURATING, OWN = 0, 3, 4

#: Coefficients by degree.
Coefficients = tuple[float, float, float, float, float]


#: What stands for a floor where no eigenvalue can be rounding, or where it does not matter.
NO_FLOOR = -1.0


@inline
def rounding(top: float, d: int) -> float:
    """Up to this an eigenvalue of a symmetric matrix of size d is rounding, beside the largest, `top`."""
    return 4.0 * d * 2.220446049250313e-16 * max(top, 0.0)


@inline
def settled(x: float, top: float, d: int, floor: float) -> float:
    """The eigenvalue x as powers take it: not negative, and the `floor` where it is rounding."""
    if floor >= 0.0 and x <= rounding(top, d):
        return floor
    return max(x, 0.0)


def lowest(spectrum: NDArray[np.floating[Any]]) -> float:
    """The smallest of the increasing eigenvalues of a positive semidefinite matrix: 0 if it is rounding."""
    low, top = float(spectrum[0]), float(spectrum[-1])
    return low if low > rounding(top, len(spectrum)) else 0.0


def eigenvalue_floor(A0: Matrix, m: float, gamma: float) -> float:
    """What an eigenvalue of A0 + sum of m a a^T counts as if it is rounding: the lowest of A0, below none is.

    NO_FLOOR where none can be rounding, and for gamma >= 1, whose powers of rounding are rounding, too.
    """
    if gamma == 0.0 or gamma >= 1.0:
        return NO_FLOOR
    spectrum = np.linalg.eigvalsh(A0)
    low, d = lowest(spectrum), len(A0)
    return NO_FLOOR if low > 2.0 * rounding(float(spectrum[-1]) + m, d) else low


class Power(NamedTuple):
    """How x^gamma is taken. `first` and `second` hold the coefficients of the polynomials by degree."""

    gamma: float
    kind: int  # GENERAL, INTEGER, HALF, SATURATING or OWN
    order: int  # |gamma| of an INTEGER, twice that of a HALF
    negative: bool
    c: float  # the fixed first argument of the Gram form's differences; 1 in the dense form
    c_power: float  # c^gamma
    floor: float  # of the dense form, see `eigenvalue_floor`
    y0: float  # the variable of the polynomials at c
    s0: float  # c, or its root
    first: Coefficients
    second: Coefficients
    value: int  # of an OWN response the addresses of f ...
    slope: int  # ... and of its derivative


def make_power(gamma: float, c: float | None, floor: float = NO_FLOOR) -> Power:
    """The Power for x^gamma; with a c > 0 its polynomials are those of f[c, x] and f[c, x, y].

    With y0 = c or 1/c (or a root): f[c, x] needs h_k(y0, y) = sum_i y0^(k-i) y^i and f[c, x, y] needs
    h_k(y0, y1, y2) = sum_i y0^(k-i) h_i(y1, y2). Without c, f[x, y] needs h_k(y1, y2) alone.
    """
    kind, order = GENERAL, 0
    if gamma == math.floor(gamma) and abs(gamma) <= DEGREE + 1:
        kind, order = INTEGER, int(abs(gamma))
    elif 2.0 * gamma == math.floor(2.0 * gamma) and abs(2.0 * gamma) <= DEGREE + 1:
        kind, order = HALF, int(abs(2.0 * gamma))
    negative = gamma < 0.0
    shift = 1.0 if c is None else c
    s0 = math.sqrt(shift) if kind == HALF else shift
    y0 = 1.0 / s0 if negative else s0
    first = order - 1
    second = first if negative else first - 1
    if c is None:
        y0, second = 0.0, -1
    return Power(
        gamma=gamma,
        kind=kind,
        order=order,
        negative=negative,
        c=shift,
        c_power=shift**gamma,
        floor=floor,
        y0=y0,
        s0=s0,
        first=_row(y0, first),
        second=_row(y0, second),
        value=0,
        slope=0,
    )


def _row(y0: float, top: int) -> Coefficients:
    """y0^(top - i) by degree i = 0..DEGREE, 0 beyond the top."""
    a = [y0 ** (top - i) if i <= top else 0.0 for i in range(DEGREE + 1)]
    return a[0], a[1], a[2], a[3], a[4]


@inline
def horner(a: Coefficients, y: Any) -> Any:
    """sum_i a_i y^i."""
    return fma(y, fma(y, fma(y, fma(y, a[4], a[3]), a[2]), a[1]), a[0])


@inline
def homogeneous(a: Coefficients, y: Any, z: Any) -> Any:
    """sum_i a_i h_i(y, z), by h_i = z h_{i-1} + y^i."""
    p = y
    h = z + p
    total = fma(a[1], h, a[0])
    p = p * y
    h = fma(z, h, p)
    total = fma(a[2], h, total)
    p = p * y
    h = fma(z, h, p)
    total = fma(a[3], h, total)
    p = p * y
    h = fma(z, h, p)
    return fma(a[4], h, total)


@inline
def first_difference(x: float, y: float, gamma: float) -> float:
    """f[x, y] for f(x) = x^gamma and any x, y >= 0, to a few units in the last place."""
    low, high = min(x, y), max(x, y)
    if low <= 0.0:
        if high <= 0.0:
            return gamma if gamma == 1.0 else 0.0
        return high ** (gamma - 1.0)
    gap = (high - low) / low
    if gap < 1e-300:
        return gamma * low ** (gamma - 1.0)
    rise = gamma * math.log1p(gap)
    # The factors of the last line may overflow and underflow.
    if rise > 300.0:
        return -(high ** (gamma - 1.0)) * math.expm1(-rise) * (high / (high - low))
    if gap > 1e100:
        return (high**gamma - low**gamma) / high
    return low ** (gamma - 1.0) * math.expm1(rise) / gap


@inline
def shifted_first_difference(c: float, g: float, gamma: float) -> float:
    """f[c, c + g] for c > 0, g >= 0: the gap g is known better than the difference of c + g and c."""
    gap = g / c
    if gap < 1e-300:
        return gamma * c ** (gamma - 1.0)
    return c ** (gamma - 1.0) * math.expm1(gamma * math.log1p(gap)) / gap


#: Relative spread of the arguments, times |gamma|/5 for steep powers, below which the second difference is
#: taken by its series. The quotient loses a factor of 1/spread; the terms fall like (spread/2)^i.
_CLOSE = 0.3
_TERMS = 26


@kernel_internal
def shifted_second_difference(c: float, g: float, h: float, gamma: float) -> float:
    """f[c, c + g, c + h] for c > 0 and g, h >= 0."""
    low, high = min(g, h), max(g, h)
    if high * max(1.0, 0.2 * abs(gamma)) > _CLOSE * (c + high):
        upper = first_difference(c + low, c + high, gamma)
        return (upper - shifted_first_difference(c, low, gamma)) / high
    # Taylor at the middle: f[x0, x1, x2] = sum_k f^(k)(mid)/k! h_{k-2}(x0 - mid, x1 - mid, x2 - mid).
    mid = c + 0.5 * high
    u0, u1, u2 = -0.5 * high / mid, (low - 0.5 * high) / mid, 0.5 * high / mid
    coefficient = 0.5 * gamma * (gamma - 1.0)
    p, q, r = 1.0, 1.0, 1.0
    total = coefficient
    for k in range(3, _TERMS):
        coefficient *= (gamma - k + 1.0) / k
        p *= u0
        q = u1 * q + p
        r = u2 * r + q
        total += coefficient * r
    return total * mid ** (gamma - 2.0)
