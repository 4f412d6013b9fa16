"""What a search by rounds works with: owns the arms that it may play, what it found and spent.

`annealed` is the one way in which it changes a block, and `stretch_of` says where.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import kernel_internal, kernel_nested
from ._types import Integers, SingleRows, Vector
from .arm_annealing import Draws, Heat, anneal
from .arm_catalogue import Catalogue
from .arm_looks import Desk, by_inverses, make_desk
from .arm_search import NEVER
from .arm_worth import Poles, Room, Shape

#: Blocks that are kept, and cycles.
KEPT = 48
#: Temperatures for blocks that are not annealed: how far what is tried may be from the best.
STILL = (0.005, 0.005)


class RoundEffort(NamedTuple):
    """How hard to search."""

    budget: float  # seconds, about
    cycles: float  # of the budget, for cycles; 0: none
    mixed: float  # of the cycles, those that begin with the arms of two others
    slow: float  # of the budget, for cycles and whole blocks; 0: none
    sweeps: int  # how often each position of a cycle is drawn
    stretch: int  # the same of a stretch
    hot: float  # the first temperature of a stretch
    cold: float  # and the last one
    islands: int = 0  # that are improved side by side, see `arm_islands`; 0: rounds
    programs: float = 0.0  # of rounds, those with a program
    few: int = 0  # arms of a dynamic program, K at the most; 0: none
    program: float = 0.0  # seconds that it takes
    width: int = 0  # prefixes of a beam; 0: none
    beam: float = 0.0  # seconds that it takes
    stop: Integers = NEVER  # (1,) not 0: end at once, with whatever was found


class Ground(NamedTuple):
    """Arms to search among, and what that costs."""

    catalogue: Catalogue
    grouped: SingleRows  # see `group_arms`
    K: int  # of the catalogue the first so many may be played
    draws: Draws  # changed in place
    visit: float  # seconds for a look at a position, about
    exact: float  # the same with exact worths


class Found(NamedTuple):
    """Different blocks or cycles, changed in place: the best that were found."""

    arms: Integers  # (KEPT, n)
    lengths: Integers  # (KEPT,)
    values: Vector  # (KEPT,) -inf where there is none


class State(NamedTuple):
    """A search at work, changed in place."""

    cycles: Found
    blocks: Found
    unit: float  # of temperatures
    room: Room
    spent: Vector  # (1,) seconds, about


@kernel_internal
def keep(found: Found, block: Integers, value: float) -> None:
    """The block takes the place of the worst one that is kept, if it is better and none of them."""
    worst, n = 0, block.shape[0]
    for q in range(KEPT):
        if found.lengths[q] == n and abs(found.values[q] - value) <= 1e-9 * abs(value):
            return  # the same, perhaps at another phase
        if found.values[q] < found.values[worst]:
            worst = q
    if value > found.values[worst]:
        for t in range(n):
            found.arms[worst, t] = block[t]
        found.lengths[worst] = n
        found.values[worst] = value


@kernel_nested
def make_found(n: int) -> Found:
    return Found(
        arms=np.zeros((KEPT, n), dtype=np.int64),
        lengths=np.zeros(KEPT, dtype=np.int64),
        values=np.full(KEPT, -math.inf),
    )


@kernel_internal
def known(found: Found, n: int) -> int:
    """How many of a length are kept."""
    count = 0
    for q in range(KEPT):
        count += found.lengths[q] == n
    return count


@kernel_internal
def one_of(found: Found, n: int, best: int, rng: np.random.Generator) -> int:
    """The place of one of the so many best of a length."""
    rank = int(min(known(found, n), best) * rng.random())
    for q in range(KEPT):
        better = 0
        for s in range(KEPT):
            better += found.lengths[s] == n and found.values[s] > found.values[q]
        if found.lengths[q] == n and better == rank:
            return q
    return 0


@kernel_internal
def unit_of(catalogue: Catalogue, poles: Poles) -> float:
    """About what a step of a good cycle is worth: half of the most that an arm earns."""
    free = 0.0
    for i in range(poles.shifts.shape[0]):
        free += poles.weights[i] / poles.shifts[i]
    return 0.5 * catalogue.unit * abs(free)


@kernel_nested
def desk_of(ground: Ground, m: int, n: int, poles: Poles) -> Desk:
    """Scratch for blocks or cycles of n arms of a ground."""
    p = poles.shifts.shape[0]
    return make_desk(ground.catalogue, ground.grouped, ground.K, m, n, p)


@kernel_nested
def annealed(
    ground: Ground,
    poles: Poles,
    shape: Shape,
    block: Integers,
    head: int,
    first: int,
    count: int,
    among: Ground,
    between: tuple[float, float],
    sweeps: int,
    desk: Desk,
    state: State,
    rng: np.random.Generator,
) -> float:
    """Anneals a block or cycle between two temperatures; returns its value, of a cycle that of a step.

    Arms are drawn among those of another ground, see `anneal`.
    """
    heat = Heat(hot=between[0] * state.unit, cold=between[1] * state.unit, sweeps=sweeps)
    value, seen = anneal(
        ground.catalogue, poles, shape, block, head, first, count, among.K, heat, desk, ground.draws, rng
    )
    visit = among.visit if by_inverses(desk) else ground.visit
    state.spent[0] += count * sweeps * visit + seen * ground.exact
    return value / shape.n if shape.wrap else value


@kernel_internal
def stretch_of(n: int, m: int, head: int, long: float, rng: np.random.Generator) -> tuple[int, int]:
    """The first position of a stretch, and how many they are; those at the ends are as likely as others.

    Of stretches a share `long` are the whole block.
    """
    n -= head
    count = min(int((m + 2) * (1.0 + rng.random())), n)
    if rng.random() < long:
        count = n
    return head + min(max(int((n - count + 1 + 2 * m) * rng.random()) - m, 0), n - count), count
