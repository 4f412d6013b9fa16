"""Rolling plans on sets of arms, compiled: owns the history in arms, and two ways to choose what comes next.

Where all steps have the same few arms, the policy with the largest average UCB in the long run, over the
states of `dynamic_programs`. Where sets are revealed step by step, the arm with the largest UCB and what
would follow it on average, in sets that were seen before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_norefcount
from ._types import Integers, Matrix, Rows, Vector
from .block_state import BlockState, cursor, length, next_step, plans_made, start_short_block
from .blocks import features, make_work
from .dynamic_programs import Table, howard
from .estimator import Estimator
from .learning import Learner, LearnerConfig, learn_from_block, radius
from .memory import Memory
from .optimism import Belief, additive
from .rolling import features_after
from .ties import SUM_SHARE, margin

#: Iterations of Howard's algorithm, which rarely takes twenty.
_ITERATIONS = 1000


class ArmHistory(NamedTuple):
    """What was played, changed in place."""

    recent: Rows  # (m, d) the last actions
    arms: Integers  # (m,) their numbers, -1 before the first
    chosen: Integers  # (n,) those of the block


class ArmTables(NamedTuple):
    """Few arms, the same at every step."""

    arms: Rows  # (K, d)
    B: Rows  # (d, W K) features of every window and arm
    rank: Table  # (S,) the window of each state


class TablePlanner(NamedTuple):
    """Rolling on few arms."""

    learner: Learner
    memory: Memory
    A0: Matrix | None
    history: ArmHistory
    tables: ArmTables
    play: int


class RevealedPlanner(NamedTuple):
    """Rolling on sets that are revealed step by step."""

    learner: Learner
    memory: Memory
    A0: Matrix | None
    history: ArmHistory
    sets: Matrix  # (T, K, d)
    later: int  # steps that follow an arm
    futures: int  # draws of the sets of these steps


def make_arm_history(m: int, d: int, n: int) -> ArmHistory:
    """Nothing was played."""
    return ArmHistory(recent=np.zeros((m, d)), arms=np.full(m, -1), chosen=np.full(n, -1))


@inline
def learn_on_arms(planner: TablePlanner | RevealedPlanner, block: BlockState) -> None:
    """What a rolling learner takes from a block: all rewards, and what was played."""
    config, e, F = planner.learner
    learn_from_block(config, e, F, block)
    if plans_made(block) > 0:
        push_arms(block, planner.history)


@kernel_norefcount
def push_arms(block: BlockState, history: ArmHistory) -> None:
    """The last m actions and arms, after the block was played as often as it was to be."""
    n, (m, d) = length(block), history.recent.shape
    _, passes, _ = cursor(block)
    played = n * passes
    for s in range(m):
        back = m - s  # steps before now
        if back <= played:
            source = (n - back % n) % n
            history.arms[s] = history.chosen[source]
            for i in range(d):
                history.recent[s, i] = block.actions[source, i]
        else:
            history.arms[s] = history.arms[s + played]
            for i in range(d):
                history.recent[s, i] = history.recent[s + played, i]


@inline
def plan_by_policy(planner: TablePlanner, block: BlockState, rng: np.random.Generator) -> None:
    """The next arms of the best policy in the long run; the history is known. Nothing is drawn."""
    config, e, F = planner.learner
    _plan_by_policy(
        config, e, F, planner.memory, planner.A0, planner.history, planner.tables, planner.play, block
    )


@kernel
def _plan_by_policy(
    config: LearnerConfig,
    e: Estimator,
    F: Rows,
    memory: Memory,
    A0: Matrix | None,
    history: ArmHistory,
    tables: ArmTables,
    play: int,
    block: BlockState,
) -> None:
    arms = continued(tables, Belief(e.theta, e.V_inv, radius(config, e), config.kind), history.arms, play)
    for t in range(play):
        history.chosen[t] = arms[t]
        for i in range(memory.d):
            block.actions[t, i] = tables.arms[arms[t], i]
    features_after(memory, A0, history.recent, block.actions, play, F)
    start_short_block(block, play, 1)


@kernel
def continued(tables: ArmTables, belief: Belief, recent: Integers, steps: int) -> Integers:
    """What the policy with the largest average UCB in the long run plays after the arms `recent` (m,).

    Each arm is the first best one for its UCB and the bias of the state that it leads to.
    """
    K, S, N = tables.arms.shape[0], tables.rank.shape[0], tables.B.shape[1]
    # Zeros, for `additive` multiplies what is there by 0, and 0 times NaN is NaN.
    flat, U, scratch = np.empty(N), np.zeros(tables.B.shape), np.zeros((2, N))
    additive(belief.theta, belief.V_inv, belief.beta, 0, N, tables.B, U, scratch, flat)
    values = flat.reshape(N // K, K)
    best, largest = np.empty(N // K, dtype=np.int32), 0.0
    for w in range(N // K):
        best[w] = 0
        for a in range(K):
            largest = max(largest, abs(values[w, a]))
            if values[w, a] > values[w, best[w]]:
                best[w] = a
    policy, bias = np.empty(S, dtype=np.int32), np.zeros(S)
    for s in range(S):
        policy[s] = best[tables.rank[s]]
    howard(values, tables.rank, policy, bias, margin(largest, SUM_SHARE), _ITERATIONS)
    state, found = 0, np.empty(steps, dtype=np.int64)
    for s in range(recent.shape[0]):
        state = state * K + recent[s]
    for t in range(steps):
        at, to, arm = tables.rank[state], state * K % S, 0
        for a in range(1, K):
            # Without memory every arm leads to the one state.
            if values[at, a] + bias[(to + a) % S] > values[at, arm] + bias[(to + arm) % S]:
                arm = a
        found[t] = arm
        state = (to + arm) % S
    return found


@inline
def plan_revealed(planner: RevealedPlanner, block: BlockState, rng: np.random.Generator) -> None:
    """The arm of the set that was revealed with the largest UCB and what would follow it on average."""
    config, e, F = planner.learner
    _plan_revealed(
        config, e, F, planner.memory, planner.A0, planner.history, planner.sets,
        planner.later, planner.futures, block, rng,
    )  # fmt: skip


@kernel
def _plan_revealed(
    config: LearnerConfig,
    e: Estimator,
    F: Rows,
    memory: Memory,
    A0: Matrix | None,
    history: ArmHistory,
    sets: Matrix,
    later: int,
    futures: int,
    block: BlockState,
    rng: np.random.Generator,
) -> None:
    belief = Belief(e.theta, e.V_inv, radius(config, e), config.kind)
    step = next_step(block)
    worth = worth_of_arms(memory, A0, belief, sets, history.recent, step, later, futures, rng)
    arm = 0
    for a in range(1, worth.shape[0]):
        if worth[a] > worth[arm]:
            arm = a
    history.chosen[0] = arm
    for i in range(memory.d):
        block.actions[0, i] = sets[step, arm, i]
    features_after(memory, A0, history.recent, block.actions, 1, F)
    start_short_block(block, 1, 1)


@kernel
def worth_of_arms(
    memory: Memory,
    A0: Matrix | None,
    belief: Belief,
    sets: Matrix,
    recent: Rows,
    step: int,
    later: int,
    futures: int,
    rng: np.random.Generator,
) -> Vector:
    """The UCB of every arm (K,) of a step, and what follows it: the best arms, one step after the other.

    The sets to come are drawn from those seen before, `futures` times.
    """
    K, (m, d) = sets.shape[1], recent.shape
    a, work = np.empty((d, (m + 1) * K)), make_work(memory, A0, (m + 1) * K, K)
    for i in range(d):
        for k in range(K):
            for s in range(m):
                a[i, s * K + k] = recent[s, i]
            a[i, m * K + k] = sets[step, k, i]
    worth = np.empty(K)
    features(memory, A0, a, K, work)
    additive(belief.theta, belief.V_inv, belief.beta, m, K, work.B, work.U, work.scratch, worth)
    lanes = K * futures
    b, room = np.empty((d, (m + 1) * lanes)), make_work(memory, A0, (m + 1) * lanes, lanes)
    drawn = np.empty(futures, dtype=np.int64)
    for i in range(d):
        for s in range(m):
            for k in range(K):
                action = recent[s + 1, i] if s + 1 < m else sets[step, k, i]
                for f in range(futures):
                    b[i, s * lanes + k * futures + f] = action
        for w in range(lanes):
            b[i, m * lanes + w] = belief.theta[i]
    for _ in range(later):
        for f in range(futures):
            drawn[f] = int((step + 1) * rng.random())
        features(memory, A0, b, lanes, room)
        for k in range(K):
            for f in range(futures):
                worth[k] += _best_next(sets[drawn[f]], room.B, b, k * futures + f, m, lanes) / futures
    return worth


@kernel_norefcount
def _best_next(arms: Rows, B: Rows, b: Rows, w: int, m: int, lanes: int) -> float:
    """The largest reward of the arms (K, d) in lane w, where it becomes part of the window."""
    K, d = arms.shape
    best, largest = 0, -1e300
    for k in range(K):
        reward = 0.0
        for i in range(d):
            reward += arms[k, i] * B[i, m * lanes + w]
        if reward > largest:
            best, largest = k, reward
    for i in range(d):
        for s in range(m - 1):
            b[i, s * lanes + w] = b[i, (s + 1) * lanes + w]
        b[i, (m - 1) * lanes + w] = arms[best, i]
    return largest
