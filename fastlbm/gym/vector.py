"""Many copies of the model for Gymnasium: owns their episodes; one call of a kernel steps all of them."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from .._base import validation
from .._base.types import Array
from ..kernels.stepping import play_steps
from .spaces import Problem

Flags = NDArray[np.bool_]


class LBMVectorEnv(gymnasium.vector.VectorEnv[Array, Any, NDArray[Any]]):
    """`gymnasium.make_vec("fastlbm/LBM-v0", num_envs=..., theta=..., ..., horizon=...)`: compiled copies.

    Each is what an `LBMEnv` is, with a history of its own; all of them draw their noise from one stream. An
    episode that was truncated begins anew with the next step (`AutoresetMode.NEXT_STEP`): the action of that
    step is not played, its reward is 0. `reset(options={"reset_mask": mask})` begins some of them anew.

    >>> import gymnasium
    >>> import fastlbm
    >>> parameters = {"theta": [1.0, 0.0], "m": 1, "gamma": -1.0, "sigma": 0.0, "horizon": 2}
    >>> envs = gymnasium.make_vec("fastlbm/LBM-v0", num_envs=3, **parameters)
    >>> observed, info = envs.reset(seed=0)
    >>> for _ in range(3):
    ...     observed, rewards, terminated, truncated, info = envs.step([[1.0, 0.0]] * 3)
    ...     print(rewards, truncated)
    [1. 1. 1.] [False False False]
    [0.5 0.5 0.5] [ True  True  True]
    [0. 0. 0.] [False False False]
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, *, num_envs: int, horizon: int, render_mode: None = None, **parameters: Any) -> None:
        self.num_envs = n = validation.integer("num_envs", num_envs, low=1)
        self._problem = problem = Problem(horizon, **parameters)
        self.render_mode = render_mode
        self.single_observation_space = problem.observation_space()
        self.single_action_space = problem.action_space()
        self.observation_space = batch_space(self.single_observation_space, n)
        self.action_space = batch_space(self.single_action_space, n)
        self._recent, self._X = problem.begin(n)
        self._t, self._over = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """All begin anew, or those of a mask; the noise is that of `seed`, or goes on."""
        super().reset(seed=seed)
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, dtype=np.bool_))
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise ValueError(f"reset_mask must be an array ({self.num_envs},) of booleans, got {mask!r}")
        self._begin(mask)
        return self._problem.observe(self._recent, self._X, self._t), {}

    def _begin(self, mask: Flags) -> None:
        if self._problem.endless:
            self._X[mask] = 0.0
        self._recent[mask], self._t[mask], self._over[mask] = 0.0, 0, False  # the mask may be `_over` itself

    def step(self, actions: Any) -> tuple[Array, Array, Flags, Flags, dict[str, Any]]:
        """Of each copy: observation, noisy reward, terminated, truncated; the expected rewards as info."""
        n, problem, playing = self.num_envs, self._problem, ~self._over
        rows = problem.played(actions, n)
        self._begin(self._over)
        rewards, expected = np.empty(n), np.empty(n)
        X = self._X if problem.endless else np.empty((0, 0, 0))
        play_steps(problem.params, self._recent, X, rows, playing, self.np_random, rewards, expected)
        self._t += playing
        self._over = self._t >= problem.horizon
        info = {"expected": expected, "_expected": playing} if playing.any() else {}
        observed = problem.observe(self._recent, self._X, self._t)
        return observed, rewards, np.zeros(n, dtype=np.bool_), self._over.copy(), info
