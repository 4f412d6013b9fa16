"""Parameters: own the columns that say which environment, agent and horizon a row is of.

Those of a model have its own names (d, m, gamma, sigma, noise, actions, K), those of the agent begin with
`agent_`. An environment of your own has its type and, in a study, its arguments, which begin with `env_`. An
array is no column; the manifest of a study has its theta.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..agents import Agent
from ..model.lbm import LBM
from ..running.own import name_of
from . import strict_json
from .own_types import Described

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


def later_names(envs: Iterable[Any]) -> list[str]:
    """What the paper's model does not have and one of these has: all models of a study then say theirs.

    >>> later_names([LBM([1.0], m=1, gamma=-1.0), LBM([1.0], m=1, gamma=-1.0, decay=0.5)])
    ['decay']
    """
    models = [env for env in envs if isinstance(env, LBM)]
    paper = LBM._LATER
    return [name for name in paper if any(getattr(model, name) != paper[name] for model in models)]


def of_env(env: Any, later: Iterable[str] | None = None) -> dict[str, Any]:
    """The parameters of an environment by the name of their column; `later` are those of `later_names`.

    >>> from fastlbm import LBM
    >>> of_env(LBM([0.6, 0.8], m=1, gamma=-2.0))
    {'d': 2, 'm': 1, 'gamma': -2.0, 'sigma': 0.1, 'noise': 'gaussian', 'actions': 'ball'}
    """
    if not isinstance(env, LBM):  # its set is not asked for: it may have to be made first
        return _type_and_arguments("env", env)
    found = {name: getattr(env, name) for name in OF_ENV} | {"actions": type(env.actions).__name__.lower()}
    for name in later_names([env]) if later is None else later:
        value = getattr(env, name)
        found[name] = value if isinstance(value, (float, str)) else repr(value)  # a response of one's own
    return found | ({"K": env.actions.K} if hasattr(env.actions, "K") else {})


def of_env_names(frame: pd.DataFrame) -> list[str]:
    """The columns of a frame that are parameters of environments."""
    own = [name for name in frame if name.startswith("env_")]
    return [*(name for name in (*OF_ENV, "actions", *LBM._LATER, "K") if name in frame), *own]


def of_agent(agent: Any) -> dict[str, Any]:
    """The parameters of an agent by the name of their column; what is None is not there.

    >>> from fastlbm import OFUL
    >>> of_agent(OFUL(horizon=100))["agent_type"], of_agent(OFUL(horizon=100))["agent_horizon"]
    ('OFUL', 100)
    """
    return _type_and_arguments("agent", agent)


def _type_and_arguments(prefix: str, part: Any) -> dict[str, Any]:
    """Of an object that Python made and that is not of the package, nobody knows the arguments."""
    found: dict[str, Any] = {f"{prefix}_type": name_of(part)}
    arguments = part._arguments() if isinstance(part, Agent) else {}
    arguments = part.arguments if isinstance(part, Described) else arguments
    for name, value in arguments.items():
        plain = _plain(value)
        if plain is not None:
            found[f"{prefix}_{name}"] = plain
    return found


def _plain(value: Any) -> Any:
    """A number or a text; None for what is neither and does not fit into a short one."""
    if value is None or isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, int) and abs(value) < 2**63:  # a column has no larger ones
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
        "d": env.actions.d,
        **{name: float(shown.get(name, np.nan)) for name in ("m", "gamma", "sigma")},
        "agent_type": agent_type,
        "agent_parameters": strict_json.dumps(plain),
    }


def setting(
    key: str, names: Mapping[str, Any], env: Any, agent: Any, later: Iterable[str] | None = None
) -> dict[str, Any]:
    """What the manifest says of the pieces KEY-A-B.parquet: names, parameters and theta."""
    theta = getattr(env, "theta", ())
    vector = {"theta": np.asarray(theta).tolist()} if 0 < len(theta) <= _LONGEST_THETA else {}
    return {"key": key, **names, **of_env(env, later), **vector, **of_agent(agent)}


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
