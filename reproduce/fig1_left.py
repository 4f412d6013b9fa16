"""Section 5, "Rotting with Bandit Combiner": Figure 1, left pane.

d = 3, m = 2, gamma = -3, sigma = 1/10, T = 1200: O3M and OM against oracle greedy, OFUL and OM-Block, and
what is left when gamma or m is not known. The paper averages 5 runs; 50 give a tight band.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

import fastlbm as lbm
from fastlbm.experiments.results import StudyResults

from . import look
from .claims import Array, exact, mean, ratio
from .page import Page, markdown, played

#: Total rewards of two runs of the published code in this setting, as far as they are known.
AUTHORS = {"O3M": "264, 123", "OM-Block": "284, 254", "oracle greedy": "44 to 45"}


def make(page: Page) -> None:
    """Run the studies, draw the pane, write the table, check what the section says."""
    document = page.document()
    document["seeds"] = page.runs(document["seeds"])
    published = page.study(document)
    sphere = page.study(on_the_sphere(document), "sphere")
    env = published.envs["published"]
    cycle = lbm.best_cycle(env, period=13).average

    titles = {r"$\theta^*$ of the published code": published, r"$\theta^*$ uniform on the sphere": sphere}
    lines = []
    with look.style():
        figure, axes = look.panels(2, height=2.8, sharey=True)
        for panel, (title, results) in zip(axes, titles.items(), strict=True):
            ends = {}
            for agent, rows in results.frame.groupby("agent", sort=False):
                line = look.curve(rows)
                look.draw(panel, agent, line)
                ends[agent] = line.mean[-1]
                lines += [(results.name, agent, *point, line.runs) for point in zip(*line[:4], strict=True)]
            t = np.array([0.0, document["T"]])
            panel.plot(t, cycle * t, **look.look("best cycle"))
            panel.set(xlim=(0, document["T"]), ylim=(0, 1.03 * cycle * document["T"]))
            look.label_ends(panel, {**ends, "best cycle": cycle * document["T"]})
            look.finish(panel, title, "step $t$", "cumulative expected reward" if panel is axes[0] else "")
        figure.supxlabel(look.BAND, fontsize=look.SMALL)
    page.figure(figure)
    page.numbers(("study", "agent", "t", "mean", "low", "high", "runs"), lines)
    page.text(_table(published, sphere, cycle * document["T"]))
    _claims(page, published, sphere)


def on_the_sphere(document: dict[str, Any]) -> dict[str, Any]:
    """The same study with up to ten directions of theta, which share the runs."""
    runs = document["seeds"]
    env = {key: value for key, value in document["env"]["published"].items() if key != "theta"}
    env["grid"] = {"random": [{"d": 3, "seed": seed} for seed in range(min(10, runs))]}
    return {**document, "name": "fig1-left, sphere", "seeds": max(1, runs // 10), "env": {"sphere": env}}


def totals(results: StudyResults, agent: str) -> Array:
    """Total expected reward of every run of an agent."""
    frame = results.frame
    return np.asarray(frame[(frame["t"] == frame["T"]) & (frame["agent"] == agent)]["reward"])


def _table(published: StudyResults, sphere: StudyResults, best: float) -> str:
    rows = []
    for agent in published.frame["agent"].unique():
        mine = totals(published, agent)
        rows.append((
            agent,
            f"{mine[:5].mean():.1f}",
            f"{mine[:5].min():.1f} to {mine[:5].max():.1f}",
            mean(mine).text(1),
            f"{mine.mean() / best:.1%}",
            mean(totals(sphere, agent)).text(1),
            AUTHORS.get(agent, ""),
        ))  # fmt: skip
    runs, others = len(totals(published, "O3M")), len(totals(sphere, "O3M"))
    columns = (
        "agent",
        "mean of 5 runs",
        "their range",
        f"mean of {runs} (95% interval)",
        "of the best cycle",
    )
    return (
        f"Total expected reward, T = {published.frame['T'].max()}, d = 3, m = 2, gamma = -3, sigma = 0.1, "
        f"L = 20, delta = 0.01. The best cycle earns {best:.1f}. Sphere: {sphere.frame['env'].nunique()} "
        f"directions of theta, {others} runs in all.\n\n"
        + markdown((*columns, "sphere (95% interval)", "published code, 2 runs"), rows)
    )


def _claims(page: Page, published: StudyResults, sphere: StudyResults) -> None:
    total = {agent: totals(published, agent) for agent in published.frame["agent"].unique()}
    O3M, five = total["O3M"], total["O3M"][:5]
    env = published.envs["published"]
    full = {name: _fullness(env, agent) for name, agent in _players().items()}
    half = special.stdtrit(len(five) - 1, 0.975) * five.std(ddof=1) / np.sqrt(len(five))
    page.claim("five runs", exact(half / five.mean()))
    page.claim("O3M and greedy", ratio(O3M, total["oracle greedy"]))
    page.claim("O3M and OFUL", ratio(O3M, total["OFUL"]))
    page.claim("O3M and OM", ratio(O3M, total["OM"]))
    page.claim("waiting", ratio(full["O3M"], full["OFUL"]))
    page.claim("Combiner gamma", ratio(total["Combiner gamma"], O3M))
    page.claim("Combiner m", ratio(total["Combiner m"], O3M))
    page.claim("Combiner m, scaled", ratio(total["Combiner m, scale 0.01"], O3M))
    page.claim("m is harder", ratio(total["Combiner m"], total["Combiner gamma"]))
    combiner = max((agent for agent in total if "Combiner" in agent), key=lambda agent: total[agent].mean())
    page.claim("evidence", ratio(total["EvidenceSelector"], total[combiner]))
    page.claim("theta's direction", exact(totals(sphere, "O3M").mean() / O3M.mean()))


def _players() -> dict[str, lbm.agents.Agent]:
    return {"O3M": lbm.O3M(2, -3.0, 1200, L=20, delta=0.01), "OFUL": lbm.OFUL(1200, delta=0.01)}


def _fullness(env: lbm.LBM, agent: lbm.agents.Agent, seeds: int = 5) -> Array:
    """Mean over steps of `a_t^T (sum of the last m a a^T) a_t / ||a_t||^2`, for each seed."""
    found = []
    for seed in range(seeds):
        a = played(env, agent, 1200, seed)
        m = int(env.m)
        inside = sum((a[m - s : len(a) - s] * a[m:]).sum(axis=1) ** 2 for s in range(1, m + 1))
        found.append(np.mean(inside / np.maximum((a[m:] ** 2).sum(axis=1), 1e-12)))
    return np.array(found)
