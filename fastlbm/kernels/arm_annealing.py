"""Annealing and climbing by exact worths: owns a catalogue's inner products, and how arms of a block change.

A position gets an arm drawn with probabilities exp(worth / temperature), or the best one. The worths of a
position are computed again only after a change near it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import kernel, kernel_internal
from ._types import Flags, Integers, Matrix, Rows, Vector
from .arm_worth import Arms, Poles, Room, Shape, worth_at

#: The first and the last temperature of annealing, in what a step of a good cycle is worth, and how many
#: sweeps without temperature come behind.
HOT, COLD, STILL = 0.2, 0.01, 3


class Catalogue(NamedTuple):
    """All arms, and what is known of rewards."""

    A: Rows  # (K, d)
    VA: Rows  # (K, d) V^-1 a
    theta: Vector  # (K,) <a, theta>
    squares: Vector  # (K,)
    widths: Vector  # (K,)
    beta: float


@kernel
def make_catalogue(A: Rows, theta: Vector, V_inv: Matrix, beta: float) -> Catalogue:
    K, d = A.shape
    VA, inner, squares, widths = np.zeros((K, d)), np.zeros(K), np.zeros(K), np.zeros(K)
    for k in range(K):
        for i in range(d):
            inner[k] += A[k, i] * theta[i]
            squares[k] += A[k, i] ** 2
            if beta > 0.0:
                for j in range(d):
                    VA[k, i] += V_inv[i, j] * A[k, j]
                widths[k] += A[k, i] * VA[k, i]
    return Catalogue(A=A, VA=VA, theta=inner, squares=squares, widths=widths, beta=beta)


@kernel
def columns_of(A: Rows, pool: Integers) -> Rows:
    """The arms of a pool (k,) as columns (d, k)."""
    columns = np.empty((A.shape[1], pool.shape[0]))
    for s in range(pool.shape[0]):
        for i in range(A.shape[1]):
            columns[i, s] = A[pool[s], i]
    return columns


@kernel
def arms_of(catalogue: Catalogue, rows: Integers, pool: Integers) -> Arms:
    """The inner products of some arms, the rows, with those of a pool (k,)."""
    A, beta = catalogue.A, catalogue.beta
    k, columns, G = pool.shape[0], columns_of(A, pool), np.zeros((rows.shape[0], pool.shape[0]))
    H = np.zeros((rows.shape[0] if beta > 0.0 else 1, k))
    for r in range(rows.shape[0]):
        _inner(A[rows[r]], columns, G, r)
        if beta > 0.0:
            _inner(catalogue.VA[rows[r]], columns, H, r)
    theta, squares, widths = catalogue.theta[pool], catalogue.squares[pool], catalogue.widths[pool]
    return Arms(G=G, H=H, theta=theta, squares=squares, widths=widths, beta=beta)


@kernel_internal
def _inner(a: Vector, columns: Rows, G: Rows, r: int) -> None:
    """Row r of G: the inner products of a (d,) with the columns (d, k)."""
    for s in range(columns.shape[1]):
        G[r, s] = 0.0
    for i in range(a.shape[0]):
        x = a[i]
        for s in range(columns.shape[1]):
            G[r, s] += x * columns[i, s]


@kernel_internal
def _put(shape: Shape, block: Integers, fresh: Flags, j: int, arm: int) -> None:
    """Another arm at j: what its windows hold is to be looked at anew."""
    block[j] = arm
    for s in range(j - shape.m, j + shape.m + 1):
        if (shape.wrap or 0 <= s < shape.n) and s % shape.n != j:
            fresh[s % shape.n] = False


@kernel
def anneal(
    catalogue: Catalogue,
    poles: Poles,
    shape: Shape,
    pool: Integers,
    unit: float,
    sweeps: int,
    room: Room,
    rng: np.random.Generator,
) -> tuple[Integers, int]:
    """A cycle (n,) of arms of a pool, from a random one; also how often worths were computed."""
    k, n, seen, temperature = pool.shape[0], shape.n, 0, HOT * unit
    cooling = (COLD / HOT) ** (1.0 / max(sweeps - 1, 1))
    block, rows = np.empty(n, dtype=np.int64), np.arange(n)
    for t in range(n):
        block[t] = int(k * rng.random())
    columns, arms = columns_of(catalogue.A, pool), arms_of(catalogue, pool[block], pool)
    worth, fresh = np.empty((n, k)), np.zeros(n, dtype=np.bool_)
    for sweep in range(sweeps + STILL):
        for j in range(n):
            if not fresh[j]:
                worth_at(arms, poles, shape, block, rows, j, room, worth)
                fresh[j] = True
                seen += 1
            chosen = _draw(worth, j, block[j], temperature, rng)
            if chosen != block[j]:
                _put(shape, block, fresh, j, chosen)
                _inner(catalogue.A[pool[chosen]], columns, arms.G, j)
                if catalogue.beta > 0.0:
                    _inner(catalogue.VA[pool[chosen]], columns, arms.H, j)
        temperature *= cooling if sweep < sweeps - 1 else 1e-6
    return pool[block], seen


@kernel_internal
def _draw(worth: Rows, j: int, now: int, temperature: float, rng: np.random.Generator) -> int:
    """An arm for position j, drawn with probabilities that are exp(worth / temperature) up to a factor."""
    k, top = worth.shape[1], -math.inf
    for x in range(k):
        top = worth[j, x] if worth[j, x] > top else top
    total, chosen, low = 0.0, now, top - 12.0 * temperature
    if worth[j, now] == top and temperature < 1e-3 * abs(top):
        return now
    for x in range(k):
        if worth[j, x] >= low:
            weight = math.exp((worth[j, x] - top) / temperature)
            total += weight
            if rng.random() * total < weight:
                chosen = x
    return chosen


@kernel
def climb(
    arms: Arms, poles: Poles, shape: Shape, block: Integers, room: Room, worth: Rows, fresh: Flags
) -> int:
    """The best arm at each position in turn, until none is better; returns how often worths were computed."""
    k, seen, quiet, j, patience = worth.shape[1], 0, 0, 0, 40 * shape.n
    while quiet < shape.n and patience > 0:
        if not fresh[j]:
            worth_at(arms, poles, shape, block, block, j, room, worth)
            fresh[j] = True
            seen += 1
        best = block[j]
        for x in range(k):
            best = x if worth[j, x] > worth[j, best] else best
        quiet, patience = quiet + 1, patience - 1
        if worth[j, best] > worth[j, block[j]] + 1e-10 * abs(worth[j, block[j]]):
            _put(shape, block, fresh, j, best)
            quiet = 0
        j = (j + 1) % shape.n
    return seen


@kernel
def climb_among_all(
    catalogue: Catalogue, poles: Poles, shape: Shape, block: Integers, room: Room, changes: bool
) -> tuple[Rows, Integers]:
    """The worths (n, K) of all arms at each position; with `changes` the block (n,) takes the best of them.

    Each position is looked at once, and again after changes near it, twice at the most. Also the block.
    """
    K, n = catalogue.A.shape[0], shape.n
    everything, rows = np.arange(K), np.arange(n)
    arms, block = arms_of(catalogue, block, everything), block.copy()
    worth, fresh = np.empty((n, K)), np.zeros(n, dtype=np.bool_)
    one = np.empty(1, dtype=np.int64)
    for look in range(2 * n if changes else n):
        j = look % n
        if fresh[j]:
            continue
        worth_at(arms, poles, shape, block, rows, j, room, worth)
        fresh[j] = True
        place = int(np.argmax(worth[j]))
        if changes and worth[j, place] > worth[j, block[j]] + 1e-10 * abs(worth[j, block[j]]):
            _put(shape, block, fresh, j, place)
            one[0] = place
            row = arms_of(catalogue, one, everything)
            arms.G[j] = row.G[0]
            if catalogue.beta > 0.0:
                arms.H[j] = row.H[0]
    return worth, block


@kernel
def worths(arms: Arms, poles: Poles, shape: Shape, block: Integers, room: Room) -> Rows:
    """The worths (n, k) of all arms of a pool at each position of a block (n,) of its numbers."""
    worth = np.empty((shape.n, arms.theta.shape[0]))
    for j in range(shape.n):
        worth_at(arms, poles, shape, block, block, j, room, worth)
    return worth
