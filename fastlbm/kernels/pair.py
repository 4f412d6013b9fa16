"""Gram form for m <= 2, in closed form: owns what is kept of a group of windows.

With at most two actions u, v in the window (a missing one counts as 0) the Gram matrix G has size 2. For an
integer gamma the power needs no spectrum: with Y = c + G, or its inverse, phi(G) is a polynomial in Y, and so
is its derivative, all coefficients of one sign. For any other gamma one Jacobi rotation is the spectrum.

Windows come in groups of WIDTH, the numbers of a vector. In the last group some may be missing: their actions
are read as 0, so that they add nothing.
"""

from __future__ import annotations

import math

from ._jit import inline, kernel_internal
from ._types import Rows, Tiles
from .arithmetic import column, fma
from .eigen_tiles import jacobi_tangent, turn_of
from .memory import Memory
from .powers import (
    DEGREE,
    GENERAL,
    INTEGER,
    Power,
    homogeneous,
    horner,
    shifted_first_difference,
    shifted_second_difference,
)
from .vectors import (
    WIDTH,
    Several,
    absolute,
    at_least,
    load,
    read,
    root,
    signed_as,
    store,
    write,
    zeros,
)

#: Where the rows of a group begin: G, of which Y takes the place; q = U^T a; z = phi(G) q; then either cosine
#: and sine, phi at the two eigenvalues and its three divided differences, or the sums of `_apply_powers`.
_UU, _UV, _VV, _UA, _VA, _ZU, _ZV, _C, _S, _F, _H, _FF, _FH, _HH = (i * WIDTH for i in range(14))
_SUMS = _C
ROWS = 7 + 2 * (DEGREE + 1)

#: What u, v and v v count.
Weights = tuple[float, float, float]
#: Vectors for u and v.
Pair = tuple[Several, Several]
#: The entries uu, uv and vv of symmetric matrices.
Symmetric = tuple[Several, Several, Several]


@inline
def groups_of(windows: int) -> int:
    """Groups that so many windows take."""
    return (windows + WIDTH - 1) // WIDTH


@inline
def weights_of(memory: Memory) -> Weights:
    """What u, v and v v count, 0 if they are missing: v is an action times sqrt(decay)."""
    m, decay = memory.m, memory.decay
    return 1.0 if m >= 1 else 0.0, math.sqrt(decay) if m >= 2 else 0.0, decay if m >= 2 else 0.0


@inline
def columns_of(memory: Memory, lanes: int, group: int) -> tuple[int, int, int]:
    """Where the actions of a group of windows begin, and those before them, u and v."""
    m = memory.m
    start = column(m * lanes + group * WIDTH)
    return start, column(start - min(m, 1) * lanes), column(start - m * lanes)


@kernel_internal
def pair_forward(memory: Memory, lanes: int, a: Rows, tiles: Tiles, B: Rows) -> None:
    """Features B (d, N) of all windows of the blocks in a (d, N); fills the tiles for `pair_backward`."""
    d, N = a.shape
    scale = memory.power.c_power
    for group in range(groups_of(N - memory.m * lanes)):
        start, u, v = columns_of(memory, lanes, group)
        count = min(N - start, WIDTH)
        zu, zv = forward_group(memory, weights_of(memory), a, start, u, v, count, tiles, group)
        for i in range(d):
            b = fma(zu, read(a, i, u, count), scale * read(a, i, start, count))
            b = fma(zv, read(a, i, v, count), b)
            write(B, i, start, count, b)


@kernel_internal
def pair_backward(
    memory: Memory, lanes: int, a: Rows, U: Rows, tiles: Tiles, parts: Rows, grad: Rows
) -> None:
    """The gradient grad (d, N), given U = d value / d B: that of B, and U itself in the first m columns.

    parts (3 d + 1, N + WIDTH) is scratch whose columns without a window are 0.
    """
    d, N = a.shape
    for group in range(groups_of(N - memory.m * lanes)):
        start, u, v = columns_of(memory, lanes, group)
        count = min(N - start, WIDTH)
        pu, pv = zeros(), zeros()
        for i in range(d):
            g = read(U, i, start, count)
            pu, pv = fma(read(a, i, u, count), g, pu), fma(read(a, i, v, count), g, pv)
        y, S = backward_group(memory.power, weights_of(memory), pu, pv, tiles, group)
        z = load(tiles, group, _ZU), load(tiles, group, _ZV)
        for i in range(d):
            g = read(U, i, start, count)
            gradient_of(memory.power.c_power, a, g, i, start, u, v, count, y, z, S, parts)
    sum_parts(parts, grad)
    for i in range(d):
        for w in range(memory.m * lanes):
            grad[i, w] += U[i, w]


@inline
def forward_group(
    memory: Memory, weights: Weights, a: Rows, start: int, u: int, v: int, count: int, t: Tiles, group: int
) -> Pair:
    """z = phi(G) q of a group of windows, with which b = c^gamma a + zu u + zv v; fills its tile."""
    has_u, has_v, twice_v = weights
    uu, uv, vv, ua, va = zeros(), zeros(), zeros(), zeros(), zeros()
    for i in range(a.shape[0]):
        x, y, b = read(a, i, u, count), read(a, i, v, count), read(a, i, start, count)
        uu, uv, vv = fma(x, x, uu), fma(x, y, uv), fma(y, y, vv)
        ua, va = fma(x, b, ua), fma(y, b, va)
    uu, uv, vv = has_u * uu, has_v * uv, twice_v * vv
    ua, va = has_u * ua, has_v * va
    power = memory.power
    if power.kind == INTEGER:
        zu, zv = _apply_powers(power, uu, uv, vv, ua, va, t, group)
    else:
        store(t, group, _UA, ua)
        store(t, group, _VA, va)
        if power.kind == GENERAL:
            store(t, group, _UU, uu)
            store(t, group, _UV, uv)
            store(t, group, _VV, vv)
            _general_spectra(power, t, group)
        else:
            _half_spectra(power, uu, uv, vv, t, group)
        c, s = load(t, group, _C), load(t, group, _S)
        left = load(t, group, _F) * fma(c, ua, s * va)
        right = load(t, group, _H) * (c * va - s * ua)
        zu, zv = c * left - s * right, fma(s, left, c * right)
    zv = has_v * zv
    store(t, group, _ZU, zu)
    store(t, group, _ZV, zv)
    return zu, zv


@inline
def backward_group(
    power: Power, weights: Weights, pu: Several, pv: Several, t: Tiles, group: int
) -> tuple[Pair, Symmetric]:
    """y = phi(G) p for p = U^T u, and the derivative of p^T phi(G) q with respect to <u,u>, <u,v>, <v,v>.

    Those of <u,u> and <v,v> are doubled, for they hold their action twice.
    """
    has_u, has_v, twice_v = weights
    pu, pv = has_u * pu, has_v * pv
    if power.kind == INTEGER:
        (yu, yv), (uu, uv, vv) = _differentiate_powers(power, pu, pv, t, group)
    else:
        (yu, yv), (uu, uv, vv) = _differentiate_spectra(pu, pv, t, group)
    return (has_u * yu, has_v * yv), (2.0 * has_u * uu, has_v * uv, 2.0 * twice_v * vv)


@inline
def gradient_of(
    scale: float, a: Rows, g: Several, i: int, start: int, u: int, v: int, count: int,
    y: Pair, z: Pair, S: Symmetric, parts: Rows,
) -> None:  # fmt: skip
    """Stores what a group adds to the gradient in coordinate i, g being the derivative for its features.

    In three parts, for its actions and those before them: they overlap, and would wait for each other.
    """
    d = a.shape[0]
    b, x, w = read(a, i, start, count), read(a, i, u, count), read(a, i, v, count)
    store(parts, i, start, fma(y[1], w, fma(y[0], x, scale * g)))
    store(parts, d + i, u, fma(z[0], g, y[0] * b) + fma(S[0], x, S[1] * w))
    store(parts, 2 * d + i, v, fma(z[1], g, y[1] * b) + fma(S[1], x, S[2] * w))


@inline
def sum_parts(parts: Rows, grad: Rows) -> None:
    """The gradient (d, N) from its three parts, the first rows of parts (3 d + 1, N + WIDTH)."""
    d, N = grad.shape
    for i in range(d):
        for j in range(0, N, WIDTH):
            write(grad, i, j, N - j, load(parts, i, j) + load(parts, d + i, j) + load(parts, 2 * d + i, j))


@inline
def _times(yu: Several, ym: Several, yv: Several, u: Several, v: Several) -> Pair:
    """The product of symmetric matrices and pairs."""
    return fma(yu, u, ym * v), fma(ym, u, yv * v)


@inline
def _apply_powers(
    power: Power, uu: Several, uv: Several, vv: Several, u: Several, v: Several, t: Tiles, group: int
) -> Pair:
    """phi(G) q for q = (u, v) and an integer gamma of size k.

    gamma > 0: phi(G) = sum_{n=1..k} c^(k-n) Y^(n-1) with Y = c + G. gamma < 0: -sum_{n=1..k} c^(n-k-1) Y^n
    with Y the inverse of c + G. The sums of the first terms, which the derivative needs, are kept.
    """
    shift, y0, negative = power.c, power.y0, power.negative
    yu, ym, yv = shift + uu, uv, shift + vv
    if negative:
        top = 1.0 / yu
        ratio = uv * top
        # What is left of vv is not negative but for rounding.
        yv = 1.0 / (shift + at_least(vv - ratio * uv, 0.0))
        ym = -(ratio * yv)
        yu = top - ratio * ym
        u, v = _times(yu, ym, yv, y0 * u, y0 * v)
    store(t, group, _UU, yu)
    store(t, group, _UV, ym)
    store(t, group, _VV, yv)
    zu, zv = zeros(), zeros()
    for n in range(power.order):
        if n > 0:
            u, v = _times(yu, ym, yv, u, v)
        zu, zv = fma(y0, zu, u), fma(y0, zv, v)
        store(t, group, _SUMS + (2 * n) * WIDTH, zu)
        store(t, group, _SUMS + (2 * n + 1) * WIDTH, zv)
    return (-zu, -zv) if negative else (zu, zv)


@inline
def _differentiate_powers(
    power: Power, u: Several, v: Several, t: Tiles, group: int
) -> tuple[Pair, Symmetric]:
    """phi(G) p for p = (u, v), and the derivative of p^T phi(G) q, whose sums w_n `_apply_powers` has kept.

    gamma > 0: the sum of Y^(n-1) p w_(k-n)^T over n = 1..k-1; gamma < 0: of Y^n p w_(k+1-n)^T over n = 1..k.
    """
    y0, negative, order = power.y0, power.negative, power.order
    yu, ym, yv = load(t, group, _UU), load(t, group, _UV), load(t, group, _VV)
    zu, zv, uu, uv, vv = zeros(), zeros(), zeros(), zeros(), zeros()
    last, scale = (order - 1, -y0) if negative else (order - 2, 1.0)
    for n in range(order):
        if n > 0 or negative:
            u, v = _times(yu, ym, yv, u, v)
        zu, zv = fma(y0, zu, u), fma(y0, zv, v)
        if n <= last:
            x = load(t, group, _SUMS + (2 * (last - n)) * WIDTH)
            y = load(t, group, _SUMS + (2 * (last - n) + 1) * WIDTH)
            uu, uv, vv = fma(u, x, uu), fma(u, y, fma(v, x, uv)), fma(v, y, vv)
    return (scale * zu, scale * zv), (uu, uv, vv)


@inline
def _differentiate_spectra(pu: Several, pv: Several, t: Tiles, group: int) -> tuple[Pair, Symmetric]:
    """The same by the spectra that are kept."""
    c, s, ua, va = load(t, group, _C), load(t, group, _S), load(t, group, _UA), load(t, group, _VA)
    x, y = fma(c, ua, s * va), c * va - s * ua
    p, q = fma(c, pu, s * pv), c * pv - s * pu
    one, two = load(t, group, _FF) * x * p, load(t, group, _HH) * y * q
    mixed = 0.5 * load(t, group, _FH) * fma(x, q, y * p)
    cross = 2.0 * c * s * mixed
    p *= load(t, group, _F)
    q *= load(t, group, _H)
    return (c * p - s * q, fma(s, p, c * q)), (
        c * c * one - cross + s * s * two,
        2.0 * (c * s * (one - two) + (c * c - s * s) * mixed),
        s * s * one + cross + c * c * two,
    )


@inline
def _half_spectra(power: Power, uu: Several, uv: Several, vv: Several, t: Tiles, group: int) -> None:
    """Half an integer: the differences of powers of r = sqrt(x), then the chain rule for x = r^2."""
    shift, y0, s0, negative = power.c, power.y0, power.s0, power.negative
    first, second = power.first, power.second
    # For a negative power f[c, x] has the factor -y0 y and f[c, x, z] has y0 y z.
    one, slope1, slope2 = (0.0, -y0, y0) if negative else (1.0, 0.0, 0.0)
    diff, off = uu - vv, 2.0 * uv
    tangent = signed_as(off / (absolute(diff) + root(fma(diff, diff, off * off)) + 1e-300), diff)
    c = 1.0 / root(fma(tangent, tangent, zeros() + 1.0))
    r = root(shift + at_least(fma(tangent, uv, uu), 0.0))
    q = root(shift + at_least(vv - tangent * uv, 0.0))
    y, z = (1.0 / r, 1.0 / q) if negative else (r, q)
    f = (one + slope1 * y) * horner(first, y) / (s0 + r)
    h = (one + slope1 * z) * horner(first, z) / (s0 + q)
    store(t, group, _C, c)
    store(t, group, _S, tangent * c)
    store(t, group, _F, f)
    store(t, group, _H, h)
    store(t, group, _FF, ((one + slope2 * y * y) * homogeneous(second, y, y) - f) / (2.0 * r * (s0 + r)))
    store(t, group, _FH, ((one + slope2 * y * z) * homogeneous(second, y, z) - f) / ((r + q) * (s0 + q)))
    store(t, group, _HH, ((one + slope2 * z * z) * homogeneous(second, z, z) - h) / (2.0 * q * (s0 + q)))


@kernel_internal
def _general_spectra(power: Power, t: Tiles, group: int) -> None:
    """Any gamma, one window after the other."""
    shift, gamma = power.c, power.gamma
    for w in range(WIDTH):
        uu, uv, vv = t[group, _UU + w], t[group, _UV + w], t[group, _VV + w]
        tangent = jacobi_tangent(uu, uv, vv)
        g, h = max(uu + tangent * uv, 0.0), max(vv - tangent * uv, 0.0)
        t[group, _C + w], t[group, _S + w] = turn_of(tangent)
        t[group, _F + w] = shifted_first_difference(shift, g, gamma)
        t[group, _H + w] = shifted_first_difference(shift, h, gamma)
        t[group, _FF + w] = shifted_second_difference(shift, g, g, gamma)
        t[group, _FH + w] = shifted_second_difference(shift, g, h, gamma)
        t[group, _HH + w] = shifted_second_difference(shift, h, h, gamma)
