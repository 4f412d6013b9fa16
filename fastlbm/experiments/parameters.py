"""Parameters: own the columns that say which environment, agent and horizon a row is of.

Those of the environment have its own names (d, m, gamma, sigma, noise, actions, K), those of the agent begin
with `agent_`. An array is no column; the manifest of a study has its theta.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

#: What of an environment is a column, in this order; and K, the number of arms.
OF_ENV = ("d", "m", "gamma", "sigma", "noise")
#: What names a row; all other columns but the values are parameters.
NAMES = ("env", "agent", "T")
#: The longest text of a parameter that is neither a number nor a word.
_LONGEST_TEXT = 100
#: The longest theta in a manifest.
_LONGEST_THETA = 100


def of_env(env: Any) -> dict[str, Any]:
    """The parameters of an environment by the name of their column.

    >>> from fastlbm import LBM
    >>> of_env(LBM([0.6, 0.8], m=1, gamma=-2.0))
    {'d': 2, 'm': 1, 'gamma': -2.0, 'sigma': 0.1, 'noise': 'gaussian', 'actions': 'ball'}
    """
    found = {name: getattr(env, name) for name in OF_ENV if hasattr(env, name)}
    actions = getattr(env, "actions", None)
    if actions is not None:
        found |= {"d": actions.d, "actions": type(actions).__name__.lower()}
        if hasattr(actions, "K"):
            found["K"] = actions.K
    return found


def of_env_names(frame: pd.DataFrame) -> list[str]:
    """The columns of a frame that are parameters of environments."""
    return [name for name in (*OF_ENV, "actions", "K") if name in frame]


def of_agent(agent: Any) -> dict[str, Any]:
    """The parameters of an agent by the name of their column; what is None is not there.

    >>> from fastlbm import OFUL
    >>> of_agent(OFUL(horizon=100))["agent_type"], of_agent(OFUL(horizon=100))["agent_horizon"]
    ('OFUL', 100)
    """
    found: dict[str, Any] = {"agent_type": type(agent).__name__}
    arguments = agent._arguments() if hasattr(agent, "_arguments") else {}
    for name, value in arguments.items():
        plain = _plain(value)
        if plain is not None:
            found[f"agent_{name}"] = plain
    return found


def _plain(value: Any) -> Any:
    """A number or a text; None for what is neither and does not fit into a short one."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray):
        return None
    text = repr(value)
    return text if len(text) <= _LONGEST_TEXT else None


def of_piece(key: str, env: Any, agent: Any, T: int) -> dict[str, Any]:
    """What a piece has in every row: the same columns in all pieces of all studies, the agent's as JSON."""
    shown = of_env(env)
    mine = of_agent(agent)
    agent_type = mine.pop("agent_type")
    plain = {name.removeprefix("agent_"): value for name, value in mine.items()}
    return {
        "key": key,
        "T": T,
        "d": shown["d"],
        **{name: float(shown.get(name, np.nan)) for name in ("m", "gamma", "sigma")},
        "agent_type": agent_type,
        "agent_parameters": json.dumps(plain),
    }


def setting(key: str, names: Mapping[str, Any], env: Any, agent: Any) -> dict[str, Any]:
    """What the manifest says of the pieces KEY-A-B.parquet: names, parameters and theta."""
    theta = getattr(env, "theta", ())
    vector = {"theta": np.asarray(theta).tolist()} if 0 < len(theta) <= _LONGEST_THETA else {}
    return {"key": key, **names, **of_env(env), **vector, **of_agent(agent)}


def as_columns(rows: Sequence[Mapping[str, Any]], index: np.ndarray) -> dict[str, Any]:
    """A column for each parameter in `rows`, with `rows[i]` for each i of `index` (n,).

    Numbers are integers or floats, NaN where a row has none; texts are categories.
    """
    import pandas as pd

    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        there = [value for value in values if value is not None]
        if any(isinstance(value, str) for value in there):
            texts = [None if value is None else str(value) for value in values]
            kept = pd.Categorical(texts, categories=list(dict.fromkeys(map(str, there))))
            columns[name] = kept.take(index)
        else:
            whole = len(there) == len(values) and all(isinstance(value, int) for value in values)
            numbers = [np.nan if value is None else value for value in values]
            columns[name] = np.array(numbers, dtype=np.int64 if whole else np.float64)[index]
    return columns
