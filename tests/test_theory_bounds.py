"""The regret bounds and the Combiner's constants of `fastlbm.theory`, against the paper's formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastlbm import theory
from fastlbm.theory import combiner

ALGORITHMS = ("O3M", "OM", "OM-Block")
A0 = np.diag([4.0, 0.25])

dims = st.integers(1, 12)
memories = st.integers(0, 8)
lengths = st.integers(1, 200)
gammas = st.floats(-4.0, 4.0)
horizons = st.integers(2, 10**12)
lams = st.floats(1.0, 20.0)
deltas = st.floats(1e-12, 0.999)


def log_1_plus(x: float) -> float:
    return math.log(1.0 + x)


# ------------------------------------------------------------------------------------------ regret bounds


def first_claim(T: float, d: int, m: int, rho: float, L: int, lam: float, delta: float) -> float:
    """Theorem 2, thm:regret_hp, first claim, as printed."""
    return (
        4 * L * rho * math.sqrt(T * d * log_1_plus(T * rho**2 / (d * lam)))
        * (math.sqrt(lam) + math.sqrt(math.log(1 / delta) + d * log_1_plus(T * rho**2 / (d * (m + L) * lam))))
    )  # fmt: skip


def block_claim(T: float, d: int, m: int, rho: float, L: int, lam: float, delta: float) -> float:
    """Proposition 5, prop:adaptation_hp, as printed."""
    logarithm = log_1_plus(T * rho**2 / (d * (m + L) * lam))
    return (
        4 * L * rho * math.sqrt(T * d * logarithm)
        * (math.sqrt(lam * L) + math.sqrt(math.log(1 / delta) + d * (m + L) * logarithm))
    )  # fmt: skip


def second_claim(T: float, d: int, m: int, rho: float, lam: float, delta: float) -> float:
    """Theorem 2, thm:regret_hp, second claim, as printed."""
    logarithm = log_1_plus(T * rho**2 / (d * lam))
    bracket = 1 + 2 * math.sqrt(logarithm) * (
        math.sqrt(lam / d) + math.sqrt(math.log(1 / delta) / d + logarithm)
    )
    return 4 * math.sqrt(d) * math.sqrt(m + 1) * rho * T**0.75 * bracket


@given(T=horizons, d=dims, m=memories, gamma=gammas, L=lengths, lam=lams, delta=deltas)
def test_block_regret_bound_is_as_printed(
    T: int, d: int, m: int, gamma: float, L: int, lam: float, delta: float
) -> None:
    rho = (m + 1) ** max(gamma, 0.0)
    for algorithm, formula in (("O3M", first_claim), ("OM", first_claim), ("OM-Block", block_claim)):
        bound = theory.block_regret_bound(T, d, m, gamma, L, lam, delta, algorithm)
        assert bound == pytest.approx(formula(T, d, m, rho, L, lam, delta), rel=1e-9)
        default = theory.block_regret_bound(T, d, m, gamma, L, lam, algorithm=algorithm)
        assert default == pytest.approx(formula(T, d, m, rho, L, lam, 1 / T), rel=1e-9)
        expected = theory.block_regret_bound(T, d, m, gamma, L, lam, algorithm=algorithm, expected=True)
        assert expected == pytest.approx(default + 2 * L * rho / (m + L), rel=1e-12)


@given(
    blocks=st.integers(1, 10**9), d=dims, m=memories, gamma=st.floats(-4.0, 2.0), L=st.integers(1, 2000),
    lam=lams, delta=deltas, subgaussian=st.floats(0.0, 10.0),
)  # fmt: skip
@example(blocks=1, d=12, m=0, gamma=-1.0, L=2000, lam=20.0, delta=0.999, subgaussian=10.0)
def test_block_regret_bound_holds_for_the_corrected_radius(
    blocks: int, d: int, m: int, gamma: float, L: int, lam: float, delta: float, subgaussian: float
) -> None:
    # The proofs, without their spare factors: min(2 L rho, 2 c beta x) <= 2 max(L rho, c beta) min(1, x),
    # Cauchy-Schwarz over all x, and sum min(1, x^2) <= 2 ln det V/det(lam I).
    T, rho = blocks * (m + L), (m + 1) ** max(gamma, 0.0)
    D = d * (m + L)
    log_det = d * math.log1p(blocks * L * rho**2 / (d * lam))
    beta = subgaussian * math.sqrt(2 * math.log(1 / delta) + log_det) + math.sqrt(lam)
    assert beta == pytest.approx(
        theory.confidence_radius(blocks * L, d, m, gamma, lam, delta, subgaussian), rel=1e-9
    )
    proven = 2 * max(L * rho, math.sqrt(L) * rho * beta) * math.sqrt(blocks * L * 2 * log_det)
    bound = theory.block_regret_bound(T, d, m, gamma, L, lam, delta, subgaussian=subgaussian)
    assert proven <= bound * (1 + 1e-9)

    log_det = D * math.log1p(blocks * (m + L * rho**2) / (D * lam))
    beta = theory.confidence_radius(
        blocks, d, m, gamma, lam, delta, subgaussian, algorithm="OM-Block", L=L
    )  # fmt: skip
    proven = 2 * max(L * rho, beta) * math.sqrt(blocks * 2 * log_det)
    bound = theory.block_regret_bound(T, d, m, gamma, L, lam, delta, "OM-Block", subgaussian)
    assert proven <= bound * (1 + 1e-9)


def test_stationary_bound_and_oful() -> None:
    # Abbasi-Yadkori, Pal, Szepesvari (2011), Theorem 3, for norms and noise bounded by 1.
    T, d, lam, delta = 5000, 4, 1.0, 0.01
    oful = (
        4 * math.sqrt(T * d * math.log(lam + T / d))
        * (math.sqrt(lam) + math.sqrt(2 * math.log(1 / delta) + d * log_1_plus(T / (lam * d))))
    )  # fmt: skip
    for algorithm in ALGORITHMS:
        bound = theory.regret_bound(T, d, 0, 1.0, lam, delta, algorithm)
        assert bound == theory.block_regret_bound(T, d, 0, 1.0, 1, lam, delta, algorithm)
        assert bound == pytest.approx(first_claim(T, d, 0, 1.0, 1, lam, delta))
        assert bound < oful < math.sqrt(2) * bound


@given(T=st.integers(10**4, 10**12), d=dims, m=st.integers(1, 8), gamma=gammas, lam=lams, delta=deltas)
def test_regret_bound_is_as_printed(
    T: int, d: int, m: int, gamma: float, lam: float, delta: float
) -> None:  # fmt: skip
    rho = (m + 1) ** max(gamma, 0.0)
    for algorithm in ("O3M", "OM"):
        bound = theory.regret_bound(T, d, m, gamma, lam, delta, algorithm)
        assert bound == pytest.approx(second_claim(T, d, m, rho, lam, delta), rel=1e-9)
        # The second claim follows from the first one and Proposition 2, twice.
        L = theory.block_length(T, d, m, algorithm)
        parts = first_claim(T, d, m, rho, L, lam, delta) + 4 * m * rho * T / (m + L)
        assert parts <= bound * (1 + 1e-9)
    L = theory.block_length(T, d, m, "OM-Block")
    expected = block_claim(T, d, m, rho, L, lam, 1 / T) + 4 * m * rho * T / (m + L)
    assert theory.regret_bound(T, d, m, gamma, lam, algorithm="OM-Block") == pytest.approx(expected, rel=1e-9)
    in_expectation = theory.regret_bound(T, d, m, gamma, lam, algorithm="OM-Block", expected=True)
    assert in_expectation == pytest.approx(expected + 2 * rho, rel=1e-9)


@given(T=st.integers(10**4, 10**12), d=dims, m=memories, gamma=gammas, lam=lams, delta=deltas)
def test_bounds_grow(T: int, d: int, m: int, gamma: float, lam: float, delta: float) -> None:
    for algorithm in ("O3M", "OM-Block"):
        bounds: list[Callable[..., Any]] = [
            lambda T, m, gamma, delta, a=algorithm: theory.block_regret_bound(
                T, d, m, gamma, 9, lam, delta, a
            ),
            lambda T, m, gamma, delta, a=algorithm: theory.regret_bound(T, d, m, gamma, lam, delta, a),
        ]
        for bound in bounds:
            base = bound(T, m, gamma, delta)
            assert bound(4 * T, m, gamma, delta) > base > 0
            assert bound(T, m, gamma, delta / 2) > base
            assert bound(T, m, gamma + 1, delta) >= base * (1 - 1e-12)
        base = theory.block_regret_bound(T, d, m, gamma, 9, lam, delta, algorithm)
        assert theory.block_regret_bound(T, d, m, gamma, 10, lam, delta, algorithm) > base
        quiet = theory.block_regret_bound(T, d, m, gamma, 9, lam, delta, algorithm, subgaussian=0.1)
        assert quiet < base


def test_regret_bound_is_of_order_t_to_the_three_quarters() -> None:
    ratios = [theory.regret_bound(T, 3, 2, -3.0) / (T**0.75 * math.log(T)) for T in (10**6, 10**12, 10**18)]
    assert ratios == pytest.approx([ratios[-1]] * 3, rel=0.2)
    # OM-Block's order is T^(4/5): worse in the end.
    assert theory.regret_bound(10**18, 3, 2, -3.0, algorithm="OM-Block") > theory.regret_bound(
        10**18, 3, 2, -3.0
    )


def test_small_powers_do_not_shrink_the_bounds() -> None:
    # rho < 1 where A0 is large and gamma negative: the proofs need max(1, rho).
    large = 100.0 * np.eye(2)
    assert theory.reward_bound(2, -1.0, A0=large) == pytest.approx(0.01)
    assert theory.regret_bound(1000, 2, 2, -1.0, A0=large) == theory.regret_bound(1000, 2, 2, -1.0)
    rising = theory.block_regret_bound(1000, 2, 3, 2.0, 5, 1.0, 0.1, A0=A0)
    assert rising == pytest.approx(first_claim(1000, 2, 3, 49.0, 5, 1.0, 0.1))
    assert theory.regret_bound(1000, 2, 3, 2.0, 1.0, 0.1, A0=A0) == pytest.approx(
        second_claim(1000, 2, 3, 49.0, 1.0, 0.1)
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("m", [0, 2])
@pytest.mark.parametrize("expected", [False, True])
def test_bounds_take_arrays(algorithm: str, m: int, expected: bool) -> None:
    T = np.array([[100, 1000], [10**4, 10**9]])
    rest: dict[str, Any] = {"d": 3, "m": m, "gamma": 0.5, "algorithm": algorithm, "expected": expected}
    one_by_one = [[theory.regret_bound(int(t), **rest) for t in row] for row in T]
    assert np.allclose(theory.regret_bound(T, **rest), one_by_one, rtol=1e-13)
    one_by_one = [[theory.block_regret_bound(T=t, L=L, **rest) for L in (1, 5, 20)] for t in (50, 500)]
    assert np.allclose(theory.block_regret_bound(T=[[50], [500]], L=[1, 5, 20], **rest), one_by_one)
    assert isinstance(theory.regret_bound(1000, **rest), float)
    assert isinstance(theory.block_regret_bound(T=1000, L=5, **rest), float)


def test_one_step() -> None:
    # delta = 1/T = 1: nothing is promised, nothing breaks.
    assert theory.block_regret_bound(1, 1, 0, 0.0, 1) == pytest.approx(first_claim(1, 1, 0, 1.0, 1, 1.0, 1.0))


# ----------------------------------------------------------------------------------------------- Combiner


def C_j(T_bc: int, d: int, m: int, gamma: float, L: int, lam: float, delta: float) -> float:
    """Equation (29), eq:C_j, as printed."""
    rho = (m + 1) ** max(gamma, 0.0)
    return (
        4 * (4 * m / d) ** (1 / 3) * rho
        * math.sqrt(d * log_1_plus(T_bc * (m + L) * rho**2 / (d * lam)))
        * (math.sqrt(lam) + math.sqrt(math.log(1 / delta) + d * log_1_plus(T_bc * rho**2 / (d * lam))))
    )  # fmt: skip


def R_j(C: float, T_bc: int, N: int, rho: float, delta: float) -> float:
    """Equation (30), eq:regret_cutko, with T_bc throughout."""
    return (
        C * T_bc ** (2 / 3)
        + 5 * math.sqrt(30) / 18 * C**1.5 * T_bc ** (2 / 3)
        + 1152 * rho**2 * T_bc ** (1 / 3) * math.log(T_bc**3 * N / delta)
        + (N - 1) * T_bc ** (2 / 3)
    )


def test_coefficient_of_the_target_regret() -> None:
    # alpha = 2/3 and eta = T_bc^(-2/3) in the general formula leave 5 sqrt(30)/18.
    a, T_bc, C = 2 / 3, 50, np.array([3.0])
    general = (1 - a) ** ((1 - a) / a) * (1 + a) ** (1 / a) / a ** ((1 - a) / a)
    assert general == pytest.approx(5 * math.sqrt(30) / 18, rel=1e-14)
    R = combiner._target_regret(C, np.zeros(1), 1, T_bc, a, T_bc**-a)
    assert R[0] == pytest.approx((3 + 5 * math.sqrt(30) / 18 * 3**1.5) * T_bc**a, rel=1e-13)
    # alpha = 1/2: (1/2)(3/2)^2/(1/2) = 9/4 before C^2 T eta.
    R = combiner._target_regret(C, np.array([2.0]), 4, T_bc, 0.5, 0.1)
    assert R[0] == pytest.approx(3 * math.sqrt(50) + 9 / 4 * 9 * 50 * 0.1 + 576 * 4 * 50 * 0.1 + 3 / 0.1)


def test_combiner_over_gamma() -> None:
    T, d, m, delta, lam = 1200, 3, 2, 0.01, 1.5
    gammas = (-4.0, -1.0, 0.0, 1.0)
    constants = theory.combiner_constants(T, d, [(m, g) for g in gammas], L=20, lam=lam, delta=delta)
    T_bc = 60  # gamma = 0 plays blocks of L = 20, without the first m actions
    assert (constants.T_bc, constants.alpha) == (T_bc, 2 / 3)
    assert constants.eta == pytest.approx(T_bc ** (-2 / 3))
    assert constants.L.tolist() == [20] * 4
    for j, gamma in enumerate(gammas):
        C, rho = C_j(T_bc, d, m, gamma, 20, lam, delta), 3 ** max(gamma, 0.0)
        assert constants.C[j] == pytest.approx(C)
        assert constants.R[j] == pytest.approx(R_j(C, T_bc, 4, rho, delta))
        assert constants.reward_range[j] == pytest.approx(rho**2)
        assert constants.width[j] == pytest.approx(rho**2 * math.sqrt(2 * math.log(T_bc**3 * 4 / delta)))


def test_combiner_over_m() -> None:
    T, d, delta = 10**6, 3, 1e-6
    constants = theory.combiner_constants(T, d, [(0, 0.0), (2, -3.0), (3, -3.0)])
    assert constants.L.tolist() == [1, 24, 29]
    assert constants.T_bc == T  # one action a round, if m = 0 is played all the time
    stationary = first_claim(T, d, 0, 1.0, 1, 1.0, delta) / math.sqrt(T)
    expected = [stationary, C_j(T, d, 2, -3.0, 24, 1.0, delta), C_j(T, d, 3, -3.0, 29, 1.0, delta)]
    assert list(constants.C) == pytest.approx(expected)
    assert list(constants.R) == pytest.approx([R_j(C, T, 3, 1.0, delta) for C in expected])
    each = theory.combiner_constants(T, d, [(0, 0.0), (2, -3.0), (3, -3.0)], L=[1, 24, 29], delta=delta)
    assert all(np.array_equal(a, b) for a, b in zip(each, constants, strict=True))


@given(n=st.integers(1, 10**4), d=dims, L=st.integers(1, 50))
def test_stationary_candidate_is_covered_by_its_constant(n: int, d: int, L: int) -> None:
    # m = 0: the regret per action of n blocks of L, by the theorem, is at most C n^alpha.
    T, delta = 10**4 * L, 0.01
    constants = theory.combiner_constants(T, d, [(0, 0.0)], L=L, delta=delta)
    assert constants.T_bc == 10**4
    assert first_claim(n * L, d, 0, 1.0, L, 1.0, delta) / L <= constants.C[0] * n ** (2 / 3) * (1 + 1e-12)


def test_scale_of_the_combiner() -> None:
    candidates = [(1, 0.5), (2, -1.0)]
    paper = theory.combiner_constants(5000, 3, candidates, L=10)
    scaled = theory.combiner_constants(5000, 3, candidates, L=10, scale=0.01)
    assert list(scaled.C) == pytest.approx(list(0.01 * paper.C))
    assert scaled.width == pytest.approx(0.01 * paper.width)
    assert np.array_equal(scaled.reward_range, paper.reward_range)
    n = paper.T_bc
    concentration = 1152 * paper.reward_range * math.log(n**3 * 2 * 5000) * n ** (1 / 3)
    rest = (scaled.C + 5 * math.sqrt(30) / 18 * scaled.C**1.5 + 1) * n ** (2 / 3)
    assert list(scaled.R) == pytest.approx(list(rest + 1e-4 * concentration))


@given(T=st.integers(1, 10**9), d=dims, m=st.lists(memories, min_size=1, max_size=5, unique=True))
def test_combiner_has_enough_rounds(T: int, d: int, m: list[int]) -> None:
    constants = theory.combiner_constants(T, d, [(k, -1.0) for k in sorted(m)])
    blocks = np.array(sorted(m)) + constants.L
    still = theory.combiner_constants(T, d, [(k, 0.0) for k in sorted(m)])
    assert still.T_bc >= T / still.L.min() > still.T_bc - 1
    assert constants.T_bc >= T / blocks.min() > constants.T_bc - 1
    assert (constants.C > 0).all()
    assert (constants.R > 0).all()
    # Among those with a memory, a longer one has the larger constants.
    positive = [j for j, k in enumerate(sorted(m)) if k > 0]
    assert all(constants.C[i] < constants.C[j] for i, j in pairwise(positive))
    quiet = theory.combiner_constants(T, d, [(k, -1.0) for k in sorted(m)], subgaussian=0.0, lam=0.5)
    assert (quiet.C > 0).all()


def test_combiner_with_another_initial_matrix() -> None:
    constants = theory.combiner_constants(1000, 2, [(3, 2.0), (3, -2.0), (3, 0.0)], L=7, A0=A0)
    assert constants.reward_range == pytest.approx([7.0**4, 4.0**4, 1.0])
