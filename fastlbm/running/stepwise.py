"""Step by step: owns a run in which Python decides or pays, as of agents and environments of your own."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._base.types import Array, Seed
from .._base.values import writable
from ..agents.base import Agent
from ..kernels.playing import Recorder, elapsed, record_step
from ..kernels.rewards import make_history
from ..kernels.stepping import play_step
from ..model.lbm import LBM
from .own import (
    AgentLike,
    EnvironmentLike,
    OwnCodeError,
    called,
    checked_action,
    checked_rewards,
    name_of,
    start,
)
from .seeds import children


class SteppedModel:
    """The built-in model as an environment: rewards and noise are, to the last bit, those of a compiled run.

    >>> import fastlbm as lbm
    >>> env = SteppedModel(lbm.LBM([1.0, 0.0], m=1, gamma=-1.0, sigma=0.0))
    >>> env.reset(0)
    >>> [env.step([1.0, 0.0]) for _ in range(2)]
    [(1.0, 1.0), (0.5, 0.5)]
    """

    def __init__(self, model: LBM) -> None:
        self.actions = model.actions
        self._model = model._params()
        self._history, self._noise = make_history(self._model), np.random.default_rng(0)

    def reset(self, seed: Seed) -> None:
        """Begin anew; the noise is that of `np.random.default_rng(seed)`."""
        self._history, self._noise = make_history(self._model), np.random.default_rng(seed)

    def step(self, action: Array) -> tuple[float, float]:
        """Observed and expected reward of the action (d,)."""
        row = writable(np.ascontiguousarray(action, dtype=np.float64))
        observed, expected = play_step(self._model, self._history, row, self._noise)
        return observed, expected


class StepwiseRun:
    """One run of an agent in an environment; what is not of the package is a copy of it, and is checked.

    It plays in stretches of so many `seconds`.
    """

    def __init__(self, env: LBM | EnvironmentLike, agent: AgentLike, seed: Seed, seconds: float) -> None:
        self._seconds = seconds
        noise, own = children(seed)
        self._agent_is_own, self._env_is_own = not isinstance(agent, Agent), not isinstance(env, LBM)
        self._agent_name, self._env_name = name_of(agent), name_of(env)
        if isinstance(env, LBM):
            self._env: EnvironmentLike = SteppedModel(env)
        else:
            self._env = called(f"a copy of {self._env_name}", copy.deepcopy, env)
        called(f"reset(seed) of {self._env_name}", self._env.reset, noise)
        self._at_work = start(agent, self._env.actions, own)

    #: Python looks at signals between any two steps.
    plan_seconds = 0.0

    @property
    def plans(self) -> int:
        """Plans made so far, of an agent that counts them."""
        return int(getattr(self._at_work, "plans", 0))

    def stop(self, on: bool) -> None:
        """Nothing is compiled that would have to be stopped."""

    def details(self) -> dict[str, Any]:
        """What the agent has to tell of the run."""
        tell = getattr(self._at_work, "details", None)
        if not callable(tell):
            return {}
        found = called(f"details() of {self._agent_name}", tell)
        if not isinstance(found, Mapping):
            raise OwnCodeError(f"details() of {self._agent_name} must return a mapping, got {found!r}")
        return dict(found)

    def advance(self, recorder: Recorder, until: int) -> None:
        """Play until so many steps are over, or the seconds of a stretch are; one step at least."""
        end = time.perf_counter() + self._seconds
        while (t := int(elapsed(recorder))) < until:
            self._play(recorder, t)
            if time.perf_counter() > end:
                return

    def _play(self, recorder: Recorder, t: int) -> None:
        """Step t: 0, 1, ..."""
        env, at_work, at = self._env, self._at_work, f"step {t + 1}: "
        if self._agent_is_own:
            what = f"{at}act() of {self._agent_name}"
            action = checked_action(what, called(what, at_work.act), env.actions, t)
        else:
            action = np.asarray(at_work.act())
        if self._env_is_own:
            what = f"{at}step(action) of {self._env_name}"
            observed, expected = checked_rewards(what, called(what, env.step, action.copy()))
        else:
            observed, expected = env.step(action)
        if self._agent_is_own:
            called(f"{at}update({observed:.6g}) of {self._agent_name}", at_work.update, observed)
        else:
            at_work.update(observed)
        record_step(recorder, action, observed, observed if expected is None else expected)
