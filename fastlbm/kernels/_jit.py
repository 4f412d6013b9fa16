"""How every kernel is compiled: the one place for Numba's options, and for how kernels call each other.

`FASTLBM_CACHE=0` in the environment turns the on-disk cache off. `NUMBA_DISABLE_JIT=1` runs the
kernels as plain Python, for tests and debuggers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import update_wrapper
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from llvmlite.binding import add_symbol
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, type_callable

# Numba's stubs know less than what is used here.
_njit: Any = njit
_build: Any = cgutils
_anything: Any = types.VarArg(types.Any)  # type: ignore[no-untyped-call]

CACHE = os.environ.get("FASTLBM_CACHE", "1") != "0"

#: No fast-math: Numba optimises an inlined function anew in each of its callers, and which copy runs depends
#: on what was compiled or loaded before. Only plain IEEE arithmetic has the same bits in all of them.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

F = TypeVar("F", bound=Callable[..., Any])


class Kernel:
    """A function that is compiled at its first call, kept on disk, and called by its address.

    Numba links a function into each of its callers and optimises it there once more, with all that it calls,
    so that every level of calls adds to the time of the first run. The caller of a kernel knows a symbol
    only. It gets its address when the caller is compiled, and again when that is loaded from disk. Kernels
    raise no exceptions: Numba would leak the arrays of the callers.
    """

    __qualname__: str

    def __init__(self, function: Callable[..., Any], options: dict[str, bool]) -> None:
        update_wrapper(self, function)
        self.compiled = _njit(**OPTIONS, **options)(function)
        self._python = not options.get("no_cpython_wrapper", False)
        self._linked: dict[tuple[Any, ...], Any] = {}
        # Inside of compiled code: the type of a call, by the signature of the function, and the call.
        type_callable(self)(lambda _: update_wrapper(self._result, function))
        lower_builtin(self, _anything)(self._call)  # type: ignore[no-untyped-call]

    def __call__(self, *arguments: Any) -> Any:
        if not self._python:
            raise TypeError(f"{self.__qualname__} is for kernels to call")
        return self.compiled(*arguments)

    def link(self, arguments: tuple[Any, ...]) -> Any:
        """The type of the result for arguments of these types; the symbol has an address afterwards."""
        if arguments not in self._linked:
            self.compiled.compile(arguments)
            found = self.compiled.overloads[arguments]
            address = found.library.get_pointer_to_function(found.fndesc.llvm_func_name)
            add_symbol(self._symbol(arguments), address)
            self._linked[arguments] = found.signature.return_type
        return self._linked[arguments]

    def _symbol(self, arguments: tuple[Any, ...]) -> str:
        return f"{self.__module__}.{self.__qualname__}{arguments}"

    @property
    def _result(self) -> Callable[..., Any]:
        # A literal is a type of its own, for which the kernel would be compiled once more.
        return lambda *arguments: self.link(tuple(map(types.unliteral, arguments)))

    def _call(self, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        convention, result, kinds = context.call_conv, signature.return_type, signature.args
        declared = convention.get_function_type(result, kinds)
        callee = _build.get_or_insert_function(builder.module, declared, self._symbol(kinds))
        status, value = convention.call_function(builder, callee, result, kinds, arguments)
        with _build.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        context.active_code_library._reload_init.add(
            RelinkOnLoad(self.__module__, self.__qualname__, kinds, result)
        )
        return value


class InlinedKernel(Kernel):
    """A function that is linked into its callers after all, as Numba does it; Python runs it as Python."""

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled.py_func(*arguments)

    def _call(self, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        callee = types.Dispatcher(self.compiled)
        callee.get_call_type(context.typing_context, signature.args, {})
        return context.get_function(callee, signature)(builder, arguments)


class RelinkOnLoad(NamedTuple):
    """What a caller that is loaded from disk needs: Numba keeps it with the code and calls it before."""

    module: str
    name: str
    arguments: tuple[Any, ...]
    result: Any

    def __call__(self) -> None:
        if getattr(import_module(self.module), self.name).link(self.arguments) != self.result:
            raise RuntimeError(f"{self.module}.{self.name} has changed: delete Numba's cache")


def _decorator(kind: type[Kernel], **options: bool) -> Callable[[F], F]:
    """Makes functions kernels of one kind, with these options of Numba."""
    return lambda function: function if config.DISABLE_JIT else kind(function, options)  # type: ignore


#: A kernel.
kernel = _decorator(Kernel, cache=CACHE, _nrt=True)

#: One that makes no arrays and does not count who holds those it gets, which takes longer than small work. It
#: must not call a kernel that returns arrays: nobody would free them, and Numba does not tell.
kernel_norefcount = _decorator(Kernel, cache=CACHE, _nrt=False)

#: The same, for kernels alone to call: nothing is compiled for a call from Python.
kernel_internal = _decorator(Kernel, cache=CACHE, _nrt=False, no_cpython_wrapper=True)

#: A piece of a kernel, compiled into it, so that the loop around it can be vectorised; it makes no arrays.
#: Not kept on disk: the kernel is, with all the addresses that its pieces need.
inline = _decorator(InlinedKernel, forceinline=True, _nrt=False, no_cpython_wrapper=True)


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
