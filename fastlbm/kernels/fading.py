"""Memories that fade: owns their sums over windows, and what was played before where a memory has no end.

X_t = A0 + sum over s = 1..m of decay^(s-1) a_{t-s} a_{t-s}^T. For an infinite m the sum is one matrix,

    Y_{t+1} = decay Y_t + a_t a_t^T,   X_t = A0 + Y_t,

and the derivative with respect to it runs backwards in the same way, G_t = decay G_{t+1} + H_{t+1} with H the
derivative with respect to X: what a window costs does not depend on m. In a cycle of P actions Y_0 = Y_P, so
that Y_0 is what one turn from nothing leaves, divided by 1 - decay^P; the same holds of G.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ._jit import kernel_internal, kernel_norefcount
from ._types import Matrix, Rows
from .arithmetic import column
from .powers import POWER

#: The most actions that a memory without end counts as, where searches ask how long it is.
_LONGEST_TURN = 8
#: Of a memory without end, the most of the last actions that are kept one by one.
_MOST_KEPT = 2**16
#: After so many steps a plan takes what was played before them as forgotten, or when so little is left of it.
_LONGEST_TAIL, _FORGOTTEN = 20, 0.05


class Variant(NamedTuple):
    """How a memory differs from the paper's, which is the default."""

    decay: float = 1.0
    response: int = POWER  # or SATURATING, or OWN with two addresses, see `responses`
    value: int = 0
    slope: int = 0


#: The paper's memory.
PAPER = Variant()


class Fading(NamedTuple):
    """What an infinite memory is made of: takes the place of A0 in the kernels."""

    A0: Matrix
    past: Matrix  # (d, d) Y before the first action of a block, changed in place
    poles: Matrix  # (2, n) of `power_poles`; n = 0 where the power is taken otherwise


def total_weight(m: float, decay: float) -> float:
    """The sum of the weights of m actions, the most that they can add to an eigenvalue.

    >>> total_weight(3, 1.0), total_weight(2, 0.5), total_weight(math.inf, 0.5)
    (3, 1.5, 2.0)
    """
    if decay == 1.0:
        return m
    return 1.0 / (1.0 - decay) if m == math.inf else -math.expm1(m * math.log(decay)) / (1.0 - decay)


def turn_of_memory(decay: float) -> int:
    """About how many actions a memory without end holds: the sum of their weights, if that is not large.

    >>> turn_of_memory(0.75), turn_of_memory(0.99)
    (4, 8)
    """
    return max(1, min(round(1.0 / (1.0 - decay)), _LONGEST_TURN))


def tail_of(decay: float) -> int:
    """The steps after which nearly all is forgotten, if they are not many.

    >>> tail_of(0.5), tail_of(0.99)
    (5, 20)
    """
    return max(1, min(math.ceil(math.log(_FORGOTTEN) / math.log(decay)), _LONGEST_TAIL))


def reach_of(decay: float) -> int:
    """The last actions that matter: all before them together weigh less than the rounding of one.

    >>> reach_of(0.5), reach_of(0.9)
    (54, 371)
    """
    return math.ceil((math.log(2.0**-53) + math.log1p(-decay)) / math.log(decay))


def actions_kept(m: float, decay: float) -> int:
    """The last actions that a policy must be told one by one: m, or those that matter, but at most 65,536.

    Those before them weigh less than a thousandth of all with a decay up to 0.9998.

    >>> actions_kept(3, 0.5), actions_kept(math.inf, 0.5), actions_kept(math.inf, 1.0 - 1e-9)
    (3, 54, 65536)
    """
    return min(reach_of(decay), _MOST_KEPT) if m == math.inf else int(m)


@kernel_norefcount
def push_past(past: Matrix, decay: float, actions: Rows, first: int, end: int) -> None:
    """The actions (.., d) from the row `first` to `end` were played."""
    d = past.shape[0]
    for t in range(first, end):
        for i in range(d):
            for j in range(d):
                past[i, j] = decay * past[i, j] + actions[t, i] * actions[t, j]


@kernel_internal
def fading_sums(a: Rows, past: Matrix, decay: float, wraps: bool, lanes: int, D: Rows) -> None:
    """D (d(d+1)/2, ...): the upper triangle of Y before each action; of a cycle, the one that returns."""
    d, N = a.shape
    share = -math.expm1(N // lanes * math.log(decay))  # 1 - decay^P
    row = 0
    for i in range(d):
        for j in range(i, d):
            initial = 0.0 if wraps else past[i, j]
            for w in range(lanes):
                D[row, w] = initial
            _run_on(a, i, j, decay, lanes, N + lanes if wraps else N, D, row)
            if wraps:
                for w in range(lanes):
                    D[row, w] = D[row, N + w] / share
                _run_on(a, i, j, decay, lanes, N, D, row)
            row += 1


@kernel_internal
def _run_on(a: Rows, i: int, j: int, decay: float, lanes: int, end: int, D: Rows, row: int) -> None:
    """D[row] = Y_ij from the second step on."""
    for first in range(lanes, end, lanes):
        before = column(first - lanes)
        for s in range(lanes):
            D[row, first + s] = decay * D[row, before + s] + a[i, before + s] * a[j, before + s]


@kernel_internal
def add_fading_sums(a: Rows, decay: float, wraps: bool, lanes: int, D: Rows, grad: Rows) -> None:
    """Adds to grad what comes through Y, given the derivative D with respect to X, the upper triangle of H.

    D has `lanes` columns more than there are actions, and is used up.
    """
    d, N = a.shape
    share = -math.expm1(N // lanes * math.log(decay))
    row = 0
    for i in range(d):
        for j in range(i, d):
            for w in range(lanes):
                D[row, N + w] = 0.0
                if wraps:
                    # What the windows of all later turns leave, from a first pass of the recursion.
                    total = 0.0
                    for v in range(N - lanes + w, -1, -lanes):
                        total = decay * total + D[row, v]
                    D[row, N + w] = total / share
            # G of the last action first; D is H in front of where it is read, and G behind.
            for first in range(N - lanes, -1, -lanes):
                for s in range(lanes):
                    H, G = D[row, first + s], D[row, N + s]
                    D[row, first + s] = G
                    D[row, N + s] = decay * G + H
            for w in range(N):
                grad[i, w] += D[row, w] * a[j, w]
            if i != j:
                for w in range(N):
                    grad[j, w] += D[row, w] * a[i, w]
            row += 1


@kernel_internal
def slide(x: Rows, count: int, m: int, lanes: int) -> None:
    """Row by row, x[t] becomes the sum of x over the m times before t, for t >= m.

    Time is cut into stretches of m. A window is the end of one and the beginning of the next, whose sums are
    kept: nothing is subtracted, so nothing is lost, and m does not matter. x has two rows beside its `count`.
    """
    N, length = x.shape[1], m * lanes
    begun, left = count, count + 1
    for row in range(count):
        for first in range(0, N, length):
            end = min(first + length, N)
            for s in range(lanes):
                ahead, back = 0.0, 0.0
                for w in range(first + s, end, lanes):
                    mirror = column(first + end - lanes + 2 * s - w)
                    ahead += x[row, w]
                    back += x[row, mirror]
                    x[begun, w] = ahead
                    x[left, mirror] = back
        for first in range(length, N, length):
            end = min(first + length, N)
            for w in range(first, min(first + lanes, end)):
                x[row, w] = x[begun, column(w - lanes)]
            for w in range(first + lanes, end):
                x[row, w] = x[left, column(w - length)] + x[begun, column(w - lanes)]


@kernel_internal
def slide_fading(x: Rows, count: int, m: int, decay: float, lanes: int, mirrored: bool) -> None:
    """Row by row, x[t] becomes the sum of decay^(t-1-u) x[u] over the m times u before t, for t >= m.

    `mirrored`: of decay^(u-(t-m)) x[u], which is its adjoint. Two halves of a window, as in `slide`: the end
    of one stretch of m and the beginning of the next. x has two rows beside its `count`.
    """
    N, length = x.shape[1], m * lanes
    begun, left = count, count + 1
    for row in range(count):
        for first in range(0, N, length):
            end = min(first + length, N)
            for s in range(lanes):
                ahead, back, factor = 0.0, 0.0, 1.0
                for w in range(first + s, end, lanes):
                    mirror = column(first + end - lanes + 2 * s - w)
                    if mirrored:
                        ahead += factor * x[row, w]
                        back = decay * back + x[row, mirror]
                    else:
                        ahead = decay * ahead + x[row, w]
                        back += factor * x[row, mirror]
                    factor *= decay
                    x[begun, w] = ahead
                    x[left, mirror] = back
        for first in range(length, N, length):
            end = min(first + length, N)
            for w in range(first, min(first + lanes, end)):
                x[row, w] = x[left, column(w - length)] if mirrored else x[begun, column(w - lanes)]
            for step in range(1, (end - first) // lanes):
                # So many steps of the window are in the stretch that has begun.
                late = decay ** (m - step) if mirrored else 1.0
                early = 1.0 if mirrored else decay**step
                for w in range(first + step * lanes, first + (step + 1) * lanes):
                    x[row, w] = early * x[left, column(w - length)] + late * x[begun, column(w - lanes)]
