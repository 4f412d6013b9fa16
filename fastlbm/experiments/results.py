"""Results of a study: own its rows, their summary, what is drawn of them and carried away."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import plots
from .._base import validation
from .._base.display import Displayed
from .._base.files import write_atomically
from .._base.types import Array, Integers
from .._version import NUMBERS
from ..model.lbm import LBM
from .comparators import COMPARATORS, Comparators, Gap, Question, bound_of, default_kinds, opponent_words
from .export import ENDINGS, latex_table, new_file, write_rows
from .panels import chosen_of, curve_over, exponent_words, longest_words, short
from .parameters import NAMES, of_env_names
from .statistics import BANDS, band_of
from .summaries import paired_rows, summarised

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What a figure shows, and the name of its vertical axis.
KINDS = {"reward": "cumulative expected reward", "regret": "regret", "loglog": "regret"}
#: The columns of a row that are no names and no parameters.
VALUES = ("seed", "t", "reward", "observed")


@dataclass(frozen=True, repr=False)
class StudyResults(Displayed):
    """The rows of a study: env, agent, T, seed, t, the cumulative reward, expected and observed, parameters.

    `envs` has the models; an environment of your own is not among them, and has no regret. Where it does not
    know what to expect, `reward` is what was observed.

    `missing` has the number of seeds that are not there, by environment, agent and horizon; nothing in a
    finished study. What compares agents then takes the seeds that all of them have, and says so in a warning.
    `numbers` is the version of the numbers that made the rows.
    """

    frame: pd.DataFrame
    envs: dict[str, LBM] = field(repr=False)
    name: str = "study"
    missing: Mapping[tuple[str, str, int], int] = field(default_factory=dict, repr=False)
    numbers: int = NUMBERS
    #: The model of each seed, of the environments where every seed has its own.
    instances: Mapping[str, Callable[[int], LBM]] = field(default_factory=dict, repr=False)
    #: The study's document, versions and times; and how the beginning of a run is played again.
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)
    replay: Callable[..., dict[str, Any] | None] | None = field(default=None, repr=False)

    def _facts(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name, "rows": len(self.frame)}
        if len(self.frame):
            found |= {name + "s": int(self.frame[name].nunique()) for name in ("env", "agent", "seed")}
        return {**found, "missing": sum(self.missing.values()), "numbers": self.numbers}

    def _repr_html_(self) -> str:
        return super()._repr_html_() + (self.summary_html() if len(self.frame) else "")

    def summary_html(self) -> str:
        """The summary as an HTML table, its first rows if it is long."""
        text: str = self.summary().to_html(index=False, max_rows=20, float_format=lambda x: f"{x:.4g}")
        return text

    def summary(self, confidence: float = 0.95) -> pd.DataFrame:
        """Final rewards: mean, interval (bootstrap of the mean), and a paired test against the best agent.

        The test is Wilcoxon's signed-rank over seeds; p-values are adjusted for the number of agents compared
        in the same environment and horizon (Benjamini and Hochberg), NaN for the best one itself. `seeds` is
        the number of seeds that all of these agents have, over which the means are taken.
        """
        confidence = _confidence(confidence)
        self._tell_missing()
        last = self.frame[self.frame["t"] == self.frame["T"]]
        return summarised(last, confidence)

    @cached_property
    def settings(self) -> pd.DataFrame:
        """Environments, agents and horizons with their parameters, a row each."""
        shown = [name for name in self.frame if name not in VALUES]
        return self.frame[shown].drop_duplicates(list(NAMES), ignore_index=True)

    def latex(self, confidence: float = 0.95) -> str:
        """The summary as a LaTeX table fit for a paper, see `export.latex_table`."""
        return latex_table(
            self.summary(confidence), name=self.name, confidence=confidence, what=self.what_of("reward")
        )

    def export(self, path: str | os.PathLike[str], replace: bool = False) -> Path:
        """Write all rows, parameters included, to a .parquet, .csv or .json file, or `latex` to a .tex file.

        All digits are there; JSON has an infinite number as the text "inf". A file that is there already is
        replaced only if `replace`.
        """
        target = new_file("path", Path(path), ENDINGS, replace)
        if target.suffix.lower() == ".tex":
            write_atomically(target, self.latex().encode())
        else:
            write_rows(self.frame, target)
        return target

    def report(
        self,
        path: str | os.PathLike[str] = "report.html",
        replace: bool = False,
        notes: Sequence[str] = (),
        progress: bool | str = True,
    ) -> Path:
        """Write one page that shows all of it in a browser, without network; needs `fastlbm[report]`.

        What was asked and what came out: curves, tables, parameters, agents at work, versions and warnings,
        to which `notes` are added.
        """
        from .report import write_report

        target = new_file("path", Path(path), (".html", ".htm"), replace)
        write_report(self, target, notes, progress)
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

    @cached_property
    def _comparators(self) -> Comparators:
        return Comparators()

    def comparator(self, env: str, t: Array | Integers, kind: str = "opt", seed: int | None = None) -> Array:
        """What regret is measured against, at the steps t; it is computed once and kept.

        Where every seed has a model of its own it is that of the `seed`, or their mean without.

        "opt" is the upper bound on OPT, exact where that is known, and "lower" its lower bound, both computed
        at POINTS of the steps and straight in between; "best cycle" is what the best cycle found collects,
        "oracle greedy" the policy of that name.
        """
        kind = validation.choice("kind", kind, tuple(COMPARATORS))
        steps = np.asarray(t, dtype=np.int64)
        if env in self.instances and seed is None:
            seeds = self.frame.loc[self.frame["env"] == env, "seed"].unique()
            mean: Array = self.opponents(env, steps, kind, seeds).mean(axis=1)
            return mean
        model = self._model(env) if env not in self.instances else self.instances[env](int(seed or 0))
        return self._comparators.answer(Question(model, kind, steps))

    def opponents(self, env: str, steps: Integers, kind: str, seeds: Iterable[int]) -> Array:
        """The comparator (steps, seeds) of each seed, or (steps, 1) of all of them."""
        models = [None] if env not in self.instances else [int(seed) for seed in seeds]
        return np.stack([self.comparator(env, steps, kind, seed) for seed in models], axis=1)

    def gap(self, env: str, rows: pd.DataFrame) -> Gap:
        """The bounds on OPT at the longest horizon of the rows; means, if each seed has its own model."""
        last, seeds = np.array([rows["T"].max()]), rows["seed"].unique()
        lower, upper = (float(self.opponents(env, last, kind, seeds).mean()) for kind in ("lower", "opt"))
        return Gap(int(last[0]), lower, upper)

    def _model(self, env: str) -> LBM:
        """The model of the environment, if it has one."""
        if env not in self.envs:
            raise ValueError(
                f"regret must be that of an LBM, whose best rewards can be computed; {env} is an environment "
                'of your own: draw its "reward", or choose the others by envs (on the command line --envs)'
            )
        return self.envs[env]

    def what_of(self, kind: str, envs: Mapping[str, str] | None = None) -> str:
        """What is drawn, as a figure says it, of the environments with these labels."""
        if kind != "reward":
            return KINDS[kind]
        envs = chosen_of("envs", envs, self.frame["env"].unique())
        observed = [env for env in envs if env not in self.envs and self._is_observed(env)]
        if len(observed) == len(envs):
            return "cumulative observed reward"
        return KINDS[kind] + (f" (observed in {', '.join(envs[e] for e in observed)})" if observed else "")

    def _is_observed(self, env: str) -> bool:
        """Whether the rewards of an environment of your own are what was observed."""
        mine = self.frame[self.frame["env"] == env]
        return bool(mine["reward"].equals(mine["observed"]))

    def plot(
        self,
        kind: str = "reward",
        comparator: str | None = None,
        band: str = "bootstrap",
        confidence: float = 0.95,
        **look: Any,
    ) -> Figure:
        """One panel for each environment: cumulative "reward", "regret", or regret on log-log axes, "loglog".

        Every agent is drawn at the horizon `T`, the longest by default; with "loglog" the final regrets of
        all horizons, the fitted exponent and the theorem's bound. The band's kind is written on the plot.

        Regret is against the `comparator`, see the method of that name; by default "opt", or "best cycle" in
        an environment where the upper bound on OPT exceeds the lower one by more than a fifth, which the plot
        says. `look` is what `figures` takes: against, agents, envs, T, size, ax, progress. More panels than
        a page has are on several figures: this is the first one then, with a warning, and `figures` has all.
        """
        made = self.figures(kind, comparator, band, confidence, **look)
        if len(made) > 1:
            warnings.warn(
                f"the panels are on {len(made)} pages, this is the first: figures(...) has all of them, and "
                "envs=[...] chooses some",
                stacklevel=2,
            )
        return made[0]

    def figures(
        self,
        kind: str = "reward",
        comparator: str | None = None,
        band: str = "bootstrap",
        confidence: float = 0.95,
        *,
        against: str | None = None,
        agents: Sequence[str] | Mapping[str, str] | None = None,
        envs: Sequence[str] | Mapping[str, str] | None = None,
        T: int | None = None,
        size: tuple[float, float] | None = None,
        ax: Axes | Sequence[Axes] | None = None,
        progress: bool | str = True,
    ) -> list[Figure]:
        """The pages of a plot, see `plot`.

        `against` is a column of `settings`, such as "gamma", "d", "T" or "agent_L": final reward or regret is
        drawn over its values, with a panel for each combination of the other parameters of the environments.
        `agents` and `envs` choose, order and, as a mapping from names, label what is drawn, and `T` chooses
        a horizon. `size` is in inches; `ax`, an axes of yours or one for each panel, is drawn into. With
        `progress` a bar is shown while comparators are computed.
        """
        kind = validation.choice("kind", kind, tuple(KINDS))
        if comparator is not None:
            comparator = validation.choice("comparator", comparator, tuple(COMPARATORS))
        band = validation.choice("band", band, tuple(BANDS))
        confidence = _confidence(confidence)
        if against is not None:
            against = validation.choice("against", against, self._parameters)
        chosen = chosen_of("envs", envs, self.frame["env"].unique())
        shown = chosen_of("agents", agents, self.frame["agent"].unique())
        missing = self._tell_missing()
        rows = self._at(T, self.paired_rows(chosen, shown))
        versus = {} if kind == "reward" else self._versus(rows, kind, comparator, against, progress)
        opponent = self._opponent_words(rows, versus, comparator, chosen)
        left_out = longest_words(rows) if against is None and kind != "loglog" else ""
        name = "bands" if against is None else "bars"
        bands = "" if band == "none" or kind == "loglog" else f"{name}: {BANDS[band].format(confidence)}"
        note = "; ".join(filter(None, [opponent, left_out, bands, missing]))
        common: dict[str, Any] = {"size": size, "axes": ax}
        if against is not None:
            panels: dict[str, Any] = self._against(rows, against, versus, (band, confidence))
            what = self.what_of(kind, chosen).removeprefix("cumulative ")
            common |= {"xlabel": against, "ylabel": f"final {what}"}
            draw: Callable[..., Figure] = plots.draw_against
        elif kind == "loglog":
            panels = {chosen[env]: self._growth(env, mine, versus[env]) for env, mine in rows.items()}
            draw = plots.draw_growth
        else:
            panels = {
                chosen[env]: self._curves(env, mine, versus.get(env), (band, confidence))
                for env, mine in rows.items()
            }
            draw, common = plots.draw_curves, {**common, "ylabel": self.what_of(kind, chosen)}
        every = plots.pages(panels) if ax is None else [panels]
        last = f"; page {{}} of {len(every)}" if len(every) > 1 else ""
        return [draw(page, note=note + last.format(k + 1), **common) for k, page in enumerate(every)]

    def _at(self, T: int | None, rows: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """The rows of this horizon, or all of them."""
        if T is None:
            return rows
        every = sorted({int(each) for mine in rows.values() for each in mine["T"].unique()})
        if T not in every:
            raise ValueError(f"T must be one of the horizons {', '.join(map(str, every))}, got {T!r}")
        found = {env: mine[mine["T"] == T] for env, mine in rows.items()}
        return {env: mine for env, mine in found.items() if len(mine)}

    def _versus(
        self,
        rows: Mapping[str, pd.DataFrame],
        kind: str,
        comparator: str | None,
        against: str | None,
        progress: bool | str,
    ) -> dict[str, str]:
        """What regret is measured against in each environment, all of it computed."""
        first = comparator or "opt"
        questions = [*self.questions(rows, kind, first, against)]
        if first == "opt":  # how far the bounds are apart is told
            last = [Question(q.env, q.kind, q.steps[-1:]) for q in questions]
            questions += [*last, *(q._replace(kind="lower") for q in last)]
        self._compute(questions, progress)
        if comparator is not None:
            return dict.fromkeys(rows, comparator)
        gaps = {env: self.gap(env, mine) for env, mine in rows.items()}
        varying = {env for env in rows if self._model(env).actions.varies}
        found = default_kinds(gaps, together=against is not None, without_cycle=varying)
        others = {env: mine for env, mine in rows.items() if found[env] != "opt"}
        self._compute(self.questions(others, kind, "best cycle", against), False)  # it was searched already
        return found

    def _compute(self, questions: Iterable[Question], progress: bool | str) -> None:
        for refused in self._comparators.compute(questions, progress):
            raise refused.error

    def _opponent_words(
        self,
        rows: Mapping[str, pd.DataFrame],
        versus: Mapping[str, str],
        comparator: str | None,
        labels: Mapping[str, str],
    ) -> str:
        """What regret is measured against, as a figure says it; nothing without regret."""
        if comparator not in (None, "opt") and versus:
            return f"regret against {COMPARATORS[comparator]}"
        gaps = {labels[env]: self.gap(env, mine) for env, mine in rows.items() if versus}
        return opponent_words({labels[env]: kind for env, kind in versus.items()}, gaps)

    @property
    def _parameters(self) -> tuple[str, ...]:
        """The columns that a plot can be against: T, and numbers among the parameters."""
        every = [name for name in self.settings if name not in ("env", "agent")]
        return tuple(name for name in every if self.settings[name].dtype.kind in "if")

    def paired_rows(
        self, envs: Mapping[str, str] | None = None, agents: Mapping[str, str] | None = None
    ) -> dict[str, pd.DataFrame]:
        """The rows of the seeds that all agents have, by environment; of these agents, by their labels."""
        envs = chosen_of("envs", None, self.frame["env"].unique()) if envs is None else envs
        agents = chosen_of("agents", None, self.frame["agent"].unique()) if agents is None else agents
        order = {name: k for k, name in enumerate(agents)}
        found = {}
        for env in envs:
            mine = paired_rows(self.frame[(self.frame["env"] == env) & self.frame["agent"].isin(order)])
            if len(mine):
                place = np.argsort(mine["agent"].map(order).to_numpy(), kind="stable")
                mine = mine.iloc[place]
                found[env] = mine.assign(agent=mine["agent"].map(dict(agents)))
        if not found:
            raise ValueError("the study must have a seed that all agents have finished, there is none yet")
        return found

    def questions(
        self, rows: Mapping[str, pd.DataFrame], kind: str, comparator: str, against: str | None
    ) -> Iterator[Question]:
        """Every comparator that a plot needs."""
        for env, mine in rows.items():
            draw = self.instances.get(env)
            models = [self._model(env)] if draw is None else [draw(int(s)) for s in mine["seed"].unique()]
            if kind == "loglog" or against is not None:
                every = [np.sort(mine["T"].unique())]
            else:
                longest = mine[mine["T"] == mine.groupby("agent")["T"].transform("max")]
                every = [np.sort(group.unique()) for _, group in longest.groupby("agent")["t"]]
            yield from (Question(model, comparator, steps) for model in models for steps in every)

    def _curves(
        self, env: str, rows: pd.DataFrame, comparator: str | None, band: tuple[str, float]
    ) -> list[plots.Curve]:
        """Each agent's reward at its longest horizon or, with a comparator, its regret."""
        curves = []
        for agent, every in rows.groupby("agent", sort=False):
            mine = every[every["T"] == every["T"].max()]
            table = mine.pivot(index="t", columns="seed", values="reward")
            t, values = table.index.to_numpy(), table.to_numpy()
            if comparator is not None:
                values = self.opponents(env, t, comparator, table.columns) - values
            low, high = band_of(values, *band)
            curves.append(plots.Curve(label=agent, x=t, mean=values.mean(axis=1), low=low, high=high))
        return curves

    def final(self, env: str, rows: pd.DataFrame, comparator: str | None) -> pd.DataFrame:
        """The last row of each run, with its final reward or regret as `value`."""
        last = rows[rows["t"] == rows["T"]]
        if comparator is None:
            return last.assign(value=last["reward"])
        every, seeds = np.sort(rows["T"].unique()), np.sort(rows["seed"].unique())
        best = np.broadcast_to(self.opponents(env, every, comparator, seeds), (len(every), len(seeds)))
        place = np.searchsorted(every, last["T"]), np.searchsorted(seeds, last["seed"])
        return last.assign(value=best[place] - last["reward"].to_numpy())

    def _against(
        self, rows: Mapping[str, pd.DataFrame], name: str, versus: Mapping[str, str], band: tuple[str, float]
    ) -> dict[str, list[plots.Curve]]:
        """Final values over the values of a parameter, a panel for each combination of the others."""
        import pandas as pd

        last = pd.concat([self.final(env, mine, versus.get(env)) for env, mine in rows.items()])
        last = last[last[name].notna()]
        others = ["T", *of_env_names(last)]
        others = [other for other in others if other != name and last[other].nunique(dropna=False) > 1]
        if name.startswith("agent_"):  # agents that differ by this parameter are one line
            last = last.assign(agent=last["agent"].str.split("(", n=1).str[0])
        groups = last.groupby(others, sort=False, observed=True, dropna=False) if others else [((), last)]
        panels: dict[str, list[plots.Curve]] = {}
        for values, group in groups:
            there = [(other, value) for other, value in zip(others, values, strict=True) if value == value]
            words = ", ".join(f"{other}={short(value)}" for other, value in there)
            panels[words] = [
                curve_over(agent, mine, name, band) for agent, mine in group.groupby("agent", sort=False)
            ]
        return panels

    def _growth(self, env: str, rows: pd.DataFrame, comparator: str) -> plots.Growth:
        """Each agent's final regret at its horizons, where it is positive, and Theorem 1's bound."""
        lines = []
        for agent, last in self.final(env, rows, comparator).groupby("agent", sort=False):
            means = last.groupby("T")["value"].mean()
            x, y = means.index.to_numpy()[means > 0.0], means.to_numpy()[means > 0.0]
            lines.append(plots.Line(f"{agent}{exponent_words(x, y)}", x, y))
        every = np.sort(rows["T"].unique())
        return plots.Growth(lines, bound=plots.Line("Theorem 1", every, bound_of(self._model(env), every)))


def _confidence(value: float) -> float:
    return validation.real("confidence", value, low=0.0, high=1.0, open_low=True, open_high=True)
