"""Results of a study: own its rows, their statistics and comparators; may touch planning, for comparators."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import plots, theory
from .._base import validation
from .._base.files import write_atomically
from .._base.types import Array
from .._version import NUMBERS
from ..agents import OracleGreedy
from ..model.lbm import LBM
from ..planning.bounds import opt_bounds
from ..planning.cycles import best_cycle, reward_of_cycle
from ..running.episode import run
from .export import ENDINGS, latex_table, new_file, write_rows
from .parameters import NAMES
from .statistics import BANDS, band_of, intervals, paired_tests

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: What regret is measured against, and how a figure says it.
COMPARATORS = {
    "opt": "OPT (upper bound where not exact)",
    "lower": "the lower bound on OPT",
    "best cycle": "the best cycle",
    "oracle greedy": "oracle greedy",
}
#: What a figure shows, and the name of its vertical axis.
KINDS = {"reward": "cumulative expected reward", "regret": "regret", "loglog": "regret"}
#: The columns of a row that are no names and no parameters.
VALUES = ("seed", "t", "reward", "observed")
#: Horizons at which bounds on OPT are computed for a curve.
POINTS = 12


@dataclass(frozen=True)
class StudyResults:
    """The rows of a study: env, agent, T, seed, t, the cumulative reward, expected and observed, parameters.

    `missing` has the number of seeds that are not there, by environment, agent and horizon; nothing in a
    finished study. What compares agents then takes the seeds that all of them have, and says so in a warning.
    `numbers` is the version of the numbers that made the rows.
    """

    frame: pd.DataFrame
    envs: dict[str, LBM] = field(repr=False)
    name: str = "study"
    missing: Mapping[tuple[str, str, int], int] = field(default_factory=dict, repr=False)
    numbers: int = NUMBERS

    def summary(self, confidence: float = 0.95) -> pd.DataFrame:
        """Final rewards: mean, interval (bootstrap of the mean), and a paired test against the best agent.

        The test is Wilcoxon's signed-rank over seeds; p-values are adjusted for the number of agents compared
        in the same environment and horizon (Benjamini and Hochberg), NaN for the best one itself. `seeds` is
        the number of seeds that all of these agents have, over which the means are taken.
        """
        import pandas as pd
        from scipy import stats

        confidence = _confidence(confidence)
        self._tell_missing()
        last = self.frame[self.frame["t"] == self.frame["T"]]
        rows = []
        for (env, T), group in last.groupby(["env", "T"], sort=False):
            table = group.pivot(index="seed", columns="agent", values="reward")[group["agent"].unique()]
            if len(group) < table.size:  # a mean over other seeds would be no comparison
                table = table[table.index.isin(_paired_rows(group)["seed"])]
            if table.empty:
                continue
            values = table.to_numpy()
            means, best = values.mean(axis=0), int(values.mean(axis=0).argmax())
            tests = np.delete(paired_tests(values[:, [best]] - values), best)
            adjusted = stats.false_discovery_control(tests) if len(tests) else tests
            columns = (means, *intervals(values, confidence), np.insert(adjusted, best, np.nan))
            for agent, row in zip(table, np.stack(columns, axis=1).tolist(), strict=True):
                rows.append((env, T, agent, len(table), *row))
        names = ["env", "T", "agent", "seeds", "mean", "low", "high", "p_vs_best"]
        return pd.DataFrame(rows, columns=names)

    @cached_property
    def settings(self) -> pd.DataFrame:
        """Environments, agents and horizons with their parameters, a row each."""
        shown = [name for name in self.frame if name not in VALUES]
        return self.frame[shown].drop_duplicates(list(NAMES), ignore_index=True)

    def latex(self, confidence: float = 0.95) -> str:
        """The summary as a LaTeX table fit for a paper, see `export.latex_table`."""
        return latex_table(self.summary(confidence), name=self.name, confidence=confidence)

    def export(self, path: str | os.PathLike[str], replace: bool = False) -> Path:
        """Write all rows, parameters included, to a .parquet, .csv or .json file, or `latex` to a .tex file.

        A file that is there already is replaced only if `replace`.
        """
        target = new_file("path", Path(path), ENDINGS, replace)
        if target.suffix.lower() == ".tex":
            write_atomically(target, self.latex().encode())
        else:
            write_rows(self.frame, target)
        return target

    def _tell_missing(self) -> str:
        """Warn of what is missing; in a few words, for a figure."""
        if not self.missing:
            return ""
        (env, agent, T), count = next(iter(self.missing.items()))
        total, others = sum(self.missing.values()), len(self.missing) - 1
        warnings.warn(
            f"the study is not finished: {total} runs are missing, {count} of them of {agent} in {env} "
            + f"with T={T}"
            + (f", the others of {others} more settings" if others else "")
            + "; agents are compared by the seeds that all of them have",
            stacklevel=3,
        )
        return f"not finished: {total} runs are missing"

    def comparator(self, env: str, t: Array, kind: str = "opt") -> Array:
        """What regret is measured against, at the steps t.

        "opt" is the upper bound on OPT, exact where that is known, and "lower" its lower bound, both computed
        at POINTS of the steps and straight in between; "best cycle" is what the best cycle found collects,
        "oracle greedy" the policy of that name.
        """
        model = self.envs[env]
        kind = validation.choice("kind", kind, tuple(COMPARATORS))
        steps = np.asarray(t, dtype=np.int64)
        if kind == "oracle greedy":
            return run(model, OracleGreedy(), int(steps[-1]), record=steps).reward
        if kind == "best cycle":
            cycle = best_cycle(model)
            return np.array([reward_of_cycle(model, cycle.actions, int(T)) for T in steps])
        chosen = steps[np.unique(np.linspace(0, len(steps) - 1, POINTS).round().astype(int))]
        bounds = [opt_bounds(model, int(T)) for T in chosen]
        values = [b.upper if kind == "opt" else b.lower for b in bounds]
        return np.interp(steps, [0, *chosen], [0.0, *values])

    def plot(
        self, kind: str = "reward", comparator: str = "opt", band: str = "bootstrap", confidence: float = 0.95
    ) -> Figure:
        """One panel for each environment: cumulative "reward", "regret", or regret on log-log axes, "loglog".

        Every agent is drawn at its longest horizon; with "loglog" the final regrets of all horizons, the
        fitted exponent and the theorem's bound. The band's kind is written on the plot.
        """
        kind = validation.choice("kind", kind, tuple(KINDS))
        comparator = validation.choice("comparator", comparator, tuple(COMPARATORS))
        band = validation.choice("band", band, tuple(BANDS))
        confidence = _confidence(confidence)
        missing, against = self._tell_missing(), f"regret against {COMPARATORS[comparator]}"
        rows = {env: _paired_rows(mine) for env, mine in self.frame.groupby("env", sort=False)}
        rows = {env: mine for env, mine in rows.items() if len(mine)}
        if not rows:
            raise ValueError("the study must have a seed that all agents have finished, there is none yet")
        if kind == "loglog":
            note = "; ".join(filter(None, [against, missing]))
            growths = {env: self._growth(env, mine, comparator) for env, mine in rows.items()}
            return plots.draw_growth(growths, note=note)
        bands = "" if band == "none" else f"bands: {BANDS[band].format(confidence)}"
        notes = [against if kind == "regret" else "", bands, missing]
        against_what = comparator if kind == "regret" else None
        return plots.draw_curves(
            {env: self._curves(env, mine, against_what, (band, confidence)) for env, mine in rows.items()},
            ylabel=KINDS[kind],
            note="; ".join(filter(None, notes)),
        )

    def _curves(
        self, env: str, rows: pd.DataFrame, comparator: str | None, band: tuple[str, float]
    ) -> list[plots.Curve]:
        """Each agent's reward at its longest horizon or, with a comparator, its regret."""
        curves = []
        for agent in rows["agent"].unique():
            mine = rows[rows["agent"] == agent]
            mine = mine[mine["T"] == mine["T"].max()]
            table = mine.pivot(index="t", columns="seed", values="reward")
            t, values = table.index.to_numpy(), table.to_numpy()
            if comparator is not None:
                values = self.comparator(env, t, comparator)[:, None] - values
            low, high = band_of(values, *band)
            curves.append(plots.Curve(label=agent, x=t, mean=values.mean(axis=1), low=low, high=high))
        return curves

    def _growth(self, env: str, rows: pd.DataFrame, comparator: str) -> plots.Growth:
        """Each agent's final regret at its horizons, where it is positive, and Theorem 1's bound."""
        lines = []
        every = np.sort(rows["T"].unique())
        best = dict(zip(every.tolist(), self.comparator(env, every, comparator), strict=True))
        for agent in rows["agent"].unique():
            last = rows[(rows["agent"] == agent) & (rows["t"] == rows["T"])]
            means = last.groupby("T")["reward"].mean()
            horizons = means.index.to_numpy()
            regret = np.array([best[T] for T in horizons]) - means.to_numpy()
            x, y = horizons[regret > 0.0], regret[regret > 0.0]
            label = agent
            if len(x) >= 2:
                label += f", exponent {np.polyfit(np.log(x), np.log(y), 1)[0]:.2f}"
            lines.append(plots.Line(label, x, y))
        return plots.Growth(lines, bound=plots.Line("Theorem 1", every, bound_of(self.envs[env], every)))


def _confidence(value: float) -> float:
    return validation.real("confidence", value, low=0.0, high=1.0, open_low=True, open_high=True)


def _paired_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows, of one environment, of the seeds that are there for all of its agents and horizons."""
    there = rows[["agent", "T", "seed"]].drop_duplicates()
    counts, most = there["seed"].value_counts(), len(there[["agent", "T"]].drop_duplicates())
    return rows if (counts == most).all() else rows[rows["seed"].isin(counts.index[counts == most])]


def bound_of(env: LBM, T: Array) -> Array:
    """Theorem 1's bound at the horizons where it holds, NaN elsewhere."""
    m = 0 if env.is_stationary else env.m
    if m == np.inf:
        return np.full(len(T), np.nan)
    least = int(m) ** 2 * env.d**2 + 1
    return np.array(
        [
            theory.regret_bound(int(t), env.d, int(m), env.gamma, A0=env.A0) if t >= least else np.nan
            for t in T
        ]
    )
