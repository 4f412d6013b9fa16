"""Problems on sets of arms, and the enumeration of every block, cycle and sequence."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from fastlbm.kernels.optimism import O3M, OM, OM_BLOCK, Belief
from fastlbm.planning.finite import FinitePlanner
from fastlbm.planning.plans import Plan
from tests import naive, problems
from tests.naive import Array

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
    """Set, model and belief, by name; with n one set of arms for each of n steps."""
    rng = np.random.default_rng([seed, K, m, L, d])
    arms = problems.ball(K * (n or 1), d, rng).reshape(*(() if n is None else (n,)), K, d)
    size = d * (m + L) if kind == OM_BLOCK else d
    theta = rng.normal(size=size)
    matrix = {"zero": np.zeros((d, d)), "rank one": np.diag([1.0] + [0.0] * (d - 1))}.get(A0)
    return {
        "arms": arms,
        "m": m,
        "L": L,
        "gamma": gamma,
        "theta": theta / np.linalg.norm(theta),
        "V_inv": problems.precision(size, rng),
        "beta": 0.7,
        "kind": kind,
        "A0": problems.initial_matrix(A0, d, rng) if matrix is None else matrix,
    }


def planner_of(problem: dict[str, Any], **options: Any) -> FinitePlanner:
    """A new planner for the set and the model of a problem."""
    return FinitePlanner(
        problem["arms"], m=problem["m"], gamma=problem["gamma"], A0=problem.get("A0"), **options
    )


def belief_of(problem: dict[str, Any]) -> Belief:
    """The belief of a problem; theta is known unless it says otherwise."""
    theta, V_inv = problem["theta"], problem.get("V_inv")
    matrix = np.eye(len(theta)) if V_inv is None else V_inv
    return Belief(theta=theta, V_inv=matrix, beta=problem.get("beta", 0.0), kind=problem.get("kind", O3M))


def plan_of(problem: dict[str, Any], *, seed: int = 0, require_exact: bool = False, **options: Any) -> Plan:
    """The plan of a new planner."""
    planner = planner_of(problem, **options)
    return planner.plan(belief_of(problem), problem["L"], seed, require_exact=require_exact)


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


def check_plan(problem: dict[str, Any], plan: Plan) -> None:
    """What every plan promises."""
    assert plan.indices is not None
    n = problem["m"] + problem["L"]
    assert plan.indices.shape == (n,)
    np.testing.assert_array_equal(plan.actions, sets_of(problem)[np.arange(n), plan.indices])
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
