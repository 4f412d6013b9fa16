"""Agents and environments of your own: owns what they must have, and the words about mistakes in them.

Any object with these methods will do. `OwnAgent` and `OwnEnvironment` are there to derive from, and to read.
"""

from __future__ import annotations

import copy
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.types import Array
from ..agents.base import Agent
from ..model.actions import ActionSet
from ..model.lbm import LBM

T = TypeVar("T")

#: So far from a member of its set an action may be, which is then played: the rounding of single precision.
SINGLE = 2e-7

#: Parts of the paths of code that is not the user's: installed packages, and this one.
_NOT_YOURS = ("site-packages", str(Path(__file__).parents[1]))


class AgentAtWork(Protocol):
    """What `start` of an agent returns."""

    def act(self) -> ArrayLike:
        """The action (d,) of the next step."""

    def update(self, y: float, /) -> object:
        """The observed reward of that action."""


class AgentLike(Protocol):
    """What an agent must have; agents of the package have it too."""

    def start(self, actions: Any, seed: Any, /) -> AgentAtWork:
        """The agent at work on a set of actions."""


class EnvironmentLike(Protocol):
    """What an environment must have."""

    @property
    def actions(self) -> ActionSet:
        """What can be played."""

    def reset(self, seed: Any, /) -> object:
        """Begin anew."""

    def step(self, action: Array, /) -> tuple[float, float | None]:
        """The observed reward, and the expected one if it is known."""


class OwnCodeError(ValueError):
    """An agent or environment of yours made a mistake; the message says at which step, and which."""


class OwnAgent(ABC):
    """An agent of your own: `begin`, then `act` and `update` in turns.

    It goes wherever an agent of the package goes: `run`, `run_many` (threads, processes, Dask), and studies,
    as `type = "module:Class"` in a file. Every run works on a copy: what `begin`, `act` and `update` keep in
    `self` is of that run alone. Without this class, any object will do that has a method
    `start(actions, seed)` which returns something with `act()` and `update(y)`.

    `actions` is the set: a `Ball`, with `d`, or arms, with `arms` (K, d), or (T, K, d) if each step has its
    own; `sample` and `project` serve for all of them. `seed` is a `SeedSequence`, for `default_rng` of NumPy;
    the same run has the same one, and nothing else draws from it. (`int(seed.generate_state(1)[0])` makes an
    integer of it.)

    The noise of the built-in model is the same for every agent with the same seed. A method `details()` may
    return a mapping, which `Run.details` then holds. A study knows what it has computed by the name of the
    class, its arguments and the text of its file; objects that Python made are for `run` and `run_many`.

    Use it to compare an idea of yours with the agents of the package.

    >>> import numpy as np
    >>> import fastlbm as lbm
    >>> class RidgeGreedy(lbm.OwnAgent):
    ...     def __init__(self, explore=0.1):
    ...         self.explore = explore
    ...     def begin(self, actions, seed):
    ...         self.actions, self.rng = actions, np.random.default_rng(seed)
    ...         self.V, self.s, self.t = np.eye(actions.d), np.zeros(actions.d), 0
    ...     def act(self):
    ...         explores = self.rng.random() < self.explore
    ...         goal = self.rng.standard_normal(len(self.s)) if explores else np.linalg.solve(self.V, self.s)
    ...         self.a = self.actions.project([1e6 * goal], start=self.t)[0]  # as far that way as it goes
    ...         return self.a
    ...     def update(self, y):
    ...         self.V += np.outer(self.a, self.a)
    ...         self.s, self.t = self.s + y * self.a, self.t + 1
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    >>> lbm.run(env, RidgeGreedy(explore=0.2), T=100).complete
    True
    >>> RidgeGreedy().start(lbm.Ball(2), seed=0).act().shape  # as a run does it
    (2,)
    """

    def start(self, actions: ActionSet, seed: Any) -> Self:
        """A copy of the agent, which has begun."""
        at_work = copy.deepcopy(self)
        at_work.begin(actions, seed)
        return at_work

    @abstractmethod
    def begin(self, actions: ActionSet, seed: Any) -> None:
        """Nothing was played yet."""

    @abstractmethod
    def act(self) -> ArrayLike:
        """The action (d,) of the next step, a member of the set."""

    @abstractmethod
    def update(self, y: float) -> None:
        """The observed reward of that action."""


class OwnEnvironment(ABC):
    """An environment of your own: `reset`, then `step` after `step`.

    It goes wherever an `LBM` goes: `run`, `run_many`, and studies, as `type = "module:Class"` in a file; any
    object with these three names will do. Every run works on a copy, made by `copy.deepcopy`.

    `actions` is the set of actions, a `Ball`, a `Finite` and so on. `reset(seed)` begins anew; `seed` is a
    `SeedSequence`, for `np.random.default_rng`, the same for every agent with the same seed of the run, so
    that agents can be compared pairwise if every step draws equally often. `step(action)` returns the
    observed reward and the expected one, or None where nobody knows it. What has no expected reward counts
    as observed: the column `reward` then holds what `observed` holds. Regret needs an `LBM`.

    Use it where rewards follow another model, or come from a simulator.

    >>> import numpy as np
    >>> import fastlbm as lbm
    >>> class Tired(lbm.OwnEnvironment):
    ...     '''The same coordinate twice in a row pays half.'''
    ...     actions = lbm.Finite(np.eye(3))
    ...     def reset(self, seed):
    ...         self.rng, self.last = np.random.default_rng(seed), -1
    ...     def step(self, action):
    ...         arm = int(action.argmax())
    ...         expected = (0.3, 0.5, 0.7)[arm] * (0.5 if arm == self.last else 1.0)
    ...         self.last = arm
    ...         return expected + 0.1 * self.rng.standard_normal(), expected
    >>> lbm.run(Tired(), lbm.Cyclic([[0.0, 0.0, 1.0]]), T=4).reward
    array([0.7 , 1.05, 1.4 , 1.75])
    """

    actions: ActionSet

    @abstractmethod
    def reset(self, seed: Any) -> None:
        """Begin anew, with nothing played."""

    @abstractmethod
    def step(self, action: Array) -> tuple[float, float | None]:
        """The observed reward of the action (d,), and the expected one, None if it is not known."""


def as_agent_like(name: str, value: Any) -> AgentLike:
    """The agent, of the package or not, if it can be one."""
    if isinstance(value, type) or not callable(getattr(value, "start", None)):
        raise TypeError(
            f"{name} must be an agent such as O3M(...), or an object with a method start(actions, seed), "
            f"got {_shown(value)}"
        )
    agent: AgentLike = value
    return agent


def as_environment(name: str, value: Any) -> LBM | EnvironmentLike:
    """The environment, the built-in model or another one, if it can be one."""
    if isinstance(value, LBM):
        return value
    if not isinstance(value, type) and hasattr(value, "action_space") and not hasattr(value, "actions"):
        raise TypeError(f"{name} must be an environment, got {value!r} of Gymnasium: use GymEnvironment(...)")
    methods = all(callable(getattr(value, method, None)) for method in ("reset", "step"))
    if isinstance(value, type) or not methods or not hasattr(value, "actions"):
        raise TypeError(
            f"{name} must be an LBM, or an object with actions, reset(seed) and step(action), "
            f"got {_shown(value)}"
        )
    if not isinstance(value.actions, ActionSet):
        raise TypeError(
            f"{name}.actions must be a set of actions such as Ball(3), got {_shown(value.actions)}"
        )
    environment: EnvironmentLike = value
    return environment


def _shown(value: Any) -> str:
    return f"the class {value.__name__}: make an object of it" if isinstance(value, type) else repr(value)


def name_of(part: object) -> str:
    """How errors call an agent or environment: a study's as its file does, others by their class."""
    return str(getattr(part, "own_name", type(part).__name__))


def start(agent: AgentLike, actions: ActionSet, seed: Any) -> AgentAtWork:
    """The agent at work, a copy of what it was."""
    if isinstance(agent, Agent):
        return agent.start(actions, seed)
    name = name_of(agent)
    mine = called(f"a copy of {name}", copy.deepcopy, agent)
    at_work: AgentAtWork = called(f"start(actions, seed) of {name}", mine.start, actions, seed)
    for method in ("act", "update"):
        if not callable(getattr(at_work, method, None)):
            raise OwnCodeError(
                f"start(actions, seed) of {name} must return something with act() and update(y), "
                f"got {at_work!r}"
            )
    return at_work


def called(what: str, call: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
    """What the call returns; whatever it raises becomes an error that says what was called, and where."""
    try:
        return call(*arguments, **keywords)
    except OwnCodeError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        yours = [frame for frame in frames if not any(place in frame.filename for place in _NOT_YOURS)]
        place = (yours or frames)[-1]
        raise OwnCodeError(
            f"{what} raised {type(error).__name__}: {error} ({place.filename}, line {place.lineno})"
        ) from error


def checked_action(what: str, value: Any, actions: ActionSet, step: int) -> Array:
    """What `act` returned, as a new array (d,), if it can be played at the step (0, 1, ...)."""
    try:
        action = validation.array("it", value, (actions.d,)).copy()
        if not actions.contains(action[None], start=step)[0]:
            near = action if actions.varies else actions.project(action[None])[0]
            if not 0.0 < float(np.abs(near - action).max()) <= SINGLE:
                norm = float(np.linalg.norm(action))
                raise ValueError(f"it must be a member of the set, got {action.tolist()} of norm {norm:.9g}")
            action = near
    except (TypeError, ValueError) as error:
        raise OwnCodeError(f"{what} must return an action (d,) of {actions!r}: {error}") from None
    return action


def checked_rewards(what: str, value: Any) -> tuple[float, float | None]:
    """What `step` returned: the observed reward and, unless it is None, the expected one."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise OwnCodeError(f"{what} must return (observed, expected or None), got {value!r}")
    try:
        observed, expected = (_reward(*pair) for pair in zip(("observed", "expected"), value, strict=True))
    except (TypeError, ValueError) as error:
        raise OwnCodeError(f"{what} must return (observed, expected or None): {error}") from None
    if observed is None:
        raise OwnCodeError(f"{what} must return (observed, expected or None), got None as observed")
    return observed, expected


def _reward(name: str, value: Any) -> float | None:
    value = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if value is None:
        return None
    return validation.real(name, value, low=-validation.LARGEST, high=validation.LARGEST)
