"""Learners at work: owns the policies of O3M, OM, OM-Block and OFUL, and which of them serves a problem."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._base.types import Array
from .._base.values import writable
from ..kernels.block_state import cursor, next_step, start_block
from ..kernels.estimator import Estimator, absorb_all, make_estimator, passes_of_plan
from ..kernels.fading import PAPER, Fading, Variant, push_past, total_weight
from ..kernels.learning import Learner, LearnerConfig, block_features, learn_from_block, radius
from ..kernels.memory import Memory, make_memory
from ..kernels.optimism import O3M, OM, OM_BLOCK, Belief
from ..kernels.planners import BallPlanner, MemorylessPlanner
from ..kernels.playing import Recorder
from ..kernels.powers import POWER
from ..kernels.revealed_blocks import RevealedBlocks, choose_arm, make_kept_windows, run_revealed
from ..kernels.rewards import History, ModelParams, make_model_params
from ..kernels.rolling import features_after
from ..model.actions import ActionSet, Ball, Offered
from ..model.memory_matrix import check_memory_matrix, matrix_power
from ..planning.effort import FIRST, LATER, RARE, RARE_AND_LONG, most_seconds
from ..planning.finite import FinitePlanner
from .base import LearningAgent
from .offers import Offers
from .policy import BlockPolicy, CompiledPolicy, Rng

#: The probability with which the confidence sets of an agent without a horizon may fail, at any time.
DELTA = 0.01
#: Numbers that are kept where sets are revealed step by step (32 MB).
_KEPT = 2**22


class Task(NamedTuple):
    """What a learner is to plan: blocks of m+L actions, with which kind of optimism."""

    kind: int  # O3M, OM or OM_BLOCK
    m: int
    gamma: float
    L: int
    A0: Array | None
    switch: float
    variant: Variant = PAPER

    def memory(self, A0: Array) -> tuple[Memory, Array | None]:
        """The memory as kernels take it."""
        return make_memory(writable(A0), self.m, self.gamma, self.variant)

    @property
    def weight(self) -> float:
        """The most that the actions of a window add to an eigenvalue, m for the paper's."""
        return total_weight(self.m, self.variant.decay)


class LearnerPolicy(BlockPolicy):
    """A learner at work, with blocks of n actions."""

    def __init__(self, learner: Learner, n: int, d: int, rng: Rng, step: int) -> None:
        super().__init__(n, d, rng, step, lead=learner.config.m if learner.config.cyclic else 0)
        self._learner = learner

    @property
    def learner(self) -> Learner:
        return self._learner

    def stop(self, on: bool) -> None:
        self.learner.config.first.stop.fill(on)  # the same as of later plans

    def use_estimator(self, estimator: Estimator) -> None:
        """Learn into this estimator from now on, which somebody else may share."""
        self._learner = self._learner._replace(estimator=estimator)

    def play_again(self, actions: Array, features: Array) -> None:
        """Learn from the block that is done, and start one that was planned before."""
        learn_from_block(*self.learner, self.block)
        self.block.actions[:] = actions
        self.learner.features[:] = features
        start_block(self.block, 1)

    def interrupt(self) -> None:
        learn_from_block(*self.learner, self.block)
        super().interrupt()

    def features_of(self, before: Array, actions: Array) -> Array | None:
        """The features (n, d) of actions (n, d) after others; None if it has none of single actions."""
        raise NotImplementedError

    def absorb_log(self, before: Array, actions: Array, rewards: Array) -> None:
        before = before[len(before) - self.span :]
        unknown = np.flatnonzero(np.isnan(before).any(axis=1))
        seen = np.isfinite(rewards)
        seen[: unknown.max(initial=-1) + 1] = False
        F = self.features_of(np.nan_to_num(before), actions)
        if F is not None and seen.any():
            y = np.where(seen, rewards, 0.0)
            absorb_all(self.learner.estimator, F, seen.astype(np.float64), y, y * y)


class CompiledLearner(CompiledPolicy, LearnerPolicy):
    """A learner whose planner is compiled."""

    def use_estimator(self, estimator: Estimator) -> None:
        super().use_estimator(estimator)
        self.planner = self.planner._replace(learner=self.learner)


class BallLearner(CompiledLearner):
    """O3M, OM and OM-Block on the ball."""

    def __init__(self, learner: Learner, task: Task, A0: Array, rng: Rng, step: int) -> None:
        super().__init__(learner, task.m + task.L, len(A0), rng=rng, step=step)
        self.planner = BallPlanner(learner, *task.memory(A0))

    @property
    def plan_seconds(self) -> float:
        config, (n, d) = self.learner.config, self.block.actions.shape
        return math.inf if config.kind == OM_BLOCK else most_seconds(config.first, n, d, config.m)

    @property
    def span(self) -> int:
        return self.learner.config.m

    def features_of(self, before: Array, actions: Array) -> Array | None:
        if self.learner.config.kind == OM_BLOCK:
            return None
        return features_of_log(self.planner.memory, self.planner.A0, before, actions)

    def set_history(self, recent: Array) -> None:
        if self.learner.config.cyclic:
            # A cycle is learned as one that follows the end of the block before.
            n, m = len(self.block.actions), self.span
            self.block.actions[n - m :] = recent[len(recent) - m :]


class MemorylessLearner(CompiledLearner):
    """Learners with m = 0 whose actions can be chosen one by one, on any set; features are M a."""

    def __init__(self, learner: Learner, M: Array, actions: ActionSet, rng: Rng, step: int) -> None:
        super().__init__(learner, len(learner.features), actions.d, rng=rng, step=step)
        self.planner = MemorylessPlanner(learner, M, actions.sets())

    def features_of(self, before: Array, actions: Array) -> Array:
        M = self.planner.M
        return actions if len(M) == 0 else np.ascontiguousarray(actions @ M)


class ArmLearner(LearnerPolicy):
    """O3M, OM and OM-Block on arms that are known in advance, planned exactly where that is possible."""

    def __init__(
        self, learner: Learner, task: Task, A0: Array, actions: ActionSet, rng: Rng, step: int
    ) -> None:
        super().__init__(learner, task.m + task.L, len(A0), rng=rng, step=step)
        self.memory = task.memory(A0)
        self.sets = actions.sets()
        self.planner = self._planner(self.sets if actions.varies else self.sets[0], task, writable(A0))

    @staticmethod
    def _planner(arms: Array, task: Task, A0: Array) -> FinitePlanner:
        return FinitePlanner(arms, m=task.m, gamma=task.gamma, A0=A0, variant=task.variant)

    @property
    def span(self) -> int:
        return self.learner.config.m

    def features_of(self, before: Array, actions: Array) -> Array | None:
        if self.learner.config.kind == OM_BLOCK:
            return None
        return features_of_log(*self.memory, before, actions)

    def _belief(self) -> Belief:
        config, e, _ = self.learner
        return Belief(e.theta, e.V_inv, float(radius(config, e)), config.kind)

    def _set_actions(self, actions: Array) -> None:
        """These are the block's actions from now on."""
        self.block.actions[:] = actions
        config, _, F = self.learner
        block_features(config, *self.memory, np.ascontiguousarray(actions.T), F)

    def plan_next_block(self) -> None:
        config, e, F = self.learner
        learn_from_block(*self.learner, self.block)
        L = len(self.block.actions) - config.m
        # A block that is cut by the end is planned as if the last set went on.
        plan = self.planner.plan(self._belief(), L, self.rng, start=int(next_step(self.block)))
        self._set_actions(plan.actions)
        start_block(self.block, passes_of_plan(e, F, config.switch, 0))


class RevealedArmLearner(ArmLearner):
    """The same on sets that are revealed step by step.

    Rewards are learned between blocks, as ever. Within a block the actions that are left are planned anew at
    every step, after those that were played, as if the sets to come were those seen last, the latest first.
    `python -m reproduce arms` measures what that costs beside knowing all sets, where each is drawn anew: in
    rotting 65% of the optimum instead of 81%, in rising 74% instead of 75%.
    """

    def __init__(
        self, learner: Learner, task: Task, A0: Array, actions: ActionSet, rng: Rng, step: int
    ) -> None:
        super().__init__(learner, task, A0, actions, rng=rng, step=step)
        self.task, self.A0 = task, writable(A0)
        self._chosen_at = -1

    @property
    def replans(self) -> bool:
        return True

    def plan_next_block(self) -> None:
        learn_from_block(*self.learner, self.block)
        start_block(self.block, 1)

    def ensure_block(self) -> None:
        super().ensure_block()
        step = int(next_step(self.block))
        if step != self._chosen_at:
            self._choose(step)
            self._chosen_at = step

    def _choose(self, step: int) -> None:
        """Plan the rest of the block; an action that was played is a set of equal arms."""
        m, n = self.task.m, len(self.block.actions)
        position, _, _ = cursor(self.block)
        # A sum of bonuses does not depend on windows that are over.
        over = max(0, int(position) - m) if self.task.kind == O3M else 0
        played = self.block.actions[over:position].copy()
        ahead = np.arange(-len(played), n - over - len(played))
        sets = self.sets[np.maximum(step - np.maximum(ahead, 0), 0)]
        sets[: len(played)] = played[:, None]
        plan = self._planner(sets, self.task, self.A0).plan(self._belief(), n - over - m, self.rng)
        self._set_actions(np.concatenate((self.block.actions[:over], plan.actions)))


class CompiledRevealedLearner(RevealedArmLearner):
    """The same for O3M on few arms, compiled: exact for the sets that it takes to come."""

    def __init__(
        self, learner: Learner, task: Task, A0: Array, actions: ActionSet, rng: Rng, step: int
    ) -> None:
        super().__init__(learner, task, A0, actions, rng=rng, step=step)
        K, (n, d) = self.sets.shape[1], self.block.actions.shape
        self.kept = make_kept_windows(n, K, task.m, d)

    @staticmethod
    def serves(task: Task, K: int, d: int) -> bool:
        """Whether what is kept of a few steps is small, and O3M."""
        return task.kind == O3M and (task.m + task.L) * K**task.m * (K + d * d) <= _KEPT

    def _choose(self, step: int) -> None:
        choose_arm(*self.learner, *self.memory, self.sets, self.kept, self.block)

    def advance(
        self, model: ModelParams, history: History, recorder: Recorder, noise: Rng, until: int
    ) -> None:
        planner = RevealedBlocks(self.learner, *self.memory, self.sets, self.kept)
        run_revealed(planner, self.block, model, history, recorder, noise, until)


class OfferLearner(LearnerPolicy):
    """A learner on arms that are offered one step at a time, with blocks of n actions.

    Every action is chosen at its step, after what was really played, see `Offers`. Rewards are learned
    between blocks, of the actions behind the first m of the learner's: for Rolling, of all.
    """

    def __init__(self, learner: Learner, task: Task, A0: Array, n: int, rng: Rng, step: int) -> None:
        super().__init__(learner, n, len(A0), rng=rng, step=step)
        self.task, self.offers = task, Offers(len(A0))
        self.memory = task.memory(A0)
        theta = learner.estimator.theta
        self.model = make_model_params(theta, writable(A0), task.m, task.gamma, variant=task.variant)
        self.before, self._chosen_at = np.zeros((task.m, len(A0))), -1

    @property
    def span(self) -> int:
        return self.task.m

    @property
    def replans(self) -> bool:
        return True

    def use_estimator(self, estimator: Estimator) -> None:
        super().use_estimator(estimator)
        self.model = self.model._replace(theta=estimator.theta)

    def features_of(self, before: Array, actions: Array) -> Array:
        return features_of_log(*self.memory, before, actions)

    def offer(self, arms: Array, before: Array) -> None:
        self.offers.take(arms)
        self.before = np.nan_to_num(before[len(before) - self.task.m :])
        self._chosen_at = -1

    def plan_next_block(self) -> None:
        learn_from_block(*self.learner, self.block)
        start_block(self.block, 1)

    def ensure_block(self) -> None:
        super().ensure_block()
        if self._chosen_at >= 0:
            return
        config, e, F = self.learner
        arm = self.offers.choose(self.model, self.before, e, float(radius(config, e)), self.rng)
        position = int(cursor(self.block)[0])
        self.block.actions[position] = self.offers.arms[arm]
        if position >= config.m:
            F[position - config.m] = self.features_of(self.before, self.offers.arms[arm : arm + 1])[0]
        self._chosen_at = position

    def state(self) -> dict[str, Array]:
        return super().state() | self.offers.state()

    def check(self, changed: bool = False) -> None:
        super().check(changed)
        self.offers.check()


def features_of_log(memory: Memory, A0: Array | None, before: Array, actions: Array) -> Array:
    """The features (n, d) of actions (n, d) that were played after `before` (m, d).

    For a memory without end these are any number of rows.
    """
    F = np.empty(actions.shape)
    if isinstance(A0, Fading):
        A0 = A0._replace(past=np.zeros_like(A0.past))
        push_past(A0.past, memory.decay, np.ascontiguousarray(before), 0, len(before))
        before = before[:0]
    features_after(memory, A0, before, actions, len(actions), F)
    return F


def make_learner(agent: LearningAgent, task: Task, actions: ActionSet, rng: Rng, step: int) -> LearnerPolicy:
    """The policy of a learning agent that plans as the task says."""
    kind, m, gamma, L, A0, switch, _ = task
    d, n = actions.d, m + L
    if agent.horizon is not None and n > agent.horizon:
        raise ValueError(f"horizon must hold a block of m+L={n} actions, got {agent.horizon}")
    if switch > 0.0 and actions.varies:
        raise repeated_on(actions, switch)
    ball, offered = isinstance(actions, Ball), isinstance(actions, Offered)
    if offered and kind != O3M:
        raise ValueError(
            f"agent must choose one action at a time where arms are offered step by step, got {agent!r}, "
            "which plans whole blocks and must know their sets: O3M and Rolling do not"
        )
    if offered and m == 0:
        L = 1  # there is nothing to plan beyond the step
    variant, smooth = task.variant, ball and m > 0
    matrix, rho = check_memory_matrix(A0, d, task.weight, gamma, differentiable=smooth, variant=variant)
    one_by_one = kind == O3M or L == 1 or (kind == OM and not actions.varies)
    if m == 0 and one_by_one:
        # One feature a step, for OM-Block as well: a block of one.
        config = make_config(agent, task, d, rho)
        learner = Learner(config._replace(kind=O3M), make_estimator(d, agent.lam), np.zeros((L, d)))
        plain = A0 is None and variant.response == POWER
        M = np.zeros((0, 0)) if plain else matrix_power(matrix, gamma, variant=variant)
        return MemorylessLearner(learner, np.ascontiguousarray(M), actions, rng=rng, step=step)
    D, rows = (d * n, 1) if kind == OM_BLOCK else (d, L)
    config = make_config(agent, task, d, rho)
    if ball and switch > 0.0 and kind != OM_BLOCK:
        config, rows = config._replace(cyclic=True), m + n
    learner = Learner(config, make_estimator(D, agent.lam), np.zeros((rows, D)))
    if offered:
        return OfferLearner(learner, task, matrix, n, rng=rng, step=step)
    if ball:
        return BallLearner(learner, task, matrix, rng=rng, step=step)
    if actions.known_ahead:
        return ArmLearner(learner, task, matrix, actions, rng=rng, step=step)
    compiled = CompiledRevealedLearner.serves(task, actions.sets().shape[1], d)
    policy = CompiledRevealedLearner if compiled else RevealedArmLearner
    return policy(learner, task, matrix, actions, rng=rng, step=step)


def repeated_on(actions: ActionSet, switch: float) -> ValueError:
    """What to raise where a plan cannot be repeated."""
    return ValueError(
        f"switch must be 0 on a {type(actions).__name__} set, where the arms of a plan are gone when "
        f"it is repeated, got {switch:g}"
    )


def make_config(agent: LearningAgent, task: Task, d: int, rho: float) -> LearnerConfig:
    """Radius and efforts; rho bounds the powers of the memory matrix, see `theory.confidence_radius`."""
    kind, m, _, L, _, switch, _ = task
    norm, D, size = 1.0, d, rho**2
    if kind == OM_BLOCK:
        norm, D, size = math.sqrt(L), d * (m + L), m + L * rho**2
    rare = RARE if m + L <= 48 else RARE_AND_LONG
    stop = np.zeros(1, dtype=np.int64)
    first, later = (rare, rare) if switch > 0.0 else (FIRST, LATER)
    return LearnerConfig(
        kind=kind,
        m=m,
        confidence=-2.0 * math.log(_delta(agent)),
        noise=norm * (1.0 if agent.subgaussian is None else agent.subgaussian),
        estimated=agent.subgaussian is None,
        prior=norm * math.sqrt(agent.lam),
        growth=size / (D * agent.lam),
        by_determinant=agent.radius != "trace",
        by_estimate=agent.radius == "estimate",
        switch=switch,
        cyclic=False,
        first=first._replace(stop=stop),
        later=later._replace(stop=stop),
    )


def _delta(agent: LearningAgent) -> float:
    """The probability with which the confidence sets may fail."""
    if agent.delta is not None:
        return agent.delta
    return DELTA if agent.horizon is None else 1.0 / agent.horizon
