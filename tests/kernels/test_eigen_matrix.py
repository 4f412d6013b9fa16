"""The spectrum of one small matrix."""

from __future__ import annotations

import numpy as np
import pytest

from fastlbm.kernels.eigen_matrix import eigen
from fastlbm.kernels.eigen_tiles import LAPACK_FROM
from tests import problems
from tests.naive import Array


def check_eigen(A: Array) -> None:
    """Orthogonality, reconstruction and eigenvalues, relative to the norm of A."""
    k = len(A)
    work, Q = A.copy(), np.full((k, k), np.nan)
    eigen(work, Q)
    lam = np.diag(work)
    largest = np.abs(A).max() or 1.0
    norm = np.linalg.norm(A / largest) or 1.0
    np.testing.assert_allclose(Q.T @ Q, np.eye(k), rtol=0, atol=1e-14)
    np.testing.assert_allclose((Q * (lam / largest)) @ Q.T, A / largest, rtol=0, atol=1e-14 * norm)
    np.testing.assert_allclose(
        np.sort(lam / largest), np.linalg.eigvalsh(A / largest), rtol=0, atol=1e-14 * norm
    )


def with_spectrum(lam: Array, seed: int = 0) -> Array:
    Q = problems.orthogonal(len(lam), np.random.default_rng([seed, len(lam)]))
    A = (Q * lam) @ Q.T
    return 0.5 * (A + A.T)


@pytest.mark.nojit
@pytest.mark.parametrize("k", range(1, 15))
def test_eigen(k: int) -> None:
    rng = np.random.default_rng(k)
    for _ in range(5):
        X = rng.normal(size=(k, k))
        check_eigen(X + X.T)
        check_eigen(np.eye(k) + X @ X.T)


@pytest.mark.nojit
@pytest.mark.parametrize("k", range(1, 15))
def test_eigen_of_clusters_and_zeros(k: int) -> None:
    check_eigen(np.zeros((k, k)))
    check_eigen(np.eye(k))
    check_eigen(np.ones((k, k)))
    check_eigen(np.ones((k, k)) - np.eye(k))
    check_eigen(np.diag(np.arange(k) - 1.0))
    for several in range(k):
        check_eigen(with_spectrum(np.where(np.arange(k) < several, 1.0, 2.5)))
        check_eigen(with_spectrum(np.where(np.arange(k) < several, 0.0, 1.0)))
    for gap in (1e-4, 1e-8, 1e-12, 1e-15, 1e-17):
        check_eigen(with_spectrum(1.0 + gap * np.arange(k)))
        check_eigen(with_spectrum(gap * np.arange(k) + (np.arange(k) > k // 2)))


@pytest.mark.nojit
@pytest.mark.parametrize("scale", [1e-290, 1e-160, 1e-120, 1e-30, 1e30, 1e120, 1e250])
@pytest.mark.parametrize("k", [1, 2, 3, 7, LAPACK_FROM])
def test_eigen_of_other_scales(k: int, scale: float) -> None:
    X = np.random.default_rng(k).normal(size=(k, k))
    check_eigen(scale * (X + X.T))
    grade = np.logspace(-8, 8, k)
    check_eigen(grade[:, None] * (X + X.T) * grade)


@pytest.mark.nojit
@pytest.mark.parametrize("k", [1, 2, 5, 11])
def test_eigen_of_a_diagonal_is_exact(k: int) -> None:
    values = np.random.default_rng(k).normal(size=k)
    A, Q = np.diag(values), np.empty((k, k))
    eigen(A, Q)
    np.testing.assert_array_equal(np.diag(A), values)
    np.testing.assert_array_equal(Q, np.eye(k))
