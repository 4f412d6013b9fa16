"""Environments of Gymnasium for agents of the package: owns what becomes of their actions and episodes."""

from __future__ import annotations

import math
import numbers
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike

from .._base import validation
from .._base.types import Array
from ..model.actions import ActionSet, Ball, Finite
from ..running.own import OwnEnvironment


class GymEnvironment(OwnEnvironment):
    """An environment of Gymnasium as one of your own: for `run`, `run_many` and studies.

    `env` is such an environment, or the id of one, which is then made with the `parameters`; of an id, every
    run and every worker makes its own, of an environment it takes a copy. In a study file:
    `type = "fastlbm:GymEnvironment"`, `env = "fastlbm/LBM-v0"` and the parameters.

    It is played as a bandit: what it observes is ignored. A `Discrete` space becomes a set of arms, the unit
    vectors or those given as `arms` (n, d), which say what the actions have in common. A `Box` of floats
    becomes the ball, stretched to touch its sides: a corner cannot be played. An episode that ends begins
    anew before the next step. The expected reward is `info["expected"]`, where there is one.

    Use it to try the agents of the package on environments of Gymnasium.

    >>> import fastlbm as lbm
    >>> parameters = {"theta": [0.6, 0.8], "m": 1, "gamma": -2.0, "sigma": 0.0, "horizon": 100}
    >>> env = lbm.GymEnvironment("fastlbm/LBM-v0", **parameters)
    >>> env.actions
    Ball(d=2)
    >>> lbm.run(env, lbm.Cyclic([[0.6, 0.8]]), T=3).reward
    array([1.  , 1.25, 1.5 ])
    >>> env.reset(0)
    >>> env.step(np.array([1.0, 0.0]))  # the reward, and what was to be expected
    (0.6, 0.6)
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any] | str, arms: ArrayLike | None = None, **parameters: Any
    ) -> None:
        if not isinstance(env, str | gymnasium.Env):
            raise TypeError(f"env must be an environment of Gymnasium or the id of one, got {env!r}")
        if parameters and not isinstance(env, str):
            raise TypeError(f"env must be an id to be made with parameters, got {env!r} and {parameters!r}")
        self._env, self._parameters, self._over = env, parameters, True
        self._made: gymnasium.Env[Any, Any] | None = None
        self.actions = _actions(self._playing().action_space, arms)

    def _playing(self) -> gymnasium.Env[Any, Any]:
        """The environment itself, made if it is not yet."""
        if self._made is None:
            env = self._env
            self._made = gymnasium.make(env, **self._parameters) if isinstance(env, str) else env
        return self._made

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_made": None}

    def reset(self, seed: Any) -> None:
        """Begin anew, with an integer of the seed."""
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self._playing().reset(seed=int(sequence.generate_state(1)[0]))
        self._over = False

    def step(self, action: Array) -> tuple[float, float | None]:
        """The reward, and what was to be expected if the environment tells."""
        env = self._playing()
        if self._over:
            env.reset()
        _, reward, terminated, truncated, info = env.step(self._translated(action))
        self._over = terminated or truncated
        expected = info.get("expected")
        return float(reward), float(expected) if isinstance(expected, numbers.Real) else None

    def _translated(self, action: Array) -> Any:
        """The action as the environment takes it."""
        space = self._playing().action_space
        if isinstance(space, spaces.Discrete) and isinstance(self.actions, Finite):
            return space.start + self.actions.match(action[None])[0]
        assert isinstance(space, spaces.Box)
        centre, half = 0.5 * (space.low + space.high), 0.5 * (space.high - space.low)
        return (centre + half * action.reshape(space.shape)).astype(space.dtype)


def _actions(space: Any, arms: ArrayLike | None) -> ActionSet:
    """The set of actions that stands for the space."""
    if isinstance(space, spaces.Discrete):
        return Finite(
            np.eye(int(space.n)) if arms is None else validation.array("arms", arms, (int(space.n), None))
        )
    if arms is not None:
        raise ValueError(f"arms must be left out: the actions of the environment are {space}, not a Discrete")
    if not isinstance(space, spaces.Box) or not np.issubdtype(space.dtype, np.floating):
        raise TypeError(f"env must have a Discrete space of actions or a Box of floats, got {space}")
    if not space.is_bounded():
        raise ValueError(f"env must have a Box of actions with finite bounds, got {space}")
    return Ball(math.prod(space.shape))
