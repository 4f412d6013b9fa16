"""What an arm earns itself after m others: owns the closed form by inner products.

With x^gamma = sum of w_i / (x + s_i), see `arm_poles`, c_i = c + s_i and U the arms of a window,
X = c I + U U^T has

    (X + s_i)^-1 = (I - U (c_i I + U^T U)^-1 U^T) / c_i

so that inner products of arms, under I and under V^-1, are all that is needed, whatever d is. What the arm
adds to the windows behind it is in `arm_windows`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, Matrix, Rows, Tensor, Vector


class Poles(NamedTuple):
    """x^gamma as a sum of weights / (x - c + shifts), x an eigenvalue of the memory matrix."""

    shifts: Vector  # (p,) c + s_i
    weights: Vector  # (p,)


class Arms(NamedTuple):
    """Inner products of rows of arms with the k arms that may be played."""

    G: Rows  # (rows, k)
    H: Rows  # (rows, k) under V^-1
    theta: Vector  # (k,)
    squares: Vector  # (k,)
    widths: Vector  # (k,) under V^-1
    beta: float


class Shape(NamedTuple):
    """Blocks, or with `wrap` cycles of more than m arms, of n arms."""

    m: int
    n: int
    wrap: bool


class Room(NamedTuple):
    """Scratch for what an arm is worth."""

    lin: Vector  # (m,) <X^gamma theta, a> = c^gamma <theta, a> + lin^T U^T a
    first: Matrix  # (m, m) X^gamma a = c^gamma a + U first U^T a
    second: Matrix  # (m, m) first^T U^T V^-1 U first
    M: Tensor  # (m, m, lanes)


@kernel
def make_room(m: int, p: int) -> Room:
    return Room(
        lin=np.zeros(m), first=np.zeros((m, m)), second=np.zeros((m, m)), M=np.zeros((m, m, max(p, 1)))
    )


@kernel_internal
def invert(M: Tensor, k: int, lanes: int) -> None:
    """M (k, k, lanes), positive definite matrices side by side, become their inverses."""
    for p in range(k):
        for w in range(lanes):
            M[p, p, w] = 1.0 / M[p, p, w]
        for j in range(k):
            if j != p:
                for w in range(lanes):
                    M[p, j, w] *= M[p, p, w]
        for i in range(k):
            if i != p:
                for j in range(k):
                    if j != p:
                        for w in range(lanes):
                            M[i, j, w] -= M[i, p, w] * M[p, j, w]
                for w in range(lanes):
                    M[i, p, w] *= -M[p, p, w]


@inline
def counts(shape: Shape, t: int) -> bool:
    """Whether the window before position t counts, which may be beyond the end."""
    return shape.wrap or shape.m <= t < shape.n


@kernel_internal
def _prepare_own(arms: Arms, poles: Poles, shape: Shape, block: Integers, j: int, room: Room) -> float:
    """What the arm at j is worth itself; returns c^gamma."""
    m, p, n, M = shape.m, poles.shifts.shape[0], shape.n, room.M
    free = 0.0
    for i in range(p):
        free += poles.weights[i] / poles.shifts[i]
    if not counts(shape, j):
        return free
    for r in range(m):
        for s in range(m):
            x = arms.G[block[(j - m + r) % n], block[(j - m + s) % n]]
            for i in range(p):
                M[r, s, i] = x + (poles.shifts[i] if r == s else 0.0)
    invert(M, m, p)
    for r in range(m):
        room.lin[r] = 0.0
        for s in range(m):
            x = 0.0
            for i in range(p):
                x -= poles.weights[i] / poles.shifts[i] * M[r, s, i]
            room.first[r, s] = x
            room.lin[r] += x * arms.theta[block[(j - m + s) % n]]
    if arms.beta > 0.0:
        for r in range(m):
            for s in range(m):
                M[r, s, 0] = 0.0
                for k in range(m):
                    M[r, s, 0] += arms.H[block[(j - m + r) % n], block[(j - m + k) % n]] * room.first[k, s]
        for r in range(m):
            for s in range(m):
                room.second[r, s] = 0.0
                for k in range(m):
                    room.second[r, s] += room.first[r, k] * M[k, s, 0]
    return free


@inline
def _worth_after(
    arms: Arms, shape: Shape, block: Integers, j: int, arm: int, free: float, room: Room
) -> float:
    """What an arm earns itself at j, after `_prepare_own`."""
    m, n = shape.m, shape.n
    total, width = free * arms.theta[arm], free * free * arms.widths[arm]
    for r in range(m):
        x = arms.G[block[(j - m + r) % n], arm]
        total += room.lin[r] * x
        if arms.beta > 0.0:
            for s in range(m):
                row = block[(j - m + s) % n]
                width += x * (2.0 * free * room.first[r, s] * arms.H[row, arm])
                width += x * (room.second[r, s] * arms.G[row, arm])
    return total + (arms.beta * math.sqrt(max(width, 0.0)) if arms.beta > 0.0 else 0.0)


@kernel
def worth_of_few(
    arms: Arms, poles: Poles, shape: Shape, block: Integers, few: Integers, room: Room, out: Rows, w: int
) -> None:
    """Column w of out (k, W): what each of the few arms (k,) earns as the last of a block of m+1."""
    free = _prepare_own(arms, poles, shape, block, shape.m, room)
    for a in range(few.shape[0]):
        out[a, w] = _worth_after(arms, shape, block, shape.m, few[a], free, room)
