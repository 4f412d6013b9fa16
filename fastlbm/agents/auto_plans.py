"""Auto's plans: owns how a block is planned for a model, on the ball, on arms, and on arms just offered."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._base.types import Array
from ..kernels.block_state import BlockState, next_step, start_block
from ..kernels.learning import Learner, radius
from ..kernels.optimism import O3M, Belief
from ..kernels.rewards import make_model_params
from ..model.actions import ActionSet, Ball, Offered
from ..planning.effort import auto_effort
from . import probes
from .auto_grid import Model
from .ball_plans import BallPlans
from .offers import Offers
from .policy import Rng
from .rolling_arms import PLAY, ArmPlans, ahead_of

#: Exponents that differ by less have cycles that are nearly the same: they are searched anew only when enough
#: was learned since.
NEAR = 0.5


class Plans:
    """What to play next, after a history, for one model and then for another.

    On arms the plans of a memory that fades go through its last actions alone, `Model.window` of them, as
    they count: after 20 steps, or when 0.05 is left of an action, it is forgotten.
    """

    def __init__(self, actions: ActionSet, A0: Array) -> None:
        self.actions, self.A0 = actions, A0
        self.play = PLAY if actions.known_ahead else 1
        self.model: Model | None = None
        self.offers = Offers(len(A0)) if isinstance(actions, Offered) else None
        self.forget()

    def forget(self) -> None:
        """All plans are made anew."""
        self.ball: BallPlans | None = None
        self._arms: dict[Model, ArmPlans] = {}

    def use(self, model: Model, grown: float) -> None:
        """Plan for this model from now on, whose ln det V is so much larger than that of the one before."""
        before, self.model = self.model, model
        if isinstance(self.actions, Ball):
            if self.ball is None or (self.ball.m, self.ball.variant.decay) != model.memory:
                m, gamma, _ = model
                ahead, effort = ahead_of(None, model.turn), auto_effort(len(self.A0), model.turn)
                self.ball = BallPlans(
                    self.A0, m, gamma, ahead=ahead, play=self.play, effort=effort, variant=model.variant
                )
            near = before is not None and abs(model.gamma - before.gamma) <= NEAR and math.isfinite(grown)
            self.ball.use(model.gamma, grown if near else None)

    def plan(
        self, learner: Learner, recent: Array, past: Array, arms: Any, block: BlockState, rng: Rng
    ) -> Any:
        """Start a block after the actions `recent` (M, d), whose numbers are `arms` (M,), -1 for none.

        `past` (d, d) is what a memory without end holds. Returns the numbers of its arms, -1 for all that
        have none.
        """
        assert self.model is not None
        m, gamma, e = self.model.window, self.model.gamma, learner.estimator
        if self.ball is not None:
            self.ball.plan(
                learner, recent[len(recent) - self.ball.outlook.recent.shape[0] :], past, block, rng
            )
            return -1
        recent, arms = recent[len(recent) - m :], arms[len(arms) - m :]
        beta, variant = float(radius(learner.config, e)), self.model.variant
        if self.offers is not None:
            model = make_model_params(e.theta, self.A0, m, gamma, variant=variant)
            block.actions[0] = self.offers.arms[self.offers.choose(model, recent, e, beta, rng)]
            start_block(block, 1)
            return -1
        if self.model not in self._arms:
            ahead = ahead_of(None, m)
            self._arms[self.model] = ArmPlans(
                self.actions, m=m, gamma=gamma, A0=self.A0, ahead=ahead, variant=variant
            )
        plans, belief = self._arms[self.model], Belief(e.theta, e.V_inv, beta, O3M)
        found = plans.policy(belief, arms, self.play)
        if found is None:
            found, actions = plans.search(belief, recent, int(next_step(block)), rng)
        else:
            actions = plans.sets[0][found]
        block.actions[:] = actions[: self.play]
        start_block(block, 1)
        return found[: self.play]

    def probe(self, number: int, left: int, theta: Array, before: Array, block: BlockState, rng: Rng) -> Any:
        """Start a block of a probe, see `probes`, after the action `before` (d,); `left` are its steps to go.

        Returns the numbers of its arms, as `plan` does.
        """
        assert self.model is not None
        self.interrupt()
        n, numbers = self.play, np.full(self.play, -1)
        if isinstance(self.actions, Ball):
            block.actions[:] = probes.in_ball(number, left, n, theta, before, self.model.turn, rng)
        else:
            sets, step = self.actions.sets(), int(next_step(block))
            for t in range(n):
                # The last set stands for those behind the end, which nobody plays.
                arms = self.offers.arms if self.offers is not None else sets[min(step + t, len(sets) - 1)]
                numbers[t] = probes.among_arms(number, left - t, arms, theta, before, rng)
                before = block.actions[t] = arms[numbers[t]]
        start_block(block, 1)
        return numbers if self.offers is None else -1

    def played(self) -> None:
        """All of the last block was played."""
        if self.ball is not None:
            self.ball.played(self.play)

    def interrupt(self) -> None:
        """The rest of the last plan will not be played."""
        if self.ball is not None:
            self.ball.start_from(self.ball.outlook.recent)

    def offer(self, arms: Array) -> None:
        """The arms (K, d) of the next step."""
        assert self.offers is not None
        self.offers.take(arms)

    def state(self) -> dict[str, Array]:
        """Everything that lasts, by name."""
        return {name: array for part in self._parts() for name, array in part.state().items()}

    def check(self) -> None:
        """Raise a `ValueError` if nothing can be planned from its state."""
        for part in self._parts():
            part.check()

    def _parts(self) -> list[BallPlans | Offers]:
        return [part for part in (self.ball, self.offers) if part is not None]
