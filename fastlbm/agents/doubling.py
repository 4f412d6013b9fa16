"""Doubling: owns the restarts of an agent for a horizon that is not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._base.types import Array
from ..kernels.block_state import next_step
from ..kernels.playing import Recorder, elapsed
from ..kernels.rewards import History, ModelParams
from ..model.actions import ActionSet
from ..model.lbm import LBM
from .base import Agent, LearningAgent
from .policy import Origin, Policy, Rng, WrappingPolicy

#: More restarts than a state file can be trusted with: 2^40 times the first horizon.
_LAST_EPOCH = 40


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Doubling(Agent):
    """For an unknown horizon: the agent for its own horizon, then anew for twice as long, and so on.

    Each epoch starts from nothing, with the block length and delta of its own horizon where the agent takes
    them from it.

    Use it for an agent that wants a horizon where none is known; `Rolling` and `Auto` want none.

    >>> import fastlbm as lbm
    >>> agent = lbm.Doubling(lbm.O3M(m=1, gamma=-2.0, horizon=64))
    >>> lbm.run(lbm.LBM([1.0, 0.0], m=1, gamma=-2.0), agent, T=300).t[-1]
    np.int64(300)
    """

    agent: LearningAgent

    def __init__(self, agent: LearningAgent) -> None:
        if not isinstance(agent, LearningAgent):
            raise TypeError(f"agent must be an agent with a horizon, such as O3M, got {agent!r}")
        if agent.horizon is None:
            raise ValueError(f"agent must have a horizon to begin with, got {agent!r}, which needs none")
        self._set(agent=agent)

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        return DoublingPolicy(partial(self._epoch, actions, env), self.agent.horizon, rng, step)

    def _epoch(self, actions: ActionSet, env: LBM | None, epoch: int, begin: int, rng: Rng) -> Policy:
        return self.agent._with_horizon(self.agent.horizon * 2**epoch)._policy(actions, env, rng, begin)


class DoublingPolicy(WrappingPolicy):
    """A new policy for each epoch, every epoch twice as long as the one before."""

    def __init__(self, make: Callable[[int, int, Rng], Policy], first: int, rng: Rng, step: int) -> None:
        self._make, self._first, self.rng = make, first, rng
        self._told: list[dict[str, Any]] = []
        self._enter(0, step, 0)

    @property
    def inner(self) -> Policy:
        return self._inner

    def _enter(self, epoch: int, begin: int, plans_before: int) -> None:
        """Begin an epoch at a step, after so many plans."""
        self._epoch, self._begin, self._plans_before = epoch, begin, plans_before
        self._inner = self._make(epoch, begin, self.rng)

    def _end(self) -> int:
        return self._begin + (self._first << self._epoch)

    def _restart_when_due(self) -> None:
        if int(next_step(self.block)) >= self._end():
            before = self._inner
            self._told.append(before.details())
            self._enter(self._epoch + 1, self._end(), self.plans)
            self._inner.continue_from(before)

    @property
    def plans(self) -> int:
        return self._plans_before + self._inner.plans

    @property
    def origin(self) -> Origin:
        return Origin(self._epoch, self._inner.origin.member)

    def ensure_block(self) -> None:
        self._restart_when_due()
        self._inner.ensure_block()

    def advance(
        self, model: ModelParams, history: History, recorder: Recorder, noise: Rng, until: int
    ) -> None:
        while elapsed(recorder) < until:
            self._restart_when_due()
            self._inner.advance(model, history, recorder, noise, min(until, self._end()))

    def offer(self, arms: Array, before: Array) -> None:
        self._restart_when_due()
        self._inner.offer(arms, before)

    def forget_arms(self) -> None:
        self._inner.forget_arms()

    def watch(self, before: Array, actions: Array, rewards: Array) -> None:
        while len(actions) > 0:
            self._restart_when_due()
            n = self._end() - int(next_step(self.block))
            self._inner.watch(before, actions[:n], rewards[:n])
            before = np.concatenate((before, actions[:n]))[-len(before) :]
            actions, rewards = actions[n:], rewards[n:]

    def details(self) -> dict[str, Any]:
        parts = [part for part in (*self._told, self._inner.details()) if part and len(part["step"])]
        return {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else ())}

    def cursor(self) -> list[int]:
        return [self._epoch, self._begin, self._plans_before, *self._inner.cursor()]

    def set_cursor(self, cursor: list[int]) -> None:
        epoch, begin, plans = map(int, cursor[:3])
        # Epochs follow each other without a gap, and each plans at most once a step.
        if not (0 <= epoch <= _LAST_EPOCH and begin == self._first * (2**epoch - 1) and 0 <= plans <= begin):
            raise ValueError(f"epoch {epoch} cannot begin at step {begin} after {plans} plans")
        self._enter(epoch, begin, plans)
        self._inner.set_cursor(cursor[3:])

    def check(self, changed: bool = False) -> None:
        super().check(changed)
        if not self._begin <= next_step(self.block) <= self._end():
            raise ValueError(f"epoch {self._epoch} cannot be at step {next_step(self.block)}")
