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
    number_at,
    pick,
    put,
    read,
    root,
    rows_of_lines,
    signed_as,
    store,
    store_first,
    totals,
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


@kernel
def sums_of_many(x, i, out):  # type: ignore[no-untyped-def]
    """The sums of vectors from number i on, and one number everywhere."""
    put(out, 0, totals(x, i))
    put(out, 1, number_at(x.reshape(-1, 2), 3, 1))


@pytest.mark.nojit
@given(seed=st.integers(0, 10**6), i=st.integers(0, 2))
def test_sums_of_many_vectors(seed: int, i: int) -> None:
    x, out = np.random.default_rng(seed).standard_normal((WIDTH + 2) * WIDTH), np.zeros(2 * WIDTH)
    sums_of_many(x, i, out)
    rows = x.reshape(-1, WIDTH)[i : i + WIDTH]
    np.testing.assert_array_equal(out[:WIDTH], [sum_by_halves(row) for row in rows])
    np.testing.assert_array_equal(out[WIDTH:], x[7])


def sum_by_halves(x: np.ndarray) -> float:
    while len(x) > 1:
        x = x[: len(x) // 2] + x[len(x) // 2 :]
    return float(x[0])


@kernel
def many_rows(rows, columns):  # type: ignore[no-untyped-def]
    x = rows_of_lines(rows, columns)
    return x, line_of(x.reshape(-1))


@pytest.mark.nojit
@pytest.mark.parametrize("shape", [(1, 1), (3, 16), (7, 5)])
def test_rows_begin_a_line_of_the_cache(shape: tuple[int, int]) -> None:
    x, first = many_rows(*shape)
    assert first == 0
    np.testing.assert_array_equal(x, np.zeros(shape))
