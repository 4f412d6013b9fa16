"""Looks at positions of a block: owns what is kept of the block between them, in one of two ways.

Where d <= 2m these are the inverses of its windows (`arm_inverses`), elsewhere inner products of its arms
(`arm_tables`, `arm_spans`, `arm_worth`): what takes less. Either tells what all arms are about worth at a
position, what a few are worth exactly, and what the block is worth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, SingleRows
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
from .arm_spans import Spans, look_by_spans, make_spans, spans_pay
from .arm_starts import start_inverses
from .arm_tables import Tables, enter, make_tables
from .arm_windows import Windows, make_windows, value_by_windows, worths_of_tried
from .arm_worth import Arms, Poles, Shape
from .singles import single_rows
from .vectors import WIDTH

#: Arms whose exact worth is told at a time.
TRIED = WIDTH


class Desk(NamedTuple):
    """Scratch for blocks or cycles of n arms; either the inverses or the tables are used."""

    K: int  # the first rows of the catalogue, which may be played
    grouped: SingleRows  # see `group_arms`
    scores: SingleRows  # (groups, GROUP), flat by arms, in the unit of the catalogue
    tried: Integers  # (TRIED,)
    arms: Arms  # inner products of the n arms with those nearby; the last row and column are zeros
    tables: Tables  # without rows where inverses are used
    windows: Windows
    spans: Spans
    forms: Forms
    inverses: Inverses


@kernel
def make_desk(catalogue: Catalogue, grouped: SingleRows, K: int, m: int, n: int, p: int) -> Desk:
    """Of the catalogue the first K arms may be played."""
    d, spans = catalogue.A.shape[1], spans_pay(catalogue.A.shape[1], m)
    rows = n + 1 if spans else 0
    arms = Arms(
        G=np.zeros((rows, rows)),
        H=np.zeros((rows, rows)),
        theta=np.zeros(rows),
        squares=np.zeros(rows),
        widths=np.zeros(rows),
        beta=catalogue.beta,
    )
    return Desk(
        K=K,
        grouped=grouped,
        scores=single_rows((K + GROUP - 1) // GROUP, GROUP),
        tried=np.zeros(TRIED, dtype=np.int64),
        arms=arms,
        tables=make_tables(catalogue, K, n if spans else 0),
        windows=make_windows(d, m if spans else 0, p),
        spans=make_spans(m if spans else 0, p),
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
            enter(catalogue, desk.grouped, shape, block, j, desk.tables, desk.arms)


@inline
def look(
    catalogue: Catalogue, poles: Poles, shape: Shape, block: Integers, j: int, K: int, desk: Desk
) -> float:
    """The scores of the first K arms, where inverses are used, or of all of them at position j.

    Returns c^gamma, which exact worths by inner products need.
    """
    beta, free = catalogue.beta, 0.0
    if by_inverses(desk):
        forms_at(catalogue, poles, shape, block[j], j, desk.forms, desk.inverses)
        screen(desk.grouped, desk.forms.small, catalogue.A.shape[1], beta > 0.0, K, desk.scores)
    else:
        free = look_by_spans(desk.arms, poles, shape, desk.tables, j, desk.windows, desk.spans, desk.scores)
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
) -> int:
    """The best by exact worths of the arm of now and those that are tried, after `look`."""
    tried, best, same = desk.tried, 0, True
    tried[0] = block[j]
    for c in range(1, TRIED):
        same = same and tried[c] == tried[0]
    if same:
        return tried[0]
    if by_inverses(desk):
        worths_of_few(catalogue, poles, shape, tried, j, desk.forms, desk.inverses)
        worth = desk.inverses.worths
    else:
        windows = desk.windows
        worths_of_tried(catalogue, desk.arms, poles, shape, block, tried, j, free, windows)
        worth = windows.tried[windows.tried.shape[0] - 1]
    for c in range(1, TRIED):
        if worth[c] > worth[best] + 1e-10 * abs(worth[0]):
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
        enter(catalogue, desk.grouped, shape, block, j, desk.tables, desk.arms)


@kernel_internal
def value_of(poles: Poles, shape: Shape, desk: Desk) -> float:
    """The value of the block, or of one period of the cycle."""
    if by_inverses(desk):
        return value_now(shape, poles.shifts.shape[0], desk.inverses)
    return value_by_windows(desk.arms, poles, shape, desk.windows)
