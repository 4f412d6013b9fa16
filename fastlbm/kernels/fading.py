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

from ._jit import inline, kernel_internal, kernel_norefcount
from ._types import Matrix, Rows
from .arithmetic import column, fma
from .powers import POWER
from .vectors import WIDTH, load, read, store, write, zeros

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
    """D (d(d+1)/2, ...): the upper triangle of Y before each action; of a cycle, the one that returns.

    Four entries at once: one alone would wait for its last step. Beyond the end of a row its last is computed
    again.
    """
    d, N = a.shape
    share = -math.expm1(N // lanes * math.log(decay)) if wraps else 0.0  # 1 - decay^P
    row = 0
    for i in range(d):
        for j in range(i, d, 4):
            if lanes % WIDTH == 0:
                for s in range(0, lanes, WIDTH):
                    _run_vectors(a, past, i, j, decay, share, s, lanes, D, row)
            else:
                for s in range(lanes):
                    _run_numbers(a, past, i, j, decay, share, s, lanes, D, row)
            row += min(4, d - j)


@inline
def _four_places(d: int, j: int) -> tuple[int, int, int]:
    """The three places behind j, or the last."""
    return min(j + 1, d - 1), min(j + 2, d - 1), min(j + 3, d - 1)


@inline
def _run_numbers(
    a: Rows, past: Matrix, i: int, j: int, decay: float, share: float, s: int, lanes: int, D: Rows, row: int
) -> None:
    """The entries (i, j) to (i, j + 3) of Y of the block s, in D from a row on; share = 0: no cycle."""
    j1, j2, j3 = _four_places(a.shape[0], j)
    r1, r2, r3 = row + j1 - j, row + j2 - j, row + j3 - j
    keep = 1.0 if share == 0.0 else 0.0
    y0, y1, y2, y3 = keep * past[i, j], keep * past[i, j1], keep * past[i, j2], keep * past[i, j3]
    for _ in range(1 if share == 0.0 else 2):
        for w in range(s, a.shape[1], lanes):
            D[row, w], D[r1, w], D[r2, w], D[r3, w] = y0, y1, y2, y3
            x = a[i, w]
            y0, y1 = fma(decay, y0, x * a[j, w]), fma(decay, y1, x * a[j1, w])
            y2, y3 = fma(decay, y2, x * a[j2, w]), fma(decay, y3, x * a[j3, w])
        if share > 0.0:
            y0, y1, y2, y3 = y0 / share, y1 / share, y2 / share, y3 / share


@inline
def _run_vectors(
    a: Rows, past: Matrix, i: int, j: int, decay: float, share: float, s: int, lanes: int, D: Rows, row: int
) -> None:
    """The same for WIDTH blocks from s on."""
    j1, j2, j3 = _four_places(a.shape[0], j)
    r1, r2, r3 = row + j1 - j, row + j2 - j, row + j3 - j
    keep = 1.0 if share == 0.0 else 0.0
    y0, y1 = zeros() + keep * past[i, j], zeros() + keep * past[i, j1]
    y2, y3 = zeros() + keep * past[i, j2], zeros() + keep * past[i, j3]
    for _ in range(1 if share == 0.0 else 2):
        for w in range(s, a.shape[1], lanes):
            store(D, row, w, y0)
            store(D, r1, w, y1)
            store(D, r2, w, y2)
            store(D, r3, w, y3)
            x = load(a, i, w)
            y0, y1 = fma(decay, y0, x * load(a, j, w)), fma(decay, y1, x * load(a, j1, w))
            y2, y3 = fma(decay, y2, x * load(a, j2, w)), fma(decay, y3, x * load(a, j3, w))
        if share > 0.0:
            y0, y1, y2, y3 = y0 / share, y1 / share, y2 / share, y3 / share


@kernel_internal
def add_fading_sums(a: Rows, decay: float, wraps: bool, lanes: int, D: Rows, grad: Rows) -> None:
    """Adds to grad what comes through Y, given the derivative D with respect to X, the upper triangle of H.

    D is used up: H becomes G.
    """
    d, N = a.shape
    share = -math.expm1(N // lanes * math.log(decay)) if wraps else 0.0
    rows = d * (d + 1) // 2
    for row in range(0, rows, 4):
        if lanes % WIDTH == 0:
            for s in range(0, lanes, WIDTH):
                _run_vectors_back(N, rows, decay, share, s, lanes, D, row)
        else:
            for s in range(lanes):
                _run_numbers_back(N, rows, decay, share, s, lanes, D, row)
    whole = N // WIDTH * WIDTH
    for start in range(0, whole, WIDTH):
        _add_products_of(a, D, start, WIDTH, grad)
    if whole < N:
        _add_products_of(a, D, whole, N - whole, grad)


@inline
def _run_numbers_back(
    N: int, rows: int, decay: float, share: float, s: int, lanes: int, D: Rows, row: int
) -> None:
    """G of the block s in four rows of D from `row` on, the last action first; share = 0: no cycle."""
    r1, r2, r3 = _four_places(rows, row)
    g0, g1, g2, g3 = 0.0, 0.0, 0.0, 0.0
    if share > 0.0:
        # What the windows of all later turns leave, from a first pass of the recursion.
        for w in range(N - lanes + s, -1, -lanes):
            g0, g1 = fma(decay, g0, D[row, w]), fma(decay, g1, D[r1, w])
            g2, g3 = fma(decay, g2, D[r2, w]), fma(decay, g3, D[r3, w])
        g0, g1, g2, g3 = g0 / share, g1 / share, g2 / share, g3 / share
    for back in range(N - lanes + s, -1, -lanes):
        w = column(back)
        h0, h1, h2, h3 = D[row, w], D[r1, w], D[r2, w], D[r3, w]
        D[row, w], D[r1, w], D[r2, w], D[r3, w] = g0, g1, g2, g3
        g0, g1, g2, g3 = fma(decay, g0, h0), fma(decay, g1, h1), fma(decay, g2, h2), fma(decay, g3, h3)


@inline
def _run_vectors_back(
    N: int, rows: int, decay: float, share: float, s: int, lanes: int, D: Rows, row: int
) -> None:
    """The same for WIDTH blocks from s on."""
    r1, r2, r3 = _four_places(rows, row)
    g0, g1, g2, g3 = zeros(), zeros(), zeros(), zeros()
    if share > 0.0:
        for w in range(N - lanes + s, -1, -lanes):
            g0, g1 = fma(decay, g0, load(D, row, w)), fma(decay, g1, load(D, r1, w))
            g2, g3 = fma(decay, g2, load(D, r2, w)), fma(decay, g3, load(D, r3, w))
        g0, g1, g2, g3 = g0 / share, g1 / share, g2 / share, g3 / share
    for w in range(N - lanes + s, -1, -lanes):
        h0, h1, h2, h3 = load(D, row, w), load(D, r1, w), load(D, r2, w), load(D, r3, w)
        store(D, row, w, g0)
        store(D, r1, w, g1)
        store(D, r2, w, g2)
        store(D, r3, w, g3)
        g0, g1, g2, g3 = fma(decay, g0, h0), fma(decay, g1, h1), fma(decay, g2, h2), fma(decay, g3, h3)


@inline
def _add_products_of(a: Rows, D: Rows, start: int, count: int, grad: Rows) -> None:
    """Adds G a of `count` actions to grad, G the symmetric matrices whose upper triangles are in D."""
    d, row = a.shape[0], 0
    for i in range(d):
        one = read(a, i, start, count)
        total = fma(read(D, row, start, count), one, read(grad, i, start, count))
        row += 1
        for j in range(i + 1, d):
            entry = read(D, row, start, count)
            total = fma(entry, read(a, j, start, count), total)
            write(grad, j, start, count, fma(entry, one, read(grad, j, start, count)))
            row += 1
        write(grad, i, start, count, total)


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
