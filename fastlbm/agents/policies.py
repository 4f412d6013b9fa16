"""Policies: own the state of an agent that acts, one block at a time, and which kernel thinks for it.

A policy has a desk (see `kernels.world`). `prepare` sees to it that a block lies there, `advance` plays an
episode from it. Learners on the ball, learners without memory and the oracle are compiled end to end;
on sets of arms a learner with memory thinks in Python, with the planner of `finite`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .._base.validation import Array
from .._base.values import writable
from ..kernels.episodes import (
    THINK,
    Rule,
    describe,
    greedy,
    learn,
    on_the_ball,
    radius,
    settle,
    without_memory,
)
from ..kernels.estimator import Estimator, absorb, estimate, make_estimator, repeats
from ..kernels.memory import make_memory
from ..kernels.optimism import OM_BLOCK, Belief
from ..kernels.world import (
    MANY,
    PLANS,
    PLAYED,
    REPEATS,
    STEP,
    TIME,
    Desk,
    Past,
    Tape,
    World,
    make_desk,
    make_past,
    make_world,
    play,
)
from ..model.actions import ActionSet, Ball, Contextual, Finite
from ..model.lbm import LBM
from ..planning.finite import FinitePlanner

Rng = np.random.Generator


def make_tape(points: np.ndarray[Any, Any], T: int, d: int) -> Tape:
    """An empty record; T = 0 keeps no actions."""
    P = len(points)
    return Tape(np.zeros(2), np.zeros(2, dtype=np.int64), points, np.zeros(P), np.zeros(P), np.zeros((T, d)))


def _nowhere(d: int, noise: Rng) -> tuple[World, Past, Tape, Rng]:
    """The arguments of an episode in which nothing is played."""
    world = make_world(np.zeros(d), np.eye(d), 0, 0.0)
    return world, make_past(world), make_tape(np.zeros(0, dtype=np.int64), 0, d), noise


def arms_of(actions: ActionSet) -> Array:
    """The arms (S, K, d): none for the ball, one set for a finite set, one a step for a contextual set."""
    if isinstance(actions, Ball):
        return np.zeros((0, 0, actions.d))
    assert isinstance(actions, (Finite, Contextual))
    return writable(actions.arms if isinstance(actions, Contextual) else actions.arms[None])


class Policy(ABC):
    """An agent at work. `step` is the step of the episode at which it begins."""

    #: The first m actions of a block are not learned from.
    m: int = 0
    #: Whether a block is learned from as one sample, with the sum of its rewards.
    joint: bool = False
    #: Counts the times that all was forgotten; says which of several policies planned the block on the desk.
    epoch: int = 0
    author: int = 0
    #: What a learner knows, and the features of the block on its desk.
    estimator: Estimator | None = None
    F: Array | None = None

    def __init__(self, n: int, d: int, rng: Rng, step: int) -> None:
        self._desk = make_desk(n, d)
        self._desk.at[STEP] = step
        self.rng = rng

    @property
    def desk(self) -> Desk:
        return self._desk

    @property
    def plans(self) -> int:
        """Plans made so far."""
        return int(self.desk.at[PLANS])

    @abstractmethod
    def think(self) -> None:
        """Learn from the desk and put a new block on it."""

    def prepare(self) -> None:
        """A block lies on the desk afterwards."""
        if self.desk.at[PLAYED] >= self.desk.at[REPEATS]:
            self.think()

    def advance(self, world: World, past: Past, tape: Tape, noise: Rng, until: int) -> None:
        """Play until the tape's clock shows `until`."""
        while tape.clock[TIME] < until:
            self.prepare()
            play(world, past, tape, self.desk, noise, until)

    def beta(self) -> float | None:
        """The radius of the confidence set, of a learner."""
        return None

    def state(self) -> dict[str, Array]:
        """Everything that changes, by name, except the generator."""
        arrays = {f"desk.{name}": a for name, a in self.desk._asdict().items()}
        if self.estimator is not None:
            arrays |= {f"estimator.{name}": a for name, a in self.estimator._asdict().items()}
        if self.F is not None:
            arrays["features"] = self.F
        return arrays

    def place(self) -> list[int]:
        """Where the policy stands beyond its arrays, in integers."""
        return []

    def enter_place(self, place: list[int]) -> None:
        """Go where `place` was."""
        if place:
            raise ValueError("a place")

    def details(self) -> dict[str, Any]:
        """What there is to tell of the episode, as arrays by name."""
        return {}

    def recall(self) -> Array | None:
        """The last actions, of a policy that needs them."""
        return None

    def remember(self, actions: Array) -> None:
        """These, which another such policy recalled, were played before the first step."""
        raise NotImplementedError

    def absorb(self, b: Array, y: float, author: int = 0) -> None:
        """A late reward of the feature b of one of the author's plans."""
        if self.estimator is not None:
            absorb(self.estimator, np.ascontiguousarray(b), 1.0, y)
            estimate(self.estimator)


class Fixed(Policy):
    """The same block again and again."""

    def __init__(self, block: Array, rng: Rng, step: int) -> None:
        n, d = block.shape
        super().__init__(n, d, rng, step)
        self.desk.block[:] = block
        self.desk.at[REPEATS] = MANY

    def think(self) -> None:
        raise AssertionError("a fixed block is never done")


class _Compiled(Policy):
    """A policy whose kernel thinks and plays."""

    episode: ClassVar[Callable[..., None]]

    def __init__(self, n: int, d: int, rng: Rng, step: int) -> None:
        super().__init__(n, d, rng, step)
        self._idle = _nowhere(d, rng)

    @abstractmethod
    def _arguments(self) -> tuple[Any, ...]:
        """What the kernel takes before the world."""

    def think(self) -> None:
        type(self).episode(*self._arguments(), *self._idle, THINK)

    def advance(self, world: World, past: Past, tape: Tape, noise: Rng, until: int) -> None:
        type(self).episode(*self._arguments(), world, past, tape, noise, until)


class Greedy(_Compiled):
    """The oracle: the best action for its own step."""

    episode = staticmethod(greedy)

    def __init__(self, env: LBM, rng: Rng, step: int) -> None:
        super().__init__(1, env.d, rng, step)
        self.world = env._world()
        self.own = make_past(self.world)
        self.arms = arms_of(env.actions)

    def _arguments(self) -> tuple[Any, ...]:
        return self.world, self.own, self.arms, self.desk

    def state(self) -> dict[str, Array]:
        return super().state() | {f"past.{name}": a for name, a in self.own._asdict().items()}


class _Learner(Policy):
    """What all learners have: a rule, an estimator, the features of the block on the desk."""

    estimator: Estimator
    F: Array

    def _learner(self, rule: Rule, D: int, lam: float) -> None:
        self.rule = rule
        self.m, self.joint = rule.m, rule.kind == OM_BLOCK
        self.estimator = make_estimator(D, lam)
        rows = 1 if self.joint else len(self.desk.block) - rule.m
        self.F = np.zeros((rows, D))

    def beta(self) -> float:
        return float(radius(self.rule, self.estimator))


class OnTheBall(_Compiled, _Learner):
    """O3M, OM and OM-Block on the ball."""

    episode = staticmethod(on_the_ball)

    def __init__(
        self, rule: Rule, D: int, lam: float, n: int, A0: Array, gamma: float, rng: Rng, step: int
    ) -> None:
        super().__init__(n, len(A0), rng, step)
        self._learner(rule, D, lam)
        self.memory = make_memory(writable(A0), rule.m, gamma)

    def _arguments(self) -> tuple[Any, ...]:
        return self.rule, *self.memory, self.estimator, self.F, self.desk, self.rng


class WithoutMemory(_Compiled, _Learner):
    """Learners with m = 0 whose actions can be chosen one by one, on any set."""

    episode = staticmethod(without_memory)

    def __init__(
        self, rule: Rule, lam: float, n: int, M: Array, actions: ActionSet, rng: Rng, step: int
    ) -> None:
        super().__init__(n, len(M), rng, step)
        self._learner(rule, len(M), lam)
        if self.joint:
            # One feature a block: the same for n = 1.
            self.joint, self.rule = False, rule._replace(kind=0)
        self.M, self.arms = M, arms_of(actions)

    def _arguments(self) -> tuple[Any, ...]:
        return self.rule, self.M, self.arms, self.estimator, self.F, self.desk


class OnArms(_Learner):
    """O3M, OM and OM-Block on sets of arms, planned exactly where that is possible."""

    def __init__(
        self,
        rule: Rule,
        D: int,
        lam: float,
        n: int,
        A0: Array,
        gamma: float,
        actions: ActionSet,
        rng: Rng,
        step: int,
    ) -> None:
        super().__init__(n, len(A0), rng, step)
        self._learner(rule, D, lam)
        self.memory = make_memory(writable(A0), rule.m, gamma)
        sets = arms_of(actions)
        self.planner = FinitePlanner(sets if len(sets) > 1 else sets[0], m=rule.m, gamma=gamma, A0=A0)

    def think(self) -> None:
        e, rule = self.estimator, self.rule
        learn(rule, e, self.F, self.desk)
        belief = Belief(theta=e.theta, V_inv=e.V_inv, beta=self.beta(), kind=rule.kind)
        L, step = len(self.desk.block) - rule.m, int(self.desk.at[STEP])
        # A block that is cut by the end is planned as if the last set went on.
        plan = self.planner.plan(belief, L, self.rng, start=step)
        self.desk.block[:] = plan.actions
        describe(rule, *self.memory, np.ascontiguousarray(plan.actions.T), self.F)
        settle(self.desk, repeats(e, self.F, rule.switch))


class Epochs(Policy):
    """The doubling trick: a new policy for each epoch, every epoch twice as long as the one before."""

    def __init__(self, make: Callable[[int, int], Policy], first: int, step: int) -> None:
        self._make, self._first = make, first
        self.epoch, self._begin, self._before = 0, step, 0
        self._told: list[dict[str, Any]] = []
        self._inner = make(0, step)
        self.rng = self._inner.rng

    def _end(self) -> int:
        return self._begin + (self._first << self.epoch)

    def _turn(self) -> None:
        if int(self.desk.at[STEP]) >= self._end():
            history = self._inner.recall()
            self._told.append(self._inner.details())
            self._enter(self.epoch + 1, self._end(), self.plans)
            if history is not None:
                self._inner.remember(history)

    def _enter(self, epoch: int, begin: int, before: int) -> None:
        """Begin an epoch at a step, after so many plans."""
        self.epoch, self._begin, self._before = epoch, begin, before
        self._inner = self._make(epoch, begin)

    def place(self) -> list[int]:
        return [self.epoch, self._begin, self._before, *self._inner.place()]

    def enter_place(self, place: list[int]) -> None:
        self._enter(*map(int, place[:3]))
        self._inner.enter_place(place[3:])

    @property
    def desk(self) -> Desk:
        return self._inner.desk

    @property
    def m(self) -> int:  # type: ignore[override]
        return self._inner.m

    @property
    def joint(self) -> bool:  # type: ignore[override]
        return self._inner.joint

    @property
    def estimator(self) -> Estimator | None:  # type: ignore[override]
        return self._inner.estimator

    @property
    def F(self) -> Array | None:  # type: ignore[override]
        return self._inner.F

    @property
    def plans(self) -> int:
        return self._before + self._inner.plans

    def think(self) -> None:
        self._inner.think()

    def prepare(self) -> None:
        self._turn()
        self._inner.prepare()

    def beta(self) -> float | None:
        return self._inner.beta()

    def advance(self, world: World, past: Past, tape: Tape, noise: Rng, until: int) -> None:
        while tape.clock[TIME] < until:
            self._turn()
            self._inner.advance(world, past, tape, noise, min(until, self._end()))

    def state(self) -> dict[str, Array]:
        return self._inner.state()

    def details(self) -> dict[str, Any]:
        parts = [part for part in (*self._told, self._inner.details()) if part and len(part["step"])]
        return {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else ())}

    @property
    def author(self) -> int:  # type: ignore[override]
        return self._inner.author

    def absorb(self, b: Array, y: float, author: int = 0) -> None:
        self._inner.absorb(b, y, author)
