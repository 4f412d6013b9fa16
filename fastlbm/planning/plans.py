"""Plans: owns the results of planning, on the ball and on sets of arms alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._base.display import Displayed
from .._base.types import Array

Index = NDArray[np.intp]


@dataclass(frozen=True, repr=False)
class Plan(Displayed):
    """A block of actions (n, d), n = m+L unless said otherwise.

    `value` is the objective, `evaluations` how many block values and gradients were computed over all
    starts; a dynamic program counts as one. `exact` says that no block is better; otherwise `upper` bounds
    what a better one could have, if such a bound is known (else infinity). `indices` (n,) are the arms of a
    finite set, None on the ball.
    """

    actions: Array
    value: float
    evaluations: int
    converged: bool
    exact: bool
    upper: float
    indices: Index | None = None


@dataclass(frozen=True, repr=False)
class Cycle(Displayed):
    """Actions (period, d) to be played again and again, and their average reward once the cycle repeats.

    `indices` (period,) are the arms of a finite set, None on the ball.
    """

    actions: Array
    average: float
    exact: bool
    indices: Index | None = None


@dataclass(frozen=True, repr=False)
class OptBounds(Displayed):
    """`lower` <= OPT <= `upper`, the optimal expected reward of T steps; `exact` where they meet.

    `certified` says that the upper bound is proven, up to rounding. Otherwise it rests on a search of the
    ball for the best block, and is as good as that search. The lower bound is always what actions collect:
    `cycle` is a policy that does. `method` says where the bounds come from.
    """

    lower: float
    upper: float
    exact: bool
    certified: bool
    T: int
    method: str
    cycle: Cycle | None = None

    @property
    def gap(self) -> float:
        """(upper - lower) relative to the size of the upper bound."""
        return (self.upper - self.lower) / abs(self.upper) if self.upper != 0.0 else self.upper - self.lower
