"""Live policies: own an agent at work in a real system, one step at a time.

A step is `act`, then `update` with its reward. A reward may come late or never: `act` goes on all the same.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import validation
from .._base.display import Displayed
from .._base.interrupts import interruptible
from .._base.types import Array, Seed
from ..agents.policy import Policy
from ..kernels.block_state import is_done, next_action, next_step
from ..kernels.learning import radius
from ..model.actions import ActionSet
from ..model.lbm import LBM
from .explanation import Explanation
from .pending import PATIENCE, PendingRewards
from .seeds import streams
from .state_file import VERSION, fill, fingerprint, read_state, write_state

if TYPE_CHECKING:
    from ..agents.base import Agent

#: Seconds from which on planning is worth a thread that can be interrupted.
_LONG = 0.1


class Live(Displayed):
    """An agent at work; made by `agent.start`.

    `act()` gives the action (d,) of the next step, `update(y)` its reward. With rewards in time the actions
    are those of `run`. A reward that comes late is reported with `update(y, step=t)`: it counts from the next
    plan on. One that never comes is simply not learned from (OM-Block, which learns from the sum of a block's
    rewards, does not learn from that block); the action counts as played.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0, sigma=0.0)
    >>> live = lbm.O3M(m=1, gamma=-2.0, horizon=100, L=4).start(lbm.Ball(2), seed=0)
    >>> past = []
    >>> for _ in range(20):
    ...     past.append(live.act())
    ...     live.update(env.expected_rewards(past)[-1])
    >>> live.t, live.theta.shape
    (20, (2,))
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
        self._policy = self._fresh(streams(seed)[1])
        self._pending = PendingRewards()
        self._seconds = math.inf  # that the last plan took
        self._lock = threading.RLock()  # a step, a reward and a file are of one moment

    def _facts(self) -> dict[str, Any]:
        return {"agent": self.agent, "t": self.t, "plans": self.plans, "theta": self.theta}

    def _fresh(self, rng: np.random.Generator) -> Policy:
        return self.agent._policy(self.actions, self._env, rng, 0)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    @property
    def t(self) -> int:
        """Actions given so far."""
        return int(next_step(self._policy.block))

    @property
    def plans(self) -> int:
        """Plans made so far."""
        return self._policy.plans

    @property
    def theta(self) -> Array | None:
        """The estimate, as of the last plan; None if the agent does not learn."""
        learner = self._policy.learner
        return None if learner is None else learner.estimator.theta.copy()

    @property
    def V_inv(self) -> Array | None:
        """The inverse of V, as of the last plan; None if the agent does not learn."""
        learner = self._policy.learner
        return None if learner is None else learner.estimator.V_inv.copy()

    @property
    def beta(self) -> float | None:
        """The radius: the confidence set is (theta - x)^T V (theta - x) <= beta^2; None without learning."""
        learner = self._policy.learner
        return None if learner is None else float(radius(learner.config, learner.estimator))

    def details(self) -> dict[str, Any]:
        """What the agent has to tell of its choices since it was started or loaded, as arrays by name."""
        return self._policy.details()

    def explain(self) -> Explanation:
        """What the agent believes, as of the last plan: print it, or take `as_dict()` or `plot()`.

        >>> import fastlbm as lbm
        >>> live = lbm.Auto().start(lbm.Ball(2), seed=0)
        >>> action = live.act()
        >>> sorted(live.explain().memory)
        [0, 1, 2, 3, 4, 5, 6, 7, 8]
        """
        with self._lock:
            return Explanation(step=self.t, **self._policy.beliefs())

    def act(self) -> Array:
        """The action (d,) of the next step, which is `t` - 1 afterwards."""
        with self._lock:
            self.actions.require(self.t + 1)
            policy = self._policy
            epoch, plans = policy.origin.epoch, policy.plans
            self._ensure_block()
            if policy.origin.epoch != epoch:
                self._pending = PendingRewards()  # a new epoch of Doubling has forgotten them
            if policy.plans != plans or self.t == 0:
                self._pending.begin(self.t, policy)
            elif policy.replans:
                self._pending.revise(policy)
            self._pending.expect(self.t)
            return next_action(policy.block)

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
        """The reward of a step: of the last one, or of an earlier `step` (0, 1, ...) that had none yet."""
        with self._lock:
            if self.t == 0:
                raise ValueError("update must come after act: there is no step to reward yet")
            y = y.item() if isinstance(y, np.ndarray) and y.ndim == 0 else y
            y = validation.real("y", y, low=-validation.LARGEST, high=validation.LARGEST)
            step = self.t - 1 if step is None else validation.integer("step", step, low=0, high=self.t - 1)
            if not self._pending.expects(step):
                hint = (
                    "which has its reward: call act() for the next step before its update(y)"
                    if step == self.t - 1
                    else f"which has its reward, or can have none any more: only the last {PATIENCE} steps "
                    "since the last restart of the agent can"
                )
                raise ValueError(f"step must be one whose reward is missing, got {step}, {hint}")
            self._pending.reward(step, y, self._policy)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the state to a file (a NumPy .npz without pickled objects), in one piece or not at all."""
        target = Path(path)
        with self._lock:
            header = {
                "agent": fingerprint(self.agent),
                "actions": fingerprint(self._env or self.actions),
                "generator": self._policy.rng.bit_generator.state,
                "policy": self._policy.cursor(),
            }
            state = {**self._policy.state(), **self._pending.state()}
            arrays = {name: array.copy() for name, array in state.items()}
        write_state(target, header, arrays)
        return target

    def load(self, path: str | os.PathLike[str]) -> Live:
        """Go on from a saved state of the same agent on the same set; unchanged if the file is not that."""
        header, arrays = read_state(Path(path))
        for name, value in (("agent", self.agent), ("actions", self._env or self.actions)):
            if header.get(name) != fingerprint(value):
                raise ValueError(f"path must be a state of the same {name}, {value!r}; got one of another")
        try:
            rng = np.random.default_rng(0)
            rng.bit_generator.state = header["generator"]
            policy = self._fresh(rng)
            policy.set_cursor(header["policy"])
            for name, array in policy.state().items():
                fill(name, array, arrays.pop(name))
            policy.check()
            pending = PendingRewards.restored(arrays, policy)
        except Exception as error:  # a forged file can make of it what it likes
            if header["version"] < VERSION:
                raise ValueError(
                    f"path must be a state that this version can go on from, got {str(path)!r} of version "
                    f"{header['version']}, in which {self.agent!r} kept other things: {error}"
                ) from None
            raise ValueError(f"path must be an undamaged state file, got {str(path)!r}: {error!r}") from None
        with self._lock:
            self._policy, self._pending = policy, pending
        return self
