"""Rolling: owns the learner that plans from its true history, its parameters and its policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.types import Array
from .._base.values import writable
from ..kernels.block_state import (
    BlockState,
    cursor,
    is_done,
    length,
    next_step,
    plans_made,
    played_actions,
    start_short_block,
)
from ..kernels.estimator import make_estimator, passes_of_plan
from ..kernels.learning import Learner, learn_from_block, radius
from ..kernels.memory import make_memory
from ..kernels.optimism import O3M, Belief
from ..kernels.rolling import RollingConfig, RollingPlanner, check_outlook, features_after, make_outlook
from ..model.actions import ActionSet, Ball
from ..model.lbm import LBM
from ..model.memory_matrix import check_memory_matrix
from ..planning.blocks import sets_after
from ..planning.effort import rolling_effort
from ..planning.finite import FinitePlanner
from .base import LearningAgent
from .learners import CompiledLearner, LearnerPolicy, Task, make_config, make_learner, repeated_on
from .policy import Policy, Rng

#: Actions that are played of a plan.
PLAY = 3
#: With `switch` on arms: actions until a cycle has closed, else they are played once.
LONGEST = 64
#: Windows that a search on arms may solve for a plan.
WINDOWS = 1e5


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Rolling(LearningAgent):
    """Plans from where it is: the learner to use when m and gamma are known."""

    m: int
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

    def __init__(
        self,
        m: int,
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
    ) -> None:
        memory = int(validation.memory("m", m, allow_inf=False))
        gamma = validation.real("gamma", gamma)
        self._set_learning(
            horizon=horizon, lam=lam, delta=delta, subgaussian=subgaussian, radius=radius, any_time=True
        )
        self._set(switch=validation.real("switch", switch, low=0.0))
        if ahead is not None:
            ahead = validation.integer("ahead", ahead, low=1)
        if play is not None:
            play = validation.integer("play", play, low=1, high=_ahead(ahead, memory))
        if A0 is not None:
            d = len(validation.array("A0", A0, (None, None)))
            A0, _ = check_memory_matrix(A0, d, memory, gamma)
        self._set(m=memory, gamma=gamma, ahead=ahead, play=play, A0=A0)

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> LearnerPolicy:
        if self.A0 is not None and len(self.A0) != actions.d:
            raise ValueError(f"A0 must have the dimension of the actions, {actions.d}, got {len(self.A0)}")
        # gamma = 0: the reward ignores the past, whatever m, and every action is the best of its own step.
        m = self.m if self.gamma != 0.0 else 0
        task = Task(kind=O3M, m=m, gamma=self.gamma, L=1, A0=self.A0, switch=self.switch)
        if m == 0:
            return make_learner(self, task, actions, rng=rng, step=step)
        if self.switch > 0.0 and actions.varies:
            raise repeated_on(actions, self.switch)
        kind = RollingOnBall if isinstance(actions, Ball) else RollingOnArms
        return kind(self, task, actions, rng=rng, step=step)


def _ahead(ahead: int | None, m: int) -> int:
    """How far a plan looks: three turns of m+1 actions, unless told."""
    return 3 * (m + 1) if ahead is None else ahead


class RollingOnBall(CompiledLearner):
    """Rolling on the ball, compiled."""

    def __init__(self, agent: Rolling, task: Task, actions: ActionSet, rng: Rng, step: int) -> None:
        m, d = task.m, actions.d
        matrix, rho = check_memory_matrix(agent.A0, d, m, task.gamma, differentiable=True)
        ahead = _ahead(agent.ahead, m)
        effort = rolling_effort(d, m)
        room = max(ahead + m, effort.longest)
        config = make_config(agent, task, d, rho)._replace(m=0)  # all rewards are learned from
        learner = Learner(config, make_estimator(d, agent.lam), np.zeros((room, d)))
        super().__init__(learner, room, d, rng=rng, step=step)
        memory, form = make_memory(writable(matrix), m, task.gamma)
        rolling = RollingConfig(
            ahead=ahead,
            play=min(PLAY, ahead) if agent.play is None else agent.play,
            patience=effort.patience,
            cycles=effort.cycle._replace(stop=config.first.stop),
            steps=effort.steps._replace(stop=config.first.stop),
        )
        self.planner = RollingPlanner(
            learner=learner,
            memory=memory,
            A0=form,
            outlook=make_outlook(m, d, ahead, effort.longest),
            rolling=rolling,
        )

    def state(self) -> dict[str, Array]:
        outlook = {f"outlook.{name}": array for name, array in self.planner.outlook._asdict().items()}
        return super().state() | outlook

    def check(self) -> None:
        super().check()
        check_outlook(self.planner.outlook)

    def recent_actions(self) -> Array:
        """The last m actions that were played."""
        return _recent(self.planner.outlook.recent, self.block)

    def continue_from(self, before: Policy) -> None:
        if isinstance(before, RollingOnBall):
            self.planner.outlook.recent[:] = before.recent_actions()


class RollingOnArms(LearnerPolicy):
    """Rolling on sets of arms.

    Where all steps have the same few arms, what is played is the policy with the largest average UCB in the
    long run. Elsewhere `ahead` steps are planned, by dynamic programming where that is feasible, without a
    value of what comes after. Sets that are revealed step by step are planned for as if those to come were
    those seen last, the latest first, and every step is planned anew.
    """

    def __init__(self, agent: Rolling, task: Task, actions: ActionSet, rng: Rng, step: int) -> None:
        m, d = task.m, actions.d
        matrix, rho = check_memory_matrix(agent.A0, d, m, task.gamma)
        self.A0, self.ahead = writable(matrix), _ahead(agent.ahead, m)
        self.play = min(PLAY, self.ahead) if agent.play is None else agent.play
        self.play = self.play if actions.known_ahead else 1
        room = max(self.play, LONGEST if task.switch > 0.0 else 0)
        config = make_config(agent, task, d, rho)._replace(m=0)  # all rewards are learned from
        learner = Learner(config, make_estimator(d, agent.lam), np.zeros((room, d)))
        super().__init__(learner, room, d, rng=rng, step=step)
        self.task, self.actions, self.sets = task, actions, actions.sets()
        self.memory = make_memory(self.A0, m, task.gamma)
        self.planner = None if actions.varies else self._planner(self.sets[0])
        self.recent = np.zeros((m, d))
        # Arms of the last m actions, those of the block, and a cycle that comes after it: -1 behind its end.
        self.arms, self.chosen, self.cycle = np.full(m, -1), np.full(room, -1), np.full(room, -1)

    def _planner(self, arms: Array) -> FinitePlanner:
        return FinitePlanner(arms, m=self.task.m, gamma=self.task.gamma, A0=self.A0)

    def plan_next_block(self) -> None:
        config, e, F = self.learner
        learn_from_block(config, e, F, self.block)
        if plans_made(self.block) > 0:
            # A block that was repeated ends as it began to.
            arms = np.tile(self.chosen[: length(self.block)], min(cursor(self.block)[1], self.task.m))
            self.arms[:] = np.concatenate((self.arms, arms))[len(arms) :]
            self.recent[:] = self.recent_actions()
        repeated = self.cycle[self.cycle >= 0]
        self.cycle[:] = -1
        if len(repeated) > 0:
            arms, actions = repeated, self.sets[0][repeated]
        else:
            arms, actions = self._plan(Belief(e.theta, e.V_inv, float(radius(config, e)), O3M))
        n = len(arms)
        self.chosen[:n], self.block.actions[:n] = arms, actions
        features_after(*self.memory, self.recent, self.block.actions, n, F)
        start_short_block(self.block, n, passes_of_plan(e, F[:n], config.switch, 0) if len(repeated) else 1)

    def _plan(self, belief: Belief) -> tuple[Any, Array]:
        """The next arms, and their actions."""
        switch, arms = self.task.switch > 0.0, None
        if self.planner is not None and (self.arms >= 0).all():
            arms = self.planner.continued(belief, self.arms, LONGEST if switch else self.play)
        if arms is not None:
            begin, end = _closes(np.concatenate((self.arms, arms)), self.task.m) if switch else (0, 0)
            if end > begin:
                # The way into the cycle, and the cycle; at once if this is where it begins.
                way, cycle = arms[:begin], arms[begin:end]
                arms = way if begin > 0 else cycle
                self.cycle[: len(cycle)] = cycle
            return arms, self.sets[0][arms]
        step, sets = int(next_step(self.block)), self.sets
        if not self.actions.known_ahead:
            sets, step = sets[max(step - self.ahead + 1, 0) : step + 1][::-1], 0
        after = sets_after(self.recent, sets, step, self.ahead)
        plan = self._planner(after).plan(belief, self.ahead, self.rng, windows=WINDOWS)
        assert plan.indices is not None
        part = slice(self.task.m, self.task.m + self.play)
        return plan.indices[part], plan.actions[part]

    def recent_actions(self) -> Array:
        """The last m actions that were played."""
        return _recent(self.recent, self.block)

    def state(self) -> dict[str, Array]:
        own: dict[str, Any] = {
            "recent": self.recent,
            "arms": self.arms,
            "chosen": self.chosen,
            "cycle": self.cycle,
        }
        return super().state() | own

    def check(self) -> None:
        super().check()
        for arms in (self.arms, self.chosen, self.cycle):
            if not (arms.min(initial=-1) >= -1 and arms.max(initial=-1) < self.sets.shape[1]):
                raise ValueError(f"there are {self.sets.shape[1]} arms, got numbers beyond them")
        if (self.chosen[: length(self.block)] < 0).any() and plans_made(self.block) > 0:
            raise ValueError("a block without arms")
        if not float(np.square(self.recent).sum(axis=1).max()) <= 1.0 + 1e-6:
            raise ValueError("the last actions must lie in the unit ball")

    def continue_from(self, before: Policy) -> None:
        if isinstance(before, RollingOnArms):
            self.recent[:] = before.recent_actions()


def _closes(arms: Any, m: int) -> tuple[int, int]:
    """Where a cycle begins and ends, in steps after the first m arms, whose last m decide what comes next."""
    seen: dict[bytes, int] = {}
    for t in range(len(arms) - m + 1):
        begin = seen.setdefault(arms[t : t + m].tobytes(), t)
        if begin < t:
            return begin, t
    return 0, 0


def _recent(recent: Array, block: BlockState) -> Array:
    """The last m actions, `recent` (m, d) those before the block."""
    played = played_actions(block)
    if is_done(block):
        _, passes, _ = cursor(block)
        played = np.tile(played, (min(passes, len(recent)), 1))
    rows: Array = np.concatenate((recent, played))
    return rows[len(rows) - len(recent) :]
