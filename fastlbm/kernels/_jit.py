"""How every kernel is compiled: the one place for njit options.

`FASTLBM_CACHE=0` in the environment turns the on-disk cache off. `NUMBA_DISABLE_JIT=1` runs the
kernels as plain Python, for tests and debuggers.
"""

from __future__ import annotations

import os
from typing import Any

from numba import njit

CACHE = os.environ.get("FASTLBM_CACHE", "1") != "0"

#: Everything of fast-math that keeps NaN and infinity meaningful.
FASTMATH = {"contract", "arcp", "nsz", "afn", "reassoc"}

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": FASTMATH,
    "no_cfunc_wrapper": True,
}

#: A kernel: compiled at its first call, kept on disk, free of the GIL, x/0 as in NumPy.
kernel = njit(cache=CACHE, **OPTIONS)

#: Plain IEEE arithmetic: the same bits wherever it is called from. Kernels with fast-math are optimised anew,
#: and may round differently, in each caller.
exact = njit(cache=CACHE, **(OPTIONS | {"fastmath": False}))

#: A piece of a kernel's inner loop: inlined, so that the loop around it can be vectorised.
inline = njit(cache=CACHE, forceinline=True, **OPTIONS)


@inline
def column(index: int) -> int:
    """An index that is never negative, in a way that LLVM sees.

    Without it Numba counts a negative index from the end, with a choice at every element that keeps a loop
    from being vectorised.
    """
    return max(index, 0)
