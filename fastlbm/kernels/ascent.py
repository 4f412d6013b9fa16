"""Projected gradient ascent on blocks in the unit ball: owns the search, knows the objective by `evaluate`.

Spectral projected gradient (Birgin, Martinez and Raydan): the step along P(x + step g) - x has the
Barzilai-Borwein length and is accepted by a non-monotone Armijo rule. LANES starts climb side by side, one
evaluation of all of them a tick, each with its own step, history and verdict; when one is done, the next
start takes its lane.

The objective of a cycle is that of the block behind its own last m actions, so that the windows wrap around;
their gradient is folded back.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, Matrix, Rows, Vector
from .arithmetic import column
from .blocks import evaluate, features, make_work
from .memory import Memory
from .optimism import Belief

#: Starts that climb side by side.
LANES = 8
#: The Armijo rule compares with the worst of so many last values.
_MEMORY = 8
_ARMIJO = 1e-4
_STEP_MIN, _STEP_MAX = 1e-8, 1e8
#: A squared length up to this is no step.
_NO_STEP = 1e-24
#: A start is given up when it would need this many times its last gains to reach the best one.
_PATIENCE = 25.0

# Rows of the state of a lane.
_VALUE, _SLOPE, _CURVATURE, _LENGTH, _STEP, _FRACTION, _TAKEN = 0, 1, 2, 3, 4, 5, 6


@kernel
def ascend(
    memory: Memory,
    A0: Matrix | None,
    belief: Belief,
    x: Rows,
    lead: int,
    ticks: int,
    tolerance: float,
    champion: float,
    values: Vector,
    stop: Integers,
) -> int:
    """Improves the blocks that lie side by side in x (d, n*count), in place; fills values (count,).

    `lead` is 0, or m for cycles: so many of its own last actions precede each block.

    A start ends when its last _MEMORY steps together gained less than `tolerance` of its value, when no step
    helps, when it cannot beat the others or the value `champion`, or after `ticks` evaluations; all of them
    when another thread sets `stop` (1,). Returns the number of block values and gradients computed, over all
    starts.
    """
    # Long: with the copy to x in a function of its own, and fewer lines, a cold plan takes 4% longer.
    d, count = x.shape[0], values.shape[0]
    n = x.shape[1] // count
    lanes = min(count, LANES)
    N = n * lanes
    lead = column(lead * lanes)
    point, direction, grad = np.zeros((d, N)), np.zeros((d, N)), np.zeros((d, N))
    trial, trial_grad = np.zeros((d, N)), np.zeros((d, N))
    block, block_grad = np.zeros((d, lead + N)), np.zeros((d, lead + N))
    work = make_work(memory, A0, lead + N, lanes)
    columns = np.empty((3, N))
    state = np.zeros((7, lanes))
    recent = np.zeros((_MEMORY, lanes))
    trial_value = np.zeros(lanes)
    where = np.arange(lanes)
    age = np.zeros(lanes, dtype=np.int64)
    accepted = np.zeros(lanes, dtype=np.int64)
    for s in range(count):
        values[s] = -np.inf
    for s in range(lanes):
        _load(x, count, s, point, direction, s, lanes)
    _move(point, grad, direction, trial, trial_grad, lanes, state, columns)
    following = lanes
    active = lanes
    evaluations = 0
    while active > 0 and stop[0] == 0:
        _wrap(trial, lead, block)
        evaluate(memory, A0, belief, block, lanes, work, trial_value, block_grad)
        _fold(block_grad, lead, trial_grad)
        evaluations += active
        _lane_sums(direction, trial_grad, lanes, state, _CURVATURE)
        for s in range(lanes):
            state[_TAKEN, s] = 0.0
            if where[s] < 0:
                continue
            new = trial_value[s]
            age[s] += 1
            done = age[s] >= ticks
            if _is_accepted(state, recent, accepted[s], s, new):
                oldest = recent[accepted[s] % _MEMORY, s]
                _accept(state, recent, accepted[s], s, lanes, new, trial_grad)
                accepted[s] += 1
                if new > values[where[s]]:
                    values[where[s]] = new
                    champion = max(champion, new)
                    for i in range(d):
                        for t in range(n):
                            x[i, t * count + where[s]] = trial[i, t * lanes + s]
                if accepted[s] > _MEMORY:
                    gain = new - oldest
                    done = done or gain <= tolerance * abs(new) or new + _PATIENCE * gain < champion
            else:
                done = _shorten(state, s, new) or done
            if done:
                state[_TAKEN, s] = 0.0
                where[s] = -1
                if following < count:
                    where[s], age[s], accepted[s] = following, 0, 0
                    _load(x, count, following, point, direction, s, lanes)
                    following += 1
                else:
                    active -= 1
        _move(point, grad, direction, trial, trial_grad, lanes, state, columns)
        _lane_sums(direction, grad, lanes, state, _SLOPE)
        _lane_sums(direction, direction, lanes, state, _LENGTH)
    return evaluations


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
        step = 1.0 / max(_largest(trial_grad, s, lanes), _STEP_MIN)
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


@kernel
def wrapped_rewards(memory: Memory, A0: Matrix | None, theta: Vector, x: Rows, n: int) -> Vector:
    """The reward (n*count,) of each action in x (d, n*count) when its block is played as a cycle."""
    count = x.shape[1] // n
    lead = column(memory.m * count)
    block = np.empty((x.shape[0], lead + x.shape[1]))
    _wrap(x, lead, block)
    work = make_work(memory, A0, block.shape[1], count)
    features(memory, A0, block, count, work)
    rewards = np.zeros(x.shape[1])
    for i in range(x.shape[0]):
        for w in range(x.shape[1]):
            rewards[w] += theta[i] * work.B[i, lead + w]
    return rewards


@kernel_internal
def project(x: Rows, scale: Vector) -> None:
    """Every column of x (d, N) into the unit ball; scale (N,) is scratch."""
    d, N = x.shape
    for w in range(N):
        scale[w] = 0.0
    for i in range(d):
        for w in range(N):
            scale[w] += x[i, w] * x[i, w]
    for w in range(N):
        scale[w] = 1.0 / math.sqrt(max(scale[w], 1.0))
    for i in range(d):
        for w in range(N):
            x[i, w] *= scale[w]


@kernel_internal
def _load(x: Rows, count: int, index: int, point: Rows, direction: Rows, s: int, lanes: int) -> None:
    """Start number `index` into lane s, at rest."""
    d, N = point.shape
    for t in range(N // lanes):
        size = 0.0
        for i in range(d):
            size += x[i, t * count + index] * x[i, t * count + index]
        scale = 1.0 / math.sqrt(max(size, 1.0))
        for i in range(d):
            point[i, t * lanes + s] = scale * x[i, t * count + index]
            direction[i, t * lanes + s] = 0.0


@kernel_internal
def _move(
    point: Rows,
    grad: Rows,
    direction: Rows,
    trial: Rows,
    trial_grad: Rows,
    lanes: int,
    state: Rows,
    columns: Rows,
) -> None:
    """Accepted starts move to their trial point and get a new direction; all get a new trial point."""
    d, N = point.shape
    for t in range(0, N, lanes):
        for s in range(lanes):
            columns[0, t + s] = state[_TAKEN, s]
            columns[1, t + s] = state[_STEP, s]
            columns[2, t + s] = state[_FRACTION, s]
    for i in range(d):
        for w in range(N):
            taken = columns[0, w] > 0.0
            point[i, w] = trial[i, w] if taken else point[i, w]
            grad[i, w] = trial_grad[i, w] if taken else grad[i, w]
        for w in range(N):
            trial[i, w] = point[i, w] + columns[1, w] * grad[i, w]
    project(trial, columns[1])
    for i in range(d):
        for w in range(N):
            direction[i, w] = trial[i, w] - point[i, w] if columns[0, w] > 0.0 else direction[i, w]
        for w in range(N):
            trial[i, w] = point[i, w] + columns[2, w] * direction[i, w]


@kernel
def _lane_sums(x: Rows, y: Rows, lanes: int, state: Rows, row: int) -> None:
    """Row `row` of the state = <x, y> of each lane."""
    d, N = x.shape
    if lanes == LANES:
        # Constant bounds keep the sums of all lanes in registers.
        total = np.zeros(LANES)
        for i in range(d):
            for t in range(0, N, LANES):
                for s in range(LANES):
                    total[s] += x[i, t + s] * y[i, t + s]
        for s in range(LANES):
            state[row, s] = total[s]
        return
    for s in range(lanes):
        total_s = 0.0
        for i in range(d):
            for w in range(s, N, lanes):
                total_s += x[i, w] * y[i, w]
        state[row, s] = total_s


@kernel_internal
def _largest(x: Rows, s: int, lanes: int) -> float:
    """The largest entry in size of lane s."""
    largest = 0.0
    for i in range(x.shape[0]):
        for t in range(s, x.shape[1], lanes):
            largest = max(largest, abs(x[i, t]))
    return largest


@kernel_internal
def _wrap(x: Rows, lead: int, block: Rows) -> None:
    """block (d, lead + N): the cycle x (d, N) behind its own last `lead` columns."""
    d, N = x.shape
    for i in range(d):
        for w in range(lead):
            block[i, w] = x[i, (w - lead) % N]
        for w in range(N):
            block[i, lead + w] = x[i, w]


@kernel_internal
def _fold(block_grad: Rows, lead: int, grad: Rows) -> None:
    """The gradient of `_wrap`: every copy of an action adds to it."""
    d, N = grad.shape
    for i in range(d):
        for w in range(N):
            grad[i, w] = block_grad[i, lead + w]
        for w in range(lead):
            grad[i, (w - lead) % N] += block_grad[i, w]
