"""The search for a best block in the unit ball: owns starts and local moves, leaves climbing to `ascend`.

The UCBs of the paper's Section 4, sec:algo, and the reward of equation (4), eq:rwd_lower_bound, have many
local maxima, and good blocks are nearly periodic. So the starts are good cycles of a few periods, themselves
found by ascent, at each phase, and random cycles, all tiled; the greedy sequence; random blocks; and blocks
of the caller, such as the previous plan.
Then the best block found is changed: an action turned into a rest or back, a stretch drawn anew, taken from
elsewhere or made periodic, an action moved; several changes side by side, with an ascent after each.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal, kernel_nested
from ._types import Integers, Matrix, Rows, Vector
from .ascent import Ends, ascend, wrapped_rewards
from .blocks import features, make_work
from .lanes import LANES
from .memory import Memory, as_cycle
from .optimism import OM_BLOCK, Belief
from .ties import ASCENT_SHARE, exceeds, margin, reaches

#: Local changes that climb side by side.
MOVES_AT_ONCE = 8
#: Starts that are drawn even where tiled cycles are enough.
DRAWN = 8
#: Most orders of the actions of a cycle of the period m + 1 that are tried.
ORDERS = 24
#: The length of an action that hardly counts, a rest, and how often one is drawn.
REST, REST_SHARE = 0.03, 0.4
#: A block that is worse than its rival by more than this share is not changed in search of a better one.
NEAR = 0.03
#: Cycles and changes end their ascents at so many times the tolerance.
ROUGH = 100.0


#: The flag of a search that nobody stops.
_NEVER = np.zeros(1, dtype=np.int64)


class Effort(NamedTuple):
    """How hard to search."""

    starts: int  # starts beside the caller's, about: tiled cycles and at least DRAWN others
    cycles: int  # periods of which a good cycle is tiled
    moves: int  # local changes of the best block, in groups of MOVES_AT_ONCE
    ticks: int  # most evaluations of one ascent
    polish: int  # the same for the last one, to a hundredth of the tolerance
    tolerance: float  # relative gain over a few steps at which an ascent ends
    limit: int  # evaluations after which no new ascent begins
    stop: Integers = _NEVER  # (1,) not 0: end at once, with whatever was found


@kernel
def search(
    memory: Memory,
    A0: Matrix | None,
    belief: Belief,
    n: int,
    wrap: bool,
    before: Rows,
    warm: Rows,
    effort: Effort,
    rival: float,
    rng: np.random.Generator,
) -> tuple[Rows, float, int, bool]:
    """The best block of n steps (with `wrap`: cycle of period n) that was found, (d, n).

    Its first m actions are `before` (d, m) or, if that is (d, 0), to be found as well. `warm` (d, n*k) holds
    k blocks side by side to start from. A block is of no use if it is not better than `rival`, -inf for none:
    what cannot come near that value is given up early. Also returns its value, the number of block values and
    gradients that were computed, and whether the last ascent converged.
    """
    if wrap:
        memory = as_cycle(memory)
    x, lanes, evaluations = _make_starts(memory, A0, belief, n, wrap, warm, effort, rng)
    ends, stop = Ends(memory.m if wrap else 0, before.shape[1], 0), effort.stop
    _set_first(x, lanes, before)
    values = np.zeros(lanes)
    evaluations += ascend(memory, A0, belief, x, ends, effort.ticks, effort.tolerance, rival, values, stop)
    winner = largest_at(values)
    free = not wrap and ends.head == 0 and belief.kind != OM_BLOCK
    if free and lanes > 1:
        winner = _best_when_repeated(memory, A0, belief, x, n, values, winner)
    best = _lane(x, lanes, winner)
    value = values[winner]

    changed = np.empty((memory.d, n * MOVES_AT_ONCE))
    outcome = np.empty(MOVES_AT_ONCE)
    rough = ROUGH * effort.tolerance
    for _ in range((effort.moves + MOVES_AT_ONCE - 1) // MOVES_AT_ONCE):
        if evaluations >= effort.limit or value < rival - NEAR * abs(rival) or stop[0] != 0:
            break
        for s in range(MOVES_AT_ONCE):
            _change(best, changed, s, memory.turn, x, lanes, rng)
            outcome[s] = 0.0
        _set_first(changed, MOVES_AT_ONCE, before)
        goal = max(value, rival)
        evaluations += ascend(memory, A0, belief, changed, ends, effort.ticks, rough, goal, outcome, stop)
        s = largest_at(outcome)
        if outcome[s] > value:
            value = outcome[s]
            best = _lane(changed, MOVES_AT_ONCE, s)
    last, polished = 0, np.zeros(1)
    if effort.polish > 0:
        fine = 0.01 * effort.tolerance
        last = ascend(memory, A0, belief, best, ends, effort.polish, fine, -np.inf, polished, stop)
    else:
        polished[0] = value
    if free:
        _turn_first_actions(memory, A0, belief, best)
    converged = last < effort.polish or polished[0] - value <= effort.tolerance * abs(value)
    return best, polished[0], evaluations + last, converged


@kernel_nested
def _make_starts(
    memory: Memory,
    A0: Matrix | None,
    belief: Belief,
    n: int,
    wrap: bool,
    warm: Rows,
    effort: Effort,
    rng: np.random.Generator,
) -> tuple[Rows, int, int]:
    """All starts (d, n*lanes): the caller's, tiled cycles, what is drawn; also lanes, and evaluations."""
    d = memory.d
    given = warm.shape[1] // n
    cycles = 0 if wrap or belief.kind == OM_BLOCK else min(effort.cycles, 1 + (n - 2) // (memory.turn + 1))
    tiled = 0
    for k in range(cycles):
        tiled += min(_copies(memory.turn, k), effort.starts)
    lanes = given + tiled + max(effort.starts - tiled, min(effort.starts, DRAWN))
    x = np.zeros((d, n * lanes))
    evaluations = 0
    first = given
    for k in range(cycles):
        copies = min(_copies(memory.turn, k), effort.starts)
        evaluations += _cycle_starts(memory, A0, belief, x, first, copies, lanes, k, effort, rng)
        first += copies
    for i in range(d):
        for t in range(n):
            for s in range(given):
                x[i, t * lanes + s] = warm[i, t * given + s]
    for s in range(first, lanes):
        _draw_start(memory, A0, belief, x, s, lanes, s - first, rng)
    return x, lanes, evaluations


@kernel_internal
def _set_first(x: Rows, lanes: int, before: Rows) -> None:
    """The blocks in x begin with the actions `before`."""
    for i in range(before.shape[0]):
        for t in range(before.shape[1]):
            for s in range(lanes):
                x[i, t * lanes + s] = before[i, t]


@kernel_nested
def _best_when_repeated(
    memory: Memory, A0: Matrix | None, belief: Belief, x: Rows, n: int, values: Vector, winner: int
) -> int:
    """Of the blocks in x that are as good as the winner, the one that is better when played as a cycle."""
    lanes = values.shape[0]
    top = values[winner]
    again = np.zeros(lanes)
    rewards = wrapped_rewards(memory, A0, belief.theta, x, n)
    for w in range(n * lanes):
        again[w % lanes] += rewards[w]
    for s in range(lanes):
        tied = reaches(values[s], top, margin(top, ASCENT_SHARE))
        if tied and exceeds(again[s], again[winner], margin(again[winner], ASCENT_SHARE)):
            winner = s
    return winner


@kernel_nested
def _turn_first_actions(memory: Memory, A0: Matrix | None, belief: Belief, best: Rows) -> None:
    """The first m actions count by a a^T alone: of a and -a the one that earns more in a cycle."""
    d, n = best.shape
    rewards = wrapped_rewards(memory, A0, belief.theta, best, n)
    for t in range(min(memory.m, n)):
        if rewards[t] < 0.0:
            for i in range(d):
                best[i, t] = -best[i, t]


@inline
def _period(m: int, k: int) -> int:
    """Of the k-th cycle to tile: m+1 actions that differ; or k such turns and one more that shifts them.

    Many instances have their best cycles at these periods.
    """
    return k * (m + 1) + 1 if k > 0 else m + 1


@inline
def _copies(m: int, k: int) -> int:
    """Starts that the k-th cycle gives: one for each phase; with m+1 actions, one for each order, if few."""
    if k > 0:
        return _period(m, k)
    orders = 1
    for r in range(2, m + 2):
        orders = min(orders * r, ORDERS)
    return orders


@kernel_nested
def _cycle_starts(
    memory: Memory,
    A0: Matrix | None,
    belief: Belief,
    x: Rows,
    first: int,
    copies: int,
    lanes: int,
    k: int,
    effort: Effort,
    rng: np.random.Generator,
) -> int:
    """Lanes from `first` on: the best of a few cycles, tiled; returns the evaluations it took.

    A block begins with history that it does not pay for and ends without a future, so phases differ. Among
    m+1 actions all windows hold the same ones, and a cycle is as good in any order, but a block is not.
    """
    d, n = memory.d, x.shape[1] // lanes
    period = _period(memory.turn, k)
    cycles = np.empty((d, period * LANES))
    # More actions in a window than directions: good cycles have rests, so every other one is drawn with them.
    rests = REST_SHARE if d <= memory.turn else 0.0
    for column in range(period * LANES):
        _draw_action(cycles, column, rests if column % 2 == 1 else 0.0, rng)
    values = np.zeros(LANES)
    ends, rough = Ends(memory.m, 0, 0), ROUGH * effort.tolerance
    wrapped = as_cycle(memory)
    evaluations = ascend(wrapped, A0, belief, cycles, ends, effort.ticks, rough, -np.inf, values, effort.stop)
    best = largest_at(values)
    order = np.empty(period, dtype=np.int64)
    for copy in range(copies):
        for r in range(period):
            order[r] = r if k == 0 else (r + copy) % period
        if k == 0:
            code = copy  # its digits to the bases period, period - 1, ... pick each next action
            for r in range(period):
                other = r + code % (period - r)
                code //= period - r
                order[r], order[other] = order[other], order[r]
        for i in range(d):
            for t in range(n):
                x[i, t * lanes + first + copy] = cycles[i, order[t % period] * LANES + best]
    return evaluations


@kernel_nested
def _lane(x: Rows, lanes: int, s: int) -> Rows:
    """A copy of block s of those in x."""
    d, n = x.shape[0], x.shape[1] // lanes
    out = np.empty((d, n))
    for i in range(d):
        for t in range(n):
            out[i, t] = x[i, t * lanes + s]
    return out


@inline
def largest_at(values: Vector) -> int:
    """Where the largest value is, the first of equal ones."""
    best = 0
    for s in range(1, values.shape[0]):
        if values[s] > values[best]:
            best = s
    return best


@kernel_internal
def _draw_start(
    memory: Memory,
    A0: Matrix | None,
    belief: Belief,
    x: Rows,
    s: int,
    lanes: int,
    index: int,
    rng: np.random.Generator,
) -> None:
    """Fills lane s: the greedy sequence, then cycles of random unit actions of one period or another."""
    d, m = memory.d, memory.turn
    n = x.shape[1] // lanes
    if index == 0:
        _greedy(memory, A0, belief, x, s, lanes, rng)
        return
    # Half of the starts have the period m + 1, at which an action returns just when it is forgotten.
    choice = index % 8
    period = m + 1
    if choice == 2:
        period = m + 2
    elif choice == 4:
        period = 2 * (m + 1)
    elif choice == 6:
        period = 1 + index // 8 % (m + 1)
    elif choice == 0:
        period = n if index % 16 == 8 else 2 * m + 1
    for t in range(n):
        if t < period:
            _draw_action(x, t * lanes + s, 0.0, rng)
        else:
            for i in range(d):
                x[i, t * lanes + s] = x[i, (t - period) * lanes + s]


@kernel_internal
def _draw_action(x: Rows, column: int, rests: float, rng: np.random.Generator) -> None:
    """A uniform unit vector, with the probability `rests` shortened to a rest."""
    d = x.shape[0]
    size = 0.0
    for i in range(d):
        x[i, column] = rng.standard_normal()
        size += x[i, column] * x[i, column]
    length = REST if rests > 0.0 and rng.random() < rests else 1.0
    for i in range(d):
        x[i, column] *= length / math.sqrt(size)


@kernel_nested
def _greedy(
    memory: Memory,
    A0: Matrix | None,
    belief: Belief,
    x: Rows,
    s: int,
    lanes: int,
    rng: np.random.Generator,
) -> None:
    """Lane s: each action the best one for its own step, X^gamma theta normalised."""
    d, m = memory.d, memory.m
    n = x.shape[1] // lanes
    window = np.zeros((d, m + 1))
    work = make_work(memory, A0, m + 1, 1)
    for t in range(n):
        if memory.endless:
            # All that was chosen so far is in the window.
            m, window = t, _lane(x, lanes, s)[:, : t + 1].copy()
            work = make_work(memory, A0, t + 1, 1)
        for i in range(d):
            window[i, m] = belief.theta[t * d + i] if belief.kind == OM_BLOCK else belief.theta[i]
        features(memory, A0, window, 1, work)
        size = 0.0
        for i in range(d):
            size += work.B[i, m] * work.B[i, m]
        if size > 0.0:
            for i in range(d):
                x[i, t * lanes + s] = work.B[i, m] / math.sqrt(size)
        else:
            _draw_action(x, t * lanes + s, 0.0, rng)
        for i in range(d):
            for r in range(m - 1):
                window[i, r] = window[i, r + 1]
            if m > 0:
                window[i, m - 1] = x[i, t * lanes + s]


@kernel_internal
def _change(best: Rows, out: Rows, s: int, m: int, x: Rows, lanes: int, rng: np.random.Generator) -> None:
    """Lane s of out: the block `best` (d, n) with one change; x holds the outcomes of all starts."""
    d, n = best.shape
    kind = int(10 * rng.random())
    donor = int(lanes * rng.random())
    ahead = int(n * rng.random())
    shift = int(n * rng.random())
    target = int(n * rng.random())
    length = 1 + int((m + 2) * rng.random())
    for t in range(n):
        source = t
        if kind == 0:  # the action at `shift` moved to `target`
            if t == target:
                source = shift
            else:
                rank = t if t < target else t - 1
                source = rank if rank < shift else rank + 1
        for i in range(d):
            out[i, t * MOVES_AT_ONCE + s] = best[i, source]
    if kind == 1 or kind == 2:  # an action or two turned into rests, or rests into actions
        for t in range(shift, min(shift + kind, n)):
            _toggle(out, t * MOVES_AT_ONCE + s)
    elif kind == 3 or kind == 4:  # a stretch drawn anew
        for t in range(shift, min(shift + length, n)):
            _draw_action(out, t * MOVES_AT_ONCE + s, REST_SHARE if kind == 3 else 0.0, rng)
    elif 5 <= kind <= 7:  # a stretch from another time, of the block or of another outcome
        for t in range(shift, min(shift + length + (0 if kind == 5 else 2 * (m + 1)), n)):
            for i in range(d):
                if kind == 7:
                    out[i, t * MOVES_AT_ONCE + s] = x[i, (t + ahead) % n * lanes + donor]
                else:
                    out[i, t * MOVES_AT_ONCE + s] = best[i, (t + ahead) % n]
    elif kind >= 8:  # a third of the block or more made periodic, onwards or backwards
        period = min(1 + ahead % (2 * (m + 1) + 1), n - 1)
        for r in range(n // 3 + target // 2):
            t = shift + r if kind == 8 else shift - r
            source = t - period if kind == 8 else t + period
            if 0 <= t < n and 0 <= source < n:
                for i in range(d):
                    out[i, t * MOVES_AT_ONCE + s] = out[i, source * MOVES_AT_ONCE + s]


@kernel_internal
def _toggle(x: Rows, column: int) -> None:
    """Shortens an action to a rest, or lengthens a short one to 1."""
    size = 0.0
    for i in range(x.shape[0]):
        size += x[i, column] * x[i, column]
    scale = (REST if size > 0.25 else 1.0) / math.sqrt(max(size, 1e-300))
    for i in range(x.shape[0]):
        x[i, column] *= scale
