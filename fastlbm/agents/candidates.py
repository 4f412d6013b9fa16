"""Agents over candidates (m, gamma), each of which is an O3M: owns what these agents share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base import validation
from .._base.types import Array
from ..kernels.block_state import next_step, plans_made, set_next_step
from ..model.actions import ActionSet
from .base import LearningAgent
from .block_learners import O3M
from .learners import LearnerPolicy
from .policy import Origin, PastBlock, Policy, Rng, WrappingPolicy

Pair = tuple[int, float]
#: Entries of a log; when it is full every other one is dropped.
LOG = 4096


class Log:
    """What a policy did over time, at most LOG rows of it: memory does not grow with the horizon."""

    def __init__(self) -> None:
        self.every, self.count = 1, 0
        self.rows: list[tuple[Any, ...]] = []

    def add(self, row: tuple[Any, ...]) -> None:
        if self.count % self.every == 0:
            self.rows.append(row)
            if len(self.rows) >= LOG:
                self.rows = self.rows[::2]
                self.every *= 2
        self.count += 1

    def columns(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """The log as arrays by name."""
        return {name: np.array([row[k] for row in self.rows]) for k, name in enumerate(names)}


class MemberPolicy(WrappingPolicy):
    """A policy that hands the play to one of several members, block by block."""

    #: The columns of the log.
    names: tuple[str, ...]

    def __init__(self, members: Sequence[Policy], rng: Rng, step: int) -> None:
        self.members, self.rng = members, rng
        self._chosen = np.zeros(1, dtype=np.int64)
        set_next_step(members[0].block, step)
        self.log = Log()

    @property
    def chosen(self) -> int:
        """The member whose block is being played."""
        return int(self._chosen[0])

    @property
    def inner(self) -> Policy:
        return self.members[self.chosen]

    @property
    def plans(self) -> int:
        return sum(policy.plans for policy in self.members)

    @property
    def origin(self) -> Origin:
        return Origin(member=self.chosen)

    def hand_over(self, chosen: int) -> None:
        """The chosen one plans the next block."""
        step = int(next_step(self.block))
        self._chosen[0] = chosen
        set_next_step(self.block, step)
        self.inner.plan_next_block()

    @property
    def span(self) -> int:
        return max(policy.span for policy in self.members)

    def offer(self, arms: Array, before: Array) -> None:
        for policy in self.members:
            policy.offer(arms, before)

    def interrupt(self) -> None:
        for policy in self.members:
            policy.interrupt()

    def absorb_log(self, before: Array, actions: Array, rewards: Array) -> None:
        for policy in self.members:
            policy.absorb_log(before, actions, rewards)

    def set_history(self, recent: Array) -> None:
        for policy in self.members:
            policy.set_history(recent)

    @property
    def plan_seconds(self) -> float:
        return max(policy.plan_seconds for policy in self.members)

    def stop(self, on: bool) -> None:
        for policy in self.members:
            policy.stop(on)

    @property
    def width(self) -> int:
        return len(self.members)

    def check(self, changed: bool = False) -> None:
        if not 0 <= self.chosen < len(self.members):
            raise ValueError(f"one of {len(self.members)} members must be chosen, got {self.chosen}")
        for policy in self.members:
            policy.check(changed)

    def details(self) -> dict[str, NDArray[Any]]:
        return self.log.columns(self.names)

    def state(self) -> dict[str, Array]:
        arrays: dict[str, Any] = {"chosen": self._chosen}
        for j, policy in enumerate(self.members):
            arrays |= {f"{j}.{name}": array for name, array in policy.state().items()}
        return arrays


class CountingPolicy(MemberPolicy):
    """A policy whose members learn from their own blocks only, and which counts what each block brought.

    A block counts once, from the first reward of its last L steps on, late or not; every later one corrects
    its average. With `whole` the first m steps count as well, if their rewards come before the block is over,
    and are taken for as good as the others if none does.
    """

    whole = False

    @abstractmethod
    def _count(self, i: int, reward: float) -> None:
        """A block of member i had this average reward."""

    @abstractmethod
    def _correct(self, i: int, change: float) -> None:
        """The average reward of a block that counts was another one."""

    def absorb_late(self, b: Array, y: float, block: PastBlock) -> None:
        i = block.member
        self.members[i].absorb_late(b, y, block)
        if block.came == 0:
            self._count(i, y)
        elif not math.isnan(block.total):
            mean = (block.total + y) / (block.came + 1)
            self._correct(i, (mean - block.total / block.came) * (1.0 - self._lead(i)))

    def interrupt(self) -> None:
        self._account()
        super().interrupt()

    def _account(self) -> None:
        """Count the block that is over."""
        block, learner = self.block, self.inner.learner
        if learner is None or plans_made(block) == 0:
            return
        m = learner.config.m
        if block.reward_counts[m:].any():
            mean = float(block.reward_sums[m:].sum() / block.reward_counts[m:].sum())
            if self.whole and block.reward_counts[:m].any():
                first = float(block.reward_sums[:m].sum() / block.reward_counts[:m].sum())
                mean += self._lead(self.chosen) * (first - mean)
            self._count(self.chosen, mean)

    def _lead(self, i: int) -> float:
        """The part of its first m steps in the average of a block."""
        learner = self.members[i].learner
        if learner is None or not self.whole:
            return 0.0
        return learner.config.m / len(self.members[i].block.actions)


class CandidateAgent(LearningAgent):
    """What agents over candidates share."""

    __slots__ = ()
    candidates: tuple[Pair, ...]
    L: int | tuple[int, ...] | None
    A0: Array | None

    def _set_candidates(
        self, candidates: Iterable[Pair], L: int | Sequence[int] | None, A0: ArrayLike | None
    ) -> None:
        pairs = _pairs(candidates)
        if A0 is not None:
            d = len(validation.array("A0", A0, (None, None)))
            A0 = validation.symmetric("A0", validation.array("A0", A0, (d, d)))
        if L is not None and np.ndim(L) == 0:
            L = validation.integer("L", L, low=1)
        elif L is not None:
            L = tuple(validation.integer("L", length, low=1) for length in np.ravel(np.asarray(L)))
            if len(L) != len(pairs):
                raise ValueError(f"L must hold one length for each of the {len(pairs)} candidates, got {L}")
        self._set(candidates=pairs, L=L, A0=A0)
        for j in range(len(pairs)):
            self._candidate(j, self._length(j))

    def _length(self, j: int) -> int | None:
        """The block length of one candidate, None if it is from theory."""
        return self.L[j] if isinstance(self.L, tuple) else self.L

    def _candidate(self, j: int, L: int | None) -> O3M:
        """The O3M of one candidate; an error names it."""
        m, gamma = self.candidates[j]
        try:
            return O3M(
                m=m,
                gamma=gamma,
                horizon=self.horizon,
                L=L,
                lam=self.lam,
                delta=self.delta,
                subgaussian=self.subgaussian,
                radius=self.radius,
                A0=self.A0,
            )
        except (TypeError, ValueError) as error:
            raise _unplayable(m, gamma, error) from None

    def _members(
        self, lengths: Sequence[int | None], actions: ActionSet, rng: Rng, step: int
    ) -> list[LearnerPolicy]:
        members = []
        for j, L in enumerate(lengths):
            agent = self._candidate(j, L)
            try:
                members.append(agent._policy(actions, None, rng, step))
            except ValueError as error:
                raise _unplayable(*self.candidates[j], error) from None
        return members


def _unplayable(m: Any, gamma: Any, error: Exception) -> Exception:
    """The error that names the candidate."""
    return type(error)(f"candidates must be playable, got (m, gamma) = ({m}, {gamma}): {error}")


def _pairs(candidates: Iterable[Pair]) -> tuple[Pair, ...]:
    try:
        pairs = [(m, gamma) for m, gamma in candidates]
    except (TypeError, ValueError):
        raise ValueError(f"candidates must be pairs (m, gamma), got {candidates!r}") from None
    if not pairs:
        raise ValueError("candidates must hold at least one pair (m, gamma), got none")
    checked: list[Pair] = []
    for m, gamma in pairs:
        try:
            pair = (int(validation.memory("m", m, allow_inf=False)), validation.real("gamma", gamma))
        except (TypeError, ValueError) as error:
            raise _unplayable(m, gamma, error) from None
        if pair in checked:
            raise ValueError(f"candidates must be distinct, got {pair} twice")
        checked.append(pair)
    return tuple(checked)


def marginals(
    names: Sequence[str], models: Iterable[Sequence[float]], weights: Array
) -> dict[str, dict[float, float]]:
    """The probabilities of each value of the named parameters of models, from those of the models.

    >>> marginals(("memory", "gamma"), [(0, -1.0), (2, -1.0)], np.array([0.25, 0.75]))
    {'memory': {0: 0.25, 2: 0.75}, 'gamma': {-1.0: 1.0}}
    """
    found: dict[str, dict[float, float]] = {name: {} for name in names}
    for model, weight in zip(models, weights.tolist(), strict=True):
        for name, value in zip(names, model, strict=True):
            found[name][value] = found[name].get(value, 0.0) + weight
    return {name: dict(sorted(values.items())) for name, values in found.items()}
