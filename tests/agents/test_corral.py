"""CORRAL: its step against 50 digits and against all distributions, its rounds, its old blocks."""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastlbm as lbm
from fastlbm.agents.corral import CorralPolicy, log_barrier_step
from tests.agents.test_learners import ROTTING, SETS, THETA

PAIRS, LENGTHS = [(0, -1.0), (1, -1.0), (2, -3.0)], [3, 5, 8]


def policy_of(agent: lbm.Corral, d: int = 3) -> CorralPolicy:
    policy = agent.start(lbm.Ball(d))._policy
    assert isinstance(policy, CorralPolicy)
    return policy


# --- the step ---------------------------------------------------------------------------------------------


def slow_step(p: np.ndarray, losses: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """The same in 50 digits: c by halving, from where the sum is at most 1 to where one q_j is 1."""
    with mp.workdps(50):
        p_, l_, r_ = ([mp.mpf(float(x)) for x in array] for array in (p, losses, rates))
        total = mp.fsum(p_)
        p_ = [x / total for x in p_]

        def q(c: Any) -> list[Any]:
            return [1 / (1 / a + r * (x - c)) for a, x, r in zip(p_, l_, r_, strict=True)]

        low, high = min(l_), min(x + (1 / a - 1) / r for a, x, r in zip(p_, l_, r_, strict=True))
        for _ in range(300):
            middle = (low + high) / 2
            low, high = (low, middle) if mp.fsum(q(middle)) > 1 else (middle, high)
        return np.array([float(x) for x in q(low)])


def distributions(N: int, seed: int) -> np.ndarray:
    """Also with entries as small as 1e-6."""
    rng = np.random.default_rng(seed)
    p = 10.0 ** -rng.uniform(0.0, 6.0, N)
    return p / p.sum()


@pytest.mark.nojit
@given(
    N=st.integers(1, 8),
    seed=st.integers(0, 10**6),
    loss=st.floats(-1.0, 1.0),
    rate=st.floats(1e-3, 100.0),
    one=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_the_step_is_solved_to_twelve_digits(N: int, seed: int, loss: float, rate: float, one: bool) -> None:
    p, rng = distributions(N, seed), np.random.default_rng(seed + 1)
    rates = rate * rng.uniform(1.0, 5.0, N)
    losses, i = rng.uniform(-1.0, 1.0, N), int(rng.integers(N))
    if one:  # as CORRAL has it: one loss, divided by a probability
        losses = np.where(np.arange(N) == i, loss / p[i], 0.0)
    found = log_barrier_step(p, losses, rates)
    assert (found > 0.0).all()
    assert found.sum() == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(found, slow_step(p, losses, rates), rtol=1e-9, atol=1e-12)
    if one:
        assert (found[i] - p[i]) * loss <= 1e-15
    np.testing.assert_allclose(log_barrier_step(p, np.full(N, loss), rates), p, rtol=1e-12)


@pytest.mark.nojit
def test_no_distribution_is_better_than_the_step() -> None:
    p, losses, rates = np.array([0.2, 0.5, 0.3]), np.array([0.0, 1.4, -0.3]), np.array([0.5, 2.0, 1.0])

    def cost(q: np.ndarray) -> np.ndarray:
        return q @ losses + ((q / p - np.log(q / p)) / rates).sum(axis=-1)

    found = log_barrier_step(p, losses, rates)
    grid = np.array(
        [(a, b, 200 - a - b) for a, b in itertools.product(range(1, 199), repeat=2) if a + b < 200]
    )
    costs = cost(grid / 200.0)
    assert cost(found) < costs.min() < cost(p) - 0.01
    np.testing.assert_allclose(grid[costs.argmin()] / 200.0, found, atol=0.01)


# --- the master -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("eta", [None, 0.5, 30.0])
def test_the_master_is_the_algorithm(eta: float | None, smooth: bool) -> None:
    T, N = 900, len(PAIRS)
    env = lbm.LBM(THETA, m=2, gamma=-3.0, sigma=0.0)
    run = lbm.run(env, lbm.Corral(PAIRS, T, L=LENGTHS, eta=eta, smooth=smooth), T=T, keep_actions=True)
    rewards, details = env.expected_rewards(run.actions), run.details
    rounds = math.ceil(T / (3 * (2 if smooth else 1)))
    p, low = np.full(N, 1 / N), np.full(N, 1 / (2 * N))
    rates = np.full(N, eta or (N / rounds) ** (2 / 3))
    for row, i in enumerate(details["candidate"]):
        again = smooth and row % 2 == 1
        mixed = (1 - 1 / rounds) * p + 1 / (N * rounds)
        assert details["again"][row] == again
        np.testing.assert_allclose(details["probability"][row], mixed, rtol=1e-10)
        # Steps with a large eta magnify rounding: the next one is from here.
        mixed = details["probability"][row]
        p = (mixed - 1 / (N * rounds)) / (1 - 1 / rounds)
        assert mixed.min() >= 1 / (N * rounds)
        if again:
            assert i == details["candidate"][row - 1]
        start, end = int(details["step"][row]), int(details["step"][row]) + PAIRS[i][0] + LENGTHS[i]
        if end > T:
            break
        if again or not smooth:
            losses = np.zeros(N)
            losses[i] = (1.0 - rewards[start:end].mean()) / 2.0 / mixed[i]
            p = slow_step(p, losses, rates)
            mixed = (1 - 1 / rounds) * p + 1 / (N * rounds)
            for j in range(N):
                if mixed[j] < low[j]:
                    low[j] = mixed[j] / 2
                    rates[j] *= math.exp(1 / math.log(rounds))
    assert row > 20
    if eta == 30.0:
        assert rates.max() > eta


@given(
    losses=st.lists(st.tuples(st.integers(0, 3), st.floats(-2.0, 2.0)), min_size=1, max_size=80),
    eta=st.floats(1e-3, 100.0),
)
@settings(max_examples=60, deadline=None)
def test_probabilities_stay_and_rates_only_rise(losses: list[tuple[int, float]], eta: float) -> None:
    policy = policy_of(lbm.Corral([*PAIRS, (0, 0.0)], 2000, L=2, eta=eta))
    for i, reward in losses:
        before = policy.rates.copy()
        policy.drawn[i] = policy.probabilities()[i]
        policy._count(i, reward)
        policy._correct(i, 0.1)
        p = policy.probabilities()
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        assert p.min() >= 1.0 / (policy.rounds * len(p))
        assert (policy.rates >= before).all()
    policy.check()


def test_what_earns_most_is_drawn_most() -> None:
    env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    for smooth in (True, False):
        agent = lbm.Corral([(0, 0.0), (1, -2.0)], 3000, L=6, smooth=smooth, eta=2.0)
        for seed in range(3):
            assert lbm.run(env, agent, T=3000, seed=seed).details["probability"][-1][1] > 0.6


# --- old blocks -------------------------------------------------------------------------------------------


def test_old_blocks_are_those_that_were_played_and_drawn_alike() -> None:
    T, L, m = 4000, 2, 1
    env = lbm.LBM(THETA, m=m, gamma=-3.0)
    run = lbm.run(env, lbm.Corral([(m, -3.0)], T, L=L, smooth=True), T=T, keep_actions=True)
    blocks = run.actions[: T - T % 6].reshape(-1, 2, m + L, 3)
    places = []
    for s, (_, old) in enumerate(blocks[:200], start=1):
        found = np.flatnonzero((blocks[:s, 0] == old).all(axis=(1, 2)))
        assert len(found)
        places.append((found.mean() + 0.5) / s)
    assert abs(np.mean(places) - 0.5) < 0.08
    assert np.std(places) == pytest.approx(math.sqrt(1 / 12), abs=0.06)


def test_of_many_blocks_each_is_kept_with_the_same_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastlbm.agents.corral.KEPT", 4)
    policy = policy_of(lbm.Corral([(0, 0.0)], 1000, L=1), d=1)
    counts = np.zeros(20)
    for _ in range(1500):
        policy.seen[:] = 0
        for s in range(20):
            policy.block.actions[:] = s
            policy._keep(0)
        counts[policy.blocks[0].ravel().astype(int)] += 1
    assert np.abs(counts / 1500 - 4 / 20).max() < 0.05


def test_candidates_learn_from_old_blocks_as_well() -> None:
    env = lbm.LBM(THETA, m=2, gamma=-3.0, sigma=0.0)
    live = lbm.Corral([(2, -3.0)], 400, L=4).start(env.actions)
    past: list[np.ndarray] = []
    for _ in range(60):
        past.append(live.act())
        live.update(env.expected_rewards(past)[-1])
    live.act()
    B = np.concatenate([_features(np.array(past[s : s + 6])) for s in range(0, 60, 6)])
    np.testing.assert_allclose(live.V_inv, np.linalg.inv(np.eye(3) + B.T @ B), rtol=1e-8, atol=1e-11)


def _features(block: np.ndarray) -> np.ndarray:
    """Of the last actions of a block, with rewards in the coordinates' directions."""
    models = [lbm.LBM(e, m=2, gamma=-3.0) for e in np.eye(3)]
    return np.array([model.expected_rewards(block)[2:] for model in models]).T


def test_sets_that_vary_have_no_old_blocks() -> None:
    for kind in ("contextual", "scheduled"):
        with pytest.raises(ValueError, match="actions must stay the same for Corral with smooth=True"):
            lbm.Corral(PAIRS, 300, L=4).start(SETS[kind])
        lbm.Corral(PAIRS, 300, L=4, smooth=False).start(SETS[kind]).act()


@pytest.mark.nojit
@pytest.mark.parametrize("eta", [0.0, -1.0, math.nan, math.inf])
def test_bad_rates_are_refused(eta: float) -> None:
    with pytest.raises(ValueError, match="eta must be"):
        lbm.Corral(PAIRS, 300, eta=eta)


def test_short_horizons_have_rounds() -> None:
    assert lbm.run(ROTTING, lbm.Corral([(0, 0.0), (1, -1.0)], 5, L=4), T=5).complete
