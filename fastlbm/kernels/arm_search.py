"""The search for a best block of arms: owns starts and local moves, leaves climbing to `arm_climbs`.

As on the ball good blocks are nearly periodic. So the starts are cycles of a few periods, themselves found by
climbs from random ones, tiled at each phase, and blocks of the caller, such as the previous plan. Then the
best block found is changed: an arm moved, two exchanged, a few drawn anew, a stretch taken from elsewhere, a
part made periodic. Of many such changes those that lose least are climbed from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import kernel, kernel_internal
from ._types import Integers, Vector
from .arm_climbs import (
    CLIMBS,
    ArmProblem,
    ArmTask,
    Climbs,
    begin_climb,
    make_climbs,
    mark,
    next_look,
    span_of,
    step_climbs,
    value_blocks,
)
from .blocks import make_work
from .optimism import OM_BLOCK
from .search import largest_at
from .ties import SUM_SHARE, exceeds, margin

#: Orders of the arms of a cycle that are tried.
ORDERS = 24
#: The flag of a search that nobody stops.
NEVER = np.zeros(1, dtype=np.int64)
#: Positions that climbs may look at beside what an effort allows.
PATIENCE = 64
#: Changes that are valued before the best of them are climbed from.
CHANGES = 32


class ArmEffort(NamedTuple):
    """How hard to search."""

    cycles: int  # periods of which a good cycle is tiled, 5 at most
    cycle_visits: int  # positions that are looked at for each of them
    starts: int  # starts that are climbed from, the best of all
    visits: int  # positions looked at after which no new climb begins
    candidates: int  # arms that are evaluated at each of them
    pool: int = 0  # arms of many that are worth a look; 0: all, and no blocks are kept but the best
    few: int = 0  # arms of a dynamic program
    few_visits: int = 0  # how many visits it takes as long as
    wide: float = 1.0  # how many visits a look among all arms takes as long as
    stop: Integers = NEVER  # (1,) not 0: end at once, with whatever was found


@kernel
def search_arms(
    problem: ArmProblem, starts: Integers, effort: ArmEffort, visits: int, rng: np.random.Generator
) -> tuple[Integers, float, int]:
    """The best block or cycle (n,) that was found, from `starts` (k, n), and its value.

    Also returns how often a position was looked at. No new climb begins after so many `visits`, and none
    goes on after twice as many and PATIENCE.
    """
    memory, n, d = problem.memory, starts.shape[1], problem.memory.d
    climbs = make_climbs(problem, CLIMBS)
    span, lanes = span_of(problem, n), CLIMBS * effort.candidates
    work, a = make_work(memory, problem.A0, span * lanes, lanes), np.zeros((d, span * lanes))
    found, values = np.zeros((CLIMBS, effort.candidates), dtype=np.int64), np.empty(lanes)
    # Starts, then changes of the best: the queue of what to climb from, the best first.
    queue, worth = starts.copy(), value_all(problem, starts)
    left = min(effort.starts, starts.shape[0])
    first = largest_at(worth)
    best, value = starts[first].copy(), worth[first]
    made, seen, running = False, 0, True
    while running and seen < 2 * visits + PATIENCE and effort.stop[0] == 0:
        running = False
        for r in range(CLIMBS):
            if climbs.at[r] >= 0 and next_look(climbs, r):
                running, seen = True, seen + 1
                continue
            if climbs.at[r] >= 0:
                climbs.at[r] = -1
                if exceeds(climbs.value[r], value, margin(value, SUM_SHARE)):
                    best, value = climbs.arms[r].copy(), climbs.value[r]
                    left = min(left, 0) if made else left  # changes of what is no longer the best
            if left == 0 and seen < visits:
                queue, worth = _changes(problem, best, starts, rng)
                left, made = CLIMBS, True
            if left > 0:
                left -= 1
                chosen = largest_at(worth)
                if worth[chosen] > -np.inf:
                    _set_out(problem, climbs, r, queue[chosen], best, worth[chosen], made, rng)
                    worth[chosen] = -np.inf
                    running, seen = True, seen + 1
        if running:
            step_climbs(problem, climbs, found, work, a, values)
    for r in range(CLIMBS):
        if climbs.at[r] >= 0 and exceeds(climbs.value[r], value, margin(value, SUM_SHARE)):
            best, value = climbs.arms[r].copy(), climbs.value[r]
    return best, value, seen


@kernel
def _set_out(
    problem: ArmProblem,
    climbs: Climbs,
    r: int,
    arms: Integers,
    best: Integers,
    value: float,
    changed: bool,
    rng: np.random.Generator,
) -> None:
    """Climb r from these arms; from a change of the best block, it looks at what the change touches."""
    n, task = arms.shape[0], problem.task
    for t in range(n):
        climbs.arms[r, t] = arms[t]
        climbs.look[r, t] = 0
    for t in range(task.head, n - task.tail):
        if not changed:
            climbs.look[r, t] = 1
        elif arms[t] != best[t]:
            mark(problem, climbs, r, t)
    begin_climb(problem, climbs, r, value)
    climbs.at[r] = int(n * rng.random())
    next_look(climbs, r)


@kernel
def climb_all(
    problem: ArmProblem,
    starts: Integers,
    parents: Integers,
    changed: bool,
    effort: ArmEffort,
    rng: np.random.Generator,
) -> tuple[Integers, Vector, int]:
    """Where climbs from each of the starts (k, n) end, their values, and how often a position was looked at.

    With `changed`, a climb looks at what differs from its parent, where nothing is better, and around that.
    """
    memory, (k, n), d = problem.memory, starts.shape, problem.memory.d
    R = min(CLIMBS, k)
    climbs = make_climbs(problem, R)
    span, lanes = span_of(problem, n), R * effort.candidates
    work, a = make_work(memory, problem.A0, span * lanes, lanes), np.zeros((d, span * lanes))
    found, values = np.zeros((R, effort.candidates), dtype=np.int64), np.empty(lanes)
    blocks, worth = starts.copy(), value_all(problem, starts)
    of, begun, seen, running = np.full(R, -1), 0, 0, True
    while running and effort.stop[0] == 0:
        running = False
        for r in range(R):
            if climbs.at[r] >= 0 and not next_look(climbs, r):
                climbs.at[r] = -1
                blocks[of[r]], worth[of[r]] = climbs.arms[r], climbs.value[r]
            if climbs.at[r] < 0 and begun < k:
                of[r] = begun
                _set_out(problem, climbs, r, starts[begun], parents[begun], worth[begun], changed, rng)
                begun += 1
            if climbs.at[r] >= 0:
                running, seen = True, seen + 1
        if running:
            step_climbs(problem, climbs, found, work, a, values)
    return blocks, worth, seen


@kernel
def value_all(problem: ArmProblem, blocks: Integers) -> Vector:
    """The values (k,) of blocks (k, n); of a cycle, of one period."""
    task = problem.task
    lanes, (d, n) = blocks.shape[0], task.given.shape
    lead = problem.memory.m if task.wrap else 0
    a, values = np.empty((d, (lead + n) * lanes)), np.empty(lanes)
    for t in range(lead + n):
        p = (t - lead) % n
        given = p < task.head or p >= n - task.tail
        for s in range(lanes):
            for i in range(d):
                action = task.given[i, p] if given else task.columns[task.which[p], i, blocks[s, p]]
                a[i, t * lanes + s] = action
    work = make_work(problem.memory, problem.A0, (lead + n) * lanes, lanes)
    value_blocks(problem, a, lanes, work, values)
    return values


@kernel
def _changes(
    problem: ArmProblem, best: Integers, starts: Integers, rng: np.random.Generator
) -> tuple[Integers, Vector]:
    """CHANGES blocks, each the best one with a change, and their values; -inf for one that is there twice."""
    n, task = best.shape[0], problem.task
    blocks = np.empty((CHANGES, n), dtype=np.int64)
    for s in range(CHANGES):
        change_block(best, blocks[s], starts, problem.memory.m, task, rng)
    values = value_all(problem, blocks)
    for s in range(CHANGES):
        twice = equal_arms(blocks[s], best)
        for r in range(s):
            twice = twice or equal_arms(blocks[s], blocks[r])
        if twice:
            values[s] = -np.inf
    return blocks, values


@kernel_internal
def equal_arms(x: Integers, y: Integers) -> bool:
    same = True
    for t in range(x.shape[0]):
        same = same and x[t] == y[t]
    return same


@kernel
def change_block(
    best: Integers, out: Integers, starts: Integers, m: int, task: ArmTask, rng: np.random.Generator
) -> None:
    """out: the block `best` (n,) with one change among the actions that are not given."""
    n, K, head = best.shape[0], task.columns.shape[2], task.head
    free = n - head - task.tail
    kind, donor = int(6 * rng.random()), int(starts.shape[0] * rng.random())
    shift, target, ahead = int(free * rng.random()), int(free * rng.random()), int(free * rng.random())
    length = 1 + int((m + 2) * rng.random())
    for t in range(n):
        out[t] = best[t]
    if kind == 0:  # the arm at `shift` moved to `target`
        for t in range(free):
            rank = t if t < target else t - 1
            source = rank if rank < shift else rank + 1
            out[head + t] = best[head + (shift if t == target else source)]
    elif kind == 1:  # two arms exchanged
        out[head + shift], out[head + target] = best[head + target], best[head + shift]
    elif kind == 2:  # an arm or a few drawn anew
        for t in range(shift, min(shift + 1 + length // 3, free)):
            out[head + t] = int(K * rng.random())
    elif kind == 3:  # a stretch from another time
        for t in range(shift, min(shift + length, free)):
            out[head + t] = best[head + (t + ahead) % free]
    elif kind == 4:  # or of a start
        for t in range(shift, min(shift + 2 * length, free)):
            out[head + t] = starts[donor, head + (t + ahead) % free]
    elif free > 1:  # all from here on, or up to here, made periodic
        period = min(1 + ahead % (2 * m + 3), free - 1)
        if target % 2 == 0:
            for t in range(max(shift, period), free):
                out[head + t] = out[head + t - period]
        else:
            for t in range(min(shift, free - 1 - period), -1, -1):
                out[head + t] = out[head + t + period]


@kernel
def make_starts(
    problem: ArmProblem, warm: Integers, effort: ArmEffort, rng: np.random.Generator
) -> tuple[Integers, int]:
    """Starts (k, n): the caller's, `warm` (w, n), one drawn at random, and tiled cycles.

    Good cycles have one of a few periods (measured). A block begins with history
    that it does not pay for and ends without a future, so phases differ; and among m+1 arms all windows hold
    the same ones: a cycle is as good in any order, but a block is not.
    """
    task, m, n = problem.task, problem.memory.m, problem.task.given.shape[1]
    K, seen = task.columns.shape[2], 0
    same = True
    for t in range(n):
        same = same and task.which[t] == task.which[0]
    cycles = effort.cycles if same and not task.wrap and problem.belief.kind != OM_BLOCK else 0
    row, most = warm.shape[0] + 1, warm.shape[0] + 1 + cycles * (2 * m + 3 + ORDERS)
    starts = np.empty((most, n), dtype=np.int64)
    for t in range(n):
        for s in range(warm.shape[0]):
            starts[s, t] = warm[s, t]
        starts[row - 1, t] = int(K * rng.random())
    for k in range(cycles):
        period = (1, m + 1, m + 2, 2 * m + 2, 2 * m + 3)[k]
        cycle, visits = _good_cycle(problem, period, effort, effort.cycle_visits if k > 0 else PATIENCE, rng)
        seen += visits
        for copy in range(period if k != 1 else ORDERS):
            if k == 1:
                shuffle(cycle, rng)
            for t in range(n):
                starts[row, t] = cycle[(copy + t) % period]
            row += 1
    return starts[:row].copy(), seen


@kernel_internal
def shuffle(x: Integers, rng: np.random.Generator) -> None:
    """Any order is as likely; NumPy's takes ten times as long to compile."""
    for t in range(x.shape[0] - 1, 0, -1):
        s = int((t + 1) * rng.random())
        x[t], x[s] = x[s], x[t]


@kernel
def _good_cycle(
    problem: ArmProblem, period: int, effort: ArmEffort, visits: int, rng: np.random.Generator
) -> tuple[Integers, int]:
    """A cycle of this period, from random ones."""
    task, d = problem.task, problem.memory.d
    which = np.full(period, task.which[0])
    cyclic = ArmTask(
        columns=task.columns, which=which, given=np.zeros((d, period)), head=0, tail=0, wrap=True
    )
    K = task.columns.shape[2]
    drawn = np.empty((CLIMBS, period), dtype=np.int64)
    for s in range(CLIMBS):
        for t in range(period):
            drawn[s, t] = int(K * rng.random())
    part = ArmProblem(
        memory=problem.memory, A0=problem.A0, model=problem.model, belief=problem.belief, task=cyclic
    )
    cycle, _, seen = search_arms(part, drawn, effort, visits, rng)
    return cycle, seen


@kernel
def find_arms(
    problem: ArmProblem, warm: Integers, effort: ArmEffort, rng: np.random.Generator
) -> tuple[Integers, float, int]:
    """The best block or cycle (n,) that a search finds, its value, and how often a position was looked at.

    `warm` (k, n) are blocks to start from, beside those that the search finds itself.
    """
    starts, seen = make_starts(problem, warm, effort, rng)
    arms, value, visits = search_arms(problem, starts, effort, effort.visits, rng)
    return arms, value, seen + visits
