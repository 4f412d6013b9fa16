"""What all arms are about worth where directions are few: owns the inverses of windows while a block changes.

With x^gamma = sum of w_i / (x + s_i), see `arm_poles`, window t has the matrices S = (X_t + s_i)^-1, one for
each pole, a column of `Inverses` each: the m windows after a position lie side by side. Without the arm a of
now at that position, and then with another one x, they are

    T = S + (S a)(S a)^T / (1 - a^T S a)        S' = T - (T x)(T x)^T / (1 + x^T T x)

so that the forms of `arm_screens` take some d^2 operations on a few vectors, whatever m is, and so does a
change of an arm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, Matrix, Rows, Vector
from .arithmetic import column, fma
from .arm_catalogue import Catalogue
from .arm_screens import Forms
from .arm_worth import Poles, Shape, counts
from .singles import store_narrowed
from .vectors import (
    WIDTH,
    Several,
    at_least,
    load,
    load_first,
    number_at,
    pick,
    put,
    read,
    root,
    rows_of_lines,
    store,
    store_first,
    total,
    totals,
    where_above,
    write,
    zeros,
)

#: Beside d entries a row of `Inverses.rows` has the others, and one of a tile so many vectors.
OTHERS, BESIDE = 4, 8
#: Which rows these are behind the d entries: S a for the arm a that is played then, S u, a, and u: theta, or
#: theta + beta V^-1 b / |b| for the feature b of now.
FEATURE, GOAL, ACTION, TARGET = 0, 1, 2, 3
#: Which vectors: S a for the arm of now, T a_t, T u_t, T a = D S a, and what forms or a change are made of.
OLD, PLAYED, AIMED, WITHOUT, NEW = 0, 1, 2, 3, 4


class Inverses(NamedTuple):
    """Windows of a block or cycle of n arms: column t p + i is pole i of the window before position t.

    There are n + m windows: of a cycle the first m come again, of a block they do not count. What does not
    count is zeros. Rows of d' numbers are d filled up to whole vectors. One array, and places that LLVM
    knows, leave it registers for what is done.
    """

    d: int
    rows: Rows  # (d (d + OTHERS) + 2, columns) entry (r, s) is row r (d + OTHERS) + s; last w_i and 1, or 0
    work: Vector  # (tiles (d + 1) BESIDE WIDTH,) scratch: for each vector of columns a tile, see `_without`
    sums: Vector  # (2 h WIDTH,) scratch: what is to be summed; h is d (d+1) / 2, filled up to whole vectors
    packed: Vector  # (h,) scratch
    arms: Rows  # (d + 1, columns) scratch, of `arm_starts`
    q: Vector  # (d',) what an arm earns itself at the position that is looked at, but for a bonus
    own: Rows  # (3 d, d' + WIDTH) X^gamma then, V^-1 X^gamma and X^gamma V^-1 X^gamma; with a bonus alone
    few: Vector  # (4 d WIDTH,) scratch: some arms, one a lane
    worths: Vector  # (WIDTH,) what these are exactly worth
    features: Rows  # (2 d, WIDTH) scratch: of some windows, one a lane


@inline
def _whole(count: int) -> int:
    """So many, filled up to whole vectors."""
    return (count + WIDTH - 1) // WIDTH * WIDTH


@kernel
def make_inverses(d: int, m: int, n: int, p: int) -> Inverses:
    columns, h = _whole((n + m) * p + m + WIDTH), _whole(d * (d + 1) // 2)
    return Inverses(
        d=d,
        rows=rows_of_lines(d * (d + OTHERS) + 2, columns),
        work=rows_of_lines(1, _whole(m * p) * (d + 1) * BESIDE)[0],
        sums=rows_of_lines(1, 2 * h * WIDTH)[0],
        packed=np.zeros(h),
        arms=np.zeros((d + 1, columns)),
        q=np.zeros(_whole(d)),
        own=rows_of_lines(3 * d, _whole(d) + WIDTH),
        few=rows_of_lines(4 * max(d, 1), WIDTH).reshape(-1),
        worths=np.zeros(WIDTH),
        features=rows_of_lines(2 * d, WIDTH),
    )


@inline
def _times_arm(rows: Rows, d: int, r: int, at: int, A: Rows, arm: int, y: Several) -> Several:
    """y + entry r of S a, in the columns from `at` on."""
    for s in range(d):
        y = fma(load(rows, r * (d + OTHERS) + s, at), number_at(A, arm, s), y)
    return y


@kernel_internal
def apply(rows: Rows, d: int, which: int, first: int, count: int, out: int) -> None:
    """Out of one of the others comes S times it, in so many columns from the first on."""
    for c in range(first, first + count, WIDTH):
        for r in range(d):
            o, y = r * (d + OTHERS), zeros()
            for s in range(d):
                y = fma(load(rows, o + s, c), load(rows, s * (d + OTHERS) + d + which, c), y)
            write(rows, o + d + out, c, first + count - c, y)


@kernel_internal
def aim(belief: Matrix, beta: float, p: int, first: int, last: int, d: int, rows: Rows, b: Rows) -> None:
    """The targets of the windows from the first to the last, whose features are known; b is scratch."""
    wide = d + OTHERS
    for t in range(first, last + 1, WIDTH):
        count, square = min(last + 1 - t, WIDTH), zeros()
        if beta > 0.0:
            for r in range(d):
                for v in range(count):
                    x = 0.0
                    for i in range(p):
                        c = (t + v) * p + i
                        x += rows[d * wide, c] * rows[r * wide + d + FEATURE, c]
                    b[r, v] = x
            for r in range(d):
                y = zeros()
                for s in range(d):
                    y = fma(load(b, s, 0), number_at(belief, 1 + r, s), y)
                store(b, d + r, 0, y)
                square = fma(load(b, r, 0), y, square)
        share = where_above(square, 0.0, beta / root(at_least(square, 1e-300)), zeros())
        for r in range(d):
            u = number_at(belief, 0, r)
            store(b, 0, 0, fma(share, load(b, d + r, 0), u) if beta > 0.0 else u)
            for v in range(count):
                for i in range(p):
                    rows[r * wide + d + TARGET, (t + v) * p + i] = b[0, v]


@inline
def _tile(d: int, c: int) -> int:
    """Where the tile of the vector from column c on begins."""
    return c // WIDTH * (d + 1) * BESIDE


@inline
def _without(A: Rows, arm: int, base: int, count: int, inv: Inverses) -> tuple[float, float]:
    """The windows of so many columns without the arm: the mean of D = 1 + a^T T a, and how many count.

    The tiles have OLD, PLAYED, AIMED and WITHOUT, and at the end whether the window counts, and D.
    """
    d, rows, work, mean, windows = inv.d, inv.rows, inv.work, zeros(), zeros()
    wide = d + OTHERS
    for c in range(0, count, WIDTH):
        at, o = base + c, _tile(d, c)
        square, action, goal = zeros(), zeros(), zeros()
        for r in range(d):
            x, own = _times_arm(rows, d, r, at, A, arm, zeros()), number_at(A, arm, r)
            put(work, o + r * BESIDE + OLD, x)
            square = fma(x, own, square)
            action = fma(load(rows, r * wide + d + FEATURE, at), own, action)
            goal = fma(load(rows, r * wide + d + GOAL, at), own, goal)
        # Lanes behind the last window are those of others, which never had the arm.
        valid = read(rows, d * wide + 1, at, count - c)
        scale = 1.0 / (1.0 - square * valid)
        put(work, o + d * BESIDE, valid)
        put(work, o + d * BESIDE + 1, scale)
        mean, windows = fma(valid, scale, mean), windows + valid
        action, goal = action * scale, goal * scale
        for r in range(d):
            x = pick(work, o + r * BESIDE + OLD)
            put(work, o + r * BESIDE + PLAYED, fma(x, action, load(rows, r * wide + d + FEATURE, at)))
            put(work, o + r * BESIDE + AIMED, fma(x, goal, load(rows, r * wide + d + GOAL, at)))
            put(work, o + r * BESIDE + WITHOUT, x * scale)
    counted = max(total(windows), 1.0)
    return total(mean) / counted, counted


@inline
def _own_forms(catalogue: Catalogue, p: int, j: int, f: Forms, inv: Inverses) -> None:
    """What an arm earns itself at position j: q and the widths of `arm_screens`."""
    d, own, rows, sums, small, k = inv.d, inv.own, inv.rows, inv.sums, f.small, 0
    wide, size, unit, beta = d + OTHERS, catalogue.size, catalogue.unit, catalogue.beta
    weights = load_first(rows, d * wide, j * p, p)
    if beta == 0.0:
        for r in range(d):
            put(sums, r, weights * load_first(rows, r * wide + d + GOAL, j * p, p))
        for r in range(0, d, WIDTH):
            x = totals(sums, r)
            put(inv.q, r // WIDTH, x)
            store_narrowed(small, 0, r, x * (size / unit))
        return
    for r in range(d):
        for s in range(r, d):
            put(sums, k, weights * load_first(rows, r * wide + s, j * p, p))
            k += 1
    for k in range(inv.packed.shape[0] // WIDTH):
        put(inv.packed, k, totals(sums, k * WIDTH))
    k = 0
    for r in range(d):
        for s in range(r, d):
            own[r, s] = inv.packed[k]
            own[s, r] = inv.packed[k]
            k += 1
    at, scale = 0, 2.0 * (size * beta / unit) ** 2
    for k in range(0, d, WIDTH):
        q = zeros()
        for r in range(d):
            x = zeros()
            for s in range(d):
                x = fma(number_at(f.belief, 1 + r, s), load(own, s, k), x)
            store(own, d + r, k, x)
            q = fma(number_at(f.belief, 0, r), load(own, r, k), q)
        put(inv.q, k // WIDTH, q)
        store_narrowed(small, 0, k, q * (size / unit))
        for r in range(d):
            x = zeros()
            for s in range(d):
                x = fma(number_at(own, r, s), load(own, d + s, k), x)
            store(own, 2 * d + r, k, x)
    for r in range(d):
        for s in range(r, d, WIDTH):
            store_narrowed(small, 2, at + s - r, load(own, 2 * d + r, s) * scale)
        small[2, at] *= np.float32(0.5)
        at += d - r


@inline
def forms_at(
    catalogue: Catalogue, poles: Poles, shape: Shape, arm: int, j: int, f: Forms, inv: Inverses
) -> None:
    """The forms of position j, where the arm is now."""
    m, d, p, rows, work, sums = shape.m, inv.d, poles.shifts.shape[0], inv.rows, inv.work, inv.sums
    base, count, wide, size = (j + 1) * p, m * p, d + OTHERS, catalogue.size
    _own_forms(catalogue, p, j, f, inv)
    mean, windows = _without(catalogue.A, arm, base, count, inv)
    lost_scale, shared_scale = mean * size * size / catalogue.unit, 2.0 * size * size / windows
    for c in range(0, count, WIDTH):
        o, k = _tile(d, c), 0
        valid, scale = pick(work, o + d * BESIDE), pick(work, o + d * BESIDE + 1)
        share, valid = (
            valid * load(rows, d * wide, base + c) * lost_scale / scale,
            valid * shared_scale,
        )
        for r in range(d):
            put(work, o + r * BESIDE + NEW, pick(work, o + r * BESIDE + PLAYED) * share)
        for r in range(d):
            u, v = pick(work, o + r * BESIDE + NEW), pick(work, o + r * BESIDE + AIMED)
            x = valid * pick(work, o + r * BESIDE + OLD)
            for s in range(r, d):
                at = o + s * BESIDE
                lost = fma(pick(work, at + NEW), v, u * pick(work, at + AIMED))
                shared = fma(x, pick(work, at + WITHOUT), valid * load(rows, r * wide + s, base + c))
                put(sums, k, lost if c == 0 else pick(sums, k) + lost)
                put(sums, k + 1, shared if c == 0 else pick(sums, k + 1) + shared)
                k += 2
    for k in range(0, 2 * inv.packed.shape[0], WIDTH):
        store_narrowed(f.small, 1, k, totals(sums, k))
    k = 0
    for r in range(d):  # what is on the diagonal is not there twice
        f.small[1, k] *= np.float32(0.5)
        f.small[1, k + 1] *= np.float32(0.5)
        k += 2 * (d - r)


@kernel_internal
def worths_of_few(
    catalogue: Catalogue, poles: Poles, shape: Shape, few: Integers, j: int, f: Forms, inv: Inverses
) -> None:
    """inv.worths: the exact worths at position j of WIDTH arms, after `forms_at`.

    A window has the feature b = sum of w_i S' a_t, with S' a_t = T a_t - T x (x^T T a_t) / (1 + x^T T x).
    """
    m, d, p, rows, X, work, belief = (
        shape.m,
        inv.d,
        poles.shifts.shape[0],
        inv.rows,
        inv.few,
        inv.work,
        f.belief,
    )
    A, beta, wide, worth, width = catalogue.A, catalogue.beta, d + OTHERS, zeros(), zeros()
    # Of each row of X the arms come first, then features, then T x.
    for r in range(d):
        for c in range(WIDTH):
            X[r * 4 * WIDTH + c] = A[few[c], r]
        worth = fma(pick(X, r * 4), inv.q[r], worth)
    if beta > 0.0 and counts(shape, j):
        for r in range(d):
            x = zeros()
            for s in range(d):
                x = fma(pick(X, s * 4), number_at(inv.own, 2 * d + r, s), x)
            width = fma(pick(X, r * 4), x, width)
        worth = fma(beta, root(at_least(width, 0.0)), worth)
    for v in range(m):
        if not counts(shape, j + 1 + v):
            continue
        for r in range(d):
            put(X, r * 4 + 1, zeros())
        for i in range(p):
            at, o = (j + 1 + v) * p + i, column(_tile(d, v * p + i) * WIDTH + (v * p + i) % WIDTH)
            inner, own, square, weight = zeros(), zeros(), zeros(), poles.weights[i]
            for r in range(d):
                k = o + r * BESIDE * WIDTH
                inner = fma(pick(X, r * 4), work[k + WITHOUT * WIDTH], inner)
                own = fma(pick(X, r * 4), work[k + PLAYED * WIDTH], own)
            for r in range(d):
                x = inner * work[o + (r * BESIDE + OLD) * WIDTH]
                for s in range(d):
                    x = fma(pick(X, s * 4), number_at(rows, r * wide + s, at), x)
                put(X, r * 4 + 2, x)
                square = fma(pick(X, r * 4), x, square)
            share = own / (square + 1.0)
            for r in range(d):
                x = work[o + (r * BESIDE + PLAYED) * WIDTH] - share * pick(X, r * 4 + 2)
                put(X, r * 4 + 1, fma(weight, x, pick(X, r * 4 + 1)))
        width = zeros()
        for r in range(d):
            worth = fma(pick(X, r * 4 + 1), number_at(belief, 0, r), worth)
            if beta > 0.0:
                x = zeros()
                for s in range(d):
                    x = fma(pick(X, s * 4 + 1), number_at(belief, 1 + r, s), x)
                width = fma(pick(X, r * 4 + 1), x, width)
        worth = fma(beta, root(at_least(width, 0.0)), worth)
    put(inv.worths, 0, worth)


@inline
def change_arm(
    catalogue: Catalogue, poles: Poles, shape: Shape, arm: int, j: int, f: Forms, inv: Inverses
) -> None:
    """Another arm at position j, of which `forms_at` has just told the forms."""
    m, n, p, rows, work = shape.m, shape.n, poles.shifts.shape[0], inv.rows, inv.work
    d, A, beta, base, count = inv.d, catalogue.A, catalogue.beta, (j + 1) * p, m * p
    wide = d + OTHERS
    for c in range(0, count, WIDTH):
        at, o, left = base + c, _tile(d, c), count - c
        inner, square, action, goal = zeros(), zeros(), zeros(), zeros()
        for r in range(d):
            own, k = number_at(A, arm, r), o + r * BESIDE
            inner = fma(pick(work, k + WITHOUT), own, inner)
            action = fma(pick(work, k + PLAYED), own, action)
            goal = fma(pick(work, k + AIMED), own, goal)
        for r in range(d):
            x = _times_arm(rows, d, r, at, A, arm, pick(work, o + r * BESIDE + OLD) * inner)
            put(work, o + r * BESIDE + NEW, x)
            square = fma(x, number_at(A, arm, r), square)
        scale = -1.0 / (1.0 + square)
        for r in range(d):
            k, i = o + r * BESIDE, r * wide
            x, z = pick(work, k + WITHOUT), pick(work, k + NEW) * scale
            for s in range(d):
                into = fma(z, pick(work, o + s * BESIDE + NEW), load(rows, i + s, at))
                write(rows, i + s, at, left, fma(x, pick(work, o + s * BESIDE + OLD), into))
            write(rows, i + d + FEATURE, at, left, fma(z, action, pick(work, k + PLAYED)))
            if beta == 0.0:
                write(rows, i + d + GOAL, at, left, fma(z, goal, pick(work, k + AIMED)))
    if counts(shape, j):
        for r in range(d):
            o = r * wide + d
            store_first(rows, o + ACTION, j * p, p, number_at(A, arm, r))
            store_first(rows, o + FEATURE, j * p, p, _times_arm(rows, d, r, j * p, A, arm, zeros()))
    if beta > 0.0:
        aim(f.belief, beta, p, j, j + m, d, rows, inv.features)
        apply(rows, d, TARGET, j * p, count + p, GOAL)
    if shape.wrap:
        # Windows beyond the end are those of the beginning.
        _copy(rows, d * wide, n * p, 0, (j + m + 1 - n) * p)
        _copy(rows, d * wide, j * p, (j + n) * p, (m - j) * p)


@kernel_internal
def _copy(rows: Rows, most: int, source: int, target: int, count: int) -> None:
    """So many columns, if any, of the first rows to another place."""
    for c in range(0, count, WIDTH):
        for r in range(most):
            write(rows, r, target + c, count - c, load(rows, r, source + c))


@inline
def value_now(shape: Shape, p: int, inv: Inverses) -> float:
    """The value of the block, or of one period of the cycle: features have it along their targets."""
    d, value, count, rows = inv.d, zeros(), shape.n * p, inv.rows
    wide = d + OTHERS
    for c in range(0, count, WIDTH):
        x = zeros()
        for r in range(d):
            o = r * wide + d
            x = fma(load(rows, o + FEATURE, c), load(rows, o + TARGET, c), x)
        value = fma(x, read(rows, d * wide, c, count - c), value)
    return total(value)
