"""Beyond the paper: regret up to T = 10^8, with fitted exponents, beside Theorem 1 (thm:regret_exp).

Rotting is measured against the best cycle known, of period 36; rising against OPT, which is known. Each
horizon has agents of its own, with the theory's block length. O3M plans every block, as the theorem's
algorithm does; with switch = 1, which is not the paper's, a plan is kept while little is learned.

At these horizons the bound of Theorem 1 is above the largest regret conceivable, 2RT, so nothing that runs
could exceed it: what can be checked is where it first says something, and where the regret would be there by
its exponent.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

import fastlbm as lbm
from fastlbm.planning.plans import Cycle

from . import look
from .claims import Array, Number, carried, exact, exponent, first_below
from .page import Page, markdown

#: Longest horizon of the quick form; horizons at which the bound is compared with what is conceivable.
SHORT, RUN = 10**5, 10 ** np.arange(3, 9)
#: No exponent is given here: for some T the block length m+L is a good period, for some it is not.
BENT = ("rotting", "O3M, switch 1")


def make(page: Page) -> None:
    """Run the study, draw regret over horizons, write the table, compare with Theorem 1."""
    document = page.document()
    runs = document["seeds"] = page.runs(document["seeds"])
    for agent in document["agent"].values():
        agent["T"] = [T for T in agent["T"] if not page.quick or T <= SHORT]
    results = page.study(document)
    cycle = best_cycle_known(results.envs["rotting"])
    upper = lbm.opt_bounds(results.envs["rotting"], T=10**6, L=200).upper / 10**6

    lines, exponents, regrets = [], {}, {}
    with look.style():
        figure, axes = look.panels(2, height=2.9)
        for panel, (name, frame) in zip(axes, results.frame.groupby("env", sort=False), strict=True):
            env = results.envs[name]
            m, gamma = int(env.m), env.gamma
            every = np.array(document["agent"]["O3M, switch 1"]["T"])
            for agent in document["agent"]:
                table = frame[frame["agent"] == agent].pivot(index="T", columns="seed", values="reward")
                T = table.index.to_numpy()
                best = T * cycle.average if name == "rotting" else opt(env, T)
                regret = best[:, None] - table.to_numpy()
                number = exponents[name, agent] = exponent(T, regret)
                regrets[name, agent] = T, regret
                words = "no straight line" if (name, agent) == BENT else f"exponent {number.value:.2f}"
                look.dots(panel, agent, T, regret, f"{look.LOOKS[agent].label}: {words}")
                proven = bound(T, m, gamma)
                lines += [
                    (name, agent, *row)
                    for row in zip(
                        T, regret.mean(axis=1), regret.min(axis=1), regret.max(axis=1), proven, strict=True
                    )
                ]
            proven = bound(every, m, gamma)
            panel.loglog(every, proven, **{**look.look("bound"), "label": r"Theorem 1, $\tilde O(T^{3/4})$"})
            panel.loglog(
                every,
                2 * env.reward_bound * every,
                color="black",
                linewidth=0.7,
                linestyle=(0, (1, 2)),
                label="largest conceivable, $2RT$",
            )
            title = rf"{name}: $m = {m}$, $\gamma = {gamma:g}$"
            look.finish(panel, title, "horizon $T$", "regret" if panel is axes[0] else "")
            panel.legend(loc="upper left")
            panel.set_ylim(top=200 * proven.max())
        figure.supxlabel(f"bands: smallest to largest of {runs} runs", fontsize=look.SMALL)
    page.figure(figure)
    page.numbers(("env", "agent", "T", "mean", "smallest", "largest", "bound"), lines)
    shown = [
        (e, a, f"{T:.0e}", f"{r:.1f}", f"{lo:.1f} to {hi:.1f}", f"{b:.3g}") for e, a, T, r, lo, hi, b in lines
    ]
    page.text(
        f"Regret, d = 3, sigma = 0.1, block length from theory, {runs} runs. Rotting: against the best cycle "
        f"known, {cycle.average:.6f} a step (OPT is at most {upper:.6f}); rising: against OPT.",
        markdown(("env", "agent", "T", "mean regret", "smallest to largest", "Theorem 1"), shown),
        markdown(
            ("env", "agent", "fitted exponent"),
            [(*which, number.text(2)) for which, number in exponents.items() if which != BENT],
        ),
    )
    for name in ("rising", "rotting"):
        more = f"{upper / cycle.average - 1.0:.2%}"
        page.claim(f"exponent, {name}", exponents[name, "O3M"], more=more)
    page.claim("exponent, switch = 1", exponents["rising", "O3M, switch 1"])
    page.claim("OFUL rots", exponents["rotting", "OFUL, switch 1"])
    per_step = {
        "rotting": (upper, upper - cycle.average),
        "rising": (results.envs["rising"].reward_bound, 0.0),
    }
    meaning(page, results.envs, regrets, per_step)


def meaning(
    page: Page,
    envs: dict[str, lbm.LBM],
    regrets: dict[tuple[str, str], tuple[Array, Array]],
    per_step: dict[str, tuple[float, float]],
) -> None:
    """Where Theorem 1 first says more than that of doing nothing, OPT, and the regret there by its line.

    `per_step` has OPT at most, and by how much the comparator may be short of it, which counts as regret.
    """
    conceivable = []
    for name, env in envs.items():
        m, gamma = int(env.m), env.gamma
        conceivable.append(bound(RUN, m, gamma) / (2 * env.reward_bound * RUN))
        proven = partial(bound, m=m, gamma=gamma)
        best, unknown = per_step[name]
        first = first_below(lambda T: float(proven(T)), lambda T: best * T, low=1000)  # noqa: B023
        there, missing = float(proven(first)), unknown * first
        O3M, OFUL = (carried(*regrets[name, agent], first) for agent in ("O3M", "OFUL, switch 1"))
        part = Number(*((value + missing) / there for value in O3M))
        page.claim(
            f"Theorem 1, {name}", part, first=f"{first:.1e}", OFUL=f"{(OFUL.value + missing) / there:.2g}"
        )
    smallest, largest = np.min(conceivable), np.max(conceivable)
    page.claim("Theorem 1 at the horizons run", exact(smallest), largest=f"{largest:.0f}")


def best_cycle_known(rotting: lbm.LBM) -> Cycle:
    """Of the instance of Figure 1, left: the best of many searches."""
    cycles = [lbm.best_cycle(rotting, period=36, seed=seed) for seed in range(20)]
    return max(cycles, key=lambda found: found.average)


def opt(env: lbm.LBM, T: Array) -> Array:
    """OPT where oracle greedy is optimal: rising with A0 = I."""
    return np.array([lbm.opt_bounds(env, T=int(t)).lower for t in T])


def bound(T: ArrayLike, m: int, gamma: float) -> Array:
    """Theorem 1."""
    return np.asarray(lbm.theory.regret_bound(T, d=3, m=m, gamma=gamma))
