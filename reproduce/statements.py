"""Sentences of the paper beside its results: each has a function here, named after it, and a claim.

What the introduction says of the model, Examples 1 and 2, Remark 2, Lemma 1, the step on which Proposition 2
rests, Section 4 on convexity. All are about the model, nothing learns, and all are computed exactly.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import fastlbm as lbm

from . import look
from .claims import Array, exact, mean
from .page import Page, markdown

#: The introduction's sentence: memories and dimensions, random cases of each, the paper's gamma.
MEMORIES, DIMENSIONS, CASES, GAMMA = (1, 2, 3, 5, 8), (2, 3, 5), 8000, -3.0
COLORS = {2: ("#E69F00", "^"), 3: ("#0072B2", "o"), 5: ("#CC79A7", "s")}


def make(page: Page) -> None:
    """Check all of them; draw how often the introduction's sentence fails."""
    rises = {
        (d, m, leaves): playing_decreases(d, m, GAMMA, leaves)
        for d in DIMENSIONS
        for m in MEMORIES
        for leaves in (True, False)
    }
    again = {(d, m): stays_optimal(d, m) for d in DIMENSIONS for m in MEMORIES}
    with look.style():
        figure, axes = look.panels(2, height=2.6)
        for d, (color, marker) in COLORS.items():
            for leaves, dashes in ((True, "-"), (False, (0, (4, 1.5)))):
                shares = [100 * rises[d, m, leaves].mean() for m in MEMORIES]
                words = f"$d = {d}$" + ("" if leaves else ", nothing leaves")
                axes[0].plot(
                    MEMORIES, shares, marker, linestyle=dashes, color=color, markersize=3.5, label=words
                )
            values = [again[d, m] for m in MEMORIES]
            axes[1].plot(
                MEMORIES,
                [v.min() for v in values],
                marker,
                linestyle=(0, (1, 1)),
                color=color,
                markersize=3.5,
            )
            axes[1].plot(
                MEMORIES,
                [v.mean() for v in values],
                marker,
                linestyle="-",
                color=color,
                markersize=3.5,
                label=f"$d = {d}$",
            )
        axes[1].plot([], [], color="black", linestyle=(0, (1, 1)), label="worst case")
        axes[0].set_ylim(0, 45)
        look.finish(axes[0], r"rotting: played again, pays more", "memory $m$", "% of cases that pay at all")
        axes[0].legend(loc="upper left", ncols=2, handlelength=2.6, columnspacing=0.8)
        axes[1].set_ylim(0.965, 1.002)
        look.finish(
            axes[1], "rising: the best action, played again", "memory $m$", "its reward / the best then"
        )
        axes[1].legend(loc="lower left", ncols=4, columnspacing=1.0)
    page.figure(figure)
    rows = [
        (d, m, rises[d, m, True].mean(), rises[d, m, False].mean(), again[d, m].mean(), again[d, m].min())
        for d in DIMENSIONS
        for m in MEMORIES
    ]
    columns = ("d", "m", "pays more again", "nothing leaves", "best again, mean", "best again, worst")
    page.numbers(columns, rows)
    page.text(
        f"{CASES} random histories and actions of the ball for each line. Rotting, gamma = {GAMMA:g}: part "
        "of the actions with a positive reward that pay at least as much when they are played once more at "
        "once; as the model is, and if no old action left the window. Rising, gamma = 1: the best action "
        "after a random history, its reward at the next step / the best one there.",
        markdown(columns, [(d, m, *(f"{value:.3f}" for value in values)) for d, m, *values in rows]),
    )
    most = max(playing_decreases(d, m, -1.0, False).mean() for d in DIMENSIONS for m in MEMORIES)
    page.claim("playing decreases", mean(rises[3, 2, True]), two=f"{rises[2, 2, True].mean():.0%}")
    page.claim("playing decreases, nothing leaves", mean(rises[3, 2, False]), one=f"{most:.0%}")
    page.claim("optimal stays optimal", exact(again[3, 2].min()))
    _model(page)
    _proposition_2(page)


def _model(page: Page) -> None:
    page.claim("Example 1", exact(example_1()))
    page.claim("m = 0 is OFUL", exact(recovers_oful()))
    page.claim("greedy on the ball", exact(greedy_on_the_ball()))
    page.claim("Remark 2", exact(remark_2()))
    page.claim("first actions matter", exact(zeros_first()))
    page.claim("neither convex nor concave", exact(midpoints(1)))
    page.claim("neither convex nor concave, d = 3", exact(midpoints(3)))
    page.claim("Lemma 1", exact(lemma_1(signed=False).max()))
    page.claim("Lemma 1, negative rewards", mean(lemma_1(signed=True) > 1e-9))


def _proposition_2(page: Page) -> None:
    losses, steps = zip(*(on_finite_sets(seed) for seed in range(400)), strict=True)
    page.claim("Proposition 2, finite sets", exact(max(losses)), mean=f"{np.mean(losses):.2f}")
    page.claim("Proposition 2, m = 0", exact(without_memory()))
    page.claim("Proposition 2's step", exact(max(steps)))
    page.claim("Proposition 2's step, any T", exact(step_of_three()))
    short, long = (without_zero(rounds) for rounds in (1, 100))
    page.claim("Proposition 2 without 0", exact(short), long=f"{long:.2f}")


# ------------------------------------------------------------------------------------------ the model


def playing_decreases(d: int, m: int, gamma: float, leaves: bool) -> Array:
    """Of random cases, each 1 if an action that pays something pays no less when it is played again.

    Introduction: "playing action a at time t decreases the expected reward of a at time t+1". With
    `leaves=False` the window is one longer and begins with a zero, so that no old action leaves it.
    """
    length = m if leaves else m + 1
    cases = lbm.Ball(d).sample(CASES * (length + 1), seed=0).reshape(CASES, length + 1, d)
    if not leaves:
        cases[:, 0] = 0.0
    cases = np.concatenate([cases, cases[:, -1:]], axis=1)  # the history, the action, the action again
    env = lbm.LBM(np.eye(d)[0], m=length, gamma=gamma)  # with A0 = I all directions of theta are alike
    rewards = env.expected_rewards(cases.reshape(-1, d)).reshape(CASES, length + 2)
    now, then = rewards[:, -2:].T
    return np.asarray((then >= now)[now > 0.0], dtype=np.float64)


def stays_optimal(d: int, m: int, cases: int = 2000) -> Array:
    """Reward of the best action of a step when played again / the best one then; rising, random histories.

    Introduction: "in a rising scenario with isotropic initialization, an optimal action at time t, if played,
    remains optimal at time t+1".
    """
    histories = lbm.Ball(d).sample(cases * m, seed=0).reshape(cases, m, d)
    theta = np.eye(d)[0]
    before = np.eye(d) + np.einsum("nsa,nsb->nab", histories, histories)  # gamma = 1: no power to take
    best = before @ theta
    best /= np.linalg.norm(best, axis=1, keepdims=True)
    after = np.eye(d) + np.einsum("nsa,nsb->nab", histories[:, 1:], histories[:, 1:])
    pays = after @ theta + best * (best @ theta)[:, None]
    return np.asarray((best * pays).sum(axis=1) / np.linalg.norm(pays, axis=1))


def example_1() -> float:
    """Largest difference from <a, theta> over random plays, m = 0 and gamma = 0."""
    actions = lbm.Ball(3).sample(500, seed=0)
    theta = np.array([0.6, -0.64, 0.48])
    systems = ((0, -3.0), (0, 2.0), (1, 0.0), (4, 0.0))
    found = [lbm.LBM(theta, m=m, gamma=gamma).expected_rewards(actions) for m, gamma in systems]
    return float(np.abs(np.array(found) - actions @ theta).max())


def recovers_oful(T: int = 500) -> float:
    """Largest distance between the actions of OM, O3M, OM-Block with m = 0 and L = 1 and those of OFUL.

    Arms, rewards and noise are the same for all; OFUL is written out here.
    """
    theta, arms = np.array([0.54, 0.83, 0.1]), lbm.Ball(3).sample(8, seed=0)
    noise = 0.1 * np.random.default_rng(1).standard_normal(T)
    learners = [kind(m=0, gamma=0.0, horizon=T) for kind in (lbm.OM, lbm.O3M, lbm.OMBlock)]
    policies = [agent.start(lbm.Finite(arms)) for agent in learners]
    V, U, worst = np.eye(3), np.zeros(3), 0.0
    for t in range(T):
        root = 2.0 * np.log(T) + 3.0 * np.log1p(t / 3.0)  # lam = 1, delta = 1/T
        widths = np.sqrt(np.einsum("ki,ij,kj->k", arms, np.linalg.inv(V), arms))
        own = arms[np.argmax(arms @ np.linalg.solve(V, U) + (np.sqrt(root) + 1.0) * widths)]
        for live in policies:
            worst = max(worst, float(np.abs(live.act() - own).max()))
            live.update(float(own @ theta + noise[t]))
        V, U = V + np.outer(own, own), U + (own @ theta + noise[t]) * own
    return worst


def greedy_on_the_ball(instances: int = 40, T: int = 60) -> float:
    """Oracle greedy's smallest part of sum_t (1 + min(t-1, m))^gamma ||theta||, which nothing exceeds."""
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(instances):
        d, m, gamma = int(rng.integers(1, 7)), int(rng.integers(0, 6)), float(rng.uniform(0.0, 3.0))
        env = lbm.LBM(
            rng.uniform(0.2, 1.0) * lbm.LBM.random(d=d, m=m, gamma=gamma, seed=rng).theta, m=m, gamma=gamma
        )
        most = np.linalg.norm(env.theta) * ((1.0 + np.minimum(np.arange(T), m)) ** gamma).sum()
        parts.append(lbm.run(env, lbm.OracleGreedy(), T=T).reward[-1] / most)
    return float(min(parts))


def remark_2(cases: int = 300) -> float:
    """What one pre-sequence is ahead of another, for theta and for -theta: largest sum of the two."""
    rng = np.random.default_rng(0)
    sums = []
    for _ in range(cases):
        m, gamma = int(rng.integers(1, 4)), float(rng.uniform(-4.0, 2.0))
        env = lbm.LBM.random(d=3, m=m, gamma=gamma, seed=rng)
        first, other, rest = (lbm.Ball(3).sample(n, seed=rng) for n in (m, m, 5))
        ahead = []
        for sign in (1.0, -1.0):
            model = lbm.LBM(sign * env.theta, m=m, gamma=gamma)
            values = [model.expected_rewards(rest, history=before).sum() for before in (first, other)]
            ahead.append(values[0] - values[1])
        sums.append(abs(ahead[0] + ahead[1]))
    return float(max(sums))


def zeros_first(L: int = 6) -> float:
    """Best block with m zeros first / best block, rising: OPT of L steps begins with an empty memory."""
    env = lbm.LBM([0.54, 0.83, 0.1], m=2, gamma=1.0)
    return lbm.opt_bounds(env, T=L).lower / lbm.best_block(env, L=L).value


def midpoints(d: int, pairs: int = 600) -> float:
    """Largest excess over both a chord from above and one from below: positive if neither convex nor concave.

    d = 1 is Section 4's example (m = L = 1, gamma = -1, no bonus), d = 3 the UCB of O3M in Figure 1, left.
    """
    rng = np.random.default_rng(0)
    data = rng.standard_normal((5, d))
    V_inv = np.linalg.inv(np.eye(d) + data.T @ data)
    belief: dict[str, Any] = {"m": 1, "gamma": -1.0, "theta": [1.0], "V_inv": [[1.0]], "beta": 0.0}
    if d > 1:
        belief = {
            "m": 2,
            "gamma": -3.0,
            "theta": lbm.Ball(d).sample(1, seed=1)[0],
            "V_inv": V_inv,
            "beta": 2.0,
        }
    n = 2 if d == 1 else 22
    excess = []
    for _ in range(pairs):
        one, other = lbm.Ball(d).sample(n, seed=rng), lbm.Ball(d).sample(n, seed=rng)
        values = [lbm.block_ucb(block, **belief)[0] for block in (one, other, (one + other) / 2)]
        excess.append(values[2] - (values[0] + values[1]) / 2)
    return float(min(max(excess), -min(excess)))


def lemma_1(signed: bool, cases: int = 1000) -> Array:
    """Left-hand side less right-hand side of Lemma 1 with F the normalised regret itself; random blocks.

    A block played with all actions turned around has minus its reward: without `signed` all are made >= 0.
    """
    rng = np.random.default_rng(0)
    env = lbm.LBM([0.54, 0.83, 0.1], m=2, gamma=-1.0)
    excess = []
    for _ in range(cases):
        sizes = rng.integers(3, 30, size=6)  # the comparator first, then the blocks that were played
        found = [env.expected_rewards(lbm.Ball(3).sample(int(n), seed=rng))[2:].sum() for n in sizes]
        rewards = np.array(found) if signed else np.abs(found)
        best = int(np.argmax(rewards / sizes))
        rewards[[0, best]], sizes[[0, best]] = rewards[[best, 0]], sizes[[best, 0]]
        F = (len(sizes) - 1) * rewards[0] / sizes[0] - (rewards[1:] / sizes[1:]).sum()
        shortest, longest, total = sizes[1:].min(), sizes[1:].max(), sizes[1:].sum()
        left = shortest / longest * rewards[0] * total / sizes[0] - rewards[1:].sum()
        excess.append(left - shortest * F)
    return np.array(excess)


# ------------------------------------------------------------------------------------------ Proposition 2


def reward_range(env: lbm.LBM, arms: Array) -> float:
    """R, the largest |reward| over all windows of m+1 arms."""
    size = int(env.m) + 1
    windows = np.array(list(itertools.product(range(len(arms)), repeat=size)))  # played one after the other
    return float(np.abs(env.expected_rewards(arms[windows.ravel()])[size - 1 :: size]).max())


def loss(env: lbm.LBM, arms: Array, L: int, T: int) -> tuple[float, float]:
    """What the best block loses in cycles / 2mRT/(m+L), and (OPT/T - r~(a~)/L)/R; exact."""
    m, plan, R = int(env.m), lbm.best_block(env, L=L), reward_range(env, arms)
    best = lbm.opt_bounds(env, T=T).lower
    collected = env.expected_rewards(plan.actions[np.arange(T) % (m + L)]).sum()
    return (best - collected) / (2 * m * R * T / (m + L)), (best / T - plan.value / L) / R


def on_finite_sets(seed: int) -> tuple[float, float]:
    """`loss` for random arms and 0, signs as they come, T a multiple of L and of m+L."""
    rng = np.random.default_rng(seed)
    d, m, K, L = (int(rng.integers(1, n)) for n in (4, 4, 4, 7))
    arms = np.vstack([np.zeros(d), lbm.Ball(d).sample(K, seed=rng)])
    arms[1:] /= np.maximum(np.linalg.norm(arms[1:], axis=1, keepdims=True), 0.5)
    gamma = float(rng.uniform(-4.0, 2.0))
    theta = lbm.LBM.random(d=d, m=m, gamma=gamma, seed=rng).theta
    env = lbm.LBM(theta, m=m, gamma=gamma, actions=lbm.Finite(arms))
    return loss(env, arms, L, T=2 * L * (m + L))


def without_memory() -> float:
    """Largest |loss| in a step for m = 0 and L = 1, ..., 7: on the ball and on random arms."""
    losses = []
    for seed, L in itertools.product(range(5), range(1, 8)):
        arms = lbm.Finite(lbm.Ball(3).sample(5, seed=seed))
        for actions in (None, arms):
            env = lbm.LBM.random(d=3, m=0, gamma=-3.0, actions=actions, seed=seed)
            block = lbm.best_block(env, L=L).actions
            best = lbm.opt_bounds(env, T=7 * L).lower / (7 * L)
            losses.append(abs(best - env.expected_rewards(block).mean()))
    return float(max(losses))


def step_of_three() -> float:
    """(OPT/T - r~(a~)/L)/R for arms 0 and 1, m = 1, gamma = -3, L = 2 and T = 3 = m+L.

    OPT plays, rests, plays: 2 in 3 steps. No 2 steps in a row earn more than 1 + 1/8.
    """
    arms = np.array([[0.0], [1.0]])
    env = lbm.LBM([1.0], m=1, gamma=-3.0, actions=lbm.Finite(arms))
    return loss(env, arms, L=2, T=3)[1]


def without_zero(rounds: int) -> float:
    """What is lost / 2mRT/(m+L) over some blocks with two arms, 0.75 and -1, of which none is 0.

    The memory is empty at first, as if 0 had been played, so that the first steps can pay more than R, the
    largest reward after m arms, and more than any block that begins with m arms.
    """
    arms = np.array([[0.75], [-1.0]])
    env = lbm.LBM([-1.0], m=2, gamma=-3.7, actions=lbm.Finite(arms))
    return loss(env, arms, L=1, T=3 * rounds)[0]
