"""The few arms of a dynamic program: owns which ones are chosen, from good blocks and from others."""

from __future__ import annotations

import math

import numpy as np

from ._jit import kernel_internal, kernel_nested
from ._types import Integers, Vector
from .arm_catalogue import Catalogue, arms_of
from .arm_worth import Arms

#: Arms that are not of blocks.
OTHERS = 4


@kernel_internal
def add_weights(weights: Vector, arms: Integers, n: int, share: float) -> None:
    """The arms of a block or cycle of n count for a program."""
    for t in range(n):
        weights[arms[t]] = max(weights[arms[t]], 0.0) + share


@kernel_nested
def choose(
    catalogue: Catalogue,
    weights: Vector,
    gains: Vector,
    loose: float,
    few: Integers,
    rng: np.random.Generator,
) -> None:
    """few (k,): some arms near to those with weight, which stand for them, and others that lose little."""
    K, k, count = weights.shape[0], few.shape[0], 0
    for x in range(K):
        count += weights[x] > -math.inf
    held, w, far = np.empty(count, dtype=np.int64), np.empty(count), np.full(count, 4.0)
    count = 0
    for x in range(K):
        if weights[x] > -math.inf:
            held[count], w[count] = x, weights[x] * (0.5 + rng.random())
            count += 1
        weights[x] = gains[x] / loose - math.log(-math.log(max(rng.random(), 1e-300)) + 1e-300)
    arms, stand = arms_of(catalogue, held), min(max(k - OTHERS, min(k, 3)), count)
    for s in range(k):
        top = _next_stand(arms, w, far, held, weights) if s < stand else -1
        few[s] = held[top] if top >= 0 else _largest_left(weights)
        weights[few[s]] = math.inf
        for c in range(count if top >= 0 else 0):
            far[c] = min(far[c], _apart(arms, c, top))


@kernel_internal
def _next_stand(arms: Arms, w: Vector, far: Vector, held: Integers, weights: Vector) -> int:
    """The arm that brings the arms, by their weights w, nearest to one that stands for them."""
    best, top, count = -1.0, 0, held.shape[0]
    for c in range(count):
        gain = 1e-9 * w[c]
        for s in range(count):
            gain += w[s] * max(far[s] - _apart(arms, s, c), 0.0)
        if gain > best and weights[held[c]] < math.inf:
            best, top = gain, c
    return top


@kernel_internal
def _apart(arms: Arms, x: int, y: int) -> float:
    """How far two arms are apart, squared, relative to their size."""
    size = max(arms.squares[x] + arms.squares[y], 1e-300)
    return (size - 2.0 * arms.G[x, y]) / size


@kernel_internal
def _largest_left(weights: Vector) -> int:
    """Where the largest weight is that is not infinite."""
    top = -1
    for x in range(weights.shape[0]):
        if weights[x] < math.inf and (top < 0 or weights[x] > weights[top]):
            top = x
    return top
