"""The model as an environment of Gymnasium: owns its episodes, one at a time."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from .._base.types import Array
from ..kernels.rewards import History
from ..kernels.stepping import play_step
from .spaces import Problem


class LBMEnv(gymnasium.Env[Array, Any]):
    """`gymnasium.make("fastlbm/LBM-v0", theta=..., m=..., gamma=..., horizon=...)`; parameters as of `LBM`.

    Observed is a Markov state (m*d + 1,): the last m actions, the oldest first, with zeros where nothing was
    played yet, and t/horizon in the end. The rewards to come and the end of the episode depend on nothing
    else. An episode is truncated after `horizon` steps and never terminated. Where m is infinite and the
    memory fades, `decay` < 1, the state is (1 - decay) times the sum of decay^(s-1) a a^T over all actions,
    its upper triangle row by row, d(d+1)/2 numbers of size at most 1, and t/horizon.

    The actions of a `Finite` set are its numbers, a `Discrete` space; those of the ball are a `Box`, the cube
    [-1, 1]^d: a vector outside of the ball is projected, which is to say scaled to norm 1, and the action
    that is observed later is the scaled one. NaN is refused.

    The reward is the noisy one; `info["expected"]` is what was to be expected.

    >>> import gymnasium
    >>> import fastlbm
    >>> env = gymnasium.make("fastlbm/LBM-v0", theta=[1.0, 0.0], m=1, gamma=-1.0, sigma=0.0, horizon=4)
    >>> env.reset(seed=0)
    (array([0., 0., 0.]), {})
    >>> env.step([1.0, 0.0])
    (array([1.  , 0.  , 0.25]), 1.0, False, False, {'expected': 1.0})
    >>> env.step([1.0, 0.0])
    (array([1. , 0. , 0.5]), 0.5, False, False, {'expected': 0.5})
    """

    metadata = {"render_modes": []}  # noqa: RUF012  (as of Gymnasium's own)

    def __init__(self, *, horizon: int, render_mode: None = None, **parameters: Any) -> None:
        self._problem = problem = Problem(horizon, **parameters)
        self.render_mode = render_mode
        self.observation_space, self.action_space = problem.observation_space(), problem.action_space()
        self._begin()

    def _begin(self) -> None:
        problem = self._problem
        recent, X = problem.begin(1)
        self._t, self._history = 0, History(recent[0], X[0] if problem.endless else problem.params.A0)

    def _observation(self) -> Array:
        recent, X = self._history
        row: Array = self._problem.observe(recent[None], X[None], np.array([self._t]))[0]
        return row

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Nothing was played; the noise is that of `seed`, or goes on."""
        super().reset(seed=seed)
        self._begin()
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Observation, noisy reward, terminated (never), truncated, and the expected reward as info."""
        if self._t == self._problem.horizon:
            gymnasium.logger.warn(
                f"the episode is over after {self._t} steps, and step was called: call reset first"
            )
        row = self._problem.played(np.asarray(action)[None], 1)[0]
        reward, expected = play_step(self._problem.params, self._history, row, self.np_random)
        self._t += 1
        over = self._t >= self._problem.horizon
        return self._observation(), reward, False, over, {"expected": expected}
