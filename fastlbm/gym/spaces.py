"""Spaces: own what Gymnasium's environments of the model observe and take, for one of them and for many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from .._base import validation
from .._base.types import Array, Integers
from .._base.validation import BALL_TOLERANCE
from ..model.actions import Ball, Finite
from ..model.lbm import LBM


class Problem:
    """A model and its horizon, checked; their spaces."""

    def __init__(self, horizon: int, **parameters: Any) -> None:
        self.model = LBM(**parameters)
        self.horizon = validation.integer("horizon", horizon, low=1)
        # An infinite memory that fades is one matrix, and bounded; one that does not has no end.
        self.m, self.d = validation.memory("m", self.model.m, allow_inf=self.model.decay < 1.0), self.model.d
        actions = self.model.actions
        if not isinstance(actions, Ball | Finite):
            raise TypeError(
                f"actions must be a Ball or a Finite here, the same at every step, got {actions!r}"
            )
        self.arms = actions.arms if isinstance(actions, Finite) else None
        self.params = self.model._params()
        self.endless = self.m == math.inf
        self._upper = np.triu_indices(self.d)

    def observation_space(self) -> spaces.Space[Any]:
        """The last m actions, the oldest first, zeros before the first one; and the share of the horizon.

        For an infinite m the upper triangle of what `observe` says.
        """
        numbers = len(self._upper[0]) if self.endless else int(self.m) * self.d
        high = np.full(numbers + 1, (1.0 + BALL_TOLERANCE) ** 2 if self.endless else 1.0 + BALL_TOLERANCE)
        low = -high
        low[-1], high[-1] = 0.0, 1.0
        return spaces.Box(low, high, dtype=np.float64)

    def action_space(self) -> spaces.Space[Any]:
        """The numbers of the arms, or the cube around the ball."""
        if self.arms is None:
            return spaces.Box(-1.0, 1.0, (self.d,), dtype=np.float64)
        return spaces.Discrete(len(self.arms))

    def begin(self, n: int) -> tuple[Array, Array]:
        """The histories of n copies in which nothing was played: the last actions (n, m, d), and X (n, d, d).

        X is 0 where the memory has no end, and what kernels take for it elsewhere.
        """
        if self.endless:
            return np.zeros((n, 0, self.d)), np.zeros((n, self.d, self.d))
        return np.zeros((n, int(self.m), self.d)), np.broadcast_to(self.params.A0, (n, self.d, self.d))

    def observe(self, recent: Array, X: Array, t: Integers) -> Array:
        """What is observed (n, m*d + 1) of n copies with the actions `recent` (n, m, d) at steps t (n,).

        For an infinite m that is (1 - decay) Y, (n, d(d+1)/2 + 1), with Y the sum of decay^(s-1) a a^T in X.
        """
        state = recent.reshape(len(t), -1)
        if self.endless:
            state = (1.0 - self.model.decay) * X[:, self._upper[0], self._upper[1]]
        return np.concatenate((state, (t / self.horizon)[:, None]), axis=1)

    def played(self, action: Any, n: int) -> Array:
        """The actions (n, d) that are played: arms by their numbers, vectors moved into the ball."""
        if self.arms is None:
            rows = validation.array("action", action, (n, self.d)).copy()
            inside = np.einsum("ij,ij->i", rows, rows) <= (1.0 + BALL_TOLERANCE) ** 2
            return rows if inside.all() else np.where(inside[:, None], rows, self.model.actions.project(rows))
        numbers = np.asarray(action)
        whole = numbers.dtype.kind in "iu" and numbers.shape == (n,)
        if not whole or (numbers < 0).any() or (numbers >= len(self.arms)).any():
            raise ValueError(
                f"action must be the number of an arm, from 0 to {len(self.arms) - 1}, got {action!r}"
            )
        chosen: Array = self.arms[numbers]
        return chosen
