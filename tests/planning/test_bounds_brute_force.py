"""Bounds on OPT, against the enumeration of every sequence of arms."""

from __future__ import annotations

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm.planning.finite import FinitePlanner, planner
from tests import problems
from tests.naive import Array
from tests.planning.finite.problems import codes, everything, window_features

CASES, BATCHES = 500, 10
GAMMAS = (-3.0, -2.0, -1.0, -0.4, 0.0, 0.5, 1.0, 2.0)


def memory_matrix(d: int, gamma: float, rng: np.random.Generator) -> Array | None:
    """The identity, a multiple of it, a general matrix, and where gamma allows it 0 or a singular one."""
    singular = [np.zeros((d, d)), np.diag([1.0] + [0.0] * (d - 1))] if gamma >= 0.0 else []
    general = problems.initial_matrix("dense", d, rng)
    choices = [None, 0.25 * np.eye(d), 3.0 * np.eye(d), general, *singular]
    return choices[int(rng.integers(len(choices)))]


def set_of_arms(K: int, d: int, rng: np.random.Generator) -> Array:
    """Arms (K, d): unit, in one orthant, in the ball, with the zero action, with tiny ones, or repeated."""
    arms = problems.ball(K, d, rng)
    unit = arms / np.linalg.norm(arms, axis=1, keepdims=True)
    zero, tiny = arms.copy(), unit.copy()
    zero[int(rng.integers(K))], tiny[int(rng.integers(K))] = 0.0, 1e-9 * unit[0]
    choices = [unit, unit, np.abs(unit), arms, zero, tiny, 1e-6 * arms, unit[np.zeros(K, dtype=int)]]
    return choices[int(rng.integers(len(choices)))]


def instance(number: int) -> tuple[lbm.LBM, int, int]:
    """A model on a small set of arms, a horizon T and a block length L."""
    rng = np.random.default_rng([2024, number])
    d, K, m = int(rng.integers(1, 4)), int(rng.integers(1, 5)), int(rng.integers(0, 4))
    T = int(rng.integers(1, 1 + (6 if K <= 3 else 5)))
    gamma = float(rng.choice(GAMMAS))
    A0 = memory_matrix(d, gamma, rng)
    if number % 3 == 0:
        actions = lbm.Contextual(np.array([set_of_arms(K, d, rng) for _ in range(T + 1)]))
    else:
        actions = lbm.Finite(set_of_arms(K, d, rng))
    theta = rng.normal(size=d)
    theta *= rng.choice([1.0, 0.3]) / np.linalg.norm(theta)
    L = int(rng.choice([1, 2, T, T + 2]))
    return lbm.LBM(theta, m=m, gamma=gamma, A0=A0, actions=actions), T, L


def optimum(env: lbm.LBM, T: int) -> float:
    """OPT by its definition: the largest total of all sequences; the empty history is m zero actions."""
    m, arms = int(env.m), env.actions.arms
    K, d = arms.shape[-2:]
    padded = np.zeros((m + T, K, d))
    padded[m:] = arms[:T] if arms.ndim == 3 else arms
    sequences = np.concatenate((np.zeros((m, K**T), dtype=np.intp), everything(K, T)))
    total = np.zeros(K**T)
    for t in range(T):
        rewards = window_features(padded[t : t + m + 1], env.gamma, env.A0) @ env.theta
        total += rewards[codes(sequences[t : t + m + 1], K)]
    return float(total.max())


def rounding_of(env: lbm.LBM, T: int) -> float:
    """How far sums of rewards may be apart; a root takes rounding at an eigenvalue 0 from 1e-16 to 1e-8."""
    singular = np.linalg.eigvalsh(env.A0)[0] < 1e-12
    return (1e-7 if singular and 0.0 < env.gamma < 1.0 else 1e-11) * T * env.reward_bound


def check(bounds: lbm.planning.plans.OptBounds, OPT: float, rounding: float) -> None:
    """lower <= OPT <= upper, exact means equal; up to rounding."""
    assert bounds.certified
    assert bounds.lower <= OPT + rounding
    assert bounds.upper >= OPT - rounding
    if bounds.exact:
        assert bounds.lower == bounds.upper == pytest.approx(OPT, abs=rounding)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_opt_is_between_its_bounds(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(batch, CASES, BATCHES):
        env, T, L = instance(number)
        OPT, rounding = optimum(env, T), rounding_of(env, T)
        exact = lbm.opt_bounds(env, T, L=L)
        assert exact.exact
        check(exact, OPT, rounding)
        if isinstance(env.actions, lbm.Finite) and not env.is_stationary:
            with monkeypatch.context() as patch:
                patch.setattr(planner, "_HORIZON_OPERATIONS", 0)  # only the first m steps
                check(lbm.opt_bounds(env, T, L=L, max_period=3), OPT, rounding)
                if number % 10 == 1:
                    patch.setitem(FinitePlanner.__init__.__kwdefaults__, "budget", 1)  # no tables at all
                    check(lbm.opt_bounds(env, T, L=L, max_period=1), OPT, rounding)
