"""Regret balancing: its picks and discards step by step, its claims, and that the truth is kept."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastlbm as lbm
from fastlbm.agents.regret_balancing import BalancingPolicy
from tests.agents.test_learners import ROTTING, THETA

PAIRS, LENGTHS = [(0, -1.0), (1, -1.0), (2, -3.0), (3, 0.5), (2, 0.0)], [1, 5, 8, 4, 3]


def policy_of(agent: lbm.RegretBalancing, d: int = 3) -> BalancingPolicy:
    policy = agent.start(lbm.Ball(d))._policy
    assert isinstance(policy, BalancingPolicy)
    return policy


def claim(k: int, pair: tuple[int, float], L: int, **options: Any) -> float:
    """R(k) for d = 3, one number after the other."""
    m, gamma = pair
    rho = lbm.theory.reward_bound(m, gamma)
    beta = lbm.theory.confidence_radius(k * L, d=3, m=m, gamma=gamma, **options)
    potential = 2.0 * k * 3 * math.log(1.0 + k * L * rho**2 / (3 * options["lam"]))
    own = 0 if gamma == 0.0 else m
    return 2.0 * max(L * rho, beta * math.sqrt(L)) * math.sqrt(potential) + 2.0 * own * rho * k


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.02, 1e-4])
def test_picks_and_discards_are_the_algorithm_s(scale: float) -> None:
    T, delta, noise, lam = 500, 0.05, 0.3, 0.7
    env = lbm.LBM(THETA, m=2, gamma=-3.0, sigma=0.0)
    agent = lbm.RegretBalancing(PAIRS, T, L=LENGTHS, scale=scale, delta=delta, subgaussian=noise, lam=lam)
    run = lbm.run(env, agent, T=T, keep_actions=True)
    rewards = env.expected_rewards(run.actions)
    N, details = len(PAIRS), run.details
    own = [0 if gamma == 0.0 else m for m, gamma in PAIRS]
    x = 2.0 * max(m * lbm.theory.reward_bound(*pair) for m, pair in zip(own, PAIRS, strict=True))
    k, earned, active, at = [0] * N, [0.0] * N, [True] * N, 0
    for row, i in enumerate(details["candidate"]):
        claims = [
            scale * claim(k[j], PAIRS[j], LENGTHS[j], lam=lam, delta=delta, subgaussian=noise)
            for j in range(N)
        ]
        assert details["step"][row] == at
        np.testing.assert_allclose(details["claim"][row], claims, rtol=1e-9)
        assert details["active"][row].tolist() == active
        least = min(claims[j] for j in range(N) if active[j])
        assert i == next(j for j in range(N) if active[j] and claims[j] <= least * (1 + 1e-9))
        B = own[i] + LENGTHS[i]
        earned[i] += rewards[at : at + B].sum()
        at, k[i] = at + B, k[i] + 1
        low, high = [-math.inf] * N, [math.inf] * N
        for j in range(N):
            n = k[j] * (own[j] + LENGTHS[j])
            if active[j] and n:
                w = noise * math.sqrt((n + 1) * math.log((n + 1) * N**2 / delta**2))
                bound = claim(k[j], PAIRS[j], LENGTHS[j], lam=lam, delta=delta, subgaussian=noise)
                low[j] = earned[j] / n - scale * (w / n + x / (own[j] + LENGTHS[j]))
                high[j] = earned[j] / n + scale * (bound + w) / n
        active = [active[j] and high[j] >= max(low) for j in range(N)]
    assert at >= T
    assert all(active) == (scale == 1.0)


# --- what the claims stand on ---------------------------------------------------------------------------


@given(
    L=st.integers(1, 12),
    d=st.integers(1, 3),
    lam=st.floats(0.05, 20.0),
    noise=st.floats(0.0, 2.0),
    same=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_claims_hold_for_what_optimism_can_lose(
    L: int, d: int, lam: float, noise: float, same: bool, seed: int
) -> None:
    # A block of features b_1..b_L loses at most 2 beta sum ||b_j|| in the norm of V^-1, and at most 2 L.
    k = 40
    agent = lbm.RegretBalancing([(0, 0.0)], 10**4, L=L, lam=lam, subgaussian=noise)
    policy, rng = policy_of(agent, d), np.random.default_rng(seed)
    V, lost = lam * np.eye(d), 0.0
    for tau in range(k):
        B = np.eye(d)[rng.integers(d, size=1 if same else L)] * np.ones((L, 1))
        options: Any = {"lam": lam, "delta": 1e-4, "subgaussian": noise}
        beta = lbm.theory.confidence_radius(tau * L, d=d, m=0, gamma=0.0, **options)
        lost += min(2.0 * L, 2.0 * beta * np.sqrt(np.einsum("ji,ik,jk->j", B, np.linalg.inv(V), B)).sum())
        V += B.T @ B
        assert lost <= policy.claims(np.array([tau + 1.0]))[0] * (1.0 + 1e-9)
    grid = policy.claims(np.zeros(1)), policy.claims(np.array([3.0])), policy.claims(np.array([4.0]))
    assert 0.0 == grid[0] < grid[1] < grid[2]


def test_the_noise_leaves_its_widths_as_seldom_as_they_say() -> None:
    delta, paths, T = 0.2, 2000, 2000
    policy = policy_of(lbm.RegretBalancing([(0, 0.0)], T, L=1, delta=delta, subgaussian=0.5))
    widths = np.array([policy.widths(np.array([n]))[0] for n in range(1, T + 1)])
    noise = 0.5 * np.random.default_rng(0).standard_normal((paths, T)).cumsum(axis=1)
    outside = (np.abs(noise) > widths).any(axis=1).mean()
    assert 0.01 < outside <= delta


def test_a_block_earns_little_more_than_its_part_of_the_optimum() -> None:
    # Arms 0 and 1, m = 2: all blocks of B steps after all histories; one of them earns more than B OPT/T.
    arms, m = np.array([[0.0], [1.0]]), 2
    env = lbm.LBM([1.0], m=m, gamma=-3.0, actions=lbm.Finite(arms))
    for B in (1, 2, 3):
        best = lbm.opt_bounds(env, T=60)
        assert best.exact
        most = max(
            env.expected_rewards(arms[list(block)], history=arms[list(history)]).sum()
            for block in itertools.product(range(2), repeat=B)
            for history in itertools.product(range(2), repeat=m)
        )
        assert B * best.lower / 60 < most <= B * best.lower / 60 + 2 * m * env.reward_bound


# --- who is kept ------------------------------------------------------------------------------------------


@given(
    rewards=st.lists(
        st.tuples(st.integers(0, 2), st.floats(-1e3, 1e3), st.booleans()), min_size=1, max_size=60
    ),
    scale=st.sampled_from([1e-6, 0.01, 1.0]),
)
@settings(max_examples=60, deadline=None)
def test_somebody_is_always_active_and_nobody_comes_back(
    rewards: list[tuple[int, float, bool]], scale: float
) -> None:
    policy = policy_of(lbm.RegretBalancing([(0, 0.0), (1, -1.0), (2, 1.0)], 500, L=2, scale=scale))
    for i, reward, corrects in rewards:
        before = policy.active.copy()
        if corrects and policy.plays[i]:
            policy._correct(i, reward)
        else:
            policy._count(i, reward)
        assert policy.active.any()
        assert (policy.active <= before).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_truth_is_kept_and_what_is_worse_is_discarded(seed: int) -> None:
    env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    run = lbm.run(env, lbm.RegretBalancing([(0, 0.0), (1, -2.0)], 800, L=6, scale=0.05), T=800, seed=seed)
    active, played = run.details["active"], run.details["candidate"]
    assert active[-1].tolist() == [False, True]
    assert active[np.arange(len(played)), played].all()
    careful = lbm.run(ROTTING, lbm.RegretBalancing([(2, -3.0), (2, 0.0), (0, 0.0)], 1200, L=10), T=1200)
    assert careful.details["active"].all()  # with what is proven so few steps refute nobody


def test_candidates_whose_claims_are_equal_take_turns() -> None:
    run = lbm.run(ROTTING, lbm.RegretBalancing([(2, -3.0), (2, -2.0), (2, -1.0)], 600, L=10), T=600)
    assert run.details["candidate"][:6].tolist() == [0, 1, 2, 0, 1, 2]


def test_blocks_are_balanced_before_their_rewards_come() -> None:
    live = lbm.RegretBalancing([(1, -1.5), (1, -1.0), (1, -2.0)], 600, L=4).start(lbm.Ball(2))
    for _ in range(60):
        live.act()
    assert np.bincount(live.details()["candidate"]).tolist() == [4, 4, 4]
    assert live._policy.plays.sum() == 0.0
