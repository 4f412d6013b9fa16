"""Results of a study: own its frame, statistics and pictures; may touch planning, for comparators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from .. import theory
from .._base import validation
from .._base.validation import Array
from ..agents.base import OracleGreedy
from ..model.lbm import LBM
from ..planning.bounds import opt_bounds
from ..planning.cycles import best_cycle, reward_of_cycle
from ..running.episode import run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

COMPARATORS = ("opt", "lower", "best cycle", "oracle greedy")
KINDS = ("reward", "regret", "loglog")
#: Horizons at which bounds on OPT are computed for a curve.
POINTS = 12
BANDS = ("bootstrap", "simultaneous", "quantiles", "none")


@dataclass(frozen=True)
class StudyResults:
    """The rows of a study: env, agent, T, seed, t, and the cumulative reward, expected and observed."""

    frame: pd.DataFrame
    envs: dict[str, LBM] = field(repr=False)
    name: str = "study"

    def summary(self, confidence: float = 0.95) -> pd.DataFrame:
        """Final rewards: mean, interval (bootstrap of the mean), and a paired test against the best agent.

        The test is Wilcoxon's signed-rank over seeds; p-values are adjusted for the number of agents compared
        in the same environment and horizon (Benjamini and Hochberg), NaN for the best one itself.
        """
        import pandas as pd
        from scipy import stats

        confidence = validation.real(
            "confidence", confidence, low=0.0, high=1.0, open_low=True, open_high=True
        )
        last = self.frame[self.frame["t"] == self.frame["T"]]
        rows = []
        for (env, T), group in last.groupby(["env", "T"], sort=False):
            table = group.pivot(index="seed", columns="agent", values="reward")[group["agent"].unique()]
            best = table.mean().idxmax()
            others = [agent for agent in table if agent != best]
            values = [_paired(table[best] - table[agent]) for agent in others]
            adjusted = dict(zip(others, stats.false_discovery_control(values), strict=True)) if others else {}
            for agent in table:
                low, high = _interval(table[agent].to_numpy(), confidence)
                mean = float(table[agent].mean())
                p = float(adjusted.get(agent, np.nan))
                rows.append((env, T, agent, len(table), mean, low, high, p))
        names = ["env", "T", "agent", "seeds", "mean", "low", "high", "p_vs_best"]
        return pd.DataFrame(rows, columns=names)

    def comparator(self, env: str, t: Array, kind: str = "opt") -> Array:
        """What regret is measured against, at the steps t.

        "opt" is the upper bound on OPT, exact where that is known, and "lower" its lower bound, both computed
        at POINTS of the steps and straight in between; "best cycle" is what the best cycle found collects,
        "oracle greedy" the policy of that name.
        """
        model = self.envs[env]
        kind = validation.choice("kind", kind, COMPARATORS)
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
        from ..plots import draw_curves

        kind = validation.choice("kind", kind, KINDS)
        comparator = validation.choice("comparator", comparator, COMPARATORS)
        band = validation.choice("band", band, BANDS)
        return draw_curves(self, kind, comparator, band, confidence)


def _paired(differences: pd.Series[float]) -> float:
    from scipy import stats

    if (differences == 0.0).all():
        return 1.0
    return float(stats.wilcoxon(differences).pvalue)


def _interval(values: Array, confidence: float) -> tuple[float, float]:
    """A bootstrap interval of the mean; nothing for one value."""
    from scipy import stats

    if len(values) < 2 or np.ptp(values) == 0.0:
        return float(values.mean()), float(values.mean())
    found = stats.bootstrap(
        (values,), np.mean, confidence_level=confidence, n_resamples=2000, method="percentile", rng=0
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


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
