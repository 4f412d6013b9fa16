"""Beyond the paper: what it is worth to know m, gamma and the horizon, on the instance of Figure 1, left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import fastlbm as lbm

from . import look
from .claims import Array, Number, mean, ratio
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
    "memory ignored: OFUL": "OFUL",
}
#: The other panels: what there is to choose among.
FIELDS: dict[str, dict[str, Any]] = {
    "gamma among 5": {"candidates": [[2, float(g)] for g in range(-4, 1)], "L": 20},
    "m among 3": {"candidates": [[m, -3.0] for m in (0, 2, 3)], "L": [1, 15, 20]},
    "m, gamma among 30": {"candidates": [[m, float(g)] for m in range(5) for g in range(-4, 2)], "L": 20},
}
#: Their rows: who chooses. A scale of 1 and no eta are what is proven.
METHODS: dict[str, dict[str, Any]] = {
    "EvidenceSelector": {"type": "EvidenceSelector"},
    "Combiner": {"type": "BanditCombiner"},
    "Combiner, scale 0.1": {"type": "BanditCombiner", "scale": 0.1},
    "Combiner, scale 0.01": {"type": "BanditCombiner", "scale": 0.01},
    "Combiner, scale 0.001": {"type": "BanditCombiner", "scale": 0.001},
    "RegretBalancing": {"type": "RegretBalancing"},
    "RegretBalancing, scale 0.1": {"type": "RegretBalancing", "scale": 0.1},
    "RegretBalancing, scale 0.03": {"type": "RegretBalancing", "scale": 0.03},
    "RegretBalancing, scale 0.01": {"type": "RegretBalancing", "scale": 0.01},
    "CORRAL": {"type": "Corral"},
    "CORRAL, eta 10": {"type": "Corral", "eta": 10.0},
    "CORRAL, not smooth": {"type": "Corral", "smooth": False},
    "CORRAL, not smooth, eta 10": {"type": "Corral", "smooth": False, "eta": 10.0},
}
#: Those of the quick form: what claims are about.
FEW = (
    "EvidenceSelector", "Combiner", "Combiner, scale 0.01", "RegretBalancing", "RegretBalancing, scale 0.03",
    "CORRAL", "CORRAL, not smooth",
)  # fmt: skip


def make(page: Page) -> None:
    """Run the study, draw a map of wrong beliefs and the price of not knowing, write the table."""
    document = page.document()
    runs = document["seeds"] = page.runs(document["seeds"])
    methods = METHODS
    if page.quick:
        document["agent"]["O3M"]["grid"] = {"m": [0, 2, 3], "gamma": [-4.0, -3.0, 0.0]}
        methods = {words: METHODS[words] for words in FEW}
    for words, method in methods.items():
        for field, among in FIELDS.items():
            document["agent"][f"{words}: {field}"] = {**method, **among, "delta": 0.01}
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
    choices = {f: {w: ratio(total[f"{w}: {f}"], known) for w in methods} for f in FIELDS}

    with look.style():
        figure, (above, below) = look.stacked([1, 1.1], [1] * len(FIELDS), height=5.4)
        _map(above[0], shares, memories, gammas)
        _bars(above[1], prices, [PLAYERS[words].split("(")[0] for words in prices])
        look.finish(above[1], "what not knowing costs", "part of the reward of O3M", "")
        for axes, (field, chosen) in zip(below, choices.items(), strict=True):
            _bars(axes, chosen, [words.split(",")[0] for words in chosen], labels=axes is below[0])
            look.finish(axes, field, "part of the reward of O3M", "")
        whiskers = f"mean of {runs} runs, whiskers: 95% bootstrap of the ratio of means"
        below[0].figure.supxlabel(whiskers, fontsize=look.SMALL)
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
        "Who chooses among candidates (m, gamma), of which one is the truth; a scale of 1 and no eta are "
        "those of the proofs:",
        markdown(("who chooses", *FIELDS), [(w, *(choices[f][w].text(3) for f in FIELDS)) for w in methods]),
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
    _selection(page, total, list(methods))


def _selection(page: Page, total: dict[str, Array], methods: list[str]) -> None:
    """The claims about those who choose among candidates."""
    gamma, m, both = FIELDS
    evidence, *others = (total[f"{words}: {both}"] for words in methods)
    page.claim("choosing by rewards alone", ratio(max(others, key=np.mean), evidence))
    page.claim("balancing and the Combiner", ratio(total[f"RegretBalancing: {m}"], total[f"Combiner: {m}"]))
    page.claim("CORRAL, smooth", ratio(total[f"CORRAL: {gamma}"], total[f"CORRAL, not smooth: {gamma}"]))
    left, small = (still_active(page.runs(20), *case) for case in ((gamma, 0.1), (m, 0.01)))
    truths = {"truth": f"{left[:, 1].mean():.0%}", "small": f"{small[:, 1].mean():.0%}"}
    page.claim("balancing, scaled", mean(~left[:, -1]), **truths)


def still_active(runs: int, field: str, scale: float, T: int = 1200) -> NDArray[np.bool_]:
    """(runs, candidates): whom RegretBalancing has not discarded; of 5 and of 3 the truth is the second."""
    env = lbm.LBM([0.5401342909488209, 0.8360490878639617, 0.09631651168440589], m=2, gamma=-3.0, sigma=0.1)
    agent = lbm.RegretBalancing(**FIELDS[field], horizon=T, scale=scale, delta=0.01)
    return np.array([lbm.run(env, agent, T=T, seed=s).details["active"][-1] for s in range(runs)])


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


def _bars(axes: Axes, prices: dict[str, Number], agents: list[str], labels: bool = True) -> None:
    """Parts of the reward, in the colours of the agents, the first one on top."""
    for place, (price, agent) in enumerate(zip(prices.values(), agents, strict=True)):
        color = look.LOOKS[agent if agent in look.LOOKS else agent.split(",")[0]].color
        axes.barh(-place, price.value, color=color, height=0.7)
        axes.errorbar(
            price.value, -place, xerr=[[price.value - price.low], [price.high - price.value]], color="black",
            linewidth=0.8, capsize=1.5,
        )  # fmt: skip
    axes.set_yticks(-np.arange(len(prices)), [words.strip() if labels else "" for words in prices])
    axes.axvline(1.0, color="black", linewidth=0.5)
    axes.set_xlim(0, 1.12)
