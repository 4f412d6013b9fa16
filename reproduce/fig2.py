"""The supplement's figure: regret of O3M and OM-Block where OPT is known, rising with A0 = I.

d = 3, m = 1, gamma = 2. Oracle greedy is optimal there, so OPT = 1 + (T-1) (m+1)^gamma. Each dot is a setting of its
own: O3M with L = 1..19 and T = (L+1)^4, OM-Block with L = 1..10 and T = (L+1)^5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import fastlbm as lbm

from . import look
from .claims import Array, Claim, Number, exact, exponent
from .page import Page, markdown

WHERE = "Supplement, additional experiments"
#: The order of the regret that the paper proves.
PROVEN = {"O3M": 3 / 4, "OM-Block": 4 / 5}
#: Longest horizon of the quick form; exponents are fitted from FAR on.
SHORT, FAR = 10**4, 200


class Dots(NamedTuple):
    """The settings of one agent."""

    L: NDArray[np.int64]
    T: NDArray[np.int64]
    regret: Array  #: (settings, runs)
    bound: Array


def make(page: Page) -> None:
    """Run the study, draw the dots, write the table, check what the supplement says."""
    document = page.document()
    runs = document["seeds"] = page.runs(document["seeds"])
    if page.quick:
        for agent in document["agent"].values():
            kept = sum(T <= SHORT for T in agent["zip"]["T"])
            agent["zip"] = {name: values[:kept] for name, values in agent["zip"].items()}
    results = page.study(document)
    env = results.envs["rising"]
    dots = {}
    for agent, rows in results.frame.groupby("agent", sort=False):
        table = rows.pivot(index="T", columns="seed", values="reward")
        L, T = np.array(document["agent"][agent]["zip"]["L"]), table.index.to_numpy()
        best = np.array([lbm.opt_bounds(env, T=int(t)).lower for t in T])
        bounds = np.array([bound(agent, int(l), int(t)) for l, t in zip(L, T, strict=True)])
        dots[agent] = Dots(L, T, best[:, None] - table.to_numpy(), bounds)
    dots = {agent: dots[agent] for agent in PROVEN}
    exponents = {agent: exponent(d.T[d.T >= FAR], d.regret[d.T >= FAR]) for agent, d in dots.items()}

    lines = []
    with look.style():
        figure, (axes,) = look.panels(1, width=1.25 * look.COLUMN, height=2.9)
        for agent, d in dots.items():
            low, middle, high = d.regret.min(axis=1), d.regret.mean(axis=1), d.regret.max(axis=1)
            words = f"{agent}: exponent {exponents[agent].value:.2f} (proven {PROVEN[agent]:.2f})"
            axes.loglog(d.T, middle, **{**look.look(agent), "linewidth": 0.8, "label": words})
            axes.fill_between(d.T, low, high, color=look.LOOKS[agent].color, alpha=0.25, linewidth=0)
            lines += [(agent, *row) for row in zip(d.L, d.T, middle, low, high, d.bound, strict=True)]
        look.finish(axes, "", "horizon $T$", "regret")
        axes.legend(loc="upper left")
        figure.supxlabel(f"bands: smallest to largest of {runs} runs", fontsize=look.SMALL)
    page.figure(figure)
    page.numbers(("agent", "L", "T", "mean", "smallest", "largest", "bound"), lines)
    shown = [(a, L, T, f"{r:.1f}", f"{low:.1f} to {high:.1f}", f"{b:.3g}") for a, L, T, r, low, high, b in lines]
    page.text(
        "Regret against OPT, rising with A0 = I: d = 3, m = 1, gamma = 2, sigma = 0.1, delta = 1/T. Fitted exponents: "
        + ", ".join(f"{agent} {number.text(2)}" for agent, number in exponents.items())
        + ".",
        markdown(("agent", "L", "T", f"mean regret of {runs} runs", "smallest to largest", "proven bound"), shown),
    )
    page.claims += _claims(env, dots, exponents)


def bound(agent: str, L: int, T: int) -> float:
    """What the paper proves for blocks of 1+L: the regret against the best block, and Proposition 2 for that."""
    shape: dict[str, Any] = {"T": T, "m": 1, "L": L}
    gap = lbm.theory.approximation_gap(**shape, R=lbm.theory.reward_bound(m=1, gamma=2.0))
    return float(gap + lbm.theory.block_regret_bound(**shape, d=3, gamma=2.0, algorithm=agent))


def _claims(env: lbm.LBM, dots: dict[str, Dots], exponents: dict[str, Number]) -> list[Claim]:
    O3M, OMB = dots["O3M"], dots["OM-Block"]
    greedy = lbm.run(env, lbm.OracleGreedy(), T=1000).reward[-1]
    far = OMB.T >= FAR
    # O3M's mean regret at the horizons of OM-Block, straight in between on log-log axes.
    theirs = OMB.regret.mean(axis=1)[far]
    ours = np.exp(np.interp(np.log(OMB.T[far]), np.log(O3M.T), np.log(O3M.regret.mean(axis=1))))
    worst = max(float((d.regret / d.bound[:, None]).max()) for d in dots.values())
    return [
        Claim(
            "OPT is greedy", WHERE, "rising with A0 = I: oracle greedy is optimal",
            "its total at T = 1000 / upper bound on OPT", exact(greedy / lbm.opt_bounds(env, T=1000).upper),
            at_least=1.0, must=(1 - 1e-9, 1 + 1e-9),
        ),
        Claim(
            "O3M and OM-Block", WHERE, "O3M outperforms OM-Block",
            f"largest ratio of their mean regrets over all horizons from {FAR} on", exact((ours / theirs).max()),
            at_most=1.0, must=(0.02, 0.5),
        ),
        Claim(
            "O3M's exponent", "Theorem 1", "regret of order T^(3/4)", "fitted exponent", exponents["O3M"],
            at_most=0.75, must=(0.35, 0.65), remark="smaller on this instance",
        ),
        Claim(
            "OM-Block's exponent", "Proposition 4", "regret of order T^(4/5)", "fitted exponent",
            exponents["OM-Block"], at_most=0.8, must=(0.7, 0.85),
        ),
        Claim(
            "regret bounds", "Theorem 1, Propositions 2 and 4", "the proven bounds", "largest regret / its bound",
            exact(worst), at_most=1.0, must=(0.0, 0.5),
        ),
    ]  # fmt: skip
