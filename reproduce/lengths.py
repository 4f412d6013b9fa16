"""Is the L of Theorem 1 (thm:regret_exp), "the optimal choice" in the paper's words, a good one?

It balances two bounds. Here O3M has many lengths, rotting and rising, at the horizon of Figure 1.
Algorithm 1 has another formula, sqrt(m/4d) T^(1/4) - m, which rotting is 0.4 at this horizon.
"""

from __future__ import annotations

import numpy as np

import fastlbm as lbm

from . import look
from .claims import Array, ratio
from .page import Page, markdown


def make(page: Page) -> None:
    """Run the study, draw reward over L, compare the theorem's L with the best one."""
    document = page.document()
    runs = document["seeds"] = page.runs(document["seeds"])
    T, lengths = document["T"], np.array(document["agent"]["O3M"]["grid"]["L"])
    results = page.study(document)
    lines, rows = [], []
    with look.style():
        figure, axes = look.panels(2, height=2.5)
        for panel, (name, frame) in zip(axes, results.frame.groupby("env", sort=False), strict=True):
            env = results.envs[name]
            chosen = lbm.theory.block_length(T, env.d, int(env.m))
            totals: dict[int, Array] = {
                int(L): np.asarray(frame[frame["agent"] == f"O3M(L={L})"]["reward"]) for L in lengths
            }
            values = np.array([totals[int(L)] for L in lengths])
            best = max(totals, key=lambda L: float(totals[L].mean()))
            panel.semilogx(lengths, values.mean(axis=1), **look.look("O3M"))
            panel.fill_between(
                lengths,
                values.min(axis=1),
                values.max(axis=1),
                color=look.LOOKS["O3M"].color,
                alpha=0.25,
                linewidth=0,
            )
            panel.axvline(chosen, color="black", linewidth=0.8, linestyle=(0, (4, 1.5)))
            panel.annotate(
                f"Theorem 1: $L = {chosen}$", (chosen, 0.03), xycoords=("data", "axes fraction"),
                xytext=(3, 0), textcoords="offset points", fontsize=look.SMALL,
            )  # fmt: skip
            panel.set_xticks([1, 2, 3, 5, 10, 20, 40], ["1", "2", "3", "5", "10", "20", "40"])
            panel.set_xticks([], minor=True)
            title = rf"{name}: $m = {env.m}$, $\gamma = {env.gamma:g}$"
            look.finish(panel, title, "$L$", f"reward of {T} steps" if panel is axes[0] else "")
            lines += [
                (name, L, *(f(row) for f in (np.mean, np.min, np.max)))
                for L, row in zip(lengths, values, strict=True)
            ]
            rows.append((name, chosen, f"{totals[chosen].mean():.1f}", best, f"{totals[best].mean():.1f}"))
            page.claim(
                f"Theorem 1's L, {name}", ratio(totals[chosen], totals[best]),
                chosen=str(chosen), best=str(best),
                reward=f"{totals[chosen].mean():.0f}", most=f"{totals[best].mean():.0f}",
            )  # fmt: skip
        figure.supxlabel(f"mean of {runs} runs, bands: smallest to largest", fontsize=look.SMALL)
    page.figure(figure)
    page.numbers(("env", "L", "mean", "smallest", "largest"), lines)
    page.text(
        f"Total expected reward of O3M at T = {T}, d = 3, sigma = 0.1, delta = 1/T, {runs} runs.",
        markdown(("env", "L of Theorem 1", "reward", "best L tried", "reward of that"), rows),
        markdown(("env", "L", "mean", "smallest to largest"), [
            (name, L, f"{middle:.1f}", f"{low:.1f} to {high:.1f}") for name, L, middle, low, high in lines
        ]),
    )  # fmt: skip
