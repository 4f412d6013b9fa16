"""Functions of many small symmetric matrices, and their gradients: owns the rows of a tile.

For symmetric X = Q diag(lam) Q^T of size k and a scalar function f, both forms of the memory kernels need
z = f(X) q in the forward step and, in the backward step, y = f(X) p and S, the gradient of p^T f(X) q with
respect to X, which is Q [Gamma o (p' q'^T + q' p'^T)/2] Q^T with q' = Q^T q, p' = Q^T p and the Loewner
matrix Gamma_ij = f[lam_i, lam_j] (Daleckii and Krein). f is x^gamma in the dense form; in the Gram form it
is phi(x) = ((c + x)^gamma - c^gamma)/x = f[c, c + x], whose Loewner matrix is f[c, c + x, c + y].
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ._jit import inline, kernel_internal
from ._types import Tile
from .arithmetic import dot2, dot3
from .eigen_tiles import TILE
from .powers import (
    HALF,
    Power,
    first_difference,
    homogeneous,
    horner,
    settled,
    shifted_first_difference,
    shifted_second_difference,
)


class Layout(NamedTuple):
    """First rows of what a tile holds; matrices take k*k rows, vectors k."""

    X: int  # the matrices, upper triangle; `gradient` leaves S here
    Q: int  # eigenvectors
    gamma: int  # Loewner matrices, upper triangle
    scratch: int
    lam: int  # eigenvalues, then scratch
    f: int  # function of the eigenvalues
    q: int
    z: int
    p: int
    y: int
    rows: int


@inline
def make_layout(k: int) -> Layout:
    """The rows for matrices of size k."""
    s = 4 * k * k
    # The solver keeps a cosine and a sine in the rows of lam, also for k = 1.
    j = max(k, 2)
    f = s + j
    return Layout(
        X=0,
        Q=k * k,
        gamma=2 * k * k,
        scratch=3 * k * k,
        lam=s,
        f=f,
        q=f + k,
        z=f + 2 * k,
        p=f + 3 * k,
        y=f + 4 * k,
        rows=f + 5 * k,
    )


@kernel_internal
def dot_rows(t: Tile, out: int, x: int, x_step: int, y: int, y_step: int, count: int, n: int) -> None:
    """Row out = sum over r < count of the products of the rows x + r*x_step and y + r*y_step.

    Three products a pass: the loop over windows costs as much as its bounds and overlap checks.
    """
    for r in range(0, count, 3):
        keep = 0.0 if r == 0 else 1.0
        one, two = 1.0 if r + 1 < count else 0.0, 1.0 if r + 2 < count else 0.0
        r1, r2 = min(r + 1, count - 1), min(r + 2, count - 1)
        x0, x1, x2 = x + r * x_step, x + r1 * x_step, x + r2 * x_step
        y0, y1, y2 = y + r * y_step, y + r1 * y_step, y + r2 * y_step
        for w in range(n):
            t[out, w] = (keep * t[out, w] + t[x0, w] * t[y0, w]) + (
                one * t[x1, w] * t[y1, w] + two * t[x2, w] * t[y2, w]
            )


@kernel_internal
def rotate_in(t: Tile, Q: int, x: int, out: int, k: int, n: int) -> None:
    """out = Q^T x."""
    for i in range(k):
        dot_rows(t, out + i, Q + i, k, x, 1, k, n)


@kernel_internal
def apply(t: Tile, Q: int, f: int, x: int, scratch: int, out: int, k: int, n: int) -> None:
    """out = Q (f o x)."""
    for i in range(k):
        dot_rows(t, scratch + i, f + i, 0, x + i, 0, 1, n)
    for i in range(k):
        dot_rows(t, out + i, Q + i * k, 1, scratch, 1, k, n)


@kernel_internal
def spectral_gradient(t: Tile, k: int, n: int) -> None:
    """y = f(X) p, and S in the rows of X (upper triangle), over n windows.

    The rotated q is in the rows of lam since the forward step; p and q are used up.
    """
    if k == 3:
        _gradient_of_three(t.reshape(-1), n)
        return
    at = make_layout(k)
    rotate_in(t, at.Q, at.p, at.q, k, n)
    apply(t, at.Q, at.f, at.q, at.p, at.y, k, n)
    for i in range(k):
        for j in range(i, k):
            out, mirror, g = at.X + i * k + j, at.X + j * k + i, at.gamma + i * k + j
            xi, xj, pi, pj = at.lam + i, at.lam + j, at.q + i, at.q + j
            for w in range(n):
                t[out, w] = 0.5 * t[g, w] * (t[xi, w] * t[pj, w] + t[pi, w] * t[xj, w])
            if i != j:
                for w in range(n):
                    t[mirror, w] = t[out, w]
    for i in range(k):
        for j in range(k):
            dot_rows(t, at.scratch + i * k + j, at.Q + i * k, 1, at.X + j, k, k, n)
    for i in range(k):
        for j in range(i, k):
            dot_rows(t, at.X + i * k + j, at.scratch + i * k, 1, at.Q + j * k, 1, k, n)


@kernel_internal
def _gradient_of_three(t: Tile, n: int) -> None:
    """The same for size 3 on the flat tile, all rows literals of `make_layout(3)`: one pass of vectors."""
    for w in range(n):
        a, b, c = t[9 * TILE + w], t[10 * TILE + w], t[11 * TILE + w]
        d, e, f = t[12 * TILE + w], t[13 * TILE + w], t[14 * TILE + w]
        g, h, i = t[15 * TILE + w], t[16 * TILE + w], t[17 * TILE + w]
        p, q, r = t[48 * TILE + w], t[49 * TILE + w], t[50 * TILE + w]
        x, y, z = t[36 * TILE + w], t[37 * TILE + w], t[38 * TILE + w]
        p, q, r = dot3(a, p, d, q, g, r), dot3(b, p, e, q, h, r), dot3(c, p, f, q, i, r)
        xx = t[18 * TILE + w] * x * p
        yy = t[22 * TILE + w] * y * q
        zz = t[26 * TILE + w] * z * r
        xy = 0.5 * t[19 * TILE + w] * dot2(x, q, p, y)
        xz = 0.5 * t[20 * TILE + w] * dot2(x, r, p, z)
        yz = 0.5 * t[23 * TILE + w] * dot2(y, r, q, z)
        p, q, r = t[39 * TILE + w] * p, t[40 * TILE + w] * q, t[41 * TILE + w] * r
        t[51 * TILE + w] = dot3(a, p, b, q, c, r)
        t[52 * TILE + w] = dot3(d, p, e, q, f, r)
        t[53 * TILE + w] = dot3(g, p, h, q, i, r)
        x, y, z = dot3(a, xx, b, xy, c, xz), dot3(a, xy, b, yy, c, yz), dot3(a, xz, b, yz, c, zz)
        t[w] = dot3(x, a, y, b, z, c)
        t[TILE + w] = dot3(x, d, y, e, z, f)
        t[2 * TILE + w] = dot3(x, g, y, h, z, i)
        x, y, z = dot3(d, xx, e, xy, f, xz), dot3(d, xy, e, yy, f, yz), dot3(d, xz, e, yz, f, zz)
        t[4 * TILE + w] = dot3(x, d, y, e, z, f)
        t[5 * TILE + w] = dot3(x, g, y, h, z, i)
        x, y, z = dot3(g, xx, h, xy, i, xz), dot3(g, xy, h, yy, i, yz), dot3(g, xz, h, yz, i, zz)
        t[8 * TILE + w] = dot3(x, g, y, h, z, i)


@kernel_internal
def settle(t: Tile, lam: int, floor: float, k: int, n: int) -> None:
    """Eigenvalues that are rounding become the floor."""
    for w in range(n):
        top = 0.0
        for i in range(k):
            top = max(top, t[lam + i, w])
        for i in range(k):
            t[lam + i, w] = settled(t[lam + i, w], top, k, floor)


@kernel_internal
def weigh_rows(t: Tile, first: int, weight: float, k: int, n: int) -> None:
    """The rows first + s times weight^s, s < k."""
    factor = 1.0
    for s in range(1, k):
        factor *= weight
        row = first + s
        for w in range(n):
            t[row, w] *= factor


@kernel_internal
def weigh_matrix(t: Tile, first: int, weight: float, k: int, n: int) -> None:
    """The upper triangle of a matrix, entry (s, r) times weight^(s + r)."""
    left = 1.0
    for s in range(k):
        factor = left * left
        for r in range(s, k):
            row = first + s * k + r
            for w in range(n):
                t[row, w] *= factor
            factor *= weight
        left *= weight


@kernel_internal
def weighted_gradient(t: Tile, weight: float, k: int, n: int) -> None:
    """`spectral_gradient` where X and p are those of rows s that were multiplied by weight^s."""
    at = make_layout(k)
    if weight < 1.0:
        weigh_rows(t, at.p, weight, k, n)
    spectral_gradient(t, k, n)
    if weight < 1.0:
        weigh_matrix(t, at.X, weight, k, n)
        weigh_rows(t, at.y, weight, k, n)


@kernel_internal
def root_differences(power: Power, gram: bool, t: Tile, k: int, n: int) -> None:
    """f and its Loewner matrix for an integer or half-integer gamma; leaves roots in the rows of lam."""
    at = make_layout(k)
    half, negative, y0, s0 = power.kind == HALF, power.negative, power.y0, power.s0
    first, second = power.first, power.second
    shift = power.c if gram else 0.0
    # f_i = zeroth + (one + slope y) horner(first, y), divided by s0 + s in the Gram form of half powers.
    if gram:
        zeroth, one, slope, factor = 0.0, 0.0 if negative else 1.0, -y0 if negative else 0.0, y0
    else:
        zeroth, one, slope, factor = 1.0 if power.gamma == 0.0 else 0.0, 0.0, 1.0, -1.0
        second = first
    unit, factor = (0.0, factor) if negative else (1.0, 0.0)
    for i in range(k):
        s, y, f = at.lam + i, at.y + i, at.f + i
        for w in range(n):
            x = shift + max(t[s, w], 0.0)
            x = math.sqrt(x) if half else x
            t[s, w] = x
            t[y, w] = 1.0 / x if negative else x
        for w in range(n):
            value = zeroth + (one + slope * t[y, w]) * horner(first, t[y, w])
            t[f, w] = value / (s0 + t[s, w]) if half and gram else value
    for i in range(k):
        for j in range(i, k):
            g, f = at.gamma + i * k + j, at.f + i
            y, z = at.y + i, at.y + j
            for w in range(n):
                t[g, w] = (unit + factor * t[y, w] * t[z, w]) * homogeneous(second, t[y, w], t[z, w])
            if half:
                # The chain rule for x = s^2. Two zero eigenvalues leave 0/0, whose value here is 0.
                r, s = at.lam + i, at.lam + j
                if gram:
                    for w in range(n):
                        t[g, w] = (t[g, w] - t[f, w]) / ((t[r, w] + t[s, w]) * (s0 + t[s, w]))
                else:
                    for w in range(n):
                        t[g, w] /= t[r, w] + t[s, w] + 1e-300


@kernel_internal
def general_differences(power: Power, gram: bool, t: Tile, k: int, n: int) -> None:
    """f and its Loewner matrix for any gamma, one number after the other."""
    at = make_layout(k)
    c, gamma = power.c, power.gamma
    for i in range(k):
        for w in range(n):
            x = max(t[at.lam + i, w], 0.0)
            t[at.lam + i, w] = x
            t[at.f + i, w] = shifted_first_difference(c, x, gamma) if gram else x**gamma
    for i in range(k):
        for j in range(i, k):
            for w in range(n):
                x, y = t[at.lam + i, w], t[at.lam + j, w]
                value = shifted_second_difference(c, x, y, gamma) if gram else first_difference(x, y, gamma)
                t[at.gamma + i * k + j, w] = value
