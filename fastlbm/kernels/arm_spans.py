"""What all arms are about worth where windows do not fill the space: owns the forms of `arm_screens` there.

All that is around a position are 2m arms a_s. With x_s = <a_s, a>, h_s = <V^-1 a_s, a> and b_v the feature of
window v with the arm of now,

    a^T q   = c^gamma <theta, a> + sum of lin_s x_s
    a^T W a = c^2gamma a^T V^-1 a + sum of x_r (first_rs h_s + second_rs x_s)
    a^T R a = the mean of 1/c_i, times |a|^2, + sum of S_rs x_r x_s
    a^T Q a = sum of x_r (direct_r <theta, a> + L_rs x_s)
              + beta times the sum over v of (taken_v^T x) <V^-1 b_v, a> / |b_v|

where b_v is made of arms as well. A window has m of these, one after the other: L and S are bands, and it
takes some 4m^2 products an arm, with a bonus twice as many, whatever d is. In a short cycle the arms before
and behind the position are the same, and count once. The inner products are in `arm_tables`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, Matrix, Rows, SingleRows, Vector
from .arithmetic import column, fma
from .arm_screens import GROUP
from .arm_tables import Tables
from .arm_worth import Arms, Poles, Room, Shape, counts
from .singles import store_narrowed
from .vectors import WIDTH, Several, at_least, load, root, zeros

#: Four vectors, side by side.
Four = tuple[Several, Several, Several, Several]


class Spans(NamedTuple):
    """The forms of a position; of symmetric ones what is on the diagonal and above, that above twice."""

    where: Integers  # (2m+1,) the positions around it, and itself
    around: Integers  # (2m,) the rows of the tables for those around it
    number: Integers  # (2m,) and which of the arms of L and S they are
    rows: Integers  # (2m+1,) the rows of the tables for the arms of L and S; the last is for the arm of now
    ends: Integers  # (3,) the first of these arms in a window, the one behind the last, how far bands go
    counted: Integers  # (3,) the first window that counts, the one behind the last, 1 if the position does
    parts: Vector  # (4,) c^gamma, the weight of |a|^2, the mean of all D, one over how many they are
    lin: Vector  # (m,)
    first: Matrix  # (m, m)
    second: Matrix  # (m, m)
    direct: Vector  # (2m,)
    L: Matrix  # (2m, 2m)
    S: Matrix  # (2m, 2m)
    taken: Matrix  # (m, m) window by window, what `direct` is the sum of
    feature: Matrix  # (m, m+1) window by window beta b/|b|, of its arms and of the arm of now
    near: Vector  # (2m,) inner products of the arm of now with those around it
    action: Matrix  # (p, m) how (Y + s_i)^-1 a_t is made of the arms of a window, a_t the last of them
    turned: Matrix  # (p, m) scratch: T near, then how (Y + s_i)^-1 u is made of them and of u, see `_losses`
    inner: Vector  # (m+1,) scratch
    weights: Vector  # (p,) of the poles, over D
    inverses: Vector  # (p,) 1/c_i


@inline
def spans_pay(d: int, m: int) -> bool:
    """Whether these forms cost less than those of size d (measured)."""
    return d > 2 * m


@kernel
def make_spans(m: int, p: int) -> Spans:
    return Spans(
        where=np.zeros(2 * m + 1, dtype=np.int64),
        around=np.zeros(2 * m, dtype=np.int64),
        number=np.zeros(2 * m, dtype=np.int64),
        rows=np.zeros(2 * m + 1, dtype=np.int64),
        ends=np.zeros(3, dtype=np.int64),
        counted=np.zeros(3, dtype=np.int64),
        parts=np.zeros(4),
        lin=np.zeros(m),
        first=np.zeros((m, m)),
        second=np.zeros((m, m)),
        direct=np.zeros(2 * m),
        L=np.zeros((2 * m, 2 * m)),
        S=np.zeros((2 * m, 2 * m)),
        taken=np.zeros((m, m)),
        feature=np.zeros((m, m + 1)),
        near=np.zeros(2 * m),
        action=np.zeros((p, m)),
        turned=np.zeros((p, m)),
        inner=np.zeros(m + 1),
        weights=np.zeros(p),
        inverses=np.zeros(p),
    )


@inline
def _settle(arms: Arms, shape: Shape, tables: Tables, j: int, f: Spans) -> None:
    """Which arms are around position j; nothing is lost yet."""
    m, n = shape.m, shape.n
    again = shape.wrap and n <= 2 * m  # the arms before and behind are the same
    for s in range(2 * m):
        t = j - m + s + (s >= m)
        f.number[s], f.where[s], f.near[s] = s, 0, 0.0
        if shape.wrap or 0 <= t < n:
            f.where[s] = t % n
            f.near[s] = arms.G[t % n, j]
            f.number[s] = (t - j - 1) % n if again else s
        f.around[s] = tables.at[f.where[s]]
        f.rows[f.number[s]] = f.around[s]
    f.where[2 * m], f.rows[2 * m] = j, tables.at[j]
    f.counted[0], f.counted[1], f.counted[2] = m, 0, counts(shape, j)
    for v in range(m):
        if counts(shape, j + 1 + v):
            f.counted[0], f.counted[1] = min(f.counted[0], v), v + 1
    f.ends[0], f.ends[1], f.ends[2] = (0, n - 1, n) if again else (f.counted[0] + 1, f.counted[1] + m, m)
    f.direct[:] = 0.0
    f.L[:] = 0.0
    f.S[:] = 0.0


@inline
def _own_forms(beta: float, m: int, free: float, room: Room, f: Spans) -> None:
    """What an arm earns itself."""
    for r in range(m):
        f.lin[r] = room.lin[r]
        for s in range(m if beta > 0.0 else 0):
            f.first[r, s] = 2.0 * free * room.first[r, s]
            f.second[r, s] = room.second[r, s] * (1.0 if r == s else 2.0)


@inline
def _scales(square: float, poles: Poles, m: int, v: int, room: Room, f: Spans) -> float:
    """What window v adds to S; returns the sum of D over poles for the arm of now."""
    q, b, total = m - 1, column(v + 1), 0.0
    for i in range(poles.shifts.shape[0]):
        D = fma(f.inverses[i], square, 1.0)
        for r in range(q):
            x = 0.0
            for s in range(q):
                x = fma(room.T[v, i, r, s], f.near[b + s], x)
            f.turned[i, r] = x
            D = fma(f.near[b + r], x, D)
            f.action[i, r] = room.action[v, i, r]
        f.action[i, q] = f.inverses[i]
        f.weights[i] = poles.weights[i] / D
        total += D
    for r in range(q):
        for s in range(r, q):
            x = 0.0
            for i in range(poles.shifts.shape[0]):
                x += room.T[v, i, r, s]
            y, z = f.number[b + r], f.number[b + s]
            f.S[min(y, z), max(y, z)] += x if r == s else 2.0 * x
    return total


@inline
def _optimistic(arms: Arms, m: int, v: int, free: float, room: Room, f: Spans) -> None:
    """beta b/|b| for the feature b of window v with the arm of now; inner = <V^-1 times that, a_s>."""
    q, b, own = m - 1, column(v + 1), 0.0
    for r in range(q):
        f.feature[v, r] = room.mixed[v, r]
    for i in range(f.weights.shape[0]):
        x = 0.0
        for r in range(m):
            x = fma(f.action[i, r], f.near[b + r], x)
        x *= f.weights[i]
        own = fma(x, f.inverses[i], own)
        for r in range(q):
            f.feature[v, r] -= x * f.turned[i, r]
    f.feature[v, q], f.feature[v, m] = free, -own
    square = 0.0
    for r in range(m + 1):
        x, y = 0.0, f.where[2 * m if r == m else b + r]
        for s in range(m):
            x = fma(arms.H[y, f.where[b + s]], f.feature[v, s], x)
        f.inner[r] = fma(arms.H[y, f.where[2 * m]], f.feature[v, m], x)
        square = fma(f.feature[v, r], f.inner[r], square)
    scale = arms.beta / math.sqrt(square) if square > 0.0 else 0.0
    for r in range(m + 1):
        f.feature[v, r] *= scale
        f.inner[r] *= scale


@inline
def _losses(arms: Arms, m: int, v: int, room: Room, f: Spans) -> None:
    """What window v adds to all that is lost."""
    p, q, b, bonus = f.weights.shape[0], m - 1, column(v + 1), arms.beta > 0.0
    for r in range(q if bonus else 0):
        f.inner[r] += arms.theta[f.where[b + r]]
    for i in range(p):
        for r in range(q):
            x = room.theta[v, i, r]
            if bonus:
                x = 0.0
                for s in range(q):
                    x = fma(room.T[v, i, r, s], f.inner[s], x)
            f.turned[i, r] = x * f.weights[i]
        f.turned[i, q] = f.inverses[i] * f.weights[i]
    for r in range(m):
        y = f.number[b + r]
        for s in range(m):
            x, z = 0.0, f.number[b + s]
            for i in range(p):
                x = fma(f.action[i, r], f.turned[i, s], x)
            if s < q:
                f.L[min(y, z), max(y, z)] += x
            else:
                f.direct[y] += x
                f.taken[v, r] = x


@kernel_internal
def fill_spans(
    arms: Arms, poles: Poles, shape: Shape, tables: Tables, j: int, free: float, room: Room, f: Spans
) -> None:
    """The forms of position j of a block (n,), after `prepare_at`; the inner products are of its arms."""
    m, windows, total, alone = shape.m, 0, 0.0, 0.0
    _settle(arms, shape, tables, j, f)
    for i in range(poles.shifts.shape[0]):
        f.inverses[i] = 1.0 / poles.shifts[i]
        alone += f.inverses[i]
    if counts(shape, j):
        _own_forms(arms.beta, m, free, room, f)
    for v in range(m):
        if counts(shape, j + 1 + v):
            windows += 1
            total += _scales(arms.squares[j], poles, m, v, room, f)
            if arms.beta > 0.0:
                _optimistic(arms, m, v, free, room, f)
            _losses(arms, m, v, room, f)
    share = 1.0 / max(windows * poles.shifts.shape[0], 1)
    f.parts[0], f.parts[1], f.parts[2], f.parts[3] = free, windows * alone, total * share, share


@inline
def _four(x: Rows, i: int, j: int) -> Four:
    """The numbers x[i, j:j+GROUP]."""
    return load(x, i, j), load(x, i, j + WIDTH), load(x, i, j + 2 * WIDTH), load(x, i, j + 3 * WIDTH)


@inline
def _nothing() -> Four:
    return zeros(), zeros(), zeros(), zeros()


@inline
def _times(a: float, x: Four) -> Four:
    """a x."""
    return a * x[0], a * x[1], a * x[2], a * x[3]


@inline
def _more(a: float, x: Four, y: Four) -> Four:
    """a x + y."""
    return fma(a, x[0], y[0]), fma(a, x[1], y[1]), fma(a, x[2], y[2]), fma(a, x[3], y[3])


@inline
def _product(x: Four, y: Four, z: Four) -> Four:
    """x y + z."""
    return fma(x[0], y[0], z[0]), fma(x[1], y[1], z[1]), fma(x[2], y[2], z[2]), fma(x[3], y[3], z[3])


@inline
def _bonus(tables: Tables, f: Spans, beta: float, k: int, value: Four) -> Four:
    """The value and beta sqrt(a^T W a) for the group of arms from k on."""
    m = f.lin.shape[0]
    square = _times(f.parts[0] * f.parts[0], _four(tables.own, 2, k))
    for r in range(m):
        x = _four(tables.rows, f.around[r], k)
        y = _times(f.second[r, r], x)
        for s in range(m):
            y = _more(f.first[r, s], _four(tables.under, f.around[s], k), y)
        for s in range(r + 1, m):
            y = _more(f.second[r, s], _four(tables.rows, f.around[s], k), y)
        square = _product(x, y, square)
    return (
        fma(beta, root(at_least(square[0], 0.0)), value[0]),
        fma(beta, root(at_least(square[1], 0.0)), value[1]),
        fma(beta, root(at_least(square[2], 0.0)), value[2]),
        fma(beta, root(at_least(square[3], 0.0)), value[3]),
    )


@inline
def _optimism(tables: Tables, f: Spans, k: int, lost: Four) -> Four:
    """What is lost, and what windows lose of their bonus by each of the arms from k on."""
    m = f.lin.shape[0]
    now = _four(tables.under, f.rows[2 * m], k)
    first, end = column(f.counted[0]), f.counted[1]
    for v in range(first, end):
        x, y = _nothing(), _times(f.feature[v, m], now)
        for s in range(m):
            row = f.around[v + 1 + s]
            x = _more(f.taken[v, s], _four(tables.rows, row, k), x)
            y = _more(f.feature[v, s], _four(tables.under, row, k), y)
        lost = _product(x, y, lost)
    return lost


@kernel_internal
def screen_spans(tables: Tables, f: Spans, beta: float, unit: float, scores: SingleRows) -> None:
    """scores (groups, GROUP): what all arms are about worth, in some unit, as in `screen`."""
    first, end, reach, at = column(f.ends[0]), f.ends[1], f.ends[2], f.rows
    mean, share = f.parts[2], f.parts[3]
    for g in range(scores.shape[0]):
        k = g * GROUP
        theta, lost, scale = _four(tables.own, 0, k), _nothing(), _times(f.parts[1], _four(tables.own, 1, k))
        for r in range(first, end):
            x = _four(tables.rows, at[r], k)
            y, z = _more(f.L[r, r], x, _times(f.direct[r], theta)), _times(f.S[r, r], x)
            for s in range(r + 1, min(r + reach, end)):
                other = _four(tables.rows, at[s], k)
                y, z = _more(f.L[r, s], other, y), _more(f.S[r, s], other, z)
            lost, scale = _product(x, y, lost), _product(x, z, scale)
        value = _nothing()
        if beta > 0.0:
            lost = _optimism(tables, f, k, lost)
        if f.counted[2]:
            value = _times(f.parts[0], theta)
            for s in range(f.lin.shape[0]):
                value = _more(f.lin[s], _four(tables.rows, f.around[s], k), value)
            if beta > 0.0:
                value = _bonus(tables, f, beta, k, value)
        _put(scores, g, 0, unit, value[0] - mean * lost[0] / fma(share, scale[0], zeros() + 1.0))
        _put(scores, g, 1, unit, value[1] - mean * lost[1] / fma(share, scale[1], zeros() + 1.0))
        _put(scores, g, 2, unit, value[2] - mean * lost[2] / fma(share, scale[2], zeros() + 1.0))
        _put(scores, g, 3, unit, value[3] - mean * lost[3] / fma(share, scale[3], zeros() + 1.0))


@inline
def _put(scores: SingleRows, g: int, which: int, unit: float, worth: Several) -> None:
    """One of the four vectors of a group."""
    store_narrowed(scores, g, which * WIDTH, worth / unit)
