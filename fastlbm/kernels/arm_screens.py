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
from .singles import SINGLES, load_singles, single_zeros, store_singles
from .vectors import WIDTH, Several, at_least, larger, root

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
    products = np.zeros(((K + GROUP - 1) // GROUP * rows, GROUP), dtype=np.float32)
    for k in range(K):
        first, w = k // GROUP * rows, k % GROUP
        at = first + d
        for i in range(d):
            products[first + i, w] = A[k, i] / size
            for s in range(i, d):
                products[at, w] = (A[k, i] / size) * (A[k, s] / size)
                at += 1
    return products


@kernel_internal
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


@kernel_internal
def screen(
    products: SingleRows, f: Forms, beta: float, size: float, unit: float, K: int, scores: SingleRows
) -> None:
    """scores (groups, GROUP): what the first K arms are about worth, in some unit; see `products_of`."""
    _make_small(f, beta, size, unit)
    d, rows, h, small = f.Q.shape[0], f.small.shape[1], SINGLES, f.small
    for g in range((K + GROUP - 1) // GROUP):
        o = g * rows
        own, lost, scale = single_zeros(), single_zeros(), single_zeros() + np.float32(1.0)
        own_h, lost_h, scale_h, width, width_h = own, lost, scale, own, own
        for i in range(d):
            a, b = load_singles(products, o + i, 0), load_singles(products, o + i, h)
            own, own_h = fma(small[0, i], a, own), fma(small[0, i], b, own_h)
        if beta > 0.0:
            for i in range(d, rows):
                a, b = load_singles(products, o + i, 0), load_singles(products, o + i, h)
                Q, R, W = small[0, i], small[1, i], small[2, i]
                lost, scale, width = fma(Q, a, lost), fma(R, a, scale), fma(W, a, width)
                lost_h, scale_h, width_h = fma(Q, b, lost_h), fma(R, b, scale_h), fma(W, b, width_h)
            own, own_h = own + root(at_least(width, 0.0)), own_h + root(at_least(width_h, 0.0))
        else:
            for i in range(d, rows):
                a, b = load_singles(products, o + i, 0), load_singles(products, o + i, h)
                Q, R = small[0, i], small[1, i]
                lost, scale = fma(Q, a, lost), fma(R, a, scale)
                lost_h, scale_h = fma(Q, b, lost_h), fma(R, b, scale_h)
        store_singles(scores, g, 0, own - lost / scale)
        store_singles(scores, g, h, own_h - lost_h / scale_h)


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
    rng: np.random.Generator,
) -> None:
    """drawn (c,): of K arms such with probabilities that are about exp(score / temperature), up to a factor.

    The table is that of `screen`. Of weights (groups+1, GROUP) the last row has sums over groups. The
    exponential is (1 + x/64)^64, which needs no library. What fills up the last group is out of question.
    """
    groups, h = (K + GROUP - 1) // GROUP, SINGLES
    for w in range(K - (groups - 1) * GROUP, GROUP):
        table[groups - 1, w] = -math.inf
    x, x_h = load_singles(table, 0, 0), load_singles(table, 0, h)
    for g in range(1, groups):
        x, x_h = larger(load_singles(table, g, 0), x), larger(load_singles(table, g, h), x_h)
    store_singles(weights, groups, 0, larger(x, x_h))
    top = weights[groups, 0]
    for w in range(1, SINGLES):
        top = max(top, weights[groups, w])
    each = 1.0 / (64.0 * temperature)
    slope, shift = np.float32(each), np.float32(1.0 - top * each)
    x, x_h = single_zeros(), single_zeros()
    for g in range(groups):
        y, y_h = (
            _raised(load_singles(table, g, 0), slope, shift),
            _raised(load_singles(table, g, h), slope, shift),
        )
        store_singles(weights, g, 0, y)
        store_singles(weights, g, h, y_h)
        x, x_h = x + y, x_h + y_h
    store_singles(weights, groups, 0, x)
    store_singles(weights, groups, h, x_h)
    whole = 0.0
    for w in range(GROUP):
        whole += weights[groups, w]
    for c in range(drawn.shape[0]):
        left, w, g, last = rng.random() * whole, 0, 0, min(K, GROUP) - 1
        while w < last and left >= weights[groups, w]:
            left -= weights[groups, w]
            w += 1
        while g * GROUP + GROUP + w < K and left >= weights[g, w]:
            left -= weights[g, w]
            g += 1
        drawn[c] = g * GROUP + w
