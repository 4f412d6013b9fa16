"""Gram form for m <= 2, in closed form: owns the rows of its tile.

With at most two actions u, v in the window (a missing one counts as 0) the Gram matrix has size 2 and one
Jacobi rotation is its spectrum. Row r of a tile begins at column r*TILE, and every r is a literal: LLVM
then knows that rows do not overlap and makes one vectorised pass of a loop that touches a dozen of them.
"""

from __future__ import annotations

import math

from ._jit import inline, kernel_internal
from ._types import Rows, Tiles
from .arithmetic import column
from .eigen_tiles import TILE, jacobi_tangent, turn_of
from .memory import Memory
from .powers import (
    GENERAL,
    HALF,
    Power,
    homogeneous,
    horner,
    shifted_first_difference,
    shifted_second_difference,
)

#: Rows of the tile: <u,u>, <u,v>, <v,v>, <u,a>, <v,a>; cosine and sine; phi at the two eigenvalues and
#: its three divided differences; z = phi(G) q; p = U^T u; y = phi(G) p; the gradient S.
_UU, _UV, _VV, _UA, _VA, _C, _S, _F, _H, _FF, _FH, _HH, _ZU, _ZV, _PU, _PV, _YU, _YV = (
    i * TILE for i in range(18)
)
ROWS = 18


@kernel_internal
def pair_forward(memory: Memory, lanes: int, a: Rows, tiles: Tiles, B: Rows) -> None:
    """Features B (d, N) of all windows of the blocks in a (d, N); leaves the spectra in the tiles."""
    d, N = a.shape
    m, power = memory.m, memory.power
    has_u, has_v, twice_v = _weights(m, memory.decay)
    scale = power.c_power
    for tile in range(tiles.shape[0]):
        start = column(m * lanes + tile * TILE)
        u, v, n = column(start - min(m, 1) * lanes), column(start - m * lanes), min(TILE, N - start)
        for i in range(d):
            if i == 0:
                for w in range(n):
                    tiles[tile, _UU + w] = has_u * a[i, u + w] * a[i, u + w]
                    tiles[tile, _UV + w] = has_v * a[i, u + w] * a[i, v + w]
                    tiles[tile, _VV + w] = twice_v * a[i, v + w] * a[i, v + w]
                    tiles[tile, _UA + w] = has_u * a[i, u + w] * a[i, start + w]
                    tiles[tile, _VA + w] = has_v * a[i, v + w] * a[i, start + w]
            else:
                for w in range(n):
                    tiles[tile, _UU + w] += has_u * a[i, u + w] * a[i, u + w]
                    tiles[tile, _UV + w] += has_v * a[i, u + w] * a[i, v + w]
                    tiles[tile, _VV + w] += twice_v * a[i, v + w] * a[i, v + w]
                    tiles[tile, _UA + w] += has_u * a[i, u + w] * a[i, start + w]
                    tiles[tile, _VA + w] += has_v * a[i, v + w] * a[i, start + w]
        if power.kind == GENERAL:
            _general_spectra(power, tiles, tile, n)
        elif power.kind == HALF:
            _half_spectra(power, tiles, tile, n)
        else:
            _integer_spectra(power, tiles, tile, n)
        if memory.decay < 1.0:
            for w in range(n):
                tiles[tile, _ZV + w] *= has_v
        for i in range(d):
            for w in range(n):
                B[i, start + w] = (
                    scale * a[i, start + w]
                    + tiles[tile, _ZU + w] * a[i, u + w]
                    + tiles[tile, _ZV + w] * a[i, v + w]
                )


@kernel_internal
def pair_backward(memory: Memory, lanes: int, a: Rows, U: Rows, tiles: Tiles, grad: Rows) -> None:
    """The gradient, given U = d value / d B: adds to the first m columns of grad (d, N), fills the others."""
    d, N = a.shape
    m, power = memory.m, memory.power
    has_u, has_v, twice_v = _weights(m, memory.decay)
    scale = power.c_power
    for tile in range(tiles.shape[0]):
        start = column(m * lanes + tile * TILE)
        u, v, n = column(start - min(m, 1) * lanes), column(start - m * lanes), min(TILE, N - start)
        # p = U^T u, three coordinates a pass.
        for i in range(0, d, 3):
            i1, i2 = min(i + 1, d - 1), min(i + 2, d - 1)
            one, two = 1.0 if i + 1 < d else 0.0, 1.0 if i + 2 < d else 0.0
            keep = 0.0 if i == 0 else 1.0
            for w in range(n):
                tiles[tile, _PU + w] = (keep * tiles[tile, _PU + w] + a[i, u + w] * U[i, start + w]) + (
                    one * a[i1, u + w] * U[i1, start + w] + two * a[i2, u + w] * U[i2, start + w]
                )
            for w in range(n):
                tiles[tile, _PV + w] = (keep * tiles[tile, _PV + w] + a[i, v + w] * U[i, start + w]) + (
                    one * a[i1, v + w] * U[i1, start + w] + two * a[i2, v + w] * U[i2, start + w]
                )
        for w in range(n):
            c, s = tiles[tile, _C + w], tiles[tile, _S + w]
            pu, pv = has_u * tiles[tile, _PU + w], has_v * tiles[tile, _PV + w]
            x, y = (
                c * tiles[tile, _UA + w] + s * tiles[tile, _VA + w],
                c * tiles[tile, _VA + w] - s * tiles[tile, _UA + w],
            )
            p, q = c * pu + s * pv, c * pv - s * pu
            one, two = tiles[tile, _FF + w] * x * p, tiles[tile, _HH + w] * y * q
            mixed = 0.5 * tiles[tile, _FH + w] * (x * q + y * p)
            cross = 2.0 * c * s * mixed
            p *= tiles[tile, _F + w]
            q *= tiles[tile, _H + w]
            tiles[tile, _YU + w] = has_u * (c * p - s * q)
            tiles[tile, _YV + w] = has_v * (s * p + c * q)
            # S, doubled: the Gram matrix holds each action twice.
            tiles[tile, _UU + w] = has_u * 2.0 * (c * c * one - cross + s * s * two)
            tiles[tile, _UV + w] = has_v * 2.0 * (c * s * (one - two) + (c * c - s * s) * mixed)
            tiles[tile, _VV + w] = twice_v * 2.0 * (s * s * one + cross + c * c * two)
        for i in range(d):
            for w in range(n):
                # The first to reach these columns: windows add only to earlier ones.
                grad[i, start + w] = (
                    scale * U[i, start + w]
                    + tiles[tile, _YU + w] * a[i, u + w]
                    + tiles[tile, _YV + w] * a[i, v + w]
                )
            if m >= 1:
                for w in range(n):
                    grad[i, u + w] += (
                        tiles[tile, _ZU + w] * U[i, start + w]
                        + tiles[tile, _YU + w] * a[i, start + w]
                        + (tiles[tile, _UU + w] * a[i, u + w] + tiles[tile, _UV + w] * a[i, v + w])
                    )
            if m >= 2:
                for w in range(n):
                    grad[i, v + w] += (
                        tiles[tile, _ZV + w] * U[i, start + w]
                        + tiles[tile, _YV + w] * a[i, start + w]
                        + (tiles[tile, _UV + w] * a[i, u + w] + tiles[tile, _VV + w] * a[i, v + w])
                    )


@inline
def _weights(m: int, decay: float) -> tuple[float, float, float]:
    """What u, v and v v count, 0 if they are missing: v is an action times sqrt(decay)."""
    return 1.0 if m >= 1 else 0.0, math.sqrt(decay) if m >= 2 else 0.0, decay if m >= 2 else 0.0


@inline
def _spectrum(uu: float, uv: float, vv: float) -> tuple[float, float, float, float]:
    """Cosine and sine of the rotation that makes the Gram matrix diagonal, and its eigenvalues."""
    tangent = jacobi_tangent(uu, uv, vv)
    cosine, sine = turn_of(tangent)
    return cosine, sine, max(uu + tangent * uv, 0.0), max(vv - tangent * uv, 0.0)


@inline
def _keep(
    t: Tiles, tile: int, w: int, c: float, s: float, f: float, h: float, ff: float, fh: float, hh: float
) -> None:
    """Stores the spectrum, phi and its divided differences, and z = phi(G) q."""
    t[tile, _C + w] = c
    t[tile, _S + w] = s
    t[tile, _F + w] = f
    t[tile, _H + w] = h
    t[tile, _FF + w] = ff
    t[tile, _FH + w] = fh
    t[tile, _HH + w] = hh
    left = f * (c * t[tile, _UA + w] + s * t[tile, _VA + w])
    right = h * (c * t[tile, _VA + w] - s * t[tile, _UA + w])
    t[tile, _ZU + w] = c * left - s * right
    t[tile, _ZV + w] = s * left + c * right


@inline
def _integer_spectra(power: Power, t: Tiles, tile: int, n: int) -> None:
    """An integer gamma."""
    shift, y0, negative, first, second = power.c, power.y0, power.negative, power.first, power.second
    # For a negative power f[c, x] has the factor -y0 y and f[c, x, z] has y0 y z.
    one, slope1, slope2 = (0.0, -y0, y0) if negative else (1.0, 0.0, 0.0)
    for w in range(n):
        c, s, g, h = _spectrum(t[tile, _UU + w], t[tile, _UV + w], t[tile, _VV + w])
        y, z = shift + g, shift + h
        y = 1.0 / y if negative else y
        z = 1.0 / z if negative else z
        f = (one + slope1 * y) * horner(first, y)
        h = (one + slope1 * z) * horner(first, z)
        ff = (one + slope2 * y * y) * homogeneous(second, y, y)
        fh = (one + slope2 * y * z) * homogeneous(second, y, z)
        hh = (one + slope2 * z * z) * homogeneous(second, z, z)
        _keep(t, tile, w, c, s, f, h, ff, fh, hh)


@inline
def _half_spectra(power: Power, t: Tiles, tile: int, n: int) -> None:
    """Half an integer: the same in r = sqrt(x), then the chain rule for x = r^2."""
    shift, y0, s0, negative = power.c, power.y0, power.s0, power.negative
    first, second = power.first, power.second
    one, slope1, slope2 = (0.0, -y0, y0) if negative else (1.0, 0.0, 0.0)
    for w in range(n):
        c, s, g, h = _spectrum(t[tile, _UU + w], t[tile, _UV + w], t[tile, _VV + w])
        r, q = math.sqrt(shift + g), math.sqrt(shift + h)
        y = 1.0 / r if negative else r
        z = 1.0 / q if negative else q
        f = (one + slope1 * y) * horner(first, y) / (s0 + r)
        h = (one + slope1 * z) * horner(first, z) / (s0 + q)
        ff = ((one + slope2 * y * y) * homogeneous(second, y, y) - f) / (2.0 * r * (s0 + r))
        fh = ((one + slope2 * y * z) * homogeneous(second, y, z) - f) / ((r + q) * (s0 + q))
        hh = ((one + slope2 * z * z) * homogeneous(second, z, z) - h) / (2.0 * q * (s0 + q))
        _keep(t, tile, w, c, s, f, h, ff, fh, hh)


@kernel_internal
def _general_spectra(power: Power, t: Tiles, tile: int, n: int) -> None:
    """Any gamma, one window after the other."""
    shift, gamma = power.c, power.gamma
    for w in range(n):
        c, s, g, h = _spectrum(t[tile, _UU + w], t[tile, _UV + w], t[tile, _VV + w])
        f = shifted_first_difference(shift, g, gamma)
        ff = shifted_second_difference(shift, g, g, gamma)
        fh = shifted_second_difference(shift, g, h, gamma)
        hh = shifted_second_difference(shift, h, h, gamma)
        _keep(t, tile, w, c, s, f, shifted_first_difference(shift, h, gamma), ff, fh, hh)
