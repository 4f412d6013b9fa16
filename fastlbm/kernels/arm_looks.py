"""Looks at positions of a block: owns what is kept of the block between them, in one of two ways.

Where d <= 2m these are the inverses of its windows (`arm_inverses`), elsewhere inner products of its arms
(`arm_tables`, `arm_spans`, `arm_worth`): what takes less. Either tells what all arms are about worth at a
position, what a few are worth exactly, and what the block is worth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, Rows, SingleRows
from .arm_catalogue import Catalogue
from .arm_inverses import (
    Inverses,
    change_arm,
    forms_at,
    make_inverses,
    value_now,
    worths_of_few,
)
from .arm_screens import GROUP, Forms, make_forms, screen
from .arm_spans import Spans, fill_spans, make_spans, screen_spans, spans_pay
from .arm_starts import start_inverses
from .arm_tables import Tables, enter, look_up, make_tables
from .arm_worth import Arms, Poles, Room, Shape, fill_worths, prepare_at, value_of_block
from .singles import single_rows
from .vectors import WIDTH

#: Arms whose exact worth is told at a time.
TRIED = WIDTH


class Desk(NamedTuple):
    """Scratch for blocks or cycles of n arms; either the inverses or the tables are used."""

    K: int  # the first rows of the catalogue, which may be played
    columns: Rows  # see `columns_of`
    grouped: SingleRows  # see `group_arms`
    rows: Integers  # (n,) 0, 1, ...
    scores: SingleRows  # (groups, GROUP), flat by arms, in the unit of the catalogue
    tried: Integers  # (TRIED,)
    worth: Rows  # (n, n+TRIED)
    arms: Arms  # inner products of the n arms with themselves and with TRIED others
    tables: Tables  # without rows where inverses are used
    spans: Spans
    forms: Forms
    inverses: Inverses


@kernel
def make_desk(
    catalogue: Catalogue, columns: Rows, grouped: SingleRows, K: int, m: int, n: int, p: int
) -> Desk:
    """Of the catalogue the first K arms may be played."""
    c, d, spans = n + TRIED, catalogue.A.shape[1], spans_pay(catalogue.A.shape[1], m)
    rows = n if spans else 0
    arms = Arms(
        G=np.zeros((rows, c)),
        H=np.zeros((rows, c)),
        theta=np.zeros(c),
        squares=np.zeros(c),
        widths=np.zeros(c),
        beta=catalogue.beta,
    )
    return Desk(
        K=K,
        columns=columns,
        grouped=grouped,
        rows=np.arange(n),
        scores=single_rows((K + GROUP - 1) // GROUP, GROUP),
        tried=np.zeros(TRIED, dtype=np.int64),
        worth=np.zeros((n, c)),
        arms=arms,
        tables=make_tables(
            catalogue.theta, catalogue.squares, catalogue.widths, K, rows, catalogue.beta > 0.0
        ),
        spans=make_spans(m, p),
        forms=make_forms(catalogue.target, catalogue.V_inv),
        inverses=make_inverses(0 if spans else d, m, n, p),
    )


@inline
def by_inverses(desk: Desk) -> bool:
    """In which of the two ways it is."""
    return desk.inverses.d > 0


@kernel_internal
def start(catalogue: Catalogue, poles: Poles, shape: Shape, block: Integers, desk: Desk) -> None:
    """Another block (n,), of rows of the catalogue."""
    if by_inverses(desk):
        start_inverses(catalogue, poles, shape, block, desk.forms, desk.inverses)
    else:
        for j in range(shape.n):
            _enter(catalogue, block, j, desk)


@inline
def look(
    catalogue: Catalogue, poles: Poles, shape: Shape, block: Integers, j: int, K: int, desk: Desk, room: Room
) -> float:
    """The scores of the first K arms, where inverses are used, or of all of them at position j.

    Returns c^gamma, which exact worths by inner products need.
    """
    beta, unit, free = catalogue.beta, catalogue.unit, 0.0
    if by_inverses(desk):
        forms_at(catalogue, poles, shape, block[j], j, desk.forms, desk.inverses)
        screen(desk.grouped, desk.forms.small, catalogue.A.shape[1], beta > 0.0, K, desk.scores)
    else:
        free = prepare_at(desk.arms, poles, shape, desk.rows, desk.rows, j, room)
        fill_spans(desk.arms, poles, shape, desk.tables, j, free, room, desk.spans)
        screen_spans(desk.tables, desk.spans, beta, unit, desk.scores)
    return free


@inline
def best_of_tried(
    catalogue: Catalogue,
    poles: Poles,
    shape: Shape,
    block: Integers,
    j: int,
    free: float,
    desk: Desk,
    room: Room,
) -> int:
    """The best by exact worths of the arm of now and those that are tried, after `look`."""
    arms, tried, n, best, same = desk.arms, desk.tried, shape.n, 0, True
    tried[0] = block[j]
    for c in range(1, TRIED):
        same = same and tried[c] == tried[0]
    if same:
        return tried[0]
    worth, first = desk.worth[j], n
    if by_inverses(desk):
        worths_of_few(catalogue, poles, shape, tried, j, desk.forms, desk.inverses)
        worth, first = desk.inverses.worths, 0
    else:
        for c in range(TRIED):
            _describe(catalogue, arms, n + c, tried[c])
        look_up(desk.tables, shape, j, tried, arms)
        fill_worths(arms, poles, shape, desk.rows, j, free, n, room, desk.worth)
    for c in range(1, TRIED):
        if worth[first + c] > worth[first + best] + 1e-10 * abs(worth[first]):
            best = c
    return tried[best]


@inline
def take(
    catalogue: Catalogue, poles: Poles, shape: Shape, block: Integers, j: int, arm: int, desk: Desk
) -> None:
    """Another arm comes to position j, after `look`."""
    block[j] = arm
    if by_inverses(desk):
        change_arm(catalogue, poles, shape, arm, j, desk.forms, desk.inverses)
    else:
        _enter(catalogue, block, j, desk)


@kernel_internal
def value_of(poles: Poles, shape: Shape, desk: Desk, room: Room) -> float:
    """The value of the block, or of one period of the cycle."""
    if by_inverses(desk):
        return value_now(shape, poles.shifts.shape[0], desk.inverses)
    return value_of_block(desk.arms, poles, shape, desk.rows, desk.rows, room)


@kernel_internal
def _describe(catalogue: Catalogue, arms: Arms, at: int, arm: int) -> None:
    """Column `at` is an arm, but for its inner products."""
    arms.theta[at], arms.squares[at] = catalogue.theta[arm], catalogue.squares[arm]
    arms.widths[at] = catalogue.widths[arm]


@kernel_internal
def _enter(catalogue: Catalogue, block: Integers, j: int, desk: Desk) -> None:
    """The inner products of the arm at j."""
    _describe(catalogue, desk.arms, j, block[j])
    enter(desk.tables, desk.columns, catalogue.A, catalogue.VA, block, j, desk.K, desk.arms)
