"""Small arithmetic that inner loops are made of: owns what LLVM must be told to vectorise and to fuse."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import lower_builtin, type_callable

from ._jit import inline

_f64: Any = types.float64


@inline
def column(index: int) -> int:
    """An index that is never negative, in a way that LLVM sees.

    Without it Numba counts a negative index from the end, with a choice at every element that keeps a loop
    from being vectorised.
    """
    return max(index, 0)


def fma(x: Any, y: Any, z: Any) -> Any:
    """x y + z; in compiled code rounded once: what a kernel asks for it gets, vectorised as well.

    Numbers, or those of `vectors`.
    """
    return x * y + z


@type_callable(fma)
def _type_of_fma(context: Any) -> Any:
    return lambda x, y, z: _f64(_f64, _f64, _f64)


@lower_builtin(fma, _f64, _f64, _f64)  # type: ignore[no-untyped-call]
def _lower_fma(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.fma(*arguments)


@inline
def dot2(a: float, x: float, b: float, y: float) -> float:
    """a x + b y."""
    return fma(a, x, b * y)


@inline
def dot3(a: float, x: float, b: float, y: float, c: float, z: float) -> float:
    """a x + b y + c z."""
    return fma(a, x, fma(b, y, c * z))
