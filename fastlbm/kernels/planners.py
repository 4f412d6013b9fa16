"""How each kind of policy chooses its next block: owns the planners that are compiled, one `plan_*` each.

A planner is a NamedTuple; which functions serve it is decided by its type when the code around is compiled.
Plain Python, with the compiler off, decides by the same table. What takes a planner apart is inlined and does
not count references: to count those of a dozen arrays at every step takes longer than the step (measured).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from ._jit import INLINED, inline, kernel_internal, kernel_nested
from ._types import Matrix, Rows, Vector
from .baselines import (
    EpsilonPlanner,
    RandomPlanner,
    ThompsonPlanner,
    learn_nothing,
    plan_epsilon,
    plan_random,
    plan_thompson,
)
from .best_action import best_arm, best_in_ball
from .block_state import BlockState, cursor, next_step, plans_made, start_block
from .estimator import Estimator, passes_of_plan
from .learning import Learner, LearnerConfig, block_features, cycle_features, learn_from_block, radius
from .memory import Memory
from .optimism import Belief
from .rewards import History, ModelParams, product, push, response
from .rolling import RollingPlanner, learn_rolling, plan_rolling
from .rolling_arms import RevealedPlanner, TablePlanner, learn_on_arms, plan_by_policy, plan_revealed
from .search import search

#: Greedy actions that differ by less are the same.
_SAME = 1e-10


class BallPlanner(NamedTuple):
    """O3M, OM and OM-Block on the ball: every plan is a search."""

    learner: Learner
    memory: Memory
    A0: Matrix | None


class MemorylessPlanner(NamedTuple):
    """Learners with m = 0, features M a: every action is the exact argmax, the same in a whole block."""

    learner: Learner
    M: Matrix  # (d, d), or (0, 0) for the identity
    arms: Matrix  # (S, K, d): S = 0 for the ball, 1 for a finite set, one set a step for a contextual set


class GreedyPlanner(NamedTuple):
    """The oracle: it knows the model and what it played itself."""

    model: ModelParams
    history: History
    arms: Matrix  # as of `MemorylessPlanner`
    g: Vector  # (d,) scratch


@inline
def plan_on_ball(planner: BallPlanner, block: BlockState, rng: np.random.Generator) -> None:
    """The block with the largest UCB that a search finds."""
    config, e, F = planner.learner
    _search_block(config, e, F, planner.memory, planner.A0, block, rng)


@kernel_nested
def _search_block(
    config: LearnerConfig,
    e: Estimator,
    F: Rows,
    memory: Memory,
    A0: Matrix | None,
    block: BlockState,
    rng: np.random.Generator,
) -> None:
    """The search, and the features of what it found.

    A block that will be repeated is planned as it will be played, as a cycle whose windows wrap around, and
    every one of its rewards is learned with the feature that was really played.
    """
    n, d = block.actions.shape
    m = memory.m
    started = plans_made(block) > 0
    warm = np.empty((d, n if started else 0))
    for i in range(d):
        for t in range(warm.shape[1]):
            warm[i, t] = block.actions[t, i]
    belief = Belief(e.theta, e.V_inv, radius(config, e), config.kind)
    effort = config.later if started else config.first
    free = np.empty((d, 0))
    best, _, _, _ = search(memory, A0, belief, n, config.cyclic, free, warm, effort, -np.inf, rng)
    if effort.stop[0] != 0:
        return  # nothing was planned: the block is still done
    lead = 0
    if config.cyclic:
        lead = m
        # What was played before: the end of the last cycle, or nothing.
        before = np.zeros((d, m))
        for i in range(d):
            for t in range(m if started else 0):
                before[i, t] = block.actions[n - m + t, i]
        cycle_features(memory, A0, before, best, F)
        if not started and next_step(block) > 0:
            F[:m] = 0.0  # another epoch's actions, which are not known here: nothing to learn from
    else:
        block_features(config, memory, A0, best, F)
    for i in range(d):
        for t in range(n):
            block.actions[t, i] = best[i, t]
    start_block(block, passes_of_plan(e, F, config.switch, lead))


@inline
def plan_without_memory(planner: MemorylessPlanner, block: BlockState, rng: np.random.Generator) -> None:
    """The action with the largest UCB at every step; nothing is drawn."""
    config, e, F = planner.learner
    _best_actions(config, e, F, planner.M, planner.arms, block)


@kernel_nested
def _best_actions(
    config: LearnerConfig, e: Estimator, F: Rows, M: Matrix, arms: Matrix, block: BlockState
) -> None:
    """The exact argmax of each step, and its feature."""
    n, d = block.actions.shape
    g, W, action = e.theta, e.V_inv, np.empty(d)
    plain = M.shape[0] == 0
    if not plain:
        g, W, half = np.zeros(d), np.empty((d, d)), np.empty((d, d))
        _product(M, e.V_inv, half)
        _product(half, M, W)
        for i in range(d):
            for j in range(d):
                g[i] += M[i, j] * e.theta[j]
    beta = radius(config, e)
    sets = arms.shape[0]
    for t in range(n):
        if sets == 0:
            if t == 0:
                best_in_ball(g, W, beta, action)
        elif t == 0 or sets > 1:
            at = min(next_step(block) + t, sets - 1)
            arm = best_arm(arms[at], g, W, beta)
            for i in range(d):
                action[i] = arms[at, arm, i]
        for i in range(d):
            block.actions[t, i] = action[i]
            F[t, i] = action[i] if plain else 0.0
            for j in range(0 if plain else d):
                F[t, i] += M[i, j] * action[j]
    start_block(block, passes_of_plan(e, F, config.switch, 0))


@kernel_internal
def _product(A: Matrix, B: Matrix, out: Matrix) -> None:
    d = A.shape[0]
    for i in range(d):
        for j in range(d):
            s = 0.0
            for k in range(d):
                s += A[i, k] * B[k, j]
            out[i, j] = s


@inline
def plan_greedy(planner: GreedyPlanner, block: BlockState, rng: np.random.Generator) -> None:
    """The best action for its own step, given all that was played; nothing is drawn."""
    g, arms, d = planner.g, planner.arms, block.actions.shape[1]
    response(planner.model, planner.history, g)
    if arms.shape[0] == 0:
        norm, change = product(g, g), 0.0
        if norm < 1e-200:  # squares have underflowed
            for i in range(d):
                g[i] *= 1e200
            norm = product(g, g)
        for i in range(d):
            g[i] = g[i] / math.sqrt(norm) if norm > 0.0 else 0.0
            change = max(change, abs(g[i] - block.actions[0, i]))
        # Rounding must not turn an action that stays the same: rotting multiplies it every step.
        if change > _SAME:
            for i in range(d):
                block.actions[0, i] = g[i]
    else:
        at = min(next_step(block), arms.shape[0] - 1)
        arm = best_arm(arms[at], g, planner.model.A0, 0.0)  # without a bonus the matrix does not count
        for i in range(d):
            block.actions[0, i] = arms[at, arm, i]
    start_block(block, 1)


@inline
def remember_block(planner: GreedyPlanner, block: BlockState) -> None:
    """What the oracle takes from a block: its action was played."""
    _, passes, _ = cursor(block)
    if passes > 0:
        push(planner.model, planner.history, block.actions[0])


@inline
def learn_as_learner(
    planner: BallPlanner | MemorylessPlanner | ThompsonPlanner | EpsilonPlanner, block: BlockState
) -> None:
    """What a learner takes from a block: the rewards of its features."""
    config, e, F = planner.learner
    learn_from_block(config, e, F, block)


#: What learns from a block and what plans the next one, by the type of the planner.
_KERNELS: dict[type, tuple[Callable[..., Any], Callable[..., Any]]] = {
    BallPlanner: (learn_as_learner, plan_on_ball),
    MemorylessPlanner: (learn_as_learner, plan_without_memory),
    GreedyPlanner: (remember_block, plan_greedy),
    RollingPlanner: (learn_rolling, plan_rolling),
    ThompsonPlanner: (learn_as_learner, plan_thompson),
    EpsilonPlanner: (learn_as_learner, plan_epsilon),
    RandomPlanner: (learn_nothing, plan_random),
    TablePlanner: (learn_on_arms, plan_by_policy),
    RevealedPlanner: (learn_on_arms, plan_revealed),
}


def learn(planner: Any, block: BlockState) -> None:
    """The planner takes in what the block brought, if there was one."""
    _KERNELS[type(planner)][0](planner, block)


def plan(planner: Any, block: BlockState, rng: np.random.Generator) -> None:
    """The planner starts its next block."""
    _KERNELS[type(planner)][1](planner, block, rng)


@overload(learn, jit_options=INLINED)
def _learn(planner, block):  # type: ignore[no-untyped-def]
    chosen = _KERNELS[planner.instance_class][0]
    return lambda planner, block: chosen(planner, block)


@overload(plan, jit_options=INLINED)
def _plan(planner, block, rng):  # type: ignore[no-untyped-def]
    chosen = _KERNELS[planner.instance_class][1]
    return lambda planner, block, rng: chosen(planner, block, rng)
