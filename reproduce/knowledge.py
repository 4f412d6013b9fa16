"""Beyond the paper: what it is worth to know m, gamma and the horizon, on the instance of Figure 1, left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import fastlbm as lbm

from . import look
from .claims import Array, Number, ratio
from .page import Page, markdown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The rows of the second panel: what is told, what is not, and which agent of the study.
PLAYERS = {
    "m, gamma and noise known: Rolling": "Rolling, noise known",
    "m and gamma known: Rolling": "Rolling",
    "nothing known: Auto": "Auto",
    "all known, L = 20: O3M": "O3M(m=2, gamma=-3.0)",
    "... horizon not known: doubling": "Doubling",
    "all known, L of Theorem 1: O3M": "O3M, theory",
    "... horizon not known: doubling ": "Doubling, theory",
    "m, gamma among 30: EvidenceSelector": "EvidenceSelector",
    "gamma among 5: Combiner": "Combiner gamma(scale=1.0)",
    "... scale 0.1": "Combiner gamma(scale=0.1)",
    "... scale 0.01": "Combiner gamma(scale=0.01)",
    "... scale 0.001": "Combiner gamma(scale=0.001)",
    "m among 3: Combiner": "Combiner m(scale=1.0)",
    "... scale 0.1 ": "Combiner m(scale=0.1)",
    "... scale 0.01 ": "Combiner m(scale=0.01)",
    "... scale 0.001 ": "Combiner m(scale=0.001)",
    "memory ignored: OFUL": "OFUL",
}


def make(page: Page) -> None:
    """Run the study, draw a map of wrong beliefs and the price of not knowing, write the table."""
    document = page.document()
    runs = document["seeds"] = page.runs(document["seeds"])
    if page.quick:
        document["agent"]["O3M"]["grid"] = {"m": [0, 2, 3], "gamma": [-4.0, -3.0, 0.0]}
    frame = page.study(document).frame
    total: dict[str, Array] = {
        agent: np.asarray(rows["reward"]) for agent, rows in frame.groupby("agent", sort=False)
    }
    known = total["O3M(m=2, gamma=-3.0)"]
    memories, gammas = (document["agent"]["O3M"]["grid"][key] for key in ("m", "gamma"))
    shares = np.array(
        [[total[f"O3M(m={m}, gamma={g})"].mean() / known.mean() for g in gammas] for m in memories]
    )
    prices = {words: ratio(total[agent], known) for words, agent in PLAYERS.items()}

    with look.style():
        figure, axes = look.panels(2, height=3.3, width_ratios=[1, 1.1])
        _map(axes[0], shares, memories, gammas)
        _bars(axes[1], prices)
        figure.supxlabel(
            f"mean of {runs} runs, whiskers: 95% bootstrap of the ratio of means", fontsize=look.SMALL
        )
    page.figure(figure)
    page.numbers(
        ("agent", "mean", "share", "low", "high", "runs"),
        [(agent, values.mean(), *ratio(values, known), len(values)) for agent, values in total.items()],
    )
    page.text(
        f"Part of the total reward of O3M that knows m = 2, gamma = -3 and T = 1200 ({known.mean():.1f}, "
        f"mean of {runs} runs).",
        markdown(
            ("what is known", "part (95% interval)"),
            [(words.strip(), n.text(3)) for words, n in prices.items()],
        ),
        "O3M that believes in a wrong m (rows) and gamma (columns):",
        markdown(
            ("m", *(f"{g:g}" for g in gammas)),
            [(m, *(f"{share:.3f}" for share in row)) for m, row in zip(memories, shares, strict=True)],
        ),
    )
    page.claim("told nothing", prices["nothing known: Auto"])
    page.claim("told nothing, and Rolling", ratio(total["Auto"], total["Rolling"]))
    page.claim("doubling", ratio(total["Doubling, theory"], total["O3M, theory"]))
    page.claim("doubling, regret", doubling_regret(5))


def doubling_regret(runs: int, T: int = 4000) -> Number:
    """Regret of O3M with doubling / of O3M that knows T, rising, where OPT is known; L, delta from theory."""
    env = lbm.LBM([0.6, 0.64, 0.48], m=1, gamma=2.0, sigma=0.1)
    agents: dict[str, lbm.agents.Agent] = {
        "doubling": lbm.Doubling(lbm.O3M(m=1, gamma=2.0, horizon=40)),
        "O3M": lbm.O3M(m=1, gamma=2.0, horizon=T),
    }
    frame = lbm.run_many(env, agents, T=T, seeds=runs, record=1).frame
    last = frame[frame["t"] == T]
    best = lbm.opt_bounds(env, T=T).lower
    doubled, known = (best - last[last["agent"] == name]["reward"].to_numpy() for name in agents)
    return ratio(doubled, known)


def _map(axes: Axes, shares: Array, memories: list[int], gammas: list[float]) -> None:
    """How much of the reward is left for wrong beliefs."""
    axes.imshow(shares, cmap="cividis", vmin=0.0, vmax=1.0, aspect="auto", origin="lower")
    for row, m in enumerate(memories):
        for column, gamma in enumerate(gammas):
            share = shares[row, column]
            weight = "bold" if (m, gamma) == (2, -3.0) else "normal"
            ink = "black" if share > 0.5 else "white"
            axes.text(
                column,
                row,
                f"{share:.2f}",
                ha="center",
                va="center",
                color=ink,
                weight=weight,
                size=look.SMALL,
            )
    axes.set_xticks(range(len(gammas)), [f"{g:g}" for g in gammas])
    axes.set_yticks(range(len(memories)), [str(m) for m in memories])
    axes.spines[:].set_visible(False)
    look.finish(axes, r"O3M that believes in $m$ and $\gamma$ (truth: 2, $-3$)", r"$\gamma$", "$m$")


def _bars(axes: Axes, prices: dict[str, Number]) -> None:
    """Parts of the reward: those that plan from their history on top, then the most informed first."""
    for place, (words, price) in enumerate(reversed(prices.items())):
        agent = PLAYERS[words].split("(")[0]
        color = look.LOOKS[agent if agent in look.LOOKS else agent.split(",")[0]].color
        axes.barh(place, price.value, color=color, height=0.7)
        axes.errorbar(
            price.value, place, xerr=[[price.value - price.low], [price.high - price.value]], color="black",
            linewidth=0.8, capsize=1.5,
        )  # fmt: skip
    axes.set_yticks(range(len(prices)), [words.strip() for words in reversed(prices)])
    axes.axvline(1.0, color="black", linewidth=0.5)
    axes.set_xlim(0, 1.12)
    look.finish(axes, "what not knowing costs", "part of the reward of O3M", "")
