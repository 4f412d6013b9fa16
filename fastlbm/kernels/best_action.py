"""One action that maximises <a, g> + beta ||a||_W: owns the exact argmax over the ball and over arms.

On the ball this is max ||g + beta W^(1/2) u|| over unit vectors u, a trust-region problem: with the spectrum
h_i^2 of beta^2 W and c = Q^T g, u_i = h_i c_i / (nu - h_i^2) for the one nu >= max h^2 with ||u|| = 1, found
by Newton steps on 1/||u||. The action is the direction of g + beta W^(1/2) u.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import kernel, kernel_norefcount
from ._types import Matrix, Rows, Vector
from .eigen_matrix import eigen
from .ties import ACTION_SHARE, exceeds, margin


@kernel
def best_in_ball(g: Vector, W: Matrix, beta: float, out: Vector) -> float:
    """out (d,), the action of the unit ball; returns its value. Of equal ones a fixed one."""
    d = g.shape[0]
    A, Q = W.copy(), np.empty((d, d))
    eigen(A, Q)
    c, h2, v = np.empty(d), np.empty(d), np.empty(d)
    top, norm = 0.0, 0.0
    for k in range(d):
        s = 0.0
        for i in range(d):
            s += Q[i, k] * g[i]
        c[k] = s
        norm += s * s
        h2[k] = beta * beta * max(A[k, k], 0.0)
        top = max(top, h2[k])
    norm = math.sqrt(norm)
    # mu = nu - max h^2 and the first of the largest h; what lies along all largest ones bounds mu from below.
    first, along = -1, 0.0
    for k in range(d):
        if h2[k] == top:
            first = k if first < 0 else first
            along += c[k] * c[k]
    low, high = math.sqrt(top) * math.sqrt(along), math.sqrt(top) * norm
    mu, short = low, 0.0
    for _ in range(100):
        size, slope = 0.0, 0.0
        for k in range(d):
            gap = mu + (top - h2[k])
            if gap > 0.0:
                share = h2[k] * (c[k] / gap) * (c[k] / gap)
                size += share
                slope += share / gap
        root = math.sqrt(size)
        if mu == 0.0 and size <= 1.0:
            # Nothing of g lies along the largest h, and without a share of that direction u is too short.
            short = math.sqrt(1.0 - size)
            break
        if root >= 1.0:
            low = mu
        else:
            high = mu
        following = mu + (root - 1.0) * size / slope
        if not low <= following <= high:
            following = 0.5 * (low + high)
        if abs(following - mu) <= 4e-16 * mu:
            break
        mu = following
    value = 0.0
    for k in range(d):
        gap = mu + (top - h2[k])
        v[k] = c[k] * (1.0 + h2[k] / gap) if gap > 0.0 else c[k]
        if k == first:
            v[k] += math.sqrt(top) * short
        value += v[k] * v[k]
    value = math.sqrt(value)
    for i in range(d):
        s = 0.0
        for k in range(d):
            s += Q[i, k] * v[k]
        out[i] = s / value if value > 0.0 else 0.0
    return value


@kernel_norefcount
def best_arm(arms: Rows, g: Vector, W: Matrix, beta: float) -> int:
    """The first of the arms (K, d) with the largest value, up to rounding."""
    K, d = arms.shape
    best, largest = 0, -1e300
    for a in range(K):
        value, squared = 0.0, 0.0
        for i in range(d):
            value += arms[a, i] * g[i]
            if beta > 0.0:
                s = 0.0
                for j in range(d):
                    s += W[i, j] * arms[a, j]
                squared += arms[a, i] * s
        value += beta * math.sqrt(max(squared, 0.0))
        if exceeds(value, largest, margin(largest, ACTION_SHARE)):
            best, largest = a, value
    return best
