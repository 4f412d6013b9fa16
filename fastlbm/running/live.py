"""Live policies: own an agent at work in a real system, one step at a time.

A step is `act`, then `update` with its reward. A reward may come late or never: `act` goes on all the same.
"""

from __future__ import annotations

import copy
import math
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.display import Displayed
from .._base.interrupts import interruptible
from .._base.types import Array, Seed
from ..agents.policy import Policy
from ..kernels.block_state import is_done, next_action, next_step
from ..kernels.learning import radius
from ..model.actions import ActionSet, Finite, Offered
from ..model.lbm import LBM
from .explanation import Explanation
from .pending import PATIENCE, PendingRewards
from .restoring import restored, set_form
from .seeds import streams
from .state_file import fingerprint, pack_state, read_state, unpack_state, write_state
from .told import arm_of, many_actions, many_rewards, names_of, offered_arms, one_action, one_reward

if TYPE_CHECKING:
    from ..agents.base import Agent

#: Seconds from which on planning is worth a thread that can be interrupted.
_LONG = 0.1
#: Steps of a log that are learned from at once.
_STRETCH = 1024


class Live(Displayed):
    """An agent at work; made by `agent.start`.

    `act()` gives the action (d,) of the next step, `update(y)` its reward. With rewards in time the actions
    are those of `run`. A reward that comes late is reported with `update(y, step=t)`: it counts from the next
    plan on. One that never comes is simply not learned from (OM-Block, which learns from the sum of a block's
    rewards, does not learn from that block); the action counts as played.

    `act(arms)` chooses among arms that are told at that step, whatever set the policy was started on.
    `observe` and `replay` tell it of actions that somebody else chose.

    Several threads may use one policy: each call is done as a whole before the next one. `step`, `arm`,
    `name` and an `update` without a step are about the last action that was given to the calling thread, or
    in a thread that was given none about the last one of all.

    Use it where rewards come from outside, as in a service; for simulations there is `run`.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0, sigma=0.0)
    >>> live = lbm.O3M(m=1, gamma=-2.0, horizon=100, L=4).start(lbm.Ball(2), seed=0)
    >>> past = []
    >>> for _ in range(20):
    ...     past.append(live.act())
    ...     live.update(env.expected_rewards(past)[-1])
    >>> live.t, live.step, live.missing, live.plans, (live.V_inv @ live.theta).shape, live.beta > 0.0
    (20, 19, [], 4, (2,), True)
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = live.save(f"{folder}/listener.state")
    ...     later = live.agent.start(lbm.Ball(2)).load(path).details
    """

    def __init__(self, agent: Agent, actions: ActionSet | LBM, seed: Seed = 0) -> None:
        self.agent = agent
        self._env = actions if isinstance(actions, LBM) else None
        self.actions: ActionSet = actions.actions if isinstance(actions, LBM) else actions
        if not isinstance(self.actions, ActionSet):
            hint = ""
            if isinstance(actions, (np.ndarray, Sequence)):
                hint = "; for arms write start(Finite(array)), a row each, for the ball start(Ball(d))"
            raise TypeError(
                "actions must be a Ball, a Finite, a Contextual or an LBM, got an object of type "
                f"{type(actions).__name__}{hint}"
            )
        self._offered = False  # whether the policy is one for arms that are told step by step
        self._policy = self._fresh(streams(seed)[1])
        self._pending = PendingRewards()
        self._plans_before = 0  # by policies for another set
        # The last actions that were played, by anybody: zeros before the first, NaN if nobody knows.
        self._recent = np.zeros((max(1, self._policy.span), self.actions.d))
        self._seconds = math.inf  # that the last plan took
        self._lock = threading.RLock()  # a step, a reward and a file are of one moment
        self._own = threading.local()  # what was given to each thread

    def _facts(self) -> dict[str, Any]:
        return {"agent": self.agent, "t": self.t, "plans": self.plans, "theta": self.theta}

    def _fresh(self, rng: np.random.Generator, step: int = 0) -> Policy:
        actions = Offered(self.actions.d) if self._offered else self.actions
        return self.agent._policy(actions, self._env, rng, step)

    def __getstate__(self) -> dict[str, Any]:
        # A copy, shallow or pickled, is a policy of its own, and of one moment.
        values = (self.agent, self.actions, self._env)
        with self._lock:
            mine = {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_own")}
            return copy.deepcopy(mine, {id(value): value for value in values})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock(), _own=threading.local())

    # --- what there is to know ----------------------------------------------------------------------------

    @property
    def t(self) -> int:
        """Actions so far: those given, and those of others that were observed."""
        return int(next_step(self._policy.block))

    @property
    def step(self) -> int | None:
        """The step of the last action, as `update` takes it; None before the first."""
        last: int = getattr(self._own, "step", self.t - 1)
        return last if last >= 0 else None

    @property
    def missing(self) -> list[int]:
        """The steps whose rewards have not come and may still come."""
        with self._lock:
            return self._pending.steps

    @property
    def arm(self) -> int | None:
        """The number of the last action among the arms of its step; None if it is none of them.

        >>> import fastlbm as lbm
        >>> live = lbm.Random().start(lbm.Finite([[1.0, 0.0], [0.0, 1.0]], names=["Blue", "Red"]), seed=1)
        >>> live.act(), live.arm, live.name
        (array([1., 0.]), 0, 'Blue')
        >>> live.act([[0.0, 1.0]]), live.arm, live.name
        (array([0., 1.]), 0, 'Red')
        """
        with self._lock:
            known: int | None = getattr(self._own, "arm", None)
            return self._arm_in(self._set_of_step()) if known is None else known

    @property
    def name(self) -> str | None:
        """The name of the last action, see `Finite`; None if it has none.

        That of the arms of its step if these have names, else that in the set that the policy was started on.

        >>> import fastlbm as lbm
        >>> songs = lbm.Finite([[1.0, 0.0], [0.0, 1.0]], names=["Blue", "Red"])
        >>> live = lbm.Random().start(songs, seed=1)
        >>> live.act(["Red"]), live.arm, live.name
        (array([0., 1.]), 0, 'Red')
        >>> live.observe("Blue", 0.4)
        >>> live.arm, live.name
        (0, 'Blue')
        """
        with self._lock:
            told, arm = self._set_of_step(), self.arm
            if names_of(told) is None:
                told, arm = self.actions, self._arm_in(self.actions)
            names = names_of(told)
            return None if names is None or arm is None else names[arm]

    def _arm_in(self, actions: ActionSet | None) -> int | None:
        """The number of the last action in a set."""
        action = getattr(self._own, "action", self._recent[-1])
        return None if self.step is None else arm_of(action, actions, self.step)

    def _set_of_step(self) -> ActionSet | None:
        """What the last action was chosen from; None if it was told in another life."""
        found: ActionSet | None = getattr(self._own, "told", None if self._offered else self.actions)
        return found

    @property
    def plans(self) -> int:
        """Plans made so far."""
        return self._plans_before + self._policy.plans

    @property
    def theta(self) -> Array | None:
        """The estimate, as of the last plan; None if the agent does not learn."""
        with self._lock:
            learner = self._policy.learner
            return None if learner is None else learner.estimator.theta.copy()

    @property
    def V_inv(self) -> Array | None:
        """The inverse of V, as of the last plan; None if the agent does not learn."""
        with self._lock:
            learner = self._policy.learner
            return None if learner is None else learner.estimator.V_inv.copy()

    @property
    def beta(self) -> float | None:
        """The radius: the confidence set is (theta - x)^T V (theta - x) <= beta^2; None without learning."""
        with self._lock:
            learner = self._policy.learner
            return None if learner is None else float(radius(learner.config, learner.estimator))

    def details(self) -> dict[str, Any]:
        """What the agent has to tell of its choices since it was started or loaded, as arrays by name."""
        with self._lock:
            return self._policy.details()

    def explain(self) -> Explanation:
        """What the agent believes, as of the last plan: print it, or take `as_dict()` or `plot()`.

        >>> import fastlbm as lbm
        >>> live = lbm.Auto().start(lbm.Ball(2), seed=0)
        >>> action = live.act()
        >>> sorted(live.explain().memory)
        [0, 1, 2, 3, 4, 5, 6, 7, 8, inf]
        """
        with self._lock:
            return Explanation(step=self.t, **self._policy.beliefs())

    # --- steps --------------------------------------------------------------------------------------------

    def act(self, arms: ArrayLike | Finite | None = None) -> Array:
        """The action (d,) of the next step, which is `t` - 1 afterwards.

        `arms` (K, d), or a `Finite` with names, or names of the set that the policy was started on, are those
        that can be played now, any number of them at any step. Later ones are not known: an agent that plans
        takes them to be like those before, see agents/offers.py. Every agent can do that but `OM` and
        `OMBlock`, which plan whole blocks, those with `switch` and `Corral` with `smooth`, which repeat them,
        and `Cyclic`.

        >>> import fastlbm as lbm
        >>> live = lbm.Rolling(m=1, gamma=-2.0).start(lbm.Ball(2), seed=0)
        >>> action = live.act([[1.0, 0.0], [0.6, 0.8]])
        >>> live.update(0.5)
        >>> live.act([[0.0, 1.0]]), live.arm
        (array([0., 1.]), 0)
        """
        told = None if arms is None else offered_arms(arms, self.actions)
        with self._lock:
            if told is None:
                self.actions.require(self.t + 1)
            if (told is not None) != self._offered:
                self._change_policy(told is not None)
            policy = self._policy
            epoch, plans = policy.origin.epoch, policy.plans
            if told is not None:
                policy.offer(told.sets()[0], self._recent)
            self._ensure_block()
            self._forget_if_new(epoch)
            if policy.plans != plans or self.t == 0:
                self._pending.begin(self.t, policy)
            elif policy.replans:
                self._pending.revise(policy)
            self._pending.expect(self.t)
            action = next_action(policy.block)
            self._push(action[None])
            self._give(action, told or self.actions)
            return action

    def _change_policy(self, offered: bool) -> None:
        """From the set to arms that are offered, or back: what was learned stays, plans are made anew."""
        before, self._offered = self._policy, offered
        try:
            policy = self._fresh(before.rng, self.t)
        except BaseException:
            self._offered = not offered
            raise
        before.interrupt()
        self._take_over(policy, before)

    def _take_over(self, policy: Policy, before: Policy) -> None:
        """The policy goes on in the place of another one, whose block is over."""
        policy.inherit(before)
        policy.set_history(np.nan_to_num(self._recent))
        self._plans_before += before.plans - policy.plans
        self._pending.close()
        self._policy = policy

    def _forget_if_new(self, epoch: int) -> None:
        if self._policy.origin.epoch != epoch:
            self._pending = PendingRewards()  # a new epoch of Doubling has forgotten them

    def _push(self, actions: Array) -> None:
        """These were played last."""
        self._recent = np.concatenate((self._recent, actions))[-len(self._recent) :]

    def _give(self, action: Array, told: ActionSet, arm: int | None = None) -> None:
        """The last step was this thread's; `arm` is the number of the action in the set, if that was told."""
        own = self._own
        own.step, own.action, own.told, own.arm = self.t - 1, action.copy(), told, arm

    def _ensure_block(self) -> None:
        """There is something to play afterwards; a plan that takes long can be interrupted and made later."""
        policy = self._policy
        begin = time.perf_counter()
        if not (policy.replans or is_done(policy.block)):
            return policy.ensure_block()
        if self._seconds < _LONG:
            policy.ensure_block()
        else:
            before, stream = policy.cursor(), policy.rng.bit_generator.state
            arrays = {name: array.copy() for name, array in policy.state().items()}
            try:
                interruptible(policy.ensure_block, policy.stop)
            except KeyboardInterrupt:
                policy.stop(False)
                policy.rng.bit_generator.state = stream
                policy.set_cursor(before)
                for name, array in policy.state().items():
                    array[...] = arrays[name]
                raise
        self._seconds = time.perf_counter() - begin
        return None

    def update(self, y: float, step: int | None = None) -> None:
        """The reward of a step: of the last one, or of an earlier `step` (0, 1, ...) that had none yet.

        From several threads the last one is that of the calling thread, see the top of the class.
        """
        y = one_reward("y", y)
        with self._lock:
            if self.t == 0:
                raise ValueError("update must come after act: there is no step to reward yet")
            last = getattr(self._own, "step", self.t - 1)
            step = last if step is None else validation.integer("step", step, low=0, high=self.t - 1)
            if not self._pending.expects(step):
                hint = (
                    "which has its reward: call act() for the next step before its update(y)"
                    if step == self.t - 1
                    else f"which has its reward, or can have none any more: only the last {PATIENCE} steps "
                    "since the last restart of the agent can"
                )
                raise ValueError(f"step must be one whose reward is missing, got {step}, {hint}")
            self._pending.reward(step, y, self._policy)

    # --- what others play ---------------------------------------------------------------------------------

    def observe(self, action: ArrayLike, y: float | None = None) -> None:
        """Somebody else chose an action (d,) of the unit ball, with the reward y; None if there is none yet.

        Where the set of the policy has names, one of them is an action as well.

        It takes a step, counts as played and is learned from, at once, with the feature that it really had.
        A reward that comes later is told by `update` with the step. The block that the agent was playing ends
        there: what it brought is learned by the agent's rule (O3M and OM leave out the first m actions of a
        block), and the next action is planned anew, after this one. OM-Block knows the features of whole
        blocks alone: for it the action counts as played, and teaches nothing.

        >>> import fastlbm as lbm
        >>> live = lbm.OFUL(horizon=100).start(lbm.Ball(2), seed=0)
        >>> live.observe([0.6, 0.8], 1.0)
        >>> live.t, live.theta
        (1, array([0.3, 0.4]))
        """
        row, arm = one_action(action, self.actions)
        reward = math.nan if y is None else one_reward("y", y)
        with self._lock:
            window = np.concatenate((self._recent[len(self._recent) - self._policy.span :], row[None]))
            self._watch(row[None], np.array([reward]))
            if y is None:
                self._pending.expect(self.t - 1, window)
            self._give(row, self.actions, arm)

    def replay(self, actions: ArrayLike, rewards: ArrayLike) -> Live:
        """A whole log: actions (n, d) that somebody played, one step each, and rewards (n,), NaN for none.

        As `observe` for each, at once; n names are actions as well. Rewards that are missing are given up.
        Returns itself.

        >>> import fastlbm as lbm
        >>> live = lbm.OFUL(horizon=100).start(lbm.Ball(2), seed=0)
        >>> live.replay([[1.0, 0.0], [0.0, 1.0]], [0.5, float("nan")]).theta
        array([0.25, 0.  ])
        """
        rows = many_actions(actions, self.actions)
        y = many_rewards(rewards, len(rows))
        with self._lock:
            for i in range(0, len(rows), _STRETCH):
                self._watch(rows[i : i + _STRETCH], y[i : i + _STRETCH])
            self._own = threading.local()
        return self

    def _watch(self, actions: Array, rewards: Array) -> None:
        epoch = self._policy.origin.epoch
        self._policy.watch(self._recent, actions, rewards)
        self._pending.close()
        self._forget_if_new(epoch)
        self._push(actions)

    # --- its state ----------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the state to a file (a NumPy .npz without pickled objects), in one piece or not at all."""
        target = Path(path)
        write_state(target, *self._state())
        return target

    def load(self, path: str | os.PathLike[str]) -> Live:
        """Go on from a saved state of the same agent on the same set; unchanged if the file is not that.

        A `Finite` set may have changed, in arms and in names: what was learned stays, and plans are made
        anew. It must have the same dimension.
        """
        return self._restore("path", *read_state(Path(path)), origin=repr(str(path)))

    def to_bytes(self) -> bytes:
        """The state as bytes, for a database of many: smaller and faster than a file.

        >>> import fastlbm as lbm
        >>> agent, ball = lbm.OFUL(horizon=100), lbm.Ball(2)
        >>> live = agent.start(ball, seed=0)
        >>> same = bool((agent.start(ball).from_bytes(live.to_bytes()).act() == live.act()).all())
        >>> same
        True
        """
        return pack_state(*self._state())

    def from_bytes(self, data: bytes) -> Live:
        """Go on from what `to_bytes` gave, under the rules of `load`."""
        return self._restore("data", *unpack_state(data), origin=f"{len(data)} bytes")

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays, of one moment."""
        with self._lock:
            header = {
                "agent": fingerprint(self.agent),
                "actions": fingerprint(self._env or self.actions),
                "set": set_form(self._env or self.actions),
                "generator": self._policy.rng.bit_generator.state,
                "policy": self._policy.cursor(),
                "offered": self._offered,
                "plans": self._plans_before,
            }
            state = {**self._policy.state(), **self._pending.state(), "live.recent": self._recent}
            return header, {name: array.copy() for name, array in state.items()}

    def _restore(self, what: str, header: dict[str, Any], arrays: dict[str, Array], origin: str) -> Live:
        found = restored(self.agent, self._env or self.actions, header, arrays, what=what, origin=origin)
        with self._lock:
            self._policy, self._pending, self._recent = found.policy, found.pending, found.recent
            self._offered, self._plans_before = found.offered, found.plans
            self._own = threading.local()
        return self
