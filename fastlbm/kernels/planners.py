"""Episodes, compiled end to end: owns the loop of thinking and playing, for each kind of policy.

A policy thinks when its desk is done: it learns from what the desk collected and puts a new block on it. An
episode thinks and plays until a given step; it can go on from there, and with `until = THINK` it thinks once
and plays nothing, which is how a live policy decides with the very same machine code.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import kernel, kernel_internal, kernel_norefcount
from ._types import Matrix, Rows
from .best_action import best_arm, best_in_ball
from .blocks import features, make_work
from .estimator import LOG_DET, SAMPLES, Estimator, absorb_all, repeats
from .memory import Memory
from .optimism import OM_BLOCK, Belief
from .search import Effort, search
from .world import PLANS, PLAYED, POSITION, REPEATS, STEP, TIME, Desk, Past, Tape, World, play, push, response

#: Greedy actions that differ by less are the same.
_SAME = 1e-10

#: For `until`: think once, play nothing.
THINK = -1


class Rule(NamedTuple):
    """How a learner turns what it knows into blocks; the radius is that of `theory.confidence_radius`."""

    kind: int  # O3M, OM or OM_BLOCK
    m: int
    confidence: float  # 2 ln(1/delta)
    noise: float  # factor of the root
    prior: float  # what is added to it
    growth: float  # the root holds ln(1 + growth * samples) D times ...
    by_determinant: bool  # ... or ln det V/det(lam I)
    switch: float
    first: Effort  # for the first plan
    later: Effort  # with the block before as a start


@kernel_norefcount
def radius(rule: Rule, e: Estimator) -> float:
    """beta."""
    volume = e.ledger[LOG_DET]
    if not rule.by_determinant:
        volume = e.theta.shape[0] * math.log1p(rule.growth * e.ledger[SAMPLES])
    return rule.noise * math.sqrt(rule.confidence + max(volume, 0.0)) + rule.prior


@kernel
def learn(rule: Rule, e: Estimator, F: Rows, desk: Desk) -> None:
    """The estimator takes in what the desk collected for the block with features F, and the desk is cleared.

    F is (L, D) for the last L actions; for OM-Block (1, D), learned from the sum of their rewards.
    """
    n = desk.block.shape[0]
    counts, totals = np.zeros(F.shape[0]), np.zeros(F.shape[0])
    for j in range(rule.m, n):
        row = 0 if rule.kind == OM_BLOCK else j - rule.m
        counts[row] = desk.seen[j]
        totals[row] += desk.total[j]
    if desk.at[PLANS] > 0:
        absorb_all(e, F, counts, totals)
    for j in range(n):
        desk.seen[j] = 0.0
        desk.total[j] = 0.0


@kernel_norefcount
def settle(desk: Desk, often: int) -> None:
    """A new block lies on the desk, to be played `often` times."""
    desk.at[POSITION] = 0
    desk.at[PLAYED] = 0
    desk.at[REPEATS] = often
    desk.at[PLANS] += 1


@kernel
def describe(rule: Rule, memory: Memory, A0: Matrix | None, block: Rows, F: Rows) -> None:
    """F from a block (d, n): its features; for OM-Block its first m actions and its features, in one row."""
    d, n = block.shape
    work = make_work(memory, A0, n, 1)
    features(memory, A0, block, 1, work)
    for t in range(n):
        for i in range(d):
            if rule.kind == OM_BLOCK:
                F[0, t * d + i] = work.B[i, t] if t >= rule.m else block[i, t]
            elif t >= rule.m:
                F[t - rule.m, i] = work.B[i, t]


@kernel
def on_the_ball(
    rule: Rule,
    memory: Memory,
    A0: Matrix | None,
    e: Estimator,
    F: Rows,
    desk: Desk,
    rng: np.random.Generator,
    world: World,
    past: Past,
    tape: Tape,
    noise: np.random.Generator,
    until: int,
) -> None:
    """O3M, OM and OM-Block on the ball: every plan is a search.

    A block that will be repeated is planned as it will be played, as a cycle whose windows wrap around. The
    best cycle is at least as good as the paper's best block in a cycle: its bound holds against it as well.
    """
    n, d = desk.block.shape
    wrap = rule.switch > 0.0 and rule.kind != OM_BLOCK
    while until == THINK or tape.clock[TIME] < until:
        if desk.at[PLAYED] >= desk.at[REPEATS]:
            learn(rule, e, F, desk)
            started = desk.at[PLANS] > 0
            warm = np.empty((d, n if started else 0))
            for i in range(d):
                for t in range(warm.shape[1]):
                    warm[i, t] = desk.block[t, i]
            belief = Belief(e.theta, e.V_inv, radius(rule, e), rule.kind)
            effort = rule.later if started else rule.first
            block, _, _, _ = search(memory, A0, belief, n, wrap, warm, effort, rng)
            for i in range(d):
                for t in range(n):
                    desk.block[t, i] = block[i, t]
            describe(rule, memory, A0, block, F)
            settle(desk, repeats(e, F, rule.switch))
        if until == THINK:
            return
        play(world, past, tape, desk, noise, until)


@kernel
def without_memory(
    rule: Rule,
    M: Matrix,
    arms: Matrix,
    e: Estimator,
    F: Rows,
    desk: Desk,
    world: World,
    past: Past,
    tape: Tape,
    noise: np.random.Generator,
    until: int,
) -> None:
    """Learners with m = 0, features M a: every action is the exact argmax, the same in a whole block.

    arms (S, K, d): none at all for the ball, one set for a finite set, one a step for a contextual set.
    """
    n, d = desk.block.shape
    g, W, half, action = np.empty(d), np.empty((d, d)), np.empty((d, d)), np.empty(d)
    while until == THINK or tape.clock[TIME] < until:
        if desk.at[PLAYED] >= desk.at[REPEATS]:
            learn(rule, e, F, desk)
            _product(M, e.V_inv, half)
            _product(half, M, W)
            for i in range(d):
                g[i] = 0.0
                for j in range(d):
                    g[i] += M[i, j] * e.theta[j]
            beta = radius(rule, e)
            sets = arms.shape[0]
            for t in range(n):
                if sets == 0:
                    if t == 0:
                        best_in_ball(g, W, beta, action)
                elif t == 0 or sets > 1:
                    at = min(desk.at[STEP] + t, sets - 1)
                    arm = best_arm(arms[at], g, W, beta)
                    for i in range(d):
                        action[i] = arms[at, arm, i]
                for i in range(d):
                    desk.block[t, i] = action[i]
                    F[t, i] = 0.0
                    for j in range(d):
                        F[t, i] += M[i, j] * action[j]
            settle(desk, repeats(e, F, rule.switch))
        if until == THINK:
            return
        play(world, past, tape, desk, noise, until)


@kernel_internal
def _product(A: Matrix, B: Matrix, out: Matrix) -> None:
    d = A.shape[0]
    for i in range(d):
        for j in range(d):
            s = 0.0
            for k in range(d):
                s += A[i, k] * B[k, j]
            out[i, j] = s


@kernel
def greedy(
    known: World,
    own: Past,
    arms: Matrix,
    desk: Desk,
    world: World,
    past: Past,
    tape: Tape,
    noise: np.random.Generator,
    until: int,
) -> None:
    """The oracle greedy policy: the best action for its own step, given all that was played (`own`)."""
    d = desk.block.shape[1]
    g, action, nothing = np.empty(d), np.zeros(d), np.zeros((d, d))
    while until == THINK or tape.clock[TIME] < until:
        if desk.at[PLAYED] >= desk.at[REPEATS]:
            for i in range(d):
                action[i] = desk.block[0, i]
            if desk.at[PLANS] > 0:
                push(known, own, action)
            response(known, own, g)
            if arms.shape[0] == 0:
                norm, change = 0.0, 0.0
                for i in range(d):
                    norm += g[i] * g[i]
                for i in range(d):
                    g[i] = g[i] / math.sqrt(norm) if norm > 0.0 else 0.0
                    change = max(change, abs(g[i] - action[i]))
                # Rounding must not turn an action that stays the same: rotting multiplies it every step.
                if change > _SAME:
                    for i in range(d):
                        action[i] = g[i]
            else:
                at = min(desk.at[STEP], arms.shape[0] - 1)
                arm = best_arm(arms[at], g, nothing, 0.0)
                for i in range(d):
                    action[i] = arms[at, arm, i]
            for i in range(d):
                desk.block[0, i] = action[i]
            settle(desk, 1)
        if until == THINK:
            return
        play(world, past, tape, desk, noise, until)
