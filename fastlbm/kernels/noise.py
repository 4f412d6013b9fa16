"""Noise: owns its kinds, each of standard deviation sigma and sigma-sub-Gaussian.

To add one, name it in NOISES, give it the next number, and a line in `draw` and in `draw_many`.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import inline
from ._types import Vector

#: The kinds, by their numbers.
NOISES = ("gaussian", "uniform", "rademacher")
GAUSSIAN, UNIFORM, RADEMACHER = 0, 1, 2


@inline
def draw(kind: int, sigma: float, rng: np.random.Generator) -> float:
    """One number, for a step of an episode."""
    if kind == GAUSSIAN:
        return sigma * rng.standard_normal()
    if kind == UNIFORM:
        # Uniform on [-c, c] is c/sqrt(3)-sub-Gaussian: E exp(s eta) = sum (cs)^2k / (2k+1)! is at most
        # sum (cs)^2k / (6^k k!) = exp(s^2 (c^2/3) / 2), for (2k+1)! >= 6^k k!.
        return sigma * math.sqrt(3.0) * (2.0 * rng.random() - 1.0)
    if kind == RADEMACHER:
        return sigma if rng.random() < 0.5 else -sigma
    return math.nan  # a kind without a line here


def draw_many(kind: int, sigma: float, n: int, rng: np.random.Generator) -> Vector:
    """n numbers at once."""
    if kind == GAUSSIAN:
        return sigma * rng.standard_normal(n)
    if kind == UNIFORM:
        return sigma * math.sqrt(3.0) * rng.uniform(-1.0, 1.0, n)
    if kind == RADEMACHER:
        return sigma * rng.choice([-1.0, 1.0], size=n)
    raise NotImplementedError(f"draw_many has no line for the noise {NOISES[kind]!r}")
