"""Learners at work: owns the policies of O3M, OM, OM-Block and OFUL, and which of them serves a problem."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._base import validation
from .._base.validation import Array
from .._base.values import writable
from ..kernels.block_state import next_step, start_block
from ..kernels.estimator import Estimator, make_estimator, repeats
from ..kernels.learning import Learner, LearnerConfig, block_features, learn_from_block, radius
from ..kernels.memory import make_memory
from ..kernels.optimism import O3M, OM, OM_BLOCK
from ..kernels.planners import BallPlanner, MemorylessPlanner
from ..kernels.search import Effort
from ..model.actions import ActionSet, Ball, Contextual
from ..planning.finite import planner as finite
from .base import LearningAgent
from .policy import BlockPolicy, CompiledPolicy, Rng, arms_of

#: Effort of a plan inside an episode: the first one, later ones that start from the block before, and, with
#: `switch`, the few that are made, of up to 48 actions and of more; measured in bench/learners.py.
FIRST = Effort(7, 0, 0, 60, 0, 1e-4, 2**62)
LATER = Effort(3, 0, 0, 40, 0, 1e-4, 2**62)
RARE = Effort(8, 2, 16, 150, 300, 1e-5, 2**62)
RARE_AND_LONG = Effort(32, 4, 100, 300, 1200, 1e-6, 2**62)


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
        super().__init__(n, d, rng, step)
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
        self.task, self.A0, self.arms = task, writable(A0), arms_of(actions)
        self.memory = make_memory(self.A0, task.m, task.gamma)

    def plan_next_block(self) -> None:
        config, e, F = self.learner
        task, n = self.task, len(self.block.actions)
        learn_from_block(self.learner, self.block)
        steps = np.arange(n)
        varying = len(self.arms) > 1
        if varying:
            # A block that is cut by the end is planned as if the last set went on.
            sets = self.arms[np.minimum(next_step(self.block) + steps, len(self.arms) - 1)]
        else:
            sets = self.arms[0]
        plan = finite.plan_finite(
            sets,
            m=task.m,
            gamma=task.gamma,
            L=task.L,
            theta=e.theta,
            V_inv=e.V_inv,
            beta=float(radius(config, e)),
            kind=task.kind,
            A0=self.A0,
            seed=self.rng,
        )
        block = sets[steps, plan.indices] if varying else sets[plan.indices]
        self.block.actions[:] = block
        block_features(config, *self.memory, np.ascontiguousarray(block.T), F)
        start_block(self.block, repeats(e, F, config.switch))


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
    matrix, rho = validation.memory_matrix(A0, d, m, gamma, differentiable=ball and m > 0)
    one_by_one = kind == O3M or L == 1 or (kind == OM and not isinstance(actions, Contextual))
    if m == 0 and one_by_one:
        # One feature a step, for OM-Block as well: a block of one.
        config = _config(agent, task, d, rho)
        learner = Learner(config._replace(kind=O3M), make_estimator(d, agent.lam), np.zeros((L, d)))
        spectrum, Q = np.linalg.eigh(matrix)
        M = (Q * np.maximum(spectrum, 0.0) ** gamma) @ Q.T if A0 is not None else np.eye(d)
        return MemorylessLearner(learner, np.ascontiguousarray(M), actions, rng=rng, step=step)
    D, rows = (d * n, 1) if kind == OM_BLOCK else (d, L)
    learner = Learner(_config(agent, task, d, rho), make_estimator(D, agent.lam), np.zeros((rows, D)))
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
        first=first,
        later=later,
    )
