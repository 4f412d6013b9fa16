"""Fewer arms to search among: owns which arms of many are worth a look, and exact plans of a few of them.

Of a large catalogue good blocks hold arms that are also good elsewhere in good blocks. So a search that has
found some cycles looks on among the arms that score best somewhere in them. Of the few arms of a good block a
dynamic program finds the best order, ends and all: what one change after the other does not find.
"""

from __future__ import annotations

import numpy as np

from ._jit import kernel
from ._types import Integers
from .arm_climbs import ArmProblem, ArmTask, begin_climb, estimate_at, make_climbs
from .arm_scores import STRIP, score_arms, shortlist
from .blocks import features, make_work
from .dynamic_programs import bellman, fill_states
from .optimism import additive


@kernel
def narrowed(problem: ArmProblem, pool: Integers) -> ArmProblem:
    """The same problem with the arms `pool` (k,) of its one set alone, numbered as they come there."""
    task = problem.task
    d, k = task.columns.shape[1], pool.shape[0]
    columns = np.empty((1, d, k))
    for i in range(d):
        for s in range(k):
            columns[0, i, s] = task.columns[task.which[0], i, pool[s]]
    part = ArmTask(
        columns=columns,
        which=np.zeros_like(task.which),
        given=task.given,
        head=task.head,
        tail=task.tail,
        wrap=task.wrap,
    )
    return ArmProblem(
        memory=problem.memory, A0=problem.A0, model=problem.model, belief=problem.belief, task=part
    )


@kernel
def useful_arms(problem: ArmProblem, blocks: Integers, counts: Integers, most: int) -> None:
    """counts (K,) grows by one for each position of blocks (k, n) where an arm is among the `most` best.

    That is by the estimate of `arm_scores`, beside the arm that is there, which counts too.
    """
    task = problem.task
    (rows, n), (d, K) = blocks.shape, task.columns.shape[1:]
    climbs = make_climbs(problem, 1)
    scores, scratch, best = np.empty(K), np.empty((3, STRIP)), np.empty(most)
    lin, M, H = np.zeros(d), np.zeros((d, d)), np.zeros((d, d))
    found = np.zeros(most, dtype=np.int64)
    for r in range(rows):
        climbs.arms[0] = blocks[r]
        begin_climb(problem, climbs, 0, 0.0)
        for j in range(task.head, n - task.tail):
            beta = estimate_at(problem, climbs, 0, j, lin, M, H)
            score_arms(task.columns[task.which[j]], lin, M, beta, H, scratch, scores)
            count = shortlist(scores, climbs.arms[0, j], found, best)
            for s in range(count):
                counts[found[s]] += 1


@kernel
def plan_few(problem: ArmProblem, few: Integers) -> tuple[Integers, float]:
    """The best block (n,) of the arms `few` (k,) alone, and its value, by a dynamic program of k^m states.

    For O3M with one set, m > 0 and nothing given.
    """
    memory, belief, task = problem.memory, problem.belief, problem.task
    (d, n), k, m = task.given.shape, few.shape[0], memory.m
    S, W, steps = k**m, 1, n - m
    for i in range(m):
        W = W * (k + i) // (i + 1)
    windows, rank = np.empty((W, m), dtype=np.int32), np.empty(S, dtype=np.int32)
    fill_states(k, m, windows, rank)
    a, work = np.empty((d, (m + 1) * W)), make_work(memory, problem.A0, (m + 1) * W, W)
    column = task.columns[task.which[0]]
    for s in range(m):
        for i in range(d):
            for w in range(W):
                a[i, s * W + w] = column[i, few[windows[w, s]]]
    values, worth = np.empty((1, W, k)), np.empty(W)
    for i in range(d):
        a[i, m * W :] = belief.theta[i]
    if belief.beta == 0.0:  # X^gamma theta serves all arms
        features(memory, problem.A0, a, W, work)
    for q in range(k):
        if belief.beta > 0.0:
            for i in range(d):
                a[i, m * W :] = column[i, few[q]]
            features(memory, problem.A0, a, W, work)
            additive(belief.theta, belief.V_inv, belief.beta, m, W, work.B, work.U, work.scratch, worth)
        else:
            worth[:] = 0.0
            for i in range(d):
                x = column[i, few[q]]
                for w in range(W):
                    worth[w] += x * work.B[i, m * W + w]
        for w in range(W):
            values[0, w, q] = worth[w]
    V, policy = np.zeros(S), np.empty((steps, S), dtype=np.int32)
    shift = bellman(values, rank, steps, V, policy)
    state = 0
    for s in range(1, S):
        if V[s] > V[state]:
            state = s
    value, out, code = V[state] + shift, np.empty(n, dtype=np.int64), state
    for i in range(m - 1, -1, -1):
        out[i] = few[code % k]
        code //= k
    for t in range(steps):
        arm = policy[t, state]
        out[m + t] = few[arm]
        state = (state * k + arm) % S
    return out, value


@kernel
def plan_between(problem: ArmProblem, choices: Integers) -> Integers:
    """The best block (n,) with one of c arms at each position, choices (n, c): states are c^m.

    For O3M with one set, m > 0 and nothing given.
    """
    memory, belief, task = problem.memory, problem.belief, problem.task
    d, (n, c), m = memory.d, choices.shape, memory.m
    S, steps = c**m, n - m
    lanes = S * c
    a, work = np.empty((d, (m + 1) * lanes)), make_work(memory, problem.A0, (m + 1) * lanes, lanes)
    column, worth = task.columns[task.which[0]], np.empty(lanes)
    values = np.empty((steps, S, c))
    for t in range(steps):
        for s in range(m + 1):
            run = c ** (m - s)
            for i in range(d):
                for w in range(lanes):
                    a[i, s * lanes + w] = column[i, choices[t + s, w // run % c]]
        features(memory, problem.A0, a, lanes, work)
        additive(belief.theta, belief.V_inv, belief.beta, m, lanes, work.B, work.U, work.scratch, worth)
        values[t] = worth.reshape(S, c)
    V, policy = np.zeros(S), np.empty((steps, S), dtype=np.int32)
    rank = np.arange(S).astype(np.int32)
    bellman(values, rank, steps, V, policy)
    state = 0
    for s in range(1, S):
        if V[s] > V[state]:
            state = s
    out, code = np.empty(n, dtype=np.int64), state
    for i in range(m - 1, -1, -1):
        out[i] = choices[i, code % c]
        code //= c
    for t in range(steps):
        arm = policy[t, state]
        out[m + t] = choices[m + t, arm]
        state = (state * c + arm) % S
    return out


@kernel
def alternatives(problem: ArmProblem, block: Integers, most: int, rng: np.random.Generator) -> Integers:
    """For each position of a block (n,) one of the `most` other arms that `arm_scores` estimates best."""
    task = problem.task
    n, (d, K) = block.shape[0], task.columns.shape[1:]
    climbs = make_climbs(problem, 1)
    scores, scratch, best = np.empty(K), np.empty((3, STRIP)), np.empty(most + 1)
    lin, M, H = np.zeros(d), np.zeros((d, d)), np.zeros((d, d))
    found, out = np.zeros(most + 1, dtype=np.int64), np.empty(n, dtype=np.int64)
    climbs.arms[0] = block
    begin_climb(problem, climbs, 0, 0.0)
    for j in range(n):
        beta = estimate_at(problem, climbs, 0, j, lin, M, H)
        score_arms(task.columns[task.which[j]], lin, M, beta, H, scratch, scores)
        count = shortlist(scores, block[j], found, best)
        out[j] = found[min(1 + int((count - 1) * rng.random()), count - 1)]
    return out
