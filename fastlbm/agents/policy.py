"""Policies: own the state of an agent that acts, one block at a time.

A policy has a block (see `kernels.block_state`). `ensure_block` sees to it that there is something to play,
`advance` plays an episode from it. Policies whose planner is compiled run end to end in compiled code; the
others plan in Python between compiled stretches of play.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from .._base.types import Array
from ..kernels.block_state import BlockState, check_block, is_done, make_block_state, plans_made
from ..kernels.episode import plan_next_block, run_blocks
from ..kernels.estimator import absorb, estimate, noise_variance
from ..kernels.learning import Learner
from ..kernels.playing import Recorder, elapsed, play_block
from ..kernels.rewards import History, ModelParams

Rng = np.random.Generator


class Origin(NamedTuple):
    """Where a block comes from: the times that all was forgotten before, and which member planned it."""

    epoch: int = 0
    member: int = 0


class PastBlock(NamedTuple):
    """A block that is over, and what came of its last L steps so far.

    Which member planned it, how many rewards came, and their sum: NaN where a state file of version 1 does
    not tell.
    """

    member: int
    came: int
    total: float


class Policy(ABC):
    """An agent at work. A policy must have a `block` and plan the next one; the rest has defaults."""

    rng: Rng

    @property
    def replans(self) -> bool:
        """Whether the rest of a block may change at every step, when its set is revealed."""
        return False

    @property
    @abstractmethod
    def block(self) -> BlockState:
        """The block that is being played."""

    @abstractmethod
    def plan_next_block(self) -> None:
        """Learn from the block that is done, and start a new one."""

    @property
    def learner(self) -> Learner | None:
        """What it knows, of a policy that learns, and the features of the block."""
        return None

    @property
    def plans(self) -> int:
        """Plans made so far."""
        return int(plans_made(self.block))

    @property
    def origin(self) -> Origin:
        """Where the block comes from."""
        return Origin()

    @property
    def plan_seconds(self) -> float:
        """About how long a plan may take without a look at signals; infinity if that is not known."""
        return math.inf

    def stop(self, on: bool) -> None:  # noqa: B027  (most plan in Python, or soon)
        """Let compiled planning, in another thread, end at once and without a plan; or not any more."""

    def ensure_block(self) -> None:
        """There is something to play afterwards."""
        if is_done(self.block):
            self.plan_next_block()

    def advance(
        self, model: ModelParams, history: History, recorder: Recorder, noise: Rng, until: int
    ) -> None:
        """Play until so many steps of the episode are over."""
        while (now := int(elapsed(recorder))) < until:
            self.ensure_block()
            end = now + 1 if self.replans else until
            play_block(model, history, recorder, self.block, noise, end)

    def absorb_late(self, b: Array, y: float, block: PastBlock) -> None:
        """A reward of the feature b, of a block that is over; `block` knows what came before this one."""
        if self.learner is not None:
            absorb(self.learner.estimator, np.ascontiguousarray(b), 1.0, y, y * y)
            estimate(self.learner.estimator)

    def continue_from(self, before: Policy) -> None:  # noqa: B027  (most need no history)
        """Another policy played until now, and left this one its history."""

    def details(self) -> dict[str, Any]:
        """What there is to tell of the episode, as arrays by name."""
        return {}

    def beliefs(self) -> dict[str, Any]:
        """What a policy that learns believes: theta, how far it may be off, and the noise."""
        if self.learner is None:
            return {}
        e, d = self.learner.estimator, self.block.actions.shape[1]
        if len(e.theta) != d:  # OM-Block has one theta for a whole block, and learns from sums
            return {}
        noise = math.sqrt(noise_variance(e))
        return {"theta": e.theta.copy(), "spread": noise * np.sqrt(np.diag(e.V_inv)), "noise": noise}

    def state(self) -> dict[str, Array]:
        """Everything that changes, by name, except the generator."""
        arrays = {f"block.{name}": a for name, a in self.block._asdict().items()}
        if self.learner is not None:
            arrays |= {f"estimator.{name}": a for name, a in self.learner.estimator._asdict().items()}
            arrays["features"] = self.learner.features
        return arrays

    @property
    def width(self) -> int:
        """How many members there are to plan a block."""
        return 1

    def check(self) -> None:
        """Raise a `ValueError` if it cannot go on from its state, which came from a file."""
        check_block(self.block)

    def cursor(self) -> list[int]:
        """Where the policy stands beyond its arrays, in integers."""
        return []

    def set_cursor(self, cursor: list[int]) -> None:
        """Go where `cursor` was."""
        if cursor:
            raise ValueError(f"a cursor for which this policy has no use, {cursor}")


class BlockPolicy(Policy):
    """A policy with a block of its own; `step` is the step of the episode at which it begins."""

    def __init__(self, n: int, d: int, rng: Rng, step: int, lead: int = 0) -> None:
        self._block = make_block_state(n, d, step, lead)
        self.rng = rng

    @property
    def block(self) -> BlockState:
        return self._block


class CompiledPolicy(BlockPolicy):
    """A policy whose planner is compiled: nothing happens in Python between its steps."""

    planner: Any

    @property
    def plan_seconds(self) -> float:
        return 0.0

    def plan_next_block(self) -> None:
        plan_next_block(self.planner, self.block, self.rng)

    def advance(
        self, model: ModelParams, history: History, recorder: Recorder, noise: Rng, until: int
    ) -> None:
        run_blocks(self.planner, self.block, self.rng, model, history, recorder, noise, until)


class WrappingPolicy(Policy):
    """A policy that lets another one act, `inner`, which may change from block to block."""

    @property
    @abstractmethod
    def inner(self) -> Policy:
        """The policy whose block is being played."""

    @property
    def block(self) -> BlockState:
        return self.inner.block

    @property
    def learner(self) -> Learner | None:
        return self.inner.learner

    @property
    def plans(self) -> int:
        return self.inner.plans

    @property
    def origin(self) -> Origin:
        return self.inner.origin

    @property
    def replans(self) -> bool:
        return self.inner.replans

    def plan_next_block(self) -> None:
        self.inner.plan_next_block()

    def ensure_block(self) -> None:
        super().ensure_block()
        self.inner.ensure_block()

    def absorb_late(self, b: Array, y: float, block: PastBlock) -> None:
        self.inner.absorb_late(b, y, block)

    @property
    def plan_seconds(self) -> float:
        return self.inner.plan_seconds

    def stop(self, on: bool) -> None:
        self.inner.stop(on)

    @property
    def width(self) -> int:
        return self.inner.width

    def check(self) -> None:
        self.inner.check()

    def details(self) -> dict[str, Any]:
        return self.inner.details()

    def beliefs(self) -> dict[str, Any]:
        return self.inner.beliefs()

    def state(self) -> dict[str, Array]:
        return self.inner.state()

    def cursor(self) -> list[int]:
        return self.inner.cursor()

    def set_cursor(self, cursor: list[int]) -> None:
        self.inner.set_cursor(cursor)
