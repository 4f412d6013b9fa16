"""The search for a best block of one large set by exact worths: owns its phases and what is kept.

Cycles of m+1 and m+2 arms first, by annealing: each position in turn gets an arm drawn with probabilities
exp(worth / temperature). Blocks that repeat the best cycle, from each of its phases on, are improved arm by
arm. Then rounds. In some, a dynamic program makes the best block, ends and all, of the few arms that stand
for the best blocks and of others that would lose least in them; in the others a stretch of one of the best
blocks is annealed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import kernel, kernel_internal
from ._types import Integers, Rows, Vector
from .arm_annealing import Catalogue, Heat, anneal, arms_of, make_desk
from .arm_programs import make_program, plan_of_few
from .arm_scores import largest_first
from .arm_screens import columns_of
from .arm_search import NEVER
from .arm_worth import Arms, Poles, Room, Shape, make_room, value_of_block

#: Blocks that are kept, and cycles.
KEPT = 24
#: How much an arm may lose in a block to be drawn for a program, in what a step of a good cycle is worth.
LOOSE = 0.03
#: Arms of a program that are not of blocks.
OTHERS = 4
#: The first and the last temperature for cycles and for stretches, in the same unit.
CYCLES, STRETCHES = (0.1, 0.015), (0.06, 0.01)
#: Programs of the arms of cycles.
FIRST = 2
#: Of the stretches, those that are whole blocks; of the blocks that they are of, those that are the best one.
WHOLE, BEST = 0.3, 0.5


class RoundEffort(NamedTuple):
    """How hard to search; costs are in seconds, about."""

    budget: float
    cycles: float  # of the budget, for cycles
    sweeps: int  # how often each position of a cycle is drawn
    stretch: int  # the same of a stretch
    programs: float  # of rounds, those with a program
    few: int  # arms of a dynamic program, K at the most
    program: float  # what it costs
    visit: float  # what a look at a position costs
    exact: float  # the same with exact worths
    stop: Integers = NEVER  # (1,) not 0: end at once, with whatever was found


class Found(NamedTuple):
    """Different blocks or cycles, changed in place: the best that were found, by the numbers of all arms."""

    arms: Integers  # (KEPT, n)
    lengths: Integers  # (KEPT,)
    values: Vector  # (KEPT,) -inf where there is none


class State(NamedTuple):
    """A search at work, changed in place."""

    cycles: Found
    blocks: Found
    gains: Vector  # (K,) see `anneal`
    unit: float  # of temperatures
    room: Room
    spent: Vector  # (1,) seconds, about


@kernel
def keep(found: Found, block: Integers, value: float) -> None:
    """The block takes the place of the worst one that is kept, if it is better and none of them."""
    worst, n = 0, block.shape[0]
    for q in range(KEPT):
        if found.lengths[q] == n and abs(found.values[q] - value) <= 1e-9 * abs(value):
            return  # the same, perhaps at another phase
        if found.values[q] < found.values[worst]:
            worst = q
    if value > found.values[worst]:
        found.arms[worst, :n] = block
        found.lengths[worst] = n
        found.values[worst] = value


@kernel
def make_found(n: int) -> Found:
    return Found(
        arms=np.zeros((KEPT, n), dtype=np.int64),
        lengths=np.zeros(KEPT, dtype=np.int64),
        values=np.full(KEPT, -math.inf),
    )


@kernel
def _standing_for(
    catalogue: Catalogue, first: Integers, second: Integers, most: int, rng: np.random.Generator
) -> Integers:
    """At most `most` arms near those of two blocks, of the first rather: they stand for them."""
    held = np.unique(np.concatenate((first, second)))
    arms, w = arms_of(catalogue, held, held), np.zeros(held.shape[0])
    for t in range(first.shape[0]):
        w[np.searchsorted(held, first[t])] += 1.0
    for t in range(second.shape[0]):
        w[np.searchsorted(held, second[t])] += 0.5
    far = np.full(held.shape[0], 4.0)
    for s in range(held.shape[0]):
        w[s] *= 0.5 + rng.random()
    chosen, count = np.zeros(held.shape[0], dtype=np.bool_), 0
    while count < min(most, held.shape[0]):
        best, top = -1.0, 0
        for c in range(held.shape[0]):
            gain = 1e-9 * w[c]
            for s in range(held.shape[0]):
                gain += w[s] * max(far[s] - _apart(arms, s, c), 0.0)
            if gain > best and not chosen[c]:
                best, top = gain, c
        chosen[top] = True
        count += 1
        for s in range(held.shape[0]):
            far[s] = min(far[s], _apart(arms, s, top))
    return held[chosen]


@kernel_internal
def _apart(arms: Arms, x: int, y: int) -> float:
    """How far two arms are apart, squared, relative to their size."""
    size = max(arms.squares[x] + arms.squares[y], 1e-300)
    return (size - 2.0 * arms.G[x, y]) / size


@kernel
def _with_others(few: Integers, gains: Vector, most: int, loose: float, rng: np.random.Generator) -> Integers:
    """The few and as many others, rather those that lose little somewhere."""
    score, chosen = np.empty(gains.shape[0]), np.zeros(gains.shape[0], dtype=np.bool_)
    for k in range(gains.shape[0]):
        score[k] = -math.inf
        if gains[k] > -math.inf:
            score[k] = gains[k] / loose - math.log(-math.log(max(rng.random(), 1e-300)) + 1e-300)
    for k in few:
        score[k] = math.inf
    for k in largest_first(score, most):
        chosen[k] = True
    return np.flatnonzero(chosen)


@kernel
def _unit_of(catalogue: Catalogue, poles: Poles) -> float:
    """About what a step of a good cycle is worth: half of the most that an arm earns."""
    unit, free = 1e-300, 0.0
    for k in range(catalogue.A.shape[0]):
        unit = max(unit, abs(catalogue.theta[k]) + catalogue.beta * math.sqrt(max(catalogue.widths[k], 0.0)))
    for i in range(poles.shifts.shape[0]):
        free += poles.weights[i] / poles.shifts[i]
    return 0.5 * unit * abs(free)


@kernel
def _value(catalogue: Catalogue, poles: Poles, shape: Shape, block: Integers, room: Room) -> float:
    """The value of a block (n,), or a step of a cycle."""
    own, rows = arms_of(catalogue, block, block), np.arange(shape.n)
    value = value_of_block(own, poles, shape, rows, rows, room)
    return value / shape.n if shape.wrap else value


@kernel
def _find_cycles(
    catalogue: Catalogue,
    poles: Poles,
    m: int,
    columns: Rows,
    state: State,
    effort: RoundEffort,
    rng: np.random.Generator,
) -> None:
    """Fills the cycles of the state."""
    K, p, turn, best = catalogue.A.shape[0], poles.shifts.shape[0], 0, np.full(2, -math.inf)
    desks = (make_desk(catalogue, columns, m, m + 1, p), make_desk(catalogue, columns, m, m + 2, p))
    heat = Heat(hot=CYCLES[0] * state.unit, cold=CYCLES[1] * state.unit, sweeps=effort.sweeps)
    while (state.spent[0] < effort.cycles * effort.budget or turn < 2) and effort.stop[0] == 0:
        other = turn % 2
        if turn > 3 and best[other] < 0.9 * best[1 - other]:
            other = 1 - other
        turn += 1
        shape, cycle = Shape(m, m + 1 + other, True), np.empty(m + 1 + other, dtype=np.int64)
        for t in range(shape.n):
            cycle[t] = int(K * rng.random())
        desk = desks[other]
        seen = anneal(catalogue, poles, shape, cycle, 0, shape.n, heat, desk, state.gains, state.room, rng)
        value = _value(catalogue, poles, shape, cycle, state.room)
        best[other] = max(best[other], value)
        state.spent[0] += shape.n * heat.sweeps * effort.visit + seen * effort.exact
        keep(state.cycles, cycle, value)


@kernel
def _tile(cycle: Integers, n: int, phase: int) -> Integers:
    """A block (n,) that repeats a cycle."""
    block = np.empty(n, dtype=np.int64)
    for t in range(n):
        block[t] = cycle[(t + phase) % cycle.shape[0]]
    return block


@kernel
def _next_few(
    catalogue: Catalogue, state: State, of_cycles: int, most: int, rng: np.random.Generator
) -> Integers:
    """The arms of the next program: of the best cycle and one more, or of blocks and others if that is 0."""
    cycles, blocks = state.cycles, state.blocks
    order = largest_first(cycles.values, KEPT)
    loose = LOOSE * state.unit
    if of_cycles > 0:
        q = order[min(of_cycles, KEPT - 1)]
        q = q if cycles.values[q] > -math.inf else order[0]
        first, second = cycles.arms[order[0], : cycles.lengths[order[0]]], cycles.arms[q, : cycles.lengths[q]]
        few = _standing_for(catalogue, first, second, most, rng)
        return _with_others(few, state.gains, most, loose, rng)
    first, second = _one_of(blocks, 1, rng), _one_of(blocks, 8, rng)
    few = _standing_for(catalogue, first, second, max(most - OTHERS, min(most, 3)), rng)
    return _with_others(few, state.gains, most, loose, rng)


@kernel
def _one_of(blocks: Found, best: int, rng: np.random.Generator) -> Integers:
    """One of the so many best blocks, which are all of one length."""
    order, kept = largest_first(blocks.values, KEPT), 0
    for q in range(KEPT):
        kept += blocks.values[q] > -math.inf
    return blocks.arms[order[int(min(kept, best) * rng.random())]].copy()


@kernel
def _stretch(n: int, m: int, rng: np.random.Generator) -> tuple[int, int]:
    """The first position of a stretch, and how many they are; those at the ends are as likely as others."""
    count = min(int((m + 2) * (1.0 + rng.random())), n)
    if rng.random() < WHOLE:
        count = n
    return min(max(int((n - count + 1 + 2 * m) * rng.random()) - m, 0), n - count), count


@kernel
def search_rounds(
    catalogue: Catalogue,
    poles: Poles,
    m: int,
    n: int,
    warm: Integers,
    effort: RoundEffort,
    rng: np.random.Generator,
) -> tuple[Integers, float]:
    """The best block (n,) that was found, and its value; `warm` (k, n) are blocks to start from."""
    K, shape, columns = catalogue.A.shape[0], Shape(m, n, False), columns_of(catalogue.A)
    state = State(
        cycles=make_found(m + 2),
        blocks=make_found(n),
        gains=np.full(K, -math.inf),
        unit=_unit_of(catalogue, poles),
        room=make_room(m, poles.shifts.shape[0]),
        spent=np.zeros(1),
    )
    _find_cycles(catalogue, poles, m, columns, state, effort, rng)
    blocks, room, turn = state.blocks, state.room, 0
    for r in range(warm.shape[0]):
        keep(blocks, warm[r].copy(), _value(catalogue, poles, shape, warm[r], room))
    desk, program = make_desk(catalogue, columns, m, n, poles.shifts.shape[0]), make_program(effort.few, m, n)
    top = np.argmax(state.cycles.values)
    cycle = state.cycles.arms[top, : state.cycles.lengths[top]].copy()
    phases, still = cycle.shape[0], Heat(STRETCHES[0] * state.unit, STRETCHES[1] * state.unit, 0)
    while (state.spent[0] < effort.budget or turn == 0) and effort.stop[0] == 0:
        first, count, heat, begun = 0, n, still, turn - phases
        if begun < 0:
            block = _tile(cycle, n, turn)
        elif begun < FIRST or rng.random() < effort.programs:
            few = _next_few(catalogue, state, begun + 1 if begun < FIRST else 0, effort.few, rng)
            arms, everything = arms_of(catalogue, few, few), np.arange(few.shape[0])
            block = few[plan_of_few(arms, poles, program, everything, room)[0]]
            state.spent[0] += effort.program
        else:
            block = _one_of(blocks, 1 if rng.random() < BEST else 5, rng)
            first, count = _stretch(n, m, rng)
            heat = Heat(still.hot, still.cold, effort.stretch)
        seen = anneal(catalogue, poles, shape, block, first, count, heat, desk, state.gains, room, rng)
        state.spent[0] += count * heat.sweeps * effort.visit + seen * effort.exact
        keep(blocks, block, _value(catalogue, poles, shape, block, room))
        turn += 1
    return blocks.arms[np.argmax(blocks.values)].copy(), np.max(blocks.values)
