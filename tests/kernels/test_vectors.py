"""Vectors of compiled code against the same in NumPy, which is what they are without the compiler."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastlbm.kernels._jit import kernel
from fastlbm.kernels.arithmetic import fma
from fastlbm.kernels.vectors import (
    WIDTH,
    absolute,
    at_least,
    line_of,
    load,
    load_first,
    pick,
    put,
    read,
    root,
    signed_as,
    store,
    store_first,
    where_above,
    write,
    zeros,
)


@kernel
def everything(x, j, count, number, out):  # type: ignore[no-untyped-def]
    """Each operation once, into the rows of out."""
    a, b = load(x, 0, j), load(x, 1, j)
    part = load_first(x, 2, j, count)
    total = zeros()
    for i in range(x.shape[0]):
        total += read(x, i, j, count)
    store(out, 0, 1, a + b * number - number / at_least(b, 0.5))
    store(out, 1, 1, fma(a, number, part) + fma(number, number, b) - fma(a, b, total))
    store(out, 2, 1, signed_as(a, b) * -part)
    store(out, 3, 1, where_above(a, number, root(absolute(b)), part))
    store_first(out, 4, 1, count, total)
    write(out, 5, 1, count, a / number)
    a -= number
    a *= b
    a /= at_least(absolute(total), 1.0)
    store(out, 6, 1, a)


@pytest.mark.nojit
@given(seed=st.integers(0, 10**6), j=st.integers(0, 3), count=st.integers(1, WIDTH + 2))
def test_compiled_vectors_are_those_of_numpy(seed: int, j: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    x, number = rng.standard_normal((3, WIDTH + 3)), float(rng.standard_normal())
    x[:, :2] = rng.choice([0.0, -0.0, 1.0], (3, 2))
    first = min(count, WIDTH)
    found, wanted = np.full((7, WIDTH + 2), 7.0), np.full((7, WIDTH + 2), 7.0)
    function = getattr(everything, "__wrapped__", everything)
    everything(x, j, first, number, found)
    function(x, j, first, number, wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-13)
    # What is beyond a vector, or beyond its first numbers, is left alone.
    assert (found[:, [0, -1]] == 7.0).all()
    assert (found[4:6, 1 + first :] == 7.0).all()
    np.testing.assert_allclose(found[5, 1 : 1 + first], x[0, j : j + first] / number, rtol=1e-15)
    b, low = x[1, j : j + WIDTH], np.maximum(x[1, j : j + WIDTH], 0.5)
    np.testing.assert_allclose(
        found[0, 1:-1], x[0, j : j + WIDTH] + b * number - number / low, rtol=1e-12, atol=1e-13
    )


@kernel
def add_flat(x, i, j, k):  # type: ignore[no-untyped-def]
    """Vector k of a flat array becomes the sum of two others."""
    put(x, k, pick(x, i) + pick(x, j))


@pytest.mark.nojit
def test_vectors_of_flat_arrays() -> None:
    x = np.arange(5.0 * WIDTH)
    wanted = x.reshape(5, WIDTH).copy()
    wanted[2] = wanted[4] + wanted[1]
    add_flat(x, 4, 1, 2)
    np.testing.assert_array_equal(x.reshape(5, WIDTH), wanted)
    for first in range(WIDTH):
        rows = x[first : first + 2 * WIDTH].reshape(2, WIDTH)
        assert rows.reshape(-1)[line_of(rows) :].ctypes.data % (8 * WIDTH) == 0
