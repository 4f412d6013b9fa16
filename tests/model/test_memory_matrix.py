"""The memory matrix: its power, the bound of its powers, and the check of A0."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastlbm.model.lbm import LBM
from fastlbm.model.memory_matrix import check_memory_matrix, matrix_power, power_bound
from tests import naive, problems

pytestmark = pytest.mark.nojit


@given(
    d=st.integers(1, 5), gamma=st.sampled_from([-3.0, -0.5, 0.0, 0.7, 2.0]), seed=st.integers(0, 2**32 - 1)
)
def test_a_power_is_that_of_the_eigenvalues(d: int, gamma: float, seed: int) -> None:
    X = naive.memory_matrix(problems.ball(4, d, np.random.default_rng(seed)), None)
    np.testing.assert_allclose(matrix_power(X, gamma), naive.power(X, gamma), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(matrix_power(X, gamma) @ matrix_power(X, -gamma), np.eye(d), atol=1e-11)


def test_a_singular_matrix_may_have_a_tiny_negative_eigenvalue() -> None:
    direction = np.array([0.6, 0.8])
    X = np.outer(direction, direction)
    power = matrix_power(X - 1e-17 * np.eye(2), 0.5)
    assert np.isfinite(power).all()
    np.testing.assert_allclose(power, X, atol=1e-8)


@given(m=st.integers(0, 6), gamma=st.sampled_from([-2.0, -0.5, 0.0, 0.5, 2.0]), seed=st.integers(0, 1000))
def test_no_power_is_larger_than_its_bound(m: int, gamma: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A0 = 0.3 * np.eye(3) + np.diag(rng.random(3))
    matrix, bound = check_memory_matrix(A0, 3, m, gamma)
    power = matrix_power(naive.memory_matrix(problems.ball(m, 3, rng), matrix), gamma)
    assert np.linalg.norm(power, 2) <= bound * (1.0 + 1e-12)
    assert bound == LBM([1.0, 0.0, 0.0], m=m, gamma=gamma, A0=A0).power_bound


def test_bounds_in_closed_form() -> None:
    assert power_bound(1.0, 1.0, 3, 2.0) == 16.0
    assert power_bound(0.5, 2.0, 3, -2.0) == 4.0
    assert power_bound(0.0, 0.0, 0, 2.0) == 0.0
    assert power_bound(1.0, 1.0, math.inf, 0.5) == math.inf
    assert power_bound(1.0, 1.0, math.inf, -0.5) == 1.0
    assert power_bound(0.1, 5.0, math.inf, 0.0) == 1.0
    with pytest.raises(ValueError, match=r"^gamma must keep the powers of the memory matrix below 1e130"):
        power_bound(1.0, 1.0, 9, 200.0)


def test_the_identity_is_the_default() -> None:
    matrix, bound = check_memory_matrix(None, 3, 2, 1.0)
    np.testing.assert_array_equal(matrix, np.eye(3))
    assert bound == 3.0


@pytest.mark.parametrize(
    ("A0", "gamma", "differentiable", "message"),
    [
        (np.eye(3), 1.0, False, r"^A0 must have shape \(2, 2\)"),
        ([[1.0, 0.5], [0.4, 1.0]], 1.0, False, "^A0 must be symmetric"),
        (np.diag([1.0, -0.1]), 1.0, False, "^A0 must be positive semidefinite, got the eigenvalue -0.1"),
        (np.diag([1.0, 0.0]), -1.0, False, "^gamma must be >= 0 when A0 is singular"),
        (np.diag([1.0, 0.0]), 0.5, True, "^gamma must be 0 or >= 1 for a gradient"),
    ],
)
def test_bad_matrices(A0: object, gamma: float, differentiable: bool, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_memory_matrix(A0, 2, 2, gamma, differentiable=differentiable)
