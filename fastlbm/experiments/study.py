"""Studies: own the work of agents x environments x horizons x seeds, cut into pieces that are never lost.

A seed's run depends on the study's root seed and the seed's number alone (`SeedSequence(root,
spawn_key=(number,))`), so any order, any worker and any repetition gives the same bits.
"""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from .._base.pool import Pool, Progress
from ..running.episode import play_episode, recorded_steps
from . import grammar
from .grammar import Cell, Spec
from .results import StudyResults
from .store import Store

#: Seconds that a piece should take, and the most seeds in one.
PIECE_SECONDS, MOST_SEEDS = 0.3, 1024
#: Seconds of a step until a piece was timed: about what O3M takes.
STEP_SECONDS = 1e-5


class Study:
    """A study file, or the same as a nested mapping.

    >>> study = Study.from_dict({
    ...     "T": 100, "seeds": 2, "record": 2,
    ...     "env": {"rotting": {"theta": [0.6, 0.8], "m": 1, "gamma": -2.0}},
    ...     "agent": {"greedy": {"type": "OracleGreedy"}},
    ... })
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = study.run(folder, progress=False)
    >>> results.frame[["agent", "seed", "t"]].values.tolist()
    [['greedy', 0, 50], ['greedy', 0, 100], ['greedy', 1, 50], ['greedy', 1, 100]]
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Study:
        """The study in a TOML file; what is wrong in it is named with its line and key."""
        return cls(grammar.read(Path(path)))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Study:
        """The study in a nested mapping of the same shape."""
        return cls(grammar.parse(document))

    @property
    def fingerprint(self) -> str:
        """Names the study: the same for equal studies, in every process."""
        return self.spec.fingerprint

    def run(
        self,
        out: str | os.PathLike[str],
        executor: Executor | int | None = None,
        progress: bool = True,
    ) -> StudyResults:
        """Compute what is missing in the folder `out`, and read it all.

        `executor` is a number of threads (one a core by default) or any `concurrent.futures.Executor`, such
        as `dask.distributed.Client(...).get_executor(pure=False)`. Interrupted at any moment, the same call
        continues; more seeds, horizons, environments or agents keep what is there.
        """
        spec, store, pool = self.spec, Store(Path(out)), Pool(executor)
        with store.open(spec.name, spec.fingerprint, spec.document):
            present, damaged = store.scan()
            for path in damaged:
                warnings.warn(
                    f"{path.name} was damaged: set aside in {path.parent}, computed again", stacklevel=2
                )
            backlog = _Backlog(spec, present)
            if backlog.missing:
                done = backlog.total - backlog.missing
                with Progress(backlog.total if progress else 0, "steps", done) as bar, pool:
                    _compute(spec, store, backlog, pool=pool, bar=bar)
        return self.results(out)

    def results(self, out: str | os.PathLike[str]) -> StudyResults:
        """What the folder holds of this study."""
        import pandas as pd

        store, parts = Store(Path(out)), []
        for cell in self.spec.cells:
            rows = store.read(self.spec.key(cell))
            rows = rows[rows["seed"] < self.spec.seeds]
            rows.insert(0, "T", cell.T)
            rows.insert(0, "agent", cell.agent_name)
            rows.insert(0, "env", cell.env_name)
            parts.append(rows)
        frame = pd.concat(parts, ignore_index=True).astype({"seed": np.int64, "t": np.int64})
        return StudyResults(frame, {cell.env_name: cell.env for cell in self.spec.cells}, self.spec.name)


class _Backlog:
    """The seeds that are missing, handed out in pieces."""

    def __init__(self, spec: Spec, present: Mapping[str, set[int]]) -> None:
        self._left: list[tuple[Cell, list[int]]] = []
        self.total = self.missing = 0  # steps
        for cell in spec.cells:
            seeds = [s for s in range(spec.seeds) if s not in present.get(spec.key(cell), ())]
            self.total += spec.seeds * cell.T
            self.missing += len(seeds) * cell.T
            if seeds:
                self._left.append((cell, seeds))
        self._seconds: dict[Cell, float] = {}

    def pieces(self) -> Iterator[tuple[Cell, range]]:
        """Consecutive seeds of one cell, about PIECE_SECONDS of them as far as is known by then."""
        for cell, seeds in self._left:
            while seeds:
                expected = self._seconds.get(cell, STEP_SECONDS * cell.T)
                count = min(max(1, math.ceil(PIECE_SECONDS / max(expected, 1e-9))), MOST_SEEDS, len(seeds))
                while count > 1 and seeds[count - 1] != seeds[0] + count - 1:
                    count -= 1
                yield cell, range(seeds[0], seeds[0] + count)
                del seeds[:count]

    def set_seconds(self, cell: Cell, seconds: float) -> None:
        """A seed of the cell took so long."""
        self._seconds[cell] = seconds


def _compute(spec: Spec, store: Store, backlog: _Backlog, *, pool: Pool, bar: Progress) -> None:
    """Everything that is missing, each piece written as soon as it is finished."""
    import pandas as pd

    common = {"root": spec.seed, "record": spec.record, "spacing": spec.spacing, "stop": pool.stop}
    tasks = (((cell, seeds), {"cell": cell, "seeds": seeds, **common}) for cell, seeds in backlog.pieces())
    for (cell, seeds), (rows, seconds) in pool.completed(_play_seeds, tasks):
        if rows is not None:
            store.write(spec.key(cell), seeds, pd.DataFrame(rows))
            backlog.set_seconds(cell, seconds / len(seeds))
            bar.add(cell.T * len(seeds))


def _play_seeds(
    cell: Cell, seeds: range, *, root: int, record: int, spacing: str, stop: threading.Event | None
) -> tuple[dict[str, Any] | None, float]:
    """The rows of some seeds, and the seconds they took; None if it was stopped."""
    begin = time.perf_counter()
    points = recorded_steps(cell.T, record, spacing)
    rows: dict[str, list[Any]] = {"seed": [], "t": [], "reward": [], "observed": []}
    for number in seeds:
        seed = np.random.SeedSequence(root, spawn_key=(number,))
        run = play_episode(cell.env, cell.agent, cell.T, seed, points=points, stop=stop)
        if not run.complete:
            return None, 0.0
        rows["seed"].append(np.full(len(points), number, dtype=np.int64))
        rows["t"].append(run.t)
        rows["reward"].append(run.reward)
        rows["observed"].append(run.observed)
    return {name: np.concatenate(parts) for name, parts in rows.items()}, time.perf_counter() - begin
