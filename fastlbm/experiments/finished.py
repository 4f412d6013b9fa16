"""Finished studies: own the answer that the folder alone gives, without models, agents and the compiler.

Loading these takes longer than reading the rows of most studies.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._version import NUMBERS, __version__
from .documents import is_of
from .pieces import Contents
from .store import MOST_FILES, Store, StoreError
from .summaries import summarised

if TYPE_CHECKING:
    import pandas as pd


def summary_of_finished(file: Path, out: Path, confidence: float = 0.95) -> tuple[str, pd.DataFrame] | None:
    """The name and summary of the study in the file, if all of it is in the folder and of this version.

    None if something is missing, damaged, of another version, or cannot be told without making the models:
    `Study.run` then says and does what is to be done.
    """
    store = Store(out)
    try:
        manifest = store.manifest()
        if manifest is None or not is_of(file, manifest["study"]) or store.count() > MOST_FILES:
            return None
        if (manifest.get("numbers"), manifest.get("versions", {}).get("fastlbm")) != (NUMBERS, __version__):
            return None
        settings = [mine for mine in manifest.get("settings", ()) if mine.get("current")]
        contents, damaged = store.scan({mine["key"] for mine in settings})
        if damaged or not settings or any(piece.numbers != NUMBERS for piece in contents.pieces):
            return None
        last = _last_rows(settings, contents, manifest["study"]["seeds"])
    except (StoreError, KeyError, TypeError, AttributeError, ValueError):
        return None
    return None if last is None else (manifest["name"], summarised(last, confidence))


def _last_rows(settings: list[dict[str, Any]], contents: Contents, seeds: int) -> pd.DataFrame | None:
    """The last row of each run, in the order of settings and seeds; None if one is missing."""
    import pandas as pd

    ids = {key: number for number, key in enumerate(dict.fromkeys(mine["key"] for mine in settings))}
    horizons = np.zeros(len(ids), dtype=np.int64)
    for mine in settings:
        horizons[ids[mine["key"]]] = mine["T"]
    rows = np.array([(ids[piece.key], piece.rows) for piece in contents.pieces], dtype=np.int64).reshape(
        -1, 2
    )
    key = np.repeat(rows[:, 0], rows[:, 1])
    seed = contents.column("seed")
    at = np.flatnonzero((contents.column("t") == horizons[key]) & (seed < seeds))
    run, first = np.unique(key[at] * seeds + seed[at], return_index=True)  # work done twice counts once
    if len(run) < len(ids) * seeds:
        return None
    rewards = contents.column("reward")[at[first]].reshape(len(ids), seeds)
    names = {
        name: np.repeat(np.array([mine[name] for mine in settings], dtype=object), seeds)
        for name in ("env", "agent")
    }
    return pd.DataFrame(
        {
            **names,
            "T": np.repeat([mine["T"] for mine in settings], seeds),
            "seed": np.tile(np.arange(seeds), len(settings)),
            "reward": np.concatenate([rewards[ids[mine["key"]]] for mine in settings]),
        }
    )
