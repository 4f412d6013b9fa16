"""Calls by address: owns how kernels reach each other, and what of Numba's internals that takes.

Numba links a function into each of its callers and optimises it there once more, with all that it calls, so
that every level of calls adds to the time of the first run. The caller of a kernel knows a symbol only. It
gets its address when the caller is compiled, and again when that is loaded from disk.

`FASTLBM_LINK=0` in the environment leaves the calls to Numba, as does a Numba in which something is missing:
the same numbers, but more to compile.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, update_wrapper
from importlib import import_module
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import binding
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, type_callable

from . import _together
from ._probe import absent, is_tested

# Numba's stubs know less than what is used here.
_build: Any = cgutils
_anything: Any = types.VarArg(types.Any)  # type: ignore[no-untyped-call]


@cache
def why_off() -> str | None:
    """Why kernels do not call each other by address; None if they do."""
    if os.environ.get("FASTLBM_LINK", "1") == "0":
        return "FASTLBM_LINK=0"
    missing = absent(
        "llvmlite.binding:add_symbol",
        "numba.core.base:BaseContext.enable_nrt",
        "numba.core.base:BaseContext.active_code_library",
        "numba.core.callconv:CPUCallConv.call_function",
        "numba.core.callconv:CPUCallConv.get_function_type",
        "numba.core.callconv:CPUCallConv.return_status_propagate",
        "numba.core.cgutils:get_or_insert_function",
        "numba.core.cgutils:if_unlikely",
        "numba.core.codegen:JITCodeLibrary.get_pointer_to_function",
        "numba.core.datamodel.models:DataModel.contains_nrt_meminfo",
        "numba.core.dispatcher:Dispatcher.add_overload",
        "numba.core.errors:LoweringError",
        "numba.core.options:DefaultOptions._nrt",
        "numba.core.options:DefaultOptions.forceinline",
        "numba.core.options:DefaultOptions.no_cfunc_wrapper",
        "numba.core.options:DefaultOptions.no_cpython_wrapper",
    )
    if missing is not None:
        return f"Numba {numba.__version__} has no {missing}"
    if not is_tested():
        try:
            _try_out()
        except Exception as problem:
            return f"a trial with Numba {numba.__version__} failed: {type(problem).__name__}: {problem}"
    return None


class Kernel:
    """A function that is compiled at its first call and called by its address.

    Kernels raise no exceptions: Numba would leak the arrays of the callers.
    """

    __qualname__: str

    def __init__(self, compiled: Any) -> None:
        function = compiled.py_func
        update_wrapper(self, function)
        self.compiled = compiled
        self._linked: dict[tuple[Any, ...], Any] = {}
        if not compiled.targetoptions["_nrt"]:
            compiled.add_overload = self._add_overload
        # Inside of compiled code: the type of a call, by the signature of the function, and the call.
        type_callable(self)(lambda _: update_wrapper(self._result, function))
        lower_builtin(self, _anything)(self._call)  # type: ignore[no-untyped-call]

    def __call__(self, *arguments: Any) -> Any:
        if self.compiled.targetoptions.get("no_cpython_wrapper", False):
            raise TypeError(f"{self.__qualname__} is for kernels to call")
        try:
            return self.compiled(*arguments)
        except BaseException:  # kernels raise none: it was being compiled
            _together.release_all()
            raise

    def __reduce__(self) -> str:
        return self.__qualname__  # pickled by name, like a function

    def link(self, arguments: tuple[Any, ...]) -> Any:
        """The type of the result for arguments of these types; the symbol has an address afterwards."""
        if arguments not in self._linked:
            self.compiled.compile(arguments)
            found = self.compiled.overloads[arguments]
            address = found.library.get_pointer_to_function(found.fndesc.llvm_func_name)
            binding.add_symbol(self._symbol(arguments), address)
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
        library = context.active_code_library
        if not context.enable_nrt and _is_counted(context, result):
            raise _error(
                f"{library.name} does not count references and must not call {self.__qualname__}: nobody "
                f"would free the arrays in its result, {result}."
            )
        declared = convention.get_function_type(result, kinds)
        callee = _build.get_or_insert_function(builder.module, declared, self._symbol(kinds))
        status, value = convention.call_function(builder, callee, result, kinds, arguments)
        with _build.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        library._reload_init.add(RelinkOnLoad(self.__module__, self.__qualname__, kinds, result))
        return value

    def _add_overload(self, found: Any) -> None:
        """Numba's, for a kernel that counts no references: its caller would free what it does not own."""
        if _is_counted(found.target_context, found.signature.return_type):
            raise _error(
                f"{self.__qualname__} does not count references and must not return arrays, "
                f"got {found.signature.return_type}."
            )
        type(self.compiled).add_overload(self.compiled, found)


class InlinedKernel(Kernel):
    """A function that is linked into its callers after all, as Numba does it; in Python it is just that."""

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
        """Give the callee's symbol its address; after an exception the caller is compiled again."""
        if getattr(import_module(self.module), self.name).link(self.arguments) != self.result:
            raise TypeError(f"{self.module}.{self.name} has a result of another type")


def _is_counted(context: Any, result: Any) -> bool:
    """Whether values of this type hold references that somebody must count."""
    return bool(context.data_model_manager[result].contains_nrt_meminfo())


def _error(text: str) -> Exception:
    from numba.core.errors import LoweringError

    return LoweringError(text)


def _try_out() -> None:
    """Call a small kernel by address, with arrays and an error; an exception says what went wrong."""
    make: Any = numba.njit

    def callee(x, n):  # type: ignore[no-untyped-def]
        if n > 2:
            raise OverflowError
        values = np.empty(n)
        values[:] = x
        return values, n

    inner = Kernel(make(_nrt=True, no_cfunc_wrapper=True)(callee))

    @make(_nrt=True, no_cfunc_wrapper=True)
    def caller(x, n):  # type: ignore[no-untyped-def]
        values, count = inner(x, n)
        return values[count - 1] + count

    if caller(0.5, 2) != 2.5:
        raise ValueError("a call by address has another result")
    (found,) = caller.overloads.values()
    if not any(isinstance(step, RelinkOnLoad) for step in found.reload_init):
        raise ValueError("a caller does not remember whom it calls")
    try:
        caller(0.5, 3)
    except OverflowError:
        return
    raise ValueError("an error does not reach the caller")
