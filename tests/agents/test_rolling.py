"""Rolling: it learns from every reward, its radius holds, and it earns what planning from here earns."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm.kernels.estimator import NOISE_SCALE, NOISE_SHAPE
from tests import naive, problems
from tests.agents.test_learners import ROTTING, SETS, THETA, play_live

T = 80


def shares(env: lbm.LBM, agent: lbm.agents.Agent, T: int, seeds: int) -> np.ndarray:
    """Reward of some runs, as a share of the best cycle known."""
    best = lbm.best_cycle(env).average
    return np.array([lbm.run(env, agent, T, seed=s, record=1).reward[-1] / T / best for s in range(seeds)])


# --- what is learned ------------------------------------------------------------------------------------


@pytest.mark.parametrize("switch", [0.0, 1.0])
@pytest.mark.parametrize("kind", SETS)
def test_every_reward_is_learned_from_with_the_feature_really_played(kind: str, switch: float) -> None:
    if SETS[kind].varies and switch > 0.0:
        pytest.skip("refused")
    m, gamma, lam, delta = 2, -1.5, 0.7, 0.05
    env = lbm.LBM(THETA, m=m, gamma=gamma, sigma=0.0, actions=SETS[kind])
    agent = lbm.Rolling(m, gamma, lam=lam, delta=delta, radius="determinant", switch=switch)
    live = agent.start(env.actions, seed=3)
    actions: list[np.ndarray] = []
    known, plans = 0, 0
    for t in range(T):
        actions.append(live.act())
        if live.plans > plans:
            known, plans = t, live.plans  # the estimate is as of this plan
        live.update(0.2 * math.sin(t) + env.expected_rewards(actions)[-1])
    B = naive.features(np.concatenate((np.zeros((m, 3)), actions)), m, gamma, None)[:known]
    y = (0.2 * np.sin(np.arange(T)) + env.expected_rewards(actions))[:known]
    V = lam * np.eye(3) + B.T @ B
    np.testing.assert_allclose(live.V_inv, np.linalg.inv(V), rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(live.theta, np.linalg.solve(V, B.T @ y), rtol=1e-8, atol=1e-10)
    # The noise: one-step errors of the regression, one reward after the other.
    residual, V, U = 0.0, lam * np.eye(3), np.zeros(3)
    for b, reward in zip(B, y, strict=True):
        residual += (reward - b @ np.linalg.solve(V, U)) ** 2 / (1.0 + b @ np.linalg.solve(V, b))
        V, U = V + np.outer(b, b), U + reward * b
    noise = math.sqrt((NOISE_SCALE + 0.5 * residual) / (NOISE_SHAPE + 0.5 * known))
    volume = np.linalg.slogdet(V / lam)[1]
    beta = noise * math.sqrt(2.0 * math.log(1.0 / delta) + volume) + math.sqrt(lam)
    assert live.beta == pytest.approx(beta, rel=1e-7)


@pytest.mark.parametrize("radius", ["determinant", "estimate"])
def test_the_confidence_set_holds_at_all_times(radius: str) -> None:
    """With probability 1 - delta, at every plan of an episode; the noise is known."""
    d, m, gamma, sigma, delta, seeds = 3, 1, -1.0, 0.3, 0.2, 150
    failed = 0
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        env = lbm.LBM.random(d=d, m=m, gamma=gamma, seed=seed, sigma=sigma)
        agent = lbm.Rolling(m, gamma, subgaussian=sigma, delta=delta, radius=radius, lam=0.5)
        live, past, inside = agent.start(env.actions, seed=seed), np.zeros((m, d)), True
        for _ in range(40):
            action = live.act()
            error = live.theta - env.theta
            inside &= bool(error @ np.linalg.inv(live.V_inv) @ error <= live.beta**2 * (1.0 + 1e-9))
            live.update(env.expected_rewards(action[None], history=past)[0] + sigma * rng.standard_normal())
            past = np.concatenate((past, action[None]))[-m:]
        failed += not inside
    assert failed <= delta * seeds


def test_the_noise_is_found() -> None:
    for sigma in (0.05, 0.5):
        env = lbm.LBM(THETA, m=1, gamma=-1.0, sigma=sigma)
        known, estimated = (lbm.Rolling(1, -1.0, subgaussian=s, horizon=2000) for s in (sigma, None))
        one, other = (shares(env, agent, 2000, 3).mean() for agent in (known, estimated))
        assert abs(one - other) < 0.01


@pytest.mark.parametrize("kind", [lbm.O3M, lbm.OM])
def test_block_learners_and_oful_can_estimate_the_noise(kind: type[lbm.O3M]) -> None:
    estimated = kind(2, -3.0, 1200, L=20, subgaussian=None)
    assert estimated == kind(2, -3.0, 1200, L=20, subgaussian="estimated")  # type: ignore[arg-type]
    # Without noise the estimate falls, down to what the prior leaves of it.
    quiet = lbm.LBM(THETA, m=2, gamma=-3.0, sigma=0.0)
    found, given = (play_live(agent, quiet, 200)[0].beta for agent in (estimated, kind(2, -3.0, 1200, L=20)))
    assert found < 1.0 + 0.2 * (given - 1.0)
    stationary = lbm.LBM(THETA, m=0, gamma=0.0)
    oful = [shares(stationary, lbm.OFUL(500, subgaussian=s), 500, 3).mean() for s in (None, 1.0)]
    assert oful[0] > oful[1]
    pairs = [(0, 0.0), (2, -3.0)]
    for selector in (lbm.EvidenceSelector, lbm.BanditCombiner, lbm.RegretBalancing, lbm.Corral):
        assert lbm.run(ROTTING, selector(pairs, 200, L=5, subgaussian=None), 200).complete
    with pytest.raises(ValueError, match="subgaussian must be a number for OMBlock"):
        lbm.OMBlock(2, -3.0, 100, subgaussian=None)


# --- what is played -------------------------------------------------------------------------------------


def test_figure_1_left_whatever_ahead() -> None:
    found = [shares(ROTTING, lbm.Rolling(2, -3.0, ahead=ahead), 1218, 4).mean() for ahead in (9, 15, 30)]
    assert min(found) > 0.985
    assert max(found) - min(found) < 0.01


@pytest.mark.parametrize(
    ("d", "m", "gamma"),
    [(3, 2, -3.0), (2, 3, -3.0), (3, 3, -2.5), (5, 4, -3.5), (2, 5, -1.0), (4, 1, 2.0), (6, 3, -2.87)],
)
def test_who_knows_theta_plays_the_best_cycle(d: int, m: int, gamma: float) -> None:
    """Without noise theta is known after d steps: what is left is planning, also with rests, d <= m."""
    env = lbm.LBM.random(d=d, m=m, gamma=gamma, seed=1, sigma=0.0)
    agent = lbm.Rolling(m, gamma, subgaussian=0.0, lam=1e-9)
    run = lbm.run(env, agent, T=1500, seed=0, record=[500, 1500])
    assert (run.reward[1] - run.reward[0]) / 1000 >= 0.999 * lbm.best_cycle(env).average


@pytest.mark.parametrize("lam", [1e-9, 1e-8, 3e-5])
def test_who_expects_no_noise_still_plays_before_the_first_reward(lam: float) -> None:
    env = lbm.LBM([-1.0], m=0, gamma=-1.0, sigma=0.0)
    run = lbm.run(env, lbm.Rolling(0, -1.0, subgaussian=0.0, lam=lam), T=20)
    assert run.reward[-1] >= 18.0


def test_more_than_o3m_and_oful_on_random_problems() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        d, m, gamma = int(rng.integers(2, 6)), int(rng.integers(1, 4)), float(rng.uniform(-3.0, 1.5))
        A0 = np.diag(rng.uniform(0.8, 1.5, d)) if seed % 2 else None
        env = lbm.LBM.random(d=d, m=m, gamma=gamma, seed=seed, sigma=0.2, A0=A0)
        mine = shares(env, lbm.Rolling(m, gamma, A0=A0), 800, 2).mean()
        assert mine > 0.9
        assert mine > shares(env, lbm.O3M(m, gamma, 800, L=20, A0=A0), 800, 2).mean()
        assert mine > shares(env, lbm.OFUL(800), 800, 2).mean()


@pytest.mark.parametrize("kind", ["ball", "finite"])
def test_few_plans_are_enough_for_a_long_time(kind: str) -> None:
    env = lbm.LBM(THETA, m=2, gamma=-3.0, actions=SETS[kind])
    run = lbm.run(env, lbm.Rolling(2, -3.0, switch=1.0), T=10**5, seed=1, record=1)
    assert run.plans < 120
    assert run.reward[-1] / 1e5 > 0.997 * lbm.best_cycle(env).average


def test_on_few_arms_the_plan_is_the_best_policy_there_is() -> None:
    """Without noise and knowing theta: the maximum mean cycle, from any history."""
    for seed in range(5):
        arms = problems.ball(6, 3, np.random.default_rng(seed))
        env = lbm.LBM(THETA, m=2, gamma=-2.0, sigma=0.0, actions=lbm.Finite(arms))
        agent = lbm.Rolling(2, -2.0, subgaussian=0.0, lam=1e-9)
        run = lbm.run(env, agent, T=1000, seed=0, record=[400, 1000])
        assert (run.reward[1] - run.reward[0]) / 600 >= 0.99 * lbm.best_cycle(env).average


def test_on_many_arms_a_search_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    arms = problems.ball(40, 3, np.random.default_rng(0))
    env = lbm.LBM(THETA, m=2, gamma=-3.0, actions=lbm.Finite(arms / np.linalg.norm(arms, axis=1)[:, None]))
    exact = lbm.run(env, lbm.Rolling(2, -3.0), T=150).reward[-1]
    monkeypatch.setattr("fastlbm.planning.finite.planner._CONTINUED_OPERATIONS", 0.0)
    searched = lbm.run(env, lbm.Rolling(2, -3.0), T=150).reward[-1]
    assert searched > 0.9 * exact
    assert searched > 1.2 * lbm.run(env, lbm.OFUL(150), T=150).reward[-1]


def test_without_memory_it_is_oful() -> None:
    env = lbm.LBM(THETA, m=3, gamma=0.0)
    one = lbm.run(env, lbm.Rolling(3, 0.0, horizon=300, subgaussian=1.0, radius="trace"), T=300, seed=2)
    np.testing.assert_array_equal(one.reward, lbm.run(env, lbm.OFUL(300), T=300, seed=2).reward)


def test_restarts_know_the_past() -> None:
    agent = lbm.Doubling(lbm.Rolling(2, -3.0, horizon=20))
    live, actions = play_live(agent, lbm.LBM(THETA, m=2, gamma=-3.0, sigma=0.0), 22)
    np.testing.assert_array_equal(live._policy.inner.plans_ahead.outlook.recent, actions[18:20])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lbm.Rolling(2, -3.0, ahead=0), "ahead must be"),
        (lambda: lbm.Rolling(2, -3.0, ahead=4, play=5), "play must be"),
        (lambda: lbm.Rolling(2, -3.0, play=10), "play must be"),
        (lambda: lbm.Rolling(math.inf, -3.0), "m must be"),  # type: ignore[arg-type]
        (lambda: lbm.Rolling(2, -3.0, horizon=0), "horizon must be"),
        (lambda: lbm.Rolling(2, -3.0, subgaussian=-0.1), "subgaussian must be"),
        (lambda: lbm.Rolling(2, -3.0, A0=np.eye(2)).start(lbm.Ball(3)), "A0 must have the dimension"),
        (lambda: lbm.Rolling(2, -3.0, switch=1.0).start(SETS["contextual"]), "switch must be 0"),
        (lambda: lbm.Doubling(lbm.Rolling(2, -3.0)), "agent must have a horizon"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(make: object, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        make()  # type: ignore[operator]
