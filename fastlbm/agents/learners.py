"""Learners at work: owns the policies of O3M, OM, OM-Block and OFUL, and which of them serves a problem."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._base.validation import Array
from .._base.values import writable
from ..kernels.block_state import next_step, start_block
from ..kernels.estimator import Estimator, make_estimator, repeats
from ..kernels.learning import Learner, LearnerConfig, block_features, learn_from_block, radius
from ..kernels.memory import make_memory
from ..kernels.optimism import O3M, OM, OM_BLOCK, Belief
from ..kernels.planners import BallPlanner, MemorylessPlanner
from ..model.actions import ActionSet, Ball, Contextual
from ..model.memory_matrix import check_memory_matrix, matrix_power
from ..planning.effort import FIRST, LATER, RARE, RARE_AND_LONG
from ..planning.finite import FinitePlanner
from .base import LearningAgent
from .policy import BlockPolicy, CompiledPolicy, Rng, arms_of


class Task(NamedTuple):
    """What a learner is to plan: blocks of m+L actions, with which kind of optimism."""

    kind: int  # O3M, OM or OM_BLOCK
    m: int
    gamma: float
    L: int
    A0: Array | None
    switch: float


class LearnerPolicy(BlockPolicy):
    """A learner at work, with blocks of n actions."""

    def __init__(self, learner: Learner, n: int, d: int, rng: Rng, step: int) -> None:
        super().__init__(n, d, rng, step, lead=learner.config.m if learner.config.cyclic else 0)
        self._learner = learner

    @property
    def learner(self) -> Learner:
        return self._learner

    def use_estimator(self, estimator: Estimator) -> None:
        """Learn into this estimator from now on, which somebody else may share."""
        self._learner = self._learner._replace(estimator=estimator)


class CompiledLearner(CompiledPolicy, LearnerPolicy):
    """A learner whose planner is compiled."""

    def use_estimator(self, estimator: Estimator) -> None:
        super().use_estimator(estimator)
        self.planner = self.planner._replace(learner=self.learner)


class BallLearner(CompiledLearner):
    """O3M, OM and OM-Block on the ball."""

    def __init__(self, learner: Learner, task: Task, A0: Array, rng: Rng, step: int) -> None:
        super().__init__(learner, task.m + task.L, len(A0), rng=rng, step=step)
        self.planner = BallPlanner(learner, *make_memory(writable(A0), task.m, task.gamma))


class MemorylessLearner(CompiledLearner):
    """Learners with m = 0 whose actions can be chosen one by one, on any set; features are M a."""

    def __init__(self, learner: Learner, M: Array, actions: ActionSet, rng: Rng, step: int) -> None:
        super().__init__(learner, len(learner.features), len(M), rng=rng, step=step)
        self.planner = MemorylessPlanner(learner, M, arms_of(actions))


class ArmLearner(LearnerPolicy):
    """O3M, OM and OM-Block on sets of arms, planned exactly where that is possible."""

    def __init__(
        self, learner: Learner, task: Task, A0: Array, actions: ActionSet, rng: Rng, step: int
    ) -> None:
        super().__init__(learner, task.m + task.L, len(A0), rng=rng, step=step)
        self.memory = make_memory(writable(A0), task.m, task.gamma)
        sets = arms_of(actions)
        self.planner = FinitePlanner(
            sets if len(sets) > 1 else sets[0], m=task.m, gamma=task.gamma, A0=writable(A0)
        )

    def plan_next_block(self) -> None:
        config, e, F = self.learner
        learn_from_block(self.learner, self.block)
        belief = Belief(e.theta, e.V_inv, float(radius(config, e)), config.kind)
        L = len(self.block.actions) - config.m
        # A block that is cut by the end is planned as if the last set went on.
        plan = self.planner.plan(belief, L, self.rng, start=int(next_step(self.block)))
        self.block.actions[:] = plan.actions
        block_features(config, *self.memory, np.ascontiguousarray(plan.actions.T), F)
        start_block(self.block, repeats(e, F, config.switch, 0))


def make_learner(agent: LearningAgent, task: Task, actions: ActionSet, rng: Rng, step: int) -> LearnerPolicy:
    """The policy of a learning agent that plans as the task says."""
    kind, m, gamma, L, A0, switch = task
    d, n = actions.d, m + L
    if n > agent.horizon:
        raise ValueError(f"horizon must hold a block of m+L={n} actions, got {agent.horizon}")
    if switch > 0.0 and isinstance(actions, Contextual):
        raise ValueError(
            "switch must be 0 on a Contextual set, where the arms of a plan are gone when it is "
            f"repeated, got {switch:g}"
        )
    ball = isinstance(actions, Ball)
    matrix, rho = check_memory_matrix(A0, d, m, gamma, differentiable=ball and m > 0)
    one_by_one = kind == O3M or L == 1 or (kind == OM and not isinstance(actions, Contextual))
    if m == 0 and one_by_one:
        # One feature a step, for OM-Block as well: a block of one.
        config = _config(agent, task, d, rho)
        learner = Learner(config._replace(kind=O3M), make_estimator(d, agent.lam), np.zeros((L, d)))
        M = matrix_power(matrix, gamma) if A0 is not None else np.eye(d)
        return MemorylessLearner(learner, np.ascontiguousarray(M), actions, rng=rng, step=step)
    D, rows = (d * n, 1) if kind == OM_BLOCK else (d, L)
    config = _config(agent, task, d, rho)
    if ball and switch > 0.0 and kind != OM_BLOCK:
        config, rows = config._replace(cyclic=True), m + n
    learner = Learner(config, make_estimator(D, agent.lam), np.zeros((rows, D)))
    if ball:
        return BallLearner(learner, task, matrix, rng=rng, step=step)
    return ArmLearner(learner, task, matrix, actions, rng=rng, step=step)


def _config(agent: LearningAgent, task: Task, d: int, rho: float) -> LearnerConfig:
    """Radius and efforts; rho bounds the powers of the memory matrix, see `theory.confidence_radius`."""
    kind, m, _, L, _, switch = task
    norm, D, size = 1.0, d, rho**2
    if kind == OM_BLOCK:
        norm, D, size = math.sqrt(L), d * (m + L), m + L * rho**2
    rare = RARE if m + L <= 48 else RARE_AND_LONG
    first, later = (rare, rare) if switch > 0.0 else (FIRST, LATER)
    return LearnerConfig(
        kind=kind,
        m=m,
        confidence=-2.0 * math.log(1.0 / agent.horizon if agent.delta is None else agent.delta),
        noise=norm * agent.subgaussian,
        prior=norm * math.sqrt(agent.lam),
        growth=size / (D * agent.lam),
        by_determinant=agent.radius == "determinant",
        switch=switch,
        cyclic=False,
        first=first,
        later=later,
    )
