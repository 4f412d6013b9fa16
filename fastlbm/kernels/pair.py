"""Gram form for m <= 2, in closed form: owns the rows of its tile.

With at most two actions u, v in the window (a missing one counts as 0) the Gram matrix has size 2 and one
Jacobi rotation is its spectrum. The tile is flat, its row r at r*TILE, and every r is a literal: LLVM then
knows that rows do not overlap and makes one vectorised pass of a loop that touches a dozen of them.
"""

from __future__ import annotations

import math

from ._jit import kernel
from ._types import Rows, Tile
from .powers import (
    GENERAL,
    HALF,
    Power,
    homogeneous,
    horner,
    shifted_first_difference,
    shifted_second_difference,
)
from .spectra import TILE

#: Rows of the tile: <u,u>, <u,v>, <v,v>, <u,a>, <v,a>; cosine and sine; phi at the two eigenvalues and
#: its three divided differences; z = phi(G) q; p = U^T u; y = phi(G) p; the gradient S.
_UU, _UV, _VV, _UA, _VA, _C, _S, _F, _H, _FF, _FH, _HH, _ZU, _ZV, _PU, _PV, _YU, _YV = (
    i * TILE for i in range(18)
)
ROWS = 18


@kernel
def pair_forward(
    power: Power, m: int, lanes: int, a: Rows, start: int, n: int, t: Tile, B: Rows
) -> None:
    """Features B (d, N) of the n <= TILE windows from column `start`; leaves the spectra in t."""
    d = a.shape[0]
    u, v = start - min(m, 1) * lanes, start - m * lanes
    has_u, has_v = 1.0 if m >= 1 else 0.0, 1.0 if m >= 2 else 0.0
    for i in range(d):
        if i == 0:
            for w in range(n):
                t[_UU + w] = has_u * a[i, u + w] * a[i, u + w]
                t[_UV + w] = has_v * a[i, u + w] * a[i, v + w]
                t[_VV + w] = has_v * a[i, v + w] * a[i, v + w]
                t[_UA + w] = has_u * a[i, u + w] * a[i, start + w]
                t[_VA + w] = has_v * a[i, v + w] * a[i, start + w]
        else:
            for w in range(n):
                t[_UU + w] += has_u * a[i, u + w] * a[i, u + w]
                t[_UV + w] += has_v * a[i, u + w] * a[i, v + w]
                t[_VV + w] += has_v * a[i, v + w] * a[i, v + w]
                t[_UA + w] += has_u * a[i, u + w] * a[i, start + w]
                t[_VA + w] += has_v * a[i, v + w] * a[i, start + w]
    _spectrum(t, n)
    if power.kind == GENERAL:
        _general_differences(power.c, power.gamma, t, n)
    elif power.kind == HALF:
        _half_differences(power, t, n)
    else:
        _integer_differences(power, t, n)
    for w in range(n):
        c, s = t[_C + w], t[_S + w]
        left = t[_F + w] * (c * t[_UA + w] + s * t[_VA + w])
        right = t[_H + w] * (c * t[_VA + w] - s * t[_UA + w])
        t[_ZU + w] = has_u * (c * left - s * right)
        t[_ZV + w] = has_v * (s * left + c * right)
    scale = power.c_power
    for i in range(d):
        for w in range(n):
            B[i, start + w] = scale * a[i, start + w] + t[_ZU + w] * a[i, u + w] + t[_ZV + w] * a[i, v + w]


@kernel
def pair_backward(
    power: Power, m: int, lanes: int, a: Rows, U: Rows, start: int, n: int, t: Tile, grad: Rows
) -> None:
    """Adds to grad (d, N) what the n windows from column `start` contribute, given U = d value / d B."""
    d = a.shape[0]
    u, v = start - min(m, 1) * lanes, start - m * lanes
    has_u, has_v = 1.0 if m >= 1 else 0.0, 1.0 if m >= 2 else 0.0
    for i in range(d):
        if i == 0:
            for w in range(n):
                t[_PU + w] = a[i, u + w] * U[i, start + w]
                t[_PV + w] = a[i, v + w] * U[i, start + w]
        else:
            for w in range(n):
                t[_PU + w] += a[i, u + w] * U[i, start + w]
                t[_PV + w] += a[i, v + w] * U[i, start + w]
    for w in range(n):
        c, s = t[_C + w], t[_S + w]
        pu, pv = has_u * t[_PU + w], has_v * t[_PV + w]
        x, y = c * t[_UA + w] + s * t[_VA + w], c * t[_VA + w] - s * t[_UA + w]
        p, q = c * pu + s * pv, c * pv - s * pu
        one, two = t[_FF + w] * x * p, t[_HH + w] * y * q
        mixed = 0.5 * t[_FH + w] * (x * q + y * p)
        cross = 2.0 * c * s * mixed
        p *= t[_F + w]
        q *= t[_H + w]
        t[_YU + w] = has_u * (c * p - s * q)
        t[_YV + w] = has_v * (s * p + c * q)
        # S, doubled: the Gram matrix holds each action twice.
        t[_UU + w] = has_u * 2.0 * (c * c * one - cross + s * s * two)
        t[_UV + w] = has_v * 2.0 * (c * s * (one - two) + (c * c - s * s) * mixed)
        t[_VV + w] = has_v * 2.0 * (s * s * one + cross + c * c * two)
    scale = power.c_power
    for i in range(d):
        for w in range(n):
            grad[i, start + w] += (
                scale * U[i, start + w] + t[_YU + w] * a[i, u + w] + t[_YV + w] * a[i, v + w]
            )
        if m >= 1:
            for w in range(n):
                grad[i, u + w] += (
                    t[_ZU + w] * U[i, start + w]
                    + t[_YU + w] * a[i, start + w]
                    + (t[_UU + w] * a[i, u + w] + t[_UV + w] * a[i, v + w])
                )
        if m >= 2:
            for w in range(n):
                grad[i, v + w] += (
                    t[_ZV + w] * U[i, start + w]
                    + t[_YV + w] * a[i, start + w]
                    + (t[_UV + w] * a[i, u + w] + t[_VV + w] * a[i, v + w])
                )


@kernel
def _spectrum(t: Tile, n: int) -> None:
    """Cosine and sine of the rotation; the eigenvalues of the Gram matrix into the rows of phi."""
    for w in range(n):
        uu, uv, vv = t[_UU + w], t[_UV + w], t[_VV + w]
        diff = uu - vv
        off = 2.0 * uv
        tangent = off / (abs(diff) + math.sqrt(diff * diff + off * off) + 1e-300)
        tangent = tangent if diff >= 0.0 else -tangent
        cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
        t[_C + w] = cosine
        t[_S + w] = tangent * cosine
        t[_F + w] = max(uu + tangent * uv, 0.0)
        t[_H + w] = max(vv - tangent * uv, 0.0)


@kernel
def _integer_differences(power: Power, t: Tile, n: int) -> None:
    """phi and its divided differences for an integer gamma."""
    c, y0, negative, first, second = power.c, power.y0, power.negative, power.first, power.second
    # For a negative power f[c, x] has the factor -y0 y and f[c, x, z] has y0 y z.
    one, slope1, slope2 = (0.0, -y0, y0) if negative else (1.0, 0.0, 0.0)
    for w in range(n):
        y, z = c + t[_F + w], c + t[_H + w]
        y = 1.0 / y if negative else y
        z = 1.0 / z if negative else z
        t[_F + w] = (one + slope1 * y) * horner(first, y)
        t[_H + w] = (one + slope1 * z) * horner(first, z)
        t[_FF + w] = (one + slope2 * y * y) * homogeneous(second, y, y)
        t[_FH + w] = (one + slope2 * y * z) * homogeneous(second, y, z)
        t[_HH + w] = (one + slope2 * z * z) * homogeneous(second, z, z)


@kernel
def _half_differences(power: Power, t: Tile, n: int) -> None:
    """The same in r = sqrt(x), then the chain rule for x = r^2."""
    c, y0, s0, negative = power.c, power.y0, power.s0, power.negative
    first, second = power.first, power.second
    one, slope1, slope2 = (0.0, -y0, y0) if negative else (1.0, 0.0, 0.0)
    for w in range(n):
        r, s = math.sqrt(c + t[_F + w]), math.sqrt(c + t[_H + w])
        y = 1.0 / r if negative else r
        z = 1.0 / s if negative else s
        f = (one + slope1 * y) * horner(first, y) / (s0 + r)
        h = (one + slope1 * z) * horner(first, z) / (s0 + s)
        t[_F + w] = f
        t[_H + w] = h
        t[_FF + w] = ((one + slope2 * y * y) * homogeneous(second, y, y) - f) / (2.0 * r * (s0 + r))
        t[_FH + w] = ((one + slope2 * y * z) * homogeneous(second, y, z) - f) / ((r + s) * (s0 + s))
        t[_HH + w] = ((one + slope2 * z * z) * homogeneous(second, z, z) - h) / (2.0 * s * (s0 + s))


@kernel
def _general_differences(c: float, gamma: float, t: Tile, n: int) -> None:
    """The same for any gamma, one window after the other."""
    for w in range(n):
        g, h = t[_F + w], t[_H + w]
        t[_F + w] = shifted_first_difference(c, g, gamma)
        t[_H + w] = shifted_first_difference(c, h, gamma)
        t[_FF + w] = shifted_second_difference(c, g, g, gamma)
        t[_FH + w] = shifted_second_difference(c, g, h, gamma)
        t[_HH + w] = shifted_second_difference(c, h, h, gamma)
