"""The windows that a position is in, by inner products of arms: owns their inverses, and exact worths there.

The window before t = j + l has X = Y + a a^T with a the arm at j and Y what the other arms make of c I. With
x^gamma = sum of w_i / (x + s_i), see `arm_poles`, c_i = c + s_i, U the others and T_i = (c_i I + U^T U)^-1,

    (Y + s_i)^-1 = (I - U T_i U^T) / c_i
    (X + s_i)^-1 = (Y + s_i)^-1 - (Y + s_i)^-1 a a^T (Y + s_i)^-1 / (1 + a^T (Y + s_i)^-1 a)

so that inner products of arms, under I and under V^-1, are all that is needed, whatever d is. Windows lie
side by side in the lanes of a vector: lane l is that before position j + l, and lane 0 that of the position
itself. The positions around it have numbers 0 to 2m - 1, without j; arm r of lane l is number l + r, the last
one, r = q = m - 1, is played after it, or in lane 0 belongs to the window. So what pairs of arms have
in common is, for all lanes, one piece of a diagonal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, Rows
from .arithmetic import column, fma
from .arm_catalogue import Catalogue
from .arm_worth import Arms, Poles, Shape, counts
from .vectors import WIDTH, Several, at_least, load, read, root, rows_of_lines, store, total, zeros

#: Of some arms <theta, a>, |a|^2 and a^T V^-1 a.
Three = tuple[Several, Several, Several]


class Windows(NamedTuple):
    """What is known around a position; m is less than WIDTH. Of the others of a window q = m - 1."""

    where: Integers  # (2m+1,) the positions around it, and itself; n where there is none
    counted: Integers  # (3,) the first lane behind 0 that counts, the last one, 1 if lane 0 does
    near: Rows  # (2m+3, 2 WIDTH) by numbers, see `_gather`
    inverse: Rows  # (p q q, WIDTH) T_i
    action: Rows  # (p q, WIDTH) how (Y + s_i)^-1 a_t is made of the others, a_t the last arm
    share: Rows  # (p, WIDTH) of lane 0: the last entry of the inverse with all m arms
    mixed: Rows  # (q, WIDTH) b = c^gamma a_t + U mixed for the feature b without the arm at j
    own: Rows  # (3m+1, WIDTH) X^gamma a = c^gamma a + U first U^T a: first, second = first^T H first, and
    #            first theta, as rows of m
    row: Rows  # (2m+3, 2 WIDTH) scratch of `value_by_windows`: the same as `near`
    inverses: Rows  # (2, p) 1/c_i, and w_i/c_i
    tried: Rows  # (6m+d+4, WIDTH) scratch of `worths_of_tried`


@kernel
def make_windows(d: int, m: int, p: int) -> Windows:
    return Windows(
        where=np.zeros(2 * m + 1, dtype=np.int64),
        counted=np.zeros(3, dtype=np.int64),
        near=rows_of_lines(2 * m + 3, 2 * WIDTH),
        inverse=rows_of_lines(p * m * m, WIDTH),
        action=rows_of_lines(p * m, WIDTH),
        share=rows_of_lines(p, WIDTH),
        mixed=rows_of_lines(m, WIDTH),
        own=rows_of_lines(3 * m + 1, WIDTH),
        row=rows_of_lines(2 * m + 3, 2 * WIDTH),
        inverses=np.zeros((2, p)),
        tried=rows_of_lines(6 * m + d + 4, WIDTH),
    )


@inline
def _gather(arms: Arms, shape: Shape, j: int, w: Windows) -> None:
    """Inner products around position j, number by number.

    Row k of the first m has those of a and a + k, row m those with the arm of now, row m + 1 <theta, a>; the
    others are the first m + 1 under V^-1.
    """
    m, n, near, where = shape.m, shape.n, w.near, w.where
    for a in range(2 * m):
        t = j - m + a + (a >= m)
        if t < 0 or t >= n:
            t = (t + n if t < 0 else t - n) if shape.wrap else n
        where[a] = t
    where[2 * m] = j
    for a in range(2 * m):
        here = column(where[a])
        near[m, a], near[m + 1, a] = arms.G[here, j], arms.theta[here]
        for k in range(min(m, 2 * m - a)):
            near[k, a] = arms.G[here, column(where[a + k])]
    if arms.beta > 0.0:
        for a in range(2 * m):
            here = column(where[a])
            near[2 * m + 2, a] = arms.H[here, j]
            for k in range(min(m, 2 * m - a)):
                near[m + 2 + k, a] = arms.H[here, column(where[a + k])]
    # Windows of a block count if they are whole, and their action is in it.
    w.counted[0], w.counted[1], w.counted[2] = 1, m, 1
    if not shape.wrap:
        w.counted[0], w.counted[1] = max(1, m - j), min(m, n - 1 - j)
        w.counted[2] = counts(shape, j)


@inline
def _invert(poles: Poles, m: int, near: Rows, w: Windows) -> None:
    """The inverses T_i of all lanes, arm by arm."""
    q, inverse, action = m - 1, w.inverse, w.action
    for k in range(m):
        for i in range(poles.shifts.shape[0]):
            o = i * q
            left = load(near, 0, k) + poles.shifts[i]
            for r in range(k):
                x = zeros()
                for s in range(k):
                    x = fma(load(inverse, (o + r) * q + s, 0), load(near, k - s, s), x)
                store(action, o + r, 0, x)
                left = left - x * load(near, k - r, r)
            share = 1.0 / left
            if k == q:
                store(w.share, i, 0, share)
                continue
            for r in range(k):
                x = load(action, o + r, 0)
                y = x * share
                for s in range(k):
                    at = (o + r) * q + s
                    store(inverse, at, 0, fma(y, load(action, o + s, 0), load(inverse, at, 0)))
                store(inverse, (o + r) * q + k, 0, -y)
                store(inverse, (o + k) * q + r, 0, -y)
            store(inverse, (o + k) * q + k, 0, share)


@inline
def _own_forms(arms: Arms, p: int, m: int, w: Windows) -> None:
    """`own`: what the arm at the position is worth itself, of lane 0."""
    q, own = m - 1, w.own
    for r in range(m):
        for s in range(r + 1):
            x = 0.0
            for i in range(p):
                # The inverse of all m arms, of that of q.
                y = -1.0 if r == q else w.action[i * q + r, 0]
                y *= w.share[i, 0] * (-1.0 if s == q else w.action[i * q + s, 0])
                if r < q:
                    y += w.inverse[(i * q + r) * q + s, 0]
                x -= w.inverses[1, i] * y
            own[r, s], own[s, r] = x, x
    x = zeros()
    for s in range(m):
        x = fma(w.near[m + 1, s], load(own, s, 0), x)
    store(own, 3 * m, 0, x)
    if arms.beta > 0.0:
        for r in range(m):
            x = zeros()
            for s in range(m):
                x = fma(w.near[m + 2 + abs(r - s), min(r, s)], load(own, s, 0), x)
            store(own, 2 * m + r, 0, x)
        for r in range(m):
            x = zeros()
            for s in range(m):
                x = fma(own[r, s], load(own, 2 * m + s, 0), x)
            store(own, m + r, 0, x)


@inline
def _scalars(poles: Poles, w: Windows) -> float:
    """1/c_i and w_i/c_i; returns c^gamma."""
    free = 0.0
    for i in range(poles.shifts.shape[0]):
        w.inverses[0, i] = 1.0 / poles.shifts[i]
        w.inverses[1, i] = poles.weights[i] * w.inverses[0, i]
        free += w.inverses[1, i]
    return free


@inline
def fill_windows(arms: Arms, poles: Poles, shape: Shape, j: int, w: Windows) -> float:
    """The windows of position j; returns c^gamma."""
    m, p, q, bonus = shape.m, poles.shifts.shape[0], shape.m - 1, arms.beta > 0.0
    free = _scalars(poles, w)
    _gather(arms, shape, j, w)
    _invert(poles, m, w.near, w)
    if w.counted[2]:
        _own_forms(arms, p, m, w)
    for r in range(q):
        mixed = zeros()
        for i in range(p):
            x = load(w.action, i * q + r, 0)
            mixed = fma(-w.inverses[1, i], x, mixed)
            store(w.action, i * q + r, 0, -w.inverses[0, i] * x)
        if bonus:
            store(w.mixed, r, 0, mixed)
    return free


@inline
def _own_worths(free: float, beta: float, m: int, w: Windows, few: Three) -> Several:
    """What some arms earn themselves; see `worths_of_tried`."""
    worth, own, x = free * few[0], w.own, w.tried
    for r in range(m):
        worth = fma(own[3 * m, r], load(x, r, 0), worth)
    if beta > 0.0:
        square = free * free * few[2]
        for r in range(m):
            y = zeros()
            for s in range(m):
                y = fma(2.0 * free * own[r, s], load(x, 2 * m + s, 0), y)
                y = fma(own[m + r, s], load(x, s, 0), y)
            square = fma(load(x, r, 0), y, square)
        worth = fma(beta, root(at_least(square, 0.0)), worth)
    return worth


@inline
def _width_of(m: int, lane: int, free: float, w: Windows, below: Several, width: Several) -> Several:
    """||b||^2 for the feature b of a window with each of some arms, made of those in `tried` and of it."""
    q, near, x = m - 1, w.near, w.tried
    square = free * free * near[m + 2, lane + q] + below * below * width
    square = fma(2.0 * free * below, load(x, 2 * m + lane + q, 0), square)
    for r in range(q):
        y = 2.0 * free * near[m + 2 + q - r, lane + r] + 2.0 * below * load(x, 2 * m + lane + r, 0)
        for s in range(q):
            y = fma(near[m + 2 + abs(r - s), lane + min(r, s)], load(x, 5 * m + s, 0), y)
        square = fma(load(x, 5 * m + r, 0), y, square)
    return square


@inline
def _window_worths(
    arms: Arms, poles: Poles, m: int, lane: int, free: float, w: Windows, few: Three
) -> Several:
    """What the window of a lane loses by some arms, and what of its bonus is left."""
    q, near, x, p, bonus = m - 1, w.near, w.tried, poles.shifts.shape[0], arms.beta > 0.0
    theta, square, width = few
    worth, below = zeros(), zeros()
    for r in range(q if bonus else 0):
        store(x, 5 * m + r, 0, zeros() + w.mixed[r, lane])
    for i in range(p):
        inverse = w.inverses[0, i]
        A, B = inverse * load(x, lane + q, 0), inverse * theta
        D = inverse * square + 1.0
        for r in range(q):
            y, z = zeros(), load(x, lane + r, 0)
            for s in range(q):
                y = fma(w.inverse[(i * q + r) * q + s, lane], load(x, lane + s, 0), y)
            y = y * -inverse
            A, B, D = fma(w.action[i * q + r, lane], z, A), fma(near[m + 1, lane + r], y, B), fma(y, z, D)
            store(x, 4 * m + r, 0, y)
        A = A * poles.weights[i] / D
        worth = worth - A * B
        below = below - inverse * A
        for r in range(q if bonus else 0):
            store(x, 5 * m + r, 0, load(x, 5 * m + r, 0) - A * load(x, 4 * m + r, 0))
    if bonus:
        square = _width_of(m, lane, free, w, below, width)
        worth = fma(arms.beta, root(at_least(square, 0.0)), worth)
    return worth


@kernel_internal
def worths_of_tried(
    catalogue: Catalogue,
    arms: Arms,
    poles: Poles,
    shape: Shape,
    block: Integers,
    tried: Integers,
    j: int,
    free: float,
    w: Windows,
) -> None:
    """The last row of `w.tried`: the value with some arms at j, up to a constant, after `fill_windows`.

    Rows of it are inner products with the arms around, and those under V^-1, then what (Y + s_i)^-1 a and
    features are made of, then the arms themselves, and what is known of each.
    """
    m, n, d, x, A = shape.m, shape.n, catalogue.A.shape[1], w.tried, catalogue.A
    last, bonus = 6 * m + d, arms.beta > 0.0
    for c in range(WIDTH):
        arm = column(tried[c])
        for i in range(d):
            x[6 * m + i, c] = A[arm, i]
        x[last, c], x[last + 1, c] = catalogue.theta[arm], catalogue.squares[arm]
        x[last + 2, c] = catalogue.widths[arm]
    for a in range(2 * m):
        y, z = zeros(), zeros()
        if w.where[a] < n:
            arm = column(block[w.where[a]])
            for i in range(d):
                y = fma(A[arm, i], load(x, 6 * m + i, 0), y)
            for i in range(d if bonus else 0):
                z = fma(catalogue.VA[arm, i], load(x, 6 * m + i, 0), z)
        store(x, a, 0, y)
        store(x, 2 * m + a, 0, z)
    few = load(x, last, 0), load(x, last + 1, 0), load(x, last + 2, 0)
    worth = zeros()
    if w.counted[2]:
        worth = _own_worths(free, arms.beta, m, w, few)
    for lane in range(w.counted[0], w.counted[1] + 1):
        worth = worth + _window_worths(arms, poles, m, lane, free, w, few)
    store(x, last + 3, 0, worth)


@inline
def _gather_in_a_row(arms: Arms, shape: Shape, first: int, near: Rows) -> None:
    """Inner products of the arms from position `first` on, as in `near` where m is one more."""
    m, n, some = shape.m, shape.n, shape.m + WIDTH
    for a in range(some):
        here = (first + a) % n if shape.wrap else min(first + a, n)
        here = column(here)
        near[m + 1, a] = arms.theta[here]
        for k in range(m + 1):
            t = column((first + a + k) % n if shape.wrap else min(first + a + k, n))
            near[k, a] = arms.G[here, t]
            if arms.beta > 0.0:
                near[m + 2 + k, a] = arms.H[here, t]


@kernel_internal
def value_by_windows(arms: Arms, poles: Poles, shape: Shape, w: Windows) -> float:
    """The value of the block, or of one period of the cycle; the position before is forgotten."""
    m, n, p, near, bonus, value = shape.m, shape.n, poles.shifts.shape[0], w.row, arms.beta > 0.0, 0.0
    free = _scalars(poles, w)
    for begin in range(0 if shape.wrap else m, n, WIDTH):
        _gather_in_a_row(arms, shape, begin - m, near)
        _invert(poles, m + 1, near, w)
        worth = free * load(near, m + 1, m)
        for r in range(m):
            x = zeros()
            for i in range(p):
                x = fma(-w.inverses[1, i], load(w.action, i * m + r, 0), x)
            store(w.mixed, r, 0, x)
            worth = fma(x, load(near, m + 1, r), worth)
        if bonus:
            square = free * free * load(near, m + 2, m)
            for r in range(m):
                y = 2.0 * free * load(near, 2 * m + 2 - r, r)
                for s in range(m):
                    y = fma(load(near, m + 2 + abs(r - s), min(r, s)), load(w.mixed, s, 0), y)
                square = fma(load(w.mixed, r, 0), y, square)
            worth = fma(arms.beta, root(at_least(square, 0.0)), worth)
        store(w.mixed, 0, 0, worth)
        value += total(read(w.mixed, 0, 0, n - begin))
    return value
