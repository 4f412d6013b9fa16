"""Arms that are offered one step at a time: owns what is kept of them, and the choice among them.

Later sets are not known. They are taken to be like those before: sets of the present size, at most SIZE,
drawn from POOL arms that were offered lately. An arm is worth its optimistic reward and what would follow it,
on average over FUTURES such futures, for as long as it is remembered (`kernels.offers`).
`python -m bench live` prints what that earns beside knowing all sets, and beside OFUL.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.types import Array
from ..kernels.estimator import Estimator
from ..kernels.fading import tail_of
from ..kernels.offers import best_offer
from ..kernels.rewards import ModelParams
from .policy import Rng

#: Arms that are kept of those that were offered, and how many of each set.
POOL, TAKEN = 64, 8
#: Sets to come: how many futures are drawn, and arms of a set at most.
FUTURES, SIZE = 8, 32


class Offers:
    """The arms of the present step, and some that were offered before."""

    def __init__(self, d: int) -> None:
        self.arms = np.zeros((1, d))
        self.pool = np.zeros((POOL, d))
        self.count = np.zeros(1, dtype=np.int64)  # arms that came to the pool

    def take(self, arms: Array) -> None:
        """These can be played now; a few of them, other ones each time, stay in the pool."""
        self.arms, K, count = arms, len(arms), int(self.count[0])
        taken = min(K, TAKEN)
        rows = (count + np.arange(taken) * K // taken) % K
        self.pool[(count + np.arange(taken)) % POOL] = arms[rows]
        self.count[0] += taken

    def choose(self, model: ModelParams, recent: Array, e: Estimator, beta: float, rng: Rng) -> int:
        """The number of the arm to play after the actions `recent` (m, d); `model` has the estimate."""
        known = min(int(self.count[0]), POOL)
        later = len(recent) if model.decay == 1.0 else min(len(recent), tail_of(model.decay))
        draws = rng.integers(known, size=(FUTURES, later, min(len(self.arms), SIZE)))
        return int(best_offer(model, recent, e.V_inv, beta, self.arms, self.pool, draws))

    def state(self) -> dict[str, Array]:
        """Everything that lasts, by name."""
        own: dict[str, Any] = {"offers.pool": self.pool, "offers.count": self.count}
        return own

    def check(self) -> None:
        """Raise a `ValueError` unless arms can be chosen with this."""
        inside = float(np.square(self.pool).sum(axis=1).max()) <= 1.0 + 1e-6
        if self.count[0] < 0 or not inside:
            raise ValueError("arms that were offered must lie in the unit ball and be counted from 0 on")


def arms_among(arms: Array, actions: Array) -> Any:
    """The number of each action (n, d) among the arms (K, d), -1 for one that is none of them."""
    same = (actions[:, None] == arms).all(axis=2)
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)
