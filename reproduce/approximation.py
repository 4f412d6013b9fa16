"""Beyond the paper: how far the best block, played in cycles, stays behind OPT (Propositions 2 and 3).

Rotting on the ball as in Figure 1, left, and the instance in which Proposition 3 makes the gap large: arms 0
and e_1, ..., e_{m+1}, where a best block may begin with m zeros. Formulas of Section 4 are checked as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tqdm import tqdm

import fastlbm as lbm

from . import look
from .claims import Array, exact
from .page import Page, markdown

LENGTHS = (1, 2, 3, 4, 5, 6, 8, 10, 11, 14, 18, 21, 24, 30, 40, 60)
MEMORIES = (1, 2, 3)


def make(page: Page) -> None:
    """Plan blocks of all lengths, draw the gaps and bounds, check both propositions."""
    document = page.document("fig1_left")
    env = lbm.LBM(**document["env"]["published"])
    lengths = np.array(LENGTHS[:10] if page.quick else LENGTHS)
    upper = lbm.opt_bounds(env, T=10**6, L=200).upper / 10**6
    gaps = np.array([upper - in_cycles(env, int(L)) for L in tqdm(lengths, desc="best blocks", unit="block")])
    proven = np.asarray(lbm.theory.approximation_gap(T=1, m=2, L=lengths, R=env.reward_bound))
    tight = {m: np.array([tight_gaps(m, int(L)) for L in lengths]) for m in MEMORIES}

    with look.style():
        figure, axes = look.panels(2, height=2.7)
        axes[0].loglog(2 + lengths, gaps, **{**look.look("O3M"), "label": "best block found, in cycles"})
        axes[0].loglog(2 + lengths, proven, **{**look.look("bound"), "label": r"Proposition 2: $2mR/(m+L)$"})
        look.finish(
            axes[0], r"rotting on the ball, $m = 2$, $\gamma = -3$", "block $m+L$", "reward lost in a step"
        )
        axes[0].legend(loc="lower left")
        for m, color, marker in zip(MEMORIES, ("#0072B2", "#E69F00", "#CC79A7"), "o^s", strict=True):
            x = m + lengths
            axes[1].loglog(
                x, tight[m][:, 0], marker, color=color, markersize=3.5, label=f"$m = {m}$, zeros first"
            )
            R = 1 / np.sqrt(m + 1)
            axes[1].loglog(
                x, m * R / x, color=color, linewidth=0.7, linestyle="-" if m == 1 else (0, (3 * m, 2))
            )
        axes[1].plot([], [], color="black", linewidth=0.7, label="Proposition 3: $mR/(m+L)$")
        look.finish(axes[1], "the instance of Proposition 3", "block $m+L$", "")
        axes[1].legend(loc="lower left")
        for panel in axes:
            panel.set_xticks([2, 3, 5, 10, 20, 40], ["2", "3", "5", "10", "20", "40"])
            panel.set_xticks([], minor=True)
    page.figure(figure)
    columns = (
        "L",
        "gap",
        "bound",
        *(f"m={m} {which}" for m in MEMORIES for which in ("zeros first", "planned")),
    )
    lines = [
        (int(L), gaps[k], proven[k], *(value for m in MEMORIES for value in tight[m][k]))
        for k, L in enumerate(lengths)
    ]
    page.numbers(columns, lines)
    page.text(
        f"Reward lost in a step by playing the best block of m+L actions in cycles. Ball: against the upper "
        f"bound {upper:.5f} on OPT/T. Instance of Proposition 3: a best block that begins with m zeros, and "
        "the one that `best_block` returns, which of equal blocks takes the one that earns most in cycles.",
        markdown(
            ("L", "ball", "Proposition 2", *columns[3:]),
            [(line[0], *(f"{abs(value):.4f}" for value in line[1:])) for line in lines],
        ),
    )
    errors = [np.abs(tight[m][:, 0] - m / np.sqrt(m + 1) / (m + lengths)).max() for m in MEMORIES]
    page.claim("Proposition 2", exact((gaps / proven).max()))
    planned = max(tight[m][:, 1].max() for m in MEMORIES)
    page.claim("Proposition 3", exact(max(errors)), planned=f"{planned:.3f}")
    excess, differences = formulas()
    page.claim("UCB of OM", exact(excess.max()))
    page.claim("UCB in one dimension", exact(differences.max()))


def formulas(blocks: int = 300) -> tuple[Array, Array]:
    """UCB of OM less that of O3M, and the distance from y theta/(1+x^2) in one dimension; random blocks."""
    rng = np.random.default_rng(0)
    excess, differences = [], []
    for _ in range(blocks):
        data = rng.standard_normal((5, 3))
        belief: dict[str, Any] = {
            "theta": rng.standard_normal(3),
            "V_inv": np.linalg.inv(np.eye(3) + data.T @ data),
            "beta": 2.0,
        }
        block = lbm.Ball(3).sample(7, seed=rng)
        values = [lbm.block_ucb(block, m=2, gamma=-3.0, optimism=kind, **belief)[0] for kind in ("OM", "O3M")]
        excess.append(values[0] - values[1])
        x, y, theta = rng.uniform(-1.0, 1.0, 3)
        value, _ = lbm.block_ucb([[x], [y]], m=1, gamma=-1.0, theta=[theta], V_inv=[[1.0]], beta=0.0)
        differences.append(abs(value - y * theta / (1.0 + x * x)))
    return np.array(excess), np.array(differences)


def in_cycles(env: lbm.LBM, L: int) -> float:
    """Average reward of the best block of m+L, played again and again."""
    block = lbm.best_block(env, L=L).actions
    return average(env, block)


def average(env: lbm.LBM, block: Array) -> float:
    """The same of any block: its second and third round, when the memory is its own."""
    rewards = env.expected_rewards(np.tile(block, (2 + int(env.m), 1)))
    return float(rewards[-len(block) :].mean())


def tight_gaps(m: int, L: int) -> tuple[float, float]:
    """What a best block with zeros first, and the planned one, lose in a step; gamma = -1."""
    d = m + 1
    arms = np.vstack([np.zeros(d), np.eye(d)])
    env = lbm.LBM(np.full(d, 1 / np.sqrt(d)), m=m, gamma=-1.0, actions=lbm.Finite(arms))
    zeros_first = np.vstack([np.zeros((m, d)), np.eye(d)[np.arange(L) % d]])
    planned = lbm.best_block(env, L=L)
    best = env.expected_rewards(zeros_first)[m:].sum()
    if not np.isclose(best, planned.value, rtol=1e-9):
        raise AssertionError(f"a block with zeros first is not a best block: {best} < {planned.value}")
    optimum = 1 / np.sqrt(d)
    return optimum - average(env, zeros_first), optimum - average(env, planned.actions)
