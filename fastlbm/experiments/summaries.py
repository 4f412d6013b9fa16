"""Summaries: own the table of final rewards over the seeds that all agents have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .statistics import adjusted_for_many, intervals, paired_tests

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("env", "T", "agent", "mean", "low", "high", "seeds", "p_vs_best")


def summarised(last: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """The summary of the last rows of runs, which have env, agent, T, seed and reward; see COLUMNS."""
    import pandas as pd

    rows = []
    for (env, T), group in last.groupby(["env", "T"], sort=False):
        table = group.pivot(index="seed", columns="agent", values="reward")[group["agent"].unique()]
        if len(group) < table.size:  # a mean over other seeds would be no comparison
            table = table[table.index.isin(paired_rows(group)["seed"])]
        if table.empty:
            continue
        values = table.to_numpy()
        means, best = values.mean(axis=0), int(values.mean(axis=0).argmax())
        tests = np.delete(paired_tests(values[:, [best]] - values), best)
        adjusted = adjusted_for_many(tests)
        columns = (means, *intervals(values, confidence), np.insert(adjusted, best, np.nan))
        for agent, (*row, p) in zip(table, np.stack(columns, axis=1).tolist(), strict=True):
            rows.append((env, T, agent, *row, len(table), p))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def paired_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows, of one environment, of the seeds that are there for all of its agents and horizons."""
    there = rows[["agent", "T", "seed"]].drop_duplicates()
    counts, most = there["seed"].value_counts(), len(there[["agent", "T"]].drop_duplicates())
    return rows if (counts == most).all() else rows[rows["seed"].isin(counts.index[counts == most])]
