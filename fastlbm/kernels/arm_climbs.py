"""Climbs over arms, several side by side: owns their blocks, and which position of each is looked at next.

A climb changes one action after the other, each into the best of a few shortlisted arms, until none of its
positions that were affected by a change has anything better. The few arms are evaluated exactly, those of all
climbs side by side in lanes, by the kernels of the ball: only the m+1 windows that a position touches where
the objective is a sum over windows, else all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, Matrix, Rows, Vector
from .arithmetic import column
from .arm_scores import STRIP, own_worth, score_arms, shortlist, window_matrices
from .blocks import Work, features, make_work
from .memory import Memory
from .optimism import O3M, OM_BLOCK, Belief, additive, joint
from .rewards import ModelParams
from .ties import SUM_SHARE, exceeds, margin

#: Climbs side by side.
CLIMBS = 8


class ArmTask(NamedTuple):
    """Blocks, or with `wrap` cycles, of n arms; the first `head` actions and the last `tail` are given."""

    columns: Matrix  # (S, d, K) sets of arms
    which: Integers  # (n,) the set of each position
    given: Rows  # (d, n) the actions that are given
    head: int
    tail: int
    wrap: bool


class ArmProblem(NamedTuple):
    """Everything that a climb needs to know."""

    memory: Memory
    A0: Matrix | None
    model: ModelParams  # the same memory, window by window
    belief: Belief
    task: ArmTask


class Climbs(NamedTuple):
    """Climbs at work, changed in place: row r is one of them."""

    arms: Integers  # (R, n)
    x: Matrix  # (R, d, n) their actions
    look: Integers  # (R, n) whether a position may have something better
    at: Integers  # (R,) the position that is looked at; -1: nothing to do
    value: Vector  # (R,)
    P: Matrix  # (R, n, d, d) powers of the memory matrix of each window
    S: Matrix  # (R, n, d, d) derivatives with respect to it
    U: Matrix  # (R, n, d) derivatives with respect to the features


@kernel
def make_climbs(problem: ArmProblem, R: int) -> Climbs:
    """R climbs with nothing to do."""
    d, n = problem.task.given.shape
    x = np.empty((R, d, n))
    for r in range(R):
        for i in range(d):
            for t in range(n):
                x[r, i, t] = problem.task.given[i, t]
    return Climbs(
        arms=np.zeros((R, n), dtype=np.int64),
        x=x,
        look=np.zeros((R, n), dtype=np.int64),
        at=np.full(R, -1),
        value=np.full(R, -np.inf),
        P=np.zeros((R, n, d, d)),
        S=np.zeros((R, n, d, d)),
        U=np.zeros((R, n, d)),
    )


@inline
def value_blocks(problem: ArmProblem, a: Rows, lanes: int, work: Work, values: Vector) -> None:
    """values (lanes,) of blocks side by side in a (d, N), and the derivatives with respect to features."""
    belief, m = problem.belief, problem.memory.m
    features(problem.memory, problem.A0, a, lanes, work)
    if belief.kind == O3M:
        additive(belief.theta, belief.V_inv, belief.beta, m, lanes, work.B, work.U, work.scratch, values)
    else:
        joint(belief, m, lanes, a, work.B, work.U, values)


@inline
def span_of(problem: ArmProblem, n: int) -> int:
    """Positions that an evaluation needs to see what the arm at one of them changes."""
    m, local = problem.memory.m, problem.belief.kind == O3M
    if problem.task.wrap:
        return m + 1 + (min(m, n - 1) if local else n - 1)
    return min(n, 2 * m + 1) if local else n


@inline
def place(problem: ArmProblem, n: int, span: int, j: int, t: int) -> int:
    """The t-th position of the span of position j."""
    m = problem.memory.m
    if problem.task.wrap:
        return (j - m + t) % n
    return min(max(j - m, 0), n - span) + t


@kernel
def begin_climb(problem: ArmProblem, climbs: Climbs, r: int, value: float) -> None:
    """Climb r starts from its arms, whose value is known, at the positions that it is to look at."""
    task = problem.task
    d, n = task.given.shape
    for t in range(task.head, n - task.tail):
        for i in range(d):
            climbs.x[r, i, t] = task.columns[task.which[t], i, climbs.arms[r, t]]
    climbs.value[r] = value
    m = problem.memory.m
    if problem.belief.kind != O3M:
        work, a, out = make_work(problem.memory, problem.A0, n, 1), climbs.x[r].copy(), np.empty(1)
        value_blocks(problem, a, 1, work, out)
        for t in range(n):
            for i in range(d):
                climbs.U[r, t, i] = work.U[i, t]
    for t in range(0 if task.wrap else m, n):
        _renew_window(problem, climbs, r, t)


@kernel
def _renew_window(problem: ArmProblem, climbs: Climbs, r: int, t: int) -> None:
    """The matrices of window t, after a change."""
    m, (d, n) = problem.memory.m, problem.task.given.shape
    window, action = np.empty((m, d)), np.empty(d)
    for i in range(d):
        action[i] = climbs.x[r, i, t]
        for s in range(m):
            window[s, i] = climbs.x[r, i, (t - m + s) % n]
    P, S, u = climbs.P[r, t], climbs.S[r, t], climbs.U[r, t]
    window_matrices(problem.model, problem.belief, window, action, u, P, S)


@kernel
def step_climbs(
    problem: ArmProblem, climbs: Climbs, found: Integers, work: Work, a: Rows, values: Vector
) -> None:
    """Every climb looks at its position, and changes the arm there if a shortlisted one is better.

    found (R, C) is room for the shortlists, a (d, span*R*C), values (R*C,) and `work` for their evaluation.
    """
    task = problem.task
    (R, n), (d, K), C = climbs.arms.shape, task.columns.shape[1:], found.shape[1]
    lanes, span = R * C, span_of(problem, n)
    scores, scratch, best = np.empty(K), np.empty((3, STRIP)), np.empty(C)
    lin, M, H = np.zeros(d), np.zeros((d, d)), np.zeros((d, d))
    counts = np.zeros(R, dtype=np.int64)
    for r in range(R):
        j = climbs.at[r]
        if j < 0:
            continue
        beta = estimate_at(problem, climbs, r, j, lin, M, H)
        score_arms(task.columns[task.which[j]], lin, M, beta, H, scratch, scores)
        counts[r] = shortlist(scores, climbs.arms[r, j], found[r], best)
        _lay_out(problem, climbs, r, j, span, found, counts[r], lanes, a)
    value_blocks(problem, a, lanes, work, values)
    for r in range(R):
        j, first, chosen = climbs.at[r], r * C, 0
        if j < 0:
            continue
        for s in range(1, counts[r]):
            if values[first + s] > values[first + chosen]:
                chosen = s
        now = values[first]
        climbs.look[r, j] = 0
        if exceeds(values[first + chosen], now, margin(now, SUM_SHARE)):
            climbs.value[r] += values[first + chosen] - now
            _change(problem, climbs, r, j, found[r, chosen])


@kernel
def estimate_at(
    problem: ArmProblem, climbs: Climbs, r: int, j: int, lin: Vector, M: Matrix, H: Matrix
) -> float:
    """The lin, M and H of `score_arms` at position j of climb r; returns its beta."""
    task, belief, m = problem.task, problem.belief, problem.memory.m
    d, n = task.given.shape
    own, beta = task.wrap or j >= m, 0.0
    if belief.kind == O3M and own:
        own_worth(belief, climbs.P[r, j], lin, M)
        beta = belief.beta
    else:
        for i in range(d):
            lin[i] = 0.0
            if own:
                for k in range(d):
                    lin[i] += climbs.P[r, j, i, k] * climbs.U[r, j, k]
            elif belief.kind == OM_BLOCK:
                lin[i] = climbs.U[r, j, i]
    H[:] = 0.0
    weight = 1.0
    for s in range(1, m + 1):
        t = (j + s) % n if task.wrap else j + s
        if t < n and (task.wrap or t >= m):
            for i in range(d):
                for k in range(i, d):
                    H[i, k] += weight * climbs.S[r, t, i, k]
        weight *= problem.memory.decay
    return beta


@kernel_internal
def _lay_out(
    problem: ArmProblem,
    climbs: Climbs,
    r: int,
    j: int,
    span: int,
    found: Integers,
    count: int,
    lanes: int,
    a: Rows,
) -> None:
    """The lanes of climb r in a: the span of position j, there with each of its shortlisted arms."""
    task, C = problem.task, found.shape[1]
    d, n = task.given.shape
    for t in range(span):
        p, at = place(problem, n, span, j, t), column(t * lanes + r * C)
        for i in range(d):
            for s in range(C):
                arm = found[r, min(s, count - 1)]
                a[i, at + s] = task.columns[task.which[j], i, arm] if p == j else climbs.x[r, i, p]


@kernel
def _change(problem: ArmProblem, climbs: Climbs, r: int, j: int, arm: int) -> None:
    """Position j of climb r gets another arm: what it touches is to be looked at again."""
    task, m = problem.task, problem.memory.m
    d, n = task.given.shape
    climbs.arms[r, j] = arm
    for i in range(d):
        climbs.x[r, i, j] = task.columns[task.which[j], i, arm]
    mark(problem, climbs, r, j)
    climbs.look[r, j] = 0
    for s in range(min(m, n - 1) + 1):
        t = (j + s) % n if task.wrap else j + s
        if t < n and (task.wrap or t >= m):
            _renew_window(problem, climbs, r, t)


@inline
def mark(problem: ArmProblem, climbs: Climbs, r: int, j: int) -> None:
    """The positions that share a window with j are to be looked at."""
    task, m, n = problem.task, problem.memory.m, climbs.arms.shape[1]
    for s in range(-m, m + 1):
        p = (j + s) % n if task.wrap else j + s
        if task.head <= p < n - task.tail:
            climbs.look[r, p] = 1


@kernel_internal
def next_look(climbs: Climbs, r: int) -> bool:
    """Climb r goes to its next position to look at; returns whether there is one."""
    n = climbs.arms.shape[1]
    for s in range(1, n + 1):
        p = (climbs.at[r] + s) % n
        if climbs.look[r, p] == 1:
            climbs.at[r] = p
            return True
    return False
