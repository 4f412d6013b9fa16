"""Vectors in single precision, and sums and maxima of vectors, against the same in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastlbm.kernels._jit import kernel
from fastlbm.kernels.arithmetic import fma
from fastlbm.kernels.singles import (
    SINGLES,
    how_many_up_to,
    largest,
    line_of_singles,
    load_singles,
    running,
    single_at,
    single_rows,
    single_zeros,
    store_narrowed,
    store_singles,
)
from fastlbm.kernels.vectors import WIDTH, at_least, larger, load, root, store, total

pytestmark = pytest.mark.nojit


@kernel
def everything(x, j, number, out):  # type: ignore[no-untyped-def]
    """Each operation once, into the rows of out."""
    a, b = load_singles(x, 0, j), load_singles(x, 1, j)
    store_singles(out, 0, 1, a + b * number - number / at_least(b, 0.5))
    store_singles(out, 1, 1, fma(a, number, single_zeros()) + fma(number, b, a) - fma(a, b, number))
    store_singles(out, 2, 1, root(at_least(a, 0.0)) - larger(a, b))
    a += number
    a *= b
    a -= b
    a /= at_least(b, 1.0)
    store_singles(out, 3, 1, a)
    return total(a)


@given(seed=st.integers(0, 10**6), j=st.integers(0, 3))
def test_singles_are_those_of_numpy(seed: int, j: int) -> None:
    rng = np.random.default_rng(seed)
    x, number = rng.standard_normal((2, SINGLES + 3)).astype(np.float32), np.float32(rng.standard_normal())
    found = np.full((4, SINGLES + 2), 7.0, dtype=np.float32)
    whole = everything(x, j, number, found)
    a, b = x[:, j : j + SINGLES].astype(float)
    c = ((a + number) * b - b) / np.maximum(b, 1.0)
    wanted = [
        a + b * number - number / np.maximum(b, 0.5),
        a * number + number * b + a - (a * b + number),
        np.sqrt(np.maximum(a, 0.0)) - np.maximum(a, b),
        c,
    ]
    np.testing.assert_allclose(found[:, 1:-1], wanted, rtol=2e-5, atol=2e-5)
    assert (found[:, [0, -1]] == 7.0).all()
    assert whole == pytest.approx(c.sum(), rel=1e-4, abs=1e-4)


@kernel
def sums(x, out, narrow):  # type: ignore[no-untyped-def]
    """The larger numbers of two rows, in two precisions, and their sum."""
    a = larger(load(x, 0, 0), load(x, 1, 0))
    store(out, 0, 0, a)
    store_narrowed(narrow, 0, 1, a)
    return total(a)


@given(seed=st.integers(0, 10**6))
def test_sums_by_halves(seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((2, WIDTH))
    out, narrow = np.zeros((1, WIDTH)), np.full((1, WIDTH + 2), 7.0, dtype=np.float32)
    whole = sums(x, out, narrow)
    np.testing.assert_array_equal(out[0], x.max(0))
    np.testing.assert_array_equal(narrow[0], np.r_[7.0, x.max(0), 7.0].astype(np.float32))
    parts = x.max(0)
    while len(parts) > 1:
        parts = parts[: len(parts) // 2] + parts[len(parts) // 2 :]
    assert whole == parts[0]  # the very bits, in this order


@kernel
def sums_of_the_first(x, most, out):  # type: ignore[no-untyped-def]
    """Sums of the first numbers of a row, how many are not above `most`, and a number everywhere."""
    a = load_singles(x, 0, 1)
    store_singles(out, 0, 0, running(a))
    store_singles(out, 1, 0, single_at(x, 1, 2))
    return how_many_up_to(a, most), largest(a)


@given(seed=st.integers(0, 10**6))
def test_sums_of_the_first_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, out = rng.standard_normal((2, SINGLES + 1)).astype(np.float32), np.zeros((2, SINGLES), np.float32)
    most = rng.choice(x[0])
    count, top = sums_of_the_first(x, most, out)
    np.testing.assert_allclose(out[0], np.cumsum(x[0, 1:].astype(float)), rtol=0, atol=1e-5)
    np.testing.assert_array_equal(out[1], x[1, 2])
    assert count == (x[0, 1:] <= most).sum()
    assert top == x[0, 1:].max()


@kernel
def rows_of(rows, columns):  # type: ignore[no-untyped-def]
    x = single_rows(rows, columns)
    return x, line_of_singles(x.reshape(-1))


@pytest.mark.parametrize("shape", [(1, 1), (3, 32), (7, 5)])
def test_rows_begin_a_line_of_the_cache(shape: tuple[int, int]) -> None:
    for _ in range(5):
        x, first = rows_of(*shape)
        assert first == 0
        np.testing.assert_array_equal(x, np.zeros(shape))
        assert x.flags.c_contiguous
