"""What a report shows: owns the numbers of its page, as plain lists and dictionaries."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..comparators import COMPARATORS, bound_of, default_kinds, opponent_words
from ..parameters import of_env_names
from ..statistics import BANDS, band_of, intervals

if TYPE_CHECKING:
    import pandas as pd

#: Points of a curve on the page, at most.
POINTS = 100
#: Digits of a number on the page.
DIGITS = 6
#: Steps of a run that are played again to show what an agent does, and the seconds for all of them.
REPLAYED, REPLAY_SECONDS = 120, 6.0
#: Seeds of which that is shown, at most.
RUNS = 3
CONFIDENCE = 0.95
#: Where an agent's parameter may come from: words by column.
_OF_ENV = {name: {"that of the environment": name} for name in ("m", "gamma", "sigma", "decay")}
_SOURCES = {**_OF_ENV, "subgaussian": {"the environment's sigma": "sigma"}, "horizon": {"T": "T"}}
#: Values of a parameter that are told one by one.
_MOST_VALUES = 4
#: The share of a reward below which a regret is rounding.
_ROUNDING = 1e-11


def gather(results: Any, notes: Sequence[str] = (), progress: bool | str = True) -> dict[str, Any]:
    """Everything on the page of `results`, a `StudyResults`, fit for strict JSON."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        summary = results.summary(CONFIDENCE)
        rows = results.paired_rows()
        usable, refused = _comparators(results, rows, progress)
        envs = {env: _environment(results, env, mine, usable[env]) for env, mine in rows.items()}
        behaviour, own = _behaviour(results)
    words = list(dict.fromkeys([*notes, *(str(each.message) for each in told), *refused]))
    content: dict[str, Any] = as_plain(
        {
            "name": results.name,
            "facts": dict(results.facts),
            "numbers": results.numbers,
            "environments": _environments(results.settings),
            "players": _players(results.settings),
            "summary": _table(summary),
            "agents": list(dict.fromkeys(results.frame["agent"])),
            "comparators": COMPARATORS,
            "band": BANDS["bootstrap"].format(CONFIDENCE),
            "parameters": ["T", *of_env_names(results.settings)],
            "envs": envs,
            "behaviour": behaviour,
            "own": own,
            "notes": words,
        }
    )
    return content


def _comparators(
    results: Any, rows: dict[str, pd.DataFrame], progress: bool | str
) -> tuple[dict[str, list[str]], list[str]]:
    """The comparators that each environment has, all computed, and why others have none."""
    words, asked = [], []
    for env, mine in rows.items():
        if env not in results.envs:
            words.append(f"{env} has no regret: it is an environment of your own, not an LBM")
            continue
        for kind in COMPARATORS:
            questions = [*results.questions({env: mine}, "regret", kind, None)]
            questions += results.questions({env: mine}, "loglog", kind, None)
            asked.append((env, kind, questions))
    refused = {
        id(question): error
        for question, error in results._comparators.compute(
            (question for _, _, questions in asked for question in questions), progress
        )
    }
    usable: dict[str, list[str]] = {env: [] for env in rows}
    for env, kind, questions in asked:
        why_not = [refused[id(question)] for question in questions if id(question) in refused]
        if why_not:
            words.append(f"{env} is not compared with {COMPARATORS[kind]}: {why_not[0]}")
        else:
            usable[env].append(kind)
    return usable, words


def _environment(results: Any, env: str, rows: pd.DataFrame, kinds: list[str]) -> dict[str, Any]:
    """Curves and final values of all agents in an environment, as reward and as regret."""
    settings = results.settings
    mine = settings[settings["env"] == env]
    parameters = {name: _or_inf(mine[name].iloc[0]) for name in of_env_names(mine)}
    curves: dict[str, Any] = {}
    for agent, every in rows.groupby("agent", sort=False):
        longest = every[every["T"] == every["T"].max()]
        table = longest.pivot(index="t", columns="seed", values="reward")
        keep = np.unique(np.linspace(0, len(table) - 1, POINTS).round().astype(int))
        t, values = table.index.to_numpy(), table.to_numpy()
        shown = {"T": int(every["T"].max()), "t": t[keep], "reward": _curve(values[keep])}
        for kind in kinds:
            best = results.opponents(env, t, kind, table.columns)
            shown[kind] = _curve(_difference(best, values)[keep])
        curves[str(agent)] = shown
    steps = np.unique(np.geomspace(1, int(rows["T"].max()), 40).round().astype(np.int64))
    model = results.envs.get(env)
    bound = np.full(len(steps), np.nan) if model is None else bound_of(model, steps)
    return {
        "what": results.what_of("reward", {env: env}),
        "parameters": parameters,
        "curves": curves,
        "final": _finals(results, env, rows, kinds),
        "bound": {"T": steps, "value": bound},
        **_opponent(results, env, rows, kinds),
    }


def _opponent(results: Any, env: str, rows: pd.DataFrame, kinds: list[str]) -> dict[str, Any]:
    """The comparator that is shown before one is chosen, and what is said of it and of OPT."""
    if not {"opt", "lower"} <= set(kinds):
        return {"comparator": kinds[0] if kinds else None, "opponents": {}}
    gap = results.gap(env, rows)
    found = default_kinds({env: gap}, without_cycle=() if "best cycle" in kinds else (env,))[env]
    words = {kind: opponent_words({env: kind}, {env: gap}) for kind in {"opt", found}}
    return {"comparator": found, "opponents": words}


def _difference(best: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The regret, 0 where it is but rounding: on a logarithmic axis that would be a line of its own."""
    regret: np.ndarray = best - values
    regret[np.abs(regret) < _ROUNDING * np.maximum(np.abs(best), np.abs(values))] = 0.0
    return regret


def _curve(values: np.ndarray) -> dict[str, Any]:
    """Mean and band of values (points, seeds)."""
    low, high = band_of(values, "bootstrap", CONFIDENCE)
    return {"mean": values.mean(axis=1), "low": low, "high": high}


def _finals(results: Any, env: str, rows: pd.DataFrame, kinds: list[str]) -> list[dict[str, Any]]:
    """Final reward and regrets of each agent at each horizon, with intervals of their means."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for kind in ["reward", *kinds]:
        last = results.final(env, rows, None if kind == "reward" else kind)
        for (agent, T), group in last.groupby(["agent", "T"], sort=False):
            values = group["value"].to_numpy()[:, None]
            if kind != "reward":
                rewards = group["reward"].to_numpy()[:, None]
                values = _difference(values + rewards, rewards)
            low, high = intervals(values, CONFIDENCE)
            row = found.setdefault((agent, T), {"agent": agent, "T": int(T)})
            row[kind] = {"mean": values.mean(), "low": low[0], "high": high[0]}
    return list(found.values())


def _behaviour(results: Any) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """What agents did at the beginning of the first seeds, as long as the time allows.

    All of them are shown in the first seed before one is shown in another. Those of one's own are not, nor is
    one in an environment of one's own: they come by environment, to be told.
    """
    found: list[dict[str, Any]] = []
    own: dict[str, list[str]] = {}
    if results.replay is None:
        return found, own
    begin = time.perf_counter()
    longest = results.settings.groupby(["env", "agent"], sort=False)["T"].max()
    first, *others = np.unique(results.frame["seed"])[:RUNS].tolist()
    for seed in (first, *others):
        for place, ((env, agent), T) in enumerate(longest.items()):
            if time.perf_counter() - begin > REPLAY_SECONDS:
                if seed == first:
                    warnings.warn(
                        f"{len(longest) - place} of {len(longest)} agents in their environments are not "
                        "shown at work: it would take too long",
                        stacklevel=2,
                    )
                return found, own
            again = results.replay(env, agent, int(T), REPLAYED, seed)
            if again is not None:
                found.append({"env": env, "agent": agent, "seed": seed, **again})
            elif not seed:
                own.setdefault(env, []).append(agent)
    return found, own


def _environments(settings: pd.DataFrame) -> dict[str, Any]:
    """A table of the environments with their parameters."""
    return _table(settings[["env", *of_env_names(settings)]].drop_duplicates("env"))


def _players(settings: pd.DataFrame) -> dict[str, Any]:
    """A table of the agents: type, horizons, and parameters in words, some of them the environment's."""
    rows = []
    for agent, mine in settings.groupby("agent", sort=False, observed=True):
        names = [name for name in mine if name.startswith("agent_") and name != "agent_type"]
        words = [f"{name.removeprefix('agent_')} = {_value(mine, name)}" for name in names]
        told = ", ".join(word for word in words if not word.endswith("= nan"))
        horizons = ", ".join(str(T) for T in sorted(mine["T"].unique()))
        rows.append([agent, str(mine["agent_type"].iloc[0]), horizons, told])
    return {"columns": ["agent", "type", "T", "parameters"], "rows": rows}


def _value(mine: pd.DataFrame, name: str) -> str:
    """The value of a parameter in all settings of an agent, in words if there are several."""
    values = mine[name].astype(object)
    if values.nunique(dropna=False) == 1:
        value = values.iloc[0]
        return f"{value:g}" if isinstance(value, float) else str(value)
    for words, source in _SOURCES.get(name.removeprefix("agent_"), {}).items():
        if source in mine and (values == mine[source].astype(object)).all():
            return words
    shown = [f"{value:g}" if isinstance(value, float) else str(value) for value in values.unique()]
    return " or ".join(shown) if len(shown) <= _MOST_VALUES else f"{shown[0]} to {shown[-1]}"


def _table(frame: pd.DataFrame) -> dict[str, Any]:
    columns = [name for name in frame if not frame[name].isna().all()]
    rows = frame[columns].astype(object).values.tolist()
    return {"columns": columns, "rows": [[_or_inf(value) for value in row] for row in rows]}


def _or_inf(value: Any) -> Any:
    """The value, or the text of an infinite number, which the page shows as it is."""
    return str(float(value)) if isinstance(value, (float, np.floating)) and math.isinf(value) else value


def as_plain(value: Any) -> Any:
    """The value for strict JSON, in few digits; None for what is no number."""
    if isinstance(value, dict):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return as_plain(value.tolist())
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value
