"""Inner products of all arms with those of a block: owns the tables, and whose rows they have.

Row s has <a_s, a> for every arm a, and with a bonus <V^-1 a_s, a>: K d products, once for each arm that comes
to a position. Arms leave and come back and stand at several positions, so that a row stays for as long as no
other needs its place. Single precision is enough to look at arms, see `arm_screens`; the arms of a block have
their inner products with those nearby in double precision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, SingleRows, Vector
from .arithmetic import column, fma
from .arm_catalogue import Catalogue
from .arm_screens import GROUP
from .arm_worth import Arms, Shape
from .singles import SINGLES, load_singles, single_at, single_rows, single_zeros, store_singles
from .vectors import WIDTH, read, total, zeros

#: Rows beyond those of the positions.
SPARE = 8


class Tables(NamedTuple):
    """Rows of all arms, in units: inner products in that of `units`; what is beyond the last arm is zero."""

    units: Vector  # (3,) of inner products, of <theta, a>, and of inner products under V^-1
    own: SingleRows  # (3, wide) <theta, a>, |a|^2, a^T V^-1 a
    rows: SingleRows  # (r, wide) <a_s, a>; none if the tables are not used
    under: SingleRows  # (r, wide) <V^-1 a_s, a>; none without a bonus
    held: Integers  # (r,) whose rows they are, -1: nobody's
    row_of: Integers  # (arms,) the row that an arm has, -1: none
    at: Integers  # (n,) the row of the arm at each position, -1: none yet
    needed: Integers  # (r,) by how many positions
    turn: Integers  # (1,) the row that was given last
    entering: SingleRows  # (2, d) scratch: a_s and V^-1 a_s


@kernel
def make_tables(catalogue: Catalogue, K: int, n: int) -> Tables:
    """Tables of the first K arms for blocks of n, or with n = 0 none."""
    bonus, r, d = catalogue.beta > 0.0, n + SPARE if n > 0 else 0, catalogue.A.shape[1]
    # Two groups are looked at a time. An odd number: else many rows have the same places in the cache.
    wide = ((K + 2 * GROUP - 1) // (2 * GROUP) * 2 + 1) * GROUP if n > 0 else 0
    units, own = np.array([catalogue.size**2, catalogue.unit, 0.0]), single_rows(3, wide)
    for k in range(catalogue.widths.shape[0]):
        units[2] = max(units[2], catalogue.widths[k])
    if units[2] == 0.0:
        units[2] = 1.0
    for k in range(K if n > 0 else 0):
        own[0, k], own[1, k] = catalogue.theta[k] / units[1], catalogue.squares[k] / units[0]
        own[2, k] = catalogue.widths[k] / units[2]
    return Tables(
        units=units,
        own=own,
        rows=single_rows(r, wide),
        under=single_rows(r if bonus else 0, wide),
        held=np.full(r, -1, dtype=np.int64),
        row_of=np.full(catalogue.A.shape[0] if n > 0 else 0, -1, dtype=np.int64),
        at=np.full(n, -1, dtype=np.int64),
        needed=np.zeros(r, dtype=np.int64),
        turn=np.zeros(1, dtype=np.int64),
        entering=single_rows(2, d),
    )


@inline
def _fill(columns: SingleRows, tables: Tables, s: int) -> None:
    """Row s = the inner products of all arms with that which enters, see `group_arms`."""
    h, a, d, rows = SINGLES, tables.entering, tables.entering.shape[1], tables.rows
    for g in range(columns.shape[0] // d):
        o, k = g * d, g * GROUP
        x, x_h = single_zeros(), single_zeros()
        for i in range(d):
            y = single_at(a, 0, i)
            x = fma(y, load_singles(columns, o + i, 0), x)
            x_h = fma(y, load_singles(columns, o + i, h), x_h)
        store_singles(rows, s, k, x)
        store_singles(rows, s, k + h, x_h)


@inline
def _fill_both(columns: SingleRows, tables: Tables, s: int) -> None:
    """The same of two tables, reading the arms once."""
    h, a, d, rows, under = SINGLES, tables.entering, tables.entering.shape[1], tables.rows, tables.under
    for g in range(columns.shape[0] // d):
        o, k = g * d, g * GROUP
        x, x_h, y, y_h = single_zeros(), single_zeros(), single_zeros(), single_zeros()
        for i in range(d):
            b, c = load_singles(columns, o + i, 0), load_singles(columns, o + i, h)
            u, v = single_at(a, 0, i), single_at(a, 1, i)
            x, x_h, y, y_h = fma(u, b, x), fma(u, c, x_h), fma(v, b, y), fma(v, c, y_h)
        store_singles(rows, s, k, x)
        store_singles(rows, s, k + h, x_h)
        store_singles(under, s, k, y)
        store_singles(under, s, k + h, y_h)


@inline
def _new_row(catalogue: Catalogue, columns: SingleRows, tables: Tables, arm: int) -> int:
    """The next row that no position needs, of which there are some, becomes that of an arm."""
    s, d = tables.turn[0], catalogue.A.shape[1]
    s = s + 1 if s + 1 < tables.held.shape[0] else 0
    while tables.needed[s] > 0:
        s = s + 1 if s + 1 < tables.held.shape[0] else 0
    tables.turn[0] = s
    if tables.held[s] >= 0:
        tables.row_of[tables.held[s]] = -1
    tables.held[s], tables.row_of[arm] = arm, s
    x, y = 1.0 / catalogue.size, catalogue.size / tables.units[2]
    for i in range(d):
        tables.entering[0, i], tables.entering[1, i] = catalogue.A[arm, i] * x, catalogue.VA[arm, i] * y
    if tables.under.shape[0] > 0:
        _fill_both(columns, tables, s)
    else:
        _fill(columns, tables, s)
    return s


@kernel_internal
def enter(
    catalogue: Catalogue,
    columns: SingleRows,
    shape: Shape,
    block: Integers,
    j: int,
    tables: Tables,
    arms: Arms,
) -> None:
    """Another arm is at j of a block (n,): the row that it has, and its inner products with those nearby."""
    A, VA, arm, m, n, d = catalogue.A, catalogue.VA, column(block[j]), shape.m, shape.n, catalogue.A.shape[1]
    s = tables.row_of[arm]
    if tables.at[j] >= 0:
        tables.needed[tables.at[j]] -= 1
    if s < 0:
        s = _new_row(catalogue, columns, tables, arm)
    tables.at[j] = s
    tables.needed[s] += 1
    arms.theta[j], arms.squares[j] = catalogue.theta[arm], catalogue.squares[arm]
    arms.widths[j] = catalogue.widths[arm]
    for t in range(j - m, j + m + 1):
        at = t
        if t < 0 or t >= n:
            at = t + n if t < 0 else t - n
            if not shape.wrap:
                continue
        other = column(block[at])
        x, y = zeros(), zeros()
        for i in range(0, d, WIDTH):
            a = read(A, other, i, d - i)
            x = fma(read(A, arm, i, d - i), a, x)
            if arms.beta > 0.0:
                y = fma(read(VA, arm, i, d - i), a, y)
        arms.G[j, at], arms.G[at, j] = total(x), total(x)
        if arms.beta > 0.0:
            arms.H[j, at], arms.H[at, j] = total(y), total(y)
