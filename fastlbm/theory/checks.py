"""Checks of the arguments that the formulas share: numbers or arrays, as arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.types import Array
from ..model.memory_matrix import check_memory_matrix


def finite_memory(m: int) -> int:
    """A finite memory size."""
    return int(validation.memory("m", m, allow_inf=False))


def system(d: int, m: int, gamma: float, A0: ArrayLike | None) -> tuple[int, int, float]:
    """d and m, checked, and rho."""
    d, m = validation.integer("d", d, low=1), finite_memory(m)
    gamma = validation.real("gamma", gamma)
    # Without A0 the bound does not depend on d: spare the identity matrix.
    return d, m, check_memory_matrix(A0, 1 if A0 is None else d, m, gamma)[1]


def reals(name: str, value: ArrayLike) -> Array:
    """A finite number or array of them, as an array (of shape () for a number)."""
    # As objects first: ragged or other strange input meets the messages of `validation`.
    given = np.asarray(value, dtype=object)
    if given.ndim == 0:
        return np.asarray(validation.real(name, given.item()))
    return validation.array(name, value, (None,) * given.ndim)


def counts(name: str, value: ArrayLike, low: int) -> Array:
    """An integer >= low or an array of them, as floats."""
    result = reals(name, value)
    wrong = (result < low) | (result != np.floor(result))
    if wrong.any():
        raise ValueError(f"{name} must be an integer >= {low}, got {result[wrong].flat[0]:g}")
    return result


def failure_probability(delta: float | None, T: Array) -> Array:
    """The probability delta, 1/T by default."""
    if delta is None:
        return 1.0 / T
    return np.asarray(validation.real("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True))


def plain(value: Array | float) -> float | Array:
    """A float instead of an array of shape ()."""
    return float(value) if np.ndim(value) == 0 else np.asarray(value)
