"""Cyclic: owns the policy that plays a given block again and again."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.types import Array
from ..kernels.block_state import play_forever
from ..model.actions import ActionSet
from ..model.lbm import LBM
from .base import Agent
from .policy import BlockPolicy, Policy, Rng


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Cyclic(Agent):
    """Plays the actions of a block (n, d) again and again.

    The paper's pi_2, which alternates, is `Cyclic([[1, 0], [0, 1]])`; `Cyclic(best_cycle(env).actions)` is
    a good policy that knows the model.

    Use it for a fixed schedule, or to see what a planned cycle collects.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-1.0, sigma=0.0)
    >>> lbm.run(env, lbm.Cyclic([[1.0, 0.0], [0.0, 1.0]]), T=4, record=4).reward.round(3)
    array([0.6, 1.4, 2. , 2.8])
    """

    block: Array

    def __init__(self, block: ArrayLike) -> None:
        checked = validation.array("block", block, (None, None))
        if checked.size == 0:
            raise ValueError(f"block must hold at least one action, got shape {checked.shape}")
        self._set(block=checked)

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        n, d = self.block.shape
        if d != actions.d:
            raise ValueError(f"block must have actions of dimension {actions.d}, got {d}")
        # On a contextual set every step has arms of its own.
        steps = int(actions.steps) - step if math.isfinite(actions.steps) else n
        played = self.block[np.arange(steps) % n]
        inside = actions.contains(played, start=step)
        if not inside.all():
            t = int(np.argmin(inside))
            raise ValueError(
                f"block must lie in the action set, got {played[t].tolist()} for step {step + t}"
            )
        return CyclicPolicy(self.block, rng, step)


class CyclicPolicy(BlockPolicy):
    """The same block again and again."""

    def __init__(self, actions: Array, rng: Rng, step: int) -> None:
        n, d = actions.shape
        super().__init__(n, d, rng, step)
        self.block.actions[:] = actions
        play_forever(self.block)

    def interrupt(self) -> None:
        """The block goes on where it stands: it was not planned for what was played before."""

    @property
    def plan_seconds(self) -> float:
        return 0.0

    def plan_next_block(self) -> None:
        raise AssertionError("a block that is played forever is never done")
