"""Oracle greedy: owns the policy that knows the model and looks one step ahead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._base.types import Array
from ..kernels.planners import GreedyPlanner, remember_block
from ..kernels.rewards import make_history, push
from ..model.actions import ActionSet
from ..model.lbm import LBM
from .base import Agent
from .policy import CompiledPolicy, Policy, Rng


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class OracleGreedy(Agent):
    """Knows the model and takes the action with the largest expected reward of its own step.

    Proposition 1 of the paper, prop:greedy_bad, shows how bad that can be.

    Use it as what a learner has to beat, and as a comparator of regret.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([1.0, 0.0], m=1, gamma=-1.0, sigma=0.0)
    >>> lbm.run(env, lbm.OracleGreedy(), T=3, record=3).reward
    array([1. , 1.5, 2. ])
    """

    def __init__(self) -> None:
        pass

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        if env is None:
            raise TypeError(f"OracleGreedy must be started with the LBM that it knows, got {actions!r}")
        return GreedyPolicy(env, rng, step)


class GreedyPolicy(CompiledPolicy):
    """The best action for its own step, given what was played."""

    def __init__(self, env: LBM, rng: Rng, step: int) -> None:
        super().__init__(1, env.d, rng, step)
        model = env._params()
        self.planner = GreedyPlanner(model, make_history(model), env.actions.sets(), np.zeros(env.d))

    def interrupt(self) -> None:
        remember_block(self.planner, self.block)
        super().interrupt()

    def watch(self, before: Array, actions: Array, rewards: Array) -> None:
        super().watch(before, actions, rewards)
        for action in actions:
            push(self.planner.model, self.planner.history, action)

    def state(self) -> dict[str, Array]:
        return super().state() | {f"history.{name}": a for name, a in self.planner.history._asdict().items()}
