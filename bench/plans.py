"""`python -m bench plans`: how good plans are, what they cost, and how the bounds on OPT close with L."""

from __future__ import annotations

import numpy as np

import fastlbm as lbm

from .problems import eigh_seconds, problem
from .timing import fastest

#: theta of the paper's Figure 1 left, up to its norm, as the published code drew it.
THETA = np.array([0.4963, 0.7682, 0.0885]) / np.linalg.norm([0.4963, 0.7682, 0.0885])


def instances(count: int, longest: int = 24) -> list[dict[str, object]]:
    """Random planning problems: d 2 to 6, m 1 to 4, L 4 to `longest`, O3M and OM, A0 = I or singular."""
    rng = np.random.default_rng(2023)
    found: list[dict[str, object]] = []
    for i in range(count):
        d = int(rng.integers(2, 7))
        gamma = float(rng.choice([-4.0, -3.0, -2.0, -1.0, 1.0, 2.0]))
        theta = rng.standard_normal(d)
        data = rng.standard_normal((int(rng.integers(d, 6 * d)), d))
        problem = {
            "d": d,
            "m": int(rng.integers(1, 5)),
            "L": int(rng.integers(4, longest + 1)),
            "gamma": gamma,
            "theta": theta / np.linalg.norm(theta),
            "V_inv": np.linalg.inv(np.eye(d) + data.T @ data),
            "beta": float(rng.choice([0.0, 0.3, 1.0])),
            "optimism": ["O3M", "OM"][i % 2],
        }
        if gamma >= 1.0 and rng.random() < 0.5:
            problem["A0"] = np.diag([1.0] + [0.0] * (d - 1))
        found.append(problem)
    return found


def quality(count: int, longest: int, seeds: int = 3) -> None:
    """Share of the problems on which a default plan reaches the best value known."""
    ratios, evaluations = [], []
    for p in instances(count, longest):
        plans = [lbm.plan_block(**p, seed=s) for s in range(seeds)]  # type: ignore[arg-type]
        known = [lbm.plan_block(**p, seed=100 + s, starts=200, moves=1000) for s in range(2)]  # type: ignore[arg-type]
        best = max(plan.value for plan in plans + known)
        ratios += [plan.value / best for plan in plans]
        evaluations += [plan.evaluations for plan in plans]
    r = np.array(ratios)
    print(
        f"{count} problems, L <= {longest}, {seeds} seeds: 99.9% of best known on {np.mean(r >= 0.999):.1%}, "
        f"99.5% on {np.mean(r >= 0.995):.1%}, worst {r.min():.4f}; {np.median(evaluations):.0f} evaluations"
    )


def costs() -> None:
    """A cold plan and a re-plan after one more block of data, in units of one 3x3 eigh."""
    yardstick = eigh_seconds(problem(3, 2, 20, -3.0))
    rng = np.random.default_rng(0)
    shape = {"d": 3, "m": 2, "gamma": -3.0, "L": 20}
    cold = lbm.plan_block(**shape, theta=THETA, seed=0)
    seconds = fastest(lambda: lbm.plan_block(**shape, theta=THETA, seed=0), rounds=10)
    print(f"cold plan: {seconds * 1e3:.2f} ms = {seconds / yardstick:.0f} eigh, {cold.value / 20:.5f} a step")
    data = rng.standard_normal((200, 3)) * 0.5
    V = np.eye(3) + data.T @ data
    before = {"theta": THETA + 0.05 * rng.standard_normal(3), "V_inv": np.linalg.inv(V), "beta": 1.0}
    block = rng.standard_normal((20, 3)) * 0.5
    V = V + block.T @ block
    after = {"theta": before["theta"] + 0.01 * rng.standard_normal(3), "V_inv": np.linalg.inv(V), "beta": 1.0}
    previous = lbm.plan_block(**shape, **before).actions
    fresh = lbm.plan_block(**shape, **after)
    again = lbm.plan_block(**shape, **after, previous=previous)
    warm = fastest(lambda: lbm.plan_block(**shape, **after, previous=previous), rounds=10)
    print(
        f"re-plan:   {warm * 1e3:.2f} ms = 1/{seconds / warm:.0f} of a cold plan, "
        f"{again.value / fresh.value:.2%} of its value"
    )
    arms = lbm.Ball(3).sample(10, seed=1)
    finite = {"d": 3, "m": 2, "gamma": -3.0, "L": 100, "theta": THETA, "actions": lbm.Finite(arms)}
    print(
        f"finite:    {fastest(lambda: lbm.plan_block(**finite), rounds=10) * 1e3:.2f} ms for K=10, m=2, L=100"
    )


def bounds() -> None:
    """Lower and upper bound on OPT/T for rotting on the ball."""
    env = lbm.LBM(THETA, m=2, gamma=-3.0)
    averages = (f"{period}: {lbm.best_cycle(env, period).average:.5f}" for period in (3, 7, 10, 13))
    print("best cycles by period, d=3, m=2, gamma=-3:", "  ".join(averages))
    print("OPT/T for d=3, m=2, gamma=-3, T=100,000")
    for L in (10, 20, 40, 60, 100, 200):
        b = lbm.opt_bounds(env, T=100_000, L=L)
        print(f"  L={L:3d}: {b.lower / b.T:.5f} to {b.upper / b.T:.5f}, gap {b.gap:.2%}")


def main() -> None:
    costs()
    bounds()
    quality(36, 24)
    quality(24, 60)
