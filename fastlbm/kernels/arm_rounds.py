"""The search for a best block of one large set by exact worths: owns its phases and what is kept.

Cycles of m+1 and m+2 arms first, by annealing: each position in turn gets an arm drawn with probabilities
exp(worth / temperature). Some begin with random arms, others with those of two good cycles. Blocks that
repeat the best cycle, from each of its phases on, and those of a beam (`arm_beams`) are improved arm by arm,
and the best block is annealed as a whole, slowly. Then rounds. In some, a dynamic program makes the best
block, ends and all, of a few arms: those of the best blocks and others that would lose least in them. In the
others a stretch of one of the best blocks is annealed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import kernel, kernel_internal, kernel_nested
from ._types import Integers, Rows, SingleRows, Vector
from .arm_annealing import Draws, Heat, anneal
from .arm_beams import KINDS, kinds_of, make_side, search_beam
from .arm_catalogue import Catalogue, arms_of
from .arm_choice import add_weights, choose
from .arm_looks import Desk, by_inverses, make_desk
from .arm_programs import Program, make_program, plan_of_few
from .arm_search import NEVER
from .arm_worth import Poles, Room, Shape, make_room
from .search import largest_at

#: Blocks that are kept, and cycles.
KEPT = 48
#: The first and the last temperature of cycles from nothing, of those from two others and of whole blocks, in
#: what a step of a good cycle is worth.
FRESH, MIXED, WHOLE = (0.15, 0.02), (0.05, 0.02), (0.1, 0.02)
#: The last one of stretches.
COLD = 0.01
#: The same for blocks that are not annealed: how far what is tried may be from the best.
STILL = (0.005, 0.005)
#: How many cycles of a length are known before others are mixed; sweeps of these.
ENOUGH, MIXED_SWEEPS = 6, 2
#: How many of the best cycles others come of.
PARENTS = 12
#: After so many cycles, a length whose best one is worth less than this of the best is not looked for.
TRIES, NEAR = 16, 0.95
#: How often a whole block is annealed slowly, if that pays the first time.
SLOW = 2
#: How much an arm may lose in a block to be drawn for a program, in what a step of a good cycle is worth.
LOOSE = 0.03
#: Of the blocks of a beam, those that are improved arm by arm.
GROWN = 8
#: Programs of the arms of cycles; how many in vain come at first.
FIRST, FAILED = 2, 3
#: Of the stretches, those that are whole blocks; of the blocks that they are of, those that are the best one.
LONG, BEST = 0.3, 0.5


class RoundEffort(NamedTuple):
    """How hard to search."""

    budget: float  # seconds, about
    cycles: float  # of the budget, for cycles; 0: none
    mixed: float  # of the cycles, those that begin with the arms of two others
    slow: float  # of the budget, for cycles and whole blocks; 0: none
    sweeps: int  # how often each position of a cycle is drawn
    stretch: int  # the same of a stretch
    hot: float  # the first temperature of a stretch
    programs: float = 0.0  # of rounds, those with a program
    few: int = 0  # arms of a dynamic program, K at the most; 0: none
    program: float = 0.0  # seconds that it takes
    width: int = 0  # prefixes of a beam; 0: none
    beam: float = 0.0  # seconds that it takes
    stop: Integers = NEVER  # (1,) not 0: end at once, with whatever was found


class Ground(NamedTuple):
    """Arms to search among, and what that costs."""

    catalogue: Catalogue
    columns: Rows  # see `columns_of`
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
def _known(found: Found, n: int) -> int:
    """How many of a length are kept."""
    count = 0
    for q in range(KEPT):
        count += found.lengths[q] == n
    return count


@kernel_internal
def _one_of(found: Found, n: int, best: int, rng: np.random.Generator) -> int:
    """The place of one of the so many best of a length."""
    rank = int(min(_known(found, n), best) * rng.random())
    for q in range(KEPT):
        better = 0
        for s in range(KEPT):
            better += found.lengths[s] == n and found.values[s] > found.values[q]
        if found.lengths[q] == n and better == rank:
            return q
    return 0


@kernel_internal
def _mix(found: Found, cycle: Integers, m: int, rng: np.random.Generator) -> None:
    """A cycle of the arms of two good ones; of m+1 arms, in any order the same, some of all of theirs."""
    n, left = cycle.shape[0], 0
    x, y = found.arms[_one_of(found, n, PARENTS, rng)], found.arms[_one_of(found, n, 2 * PARENTS, rng)]
    turn, need = int(n * rng.random()), n if n == m + 1 else 0
    for t in range(n):
        cycle[t] = x[t] if need > 0 or rng.random() < 0.5 else y[(t + turn) % n]
        left += 1 if _holds(x, y[t], n) else 2
    for t in range(2 * n if need > 0 else 0):
        arm = x[t] if t < n else y[t - n]
        if t < n or not _holds(x, arm, n):
            if rng.random() * left < need:
                need -= 1
                cycle[need] = arm
            left -= 1


@kernel_internal
def _holds(cycle: Integers, arm: int, n: int) -> bool:
    found = False
    for t in range(n):
        found = found or cycle[t] == arm
    return found


@kernel_internal
def _unit_of(catalogue: Catalogue, poles: Poles) -> float:
    """About what a step of a good cycle is worth: half of the most that an arm earns."""
    free = 0.0
    for i in range(poles.shifts.shape[0]):
        free += poles.weights[i] / poles.shifts[i]
    return 0.5 * catalogue.unit * abs(free)


@kernel_nested
def _desk_of(ground: Ground, m: int, n: int, poles: Poles) -> Desk:
    """Scratch for blocks or cycles of n arms of a ground."""
    p = poles.shifts.shape[0]
    return make_desk(ground.catalogue, ground.columns, ground.grouped, ground.K, m, n, p)


@kernel_nested
def _anneal(
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
    draws, room = ground.draws, state.room
    value, seen = anneal(
        ground.catalogue, poles, shape, block, head, first, count, among.K, heat, desk, draws, room, rng
    )
    visit = among.visit if by_inverses(desk) else ground.visit
    state.spent[0] += count * sweeps * visit + seen * ground.exact
    return value / shape.n if shape.wrap else value


@kernel_nested
def _find_cycles(
    ground: Ground, poles: Poles, m: int, state: State, effort: RoundEffort, rng: np.random.Generator
) -> None:
    """Fills the cycles of the state."""
    K, turn, best = ground.K, 0, np.full(2, -math.inf)
    desks = _desk_of(ground, m, m + 1, poles), _desk_of(ground, m, m + 2, poles)
    room = np.zeros(m + 2, dtype=np.int64)
    while (state.spent[0] < effort.cycles * effort.budget or turn < 2) and effort.stop[0] == 0:
        other = turn % 2
        if turn > TRIES and best[other] < NEAR * best[1 - other]:
            other = 1 - other
        turn += 1
        n = m + 1 + other
        cycle, between, sweeps = room[:n], MIXED, MIXED_SWEEPS
        if _known(state.cycles, n) < ENOUGH or rng.random() >= effort.mixed:
            for t in range(n):
                cycle[t] = int(K * rng.random())
            between, sweeps = FRESH, effort.sweeps
        else:
            _mix(state.cycles, cycle, m, rng)
        value = _anneal(
            ground,
            poles,
            Shape(m, n, True),
            cycle,
            0,
            0,
            n,
            ground,
            between,
            sweeps,
            desks[other],
            state,
            rng,
        )
        best[other] = max(best[other], value)
        keep(state.cycles, cycle, value)


@kernel_nested
def _anneal_slowly(
    narrow: Ground,
    poles: Poles,
    shape: Shape,
    upto: float,
    block: Integers,
    state: State,
    rng: np.random.Generator,
) -> None:
    """block (n,): the best one, annealed among the narrow arms, as slowly as what may be spent allows."""
    m, n = shape.m, shape.n
    own = _desk_of(narrow, m, n, poles)
    top, cycle = largest_at(state.blocks.values), largest_at(state.cycles.values)
    for t in range(n):
        block[t] = state.blocks.arms[top, t]
        if block[t] >= narrow.K:
            block[t] = state.cycles.arms[cycle, t % state.cycles.lengths[cycle]]
    sweeps = max(int((upto - state.spent[0] - 3.0 * n * narrow.exact) / (n * narrow.visit)), 4)
    _anneal(narrow, poles, shape, block, 0, 0, n, narrow, WHOLE, sweeps, own, state, rng)


@kernel_nested
def _program(
    wide: Ground,
    poles: Poles,
    program: Program,
    of_cycles: int,
    block: Integers,
    state: State,
    rng: np.random.Generator,
) -> None:
    """A block of few arms: of the best cycle and one more, or of the best block and one more if that is 0."""
    few, weights = (
        np.empty(program.table.shape[0], dtype=np.int64),
        np.full(wide.draws.gains.shape[0], -math.inf),
    )
    found, n = state.blocks, block.shape[0]
    first, second = _one_of(found, n, 1, rng), _one_of(found, n, 8, rng)
    if of_cycles > 0:
        found, first = state.cycles, largest_at(state.cycles.values)
        second = _one_of(found, found.lengths[first], of_cycles + 1, rng)
    add_weights(weights, found.arms[first], found.lengths[first], 1.0)
    add_weights(weights, found.arms[second], found.lengths[second], 0.5)
    choose(wide.catalogue, weights, wide.draws.gains, LOOSE * state.unit, few, rng)
    arms, everything = arms_of(wide.catalogue, few), np.arange(few.shape[0])
    plan = plan_of_few(arms, poles, program, everything, state.room)[0]
    for t in range(n):
        block[t] = few[plan[t]]


@kernel_nested
def _grown(
    wide: Ground, narrow: Ground, poles: Poles, m: int, n: int, width: int, rng: np.random.Generator
) -> Integers:
    """Some blocks (k, n) of a beam."""
    alike, kinds = np.zeros(wide.K, dtype=np.int64), kinds_of(narrow.catalogue.A, KINDS)
    ends = make_side(wide.grouped, wide.catalogue.size, alike)
    inner = make_side(narrow.grouped, narrow.catalogue.size, kinds)
    return search_beam(wide.catalogue, ends, inner, poles, m, n, width, rng)[:GROWN]


@kernel_internal
def _stretch(n: int, m: int, head: int, rng: np.random.Generator) -> tuple[int, int]:
    """The first position of a stretch, and how many they are; those at the ends are as likely as others."""
    n -= head
    count = min(int((m + 2) * (1.0 + rng.random())), n)
    if rng.random() < LONG:
        count = n
    return head + min(max(int((n - count + 1 + 2 * m) * rng.random()) - m, 0), n - count), count


@kernel
def search_rounds(
    wide: Ground,
    narrow: Ground,
    poles: Poles,
    m: int,
    past: Integers,
    warm: Integers,
    effort: RoundEffort,
    rng: np.random.Generator,
) -> tuple[Integers, float]:
    """The best block (n,) that was found, and its value; `warm` (k, n) are blocks to start from.

    A block begins with the rows `past` (0,) or (m,) of the catalogue. The narrow arms are the first of all:
    cycles have no others, nor have blocks in their midst while they are annealed or grow.
    """
    n, head, p = warm.shape[1], past.shape[0], poles.shifts.shape[0]
    shape, block = Shape(m, n, False), np.empty(n, dtype=np.int64)
    state = State(
        cycles=make_found(m + 2),
        blocks=make_found(n),
        unit=_unit_of(wide.catalogue, poles),
        room=make_room(m, p),
        spent=np.zeros(1),
    )
    desk = _desk_of(wide, m, n, poles)
    cycles, blocks = state.cycles, state.blocks
    if effort.cycles > 0.0:
        _find_cycles(narrow, poles, m, state, effort, rng)
    top, given = largest_at(cycles.values), warm
    if effort.width > 0 and head == 0 and effort.stop[0] == 0:
        given = np.concatenate((warm, _grown(wide, narrow, poles, m, n, effort.width, rng)))
        state.spent[0] += effort.beam
    for s in range(given.shape[0] + cycles.lengths[top]):
        phase = s - given.shape[0]
        for t in range(n):
            if phase < 0:
                block[t] = given[s, t]
            else:
                block[t] = cycles.arms[top, (t + phase) % cycles.lengths[top]]
        for t in range(head):
            block[t] = past[t]
        keep(
            blocks,
            block,
            _anneal(wide, poles, shape, block, head, head, n - head, wide, STILL, 0, desk, state, rng),
        )
    programs, failed, slow, turn = effort.few > 0 and head == 0, 0, 0, 0
    program = make_program(max(effort.few, 1), m, n if programs else m)
    while state.spent[0] < effort.budget and effort.stop[0] == 0:
        before = blocks.values[largest_at(blocks.values)]
        first, count, between, sweeps = head, n - head, STILL, 0
        if programs and (failed < FAILED or rng.random() < effort.programs):
            turn += 1
            _program(wide, poles, program, turn if turn <= FIRST else 0, block, state, rng)
            state.spent[0] += effort.program
        elif slow < SLOW and head == 0 and effort.slow > 0.0:
            slow += 1
            upto = state.spent[0] + (effort.slow - effort.cycles) / SLOW * effort.budget
            _anneal_slowly(narrow, poles, shape, upto, block, state, rng)
        else:
            q = _one_of(blocks, n, 1 if rng.random() < BEST else 5, rng)
            for t in range(n):
                block[t] = blocks.arms[q, t]
            first, count = _stretch(n, m, head, rng)
            between, sweeps = (effort.hot, COLD), effort.stretch
        value = _anneal(
            wide, poles, shape, block, head, first, count, narrow, between, sweeps, desk, state, rng
        )
        keep(blocks, block, value)
        if value <= before + 1e-9 * abs(before):
            # Programs are tried again and again while they find better blocks, and so is slow annealing.
            failed += sweeps == 0 and slow == 0
            slow = SLOW if sweeps == 0 and slow > 0 else slow
    return blocks.arms[largest_at(blocks.values)].copy(), blocks.values[largest_at(blocks.values)]
