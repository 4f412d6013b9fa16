"""Blocks on sets that are revealed step by step, compiled: owns the next arm of O3M, and what is kept for it.

The sets to come are taken to be those seen last, the latest first. So the windows that a plan looks at one
step later are nearly the same: those whose arms are of the steps v+m, ..., v+1 and of v in the end, for all v
up to now. The powers of their memory matrices are kept, and their UCBs for as long as the belief is the same.
A dynamic program over the last m arms then gives the best next arm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import kernel, kernel_norefcount
from ._types import Integers, Matrix, Rows, Vector
from .block_state import BlockState, cursor, is_done, length, next_step, start_block
from .blocks import features, make_work
from .estimator import Estimator
from .learning import Learner, LearnerConfig, learn_from_block, radius
from .memory import Memory
from .optimism import additive
from .playing import Recorder, elapsed, play_block
from .rewards import History, ModelParams

#: The step of what is not kept.
_NONE = -(2**62)


class KeptWindows(NamedTuple):
    """What is kept of the last n steps, changed in place; W = K^m windows a step."""

    powers: Matrix  # (n, d, d*W) column i*W + w of a step is column i of X^gamma of window w
    values: Matrix  # (n, W, K) UCBs of every window and arm
    powers_at: Integers  # (n,) the step whose powers these are
    values_at: Integers  # (n,) the step whose values these are
    theta: Vector  # (d,) what was believed
    V_inv: Matrix  # (d, d)
    beta: Vector  # (1,)


class RevealedBlocks(NamedTuple):
    """O3M on sets that are revealed step by step."""

    learner: Learner
    memory: Memory
    A0: Matrix | None
    sets: Matrix  # (T, K, d)
    kept: KeptWindows


def make_kept_windows(n: int, K: int, m: int, d: int) -> KeptWindows:
    """Nothing is kept yet, of blocks of n actions."""
    W = K**m
    return KeptWindows(
        powers=np.zeros((n, d, d * W)),
        values=np.zeros((n, W, K)),
        powers_at=np.full(n, _NONE),
        values_at=np.full(n, _NONE),
        theta=np.zeros(d),
        V_inv=np.zeros((d, d)),
        beta=np.full(1, -1.0),
    )


@kernel
def run_revealed(
    planner: RevealedBlocks,
    block: BlockState,
    model: ModelParams,
    history: History,
    recorder: Recorder,
    noise: np.random.Generator,
    until: int,
) -> None:
    """An episode until a given step: every arm is chosen when its set is known."""
    config, e, F = planner.learner
    while elapsed(recorder) < until:
        if is_done(block):
            learn_from_block(config, e, F, block)
            start_block(block, 1)
        choose_arm(config, e, F, planner.memory, planner.A0, planner.sets, planner.kept, block)
        play_block(model, history, recorder, block, noise, elapsed(recorder) + 1)


@kernel
def choose_arm(
    config: LearnerConfig,
    e: Estimator,
    F: Rows,
    memory: Memory,
    A0: Matrix | None,
    sets: Matrix,
    kept: KeptWindows,
    block: BlockState,
) -> None:
    """The block's next action, the first of the best plan for the rest of it, and its feature."""
    m, d, K, step = memory.m, memory.d, sets.shape[1], next_step(block)
    position, _, _ = cursor(block)
    left = length(block) - position
    believe(kept, e.theta, e.V_inv, radius(config, e))
    V = np.zeros(K ** min(left, m))
    ahead = np.empty_like(V)
    for a in range(left - 1, m - 1, -1):
        v = step - a
        _ensure_values(memory, A0, sets, v, kept)
        for s in range(V.shape[0]):
            ahead[s] = V[s]
        _back_up(kept.values[v % kept.values.shape[0]], ahead, V)
    for a in range(min(left, m) - 1, -1, -1):
        # Windows that begin with what was played; the rewards of a block's first m actions do not count.
        S, lanes = K**a, K ** (a + 1)
        x, work = np.empty((d, (m + 1) * lanes)), make_work(memory, A0, (m + 1) * lanes, lanes)
        worth = np.zeros(lanes)
        if position + a >= m:
            for s in range(m + 1):
                back = a - m + s  # position of the plan; below 0 it was played
                run = K ** (a - back) if back >= 0 else 1
                for w in range(lanes):
                    for i in range(d):
                        if back < 0:
                            x[i, s * lanes + w] = block.actions[position + back, i]
                        else:
                            x[i, s * lanes + w] = sets[max(step - back, 0), w // run % K, i]
            features(memory, A0, x, lanes, work)
            additive(kept.theta, kept.V_inv, kept.beta[0], m, lanes, work.B, work.U, work.scratch, worth)
        if a == 0:
            arm = 0
            for k in range(1, K):
                if worth[k] + V[k] > worth[arm] + V[arm]:
                    arm = k
            for i in range(d):
                block.actions[position, i] = sets[step, arm, i]
                if position >= m:
                    F[position - m, i] = work.B[i, m * lanes + arm]
        else:
            for s in range(S):
                best = worth[s * K] + V[s * K]
                for k in range(1, K):
                    best = max(best, worth[s * K + k] + V[s * K + k])
                V[s] = best


@kernel_norefcount
def believe(kept: KeptWindows, theta: Vector, V_inv: Matrix, beta: float) -> None:
    """Values of another belief are not kept."""
    d = theta.shape[0]
    same = kept.beta[0] == beta
    for i in range(d):
        same = same and kept.theta[i] == theta[i]
        for j in range(d):
            same = same and kept.V_inv[i, j] == V_inv[i, j]
    if same:
        return
    kept.beta[0] = beta
    for i in range(d):
        kept.theta[i] = theta[i]
        for j in range(d):
            kept.V_inv[i, j] = V_inv[i, j]
    for r in range(kept.values_at.shape[0]):
        kept.values_at[r] = _NONE


@kernel_norefcount
def _back_up(values: Rows, ahead: Vector, V: Vector) -> None:
    """V (S,) = the largest of values (S, K) and what comes after, `ahead` (S,)."""
    S, K = values.shape
    tail = S // K
    for s in range(S):
        first = s % tail * K
        best = values[s, 0] + ahead[first]
        for k in range(1, K):
            best = max(best, values[s, k] + ahead[first + k])
        V[s] = best


@kernel
def _ensure_values(memory: Memory, A0: Matrix | None, sets: Matrix, v: int, kept: KeptWindows) -> None:
    """The UCBs of step v are kept; before the first step its set is taken."""
    n, W, K = kept.values.shape
    r, d, m = v % n, memory.d, memory.m
    if kept.values_at[r] == v:
        return
    if kept.powers_at[r] != v:
        lanes = d * W
        x, work = np.zeros((d, (m + 1) * lanes)), make_work(memory, A0, (m + 1) * lanes, lanes)
        for s in range(m):
            at, run = max(v + m - s, 0), K ** (m - 1 - s)
            for i in range(d):
                for w in range(W):
                    arm = sets[at, w // run % K, i]
                    for j in range(d):
                        x[i, s * lanes + j * W + w] = arm
        for i in range(d):
            for w in range(W):
                x[i, m * lanes + i * W + w] = 1.0
        features(memory, A0, x, lanes, work)
        for i in range(d):
            for w in range(lanes):
                kept.powers[r, i, w] = work.B[i, m * lanes + w]
        kept.powers_at[r] = v
    _fill_values(kept.powers[r], sets[max(v, 0)], kept.theta, kept.V_inv, kept.beta[0], kept.values[r])
    kept.values_at[r] = v


@kernel
def _fill_values(powers: Rows, arms: Rows, theta: Vector, V_inv: Matrix, beta: float, values: Rows) -> None:
    """values (W, K) = the UCB of X^gamma a for every window and arm (K, d)."""
    (W, K), d = values.shape, theta.shape[0]
    B, U, scratch, worth = np.empty((d, W)), np.zeros((d, W)), np.zeros((2, W)), np.empty(W)
    for k in range(K):
        for i in range(d):
            for w in range(W):
                B[i, w] = powers[i, w] * arms[k, 0]
            for j in range(1, d):
                x = arms[k, j]
                for w in range(W):
                    B[i, w] += powers[i, j * W + w] * x
        additive(theta, V_inv, beta, 0, W, B, U, scratch, worth)
        for w in range(W):
            values[w, k] = worth[w]
