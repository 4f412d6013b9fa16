"""Figure 1, right pane: rising with a non-isotropic A0, where oracle greedy is far from optimal.

d = 2, m = 2, gamma = 1, A0 = diag(1, 0), theta = (sqrt(eps), sqrt(1 - eps)). Only the policies that need
no learning are drawn: oracle greedy, e_1 forever, and the paper's pi_2, which is e_2 forever.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

import fastlbm as lbm

Array = NDArray[np.float64]

T = 1200
M = 2
EPSILON = 0.01
GREEDY, E1, PI2 = "oracle greedy", "always e_1", "pi_2 (always e_2)"

#: Reward of a step of each policy once the memory is full, by the paper; oracle greedy is said to play e_1.
FULL_MEMORY = {
    GREEDY: (1 + M) * math.sqrt(EPSILON),
    E1: (1 + M) * math.sqrt(EPSILON),
    PI2: M * math.sqrt(1.0 - EPSILON),
}


def environment() -> lbm.LBM:
    """The instance of Section 5, "Rising with non-isotropic initialization"."""
    theta = [math.sqrt(EPSILON), math.sqrt(1.0 - EPSILON)]
    return lbm.LBM(theta, m=M, gamma=1.0, A0=np.diag([1.0, 0.0]))


def greedy_actions(env: lbm.LBM, horizon: int) -> Array:
    """Actions (horizon, d) of oracle greedy on the ball: `a_t = A_{t-1} theta / ||A_{t-1} theta||`."""
    actions = np.zeros((horizon, env.d))
    for t in tqdm(range(horizon), desc=GREEDY, unit="step"):
        direction = env.memory_matrix(actions[max(t - M, 0) : t]) @ env.theta
        actions[t] = direction / np.linalg.norm(direction)
    return actions


def rewards() -> tuple[dict[str, Array], float]:
    """Cumulative expected reward (T,) of each policy; how far greedy ever is from e_1."""
    env = environment()
    e_1, e_2 = np.eye(2)
    greedy = greedy_actions(env, T)
    actions = {GREEDY: greedy, E1: np.tile(e_1, (T, 1)), PI2: np.tile(e_2, (T, 1))}
    distance = float(np.linalg.norm(greedy - e_1, axis=1).max())
    return {name: np.cumsum(env.expected_rewards(rows)) for name, rows in actions.items()}, distance


def write(out: Path) -> list[Path]:
    """Draw the figure and write it, its numbers (CSV) and its last row (Markdown); the paths."""
    curves, distance = rewards()
    stem = out / "fig1_right"
    paths = [stem.with_suffix(suffix) for suffix in (".png", ".pdf", ".csv", ".md")]
    _draw(curves, paths[0], paths[1])
    paths[2].write_text(_csv(curves), encoding="utf-8")
    paths[3].write_text(_markdown(curves, distance), encoding="utf-8")
    return paths


def _csv(curves: dict[str, Array]) -> str:
    rows = zip(*curves.values(), strict=True)
    lines = [f"{t},{','.join(f'{value:.6f}' for value in row)}" for t, row in enumerate(rows, start=1)]
    return "\n".join([f"t,{','.join(curves)}", *lines, ""])


def _markdown(curves: dict[str, Array], distance: float) -> str:
    lines = [
        f"Cumulative expected reward at T = {T}, epsilon = {EPSILON:g}, m = {M}:",
        "",
        "| policy | reward | the paper's closed form | difference |",
        "|---|---|---|---|",
    ]
    for name, curve in curves.items():
        closed = T * FULL_MEMORY[name]
        lines.append(f"| {name} | {curve[-1]:.3f} | {closed:.3f} | {curve[-1] - closed:.3f} |")
    lines += ["", f"Largest distance of an action of oracle greedy from e_1: {distance:.1e}.", ""]
    return "\n".join(lines)


def _draw(curves: dict[str, Array], png: Path, pdf: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    steps = np.arange(1, T + 1)
    looks = {  # colours that the colour-blind can tell apart; the two that coincide differ in width
        PI2: ("#D55E00", 2.0, r"$\pi_2$ (always $e_2$)"),
        GREEDY: ("#56B4E9", 4.5, "oracle greedy"),
        E1: ("#F0E442", 2.0, r"always $e_1$"),
    }
    closed_forms = {
        PI2: (r"$t\,m\,\sqrt{1-\epsilon}$", (8, -3), "left", "center"),
        E1: (r"$t\,(1+m)\,\sqrt{\epsilon}$", (0, 6), "center", "bottom"),
    }
    style: dict[Any, Any] = {
        "font.size": 8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "pdf.fonttype": 42,
    }
    with plt.rc_context(style):
        figure, axes = plt.subplots(figsize=(3.4, 2.5), layout="constrained")
        for name, (color, width, label) in looks.items():
            axes.plot(steps, curves[name], color=color, linewidth=width, label=label)
        full = steps[M:]
        for name, (label, offset, horizontal, vertical) in closed_forms.items():
            axes.plot(full, full * FULL_MEMORY[name], "k--", linewidth=0.7)
            point = (0.7 * T, 0.7 * T * FULL_MEMORY[name])
            axes.annotate(label, point, offset, textcoords="offset points", ha=horizontal, va=vertical)
        axes.plot([], [], "k--", linewidth=0.7, label="closed form")
        axes.set(xlabel="step $t$", ylabel="cumulative expected reward", xlim=(0, T), ylim=(0, None))
        axes.legend(frameon=False, handlelength=2.5, loc="upper left")
        figure.savefig(png, dpi=300)
        figure.savefig(pdf, metadata={"CreationDate": None})
        plt.close(figure)
