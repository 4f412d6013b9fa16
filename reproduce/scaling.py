"""How the regret depends on d, m and gamma, beside sqrt(d) (m+1)^(1/2 + gamma) of Theorem 1 (thm:regret_exp).

Rising with A0 = I, where OPT is known. The theorem bounds the regret and says nothing of how it grows, so a
smaller exponent is no surprise. A larger one, as that of d here, contradicts the theorem only if it
stays so as T grows as well: d sqrt(T) is below sqrt(d) T^(3/4) for all T >= d^2.
"""

from __future__ import annotations

import numpy as np

import fastlbm as lbm
from fastlbm.experiments.results import StudyResults

from . import look
from .claims import Array, Number, exponent
from .page import Page, markdown


def make(page: Page) -> None:
    """Run the study, draw regret over d, m and gamma with the theorem's slopes, fit exponents."""
    document = page.document()
    runs = document["seeds"] = page.runs(document["seeds"])
    T = document["T"]
    results = page.study(document)
    dimensions = np.array([one["d"] for one in document["env"]["d"]["grid"]["random"]])
    memories = np.array(document["env"]["m"]["grid"]["m"])
    gammas = np.array(document["env"]["gamma"]["grid"]["gamma"])
    # What varies: the number whose power it is, the theorem's exponent, names.
    panels = {
        "d": (dimensions, 0.5, "$d$", r"$m = 1$, $\gamma = 1$"),
        "m": (memories + 1, 1.5, "$m+1$", r"$d = 3$, $\gamma = 1$"),
        "gamma": (3.0**gammas, 1.0, r"$(m+1)^\gamma$", "$d = 3$, $m = 2$"),
    }
    lines, rows = [], []
    with look.style():
        figure, axes = look.panels(3, height=2.5, sharey=True)
        for panel, (name, (x, proven, label, others)) in zip(axes, panels.items(), strict=True):
            regret = regrets(results, name, T)
            number: Number = exponent(x, regret)
            look.dots(panel, "O3M", x, regret, f"O3M: exponent {number.value:.2f}")
            start = regret[0].mean()
            panel.loglog(
                x,
                start * (x / x[0]) ** proven,
                **{**look.look("bound"), "label": f"Theorem 1: {proven:g}"},
            )
            panel.set_xticks(x, [f"{value:.2g}" for value in x])
            panel.set_xticks([], minor=True)
            panel.set_ylim(150, 3000)
            panel.set_yticks([200, 500, 1000, 2000], ["200", "500", "1000", "2000"])
            panel.set_yticks([], minor=True)
            look.finish(panel, others, label, "regret" if panel is axes[0] else "")
            panel.legend(loc="upper left")
            lines += [
                (name, value, *(f(row) for f in (np.mean, np.min, np.max)))
                for value, row in zip(x, regret, strict=True)
            ]
            rows.append((name, label.replace("$", "").replace("\\", ""), number.text(2), f"{proven:g}"))
            page.claim(f"regret and {name}", number)
        figure.supxlabel(f"T = {T}, mean of {runs} runs, bands: smallest to largest", fontsize=look.SMALL)
    page.figure(figure)
    page.numbers(("over", "value", "mean", "smallest", "largest"), lines)
    page.text(
        f"Regret of O3M against OPT, rising with A0 = I, sigma = 0.1, T = {T}, L and delta of the theorem, "
        f"{runs} runs.",
        markdown(("what varies", "power of", "fitted exponent", "Theorem 1"), rows),
        markdown(("what varies", "value", "mean regret", "smallest to largest"), [
            (name, f"{value:.3g}", f"{middle:.1f}", f"{low:.1f} to {high:.1f}")
            for name, value, middle, low, high in lines
        ]),
    )  # fmt: skip


def regrets(results: StudyResults, name: str, T: int) -> Array:
    """(settings, runs) for the settings of one name, in the file's order."""
    rewards = {env: rows["reward"].to_numpy() for env, rows in results.frame.groupby("env", sort=False)}
    mine = [env for env in rewards if env.startswith(f"{name}(")]
    return np.array([lbm.opt_bounds(results.envs[env], T=T).lower - rewards[env] for env in mine])
