"""What all arms are about worth at a position: owns the quadratic forms for it, and how an arm is drawn.

A window loses (a^T y)(a^T z) / D by an arm a, pole by pole, with y and z of the other arms and
D = 1 + a^T R a, see `arm_worth`. Here all windows and poles share one R, the mean of theirs, and what that
changes is set right for the arm that is at the position now. A bonus is linear around the feature of now. So

    worth(a) = a^T q + beta sqrt(a^T W a) - a^T Q a / (1 + a^T R a)

up to a constant: some d^2 products an arm, whatever m and the number of poles are. The best arm of all is
nearly always among the first three by it (measured); exact worths of the few that are drawn mend the rest.
Single precision is enough, and twice as fast. Where d > 2m `arm_spans` has the same forms in less.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, Matrix, Rows, SingleRows, Vector
from .arithmetic import fma
from .singles import (
    SINGLES,
    how_many_up_to,
    largest,
    load_singles,
    running,
    single_at,
    single_rows,
    single_zeros,
    store_singles,
)
from .vectors import Several, at_least, larger, root, total

#: Arms are looked at in groups of two vectors.
GROUP = 2 * SINGLES


class Forms(NamedTuple):
    """The forms of a position, and what is known of rewards."""

    belief: Matrix  # (d+1, d) theta, and V^-1
    small: SingleRows  # (3, d (d+1) and more) of `screen`: q; Q and R, one number of each in turn; beta^2 W


@kernel
def make_forms(target: Vector, V_inv: Matrix) -> Forms:
    d = target.shape[0]
    belief = np.zeros((d + 1, d))
    for k in range(d):
        belief[0, k] = target[k]
        for i in range(d):
            belief[1 + i, k] = V_inv[i, k]
    return Forms(belief=belief, small=single_rows(3, d * (d + 1) + 2 * SINGLES))


@kernel
def group_arms(A: Rows, size: float) -> SingleRows:
    """The arms (K, d) in groups, as columns: d rows for each group, zeros fill up the last one.

    In units of `size`.
    """
    K, d = A.shape
    grouped = single_rows((K + GROUP - 1) // GROUP * d, GROUP)
    for k in range(K):
        for i in range(d):
            grouped[k // GROUP * d + i, k % GROUP] = A[k, i] / size
    return grouped


@kernel_internal
def screen(grouped: SingleRows, small: SingleRows, d: int, bonus: bool, K: int, scores: SingleRows) -> None:
    """scores (groups, GROUP): what the first K arms are about worth, see `group_arms`.

    Of symmetric forms `small` has what is on the diagonal and above, row by row, that above twice.
    """
    h, groups = SINGLES, (K + GROUP - 1) // GROUP
    one = single_zeros() + np.float32(1.0)
    if bonus:
        for g in range(groups):
            o, at = g * d, 0
            own, lost, scale, width = single_zeros(), single_zeros(), one, single_zeros()
            own_h, lost_h, scale_h, width_h = own, lost, scale, width
            for i in range(d):
                a, b = load_singles(grouped, o + i, 0), load_singles(grouped, o + i, h)
                q = single_at(small, 0, i)
                own, own_h = fma(q, a, own), fma(q, b, own_h)
                x, y, z = single_zeros(), single_zeros(), single_zeros()
                x_h, y_h, z_h = x, y, z
                for s in range(i, d):
                    Q, R, W = (
                        single_at(small, 1, 2 * at),
                        single_at(small, 1, 2 * at + 1),
                        single_at(small, 2, at),
                    )
                    u, v = load_singles(grouped, o + s, 0), load_singles(grouped, o + s, h)
                    x, y, z = fma(Q, u, x), fma(R, u, y), fma(W, u, z)
                    x_h, y_h, z_h = fma(Q, v, x_h), fma(R, v, y_h), fma(W, v, z_h)
                    at += 1
                lost, scale, width = fma(a, x, lost), fma(a, y, scale), fma(a, z, width)
                lost_h, scale_h, width_h = fma(b, x_h, lost_h), fma(b, y_h, scale_h), fma(b, z_h, width_h)
            own, own_h = own + root(at_least(width, 0.0)), own_h + root(at_least(width_h, 0.0))
            store_singles(scores, g, 0, own - lost / scale)
            store_singles(scores, g, h, own_h - lost_h / scale_h)
        return
    # Two groups at a time: a sum that waits for itself alone leaves most of a processor idle.
    for g in range(0, groups, 2):
        k, at = min(g + 1, groups - 1), 0
        o, e = g * d, k * d
        own, own_h, own_k, own_kh = single_zeros(), single_zeros(), single_zeros(), single_zeros()
        lost, lost_h, lost_k, lost_kh = own, own, own, own
        scale, scale_h, scale_k, scale_kh = one, one, one, one
        for i in range(d):
            q = single_at(small, 0, i)
            x, x_h, x_k, x_kh = single_zeros(), single_zeros(), single_zeros(), single_zeros()
            y, y_h, y_k, y_kh = x, x_h, x_k, x_kh
            for s in range(i, d):
                Q, R = single_at(small, 1, 2 * at), single_at(small, 1, 2 * at + 1)
                u, v = load_singles(grouped, o + s, 0), load_singles(grouped, o + s, h)
                x, y = fma(Q, u, x), fma(R, u, y)
                x_h, y_h = fma(Q, v, x_h), fma(R, v, y_h)
                u, v = load_singles(grouped, e + s, 0), load_singles(grouped, e + s, h)
                x_k, y_k = fma(Q, u, x_k), fma(R, u, y_k)
                x_kh, y_kh = fma(Q, v, x_kh), fma(R, v, y_kh)
                at += 1
            u, v = load_singles(grouped, o + i, 0), load_singles(grouped, o + i, h)
            own, lost, scale = fma(q, u, own), fma(x, u, lost), fma(y, u, scale)
            own_h, lost_h, scale_h = fma(q, v, own_h), fma(x_h, v, lost_h), fma(y_h, v, scale_h)
            u, v = load_singles(grouped, e + i, 0), load_singles(grouped, e + i, h)
            own_k, lost_k, scale_k = fma(q, u, own_k), fma(x_k, u, lost_k), fma(y_k, u, scale_k)
            own_kh, lost_kh, scale_kh = fma(q, v, own_kh), fma(x_kh, v, lost_kh), fma(y_kh, v, scale_kh)
        store_singles(scores, g, 0, own - lost / scale)
        store_singles(scores, g, h, own_h - lost_h / scale_h)
        store_singles(scores, k, 0, own_k - lost_k / scale_k)
        store_singles(scores, k, h, own_kh - lost_kh / scale_kh)


@inline
def _raised(score: Several, each: np.float32, shift: np.float32) -> Several:
    """(1 + x / 64)^64 of x = (score - top) / temperature, 0 where that is below -64."""
    y = at_least(fma(score, each, shift), 0.0)
    y *= y
    y *= y
    y *= y
    y *= y
    y *= y
    return y * y


@kernel_internal
def propose(
    table: SingleRows,
    K: int,
    temperature: float,
    weights: SingleRows,
    drawn: Integers,
    count: int,
    rng: np.random.Generator,
) -> None:
    """The first so many of `drawn`: of K arms such with probabilities about exp(score / temperature).

    Up to a factor. The table is that of `screen`. Of weights (groups+1, GROUP) the last row has sums over
    groups and lanes. The exponential is (1 + x/64)^64, which needs no library. What fills up the last group
    is out of question.
    """
    groups, h = (K + GROUP - 1) // GROUP, SINGLES
    for w in range(K - (groups - 1) * GROUP, GROUP):
        table[groups - 1, w] = -math.inf
    x, x_h = load_singles(table, 0, 0), load_singles(table, 0, h)
    for g in range(1, groups):
        x, x_h = larger(load_singles(table, g, 0), x), larger(load_singles(table, g, h), x_h)
    each = 1.0 / (64.0 * temperature)
    slope, shift = np.float32(each), np.float32(1.0 - largest(larger(x, x_h)) * each)
    x, x_h = single_zeros(), single_zeros()
    for g in range(groups):
        y = _raised(load_singles(table, g, 0), slope, shift)
        y_h = _raised(load_singles(table, g, h), slope, shift)
        store_singles(weights, g, 0, y)
        store_singles(weights, g, h, y_h)
        x, x_h = x + y, x_h + y_h
    # Sums over lanes: of the first half, and of all of them.
    low = running(x)
    high = running(x_h) + total(x)
    store_singles(weights, groups, 0, low)
    store_singles(weights, groups, h, high)
    whole, last = weights[groups, GROUP - 1], min(K, GROUP) - 1
    for c in range(count):
        left, g = np.float32(rng.random() * whole), 0
        w = min(how_many_up_to(low, left) + how_many_up_to(high, left), last)
        if w > 0:
            left -= weights[groups, w - 1]
        while g * GROUP + GROUP + w < K and left >= weights[g, w]:
            left -= weights[g, w]
            g += 1
        drawn[c] = g * GROUP + w
