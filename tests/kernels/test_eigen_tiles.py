"""The eigensolver of the kernels against NumPy and mpmath."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fastlbm.kernels.eigen_tiles import LAPACK_FROM, TILE, spectra
from tests.naive import Array
from tests.problems import orthogonal

TOLERANCE = 1e-14
SIZES = (*range(1, 21), 50)
COUNTS = (1, 2, 3, 7, 8, 31, 40, TILE - 1, TILE)


def fill(matrices: Array) -> tuple[Array, int, int]:
    """A tile with the matrices (W, k, k) in its first rows, NaN elsewhere; the rows of lam and Q."""
    W, k, _ = matrices.shape
    tile = np.full((2 * k * k + k, TILE), np.nan)
    tile[: k * k, :W] = matrices.reshape(W, k * k).T
    return tile, k * k, k * k + k


def solve(matrices: Array) -> tuple[Array, Array]:
    """Eigenvalues (W, k) and eigenvectors (W, k, k), in columns, of symmetric matrices (W, k, k)."""
    W, k, _ = matrices.shape
    tile, lam, Q = fill(matrices)
    spectra(tile, 0, lam, Q, k, W)
    return tile[lam:Q, :W].T, tile[Q:, :W].T.reshape(W, k, k)


def check(matrices: Array) -> None:
    """Orthogonality, reconstruction and eigenvalues, each matrix relative to its own norm."""
    lam, Q = solve(matrices)
    k = matrices.shape[1]
    # A unit of magnitude 1 per matrix, so that the checks themselves neither overflow nor underflow.
    unit = np.abs(matrices).max(axis=(1, 2))
    unit[unit == 0.0] = 1.0
    A, lam = matrices / unit[:, None, None], lam / unit[:, None]
    norm = np.maximum(np.linalg.norm(A, axis=(1, 2)), 1e-300)
    np.testing.assert_allclose(
        Q.transpose(0, 2, 1) @ Q, np.broadcast_to(np.eye(k), A.shape), rtol=0, atol=TOLERANCE
    )
    residual = (Q * lam[:, None, :]) @ Q.transpose(0, 2, 1) - A
    assert (np.linalg.norm(residual, axis=(1, 2)) / norm).max() <= TOLERANCE
    difference = np.sort(lam, axis=1) - np.linalg.eigvalsh(A)
    assert (np.abs(difference).max(axis=1) / norm).max() <= TOLERANCE


def symmetric(W: int, k: int, rng: np.random.Generator) -> Array:
    A = rng.normal(size=(W, k, k))
    return A + A.transpose(0, 2, 1)


def with_spectrum(lam: Array, rng: np.random.Generator) -> Array:
    """One matrix with the eigenvalues lam (k,), (1, k, k)."""
    Q = orthogonal(len(lam), rng)
    A = (Q * lam) @ Q.T
    return (0.5 * (A + A.T))[None]


@pytest.mark.parametrize("k", SIZES)
def test_random(k: int) -> None:
    rng = np.random.default_rng(k)
    W = COUNTS[k % len(COUNTS)]
    check(symmetric(W, k, rng))
    U = rng.normal(size=(W, k, k + 2))
    check(np.eye(k) + U @ U.transpose(0, 2, 1))


@pytest.mark.parametrize("W", range(1, 41))
def test_any_number_of_windows(W: int) -> None:
    check(symmetric(W, 1 + W % 5, np.random.default_rng(W)))


@pytest.mark.nojit
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_random_small(k: int) -> None:
    check(symmetric(3, k, np.random.default_rng(k)))


@pytest.mark.nojit
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_fifty_digits(k: int) -> None:
    A = symmetric(2, k, np.random.default_rng(k))
    lam, _ = solve(A)
    for window, values in zip(A, lam, strict=True):
        with mp.workdps(50):
            exact = mp.eigsy(mp.matrix(window.tolist()), eigvals_only=True)
            reference = np.sort([float(x) for x in exact])
        np.testing.assert_allclose(
            np.sort(values), reference, rtol=0, atol=TOLERANCE * np.linalg.norm(window)
        )


@pytest.mark.nojit
@pytest.mark.parametrize("k", [1, 2, 3, 6, 21])
def test_diagonal_is_exact(k: int) -> None:
    values = np.random.default_rng(k).normal(size=(4, k))
    values[1] = 1.0
    values[2] = 0.0
    lam, Q = solve(values[:, :, None] * np.eye(k))
    np.testing.assert_array_equal(np.sort(lam, axis=1), np.sort(values, axis=1))
    np.testing.assert_array_equal(np.sort(np.abs(Q), axis=1)[:, :-1], np.zeros((4, k - 1, k)))


@pytest.mark.nojit
def test_two_by_two_by_hand() -> None:
    lam, Q = solve(np.array([[[2.0, 1.0], [1.0, 2.0]], [[0.0, 3.0], [3.0, 0.0]]]))
    np.testing.assert_allclose(np.sort(lam, axis=1), [[1.0, 3.0], [-3.0, 3.0]], rtol=1e-15)
    np.testing.assert_allclose(np.abs(Q), np.full((2, 2, 2), np.sqrt(0.5)), rtol=1e-15)


@pytest.mark.parametrize("k", [2, 3, 5, 8, 20, 50])
def test_equal_eigenvalues(k: int) -> None:
    rng = np.random.default_rng(k)
    for several in (1, k // 2, k - 1, k):
        check(with_spectrum(np.where(np.arange(k) < several, 1.0, 2.5), rng))


@pytest.mark.nojit
def test_equal_eigenvalues_of_many_matrices() -> None:
    # One at a time: the sweeps that a neighbour needs would hide a stop that comes too early.
    for seed in range(40):
        rng = np.random.default_rng(seed)
        k = 3 + seed % 6
        check(with_spectrum(np.where(np.arange(k) < rng.integers(1, k), 1.0, 2.5), rng))


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 1e-17])
@pytest.mark.parametrize("k", [2, 3, 5, 8, 20, 50])
def test_tiny_gaps(k: int, gap: float) -> None:
    rng = np.random.default_rng(k)
    check(with_spectrum(1.0 + gap * np.arange(k), rng))
    check(with_spectrum(np.where(np.arange(k) < 2, 1.0 + gap * np.arange(k), 3.0 + np.arange(k)), rng))
    check(np.eye(k)[None] + gap * symmetric(3, k, rng))


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 20, 50])
def test_rank_one_and_zero(k: int) -> None:
    u = np.random.default_rng(k).normal(size=(5, k))
    u[1] = 0.0
    u[2, 1:] = 0.0
    u[3] = 1.0
    check(u[:, :, None] * u[:, None, :])


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e-30, 1e-8, 1e8, 1e30, 1e100, 1e150])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 20])
def test_scale(k: int, scale: float) -> None:
    check(scale * symmetric(5, k, np.random.default_rng(k)))


@pytest.mark.parametrize("k", [2, 3, 5, 8, 20])
def test_neighbours_of_other_scales(k: int) -> None:
    A = symmetric(40, k, np.random.default_rng(k))
    check(A * np.logspace(-150, 150, 40)[:, None, None])


@pytest.mark.parametrize("decades", [1, 8, 75])
@pytest.mark.parametrize("k", [2, 3, 5, 8, 20])
def test_graded(k: int, decades: int) -> None:
    grade = np.logspace(-decades, decades, k)
    check(grade[:, None] * symmetric(4, k, np.random.default_rng(k)) * grade)


@pytest.mark.nojit
def test_a_window_does_not_depend_on_its_neighbours() -> None:
    A = symmetric(5, 3, np.random.default_rng(0))
    A[1] = np.diag([1.0, 2.0, 3.0])
    A[3] *= 1e20
    lam, Q = solve(A)
    for w in range(5):
        alone, vectors = solve(A[w : w + 1])
        # A slower neighbour may add a sweep of rounding.
        np.testing.assert_allclose(
            np.sort(lam[w]), np.sort(alone[0]), rtol=0, atol=TOLERANCE * np.linalg.norm(A[w])
        )
        np.testing.assert_allclose(np.abs(Q[w]), np.abs(vectors[0]), rtol=0, atol=1e-12)


@pytest.mark.nojit
@pytest.mark.parametrize("k", [1, 3, LAPACK_FROM])
def test_only_the_given_windows_are_written(k: int) -> None:
    tile, lam, Q = fill(symmetric(5, k, np.random.default_rng(k)))
    before = tile.copy()
    spectra(tile, 0, lam, Q, k, 3)
    np.testing.assert_array_equal(tile[:, 3:], before[:, 3:])
    trace = before[: k * k : k + 1, :3].sum(axis=0)
    np.testing.assert_allclose(tile[lam:Q, :3].sum(axis=0), trace, atol=1e-13)


@pytest.mark.nojit
@pytest.mark.parametrize("k", [2, 4, LAPACK_FROM])
def test_only_the_upper_triangle_is_read(k: int) -> None:
    A = symmetric(3, k, np.random.default_rng(k))
    expected = solve(A)
    upper = np.triu(A) + np.tril(np.full((k, k), np.nan), -1)
    for result, reference in zip(solve(upper), expected, strict=True):
        np.testing.assert_array_equal(result, reference)


# Squares of smaller numbers underflow; `test_scale` says how far the solver goes.
entries = st.floats(-1.0, 1.0).map(lambda x: x if abs(x) > 1e-100 else 0.0)


@pytest.mark.nojit
@settings(max_examples=80)
@given(A=st.integers(1, 4).flatmap(lambda k: arrays(np.float64, (2, k, k), elements=entries)))
def test_any_entries(A: Array) -> None:
    check(0.5 * (A + A.transpose(0, 2, 1)))
