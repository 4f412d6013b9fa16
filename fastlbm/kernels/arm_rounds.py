"""The search for a best block of one large set by exact worths: owns its phases and what is kept.

Cycles of m+1 and m+2 arms first, by annealing: each position in turn gets an arm drawn with probabilities
exp(worth / temperature). Some begin with random arms, others with those of two good cycles. Blocks that
repeat the best cycle, from each of its phases on, and those of a beam (`arm_beams`) are improved arm by arm.
Then some of them side by side, see `arm_islands`, or rounds. There the best block is annealed as a whole,
slowly; in some rounds a dynamic program makes the best block, ends and all, of a few arms: those of the best
blocks and others that would lose least in them; and in the others a stretch of one of the best blocks is
annealed.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import kernel, kernel_internal, kernel_nested
from ._types import Integers
from .arm_beams import KINDS, kinds_of, make_side, search_beam
from .arm_catalogue import arms_of
from .arm_choice import add_weights, choose
from .arm_grounds import (
    STILL,
    Found,
    Ground,
    RoundEffort,
    State,
    annealed,
    desk_of,
    keep,
    known,
    make_found,
    one_of,
    stretch_of,
    unit_of,
)
from .arm_islands import improve_islands
from .arm_looks import Desk
from .arm_programs import Program, make_program, plan_of_few
from .arm_worth import Poles, Shape, make_room
from .search import largest_at

#: The first and the last temperature of cycles from nothing, of those from two others and of whole blocks, in
#: what a step of a good cycle is worth.
FRESH, MIXED, WHOLE = (0.15, 0.02), (0.05, 0.02), (0.1, 0.02)
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


@kernel_internal
def _mix(found: Found, cycle: Integers, m: int, rng: np.random.Generator) -> None:
    """A cycle of the arms of two good ones; of m+1 arms, in any order the same, some of all of theirs."""
    n, left = cycle.shape[0], 0
    x, y = found.arms[one_of(found, n, PARENTS, rng)], found.arms[one_of(found, n, 2 * PARENTS, rng)]
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


@kernel_nested
def _find_cycles(
    ground: Ground, poles: Poles, m: int, state: State, effort: RoundEffort, rng: np.random.Generator
) -> None:
    """Fills the cycles of the state."""
    K, turn, best = ground.K, 0, np.full(2, -math.inf)
    desks = desk_of(ground, m, m + 1, poles), desk_of(ground, m, m + 2, poles)
    room = np.zeros(m + 2, dtype=np.int64)
    while (state.spent[0] < effort.cycles * effort.budget or turn < 2) and effort.stop[0] == 0:
        other = turn % 2
        if turn > TRIES and best[other] < NEAR * best[1 - other]:
            other = 1 - other
        turn += 1
        n = m + 1 + other
        cycle, between, sweeps = room[:n], MIXED, MIXED_SWEEPS
        if known(state.cycles, n) < ENOUGH or rng.random() >= effort.mixed:
            for t in range(n):
                cycle[t] = int(K * rng.random())
            between, sweeps = FRESH, effort.sweeps
        else:
            _mix(state.cycles, cycle, m, rng)
        value = annealed(
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
    own = desk_of(narrow, m, n, poles)
    top, cycle = largest_at(state.blocks.values), largest_at(state.cycles.values)
    for t in range(n):
        block[t] = state.blocks.arms[top, t]
        if block[t] >= narrow.K:
            block[t] = state.cycles.arms[cycle, t % state.cycles.lengths[cycle]]
    sweeps = max(int((upto - state.spent[0] - 3.0 * n * narrow.exact) / (n * narrow.visit)), 4)
    annealed(narrow, poles, shape, block, 0, 0, n, narrow, WHOLE, sweeps, own, state, rng)


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
    first, second = one_of(found, n, 1, rng), one_of(found, n, 8, rng)
    if of_cycles > 0:
        found, first = state.cycles, largest_at(state.cycles.values)
        second = one_of(found, found.lengths[first], of_cycles + 1, rng)
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


@kernel_nested
def _begin(
    wide: Ground,
    poles: Poles,
    shape: Shape,
    past: Integers,
    given: Integers,
    block: Integers,
    desk: Desk,
    state: State,
    rng: np.random.Generator,
) -> None:
    """Keeps the blocks (k, n) that are given, and those that repeat the best cycle, improved arm by arm."""
    n, head, cycles, top = shape.n, past.shape[0], state.cycles, largest_at(state.cycles.values)
    for s in range(given.shape[0] + cycles.lengths[top]):
        phase = s - given.shape[0]
        for t in range(n):
            if phase < 0:
                block[t] = given[s, t]
            else:
                block[t] = cycles.arms[top, (t + phase) % cycles.lengths[top]]
        for t in range(head):
            block[t] = past[t]
        value = annealed(wide, poles, shape, block, head, head, n - head, wide, STILL, 0, desk, state, rng)
        keep(state.blocks, block, value)


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
        unit=unit_of(wide.catalogue, poles),
        room=make_room(m, p),
        spent=np.zeros(1),
    )
    desk = desk_of(wide, m, n, poles)
    blocks, given = state.blocks, warm
    if effort.cycles > 0.0:
        _find_cycles(narrow, poles, m, state, effort, rng)
    if effort.width > 0 and head == 0 and effort.stop[0] == 0:
        given = np.concatenate((warm, _grown(wide, narrow, poles, m, n, effort.width, rng)))
        state.spent[0] += effort.beam
    _begin(wide, poles, shape, past, given, block, desk, state, rng)
    programs, failed, slow, turn = effort.few > 0 and head == 0, 0, 0, 0
    program = make_program(max(effort.few, 1), m, n if programs else m)
    while state.spent[0] < effort.budget and effort.stop[0] == 0:
        before = blocks.values[largest_at(blocks.values)]
        first, count, between, sweeps = head, n - head, STILL, 0
        if programs and (failed < FAILED or rng.random() < effort.programs):
            turn += 1
            _program(wide, poles, program, turn if turn <= FIRST else 0, block, state, rng)
            state.spent[0] += effort.program
        elif effort.islands > 0:
            improve_islands(wide, narrow, poles, shape, head, block, desk, state, effort, rng)
            break
        elif slow < SLOW and head == 0 and effort.slow > 0.0:
            slow += 1
            upto = state.spent[0] + (effort.slow - effort.cycles) / SLOW * effort.budget
            _anneal_slowly(narrow, poles, shape, upto, block, state, rng)
        else:
            q = one_of(blocks, n, 1 if rng.random() < BEST else 5, rng)
            for t in range(n):
                block[t] = blocks.arms[q, t]
            first, count = stretch_of(n, m, head, LONG, rng)
            between, sweeps = (effort.hot, effort.cold), effort.stretch
        value = annealed(
            wide, poles, shape, block, head, first, count, narrow, between, sweeps, desk, state, rng
        )
        keep(blocks, block, value)
        if value <= before + 1e-9 * abs(before):
            # Programs are tried again and again while they find better blocks, and so is slow annealing.
            failed += sweeps == 0 and slow == 0
            slow = SLOW if sweeps == 0 and slow > 0 else slow
    return blocks.arms[largest_at(blocks.values)].copy(), blocks.values[largest_at(blocks.values)]
