"""Many runs in one environment: owns agents x seeds in memory; may touch workers and the statistics."""

from __future__ import annotations

import os
import pickle
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.display import Displayed
from .._base.pool import Pool, Progress
from ..model.lbm import LBM
from ..running.episode import Run, check_pair, check_run, play_episode
from ..running.own import AgentLike, EnvironmentLike, as_agent_like, name_of
from .parameters import as_columns, of_agent, of_env
from .replay import replay_run
from .results import StudyResults
from .store import origin

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

COLUMNS = ("agent", "seed", "t", "reward", "observed")


@dataclass(frozen=True, repr=False)
class Results(Displayed):
    """Runs of several agents and seeds, by (agent, seed); `complete` unless they were interrupted."""

    runs: dict[tuple[str, int], Run]
    env: LBM | EnvironmentLike = field(repr=False)
    complete: bool = True
    agents: Mapping[str, AgentLike] = field(default_factory=dict, repr=False)

    def _facts(self) -> dict[str, Any]:
        agents = list(dict.fromkeys(name for name, _ in self.runs))
        return {"runs": len(self.runs), "agents": agents, "complete": self.complete}

    def _repr_html_(self) -> str:
        return super()._repr_html_() + (self.as_study().summary_html() if self.runs else "")

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row for each recorded point: agent, seed, t, reward, observed (cumulative)."""
        import pandas as pd

        parts = [
            pd.DataFrame({"agent": name, "seed": seed, "t": r.t, "reward": r.reward, "observed": r.observed})
            for (name, seed), r in self.runs.items()
        ]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(COLUMNS))

    def as_study(self) -> StudyResults:
        """The same rows as those of a study with one environment and one horizon."""
        if not self.runs:
            raise ValueError("runs must hold at least one finished run, got none: they were interrupted")
        frame = self.frame.copy()
        frame.insert(0, "T", int(frame["t"].max()))
        frame.insert(0, "env", "environment")
        every = len({seed for _, seed in self.runs})
        there = Counter(name for name, _ in self.runs)
        T = int(frame["T"].iloc[0])
        missing = {("environment", name, T): every - count for name, count in there.items() if count < every}
        told = [of_env(self.env) | of_agent(self.agents.get(name)) for name in there]
        place = {name: k for k, name in enumerate(there)}
        index = np.array([place[name] for name in frame["agent"]], dtype=np.int64)
        frame = frame.assign(**as_columns(told, index))
        envs = {"environment": self.env} if isinstance(self.env, LBM) else {}
        name, facts = f"Runs with {self._title}", self._origin(T)
        return StudyResults(frame, envs, name, missing=missing, facts=facts, replay=self._replay)

    @property
    def _title(self) -> str:
        """The parameters of the model, or the name of an environment of one's own."""
        if not isinstance(self.env, LBM):
            return name_of(self.env)
        told = of_env(self.env)
        shown = ("d", "m", "gamma", *LBM._LATER, "sigma")
        return ", ".join(f"{name}={_short(told[name])}" for name in shown if name in told)

    def _origin(self, T: int) -> dict[str, Any]:
        """What a report says of where the rows come from."""
        asked = {"seeds": len({seed for _, seed in self.runs}), "T": T}
        points = {len(run.t) for run in self.runs.values()}
        return {"study": {**asked, "record": max(points)}, **origin()}

    def _replay(self, _: str, agent: str, T: int, steps: int, seed: int = 0) -> dict[str, Any] | None:
        return replay_run(self.env, self.agents.get(agent), min(T, steps), seed)

    def summary(self, confidence: float = 0.95) -> pd.DataFrame:
        """Means, intervals and paired tests, see `StudyResults.summary`; without a column `env`."""
        return self.as_study().summary(confidence).drop(columns="env")

    def plot(
        self, kind: str = "reward", comparator: str | None = None, band: str = "bootstrap", **look: Any
    ) -> Figure:
        """Curves with bands, see `StudyResults.plot`; the title has the parameters of the model."""
        look.setdefault("envs", {"environment": self._title})
        return self.as_study().plot(kind, comparator, band, **look)

    def report(
        self,
        path: str | os.PathLike[str] = "report.html",
        replace: bool = False,
        notes: Sequence[str] = (),
        progress: bool | str = True,
    ) -> Path:
        """Write one page that shows all of it in a browser, see `StudyResults.report`."""
        return self.as_study().report(path, replace, notes, progress)

    def export(self, path: str | os.PathLike[str], replace: bool = False) -> Path:
        """Write all rows, or the table for a paper, to a file, see `StudyResults.export`."""
        return self.as_study().export(path, replace)

    def latex(self, confidence: float = 0.95) -> str:
        """The summary as a LaTeX table, see `StudyResults.latex`."""
        return self.as_study().latex(confidence)


def run_many(
    env: LBM | EnvironmentLike,
    agents: Mapping[str, AgentLike],
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

    Agents and the environment may be of your own making, see `OwnAgent` and `OwnEnvironment`. Runs in which
    Python decides or pays share one core if they share a process: give them an executor with processes, to
    which their classes can be pickled, which those of a module can.

    A process pool should start its workers by "spawn" or "forkserver": a process that is forked while another
    thread compiles waits for ever for the compiler's lock. `fastlbm compile`, run once, leaves nothing to be
    compiled.

    Use it to compare agents over a few seeds; a `Study` keeps what it computes.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([1.0, 0.0], m=1, gamma=-1.0)
    >>> results = run_many(env, {"greedy": lbm.OracleGreedy()}, T=100, seeds=2, record=1)
    >>> results.frame[["agent", "seed", "t"]].values.tolist()
    [['greedy', 0, 100], ['greedy', 1, 100]]
    """
    points, T = check_run(env, T, record, spacing)
    if not isinstance(agents, Mapping) or not agents:
        raise TypeError(f"agents must map names to agents, at least one, got {agents!r}")
    for name, agent in agents.items():
        check_pair(env, as_agent_like(f"agents[{name!r}]", agent))
    if isinstance(executor, ProcessPoolExecutor):
        _check_pickles({"env": env, **{f"agents[{name!r}]": agent for name, agent in agents.items()}})
    numbers = _seeds(seeds)
    keys = [(name, seed) for name in agents for seed in numbers]
    pool = Pool(executor)
    done: dict[tuple[str, int], Run] = {}
    with Progress(T * len(keys) if progress else 0, "steps") as bar, pool:
        common: dict[str, Any] = {
            "env": env,
            "T": T,
            "points": points,
            "keep_actions": keep_actions,
            "stop": pool.stop,
        }
        if pool.has_own_threads:
            common["report"] = bar.add
        tasks = [((name, seed), {**common, "agent": agents[name], "seed": seed}) for name, seed in keys]
        short = {"env": env, "T": 1, "seed": 0, "points": np.ones(1, dtype=np.int64), "stop": pool.stop}
        try:
            pool.warm_up(play_episode, ({**short, "agent": agent} for agent in agents.values()))
            for key, result in pool.completed(play_episode, tasks, at_once=len(tasks)):
                if result.complete:
                    done[key] = result
                if not pool.has_own_threads:
                    bar.add(T)
        except KeyboardInterrupt:
            warnings.warn(
                f"interrupted with {len(done)} of {len(keys)} runs finished", RuntimeWarning, stacklevel=2
            )
    runs = {key: done[key] for key in keys if key in done}
    return Results(runs, env, complete=len(done) == len(keys), agents=dict(agents))


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def _check_pickles(parts: Mapping[str, Any]) -> None:
    """Raise a `TypeError` if something cannot go to another process."""
    for name, part in parts.items():
        try:
            pickle.dumps(part)
        except Exception as error:  # of a method of one's own, it may be any
            raise TypeError(
                f"{name} must be one that can be pickled, to go to other processes, got {part!r}: {error}"
            ) from error


def _seeds(seeds: int | Iterable[int]) -> list[int]:
    if isinstance(seeds, Iterable):
        given = list(seeds)
        every = sorted(validation.integer("seeds", s, low=0) for s in given)
        if not every or len(set(every)) < len(every):
            raise ValueError(f"seeds must be distinct integers >= 0, at least one, got {given!r}")
        return every
    return list(range(validation.integer("seeds", seeds, low=1)))
