"""Rolling on sets of arms: owns what is played next after a history, and the policies that play it."""

from __future__ import annotations

from typing import Any

import numpy as np

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
from ..kernels.episode import plan_next_block, run_blocks
from ..kernels.estimator import SAMPLES, make_estimator, passes_of_plan
from ..kernels.fading import PAPER, Variant
from ..kernels.learning import Learner, learn_from_block, radius
from ..kernels.memory import make_memory
from ..kernels.optimism import O3M, Belief
from ..kernels.playing import Recorder, elapsed, play_block
from ..kernels.rewards import History, ModelParams, weighted
from ..kernels.rolling import SETTLED, features_after
from ..kernels.rolling_arms import (
    ArmTables,
    RevealedPlanner,
    TablePlanner,
    make_arm_history,
    push_arms,
    worth_of_arms,
)
from ..model.actions import ActionSet
from ..model.memory_matrix import check_memory_matrix, matrix_power
from ..planning.effort import rolling_arms
from ..planning.finite import FinitePlanner
from ..planning.finite.states import ucb
from .base import LearningAgent
from .learners import LearnerPolicy, Task, features_of_log, make_config
from .offers import arms_among
from .policy import Policy, Rng

#: Actions that are played of a plan.
PLAY = 3
#: With `switch` on arms: actions until a cycle has closed, else they are played once.
LONGEST = 64
#: Bytes of tables instead of a search.
BUDGET = 2**20
#: Of very many arms a plan looks at about twice as many.
POOL = 512
#: What may come after an arm of a set that is revealed: so many draws.
FUTURES = 8


def ahead_of(ahead: int | None, m: int) -> int:
    """How far a plan looks: three turns of m+1 actions, unless told."""
    return 3 * (m + 1) if ahead is None else ahead


class ArmPlans:
    """What to play next on sets of arms, after a history.

    Where all steps have the same few arms, that is what the policy with the largest average UCB in the long
    run plays. On more arms, and where the sets to come are known, `ahead` steps are planned, by dynamic
    programming where that is feasible, else by a search that begins at the plan before, without a value of
    what comes after; of more than a thousand arms the best ones for the next step are looked at. Where sets
    are revealed step by step, an arm is worth its UCB and what would follow on average: the best arms, one
    step after the other, of sets that were seen before, drawn FUTURES times, for as long as the arm is
    remembered. To plan for such sets as if they came would earn less than OFUL where rewards rise.
    """

    def __init__(
        self,
        actions: ActionSet,
        *,
        m: int,
        gamma: float,
        A0: Array,
        ahead: int,
        variant: Variant = PAPER,
    ) -> None:
        self.m, self.gamma, self.A0, self.ahead, self.variant = m, gamma, A0, ahead, variant
        self.sets, self._known_ahead = actions.sets(), actions.known_ahead
        self._varies = actions.varies
        self._planner = self._planner_of(self.sets if actions.varies else self.sets[0])
        self.memory = make_memory(A0, m, gamma, variant)

    def tables(self) -> ArmTables | None:
        """What the compiled policy needs, where it serves."""
        return None if self._varies else self._planner.policy_tables()

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
            later = min(self.m, self.ahead - 1)
            worth = worth_of_arms(
                *self.memory, belief, self.sets, np.ascontiguousarray(recent), step, later, FUTURES, rng
            )
            best = np.array([int(np.argmax(worth))])
            return best, self.sets[step][best]
        warm = None if rest is None or self._varies or rest[0] < 0 else self._continued(rest)
        planner, pool = self._planner, None
        if not self._varies and self.sets.shape[1] > 2 * POOL:
            pool = self._pool(belief, recent, warm)
            planner = self._planner_of(self.sets[0][pool])
            warm = None if warm is None else np.searchsorted(pool, warm)
        model = planner.model
        effort = rolling_arms(model.memory, model.K, bonus=belief.beta > 0.0, warm=warm is not None)
        plan = planner.plan_after(belief, recent, self.ahead, rng, start=step, warm=warm, effort=effort)
        assert plan.indices is not None
        return plan.indices if pool is None else pool[plan.indices], plan.actions

    def _planner_of(self, arms: Array) -> FinitePlanner:
        return FinitePlanner(
            arms, m=self.m, gamma=self.gamma, A0=self.A0, budget=BUDGET, variant=self.variant
        )

    def _pool(self, belief: Belief, recent: Array, warm: Any) -> Any:
        """Of very many arms those worth a look: the best now, the best with no memory, and `warm`."""
        arms = self.sets[0]
        chosen = [np.ravel(np.empty(0, dtype=np.intp) if warm is None else warm)]
        if self.variant.decay < 1.0:
            recent = weighted(np.ascontiguousarray(recent), self.variant.decay)
        for X in (self.A0, self.A0 + recent.T @ recent):
            B = np.ascontiguousarray(matrix_power(X, self.gamma, variant=self.variant) @ arms.T)
            worth = ucb(B, belief.theta, belief.V_inv, float(belief.beta))
            chosen.append(np.argpartition(-worth, POOL)[:POOL])
        return np.unique(np.concatenate(chosen))

    def _continued(self, rest: Any) -> Any:
        """Starts (2, ahead): the rest of a plan, and on with what came m+1 steps before, or m+2."""
        left = int((rest >= 0).sum())
        starts = np.tile(rest, (2, 1))
        for row, turn in zip(starts, (self.m + 1, self.m + 2), strict=True):
            for t in range(left, len(row)):
                row[t] = row[max(t - turn, t % left)]
        return starts


class RollingOnArms(LearnerPolicy):
    """Rolling on sets of arms that are known ahead, planned in Python: many arms, or with `switch`."""

    def __init__(
        self, agent: LearningAgent, task: Task, plans: ArmPlans, play: int, *, rng: Rng, step: int
    ) -> None:
        m, d = task.m, plans.sets.shape[2]
        _, rho = check_memory_matrix(task.A0, d, task.weight, task.gamma, variant=task.variant)
        room = max(play, LONGEST if task.switch > 0.0 else 0)
        config = make_config(agent, task, d, rho)._replace(m=0)  # all rewards are learned from
        learner = Learner(config, make_estimator(d, agent.lam), np.zeros((room, d)))
        super().__init__(learner, room, d, rng=rng, step=step)
        self.task, self.play, self.plans_ahead, self.sets = task, play, plans, plans.sets
        self.history = make_arm_history(m, d, room)
        # A cycle that comes after the block, -1 behind its end; arms that were planned and not played.
        self.cycle, self.rest = np.full(room, -1), np.full(plans.ahead, -1)

    def plan_next_block(self) -> None:
        config, e, F = self.learner
        history = self.history
        learn_from_block(config, e, F, self.block)
        if plans_made(self.block) > 0:
            push_arms(self.block, history)
        repeated = self.cycle[self.cycle >= 0]
        self.cycle[:] = -1
        if len(repeated) > 0:
            arms, actions = repeated, self.sets[0][repeated]
        else:
            arms, actions = self._plan(Belief(e.theta, e.V_inv, float(radius(config, e)), O3M))
        n = len(arms)
        history.chosen[:n], self.block.actions[:n] = arms, actions
        features_after(*self.plans_ahead.memory, history.recent, self.block.actions, n, F)
        start_short_block(self.block, n, passes_of_plan(e, F[:n], config.switch, 0) if len(repeated) else 1)

    def _plan(self, belief: Belief) -> tuple[Any, Array]:
        """The next arms, and their actions."""
        before = self.history.arms
        first = SETTLED * (self.plans_ahead.ahead + self.task.m)
        settled = self.learner.estimator.ledger[SAMPLES] >= first
        switch = self.task.switch > 0.0 and bool(settled)
        arms = self.plans_ahead.policy(belief, before, LONGEST if switch else self.play)
        if arms is None:
            step, recent = int(next_step(self.block)), self.history.recent
            arms, actions = self.plans_ahead.search(belief, recent, step, self.rng, self.rest)
            left = len(arms) - self.play
            self.rest[:left], self.rest[left:] = arms[self.play :], -1
            return arms[: self.play], actions[: self.play]
        begin, end = _closes(np.concatenate((before, arms)), self.task.m) if switch else (0, 0)
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
        return features_of_log(*self.plans_ahead.memory, before, actions)

    def set_history(self, recent: Array) -> None:
        history = self.history
        history.recent[:] = recent[len(recent) - self.span :]
        history.arms[:] = arms_among(self.sets[0], history.recent)
        history.chosen[:], self.cycle[:], self.rest[:] = 0, -1, -1

    def recent_actions(self) -> Array:
        """The last m actions that were played."""
        return recent_actions(self.history.recent, self.block)

    def state(self) -> dict[str, Array]:
        own: dict[str, Any] = {**self.history._asdict(), "cycle": self.cycle, "rest": self.rest}
        return super().state() | own

    def check(self, changed: bool = False) -> None:
        super().check(changed)
        history, K = self.history, self.sets.shape[1]
        for arms in (history.arms, history.chosen, self.cycle, self.rest):
            inside = arms.min(initial=-1) >= -1 and arms.max(initial=-1) < K
            if not (inside or changed):
                raise ValueError(f"there are {K} arms, got numbers beyond them")
        if (history.chosen[: length(self.block)] < 0).any() and plans_made(self.block) > 0:
            raise ValueError("a block without arms")
        if not float(np.square(history.recent).sum(axis=1).max()) <= 1.0 + 1e-6:
            raise ValueError("the last actions must lie in the unit ball")

    def continue_from(self, before: Policy) -> None:
        if isinstance(before, RollingOnArms):
            self.history.recent[:] = before.recent_actions()


class CompiledOnArms(RollingOnArms):
    """The same on few arms, and on sets that are revealed: compiled, once the last m arms are known."""

    planner: TablePlanner | RevealedPlanner

    @property
    def plan_seconds(self) -> float:
        return 0.0

    def _settled(self) -> bool:
        """Whether the next plan is compiled: on few arms the last m arms are known by then."""
        unknown = int((self.history.arms < 0).sum())
        if plans_made(self.block) > 0:
            unknown -= length(self.block) * int(cursor(self.block)[1])
        return unknown <= 0 or isinstance(self.planner, RevealedPlanner)

    def plan_next_block(self) -> None:
        if self._settled():
            plan_next_block(self.planner, self.block, self.rng)
        else:
            super().plan_next_block()

    def advance(
        self, model: ModelParams, history: History, recorder: Recorder, noise: Rng, until: int
    ) -> None:
        while elapsed(recorder) < until and not self._settled():
            self.ensure_block()
            play_block(model, history, recorder, self.block, noise, until)
        run_blocks(self.planner, self.block, self.rng, model, history, recorder, noise, until)


def rolling_on_arms(
    agent: LearningAgent, task: Task, actions: ActionSet, *, ahead: int, play: int, rng: Rng, step: int
) -> RollingOnArms:
    """The policy of Rolling on a set of arms."""
    matrix, _ = check_memory_matrix(task.A0, actions.d, task.weight, task.gamma, variant=task.variant)
    A0 = writable(matrix)
    plans = ArmPlans(actions, m=task.m, gamma=task.gamma, A0=A0, ahead=ahead, variant=task.variant)
    tables = plans.tables() if task.switch == 0.0 else None
    if actions.known_ahead and tables is None:
        return RollingOnArms(agent, task, plans, play, rng=rng, step=step)
    policy = CompiledOnArms(agent, task, plans, play if actions.known_ahead else 1, rng=rng, step=step)
    memory, form = plans.memory
    shared: dict[str, Any] = {
        "learner": policy.learner,
        "memory": memory,
        "A0": form,
        "history": policy.history,
    }
    if tables is not None:
        policy.planner = TablePlanner(**shared, tables=tables, play=play)
    else:
        later = min(task.m, ahead - 1)
        policy.planner = RevealedPlanner(**shared, sets=plans.sets, later=later, futures=FUTURES)
    return policy


def _closes(arms: Any, m: int) -> tuple[int, int]:
    """Where a cycle begins and ends, in steps after the first m arms, whose last m decide what comes next."""
    seen: dict[bytes, int] = {}
    for t in range(len(arms) - m + 1):
        begin = seen.setdefault(arms[t : t + m].tobytes(), t)
        if begin < t:
            return begin, t
    return 0, 0


def recent_actions(recent: Array, block: BlockState) -> Array:
    """The last m actions, `recent` (m, d) those before the block."""
    played = played_actions(block)
    if is_done(block):
        _, passes, _ = cursor(block)
        played = np.tile(played, (min(passes, len(recent)), 1))
    rows: Array = np.concatenate((recent, played))
    return rows[len(rows) - len(recent) :]
