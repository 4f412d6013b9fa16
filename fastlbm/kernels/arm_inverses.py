"""What all arms are about worth where directions are few: owns the inverses of windows while a block changes.

With x^gamma = sum of w_i / (x + s_i), see `arm_poles`, window t has the matrices S = (X_t + s_i)^-1, one for
each pole, a column of `Inverses` each: the m windows after a position lie side by side. Without the arm a of
now at that position, and then with another one x, they are

    T = S + (S a)(S a)^T / (1 - a^T S a)        S' = T - (T x)(T x)^T / (1 + x^T T x)

so that the forms of `arm_screens` take some d^2 operations on a few vectors, whatever m is, and so does a
change of an arm.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, Rows
from .arithmetic import fma
from .arm_screens import Forms
from .arm_worth import Poles, Shape, counts
from .vectors import (
    WIDTH,
    Several,
    at_least,
    load,
    read,
    root,
    store,
    total,
    where_above,
    write,
    zeros,
)


class Inverses(NamedTuple):
    """Windows of a block or cycle of n arms: column t p + i is pole i of the window before position t.

    There are n + m windows: of a cycle the first m come again, of a block they do not count. What does not
    count is zeros.
    """

    S: Rows  # (d d, columns) row r d + s is entry (r, s)
    action: Rows  # (d, columns) the arm a that is played then
    feature: Rows  # (d, columns) S a
    target: Rows  # (d, columns) u: theta, or theta + beta V^-1 b / |b| for the feature b of now
    goal: Rows  # (d, columns) S u
    weights: Rows  # (2, columns) w_i and 1, or 0 where the window does not count
    work: Rows  # (5 d + 2, columns) scratch, see `_without`
    own: Rows  # (2 d, d') scratch
    tried: Rows  # (3 d + 1, WIDTH) scratch: some arms, one a lane


@kernel
def make_inverses(d: int, m: int, n: int, p: int) -> Inverses:
    columns, wide = (n + m) * p + 2 * WIDTH, (d + WIDTH - 1) // WIDTH * WIDTH
    return Inverses(
        S=np.zeros((d * d, columns)),
        action=np.zeros((d, columns)),
        feature=np.zeros((d, columns)),
        target=np.zeros((d, columns)),
        goal=np.zeros((d, columns)),
        weights=np.zeros((2, columns)),
        work=np.zeros((5 * d + 2, columns)),
        own=np.zeros((2 * max(d, 1), wide)),
        tried=np.zeros((3 * d + 1, WIDTH)),
    )


@inline
def _apply(inv: Inverses, x: Rows, first: int, count: int, out: Rows) -> None:
    """out (d, columns) = S x, in so many columns from the first on."""
    d = x.shape[0]
    for c in range(first, first + count, WIDTH):
        for r in range(d):
            y = zeros()
            for s in range(d):
                y = fma(load(inv.S, r * d + s, c), load(x, s, c), y)
            write(out, r, c, first + count - c, y)


@inline
def _aim(beta: float, p: int, first: int, last: int, f: Forms, inv: Inverses) -> None:
    """The targets of the windows from the first to the last, of which the features are known."""
    d, b, Vb = inv.action.shape[0], inv.own[0], inv.own[1]
    for t in range(first, last + 1):
        square = 0.0
        if beta > 0.0:
            for r in range(d):
                b[r] = 0.0
                for i in range(p):
                    b[r] += inv.weights[0, t * p + i] * inv.feature[r, t * p + i]
            for r in range(d):
                Vb[r] = 0.0
                for s in range(d):
                    Vb[r] += f.belief[1 + r, s] * b[s]
                square += b[r] * Vb[r]
        share = beta / math.sqrt(square) if square > 0.0 else 0.0
        for r in range(d):
            u = f.belief[0, r] + (share * Vb[r] if share > 0.0 else 0.0)
            for i in range(p):
                inv.target[r, t * p + i] = u


@kernel_internal
def start_inverses(
    A: Rows, poles: Poles, shape: Shape, block: Integers, beta: float, f: Forms, inv: Inverses
) -> None:
    """All of it, for a block (n,) of rows of A."""
    m, n, d, p, S = shape.m, shape.n, A.shape[1], poles.shifts.shape[0], inv.S
    outer = inv.work[0]  # of the actions, one entry
    for r in range(d):
        for s in range(r, d):
            for t in range(n):
                outer[t] = A[block[t], r] * A[block[t], s]
            for t in range(n + m):
                x, source = 0.0, t - m if t >= m else t - m + n
                for _ in range(m if counts(shape, t) else 0):
                    x += outer[source]
                    source = source + 1 if source < n - 1 else 0
                for i in range(p):
                    S[r * d + s, t * p + i] = x + (poles.shifts[i] if r == s else 0.0)
                    S[s * d + r, t * p + i] = S[r * d + s, t * p + i]
    for t in range(n + m):
        valid, arm = counts(shape, t), block[t if t < n else t - n]
        for i in range(p):
            inv.weights[0, t * p + i] = poles.weights[i] if valid else 0.0
            inv.weights[1, t * p + i] = 1.0 if valid else 0.0
            for r in range(d):
                inv.action[r, t * p + i] = A[arm, r] if valid else 0.0
    for r in range(d):
        for c in range((n + m) * p, (n + m) * p + WIDTH):
            S[r * d + r, c] = 1.0  # the last vector is filled up
    for c in range(0, (n + m) * p, WIDTH):
        _invert(S, d, c, read(inv.weights, 1, c, (n + m) * p - c))
    for r in range(d):
        for c in range((n + m) * p, (n + m) * p + WIDTH):
            S[r * d + r, c] = 0.0
    _apply(inv, inv.action, 0, (n + m) * p, inv.feature)
    _aim(beta, p, 0, n + m - 1, f, inv)
    _apply(inv, inv.target, 0, (n + m) * p, inv.goal)


@kernel_internal
def _invert(S: Rows, d: int, c: int, valid: Several) -> None:
    """Positive definite matrices side by side become their inverses, or zeros where they do not count."""
    for k in range(d):
        # The sweep operator, which keeps them symmetric; at the end there is the inverse times -1.
        pivot = 1.0 / load(S, k * d + k, c)
        for r in range(d):
            if r == k:
                continue
            share = -pivot * load(S, r * d + k, c)
            for s in range(d):
                if s != k:
                    store(S, r * d + s, c, fma(share, load(S, k * d + s, c), load(S, r * d + s, c)))
        for r in range(d):
            if r != k:
                x = pivot * load(S, r * d + k, c)
                store(S, r * d + k, c, x)
                store(S, k * d + r, c, x)
        store(S, k * d + k, c, -pivot)
    for r in range(d * d):
        store(S, r, c, where_above(valid, 0.5, -load(S, r, c), zeros()))


@inline
def _without(A: Rows, arm: int, base: int, count: int, inv: Inverses) -> float:
    """The windows of so many columns without the arm; returns the mean of D = 1 + a^T T a.

    In `work` are rows of S a, T a_t, T u_t, and T a = D S a, and then D and whether the window counts.
    """
    d, S, work, mean, windows = A.shape[1], inv.S, inv.work, 0.0, 0.0
    for c in range(0, count, WIDTH):
        at = base + c
        square, action, goal = zeros(), zeros(), zeros()
        for r in range(d):
            x = zeros()
            for s in range(d):
                x = fma(load(S, r * d + s, at), A[arm, s], x)
            store(work, r, c, x)
            square = fma(x, A[arm, r], square)
            action = fma(load(inv.feature, r, at), A[arm, r], action)
            goal = fma(load(inv.goal, r, at), A[arm, r], goal)
        # Lanes behind the last window are those of others, which never had the arm.
        valid = read(inv.weights, 1, at, count - c)
        scale = 1.0 / (1.0 - square * valid)
        store(work, 4 * d, c, valid)
        store(work, 4 * d + 1, c, scale)
        mean, windows = mean + total(valid * scale), windows + total(valid)
        action, goal = action * scale, goal * scale
        for r in range(d):
            x = load(work, r, c)
            store(work, d + r, c, fma(x, action, load(inv.feature, r, at)))
            store(work, 2 * d + r, c, fma(x, goal, load(inv.goal, r, at)))
            store(work, 3 * d + r, c, x * scale)
    return mean / max(windows, 1.0)


@inline
def _own_forms(beta: float, p: int, j: int, f: Forms, inv: Inverses) -> None:
    """q and W: what an arm earns itself at position j."""
    d, own = inv.action.shape[0], inv.own
    for r in range(d):
        f.q[r] = 0.0
    if beta == 0.0:
        for r in range(d):
            for i in range(p):
                f.q[r] += inv.weights[0, j * p + i] * inv.goal[r, j * p + i]
        return
    for r in range(d):
        for s in range(d):
            own[r, s] = 0.0
            for i in range(p):
                own[r, s] += inv.weights[0, j * p + i] * inv.S[r * d + s, j * p + i]
            f.q[r] += own[r, s] * f.belief[0, s]
    for k in range(0, own.shape[1], WIDTH):
        for r in range(d):
            x = zeros()
            for s in range(d):
                x = fma(f.belief[1 + r, s], load(own, s, k), x)
            store(own, d + r, k, x)
        for r in range(d):
            x = zeros()
            for s in range(d):
                x = fma(own[r, s], load(own, d + s, k), x)
            store(f.W, r, k, x)
    for r in range(d):
        for s in range(r + 1, d):
            f.W[r, s] *= 2.0


@inline
def forms_at(
    A: Rows, poles: Poles, shape: Shape, arm: int, j: int, beta: float, f: Forms, inv: Inverses
) -> None:
    """The forms of position j, where the arm is now."""
    m, d, p, work = shape.m, A.shape[1], poles.shifts.shape[0], inv.work
    base, count, y = (j + 1) * p, m * p, 4 * d + 2
    mean = _without(A, arm, base, count, inv)
    windows = 0.0
    for c in range(0, count, WIDTH):
        valid, scale = load(work, 4 * d, c), load(work, 4 * d + 1, c)
        windows += total(valid)
        share = mean * valid * load(inv.weights, 0, base + c) / scale
        for r in range(d):
            store(work, 4 * d + 2 + r, c, load(work, d + r, c) * share)
    share = 1.0 / max(windows, 1.0)
    for r in range(d):
        for s in range(r, d):
            lost, shared = zeros(), zeros()
            for c in range(0, count, WIDTH):
                lost = fma(load(work, y + r, c), load(work, 2 * d + s, c), lost)
                if s > r:
                    lost = fma(load(work, y + s, c), load(work, 2 * d + r, c), lost)
                x = fma(load(work, r, c), load(work, 3 * d + s, c), load(inv.S, r * d + s, base + c))
                shared = fma(load(work, 4 * d, c), x, shared)
            f.Q[r, s] = total(lost)
            f.R[r, s] = total(shared) * (2.0 * share if s > r else share)
    _own_forms(beta, p, j, f, inv)


@kernel_internal
def worths_of_few(
    A: Rows, poles: Poles, shape: Shape, few: Integers, j: int, beta: float, f: Forms, inv: Inverses
) -> None:
    """The last row of inv.tried: the exact worths at position j of WIDTH arms, after `forms_at`.

    A window has the feature b = sum of w_i S' a_t, with S' a_t = T a_t - T x (x^T T a_t) / (1 + x^T T x).
    """
    m, d, p, X, work = shape.m, A.shape[1], poles.shifts.shape[0], inv.tried, inv.work
    worth, width = zeros(), zeros()
    for r in range(d):
        for c in range(WIDTH):
            X[r, c] = A[few[c], r]
        worth = fma(load(X, r, 0), f.q[r], worth)
    if beta > 0.0 and counts(shape, j):
        for r in range(d):
            x = zeros()
            for s in range(r, d):
                x = fma(load(X, s, 0), f.W[r, s], x)
            width = fma(load(X, r, 0), x, width)
        worth = fma(beta, root(at_least(width, 0.0)), worth)
    for v in range(m):
        if not counts(shape, j + 1 + v):
            continue
        for r in range(d):
            store(X, d + r, 0, zeros())
        for i in range(p):
            c, at = v * p + i, (j + 1 + v) * p + i
            inner, own, square = zeros(), zeros(), zeros()
            for r in range(d):
                inner = fma(load(X, r, 0), work[3 * d + r, c], inner)
                own = fma(load(X, r, 0), work[d + r, c], own)
            for r in range(d):
                x = inner * work[r, c]
                for s in range(d):
                    x = fma(load(X, s, 0), inv.S[r * d + s, at], x)
                store(X, 2 * d + r, 0, x)
                square = fma(load(X, r, 0), x, square)
            share = own / (square + 1.0)
            for r in range(d):
                x = work[d + r, c] - share * load(X, 2 * d + r, 0)
                store(X, d + r, 0, fma(poles.weights[i], x, load(X, d + r, 0)))
        width = zeros()
        for r in range(d):
            worth = fma(load(X, d + r, 0), f.belief[0, r], worth)
            if beta > 0.0:
                x = zeros()
                for s in range(d):
                    x = fma(load(X, d + s, 0), f.belief[1 + r, s], x)
                width = fma(load(X, d + r, 0), x, width)
        worth = fma(beta, root(at_least(width, 0.0)), worth)
    store(X, 3 * d, 0, worth)


@inline
def change_arm(
    A: Rows, poles: Poles, shape: Shape, arm: int, j: int, beta: float, f: Forms, inv: Inverses
) -> None:
    """Another arm at position j, of which `forms_at` has just told the forms."""
    m, n, d, p, S, work = shape.m, shape.n, A.shape[1], poles.shifts.shape[0], inv.S, inv.work
    base, count = (j + 1) * p, m * p
    for c in range(0, count, WIDTH):
        at, inner, square = base + c, zeros(), zeros()
        for r in range(d):
            inner = fma(load(work, 3 * d + r, c), A[arm, r], inner)
        for r in range(d):
            x = load(work, r, c) * inner
            for s in range(d):
                x = fma(load(S, r * d + s, at), A[arm, s], x)
            store(work, d + r, c, x)
            square = fma(x, A[arm, r], square)
        scale = -1.0 / (1.0 + square)
        for r in range(d):
            x, y = load(work, 3 * d + r, c), load(work, d + r, c) * scale
            for s in range(d):
                z = fma(y, load(work, d + s, c), load(S, r * d + s, at))
                write(S, r * d + s, at, count - c, fma(x, load(work, s, c), z))
    if counts(shape, j):
        for r in range(d):
            for i in range(p):
                inv.action[r, j * p + i] = A[arm, r]
    _apply(inv, inv.action, j * p, count + p, inv.feature)
    _aim(beta, p, j, j + m, f, inv)
    _apply(inv, inv.target, j * p, count + p, inv.goal)
    for t in range(j, j + m + 1 if shape.wrap else j):
        if t >= n:
            _copy(inv, t * p, (t - n) * p, p)
        elif t < m:
            _copy(inv, t * p, (t + n) * p, p)


@kernel_internal
def _copy(inv: Inverses, source: int, target: int, p: int) -> None:
    """So many columns to another place."""
    for i in range(p):
        for r in range(inv.S.shape[0]):
            inv.S[r, target + i] = inv.S[r, source + i]
        for r in range(inv.action.shape[0]):
            inv.action[r, target + i] = inv.action[r, source + i]
            inv.feature[r, target + i] = inv.feature[r, source + i]
            inv.target[r, target + i] = inv.target[r, source + i]
            inv.goal[r, target + i] = inv.goal[r, source + i]


@inline
def value_now(shape: Shape, p: int, inv: Inverses) -> float:
    """The value of the block, or of one period of the cycle: features have it along their targets."""
    value, count = zeros(), shape.n * p
    for c in range(0, count, WIDTH):
        x = zeros()
        for r in range(inv.action.shape[0]):
            x = fma(load(inv.feature, r, c), load(inv.target, r, c), x)
        value = fma(x, read(inv.weights, 0, c, count - c), value)
    return total(value)
