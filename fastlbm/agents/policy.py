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
from ..kernels.block_state import (
    BlockState,
    check_block,
    end_block,
    is_done,
    make_block_state,
    next_step,
    plans_made,
    played_actions,
    set_next_step,
)
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

    # --- what a live policy needs beside: arms offered step by step, and actions that others chose ---------

    @property
    def span(self) -> int:
        """How many actions before a step decide what its reward teaches."""
        return 0

    def recent_actions(self) -> Array:
        """The last actions that were played, as far as the policy itself knows them."""
        return played_actions(self.block)

    def offer(self, arms: Array, before: Array) -> None:
        """The arms (K, d) of the next step; `before` (at least `span`, d) was played last."""
        raise TypeError(f"act takes no arms from {type(self).__name__}, which cannot choose among them")

    def interrupt(self) -> None:
        """The block ends here: what came of it is learned, and the next plan is made anew."""
        end_block(self.block)

    def forget_arms(self) -> None:
        """The arms are others from now on: the block ends here, and nothing that was planned is played."""
        self.interrupt()

    def absorb_log(self, before: Array, actions: Array, rewards: Array) -> None:  # noqa: B027
        """Learn rewards (n,), NaN for none, of actions (n, d) by anybody, which came after `before`.

        Rows of `before` (at least `span`, d) are NaN where nobody knows what was played.
        """

    def set_history(self, recent: Array) -> None:  # noqa: B027
        """The actions `recent` (at least `span`, d) were played last, by anybody."""

    def watch(self, before: Array, actions: Array, rewards: Array) -> None:
        """Somebody else played these, as of `absorb_log`: they are learned from and count as played."""
        self.interrupt()
        self.absorb_log(before, actions, rewards)
        set_next_step(self.block, int(next_step(self.block)) + len(actions))
        self.set_history(np.nan_to_num(np.concatenate((before, actions))[-len(before) :]))

    def inherit(self, before: Policy) -> None:
        """Know what a policy of the same agent on another set knew, whose block is over; plan anew."""
        self.set_cursor(before.cursor())
        known = before.state()
        for name, array in self.state().items():
            if "block." not in name and name in known and known[name].shape == array.shape:
                array[...] = known[name]
        set_next_step(self.block, int(next_step(before.block)))

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

    def check(self, changed: bool = False) -> None:
        """Raise a `ValueError` if it cannot go on from its state, which came from a file.

        `changed`: the arms are others than those of the file, so that numbers of arms mean nothing.
        """
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

    def offer(self, arms: Array, before: Array) -> None:
        self.planner = self.planner._replace(arms=arms[None])

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
    def span(self) -> int:
        return self.inner.span

    def recent_actions(self) -> Array:
        return self.inner.recent_actions()

    def offer(self, arms: Array, before: Array) -> None:
        self.inner.offer(arms, before)

    def interrupt(self) -> None:
        self.inner.interrupt()

    def absorb_log(self, before: Array, actions: Array, rewards: Array) -> None:
        self.inner.absorb_log(before, actions, rewards)

    def set_history(self, recent: Array) -> None:
        self.inner.set_history(recent)

    @property
    def plan_seconds(self) -> float:
        return self.inner.plan_seconds

    def stop(self, on: bool) -> None:
        self.inner.stop(on)

    @property
    def width(self) -> int:
        return self.inner.width

    def check(self, changed: bool = False) -> None:
        self.inner.check(changed)

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
