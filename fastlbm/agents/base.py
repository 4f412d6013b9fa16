"""What an agent is: owns the contract of agents, and what agents that learn share.

An agent is a value: it holds no state; `run` and `start` make it act, through the policy that it gives. To
add an agent, write a file beside this one and name it in `agents/__init__.py`, which is what studies know, in
the list of public names, `fastlbm/__init__.py`, and in the contract of this folder in pyproject.toml.
"""

from __future__ import annotations

import functools
import inspect
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from .._base import validation
from .._base.types import Seed
from .._base.values import Value
from ..model.actions import ActionSet, Ball
from ..model.lbm import LBM
from ..model.names import find_names, told_names
from .policy import Policy, Rng

if TYPE_CHECKING:
    from ..running.live import Live

RADII = ("trace", "determinant", "estimate")


class Agent(Value):
    """What every agent offers."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        init = cls.__dict__.get("__init__")
        if init is not None and not hasattr(init, "__wrapped__"):
            cls.__init__ = _named_arguments(init)  # type: ignore[method-assign]

    def start(self, actions: ActionSet | LBM, seed: Seed = 0) -> Live:
        """The agent at work, one step at a time; an oracle takes the model, others the set of actions.

        >>> import fastlbm as lbm
        >>> live = lbm.OFUL(horizon=100).start(lbm.Ball(2), seed=0)
        >>> action = live.act()
        >>> live.update(0.5)
        >>> live.t
        1
        """
        from ..running.live import Live

        return Live(self, actions, seed)

    def fit(
        self,
        actions: ArrayLike,
        rewards: ArrayLike,
        on: ActionSet | LBM | None = None,
        seed: Seed = 0,
    ) -> Live:
        """The agent at work after a log: actions (n, d) that somebody played, rewards (n,), NaN for none.

        Actions may be told by the names that arms of `on` have.

        `start` on the set `on`, by default the unit ball, and `Live.replay`: the regression is that of an
        agent that played them itself (O3M and OM would have left out the first m actions of each block), and
        the next action follows the last one of the log. On the ball `act(arms)` serves any set.

        >>> import fastlbm as lbm
        >>> live = lbm.Rolling(m=1, gamma=-2.0).fit([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.8])
        >>> live.t, live.theta
        (2, array([0.25, 0.4 ]))
        """
        if on is None:
            if (names := told_names("actions", actions)) is not None:
                find_names("actions must be an array (n, d) unless `on` has names", names, None)
            on = Ball(validation.array("actions", actions, (None, None)).shape[1])
        return self.start(on, seed).replay(actions, rewards)

    @abstractmethod
    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        """The agent, ready to act on the set from the given step on."""


def _named_arguments(init: Callable[..., None]) -> Callable[..., None]:
    """The constructor, which names the agent and what it takes if the arguments are not what it takes."""
    signature = inspect.signature(init)
    every = list(signature.parameters.values())[1:]
    needed = [f"{each.name}=..." for each in every if each.default is inspect.Parameter.empty]

    @functools.wraps(init)
    def checked(self: Agent, *arguments: Any, **keywords: Any) -> None:
        try:
            signature.bind(self, *arguments, **keywords)
        except TypeError as error:
            name = type(self).__name__
            raise TypeError(
                f"{name} must be called as {name}({', '.join(needed)}): {error}; it takes "
                f"{', '.join(each.name for each in every) or 'no arguments'}"
            ) from None
        init(self, *arguments, **keywords)

    return checked


class LearningAgent(Agent):
    """What agents that learn share: how sure they are."""

    __slots__ = ()
    horizon: Any  # int; None for agents that need none
    lam: float
    delta: float | None
    subgaussian: float | None
    radius: str

    def _set_learning(
        self,
        *,
        horizon: int | None,
        lam: float,
        delta: float | None,
        subgaussian: float | str | None,
        radius: str,
        any_time: bool = False,
    ) -> None:
        """`any_time`: the agent needs no horizon. Study files, which have no None, say "estimated"."""
        if horizon is not None or not any_time:
            horizon = validation.integer("horizon", horizon, low=1)
        self._set(
            horizon=horizon,
            lam=validation.real("lam", lam, low=1.0 / validation.LARGEST, high=validation.LARGEST),
            delta=None
            if delta is None
            else validation.real("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True),
            subgaussian=_noise(subgaussian),
            radius=validation.choice("radius", radius, RADII),
        )

    def _with_horizon(self, horizon: int) -> Self:
        return type(self)(**{**self._arguments(), "horizon": horizon})


def _noise(subgaussian: float | str | None) -> float | None:
    """The factor of the noise, checked; None if it is estimated."""
    if subgaussian is None or subgaussian == "estimated":
        return None
    return validation.real("subgaussian", subgaussian, low=0.0, high=validation.LARGEST)
