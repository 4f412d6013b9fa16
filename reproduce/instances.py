"""Random problems to compare learners on: own how they are drawn, and the best cycle known of each."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import fastlbm as lbm
from fastlbm.planning.plans import Cycle

#: Standard deviations of the noise.
NOISES = (0.05, 0.1, 0.15, 0.2, 0.3)
#: One in so many has an A0 that is not the identity.
GENERAL = 6


def instances(count: int, seed: int = 0) -> list[lbm.LBM]:
    """Problems on the ball: d 2..8, m 0..5, gamma -4..1.5, theta on the sphere; more keep those there are."""
    return [_instance(np.random.default_rng([seed, k]), k % GENERAL == GENERAL - 1) for k in range(count)]


def _instance(rng: np.random.Generator, general: bool) -> lbm.LBM:
    d, m = int(rng.integers(2, 9)), int(rng.integers(0, 6))
    gamma, sigma = round(float(rng.uniform(-4.0, 1.5)), 3), float(rng.choice(NOISES))
    theta = rng.normal(size=d)
    root = rng.normal(size=(d, d)) if general else np.zeros((d, d))
    A0 = np.eye(d) + 0.3 * root @ root.T / d
    return lbm.LBM(theta / np.linalg.norm(theta), m=m, gamma=gamma, sigma=sigma, A0=A0)


def best_cycles(envs: Sequence[lbm.LBM]) -> list[Cycle]:
    """The best cycle known of each: that of `lbm.best_cycle` over all periods up to 6(m+1)."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lbm.best_cycle, envs))
