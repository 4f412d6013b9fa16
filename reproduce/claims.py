"""Statements of the paper that can be checked: own what a claim is, its verdict, and its interval.

A claim holds, holds with a remark, or does not hold: that is computed from our number. And the number itself
must stay in the interval `must`, or the run fails. The statements are in claims.toml and claims_theory.toml.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
EXACT = 1e-9
#: Where the statements are.
FILES = ("claims", "claims_theory")


class Number(NamedTuple):
    """A number and its 95% interval; exact ones have a point."""

    value: float
    low: float
    high: float

    def over(self, other: float) -> Number:
        """The same divided by a number without chance in it."""
        return Number(*(value / other for value in self))

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.value:.4g}" if abs(self.value) >= EXACT else "0"
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"

    def text(self, digits: int) -> str:
        """The same with a number of decimals."""
        return f"{self.value:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def exact(value: float) -> Number:
    """A number without chance in it."""
    return Number(float(value), float(value), float(value))


def mean(values: ArrayLike) -> Number:
    """The mean over runs."""
    return _bootstrap(lambda v: v.mean(axis=-1), values)


def ratio(values: ArrayLike, others: ArrayLike) -> Number:
    """The ratio of two means over runs that share their noise."""
    return _bootstrap(lambda v, w: v.mean(axis=-1) / w.mean(axis=-1), values, others)


def _bootstrap(statistic: Callable[..., Array], *samples: ArrayLike) -> Number:
    """Runs drawn again with replacement, the same runs of every sample."""
    arrays = [np.asarray(sample, dtype=np.float64) for sample in samples]
    draws = np.random.default_rng(0).integers(len(arrays[0]), size=(2000, len(arrays[0])))
    low, high = np.quantile(statistic(*(array[draws] for array in arrays)), [0.025, 0.975])
    return Number(float(statistic(*arrays)), float(low), float(high))


def exponent(T: ArrayLike, regrets: ArrayLike) -> Number:
    """The slope of log mean regret over log T, regrets (horizons, runs)."""
    x, values = np.log(np.asarray(T, dtype=np.float64)), np.asarray(regrets, dtype=np.float64)
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    return _bootstrap(lambda *rows: weights @ np.log([row.mean(axis=-1) for row in rows]), *values)


def carried(T: ArrayLike, regrets: ArrayLike, far: float) -> Number:
    """The mean regret at a horizon out of reach, along the line of `exponent`; regrets (horizons, runs)."""
    x, values = np.log(np.asarray(T, dtype=np.float64)), np.asarray(regrets, dtype=np.float64)
    slope = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    weights = 1.0 / len(x) + (math.log(far) - x.mean()) * slope
    return _bootstrap(lambda *rows: np.exp(weights @ np.log([row.mean(axis=-1) for row in rows])), *values)


def first_below(bound: Callable[[int], float], limit: Callable[[int], float], low: int = 1) -> int:
    """The first horizon from which on a bound is below a limit that grows faster; to a part in 1,000."""
    if bound(low) <= limit(low):
        return low
    high = 2 * low
    while bound(high) > limit(high):
        low, high = high, 2 * high
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        low, high = (middle, high) if bound(middle) > limit(middle) else (low, middle)
    return high


class Claim(NamedTuple):
    """One statement of the paper, and what became of it."""

    name: str
    where: str  #: in the paper
    says: str  #: the statement, in our words
    measured: str  #: what the number is
    number: Number
    at_least: float = -math.inf  #: the statement holds if the number lies between these two
    at_most: float = math.inf
    must: tuple[float, float] = (-math.inf, math.inf)  #: where our number must be, else the run fails
    remark: str = ""

    def _within(self, low: float, high: float) -> bool:
        slack = EXACT * max(1.0, abs(self.number.value))
        return self.at_least - slack <= low and high <= self.at_most + slack

    @property
    def remarks(self) -> str:
        """The remark, and whether chance could have turned the verdict."""
        value, low, high = self.number
        inside = self._within(value, value)
        open_ = not self._within(low, high) if inside else self._within(low, low) or self._within(high, high)
        words = "the interval reaches across the bound" if open_ else ""
        return "; ".join(filter(None, (self.remark, words)))

    @property
    def verdict(self) -> str:
        """What the table says."""
        if not self._within(self.number.value, self.number.value):
            return "does not hold"
        return "holds with a remark" if self.remarks else "holds"

    @property
    def failed(self) -> str:
        """Empty, or what is wrong with our number."""
        low, high = self.must
        if low <= self.number.value <= high:
            return ""
        return f"{self.name}: {self.measured} is {self.number}, must be from {low:g} to {high:g}"


def statements() -> dict[str, dict[str, Any]]:
    """The tables of both files, by the names of the claims."""
    texts = [Path(__file__).with_name(f"{name}.toml").read_text("utf-8") for name in FILES]
    return tomllib.loads("\n".join(texts))  # a name that is in both is an error


COLUMNS = ("claim", "where", "statement", "we measure", "number (95% interval)", "verdict", "remark")


def rows(claims: Sequence[Claim]) -> list[tuple[str, ...]]:
    """The table of claims, in the order of COLUMNS."""
    return [(c.name, c.where, c.says, c.measured, str(c.number), c.verdict, c.remarks) for c in claims]
