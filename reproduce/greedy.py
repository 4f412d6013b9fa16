"""Beyond the paper: the regret of oracle greedy in the two bad instances of Proposition 1, and of O3M there.

Rotting: theta = e_1, m = d-1, where the cycle e_1, ..., e_d earns more. Rising: A0 = diag(1, 0), theta in the
direction of (epsilon, 1), where e_2 for ever earns more. Regret is against those strategies of the paper, so
that of a learner may become negative.
"""

from __future__ import annotations

import math

import numpy as np

import fastlbm as lbm
from fastlbm.agents import Agent

from . import look
from .claims import Array, exact
from .page import Page, markdown

T, D, M, EPSILON = 10_000, 3, 2, 0.1


def make(page: Page) -> None:
    """Play both instances, draw regret, compare with the proposition's formulas."""
    norm = math.hypot(EPSILON, 1.0)  # theta must be in the unit ball
    rotting = lbm.LBM(np.eye(D)[0], m=D - 1, gamma=-3.0, sigma=0.1)
    rising = lbm.LBM([EPSILON / norm, 1 / norm], m=M, gamma=1.0, A0=np.diag([1.0, 0.0]), sigma=0.1)
    instances: list[tuple[str, lbm.LBM, Array, float, Agent]] = [
        # name, model, the paper's better strategy, regret of greedy in a step, a learner
        ("rotting", rotting, np.eye(D), 1 / D - 1 / D**3, lbm.O3M(D - 1, -3.0, T, L=20)),
        (
            "rising",
            rising,
            np.eye(2)[1:],
            (M - (M + 1) * EPSILON) / norm,
            lbm.O3M(M, 1.0, T, L=10, A0=rising.A0),
        ),
    ]
    lines, rows, slopes, ends = [], [], {}, {}
    with look.style():
        figure, axes = look.panels(2, height=2.6)
        for panel, (name, env, block, slope, learner) in zip(axes, instances, strict=True):
            agents = {"oracle greedy": lbm.OracleGreedy(), "O3M": learner}
            better = lbm.run(env, lbm.Cyclic(block), T=T, record=100)
            for agent, player in agents.items():
                regret = better.reward - lbm.run(env, player, T=T, record=100).reward
                line = look.Curve(t=better.t, mean=regret, low=regret, high=regret, runs=1)
                look.draw(panel, agent, line)
                slopes[name, agent] = (regret[-1] - regret[0]) / (better.t[-1] - better.t[0])
                ends[name, agent] = regret[-1]
                lines += [(name, agent, t, value) for t, value in zip(better.t, regret, strict=True)]
            steps = np.array([0.0, T])
            panel.plot(
                steps,
                slope * steps,
                color="black",
                linewidth=0.7,
                linestyle=(0, (1, 2)),
                label="Proposition 1",
            )
            panel.axhline(0.0, color="black", linewidth=0.5)
            panel.set_xlim(0, T)
            panel.legend(loc="upper left")
            title = {
                "rotting": r"rotting, $\theta^* = e_1$",
                "rising": r"rising, $A_0 = \mathrm{diag}(1, 0)$",
            }[name]
            look.finish(
                panel, title, "step $t$", "regret against the paper's strategy" if panel is axes[0] else ""
            )
            rows.append((
                name, f"{better.reward[-1]:.1f}", f"{ends[name, 'oracle greedy']:.1f}",
                f"{slopes[name, 'oracle greedy']:.6f}", f"{slope:.6f}", f"{ends[name, 'O3M']:.1f}",
            ))  # fmt: skip
    page.figure(figure)
    page.numbers(("instance", "agent", "t", "regret"), lines)
    page.text(
        f"T = {T}, rotting with d = {D}, m = {D - 1}, gamma = -3, rising with m = {M}, epsilon = {EPSILON}, "
        "one run.",
        markdown(
            (
                "instance",
                "the paper's strategy",
                "greedy's regret",
                "in a step",
                "Proposition 1",
                "O3M's regret",
            ),
            rows,
        ),
    )
    for name, _, _, slope, _ in instances:
        page.claim(f"greedy's regret, {name}", exact(slopes[name, "oracle greedy"] / slope))
