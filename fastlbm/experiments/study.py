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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.display import Displayed
from .._base.pool import Pool, Progress
from .._version import NUMBERS
from ..model.lbm import LBM
from ..running.episode import play_episode, recorded_steps
from . import grammar
from .documents import UNNAMED
from .grammar import Cell, Spec
from .parameters import as_columns, later_names, of_agent, of_env, of_piece, setting
from .pieces import COLUMNS, Contents
from .replay import replay
from .results import StudyResults
from .store import MOST_FILES, Store, StoreError

if TYPE_CHECKING:
    import pandas as pd

#: Seconds that a piece should take, and the most seeds in one.
PIECE_SECONDS, MOST_SEEDS = 0.3, 1024
#: Seconds after which a piece ends with the seeds that it has; the others are another piece's.
LONGEST_PIECE = 1.0
#: Pieces of a folder above which those of a cell are merged when all are there.
MOST_PIECES = 300
#: Seconds of a step until a piece was timed: about what O3M takes.
STEP_SECONDS = 1e-5
#: What a study shows of its cells, and how that is called.
_NAMES = {"env_name": "envs", "agent_name": "agents", "T": "T"}


class Study(Displayed):
    """A study file, or the same as a nested mapping.

    An agent or environment of your own is `type = "module:Class"`, its other keys are its arguments. The
    class is in MODULE.py beside the file or, if there is none, in a module that can be imported. The text of
    such a file goes to all workers and is kept with the results; when it changes, what depends on it is
    computed anew.

    Use it for many settings, long computations and results that are kept; `run_many` for a few runs.

    >>> study = Study.from_dict({
    ...     "T": 100, "seeds": 2, "record": 2,
    ...     "env": {"rotting": {"theta": [0.6, 0.8], "m": 1, "gamma": -2.0}},
    ...     "agent": {"greedy": {"type": "OracleGreedy"}},
    ... })
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = study.run(folder, progress=False)
    ...     again = Study.from_results(folder).results(folder)  # any time later
    >>> results.frame[["agent", "seed", "t"]].values.tolist()
    [['greedy', 0, 50], ['greedy', 0, 100], ['greedy', 1, 50], ['greedy', 1, 100]]
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def _facts(self) -> dict[str, Any]:
        spec = self.spec
        names = {name: list(dict.fromkeys(getattr(c, name) for c in spec.cells)) for name in _NAMES}
        return {
            "name": spec.name,
            **{_NAMES[name]: found for name, found in names.items()},
            "seeds": spec.seeds,
        }

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Study:
        """The study in a TOML file; what is wrong in it is named with its line and key.

        >>> import tempfile
        >>> text = 'T = 10\\nagent.x.type = "Random"\\nenv.y = {theta = [0.5], m = 1, gamma = -1.0}'
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "small.toml").write_text(text)
        ...     Study.from_toml(f"{folder}/small.toml")
        Study(name='study', envs=['y'], agents=['x'], T=[10], seeds=20)
        """
        return cls(grammar.read(Path(path)))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], folder: str | os.PathLike[str] | None = None) -> Study:
        """The study in a nested mapping of the same shape; modules of your own are looked up in `folder`."""
        return cls(grammar.parse(document, folder=None if folder is None else Path(folder)))

    @classmethod
    def from_results(cls, folder: str | os.PathLike[str]) -> Study:
        """The study whose results are in the folder, to read them: no code that came with it is run."""
        manifest = Store(Path(folder)).manifest()
        if manifest is None:
            raise ValueError(f"folder must be that of a study, got {str(folder)!r} without a manifest.json")
        return cls(grammar.parse(manifest["study"], trusted=False))

    @cached_property
    def _keys(self) -> list[str]:
        """The key of each cell; cells that differ by their names alone have the same."""
        return [self.spec.key(cell) for cell in self.spec.cells]

    def _settings(self) -> list[dict[str, Any]]:
        """What the manifest says of the pieces of each cell."""
        later = later_names(c.env for c in self.spec.cells)
        return [
            setting(key, {"env": c.env_name, "agent": c.agent_name, "T": c.T}, c.env, c.agent, later)
            | ({} if c.instances is None else {"theta": None, "instances": "one for each seed"})
            for key, c in zip(self._keys, self.spec.cells, strict=True)
        ]

    @property
    def fingerprint(self) -> str:
        """Names the study: the same for equal studies, in every process.

        >>> env, agent = {"theta": [0.5], "m": 0, "gamma": 0.0}, {"type": "Random"}
        >>> document = {"T": 10, "env": {"x": env}, "agent": {"y": agent}}
        >>> Study.from_dict(document).fingerprint == Study.from_dict(document).fingerprint
        True
        """
        return self.spec.fingerprint

    def run(
        self,
        out: str | os.PathLike[str],
        executor: Executor | int | None = None,
        progress: bool | str = True,
    ) -> StudyResults:
        """Compute what is missing in the folder `out`, and read it all.

        `executor` is a number of threads (one a core by default) or any `concurrent.futures.Executor`, such
        as `dask.distributed.Client(...).get_executor(pure=False)`. Interrupted at any moment, the same call
        continues; more seeds, horizons, environments or agents keep what is there. `progress` is a bar or,
        for files, "rarely": a line a minute.

        What another version of the numbers computed (`NUMBERS` in _version.py) is read as it is, with a
        warning that says so, if nothing is missing. Otherwise it is kept in the folder `superseded` and
        computed again: no table mixes versions.

        A process pool should start its workers by "spawn" or "forkserver": a process that is forked while
        another thread compiles waits for ever for the compiler's lock. `fastlbm compile`, run once, leaves
        nothing to be compiled.
        """
        spec, store, pool = self.spec, Store(Path(out)), Pool(executor)
        cells = dict(zip(self._keys, spec.cells, strict=True))
        with store.open(spec.name) as manifest:
            contents, damaged = store.scan(cells)
            if not contents:
                _require_related(spec, manifest, store.out)
            if damaged:
                aside = store.set_aside(damaged, "damaged")
                for name in damaged:
                    warnings.warn(
                        f"{name}{_told(name, cells)} was damaged: set aside in {aside}, computed again; the "
                        "other pieces are sound. If it happens again, check the disk",
                        stacklevel=2,
                    )
            backlog = _Backlog(cells, spec.seeds, contents)
            numbers = {piece.numbers for piece in contents.pieces} or {NUMBERS}
            if numbers != {NUMBERS} and (backlog.missing or len(numbers) > 1):
                _supersede(store, contents, numbers)
                contents, numbers = store.scan(cells)[0], {NUMBERS}
                backlog = _Backlog(cells, spec.seeds, contents)
            known = manifest and (manifest["fingerprint"], manifest.get("numbers", 1))
            outdated = numbers == {NUMBERS} and "settings" not in (
                manifest or {}
            )  # older rows stay as they are
            if known != (spec.fingerprint, *numbers) or outdated:
                store.describe(spec.document, spec.fingerprint, max(numbers), self._settings())
            if not backlog.missing:
                if len(set(contents.files)) > MOST_FILES and numbers == {NUMBERS}:
                    store.gather(contents, _told_of(cells))
                return self._results(contents, store)
            del contents  # there may be much of it, and the work may take days
            with Progress(backlog.total, "steps", backlog.done, progress) as bar, pool:
                _compute(spec, store, backlog, pool=pool, bar=bar)
            _merge_many(store, cells)
        return self.results(out)

    def results(self, out: str | os.PathLike[str]) -> StudyResults:
        """What the folder holds of this study, with warnings about what is damaged in it."""
        store = Store(Path(out))
        contents, damaged = store.scan(set(self._keys))
        cells = dict(zip(self._keys, self.spec.cells, strict=True))
        for name in damaged:
            warnings.warn(
                f"{name}{_told(name, cells)} in {store.pieces} is damaged and left out: run the study to "
                "compute it again",
                stacklevel=2,
            )
        return self._results(contents, store)

    def _results(self, contents: Contents, store: Store) -> StudyResults:
        spec = self.spec
        numbers = sorted({piece.numbers for piece in contents.pieces})
        if len(numbers) > 1:
            raise StoreError(
                f"rows of several versions of the numbers ({', '.join(map(str, numbers))}) do not go into "
                "one table: run the study, which computes those of the older ones again"
            )
        if numbers and numbers[0] != NUMBERS:
            warnings.warn(
                f"the rows are of version {numbers[0]} of the numbers, this is version {NUMBERS}: they are "
                "read as they are; a study with something to compute computes all of it again",
                stacklevel=3,
            )
        gaps = _gaps(self._keys, spec.seeds, contents)
        missing = {
            (cell.env_name, cell.agent_name, cell.T): sum(map(len, gaps[key]))
            for key, cell in zip(self._keys, spec.cells, strict=True)
            if gaps[key]
        }
        return StudyResults(
            _frame(spec, self._keys, contents),
            {cell.env_name: cell.env for cell in spec.cells if isinstance(cell.env, LBM)},
            spec.name,
            missing=missing,
            numbers=numbers[0] if numbers else NUMBERS,
            instances={c.env_name: c.instances.draw for c in spec.cells if c.instances is not None},
            facts={"study": spec.document, "fingerprint": spec.fingerprint, **store.facts()},
            replay=partial(replay, spec),
        )


def _require_related(spec: Spec, manifest: Mapping[str, Any] | None, out: Path) -> None:
    """Refuse another study without a name, of which nothing is there: no row, no environment or no agent."""
    if manifest is None or spec.name != UNNAMED:
        return
    for kind in ("env", "agent"):
        there, here = manifest["study"].get(kind), spec.document[kind]
        if not isinstance(there, dict) or not any(there.get(name) == table for name, table in here.items()):
            raise StoreError(
                f"{out} holds another study without a name (no {kind} of it is in this one): give the "
                "studies names, or choose another folder"
            )


def _told(name: str, cells: Mapping[str, Cell]) -> str:
    """What a piece holds, in words; nothing for a file that is no piece."""
    key, _, seeds = name.removesuffix(".parquet").partition("-")
    if key not in cells:
        return ""
    cell, (first, _, last) = cells[key], seeds.partition("-")
    return f" (seeds {first} to {last} of {cell.agent_name} in {cell.env_name} with T={cell.T})"


def _supersede(store: Store, contents: Contents, numbers: set[int]) -> None:
    """Set aside the pieces of older versions of the numbers; those of a newer one are not touched."""
    if max(numbers) > NUMBERS:
        raise StoreError(
            f"{store.out} has rows of version {max(numbers)} of the numbers, this is {NUMBERS}: go on "
            "with the version of fastlbm that computed them, or choose another folder"
        )
    for old in sorted(numbers - {NUMBERS}):
        known = zip(contents.pieces, contents.files, strict=True)
        names = sorted({file for piece, file in known if piece.numbers == old})
        aside = store.set_aside(names, f"superseded/numbers-{old}")
        warnings.warn(
            f"{len(names)} pieces are of version {old} of the numbers, this is version {NUMBERS}: kept in "
            f"{aside}, computed again, because a table must not mix versions",
            stacklevel=3,
        )


def _frame(spec: Spec, keys: Sequence[str], contents: Contents) -> pd.DataFrame:
    """The rows in the order of cells, seeds and steps, each once, with the parameters of their cells."""
    import pandas as pd

    ids = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    pieces = contents.pieces
    rows = np.array([(ids[piece.key], piece.rows) for piece in pieces], dtype=np.int64).reshape(-1, 2)
    setting = np.repeat(rows[:, 0], rows[:, 1])
    order = np.lexsort((contents.column("t"), contents.column("seed"), setting))
    setting, seed, t = setting[order], contents.column("seed")[order], contents.column("t")[order]
    wanted = seed < spec.seeds
    wanted[1:] &= (np.diff(setting) != 0) | (np.diff(seed) != 0) | (np.diff(t) != 0)  # work done twice
    setting, order = setting[wanted], order[wanted]
    # Where the rows of a cell begin, and how many there are: two cells may share them.
    mine = [ids[key] for key in keys]
    begin = np.searchsorted(setting, mine)
    count = np.searchsorted(setting, mine, side="right") - begin
    cell = np.repeat(np.arange(len(mine)), count)
    order = order[np.arange(len(cell)) - np.repeat(np.cumsum(count) - count - begin, count)]
    names = {  # taken from a few texts: to make each row's text anew takes longer than all else here
        "env": pd.Series([c.env_name for c in spec.cells]).array.take(cell),
        "agent": pd.Series([c.agent_name for c in spec.cells]).array.take(cell),
        "T": np.array([c.T for c in spec.cells], dtype=np.int64)[cell],
    }
    values = {name: contents.column(name)[order] for name in COLUMNS}
    later = later_names(c.env for c in spec.cells)
    told = [of_env(c.env, later) | of_agent(c.agent) for c in spec.cells]
    return pd.DataFrame({**names, **values, **as_columns(told, cell)}, copy=False)  # nobody else has them


def _gaps(keys: Iterable[str], seeds: int, contents: Contents) -> dict[str, list[range]]:
    """The seeds that are missing, by key."""
    present: dict[str, list[tuple[int, int]]] = {key: [] for key in keys}
    for piece in contents.pieces:
        present[piece.key].append((piece.first, piece.last + 1))
    gaps = {}
    for key, pairs in present.items():
        edges = [0, *(edge for pair in _merged(pairs) for edge in pair), seeds]
        ranges = [range(begin, min(end, seeds)) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
        gaps[key] = [found for found in ranges if found]
    return gaps


def _merged(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Intervals [begin, end) in order, those that overlap as one."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(pairs):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


class _Backlog:
    """The seeds that are missing, handed out in pieces."""

    def __init__(self, cells: Mapping[str, Cell], seeds: int, contents: Contents) -> None:
        self.cells, self._left = cells, _gaps(cells, seeds, contents)
        self._seconds: dict[str, float] = {}  # of a seed
        self.total = sum(seeds * cell.T for cell in cells.values())  # steps
        self.missing = sum(sum(map(len, ranges)) * cells[key].T for key, ranges in self._left.items())
        self.done = self.total - self.missing

    def pieces(self) -> Iterator[tuple[str, range]]:
        """A key and consecutive seeds of it, about PIECE_SECONDS of them as far as is known by then."""
        for key, ranges in self._left.items():
            while ranges:
                seeds = ranges.pop(0)
                expected = self._seconds.get(key, STEP_SECONDS * self.cells[key].T)
                count = min(max(1, math.ceil(PIECE_SECONDS / max(expected, 1e-9))), MOST_SEEDS)
                self.give_back(key, seeds[count:])
                yield key, seeds[:count]

    def give_back(self, key: str, seeds: range) -> None:
        """These seeds are still missing."""
        if seeds:
            self._left[key].insert(0, seeds)

    def finish(self, key: str, seeds: range, seconds: float) -> int:
        """These seeds are there, and took so long; the number of their steps."""
        self._seconds[key] = seconds / len(seeds)
        steps = len(seeds) * self.cells[key].T
        self.missing -= steps
        return steps


def _compute(spec: Spec, store: Store, backlog: _Backlog, *, pool: Pool, bar: Progress) -> None:
    """Everything that is missing, each piece written as soon as it is finished."""
    import pandas as pd

    common = {"root": spec.seed, "record": spec.record, "spacing": spec.spacing, "stop": pool.stop}
    written = 0
    while backlog.missing:  # what is given back when all is handed out is for the next round
        pieces = backlog.pieces()
        tasks = ((piece, {"cell": backlog.cells[piece[0]], "seeds": piece[1], **common}) for piece in pieces)
        for (key, seeds), (rows, count, seconds) in pool.completed(_play_seeds, tasks):
            backlog.give_back(key, seeds[count:])
            if count:
                cell = backlog.cells[key]
                told = of_piece(key, cell.env, cell.agent, cell.T)
                store.write(key, seeds[:count], pd.DataFrame(rows | told))
                written += 1
                if written % MOST_FILES == 0:  # whoever is stopped and goes on need not read them one by one
                    _merge_many(store, backlog.cells)
                bar.add(backlog.finish(key, seeds[:count], seconds))


def _merge_many(store: Store, cells: Mapping[str, Cell]) -> None:
    """Fewer files, if there are so many that reading them takes long."""
    count = store.count()
    if count > MOST_PIECES:
        contents, _ = store.scan(cells)
        merge = store.merge if count <= MOST_FILES else store.gather
        merge(contents, _told_of(cells))


def _told_of(cells: Mapping[str, Cell]) -> dict[str, dict[str, Any]]:
    """The columns that the pieces of each key have beside their rows."""
    return {key: of_piece(key, cell.env, cell.agent, cell.T) for key, cell in cells.items()}


def _play_seeds(
    cell: Cell, seeds: range, *, root: int, record: int, spacing: str, stop: threading.Event | None
) -> tuple[dict[str, Any], int, float]:
    """The rows of the first seeds, of as many as LONGEST_PIECE allows; how many they are, and the seconds."""
    begin = time.perf_counter()
    points = recorded_steps(cell.T, record, spacing)
    rows: dict[str, list[Any]] = {"seed": [], "t": [], "reward": [], "observed": []}
    for number in seeds:
        if rows["seed"] and time.perf_counter() - begin > LONGEST_PIECE:
            break
        seed = np.random.SeedSequence(root, spawn_key=(number,))
        run = play_episode(cell.model(number), cell.agent, cell.T, seed, points=points, stop=stop)
        if not run.complete:
            break
        rows["seed"].append(np.full(len(points), number, dtype=np.int64))
        rows["t"].append(run.t)
        rows["reward"].append(run.reward)
        rows["observed"].append(run.observed)
    count = len(rows["seed"])
    joined = {name: np.concatenate(parts) for name, parts in rows.items()} if count else {}
    return joined, count, time.perf_counter() - begin
