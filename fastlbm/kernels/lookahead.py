"""Planning from where one is: owns the search for the next actions after a history, and what follows them.

After m actions that were played come `ahead` that are planned, then m of a cycle, which is thought to go on
for ever; where the memory has no end, as many as it takes to forget nearly all before them. All their windows
count, and so does the phase at which the cycle goes on, by its bias: what it collects from there more than
from another phase in the long run. Without that a plan puts its harvest at its end, and the next one does so
again, later.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import kernel, kernel_nested
from ._types import Integers, Matrix, Rows, Vector
from .arithmetic import column
from .ascent import Ends, ascend
from .blocks import features, make_work
from .memory import Memory, as_cycle
from .optimism import Belief
from .search import Effort, search
from .ties import ASCENT_SHARE, exceeds, margin

#: Starts that a search for a cycle makes of the one before.
VARIANTS = 4


@kernel
def better_cycle(
    memory: Memory,
    A0: Matrix | None,
    belief: Belief,
    cycle: Rows,
    longest: int,
    tries: int,
    effort: Effort,
    rng: np.random.Generator,
) -> Rows:
    """A cycle with a larger average UCB than that of `cycle` (d, P), if a search finds one; P = 0 for none.

    `tries` periods up to the longest are searched, also from `cycle` itself, cut or continued to that period
    from one phase or another: good cycles are often those of shorter periods joined.
    """
    d, m = memory.d, memory.turn
    best, largest = cycle, -np.inf
    free = np.empty((d, 0))
    for trial in range(tries + 1):
        P = best.shape[1]
        given = VARIANTS if P > 0 else 0
        if trial == 0:
            # The cycle itself, after what was learned since; at first, the shortest in which nothing repeats.
            period, given = (P, 1) if P > 0 else (min(m + 1, longest), 0)
        else:
            # Any period, or one turn of m+1 or m+2 actions more or less, or the same.
            turn, choice = m + 1 + (rng.random() < 0.5), int(4.0 * rng.random())
            period = 1 + int(longest * rng.random())
            if choice < 3:
                period = min(max(P + (choice - 1) * turn, 1), longest)
        warm = np.empty((d, period * given))
        for s in range(given):
            phase = 0 if trial == 0 else int(P * rng.random())
            for i in range(d):
                for t in range(period):
                    warm[i, t * given + s] = best[i, (phase + t) % P]
        starts, moves = (0, 0) if trial == 0 and P > 0 else (effort.starts, effort.moves)
        chosen = Effort(
            starts=starts,
            cycles=effort.cycles,
            moves=moves,
            ticks=effort.ticks,
            polish=effort.polish,
            tolerance=effort.tolerance,
            limit=effort.limit,
            stop=effort.stop,
        )
        found, value, _, _ = search(
            memory, A0, belief, period, True, free, warm, chosen, largest * period, rng
        )
        # Another period must be better, not better by rounding.
        if trial == 0 or exceeds(value / period, largest, margin(largest, ASCENT_SHARE)):
            best, largest = found, value / period
    return best


@kernel
def cycle_bias(memory: Memory, A0: Matrix | None, belief: Belief, cycle: Rows) -> Vector:
    """h (P,): what a cycle (d, P) collects more from each phase on, in UCBs, than on average over all phases.

    h(s) = average over j = 0..P-1 of sum_{i<j} (r_{s+i} - mean r).
    """
    d, P = cycle.shape
    m = memory.m
    sequence = np.empty((d, m + P))
    for i in range(d):
        for t in range(m + P):
            sequence[i, t] = cycle[i, (t - m) % P]
    work = make_work(memory, A0, m + P, 1)
    features(as_cycle(memory), A0, sequence, 1, work)
    values = np.zeros(P)
    mean = 0.0
    for t in range(P):
        squared = 0.0
        for i in range(d):
            b = work.B[i, m + t]
            values[t] += belief.theta[i] * b
            for j in range(d):
                squared += b * belief.V_inv[i, j] * work.B[j, m + t]
        values[t] += belief.beta * math.sqrt(max(squared, 0.0))
        mean += values[t] / P
    bias = np.zeros(P)
    for s in range(P):
        for i in range(P - 1):
            bias[s] += (values[(s + i) % P] - mean) * (P - 1 - i) / P
    return bias


@kernel
def plan_ahead(
    memory: Memory,
    A0: Matrix | None,
    belief: Belief,
    before: Rows,
    cycle: Rows,
    warm: Rows,
    joins: Integers,
    every_phase: bool,
    ahead: int,
    effort: Effort,
) -> tuple[Rows, int, float, int]:
    """What to play after the actions `before` (m, d): `ahead` actions and m of the cycle, (d, ahead+m).

    Where the memory has no end, `before` is (0, d), and so many of the cycle come after that nearly all is
    forgotten, `memory.tail`.

    The starts are the cycle from each phase, and the actions `warm` (d, k), k <= ahead, followed by the cycle
    from each phase in `joins`. The best of them climb, `effort.starts` at most. Also returns the phase at
    which the cycle goes on, the value, and the evaluations.
    """
    d, P = cycle.shape
    m, tail = memory.m, memory.tail
    n = m + ahead + tail
    phases = P if every_phase else 0
    count = phases + joins.shape[0]
    bias = cycle_bias(memory, A0, belief, cycle)
    x, values = np.empty((d, n * count)), np.empty(count)
    phase = np.empty(count, dtype=np.int64)
    for s in range(count):
        given = warm.shape[1] if s >= phases else 0
        first = joins[s - phases] if s >= phases else s
        phase[s] = (first + ahead - given + tail) % P
        values[s] = bias[phase[s]]
        for i in range(d):
            for t in range(m):
                x[i, t * count + s] = before[t, i]
            for t in range(ahead + tail):
                action = warm[i, t] if t < given else cycle[i, (first + t - given) % P]
                x[i, (m + t) * count + s] = action
    ends = Ends(0, m, tail)
    evaluations = 0
    chosen = np.arange(count)
    if count > effort.starts:
        # Which are worth climbing from.
        evaluations += ascend(memory, A0, belief, x, ends, 1, 0.0, -np.inf, values, effort.stop)
        chosen = _best_first(values, effort.starts)
    lanes = chosen.shape[0]
    y, best = np.empty((d, n * lanes)), np.empty(lanes)
    for s in range(lanes):
        best[s] = bias[phase[chosen[s]]]
        for i in range(d):
            for t in range(n):
                y[i, t * lanes + s] = x[i, t * count + chosen[s]]
    evaluations += ascend(
        memory, A0, belief, y, ends, effort.ticks, effort.tolerance, -np.inf, best, effort.stop
    )
    winner = 0
    for s in range(1, lanes):
        if best[s] > best[winner]:
            winner = s
    plan = np.empty((d, ahead + tail))
    for i in range(d):
        for t in range(ahead + tail):
            plan[i, t] = y[i, column((m + t) * lanes + winner)]
    return plan, phase[chosen[winner]], best[winner], evaluations


@kernel_nested
def _best_first(values: Vector, n: int) -> Integers:
    """Where the n largest values are, the largest first and the first of equal ones; n is small."""
    chosen, left = np.empty(n, dtype=np.int64), values.copy()
    for k in range(n):
        best = 0
        for s in range(1, left.shape[0]):
            if left[s] > left[best]:
                best = s
        chosen[k] = best
        left[best] = -np.inf
    return chosen
