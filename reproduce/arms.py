"""Beyond the paper: bandits with K arms and contextual sets as special cases.

They are Example 2 (ex:rested), which has m = infinity, and Remark 1 (rmk:context). Regret is against OPT,
exact here by dynamic programming over the last m actions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import fastlbm as lbm
from fastlbm.agents import Agent
from fastlbm.model import ActionSet

from . import look
from .claims import exact, mean, ratio
from .page import Page, markdown

#: Contextual: steps, arms a step, dimension, memory.
STEPS, CHOICES, D, M = 600, 6, 3, 2
#: Who is told the sets of all steps in advance.
KNOWING = "O3M, sets known"


def make(page: Page) -> None:
    """Run the studies, draw regret in four panels, write the table, check Example 2."""
    document = page.document()
    runs = document["seeds"] = page.runs(document["seeds"])
    results = page.study(document)
    frames = {f"K arms, {name}": rows for name, rows in results.frame.groupby("env", sort=False)}
    envs = {f"K arms, {name}": env for name, env in results.envs.items()}
    for name, gamma in (("contextual, rotting", -2.0), ("contextual, rising", 1.0)):
        envs[name] = contextual(gamma)
        agents: dict[str, Agent] = {
            "O3M": lbm.O3M(M, gamma, STEPS, L=8),
            "OFUL": lbm.OFUL(STEPS),
            "oracle greedy": lbm.OracleGreedy(),
        }
        print(f"{page.name}: {name}, {len(agents) + 1} settings x {runs} runs", flush=True)
        options: dict[str, Any] = {"T": STEPS, "seeds": runs, "record": 60, "progress": True}
        found = lbm.run_many(envs[name], agents, **options)
        told = lbm.run_many(contextual(gamma, lbm.Scheduled), {KNOWING: agents["O3M"]}, **options)
        frames[name] = pd.concat((found.frame, told.frame), ignore_index=True).assign(env=name)

    lines, rows, parts = [], [], {}
    with look.style():
        figure, axes = look.panels(4, height=2.6)
        for panel, (name, frame) in zip(axes, frames.items(), strict=True):
            T = int(frame["t"].max())
            steps = np.unique(frame["t"])
            best = np.array([lbm.opt_bounds(envs[name], T=int(t)).lower for t in steps])
            for agent, mine in frame.groupby("agent", sort=False):
                line = look.curve(mine)
                regret = line._replace(mean=best - line.mean, low=best - line.high, high=best - line.low)
                look.draw(panel, agent, regret)
                last = np.asarray(mine[mine["t"] == T]["reward"])
                parts[name, agent] = last
                rows.append(
                    (name, agent, f"{best[-1]:.1f}", mean(last).text(1), f"{last.mean() / best[-1]:.1%}")
                )
                lines += [(name, agent, *point) for point in zip(*regret[:4], strict=True)]
            panel.set(xlim=(0, T), ylim=(0, None))
            panel.ticklabel_format(axis="x", style="sci", scilimits=(0, 3))
            look.finish(panel, name, "step $t$", "regret against OPT" if panel is axes[0] else "")
        lines_of, names = axes[-1].get_legend_handles_labels()
        figure.legend(lines_of, names, loc="outside lower center", ncols=3, title=look.BAND)
    page.figure(figure)
    page.numbers(("setting", "agent", "t", "regret", "low", "high"), lines)
    page.text(
        f"K = 4 arms: m = 3, gamma = -1 (rotting) and 0.5 (rising), T = {document['T']}. "
        f"Contextual: {CHOICES} unit vectors of R^{D} drawn anew in each of {STEPS} steps, m = {M}, "
        f"gamma = -2 and 1. {runs} runs; OPT, which knows all sets, is exact.",
        markdown(("setting", "agent", "OPT", "reward (95% interval)", "part of OPT"), rows),
    )
    for name, m in (("K arms", math.inf), ("K arms, window", 3)):
        page.claim(name, exact(largest_difference(m)))
    best_total = lbm.opt_bounds(results.envs["rising"], T=document["T"]).lower
    page.claim("greedy with rising arms e_k", exact(parts["K arms, rising", "oracle greedy"][0] / best_total))
    collected, best_total = greedy_fails()
    totals = {"collected": f"{collected:.1f}", "best": f"{best_total:.1f}"}
    page.claim("greedy with rising arms", exact(collected / best_total), **totals)
    page.claim(
        "O3M with rotting arms",
        ratio(parts["K arms, rotting", "O3M"], parts["K arms, rotting", "oracle greedy"]),
    )
    for name in ("contextual, rotting", "contextual, rising"):
        page.claim(name, ratio(parts[name, "O3M"], parts[name, "OFUL"]))
    known = "contextual, rotting"
    page.claim("contextual, sets known", ratio(parts[known, KNOWING], parts[known, "O3M"]))


def contextual(gamma: float, kind: Callable[[Any], ActionSet] = lbm.Contextual) -> lbm.LBM:
    """Unit vectors drawn anew in each step; a `Scheduled` is the same sets, known in advance."""
    arms = np.random.default_rng(0).standard_normal((STEPS, CHOICES, D))
    arms /= np.linalg.norm(arms, axis=2, keepdims=True)
    theta = np.array([0.54, 0.83, 0.1])
    return lbm.LBM(theta, m=M, gamma=gamma, sigma=0.1, actions=kind(arms))


def greedy_fails(T: int = 100) -> tuple[float, float]:
    """What oracle greedy collects with two arms, rising with A0 = I, and OPT.

    It begins with the short arm, which pays a little more at first, 0.45 against 0.43, and stays with it,
    while the long arm would gain more: (1 + 1)^gamma against (1 + 0.25)^gamma.
    """
    arms = lbm.Finite([[0.5, 0.0], [0.0, 1.0]])
    env = lbm.LBM([0.9, 0.43], m=1, gamma=2.0, actions=arms)
    return float(lbm.run(env, lbm.OracleGreedy(), T=T).reward[-1]), lbm.opt_bounds(env, T=T).lower


def largest_difference(m: float, K: int = 4) -> float:
    """Relative, from Example 2's (1 + n_k)^gamma / sqrt(K), n_k the plays of arm k in the last m steps."""
    worst = 0.0
    for gamma in (-3.0, -1.0, 0.5, 2.0):
        env = lbm.LBM(np.full(K, 1 / math.sqrt(K)), m=m, gamma=gamma, actions=lbm.Finite(np.eye(K)))
        played = np.random.default_rng(1).integers(K, size=1000)
        first = [0 if math.isinf(m) else max(0, t - int(m)) for t in range(len(played))]
        counts = np.array([(played[first[t] : t] == k).sum() for t, k in enumerate(played)])
        formula = (1.0 + counts) ** gamma / math.sqrt(K)
        rewards = env.expected_rewards(np.eye(K)[played])
        worst = max(worst, float(np.abs(rewards / formula - 1.0).max()))
    return worst
