"""Rewards that have not come yet: owns which steps wait for one, and the features that they belong to."""

from __future__ import annotations

import bisect
import math
from typing import Any, NamedTuple

import numpy as np

from .._base.types import Array
from ..agents.policy import PastBlock, Policy
from ..kernels.block_state import BlockState, add_reward, length, next_step, slot
from ..kernels.optimism import OM_BLOCK

#: Steps after which a reward that has not come is given up.
PATIENCE = 10_000


class _Plan(NamedTuple):
    """A plan for which rewards may still come."""

    n: int  # steps of its block
    m: int  # of which so many are not learned from
    member: int  # who made it
    features: Array
    tally: Array  # (2,) number and sum of the rewards of the other steps that came

    def past(self) -> PastBlock:
        """What there is to know of its block before the next reward."""
        return PastBlock(member=self.member, came=int(self.tally[0]), total=float(self.tally[1]))


class PendingRewards:
    """Rewards that have not come yet, and the features that they belong to."""

    def __init__(self) -> None:
        self._steps: dict[int, None] = {}  # in the order of time
        self._plans: dict[int, _Plan] = {}  # by their first steps
        self._current = -1  # the first step of the plan that is being played; none
        # Actions that somebody else chose, each after those before it, by their steps.
        self._windows: dict[int, Array] = {}
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
        n, m = int(length(policy.block)), learner.config.m
        self._current = start
        self._plans[start] = _Plan(
            n=n,
            m=m,
            member=policy.origin.member,
            features=learner.features[: n + m].copy(),  # there may be room for longer blocks
            tally=np.zeros(2),
        )

    def revise(self, policy: Policy) -> None:
        """The rest of the present block was planned anew."""
        if self._current >= 0 and policy.learner is not None:
            plan = self._plans[self._current]
            self._plans[self._current] = plan._replace(features=policy.learner.features.copy())

    def close(self) -> None:
        """No plan is being played: what still comes is learned at once."""
        self._current = -1

    def _plan_of(self, step: int) -> int:
        starts = list(self._plans)
        at = bisect.bisect_right(starts, step)
        return starts[at - 1] if at else -1

    def expect(self, step: int, window: Array | None = None) -> None:
        """The reward of a step may come; `window` if somebody else chose its action, the last row."""
        self._steps[step] = None
        if window is not None:
            self._windows[step] = window
        while (oldest := next(iter(self._steps))) <= step - PATIENCE:
            del self._steps[oldest]
            self._windows.pop(oldest, None)
        while self._blocks and (first := next(iter(self._blocks))) <= step - 2 * PATIENCE:
            del self._blocks[first]

    def expects(self, step: int) -> bool:
        return step in self._steps

    @property
    def steps(self) -> list[int]:
        """The steps whose rewards may come, in the order of time."""
        return list(self._steps)

    def reward(self, step: int, y: float, policy: Policy) -> None:
        """The reward of an expected step: to its block, or into the estimator if its plan is over."""
        del self._steps[step]
        if step in self._windows:
            window = self._windows.pop(step)
            policy.absorb_log(window[:-1], window[-1:], np.array([y]))
            return
        first = self._plan_of(step)
        if first < 0 or policy.learner is None:
            return  # an agent that does not learn
        plan = self._plans[first]
        n, m, F = plan.n, plan.m, plan.features
        passes, position = divmod(step - first, n)
        current = first == self._current
        if policy.learner.config.kind != OM_BLOCK:
            # Of a cycle all rewards are learned from, else those behind the first m.
            row = slot(position, passes, m) if len(F) == n + m else position - m
            if current:
                add_reward(policy.block, position, passes, y)
            elif row >= 0:
                policy.absorb_late(F[row], y, plan.past())
            if position >= m:
                plan.tally[:] += (1.0, y)
            return
        rewards = self._blocks.setdefault(step - position, np.full(n, math.nan))
        rewards[position] = y
        if not np.isnan(rewards[m:]).any():
            del self._blocks[step - position]
            if current:
                for j in range(m, n):
                    add_reward(policy.block, j, passes, float(rewards[j]))
            else:
                policy.absorb_late(F[0], float(rewards[m:].sum()), plan.past())

    def state(self) -> dict[str, Array]:
        """Everything, as arrays by name."""
        arrays: dict[str, Any] = {
            "pending.steps": np.array(sorted(self._steps), dtype=np.int64),
            "pending.current": np.array([self._current], dtype=np.int64),
        }
        for first, plan in self._plans.items():
            arrays[f"pending.plan.{first}.{plan.n}.{plan.m}.{plan.member}"] = plan.features
            arrays[f"pending.tally.{first}"] = plan.tally
        for first, rewards in self._blocks.items():
            arrays[f"pending.block.{first}"] = rewards
        for step, window in self._windows.items():
            arrays[f"pending.window.{step}"] = window
        return arrays

    @classmethod
    def restored(cls, arrays: dict[str, Array], policy: Policy) -> PendingRewards:
        """What `state` gave; the policy is restored already."""
        pending = cls()
        tallies = {}
        for name, array in arrays.items():
            if name == "pending.steps":
                pending._steps = dict.fromkeys(map(int, array.tolist()))
            elif name == "pending.current":
                pending._current = int(array[0])
            elif name.startswith("pending.window."):
                pending._windows[int(name.split(".")[2])] = array
            elif name.startswith("pending.plan."):
                first, n, m, member = map(int, name.split(".")[2:])
                pending._plans[first] = _Plan(n=n, m=m, member=member, features=array, tally=np.zeros(2))
            elif name.startswith("pending.tally."):
                tallies[int(name.split(".")[2])] = array
            elif name.startswith("pending.block."):
                pending._blocks[int(name.split(".")[2])] = array
            else:
                raise ValueError(f"an array that no policy has, {name}")
        if "pending.current" not in arrays:  # before version 3 the last plan was always the present one
            pending._current = next(reversed(pending._plans), -1)
        pending._check(policy)
        for first, plan in pending._plans.items():
            plan.tally[:] = tallies[first] if tallies else pending._tally_since_1(first, policy.block)
        return pending

    def _check(self, policy: Policy) -> None:
        """Raise a `ValueError` unless these can be pending rewards of the policy, which is at some step."""
        now, steps, plans = int(next_step(policy.block)), list(self._steps), list(self._plans)
        if steps != sorted(steps) or (
            steps and not max(0, now - 2 * PATIENCE) <= steps[0] <= steps[-1] < now
        ):
            raise ValueError(f"rewards of these steps cannot be missing at step {now}")
        if plans != sorted(plans) or (plans and not 0 <= plans[0] <= plans[-1] < max(now, 1)):
            raise ValueError(f"plans cannot have begun at {plans} at step {now}")
        if plans and policy.learner is None:
            raise ValueError("plans of an agent that does not learn")
        if self._current != -1 and self._current != next(reversed(plans), -1):
            raise ValueError(f"the plan of step {self._current} cannot be the present one")
        for step, window in self._windows.items():
            shape = policy.span + 1, policy.block.actions.shape[1]
            if step not in self._steps or window.shape != shape:
                raise ValueError(f"an action at step {step} that nobody waits for")
            if window.dtype != np.float64 or np.isinf(window).any() or np.isnan(window[-1]).any():
                raise ValueError("actions that are no numbers")
        for plan in self._plans.values():
            fits = plan.n >= 1 and 0 <= plan.m <= plan.n and 0 <= plan.member < policy.width
            rows = (1, plan.n - plan.m, plan.n + plan.m)
            if not fits or plan.features.ndim != 2 or len(plan.features) not in rows:
                raise ValueError(f"a plan of {plan.n} steps by member {plan.member} that nobody makes")
            if policy.learner and plan.features.shape[1] != policy.learner.features.shape[1]:
                raise ValueError("features of another dimension")
            if plan.features.dtype != np.float64 or not np.isfinite(plan.features).all():
                raise ValueError("features that are no finite numbers")
        for first, rewards in self._blocks.items():
            at = self._plan_of(first)  # -1 if the plan was given up
            wrong = at >= 0 and len(rewards) != self._plans[at].n
            if wrong or rewards.ndim != 1 or rewards.dtype != np.float64:
                raise ValueError(f"rewards of a block at {first} that was not planned")

    def _tally_since_1(self, first: int, block: BlockState) -> tuple[float, float]:
        """The tally of a plan, which version 1 did not keep: of a plan that is over the sum is not known."""
        n, m, *_ = self._plans[first]
        later = [start for start in self._plans if start > first]
        if not later:
            return float(block.reward_counts[m:].sum()), float(block.reward_sums[m:].sum())
        steps = (step for step in range(first, min(later)) if (step - first) % n >= m)
        came = sum(step not in self._steps for step in steps)
        return float(came), math.nan if came else 0.0
