"""Learners that do not know of memory and draw what they play: owns the planners of the baselines.

Each plays blocks of one action, whose feature is the action itself. Sets are as of `MemorylessPlanner`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel
from ._types import Matrix, Rows, Vector
from .best_action import best_arm
from .block_state import BlockState, next_step, start_block
from .estimator import Estimator, cholesky, noise_variance
from .learning import Learner, LearnerConfig, radius

#: The schedule of `EpsilonPlanner`: at step t one draws with probability min(1, EXPLORED d/t).
EXPLORED = 5.0


class ThompsonPlanner(NamedTuple):
    """Linear Thompson sampling: the best action for a theta that is drawn."""

    learner: Learner
    arms: Matrix  # (S, K, d): S = 0 for the ball, 1 for a finite set, one set a step for a contextual set
    inflated: bool  # whether the spread of the draw is the radius, else the noise


class EpsilonPlanner(NamedTuple):
    """Epsilon-greedy: the best action for the estimate, or with some probability any."""

    learner: Learner
    arms: Matrix
    epsilon: float  # negative for the schedule


class RandomPlanner(NamedTuple):
    """Any action, with the same probability."""

    arms: Matrix


@inline
def plan_thompson(planner: ThompsonPlanner, block: BlockState, rng: np.random.Generator) -> None:
    """The best action for theta + v R z, z standard normal, where V^-1 = R R^T."""
    config, e, F = planner.learner
    _play_draw(config, e, F, planner.arms, planner.inflated, block, rng)


@inline
def plan_epsilon(planner: EpsilonPlanner, block: BlockState, rng: np.random.Generator) -> None:
    """The best action for theta, or any."""
    _, e, F = planner.learner
    _play_epsilon(e.theta, F, planner.arms, planner.epsilon, block, rng)


@inline
def plan_random(planner: RandomPlanner, block: BlockState, rng: np.random.Generator) -> None:
    """Any action."""
    _play_any(planner.arms, block, rng)


@inline
def learn_nothing(planner: RandomPlanner, block: BlockState) -> None:
    """What one takes from a block who does not learn."""


@kernel
def _play_draw(
    config: LearnerConfig,
    e: Estimator,
    F: Rows,
    arms: Matrix,
    inflated: bool,
    block: BlockState,
    rng: np.random.Generator,
) -> None:
    d = e.theta.shape[0]
    if inflated:
        v = radius(config, e)
    else:
        v = config.noise * (math.sqrt(noise_variance(e)) if config.estimated else 1.0)
    R, z, theta = np.empty((d, d)), np.empty(d), np.empty(d)
    cholesky(e.V_inv, R)
    for i in range(d):
        z[i] = rng.standard_normal()
        theta[i] = e.theta[i]
        for j in range(i + 1):
            theta[i] += v * R[i, j] * z[j]
    _play_best(theta, arms, block)
    for i in range(block.actions.shape[1]):
        F[0, i] = block.actions[0, i]


@kernel
def _play_epsilon(
    theta: Vector, F: Rows, arms: Matrix, epsilon: float, block: BlockState, rng: np.random.Generator
) -> None:
    if epsilon < 0.0:
        epsilon = min(1.0, EXPLORED * theta.shape[0] / (next_step(block) + 1.0))
    if rng.random() < epsilon:
        _play_any(arms, block, rng)
    else:
        _play_best(theta, arms, block)
    for i in range(block.actions.shape[1]):
        F[0, i] = block.actions[0, i]


@kernel
def _play_best(theta: Vector, arms: Matrix, block: BlockState) -> None:
    """The action of the step's set with the largest <a, theta>; on the ball the direction of theta."""
    d = theta.shape[0]
    if arms.shape[0] == 0:
        norm = 0.0
        for i in range(d):
            norm = math.hypot(norm, theta[i])
        for i in range(d):
            block.actions[0, i] = theta[i] / norm if norm > 0.0 else 0.0
        if norm == 0.0:
            block.actions[0, 0] = 1.0  # nothing is known: all directions are the same
    else:
        at = min(next_step(block), arms.shape[0] - 1)
        # Without a bonus the matrix does not count.
        arm = best_arm(arms[at], theta, block.actions, 0.0)
        for i in range(d):
            block.actions[0, i] = arms[at, arm, i]
    start_block(block, 1)


@kernel
def _play_any(arms: Matrix, block: BlockState, rng: np.random.Generator) -> None:
    """A uniform member of the step's set; on the ball a normal direction, a radius of u^(1/d)."""
    d = block.actions.shape[1]
    if arms.shape[0] == 0:
        norm = 0.0
        for i in range(d):
            block.actions[0, i] = rng.standard_normal()
            norm = math.hypot(norm, block.actions[0, i])
        size = rng.random() ** (1.0 / d) / norm
        for i in range(d):
            block.actions[0, i] *= size
    else:
        at, K = min(next_step(block), arms.shape[0] - 1), arms.shape[1]
        arm = min(int(rng.random() * K), K - 1)
        for i in range(d):
            block.actions[0, i] = arms[at, arm, i]
    start_block(block, 1)
