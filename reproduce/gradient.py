"""Beyond the paper: what it costs to differentiate with the memory matrix held constant.

The published code does so. One block of m + L = 2 + 20 actions for the true theta of Figure 1, left, by plain
projected gradient ascent from the same random starts: with the exact gradient, and with `A_{j-1} theta` for
action j, which is what remains of it when `A_{j-1}` does not depend on the actions before.
"""

from __future__ import annotations

import numpy as np
from tqdm import tqdm

import fastlbm as lbm

from . import look
from .claims import Array, ratio
from .page import Page, markdown

M, L, GAMMA = 2, 20, -3.0
STARTS, ITERATIONS, STEPS = 12, 200, (0.1, 0.3)
KINDS = {"exact": ("#0072B2", "-"), "memory held constant": ("#D55E00", (0, (4, 1.5)))}


def make(page: Page) -> None:
    """Climb with both gradients, draw the values on the way."""
    env = lbm.LBM(**page.document("fig1_left")["env"]["published"])
    starts = STARTS // 4 if page.quick else STARTS
    values = {}
    with tqdm(total=2 * len(STEPS) * starts, desc="ascents", unit="start") as bar:
        for kind in KINDS:
            # The step that is best for this gradient.
            tried = [np.array([_climb(env, kind, step, s, bar) for s in range(starts)]) for step in STEPS]
            values[kind] = max(tried, key=lambda found: float(found[:, -1].mean())) / L

    with look.style():
        figure, (axes,) = look.panels(1, width=1.1 * look.COLUMN, height=2.4)
        steps = np.arange(ITERATIONS + 1)
        for kind, (color, dashes) in KINDS.items():
            low, middle, high = np.percentile(values[kind], [0, 50, 100], axis=0)
            axes.plot(steps, middle, color=color, linestyle=dashes, label=kind)
            axes.fill_between(steps, low, high, color=color, alpha=0.2, linewidth=0)
        axes.set(xlim=(0, ITERATIONS), ylim=(0, 0.7))
        look.finish(axes, "", "iteration", "value of the block in a step")
        axes.legend(loc="lower right", title="gradient")
        figure.supxlabel(f"median and range of {starts} random starts", fontsize=look.SMALL)
    page.figure(figure)
    page.numbers(
        ("gradient", "iteration", "smallest", "median", "largest"),
        [
            (kind, k, *np.percentile(found[:, k], [0, 50, 100]))
            for kind, found in values.items()
            for k in steps
        ],
    )
    last = {kind: found[:, -1] for kind, found in values.items()}
    page.text(
        f"Value in a step of a block of {M} + {L} actions after {ITERATIONS} steps of projected gradient "
        f"ascent, {starts} random starts, the best of the steps {', '.join(map(str, STEPS))}.",
        markdown(
            ("gradient", "median", "smallest to largest"),
            [(kind, f"{np.median(v):.4f}", f"{v.min():.4f} to {v.max():.4f}") for kind, v in last.items()],
        ),
    )
    page.claim("exact gradient", ratio(last["exact"], last["memory held constant"]))


def _climb(env: lbm.LBM, kind: str, step: float, seed: int, bar: tqdm) -> Array:
    """Values of the block along projected gradient ascent."""
    ball = lbm.Ball(env.d)
    block = ball.sample(M + L, seed=seed)
    values = []
    for _ in range(ITERATIONS + 1):
        value, gradient = lbm.block_ucb(
            block, m=M, gamma=GAMMA, theta=env.theta, V_inv=np.eye(env.d), beta=0.0
        )
        values.append(value)
        if kind != "exact":
            gradient = np.zeros_like(block)
            gradient[M:] = _constant(block, env.theta)
        block = ball.project(block + step * gradient)
    bar.update()
    return np.array(values)


def _constant(block: Array, theta: Array) -> Array:
    """`A_{j-1} theta` for the last L actions (L, d), A0 = I."""
    windows = np.lib.stride_tricks.sliding_window_view(block[:-1], M, axis=0)
    values, vectors = np.linalg.eigh(np.eye(len(theta)) + windows @ windows.transpose(0, 2, 1))
    return np.asarray(np.einsum("jab,jb,jcb,c->ja", vectors, values**GAMMA, vectors, theta))
