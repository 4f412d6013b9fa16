"""Plans over finite sets against the enumeration of every block, cycle and sequence."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.kernels.optimism import O3M, OM, OM_BLOCK
from fastlbm.planning.finite import planner as finite

from . import naive
from .naive import Array

NAMES = {O3M: "O3M", OM: "OM", OM_BLOCK: "OM-Block"}

# (K, m, L, d, gamma, A0): rotting, rising, stationary, no memory, one arm, L < m, singular A0.
INSTANCES: list[tuple[int, int, int, int, float, str]] = [
    (3, 2, 4, 2, -3.0, "default"),
    (4, 1, 5, 3, -1.0, "default"),
    (2, 3, 6, 2, -0.5, "dense"),
    (5, 1, 4, 2, -2.3, "dense"),
    (3, 2, 4, 3, 2.0, "default"),
    (2, 4, 3, 3, 1.0, "default"),
    (3, 3, 1, 2, 0.7, "0.25"),
    (3, 2, 3, 2, 0.0, "default"),
    (4, 0, 3, 3, -3.0, "default"),
    (3, 0, 4, 2, 1.0, "dense"),
    (1, 2, 3, 2, -1.0, "default"),
    (3, 2, 3, 3, 1.0, "zero"),
    (3, 1, 4, 2, 2.0, "rank one"),
    (2, 2, 5, 2, 0.5, "rank one"),
]


def make(
    K: int, m: int, L: int, d: int, gamma: float, A0: str, kind: int, seed: int = 0, n: int | None = None
) -> dict[str, Any]:
    """Arguments of `plan_finite`; with n one set of arms for each of n steps."""
    rng = np.random.default_rng([seed, K, m, L, d])
    arms = naive.ball(K * (n or 1), d, rng).reshape(*(() if n is None else (n,)), K, d)
    size = d * (m + L) if kind == OM_BLOCK else d
    theta = rng.normal(size=size)
    matrix = {"zero": np.zeros((d, d)), "rank one": np.diag([1.0] + [0.0] * (d - 1))}.get(A0)
    return {
        "arms": arms,
        "m": m,
        "L": L,
        "gamma": gamma,
        "theta": theta / np.linalg.norm(theta),
        "V_inv": naive.precision(size, rng),
        "beta": 0.7,
        "kind": kind,
        "A0": naive.initial_matrix(A0, d, rng) if matrix is None else matrix,
    }


def sets_of(problem: dict[str, Any]) -> Array:
    """The arms (m+L, K, d) of every step."""
    arms = problem["arms"]
    return arms if arms.ndim == 3 else np.broadcast_to(arms, (problem["m"] + problem["L"], *arms.shape))


def window_features(sets: Array, gamma: float, A0: Array | None) -> Array:
    """The features (K^(m+1), d) of every window of m+1 arms, given the arms (m+1, K, d) of its steps."""
    *before, last = sets
    d = last.shape[1]
    powers = [
        naive.power(naive.memory_matrix(np.array(window).reshape(-1, d), A0), gamma)
        for window in itertools.product(*before)
    ]
    return np.concatenate([last @ power for power in powers])


def everything(K: int, n: int) -> Array:
    """All sequences of n arms, (n, K^n)."""
    return np.indices((K,) * n).reshape(n, -1)


def codes(windows: Array, K: int) -> Array:
    """Rows of `window_features` of windows (m+1, N) of indices."""
    return sum((row * K**i for i, row in enumerate(windows[::-1])), np.zeros(windows.shape[1], dtype=np.intp))


def brute_force(problem: dict[str, Any]) -> tuple[Array, Array]:
    """Every block (n, N) and its value (N,)."""
    m, L, gamma, theta, beta = (problem[key] for key in ("m", "L", "gamma", "theta", "beta"))
    sets = sets_of(problem)
    K = sets.shape[1]
    blocks = everything(K, m + L)
    B = np.array(
        [
            window_features(sets[t - m : t + 1], gamma, problem["A0"])[codes(blocks[t - m : t + 1], K)]
            for t in range(m, m + L)
        ]
    )

    def ucb(x: Array) -> Array:
        return x @ theta + (
            beta * np.sqrt(np.einsum("...i,ij,...j->...", x, problem["V_inv"], x)) if beta else 0.0
        )

    if problem["kind"] == O3M:
        return blocks, ucb(B).sum(axis=0)
    if problem["kind"] == OM:
        return blocks, ucb(B.sum(axis=0))
    first = [sets[t][blocks[t]] for t in range(m)]
    return blocks, ucb(np.concatenate([*first, *B], axis=1))


def value_of(problem: dict[str, Any], indices: Array) -> float:
    """The value of one block by its definition."""
    keys = ("m", "gamma", "theta", "V_inv", "beta", "A0")
    actions = sets_of(problem)[np.arange(len(indices)), indices]
    return naive.block_value(actions, optimism=NAMES[problem["kind"]], **{key: problem[key] for key in keys})


def check_plan(problem: dict[str, Any], plan: finite.FinitePlan) -> None:
    """What every plan promises."""
    assert plan.indices.shape == (problem["m"] + problem["L"],)
    assert plan.value == pytest.approx(value_of(problem, plan.indices), rel=1e-12, abs=1e-13)
    assert plan.value <= plan.upper
    assert plan.evaluations >= 1


def rewards_of_cycle(
    arms: Array, indices: Array, m: int, gamma: float, theta: Array, A0: Array | None
) -> Array:
    """Rewards of a cycle once it repeats."""
    rounds = 2 + m // len(indices)
    played = np.tile(arms[indices], (rounds, 1))
    return naive.expected_rewards(theta, m, gamma, A0, played)[-len(indices) :]


# --- additive plans -----------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("beta", [0.0, 0.7])
@pytest.mark.parametrize("instance", INSTANCES)
def test_additive_plans_are_exact(instance: tuple[Any, ...], beta: float) -> None:
    problem = make(*instance, kind=O3M) | {"beta": beta}
    plan = finite.plan_finite(**problem, require_exact=True)
    _, values = brute_force(problem)
    check_plan(problem, plan)
    assert plan.exact
    assert plan.value == pytest.approx(values.max(), rel=1e-12)
    assert plan.upper == pytest.approx(values.max(), rel=1e-12)


@pytest.mark.nojit
@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("instance", INSTANCES[:6])
def test_without_bonus_every_kind_is_exact(instance: tuple[Any, ...], kind: int) -> None:
    problem = make(*instance, kind=kind) | {"beta": 0.0, "V_inv": None}
    plan = finite.plan_finite(**problem)
    _, values = brute_force(problem)
    check_plan(problem, plan)
    assert plan.exact
    assert plan.value == pytest.approx(values.max(), rel=1e-12)


@settings(max_examples=60)
@given(
    K=st.integers(1, 4),
    m=st.integers(0, 3),
    L=st.integers(1, 4),
    gamma=st.sampled_from(naive.GAMMAS),
    beta=st.sampled_from([0.0, 0.3, 2.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_additive_plan_is_exact(K: int, m: int, L: int, gamma: float, beta: float, seed: int) -> None:
    problem = make(K, m, L, 2, gamma, "dense" if seed % 2 else "default", O3M, seed) | {"beta": beta}
    plan = finite.plan_finite(**problem)
    _, values = brute_force(problem)
    check_plan(problem, plan)
    assert plan.value == pytest.approx(values.max(), rel=1e-12)


@pytest.mark.nojit
def test_the_largest_enumeration() -> None:
    problem = make(4, 2, 6, 3, -3.0, "default", O3M)
    _, values = brute_force(problem)
    assert finite.plan_finite(**problem).value == pytest.approx(values.max(), rel=1e-12)


@pytest.mark.nojit
@pytest.mark.parametrize("kind", [O3M, OM, OM_BLOCK])
@pytest.mark.parametrize("instance", [INSTANCES[i] for i in (0, 1, 2, 4, 8, 11)])
def test_contextual_plans(instance: tuple[Any, ...], kind: int) -> None:
    problem = make(*instance, kind=kind, n=instance[1] + instance[2])
    plan = finite.plan_finite(**problem)
    _, values = brute_force(problem)
    check_plan(problem, plan)
    assert plan.exact or kind != O3M
    assert plan.upper >= values.max() - 1e-12
    assert plan.value == pytest.approx(values.max(), rel=1e-12 if kind == O3M else 0.02)


@pytest.mark.nojit
def test_the_same_arms_at_every_step_make_no_difference() -> None:
    problem = make(3, 2, 4, 2, -3.0, "default", O3M)
    plan = finite.plan_finite(**problem)
    spelled_out = finite.plan_finite(**problem | {"arms": np.array(sets_of(problem))})
    assert spelled_out.value == pytest.approx(plan.value, rel=1e-13)


# --- ties ---------------------------------------------------------------------------------------------


def best_closing(problem: dict[str, Any]) -> float:
    """The largest sum of rewards of a cycle whose block has the largest value."""
    m, theta = problem["m"], problem["theta"]
    blocks, values = brute_force(problem)
    rewards = window_features(sets_of(problem)[: m + 1], problem["gamma"], problem["A0"]) @ theta
    tied = blocks[:, values >= values.max() - 1e-9]
    wrapped = np.concatenate((tied[len(tied) - m :], tied[:m]))
    K = problem["arms"].shape[0]
    return float(values.max() + sum(rewards[codes(wrapped[i : i + m + 1], K)] for i in range(m)).max())


@settings(max_examples=60)
@given(
    m=st.integers(1, 3),
    L=st.integers(1, 4),
    gamma=st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]),
    rows=st.lists(st.tuples(*[st.integers(-1, 1)] * 2), min_size=1, max_size=4, unique=True),
    theta=st.tuples(*[st.sampled_from([-0.5, 0.0, 0.5])] * 2),
)
def test_ties_go_to_the_best_cycle(
    m: int, L: int, gamma: float, rows: list[tuple[int, int]], theta: tuple[float, float]
) -> None:
    arms = np.array(rows, dtype=np.float64)
    arms /= np.maximum(np.linalg.norm(arms, axis=1, keepdims=True), 1.0)
    if len(arms) ** (m + L) > 5000:
        L = 2
    problem = {"arms": arms, "m": m, "L": L, "gamma": gamma, "theta": np.array(theta), "V_inv": None}
    problem |= {"beta": 0.0, "kind": O3M, "A0": None}
    plan = finite.plan_finite(**problem)
    cycled = rewards_of_cycle(arms, plan.indices, m, gamma, problem["theta"], None).sum()
    assert cycled == pytest.approx(best_closing(problem), rel=1e-9, abs=1e-9)


@pytest.mark.nojit
@pytest.mark.parametrize("gamma", [-3.0, -0.5, 0.0])
@pytest.mark.parametrize(("m", "L"), [(1, 3), (1, 4), (2, 4), (2, 2), (3, 1), (3, 5)])
def test_proposition_3(m: int, L: int, gamma: float) -> None:
    d = m + 1
    arms, theta = np.vstack((np.zeros(d), np.eye(d))), np.full(d, 1.0 / math.sqrt(d))
    model = {"arms": arms, "m": m, "gamma": gamma, "theta": theta}
    plan = finite.plan_finite(**model, L=L)
    assert plan.exact
    assert plan.value == pytest.approx(L / math.sqrt(d), rel=1e-12)
    cycled = rewards_of_cycle(arms, plan.indices, m, gamma, theta, None)
    if (m + L) % d == 0 or gamma == 0.0:
        # The paper's block of m zeros and e_1, ..., e_L collects L rewards of m+L; this one all of them.
        assert cycled.sum() == pytest.approx((m + L) / math.sqrt(d), rel=1e-12)
    assert cycled.sum() >= L / math.sqrt(d) * (1.0 - 1e-12)
    assert finite.long_run_optimum(**model).average == pytest.approx(1.0 / math.sqrt(d), rel=1e-12)
    for T in (1, m, m + 1, 50):
        assert finite.finite_horizon_optimum(**model, T=T).value == pytest.approx(T / math.sqrt(d), rel=1e-12)


def test_proposition_3_for_a_long_horizon() -> None:
    arms, theta = np.vstack((np.zeros(3), np.eye(3))), np.full(3, 1.0 / math.sqrt(3.0))
    best = finite.finite_horizon_optimum(arms, 100_000, m=2, gamma=-3.0, theta=theta)
    assert best.value == pytest.approx(100_000 / math.sqrt(3.0), rel=1e-12)


# --- OM and OM-Block ----------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("kind", [OM, OM_BLOCK])
@pytest.mark.parametrize("instance", INSTANCES)
def test_joint_plans_are_close_to_the_best(instance: tuple[Any, ...], kind: int) -> None:
    problem = make(*instance, kind=kind)
    plan = finite.plan_finite(**problem)
    _, values = brute_force(problem)
    check_plan(problem, plan)
    best = values.max()
    assert best <= plan.upper + 1e-12 * abs(best)
    assert plan.value >= best - 0.02 * abs(best)
    if plan.exact:
        assert plan.value == pytest.approx(best, rel=1e-11)
    if kind == OM:
        over_optimistic = finite.plan_finite(**problem | {"kind": O3M})
        assert plan.value >= value_of(problem, over_optimistic.indices) * (1.0 - 1e-12)


def test_joint_plans_nearly_always_are_the_best() -> None:
    found = {OM: 0, OM_BLOCK: 0}
    for kind in found:
        for seed in range(60):
            K, m, L, gamma = [(3, 1, 4, -3.0), (3, 2, 3, -1.0), (2, 2, 6, 0.5), (4, 1, 4, 2.0)][seed % 4]
            problem = make(K, m, L, 2, gamma, "default", kind, seed) | {"beta": [0.3, 1.0, 3.0][seed % 3]}
            _, values = brute_force(problem)
            plan = finite.plan_finite(**problem)
            assert plan.value <= values.max() + 1e-11
            assert plan.upper >= values.max() - 1e-11
            found[kind] += plan.value >= values.max() - 1e-10
    assert found[OM] >= 59
    assert found[OM_BLOCK] >= 58


@pytest.mark.nojit
def test_om_plans_depend_on_the_seed_alone() -> None:
    problem = make(4, 1, 5, 3, -1.0, "default", OM)
    first, second = (finite.plan_finite(**problem, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.indices, second.indices)
    assert first[1:] == second[1:]


@pytest.mark.nojit
def test_a_zero_block_has_no_direction() -> None:
    problem = make(1, 1, 2, 2, -1.0, "default", OM) | {"arms": np.zeros((1, 2))}
    for kind in (O3M, OM):
        plan = finite.plan_finite(**problem | {"kind": kind})
        assert plan.value == 0.0
        assert plan.exact


# --- without tables -----------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("instance", [INSTANCES[i] for i in (0, 1, 4, 8, 10)])
def test_search_without_tables(instance: tuple[Any, ...], kind: int) -> None:
    problem = make(*instance, kind=kind)
    plan = finite.plan_finite(**problem, budget=1)
    _, values = brute_force(problem)
    check_plan(problem, plan)
    assert not plan.exact
    assert plan.upper >= values.max()
    assert plan.value >= values.max() - 0.02 * abs(values.max())


def test_search_where_tables_are_out_of_reach() -> None:
    problem = make(8, 12, 10, 3, -1.0, "default", O3M)
    plan = finite.plan_finite(**problem)
    check_plan(problem, plan)
    assert not plan.exact
    with pytest.raises(ValueError, match=r"actions .* K=8 arms with m=12: 68719476736 states"):
        finite.plan_finite(**problem, require_exact=True)
    for function in (finite.long_run_optimum, finite.finite_horizon_optimum):
        arguments = {key: problem[key] for key in ("arms", "m", "gamma", "theta")}
        with pytest.raises(ValueError, match=r"actions .* states take \d+ bytes"):
            function(**arguments, **({"T": 12} if function is finite.finite_horizon_optimum else {}))


@pytest.mark.nojit
def test_contextual_search_without_tables() -> None:
    problem = make(3, 2, 4, 2, -3.0, "default", O3M, n=6)
    plan = finite.plan_finite(**problem, budget=1)
    check_plan(problem, plan)
    assert plan.value >= 0.98 * brute_force(problem)[1].max()


@pytest.mark.nojit
def test_horizons_that_take_too_long() -> None:
    problem = {"arms": np.eye(2), "m": 1, "gamma": -1.0, "theta": np.array([0.6, 0.8])}
    with pytest.raises(ValueError, match="T must be at most 2500000001 "):
        finite.finite_horizon_optimum(**problem, T=10**10)
    with pytest.raises(ValueError, match="states take"):
        finite.finite_horizon_optimum(**problem, T=1000, plan=True, budget=2000)
    assert finite.finite_horizon_optimum(**problem, T=1000, budget=2000).value == pytest.approx(
        700.0, rel=1e-12
    )


# --- cycles -------------------------------------------------------------------------------------------


def cycle_averages(arms: Array, period: int, m: int, gamma: float, theta: Array, A0: Array | None) -> Array:
    """The average of every cycle of the period."""
    K = len(arms)
    rewards = window_features(np.broadcast_to(arms, (m + 1, *arms.shape)), gamma, A0) @ theta
    cycles = everything(K, period)
    return sum(rewards[codes(cycles[np.arange(t - m, t + 1) % period], K)] for t in range(period)) / period


@pytest.mark.nojit
@pytest.mark.parametrize("instance", INSTANCES)
def test_cycles_are_exact(instance: tuple[Any, ...]) -> None:
    problem = make(*instance, kind=O3M)
    arguments = {key: problem[key] for key in ("arms", "m", "gamma", "theta", "A0")}
    for period in (1, 2, 3, 4, 5):
        cycle = finite.best_cycle_finite(**arguments, period=period)
        assert cycle.indices.shape == (period,)
        assert cycle.exact
        assert cycle.average == pytest.approx(
            rewards_of_cycle(indices=cycle.indices, **arguments).mean(), rel=1e-12
        )
        assert cycle.average == pytest.approx(cycle_averages(period=period, **arguments).max(), rel=1e-12)


@pytest.mark.nojit
def test_cycles_without_tables() -> None:
    problem = make(3, 2, 4, 2, -3.0, "default", O3M)
    arguments = {key: problem[key] for key in ("arms", "m", "gamma", "theta", "A0")}
    for period in (1, 2, 5):
        cycle = finite.best_cycle_finite(**arguments, period=period, budget=1)
        assert not cycle.exact
        assert cycle.average == pytest.approx(
            rewards_of_cycle(indices=cycle.indices, **arguments).mean(), rel=1e-12
        )
        assert cycle.average == pytest.approx(cycle_averages(period=period, **arguments).max(), rel=0.02)


def test_cycles_beyond_the_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make(4, 2, 4, 2, -3.0, "default", O3M, seed=1)
    arguments = {key: problem[key] for key in ("arms", "m", "gamma", "theta", "A0")}
    exact = finite.best_cycle_finite(**arguments, period=7)
    monkeypatch.setattr(finite, "_CYCLE_OPERATIONS", -1)
    searched = finite.best_cycle_finite(**arguments, period=7)
    assert exact.exact
    assert not searched.exact
    assert exact.average * 0.98 <= searched.average <= exact.average * (1.0 + 1e-12)


@pytest.mark.nojit
@pytest.mark.parametrize(("K", "m"), [(2, 1), (3, 1), (2, 2), (4, 1), (2, 3), (5, 0)])
@pytest.mark.parametrize("gamma", [-3.0, 0.0, 2.0])
def test_long_run_optimum(K: int, m: int, gamma: float) -> None:
    for seed in range(3):
        problem = make(K, m, 1, 2, gamma, "default", O3M, seed)
        arguments = {key: problem[key] for key in ("arms", "m", "gamma", "theta", "A0")}
        best = finite.long_run_optimum(**arguments)
        # Some maximum mean cycle visits no state twice.
        averages = [cycle_averages(period=period, **arguments).max() for period in range(1, K**m + 1)]
        assert best.exact
        assert best.average == pytest.approx(max(averages), rel=1e-12)
        assert best.average == pytest.approx(
            rewards_of_cycle(indices=best.indices, **arguments).mean(), rel=1e-12
        )


@settings(max_examples=40)
@given(K=st.integers(1, 6), m=st.integers(0, 3), seed=st.integers(0, 2**32 - 1), discrete=st.booleans())
def test_no_policy_beats_the_long_run_optimum(K: int, m: int, seed: int, discrete: bool) -> None:
    rng = np.random.default_rng(seed)
    arms = rng.integers(-1, 2, size=(K, 2)) / math.sqrt(2.0) if discrete else naive.ball(K, 2, rng)
    arguments = {
        "arms": arms,
        "m": m,
        "gamma": float(rng.choice([-3.0, -1.0, 0.5])),
        "theta": np.array([0.6, 0.8]),
    }
    best = finite.long_run_optimum(**arguments)
    assert best.exact
    # OPT(T) - OPT(S) tends to (T - S) times the average: within m steps of it both ways.
    short, long = (finite.finite_horizon_optimum(**arguments, T=T).value for T in (500, 2500))
    assert (long - short) / 2000 == pytest.approx(best.average, abs=0.01)
    for period in (1, 2, 3, 7):
        assert finite.best_cycle_finite(**arguments, period=period).average <= best.average + 1e-12


# --- horizons -----------------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("contextual", [False, True])
@pytest.mark.parametrize("instance", [INSTANCES[i] for i in (0, 1, 2, 4, 7, 8, 11, 12)])
def test_finite_horizon_optimum(instance: tuple[Any, ...], contextual: bool) -> None:
    K, m, _, d, gamma, _ = instance
    for T in (1, 2, 3, 5):
        problem = make(*instance, kind=O3M, n=T if contextual else None)
        arguments = {key: problem[key] for key in ("arms", "m", "gamma", "theta", "A0")}
        best = finite.finite_horizon_optimum(**arguments, T=T, plan=True)
        sets = np.broadcast_to(problem["arms"], (T, K, d))
        # The empty history is a set with the zero action alone before every sequence.
        padded = np.concatenate((np.zeros((m, K, d)), sets))
        windows = [window_features(padded[t : t + m + 1], gamma, problem["A0"]) for t in range(T)]
        sequences = np.concatenate((np.zeros((m, K**T), dtype=np.intp), everything(K, T)))
        totals = sum((windows[t] @ problem["theta"])[codes(sequences[t : t + m + 1], K)] for t in range(T))
        assert best.value == pytest.approx(totals.max(), rel=1e-12)
        assert best.indices is not None
        played = naive.expected_rewards(
            problem["theta"], m, gamma, problem["A0"], sets[np.arange(T), best.indices]
        )
        assert best.value == pytest.approx(played.sum(), rel=1e-12)
        assert finite.finite_horizon_optimum(**arguments, T=T) == (best.value, None)


def test_contextual_horizon_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make(3, 2, 1, 2, -3.0, "default", O3M, n=40)
    arguments = {key: problem[key] for key in ("arms", "m", "gamma", "theta", "A0")}
    whole = finite.finite_horizon_optimum(**arguments, T=40, plan=True)
    monkeypatch.setattr(finite, "_CHUNK", 27 * 7)
    pieces = finite.finite_horizon_optimum(**arguments, T=40, plan=True)
    np.testing.assert_array_equal(whole.indices, pieces.indices)
    assert whole.value == pytest.approx(pieces.value, rel=1e-14)


def test_many_windows_side_by_side() -> None:
    problem = make(13, 2, 20, 3, -2.3, "dense", O3M)
    plan = finite.plan_finite(**problem)
    check_plan(problem, plan)
    rng = np.random.default_rng(0)
    for _ in range(50):
        indices = np.where(rng.random(22) < 0.2, rng.integers(13, size=22), plan.indices)
        assert value_of(problem, indices) <= plan.value * (1.0 + 1e-12)
