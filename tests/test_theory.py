"""The numbers of `fastlbm.theory`, against the paper's formulas written out once more."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastlbm import theory

ALGORITHMS = ("O3M", "OM", "OM-Block")
A0 = np.diag([4.0, 0.25])

dims = st.integers(1, 12)
memories = st.integers(0, 8)
lengths = st.integers(1, 200)
gammas = st.floats(-4.0, 4.0)
horizons = st.integers(2, 10**12)
deltas = st.floats(1e-12, 0.999)


def log_1_plus(x: float) -> float:
    return math.log(1.0 + x)


# ------------------------------------------------------------------------------------------ block length


@given(T=st.integers(1, 10**18), d=dims, m=st.integers(1, 30))
def test_block_length_is_the_exact_ceiling(T: int, d: int, m: int) -> None:
    # The order of the powers is checked by the definition of a ceiling: k - 1 < root <= k.
    for algorithm, power in (("O3M", 4), ("OM", 4), ("OM-Block", 5)):
        L = theory.block_length(T, d, m, algorithm)
        k = L + m
        assert k**power * d**2 >= m**2 * T
        assert L == 1 or (k - 1) ** power * d**2 < m**2 * T


@pytest.mark.parametrize(("algorithm", "power"), [("O3M", 4), ("OM-Block", 5)])
@pytest.mark.parametrize("k", [2, 3, 7, 10, 99, 1000, 3000, 31622])
def test_block_length_at_perfect_powers(algorithm: str, power: int, k: int) -> None:
    # m = d = 3 leaves ceil(T^(1/power)) - 3: exactly k at T = k^power, k + 1 right after it.
    T = k**power
    lengths = [theory.block_length(t, 3, 3, algorithm) for t in (T - 1, T, T + 1)]
    assert lengths == [max(1, n - 3) for n in (k, k, k + 1)]


def test_block_length_by_brute_force() -> None:
    for T in range(1, 400):
        for d, m in ((1, 1), (3, 1), (2, 2), (1, 3)):
            four = next(k for k in range(1000) if k**4 * d**2 >= m**2 * T)
            five = next(k for k in range(1000) if k**5 * d**2 >= m**2 * T)
            assert theory.block_length(T, d, m) == max(1, four - m)
            assert theory.block_length(T, d, m, "OM-Block") == max(1, five - m)


def test_block_length_of_the_theorem() -> None:
    # m = 2, d = 3, T = 10^6: sqrt(2/3) * 31.62... = 25.8..., (2/3)^0.4 * 15.8... = 13.5...
    assert theory.block_length(10**6, 3, 2) == 26 - 2
    assert theory.block_length(10**6, 3, 2, "OM-Block") == 14 - 2
    # From T = m^2 d^2 + 1 on nothing is cut off at 1, below it everything is.
    assert theory.block_length(4 * 9 + 1, 3, 2) == 1 == theory.block_length(1, 3, 2)
    assert {theory.block_length(10**9, 3, 0, algorithm) for algorithm in ALGORITHMS} == {1}


# ------------------------------------------------------------------------------------------------ radius


def test_radius_of_o3m() -> None:
    # tau = 10 blocks of L = 20 features, (m+1)^(2 gamma) = 81 for m = 2, gamma = 2.
    expected = 0.1 * math.sqrt(2 * math.log(100) + 3 * log_1_plus(200 * 81 / (3 * 2.0))) + math.sqrt(2.0)
    for algorithm in ("O3M", "OM"):
        beta = theory.confidence_radius(
            200, d=3, m=2, gamma=2.0, lam=2.0, delta=0.01, subgaussian=0.1, algorithm=algorithm
        )
        assert beta == pytest.approx(expected, rel=1e-14)


def test_radius_of_om_block() -> None:
    d, m, L, tau, lam, delta = 3, 2, 20, 10, 2.0, 0.05
    squared_norm = m + L * 81
    inner = 2 * math.log(1 / delta) + d * (m + L) * log_1_plus(tau * squared_norm / (d * (m + L) * lam))
    expected = math.sqrt(L) * 0.5 * math.sqrt(inner) + math.sqrt(lam * L)
    beta = theory.confidence_radius(
        tau, d, m, 2.0, lam=lam, delta=delta, subgaussian=0.5, algorithm="OM-Block", L=L
    )
    assert beta == pytest.approx(expected, rel=1e-14)


def test_radius_with_another_initial_matrix() -> None:
    rising = theory.confidence_radius(5, 2, 3, 2.0, A0=A0)
    assert rising == pytest.approx(math.sqrt(2 * math.log(100) + 2 * log_1_plus(5 * 7.0**4 / 2)) + 1)
    rotting = theory.confidence_radius(5, 2, 3, -2.0, A0=A0)
    assert rotting == pytest.approx(math.sqrt(2 * math.log(100) + 2 * log_1_plus(5 * 0.25**-4 / 2)) + 1)


@given(seed=st.integers(0, 2**32 - 1), d=st.integers(1, 5), n=st.integers(0, 30), lam=st.floats(0.05, 5.0))
def test_determinant_form_is_never_larger(seed: int, d: int, n: int, lam: float) -> None:
    features = np.random.default_rng(seed).standard_normal((n, d))
    features /= np.maximum(1.0, np.linalg.norm(features, axis=1, keepdims=True))
    log_det = np.linalg.slogdet(np.eye(d) + features.T @ features / lam)[1]
    tight = theory.confidence_radius(n, d, 2, -1.0, lam=lam, log_det_ratio=max(0.0, float(log_det)))
    loose = theory.confidence_radius(n, d, 2, -1.0, lam=lam)
    assert tight <= loose * (1 + 1e-12)
    assert tight == pytest.approx(math.sqrt(2 * math.log(100) + max(0.0, log_det)) + math.sqrt(lam))


@given(n=st.integers(0, 10**9), d=dims, gamma=gammas, lam=st.floats(0.01, 20.0), delta=deltas)
def test_radius_grows_with_samples_and_confidence(
    n: int, d: int, gamma: float, lam: float, delta: float
) -> None:
    beta = theory.confidence_radius(n, d, 3, gamma, lam=lam, delta=delta)
    assert theory.confidence_radius(n + 1, d, 3, gamma, lam=lam, delta=delta) >= beta
    assert theory.confidence_radius(n, d, 3, gamma, lam=lam, delta=delta / 2) > beta
    # One action a block and no memory: OM-Block is OFUL, like the others.
    stationary = [
        theory.confidence_radius(n, d, 0, gamma, lam=lam, delta=delta, algorithm=a, L=1) for a in ALGORITHMS
    ]
    assert stationary == pytest.approx([stationary[0]] * 3, rel=1e-13)


def test_radius_of_om_block_covers_the_model_and_the_printed_one_does_not() -> None:
    # d = 1, m = 0 and random signs: the noise of a block of L = 40 rewards is sqrt(40) times that of one.
    L, tau, delta = 40, 80, 0.01
    truth = np.ones(L)
    beta = theory.confidence_radius(tau, 1, 0, 0.0, delta=delta, algorithm="OM-Block", L=L)
    printed = math.sqrt(2 * math.log(1 / delta) + L * log_1_plus(tau)) + math.sqrt(L)
    distances = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        blocks = rng.choice([-1.0, 1.0], (tau, L))
        rewards = blocks @ truth + rng.standard_normal((tau, L)).sum(axis=1)
        V = np.eye(L) + blocks.T @ blocks
        error = np.linalg.solve(V, blocks.T @ rewards) - truth
        distances.append(math.sqrt(error @ V @ error))
    assert max(distances) <= beta
    assert min(distances) > printed


def test_radius_takes_arrays() -> None:
    one_by_one = [theory.confidence_radius(n, 3, 2, -1.0) for n in (0, 7, 10**6)]
    assert np.array_equal(theory.confidence_radius([0, 7, 10**6], 3, 2, -1.0), one_by_one)
    ratios = np.array([[0.0, 1.0], [2.0, 3.0]])
    assert np.shape(theory.confidence_radius(5, 3, 2, -1.0, log_det_ratio=ratios)) == (2, 2)
    assert isinstance(one_by_one[0], float)


# --------------------------------------------------------------------------------- reward, approximation


def test_reward_bound() -> None:
    assert theory.reward_bound(3, 2.0) == 16.0
    assert theory.reward_bound(3, -2.0) == 1.0 == theory.reward_bound(3, 0.0)
    assert theory.reward_bound(3, 2.0, theta_norm=0.5) == 8.0
    assert theory.reward_bound(3, 2.0, A0=A0) == pytest.approx(49.0)
    assert theory.reward_bound(3, -2.0, A0=A0, theta_norm=0.5) == pytest.approx(8.0)
    assert theory.reward_bound(math.inf, -1.0) == 1.0
    assert theory.reward_bound(math.inf, 1.0) == math.inf
    assert theory.reward_bound(math.inf, 1.0, theta_norm=0.0) == 0.0


@given(seed=st.integers(0, 2**32 - 1), m=st.integers(0, 4), gamma=gammas)
def test_no_reward_exceeds_its_bound(seed: int, m: int, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((m + 2, 2))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    eigenvalues, Q = np.linalg.eigh(A0 + vectors[:m].T @ vectors[:m])
    reward = vectors[m] @ Q @ np.diag(eigenvalues**gamma) @ Q.T @ vectors[m + 1]
    assert abs(reward) <= theory.reward_bound(m, gamma, A0=A0) * (1 + 1e-9)


def test_approximation_gap() -> None:
    assert theory.approximation_gap(1200, 2, 22, 1.5) == pytest.approx(2 * 2 * 1.5 * 1200 / 24)
    assert theory.approximation_gap(1200, 0, 5, 1.0) == 0.0
    grid = theory.approximation_gap([[10], [20], [30]], 1, [1, 4], 1.0)
    assert np.allclose(grid, [[10, 4], [20, 8], [30, 12]])


@given(T=horizons, m=memories, L=lengths, R=st.floats(0.0, 100.0))
def test_gap_shrinks_with_the_block(T: int, m: int, L: int, R: float) -> None:
    gap = theory.approximation_gap(T, m, L, R)
    assert 0.0 <= theory.approximation_gap(T, m, L + 1, R) <= gap <= 2 * R * T


# ---------------------------------------------------------------------------------------------- bad input

RADIUS: dict[str, Any] = {"samples": 10, "d": 3, "m": 2, "gamma": -1.0}
BOUND: dict[str, Any] = {"T": 1000, "d": 3, "m": 2, "gamma": -1.0}
COMBINER: dict[str, Any] = {"T": 1000, "d": 3, "candidates": [(1, 0.0), (2, -1.0)]}
FUNCTIONS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (theory.block_length, {"T": 1000, "d": 3, "m": 2}),
    (theory.confidence_radius, RADIUS),
    (theory.reward_bound, {"m": 2, "gamma": -1.0}),
    (theory.approximation_gap, {"T": 1000, "m": 2, "L": 10, "R": 1.0}),
    (theory.block_regret_bound, {**BOUND, "L": 10}),
    (theory.regret_bound, BOUND),
    (theory.combiner_constants, COMBINER),
]
BAD: dict[str, list[Any]] = {
    "T": [0, -5, 2.5, math.nan, math.inf],
    "samples": [-1, 0.5],
    "d": [0, 1.5],
    "m": [-1, 0.5, math.nan],
    "gamma": [math.inf, math.nan],
    "L": [0, 1.5, -3],
    "R": [-1.0],
    "lam": [0.0, -1.0],
    "delta": [0.0, 1.0, -0.1, 2.0],
    "subgaussian": [-1.0],
    "log_det_ratio": [-0.1, [1.0, -2.0]],
    "algorithm": ["OFUL", None],
    "theta_norm": [-1.0],
    "scale": [0.0, -1.0],
    "A0": [[[1.0, 2.0]], 1.0, [], -np.eye(3)],
    "candidates": [[], [(1, 0.0), (1, 0.0)], [(1, 0), (1.0, 0.0)], [(1, 2, 3)], [1, 2], 5],
}
CASES = [
    pytest.param(function, arguments, name, value, id=f"{function.__name__}-{name}-{value}")
    for function, arguments in FUNCTIONS
    for name, values in BAD.items()
    for value in values
    if name in function.__code__.co_varnames[: function.__code__.co_argcount]
]


@pytest.mark.parametrize(("function", "arguments", "name", "value"), CASES)
def test_bad_input_is_named(
    function: Callable[..., Any], arguments: dict[str, Any], name: str, value: Any
) -> None:
    function(**arguments)
    if name == "L" and function is theory.confidence_radius:
        arguments = {**arguments, "algorithm": "OM-Block"}
    with pytest.raises(ValueError, match=rf"^{name} must"):
        function(**{**arguments, name: value})


@pytest.mark.parametrize("value", ["1000", None, True, [[1], [2, 3]], 1 + 2j])
def test_bad_types_are_named(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^T must"):
        theory.regret_bound(**{**BOUND, "T": value})


def test_bad_arrays_are_named() -> None:
    with pytest.raises(ValueError, match=r"^T must be an integer >= 1, got 0"):
        theory.approximation_gap([5, 0], 1, 1, 1.0)
    with pytest.raises(ValueError, match=r"^L must be one integer or one for each of the 2"):
        theory.combiner_constants(**COMBINER, L=[1, 2, 3])
    with pytest.raises(ValueError, match=r"^L must be given"):
        theory.confidence_radius(**RADIUS, algorithm="OM-Block")
    with pytest.raises(ValueError, match=r"^m must be a finite integer"):
        theory.block_length(1000, 3, math.inf)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^m must"):
        theory.combiner_constants(1000, 3, [(-1, 0.0)])


def test_conditions_of_the_theorem() -> None:
    # T >= m^2 d^2 + 1 = 37 for O3M and OM, T >= m + 1 for OM-Block, lam >= 1 for all.
    for algorithm in ("O3M", "OM"):
        with pytest.raises(ValueError, match=r"^T must be at least m\^2 d\^2 \+ 1 = 37 .* got 36"):
            theory.regret_bound([100, 36], 3, 2, -1.0, algorithm=algorithm)
        assert theory.regret_bound(37, 3, 2, -1.0, algorithm=algorithm) > 0
    with pytest.raises(ValueError, match=r"^T must be at least m \+ 1 = 3 .* got 2"):
        theory.regret_bound(2, 3, 2, -1.0, algorithm="OM-Block")
    assert theory.regret_bound(3, 3, 2, -1.0, algorithm="OM-Block") > 0
    assert theory.regret_bound(1, 3, 0, -1.0) > 0
    with pytest.raises(ValueError, match=r"^lam must be a finite number in \[1"):
        theory.regret_bound(**BOUND, lam=0.5)
    with pytest.raises(ValueError, match=r"^gamma must"):
        theory.regret_bound(1000, 2, 2, -1.0, A0=np.diag([1.0, 0.0]))
