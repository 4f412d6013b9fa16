"""The world that an episode runs in: owns rewards, noise and records, and knows nothing of learners.

A policy puts a block on a desk and says how often it is to be played; `play` plays it from the true history
(equation (1) of the paper), one draw of noise a step whatever is played, so that every policy meets the same
noise. Once the window holds repetitions of the block alone, its rewards repeat as well and a step costs
little more than its noise.

An episode and `LBM.expected_rewards` give the same bits, in whatever stretches they are computed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._jit import inline, kernel, kernel_norefcount
from ._types import Matrix, Rows, Vector
from .eigen_tiles import LAPACK_FROM
from .memory import GRAM_FROM, isotropic_scale
from .powers import shifted_first_difference

Integers = NDArray[np.int64]

GAUSSIAN, UNIFORM, RADEMACHER = 0, 1, 2

# Entries of a desk's counters: where in the block, how often to play it, how often it was played, the step of
# the episode that comes next, plans so far.
POSITION, REPEATS, PLAYED, STEP, PLANS = 0, 1, 2, 3, 4
# Entries of a tape's clock: steps played, points recorded.
TIME, RECORDED = 0, 1


class World(NamedTuple):
    """The parameters of the model."""

    theta: Vector
    A0: Matrix
    m: int  # -1: infinite
    gamma: float
    c: float  # A0 = c I and m < d: the Gram form serves; else 0
    sigma: float
    noise: int


class Past(NamedTuple):
    """What was played, as far as it matters."""

    recent: Rows  # (m, d) the last m actions, the latest last; zeros before the first
    X: Matrix  # (d, d) A0 and all actions, for an infinite memory


class Desk(NamedTuple):
    """The block that is being played and what came of it."""

    block: Rows  # (n, d)
    reward: Vector  # (n,) expected rewards, once they repeat
    total: Vector  # (n,) sum of the rewards observed at each position
    seen: Vector  # (n,) how many they are
    at: Integers  # (5,) counters


class Tape(NamedTuple):
    """The record of an episode."""

    sums: Vector  # (2,) cumulative expected and observed reward
    clock: Integers  # (2,)
    points: Integers  # (P,) steps after which the sums are recorded, increasing
    reward: Vector  # (P,)
    observed: Vector  # (P,)
    actions: Rows  # (T, d), or (0, d) when they are not kept


def make_world(
    theta: Vector, A0: Matrix, m: float, gamma: float, sigma: float = 0.0, noise: int = GAUSSIAN
) -> World:
    """The parameters of a model as the kernels take them."""
    c = isotropic_scale(A0) or 0.0
    gram = 0 < m < len(theta) and c >= GRAM_FROM
    return World(theta, A0, -1 if m == math.inf else int(m), gamma, c if gram else 0.0, sigma, noise)


def make_desk(n: int, d: int) -> Desk:
    """An empty desk: nothing to play."""
    return Desk(np.zeros((n, d)), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(5, dtype=np.int64))


def make_past(world: World) -> Past:
    """The past of a world in which nothing was played."""
    return Past(np.zeros((max(world.m, 0), len(world.theta))), world.A0.copy())


@kernel
def eigen(A: Matrix, Q: Matrix) -> None:
    """A = Q diag(lam) Q^T for a symmetric A, which is left with lam on its diagonal; for one small matrix."""
    k = A.shape[0]
    if k >= LAPACK_FROM:
        values, vectors = np.linalg.eigh(A)
        for i in range(k):
            A[i, i] = values[i]
            for j in range(k):
                Q[i, j] = vectors[i, j]
        return
    for i in range(k):
        for j in range(k):
            Q[i, j] = 1.0 if i == j else 0.0
    for _ in range(30):
        diagonal, off = 0.0, 0.0
        for i in range(k):
            diagonal += A[i, i] * A[i, i]
            for j in range(i):
                off += A[i, j] * A[i, j]
        if off <= 1e-32 * diagonal:
            break
        for p in range(k - 1):
            for q in range(p + 1, k):
                if A[p, q] == 0.0:
                    continue
                difference, twice = A[p, p] - A[q, q], 2.0 * A[p, q]
                tangent = twice / (abs(difference) + math.sqrt(difference * difference + twice * twice))
                tangent = tangent if difference >= 0.0 else -tangent
                cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
                sine = tangent * cosine
                A[p, p] += tangent * A[p, q]
                A[q, q] -= tangent * A[p, q]
                A[p, q] = 0.0
                A[q, p] = 0.0
                for i in range(k):
                    if i != p and i != q:
                        left, right = A[i, p], A[i, q]
                        A[i, p] = cosine * left + sine * right
                        A[i, q] = cosine * right - sine * left
                        A[p, i], A[q, i] = A[i, p], A[i, q]
                    left, right = Q[i, p], Q[i, q]
                    Q[i, p] = cosine * left + sine * right
                    Q[i, q] = cosine * right - sine * left


@inline
def decompose(c: float, X: Matrix, recent: Rows, A: Matrix, Q: Matrix) -> None:
    """The spectrum of a window: of R R^T for c > 0, R = recent (m, d), else of X + R^T R; on A's diagonal."""
    m, d = recent.shape
    if c > 0.0:
        for s in range(m):
            for r in range(s + 1):
                A[s, r] = 0.0
                for i in range(d):
                    A[s, r] += recent[s, i] * recent[r, i]
                A[r, s] = A[s, r]
    else:
        for i in range(d):
            for j in range(d):
                A[i, j] = X[i, j]
                for s in range(m):
                    A[i, j] += recent[s, i] * recent[s, j]
    eigen(A, Q)


@inline
def multiply(c: float, gamma: float, recent: Rows, A: Matrix, Q: Matrix, v: Vector, out: Vector) -> None:
    """out (d,) = X^gamma v for the window that was decomposed; the Gram form is c^gamma v + R^T phi R v."""
    m, d = recent.shape
    scale = c**gamma if c > 0.0 else 0.0
    k = m if c > 0.0 else d
    for i in range(d):
        out[i] = scale * v[i]
    for r in range(k):
        along = 0.0
        if c > 0.0:
            for s in range(m):
                share = 0.0
                for i in range(d):
                    share += recent[s, i] * v[i]
                along += Q[s, r] * share
            along *= shifted_first_difference(c, A[r, r], gamma)
            for s in range(m):
                share = Q[s, r] * along
                for i in range(d):
                    out[i] += share * recent[s, i]
        else:
            for i in range(d):
                along += Q[i, r] * v[i]
            along *= max(A[r, r], 0.0) ** gamma
            for i in range(d):
                out[i] += Q[i, r] * along


@kernel
def response(world: World, past: Past, out: Vector) -> None:
    """X^gamma theta (d,): the reward of an action now is its inner product with this."""
    d = world.theta.shape[0]
    if world.gamma == 0.0:
        for i in range(d):
            out[i] = world.theta[i]
        return
    k = world.m if world.c > 0.0 else d
    A, Q = np.empty((k, k)), np.empty((k, k))
    decompose(world.c, past.X, past.recent, A, Q)
    multiply(world.c, world.gamma, past.recent, A, Q, world.theta, out)


@kernel_norefcount
def product(x: Vector, y: Vector) -> float:
    """<x, y>."""
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * y[i]
    return s


@kernel
def rewards(world: World, past: Past, actions: Rows) -> Vector:
    """Expected rewards (T,) of actions (T, d), which are played."""
    T, d = actions.shape
    g, before, out = np.zeros(d), np.zeros(d), np.empty(T)
    same, m = -1, past.recent.shape[0]
    for t in range(T):
        # The same action for m steps: the window is what it was.
        if world.m < 0 or same < m:
            response(world, past, g)
        action = actions[t]
        out[t] = product(g, action)
        push(world, past, action)
        equal = t > 0
        for i in range(d):
            equal = equal and action[i] == before[i]
            before[i] = action[i]
        same = same + 1 if equal else 0
    return out


@kernel_norefcount
def push(world: World, past: Past, action: Vector) -> None:
    """The action was played."""
    m, d = past.recent.shape
    if world.m < 0:
        for i in range(d):
            for j in range(d):
                past.X[i, j] += action[i] * action[j]
    if m > 0:
        for i in range(d):
            for s in range(m - 1):
                past.recent[s, i] = past.recent[s + 1, i]
            past.recent[m - 1, i] = action[i]


@inline
def draw(world: World, rng: np.random.Generator) -> float:
    """One noise."""
    if world.noise == GAUSSIAN:
        return world.sigma * rng.standard_normal()
    if world.noise == UNIFORM:
        return world.sigma * math.sqrt(3.0) * (2.0 * rng.random() - 1.0)
    return world.sigma if rng.random() < 0.5 else -world.sigma


@kernel
def play(world: World, past: Past, tape: Tape, desk: Desk, rng: np.random.Generator, until: int) -> None:
    """Plays the desk's block until it was played often enough or the tape's clock shows `until`."""
    n, d = desk.block.shape
    m = world.m
    block, reward, total, seen, at = desk.block, desk.reward, desk.total, desk.seen, desk.at
    settled = MANY if m < 0 else (m + n - 1) // n
    keep = tape.actions.shape[0] > 0
    g, action = np.empty(d), np.empty(d)
    t, recorded = tape.clock[TIME], tape.clock[RECORDED]
    points = tape.points.shape[0]
    upcoming = tape.points[recorded] if recorded < points else MANY
    expected, observed = tape.sums[0], tape.sums[1]
    position, played, often = at[POSITION], at[PLAYED], at[REPEATS]
    repeating = played > settled
    begin = t
    while t < until and played < often:
        if played <= settled:
            response(world, past, g)
            for i in range(d):
                action[i] = block[position, i]
            reward[position] = product(g, action)
            push(world, past, action)
        repeating = played > settled
        y = reward[position] + draw(world, rng)
        total[position] += y
        seen[position] += 1.0
        expected += reward[position]
        observed += y
        if keep:
            for i in range(d):
                tape.actions[t, i] = block[position, i]
        t += 1
        position += 1
        if position == n:
            position = 0
            played += 1
        if t == upcoming:
            tape.reward[recorded], tape.observed[recorded] = expected, observed
            recorded += 1
            upcoming = tape.points[recorded] if recorded < points else MANY
    if repeating:
        # The window was not kept up to date: it is the block's own past.
        for s in range(m):
            source = (position - m + s) % n
            for i in range(d):
                past.recent[s, i] = block[source, i]
    at[POSITION], at[PLAYED] = position, played
    at[STEP] += t - begin
    tape.sums[0], tape.sums[1] = expected, observed
    tape.clock[TIME], tape.clock[RECORDED] = t, recorded


#: More steps than any episode has.
MANY = 2**62
