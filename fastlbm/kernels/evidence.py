"""Bayesian regressions of many candidates on the same rewards: owns their estimators and what is left over.

The features of a candidate (m, gamma) follow from the actions that were really played, whoever chose them
(equations (1) and (2) of the paper); where its memory has no end, from one matrix of them, see `fading`. Each
candidate keeps a regression on all rewards seen; the squares of its one-step errors, y - <b, theta> over
1 + b^T V^-1 b, add up to the residual of the regression. What both would be for other lam follows from V and
theta.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import kernel, kernel_norefcount
from ._types import Integers, Matrix, Rows, Vector
from .block_state import BlockState, clear_rewards
from .estimator import LAM, LOG_DET, Estimator, absorb, cholesky_of_sum, estimate
from .fading import push_past
from .rewards import decompose, multiply, weighted

#: sigma^2 ~ InverseGamma(shape, scale): a weak prior around a noise of 0.1.
PRIOR_SHAPE, PRIOR_SCALE = 1.0, 0.01


class CandidateSet(NamedTuple):
    """The candidates, and what each of them knows: one row each."""

    m: Integers  # (N,) 0 of a memory without end
    gamma: Vector  # (N,)
    decay: Vector  # (N,)
    memory: Integers  # (N,) numbers of memories: candidates with the same m and decay have the same
    endless: Integers  # (N,) of a memory without end, where its decay is in `decays`; else -1
    decays: Vector  # (D,) of memories without end
    c: Vector  # (N,) `rewards.gram_scale`
    floor: Vector  # (N,) `powers.eigenvalue_floor`
    A0: Matrix
    V: Matrix  # (N, d, d) and so on: see Estimator
    U: Rows
    V_recent: Matrix
    U_recent: Rows
    V_lost: Matrix
    U_lost: Rows
    V_inv: Matrix
    theta: Rows
    ledger: Rows
    residual: Rows  # (2, N) sum of e^2/(1 + q), and what rounding took from it


@kernel
def member(candidates: CandidateSet, j: int) -> Estimator:
    """The estimator of candidate j: views."""
    return Estimator(
        V=candidates.V[j],
        U=candidates.U[j],
        V_recent=candidates.V_recent[j],
        U_recent=candidates.U_recent[j],
        V_lost=candidates.V_lost[j],
        U_lost=candidates.U_lost[j],
        V_inv=candidates.V_inv[j],
        theta=candidates.theta[j],
        ledger=candidates.ledger[j],
    )


@kernel
def candidate_features(candidates: CandidateSet, past: Matrix, recent: Rows, block: Rows, F: Rows) -> None:
    """F (n, N d): the features of a block (n, d) after the actions `recent` (M, d), for every candidate.

    `past` (D, d, d) is what memories without end hold before the block, each with its decay.
    """
    n, d = block.shape
    M, N, A0 = recent.shape[0], candidates.m.shape[0], candidates.A0
    sequence = np.empty((M + n, d))
    for t in range(M + n):
        for i in range(d):
            sequence[t, i] = recent[t, i] if t < M else block[t - M, i]
    action, out, past = np.empty(d), np.empty(d), past.copy()
    A, Q, X = np.empty((d, d)), np.empty((d, d)), A0.copy()
    small, rotation = np.empty((0, 0)), np.empty((0, 0))
    for t in range(n):
        for i in range(d):
            action[i] = block[t, i]
        solved = -1  # the memory that was decomposed last: candidates that share it share its spectrum
        window = sequence[:0]
        for j in range(N):
            m, gamma, c, floor = candidates.m[j], candidates.gamma[j], candidates.c[j], candidates.floor[j]
            if gamma == 0.0:
                for i in range(d):
                    F[t, j * d + i] = action[i]
                continue
            if candidates.memory[j] != solved:
                solved, at = candidates.memory[j], candidates.endless[j]
                window = sequence[M + t - m : M + t]
                if candidates.decay[j] < 1.0:
                    window = weighted(window, candidates.decay[j])
                for i in range(d):
                    for k in range(d):
                        X[i, k] = A0[i, k] + (past[at, i, k] if at >= 0 else 0.0)
                if c > 0.0:
                    small, rotation = np.empty((m, m)), np.empty((m, m))
                    decompose(c, A0, window, small, rotation)
                else:
                    decompose(c, X, window, A, Q)
            if c > 0.0:
                multiply(c, gamma, floor, window, small, rotation, action, out)
            else:
                multiply(c, gamma, floor, window, A, Q, action, out)
            for i in range(d):
                F[t, j * d + i] = out[i]
        push_all(candidates, past, block, t, t + 1)


@kernel_norefcount
def push_all(candidates: CandidateSet, past: Matrix, actions: Rows, first: int, end: int) -> None:
    """The actions (.., d) from the row `first` to `end` were played: what memories without end hold then."""
    for k in range(past.shape[0]):
        push_past(past[k], candidates.decays[k], actions, first, end)


@kernel
def absorb_reward(candidates: CandidateSet, features: Vector, y: float) -> None:
    """Every candidate learns the reward y of its features (N d,)."""
    N, d = candidates.theta.shape
    b = np.empty(d)
    for j in range(N):
        e = member(candidates, j)
        q, error = 0.0, y
        for i in range(d):
            b[i] = features[j * d + i]
            error -= b[i] * e.theta[i]
        for i in range(d):
            s = 0.0
            for k in range(d):
                s += e.V_inv[i, k] * b[k]
            q += b[i] * s
        # Compensated: 10^6 squares lose no digits.
        share = error * error / (1.0 + max(q, 0.0)) + candidates.residual[1, j]
        total = candidates.residual[0, j] + share
        candidates.residual[1, j] = share - (total - candidates.residual[0, j])
        candidates.residual[0, j] = total
        absorb(e, b, 1.0, y, y * y)
        estimate(e)


@kernel
def absorb_block(candidates: CandidateSet, F: Rows, block: BlockState) -> None:
    """Every candidate learns what came of the block, which is cleared."""
    for t in range(F.shape[0]):
        if block.reward_counts[t] > 0.0:
            absorb_reward(candidates, F[t], block.reward_sums[t] / block.reward_counts[t])
    clear_rewards(block)


@kernel
def absorb_log(candidates: CandidateSet, past: Matrix, recent: Rows, actions: Rows, rewards: Vector) -> None:
    """Every candidate learns rewards (n,) of actions (n, d) that were played after `recent` (M, d).

    NaN stands for a reward that there is not, and for what nobody knows of `recent` or of `past`, as of
    `candidate_features`: windows that hold it teach nothing, and none of their rewards is learned, so that
    the candidates can be compared.
    """
    n, d = actions.shape
    M, N = recent.shape[0], candidates.m.shape[0]
    F, window, action, past = np.empty((1, N * d)), np.zeros((M, d)), np.empty((1, d)), past.copy()
    for t in range(n):
        known = not np.isnan(rewards[t])
        for k in range(past.shape[0]):
            for i in range(d):
                for j in range(d):
                    known = known and not np.isnan(past[k, i, j])
        for s in range(M):
            for i in range(d):
                window[s, i] = recent[t + s, i] if t + s < M else actions[t + s - M, i]
                known = known and not np.isnan(window[s, i])
        if known:
            for i in range(d):
                action[0, i] = actions[t, i]
            candidate_features(candidates, past, window, action, F)
            absorb_reward(candidates, F[0], rewards[t])
        push_all(candidates, past, actions, t, t + 1)


@kernel
def evidence_terms(candidates: CandidateSet, scales: Vector, log_det: Rows, rest: Rows) -> None:
    """log_det and rest (N, K): ln det V/det(lam I) and the residual, had lam been `scales` (K,) times itself.

    With W = V - (1 - s) lam I the residual y^T y - U^T W^-1 U is that of V less (1 - s) lam <theta, W^-1 U>:
    nothing large is subtracted.
    """
    N, d = candidates.theta.shape
    W, R, z = np.empty((d, d)), np.empty((d, d)), np.empty(d)
    for j in range(N):
        e = member(candidates, j)
        lam = e.ledger[LAM]
        for k in range(scales.shape[0]):
            less = (1.0 - scales[k]) * lam
            if less == 0.0:
                log_det[j, k], rest[j, k] = e.ledger[LOG_DET], candidates.residual[0, j]
                continue
            for i in range(d):
                z[i] = e.U[i] + (e.U_recent[i] + e.U_lost[i])
                for c in range(d):
                    W[i, c] = e.V[i, c] + (e.V_recent[i, c] + e.V_lost[i, c])
                W[i, i] -= less
            log_det[j, k] = cholesky_of_sum(W, R) - d * math.log(scales[k] * lam)
            _solve(R, z)
            dot = 0.0
            for i in range(d):
                dot += e.theta[i] * z[i]
            rest[j, k] = max(candidates.residual[0, j] - less * dot, 0.0)


@kernel
def _solve(R: Matrix, z: Vector) -> None:
    """z becomes (R R^T)^-1 z, for a lower triangle R."""
    d = z.shape[0]
    for i in range(d):
        for k in range(i):
            z[i] -= R[i, k] * z[k]
        z[i] /= R[i, i]
    for i in range(d - 1, -1, -1):
        for k in range(i + 1, d):
            z[i] -= R[k, i] * z[k]
        z[i] /= R[i, i]
