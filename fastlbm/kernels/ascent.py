"""Projected gradient ascent on blocks in the unit ball: owns the search, knows the objective by `evaluate`.

Spectral projected gradient (Birgin, Martinez and Raydan): the step along P(x + step g) - x has the
Barzilai-Borwein length and is accepted by a non-monotone Armijo rule. LANES starts climb side by side, one
evaluation of all of them a tick, each with its own step, history and verdict; when one is done, the next
start takes its lane. When there are no more starts, lanes that are done are taken out.

The objective of a cycle is that of the block behind its own last m actions, so that the windows wrap around;
their gradient is folded back. A block that continues a history, or that is followed by given actions, holds
them at its ends, where they stay as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal, kernel_nested
from ._types import Integers, Matrix, Rows, Vector
from .arithmetic import column, fma
from .blocks import Work, evaluate, features, make_work
from .lanes import (
    LANES,
    fold,
    hold,
    lane_sums,
    largest_entry,
    load_start,
    span_of,
    spread,
    store_lane,
    sum_lanes,
    wrap,
)
from .memory import Memory, as_cycle
from .optimism import Belief
from .vectors import WIDTH, at_least, load, read, root, store, where_above, write, zeros

#: The Armijo rule compares with the worst of so many last values.
_MEMORY = 8
_ARMIJO = 1e-4
_STEP_MIN, _STEP_MAX = 1e-8, 1e8
#: A squared length up to this is no step.
_NO_STEP = 1e-24
#: A start is given up when it would need this many times its last gains to reach the best one.
_PATIENCE = 25.0

# What is counted: lanes that are not done, the start that comes next, evaluations.
_ACTIVE, _FOLLOWING, _EVALUATIONS = 0, 1, 2

# Rows of the state of a lane; the last two are 1 where the trial point is taken, and is the best so far.
_VALUE, _SLOPE, _CURVATURE, _LENGTH, _STEP, _FRACTION, _TAKEN, _BETTER = 0, 1, 2, 3, 4, 5, 6, 7
_STATE = 8


class Ends(NamedTuple):
    """What stands at the ends of a block."""

    lead: int  # so many of its own last actions precede it: m for cycles, else 0
    head: int  # so many of its first actions are given
    tail: int  # so many of its last actions are given


class _Climb(NamedTuple):
    """The starts that climb side by side, and room for their evaluation; N = n * lanes columns."""

    lanes: int
    lead: int  # columns that precede the blocks
    point: Rows  # (d, N)
    direction: Rows
    grad: Rows
    trial: Rows
    trial_grad: Rows
    best: Rows  # the best points so far
    state: Rows  # (_STATE, lanes)
    recent: Rows  # (_MEMORY, lanes) last values
    where: Integers  # (lanes,) number of the start in each lane, -1 if it is done
    age: Integers  # evaluations of it
    accepted: Integers  # steps that it has taken
    block: Rows  # (d, lead + N) what is evaluated, the trial itself without a lead
    block_grad: Rows
    trial_value: Vector  # (lanes,)
    columns: Rows  # (_STATE, N + WIDTH) scratch
    work: Work


@kernel_nested
def _make_climb(memory: Memory, A0: Matrix | None, n: int, lanes: int, lead: int) -> _Climb:
    d, N = memory.d, n * lanes
    lead = column(lead * lanes)
    trial, trial_grad = np.zeros((d, N)), np.zeros((d, N))
    block, block_grad = trial, trial_grad
    if lead > 0:
        block, block_grad = np.zeros((d, lead + N)), np.zeros((d, lead + N))
    return _Climb(
        lanes=lanes,
        lead=lead,
        point=np.zeros((d, N)),
        direction=np.zeros((d, N)),
        grad=np.zeros((d, N)),
        trial=trial,
        trial_grad=trial_grad,
        best=np.zeros((d, N)),
        state=np.zeros((_STATE, lanes)),
        recent=np.zeros((_MEMORY, lanes)),
        where=np.arange(lanes),
        age=np.zeros(lanes, dtype=np.int64),
        accepted=np.zeros(lanes, dtype=np.int64),
        block=block,
        block_grad=block_grad,
        trial_value=np.zeros(lanes),
        columns=np.zeros((_STATE, N + WIDTH)),
        work=make_work(memory, A0, lead + N, lanes),
    )


@kernel
def ascend(
    memory: Memory,
    A0: Matrix | None,
    belief: Belief,
    x: Rows,
    ends: Ends,
    ticks: int,
    tolerance: float,
    champion: float,
    values: Vector,
    stop: Integers,
) -> int:
    """Improves the blocks that lie side by side in x (d, n*count), in place; fills values (count,).

    What `values` holds before is what each start is worth beyond its block, and counts.

    A start ends when its last _MEMORY steps together gained less than `tolerance` of its value, when no step
    helps, when it cannot beat the others or the value `champion`, or after `ticks` evaluations; all of them
    when another thread sets `stop` (1,). Returns the number of block values and gradients computed, over all
    starts.
    """
    count = values.shape[0]
    n = x.shape[1] // count
    climb = _make_climb(memory, A0, n, min(count, LANES), ends.lead)
    beyond, tally = values.copy(), np.zeros(3, dtype=np.int64)
    for s in range(count):
        values[s] = -np.inf
    for s in range(climb.lanes):
        load_start(x, count, s, climb.point, climb.direction, s, climb.lanes)
    _go_on(climb)
    tally[_ACTIVE], tally[_FOLLOWING] = climb.lanes, climb.lanes
    while True:
        champion = _climb_on(
            memory, A0, belief, climb, ends, x, beyond, values, tally, ticks, tolerance, champion, stop
        )
        if tally[_ACTIVE] == 0:
            return tally[_EVALUATIONS]
        if stop[0] != 0:
            for s in range(climb.lanes):
                _keep_best(climb, s, x, count)
            return tally[_EVALUATIONS]
        climb = _without_done(memory, A0, climb, n, ends.lead)
        _go_on(climb)


@kernel_internal
def _climb_on(
    memory: Memory,
    A0: Matrix | None,
    belief: Belief,
    climb: _Climb,
    ends: Ends,
    x: Rows,
    beyond: Vector,
    values: Vector,
    tally: Integers,
    ticks: int,
    tolerance: float,
    champion: float,
    stop: Integers,
) -> float:
    """Ticks until half of the lanes are done, or all; returns the best value so far.

    A kernel of its own, which counts no references: to count those of all arrays at every tick takes a third
    of the time of a small block (measured).
    """
    while stop[0] == 0:
        if climb.lead > 0:
            wrap(climb.trial, climb.lead, climb.block)
        evaluate(
            memory, A0, belief, climb.block, climb.lanes, climb.work, climb.trial_value, climb.block_grad
        )
        if climb.lead > 0:
            fold(climb.block_grad, climb.lead, climb.trial_grad)
        hold(climb.trial_grad, ends.head * climb.lanes, ends.tail * climb.lanes)
        tally[_EVALUATIONS] += tally[_ACTIVE]
        lane_sums(climb.direction, climb.trial_grad, climb.lanes, climb.columns, climb.state, _CURVATURE)
        champion = _judge(climb, x, beyond, values, tally, ticks, tolerance, champion)
        if 2 * tally[_ACTIVE] <= climb.lanes:
            break
        _go_on(climb)
    return champion


@inline
def _go_on(climb: _Climb) -> None:
    """Accepted starts move to their trial point and get a new direction; all get a new trial point.

    With the slope and the length of the step to it.
    """
    _move_lanes(
        climb.point,
        climb.grad,
        climb.direction,
        climb.trial,
        climb.trial_grad,
        climb.best,
        climb.lanes,
        climb.state,
        climb.columns,
    )


@inline
def _judge(
    climb: _Climb,
    x: Rows,
    beyond: Vector,
    values: Vector,
    tally: Integers,
    ticks: int,
    tolerance: float,
    champion: float,
) -> float:
    """Each lane takes its step or shortens it; one that is done gives its lane to the next start.

    Returns the best value so far.
    """
    lanes, count = climb.lanes, values.shape[0]
    state, recent, where = climb.state, climb.recent, climb.where
    age, accepted = climb.age, climb.accepted
    for s in range(lanes):
        state[_TAKEN, s], state[_BETTER, s] = 0.0, 0.0
        if where[s] < 0:
            continue
        new = climb.trial_value[s] + beyond[where[s]]
        age[s] += 1
        done = age[s] >= ticks
        if _is_accepted(state, recent, accepted[s], s, new):
            oldest = recent[accepted[s] % _MEMORY, s]
            _accept(state, recent, accepted[s], s, lanes, new, climb.trial_grad)
            accepted[s] += 1
            if new > values[where[s]]:
                values[where[s]] = new
                champion = max(champion, new)
                state[_BETTER, s] = 1.0
            if accepted[s] > _MEMORY:
                gain = new - oldest
                done = done or gain <= tolerance * abs(new) or new + _PATIENCE * gain < champion
        else:
            done = _shorten(state, s, new) or done
        if done:
            _keep_best(climb, s, x, count)
            state[_TAKEN, s], state[_BETTER, s] = 0.0, 0.0
            where[s] = -1
            following = tally[_FOLLOWING]
            if following < count:
                where[s], age[s], accepted[s] = following, 0, 0
                load_start(x, count, following, climb.point, climb.direction, s, lanes)
                tally[_FOLLOWING] += 1
            else:
                tally[_ACTIVE] -= 1
    return champion


@inline
def _keep_best(climb: _Climb, s: int, x: Rows, count: int) -> None:
    """The best point of lane s into x (d, n*count), the trial point if that is it; nothing if it has none."""
    start = climb.where[s]
    if start >= 0 and climb.accepted[s] > 0:
        best = climb.trial if climb.state[_BETTER, s] > 0.0 else climb.best
        store_lane(best, climb.lanes, s, x, count, start)


@kernel_nested
def _without_done(memory: Memory, A0: Matrix | None, climb: _Climb, n: int, lead: int) -> _Climb:
    """The same climb with half of the lanes, or fewer, all of them active but at most one in two."""
    lanes, left = climb.lanes, 0
    for s in range(lanes):
        left += climb.where[s] >= 0
    fewer = lanes
    while fewer >= 2 * left:
        fewer //= 2
    out = _make_climb(memory, A0, n, fewer, lead)
    at = 0
    for s in range(lanes):
        # Lanes that are done fill up what is left, in their order.
        if climb.where[s] < 0 and fewer - at <= left:
            continue
        left -= climb.where[s] >= 0
        out.where[at], out.age[at], out.accepted[at] = climb.where[s], climb.age[s], climb.accepted[s]
        # Row by row: to assign a slice makes Numba compile its error messages, two seconds of a first run.
        for row in range(climb.state.shape[0]):
            out.state[row, at] = climb.state[row, s]
        for row in range(_MEMORY):
            out.recent[row, at] = climb.recent[row, s]
        for i in range(climb.point.shape[0]):
            for t in range(n):
                w, v = t * lanes + s, t * fewer + at
                out.point[i, v], out.direction[i, v] = climb.point[i, w], climb.direction[i, w]
                out.grad[i, v], out.trial[i, v] = climb.grad[i, w], climb.trial[i, w]
                out.trial_grad[i, v], out.best[i, v] = climb.trial_grad[i, w], climb.best[i, w]
        at += 1
    return out


@inline
def _is_accepted(state: Rows, recent: Rows, accepted: int, s: int, new: float) -> bool:
    """The Armijo rule for lane s: against the worst of its last values, for a step that is one at all."""
    if accepted == 0:
        return new >= -np.inf
    floor = recent[0, s]
    for k in range(1, min(accepted, _MEMORY)):
        floor = min(floor, recent[k, s])
    floor += _ARMIJO * state[_FRACTION, s] * state[_SLOPE, s]
    return new >= floor and state[_LENGTH, s] > _NO_STEP


@inline
def _accept(
    state: Rows, recent: Rows, accepted: int, s: int, lanes: int, new: float, trial_grad: Rows
) -> None:
    """Lane s takes its step; the length of the next one is Barzilai and Borwein's."""
    if accepted > 0:
        # s^T s / -s^T y, s = fraction * direction, y the change of gradient.
        bend = state[_SLOPE, s] - state[_CURVATURE, s]
        step = state[_FRACTION, s] * state[_LENGTH, s] / bend if bend > 0.0 else _STEP_MAX
    else:
        step = 1.0 / max(largest_entry(trial_grad, s, lanes), _STEP_MIN)
    state[_STEP, s] = min(max(step, _STEP_MIN), _STEP_MAX)
    state[_VALUE, s] = new
    state[_TAKEN, s] = 1.0
    state[_FRACTION, s] = 1.0
    recent[accepted % _MEMORY, s] = new


@inline
def _shorten(state: Rows, s: int, new: float) -> bool:
    """The step of lane s ends at the top of the parabola through value, slope and trial value, within reason.

    Returns whether there is nothing left to shorten.
    """
    fraction, slope = state[_FRACTION, s], state[_SLOPE, s]
    gap = state[_VALUE, s] + fraction * slope - new
    shrink = 0.5 * fraction * slope / gap if gap > 0.0 else 0.5
    state[_FRACTION, s] = fraction * min(max(shrink, 0.1), 0.5)
    return fraction < 1e-10 or state[_LENGTH, s] <= _NO_STEP


@kernel_nested
def wrapped_rewards(memory: Memory, A0: Matrix | None, theta: Vector, x: Rows, n: int) -> Vector:
    """The reward (n*count,) of each action in x (d, n*count) when its block is played as a cycle."""
    count = x.shape[1] // n
    lead = column(memory.m * count)
    block = np.empty((x.shape[0], lead + x.shape[1]))
    wrap(x, lead, block)
    work = make_work(memory, A0, block.shape[1], count)
    features(as_cycle(memory), A0, block, count, work)
    rewards = np.zeros(x.shape[1])
    for i in range(x.shape[0]):
        for w in range(x.shape[1]):
            rewards[w] += theta[i] * work.B[i, lead + w]
    return rewards


@kernel_internal
def _move_lanes(
    point: Rows,
    grad: Rows,
    direction: Rows,
    trial: Rows,
    trial_grad: Rows,
    best: Rows,
    lanes: int,
    state: Rows,
    columns: Rows,
) -> None:
    d, N = point.shape
    span = span_of(lanes, N)
    for row in (_STEP, _FRACTION, _TAKEN, _BETTER):
        spread(state, row, lanes, columns, N)
    for j in range(0, N, WIDTH):
        at, count = j if span > WIDTH else 0, N - j
        taken, better = load(columns, _TAKEN, at), load(columns, _BETTER, at)
        step, fraction = load(columns, _STEP, at), load(columns, _FRACTION, at)
        size = zeros()
        for i in range(d):
            new = read(trial, i, j, count)
            write(best, i, j, count, where_above(better, 0.0, new, read(best, i, j, count)))
            new = where_above(taken, 0.0, new, read(point, i, j, count))
            slope = where_above(taken, 0.0, read(trial_grad, i, j, count), read(grad, i, j, count))
            write(point, i, j, count, new)
            write(grad, i, j, count, slope)
            new = fma(step, slope, new)
            size = fma(new, new, size)
            write(trial, i, j, count, new)
        # Into the unit ball.
        scale = 1.0 / root(at_least(size, 1.0))
        slope, length = zeros(), zeros()
        for i in range(d):
            old = read(point, i, j, count)
            new = scale * read(trial, i, j, count) - old
            new = where_above(taken, 0.0, new, read(direction, i, j, count))
            write(direction, i, j, count, new)
            write(trial, i, j, count, fma(fraction, new, old))
            slope, length = fma(new, read(grad, i, j, count), slope), fma(new, new, length)
        store(columns, _SLOPE, j, slope)
        store(columns, _LENGTH, j, length)
    sum_lanes(columns, _SLOPE, N, lanes, state, _SLOPE)
    sum_lanes(columns, _LENGTH, N, lanes, state, _LENGTH)
