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
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np

from .._base import validation
from ..agents.base import Agent
from ..model.lbm import LBM
from ..running.episode import _Bar, _episode, _points
from . import grammar as _spec
from .grammar import Cell, Spec
from .results import StudyResults
from .store import Store

#: Seconds that a piece should take, and the most seeds in one.
PIECE, MOST_SEEDS = 0.3, 1024


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
        return cls(_spec.read(Path(path)))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Study:
        """The study in a nested mapping of the same shape."""
        return cls(_spec.parse(document))

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
        spec, store = self.spec, Store(Path(out))
        store.open(spec.name, spec.fingerprint, spec.document)
        with store.held():
            there, damaged = store.sound()
            for path in damaged:
                warnings.warn(
                    f"{path.name} was damaged: set aside in {path.parent}, computed again", stacklevel=2
                )
            work = _Work(spec, there)
            if work.missing:
                with _Bar(work.total if progress else 0, "steps", work.total - work.missing) as bar:
                    _compute(spec, store, work, executor, bar)
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


class _Work:
    """What is missing, handed out in pieces."""

    def __init__(self, spec: Spec, there: dict[str, set[int]]) -> None:
        self._left: list[tuple[Cell, list[int]]] = []
        self.total = self.missing = 0
        for cell in spec.cells:
            seeds = [s for s in range(spec.seeds) if s not in there.get(spec.key(cell), ())]
            self.total += spec.seeds * cell.T
            self.missing += len(seeds) * cell.T
            if seeds:
                self._left.append((cell, seeds))
        self._seconds: dict[Cell, float] = {}

    def next(self) -> tuple[Cell, range] | None:
        """The next piece: consecutive seeds of one cell, about PIECE seconds of them."""
        if not self._left:
            return None
        cell, seeds = self._left[0]
        # Until a piece was timed: O3M takes about 10 us a step.
        guess = self._seconds.get(cell, 1e-5 * cell.T)
        count = min(max(1, math.ceil(PIECE / max(guess, 1e-9))), MOST_SEEDS, len(seeds))
        while count > 1 and seeds[count - 1] != seeds[0] + count - 1:
            count -= 1
        piece = range(seeds[0], seeds[0] + count)
        if count == len(seeds):
            self._left.pop(0)
        else:
            self._left[0] = (cell, seeds[count:])
        return cell, piece

    def timed(self, cell: Cell, seconds: float) -> None:
        """A seed of the cell took so long."""
        self._seconds[cell] = seconds


def _piece(
    env: LBM,
    agent: Agent,
    T: int,
    root: int,
    seeds: range,
    record: int,
    spacing: str,
    stop: threading.Event | None = None,
) -> tuple[dict[str, Any] | None, float]:
    """The rows of some seeds, and the seconds they took; None if it was stopped."""
    begin = time.perf_counter()
    points = _points(T, record, spacing)
    rows: dict[str, list[Any]] = {"seed": [], "t": [], "reward": [], "observed": []}
    for number in seeds:
        seed = np.random.SeedSequence(root, spawn_key=(number,))
        run = _episode(env, agent, T, seed, points, False, None, stop)
        if not run.complete:
            return None, 0.0
        rows["seed"].append(np.full(len(points), number, dtype=np.int64))
        rows["t"].append(run.t)
        rows["reward"].append(run.reward)
        rows["observed"].append(run.observed)
    return {name: np.concatenate(parts) for name, parts in rows.items()}, time.perf_counter() - begin


def _compute(spec: Spec, store: Store, work: _Work, executor: Executor | int | None, bar: _Bar) -> None:
    """Everything that is missing, each piece written as soon as it is finished."""
    import pandas as pd

    own = executor is None or isinstance(executor, (int, np.integer))
    stop = threading.Event()
    if own:
        count = os.cpu_count() or 1 if executor is None else validation.integer("executor", executor, low=1)
        pool: Executor = ThreadPoolExecutor(count)
        most = count + 1
    else:
        if not isinstance(executor, Executor):
            raise TypeError(
                f"executor must be a concurrent.futures.Executor, a number or None, got {executor!r}"
            )
        pool, most = executor, 64
    running: dict[Future[Any], tuple[Cell, range]] = {}
    try:
        while True:
            while len(running) < most and (piece := work.next()) is not None:
                cell, seeds = piece
                extra = (stop,) if own else ()
                arguments = (cell.env, cell.agent, cell.T, spec.seed, seeds, spec.record, spec.spacing)
                running[pool.submit(_piece, *arguments, *extra)] = piece
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                cell, seeds = running.pop(future)
                rows, seconds = future.result()
                if rows is not None:
                    store.write(spec.key(cell), seeds[0], seeds[-1], pd.DataFrame(rows))
                    work.timed(cell, seconds / len(seeds))
                    bar.add(cell.T * len(seeds))
    finally:
        stop.set()
        for future in running:
            future.cancel()
        if own:
            pool.shutdown(cancel_futures=True)
