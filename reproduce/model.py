"""The model in one picture: what an action pays while it is played, and while it rests.

theta = e_1, m = 4. First e_1 is played, then e_2, which leaves e_1 alone, then e_1 again; at each step the
picture shows what e_1 would pay, (1 + its plays among the last m steps)^gamma.
"""

from __future__ import annotations

import numpy as np

import fastlbm as lbm

from . import look
from .page import Page, markdown

M = 4
PLAYED = [0] * 8 + [1] * 6 + [0] * 4
#: gamma: name, colour, dashes, marker; colours that no agent has.
LINES = {
    0.5: ("rising", "#01665E", (0, (4, 1, 1, 1)), "^"),
    0.0: ("stationary", "#7F7F7F", (0, (4, 1.5)), "s"),
    -1.0: ("rotting", "#8C510A", "-", "o"),
}


def make(page: Page) -> None:
    """Play the sequence in three models, draw what e_1 would pay."""
    actions = np.eye(2)[PLAYED]
    steps = np.arange(1, len(PLAYED) + 1)
    pays = {gamma: [would_pay(gamma, actions[:t]) for t in range(len(PLAYED))] for gamma in LINES}
    with look.style():
        figure, (axes,) = look.panels(1, width=0.8 * look.PAGE, height=2.2)
        axes.axvspan(8.5, 14.5, color="0.92", linewidth=0)
        for gamma, (name, color, dashes, marker) in LINES.items():
            words = rf"{name}, $\gamma = {gamma:g}$"
            axes.plot(
                steps, pays[gamma], color=color, linestyle=dashes, marker=marker, markersize=3.5, label=words
            )
        axes.set(xlim=(0.5, len(PLAYED) + 0.5), ylim=(0, 2.6), xticks=steps[::2])
        for middle, words in ((4.5, "$e_1$ is played"), (11.5, "$e_1$ rests"), (16.5, "played again")):
            axes.text(middle, 2.42, words, ha="center", va="center", fontsize=look.SMALL)
        look.finish(axes, "", "step", "what $e_1$ would pay")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside right center")
    page.figure(figure)
    rows = list(zip(steps, (f"e_{1 + k}" for k in PLAYED), *pays.values(), strict=True))
    columns = ("step", "played", *(f"gamma {gamma:g}" for gamma in LINES))
    page.numbers(columns, rows)
    page.text(
        f"What e_1 would pay at each step, theta = e_1, m = {M}.",
        markdown(
            columns, [(t, action, *(f"{value:.3f}" for value in values)) for t, action, *values in rows]
        ),
    )


def would_pay(gamma: float, history: np.ndarray) -> float:
    """The expected reward of e_1 after some actions."""
    env = lbm.LBM([1.0, 0.0], m=M, gamma=gamma)
    return float(env.expected_rewards([[1.0, 0.0]], history=history)[0])
