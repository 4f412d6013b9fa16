"""Agents: own the parameters of a policy, checked; the algorithms of Sections 3 and 4 of the paper.

An agent is a value: it holds no state, `run` and `start` make it act. Block agents play blocks of m+L
actions, learn from the last L rewards of each, and continue from the true history; the last block is cut.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from .. import theory
from .._base import validation
from .._base.validation import Array, Seed
from .._base.values import Value
from ..kernels.episodes import Rule
from ..kernels.optimism import O3M as _O3M
from ..kernels.optimism import OM as _OM
from ..kernels.optimism import OM_BLOCK as _OM_BLOCK
from ..model.actions import ActionSet, Ball, Contextual
from ..model.lbm import LBM
from ..model.memory_matrix import check_memory_matrix, matrix_power
from ..planning.effort import FIRST, LATER, RARE, RARE_AND_LONG
from .policies import Epochs, Fixed, Greedy, OnArms, OnTheBall, Policy, Rng, WithoutMemory

if TYPE_CHECKING:
    from ..running.live import Live

RADII = ("trace", "determinant")


class Agent(Value):
    """What every agent offers."""

    __slots__ = ()

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

    @abstractmethod
    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        """The agent, ready to act on the set from the given step on."""


class _Learning(Agent):
    """What agents that learn share: how sure they are."""

    __slots__ = ()
    horizon: int
    lam: float
    delta: float | None
    subgaussian: float
    radius: str

    def _set_learning(
        self, horizon: int, lam: float, delta: float | None, subgaussian: float, radius: str
    ) -> None:
        self._set(
            horizon=validation.integer("horizon", horizon, low=1),
            lam=validation.real("lam", lam, low=0.0, open_low=True),
            delta=None
            if delta is None
            else validation.real("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True),
            subgaussian=validation.real("subgaussian", subgaussian, low=0.0),
            radius=validation.choice("radius", radius, RADII),
        )

    def _with_horizon(self, horizon: int) -> Self:
        return type(self)(**{**self._arguments(), "horizon": horizon})

    def _learner(
        self,
        kind: int,
        m: int,
        gamma: float,
        L: int,
        A0: Array | None,
        switch: float,
        actions: ActionSet,
        rng: Rng,
        step: int,
    ) -> Policy:
        d = actions.d
        if m + L > self.horizon:
            raise ValueError(f"horizon must hold a block of m+L={m + L} actions, got {self.horizon}")
        if switch > 0.0 and isinstance(actions, Contextual):
            raise ValueError(
                "switch must be 0 on a Contextual set, where the arms of a plan are gone when it is "
                f"repeated, got {switch:g}"
            )
        ball = isinstance(actions, Ball)
        matrix, rho = check_memory_matrix(A0, d, m, gamma, differentiable=ball and m > 0)
        rows = L if kind == _OM_BLOCK else 1
        D = d * (m + L) if kind == _OM_BLOCK else d
        size = m + L * rho**2 if kind == _OM_BLOCK else rho**2
        norm = math.sqrt(rows)
        rare = RARE if m + L <= 48 else RARE_AND_LONG
        first, later = (rare, rare) if switch > 0.0 else (FIRST, LATER)
        rule = Rule(
            kind,
            m,
            -2.0 * math.log(1.0 / self.horizon if self.delta is None else self.delta),
            norm * self.subgaussian,
            norm * math.sqrt(self.lam),
            size / (D * self.lam),
            self.radius == "determinant",
            switch,
            first,
            later,
        )
        one_by_one = kind == _O3M or L == 1 or (kind == _OM and not isinstance(actions, Contextual))
        if m == 0 and one_by_one:
            M = matrix_power(matrix, gamma) if A0 is not None else np.eye(d)
            return WithoutMemory(rule, self.lam, L, np.ascontiguousarray(M), actions, rng, step)
        if ball:
            return OnTheBall(rule, D, self.lam, m + L, matrix, gamma, rng, step)
        return OnArms(rule, D, self.lam, m + L, matrix, gamma, actions, rng, step)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class _BlockAgent(_Learning):
    """A learner that plans blocks of m+L actions."""

    m: int
    gamma: float
    horizon: int
    L: int | None
    lam: float
    delta: float | None
    subgaussian: float
    switch: float
    radius: str
    A0: Array | None

    _kind: ClassVar[int]
    _name: ClassVar[str]

    def __init__(
        self,
        m: int,
        gamma: float,
        horizon: int,
        L: int | None = None,
        lam: float = 1.0,
        delta: float | None = None,
        subgaussian: float = 1.0,
        switch: float = 0.0,
        radius: str = "trace",
        A0: ArrayLike | None = None,
    ) -> None:
        memory = int(validation.memory("m", m, allow_inf=False))
        gamma = validation.real("gamma", gamma)
        self._set_learning(horizon, lam, delta, subgaussian, radius)
        self._set(switch=validation.real("switch", switch, low=0.0))
        if L is not None:
            L = validation.integer("L", L, low=1)
            n = L + (memory if gamma != 0.0 else 0)
            if n > self.horizon:
                raise ValueError(f"horizon must hold a block of m+L={n} actions, got {self.horizon}")
        if A0 is not None:
            d = len(validation.array("A0", A0, (None, None)))
            A0, _ = check_memory_matrix(A0, d, memory, gamma)
        self._set(m=memory, gamma=gamma, L=L, A0=A0)

    def block_length(self, d: int) -> int:
        """L, or what the theory says for actions of dimension d.

        >>> O3M(m=2, gamma=-3.0, horizon=10**6).block_length(d=3)
        24
        """
        m = self.m if self.gamma != 0.0 else 0
        return self.L if self.L is not None else theory.block_length(self.horizon, d, m, self._name)

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        if self.A0 is not None and len(self.A0) != actions.d:
            raise ValueError(f"A0 must have the dimension of the actions, {actions.d}, got {len(self.A0)}")
        # gamma = 0: the reward ignores the past, whatever m.
        m = self.m if self.gamma != 0.0 else 0
        L = self.block_length(actions.d)
        return self._learner(self._kind, m, self.gamma, L, self.A0, self.switch, actions, rng, step)


class O3M(_BlockAgent):
    """O3M (Remark 2 of the paper): the block with the largest sum of optimistic rewards.

    Knows m, gamma and A0 (the identity by default). `horizon` sets the block length L (Theorem 1, unless
    given) and delta (1/horizon, unless given); `lam` regularises; `subgaussian` is the factor of the noise.
    `radius` is "trace", the paper's form, or "determinant", never larger. With `switch` = C > 0 a block is
    repeated until det V has grown by the factor 1 + C; with 0 every block is planned anew.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    >>> run = lbm.run(env, lbm.O3M(m=1, gamma=-2.0, horizon=200, L=5), T=200, seed=0)
    >>> bool(run.reward[-1] > 100.0)
    True
    """

    __slots__ = ()
    _kind = _O3M
    _name = "O3M"


class OM(_BlockAgent):
    """OM (Algorithm 1): optimism for the sum of a block's features; arguments as for `O3M`."""

    __slots__ = ()
    _kind = _OM
    _name = "OM"


class OMBlock(_BlockAgent):
    """OM-Block: a linear bandit over whole blocks, in dimension d(m+L); arguments as for `O3M`."""

    __slots__ = ()
    _kind = _OM_BLOCK
    _name = "OM-Block"


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class OFUL(_Learning):
    """OFUL (Abbasi-Yadkori, Pal and Szepesvari 2011), which does not know of memory: O3M with m = 0.

    On the ball its optimistic action is solved for, not searched.
    """

    horizon: int
    lam: float
    delta: float | None
    subgaussian: float
    switch: float
    radius: str

    def __init__(
        self,
        horizon: int,
        lam: float = 1.0,
        delta: float | None = None,
        subgaussian: float = 1.0,
        switch: float = 0.0,
        radius: str = "trace",
    ) -> None:
        self._set_learning(horizon, lam, delta, subgaussian, radius)
        self._set(switch=validation.real("switch", switch, low=0.0))

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        return self._learner(_O3M, 0, 0.0, 1, None, self.switch, actions, rng, step)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class OracleGreedy(Agent):
    """Knows the model and takes the action with the largest expected reward of its own step.

    Proposition 1 of the paper shows how bad that can be.
    """

    def __init__(self) -> None:
        pass

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        if env is None:
            raise TypeError(f"OracleGreedy must be started with the LBM that it knows, got {actions!r}")
        return Greedy(env, rng, step)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Cyclic(Agent):
    """Plays the actions of a block (n, d) again and again.

    The paper's pi_2, which alternates, is `Cyclic([[1, 0], [0, 1]])`; `Cyclic(best_cycle(env).actions)` is
    a good policy that knows the model.
    """

    block: Array

    def __init__(self, block: ArrayLike) -> None:
        checked = validation.array("block", block, (None, None))
        if checked.size == 0:
            raise ValueError(f"block must hold at least one action, got shape {checked.shape}")
        self._set(block=checked)

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        n, d = self.block.shape
        if d != actions.d:
            raise ValueError(f"block must have actions of dimension {actions.d}, got {d}")
        # On a contextual set every step has arms of its own.
        steps = int(actions.steps) - step if math.isfinite(actions.steps) else n
        played = self.block[np.arange(steps) % n]
        inside = actions.contains(played, start=step)
        if not inside.all():
            t = int(np.argmin(inside))
            raise ValueError(
                f"block must lie in the action set, got {played[t].tolist()} for step {step + t}"
            )
        return Fixed(self.block, rng, step)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Doubling(Agent):
    """For an unknown horizon: the agent for its own horizon, then anew for twice as long, and so on.

    Each epoch starts from nothing, with the block length and delta of its own horizon where the agent takes
    them from it.

    >>> import fastlbm as lbm
    >>> agent = lbm.Doubling(lbm.O3M(m=1, gamma=-2.0, horizon=64))
    >>> lbm.run(lbm.LBM([1.0, 0.0], m=1, gamma=-2.0), agent, T=300).t[-1]
    np.int64(300)
    """

    agent: _Learning

    def __init__(self, agent: _Learning) -> None:
        if not isinstance(agent, _Learning):
            raise TypeError(f"agent must be an agent with a horizon, such as O3M, got {agent!r}")
        self._set(agent=agent)

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        first = self.agent.horizon

        def make(epoch: int, begin: int) -> Policy:
            return self.agent._with_horizon(first * 2**epoch)._policy(actions, env, rng, begin)

        return Epochs(make, first, step)


def as_agent(name: str, value: Any) -> Agent:
    """The agent, checked."""
    if not isinstance(value, Agent):
        raise TypeError(f"{name} must be an agent such as O3M(...), got {value!r}")
    return value
