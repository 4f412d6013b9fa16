"""What every arm is worth at one position of a block or cycle: owns the closed form for all arms at once.

A window t after position j has X = Y + a a^T with a the arm at j and Y what the other arms make of c I. With
x^gamma = sum of w_i / (x + s_i), see `arm_poles`, c_i = c + s_i, U the others and T_i = (c_i I + U^T U)^-1,

    (Y + s_i)^-1 = (I - U T_i U^T) / c_i
    (X + s_i)^-1 = (Y + s_i)^-1 - (Y + s_i)^-1 a a^T (Y + s_i)^-1 / (1 + a^T (Y + s_i)^-1 a)

so that inner products of arms, under I and under V^-1, are all that is needed: m^2 products an arm, window
and pole, whatever d is. Arms lie side by side in the columns of a tile, as windows do in `eigen_tiles`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, Matrix, Rows, Tensor, Tile, Vector
from .arithmetic import column, fma

#: Arms that are looked at side by side.
STRIP = 64


class Poles(NamedTuple):
    """x^gamma as a sum of weights / (x - c + shifts), x an eigenvalue of the memory matrix."""

    shifts: Vector  # (p,) c + s_i
    weights: Vector  # (p,)


class Arms(NamedTuple):
    """Inner products of rows of arms with the k arms that may be played."""

    G: Rows  # (rows, k)
    H: Rows  # (rows, k) under V^-1
    theta: Vector  # (k,)
    squares: Vector  # (k,)
    widths: Vector  # (k,) under V^-1
    beta: float


class Shape(NamedTuple):
    """Blocks, or with `wrap` cycles of more than m arms, of n arms."""

    m: int
    n: int
    wrap: bool


class Room(NamedTuple):
    """Scratch: v is a window after the position, q the other arms of it, padded to four."""

    T: Tensor  # (m, p, q, q) -T_i/c_i
    action: Tensor  # (m, p, q) how (Y + s_i)^-1 a_t is made of the others
    theta: Tensor  # (m, p, q) the same of theta
    base: Vector  # (m,) what the window is worth without the arm
    H: Tensor  # (m, q, q)
    edge: Matrix  # (m, q) 2 U^T V^-1 b_0 for the feature b_0 without the arm
    mixed: Matrix  # (m, q) b_0 = c^gamma a_t + U mixed
    width: Vector  # (m,) ||b_0||^2
    lin: Vector  # (m,) of the arm itself: <X^gamma theta, a> = c^gamma <theta, a> + lin^T U^T a
    first: Matrix  # (m, m) X^gamma a = c^gamma a + U first U^T a
    second: Matrix  # (m, m) first^T H first
    M: Tensor  # (m, m, lanes)
    places: Integers  # (m+1,)
    tile: Tile


@kernel
def make_room(m: int, p: int) -> Room:
    q = (m + 3) // 4 * 4
    return Room(
        T=np.zeros((m, p, q, q)),
        action=np.zeros((m, p, q)),
        theta=np.zeros((m, p, q)),
        base=np.zeros(m),
        H=np.zeros((m, q, q)),
        edge=np.zeros((m, q)),
        mixed=np.zeros((m, q)),
        width=np.zeros(m),
        lin=np.zeros(q),
        first=np.zeros((q, q)),
        second=np.zeros((q, q)),
        M=np.zeros((m, m, max(m * p, 1))),
        places=np.zeros(m + 1, dtype=np.int64),
        tile=np.zeros((2 * (2 * m + 4) + 5 + 2 * q + 4, STRIP)),
    )


@kernel_internal
def invert(M: Tensor, k: int, lanes: int) -> None:
    """M (k, k, lanes), positive definite matrices side by side, become their inverses."""
    for p in range(k):
        for w in range(lanes):
            M[p, p, w] = 1.0 / M[p, p, w]
        for j in range(k):
            if j != p:
                for w in range(lanes):
                    M[p, j, w] *= M[p, p, w]
        for i in range(k):
            if i != p:
                for j in range(k):
                    if j != p:
                        for w in range(lanes):
                            M[i, j, w] -= M[i, p, w] * M[p, j, w]
                for w in range(lanes):
                    M[i, p, w] *= -M[p, p, w]


@inline
def counts(shape: Shape, t: int) -> bool:
    """Whether the window before position t counts, which may be beyond the end."""
    return shape.wrap or shape.m <= t < shape.n


@kernel_internal
def _prepare_window(
    arms: Arms, poles: Poles, shape: Shape, block: Integers, rows: Integers, j: int, v: int, room: Room
) -> None:
    """What the window of position j+1+v is worth depends on the arm at j: the inverses are in room.M."""
    m, p, q, places = shape.m, poles.shifts.shape[0], shape.m - 1, room.places
    for s in range(m):
        places[s] = (j + 1 + v - m + s + (s >= m - 1 - v)) % shape.n  # without j; the last is t itself
    at = block[places[q]]
    free, total = 0.0, 0.0
    for r in range(q):
        room.mixed[v, r] = 0.0
    for i in range(p):
        lane, inverse = v * p + i, 1.0 / poles.shifts[i]
        share, own = poles.weights[i] * inverse, arms.theta[at]
        free += share
        for r in range(q):
            of_action, of_theta = 0.0, 0.0
            for s in range(q):
                x = room.M[r, s, lane]
                room.T[v, i, r, s] = -inverse * x
                of_action += x * arms.G[rows[places[s]], at]
                of_theta += x * arms.theta[block[places[s]]]
            room.action[v, i, r] = -inverse * of_action
            room.theta[v, i, r] = -inverse * of_theta
            room.mixed[v, r] -= share * of_action
            own -= of_theta * arms.G[rows[places[r]], at]
        total += share * own
    room.base[v] = total
    if arms.beta == 0.0:
        return
    width = free * free * arms.widths[at]
    for r in range(q):
        near = arms.H[rows[places[r]], at]
        edge = free * near
        for s in range(q):
            x = arms.H[rows[places[r]], block[places[s]]]
            room.H[v, r, s] = x
            edge += x * room.mixed[v, s]
        room.edge[v, r] = 2.0 * edge
        width += room.mixed[v, r] * (free * near + edge)
    room.width[v] = width


@kernel_internal
def _prepare_own(
    arms: Arms, poles: Poles, shape: Shape, block: Integers, rows: Integers, j: int, room: Room
) -> float:
    """What the arm at j is worth itself; returns c^gamma."""
    m, p, n, M = shape.m, poles.shifts.shape[0], shape.n, room.M
    free = 0.0
    for i in range(p):
        free += poles.weights[i] / poles.shifts[i]
    if not counts(shape, j):
        return free
    for r in range(m):
        for s in range(m):
            x = arms.G[rows[(j - m + r) % n], block[(j - m + s) % n]]
            for i in range(p):
                M[r, s, i] = x + (poles.shifts[i] if r == s else 0.0)
    invert(M, m, p)
    for r in range(m):
        room.lin[r] = 0.0
        for s in range(m):
            x = 0.0
            for i in range(p):
                x -= poles.weights[i] / poles.shifts[i] * M[r, s, i]
            room.first[r, s] = x
            room.lin[r] += x * arms.theta[block[(j - m + s) % n]]
    if arms.beta > 0.0:
        for r in range(m):
            for s in range(m):
                M[r, s, 0] = 0.0
                for k in range(m):
                    M[r, s, 0] += arms.H[rows[(j - m + r) % n], block[(j - m + k) % n]] * room.first[k, s]
        for r in range(m):
            for s in range(m):
                room.second[r, s] = 0.0
                for k in range(m):
                    room.second[r, s] += room.first[r, k] * M[k, s, 0]
    return free


@inline
def _four(t: Tile, out: int, q: int, h0: float, h1: float, h2: float, h3: float, n: int) -> None:
    """Row `out` += h0 to h3 times the four rows from q on."""
    for w in range(n):
        x = fma(h0, t[q, w], h1 * t[q + 1, w])
        t[out, w] += fma(h2, t[q + 2, w], fma(h3, t[q + 3, w], x))


@kernel_internal
def _form(t: Tile, out: int, q: int, h: Vector, k: int, n: int) -> None:
    """Row `out` += h (k,) times the k rows from q on."""
    out, q = column(out), column(q)
    for s in range(0, k, 4):
        _four(t, out, q + s, h[s], h[s + 1], h[s + 2], h[s + 3], n)


@kernel_internal
def _dot(t: Tile, out: int, q: int, y: int, k: int, n: int) -> None:
    """Row `out` += the sum of products of k rows from q and from y on; k is filled up to four."""
    out, q, y = column(out), column(q), column(y)
    for s in range(0, k, 4):
        for w in range(n):
            x = fma(t[q + s, w], t[y + s, w], t[q + s + 1, w] * t[y + s + 1, w])
            x = fma(t[q + s + 2, w], t[y + s + 2, w], fma(t[q + s + 3, w], t[y + s + 3, w], x))
            t[out, w] += x


@inline
def _two(t: Tile, y: int, q: int, T: Matrix, r: int, s: int, n: int) -> None:
    """The rows y and y+1 = the rows r and r+1 of T times the four from q on; += if s > 0."""
    a, b, c, d = T[r, s], T[r, s + 1], T[r, s + 2], T[r, s + 3]
    e, f, g, h = T[r + 1, s], T[r + 1, s + 1], T[r + 1, s + 2], T[r + 1, s + 3]
    if s == 0:
        for w in range(n):
            q0, q1, q2, q3 = t[q, w], t[q + 1, w], t[q + 2, w], t[q + 3, w]
            t[y, w] = fma(a, q0, b * q1) + fma(c, q2, d * q3)
            t[y + 1, w] = fma(e, q0, f * q1) + fma(g, q2, h * q3)
    else:
        for w in range(n):
            q0, q1, q2, q3 = t[q, w], t[q + 1, w], t[q + 2, w], t[q + 3, w]
            t[y, w] += fma(a, q0, b * q1) + fma(c, q2, d * q3)
            t[y + 1, w] += fma(e, q0, f * q1) + fma(g, q2, h * q3)


@kernel_internal
def _product(t: Tile, y: int, q: int, T: Matrix, k: int, n: int) -> None:
    """The k rows from y on = T (k, k) times those from q on, k filled up to four."""
    y, q = column(y), column(q)
    for r in range(0, k, 4):
        for s in range(0, k, 4):
            _two(t, y + r, q + s, T, r, s, n)
            _two(t, y + r + 2, q + s, T, r + 2, s, n)


@kernel_internal
def _forms(t: Tile, out: int, q: int, y: int, f: Vector, g: Vector, k: int, n: int) -> None:
    """`_form` with f and with g for the rows out and out+1, and `_dot` for out+2, in one pass."""
    out, q, y = column(out), column(q), column(y)
    for s in range(0, k, 4):
        f0, f1, f2, f3 = f[s], f[s + 1], f[s + 2], f[s + 3]
        g0, g1, g2, g3 = g[s], g[s + 1], g[s + 2], g[s + 3]
        for w in range(n):
            q0, q1, q2, q3 = t[q + s, w], t[q + s + 1, w], t[q + s + 2, w], t[q + s + 3, w]
            t[out, w] += fma(f0, q0, f1 * q1) + fma(f2, q2, f3 * q3)
            t[out + 1, w] += fma(g0, q0, g1 * q1) + fma(g2, q2, g3 * q3)
            x = fma(q0, t[y + s, w], q1 * t[y + s + 1, w])
            t[out + 2, w] += fma(q2, t[y + s + 2, w], fma(q3, t[y + s + 3, w], x))


@kernel_internal
def _add_own(arms: Arms, m: int, free: float, begin: int, n: int, room: Room, out: int) -> None:
    """Row `out` of the tile: what n arms are worth themselves."""
    t, begin = room.tile, column(begin)
    V, D = 2 * m + 4, out - 1
    Y = out + 2
    for w in range(n):
        t[out, w] = free * arms.theta[begin + w]
    _form(t, out, 0, room.lin, m, n)
    if arms.beta == 0.0:
        return
    for w in range(n):
        t[D, w] = 0.0
    _product(t, Y, V, room.first, m, n)
    _dot(t, D, 0, Y, m, n)
    for w in range(n):
        t[D, w] = free * (free * arms.widths[begin + w] + 2.0 * t[D, w])
    _product(t, Y, 0, room.second, m, n)
    _dot(t, D, 0, Y, m, n)
    for w in range(n):
        t[out, w] += arms.beta * math.sqrt(max(t[D, w], 0.0))


@kernel_internal
def _add_window(
    arms: Arms, poles: Poles, m: int, free: float, v: int, begin: int, n: int, room: Room, out: int
) -> None:
    """Row `out` of the tile += what window v is worth with each of n arms."""
    t, q, begin, base = room.tile, m - 1, column(begin), room.base[v]
    V, A, B, D, K0, Y = 2 * m + 4, out - 3, out - 2, out - 1, out + 1, out + 2
    Z, b, last = Y + (m + 3) // 4 * 4, v + 1, column(v + m)
    for w in range(n):
        t[out, w] += base
        t[K0, w] = 0.0
    for r in range((q + 3) // 4 * 4 if arms.beta > 0.0 else 0):
        for w in range(n):
            t[Z + r, w] = 0.0
    for i in range(poles.shifts.shape[0]):
        inverse, weight = 1.0 / poles.shifts[i], poles.weights[i]
        _product(t, Y, b, room.T[v, i], q, n)
        for w in range(n):
            t[A, w] = inverse * t[last, w]
        for w in range(n):
            t[B, w] = inverse * arms.theta[begin + w]
            t[D, w] = fma(inverse, arms.squares[begin + w], 1.0)
        _forms(t, A, b, Y, room.action[v, i], room.theta[v, i], q, n)
        for w in range(n):
            t[A, w] = weight * t[A, w] / t[D, w]
            t[out, w] -= t[A, w] * t[B, w]
            t[K0, w] += inverse * t[A, w]
        for r in range(q if arms.beta > 0.0 else 0):
            y, z = column(Y + r), column(Z + r)
            for w in range(n):
                t[z, w] -= t[A, w] * t[y, w]
    if arms.beta == 0.0:
        return
    # The feature is b_0 - K0 a + U z.
    width, last = room.width[v], column(V + v + m)
    for w in range(n):
        t[A, w] = free * t[last, w] - 0.5 * t[K0, w] * arms.widths[begin + w]
    _form(t, A, V + b, room.mixed[v], q, n)
    _dot(t, A, Z, V + b, q, n)
    for w in range(n):
        t[D, w] = width - 2.0 * t[K0, w] * t[A, w]
    _product(t, Y, Z, room.H[v], q, n)
    _form(t, D, Z, room.edge[v], q, n)
    _dot(t, D, Z, Y, q, n)
    for w in range(n):
        t[out, w] += arms.beta * math.sqrt(max(t[D, w], 0.0))


@kernel_internal
def prepare_at(
    arms: Arms, poles: Poles, shape: Shape, block: Integers, rows: Integers, j: int, room: Room
) -> float:
    """What `fill_worths` needs of the arms around position j, in the room; returns c^gamma."""
    m, n, p, q, M = shape.m, shape.n, poles.shifts.shape[0], shape.m - 1, room.M
    free = _prepare_own(arms, poles, shape, block, rows, j, room)
    for v in range(m):
        for r in range(q):
            left = rows[(j + 1 + v - m + r + (r >= m - 1 - v)) % n]
            for s in range(q):
                x = arms.G[left, block[(j + 1 + v - m + s + (s >= m - 1 - v)) % n]]
                for i in range(p):
                    M[r, s, v * p + i] = x + (poles.shifts[i] if r == s else 0.0)
    invert(M, q, m * p)
    for v in range(m):
        if counts(shape, j + 1 + v):
            _prepare_window(arms, poles, shape, block, rows, j, v, room)
    return free


@kernel_internal
def fill_worths(
    arms: Arms,
    poles: Poles,
    shape: Shape,
    rows: Integers,
    j: int,
    free: float,
    since: int,
    room: Room,
    worth: Rows,
) -> None:
    """Row j of worth (n, k): the value of all windows that position j of a block (n,) touches, arm by arm.

    From arm `since` on, after `prepare_at`; `rows` (n,) says where inner products of the block's arms are.
    """
    m, n, t, k = shape.m, shape.n, room.tile, worth.shape[1]
    V = 2 * m + 4
    out = 2 * V + 3
    for begin in range(since, k, STRIP):
        width, first = min(STRIP, k - begin), column(begin)
        for s in range(2 * m):
            place = j - m + s + (s >= m)
            if shape.wrap or 0 <= place < n:
                row = column(rows[place % n])
                for w in range(width):
                    t[s, w] = arms.G[row, first + w]
                if arms.beta > 0.0:
                    for w in range(width):
                        t[V + s, w] = arms.H[row, first + w]
        for w in range(width):
            t[out, w] = 0.0
        if counts(shape, j):
            _add_own(arms, m, free, first, width, room, out)
        for v in range(m):
            if counts(shape, j + 1 + v):
                _add_window(arms, poles, m, free, v, first, width, room, out)
        for w in range(width):
            worth[j, first + w] = t[out, w]


@inline
def _worth_after(
    arms: Arms, shape: Shape, block: Integers, rows: Integers, j: int, arm: int, free: float, room: Room
) -> float:
    """What an arm earns itself at j, after `_prepare_own`."""
    m, n = shape.m, shape.n
    total, width = free * arms.theta[arm], free * free * arms.widths[arm]
    for r in range(m):
        x = arms.G[rows[(j - m + r) % n], arm]
        total += room.lin[r] * x
        if arms.beta > 0.0:
            for s in range(m):
                row = rows[(j - m + s) % n]
                width += x * (2.0 * free * room.first[r, s] * arms.H[row, arm])
                width += x * (room.second[r, s] * arms.G[row, arm])
    return total + (arms.beta * math.sqrt(max(width, 0.0)) if arms.beta > 0.0 else 0.0)


@kernel
def value_of_block(
    arms: Arms, poles: Poles, shape: Shape, block: Integers, rows: Integers, room: Room
) -> float:
    """The value of a block (n,), or of one period of a cycle."""
    total = 0.0
    for j in range(0 if shape.wrap else shape.m, shape.n):
        free = _prepare_own(arms, poles, shape, block, rows, j, room)
        total += _worth_after(arms, shape, block, rows, j, block[j], free, room)
    return total


@kernel
def worth_of_few(
    arms: Arms, poles: Poles, shape: Shape, block: Integers, few: Integers, room: Room, out: Rows, w: int
) -> None:
    """Column w of out (k, W): what each of the few arms (k,) earns as the last of a block of m+1."""
    free = _prepare_own(arms, poles, shape, block, block, shape.m, room)
    for a in range(few.shape[0]):
        out[a, w] = _worth_after(arms, shape, block, block, shape.m, few[a], free, room)
