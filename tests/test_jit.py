"""How kernels are compiled and call each other, in one process; `test_cache` has those of several."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numba import config
from numba.core.errors import NumbaError

from fastlbm.kernels import _link, _probe
from fastlbm.kernels._jit import LINKED, dispatcher_of, inline, kernel, kernel_internal, kernel_norefcount
from fastlbm.kernels.arithmetic import dot2, fma

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs the compiler")
needs_link = pytest.mark.skipif(not LINKED, reason="is about calls by address")


@kernel_internal
def grow(x: np.ndarray, by: float) -> None:
    for i in range(x.shape[0]):
        x[i] += by


@inline
def twice(x: float) -> float:
    return 2.0 * x


@kernel
def make(n: int) -> np.ndarray:
    if n > 100:
        raise ValueError("too long")
    return np.zeros(n)


@kernel_norefcount
def total(x: np.ndarray, power: int) -> float:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] ** power
    return s


@kernel
def both(n: int) -> float:
    x = make(n)
    for _ in range(1000):
        x = make(n)
        grow(x, twice(1.0))
    return total(x, 1) + total(x, 2)


def test_a_kernel_calls_another_and_gets_its_result() -> None:
    assert both(3) == 3 * 2.0 + 3 * 4.0


def test_an_error_reaches_the_caller() -> None:
    with pytest.raises(ValueError, match="too long"):
        both(101)


@needs_link
def test_literals_do_not_compile_a_kernel_once_more() -> None:
    both(1)
    assert len(dispatcher_of(total).overloads) == 1


def test_one_that_was_called_from_python_first_can_be_linked() -> None:
    @kernel
    def caller(x: np.ndarray) -> float:
        return total(x, 3)

    assert total(np.full(2, 2.0), 3) == 16.0
    assert caller(np.full(2, 2.0)) == 16.0


@needs_link
def test_internal_kernels_cannot_be_called_from_python() -> None:
    with pytest.raises(TypeError, match="grow is for kernels"):
        grow(np.zeros(2), 1.0)


@inline
def kind(x: object) -> str:
    return type(x).__name__


def test_an_inlined_kernel_is_a_python_function_in_python() -> None:
    assert kind(3) == "int"  # Numba could not compile it


@needs_link
def test_one_without_reference_counts_cannot_take_arrays_from_another() -> None:
    @kernel_norefcount
    def leaking(n: int) -> float:
        return make(n)[0]

    with pytest.raises(NumbaError, match=r"leaking does not count references .* call make"):
        leaking(3)


@needs_link
def test_one_without_reference_counts_cannot_return_arrays() -> None:
    @kernel_norefcount
    def lending(x: np.ndarray) -> np.ndarray:
        return x

    @kernel
    def borrowing(x: np.ndarray) -> float:
        return lending(x)[0]

    for caller in (lending, borrowing):
        with pytest.raises(NumbaError, match=r"lending does not count .* must not return arrays"):
            caller(np.zeros(2))


def test_fused_products_round_once_in_compiled_code() -> None:
    @kernel
    def rest(x: float) -> float:
        return fma(x, x, -x * x)

    assert rest(1.0 + 2.0**-30) == 2.0**-60
    assert dot2(1.0, 2.0, 3.0, 4.0) == 14.0  # in Python


@needs_link
def test_an_untested_numba_must_pass_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ValueError("other bits")

    monkeypatch.setattr(_link, "is_tested", lambda: False)
    assert _link.why_off.__wrapped__() is None
    monkeypatch.setattr(_link, "_try_out", fail)
    assert "failed: ValueError: other bits" in _link.why_off.__wrapped__()


def test_what_numba_lacks_is_named() -> None:
    assert _probe.absent("numba:njit", "numba.core.caching:Cache.load_overload") is None
    assert _probe.absent("numba:njit", "numba:njit.warp") == "numba.njit.warp"
    assert _probe.absent("numba.warp:drive") == "numba.warp.drive"


@pytest.mark.parametrize(
    ("version", "tested"),
    [("0.62.1", False), ("0.63.0rc1", True), ("0.68.9", True), ("0.69.0dev0+3", False), ("1.0", False)],
)
def test_versions_beyond_those_tested_are_told(
    version: str, tested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba, "__version__", version)
    assert _probe.is_tested() == tested
