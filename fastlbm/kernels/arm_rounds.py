"""The search for a best block of one large set by exact worths: owns its phases and what is kept.

Cycles of m+1 and m+2 arms first, by annealing: each position in turn gets an arm drawn with probabilities
exp(worth / temperature). Then rounds: of the few arms that stand for the best blocks, and others that would
lose least in them, a dynamic program makes the best block, ends and all, and a climb among the arms that are
worth a look improves it. With many arms those are the ones that are worth most somewhere in what was found.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import kernel, kernel_internal
from ._types import Integers, Rows, Vector
from .arm_annealing import Catalogue, anneal, arms_of, climb, climb_among_all
from .arm_programs import make_program, plan_of_few
from .arm_scores import shortlist
from .arm_search import NEVER
from .arm_worth import Arms, Poles, Room, Shape, make_room, value_of_block

#: Blocks that are kept, and cycles.
KEPT = 24
#: How much an arm may lose in a block to be drawn for a program, in the same unit.
LOOSE = 0.03
#: Arms of a program that are not of blocks.
OTHERS = 4
#: Arms that count as useful at one position.
USEFUL = 8
#: Cycles of all arms, or of drawn ones, before the first of the arms that are worth a look in those found;
#: and how many of the others are such.
ALONE, MIXED = 6, 0.7
#: In cycles that are worth nearly as much as the best one all arms are looked at.
NEAR = 0.02
#: Programs of the arms of cycles; all arms are looked at in the best block after them, and when it has
#: changed after twice as many, four times and so on.
FIRST = 3


class RoundEffort(NamedTuple):
    """How hard to search; costs are in seconds, about."""

    budget: float
    cycles: float  # of the budget, for cycles
    sweeps: int  # how often each position of a cycle is drawn
    wide: int  # arms among which cycles are annealed
    pool: int  # arms that are worth a look
    few: int  # arms of a dynamic program
    program: float  # what it costs
    visit: float  # what a look at a position costs
    arm: float  # and for each arm
    pair: float  # what the inner products of two arms cost
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
    gains: Vector  # (K,) see `_add_useful`
    place: Integers  # (K,) where each arm is in the pool
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
def _add_useful(worth: Rows, block: Integers, gains: Vector) -> None:
    """gains (K,): the least that an arm loses at a position, where it is among the USEFUL best there."""
    found, best = np.zeros(USEFUL + 1, dtype=np.int64), np.empty(USEFUL + 1)
    for j in range(worth.shape[0]):
        for s in range(shortlist(worth[j], block[j], found, best)):
            gains[found[s]] = max(gains[found[s]], worth[j, found[s]] - worth[j, block[j]])


@kernel
def _pool_of(state: State, size: int, drawn: int, rng: np.random.Generator) -> Integers:
    """About `size` arms: those that lose least, those of all that is kept, and at least so many drawn."""
    K, blocks, cycles = state.gains.shape[0], state.blocks, state.cycles
    if size >= K and drawn > 0:
        return np.arange(K)
    order = np.argsort(-state.gains, kind="mergesort")
    chosen, count = np.zeros(K, dtype=np.bool_), 0
    for s in range(min(size, K) - drawn):
        chosen[order[s]] = state.gains[order[s]] > -math.inf
    for q in range(KEPT):
        for t in range(blocks.lengths[q]):
            chosen[blocks.arms[q, t]] = True
        for t in range(cycles.lengths[q]):
            chosen[cycles.arms[q, t]] = True
    for k in range(K):
        count += chosen[k]
    for _ in range(min(size - count, drawn)):
        chosen[int(K * rng.random())] = True
    return np.flatnonzero(chosen)


@kernel
def _standing_for(
    arms: Arms, first: Integers, second: Integers, most: int, rng: np.random.Generator
) -> Integers:
    """At most `most` numbers of arms near those of two blocks, of the first rather: they stand for them."""
    k = arms.theta.shape[0]
    weight = np.zeros(k)
    for t in range(first.shape[0]):
        weight[first[t]] += 1.0
    for t in range(second.shape[0]):
        weight[second[t]] += 0.5
    held = np.flatnonzero(weight)
    far, w = np.full(held.shape[0], 4.0), np.empty(held.shape[0])
    for s in range(held.shape[0]):
        w[s] = weight[held[s]] * (0.5 + rng.random())
    chosen, count = np.zeros(k, dtype=np.bool_), 0
    while count < min(most, held.shape[0]):
        best, top = -1.0, 0
        for c in range(held.shape[0]):
            gain = 1e-9 * w[c]
            for s in range(held.shape[0]):
                gain += w[s] * max(far[s] - _apart(arms, held[s], held[c]), 0.0)
            if gain > best and not chosen[held[c]]:
                best, top = gain, c
        chosen[held[top]] = True
        count += 1
        for s in range(held.shape[0]):
            far[s] = min(far[s], _apart(arms, held[s], held[top]))
    return np.flatnonzero(chosen)


@kernel_internal
def _apart(arms: Arms, x: int, y: int) -> float:
    """How far two arms of the pool are apart, squared, relative to their size."""
    size = max(arms.squares[x] + arms.squares[y], 1e-300)
    return (size - 2.0 * arms.G[x, y]) / size


@kernel
def _with_others(
    few: Integers, block: Integers, worth: Rows, most: int, loose: float, rng: np.random.Generator
) -> Integers:
    """The few and as many others, rather those that lose little somewhere in the block."""
    k, score = worth.shape[1], np.empty(worth.shape[1])
    for x in range(k):
        least = math.inf
        for j in range(worth.shape[0]):
            least = min(least, worth[j, block[j]] - worth[j, x])
        score[x] = least / loose + math.log(-math.log(max(rng.random(), 1e-300)) + 1e-300)
    for x in few:
        score[x] = -math.inf
    order = np.argsort(score, kind="mergesort")
    return np.sort(order[: min(most, k)])


@kernel
def _look_at_all(
    catalogue: Catalogue, poles: Poles, shape: Shape, block: Integers, found: Found, state: State, cost: float
) -> None:
    """All arms at each position of a block or cycle: what comes of it is kept, what is useful is noted."""
    worth, better = climb_among_all(catalogue, poles, shape, block, state.room, True)
    own, rows = arms_of(catalogue, better, better), np.arange(shape.n)
    value = value_of_block(own, poles, shape, rows, rows, state.room)
    keep(found, better, value / shape.n if shape.wrap else value)
    _add_useful(worth, better, state.gains)
    state.spent[0] += 1.5 * shape.n * cost


@kernel
def _pool_anew(
    catalogue: Catalogue, size: int, drawn: int, state: State, effort: RoundEffort, rng: np.random.Generator
) -> tuple[Integers, Arms]:
    """The arms that are worth a look now, and their inner products."""
    pool = _pool_of(state, size, drawn, rng)
    for s in range(pool.shape[0]):
        state.place[pool[s]] = s
    state.spent[0] += effort.pair * pool.shape[0] ** 2
    return pool, arms_of(catalogue, pool, pool)


@kernel
def _find_cycles(
    catalogue: Catalogue,
    poles: Poles,
    m: int,
    state: State,
    effort: RoundEffort,
    rng: np.random.Generator,
) -> tuple[Integers, Arms]:
    """Fills the cycles of the state; returns the pool after it and its inner products."""
    K, cycles = catalogue.A.shape[0], state.cycles
    unit = 1e-300
    for k in range(K):
        unit = max(unit, abs(catalogue.theta[k]) + catalogue.beta * math.sqrt(max(catalogue.widths[k], 0.0)))
    free = 0.0
    for i in range(poles.shifts.shape[0]):
        free += poles.weights[i] / poles.shifts[i]
    unit, turn, best = 0.5 * unit * abs(free), 0, np.full(2, -math.inf)
    while (state.spent[0] < effort.cycles * effort.budget or turn < 2) and effort.stop[0] == 0:
        other = turn % 2
        if turn > 3 and best[other] < 0.9 * best[1 - other]:
            other = 1 - other
        turn += 1
        shape, pool = Shape(m, m + 1 + other, True), np.arange(K)
        if turn > ALONE and rng.random() < MIXED:
            pool = _pool_of(state, effort.pool, 0, rng)
        elif effort.wide < K:
            rng.shuffle(pool)
            pool = np.sort(pool[: effort.wide])
        cycle, seen = anneal(catalogue, poles, shape, pool, unit, effort.sweeps, state.room, rng)
        own, rows = arms_of(catalogue, cycle, cycle), np.arange(shape.n)
        value = value_of_block(own, poles, shape, rows, rows, state.room) / shape.n
        best[other] = max(best[other], value)
        state.spent[0] += seen * (effort.visit + pool.shape[0] * (effort.arm + effort.pair))
        top = max(value, np.max(cycles.values))
        if value >= top - NEAR * abs(top):
            _look_at_all(
                catalogue, poles, shape, cycle, cycles, state, effort.visit + K * (effort.arm + effort.pair)
            )
        else:
            keep(cycles, cycle, value)
    return _pool_anew(catalogue, effort.pool, effort.pool // 8, state, effort, rng)


@kernel
def _next_few(
    arms: Arms,
    state: State,
    worth: Rows,
    turn: int,
    most: int,
    rng: np.random.Generator,
) -> Integers:
    """The arms of the next program: of cycles first, then of blocks and others."""
    cycles, blocks, place = state.cycles, state.blocks, state.place
    order = np.argsort(-cycles.values, kind="mergesort")
    first = place[cycles.arms[order[0], : cycles.lengths[order[0]]]]
    if turn < FIRST:
        q = order[min(turn + 1, KEPT - 1)]
        q = q if cycles.values[q] > -math.inf else order[0]
        few = _standing_for(arms, first, place[cycles.arms[q, : cycles.lengths[q]]], most, rng)
        return _with_others(few, first, np.zeros((1, arms.theta.shape[0])), most, 1.0, rng)
    order, count = np.argsort(-blocks.values, kind="mergesort"), 0
    for q in range(KEPT):
        count += blocks.values[q] > -math.inf
    n = blocks.arms.shape[1]
    first, second = (
        place[blocks.arms[order[0], :n]],
        place[blocks.arms[order[int(min(count, 8) * rng.random())], :n]],
    )
    few = _standing_for(arms, first, second, max(most - OTHERS, min(arms.theta.shape[0], 3)), rng)
    return _with_others(few, first, worth, most, LOOSE * abs(np.max(cycles.values)) + 1e-300, rng)


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
    K, shape, rows = catalogue.A.shape[0], Shape(m, n, False), np.arange(n)
    state = State(
        cycles=make_found(m + 2),
        blocks=make_found(n),
        gains=np.full(K, -math.inf),
        place=np.zeros(K, dtype=np.int64),
        room=make_room(m, poles.shifts.shape[0]),
        spent=np.zeros(1),
    )
    pool, arms = _find_cycles(catalogue, poles, m, state, effort, rng)
    blocks, room = state.blocks, state.room
    for r in range(warm.shape[0]):
        own = arms_of(catalogue, warm[r], warm[r])
        keep(blocks, warm[r].copy(), value_of_block(own, poles, shape, rows, rows, room))
    if warm.shape[0] > 0:
        pool, arms = _pool_anew(catalogue, effort.pool, effort.pool // 8, state, effort, rng)
    all_cost = effort.visit + K * (effort.arm + effort.pair)
    last = 1.5 * n * all_cost if pool.shape[0] < K else 0.0
    top, worth, turn = -math.inf, np.zeros((n, pool.shape[0])), 0
    due, looked = FIRST, -math.inf
    program = make_program(min(effort.few, K), m, n)
    while (state.spent[0] + last < effort.budget or turn == 0) and effort.stop[0] == 0:
        few = _next_few(arms, state, worth, turn, min(effort.few, K), rng)
        if few.shape[0] != program.table.shape[0]:  # the pool is smaller
            program = make_program(few.shape[0], m, n)
        block, _ = plan_of_few(arms, poles, program, few, room)
        new, fresh = np.empty((n, pool.shape[0])), np.zeros(n, dtype=np.bool_)
        seen = climb(arms, poles, shape, block, room, new, fresh)
        state.spent[0] += effort.program + seen * (effort.visit + pool.shape[0] * effort.arm)
        value = value_of_block(arms, poles, shape, block, block, room)
        keep(blocks, pool[block], value)
        if value > top:
            top, worth = value, new
        turn += 1
        if turn >= due and (turn == FIRST or top > looked):
            due *= 2
            best = blocks.arms[np.argmax(blocks.values)].copy()
            if pool.shape[0] < K:
                _look_at_all(catalogue, poles, shape, best, blocks, state, all_cost)
                pool, arms = _pool_anew(catalogue, effort.pool + 64, 1, state, effort, rng)
            block = state.place[blocks.arms[np.argmax(blocks.values)]]
            worth, fresh = np.empty((n, pool.shape[0])), np.zeros(n, dtype=np.bool_)
            climb(arms, poles, shape, block, room, worth, fresh)
            top = value_of_block(arms, poles, shape, block, block, room)
            looked = top
            keep(blocks, pool[block], top)
    if pool.shape[0] < K:
        best = blocks.arms[np.argmax(blocks.values)].copy()
        _look_at_all(catalogue, poles, shape, best, blocks, state, all_cost)
    return blocks.arms[np.argmax(blocks.values)].copy(), np.max(blocks.values)
