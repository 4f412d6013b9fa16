"""Exact plans of a few arms: owns the dynamic program over the last m of them, all states side by side.

As in `dynamic_programs`, a state is the last m arms, the oldest the leading digit. Here what an arm earns is
laid out state by state, so that one pass over all states serves an arm: twice as fast (measured). Windows are
valued with the poles of `arm_poles`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import kernel, kernel_internal, kernel_nested
from ._types import Integers, Rows, Vector
from .arithmetic import column
from .arm_worth import Arms, Poles, Room, Shape, worth_of_few
from .dynamic_programs import Table, fill_states


class Program(NamedTuple):
    """The states of k arms, S = k^m, and what a program fills."""

    windows: Table  # (W, m) see `fill_states`
    rank: Table  # (S,)
    table: Rows  # (k, S) what an arm earns in a state
    ahead: Rows  # (k, S/k)
    V: Rows  # (steps+1, S)


@kernel_nested
def _values_of_windows(arms: Arms, poles: Poles, m: int, few: Integers, windows: Table, room: Room) -> Rows:
    """values (k, W): what each of the few arms earns after each of the windows (W, m)."""
    k, W = few.shape[0], windows.shape[0]
    values, block, shape = np.empty((k, W)), np.empty(m + 1, dtype=np.int64), Shape(m, m + 1, False)
    for w in range(W):
        for s in range(m):
            block[s] = few[windows[w, s]]
        block[m] = few[0]
        worth_of_few(arms, poles, shape, block, few, room, values, w)
    return values


@kernel_internal
def _step(table: Rows, ahead: Rows, after: Vector, now: Vector) -> None:
    """now (S,) from `after`, a step later: the best arm in every state."""
    k, S = table.shape
    tail = S // k
    for u in range(tail):
        for a in range(k):
            ahead[a, u] = after[u * k + a]
    for oldest in range(k):
        first = column(oldest * tail)
        for u in range(tail):
            now[first + u] = table[0, first + u] + ahead[0, u]
        for a in range(1, k):
            for u in range(tail):
                x, best = table[a, first + u] + ahead[a, u], now[first + u]
                now[first + u] = x if x > best else best


@kernel
def make_program(k: int, m: int, n: int) -> Program:
    """Room for programs of k arms and blocks of n; m > 0."""
    S, W, steps = k**m, 1, n - m
    for i in range(m):
        W = W * (k + i) // (i + 1)
    program = Program(
        windows=np.empty((W, m), dtype=np.int32),
        rank=np.empty(S, dtype=np.int32),
        table=np.empty((k, S)),
        ahead=np.empty((k, S // k)),
        V=np.zeros((steps + 1, S)),
    )
    fill_states(k, m, program.windows, program.rank)
    return program


@kernel
def plan_of_few(
    arms: Arms, poles: Poles, program: Program, few: Integers, room: Room
) -> tuple[Integers, float]:
    """The best block (n,) of the arms `few` (k,) alone, and its value."""
    (k, S), m, steps = program.table.shape, program.windows.shape[1], program.V.shape[0] - 1
    table, V = program.table, program.V
    values = _values_of_windows(arms, poles, m, few, program.windows, room)
    for a in range(k):
        for s in range(S):
            table[a, s] = values[a, program.rank[s]]
    V[steps] = 0.0
    for t in range(steps - 1, -1, -1):
        _step(table, program.ahead, V[t + 1], V[t])
    state = 0
    for s in range(1, S):
        if V[0, s] > V[0, state]:
            state = s
    value, out, code = V[0, state], np.empty(m + steps, dtype=np.int64), state
    for i in range(m - 1, -1, -1):
        out[i] = few[code % k]
        code //= k
    for t in range(steps):
        arm, best = 0, -np.inf
        for a in range(k):
            x = table[a, state] + V[t + 1, (state * k + a) % S]
            if x > best:
                arm, best = a, x
        out[m + t] = few[arm]
        state = (state * k + arm) % S
    return out, value
