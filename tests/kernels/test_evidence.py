"""The evidence: for any lam it is that of a regression from scratch, and a million rewards lose no digits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastlbm as lbm
from fastlbm.agents.auto_policy import AutoPolicy
from fastlbm.kernels.estimator import LOG_DET
from fastlbm.kernels.evidence import CandidateSet, absorb_reward, candidate_features, evidence_terms, push_all
from tests import problems
from tests.naive_weighing import fading_features

Array = np.ndarray


def candidates_of(d: int, memories: list[int], gammas: list[float], lam: float) -> CandidateSet:
    policy = lbm.Auto(memories=memories, gammas=gammas, lam=lam).start(lbm.Ball(d))._policy
    assert isinstance(policy, AutoPolicy)
    return policy.candidates


@given(
    d=st.integers(1, 5), n=st.integers(0, 40), lam=st.floats(0.01, 10.0), scale=st.floats(1e-4, 2.0),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_other_lam(d: int, n: int, lam: float, scale: float, seed: int) -> None:
    candidates = candidates_of(d, [0, 2], [-2.0, 1.0], lam)
    rng = np.random.default_rng(seed)
    actions, y = problems.ball(n, d, rng), rng.normal(size=n)
    N = len(candidates.m)
    F, recent = np.zeros((n, N * d)), np.zeros((2, d))
    candidate_features(candidates, np.zeros((0, d, d)), recent, actions, F)
    for features, reward in zip(F, y, strict=True):
        absorb_reward(candidates, features, float(reward))
    log_det, rest = np.zeros((N, 2)), np.zeros((N, 2))
    evidence_terms(candidates, np.array([1.0, scale]), log_det, rest)
    for j in range(N):
        B = F[:, j * d : (j + 1) * d]
        for k, one in enumerate((lam, scale * lam)):
            cov = np.eye(n) + B @ B.T / one
            assert log_det[j, k] == pytest.approx(np.linalg.slogdet(cov)[1], rel=1e-8, abs=1e-8)
            assert rest[j, k] == pytest.approx(y @ np.linalg.solve(cov, y), rel=1e-7, abs=1e-9)


@given(
    d=st.integers(1, 5), before=st.integers(0, 12), n=st.integers(1, 4), isotropic=st.booleans(),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_features_of_memories_that_fade(d: int, before: int, n: int, isotropic: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A0 = np.eye(d) if isotropic else np.diag(rng.uniform(0.5, 2.0, d))
    agent = lbm.Auto(memories=[0, 1, 3, math.inf], gammas=[-2.0, 0.0, 1.5], decays=[1.0, 0.4, 0.9], A0=A0)
    policy = agent.start(lbm.Ball(d))._policy
    assert isinstance(policy, AutoPolicy)
    actions = problems.ball(before + n, d, rng)
    M, N = len(policy.recent), len(policy.alive)
    recent = np.concatenate((np.zeros((M, d)), actions[:before]))[-M:]
    past = np.zeros_like(policy.past)
    push_all(policy.candidates, past, actions, 0, before)
    held, F = past.copy(), np.zeros((n, N * d))
    candidate_features(policy.candidates, past, recent, actions[before:], F)
    np.testing.assert_array_equal(past, held)
    for j in range(N):
        B = fading_features(actions, *policy.model(j), A0=A0)[before:]
        np.testing.assert_allclose(F[:, j * d : (j + 1) * d], B, rtol=1e-9, atol=1e-10)


def exact(F: Array, y: Array, lam: float) -> tuple[Array, float, float]:
    """theta, ln det V/det(lam I) and the residual, from sums that are rounded once, in 40 digits."""
    d = F.shape[1]
    with mpmath.workdps(40):
        V = mpmath.matrix([[math.fsum(F[:, i] * F[:, k]) for k in range(d)] for i in range(d)])
        V = V + lam * mpmath.eye(d)
        U = mpmath.matrix([math.fsum(F[:, i] * y) for i in range(d)])
        theta = mpmath.lu_solve(V, U)
        rest = mpmath.mpf(math.fsum(y * y)) - (U.T * theta)[0]
        log_det = mpmath.log(mpmath.det(V)) - d * mpmath.log(lam)
        return np.array([float(x) for x in theta]), float(log_det), float(rest)


@pytest.mark.parametrize("n", [30_000, pytest.param(10**6, marks=pytest.mark.slow)])
def test_many_rewards_lose_no_digits(n: int) -> None:
    d, lam, theta = 3, 1.0, np.array([0.5, -0.3, 0.8])
    candidates = candidates_of(d, [0, 2], [-3.0, 1.5], lam)
    rng = np.random.default_rng(0)
    # Nearly a cycle, as when it is known what is best: features that hardly differ.
    turn = problems.ball(3, d, rng)
    actions = np.tile(turn, (n // 3 + 1, 1))[:n] + 1e-4 * rng.normal(size=(n, d))
    N = len(candidates.m)
    F = np.zeros((n, N * d))
    candidate_features(candidates, np.zeros((0, d, d)), np.zeros((2, d)), actions, F)
    y = F[:, :d] @ theta + 0.1 * rng.normal(size=n)
    for features, reward in zip(F, y, strict=True):
        absorb_reward(candidates, features, float(reward))
    log_det, rest = np.zeros((N, 2)), np.zeros((N, 2))
    scales = np.array([1.0, 1.0 / 4096.0])
    evidence_terms(candidates, scales, log_det, rest)
    for j in range(N):
        for k, scale in enumerate(scales):
            found = exact(F[:, j * d : (j + 1) * d], y, float(lam * scale))
            if k == 0:
                np.testing.assert_allclose(candidates.theta[j], found[0], rtol=1e-9, atol=1e-11)
                assert candidates.ledger[j, LOG_DET] == pytest.approx(found[1], rel=1e-11)
            assert log_det[j, k] == pytest.approx(found[1], rel=1e-10)
            assert rest[j, k] == pytest.approx(found[2], rel=1e-10)
