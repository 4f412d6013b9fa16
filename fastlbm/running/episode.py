"""Runs: own whole episodes and what is recorded of them; may touch agents and the model.

The seed of a run gives two streams: the noise, the same for every agent, and the agent's own draws.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base import validation
from .._base.validation import Array, Seed
from ..agents.base import Agent, as_agent
from ..kernels.playing import elapsed, make_recorder, recorded
from ..kernels.rewards import make_history
from ..model.lbm import LBM

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..experiments.results import StudyResults

SPACINGS = ("linear", "log")

#: Seconds that a kernel runs before Python may look at Ctrl-C and draw the progress.
_BREATH = 0.2


def streams(seed: Seed) -> tuple[np.random.Generator, np.random.Generator]:
    """The generators of the noise and of the agent; the same for equal seeds, however often asked."""
    if isinstance(seed, np.random.Generator):
        seed = np.random.SeedSequence(seed.integers(2**32, size=4).tolist())
    elif not isinstance(seed, np.random.SeedSequence):
        validation.generator("seed", seed)
        seed = np.random.SeedSequence(seed)
    noise, agent = (
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, i), pool_size=seed.pool_size)
        for i in range(2)
    )
    return np.random.default_rng(noise), np.random.default_rng(agent)


@dataclass(frozen=True)
class Run:
    """One episode: cumulative expected and observed reward after the steps `t`.

    `actions` (T, d) if they were kept. `plans` counts the blocks that were planned. `complete` is False if
    the run was interrupted: what was recorded until then is here. `details` is what the agent has to tell,
    such as which candidate played when; long logs are thinned.
    """

    t: NDArray[np.int64]
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
    points, T = _check(env, T, record, spacing)
    as_agent("agent", agent)
    if not isinstance(seed, np.random.Generator):  # which would move on
        streams(seed)
    bar = _Bar(T if progress else 0, "steps")
    with bar:
        return _episode(env, agent, T, seed, points, keep_actions, bar.add, None)


def _check(env: LBM, T: int, record: int | ArrayLike, spacing: str) -> tuple[NDArray[np.int64], int]:
    if not isinstance(env, LBM):
        raise TypeError(f"env must be an LBM, got {env!r}")
    T = validation.integer("T", T, low=1)
    env.actions.require(T)
    return _points(T, record, validation.choice("spacing", spacing, SPACINGS)), T


def _points(T: int, record: int | ArrayLike, spacing: str) -> NDArray[np.int64]:
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


def _episode(
    env: LBM,
    agent: Agent,
    T: int,
    seed: Seed,
    points: NDArray[np.int64],
    keep_actions: bool,
    report: Callable[[int], None] | None = None,
    stop: threading.Event | None = None,
) -> Run:
    """One run, in stretches short enough to be interrupted."""
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
            policy.advance(model, history, recorder, noise, until)
            seconds = time.perf_counter() - begin
            if report is not None:
                report(until - t)
            t = until
            # The first call may have compiled: grow and shrink by small factors only.
            stretch = max(64, min(int(stretch * min(4.0, _BREATH / max(seconds, 1e-9))), 4 * stretch))
    except KeyboardInterrupt:
        if stop is not None:
            raise
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


@dataclass(frozen=True)
class Results:
    """Runs of several agents and seeds, by (agent, seed); `complete` unless they were interrupted."""

    runs: dict[tuple[str, int], Run]
    env: LBM = field(repr=False)
    complete: bool = True

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row for each recorded point: agent, seed, t, reward, observed (cumulative)."""
        import pandas as pd

        parts = [
            pd.DataFrame({"agent": name, "seed": seed, "t": r.t, "reward": r.reward, "observed": r.observed})
            for (name, seed), r in self.runs.items()
        ]
        columns = ["agent", "seed", "t", "reward", "observed"]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)

    def _study(self) -> StudyResults:
        from ..experiments.results import StudyResults

        frame = self.frame.copy()
        frame.insert(0, "T", int(frame["t"].max()))
        frame.insert(0, "env", "environment")
        return StudyResults(frame, {"environment": self.env})

    def summary(self, confidence: float = 0.95) -> pd.DataFrame:
        """Means, intervals and paired tests, see `StudyResults.summary`."""
        return self._study().summary(confidence)

    def plot(self, kind: str = "reward", comparator: str = "opt", band: str = "bootstrap") -> Figure:
        """Curves with bands, see `StudyResults.plot`."""
        return self._study().plot(kind, comparator, band)


def run_many(
    env: LBM,
    agents: Mapping[str, Agent],
    T: int,
    seeds: int | Iterable[int] = 20,
    executor: Executor | int | None = None,
    progress: bool = False,
    record: int | ArrayLike = 1000,
    spacing: str = "linear",
    keep_actions: bool = False,
) -> Results:
    """Runs every agent with every seed; each run is that of `run` with the same seed.

    `seeds` is a number, for 0, 1, ..., or the seeds themselves. All agents meet the same noise for the same
    seed and step. `executor` is a number of threads (by default one a core) or any
    `concurrent.futures.Executor`; what is computed does not depend on it, nor on the order of the seeds.
    Ctrl-C ends early with the runs that are finished.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([1.0, 0.0], m=1, gamma=-1.0)
    >>> results = run_many(env, {"greedy": lbm.OracleGreedy()}, T=100, seeds=2, record=1)
    >>> results.frame[["agent", "seed", "t"]].values.tolist()
    [['greedy', 0, 100], ['greedy', 1, 100]]
    """
    points, T = _check(env, T, record, spacing)
    if not isinstance(agents, Mapping) or not agents:
        raise TypeError(f"agents must map names to agents, at least one, got {agents!r}")
    for name, agent in agents.items():
        as_agent(f"agents[{name!r}]", agent)._policy(env.actions, env, np.random.default_rng(0), 0)
    every = _seeds(seeds)
    work = [(name, seed) for name in agents for seed in every]
    stop = threading.Event()
    own = executor is None or isinstance(executor, (int, np.integer))
    if own:
        count = os.cpu_count() or 1 if executor is None else validation.integer("executor", executor, low=1)
        executor = ThreadPoolExecutor(count)
    elif not isinstance(executor, Executor):
        raise TypeError(f"executor must be a concurrent.futures.Executor, a number or None, got {executor!r}")
    done: dict[tuple[str, int], Run] = {}
    bar = _Bar(T * len(work) if progress else 0, "steps")
    futures: dict[Future[Run], tuple[str, int]] = {}
    with bar:
        try:
            # Compilation takes a global lock: once before the threads start.
            for agent in agents.values() if own else ():
                _episode(env, agent, 1, 0, np.ones(1, dtype=np.int64), False, None, stop)
            for name, seed in work:
                extra = (bar.add, stop) if own else ()
                future = executor.submit(_episode, env, agents[name], T, seed, points, keep_actions, *extra)
                futures[future] = (name, seed)
            for future in as_completed(futures):
                result = future.result()
                if result.complete:
                    done[futures[future]] = result
                if not own:
                    bar.add(T)
        except KeyboardInterrupt:
            stop.set()
            for future in futures:
                future.cancel()
            warnings.warn(
                f"interrupted with {len(done)} of {len(work)} runs finished", RuntimeWarning, stacklevel=2
            )
        finally:
            stop.set()
            if own:
                executor.shutdown(cancel_futures=True)
    return Results({key: done[key] for key in work if key in done}, env, len(done) == len(work))


def _seeds(seeds: int | Iterable[int]) -> list[int]:
    if isinstance(seeds, Iterable):
        every = sorted(validation.integer("seeds", s, low=0) for s in seeds)
        if not every or len(set(every)) < len(every):
            raise ValueError(f"seeds must be distinct integers >= 0, at least one, got {seeds!r}")
        return every
    return list(range(validation.integer("seeds", seeds, low=1)))


class _Bar:
    """A progress bar that threads may advance; nothing for a total of 0."""

    def __init__(self, total: int, unit: str, done: int = 0) -> None:
        self._lock = threading.Lock()
        self._bar: Any = None
        if total > 0:
            from tqdm import tqdm

            self._bar = tqdm(total=total, initial=done, unit=f" {unit}", unit_scale=True, smoothing=0.1)

    def add(self, steps: int) -> None:
        if self._bar is not None:
            with self._lock:
                self._bar.update(steps)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
