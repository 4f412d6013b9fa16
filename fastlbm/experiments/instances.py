"""Random instances: own the model that a seed of a study meets, a fresh theta and, if asked, fresh arms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._base.types import Array
from ..model.actions import Finite
from ..model.lbm import LBM

#: The stream of a seed's instance; 0 is its noise, 1 are the agent's draws (running/seeds.py).
STREAM = 2


class Instances(NamedTuple):
    """Models that differ in theta, uniform on the sphere, and, if `arms` is a number, in so many arms there.

    All else is that of `like`. An instance depends on the study's seed and the seed's number alone: all
    agents meet the same one.

    >>> models = Instances(LBM([1.0, 0.0], m=1, gamma=-2.0), arms=None, root=0)
    >>> models.draw(3) == models.draw(3), models.draw(3) == models.draw(4), models.draw(3).m
    (True, False, 1)
    """

    like: LBM
    arms: int | None
    root: int

    def draw(self, number: int) -> LBM:
        """The model of the seed with this number."""
        seed = np.random.SeedSequence(self.root, spawn_key=(number, STREAM))
        rng, like = np.random.default_rng(seed), self.like
        theta = _on_sphere(rng.standard_normal((1, like.d)))[0]
        actions = like.actions
        if self.arms is not None:
            actions = Finite(_on_sphere(rng.standard_normal((self.arms, like.d))))
        return LBM(**{**like._arguments(), "theta": theta, "actions": actions})


def _on_sphere(rows: Array) -> Array:
    norms: Array = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / norms
