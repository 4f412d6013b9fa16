"""Inner products of all arms with those of a block: owns the tables, and whose rows they have.

Row s has <a_s, a> for every arm a, and with a bonus <V^-1 a_s, a>: K d products, once for each arm that comes
to a position. Arms leave and come back and stand at several positions, so that a row stays for as long as no
other needs its place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, Rows, Vector
from .arithmetic import fma
from .arm_screens import GROUP
from .arm_worth import Arms, Shape
from .vectors import WIDTH, load, store, zeros

#: Rows beyond those of the positions.
SPARE = 8


class Tables(NamedTuple):
    """Rows of all arms; what is beyond the last arm is zero."""

    own: Rows  # (3, wide) <theta, a>, |a|^2, a^T V^-1 a
    rows: Rows  # (r, wide) <a_s, a>; none if the tables are not used
    under: Rows  # (r, wide) <V^-1 a_s, a>; none without a bonus
    held: Integers  # (r,) whose rows they are, -1: nobody's
    at: Integers  # (n,) the row of the arm at each position
    turn: Integers  # (1,) the row that was given last


@kernel
def columns_of(A: Rows) -> Rows:
    """The arms (K, d) in groups: rows from g d on have the d entries of each arm of group g, as columns.

    What is read one after the other lies so; zeros fill up the last group.
    """
    K, d = A.shape
    columns = np.zeros(((K + GROUP - 1) // GROUP * d, GROUP))
    for k in range(K):
        for i in range(d):
            columns[k // GROUP * d + i, k % GROUP] = A[k, i]
    return columns


@kernel
def make_tables(theta: Vector, squares: Vector, widths: Vector, K: int, n: int, bonus: bool) -> Tables:
    """Tables of the first K arms for blocks of n, or with n = 0 none."""
    # An odd number of groups: else many rows have the same places in the cache.
    wide, r = ((K + GROUP - 1) // GROUP | 1) * GROUP, n + SPARE if n > 0 else 0
    own = np.zeros((3, wide if n > 0 else 0))
    for k in range(K if n > 0 else 0):
        own[0, k], own[1, k], own[2, k] = theta[k], squares[k], widths[k]
    return Tables(
        own=own,
        rows=np.zeros((r, wide)),
        under=np.zeros((r if bonus else 0, wide)),
        held=np.full(r, -1, dtype=np.int64),
        at=np.zeros(n, dtype=np.int64),
        turn=np.zeros(1, dtype=np.int64),
    )


@inline
def _fill(columns: Rows, A: Rows, arm: int, rows: Rows, s: int) -> None:
    """Row s = the inner products of all arms with a row of A, see `columns_of`."""
    d, h, u, v = A.shape[1], WIDTH, 2 * WIDTH, 3 * WIDTH
    for g in range(columns.shape[0] // d):
        o, k = g * d, g * GROUP
        x, x_h, x_u, x_v = zeros(), zeros(), zeros(), zeros()
        for i in range(d):
            a = A[arm, i]
            x, x_h = fma(a, load(columns, o + i, 0), x), fma(a, load(columns, o + i, h), x_h)
            x_u, x_v = fma(a, load(columns, o + i, u), x_u), fma(a, load(columns, o + i, v), x_v)
        store(rows, s, k, x)
        store(rows, s, k + h, x_h)
        store(rows, s, k + u, x_u)
        store(rows, s, k + v, x_v)


@inline
def _fill_both(columns: Rows, A: Rows, VA: Rows, arm: int, rows: Rows, under: Rows, s: int) -> None:
    """The same of two tables, reading the arms once."""
    d, h = A.shape[1], WIDTH
    for half in range(2 * (columns.shape[0] // d)):
        j = half % 2 * 2 * WIDTH
        o, k = half // 2 * d, half // 2 * GROUP + j
        x, x_h, y, y_h = zeros(), zeros(), zeros(), zeros()
        for i in range(d):
            a, b = load(columns, o + i, j), load(columns, o + i, j + h)
            x, x_h = fma(A[arm, i], a, x), fma(A[arm, i], b, x_h)
            y, y_h = fma(VA[arm, i], a, y), fma(VA[arm, i], b, y_h)
        store(rows, s, k, x)
        store(rows, s, k + h, x_h)
        store(under, s, k, y)
        store(under, s, k + h, y_h)


@inline
def _row_of(tables: Tables, arm: int) -> int:
    """The row that an arm has; -1: none."""
    for s in range(tables.held.shape[0]):
        if tables.held[s] == arm:
            return s
    return -1


@inline
def _free_row(tables: Tables) -> int:
    """The next row that no position needs: there are more rows than positions."""
    r, at = tables.held.shape[0], tables.at
    s, needed = tables.turn[0], True
    while needed:
        s, needed = (s + 1) % r, False
        for t in range(at.shape[0]):
            needed = needed or at[t] == s
    tables.turn[0] = s
    return s


@kernel_internal
def enter(
    tables: Tables, columns: Rows, A: Rows, VA: Rows, block: Integers, j: int, K: int, arms: Arms
) -> None:
    """Another arm is at j: the row that it has, and its inner products with the block (n,) of rows of A.

    Of A the first K rows are in the tables.
    """
    arm, bonus = block[j], tables.under.shape[0] > 0
    s = _row_of(tables, arm)
    if s < 0:
        s = _free_row(tables)
        tables.held[s] = arm
        if bonus:
            _fill_both(columns, A, VA, arm, tables.rows, tables.under, s)
        else:
            _fill(columns, A, arm, tables.rows, s)
    tables.at[j] = s
    for t in range(block.shape[0]):
        x, y, other = 0.0, 0.0, block[t]
        if other < K:
            x = tables.rows[s, other]
            y = tables.under[s, other] if bonus else 0.0
        else:
            for i in range(A.shape[1]):
                x += A[arm, i] * A[other, i]
                y += VA[arm, i] * A[other, i]
        arms.G[j, t], arms.G[t, j] = x, x
        arms.H[j, t], arms.H[t, j] = y, y


@kernel_internal
def look_up(tables: Tables, shape: Shape, j: int, tried: Integers, arms: Arms) -> None:
    """The inner products of arms that may come to j with those around it, in the columns from n on."""
    for s in range(2 * shape.m):
        t = j - shape.m + s + (s >= shape.m)
        if shape.wrap or 0 <= t < shape.n:
            t %= shape.n
            for c in range(tried.shape[0]):
                arms.G[t, shape.n + c] = tables.rows[tables.at[t], tried[c]]
                if tables.under.shape[0] > 0:
                    arms.H[t, shape.n + c] = tables.under[tables.at[t], tried[c]]
