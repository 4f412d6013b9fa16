"""Annealing: owns how arms of a block change.

A position gets an arm drawn with probabilities exp(worth / temperature), worths being those of `look`.
Without temperature it gets the best by exact worths of a few that are drawn so, and is looked at again only
after a change near it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import kernel, kernel_internal
from ._types import Flags, Integers, SingleRows, Vector
from .arithmetic import column
from .arm_catalogue import LAST, Catalogue
from .arm_looks import TRIED, Desk, best_of_tried, by_inverses, look, start, take, value_of
from .arm_screens import GROUP, propose
from .arm_worth import Poles, Shape
from .singles import single_rows

#: Sweeps without temperature behind those of annealing.
STILL = 2
#: After so many sweeps inverses are taken anew: each change adds a rounding.
RENEWED = 8


class Heat(NamedTuple):
    """The first and the last temperature of annealing, and in how many sweeps."""

    hot: float
    cold: float
    sweeps: int


class Draws(NamedTuple):
    """Scratch for arms that are drawn among K, and what is learned of them."""

    weights: SingleRows  # (groups+1, GROUP)
    gains: Vector  # (K,) the least that an arm was seen to lose at a position


@kernel
def make_draws(gains: Vector) -> Draws:
    """The gains are changed in place."""
    return Draws(
        weights=single_rows((gains.shape[0] + GROUP - 1) // GROUP + 1, GROUP),
        gains=gains,
    )


@kernel
def anneal(
    catalogue: Catalogue,
    poles: Poles,
    shape: Shape,
    block: Integers,
    head: int,
    first: int,
    count: int,
    among: int,
    heat: Heat,
    desk: Desk,
    draws: Draws,
    rng: np.random.Generator,
) -> tuple[float, int]:
    """So many positions of a block (n,) or cycle from `first` on are annealed, in place.

    Arms are drawn among the first of the catalogue, so many, but for positions near the ends of a block.
    Behind it come sweeps without temperature over the whole block but for its `head`, which stays. In
    the first of them the gains are learned. Returns the value, of a cycle that of a period,
    and how many looks without temperature there were.
    """
    n, temperature, seen = shape.n, heat.hot / catalogue.unit, 0
    cooling = (heat.cold / heat.hot) ** (1.0 / max(heat.sweeps - 1, 1))
    fresh = np.zeros(n, dtype=np.bool_)
    if count < n:
        for j in range(n):
            fresh[j] = not first - shape.m <= j < first + count + shape.m
    for sweep in range(heat.sweeps + STILL):
        still = sweep >= heat.sweeps
        if sweep == 0 or (by_inverses(desk) and sweep % RENEWED == 0):
            start(catalogue, poles, shape, block, desk)
        if still:
            first, count = head, n - head
        seen += _sweep(
            catalogue,
            poles,
            shape,
            block,
            first,
            count,
            among,
            temperature,
            still,
            sweep == heat.sweeps,
            fresh,
            desk,
            draws,
            rng,
        )
        temperature *= cooling if sweep < heat.sweeps - 1 else 1.0
    return value_of(poles, shape, desk), seen


@kernel_internal
def _sweep(
    catalogue: Catalogue,
    poles: Poles,
    shape: Shape,
    block: Integers,
    first: int,
    count: int,
    among: int,
    temperature: float,
    still: bool,
    notes: bool,
    fresh: Flags,
    desk: Desk,
    draws: Draws,
    rng: np.random.Generator,
) -> int:
    """So many positions from the first on are looked at; returns how many of them without temperature."""
    K, seen = desk.K, 0
    for turn in range(count):
        j = (first + turn) % shape.n
        if still and fresh[j]:
            continue
        inner = not still and (shape.wrap or shape.m <= j < shape.n - LAST)
        some = among if inner and by_inverses(desk) else K
        free = look(catalogue, poles, shape, block, j, some, desk)
        propose(desk.scores, some, temperature, draws.weights, desk.tried, TRIED if still else 1, rng)
        chosen = desk.tried[0]
        if still:
            chosen = best_of_tried(catalogue, poles, shape, block, j, free, desk)
            fresh[j], seen = True, seen + 1
            if notes:
                _note(desk.scores, block[j], catalogue.unit, draws.gains)
        if chosen != block[j]:
            take(catalogue, poles, shape, block, j, chosen, desk)
            _spoil(shape, fresh, j)
    return seen


@kernel_internal
def _spoil(shape: Shape, fresh: Flags, j: int) -> None:
    """Another arm is at j: what is near is to be looked at anew."""
    for s in range(j - shape.m, j + shape.m + 1):
        if (shape.wrap or 0 <= s < shape.n) and s % shape.n != j:
            fresh[s % shape.n] = False


@kernel_internal
def _note(table: SingleRows, now: int, unit: float, gains: Vector) -> None:
    """What arms lose at a position where one of them is now."""
    base, K = table[now // GROUP, now % GROUP], gains.shape[0]
    for g in range((K + GROUP - 1) // GROUP):
        for w in range(min(GROUP, K - g * GROUP)):
            k = column(g * GROUP + w)
            lost = (table[column(g), column(w)] - base) * unit
            gains[k] = lost if lost > gains[k] else gains[k]
