"""Responses other than the power: own their values and divided differences, and calls of one's own functions.

The memory acts by f(X), with f(x) = x^gamma in the paper, see `powers`. Here f levels off, or is given by two
compiled functions, f(x, gamma) and its derivative in x, whose addresses come as numbers: no kernel is
compiled anew for them.

SATURATING: f(x) = exp(gamma (1 - e^(1-x))). At x = 1, where nothing is remembered and A0 = I, it is 1 and its
slope is gamma, as of the power; from there it goes to e^gamma and no further, and at 0 it is e^((1-e) gamma),
so that it is bounded above and below. As exp o u, its divided difference is a product of two quotients of
expm1, which subtract nothing.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from ._jit import inline, kernel_internal, kernel_norefcount
from ._types import Tile
from .matrix_functions import make_layout
from .powers import OWN, POWER, SATURATING, Power

#: The gap of two arguments, relative to 1 and the larger one, up to which a divided difference is the mean of
#: the derivative, by four points of Gauss and Legendre; beyond it the quotient loses one digit.
_SHORT = 0.1
_NEAR, _FAR = 0.3399810435848563, 0.8611363115940526
_NEAR_WEIGHT, _FAR_WEIGHT = 0.3260725774312731, 0.1739274225687269

#: What one's own function is to C.
Signature = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)


if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def call_address(address: int, x: float, gamma: float) -> float:
        """The function of two numbers at an address."""
        return float(Signature(address)(x, gamma))

else:

    @intrinsic
    def call_address(typing_context: Any, address: Any, x: Any, gamma: Any) -> Any:
        """The function of two numbers at an address."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = ir.DoubleType()
            kind = ir.FunctionType(number, [number, number])
            return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

        return types.float64(types.int64, types.float64, types.float64), generate


@inline
def response_at(kind: int, value: int, gamma: float, x: float) -> float:
    """f(x)."""
    if kind == POWER:
        return x**gamma
    return _other_response(kind, value, gamma, x)


@kernel_norefcount
def compute_response(kind: int, value: int, gamma: float, x: float) -> float:
    """`response_at` for Python."""
    return response_at(kind, value, gamma, x)


@kernel_internal
def _other_response(kind: int, value: int, gamma: float, x: float) -> float:
    if kind == SATURATING:
        return math.exp(-gamma * math.expm1(1.0 - x))
    return call_address(value, x, gamma)


@inline
def _saturating_difference(x: float, y: float, gamma: float) -> float:
    """f[x, y] = exp[u(x), u(y)] u[x, y] with u(x) = gamma (1 - e^(1-x))."""
    low, gap = min(x, y), abs(x - y)
    slope = gamma * math.exp(1.0 - low)
    if gap > 0.0:
        slope *= -math.expm1(-gap) / gap
    top = max(-gamma * math.expm1(1.0 - x), -gamma * math.expm1(1.0 - y))
    rise = abs(slope) * gap
    mean = -math.expm1(-rise) / rise if rise > 0.0 else 1.0
    return math.exp(top) * mean * slope


@inline
def _own_difference(value: int, slope: int, x: float, y: float, gamma: float) -> float:
    """f[x, y] from f and its derivative."""
    half, middle = 0.5 * abs(x - y), 0.5 * (x + y)
    if 2.0 * half <= _SHORT * (1.0 + max(x, y)):
        near, far = _NEAR * half, _FAR * half
        return _NEAR_WEIGHT * (
            call_address(slope, middle - near, gamma) + call_address(slope, middle + near, gamma)
        ) + _FAR_WEIGHT * (
            call_address(slope, middle - far, gamma) + call_address(slope, middle + far, gamma)
        )
    return (call_address(value, x, gamma) - call_address(value, y, gamma)) / (x - y)


@kernel_internal
def response_difference(kind: int, value: int, slope: int, gamma: float, x: float, y: float) -> float:
    """f[x, y] of a response that is no power."""
    if kind == OWN:
        return _own_difference(value, slope, x, y, gamma)
    return _saturating_difference(x, y, gamma)


@kernel_internal
def response_differences(power: Power, t: Tile, k: int, n: int) -> None:
    """f and its Loewner matrix, of the dense form, one number after the other."""
    at = make_layout(k)
    kind, value, slope, gamma = power.kind, power.value, power.slope, power.gamma
    for i in range(k):
        for w in range(n):
            x = max(t[at.lam + i, w], 0.0)
            t[at.lam + i, w] = x
            t[at.f + i, w] = response_at(kind, value, gamma, x)
    for i in range(k):
        for j in range(i, k):
            for w in range(n):
                x, y = t[at.lam + i, w], t[at.lam + j, w]
                t[at.gamma + i * k + j, w] = response_difference(kind, value, slope, gamma, x, y)
