"""The picture to begin with: who earns how much of the best cycle known, over random problems.

The problems are those of `rolling`: d 2..8, m 0..5, gamma -4..1.5, five sizes of noise. O3M, OM and Rolling
are told m and gamma, EvidenceSelector that they are near one of 36 pairs, and all of them A0, which is the
identity in five of six problems. Auto and OFUL are told nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import fastlbm as lbm

from . import look
from .claims import Array, mean, ratio
from .instances import best_cycles, instances
from .page import Page, markdown
from .rolling import COUNT, SHARE, easy, environments, of_instances

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What each agent is told, in words.
TOLD = {
    "OFUL": "OFUL\nignores the memory",
    "O3M, theory": "O3M, $L$ of Theorem 1\ntold $m$ and $\\gamma$",
    "OM": "OM, $L = 20$\ntold $m$ and $\\gamma$",
    "O3M": "O3M, $L = 20$\ntold $m$ and $\\gamma$",
    "EvidenceSelector": "EvidenceSelector\ntold 36 candidates",
    "Auto": "Auto\ntold nothing",
    "Rolling": "Rolling\ntold $m$ and $\\gamma$",
}


def make(page: Page) -> None:
    """Run the study, draw the shares of all agents, write them as a table, check who is ahead."""
    document = page.document()
    document["seeds"] = 1 if page.quick else page.runs(document["seeds"])
    envs = {str(k): env for k, env in enumerate(instances(COUNT)) if not page.quick or easy(env)}
    cycles = best_cycles(list(envs.values()))
    best = {name: cycle.average for name, cycle in zip(envs, cycles, strict=True)}
    found = of_instances(page.study({**document, "env": environments(envs)}), best, document["T"])
    shares = {agent: values.mean(axis=1) for agent, values in found.values.items()}

    with look.style():
        page.figure(draw(shares, document))
    page.numbers(
        ("instance", "agent", "share"),
        [(x, agent, v) for agent, mine in shares.items() for x, v in zip(found.x, mine, strict=True)],
    )
    page.text(*table(shares, envs, document))
    page.claim("told nothing, over problems", ratio(shares["Auto"], shares["O3M"]))
    page.claim("36 candidates, over problems", ratio(shares["Auto"], shares["EvidenceSelector"]))


def draw(shares: dict[str, Array], document: dict[str, Any]) -> Figure:
    """A row for each agent: a dot for each problem, a line at their mean."""
    figure, (axes,) = look.panels(1, height=3.4)
    for row, agent in enumerate(TOLD):
        mine, chosen = np.sort(shares[agent]), look.LOOKS[agent]
        # Dots that would lie on each other go up and down in turn.
        shift = 0.16 * np.array([-1.0, 0.0, 1.0])[np.arange(len(mine)) % 3]
        axes.plot(mine, row + shift, ".", color=chosen.color, markersize=4.5, alpha=0.6, markeredgewidth=0)
        axes.plot([mine.mean()] * 2, [row - 0.27, row + 0.27], color=chosen.color, linewidth=2.2)
        axes.annotate(
            f"{100 * mine.mean():.0f}%", (mine.mean(), row + 0.27), ha="center", va="bottom", size=look.SMALL
        )
    axes.set_yticks(range(len(TOLD)), TOLD.values())
    axes.set(xlim=(0.0, 1.03), ylim=(-0.5, len(TOLD) - 0.3))
    axes.tick_params(axis="y", length=0)
    runs = f"mean of {document['seeds']} runs" if document["seeds"] > 1 else "one run"
    problems = f"{len(shares['O3M'])} random problems, $T = {document['T']}$"
    title = f"{problems}: a dot is a problem ({runs}), a line their mean"
    look.finish(axes, title, SHARE, "")
    return figure


def table(shares: dict[str, Array], envs: dict[str, lbm.LBM], document: dict[str, Any]) -> list[str]:
    """The same in numbers."""
    words = (
        f"Share of the best cycle known on {len(envs)} random problems (d 2..8, m 0..5, gamma -4..1.5, sigma "
        f"0.05 to 0.3), T = {document['T']}, {document['seeds']} runs each:"
    )
    rows = [
        (
            " ".join(TOLD[agent].replace("$", "").replace("\\gamma", "gamma").split("\n")),
            mean(shares[agent]).text(3),
            f"{shares[agent].min():.3f}",
            "" if agent == "O3M" else (shares[agent] > shares["O3M"]).sum(),
        )
        for agent in TOLD
    ]
    columns = ("agent", "mean (95% interval)", "worst problem", "more than O3M, L = 20, on")
    return [words, markdown(columns, rows)]
