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
from .vectors import WIDTH, Several, at_least, larger, root, total

#: Arms are looked at in groups of two vectors.
GROUP = 2 * SINGLES


class Forms(NamedTuple):
    """The forms of a position, and what is known of rewards.

    Rows of d' numbers are d filled up with zeros to whole vectors.
    """

    q: Vector  # (d,)
    Q: Matrix  # (d, d) of these what is on the diagonal and above, that above twice
    R: Matrix  # (d, d)
    W: Matrix  # (d, d')
    belief: Matrix  # (d+1, d) theta, and V^-1
    small: SingleRows  # (3, d + d (d+1) / 2) of `screen`: q and Q, R, W


@kernel
def make_forms(target: Vector, V_inv: Matrix) -> Forms:
    d = target.shape[0]
    belief = np.zeros((d + 1, d))
    for k in range(d):
        belief[0, k] = target[k]
        for i in range(d):
            belief[1 + i, k] = V_inv[i, k]
    return Forms(
        q=np.zeros(d),
        Q=np.zeros((d, d)),
        R=np.zeros((d, d)),
        W=np.zeros((d, (d + WIDTH - 1) // WIDTH * WIDTH)),
        belief=belief,
        small=np.zeros((3, d + d * (d + 1) // 2), dtype=np.float32),
    )


@kernel
def products_of(A: Rows, size: float) -> SingleRows:
    """The arms (K, d) in groups, as columns: for each group rows of the entries, and of their products.

    What is read one after the other lies so; zeros fill up the last group. In units of `size`.
    """
    K, d = A.shape
    rows = d + d * (d + 1) // 2
    products = single_rows((K + GROUP - 1) // GROUP * rows, GROUP)
    for k in range(K):
        first, w = k // GROUP * rows, k % GROUP
        at = first + d
        for i in range(d):
            products[first + i, w] = A[k, i] / size
            for s in range(i, d):
                products[at, w] = (A[k, i] / size) * (A[k, s] / size)
                at += 1
    return products


@inline
def _make_small(f: Forms, beta: float, size: float, unit: float) -> None:
    """The forms for arms in units of `size`, of worths in others."""
    d, small, at = f.Q.shape[0], f.small, f.Q.shape[0]
    x, y, z = size * size / unit, size * size, (size * beta / unit) ** 2
    for i in range(d):
        small[0, i] = f.q[i] * (size / unit)
        for s in range(i, d):
            small[0, at], small[1, at] = f.Q[i, s] * x, f.R[i, s] * y
            small[2, at] = f.W[i, s] * z if beta > 0.0 else 0.0
            at += 1


@inline
def screen(
    products: SingleRows, f: Forms, beta: float, size: float, unit: float, K: int, scores: SingleRows
) -> None:
    """scores (groups, GROUP): what the first K arms are about worth, in some unit; see `products_of`."""
    _make_small(f, beta, size, unit)
    _screen(products, f.small, f.Q.shape[0], beta > 0.0, K, scores)


@kernel_internal
def _screen(products: SingleRows, small: SingleRows, d: int, bonus: bool, K: int, scores: SingleRows) -> None:
    """Two groups at a time: a sum that waits for nothing else leaves most of a processor idle."""
    rows, h, groups = d + d * (d + 1) // 2, SINGLES, (K + GROUP - 1) // GROUP
    one = single_zeros() + np.float32(1.0)
    for g in range(0, groups, 2):
        k = min(g + 1, groups - 1)
        o, u = g * rows, k * rows
        own, own_h, own_k, own_kh = single_zeros(), single_zeros(), single_zeros(), single_zeros()
        lost, lost_h, lost_k, lost_kh = own, own, own, own
        scale, scale_h, scale_k, scale_kh = one, one, one, one
        for i in range(d):
            q = single_at(small, 0, i)
            own, own_h = (
                fma(q, load_singles(products, o + i, 0), own),
                fma(q, load_singles(products, o + i, h), own_h),
            )
            own_k = fma(q, load_singles(products, u + i, 0), own_k)
            own_kh = fma(q, load_singles(products, u + i, h), own_kh)
        if bonus:
            width, width_h, width_k, width_kh = lost, lost, lost, lost
            for i in range(d, rows):
                Q, R, W = single_at(small, 0, i), single_at(small, 1, i), single_at(small, 2, i)
                a, b = load_singles(products, o + i, 0), load_singles(products, o + i, h)
                lost, scale, width = fma(Q, a, lost), fma(R, a, scale), fma(W, a, width)
                lost_h, scale_h, width_h = fma(Q, b, lost_h), fma(R, b, scale_h), fma(W, b, width_h)
                a, b = load_singles(products, u + i, 0), load_singles(products, u + i, h)
                lost_k, scale_k, width_k = fma(Q, a, lost_k), fma(R, a, scale_k), fma(W, a, width_k)
                lost_kh, scale_kh, width_kh = fma(Q, b, lost_kh), fma(R, b, scale_kh), fma(W, b, width_kh)
            own, own_h = own + root(at_least(width, 0.0)), own_h + root(at_least(width_h, 0.0))
            own_k, own_kh = own_k + root(at_least(width_k, 0.0)), own_kh + root(at_least(width_kh, 0.0))
        else:
            for i in range(d, rows):
                Q, R = single_at(small, 0, i), single_at(small, 1, i)
                a, b = load_singles(products, o + i, 0), load_singles(products, o + i, h)
                lost, scale = fma(Q, a, lost), fma(R, a, scale)
                lost_h, scale_h = fma(Q, b, lost_h), fma(R, b, scale_h)
                a, b = load_singles(products, u + i, 0), load_singles(products, u + i, h)
                lost_k, scale_k = fma(Q, a, lost_k), fma(R, a, scale_k)
                lost_kh, scale_kh = fma(Q, b, lost_kh), fma(R, b, scale_kh)
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
