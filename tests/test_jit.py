"""How kernels call each other: by address, in one process and from the cache of another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import config

from fastlbm.kernels._jit import Kernel, inline, kernel, kernel_internal, kernel_norefcount

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs the compiler")


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


def test_literals_do_not_compile_a_kernel_once_more() -> None:
    both(1)
    assert isinstance(total, Kernel)
    assert len(total.compiled.overloads) == 1


def test_one_that_was_called_from_python_first_can_be_linked() -> None:
    @kernel
    def caller(x: np.ndarray) -> float:
        return total(x, 3)

    assert total(np.full(2, 2.0), 3) == 16.0
    assert caller(np.full(2, 2.0)) == 16.0


def test_parts_and_pieces_cannot_be_called_from_python() -> None:
    with pytest.raises(TypeError, match="grow is for kernels"):
        grow(np.zeros(2), 1.0)
    with pytest.raises(TypeError, match="twice is for kernels"):
        twice(1.0)


INNER = """
from fastlbm.kernels._jit import inline, kernel, kernel_internal

@kernel_internal
def value(x):
    return x + {shift}

@inline
def piece(x):
    return 2.0 * value(x)

@kernel
def alone(x):
    return piece(x)
"""
OUTER = """
from inner import piece
from fastlbm.kernels._jit import kernel

@kernel
def outer(x):
    return piece(x) + 1.0
"""


def in_process(folder: Path, code: str) -> list[str]:
    """What the code prints in a process whose cache is in the folder."""
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / "cache")}
    environment.pop("FASTLBM_CACHE", None)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_addresses_are_filled_in_when_code_comes_from_the_cache(tmp_path: Path) -> None:
    (tmp_path / "inner.py").write_text(INNER.format(shift=1.0))
    (tmp_path / "outer.py").write_text(OUTER)
    run = "import outer; print(outer.outer(1.0), sum(outer.outer.compiled.stats.cache_hits.values()))"
    # The piece is compiled into another kernel first, in a process of its own.
    assert in_process(tmp_path, "import inner; print(inner.alone(1.0))") == ["4.0"]
    assert in_process(tmp_path, run) == ["5.0", "0"]
    assert in_process(tmp_path, run) == ["5.0", "1"]
    # A kernel that has changed is compiled anew, whoever calls it.
    (tmp_path / "inner.py").write_text(INNER.format(shift=20.0))
    assert in_process(tmp_path, run) == ["43.0", "1"]
    # One whose result has another type is refused.
    (tmp_path / "inner.py").write_text(INNER.format(shift="1.0j"))
    with pytest.raises(subprocess.CalledProcessError) as error:
        in_process(tmp_path, run)
    assert "delete Numba's cache" in error.value.stderr
