"""`switch` on the ball over many settings: no seed is left behind."""

from __future__ import annotations

import numpy as np
import pytest

import fastlbm as lbm

SEEDS = 12


def setting(number: int) -> tuple[lbm.LBM, int, int | None]:
    """A random model, horizon and block length (None: from the theory)."""
    rng = np.random.default_rng([11, number])
    d, m = int(rng.integers(1, 6)), int(rng.integers(0, 7))
    gamma = float(rng.choice([-3.0, -2.5, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0]))
    L = [None, 1, 2, 3, 5, 8, 13, 20][int(rng.integers(8))]
    T = int(rng.choice([300, 1_000, 3_000, 10_000, 30_000]))
    return lbm.LBM.random(d=d, m=m, gamma=gamma, seed=number), T, L


@pytest.mark.parametrize(
    "number", [pytest.param(k, marks=pytest.mark.slow) if k > 5 else k for k in range(60)]
)
def test_every_seed_earns_what_plans_anew_or_a_cycle_would(number: int) -> None:
    """At least 80% of the mean without `switch`, or of the best cycle of the period, whichever is lower."""
    env, T, L = setting(number)

    def rewards(switch: float, seeds: int) -> list[float]:
        agent = lbm.O3M(int(env.m), env.gamma, T, L=L, switch=switch)
        return [lbm.run(env, agent, T, seed=seed, record=1).reward[-1] for seed in range(seeds)]

    anew = float(np.mean(rewards(0.0, SEEDS if T <= 3_000 else 3)))
    period = lbm.O3M(int(env.m), env.gamma, T, L=L).block_length(env.d) + (
        0 if env.is_stationary else int(env.m)
    )
    cycle = T * lbm.best_cycle(env, period=period).average
    assert min(rewards(1.0, SEEDS)) >= 0.8 * min(anew, cycle)
