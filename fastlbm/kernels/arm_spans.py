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

from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, Rows, SingleRows
from .arithmetic import column, fma
from .arm_screens import GROUP
from .arm_tables import Tables
from .arm_windows import Windows, fill_windows
from .arm_worth import Arms, Poles, Shape
from .singles import (
    SINGLES,
    load_singles,
    single_at,
    single_rows,
    single_zeros,
    store_narrowed,
    store_singles,
)
from .vectors import WIDTH, Several, at_least, load, root, rows_of_lines, store, total, where_above, zeros

#: Four vectors, side by side: two groups of arms.
Four = tuple[Several, Several, Several, Several]


class Spans(NamedTuple):
    """The forms of a position. What belongs to windows has a lane for each, as in `arm_windows`."""

    around: Integers  # (2m+1,) the rows of the tables for the arms around it, and for that of now
    number: Integers  # (2m,) which of the arms of L and S those around it are
    rows: Integers  # (4m,) the rows of the tables for the arms of L and S; of a short cycle twice
    ends: Integers  # (3,) the first of these arms in a window, the one behind the last, the width of bands
    lanes: Rows  # (1, WIDTH) 0, 1, ...
    turned: Rows  # (p q, WIDTH) (Y + s_i)^-1 a as it is made of the others, a the arm of now
    aimed: Rows  # (p q, WIDTH) the same of theta + beta V^-1 b/|b|, over D and with the weight of the pole
    target: Rows  # (q, WIDTH) inner products of that with the others
    weights: Rows  # (p, WIDTH) of the poles, over D; 0 where the window does not count
    feature: Rows  # (m+1, WIDTH) beta b/|b|, of the arms of a window and of the arm of now
    bands: Rows  # (2 m m + m, 2 WIDTH) what belongs to L, S and direct, at the numbers of the first arm
    sums: Rows  # (2m+1, 2 WIDTH) sums of these: k to the right of the diagonals of L, of S, and direct
    small: SingleRows  # (6m+4, 2 WIDTH) of `_screen`, in the units of the tables; see `_Places`


class _Places(NamedTuple):
    """Rows of `small`."""

    S: int  # the first of m: what is k to the right of the diagonal of S, twice; L is before it
    direct: int
    lin: int
    parts: int  # the weights of <theta, a>, |a|^2 and a^T V^-1 a
    first: int  # the first of m
    second: int  # the first of m
    taken: int  # the first of m, by arms; each has windows as lanes
    feature: int  # the first of m + 1; the last is of the arm of now


@inline
def _places(m: int) -> _Places:
    o = 2 * m
    return _Places(
        S=m,
        direct=o,
        lin=o + 1,
        parts=o + 2,
        first=o + 3,
        second=o + m + 3,
        taken=o + 2 * m + 3,
        feature=o + 3 * m + 3,
    )


@inline
def spans_pay(d: int, m: int) -> bool:
    """Whether these forms cost less than those of size d (measured)."""
    return d > 2 * m


@kernel
def make_spans(m: int, p: int) -> Spans:
    q = max(m - 1, 0)
    lanes = rows_of_lines(1, WIDTH)
    for lane in range(WIDTH):
        lanes[0, lane] = lane
    return Spans(
        around=np.zeros(2 * m + 1, dtype=np.int64),
        number=np.zeros(2 * m, dtype=np.int64),
        rows=np.zeros(4 * m, dtype=np.int64),
        ends=np.zeros(3, dtype=np.int64),
        lanes=lanes,
        turned=rows_of_lines(p * q, WIDTH),
        aimed=rows_of_lines(p * q, WIDTH),
        target=rows_of_lines(q, WIDTH),
        weights=rows_of_lines(p, WIDTH),
        feature=rows_of_lines(m + 1, WIDTH),
        bands=rows_of_lines(2 * m * m + m, 2 * WIDTH),
        sums=rows_of_lines(2 * m + 1, 2 * WIDTH),
        small=single_rows(6 * m + 4, 2 * WIDTH),
    )


@inline
def _settle(shape: Shape, tables: Tables, j: int, w: Windows, f: Spans) -> None:
    """Which arms are around position j."""
    m, n = shape.m, shape.n
    again = shape.wrap and n <= 2 * m  # the arms before and behind are the same
    for a in range(2 * m):
        t = w.where[a]
        f.around[a] = tables.at[t] if t < n else 0
        f.number[a] = a
        if again:
            f.number[a] = t - j - 1 if t > j else t - j - 1 + n
        f.rows[f.number[a]] = f.around[a]
        if again:
            f.rows[n - 1 + f.number[a]] = f.around[a]
    f.around[2 * m] = tables.at[j]
    if again:
        f.ends[0], f.ends[1], f.ends[2] = 0, n - 1, (n + 1) // 2
    else:
        some = w.counted[1] >= w.counted[0]
        f.ends[0], f.ends[1], f.ends[2] = w.counted[0], (w.counted[1] + m) if some else 0, m


@inline
def _scales(poles: Poles, m: int, square: float, valid: Several, w: Windows, f: Spans) -> float:
    """The weights of the poles, over D for the arm of now; returns the sum of all D."""
    q, whole = m - 1, zeros()
    for i in range(poles.shifts.shape[0]):
        inverse = w.inverses[0, i]
        D = zeros() + fma(inverse, square, 1.0)
        for r in range(q):
            x = zeros()
            for s in range(q):
                x = fma(load(w.inverse, (i * q + r) * q + s, 0), load(w.near, m, s), x)
            x = x * -inverse
            store(f.turned, i * q + r, 0, x)
            D = fma(load(w.near, m, r), x, D)
        whole = fma(valid, D, whole)
        store(f.weights, i, 0, poles.weights[i] * valid / D)
    return total(whole)


@inline
def _optimistic(arms: Arms, p: int, m: int, j: int, free: float, w: Windows, f: Spans) -> None:
    """beta b/|b| for the feature b of windows with the arm of now, and what is aimed at with it."""
    q, near, below = m - 1, w.near, zeros()
    for r in range(q):
        store(f.feature, r, 0, load(w.mixed, r, 0))
    store(f.feature, q, 0, zeros() + free)
    for i in range(p):
        x = w.inverses[0, i] * load(near, m, q)
        for r in range(q):
            x = fma(load(w.action, i * q + r, 0), load(near, m, r), x)
        x = x * load(f.weights, i, 0)
        below = below - w.inverses[0, i] * x
        for r in range(q):
            store(f.feature, r, 0, load(f.feature, r, 0) - x * load(f.turned, i * q + r, 0))
    store(f.feature, m, 0, below)
    square, across = zeros(), arms.widths[j] * below
    for r in range(m):
        here, x = load(f.feature, r, 0), load(near, 2 * m + 2, r)
        across = fma(x, here, across)
        x = x * below
        for s in range(m):
            x = fma(load(near, m + 2 + abs(r - s), min(r, s)), load(f.feature, s, 0), x)
        if r < q:
            store(f.target, r, 0, x)
        square = fma(here, x, square)
    square = fma(below, across, square)
    scale = arms.beta / root(where_above(square, 0.0, square, zeros() + 1.0))
    scale = where_above(square, 0.0, scale, zeros())
    for r in range(m + 1):
        store(f.feature, r, 0, load(f.feature, r, 0) * scale)
    for r in range(q):
        store(f.target, r, 0, fma(load(f.target, r, 0), scale, load(near, m + 1, r)))


@inline
def _losses(p: int, m: int, valid: Several, w: Windows, f: Spans) -> None:
    """The bands: what windows add to all that is lost, and to its scale."""
    q = m - 1
    for i in range(p):
        for r in range(q):
            x = zeros()
            for s in range(q):
                x = fma(load(w.inverse, (i * q + r) * q + s, 0), load(f.target, s, 0), x)
            store(f.aimed, i * q + r, 0, x * (-w.inverses[0, i]) * load(f.weights, i, 0))
    for r in range(m):
        direct = zeros()
        for i in range(p):
            x = w.inverses[0, i] * load(f.weights, i, 0)
            direct = (
                fma(load(w.action, i * q + r, 0), x, direct) if r < q else fma(w.inverses[0, i], x, direct)
            )
        store(f.bands, 2 * m * m + r, r, direct)
    for r in range(q):
        for s in range(r, q):
            x, y = zeros(), zeros()
            for i in range(p):
                o = i * q
                x = fma(load(w.action, o + r, 0), load(f.aimed, o + s, 0), x)
                if s > r:
                    x = fma(load(w.action, o + s, 0), load(f.aimed, o + r, 0), x)
                y = fma(-w.inverses[0, i], load(w.inverse, (o + r) * q + s, 0), y)
            y = y * valid
            store(f.bands, (s - r) * m + r, r, x)
            store(f.bands, (m + s - r) * m + r, r, y + y if s > r else y)
        x = zeros()
        for i in range(p):
            x = fma(w.inverses[0, i], load(f.aimed, i * q + r, 0), x)
        store(f.bands, (q - r) * m + r, r, x)


@inline
def _add_bands(m: int, f: Spans) -> None:
    """The sums of the bands over windows: what belongs to one number is in one column."""
    for c in range(0, 2 * m, WIDTH):
        for k in range(2 * m + 1):
            count = m - k % m
            x = load(f.bands, k * m, c)
            for r in range(1, count):
                x = x + load(f.bands, k * m + r, c)
            store(f.sums, k, c, x)


@inline
def _narrow(f: Spans, row: int, source: Rows, at: int, begin: int, factor: float) -> None:
    """A row of `small` = a factor times the vector source[at, begin:]."""
    store_narrowed(f.small, row, 0, load(source, at, begin) * factor)


@inline
def _make_small(
    arms: Arms, tables: Tables, m: int, free: float, mean: float, share: float, w: Windows, f: Spans, n: int
) -> None:
    """The forms in the units of the tables; n is 2m, or of a short cycle the number of arms around."""
    o, small = _places(m), f.small
    size, unit, wide = tables.units[0], tables.units[1], tables.units[2]
    x, y, z = mean * size * size / unit, share * size * size, mean * size
    if n == 2 * m:
        for c in range(0, 2 * m, WIDTH):
            for k in range(m):
                store_narrowed(small, k, c, load(f.sums, k, c) * x)
                store_narrowed(small, o.S + k, c, load(f.sums, m + k, c) * y)
            store_narrowed(small, o.direct, c, load(f.sums, 2 * m, c) * z)
    else:
        # Each pair once, from where the way to the other, perhaps around the cycle, is shorter.
        for c in range(0, n, WIDTH):
            for k in range(f.ends[2]):
                store_narrowed(small, k, c, zeros())
                store_narrowed(small, o.S + k, c, zeros())
            store_narrowed(small, o.direct, c, zeros())
        for a in range(2 * m):
            r = column(f.number[a])
            small[o.direct, r] += f.sums[2 * m, a] * z
            for k in range(min(m, 2 * m - a)):
                at = r
                s = column(f.number[a + k])
                gap = s - r if s >= r else s - r + n
                if 2 * gap > n or (2 * gap == n and s < r):
                    at, gap = s, n - gap
                small[gap, at] += f.sums[k, a] * x
                small[o.S + gap, at] += f.sums[m + k, a] * y
    bonus = arms.beta / unit
    bonus *= bonus
    small[o.parts, 0], small[o.parts, 2] = free, free * free * wide * bonus
    if w.counted[2]:
        _narrow(f, o.lin, w.own, 3 * m, 0, size / unit)
    if arms.beta > 0.0:
        for r in range(m if w.counted[2] else 0):
            _narrow(f, o.first + r, w.own, r, 0, 2.0 * free * size * wide * bonus)
            _narrow(f, o.second + r, w.own, m + r, 0, size * size * bonus)
        for r in range(m):
            _narrow(f, o.taken + r, f.bands, 2 * m * m + r, r, z)
        for r in range(m + 1):
            _narrow(f, o.feature + r, f.feature, r, 0, wide / unit)


@inline
def fill_spans(
    arms: Arms, poles: Poles, shape: Shape, tables: Tables, j: int, free: float, w: Windows, f: Spans
) -> None:
    """The forms of position j of a block (n,), after `fill_windows`; the inner products are of its arms."""
    m, p, alone = shape.m, poles.shifts.shape[0], 0.0
    _settle(shape, tables, j, w, f)
    lane, zero = load(f.lanes, 0, 0), zeros()
    valid = where_above(lane, w.counted[1] + 0.5, zero, zero + 1.0)
    valid = where_above(lane, w.counted[0] - 0.5, valid, zero)
    share = 1.0 / max((w.counted[1] + 1 - w.counted[0]) * p, 1)
    mean = _scales(poles, m, arms.squares[j], valid, w, f) * share
    if arms.beta > 0.0:
        _optimistic(arms, p, m, j, free, w, f)
    else:
        for r in range(m - 1):
            store(f.target, r, 0, load(w.near, m + 1, r))
    _losses(p, m, valid, w, f)
    _add_bands(m, f)
    _make_small(arms, tables, m, free, mean, share, w, f, min(2 * m, shape.n - 1) if shape.wrap else 2 * m)
    for i in range(p):
        alone += w.inverses[0, i]
    f.small[_places(m).parts, 1] = alone / p * tables.units[0] if f.ends[1] > 0 else 0.0


@inline
def _four(x: SingleRows, i: int, j: int) -> Four:
    """The numbers x[i, j:j+2*GROUP]."""
    return (
        load_singles(x, i, j),
        load_singles(x, i, j + SINGLES),
        load_singles(x, i, j + 2 * SINGLES),
        load_singles(x, i, j + 3 * SINGLES),
    )


@inline
def _all(x: Several) -> Four:
    return x, x, x, x


@inline
def _times(a: Several, x: Four) -> Four:
    """a x."""
    return a * x[0], a * x[1], a * x[2], a * x[3]


@inline
def _more(a: Several, x: Four, y: Four) -> Four:
    """a x + y."""
    return fma(a, x[0], y[0]), fma(a, x[1], y[1]), fma(a, x[2], y[2]), fma(a, x[3], y[3])


@inline
def _product(x: Four, y: Four, z: Four) -> Four:
    """x y + z."""
    return fma(x[0], y[0], z[0]), fma(x[1], y[1], z[1]), fma(x[2], y[2], z[2]), fma(x[3], y[3], z[3])


@inline
def _bonus(tables: Tables, m: int, f: Spans, k: int, value: Four) -> Four:
    """The value and beta sqrt(a^T W a) for the arms from k on."""
    o, small = _places(m), f.small
    square = _times(single_at(small, o.parts, 2), _four(tables.own, 2, k))
    for r in range(m):
        x = _four(tables.rows, f.around[r], k)
        y = _all(single_zeros())
        for s in range(m):
            y = _more(single_at(small, o.first + r, s), _four(tables.under, f.around[s], k), y)
            y = _more(single_at(small, o.second + r, s), _four(tables.rows, f.around[s], k), y)
        square = _product(x, y, square)
    return (
        value[0] + root(at_least(square[0], 0.0)),
        value[1] + root(at_least(square[1], 0.0)),
        value[2] + root(at_least(square[2], 0.0)),
        value[3] + root(at_least(square[3], 0.0)),
    )


@inline
def _optimism(tables: Tables, m: int, w: Windows, f: Spans, k: int, lost: Four) -> Four:
    """What is lost, and what windows lose of their bonus by each of the arms from k on."""
    o, small, now = _places(m), f.small, _four(tables.under, f.around[2 * m], k)
    for lane in range(w.counted[0], w.counted[1] + 1):
        x, y = _all(single_zeros()), _times(single_at(small, o.feature + m, lane), now)
        for r in range(m):
            row = f.around[lane + r]
            x = _more(single_at(small, o.taken + r, lane), _four(tables.rows, row, k), x)
            y = _more(single_at(small, o.feature + r, lane), _four(tables.under, row, k), y)
        lost = _product(x, y, lost)
    return lost


@inline
def _screen(tables: Tables, m: int, bonus: bool, w: Windows, f: Spans, scores: SingleRows) -> None:
    """scores (groups, GROUP): what all arms are about worth, in the unit of the tables, as in `screen`."""
    o, small, at, groups = _places(m), f.small, f.rows, scores.shape[0]
    first, end, reach = column(f.ends[0]), f.ends[1], f.ends[2]
    for g in range(0, groups, 2):
        k = g * GROUP
        theta, lost = _four(tables.own, 0, k), _all(single_zeros())
        scale = _times(single_at(small, o.parts, 1), _four(tables.own, 1, k))
        for r in range(first, end):
            x = _four(tables.rows, at[r], k)
            y = _more(single_at(small, 0, r), x, _times(single_at(small, o.direct, r), theta))
            z = _times(single_at(small, o.S, r), x)
            for s in range(1, reach):
                other = _four(tables.rows, at[r + s], k)
                y = _more(single_at(small, s, r), other, y)
                z = _more(single_at(small, o.S + s, r), other, z)
            lost, scale = _product(x, y, lost), _product(x, z, scale)
        value = _all(single_zeros())
        if bonus:
            lost = _optimism(tables, m, w, f, k, lost)
        if w.counted[2]:
            value = _times(single_at(small, o.parts, 0), theta)
            for s in range(m):
                value = _more(single_at(small, o.lin, s), _four(tables.rows, f.around[s], k), value)
            if bonus:
                value = _bonus(tables, m, f, k, value)
        one = single_zeros() + np.float32(1.0)
        store_singles(scores, g, 0, value[0] - lost[0] / (scale[0] + one))
        store_singles(scores, g, SINGLES, value[1] - lost[1] / (scale[1] + one))
        if g + 1 < groups:
            store_singles(scores, g + 1, 0, value[2] - lost[2] / (scale[2] + one))
            store_singles(scores, g + 1, SINGLES, value[3] - lost[3] / (scale[3] + one))


@kernel_internal
def look_by_spans(
    arms: Arms,
    poles: Poles,
    shape: Shape,
    tables: Tables,
    j: int,
    w: Windows,
    f: Spans,
    scores: SingleRows,
) -> float:
    """scores (groups, GROUP): what all arms are about worth at position j; returns c^gamma."""
    free = fill_windows(arms, poles, shape, j, w)
    fill_spans(arms, poles, shape, tables, j, free, w, f)
    _screen(tables, shape.m, arms.beta > 0.0, w, f, scores)
    return free
