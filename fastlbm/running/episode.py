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
from ..agents.base import Agent, as_agent
from ..kernels.playing import elapsed, make_recorder, recorded
from ..kernels.rewards import make_history
from ..model.lbm import LBM
from .seeds import streams

SPACINGS = ("linear", "log")

#: Seconds that a kernel runs before Python may look at Ctrl-C and draw the progress.
_STRETCH_SECONDS = 0.2


@dataclass(frozen=True, repr=False)
class Run(Displayed):
    """One episode: cumulative expected and observed reward after the steps `t`.

    `actions` (T, d) if they were kept. `plans` counts the blocks that were planned. `complete` is False if
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
    env: LBM,
    agent: Agent,
    T: int,
    seed: Seed = 0,
    record: int | ArrayLike = 1000,
    keep_actions: bool = False,
    spacing: str = "linear",
    progress: bool = False,
) -> Run:
    """Plays T steps of the model with the agent.

    `record` is the number of points that are recorded, all steps if it is T or more, or the steps
    themselves; `spacing` is "linear" or "log". Memory does not grow with T unless `keep_actions`. Ctrl-C
    ends a run early with what was recorded.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([1.0, 0.0], m=1, gamma=-1.0, sigma=0.0)
    >>> run(env, lbm.Cyclic([[1.0, 0.0], [0.0, 1.0]]), T=6, record=3).reward
    array([1., 2., 3.])
    """
    points, T = check_run(env, T, record, spacing)
    as_agent("agent", agent)
    if not isinstance(seed, np.random.Generator):  # which would move on
        streams(seed)
    with Progress(T if progress else 0, "steps") as bar:
        return play_episode(env, agent, T, seed, points=points, keep_actions=keep_actions, report=bar.add)


def check_run(env: LBM, T: int, record: int | ArrayLike, spacing: str) -> tuple[Integers, int]:
    """The steps that are recorded and T, if these are arguments of a run."""
    if not isinstance(env, LBM):
        raise TypeError(f"env must be an LBM, got {env!r}")
    T = validation.integer("T", T, low=1, high=2**53)
    env.actions.require(T)
    return recorded_steps(T, record, validation.choice("spacing", spacing, SPACINGS)), T


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


def play_episode(
    env: LBM,
    agent: Agent,
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
    noise, own = streams(seed)
    policy = agent._policy(env.actions, env, own, 0)
    model = env._params()
    history = make_history(model)
    recorder = make_recorder(points.copy(), T if keep_actions else 0, env.d)
    t, stretch = 0, 256
    try:
        while t < T and not (stop is not None and stop.is_set()):
            begin = time.perf_counter()
            until = min(T, t + stretch)
            interruptible(
                lambda until=until: policy.advance(model, history, recorder, noise, until),  # type: ignore[misc]
                stop=policy.stop,
                is_over=None if stop is None else stop.is_set,
                seconds=policy.plan_seconds,
            )
            seconds = time.perf_counter() - begin
            if report is not None:
                report(until - t)
            t = until
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
        plans=policy.plans,
        complete=steps >= T,
        details=policy.details(),
    )
