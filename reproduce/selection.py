"""Corollary 1 (cor:model_selection): the Bandit Combiner's reward beside OPT/sqrt(M), M = max m_j / min m_j.

Rotting as in Figure 1, left. Over m the candidates are 1, 2 and 4, so that M = 4; over gamma M = 1. The bound
of the corollary, with the constants of its proof, is far above OPT at any horizon one can run.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fastlbm as lbm

from . import look
from .claims import Array, exact, exponent, first_below, mean
from .page import Page, markdown

#: The horizon at which the bound is compared with what it bounds, the longest of all experiments here.
LONGEST = 10**8


def make(page: Page) -> None:
    """Run the study, draw rewards beside OPT/sqrt(M), and the bounds out to where they say something."""
    document = page.document()
    runs = document["seeds"] = page.runs(document["seeds"])
    results = page.study(document)
    cycle = lbm.best_cycle(results.envs["rotting"], period=13).average  # as in Figure 1, left
    rewards: dict[str, Array] = {
        agent: rows.pivot(index="T", columns="seed", values="reward").to_numpy()
        for agent, rows in results.frame.groupby("agent", sort=False)
    }
    T = np.array(document["T"])
    kinds = ("Combiner m", "Combiner gamma")
    candidates = {kind: [(m, gamma) for m, gamma in document["agent"][kind]["candidates"]] for kind in kinds}
    shares = {kind: corollary(T[0], candidates[kind]).share for kind in kinds}
    first = {kind: meaning(candidates[kind], cycle) for kind in kinds}

    with look.style():
        figure, axes = look.panels(2, height=2.6)
        for agent, values in rewards.items():
            parts = values / (T[:, None] * cycle)
            look.dots(axes[0], agent, T, parts, look.LOOKS[agent].label)
        axes[0].set_yscale("linear")
        axes[0].axhline(1.0, **{**look.look("best cycle"), "marker": ""})
        axes[0].axhline(shares["Combiner m"], color="black", linewidth=0.8, label=r"$1/\sqrt{M}$ for $m$")
        axes[0].set_ylim(0, 1.5)
        look.finish(axes[0], "reward / that of the best cycle", "horizon $T$", "")
        axes[0].legend(loc="upper left", ncols=2)
        _bounds(axes[1], candidates, cycle)
        figure.supxlabel(f"left: mean and smallest to largest of {runs} runs", fontsize=look.SMALL)
    page.figure(figure)
    lines = [
        (agent, t, *(f(row) for f in (np.mean, np.min, np.max)))
        for agent, values in rewards.items()
        for t, row in zip(T, values, strict=True)
    ]
    page.numbers(("agent", "T", "mean", "smallest", "largest"), lines)
    page.text(
        f"Total expected reward, {runs} runs, rotting as in Figure 1, left, L and delta from theory; the "
        f"best cycle known earns {cycle:.4f} a step.",
        markdown(
            ("agent", "T", "mean", "smallest to largest", "of the best cycle"),
            [
                (a, t, f"{r:.1f}", f"{lo:.1f} to {hi:.1f}", f"{r / (t * cycle):.1%}")
                for a, t, r, lo, hi in lines
            ],
        ),
        "Corollary 1 with the constants of its proof:",
        markdown(
            (
                "candidates",
                "1/sqrt(M)",
                f"bound / (OPT/sqrt(M)) at T = {LONGEST:.0e}",
                "first T at which this is 1",
            ),
            [
                (
                    kind,
                    f"{shares[kind]:.3f}",
                    f"{excess(LONGEST, candidates[kind], cycle):.0f}",
                    f"{first[kind]:.1e}",
                )
                for kind in kinds
            ],
        ),
    )
    _claims(page, T, rewards, candidates, cycle)


def _claims(
    page: Page,
    T: NDArray[np.int64],
    rewards: dict[str, Array],
    candidates: dict[str, list[tuple[int, float]]],
    cycle: float,
) -> None:
    over_m, over_gamma = candidates["Combiner m"], candidates["Combiner gamma"]
    aim = corollary(T[0], over_m).share * cycle * T
    first = f"{meaning(over_m, cycle):.0e}"
    page.claim("Corollary 1", exponent(T, aim[:, None] - rewards["Combiner m"]), first=first)
    whole = corollary(T[0], over_gamma).share * cycle * T
    page.claim("Corollary 1, M = 1", exponent(T, whole[:, None] - rewards["Combiner gamma"]))
    page.claim("Corollary 1 at 10^8", exact(excess(LONGEST, over_m, cycle)), first=first)
    page.claim("Corollary 1, scaled", mean(rewards["Combiner m, scale 0.01"][-1] / aim[-1]))


def corollary(T: int, candidates: list[tuple[int, float]]) -> lbm.theory.CombinerBound:
    """The bound for the truth of this instance."""
    return lbm.theory.combiner_regret_bound(T=int(T), d=3, candidates=candidates, truth=(2, -3.0))


def excess(T: int, candidates: list[tuple[int, float]], per_step: float) -> float:
    """The bound / (OPT/sqrt(M)): below 1 it says more than that rewards are not negative."""
    bound = corollary(T, candidates)
    return bound.regret / (bound.share * per_step * T)


def meaning(candidates: list[tuple[int, float]], per_step: float) -> int:
    """The first horizon at which it is."""
    return first_below(lambda T: excess(T, candidates, per_step), lambda _: 1.0, low=1000)


def _bounds(axes: Any, candidates: dict[str, list[tuple[int, float]]], per_step: float) -> None:
    T = [10**k for k in range(3, 24)]
    x = np.array(T, dtype=np.float64)
    for kind, pairs in candidates.items():
        values = [excess(t, pairs, per_step) for t in T]
        axes.loglog(x, values, **{**look.look(kind), "label": f"Corollary 1, {look.LOOKS[kind].label}"})
    theorem = [lbm.theory.regret_bound(t, d=3, m=2, gamma=-3.0) / (per_step * t) for t in T]
    axes.loglog(x, theorem, **{**look.look("bound"), "label": "Theorem 1"})
    axes.axhline(1.0, color="black", linewidth=0.7)
    axes.axvspan(x[0], LONGEST, color="0.92", linewidth=0)
    axes.text(math.sqrt(x[0] * LONGEST), 0.02, "run here", ha="center", fontsize=look.SMALL)
    axes.set_xlim(x[0], x[-1])
    look.finish(axes, r"bound / what it bounds, OPT$/\sqrt{M}$", "horizon $T$", "")
    axes.legend(loc="upper right")
