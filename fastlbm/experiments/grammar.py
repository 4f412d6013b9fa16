"""Study files: own their grammar and the words about what is wrong in them; may touch models and agents.

A study is environments x agents x horizons x seeds. The file is TOML; every table of an environment or agent
holds the arguments of its class; a `grid` table in it holds lists to be combined, a `zip` table lists to be
taken together. An agent may have horizons of its own, as `T`. A `type = "module:Class"` is a class of your
own, see `own_types`; an environment without a type is an LBM. What a value may be is decided by the classes
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

from .. import agents
from .._base import validation
from .._base.files import digest
from ..agents import Agent
from ..model.actions import ACTION_SETS, ActionSet
from ..model.lbm import LBM
from ..running.episode import SPACINGS, check_pair
from .documents import DEFAULTS, TOP
from .instances import Instances
from .mistakes import LISTS, Invalid, KeyPath, StudyError, told
from .own_types import Code, Described, DescribedAgent, DescribedEnvironment

#: The agents that a file may name: all there are.
AGENTS: dict[str, Any] = {name: getattr(agents, name) for name in agents.__all__ if name != "Agent"}
#: What an agent may take from its environment, as the value "env".
FROM_ENV = {
    "m": "m",
    "gamma": "gamma",
    "A0": "A0",
    "subgaussian": "sigma",
    "sigma": "sigma",
    "decay": "decay",
    "response": "response",
}
Lists = dict[str, list[Any]]
#: What a table of an environment describes.
Environment = LBM | Instances | DescribedEnvironment
#: Cells of a study, a guard against a grid that was not meant.
MOST_CELLS = 100_000
#: The largest integer of a file, and the most recorded points of a run: each is a row.
LARGEST, MOST_POINTS = 2**53, 10**7


class Cell(NamedTuple):
    """One environment, one agent, one horizon: the unit that seeds repeat."""

    env_name: str
    env: LBM | DescribedEnvironment
    agent_name: str
    agent: Agent | DescribedAgent
    T: int
    #: Where every seed has a model of its own; `env` is that of seed 0.
    instances: Instances | None = None

    def model(self, number: int) -> LBM | DescribedEnvironment:
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
    except FileNotFoundError:
        raise FileNotFoundError(
            f"a study must be a TOML file, got {str(path)!r}, which is not there"
        ) from None
    except IsADirectoryError:
        raise IsADirectoryError(f"a study must be a TOML file, got {str(path)!r}, a folder") from None
    except UnicodeDecodeError as error:
        raise StudyError(f"{path}: a study file must be UTF-8 text: {error}") from None
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise StudyError(f"{path}: not a TOML file: {error}") from None
    return parse(document, str(path), text, folder=Path(path).parent)


def parse(
    document: Mapping[str, Any],
    source: str = "study",
    text: str = "",
    *,
    folder: Path | None = None,
    trusted: bool = True,
) -> Spec:
    """The study in a nested mapping; `text` is where lines are looked up.

    Modules of one's own are looked up in the `folder`; unless the study is `trusted`, none of them is run.
    """
    try:
        return _study(dict(document), folder, trusted)
    except Invalid as invalid:
        raise StudyError(told(invalid, document, source, text)) from None


def _study(document: dict[str, Any], folder: Path | None, trusted: bool) -> Spec:
    _require_known((), document, TOP)
    name = document.get("name", DEFAULTS["name"])
    if not isinstance(name, str) or not re.fullmatch(r"[\w .,()+-]{1,100}", name):
        raise Invalid(("name",), f"must be a short text of letters, digits and .,()+-, got {name!r}")
    numbers = {
        key: _integer((key,), document.get(key, DEFAULTS[key]), low, high)
        for key, low, high in (("seed", 0, LARGEST), ("seeds", 1, LARGEST), ("record", 1, MOST_POINTS))
    }
    spacing = _checked(
        ("spacing",), validation.choice, "spacing", document.get("spacing", DEFAULTS["spacing"]), SPACINGS
    )
    shared = _horizons(("T",), document["T"]) if "T" in document else []
    texts = document.get("code", {})
    if not isinstance(texts, dict) or not all(isinstance(module, str) for module in texts.values()):
        raise Invalid(("code",), "must be a table with the texts of modules")
    code = Code(dict(texts), folder, trusted)
    envs, settings = _environments(document, numbers["seed"], code), _settings(document, shared)
    if len(envs) * len(settings) > MOST_CELLS:
        raise Invalid((), f"must have at most {MOST_CELLS} combinations of environments, agents and horizons")
    cells = [_cell(env_name, env, setting, code) for env_name, env in envs for setting in settings]
    common: dict[str, Any] = {"T": shared} if shared else {}
    if used := _texts(cells):
        common["code"] = used
    clean = json.loads(json.dumps({**document, **numbers, **common, "name": name, "spacing": spacing}))
    return Spec(name=name, **numbers, spacing=spacing, cells=tuple(cells), document=clean)


def _texts(cells: list[Cell]) -> dict[str, str]:
    """The modules that came with the study, by their names."""
    parts = [part for cell in cells for part in (cell.env, cell.agent)]
    kinds = [part.kind for part in parts if isinstance(part, Described)]
    return {kind.module: kind.text for kind in kinds if kind.text is not None}


def _environments(document: dict[str, Any], root: int, code: Code) -> list[tuple[str, Environment]]:
    """The environments with their names, in the order of the file."""
    envs = [
        (label, _environment(("env", key), arguments, root, code=code))
        for key, label, arguments in _variants("env", document)
    ]
    counts = Counter(label for label, _ in envs)
    for label, count in counts.items():
        if count > 1:
            raise Invalid(("env",), f"must not have {label} twice")
    return envs


def _settings(document: dict[str, Any], shared: list[int]) -> list[_Setting]:
    """The agents at their own horizons or, without, at the shared ones; short horizons first."""
    settings, seen = [], set()
    for key, label, arguments in _variants("agent", document):
        own = arguments.pop("T", None)
        horizons = shared if own is None else _horizons(("agent", key, "T"), own)
        if not horizons:
            raise Invalid((), "must have T, a number of steps or a list of them, here or in every agent")
        for T in horizons:
            if (T, label) in seen:
                raise Invalid(("agent", key), f"must not be there twice, got {label} with T={T} again")
            seen.add((T, label))
            settings.append(_Setting(T, key, label, arguments))
    return sorted(settings, key=lambda setting: setting.T)


def _cell(env_name: str, given: Environment, setting: _Setting, code: Code) -> Cell:
    """The agent made for the environment and the horizon, and asked whether it can play there."""
    T, key, label, arguments = setting
    instances = given if isinstance(given, Instances) else None
    env = given.draw(0) if isinstance(given, Instances) else given
    if code.trusted:
        _checked(("T",), env.actions.require, T)
    agent = _agent(("agent", key), arguments, env, T, code=code)
    if code.trusted:
        _checked(("agent", key), check_pair, env, agent)
    return Cell(env_name=env_name, env=env, agent_name=label, agent=agent, T=T, instances=instances)


def _horizons(path: KeyPath, value: Any) -> list[int]:
    horizons = [_integer(path, T, 1) for T in (value if isinstance(value, list) else [value])]
    if not horizons or len(set(horizons)) < len(horizons):
        raise Invalid(path, f"must be distinct numbers of steps, at least one, got {horizons}")
    return horizons


def _require_known(path: KeyPath, table: dict[str, Any], allowed: Any) -> None:
    for key in table:
        if key not in allowed:
            raise Invalid((*path, key), f"is not a key here; allowed are {', '.join(allowed)}")


def _integer(path: KeyPath, value: Any, low: int, high: int = LARGEST) -> int:
    return int(_checked(path, lambda: validation.integer(path[-1], value, low=low, high=high)))


def _checked(path: KeyPath, call: Any, *arguments: Any) -> Any:
    """The result of a call whose complaints about its arguments become complaints about the key."""
    try:
        return call(*arguments)
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        words = str(error) or type(error).__name__
        named = re.match(r"(\w+) must", words)
        raise Invalid((*path, named[1]) if named and named[1] != path[-1] else path, words) from None


def _variants(kind: str, document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(key, label, arguments) of every environment or agent, grids multiplied out, zips taken in step."""
    tables = document.get(kind)
    if not isinstance(tables, dict) or not tables:
        raise Invalid((kind,), f"must be one or more tables, [{kind}.NAME]")
    for key, table in tables.items():
        if not isinstance(table, dict):
            raise Invalid((kind, key), f"must be a table of arguments, got {table!r}")
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
            raise Invalid((*path, key), "must be a table of lists that are not empty")
        for name in lists:
            if name in fixed:
                raise Invalid((*path, key, name), f"is given outside as well, as {fixed[name]!r}")
    grid, together = (table.get(key, {}) for key in LISTS)
    if both := sorted(grid.keys() & together.keys()):
        raise Invalid((*path, "zip", both[0]), "is in the grid as well")
    if len(lengths := {len(values) for values in together.values()}) > 1:
        raise Invalid((*path, "zip"), f"must hold lists of one length, got lengths {sorted(lengths)}")
    size = math.prod(map(len, grid.values())) * max(lengths, default=1)
    if size > MOST_CELLS:
        raise Invalid((*path, "grid"), f"must have at most {MOST_CELLS} combinations, got {size}")
    return fixed, grid, together


def _environment(path: KeyPath, table: dict[str, Any], root: int, *, code: Code) -> Environment:
    if "type" in table:
        arguments = {name: value for name, value in table.items() if name != "type"}
        own = DescribedEnvironment(_checked(path, code.find, table["type"]), arguments)
        _check_own(path, own, code)
        if code.trusted:
            _checked(path, lambda: own.actions)
        return own
    return _model(path, table, root)


def _model(path: KeyPath, table: dict[str, Any], root: int) -> LBM | Instances:
    allowed = [*inspect.signature(LBM).parameters, "random", "instances"]
    _require_known(path, table, allowed)
    arguments = dict(table)
    if "actions" in arguments:
        arguments["actions"] = _actions((*path, "actions"), arguments["actions"])
    if len({"theta", "random", "instances"} & arguments.keys()) != 1:
        raise Invalid(path, "must have one of theta, random = {d = ..., seed = ...}, instances = {d = ...}")
    random, fresh = arguments.pop("random", None), arguments.pop("instances", None)
    if random is not None:
        d, seed = _drawn((*path, "random"), random, "seed", 0)
        return _checked(path, lambda: LBM.random(d=d, seed=seed or 0, **arguments))  # type: ignore[no-any-return]
    if fresh is not None:
        d, arms = _drawn((*path, "instances"), fresh, "arms", 1)
        if arms is not None and "actions" in arguments:
            raise Invalid((*path, "instances", "arms"), "must not be there with actions as well")
        like = _checked(path, lambda: LBM.random(d=d, **arguments))
        return Instances(like, arms=arms, root=root)
    return _checked(path, lambda: LBM(**arguments))  # type: ignore[no-any-return]


def _drawn(path: KeyPath, table: Any, other: str, low: int) -> tuple[int, int | None]:
    """The dimension of what is drawn, and the other number that its table may have."""
    if not isinstance(table, dict):
        raise Invalid(path, f"must be {{d = ..., {other} = ...}}, got {table!r}")
    _require_known(path, table, ("d", other))
    d = _integer((*path, "d"), table.get("d", 3), 1)
    if d > 10_000:
        raise Invalid((*path, "d"), f"must be at most 10000, got {d}")
    number = table.get(other)
    return d, None if number is None else _integer((*path, other), number, low, 10**6 if low else LARGEST)


def _actions(path: KeyPath, table: Any) -> ActionSet:
    if not isinstance(table, dict) or len(table) != 1:
        forms = [
            f"{{{name} = {next(iter(inspect.signature(kind).parameters))}}}"
            for name, kind in ACTION_SETS.items()
        ]
        raise Invalid(path, f"must be one of {', '.join(forms)}, got {table!r}")
    _require_known(path, table, tuple(ACTION_SETS))
    ((kind, value),) = table.items()
    return _checked((*path, kind), ACTION_SETS[kind], value)  # type: ignore[no-any-return]


def _check_own(path: KeyPath, own: Described, code: Code) -> None:
    """Complain about arguments that the class does not take, or that a results folder could not keep."""
    try:
        own._key()
    except TypeError as error:
        raise Invalid(path, f"must have numbers, texts, lists and tables as arguments: {error}") from None
    if code.trusted:
        names, others = _checked(path, own.parameters)
        _require_known(path, own.arguments, (*own.arguments, *names) if others else names)


def _from_env(path: KeyPath, table: dict[str, Any], env: LBM | DescribedEnvironment) -> dict[str, Any]:
    """The arguments of an agent; those that are "env" are the model's."""
    arguments = {name: value for name, value in table.items() if name != "type"}
    for name, value in arguments.items():
        if value == "env":
            if name not in FROM_ENV:
                raise Invalid((*path, name), f'cannot be "env"; that is for {", ".join(FROM_ENV)}')
            if not isinstance(env, LBM):
                raise Invalid((*path, name), f'cannot be "env" in {env.own_name}, which is no LBM')
            arguments[name] = getattr(env, FROM_ENV[name])
    return arguments


def _agent(
    path: KeyPath, table: dict[str, Any], env: LBM | DescribedEnvironment, T: int, *, code: Code
) -> Agent | DescribedAgent:
    kind = table.get("type")
    if isinstance(kind, str) and ":" in kind:
        own = DescribedAgent(_checked(path, code.find, kind), _from_env(path, table, env), T)
        _check_own(path, own, code)
        return own
    if not isinstance(kind, str) or kind not in AGENTS:
        allowed_types = f'{", ".join(AGENTS)} or "module:Class"'
        raise Invalid((*path, "type"), f"must be one of {allowed_types}, got {kind!r}")
    allowed = list(inspect.signature(AGENTS[kind]).parameters)
    _require_known(path, {name: value for name, value in table.items() if name != "type"}, allowed)
    arguments = _from_env(path, table, env)
    if "horizon" in allowed and "horizon" not in arguments:
        arguments["horizon"] = T
    if "agent" in allowed:  # an agent around another one
        inner = arguments.get("agent")
        if not isinstance(inner, dict):
            raise Invalid(
                (*path, "agent"), f"must be a table with the agent that {kind} plays, its horizon in it"
            )
        if inner.get("type") == kind:
            raise Invalid((*path, "agent", "type"), f"cannot be {kind} again")
        arguments["agent"] = _agent((*path, "agent"), inner, env, T, code=code)
    return _checked(path, lambda: AGENTS[kind](**arguments))  # type: ignore[no-any-return]
