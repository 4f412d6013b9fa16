"""Section 5, "Rising with non-isotropic initialization": Figure 1, right pane.

d = 2, m = 2, gamma = 1, A0 = diag(1, 0), theta = (sqrt(eps), sqrt(1 - eps)), eps = 0.01, T = 1200. Oracle greedy
plays e_1 for ever; pi_2, which plays e_2 for ever, earns far more. The paper says sigma = 0.1, its code has 0.3.
"""

from __future__ import annotations

import math

import numpy as np

import fastlbm as lbm
from fastlbm.results import StudyResults

from . import look
from .claims import Claim, exact, mean, ratio
from .page import Page, markdown

WHERE = "Section 5, rising"
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
    columns = ("sigma", "agent", f"mean of {document['seeds']} runs (95% interval)", "closed form", "difference")
    page.text(
        f"Total expected reward, T = {T}, epsilon = {EPSILON:g}, m = {M}, L = 10, delta = 0.01.",
        markdown((*columns, "published code"), rows),
    )
    page.claims += _claims(results, totals, T)


def _claims(results: StudyResults, totals: dict[tuple[float, str], np.ndarray], T: int) -> list[Claim]:
    env = results.envs["rising(sigma=0.1)"]
    O3M, OFUL, pi_2, greedy = (totals[0.1, agent] for agent in ("O3M", "OFUL", "pi_2", "oracle greedy"))
    played = lbm.run(env, lbm.OracleGreedy(), T=T, keep_actions=True).actions
    assert played is not None
    first = M * (M + 1) / 2  # rewards of a full memory that the first m steps miss
    closed = closed_forms(T)
    cycle = lbm.best_cycle(env, max_period=6)
    bounds = lbm.opt_bounds(env, T=T)
    return [
        Claim(
            "greedy plays e_1", WHERE, "oracle greedy plays e_1 for ever", "largest distance of its actions from e_1",
            exact(float(np.linalg.norm(played - [1.0, 0.0], axis=1).max())), at_most=0.0, must=(0.0, 1e-9),
        ),
        Claim(
            "greedy's total", WHERE, "oracle greedy collects T (1+m) sqrt(eps)",
            "difference, the first m steps counted as they are",
            exact(greedy[0] + first * math.sqrt(EPSILON) - closed["oracle greedy"]),
            at_least=0.0, at_most=0.0, must=(-1e-6, 1e-6), remark="before the memory is full a step earns less: -0.3",
        ),
        Claim(
            "pi_2's total", WHERE, "pi_2 collects T m sqrt(1-eps)",
            "difference, the first m steps counted as they are",
            exact(pi_2[0] + first * math.sqrt(1 - EPSILON) - closed["pi_2"]),
            at_least=0.0, at_most=0.0, must=(-1e-6, 1e-6), remark="before the memory is full a step earns less: -2.985",
        ),
        Claim(
            "pi_2 and greedy", WHERE, "pi_2 is better than oracle greedy", "pi_2 / oracle greedy",
            exact(pi_2[0] / greedy[0]), at_least=1.0, must=(6.6, 6.7),
        ),
        Claim(
            "the optimal action is stationary", WHERE, "the optimal action is stationary",
            "best constant action / upper bound on OPT", exact(T * cycle.average / bounds.upper),
            at_least=0.99, must=(0.99, 1.001),
            remark=f"but it is ({cycle.actions[0, 0]:.3f}, {cycle.actions[0, 1]:.3f}), not e_2, and earns "
            f"{cycle.average / (M * math.sqrt(1 - EPSILON)) - 1:.1%} more than pi_2",
        ),
        Claim(
            "OFUL does well", WHERE, "OFUL performs well (taken as at least 80% of pi_2)", "OFUL / pi_2, sigma = 0.1",
            ratio(OFUL, pi_2), at_least=0.8, must=(0.85, 1.0),
        ),
        Claim(
            "OFUL does well, sigma = 0.3", WHERE, "the same with the published code's noise", "OFUL / pi_2, sigma = 0.3",
            ratio(totals[0.3, "OFUL"], pi_2), at_least=0.8, must=(0.8, 1.0),
        ),
        Claim(
            "OFUL and greedy", WHERE, "OFUL discovers by exploring that e_2 is better", "OFUL / oracle greedy",
            ratio(OFUL, greedy), at_least=1.0, must=(5.0, 6.8),
        ),
        Claim(
            "O3M and greedy, rising", WHERE, "O3M is above oracle greedy", "O3M / oracle greedy",
            ratio(O3M, greedy), at_least=1.0, must=(5.8, 6.8),
        ),
    ]  # fmt: skip
