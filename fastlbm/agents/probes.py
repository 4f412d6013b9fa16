"""Probes: owns what Auto plays now and then to see whether its model holds beside what it plans.

Auto soon plays a cycle, and a wrong model can be right on a cycle. A probe is a few actions in a row that
nobody planned. There are two kinds, in turn. One rests, repeats the direction of theta and ends with its
opposite: how rewards fall and recover, and that r(-a) = -r(a). The other is drawn: directions on the side of
theta, the same one again or another one, of any length. On arms both are made of arms.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.types import Array
from .policy import Rng

#: The kinds in turn, and how many steps each of them takes.
REPEATED, DRAWN = 0, 1
STEPS = (9, 6)
#: Steps of rest, as many as are remembered at most, before the best direction is repeated.
REST = 2
#: Of those drawn: how often the last direction comes again, how often an action is as long as allowed, and
#: the largest angle with theta.
AGAIN, FULL, ANGLE = 0.3, 0.5, 0.5 * math.pi


def steps_of(probe: int) -> int:
    """How many steps a probe takes, by its number."""
    return STEPS[_kind(probe)]


def in_ball(probe: int, left: int, n: int, theta: Array, before: Array, turn: int, rng: Rng) -> Array:
    """The next n actions (n, d) of a probe of which `left` steps are left, after the action `before` (d,).

    `theta` (d,) is an estimate, `turn` how many actions are remembered.
    """
    along = _unit(theta) if theta.any() else np.eye(len(theta))[0]
    if _kind(probe) == REPEATED:
        return _signs(left, n, turn)[:, None] * along
    found, last = np.zeros((n, len(theta))), _unit(before)
    for t in range(n):
        normal, share, again, full, length = rng.standard_normal(len(theta)), *rng.random(4)
        if again >= AGAIN or not last.any():
            across = _unit(normal - along * (along @ normal))
            last = along * math.cos(ANGLE * share) + across * math.sin(ANGLE * share)
        found[t] = last if full < FULL else length * last
    found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1.0)
    return found


def among_arms(probe: int, left: int, arms: Array, theta: Array, before: Array, rng: Rng) -> int:
    """The number of its next arm, of arms (K, d): as in the ball, without rests."""
    if _kind(probe) == REPEATED:
        return int(np.argmax(_signs(left, 1, 0) * (arms @ theta)))
    again, drawn = rng.random(), int(rng.integers(len(arms)))
    return int(np.argmax(arms @ before)) if again < AGAIN else drawn


def _kind(probe: int) -> int:
    return probe % len(STEPS)


def _signs(left: int, n: int, turn: int) -> Array:
    """What the best direction is multiplied by in the next n steps: 0 for a rest, -1 for the opposite."""
    at = STEPS[REPEATED] - left + np.arange(n)
    signs: Array = np.where(at < min(REST, turn), 0.0, np.where(at == STEPS[REPEATED] - 1, -1.0, 1.0))
    return signs


def _unit(x: Array) -> Array:
    """In its direction, of length 1; 0 stays 0."""
    found: Array = x / max(float(np.linalg.norm(x)), 1e-300)
    return found
