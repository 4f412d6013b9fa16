"""Runs: own whole episodes and what is recorded of them; may touch agents and the model."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.display import Displayed
from .._base.interrupts import interruptible
from .._base.pool import Progress
from .._base.types import Array, Integers, Seed
from ..agents.base import Agent
from ..kernels.playing import Recorder, elapsed, make_recorder, recorded
from ..kernels.rewards import make_history
from ..model.lbm import LBM
from .own import AgentLike, EnvironmentLike, as_agent_like, as_environment, start
from .seeds import children, streams
from .stepwise import StepwiseRun

SPACINGS = ("linear", "log")

#: Seconds that a run goes on before Python may look at Ctrl-C and draw the progress.
_STRETCH_SECONDS = 0.2


@dataclass(frozen=True, repr=False)
class Run(Displayed):
    """One episode: cumulative expected and observed reward after the steps `t`.

    `actions` (T, d) if they were kept. What an environment of your own does not know to expect counts in
    `reward` as it was observed. `plans` counts the blocks that were planned. `complete` is False if
    the run was interrupted: what was recorded until then is here. `details` is what the agent has to tell,
    such as which candidate played when; long logs are thinned.
    """

    t: Integers
    reward: Array
    observed: Array
    actions: Array | None
    plans: int
    complete: bool = True
    details: dict[str, Any] = field(default_factory=dict)


def run(
    env: LBM | EnvironmentLike,
    agent: AgentLike,
    T: int,
    seed: Seed = 0,
    record: int | ArrayLike = 1000,
    keep_actions: bool = False,
    spacing: str = "linear",
    progress: bool = False,
) -> Run:
    """Plays T steps of the model with the agent.

    Either may be of your own making, see `OwnAgent` and `OwnEnvironment`; the run then goes step by step.

    `record` is the number of points that are recorded, all steps if it is T or more, or the steps
    themselves; `spacing` is "linear" or "log". Memory does not grow with T unless `keep_actions`. Ctrl-C
    ends a run early with what was recorded.

    Use it for one run in memory; `run_many` compares agents over seeds.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([1.0, 0.0], m=1, gamma=-1.0, sigma=0.0)
    >>> run(env, lbm.Cyclic([[1.0, 0.0], [0.0, 1.0]]), T=6, record=3).reward
    array([1., 2., 3.])
    """
    points, T = check_run(env, T, record, spacing)
    as_agent_like("agent", agent)
    if not isinstance(seed, np.random.Generator):  # which would move on
        streams(seed)
    with Progress(T if progress else 0, "steps") as bar:
        return play_episode(env, agent, T, seed, points=points, keep_actions=keep_actions, report=bar.add)


def check_run(
    env: LBM | EnvironmentLike, T: int, record: int | ArrayLike, spacing: str
) -> tuple[Integers, int]:
    """The steps that are recorded and T, if these are arguments of a run."""
    actions = as_environment("env", env).actions
    T = validation.integer("T", T, low=1, high=2**53)
    actions.require(T)
    return recorded_steps(T, record, validation.choice("spacing", spacing, SPACINGS)), T


def check_pair(env: LBM | EnvironmentLike, agent: AgentLike) -> None:
    """Raise what the agent has to say if it cannot play in the environment."""
    if isinstance(env, LBM) and isinstance(agent, Agent):
        agent._policy(env.actions, env, np.random.default_rng(0), 0)
    else:
        start(agent, env.actions, children(0)[1])


def recorded_steps(T: int, record: int | ArrayLike, spacing: str) -> Integers:
    """The steps after which the sums are recorded."""
    if np.ndim(record) > 0:
        given = validation.array("record", record, (None,))
        inside = len(given) > 0 and given[0] >= 1 and given[-1] <= T
        if not inside or (given != np.floor(given)).any() or (np.diff(given) <= 0).any():
            raise ValueError(f"record must hold increasing steps from 1 to T={T}, got {record!r}")
        return given.astype(np.int64)
    count = validation.integer("record", record, low=1)
    if count >= T:
        return np.arange(1, T + 1)
    if spacing == "log":
        return np.unique(np.geomspace(1, T, count).round().astype(np.int64))
    return np.array([-(-T * k // count) for k in range(1, count + 1)], dtype=np.int64)


class _CompiledRun:
    """One run of an agent of the package in the built-in model: compiled code decides and pays."""

    def __init__(self, env: LBM, agent: Agent, seed: Seed) -> None:
        self._noise, own = streams(seed)
        self._policy = agent._policy(env.actions, env, own, 0)
        self._model = env._params()
        self._history = make_history(self._model)
        self.stop, self.details = self._policy.stop, self._policy.details

    @property
    def plan_seconds(self) -> float:
        """About how long compiled code may run without a look at signals."""
        return self._policy.plan_seconds

    @property
    def plans(self) -> int:
        """Plans made so far."""
        return self._policy.plans

    def advance(self, recorder: Recorder, until: int) -> None:
        """Play until so many steps are over."""
        self._policy.advance(self._model, self._history, recorder, self._noise, until)


def play_episode(
    env: LBM | EnvironmentLike,
    agent: AgentLike,
    T: int,
    seed: Seed,
    *,
    points: Integers,
    keep_actions: bool = False,
    report: Callable[[int], None] | None = None,
    stop: threading.Event | None = None,
) -> Run:
    """One run, in stretches short enough to be interrupted; its sums are recorded after the steps `points`.

    `report` gets the length of each stretch that was played; `stop` ends the run early from another thread.
    """
    if isinstance(env, LBM) and isinstance(agent, Agent):
        player: _CompiledRun | StepwiseRun = _CompiledRun(env, agent, seed)
    else:
        player = StepwiseRun(env, agent, seed, _STRETCH_SECONDS)
    recorder = make_recorder(points.copy(), T if keep_actions else 0, env.actions.d)
    t, stretch = 0, 256
    try:
        while t < T and not (stop is not None and stop.is_set()):
            begin = time.perf_counter()
            until = min(T, t + stretch)
            interruptible(
                lambda until=until: player.advance(recorder, until),  # type: ignore[misc]
                stop=player.stop,
                is_over=None if stop is None else stop.is_set,
                seconds=player.plan_seconds,
            )
            seconds = time.perf_counter() - begin
            before, t = t, int(elapsed(recorder))
            if report is not None:
                report(t - before)
            # The first call may have compiled: grow and shrink by small factors only.
            stretch = max(
                64, min(int(stretch * min(4.0, _STRETCH_SECONDS / max(seconds, 1e-9))), 4 * stretch)
            )
    except KeyboardInterrupt:
        if stop is not None and not stop.is_set():
            raise
        if stop is None:
            warnings.warn(f"interrupted after {elapsed(recorder)} of {T} steps", RuntimeWarning, stacklevel=3)
    count, steps = recorded(recorder), int(elapsed(recorder))
    return Run(
        t=points[:count],
        reward=recorder.reward[:count],
        observed=recorder.observed[:count],
        actions=recorder.actions[:steps] if keep_actions else None,
        plans=player.plans,
        complete=steps >= T,
        details=player.details(),
    )
