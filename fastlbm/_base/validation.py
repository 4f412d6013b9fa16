"""Validation of arguments: owns the wording of every error about bad input, touches types only.

Each function returns the checked value in the one form that the rest of the package uses and
raises a `ValueError` or `TypeError` that names the argument, what it got and what is allowed.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from .types import Array, Seed

#: The largest number that squares and sums leave finite: rewards, noise, what regularises.
LARGEST = 1e100
#: The largest integer, which is a float as well.
LARGEST_INTEGER = 10**100

#: How far outside the unit ball a vector may lie, to forgive the rounding of a normalisation.
BALL_TOLERANCE = 1e-9


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def real(
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """A finite real number in an interval, closed unless said otherwise."""
    if not _is_real(value):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # an integer of more than 308 digits
        number = math.inf if value > 0 else -math.inf
    below = number <= low if open_low else number < low
    above = number >= high if open_high else number > high
    if not math.isfinite(number) or below or above:
        left = "(" if open_low or low == -math.inf else "["
        right = ")" if open_high or high == math.inf else "]"
        raise ValueError(f"{name} must be a finite number in {left}{low:g}, {high:g}{right}, got {number!r}")
    return number


def integer(name: str, value: Any, *, low: int, high: int | None = None) -> int:
    """An integer of at least `low` (and at most `high`); a float with an integer value passes."""
    if not _is_real(value):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    most = LARGEST_INTEGER if high is None else high
    if not low <= value <= most or value != int(value):
        allowed = f">= {low}" if high is None and not value > most else f"from {low} to {most}"
        raise ValueError(f"{name} must be an integer {allowed}, got {value!r}")
    return int(value)


def memory(name: str, value: Any, *, allow_inf: bool) -> int | float:
    """A memory size m: a nonnegative integer or, for the model alone, `math.inf`."""
    if _is_real(value) and value == math.inf:
        if not allow_inf:
            raise ValueError(
                f"{name} must be a finite integer >= 0 here: a block needs a finite memory, got inf"
            )
        return math.inf
    return integer(name, value, low=0)


def decay(value: Any, m: float = 0) -> float:
    """How much of an action is left a step later, in (0, 1]; less than 1 for plans of an infinite m."""
    if not _is_real(value):
        raise TypeError(f"decay must be a real number, got {value!r}")
    if not 0.0 < value <= 1.0:
        raise ValueError(f"decay must be a number in (0, 1], got {value!r}")
    if m == math.inf and value == 1.0:
        raise ValueError("m must be a finite integer >= 0 here unless decay < 1, got inf with decay=1")
    return float(value)


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return str(value)


def generator(name: str, seed: Seed) -> np.random.Generator:
    """A random generator from a seed as in SPEC 7; a Generator passes as it is."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        allowed = "an integer >= 0, a SeedSequence, a Generator or None"
        raise type(error)(f"{name} must be {allowed}, got {seed!r}") from None


def array(name: str, value: Any, shape: tuple[int | None, ...]) -> Array:
    """A finite float64 C-contiguous array; None in `shape` leaves an axis free."""
    try:
        if np.iscomplexobj(np.asarray(value)):
            raise TypeError("got complex ones")
        result = np.ascontiguousarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of real numbers: {error}") from None
    given = np.shape(value)
    if len(given) != len(shape) or any(s is not None and s != g for s, g in zip(shape, given, strict=True)):
        wanted = (
            "(" + ", ".join("any" if s is None else str(s) for s in shape) + ("," * (len(shape) == 1)) + ")"
        )
        raise ValueError(f"{name} must have shape {wanted}, got {given}")
    if not np.isfinite(result).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return result


def bounded(name: str, numbers: Array) -> Array:
    """An array of numbers up to LARGEST in size."""
    largest = float(np.abs(numbers).max(initial=0.0))
    if largest > LARGEST:
        raise ValueError(f"{name} must hold numbers of at most {LARGEST:g} in size, got {largest:g}")
    return numbers


def in_ball(name: str, vectors: Array) -> Array:
    """Vectors (the last axis) of the closed unit ball."""
    largest = float(np.sqrt(np.einsum("...i,...i->...", vectors, vectors)).max(initial=0.0))
    if largest > 1.0 + BALL_TOLERANCE:
        raise ValueError(f"{name} must lie in the unit ball (norm <= 1), got a vector of norm {largest:.6g}")
    return vectors


def symmetric(name: str, matrix: Array) -> Array:
    """A symmetric matrix, up to rounding; returned exactly so."""
    scale = float(np.abs(matrix).max(initial=0.0))
    if float(np.abs(matrix - matrix.T).max(initial=0.0)) > 1e-10 * scale:
        raise ValueError(f"{name} must be symmetric, got a matrix that differs from its transpose")
    return 0.5 * (matrix + matrix.T)
