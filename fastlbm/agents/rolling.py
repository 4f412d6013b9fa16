"""Rolling: owns the learner that plans from its true history, its parameters and its policies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.types import Array
from ..kernels.block_state import played_actions
from ..kernels.estimator import make_estimator
from ..kernels.fading import actions_kept, push_past, total_weight, turn_of_memory
from ..kernels.learning import Learner
from ..kernels.optimism import O3M
from ..kernels.rolling import MORE_TRIES, MOST_TRIES
from ..model.actions import ActionSet, Ball, Offered
from ..model.lbm import LBM
from ..model.memory_matrix import check_memory_matrix
from ..model.response import Response, make_variant
from ..planning.effort import most_seconds, rolling_effort
from .ball_plans import BallPlans
from .base import LearningAgent
from .learners import (
    CompiledLearner,
    LearnerPolicy,
    OfferLearner,
    Task,
    features_of_log,
    make_config,
    make_learner,
    repeated_on,
)
from .policy import Policy, Rng
from .rolling_arms import PLAY, ahead_of, recent_actions, rolling_on_arms


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Rolling(LearningAgent):
    """Plans from where it is, and learns from every reward: the learner to use when m and gamma are known.

    The paper's blocks begin with m actions whose rewards are neither counted nor learned from, and end
    without a future. But the last m actions are known, so every reward is linear in a feature that can be
    computed. Each plan maximises O3M's sum of optimistic rewards (Remark 3, rmk:over_opt) over `ahead`
    actions that follow what was really played, and over what comes after them: the best cycle of the present
    belief that a search finds, entered at the phase that is best in the long run. `play` actions of it are
    played, then the rest is the start of the next plan. Neither matters much; the defaults are 3(m+1) and 3.

    `subgaussian` is the factor of the noise; None estimates it from the rewards, by the posterior mean of
    sigma^2 in the conjugate regression. `horizon` sets delta to 1/horizon; without one the radius is that of
    delta = 0.01, and holds at any time. `lam`, `radius` and `A0` are as for `O3M`. With `switch` = C > 0 a
    plan is the way into a cycle and the cycle, which is repeated until det V has grown by the factor 1 + C,
    or for half of the time before it: a few dozen plans for 10^8 steps. How arms are planned for is told by
    `ArmPlans` in agents/rolling_arms.py.

    `decay` is that of the model: below 1 the action s steps ago counts decay^(s-1) times. m may be `math.inf`
    then, on the ball and where arms are told step by step. The state is one matrix, kept to the last bit; a
    history that comes from elsewhere is that of the last actions that are not below rounding, 371 of them
    with decay = 0.9, at most 65,536. Then `switch` must be 0: no pass of a cycle is quite like the one
    before. `response` is that of the model, too.

    Proven: with a number for `subgaussian` the confidence sets hold at all times with probability 1 - delta
    (Abbasi-Yadkori, Pal and Szepesvari 2011, Theorem 2; for radius="estimate" with the lines in
    kernels/learning.py), for every reward that is learned from. Not proven: a bound on the regret, and
    anything with an estimated noise, whose estimate is put in the place of the factor. Confidence sets that
    adapt to unknown noise and are proven are those of Jun and Kim (2024).

    Use it when m and gamma are known; when they are not, `Auto`.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    >>> run = lbm.run(env, lbm.Rolling(m=1, gamma=-2.0), T=200, seed=0)
    >>> bool(run.reward[-1] > 130.0)
    True
    """

    _LATER: ClassVar[dict[str, Any]] = {"decay": 1.0, "response": "power"}

    m: int | float
    gamma: float
    horizon: int | None
    ahead: int | None
    play: int | None
    lam: float
    delta: float | None
    subgaussian: float | None
    switch: float
    radius: str
    A0: Array | None
    decay: float
    response: str | Response

    def __init__(
        self,
        m: float,
        gamma: float,
        horizon: int | None = None,
        ahead: int | None = None,
        play: int | None = None,
        lam: float = 1.0,
        delta: float | None = None,
        subgaussian: float | None = None,
        switch: float = 0.0,
        radius: str = "estimate",
        A0: ArrayLike | None = None,
        decay: float = 1.0,
        response: str | Response = "power",
    ) -> None:
        memory = validation.memory("m", m, allow_inf=True)
        decay = validation.decay(decay, memory)
        gamma = validation.real("gamma", gamma)
        self._set_learning(
            horizon=horizon, lam=lam, delta=delta, subgaussian=subgaussian, radius=radius, any_time=True
        )
        self._set(switch=validation.real("switch", switch, low=0.0))
        if memory == math.inf and self.switch > 0.0:
            raise ValueError(f"switch must be 0 where m is infinite, got {switch:g}")
        turn = turn_of_memory(decay) if memory == math.inf else int(memory)
        if ahead is not None:
            ahead = validation.integer("ahead", ahead, low=1)
        if play is not None:
            play = validation.integer("play", play, low=1)
            if play > ahead_of(ahead, turn):
                raise ValueError(f"play must be at most ahead, {ahead_of(ahead, turn)}, got {play}")
        if A0 is not None:
            d = len(validation.array("A0", A0, (None, None)))
            weight = total_weight(memory, decay)
            A0, _ = check_memory_matrix(A0, d, weight, gamma, variant=make_variant(decay, response))
        make_variant(decay, response)
        self._set(m=memory, gamma=gamma, ahead=ahead, play=play, A0=A0, decay=decay, response=response)

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> LearnerPolicy:
        if self.A0 is not None and len(self.A0) != actions.d:
            raise ValueError(f"A0 must have the dimension of the actions, {actions.d}, got {len(self.A0)}")
        # gamma = 0: the reward ignores the past, whatever m, and every action is the best of its own step.
        m = self.m if self.gamma != 0.0 or isinstance(self.response, Response) else 0
        variant = make_variant(self.decay, self.response)
        span = actions_kept(m, self.decay)
        task = Task(O3M, m=span, gamma=self.gamma, L=1, A0=self.A0, switch=self.switch, variant=variant)
        if m == 0:
            return make_learner(self, task, actions, rng=rng, step=step)
        if self.switch > 0.0 and actions.varies:
            raise repeated_on(actions, self.switch)
        if isinstance(actions, Offered):
            weight = total_weight(m, self.decay)
            matrix, rho = check_memory_matrix(self.A0, actions.d, weight, self.gamma, variant=variant)
            config = make_config(self, task, actions.d, rho)._replace(m=0)  # all rewards are learned from
            learner = Learner(config, make_estimator(actions.d, self.lam), np.zeros((1, actions.d)))
            return OfferLearner(learner, task, matrix, 1, rng=rng, step=step)
        if isinstance(actions, Ball):
            return RollingOnBall(self, m, task, actions, rng=rng, step=step)
        if m == math.inf:
            raise ValueError(
                f"m must be finite on a set of arms, whose plans go through the last m of them, got inf on "
                f"{actions!r}: a finite m with the same decay is close to it"
            )
        ahead = ahead_of(self.ahead, span)
        play = min(PLAY, ahead) if self.play is None else self.play
        return rolling_on_arms(self, task, actions, ahead=ahead, play=play, rng=rng, step=step)


class RollingOnBall(CompiledLearner):
    """Rolling on the ball, compiled."""

    def __init__(self, agent: Rolling, m: float, task: Task, actions: ActionSet, rng: Rng, step: int) -> None:
        d, turn = actions.d, turn_of_memory(agent.decay) if m == math.inf else int(m)
        ahead = ahead_of(agent.ahead, turn)
        weight = total_weight(m, agent.decay)
        matrix, rho = check_memory_matrix(
            agent.A0, d, weight, task.gamma, differentiable=True, variant=task.variant
        )
        play = min(PLAY, ahead) if agent.play is None else agent.play
        effort = rolling_effort(d, turn, rare=task.switch > 0.0)
        self.plans_ahead = BallPlans(
            matrix, m, task.gamma, ahead=ahead, play=play, effort=effort, variant=task.variant
        )
        room = max(ahead + turn, effort.longest)
        config = make_config(agent, task, d, rho)._replace(m=0)  # all rewards are learned from
        learner = Learner(config, make_estimator(d, agent.lam), np.zeros((room, d)))
        super().__init__(learner, room, d, rng=rng, step=step)
        self.planner = self.plans_ahead.planner(learner)

    @property
    def plan_seconds(self) -> float:
        effort, memory = self.plans_ahead.effort, self.plans_ahead.memory[0]
        steps = self.plans_ahead.ahead + memory.tail
        cycles = (MORE_TRIES * MOST_TRIES + 1) * most_seconds(
            effort.cycle, effort.longest, memory.d, memory.turn
        )
        return cycles + most_seconds(effort.steps, steps, memory.d, memory.turn)

    def state(self) -> dict[str, Array]:
        return super().state() | self.plans_ahead.state()

    def check(self, changed: bool = False) -> None:
        super().check(changed)
        self.plans_ahead.check()

    @property
    def span(self) -> int:
        return self.plans_ahead.span

    def features_of(self, before: Array, actions: Array) -> Array:
        return features_of_log(self.planner.memory, self.planner.A0, before, actions)

    def set_history(self, recent: Array) -> None:
        self.plans_ahead.start_from(recent[len(recent) - self.span :])

    def recent_actions(self) -> Array:
        """The last m actions that were played; of a memory without end, those of the block."""
        if self.plans_ahead.m == math.inf:
            return super().recent_actions()
        return recent_actions(self.plans_ahead.outlook.recent, self.block)

    def continue_from(self, before: Policy) -> None:
        if not isinstance(before, RollingOnBall):
            return
        outlook, last = self.plans_ahead.outlook, before.plans_ahead.outlook
        if self.plans_ahead.m == math.inf:
            played = played_actions(before.block)
            outlook.past[:] = last.past
            push_past(outlook.past, self.plans_ahead.variant.decay, played, 0, len(played))
        else:
            outlook.recent[:] = before.recent_actions()
