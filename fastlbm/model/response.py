"""Responses: own what the memory does with its eigenvalues, by name or as a function of one's own."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from numba import cfunc, config, njit, types

from .._base.files import digest
from .._base.values import Value
from ..kernels.fading import Variant
from ..kernels.powers import OWN, POWER, SATURATING
from ..kernels.responses import Signature

#: The responses that have a name.
NAMED = {"power": POWER, "saturating": SATURATING}
#: Eigenvalues and gammas at which a derivative is compared with differences.
_LOOK = tuple((x, gamma) for gamma in (-1.5, 0.5) for x in (1.0, 1.3, 2.0, 3.5))

#: How lines of Numba's errors begin that say nothing.
_NO_NEWS = ("Failed in nopython", "During: ")

Function = Callable[[float, float], float]


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Response(Value):
    """A response of one's own: f(x, gamma) of an eigenvalue x >= 0 of the memory, and its derivative in x.

    Both are functions of two floats that Numba can compile, defined at the top of a module, so that workers
    find them. They are compiled when first used, in each process, which takes about a fifth of a second each;
    the kernels call them by their address and are not compiled again. f must be finite and smooth at all
    eigenvalues that the memory can have, from the smallest of A0 on, for the gamma in use; it need not rise
    or fall. Both are looked at there, in a thousand points: a value that is not finite (or raises) and a
    slope that is not the derivative are refused, but for a few kinks. That proves nothing in between.

    Use it when neither the power nor `"saturating"` is what your memory does. In a study file,
    `type = "module:name"` of an environment or an agent may name a function of one's own that returns an
    `LBM` or an agent with a response.

    >>> import fastlbm as lbm
    >>> def value(x, gamma):
    ...     return 1.0 + gamma * (x - 1.0) / (1.0 + x)
    >>> def slope(x, gamma):
    ...     return 2.0 * gamma / (1.0 + x) ** 2
    >>> env = lbm.LBM([1.0, 0.0], m=1, gamma=-0.6, response=lbm.Response(value, slope))
    >>> env.expected_rewards([[1.0, 0.0], [1.0, 0.0]])
    array([1. , 0.8])
    """

    value: Function
    slope: Function

    def __init__(self, value: Function, slope: Function) -> None:
        for name, function in (("value", value), ("slope", slope)):
            if not callable(function):
                raise TypeError(f"{name} must be a function of an eigenvalue and gamma, got {function!r}")
        self._set(value=value, slope=slope)
        f, derivative = (Signature(_address(name, function)) for name, function in self._arguments().items())
        step, compared = 1e-5, 0
        for x, gamma in _LOOK:
            quotient, given = (f(x + step, gamma) - f(x - step, gamma)) / (2.0 * step), derivative(x, gamma)
            compared += math.isfinite(quotient)  # an f need not be one for every gamma
            if math.isfinite(quotient) and not abs(quotient - given) <= 1e-4 * (1.0 + abs(quotient)):
                raise ValueError(
                    f"slope must be the derivative of value, got {given:.6g} at x={x:g}, gamma={gamma:g}, "
                    f"where it is about {quotient:.6g}"
                )
        if compared == 0:
            raise ValueError(f"value must be finite, got {f(*_LOOK[0])} at x={_LOOK[0][0]:g}")

    def __repr__(self) -> str:
        return f"Response({', '.join(map(_name_of, (self.value, self.slope)))})"

    def _key(self) -> tuple[Any, ...]:
        return ("Response", *map(_name_of, (self.value, self.slope)))

    def _addresses(self) -> tuple[int, int]:
        return _address("value", self.value), _address("slope", self.slope)


def _name_of(function: Function) -> str:
    """Where it is found; one that is not at the top of a module is known by what it does."""
    name = f"{function.__module__}:{function.__qualname__}"
    if "<" not in name:
        return name
    plain: Any = getattr(function, "py_func", function)
    held = [cell.cell_contents for cell in plain.__closure__ or ()]
    parts = plain.__code__.co_code, plain.__code__.co_consts, plain.__code__.co_names, held
    return f"{name}:{digest(repr(parts).encode())[:12]}"


@cache
def _compiled(function: Function) -> Any:
    """What holds the function that C can call."""
    plain: Any = getattr(function, "py_func", function)
    compiles = not config.DISABLE_JIT  # type: ignore[attr-defined]
    inner = njit(nogil=True, error_model="numpy")(plain) if compiles else plain

    def guarded(x: float, gamma: float) -> float:
        # Nobody above would hear of an error; NaN is refused.
        try:
            found: float = inner(x, gamma)
        except Exception:
            found = math.nan
        return found

    if not compiles:
        return Signature(guarded)
    signature: Any = types.float64(types.float64, types.float64)
    return cfunc(signature, nogil=True, error_model="numpy")(guarded)


def _address(name: str, function: Function) -> int:
    try:
        held = _compiled(function)
    except Exception as error:  # whatever Numba raises
        told = [line.strip() for line in str(error).splitlines() if line.strip()]
        words = next((line for line in told if not line.startswith(_NO_NEWS)), type(error).__name__)
        raise TypeError(f"{name} must be a function of two floats that Numba compiles: {words}") from None
    if hasattr(held, "address"):
        return int(held.address)
    return int(ctypes.cast(held, ctypes.c_void_p).value or 0)


def make_variant(decay: float, response: str | Response) -> Variant:
    """How a memory differs from the paper's, as kernels take it; the decay has been checked.

    >>> make_variant(0.5, "power")
    Variant(decay=0.5, response=0, value=0, slope=0)
    """
    if isinstance(response, Response):
        value, slope = response._addresses()
        return Variant(decay, OWN, value, slope)
    if not isinstance(response, str) or response not in NAMED:
        names = ", ".join(map(repr, NAMED))
        raise ValueError(f"response must be one of {names}, or a Response, got {response!r}")
    return Variant(decay, NAMED[response])
