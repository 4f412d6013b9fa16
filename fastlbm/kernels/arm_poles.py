"""Powers as sums of inverses: owns the fit x^gamma = sum_i w_i / (x + s_i) on an interval.

Of X = Y + a a^T each (X + s_i)^-1 is one of Y + s_i and a correction of rank one, so what an arm is worth
in a window has a closed form, the same for all arms. Two or three poles are within 1e-3 to 1e-5 of the power
where the largest eigenvalue is a few times the least (measured for gamma from -4 to -0.5): enough to search
with, and what is found is valued exactly.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import kernel
from ._types import Integers, Matrix, Vector

#: Where poles may be, in units of the least eigenvalue.
GRID = np.array(
    [-0.3, -0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 1.5, 2.5, 4.0, 7.0, 12.0, 22.0, 40.0]
)
#: Points of the interval at which the power is matched.
_POINTS = 16


@kernel
def fit_poles(
    gamma: float, least: float, most: float, count: int, grid: Vector
) -> tuple[Vector, Vector, float]:
    """Poles -s (count,) and weights w of the best fit on [least, most], its error relative to least^gamma.

    Of all choices of `count` poles of the grid, each with weights by least squares, the one whose largest
    error is least.
    """
    x, y = np.empty(_POINTS), np.empty(_POINTS)
    for k in range(_POINTS):
        share = 0.5 - 0.5 * math.cos(math.pi * (k + 0.5) / _POINTS)
        x[k] = 1.0 + (most / least - 1.0) * share
        y[k] = x[k] ** gamma
    poles, weights, error = np.zeros(count), np.zeros(count), math.inf
    chosen = np.arange(count)
    Q, R, z = np.empty((count, _POINTS)), np.zeros((count, count)), np.empty(count)
    searching = True
    while searching:
        _orthogonal(x, grid, chosen, Q, R)
        worst = _largest_error(Q, y, z)
        if worst < error:
            error = worst
            for i in range(count - 1, -1, -1):
                for r in range(i + 1, count):
                    z[i] -= R[i, r] * z[r]
                z[i] /= R[i, i]
            for i in range(count):
                poles[i], weights[i] = least * grid[chosen[i]], z[i] * least ** (gamma + 1.0)
        # The next choice, in order.
        i = count - 1
        while i >= 0 and chosen[i] == grid.shape[0] - count + i:
            i -= 1
        searching = i >= 0
        if searching:
            chosen[i] += 1
            for r in range(i + 1, count):
                chosen[r] = chosen[r - 1] + 1
    return poles, weights, error


@kernel
def _orthogonal(x: Vector, grid: Vector, chosen: Integers, Q: Matrix, R: Matrix) -> None:
    """Rows Q (count, points) and the triangle R of 1/(x + s) for the chosen poles."""
    for i in range(chosen.shape[0]):
        for k in range(_POINTS):
            Q[i, k] = 1.0 / (x[k] + grid[chosen[i]])
        for r in range(i):
            R[r, i] = 0.0
            for k in range(_POINTS):
                R[r, i] += Q[r, k] * Q[i, k]
            for k in range(_POINTS):
                Q[i, k] -= R[r, i] * Q[r, k]
        R[i, i] = 0.0
        for k in range(_POINTS):
            R[i, i] += Q[i, k] ** 2
        R[i, i] = math.sqrt(R[i, i]) + 1e-150
        for k in range(_POINTS):
            Q[i, k] /= R[i, i]


@kernel
def _largest_error(Q: Matrix, y: Vector, z: Vector) -> float:
    """What is left of y at most, and z (count,) = Q y."""
    worst = 0.0
    for i in range(z.shape[0]):
        z[i] = 0.0
        for k in range(_POINTS):
            z[i] += Q[i, k] * y[k]
    for k in range(_POINTS):
        left = y[k]
        for i in range(z.shape[0]):
            left -= z[i] * Q[i, k]
        worst = max(worst, abs(left))
    return worst
