"""What a learner makes of a block: owns its radius, its blocks' features and what it takes from rewards.

Section 3.2 of the paper (sec:estimation): rewards are linear in features that the learner can compute.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import kernel, kernel_internal, kernel_nested, kernel_norefcount
from ._types import Matrix, Rows
from .block_state import BlockState, clear_rewards, length, plans_made
from .blocks import features, make_work
from .estimator import LAM, LOG_DET, SAMPLES, Estimator, absorb_all, noise_variance
from .memory import Memory
from .optimism import OM_BLOCK
from .search import Effort


class LearnerConfig(NamedTuple):
    """How a learner turns what it knows into blocks; the radius is that of `theory.confidence_radius`."""

    kind: int  # O3M, OM or OM_BLOCK
    m: int
    confidence: float  # 2 ln(1/delta)
    noise: float  # factor of the root ...
    estimated: bool  # ... times the noise that the rewards show
    prior: float  # what is added to it
    growth: float  # the root holds ln(1 + growth * samples) D times ...
    by_determinant: bool  # ... or ln det V/det(lam I)
    by_estimate: bool  # what is added follows from the estimate, where that is less
    switch: float
    cyclic: bool  # blocks are planned and repeated as cycles: every reward is learned from
    first: Effort  # for the first plan
    later: Effort  # with the block before as a start


class Learner(NamedTuple):
    """A learner at work: its estimator and the features of the present block are changed in place."""

    config: LearnerConfig
    estimator: Estimator
    features: Rows  # (L, D) of the last L actions; for OM-Block (1, D); of a cycle (m+n, D), one row a slot


@kernel_norefcount
def radius(config: LearnerConfig, e: Estimator) -> float:
    """beta."""
    volume = e.ledger[LOG_DET]
    if not config.by_determinant:
        volume = e.theta.shape[0] * math.log1p(config.growth * e.ledger[SAMPLES])
    noise = config.noise
    if config.estimated:
        noise *= math.sqrt(noise_variance(e))
    noise *= math.sqrt(config.confidence + max(volume, 0.0))
    return noise + _bias(e, noise, config.prior) if config.by_estimate else noise + config.prior


@kernel_internal
def _bias(e: Estimator, noise: float, prior: float) -> float:
    """A bound on lam ||theta*||, in the norm of V^-1, that is never more than the prior one, sqrt(lam).

    ||theta*|| <= 1 gives lam/sqrt(least eigenvalue of V). And ||theta*|| <= ||theta|| + ||theta* - theta||,
    the last at most the radius over that eigenvalue, gives a bound in which the radius occurs: solved for it.
    """
    lam, size, squared = e.ledger[LAM], 0.0, 0.0
    D = e.theta.shape[0]
    for i in range(D):
        for j in range(D):
            size += e.V_inv[i, j] * e.V_inv[i, j]
            squared += e.theta[i] * e.V_inv[i, j] * e.theta[j]
    share = lam * math.sqrt(size)  # at least lam over the least eigenvalue
    bound = min(prior, prior * math.sqrt(share))
    if share < 1.0 - 1e-9:  # before anything is learned it is 1 at d = 1, to within rounding
        bound = min(bound, (noise + lam * math.sqrt(max(squared, 0.0))) / (1.0 - share) - noise)
    return bound


@kernel
def learn_from_block(config: LearnerConfig, e: Estimator, F: Rows, block: BlockState) -> None:
    """The estimator takes in what the block collected, which is cleared; OM-Block the sum of its rewards."""
    skipped = 0 if config.cyclic else config.m
    slots = block.reward_sums.shape[0] - block.actions.shape[0] + length(block)
    F = F[: 1 if config.kind == OM_BLOCK else slots - skipped]
    counts, totals, squares = np.zeros(F.shape[0]), np.zeros(F.shape[0]), np.zeros(F.shape[0])
    for j in range(skipped, slots):
        row = 0 if config.kind == OM_BLOCK else j - skipped
        counts[row] = block.reward_counts[j]
        totals[row] += block.reward_sums[j]
        squares[row] += block.reward_squares[j]
    if plans_made(block) > 0:
        absorb_all(e, F, counts, totals, squares)
    clear_rewards(block)


@kernel
def block_features(config: LearnerConfig, memory: Memory, A0: Matrix | None, actions: Rows, F: Rows) -> None:
    """F from actions (d, n): their features; OM-Block: the first m actions and the features, in one row."""
    d, n = actions.shape
    work = make_work(memory, A0, n, 1)
    features(memory, A0, actions, 1, work)
    for t in range(n):
        for i in range(d):
            if config.kind == OM_BLOCK:
                F[0, t * d + i] = work.B[i, t] if t >= config.m else actions[i, t]
            elif t >= config.m:
                F[t - config.m, i] = work.B[i, t]


@kernel_nested
def cycle_features(memory: Memory, A0: Matrix | None, before: Rows, actions: Rows, F: Rows) -> None:
    """F (m+n, d) of a cycle (d, n) that is played after the actions `before` (d, m), one row a slot.

    The windows of its first m actions hold what was played before in the first pass, and the end of the cycle
    in all others.
    """
    d, n = actions.shape
    m = memory.m
    sequence = np.empty((d, n + 2 * m))
    for i in range(d):
        for t in range(n + 2 * m):
            sequence[i, t] = before[i, t] if t < m else actions[i, (t - m) % n]
    work = make_work(memory, A0, n + 2 * m, 1)
    features(memory, A0, sequence, 1, work)
    for i in range(d):
        for t in range(m):
            F[t, i] = work.B[i, m + t]
            F[m + t, i] = work.B[i, m + n + t]
        for t in range(m, n):
            F[m + t, i] = work.B[i, m + t]
