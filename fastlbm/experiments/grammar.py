"""Study files: own their grammar and the words about what is wrong in them; may touch models and agents.

A study is environments x agents x horizons x seeds. The file is TOML; every table of an environment or agent
holds the arguments of its class; a `grid` table in it holds lists to be combined, a `zip` table lists to be
taken together. An agent may have horizons of its own, as `T`. What a value may be is decided by the classes
themselves; here their errors get the file, the line and the key.

An environment has a theta, or `random = {d = ..., seed = ...}` for one that is drawn once, or `instances =
{d = ..., arms = ...}` for a fresh theta and, with `arms`, so many fresh arms for every seed of the study.
"""

from __future__ import annotations

import inspect
import itertools
import json
import math
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import agents
from .._base import validation
from .._base.files import digest
from ..agents import Agent
from ..model.actions import ACTION_SETS, ActionSet
from ..model.lbm import LBM
from ..running.episode import SPACINGS
from .instances import Instances

#: The agents that a file may name: all there are.
AGENTS: dict[str, Any] = {name: getattr(agents, name) for name in agents.__all__ if name != "Agent"}
#: What an agent may take from its environment, as the value "env".
FROM_ENV = {"m": "m", "gamma": "gamma", "A0": "A0", "subgaussian": "sigma", "sigma": "sigma"}
#: The keys from the top of the file to a value.
KeyPath = tuple[str, ...]
#: The keys at the top of the file.
TOP = ("name", "seed", "seeds", "T", "record", "spacing", "env", "agent")
#: The tables of lists in the table of an environment or agent.
LISTS = ("grid", "zip")
Lists = dict[str, list[Any]]
#: The name of a study that gives none.
UNNAMED = "study"
#: Cells of a study, a guard against a grid that was not meant.
MOST_CELLS = 100_000
#: The largest integer of a file, and the most recorded points of a run: each is a row.
LARGEST, MOST_POINTS = 2**53, 10**7


class Cell(NamedTuple):
    """One environment, one agent, one horizon: the unit that seeds repeat."""

    env_name: str
    env: LBM
    agent_name: str
    agent: Agent
    T: int
    #: Where every seed has a model of its own; `env` is that of seed 0.
    instances: Instances | None = None

    def model(self, number: int) -> LBM:
        """The environment of the seed with this number."""
        return self.env if self.instances is None else self.instances.draw(number)


class Spec(NamedTuple):
    """A study, checked."""

    name: str
    seed: int
    seeds: int
    record: int
    spacing: str
    cells: tuple[Cell, ...]
    document: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        """The same for the same study, in every process."""
        return digest(json.dumps(self.document, sort_keys=True).encode())

    def key(self, cell: Cell) -> str:
        """Names everything that the rows of a cell depend on, except the seed's number."""
        parts: tuple[Any, ...] = (cell.env._key(), cell.agent._key(), cell.T)
        parts += (self.record, self.spacing, self.seed)
        if cell.instances is not None:
            parts += ("instances", cell.instances.arms)
        return digest(repr(parts).encode())[:24]


class StudyError(ValueError):
    """Something is wrong with a study file; the message says where and what is allowed."""


class _Invalid(Exception):
    """The value at a key, or the key itself, is not allowed."""

    def __init__(self, path: KeyPath, words: str) -> None:
        super().__init__(words)
        self.path, self.words = path, words


class _Setting(NamedTuple):
    """The arguments of an agent at a horizon, before there is an environment; `key` is its table."""

    T: int
    key: str
    label: str
    arguments: dict[str, Any]


def read(path: os.PathLike[str]) -> Spec:
    """The study in a TOML file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise StudyError(f"{path}: a study file must be UTF-8 text: {error}") from None
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise StudyError(f"{path}: not a TOML file: {error}") from None
    return parse(document, str(path), text)


def parse(document: Mapping[str, Any], source: str = "study", text: str = "") -> Spec:
    """The study in a nested mapping; `text` is where lines are looked up."""
    try:
        return _study(dict(document))
    except _Invalid as invalid:
        path = _path_as_written(document, invalid.path)
        line = _line(text, path)
        where = f"{source}:{line}" if line else source
        raise StudyError(f"{where}: {'.'.join(path) or 'the file'}: {invalid.words}") from None


def _path_as_written(document: Mapping[str, Any], path: KeyPath) -> KeyPath:
    """The key of an argument as it is written: it may be in a list of a grid or zip."""
    table: Any = document
    for key in path[:2]:
        table = table.get(key) if isinstance(table, Mapping) else None
    if len(path) == 3 and isinstance(table, Mapping) and path[2] not in table:
        for lists in LISTS:
            if isinstance(table.get(lists), Mapping) and path[2] in table[lists]:
                return (*path[:2], lists, path[2])
    return path


def _line(text: str, path: KeyPath) -> int:
    """The line of a key, or of the nearest table around it, or the first one in it; 0 if there is none."""
    table: KeyPath = ()
    best, length, inside = 0, 0, 0
    for number, row in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[\[?([^\[\]]+)\]\]?", row)
        key = re.match(r"\s*([^=#\[\]]+?)\s*=", row)
        if header:
            here = table = _keys(header[1])
        elif key:
            here = (*table, *_keys(key[1]))
        else:
            continue
        if len(here) > length and path[: len(here)] == here:
            best, length = number, len(here)
        elif path and here[: len(path)] == path and not inside:
            inside = number
    return best or inside


def _keys(dotted: str) -> KeyPath:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _study(document: dict[str, Any]) -> Spec:
    _require_known((), document, TOP)
    name = document.get("name", UNNAMED)
    if not isinstance(name, str) or not re.fullmatch(r"[\w .,()+-]{1,100}", name):
        raise _Invalid(("name",), f"must be a short text of letters, digits and .,()+-, got {name!r}")
    numbers = {
        key: _integer((key,), document.get(key, default), low, high)
        for key, default, low, high in (
            ("seed", 0, 0, LARGEST),
            ("seeds", 20, 1, LARGEST),
            ("record", 200, 1, MOST_POINTS),
        )
    }
    spacing = _checked(
        ("spacing",), validation.choice, "spacing", document.get("spacing", "linear"), SPACINGS
    )
    shared = _horizons(("T",), document["T"]) if "T" in document else []
    envs, settings = _environments(document, numbers["seed"]), _settings(document, shared)
    if len(envs) * len(settings) > MOST_CELLS:
        raise _Invalid(
            (), f"must have at most {MOST_CELLS} combinations of environments, agents and horizons"
        )
    cells = [_cell(env_name, env, setting) for env_name, env in envs for setting in settings]
    common = {"T": shared} if shared else {}
    clean = json.loads(json.dumps({**document, **numbers, **common, "name": name, "spacing": spacing}))
    return Spec(name=name, **numbers, spacing=spacing, cells=tuple(cells), document=clean)


def _environments(document: dict[str, Any], root: int) -> list[tuple[str, LBM | Instances]]:
    """The environments with their names, in the order of the file."""
    envs = [
        (label, _environment(("env", key), arguments, root))
        for key, label, arguments in _variants("env", document)
    ]
    counts = Counter(label for label, _ in envs)
    for label, count in counts.items():
        if count > 1:
            raise _Invalid(("env",), f"must not have {label} twice")
    return envs


def _settings(document: dict[str, Any], shared: list[int]) -> list[_Setting]:
    """The agents at their own horizons or, without, at the shared ones; short horizons first."""
    settings, seen = [], set()
    for key, label, arguments in _variants("agent", document):
        own = arguments.pop("T", None)
        horizons = shared if own is None else _horizons(("agent", key, "T"), own)
        if not horizons:
            raise _Invalid((), "must have T, a number of steps or a list of them, here or in every agent")
        for T in horizons:
            if (T, label) in seen:
                raise _Invalid(("agent", key), f"must not be there twice, got {label} with T={T} again")
            seen.add((T, label))
            settings.append(_Setting(T, key, label, arguments))
    return sorted(settings, key=lambda setting: setting.T)


def _cell(env_name: str, given: LBM | Instances, setting: _Setting) -> Cell:
    """The agent made for the environment and the horizon, and asked whether it can play there."""
    T, key, label, arguments = setting
    instances = given if isinstance(given, Instances) else None
    env = given.draw(0) if isinstance(given, Instances) else given
    _checked(("T",), env.actions.require, T)
    agent = _agent(("agent", key), arguments, env, T)
    _checked(("agent", key), agent._policy, env.actions, env, np.random.default_rng(0), 0)
    return Cell(env_name=env_name, env=env, agent_name=label, agent=agent, T=T, instances=instances)


def _horizons(path: KeyPath, value: Any) -> list[int]:
    horizons = [_integer(path, T, 1) for T in (value if isinstance(value, list) else [value])]
    if not horizons or len(set(horizons)) < len(horizons):
        raise _Invalid(path, f"must be distinct numbers of steps, at least one, got {horizons}")
    return horizons


def _require_known(path: KeyPath, table: dict[str, Any], allowed: Any) -> None:
    for key in table:
        if key not in allowed:
            raise _Invalid((*path, key), f"is not a key here; allowed are {', '.join(allowed)}")


def _integer(path: KeyPath, value: Any, low: int, high: int = LARGEST) -> int:
    return int(_checked(path, lambda: validation.integer(path[-1], value, low=low, high=high)))


def _checked(path: KeyPath, call: Any, *arguments: Any) -> Any:
    """The result of a call whose complaints about its arguments become complaints about the key."""
    try:
        return call(*arguments)
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        words = str(error) or type(error).__name__
        named = re.match(r"(\w+) must", words)
        raise _Invalid((*path, named[1]) if named and named[1] != path[-1] else path, words) from None


def _variants(kind: str, document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(key, label, arguments) of every environment or agent, grids multiplied out, zips taken in step."""
    tables = document.get(kind)
    if not isinstance(tables, dict) or not tables:
        raise _Invalid((kind,), f"must be one or more tables, [{kind}.NAME]")
    for key, table in tables.items():
        if not isinstance(table, dict):
            raise _Invalid((kind, key), f"must be a table of arguments, got {table!r}")
        fixed, grid, together = _lists((kind, key), table)
        steps = list(zip(*together.values(), strict=True)) or [()]
        for *values, step in itertools.product(*grid.values(), steps):
            chosen = dict(zip(grid, values, strict=True)) | dict(zip(together, step, strict=True))
            told = grid if "T" in together else chosen  # what goes with a horizon is told by the horizon
            words = [f"{name}={value}" for name, value in chosen.items() if name in told and name != "T"]
            yield key, key + (f"({', '.join(words)})" if words else ""), fixed | chosen


def _lists(path: KeyPath, table: dict[str, Any]) -> tuple[dict[str, Any], Lists, Lists]:
    """What is fixed in a table, the lists of its grid, and the lists of its zip."""
    fixed = {name: value for name, value in table.items() if name not in LISTS}
    for key in LISTS:
        lists = table.get(key, {})
        if not isinstance(lists, dict) or not all(isinstance(v, list) and v for v in lists.values()):
            raise _Invalid((*path, key), "must be a table of lists that are not empty")
        for name in lists:
            if name in fixed:
                raise _Invalid((*path, key, name), f"is given outside as well, as {fixed[name]!r}")
    grid, together = (table.get(key, {}) for key in LISTS)
    if both := sorted(grid.keys() & together.keys()):
        raise _Invalid((*path, "zip", both[0]), "is in the grid as well")
    if len(lengths := {len(values) for values in together.values()}) > 1:
        raise _Invalid((*path, "zip"), f"must hold lists of one length, got lengths {sorted(lengths)}")
    size = math.prod(map(len, grid.values())) * max(lengths, default=1)
    if size > MOST_CELLS:
        raise _Invalid((*path, "grid"), f"must have at most {MOST_CELLS} combinations, got {size}")
    return fixed, grid, together


def _environment(path: KeyPath, table: dict[str, Any], root: int) -> LBM | Instances:
    allowed = [*inspect.signature(LBM).parameters, "random", "instances"]
    _require_known(path, table, allowed)
    arguments = dict(table)
    if "actions" in arguments:
        arguments["actions"] = _actions((*path, "actions"), arguments["actions"])
    if len({"theta", "random", "instances"} & arguments.keys()) != 1:
        raise _Invalid(path, "must have one of theta, random = {d = ..., seed = ...}, instances = {d = ...}")
    random, fresh = arguments.pop("random", None), arguments.pop("instances", None)
    if random is not None:
        d, seed = _drawn((*path, "random"), random, "seed", 0)
        return _checked(path, lambda: LBM.random(d=d, seed=seed or 0, **arguments))  # type: ignore[no-any-return]
    if fresh is not None:
        d, arms = _drawn((*path, "instances"), fresh, "arms", 1)
        if arms is not None and "actions" in arguments:
            raise _Invalid((*path, "instances", "arms"), "must not be there with actions as well")
        like = _checked(path, lambda: LBM.random(d=d, **arguments))
        return Instances(like, arms=arms, root=root)
    return _checked(path, lambda: LBM(**arguments))  # type: ignore[no-any-return]


def _drawn(path: KeyPath, table: Any, other: str, low: int) -> tuple[int, int | None]:
    """The dimension of what is drawn, and the other number that its table may have."""
    if not isinstance(table, dict):
        raise _Invalid(path, f"must be {{d = ..., {other} = ...}}, got {table!r}")
    _require_known(path, table, ("d", other))
    d = _integer((*path, "d"), table.get("d", 3), 1)
    if d > 10_000:
        raise _Invalid((*path, "d"), f"must be at most 10000, got {d}")
    number = table.get(other)
    return d, None if number is None else _integer((*path, other), number, low, 10**6 if low else LARGEST)


def _actions(path: KeyPath, table: Any) -> ActionSet:
    if not isinstance(table, dict) or len(table) != 1:
        forms = [
            f"{{{name} = {next(iter(inspect.signature(kind).parameters))}}}"
            for name, kind in ACTION_SETS.items()
        ]
        raise _Invalid(path, f"must be one of {', '.join(forms)}, got {table!r}")
    _require_known(path, table, tuple(ACTION_SETS))
    ((kind, value),) = table.items()
    return _checked((*path, kind), ACTION_SETS[kind], value)  # type: ignore[no-any-return]


def _agent(path: KeyPath, table: dict[str, Any], env: LBM, T: int) -> Agent:
    kind = table.get("type")
    if not isinstance(kind, str) or kind not in AGENTS:
        raise _Invalid((*path, "type"), f"must be one of {', '.join(AGENTS)}, got {kind!r}")
    allowed = list(inspect.signature(AGENTS[kind]).parameters)
    arguments = {name: value for name, value in table.items() if name != "type"}
    _require_known(path, arguments, allowed)
    for name, value in arguments.items():
        if value == "env":
            if name not in FROM_ENV:
                raise _Invalid((*path, name), f'cannot be "env"; that is for {", ".join(FROM_ENV)}')
            arguments[name] = getattr(env, FROM_ENV[name])
    if "horizon" in allowed and "horizon" not in arguments:
        arguments["horizon"] = T
    if "agent" in allowed:  # an agent around another one
        inner = arguments.get("agent")
        if not isinstance(inner, dict):
            raise _Invalid(
                (*path, "agent"), f"must be a table with the agent that {kind} plays, its horizon in it"
            )
        if inner.get("type") == kind:
            raise _Invalid((*path, "agent", "type"), f"cannot be {kind} again")
        arguments["agent"] = _agent((*path, "agent"), inner, env, T)
    return _checked(path, lambda: AGENTS[kind](**arguments))  # type: ignore[no-any-return]
