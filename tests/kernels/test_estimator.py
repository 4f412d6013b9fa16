"""Regularised least squares against NumPy and fifty digits, and the number of repetitions by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from fastlbm.kernels.estimator import (
    LAM,
    LOG_DET,
    MOST,
    REFRESH,
    SAMPLES,
    UPDATES,
    Estimator,
    absorb,
    absorb_all,
    cholesky,
    estimate,
    make_estimator,
    passes_of_plan,
    refresh,
    repeats,
)
from tests import naive, problems
from tests.naive import Array

SIZES = (*range(1, 13), 66)


def samples(N: int, D: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Features (N, D) of norm up to 1, how often each was seen and the sum of its rewards."""
    rng = np.random.default_rng([seed, N, D])
    counts = rng.integers(1, 6, N).astype(np.float64)
    return problems.ball(N, D, rng), counts, counts * rng.normal(size=N)


def check(e: Estimator, lam: float, F: Array, counts: Array, totals: Array, rtol: float = 1e-11) -> None:
    """Everything but theta is that of the reference."""
    V, V_inv, _, log_det = naive.ridge(lam, F, counts, totals)
    np.testing.assert_allclose(e.V + e.V_recent, V, rtol=0, atol=rtol * np.abs(V).max())
    np.testing.assert_allclose(e.V_inv, V_inv, rtol=0, atol=rtol * np.abs(V_inv).max())
    np.testing.assert_array_equal(e.V_inv, e.V_inv.T)
    U = totals @ F
    np.testing.assert_allclose(e.U + e.U_recent, U, rtol=0, atol=rtol * (1.0 + np.abs(totals).sum()))
    assert e.ledger[LOG_DET] == pytest.approx(log_det, rel=rtol, abs=rtol)
    assert e.ledger[SAMPLES] == counts.sum()
    assert e.ledger[LAM] == lam


def check_theta(e: Estimator, lam: float, F: Array, counts: Array, totals: Array) -> None:
    theta = naive.ridge(lam, F, counts, totals)[2]
    np.testing.assert_allclose(e.theta, theta, rtol=0, atol=1e-11 * (1.0 + np.abs(totals).sum()))


@pytest.mark.nojit
@pytest.mark.parametrize("D", [1, 2, 5])
def test_the_references_agree(D: int) -> None:
    data = samples(7, D)
    for numbers, exact in zip(naive.ridge(0.3, *data), naive.ridge_mp(0.3, *data), strict=True):
        np.testing.assert_allclose(numbers, exact, rtol=1e-12, atol=1e-13)


@pytest.mark.nojit
@pytest.mark.parametrize("lam", [1.0, 0.01, 30.0])
def test_nothing_seen(lam: float) -> None:
    e = make_estimator(3, lam)
    nothing = np.zeros((0, 3)), np.zeros(0), np.zeros(0)
    check(e, lam, *nothing)
    estimate(e)
    refresh(e)
    check(e, lam, *nothing)
    assert not e.theta.any()


@pytest.mark.nojit
@pytest.mark.parametrize("lam", [1.0, 0.2, 7.0])
@pytest.mark.parametrize("D", SIZES)
def test_one_feature_after_the_other(D: int, lam: float) -> None:
    N = 20
    F, counts, totals = samples(N, D)
    e = make_estimator(D, lam)
    for t in range(N):
        absorb(e, F[t], counts[t], totals[t], 0.0)
        assert e.ledger[UPDATES] == t + 1
    check(e, lam, F, counts, totals)
    assert not e.theta.any()
    estimate(e)
    check_theta(e, lam, F, counts, totals)


@pytest.mark.nojit
def test_a_feature_alone_leaves_theta() -> None:
    F, counts, totals = samples(REFRESH + 1, 2)
    e = make_estimator(2, 0.5)
    absorb_all(e, F[:1], counts[:1], totals[:1], totals[:1])
    theta = e.theta.copy()
    assert theta.any()
    for t in range(1, REFRESH + 1):
        absorb(e, F[t], counts[t], totals[t], 0.0)
    np.testing.assert_array_equal(e.theta, theta)


@pytest.mark.nojit
@pytest.mark.parametrize("D", [1, 3])
def test_across_refreshes(D: int) -> None:
    N = 2 * REFRESH + 3
    F, counts, totals = samples(N, D)
    e = make_estimator(D, 0.4)
    for t in range(N):
        absorb(e, F[t], counts[t], totals[t], 0.0)
        if t + 1 in (1, REFRESH - 1, REFRESH, REFRESH + 1, 2 * REFRESH - 1, 2 * REFRESH, N):
            check(e, 0.4, F[: t + 1], counts[: t + 1], totals[: t + 1])
            estimate(e)
            check_theta(e, 0.4, F[: t + 1], counts[: t + 1], totals[: t + 1])
            assert e.ledger[UPDATES] == (t + 1) % REFRESH
            assert e.V_recent.any() == ((t + 1) % REFRESH > 0)
            assert e.U_recent.any() == ((t + 1) % REFRESH > 0)


@pytest.mark.parametrize("D", [7, 12, 66])
def test_across_refreshes_in_many_dimensions(D: int) -> None:
    N = 4 * REFRESH + 100
    F, counts, totals = samples(N, D)
    e = make_estimator(D, 2.0)
    for t in range(N):
        absorb(e, F[t], counts[t], totals[t], 0.0)
        if (t + 1) % 300 == 0 or t + 1 == N:
            check(e, 2.0, F[: t + 1], counts[: t + 1], totals[: t + 1])


@pytest.mark.nojit
@pytest.mark.parametrize("rows", ["1", "D-1", "D", "D+1", "3D"])
@pytest.mark.parametrize("D", [1, 2, 3, 6, 12])
def test_features_in_blocks(D: int, rows: str) -> None:
    n = {"1": 1, "D-1": D - 1, "D": D, "D+1": D + 1, "3D": 3 * D}[rows]
    F, counts, totals = samples(4 * n, D)
    e = make_estimator(D, 0.6)
    for t in range(4):
        absorb_all(
            e,
            F[n * t : n * t + n],
            counts[n * t : n * t + n],
            totals[n * t : n * t + n],
            totals[n * t : n * t + n],
        )
        seen = slice(0, n * t + n)
        check(e, 0.6, F[seen], counts[seen], totals[seen])
        check_theta(e, 0.6, F[seen], counts[seen], totals[seen])
        assert e.ledger[UPDATES] == (0 if n >= D else n * (t + 1))


@pytest.mark.parametrize("rows", [1, 5, 65, 66, 70])
def test_blocks_in_66_dimensions(rows: int) -> None:
    F, counts, totals = samples(10 * rows, 66)
    e = make_estimator(66, 1.5)
    for t in range(10):
        seen = slice(rows * t, rows * t + rows)
        absorb_all(e, F[seen], counts[seen], totals[seen], totals[seen])
    check(e, 1.5, F, counts, totals)
    check_theta(e, 1.5, F, counts, totals)


@pytest.mark.nojit
@pytest.mark.parametrize("rows", [1, 3, 4, 9])
def test_rows_that_were_not_seen_do_not_count(rows: int) -> None:
    F, counts, totals = samples(3 * rows, 4)
    counts[::2] = 0.0
    totals[::2] = 0.0
    F[::2] = np.nan
    e = make_estimator(4, 0.9)
    for t in range(3):
        seen = slice(rows * t, rows * t + rows)
        absorb_all(e, F[seen], counts[seen], totals[seen], totals[seen])
    check(e, 0.9, F[1::2], counts[1::2], totals[1::2])
    check_theta(e, 0.9, F[1::2], counts[1::2], totals[1::2])


@pytest.mark.nojit
@settings(max_examples=40)
@given(
    D=st.integers(1, 6),
    lam=st.floats(1e-3, 1e3),
    blocks=st.lists(st.tuples(st.integers(1, 8), st.integers(0, 1000)), min_size=1, max_size=5),
    whole=st.booleans(),
)
def test_any_blocks(D: int, lam: float, blocks: list[tuple[int, int]], whole: bool) -> None:
    e = make_estimator(D, lam)
    parts = []
    for rows, seed in blocks:
        F, counts, totals = samples(rows, D, seed)
        counts[(seed + np.arange(rows)) % 4 == 0] = 0.0
        totals[counts == 0.0] = 0.0
        parts.append((F, counts, totals))
        if whole:
            absorb_all(e, F, counts, totals, totals)
        else:
            for row in range(rows):
                absorb_all(
                    e, F[row : row + 1], counts[row : row + 1], totals[row : row + 1], totals[row : row + 1]
                )
    F, counts, totals = (np.concatenate(part) for part in zip(*parts, strict=True))
    check(e, lam, F, counts, totals)
    np.testing.assert_allclose(
        lam * e.theta, lam * naive.ridge(lam, F, counts, totals)[2], atol=1e-10 * (1.0 + np.abs(totals).sum())
    )


@pytest.mark.nojit
def test_a_count_stands_for_that_many_samples() -> None:
    F, counts, totals = samples(5, 3)
    together, apart = make_estimator(3, 0.7), make_estimator(3, 0.7)
    for b, count, total in zip(F, counts, totals, strict=True):
        absorb(together, b, count, total, 0.0)
        for _ in range(int(count)):
            absorb(apart, b, 1.0, total / count, 0.0)
    np.testing.assert_allclose(together.V_inv, apart.V_inv, rtol=1e-12, atol=1e-14)
    assert together.ledger[LOG_DET] == pytest.approx(apart.ledger[LOG_DET], rel=1e-13)
    assert together.ledger[SAMPLES] == apart.ledger[SAMPLES]


@pytest.mark.nojit
def test_a_refresh_changes_rounding_only_and_the_second_one_nothing() -> None:
    F, counts, totals = samples(50, 4)
    e = make_estimator(4, 0.3)
    for t in range(50):
        absorb(e, F[t], counts[t], totals[t], 0.0)
    V_inv, log_det = e.V_inv.copy(), e.ledger[LOG_DET]
    refresh(e)
    np.testing.assert_allclose(e.V_inv, V_inv, rtol=1e-12, atol=1e-14)
    assert e.ledger[LOG_DET] == pytest.approx(log_det, rel=1e-13)
    assert e.ledger[UPDATES] == 0
    assert not e.V_recent.any()
    assert not e.U_recent.any()
    again = [part.copy() for part in e]
    refresh(e)
    for part, before in zip(e, again, strict=True):
        np.testing.assert_array_equal(part, before)


@pytest.mark.nojit
@pytest.mark.parametrize("D", SIZES)
def test_cholesky(D: int) -> None:
    rng = np.random.default_rng(D)
    X = rng.normal(size=(D, D + 2))
    V = 0.1 * np.eye(D) + X @ X.T
    before, R = V.copy(), np.full((D, D), np.nan)
    log_det = cholesky(V, R)
    np.testing.assert_allclose(np.tril(R), np.linalg.cholesky(V), rtol=1e-10, atol=1e-12)
    assert log_det == pytest.approx(np.linalg.slogdet(V)[1], rel=1e-12, abs=1e-12)
    np.testing.assert_array_equal(V, before)


@pytest.mark.nojit
def test_cholesky_of_a_singular_matrix_is_finite() -> None:
    for V in (np.zeros((3, 3)), np.ones((3, 3)), np.diag([1.0, -1e-17])):
        R = np.zeros_like(V)
        assert cholesky(V, R) < -600.0
        assert np.isfinite(R).all()


# --- drift --------------------------------------------------------------------------------------------


@njit
def absorb_in_turn(e: Estimator, features: Array, rewards: Array, n: int) -> None:
    """The features (k, D) in turn, n of them."""
    k = len(features)
    for t in range(n):
        absorb(e, features[t % k], 1.0, rewards[t % k], 0.0)


def check_drift(D: int, k: int, n: int, lam: float, rtol: float) -> None:
    """V^-1, ln det V and theta after n features against fifty digits."""
    F, _, rewards = samples(k, D)
    counts = np.array([len(range(i, n, k)) for i in range(k)], dtype=np.float64)
    e = make_estimator(D, lam)
    absorb_in_turn(e, F, rewards, n)
    estimate(e)
    _, V_inv, theta, log_det = naive.ridge_mp(lam, F, counts, counts * rewards)
    assert e.ledger[SAMPLES] == n
    assert np.abs(e.V_inv - V_inv).max() <= rtol * np.abs(V_inv).max()
    assert abs(e.ledger[LOG_DET] - log_det) <= rtol * log_det
    assert np.abs(e.theta - theta).max() <= rtol * np.abs(theta).max()
    np.testing.assert_array_equal(e.V_inv, e.V_inv.T)


@pytest.mark.parametrize(("D", "k", "lam"), [(1, 1, 1.0), (3, 5, 0.1), (4, 4, 1.0), (6, 11, 10.0)])
def test_a_million_updates_do_not_drift(D: int, k: int, lam: float) -> None:
    check_drift(D, k, 10**6 + 77, lam, 1e-8)


def test_directions_that_are_never_seen_do_not_drift() -> None:
    # Half a million in two directions and lam in three, where the rounding of V weighs most.
    check_drift(5, 2, 10**6 + 77, 1.0, 3e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("D", "k", "lam"), [(3, 5, 0.1), (4, 4, 1.0)])
def test_a_hundred_million_updates_do_not_drift(D: int, k: int, lam: float) -> None:
    check_drift(D, k, 10**8 + 77, lam, 1e-8)


# --- repetitions --------------------------------------------------------------------------------------


def learned(D: int, N: int, lam: float = 1.0) -> Estimator:
    e = make_estimator(D, lam)
    for b, count, total in zip(*samples(N, D), strict=True):
        absorb(e, b, count, total, 0.0)
    return e


@pytest.mark.nojit
@pytest.mark.parametrize("switch", [1e-3, 0.1, 0.5, 1.0, 7.3])
@pytest.mark.parametrize(("D", "rows"), [(1, 1), (2, 1), (3, 2), (3, 5), (5, 4)])
def test_repetitions_by_brute_force(D: int, rows: int, switch: float) -> None:
    for N in (0, 3, 40):
        e = learned(D, N, 0.8)
        F = samples(rows, D, seed=5)[0]
        assert repeats(e, F, switch, 0) == naive.repeats(e.V + e.V_recent, F, switch, 10**5)


@pytest.mark.nojit
def test_a_plan_lasts_no_longer_than_half_of_what_was_before() -> None:
    F = np.full((4, 2), 1e-9)
    for samples, passes in ((0, 1), (4, 1), (15, 1), (16, 2), (800, 100)):
        e = make_estimator(2, 1.0)
        absorb_all(e, F[:1], np.array([float(samples)]), np.zeros(1), np.zeros(1))
        assert passes_of_plan(e, F, 1.0, 0) == passes
        assert passes_of_plan(e, F, 0.0, 0) == 1
    assert passes_of_plan(e, np.eye(2), 1.0, 0) == repeats(e, np.eye(2), 1.0, 0)


@pytest.mark.nojit
@pytest.mark.parametrize("switch", [0.1, 1.0, 7.3])
@pytest.mark.parametrize("lead", [1, 2, 3])
def test_repetitions_of_a_cycle_by_brute_force(lead: int, switch: float) -> None:
    for n in (3, 4, 7):
        e, F = learned(3, 5, 0.8), 0.4 * samples(lead + n, 3, seed=n)[0]
        V = e.V + e.V_recent
        first, later = np.vstack((F[:lead], F[2 * lead :])), F[lead:]
        grown = V + first.T @ first  # after one pass
        k = 1
        while np.linalg.det(grown) <= (1.0 + switch) * np.linalg.det(V):
            grown, k = grown + later.T @ later, k + 1
        assert repeats(e, F, switch, lead) == k


@pytest.mark.parametrize("N", [0, 10, 600])
def test_repetitions_in_many_dimensions(N: int) -> None:
    for D, rows in ((12, 3), (66, 1), (66, 4)):
        e, F = learned(D, N), samples(rows, D, seed=1)[0]
        assert repeats(e, F, 0.7, 0) == naive.repeats(e.V + e.V_recent, F, 0.7, 10**5)


@pytest.mark.nojit
def test_repetitions_by_hand() -> None:
    one = np.ones((1, 1))
    for switch, expected in ((0.5, 1), (1.5, 2), (9.5, 10), (1e6 - 0.5, 10**6)):
        assert repeats(make_estimator(1, 1.0), one, switch, 0) == expected
    assert repeats(make_estimator(1, 4.0), one, 1.1, 0) == 5
    assert repeats(make_estimator(2, 1.0), np.eye(2), 14.5, 0) == 3  # det = (1 + k)^2


@pytest.mark.nojit
def test_no_switch_means_once() -> None:
    e = learned(3, 5)
    for F in (samples(2, 3)[0], np.zeros((2, 3))):
        assert repeats(e, F, 0.0, 0) == 1


@pytest.mark.nojit
def test_features_that_add_nothing_are_repeated_most_often() -> None:
    e = learned(3, 5)
    assert repeats(e, np.zeros((2, 3)), 0.5, 0) == MOST
    assert repeats(e, np.full((1, 3), 1e-12), 0.5, 0) == MOST
    assert repeats(e, np.zeros((0, 3)), 0.5, 0) == MOST


@pytest.mark.nojit
def test_very_many_repetitions() -> None:
    b = np.array([[1e-5]])
    k = repeats(make_estimator(1, 1.0), b, 1.0, 0)
    assert k == pytest.approx(1e10, rel=1e-4)
    assert k < MOST


@pytest.mark.nojit
def test_repetitions_only_read() -> None:
    e = learned(3, 5)
    before = [part.copy() for part in e]
    repeats(e, samples(2, 3)[0], 2.0, 0)
    for part, was in zip(e, before, strict=True):
        np.testing.assert_array_equal(part, was)


@pytest.mark.nojit
@settings(max_examples=60)
@given(D=st.integers(1, 4), rows=st.integers(1, 5), N=st.integers(0, 10), switch=st.floats(1e-3, 1e4))
def test_det_has_just_grown_enough(D: int, rows: int, N: int, switch: float) -> None:
    e, F = learned(D, N), samples(rows, D, seed=N)[0]
    V = e.V + e.V_recent
    k = repeats(e, F, switch, 0)

    def growth(times: int) -> float:
        return float(np.linalg.slogdet(V + times * F.T @ F)[1] - np.linalg.slogdet(V)[1])

    assert k >= 1
    assert growth(k) > math.log1p(switch) - 1e-11
    assert growth(k - 1) <= math.log1p(switch) + 1e-11
