"""Beyond the paper: regret up to T = 10^8, with fitted exponents, beside the bounds.

Rotting is measured against the best cycle known, of period 36; rising against OPT, which is known. Each
horizon has agents of its own, with the theory's block length.
"""

from __future__ import annotations

import numpy as np

import fastlbm as lbm

from . import look
from .claims import Array, exact, exponent
from .page import Page, markdown

#: Longest horizon of the quick form.
SHORT = 10**5


def make(page: Page) -> None:
    """Run the study, draw regret over horizons, write the table, compare with Theorem 1."""
    document = page.document()
    runs = document["seeds"] = page.runs(document["seeds"])
    for agent in document["agent"].values():
        agent["T"] = [T for T in agent["T"] if not page.quick or T <= SHORT]
    results = page.study(document)
    cycles = [lbm.best_cycle(results.envs["rotting"], period=36, seed=seed) for seed in range(20)]
    cycle = max(cycles, key=lambda found: found.average)
    upper = lbm.opt_bounds(results.envs["rotting"], T=10**6, L=200).upper / 10**6

    lines, exponents, parts = [], {}, {}
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
                look.dots(panel, agent, T, regret, f"{look.LOOKS[agent].label}: exponent {number.value:.2f}")
                proven = bound(T, m, gamma)
                if agent != "OFUL":
                    # What the best cycle may be short of OPT counts as regret here.
                    missing = (upper - cycle.average) * T if name == "rotting" else 0.0 * T
                    parts[name, agent] = float(((regret + missing[:, None]) / proven[:, None]).max())
                lines += [
                    (name, agent, *row)
                    for row in zip(
                        T, regret.mean(axis=1), regret.min(axis=1), regret.max(axis=1), proven, strict=True
                    )
                ]
            proven = bound(every, m, gamma)
            panel.loglog(every, proven, **{**look.look("bound"), "label": r"Theorem 1, $\tilde O(T^{3/4})$"})
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
            [(env, agent, number.text(2)) for (env, agent), number in exponents.items()],
        ),
    )
    page.claim("exponent, rising", exponents["rising", "O3M, switch 1"])
    more = f"{upper / cycle.average - 1.0:.2%}"
    page.claim("exponent, rotting", exponents["rotting", "O3M, switch 1"], more=more)
    page.claim("OFUL rots", exponents["rotting", "OFUL"])
    page.claim("Theorem 1", exact(max(parts.values())))


def opt(env: lbm.LBM, T: Array) -> Array:
    """OPT where oracle greedy is optimal: rising with A0 = I."""
    return np.array([lbm.opt_bounds(env, T=int(t)).lower for t in T])


def bound(T: Array, m: int, gamma: float) -> Array:
    """Theorem 1."""
    return np.asarray(lbm.theory.regret_bound(T, d=3, m=m, gamma=gamma))
