"""Study files: own their grammar and the words about what is wrong in them; may touch models and agents.

A study is environments x agents x horizons x seeds. The file is TOML; every table of an environment or agent
holds the arguments of its class; a `grid` table in it holds lists to be combined, a `zip` table lists to be
taken together. An agent may have horizons of its own, as `T`. What a value may be is decided by the classes
themselves; here their errors get the file, the line and the key.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import agents
from .._base import validation
from ..agents.base import Agent
from ..model.actions import ActionSet, Ball, Contextual, Finite
from ..model.lbm import LBM
from ..running.episode import SPACINGS

#: The agents that a file may name.
AGENTS: dict[str, Any] = {name: getattr(agents, name) for name in agents.__all__ if name != "Agent"}
#: What an agent may take from its environment, as the value "env".
FROM_ENV = {"m": "m", "gamma": "gamma", "A0": "A0", "subgaussian": "sigma", "sigma": "sigma"}
TOP = ("name", "seed", "seeds", "T", "record", "spacing", "env", "agent")
#: Cells of a study, a guard against a grid that was not meant.
MOST_CELLS = 100_000


class Cell(NamedTuple):
    """One environment, one agent, one horizon: the unit that seeds repeat."""

    env_name: str
    env: LBM
    agent_name: str
    agent: Agent
    T: int


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
        return hashlib.sha256(json.dumps(self.document, sort_keys=True).encode()).hexdigest()

    def key(self, cell: Cell) -> str:
        """Names everything that the rows of a cell depend on, except the seed's number."""
        parts = (cell.env._key(), cell.agent._key(), cell.T, self.record, self.spacing, self.seed)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


class StudyError(ValueError):
    """Something is wrong with a study file; the message says where and what is allowed."""


class _Wrong(Exception):
    """What is wrong at a key."""

    def __init__(self, path: tuple[str, ...], words: str) -> None:
        super().__init__(words)
        self.path, self.words = path, words


def read(path: Path) -> Spec:
    """The study in a TOML file."""
    try:
        text = path.read_text(encoding="utf-8")
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
    except _Wrong as wrong:
        path = _written(document, wrong.path)
        line = _line(text, path)
        where = f"{source}:{line}" if line else source
        raise StudyError(f"{where}: {'.'.join(path) or 'the file'}: {wrong.words}") from None


def _written(document: Mapping[str, Any], path: tuple[str, ...]) -> tuple[str, ...]:
    """The key of an argument as it is written: it may be in a list of a grid or zip."""
    table: Any = document
    for key in path[:2]:
        table = table.get(key) if isinstance(table, Mapping) else None
    if len(path) == 3 and isinstance(table, Mapping) and path[2] not in table:
        for lists in ("grid", "zip"):
            if isinstance(table.get(lists), Mapping) and path[2] in table[lists]:
                return (*path[:2], lists, path[2])
    return path


def _line(text: str, path: tuple[str, ...]) -> int:
    """The line of a key, or of the nearest table around it, or the first one in it; 0 if there is none."""
    table: tuple[str, ...] = ()
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


def _keys(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _study(document: dict[str, Any]) -> Spec:
    _known((), document, TOP)
    name = document.get("name", "study")
    if not isinstance(name, str) or not re.fullmatch(r"[\w .,()+-]{1,100}", name):
        raise _Wrong(("name",), f"must be a short text of letters, digits and .,()+-, got {name!r}")
    numbers = {
        key: _integer((key,), document.get(key, default), low)
        for key, default, low in (("seed", 0, 0), ("seeds", 20, 1), ("record", 200, 1))
    }
    spacing = _checked(
        ("spacing",), validation.choice, "spacing", document.get("spacing", "linear"), SPACINGS
    )
    shared = _horizons(("T",), document["T"]) if "T" in document else []
    envs = [
        (label, _environment(("env", key), arguments)) for key, label, arguments in _variants("env", document)
    ]
    if len(names := {label for label, _ in envs}) < len(envs):
        twice = next(label for label in names if sum(label == other for other, _ in envs) > 1)
        raise _Wrong(("env",), f"must not have {twice} twice")
    makers, seen = [], set()
    for key, label, arguments in _variants("agent", document):
        own = arguments.pop("T", None)
        horizons = shared if own is None else _horizons(("agent", key, "T"), own)
        if not horizons:
            raise _Wrong((), "must have T, a number of steps or a list of them, here or in every agent")
        for T in horizons:
            if (T, label) in seen:
                raise _Wrong(("agent", key), f"must not be there twice, got {label} with T={T} again")
            seen.add((T, label))
            makers.append((T, key, label, arguments))
    if len(envs) * len(makers) > MOST_CELLS:
        raise _Wrong((), f"must have at most {MOST_CELLS} combinations of environments, agents and horizons")
    makers.sort(key=lambda maker: maker[0])
    cells = []
    for env_name, env in envs:
        for T, key, label, arguments in makers:
            _checked(("T",), env.actions.require, T)
            agent = _agent(("agent", key), arguments, env, T)
            rng = np.random.default_rng(0)
            _checked(("agent", key), agent._policy, env.actions, env, rng, 0)
            cells.append(Cell(env_name, env, label, agent, T))
    common = {"T": shared} if shared else {}
    clean = json.loads(json.dumps({**document, **numbers, **common, "name": name, "spacing": spacing}))
    return Spec(name, numbers["seed"], numbers["seeds"], numbers["record"], spacing, tuple(cells), clean)


def _horizons(path: tuple[str, ...], value: Any) -> list[int]:
    horizons = [_integer(path, T, 1) for T in (value if isinstance(value, list) else [value])]
    if not horizons or len(set(horizons)) < len(horizons):
        raise _Wrong(path, f"must be distinct numbers of steps, at least one, got {horizons}")
    return horizons


def _known(path: tuple[str, ...], table: dict[str, Any], allowed: Any) -> None:
    for key in table:
        if key not in allowed:
            raise _Wrong((*path, key), f"is not a key here; allowed are {', '.join(allowed)}")


def _integer(path: tuple[str, ...], value: Any, low: int) -> int:
    return int(_checked(path, lambda: validation.integer(path[-1], value, low=low, high=2**53)))


def _checked(path: tuple[str, ...], call: Any, *arguments: Any) -> Any:
    """The result of a call whose complaints about its arguments become complaints about the key."""
    try:
        return call(*arguments)
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        words = str(error) or type(error).__name__
        named = re.match(r"(\w+) must", words)
        raise _Wrong((*path, named[1]) if named and named[1] != path[-1] else path, words) from None


def _variants(kind: str, document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(key, label, arguments) of every environment or agent, grids multiplied out, zips taken in step."""
    tables = document.get(kind)
    if not isinstance(tables, dict) or not tables:
        raise _Wrong((kind,), f"must be one or more tables, [{kind}.NAME]")
    for key, table in tables.items():
        path = (kind, key)
        if not isinstance(table, dict):
            raise _Wrong(path, f"must be a table of arguments, got {table!r}")
        lists = {name: table.get(name, {}) for name in ("grid", "zip")}
        fixed = {name: value for name, value in table.items() if name not in lists}
        for kind_of, chosen in lists.items():
            if not isinstance(chosen, dict) or not all(isinstance(v, list) and v for v in chosen.values()):
                raise _Wrong((*path, kind_of), "must be a table of lists that are not empty")
            for name in chosen:
                if name in fixed:
                    raise _Wrong((*path, kind_of, name), f"is given outside as well, as {fixed[name]!r}")
        grid, together = lists.values()
        if both := sorted(grid.keys() & together.keys()):
            raise _Wrong((*path, "zip", both[0]), "is in the grid as well")
        if len(lengths := {len(values) for values in together.values()}) > 1:
            raise _Wrong((*path, "zip"), f"must hold lists of one length, got lengths {sorted(lengths)}")
        size = max(lengths, default=1)
        for values in grid.values():
            size *= len(values)
        if size > MOST_CELLS:
            raise _Wrong((*path, "grid"), f"must have at most {MOST_CELLS} combinations, got {size}")
        steps = list(zip(*together.values(), strict=True)) or [()]
        for *values, step in itertools.product(*grid.values(), steps):
            chosen = dict(zip(grid, values, strict=True)) | dict(zip(together, step, strict=True))
            told = grid if "T" in together else chosen  # what goes with a horizon is told by the horizon
            words = [f"{name}={value}" for name, value in chosen.items() if name in told and name != "T"]
            yield key, key + (f"({', '.join(words)})" if words else ""), fixed | chosen


def _environment(path: tuple[str, ...], table: dict[str, Any]) -> LBM:
    allowed = [*inspect.signature(LBM).parameters, "random"]
    _known(path, table, allowed)
    arguments = dict(table)
    random = arguments.pop("random", None)
    if "actions" in arguments:
        arguments["actions"] = _actions((*path, "actions"), arguments["actions"])
    if (random is None) == ("theta" not in arguments):
        raise _Wrong(path, "must have either theta or random = {d = ..., seed = ...}")
    if random is None:
        return _checked(path, lambda: LBM(**arguments))  # type: ignore[no-any-return]
    if not isinstance(random, dict):
        raise _Wrong((*path, "random"), f"must be {{d = ..., seed = ...}}, got {random!r}")
    _known((*path, "random"), random, ("d", "seed"))
    d = _integer((*path, "random", "d"), random.get("d", 3), 1)
    if d > 10_000:
        raise _Wrong((*path, "random", "d"), f"must be at most 10000, got {d}")
    seed = _integer((*path, "random", "seed"), random.get("seed", 0), 0)
    return _checked(path, lambda: LBM.random(d=d, seed=seed, **arguments))  # type: ignore[no-any-return]


def _actions(path: tuple[str, ...], table: Any) -> ActionSet:
    if not isinstance(table, dict) or len(table) != 1:
        raise _Wrong(path, "must be one of {ball = d}, {finite = arms}, {contextual = arms}")
    _known(path, table, ("ball", "finite", "contextual"))
    (kind, value) = next(iter(table.items()))
    make = {"ball": Ball, "finite": Finite, "contextual": Contextual}[kind]
    return _checked((*path, kind), make, value)  # type: ignore[no-any-return]


def _agent(path: tuple[str, ...], table: dict[str, Any], env: LBM, T: int) -> Agent:
    kind = table.get("type")
    if not isinstance(kind, str) or kind not in AGENTS:
        raise _Wrong((*path, "type"), f"must be one of {', '.join(AGENTS)}, got {kind!r}")
    allowed = list(inspect.signature(AGENTS[kind]).parameters)
    arguments = {name: value for name, value in table.items() if name != "type"}
    _known(path, arguments, allowed)
    for name, value in arguments.items():
        if value == "env":
            if name not in FROM_ENV:
                raise _Wrong((*path, name), f'cannot be "env"; that is for {", ".join(FROM_ENV)}')
            arguments[name] = getattr(env, FROM_ENV[name])
    if "horizon" in allowed and "horizon" not in arguments:
        arguments["horizon"] = T
    if kind == "Doubling":
        inner = arguments.get("agent")
        if not isinstance(inner, dict):
            raise _Wrong(
                (*path, "agent"), "must be a table with the agent that is doubled, its horizon in it"
            )
        if inner.get("type") == "Doubling":
            raise _Wrong((*path, "agent", "type"), "cannot be Doubling again")
        arguments["agent"] = _agent((*path, "agent"), inner, env, T)
    if kind in ("BanditCombiner", "EvidenceSelector") and isinstance(arguments.get("candidates"), list):
        arguments["candidates"] = [
            tuple(pair) if isinstance(pair, list) else pair for pair in arguments["candidates"]
        ]
    return _checked(path, lambda: AGENTS[kind](**arguments))  # type: ignore[no-any-return]
