"""How every kernel is compiled: the one place for the decorators and for Numba's options.

`NUMBA_DISABLE_JIT=1` in the environment runs the kernels as plain Python, for tests and debuggers. How
kernels call each other is in `_link`, where compiled code is kept in `_cache`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar

from numba import config, njit, types

from . import _cache, _link, _notice

# Numba's stubs know less than what is used here.
_njit: Any = njit

#: No fast-math: Numba optimises an inlined function anew in each of its callers, and which copy runs depends
#: on what was compiled or loaded before. Only plain IEEE arithmetic has the same bits in all of them.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}

#: Whether kernels call each other by address, see `_link`.
LINKED = not config.DISABLE_JIT and _link.why_off() is None  # type: ignore[attr-defined]

F = TypeVar("F", bound=Callable[..., Any])


class PlainKernel:
    """What a kernel is when Numba makes the calls: linked into its callers, like any compiled function."""

    def __init__(self, compiled: Any) -> None:
        update_wrapper(self, compiled.py_func)
        self.compiled = compiled
        self._numba_type_ = types.Dispatcher(compiled)

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)


class PlainInlinedKernel(PlainKernel):
    """The same, and in Python just the function."""

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled.py_func(*arguments)


def dispatcher_of(kernel: object) -> Any:
    """Numba's dispatcher of a kernel: what is compiled of it and where that is kept."""
    if not isinstance(kernel, _link.Kernel | PlainKernel):
        raise TypeError(f"{kernel!r} is not compiled")
    return kernel.compiled


def cache_of(kernel: object) -> _cache.KernelCache | None:
    """Where the code of a kernel is kept; None if it is not."""
    found = None if config.DISABLE_JIT else dispatcher_of(kernel)._cache  # type: ignore[attr-defined]
    return found if isinstance(found, _cache.KernelCache) else None


def why_not_kept(kernel: object) -> str | None:
    """Why the code of a kernel is not kept on disk; None if it is."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return "NUMBA_DISABLE_JIT=1"
    if cache_of(kernel) is None:
        return _cache.why_off() or "its source cannot be read"
    return None


def _decorator(
    linked: type[_link.Kernel], plain: type[PlainKernel], keep: bool, forceinline: bool, **options: bool
) -> Callable[[F], F]:
    """Makes functions kernels of one of two kinds; the last options are for those that are linked."""

    def decorate(function: Any) -> Any:
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return function
        # Said even if it is False: Numba lets a function inherit it from the one that it is compiled for.
        chosen = {**OPTIONS, "forceinline": forceinline, **(options if LINKED else {})}
        compiled = _njit(**chosen)(function)
        if keep:
            _notice.watch(compiled)
            _cache.attach(compiled, "linked" if LINKED else "plain")
        return linked(compiled) if LINKED else plain(compiled)

    return decorate


def _kernel(**options: bool) -> Callable[[F], F]:
    return _decorator(
        _link.Kernel, PlainKernel, keep=True, forceinline=False, no_cfunc_wrapper=True, **options
    )


#: A kernel: compiled at its first call and kept on disk.
kernel = _kernel(_nrt=True)

#: The same, for kernels alone to call: nothing is compiled for a call from Python.
kernel_nested = _kernel(_nrt=True, no_cpython_wrapper=True)

#: One that makes no arrays and does not count who holds those it gets, which takes longer than small work. It
#: can neither return arrays nor call a kernel that does: that is an error when it is compiled.
kernel_norefcount = _kernel(_nrt=False)

#: The same, for kernels alone to call.
kernel_internal = _kernel(_nrt=False, no_cpython_wrapper=True)

#: A piece of a kernel, compiled into it, so that the loop around it can be vectorised; it makes no arrays.
#: Not kept on disk: the kernel is, with all the addresses that its pieces need. Called from Python, it is the
#: Python function that it was.
inline = _decorator(
    _link.InlinedKernel, PlainInlinedKernel, keep=False, forceinline=True,
    no_cfunc_wrapper=True, no_cpython_wrapper=True, _nrt=False,
)  # fmt: skip

#: For `numba.extending.overload`: a choice by type that is inlined in the same way.
INLINED: Any = {"forceinline": True, **({"_nrt": False} if LINKED else {})}
