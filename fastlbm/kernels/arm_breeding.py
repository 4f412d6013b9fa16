"""The search for a best block of one large set: owns the blocks that are kept, and how new ones come of them.

First short cycles, from random ones and from the arms of two good ones. Then the best of them tiled at each
phase; the arms that score best in them are the pool for what follows. A few of the best blocks are kept. New
ones come of them by changes, as in `arm_search`, and by the dynamic programs of `arm_pools`. All are climbed
from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import kernel
from ._types import Integers, Vector
from .arm_climbs import CLIMBS, ArmProblem, ArmTask
from .arm_pools import alternatives, narrowed, plan_between, plan_few, useful_arms
from .arm_search import CHANGES, ArmEffort, change_block, climb_all, equal_arms, shuffle, value_all
from .search import largest_at

#: Blocks that are kept.
KEPT = 12
#: Arms that count as useful at one position.
USEFUL = 8
#: Cycles that are tiled, the best.
TILED = 8
#: Blocks whose positions tell of useful arms.
ENDS = 2
#: Cycles of a period whose best one is worth less than this of the best are not looked for any more.
NEAR = 0.96
#: The periods that are looked for in turn: m+1, m+2, 2m+3, 2m+2, 1; the last six again and again.
TURNS = (0, 1, 4, 0, 1, 0, 1, 2, 0, 1, 3)
#: How many cycles are mixed rather than drawn, and of how many others.
MIXED = 0.5
PARENTS = 16
#: Blocks that dynamic programs make, of those that are climbed from at a time.
JOINED = 3


class Cycles(NamedTuple):
    """Cycles that were found, changed in place."""

    arms: Integers  # (E, longest)
    periods: Integers  # (E,)
    worth: Vector  # (E,) the average of a step
    filled: Integers  # (1,) how many


class Kept(NamedTuple):
    """Different blocks, changed in place: the best that were found."""

    arms: Integers  # (KEPT, n)
    values: Vector  # (KEPT,) -inf where there is none


@kernel
def _cyclic(problem: ArmProblem, period: int) -> ArmProblem:
    """The problem of a cycle of the same arms."""
    task, d = problem.task, problem.memory.d
    which = np.full(period, task.which[0])
    cyclic = ArmTask(
        columns=task.columns, which=which, given=np.zeros((d, period)), head=0, tail=0, wrap=True
    )
    return ArmProblem(
        memory=problem.memory, A0=problem.A0, model=problem.model, belief=problem.belief, task=cyclic
    )


@kernel
def _draw(rows: int, n: int, K: int, rng: np.random.Generator) -> Integers:
    drawn = np.empty((rows, n), dtype=np.int64)
    for s in range(rows):
        for t in range(n):
            drawn[s, t] = int(K * rng.random())
    return drawn


@kernel
def _note(cycles: Cycles, arms: Integers, period: int, worth: float) -> None:
    """One more cycle, unless it is there, perhaps at another phase."""
    at = cycles.filled[0]
    for c in range(at):
        if cycles.periods[c] == period and abs(cycles.worth[c] - worth) <= 1e-12 * abs(worth):
            return
    if at < cycles.worth.shape[0]:
        cycles.arms[at, :period] = arms
        cycles.periods[at] = period
        cycles.worth[at] = worth
        cycles.filled[0] = at + 1


@kernel
def _best_cycles(cycles: Cycles, period: int, most: int) -> Integers:
    """The places of the best cycles of a period, or with 0 of all, the best first."""
    count = cycles.filled[0]
    worth = np.full(count, -np.inf)
    number = 0
    for c in range(count):
        if period == 0 or cycles.periods[c] == period:
            worth[c] = cycles.worth[c]
            number += 1
    return np.argsort(-worth, kind="mergesort")[: min(number, most)]


@kernel
def _mix(cycles: Cycles, period: int, m: int, rows: int, rng: np.random.Generator) -> Integers:
    """Cycles (rows, period), each of the arms of two good ones; of the longest, one after the other."""
    out = np.empty((rows, period), dtype=np.int64)
    first = _best_cycles(cycles, min(period, m + 1) if period > m + 2 else period, PARENTS)
    second = _best_cycles(cycles, period - m - 1 if period > m + 2 else period, PARENTS)
    for s in range(rows):
        x = cycles.arms[first[int(first.shape[0] * rng.random() ** 2)]]
        y = cycles.arms[second[int(second.shape[0] * rng.random())]]
        cut = m + 1 if period > m + 2 else 1 + int((period - 1) * rng.random())
        turn = int(period * rng.random())
        if period == m + 1:  # in any order it is the same
            both = np.concatenate((x[:period], y[:period]))
            shuffle(both, rng)
            held = 0
            for k in both:
                twice = False
                for t in range(held):
                    twice = twice or out[s, t] == k
                if not twice and held < period:
                    out[s, held] = k
                    held += 1
            for t in range(held, period):
                out[s, t] = both[t]
            continue
        for t in range(period):
            if t < cut:
                out[s, t] = x[t]
            else:
                out[s, t] = y[t - cut] if period > m + 2 else y[(t + turn) % period]
    return out


@kernel
def _keep(kept: Kept, arms: Integers, value: float) -> None:
    """The block takes the place of the worst one that is kept, if it is better and none of them."""
    worst = 0
    for q in range(KEPT):
        if kept.values[q] > -np.inf and equal_arms(kept.arms[q], arms):
            return
        if kept.values[q] < kept.values[worst]:
            worst = q
    if value > kept.values[worst]:
        kept.arms[worst] = arms
        kept.values[worst] = value


@kernel
def _useful_in_cycles(problem: ArmProblem, cycles: Cycles, counts: Integers) -> None:
    """counts (K,) grows where arms are useful in the best cycles."""
    for c in _best_cycles(cycles, 0, TILED):
        period = cycles.periods[c]
        useful_arms(_cyclic(problem, period), cycles.arms[c : c + 1, :period].copy(), counts, USEFUL)


@kernel
def _pool_of(counts: Integers, blocks: Integers, size: int) -> Integers:
    """The arms worth a look, in order: the `size` that count most and those of blocks (k, n)."""
    K = counts.shape[0]
    order = np.argsort(-counts, kind="mergesort")
    chosen = np.zeros(K, dtype=np.bool_)
    for s in range(min(size, K)):
        chosen[order[s]] = counts[order[s]] > 0 or size >= K
    for r in range(blocks.shape[0]):
        for t in range(blocks.shape[1]):
            chosen[blocks[r, t]] = True
    return np.flatnonzero(chosen)


@kernel
def _renumber(blocks: Integers, numbers: Integers) -> None:
    """blocks (k, n) with other numbers, in place."""
    for r in range(blocks.shape[0]):
        for t in range(blocks.shape[1]):
            blocks[r, t] = numbers[blocks[r, t]]


@kernel
def _places(pool: Integers, K: int) -> Integers:
    """Where each arm (K,) is in the pool, 0 for those that are not."""
    place = np.zeros(K, dtype=np.int64)
    for s in range(pool.shape[0]):
        place[pool[s]] = s
    return place


@kernel
def _tiles(cycles: Cycles, best: int, m: int, n: int, rng: np.random.Generator) -> Integers:
    """Starts (k, n): the `best` cycles at every phase, those of m+1 arms in some orders as well."""
    order = _best_cycles(cycles, 0, best)
    most = order.shape[0]
    total = 0
    for c in range(most):
        period = cycles.periods[order[c]]
        total += period + (8 if period == m + 1 else 0)
    starts, row = np.empty((total, n), dtype=np.int64), 0
    for c in range(most):
        period = cycles.periods[order[c]]
        cycle = cycles.arms[order[c], :period].copy()
        for copy in range(period + (8 if period == m + 1 else 0)):
            if copy >= period:
                shuffle(cycle, rng)
            for t in range(n):
                starts[row, t] = cycle[(copy + t) % period]
            row += 1
    return starts


@kernel
def _few_of(first: Integers, second: Integers, K: int, size: int, rng: np.random.Generator) -> Integers:
    """At most `size` arms of two blocks: rather those that are there often, and of the first."""
    weight = np.zeros(K)
    for t in range(first.shape[0]):
        weight[first[t]] += 1.0
        weight[second[t]] += 0.7 * rng.random()
    held = np.flatnonzero(weight)
    for k in held:
        weight[k] *= 0.3 + rng.random()
    order = np.argsort(-weight[held], kind="mergesort")
    return held[order[: min(size, order.shape[0])]]


@kernel
def _joined(
    problem: ArmProblem, kept: Kept, starts: Integers, few: int, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """Blocks (k, n) that dynamic programs make of the best one and others, and its place for each.

    Of the few arms of two blocks, in any order; of two blocks, at each position the arm of one of them; of
    one, at each position its arm or another that looks good there.
    """
    m, n, K = problem.memory.m, kept.arms.shape[1], problem.task.columns.shape[2]
    blocks, parents = np.empty((JOINED, n), dtype=np.int64), np.empty(JOINED, dtype=np.int64)
    count = 0
    for q in range(KEPT):
        count += kept.values[q] > -np.inf
    for s in range(JOINED):
        top = largest_at(kept.values) if s == 0 or rng.random() < 0.6 else int(count * rng.random())
        parents[s] = top
        other = int(count * rng.random())
        if s == 0:
            second = kept.arms[other] if rng.random() < 0.5 else starts[int(starts.shape[0] * rng.random())]
            blocks[s], _ = plan_few(problem, _few_of(kept.arms[top], second, K, few, rng))
            continue
        choices = np.empty((n, 3 if m <= 3 else 2), dtype=np.int64)
        choices[:, 0] = kept.arms[top]
        shift = int(3 * rng.random()) - 1
        for t in range(n):
            choices[t, 1] = kept.arms[other, (t + shift) % n]
        if m <= 3 or s == 2:
            choices[:, choices.shape[1] - 1] = alternatives(problem, kept.arms[top], 3, rng)
        blocks[s] = plan_between(problem, choices)
    return blocks, parents


@kernel
def _offspring(
    problem: ArmProblem, kept: Kept, starts: Integers, few: int, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """CLIMBS new blocks, and the block that each comes of: the joined ones, and the best of many changes."""
    n = kept.arms.shape[1]
    joined = JOINED if few > 0 else 0
    blocks, parents = (
        np.empty((CHANGES + joined, n), dtype=np.int64),
        np.empty(CHANGES + joined, dtype=np.int64),
    )
    if joined > 0:
        blocks[:joined], parents[:joined] = _joined(problem, kept, starts, few, rng)
    top, count = largest_at(kept.values), 0
    for q in range(KEPT):
        count += kept.values[q] > -np.inf
    for s in range(joined, joined + CHANGES):
        at = top if s % 4 < 3 else int(count * rng.random())
        parents[s] = at
        change_block(kept.arms[at], blocks[s], starts, problem.memory.m, problem.task, rng)
    values = value_all(problem, blocks)
    for s in range(joined + CHANGES):
        twice = equal_arms(blocks[s], kept.arms[parents[s]])
        for r in range(s):
            twice = twice or equal_arms(blocks[s], blocks[r])
        if twice:
            values[s] = -np.inf
    chosen, of = np.empty((CLIMBS, n), dtype=np.int64), np.empty((CLIMBS, n), dtype=np.int64)
    for r in range(CLIMBS):
        s = r if r < joined and values[r] > -np.inf else largest_at(values)
        chosen[r], of[r] = blocks[s], kept.arms[parents[s]]
        values[s] = -np.inf
    return chosen, of


@kernel
def _find_cycles(
    problem: ArmProblem, cycles: Cycles, visits: int, effort: ArmEffort, rng: np.random.Generator
) -> int:
    """Climbs from cycles of a few periods, random ones first, then mixed of good ones; returns visits."""
    m, K = problem.memory.m, problem.task.columns.shape[2]
    best, seen, turn = np.full(5, -np.inf), 0, 0
    while turn == 0 or ((seen < visits or turn < 3) and effort.stop[0] == 0):
        k = TURNS[turn] if turn < len(TURNS) else TURNS[5 + turn % 6]
        if k < 2 and turn > 4 and best[k] < NEAR * best[1 - k]:
            k = 1 - k
        period = (m + 1, m + 2, 2 * m + 3, 2 * m + 2, 1)[k]
        drawn = _draw(effort.starts, period, K, rng)
        if turn > 4 and rng.random() < MIXED:
            drawn = _mix(cycles, period, m, effort.starts, rng)
        turn += 1
        found, worth, looked = climb_all(_cyclic(problem, period), drawn, drawn, False, effort, rng)
        seen += looked
        for r in range(effort.starts):
            best[k] = max(best[k], worth[r] / period)
            _note(cycles, found[r], period, worth[r] / period)
    return seen


@kernel
def _first_blocks(
    problem: ArmProblem, starts: Integers, kept: Kept, effort: ArmEffort, rng: np.random.Generator
) -> int:
    """Climbs from the best of the starts; returns visits."""
    values, n = value_all(problem, starts), starts.shape[1]
    first = np.empty((min(effort.starts, starts.shape[0]), n), dtype=np.int64)
    for r in range(first.shape[0]):
        at = largest_at(values)
        first[r] = starts[at]
        values[at] = -np.inf
    found, worth, seen = climb_all(problem, first, first, False, effort, rng)
    for r in range(found.shape[0]):
        _keep(kept, found[r], worth[r])
    return seen


@kernel
def breed_arms(
    problem: ArmProblem, warm: Integers, effort: ArmEffort, rng: np.random.Generator
) -> tuple[Integers, float, int]:
    """The best block (n,) that was found, its value, and how often a position was looked at.

    `warm` (k, n) are blocks to start from.
    """
    task, m, n = problem.task, problem.memory.m, problem.task.given.shape[1]
    K = task.columns.shape[2]
    most = 8 * (effort.visits // (CLIMBS * (m + 1)) + 16)
    cycles = Cycles(
        arms=np.zeros((most, 2 * m + 3), dtype=np.int64),
        periods=np.zeros(most, dtype=np.int64),
        worth=np.full(most, -np.inf),
        filled=np.zeros(1, dtype=np.int64),
    )
    kept = Kept(arms=np.zeros((KEPT, n), dtype=np.int64), values=np.full(KEPT, -np.inf))
    counts, all_arms = np.zeros(K, dtype=np.int64), effort.pool >= K
    wide = 1.0 if all_arms else effort.wide
    seen = int(wide * _find_cycles(problem, cycles, int(effort.cycle_visits / wide), effort, rng))
    starts = np.concatenate((warm, _tiles(cycles, TILED, m, n, rng)))
    if not all_arms:
        _useful_in_cycles(problem, cycles, counts)
        seen += int(wide * TILED * (m + 1))
    pool = _pool_of(counts, starts, effort.pool)
    place, narrow = _places(pool, K), narrowed(problem, pool)
    _renumber(starts, place)
    seen += _first_blocks(narrow, starts, kept, effort, rng)
    if not all_arms:
        # The ends of a block need other arms.
        _renumber(starts, pool)
        _renumber(kept.arms, pool)
        best = np.argsort(-kept.values, kind="mergesort")[:ENDS]
        useful_arms(problem, kept.arms[best].copy(), counts, USEFUL)
        seen += int(wide * n * ENDS)
        pool = _pool_of(counts, starts, 2 * effort.pool)
        place, narrow = _places(pool, K), narrowed(problem, pool)
        _renumber(starts, place)
        _renumber(kept.arms, place)
    _breed(narrow, kept, starts, effort.visits - seen - int(effort.wide * n), effort, rng)
    _renumber(kept.arms, pool)
    top = largest_at(kept.values)
    last = kept.arms[top : top + 1].copy()
    if all_arms:
        return last[0], kept.values[top], effort.visits
    found, worth, _ = climb_all(problem, last, last, False, effort, rng)
    return found[0], worth[0], effort.visits


@kernel
def _breed(
    problem: ArmProblem,
    kept: Kept,
    starts: Integers,
    visits: int,
    effort: ArmEffort,
    rng: np.random.Generator,
) -> None:
    """New blocks of those that are kept, until positions were looked at so often."""
    seen = 0
    while seen < visits and effort.stop[0] == 0:
        blocks, parents = _offspring(problem, kept, starts, effort.few, rng)
        found, worth, looked = climb_all(problem, blocks, parents, True, effort, rng)
        seen += looked + effort.few_visits + CLIMBS // 2
        for r in range(CLIMBS):
            _keep(kept, found[r], worth[r])
