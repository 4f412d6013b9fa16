"""What a learner makes of a block: owns its radius, its blocks' features and what it takes from rewards.

Section 3.2 of the paper (sec:estimation): rewards are linear in features that the learner can compute.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import kernel, kernel_norefcount
from ._types import Matrix, Rows
from .block_state import BlockState, clear_rewards, plans_made
from .blocks import features, make_work
from .estimator import LOG_DET, SAMPLES, Estimator, absorb_all
from .memory import Memory
from .optimism import OM_BLOCK
from .search import Effort


class LearnerConfig(NamedTuple):
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


class Learner(NamedTuple):
    """A learner at work: its estimator and the features of the present block are changed in place."""

    config: LearnerConfig
    estimator: Estimator
    features: Rows  # (L, D) of the last L actions; for OM-Block (1, D)


@kernel_norefcount
def radius(config: LearnerConfig, e: Estimator) -> float:
    """beta."""
    volume = e.ledger[LOG_DET]
    if not config.by_determinant:
        volume = e.theta.shape[0] * math.log1p(config.growth * e.ledger[SAMPLES])
    return config.noise * math.sqrt(config.confidence + max(volume, 0.0)) + config.prior


@kernel
def learn_from_block(learner: Learner, block: BlockState) -> None:
    """The estimator takes in what the block collected, which is cleared; OM-Block the sum of its rewards."""
    config, F = learner.config, learner.features
    counts, totals = np.zeros(F.shape[0]), np.zeros(F.shape[0])
    for j in range(config.m, block.actions.shape[0]):
        row = 0 if config.kind == OM_BLOCK else j - config.m
        counts[row] = block.reward_counts[j]
        totals[row] += block.reward_sums[j]
    if plans_made(block) > 0:
        absorb_all(learner.estimator, F, counts, totals)
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
