"""The tridiagonal form of groups of matrices against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from fastlbm.kernels._jit import kernel
from fastlbm.kernels.triangles import triangle
from fastlbm.kernels.tridiagonal import (
    multiply,
    pivots,
    solve,
    to_tridiagonal,
    turn,
    turn_back,
    turn_matrix_back,
)
from fastlbm.kernels.vectors import WIDTH, pick, put
from tests.naive import Array
from tests.problems import orthogonal

SHIFT = 0.75
TOLERANCE = 1e-14


@kernel
def fill(t, s, T, d):  # type: ignore[no-untyped-def]
    """The form of X; then, for six vectors behind the scratch, H^T x, solutions, products, and H times them.

    Last of all, H M H^T for the matrices M in front of the scratch.
    """
    w, inverses = T, T + 3 * d
    x = w + 2 * d
    to_tridiagonal(t, 0, T, s, w, x, d)
    pivots(t, T, np.array([SHIFT]), 2, inverses, d)
    solve(t, T, inverses, s, x, s, x + d, 1.0, d)
    multiply(t, T, s, x, s, x + 2 * d, d)
    solve(t, T, inverses + d, s, x + d, s, x + 3 * d, 2.0, d)
    multiply(t, T, s, x + 2 * d, s, x + 4 * d, d)
    for k in range(5):
        turn_back(t, 0, T, s, x + k * d, d)
    for i in range(d):
        put(s, x + 5 * d + i, pick(s, x + i))
    turn(t, 0, T, s, x + 5 * d, d)
    turn_matrix_back(t, 0, T, s, 0, w, x + 5 * d, d)


def check(matrices: Array) -> None:
    """X, (X + s)^-1, X^-1 (X + s)^-1, X^2 times a vector of each group of matrices (WIDTH, d, d)."""
    d = matrices.shape[1]
    rng, T = np.random.default_rng(d), triangle(d)
    upper = np.triu_indices(d)
    t, s = np.full((T + 5 * d, WIDTH), np.nan), np.full((T + 8 * d, WIDTH), np.nan)
    t[:T] = matrices[:, upper[0], upper[1]].T
    x, others = rng.standard_normal((WIDTH, d)), rng.standard_normal((WIDTH, d, d))
    others += others.transpose(0, 2, 1)
    s[:T] = others[:, upper[0], upper[1]].T
    s[T + 2 * d : T + 3 * d] = x.T
    fill(t.reshape(-1), s.reshape(-1), T, d)
    inverse = np.linalg.inv(matrices + SHIFT * np.eye(d))
    one, two = np.einsum("wij,wj->wi", inverse, x), np.einsum("wij,wj->wi", matrices, x)
    wanted = (x, one, two, 2.0 * np.linalg.solve(matrices, one[..., None])[..., 0])
    for k, y in enumerate((*wanted, np.einsum("wij,wj->wi", matrices, two), x)):
        found, size = s[T + (2 + k) * d :][:d].T, np.abs(y).max(axis=1, keepdims=True)
        np.testing.assert_allclose(found / size, y / size, rtol=0.0, atol=200 * TOLERANCE)
    check_matrix_back(matrices, t, others, s[:T])
    # The tridiagonal matrix has the same eigenvalues.
    for w in range(WIDTH):
        beside = t[T + d : T + 2 * d - 1, w]
        form = np.diag(t[T : T + d, w]) + np.diag(beside, 1) + np.diag(beside, -1)
        spectrum = np.linalg.eigvalsh(matrices[w])
        np.testing.assert_allclose(
            np.linalg.eigvalsh(form), spectrum, rtol=0.0, atol=10 * TOLERANCE * spectrum[-1]
        )


def check_matrix_back(matrices: Array, t: Array, others: Array, found: Array) -> None:
    """H M H^T with H made of the reflections."""
    d = matrices.shape[1]
    upper, T = np.triu_indices(d), triangle(d)
    for w in range(WIDTH):
        v = np.zeros((d, d))
        v[upper] = t[:T, w]
        H = np.eye(d)
        for k in range(d - 2):
            H = H @ (np.eye(d) - t[T + 2 * d + k, w] * np.outer(v[k], v[k]))
        wanted = H @ others[w] @ H.T
        np.testing.assert_allclose(found[:, w], wanted[upper], rtol=0.0, atol=100 * TOLERANCE)


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
