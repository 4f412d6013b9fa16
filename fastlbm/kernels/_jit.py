"""How every kernel is compiled: the one place for njit options.

`FASTLBM_CACHE=0` in the environment turns the on-disk cache off. `NUMBA_DISABLE_JIT=1` runs the
kernels as plain Python, for tests and debuggers.
"""

from __future__ import annotations

import os
from typing import Any

from numba import config, njit, types
from numba.extending import intrinsic

CACHE = os.environ.get("FASTLBM_CACHE", "1") != "0"

#: No fast-math: Numba optimises a function anew in each of its callers, and which copy runs depends on what
#: was compiled or loaded before. Only plain IEEE arithmetic has the same bits in all of them.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

#: A kernel: compiled at its first call, kept on disk, free of the GIL, x/0 as in NumPy.
kernel = njit(cache=CACHE, **OPTIONS)

#: A piece of a kernel's inner loop: inlined, so that the loop around it can be vectorised.
inline = njit(cache=CACHE, forceinline=True, **OPTIONS)


#: A part of one larger kernel, put into it before it is compiled: LLVM optimises a function again in each of
#: its callers, so every level of calls costs time at the first run.
part = njit(inline="always", cache=CACHE, **OPTIONS)


@inline
def column(index: int) -> int:
    """An index that is never negative, in a way that LLVM sees.

    Without it Numba counts a negative index from the end, with a choice at every element that keeps a loop
    from being vectorised.
    """
    return max(index, 0)


if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def fma(x: float, y: float, z: float) -> float:
        """x y + z."""
        return x * y + z

else:

    @intrinsic
    def fma(typingctx, x, y, z):  # type: ignore[no-untyped-def]
        """x y + z, rounded once: what a kernel asks for it gets, vectorised as well."""
        f64 = types.float64

        def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return builder.fma(*arguments)

        return f64(f64, f64, f64), code


@inline
def dot2(a: float, x: float, b: float, y: float) -> float:
    """a x + b y."""
    return fma(a, x, b * y)


@inline
def dot3(a: float, x: float, b: float, y: float, c: float, z: float) -> float:
    """a x + b y + c z."""
    return fma(a, x, fma(b, y, c * z))
