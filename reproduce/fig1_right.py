"""Section 5, "Rising with non-isotropic initialization": Figure 1, right pane.

d = 2, m = 2, gamma = 1, A0 = diag(1, 0), theta = (sqrt(eps), sqrt(1 - eps)), eps = 0.01, T = 1200. Oracle
greedy plays e_1 for ever; pi_2, which plays e_2 for ever, earns far more. The paper says sigma = 0.1, its
code has 0.3.
"""

from __future__ import annotations

import math

import numpy as np

import fastlbm as lbm
from fastlbm.experiments.results import StudyResults

from . import look
from .claims import Array, exact, mean, ratio
from .page import Page, markdown, played

M, EPSILON = 2, 0.01
#: What the published code collects at sigma = 0.3; its OFUL never updates.
AUTHORS = {"O3M": "about 980", "OFUL": "about 1,950", "oracle greedy": "343 to 369", "pi_2": "2,380"}


def closed_forms(T: float) -> dict[str, float]:
    """The paper's totals, and ours: the first m steps do not find a full memory yet."""
    return {"oracle greedy": T * (1 + M) * math.sqrt(EPSILON), "pi_2": T * M * math.sqrt(1.0 - EPSILON)}


def make(page: Page) -> None:
    """Run the study, draw the pane, write the table, check what the section says."""
    document = page.document()
    document["seeds"] = page.runs(document["seeds"])
    T = document["T"]
    results = page.study(document)
    lines, totals = [], {}
    with look.style():
        figure, axes = look.panels(2, height=2.6, sharey=True)
        for panel, (env, frame) in zip(axes, results.frame.groupby("env", sort=False), strict=True):
            sigma = results.envs[env].sigma
            ends = {}
            for agent, rows in frame.groupby("agent", sort=False):
                line = look.curve(rows)
                look.draw(panel, agent, line)
                ends[agent] = line.mean[-1]
                totals[sigma, agent] = np.asarray(rows[rows["t"] == T]["reward"])
                lines += [(f"{sigma:g}", agent, *point, line.runs) for point in zip(*line[:4], strict=True)]
            t = np.array([0.0, T])
            for name, slope in closed_forms(1.0).items():
                words = "closed forms of the paper" if name == "pi_2" else None
                panel.plot(t, slope * t, color="black", linewidth=0.6, linestyle=(0, (1, 2)), label=words)
            panel.set(xlim=(0, T), ylim=(0, 2500))
            look.label_ends(panel, ends)
            look.finish(panel, rf"$\sigma = {sigma:g}$", "step $t$", "")
        axes[0].set_ylabel("cumulative expected reward")
        axes[0].legend(*([part[-1:] for part in axes[0].get_legend_handles_labels()]), loc="upper left")
        figure.supxlabel(look.BAND, fontsize=look.SMALL)
    page.figure(figure)
    page.numbers(("sigma", "agent", "t", "mean", "low", "high", "runs"), lines)
    rows = []
    for sigma, agent in totals:
        ours, closed = totals[sigma, agent], closed_forms(T).get(agent)
        difference = "" if closed is None else f"{ours.mean() - closed:.3f}"
        said = AUTHORS[agent] if sigma == 0.3 else ""
        shown = mean(ours).text(1) if np.ptp(ours) else f"{ours[0]:.3f}"
        rows.append((f"{sigma:g}", agent, shown, f"{closed:.3f}" if closed else "", difference, said))
    columns = (
        "sigma",
        "agent",
        f"mean of {document['seeds']} runs (95% interval)",
        "closed form",
        "difference",
    )
    page.text(
        f"Total expected reward, T = {T}, epsilon = {EPSILON:g}, m = {M}, L = 10, delta = 0.01.",
        markdown((*columns, "published code"), rows),
    )
    _claims(page, results, totals)


def _claims(page: Page, results: StudyResults, totals: dict[tuple[float, str], Array]) -> None:
    env = results.envs["rising(sigma=0.1)"]
    T = int(results.frame["T"].max())
    O3M, OFUL, pi_2, greedy = (totals[0.1, agent] for agent in ("O3M", "OFUL", "pi_2", "oracle greedy"))
    closed, first = closed_forms(T), M * (M + 1) / 2  # steps' worth of reward that the first m steps miss
    page.claim("greedy plays e_1", exact(np.abs(played(env, lbm.OracleGreedy(), T) - [1.0, 0.0]).max()))
    page.claim("greedy's total", exact(greedy[0] + first * math.sqrt(EPSILON) - closed["oracle greedy"]))
    page.claim("pi_2's total", exact(pi_2[0] + first * math.sqrt(1 - EPSILON) - closed["pi_2"]))
    page.claim("pi_2 and greedy", exact(pi_2[0] / greedy[0]))
    constant = lbm.best_cycle(env, period=1).actions
    collected = float(lbm.run(env, lbm.Cyclic(constant), T=T).reward[-1])  # the first m steps earn less
    x, y = constant[0]
    page.claim(
        "the optimal action is stationary",
        exact(collected / lbm.opt_bounds(env, T=T).upper),
        action=f"({x:.3f}, {y:.3f})",
        more=f"{collected / pi_2[0] - 1:.1%}",
    )
    page.claim("OFUL does well", ratio(OFUL, pi_2))
    page.claim("OFUL does well, sigma = 0.3", ratio(totals[0.3, "OFUL"], pi_2))
    page.claim("OFUL and greedy", ratio(OFUL, greedy))
    page.claim("O3M and greedy, rising", ratio(O3M, greedy))
