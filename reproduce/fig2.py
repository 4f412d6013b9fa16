"""The supplement's figure: regret of O3M and OM-Block where OPT is known, rising with A0 = I.

d = 3, m = 1, gamma = 2. Oracle greedy is optimal there, so OPT = 1 + (T-1) (m+1)^gamma. Each dot is a
setting of its own: O3M with L = 1..19 and T = (L+1)^4, OM-Block with L = 1..10 and T = (L+1)^5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import fastlbm as lbm

from . import look
from .claims import Array, Number, carried, exact, exponent, first_below
from .page import Page, markdown, played

#: The order of the regret that the paper proves, and the root of T that is m+L.
PROVEN = {"O3M": 3 / 4, "OM-Block": 4 / 5}
ROOT = {"O3M": 4, "OM-Block": 5}
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
        bounds = np.array([bound(agent, int(n), int(t)) for n, t in zip(L, T, strict=True)])
        dots[agent] = Dots(L, T, best[:, None] - table.to_numpy(), bounds)
    dots = {agent: dots[agent] for agent in PROVEN}
    exponents = {agent: exponent(d.T[d.T >= FAR], d.regret[d.T >= FAR]) for agent, d in dots.items()}

    lines = []
    with look.style():
        figure, (axes,) = look.panels(1, width=1.25 * look.COLUMN, height=2.9)
        for agent, d in dots.items():
            low, middle, high = d.regret.min(axis=1), d.regret.mean(axis=1), d.regret.max(axis=1)
            words = f"{agent}: exponent {exponents[agent].value:.2f} (proven {PROVEN[agent]:.2f})"
            look.dots(axes, agent, d.T, d.regret, words)
            lines += [(agent, *row) for row in zip(d.L, d.T, middle, low, high, d.bound, strict=True)]
        look.finish(axes, "", "horizon $T$", "regret")
        axes.legend(loc="upper left")
        figure.supxlabel(f"bands: smallest to largest of {runs} runs", fontsize=look.SMALL)
    page.figure(figure)
    page.numbers(("agent", "L", "T", "mean", "smallest", "largest", "bound"), lines)
    shown = [
        (a, L, T, f"{r:.1f}", f"{low:.1f} to {high:.1f}", f"{b:.3g}") for a, L, T, r, low, high, b in lines
    ]
    page.text(
        "Regret against OPT, rising with A0 = I: d = 3, m = 1, gamma = 2, sigma = 0.1, delta = 1/T. "
        "Fitted exponents: "
        + ", ".join(f"{agent} {number.text(2)}" for agent, number in exponents.items())
        + ". The bounds are those of Theorem 2 and Proposition 5 for the regret against the best block, and "
        "2mRT/(m+L) for the first m steps of blocks (the paper has 4mRT/(m+L); 2 is enough, see fig2.py). No "
        "regret could exceed them at these horizons: they are above 2RT.",
        markdown(
            ("agent", "L", "T", f"mean regret of {runs} runs", "smallest to largest", "proven bound"), shown
        ),
    )
    _claims(page, env, dots, exponents)


def bound(agent: str, L: int, T: int) -> float:
    """Regret against the best block, and 2mRT/(m+L), where equation (25), eq:use_approx, has 4mRT/(m+L).

    2 is enough: from equation (23), eq:use_regret, go on with r~(a~) >= L OPT/T (proof of Proposition 2,
    prop:approx_cyclic) instead of the rewards of the cycle. The reward is then at least L/(m+L) OPT - R_T -
    mRT/(m+L), which is OPT - R_T - 2mRT/(m+L) or more, as OPT <= RT.
    """
    shape: dict[str, Any] = {"T": T, "m": 1, "L": L}
    gap = lbm.theory.approximation_gap(**shape, R=lbm.theory.reward_bound(m=1, gamma=2.0))
    return float(gap + lbm.theory.block_regret_bound(**shape, d=3, gamma=2.0, algorithm=agent))


def meaning(agent: str, d: Dots, R: float) -> tuple[Number, int, Array]:
    """Regret by its line / bound where that is first below OPT, this T; bound / 2RT at the horizons run."""
    root = ROOT[agent]
    L = first_below(lambda n: bound(agent, n, (n + 1) ** root), lambda n: R * (n + 1) ** root)
    T = (L + 1) ** root
    far = d.T >= FAR
    return carried(d.T[far], d.regret[far], T).over(bound(agent, L, T)), T, d.bound / (2 * R * d.T)


def _claims(page: Page, env: lbm.LBM, dots: dict[str, Dots], exponents: dict[str, Number]) -> None:
    O3M, OMB = dots["O3M"], dots["OM-Block"]
    greedy = lbm.run(env, lbm.OracleGreedy(), T=1000).reward[-1]
    most = ((1.0 + np.minimum(np.arange(1000), env.m)) ** env.gamma).sum()  # theta has norm 1
    page.claim("OPT is greedy", exact(greedy / most))
    far = []
    for gamma in (0.0, 0.5, 1.0, 2.0):
        other = lbm.LBM(env.theta, m=1, gamma=gamma)
        far.append(np.abs(played(other, lbm.OracleGreedy(), 50) - env.theta).max())
    page.claim("one action for all gamma", exact(max(far)))
    # O3M's mean regret at the horizons of OM-Block, straight in between on log-log axes.
    ours = np.exp(np.interp(np.log(OMB.T), np.log(O3M.T), np.log(O3M.regret.mean(axis=1))))
    page.claim("O3M and OM-Block", exact((ours / OMB.regret.mean(axis=1)).max()))
    page.claim("O3M's exponent", exponents["O3M"])
    page.claim("OM-Block's exponent", exponents["OM-Block"])
    found = {agent: meaning(agent, d, env.reward_bound) for agent, d in dots.items()}
    parts = np.concatenate([part for *_, part in found.values()])
    for agent, (part, T, _) in found.items():
        page.claim(
            f"regret bound, {agent}",
            part,
            first=f"{T:.1e}",
            least=f"{parts.min():.1f}",
            most=f"{parts.max():.1f}",
        )
