"""The tridiagonal form of groups of matrices against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from fastlbm.kernels._jit import kernel
from fastlbm.kernels.tridiagonal import multiply, solve, to_tridiagonal, triangle, turn, turn_back
from fastlbm.kernels.vectors import WIDTH
from tests.naive import Array
from tests.problems import orthogonal

SHIFT = 0.75
TOLERANCE = 1e-14


@kernel
def fill(t, X, T, d):  # type: ignore[no-untyped-def]
    """The form of X; then, for five vectors behind T, H^T x, solutions, products, and H times all of them."""
    scratch, x = T + 3 * d, T + 4 * d
    to_tridiagonal(t, X, T, scratch, d)
    turn(t, X, T, x, d)
    solve(t, T, SHIFT, x, x + d, scratch, d)
    multiply(t, T, x, x + 2 * d, d)
    solve(t, T, 0.0, x + d, x + 3 * d, scratch, d)
    multiply(t, T, x + 2 * d, x + 4 * d, d)
    turn_back(t, X, T, x, 5, d)


def check(matrices: Array) -> None:
    """X, (X + s)^-1, X^-1 (X + s)^-1, X^2 times a vector of each group of matrices (WIDTH, d, d)."""
    d = matrices.shape[1]
    rng, T = np.random.default_rng(d), triangle(d)
    t = np.full((T + 9 * d, WIDTH), np.nan)
    upper = np.triu_indices(d)
    t[:T] = matrices[:, upper[0], upper[1]].T
    x = rng.standard_normal((WIDTH, d))
    t[T + 4 * d : T + 5 * d] = x.T
    fill(t, 0, T, d)
    inverse = np.linalg.inv(matrices + SHIFT * np.eye(d))
    one, two = np.einsum("wij,wj->wi", inverse, x), np.einsum("wij,wj->wi", matrices, x)
    wanted = (x, one, two, np.linalg.solve(matrices, one[..., None])[..., 0])
    for k, y in enumerate((*wanted, np.einsum("wij,wj->wi", matrices, two))):
        found, size = t[T + (4 + k) * d :][:d].T, np.abs(y).max(axis=1, keepdims=True)
        np.testing.assert_allclose(found / size, y / size, rtol=0.0, atol=200 * TOLERANCE)
    # The tridiagonal matrix has the same eigenvalues.
    for w in range(WIDTH):
        beside = t[T + d : T + 2 * d - 1, w]
        form = np.diag(t[T : T + d, w]) + np.diag(beside, 1) + np.diag(beside, -1)
        spectrum = np.linalg.eigvalsh(matrices[w])
        np.testing.assert_allclose(
            np.linalg.eigvalsh(form), spectrum, rtol=0.0, atol=10 * TOLERANCE * spectrum[-1]
        )


def with_spectra(spectra: Array, rng: np.random.Generator) -> Array:
    d = spectra.shape[1]
    made = [(Q * lam) @ Q.T for Q, lam in ((orthogonal(d, rng), lam) for lam in spectra)]
    return np.array([0.5 * (X + X.T) for X in made])


@pytest.mark.nojit
@pytest.mark.parametrize("d", [3, 4, 5, 6, 7, 8, 9, 12])
def test_random_matrices(d: int) -> None:
    rng = np.random.default_rng(d)
    check(with_spectra(rng.uniform(0.5, 6.0, (WIDTH, d)), rng))


@pytest.mark.parametrize("d", [*range(13, 21), 33])
def test_larger_matrices(d: int) -> None:
    rng = np.random.default_rng(d)
    check(with_spectra(rng.uniform(0.1, 20.0, (WIDTH, d)), rng))


@pytest.mark.nojit
def test_hard_matrices() -> None:
    """Nothing to reflect, few directions, equal eigenvalues, and columns whose squares underflow."""
    d, rng = 9, np.random.default_rng(0)
    eye, x = np.eye(d), rng.standard_normal(d)
    tiny = eye.copy()
    tiny[0, 1:] = tiny[1:, 0] = 1e-150
    smaller = eye.copy()
    smaller[0, 1:] = smaller[1:, 0] = 1e-139
    sparse = eye.copy()
    sparse[0, -1] = sparse[-1, 0] = -0.5
    lam = np.where(np.arange(d) < 4, 1.0, 2.0)
    check(
        np.array(
            [
                eye,
                np.diag(np.arange(1.0, d + 1)),
                eye + np.outer(x, x),
                tiny,
                smaller,
                sparse,
                with_spectra(lam[None], rng)[0],
                eye + 1e-14 * (np.outer(x, x) + np.diag(x)),
            ]
        )
    )
