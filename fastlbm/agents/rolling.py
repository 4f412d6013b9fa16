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
from ..kernels.blocks import compute_features, make_work
from ..kernels.estimator import SAMPLES, make_estimator, passes_of_plan
from ..kernels.learning import Learner, learn_from_block, radius
from ..kernels.memory import make_memory
from ..kernels.optimism import O3M, Belief
from ..kernels.rolling import (
    MOST_TRIES,
    SETTLED,
    features_after,
)
from ..model.actions import ActionSet, Ball, Offered
from ..model.lbm import LBM
from ..model.memory_matrix import check_memory_matrix
from ..planning.effort import most_seconds, rolling_arms
from ..planning.finite import FinitePlanner
from ..planning.finite.states import ucb
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
from .offers import arms_among
from .policy import Policy, Rng

#: Actions that are played of a plan.
PLAY = 3
#: With `switch` on arms: actions until a cycle has closed, else they are played once.
LONGEST = 64
#: Bytes of tables instead of a search.
BUDGET = 2**20
#: What may come after an arm of a set that is revealed: so many draws.
FUTURES = 8


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
    `ArmPlans` in agents/rolling.py.

    Proven: with a number for `subgaussian` the confidence sets hold at all times with probability 1 - delta
    (Abbasi-Yadkori, Pal and Szepesvari 2011, Theorem 2; for radius="estimate" with the lines in
    kernels/learning.py), for every reward that is learned from. Not proven: a bound on the regret, and
    anything with an estimated noise, whose estimate is put in the place of the factor. Confidence sets that
    adapt to unknown noise and are proven are those of Jun and Kim (2024).

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    >>> run = lbm.run(env, lbm.Rolling(m=1, gamma=-2.0), T=200, seed=0)
    >>> bool(run.reward[-1] > 130.0)
    True
    """

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
            play = validation.integer("play", play, low=1)
            if play > ahead_of(ahead, memory):
                raise ValueError(f"play must be at most ahead, {ahead_of(ahead, memory)}, got {play}")
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
        if isinstance(actions, Offered):
            matrix, rho = check_memory_matrix(self.A0, actions.d, m, self.gamma)
            config = make_config(self, task, actions.d, rho)._replace(m=0)  # all rewards are learned from
            learner = Learner(config, make_estimator(actions.d, self.lam), np.zeros((1, actions.d)))
            return OfferLearner(learner, task, matrix, 1, rng=rng, step=step)
        kind = RollingOnBall if isinstance(actions, Ball) else RollingOnArms
        return kind(self, task, actions, rng=rng, step=step)


def ahead_of(ahead: int | None, m: int) -> int:
    """How far a plan looks: three turns of m+1 actions, unless told."""
    return 3 * (m + 1) if ahead is None else ahead


class RollingOnBall(CompiledLearner):
    """Rolling on the ball, compiled."""

    def __init__(self, agent: Rolling, task: Task, actions: ActionSet, rng: Rng, step: int) -> None:
        m, d, ahead = task.m, actions.d, ahead_of(agent.ahead, task.m)
        matrix, rho = check_memory_matrix(agent.A0, d, m, task.gamma, differentiable=True)
        play = min(PLAY, ahead) if agent.play is None else agent.play
        self.plans_ahead = BallPlans(matrix, m, task.gamma, ahead=ahead, play=play, rare=task.switch > 0.0)
        room = max(ahead + m, self.plans_ahead.effort.longest)
        config = make_config(agent, task, d, rho)._replace(m=0)  # all rewards are learned from
        learner = Learner(config, make_estimator(d, agent.lam), np.zeros((room, d)))
        super().__init__(learner, room, d, rng=rng, step=step)
        self.planner = self.plans_ahead.planner(learner)

    @property
    def plan_seconds(self) -> float:
        effort, d, m = self.plans_ahead.effort, self.block.actions.shape[1], self.plans_ahead.m
        steps = self.plans_ahead.ahead + m
        cycles = (MOST_TRIES + 1) * most_seconds(effort.cycle, effort.longest, d, m)
        return cycles + most_seconds(effort.steps, steps, d, m)

    def state(self) -> dict[str, Array]:
        return super().state() | self.plans_ahead.state()

    def check(self, changed: bool = False) -> None:
        super().check(changed)
        self.plans_ahead.check()

    @property
    def span(self) -> int:
        return self.plans_ahead.m

    def features_of(self, before: Array, actions: Array) -> Array:
        return features_of_log(self.planner.memory, self.planner.A0, before, actions)

    def set_history(self, recent: Array) -> None:
        self.plans_ahead.start_from(recent[len(recent) - self.span :])

    def recent_actions(self) -> Array:
        """The last m actions that were played."""
        return _recent(self.plans_ahead.outlook.recent, self.block)

    def continue_from(self, before: Policy) -> None:
        if isinstance(before, RollingOnBall):
            self.plans_ahead.outlook.recent[:] = before.recent_actions()


class ArmPlans:
    """What to play next on sets of arms, after a history.

    Where all steps have the same few arms, that is what the policy with the largest average UCB in the long
    run plays. On more arms, and where the sets to come are known, `ahead` steps are planned, by dynamic
    programming where that is feasible, else by a search that begins at the plan before, without a value of
    what comes after. Where sets are revealed step by
    step, an arm is worth its UCB and what would follow on average: the best arms, one step after the other,
    of sets that were seen before, drawn FUTURES times, for as long as the arm is remembered. To plan for
    such sets as if they came would earn less than OFUL where rewards rise.
    """

    def __init__(self, actions: ActionSet, *, m: int, gamma: float, A0: Array, ahead: int) -> None:
        self.m, self.gamma, self.A0, self.ahead = m, gamma, A0, ahead
        self.sets, self._known_ahead = actions.sets(), actions.known_ahead
        self._varies = actions.varies
        arms = self.sets if actions.varies else self.sets[0]
        self._planner = FinitePlanner(arms, m=m, gamma=gamma, A0=A0, budget=BUDGET)
        self._memory = make_memory(A0, m, gamma)

    def policy(self, belief: Belief, arms: Any, steps: int) -> Any:
        """What the best policy plays after the arms (m,), -1 for none: their numbers, or None."""
        if self._varies or (arms < 0).any():
            return None
        return self._planner.continued(belief, arms, steps)

    def search(
        self, belief: Belief, recent: Array, step: int, rng: Rng, rest: Any = None
    ) -> tuple[Any, Array]:
        """The next arms, by number, and their actions, from a step on, after the actions `recent` (m, d).

        `rest` (ahead,) is what was planned before and not played, -1 behind its end: the search begins there.
        """
        if not self._known_ahead:
            best = np.array([int(np.argmax(self._worth(belief, recent, step, rng)))])
            return best, self.sets[step][best]
        warm = None if rest is None or self._varies or rest[0] < 0 else self._continued(rest)
        K, d = self.sets.shape[1:]
        effort = rolling_arms(K, d, self.m, belief.beta > 0.0, warm is not None)
        plan = self._planner.plan_after(belief, recent, self.ahead, rng, start=step, warm=warm, effort=effort)
        return plan.indices, plan.actions

    def _continued(self, rest: Any) -> Any:
        """Starts (2, ahead): the rest of a plan, and on with what came m+1 steps before, or m+2."""
        left = int((rest >= 0).sum())
        starts = np.tile(rest, (2, 1))
        for row, turn in zip(starts, (self.m + 1, self.m + 2), strict=True):
            for t in range(left, len(row)):
                row[t] = row[max(t - turn, t % left)]
        return starts

    def _worth(self, belief: Belief, recent: Array, step: int, rng: Rng) -> Array:
        """The UCB of every arm (K,) of a step, and what follows it on average."""
        arms = self.sets[step]
        K = len(arms)
        windows = np.repeat(recent[:, None], K, axis=1)  # (m, K, d)
        parts = belief.theta, belief.V_inv, belief.beta
        worth = ucb(self._apply(windows, arms), *parts)
        later = min(self.m, self.ahead - 1)
        seen = rng.integers(step + 1, size=(later, FUTURES))
        windows = np.repeat(np.concatenate((windows, arms[None]))[1:], FUTURES, axis=1)
        for t in range(later):
            # The reward of every arm of a set, one for each future, after each of the K first arms.
            sets = np.tile(self.sets[seen[t]], (K, 1, 1))
            directions = self._apply(windows, np.tile(belief.theta, (len(sets), 1)))
            rewards = np.einsum("dn,nkd->nk", directions, sets)
            best = rewards.argmax(axis=1)
            worth += rewards.max(axis=1).reshape(K, FUTURES).mean(axis=1)
            windows = np.concatenate((windows, sets[np.arange(len(sets)), best][None]))[1:]
        return worth

    def _apply(self, windows: Array, vectors: Array) -> Array:
        """X^gamma x (d, n) of each of n windows (m, n, d) with its x (n, d)."""
        memory, form = self._memory
        n, d = vectors.shape
        block = np.concatenate((windows, vectors[None])).transpose(2, 0, 1).reshape(d, -1)
        work = make_work(memory, form, block.shape[1], n)
        compute_features(memory, form, np.ascontiguousarray(block), n, work)
        return np.ascontiguousarray(work.B[:, self.m * n :])


class RollingOnArms(LearnerPolicy):
    """Rolling on sets of arms, see `ArmPlans`; where they are revealed, every step is planned anew."""

    def __init__(self, agent: Rolling, task: Task, actions: ActionSet, rng: Rng, step: int) -> None:
        m, d = task.m, actions.d
        matrix, rho = check_memory_matrix(agent.A0, d, m, task.gamma)
        A0, ahead = writable(matrix), ahead_of(agent.ahead, m)
        self.play = min(PLAY, ahead) if agent.play is None else agent.play
        self.play = self.play if actions.known_ahead else 1
        room = max(self.play, LONGEST if task.switch > 0.0 else 0)
        config = make_config(agent, task, d, rho)._replace(m=0)  # all rewards are learned from
        learner = Learner(config, make_estimator(d, agent.lam), np.zeros((room, d)))
        super().__init__(learner, room, d, rng=rng, step=step)
        self.plans_ahead = ArmPlans(actions, m=m, gamma=task.gamma, A0=A0, ahead=ahead)
        self.task, self.sets, self.memory = task, actions.sets(), make_memory(A0, m, task.gamma)
        self.recent = np.zeros((m, d))
        # Arms of the last m actions, those of the block, and a cycle that comes after it: -1 behind its end.
        self.arms, self.chosen, self.cycle = np.full(m, -1), np.full(room, -1), np.full(room, -1)
        self.rest = np.full(ahead, -1)  # arms that were planned and not played

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
        first = SETTLED * (self.plans_ahead.ahead + self.task.m)
        settled = self.learner.estimator.ledger[SAMPLES] >= first
        switch = self.task.switch > 0.0 and bool(settled)
        arms = self.plans_ahead.policy(belief, self.arms, LONGEST if switch else self.play)
        if arms is None:
            step = int(next_step(self.block))
            arms, actions = self.plans_ahead.search(belief, self.recent, step, self.rng, self.rest)
            self.rest[:] = np.concatenate((arms, self.rest))[self.play :][: len(self.rest)]
            self.rest[max(len(arms) - self.play, 0) :] = -1
            return arms[: self.play], actions[: self.play]
        begin, end = _closes(np.concatenate((self.arms, arms)), self.task.m) if switch else (0, 0)
        if end > begin:
            # The way into the cycle, and the cycle; at once if this is where it begins.
            way, cycle = arms[:begin], arms[begin:end]
            arms = way if begin > 0 else cycle
            self.cycle[: len(cycle)] = cycle
        return arms, self.sets[0][arms]

    @property
    def span(self) -> int:
        return self.task.m

    def features_of(self, before: Array, actions: Array) -> Array:
        return features_of_log(*self.memory, before, actions)

    def set_history(self, recent: Array) -> None:
        self.recent[:] = recent[len(recent) - self.span :]
        self.arms[:] = arms_among(self.sets[0], self.recent)
        self.chosen[:], self.cycle[:], self.rest[:] = 0, -1, -1

    def recent_actions(self) -> Array:
        """The last m actions that were played."""
        return _recent(self.recent, self.block)

    def state(self) -> dict[str, Array]:
        own: dict[str, Any] = {
            "recent": self.recent,
            "arms": self.arms,
            "chosen": self.chosen,
            "cycle": self.cycle,
            "rest": self.rest,
        }
        return super().state() | own

    def check(self, changed: bool = False) -> None:
        super().check(changed)
        for arms in (self.arms, self.chosen, self.cycle, self.rest):
            inside = arms.min(initial=-1) >= -1 and arms.max(initial=-1) < self.sets.shape[1]
            if not (inside or changed):
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
