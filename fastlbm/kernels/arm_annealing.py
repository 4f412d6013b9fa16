"""Annealing: owns a catalogue's inner products, and how arms of a block change.

A position gets an arm drawn with probabilities exp(worth / temperature), worths being those of `arm_screens`.
Without temperature it gets the best by exact worths of a few that are drawn so, and is looked at again only
after a change near it. Rows of a catalogue behind those that may be played are actions of the past.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import kernel, kernel_internal, kernel_nested
from ._types import Flags, Integers, Matrix, Rows, Vector
from .arm_scores import shortlist
from .arm_screens import GROUP, STRIP, Forms, fill_forms, make_forms, propose, screen
from .arm_worth import Arms, Poles, Room, Shape, fill_worths, prepare_at

#: How many sweeps without temperature come behind those of annealing.
STILL = 2
#: Arms whose exact worth is told at a visit.
TRIED = 8
#: Arms that count as useful at one position.
USEFUL = 8


class Heat(NamedTuple):
    """The first and the last temperature of annealing, and in how many sweeps."""

    hot: float
    cold: float
    sweeps: int


class Catalogue(NamedTuple):
    """All arms, behind them actions of the past, and what is known of rewards."""

    A: Rows  # (K, d)
    VA: Rows  # (K, d) V^-1 a
    theta: Vector  # (K,) <a, theta>
    squares: Vector  # (K,)
    widths: Vector  # (K,)
    beta: float
    target: Vector  # (d,) theta itself
    V_inv: Matrix


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
    return Catalogue(
        A=A, VA=VA, theta=inner, squares=squares, widths=widths, beta=beta, target=theta, V_inv=V_inv
    )


@kernel_internal
def _put(shape: Shape, block: Integers, fresh: Flags, j: int, arm: int) -> None:
    """Another arm at j: what its windows hold is to be looked at anew."""
    block[j] = arm
    for s in range(j - shape.m, j + shape.m + 1):
        if (shape.wrap or 0 <= s < shape.n) and s % shape.n != j:
            fresh[s % shape.n] = False


class Desk(NamedTuple):
    """Scratch for annealing blocks or cycles of n arms."""

    columns: Rows  # see `columns_of`
    arms: Arms  # inner products of the n arms with themselves and with TRIED others
    rows: Integers  # (n,) 0, 1, ...
    tried: Integers  # (TRIED,)
    worth: Rows  # (n, n+TRIED)
    scores: Rows  # (groups, GROUP), flat by arms
    weights: Vector  # (K,)
    lanes: Vector  # (STRIP,)
    found: Integers  # (USEFUL+1,)
    best: Vector  # (USEFUL+1,)
    forms: Forms


@kernel
def make_desk(catalogue: Catalogue, columns: Rows, K: int, m: int, n: int, p: int) -> Desk:
    """Of the catalogue the first K arms may be played."""
    c = n + TRIED
    arms = Arms(
        G=np.zeros((n, c)),
        H=np.zeros((n, c)),
        theta=np.zeros(c),
        squares=np.zeros(c),
        widths=np.zeros(c),
        beta=catalogue.beta,
    )
    return Desk(
        columns=columns,
        arms=arms,
        rows=np.arange(n),
        tried=np.zeros(TRIED, dtype=np.int64),
        worth=np.zeros((n, c)),
        scores=np.zeros(((K + GROUP - 1) // GROUP, GROUP)),
        weights=np.empty(K),
        lanes=np.empty(STRIP),
        found=np.zeros(USEFUL + 1, dtype=np.int64),
        best=np.zeros(USEFUL + 1),
        forms=make_forms(catalogue.target, catalogue.V_inv, m, p),
    )


@kernel_internal
def _describe(catalogue: Catalogue, arms: Arms, at: int, arm: int) -> None:
    """Column `at` is an arm, but for its inner products."""
    arms.theta[at], arms.squares[at] = catalogue.theta[arm], catalogue.squares[arm]
    arms.widths[at] = catalogue.widths[arm]


@kernel_internal
def _place(catalogue: Catalogue, arms: Arms, block: Integers, j: int) -> None:
    """The inner products of the arm at j with those of the block (n,)."""
    a, b = catalogue.A[block[j]], catalogue.VA[block[j]]
    _describe(catalogue, arms, j, block[j])
    for t in range(block.shape[0]):
        x, y, other = 0.0, 0.0, catalogue.A[block[t]]
        for i in range(a.shape[0]):
            x += a[i] * other[i]
            y += b[i] * other[i]
        arms.G[j, t], arms.G[t, j] = x, x
        arms.H[j, t], arms.H[t, j] = y, y


@kernel_internal
def _try(catalogue: Catalogue, shape: Shape, block: Integers, j: int, arms: Arms, c: int, arm: int) -> None:
    """Column n+c is an arm that may come to position j."""
    m, n = shape.m, shape.n
    a, at = catalogue.A[arm], n + c
    _describe(catalogue, arms, at, arm)
    for s in range(2 * m):
        place = j - m + s + (s >= m)
        if shape.wrap or 0 <= place < n:
            t, x, y = place % n, 0.0, 0.0
            other, under = catalogue.A[block[t]], catalogue.VA[block[t]]
            for i in range(a.shape[0]):
                x += a[i] * other[i]
                y += a[i] * under[i]
            arms.G[t, at], arms.H[t, at] = x, y


@kernel_internal
def _best(
    catalogue: Catalogue,
    poles: Poles,
    shape: Shape,
    block: Integers,
    j: int,
    free: float,
    desk: Desk,
    room: Room,
) -> int:
    """The best by exact worths of TRIED arms, that of now and such as were drawn."""
    arms, tried, n = desk.arms, desk.tried, shape.n
    tried[0] = block[j]
    for c in range(TRIED):
        _try(catalogue, shape, block, j, arms, c, tried[c])
    fill_worths(arms, poles, shape, desk.rows, j, free, n, room, desk.worth)
    best = 0
    for c in range(1, TRIED):
        if desk.worth[j, n + c] > desk.worth[j, n + best] + 1e-10 * abs(desk.worth[j, n]):
            best = c
    return tried[best]


@kernel
def anneal(
    catalogue: Catalogue,
    poles: Poles,
    shape: Shape,
    block: Integers,
    head: int,
    first: int,
    count: int,
    heat: Heat,
    desk: Desk,
    gains: Vector,
    room: Room,
    rng: np.random.Generator,
) -> int:
    """So many positions of a block (n,) or cycle from `first` on are annealed, in place.

    Behind it come sweeps without temperature over the whole block but for its `head`, which stays. In
    the first of them gains (K,) learn which arms are useful, see `_note`. Returns how many looks without
    temperature there were; the inner products of the block's arms are in the desk.
    """
    n, temperature, seen = shape.n, heat.hot, 0
    cooling = (heat.cold / heat.hot) ** (1.0 / max(heat.sweeps - 1, 1))
    fresh = np.zeros(n, dtype=np.bool_)
    for j in range(n):
        _place(catalogue, desk.arms, block, j)
    if count < n:
        for j in range(n):
            fresh[j] = not first - shape.m <= j < first + count + shape.m
    for sweep in range(heat.sweeps + STILL):
        still = sweep >= heat.sweeps
        for turn in range(n - head if still else count):
            j = head + turn if still else (first + turn) % n
            if still and fresh[j]:
                continue
            free = prepare_at(desk.arms, poles, shape, desk.rows, desk.rows, j, room)
            fill_forms(catalogue.A, catalogue.VA, desk.arms, poles, shape, block, j, free, room, desk.forms)
            screen(desk.columns, desk.forms, catalogue.beta, desk.scores)
            drawn = desk.tried if still else desk.tried[:1]
            propose(desk.scores, temperature, desk.weights, desk.lanes, drawn, rng)
            chosen = drawn[0]
            if still:
                chosen = _best(catalogue, poles, shape, block, j, free, desk, room)
                fresh[j], seen = True, seen + 1
                if sweep == heat.sweeps:
                    _note(desk, block[j], gains)
            if chosen != block[j]:
                _put(shape, block, fresh, j, chosen)
                _place(catalogue, desk.arms, block, j)
        temperature *= cooling if sweep < heat.sweeps - 1 else 1.0
    return seen


@kernel_internal
def _note(desk: Desk, now: int, gains: Vector) -> None:
    """gains (K,): the least that an arm loses at a position, where it is among the USEFUL best there."""
    scores = desk.scores.reshape(desk.scores.size)[: gains.shape[0]]
    for s in range(shortlist(scores, now, desk.found, desk.best)):
        x = desk.found[s]
        gains[x] = max(gains[x], scores[x] - scores[now])


@kernel_nested
def arms_of(catalogue: Catalogue, few: Integers) -> Arms:
    """The inner products of a few arms (k,)."""
    k, A, VA = few.shape[0], catalogue.A, catalogue.VA
    G, H, theta, squares, widths = np.zeros((k, k)), np.zeros((k, k)), np.empty(k), np.empty(k), np.empty(k)
    for r in range(k):
        theta[r], squares[r] = catalogue.theta[few[r]], catalogue.squares[few[r]]
        widths[r] = catalogue.widths[few[r]]
        for s in range(k):
            for i in range(A.shape[1]):
                G[r, s] += A[few[r], i] * A[few[s], i]
                H[r, s] += A[few[r], i] * VA[few[s], i]
    return Arms(G=G, H=H, theta=theta, squares=squares, widths=widths, beta=catalogue.beta)
