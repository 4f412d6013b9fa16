"""The confidence set of Section 3.2 (sec:estimation): does it hold theta at all times as often as it says?

Theorem 2 (thm:regret_hp) rests on theta being in C_tau for every block tau with probability 1 - delta. The
radius (18), eq:indiv_beta, counts tau features, though V_tau holds tau L of them; `confidence_radius` counts
these. Noise of size 1, as in the theory, and two instances: that of Figure 1, left, and one with many
dimensions and long blocks, where the first block has more noise in it than the printed radius allows for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import fastlbm as lbm

from . import look
from .claims import Array, mean
from .page import Page, markdown

DELTA = 0.1
#: Colour and dashes of the two radii.
RADII = {"tau L features": ("#0072B2", "-"), "tau, as printed": ("#D55E00", (0, (4, 1.5)))}


class Setting(NamedTuple):
    """A model, the length of a block, blocks in a run, runs."""

    d: int
    m: int
    gamma: float
    L: int
    blocks: int
    runs: int

    def __str__(self) -> str:
        return f"d = {self.d}, m = {self.m}, gamma = {self.gamma:g}, L = {self.L}"


FIGURE_1 = Setting(d=3, m=2, gamma=-3.0, L=20, blocks=54, runs=60)
LONG = Setting(d=20, m=1, gamma=-3.0, L=60, blocks=4, runs=100)


def make(page: Page) -> None:
    """Run O3M, measure theta's distance from the estimate in radii, count the runs that keep it below 1."""
    parts = {setting: distances(setting) for setting in (FIGURE_1, LONG)}
    lines, rows = [], []
    with look.style():
        figure, axes = look.panels(2, height=2.5, sharey=True)
        for panel, (setting, found) in zip(axes, parts.items(), strict=True):
            for (radius, (color, dashes)), values in zip(RADII.items(), found, strict=True):
                order = np.sort(values)
                covered = np.arange(1, len(order) + 1) / len(order)
                panel.step(
                    order,
                    covered,
                    where="post",
                    color=color,
                    linestyle=dashes,
                    label=radius.replace("tau", r"$\tau$"),
                )
                share = mean(values <= 1.0)
                rows.append((str(setting), radius, share.text(2), f"{values.max():.2f}"))
                lines += [(str(setting), radius, value) for value in order]
            panel.axvline(1.0, color="black", linewidth=0.7)
            panel.axhline(1.0 - DELTA, color="black", linewidth=0.7, linestyle=(0, (1, 2)))
            panel.set(xlim=(0.2, 1.5), ylim=(0, 1.03))
            title = rf"$d = {setting.d}$, $m = {setting.m}$, $\gamma = {setting.gamma:g}$, $L = {setting.L}$"
            look.finish(panel, title, r"$\max_\tau \|\hat\theta_\tau - \theta^*\|_{V_\tau}$ / radius", "")
        axes[0].set_ylabel("part of the runs")
        axes[0].legend(loc="upper left", title="radius that counts")
        axes[1].text(0.22, 1.0 - DELTA - 0.02, r"$1 - \delta$", va="top", fontsize=look.SMALL)
    page.figure(figure)
    page.numbers(("setting", "radius", "largest distance"), lines)
    page.text(
        f"Part of the runs of O3M in which theta is in the confidence set after every block, delta = "
        f"{DELTA:g}, sigma = 1, {FIGURE_1.runs} and {LONG.runs} runs, and the largest distance from the "
        "estimate in radii.",
        markdown(("setting", "radius that counts", "covered (95% interval)", "largest"), rows),
    )
    for name, setting in (("", FIGURE_1), (", long blocks", LONG)):
        counted, printed = parts[setting]
        page.claim(f"confidence set{name}", mean(counted <= 1.0))
        page.claim(f"confidence set, printed radius{name}", mean(printed <= 1.0))


def distances(setting: Setting) -> tuple[Array, Array]:
    """For each run the largest distance over blocks, in radii that count tau L and tau features."""
    d, m, gamma, L, blocks, runs = setting
    T = blocks * (m + L)
    env = lbm.LBM.random(d=d, m=m, gamma=gamma, sigma=1.0, seed=0)
    agent = lbm.O3M(m=m, gamma=gamma, horizon=T, L=L, delta=DELTA)
    tau = np.arange(1, blocks + 1)
    radii = [np.asarray(lbm.theory.confidence_radius(n, d, m, gamma, delta=DELTA)) for n in (tau * L, tau)]
    found = np.array([_errors(env, agent, T, L, seed) for seed in range(runs)])
    counted, printed = ((found / radius).max(axis=1) for radius in radii)
    return counted, printed


def _errors(env: lbm.LBM, agent: lbm.agents.Agent, T: int, L: int, seed: int) -> Array:
    """||theta_hat - theta||_V after each block: equation (11), eq:est_theta, from actions and rewards."""
    run = lbm.run(env, agent, T=T, seed=seed, record=T, keep_actions=True)
    assert run.actions is not None  # they were asked for
    shape = (-1, int(env.m) + L)
    counted = slice(int(env.m), None)
    b = features(env, run.actions).reshape(*shape, env.d)[:, counted]
    y = np.diff(run.observed, prepend=0.0).reshape(shape)[:, counted]
    V = np.eye(env.d) + np.cumsum(np.einsum("nla,nlb->nab", b, b), axis=0)
    target = np.cumsum(np.einsum("nla,nl->na", b, y), axis=0)
    error = np.linalg.solve(V, target[:, :, None])[:, :, 0] - env.theta
    return np.asarray(np.sqrt(np.einsum("na,nab,nb->n", error, V, error)))


def features(env: lbm.LBM, actions: Array) -> Array:
    """A_{t-1} a_t for a sequence of actions (T, d), A0 = I."""
    X = np.tile(np.eye(env.d), (len(actions), 1, 1))
    for s in range(1, int(env.m) + 1):
        X[s:] += actions[:-s, :, None] * actions[:-s, None, :]
    values, vectors = np.linalg.eigh(X)
    return np.asarray(np.einsum("nab,nb,ncb,nc->na", vectors, values**env.gamma, vectors, actions))
