"""Rewards that have not come yet: owns which steps wait for one, and the features that they belong to."""

from __future__ import annotations

import bisect
import math
from typing import Any

import numpy as np

from .._base.validation import Array
from ..agents.policy import Policy
from ..kernels.block_state import add_reward, slot
from ..kernels.optimism import OM_BLOCK

#: Steps after which a reward that has not come is given up.
PATIENCE = 10_000


class PendingRewards:
    """Rewards that have not come yet, and the features that they belong to."""

    def __init__(self) -> None:
        self._steps: dict[int, None] = {}  # in the order of time
        # By the first step of a plan: the length of its block, m, the member that made it, and its features.
        self._plans: dict[int, tuple[int, int, int, Array]] = {}
        # OM-Block: rewards by the first step of a block, until all have come.
        self._blocks: dict[int, Array] = {}

    def begin(self, start: int, policy: Policy) -> None:
        """A new plan begins at a step."""
        learner = policy.learner
        if learner is None:
            return
        # Plans before that of the oldest step are not needed any more.
        oldest = self._plan_of(next(iter(self._steps), start))
        while self._plans and (first := next(iter(self._plans))) < oldest:
            del self._plans[first]
        n, m = len(policy.block.actions), learner.config.m
        self._plans[start] = (n, m, policy.origin.member, learner.features.copy())

    def revise(self, policy: Policy) -> None:
        """The rest of the present block was planned anew."""
        if self._plans and policy.learner is not None:
            first = next(reversed(self._plans))
            self._plans[first] = (*self._plans[first][:3], policy.learner.features.copy())

    def _plan_of(self, step: int) -> int:
        starts = list(self._plans)
        at = bisect.bisect_right(starts, step)
        return starts[at - 1] if at else -1

    def expect(self, step: int) -> None:
        self._steps[step] = None
        while (oldest := next(iter(self._steps))) <= step - PATIENCE:
            del self._steps[oldest]
        while self._blocks and (first := next(iter(self._blocks))) <= step - 2 * PATIENCE:
            del self._blocks[first]

    def expects(self, step: int) -> bool:
        return step in self._steps

    def reward(self, step: int, y: float, policy: Policy) -> None:
        """The reward of an expected step: to its block, or into the estimator if its plan is over."""
        del self._steps[step]
        first = self._plan_of(step)
        if first < 0 or policy.learner is None:
            return  # an agent that does not learn
        n, m, member, F = self._plans[first]
        passes, position = divmod(step - first, n)
        current = first == next(reversed(self._plans))
        if policy.learner.config.kind != OM_BLOCK:
            # Of a cycle all rewards are learned from, else those behind the first m.
            row = slot(position, passes, m) if len(F) == n + m else position - m
            if current:
                add_reward(policy.block, position, passes, y)
            elif row >= 0:
                policy.absorb_late(F[row], y, member)
            return
        rewards = self._blocks.setdefault(step - position, np.full(n, math.nan))
        rewards[position] = y
        if not np.isnan(rewards[m:]).any():
            del self._blocks[step - position]
            if current:
                for j in range(m, n):
                    add_reward(policy.block, j, passes, float(rewards[j]))
            else:
                policy.absorb_late(F[0], float(rewards[m:].sum()), member)

    def state(self) -> dict[str, Array]:
        """Everything, as arrays by name."""
        arrays: dict[str, Any] = {"pending.steps": np.array(sorted(self._steps), dtype=np.int64)}
        for first, (n, m, member, F) in self._plans.items():
            arrays[f"pending.plan.{first}.{n}.{m}.{member}"] = F
        for first, rewards in self._blocks.items():
            arrays[f"pending.block.{first}"] = rewards
        return arrays

    @classmethod
    def restored(cls, arrays: dict[str, Array]) -> PendingRewards:
        """What `state` gave."""
        pending = cls()
        for name, array in arrays.items():
            if name == "pending.steps":
                pending._steps = dict.fromkeys(array.tolist())
            elif name.startswith("pending.plan."):
                first, n, m, member = map(int, name.split(".")[2:])
                pending._plans[first] = (n, m, member, array)
            elif name.startswith("pending.block."):
                pending._blocks[int(name.split(".")[2])] = array
            else:
                raise ValueError(f"a place for {name}")
        return pending
