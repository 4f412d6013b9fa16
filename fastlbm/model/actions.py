"""Action sets: owns which actions are allowed at which step, touches no rewards.

The paper's set A of Section 2, sec:model, and, for `Contextual`, its sets A_t of Remark 1, rmk:context.

Rows of an array of actions are consecutive steps; `start` is the step of the first row, which matters
to a contextual set alone. `seed` is an int, a SeedSequence, a Generator or None.

A set is the ball, or it has arms: planners and learners ask for `sets`, `varies` and `known_ahead`, never for
the class. To add a set, write it here, name it in ACTION_SETS, which is what studies know, and in the lists
of public names, `model/__init__.py` and `fastlbm/__init__.py`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base import validation
from .._base.types import Array, Seed
from .._base.validation import BALL_TOLERANCE
from .._base.values import Value
from .names import checked_names, find_names

Index = NDArray[np.intp]
Flags = NDArray[np.bool_]

#: Elements of the largest temporary of a search for nearest arms (16 MB).
_CHUNK = 2**21


class ActionSet(Value, ABC):
    """What every set of actions offers; a subset of the unit ball in R^d."""

    __slots__ = ()
    d: int

    @property
    def steps(self) -> float:
        """How many steps have a set: infinity unless the set depends on the step.

        >>> Ball(2).steps
        inf
        """
        return math.inf

    @property
    def varies(self) -> bool:
        """Whether every step has a set of its own.

        >>> Ball(2).varies, Contextual(np.ones((100, 3, 1))).varies
        (False, True)
        """
        return self.steps < math.inf

    #: Whether an agent knows the sets of later steps.
    known_ahead: ClassVar[bool] = True

    @abstractmethod
    def sets(self) -> Array:
        """The arms (S, K, d): no set for the ball, one for a finite set, else one a step.

        Numba takes read-only arrays for another type, so this one is not, though nobody writes to it: all
        policies share it.
        """

    def require(self, T: int) -> None:
        """Raise `ValueError` unless the first T steps all have a set.

        >>> Ball(2).require(10**9)
        """
        if self.steps < T:
            raise ValueError(f"actions must offer a set for each of T={T} steps, got {self.steps}")

    @abstractmethod
    def project(self, actions: ArrayLike, start: int = 0) -> Array:
        """The member nearest to each row of `actions` (n, d)."""

    def contains(self, actions: ArrayLike, start: int = 0) -> Flags:
        """Whether each row of `actions` (n, d) is a member, up to a distance of 1e-9.

        >>> Finite([[1.0, 0.0], [0.0, 1.0]]).contains([[0.0, 1.0], [0.6, 0.8]])
        array([ True, False])
        """
        rows = self._rows(actions)
        return _norms(rows - self.project(rows, start))[:, 0] <= BALL_TOLERANCE

    @abstractmethod
    def sample(self, n: int, seed: Seed = None, start: int = 0) -> Array:
        """Independent uniform members (n, d) for n consecutive steps."""

    def _rows(self, actions: ArrayLike) -> Array:
        return validation.array("actions", actions, (None, self.d))


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Ball(ActionSet):
    """The unit ball of R^d.

    Use it where every direction can be played; an `LBM` without `actions` has it.

    >>> import fastlbm as lbm
    >>> ball = lbm.Ball(2)
    >>> ball.project([[3.0, 4.0], [0.5, 0.0]])
    array([[0.6, 0.8],
           [0.5, 0. ]])
    >>> ball.contains([[3.0, 4.0], [0.5, 0.0]])
    array([False,  True])
    >>> ball.sets().shape
    (0, 0, 2)
    """

    d: int

    def __init__(self, d: int) -> None:
        self._set(d=validation.integer("d", d, low=1))

    def sets(self) -> Array:
        """None: an array (0, 0, d)."""
        return np.zeros((0, 0, self.d))

    def project(self, actions: ArrayLike, start: int = 0) -> Array:
        """Rows longer than 1 are scaled to norm 1.

        >>> Ball(1).project([[-2.0], [0.5]])
        array([[-1. ],
               [ 0.5]])
        """
        rows = self._rows(actions)
        # First by the largest entry: the square of 1e200 overflows.
        largest: Array = np.abs(rows).max(axis=1, keepdims=True, initial=1.0)
        rows = rows / largest
        return rows / np.maximum(_norms(rows), 1.0)

    def sample(self, n: int, seed: Seed = None, start: int = 0) -> Array:
        """Uniform in the ball: a normal direction, a radius of u^(1/d).

        >>> Ball(3).sample(5, seed=0).shape
        (5, 3)
        """
        n = validation.integer("n", n, low=0)
        rng = validation.generator("seed", seed)
        direction = rng.standard_normal((n, self.d))
        radius = rng.random((n, 1)) ** (1.0 / self.d)
        return direction * (radius / _norms(direction))


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class _Arms(ActionSet):
    """What a set of arms does, given the sets of n steps as one array (n, K, d)."""

    arms: Array
    d: int = field(init=False)
    _sets_of_all: Array = field(init=False)

    def _set_arms(self, arms: Array) -> None:
        """Keep the arms twice without a copy: to be read, and as kernels take them."""
        own = np.add(arms, 0.0, order="C")  # turns -0.0 into 0.0, as `_set` does
        shown = own.view()
        shown.flags.writeable = False
        object.__setattr__(self, "arms", shown)
        object.__setattr__(self, "_sets_of_all", own.reshape(-1, *own.shape[-2:]))
        self._set(d=own.shape[-1])

    @property
    def K(self) -> int:
        """Number of arms (of each step).

        >>> Contextual(np.ones((100, 3, 1))).K
        3
        """
        return int(self.arms.shape[-2])

    def sets(self) -> Array:
        """The arms, with an axis for the steps: the same array for all who ask, not to be written to.

        >>> Finite([[1.0], [0.5]]).sets().shape, Contextual(np.ones((100, 3, 1))).sets().shape
        ((1, 2, 1), (100, 3, 1))
        """
        return self._sets_of_all

    @abstractmethod
    def _sets(self, start: int, n: int) -> Array:
        """The arms (n, K, d) of steps start, ..., start + n - 1."""

    def match(self, actions: ArrayLike, start: int = 0) -> Index:
        """Index of the arm nearest to each row of `actions` (n, d), the first of equals.

        >>> Finite([[1.0, 0.0], [0.0, 1.0]]).match([[0.1, 0.7], [0.9, 0.2]])
        array([1, 0])
        """
        rows = self._rows(actions)
        sets = self._sets(start, len(rows))
        chunk = max(1, _CHUNK // (self.K * self.d))
        index = np.empty(len(rows), np.intp)
        for i in range(0, len(rows), chunk):
            gap = rows[i : i + chunk, None] - sets[i : i + chunk]
            index[i : i + chunk] = _norms(gap)[..., 0].argmin(axis=1)
        return index

    def project(self, actions: ArrayLike, start: int = 0) -> Array:
        """The nearest arm.

        >>> Finite([[1.0, 0.0], [0.0, 1.0]]).project([[0.1, 0.7]])
        array([[0., 1.]])
        """
        return self._take(self.match(actions, start), start)

    def sample(self, n: int, seed: Seed = None, start: int = 0) -> Array:
        """A uniform arm for each step.

        >>> Finite([[1.0, 0.0]]).sample(2, seed=0)
        array([[1., 0.],
               [1., 0.]])
        """
        n = validation.integer("n", n, low=0)
        return self._take(validation.generator("seed", seed).integers(self.K, size=n), start)

    def _take(self, index: Index, start: int) -> Array:
        return self._sets(start, len(index))[np.arange(len(index)), index]


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Finite(_Arms):
    """Arms (K, d) in the unit ball, the same at every step; `names` are K different texts for them.

    A live policy tells the name of what it plays, see `Live.name`, and takes names for arms.

    Use it for a catalogue: what can be played is a list.

    >>> import fastlbm as lbm
    >>> lbm.Finite([[1.0, 0.0], [0.0, 1.0]])
    Finite(arms=[[1.0, 0.0], [0.0, 1.0]])
    >>> songs = lbm.Finite([[1.0, 0.0], [0.0, 1.0]], names=["Blue", "Red"])
    >>> songs.arm("Red")
    array([0., 1.])
    """

    names: tuple[str, ...] | None = None

    def __init__(self, arms: ArrayLike, names: Sequence[str] | None = None) -> None:
        self._set_arms(_arms(arms, (None, None)))
        self._set(names=None if names is None else checked_names(names, self.K))

    def _arguments(self) -> dict[str, Any]:
        # Without names it is the value that it was before there were any: saved states know it by this.
        return {"arms": self.arms} | ({} if self.names is None else {"names": self.names})

    def arm(self, name: str) -> Array:
        """The arm (d,) of a name, for which `Live` takes the name itself as well."""
        row: Array = self.arms[find_names("name must be the name of an arm", [name], self.names)[0]].copy()
        return row

    def _sets(self, start: int, n: int) -> Array:
        return np.broadcast_to(self.arms, (n, *self.arms.shape))


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class _StepArms(_Arms):
    """Arms (T, K, d): every step has a set of its own."""

    def __init__(self, arms: ArrayLike) -> None:
        self._set_arms(_arms(arms, (None, None, None)))

    @property
    def steps(self) -> int:
        """How many steps have a set: T.

        >>> Contextual(np.ones((100, 3, 1))).steps
        100
        """
        return len(self.arms)

    def _sets(self, start: int, n: int) -> Array:
        start = validation.integer("start", start, low=0)
        self.require(start + n)
        return self.arms[start : start + n]


class Contextual(_StepArms):
    """Arms (T, K, d) in the unit ball: step t has its own K arms, `arms[t]`, revealed at that step.

    Remark 1, rmk:context, of the paper. An agent does not know the sets of later steps, though they are all
    here; it plans as if those seen last came again. Sets that are known in advance are a `Scheduled`.

    Use it where what can be played changes from step to step and is not known before.

    >>> import fastlbm as lbm
    >>> sets = lbm.Contextual([[[1.0], [0.5]], [[-1.0], [-0.5]]])
    >>> sets.match([[0.6], [-0.6]])
    array([1, 1])
    >>> sets.project([[0.6]], start=1)
    array([[-0.5]])
    >>> sets.require(3)
    Traceback (most recent call last):
    ...
    ValueError: actions must offer a set for each of T=3 steps, got 2
    """

    __slots__ = ()
    known_ahead = False


class Scheduled(_StepArms):
    """Arms (T, K, d) as of a `Contextual`, all of them known in advance: agents plan with the sets to come.

    Use it for a programme that is fixed ahead.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([1.0], m=1, gamma=-1.0, actions=lbm.Scheduled([[[1.0], [0.5]], [[1.0], [0.5]]]))
    >>> env.actions.steps
    2
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Offered(ActionSet):
    """Arms that are told one step at a time, to `Live.act`: any number of them, and nothing of later ones."""

    d: int
    known_ahead = False

    def __init__(self, d: int) -> None:
        self._set(d=validation.integer("d", d, low=1))

    @property
    def varies(self) -> bool:
        return True

    def sets(self) -> Array:
        """One set of one arm, in the place of what will be told: an array (1, 1, d)."""
        return np.zeros((1, 1, self.d))

    def project(self, actions: ArrayLike, start: int = 0) -> Array:
        """Raises a `ValueError`, and so do `contains` and `sample`: nobody knows the arms yet."""
        raise ValueError("actions must be arms that are known in advance here, got arms that are offered")

    def sample(self, n: int, seed: Seed = None, start: int = 0) -> Array:
        """Raises a `ValueError`."""
        return self.project(np.zeros((0, self.d)))


def _arms(arms: ArrayLike, shape: tuple[None, ...]) -> Array:
    if isinstance(arms, Sequence) and len(arms) == 0:
        raise ValueError(
            "arms must hold at least one arm, each a row of d numbers, such as [[1.0, 0.0], [0.0, 1.0]], "
            "got none"
        )
    checked = validation.array("arms", arms, shape)
    if checked.size == 0:
        raise ValueError(f"arms must hold at least one arm and one dimension, got shape {checked.shape}")
    return validation.in_ball("arms", checked)


def _norms(vectors: Array) -> Array:
    """Norms over the last axis, which is kept; infinity where a square overflows."""
    squares: Array = np.einsum("...i,...i->...", vectors, vectors)
    return np.sqrt(squares)[..., None]


#: Every set of actions, by the name that a study file has for it.
ACTION_SETS: dict[str, type[Ball | Finite | Contextual | Scheduled]] = {
    "ball": Ball,
    "finite": Finite,
    "contextual": Contextual,
    "scheduled": Scheduled,
}
