"""Baselines: each step against a slow reference with the same draws, and how their draws are distributed."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import numpy as np
import pytest

import fastlbm as lbm
from tests.agents.test_learners import SETS, THETA, play_live

D = 3
AGENTS: dict[str, lbm.agents.Agent] = {
    "LinTS": lbm.LinTS(200),
    "LinTS, noise told": lbm.LinTS(subgaussian=0.2, lam=0.5),
    "LinTS, inflated": lbm.LinTS(200, inflate=True, radius="trace"),
    "EpsilonGreedy": lbm.EpsilonGreedy(),
    "EpsilonGreedy, constant": lbm.EpsilonGreedy(0.3),
    "greedy": lbm.EpsilonGreedy(0.0),
    "Random": lbm.Random(),
}


def arms_of(actions: lbm.model.ActionSet, step: int) -> np.ndarray | None:
    if isinstance(actions, lbm.Ball):
        return None
    return actions.arms[step] if actions.varies else actions.arms


def best(theta: np.ndarray, arms: np.ndarray | None) -> np.ndarray:
    if arms is not None:
        return arms[int(np.argmax(arms @ theta))]
    norm = np.linalg.norm(theta)
    return theta / norm if norm > 0.0 else np.eye(D)[0]


def uniform(arms: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    if arms is not None:
        return arms[int(rng.random() * len(arms))]
    z = np.array([rng.standard_normal() for _ in range(D)])
    return z / np.linalg.norm(z) * rng.random() ** (1.0 / D)


class Naive:
    """Regression on all actions and rewards from scratch, and the choice that follows."""

    def __init__(self, agent: lbm.agents.Agent) -> None:
        self.agent = agent
        self.actions: list[np.ndarray] = []
        self.y: list[float] = []

    def act(self, arms: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
        if isinstance(self.agent, lbm.Random):
            return uniform(arms, rng)
        A, y, lam = np.array(self.actions).reshape(-1, D), np.array(self.y), self.agent.lam
        V = lam * np.eye(D) + A.T @ A
        theta, n = np.linalg.solve(V, A.T @ y), len(y)
        if isinstance(self.agent, lbm.EpsilonGreedy):
            epsilon = min(1.0, 5 * D / (n + 1)) if self.agent.epsilon is None else self.agent.epsilon
            return uniform(arms, rng) if rng.random() < epsilon else best(theta, arms)
        residual = y @ y - theta @ (A.T @ y)
        sigma = math.sqrt((0.1 + residual / 2) / (1 + n / 2))
        v = sigma if self.agent.subgaussian is None else self.agent.subgaussian
        if self.agent.inflate:
            # delta is 1/horizon; Abeille and Lazaric take a share of it.
            T = self.agent.horizon
            volume = D * math.log1p(n / (D * lam))
            v = v * math.sqrt(2 * math.log(T * 4 * T) + volume) + math.sqrt(lam)
        z = np.array([rng.standard_normal() for _ in range(D)])
        return best(theta + v * np.linalg.cholesky(np.linalg.inv(V)) @ z, arms)


@pytest.mark.nojit
@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("name", AGENTS)
def test_every_step_is_that_of_the_reference(name: str, kind: str) -> None:
    agent, actions = AGENTS[name], SETS[kind]
    reference, live = Naive(agent), agent.start(actions, seed=3)
    rng = copy.deepcopy(live._policy.rng)
    rewards = np.random.default_rng(0)
    for t in range(60):
        expected = reference.act(arms_of(actions, t), rng)
        found = live.act()
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-8)
        y = float(found @ THETA + 0.1 * rewards.standard_normal())
        live.update(y)
        reference.actions.append(found)
        reference.y.append(y)


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("name", AGENTS)
def test_live_decides_as_a_run_does_and_goes_on_from_a_state(name: str, kind: str, tmp_path: Path) -> None:
    agent, env = AGENTS[name], lbm.LBM(THETA, m=2, gamma=-3.0, sigma=0.0, actions=SETS[kind])
    run = lbm.run(env, agent, T=80, seed=5, keep_actions=True)
    _, actions = play_live(agent, env, 80, seed=5)
    np.testing.assert_array_equal(actions, run.actions)
    live = agent.start(SETS[kind], seed=5)
    for t in range(80):
        if t in (1, 40):
            live = agent.start(SETS[kind], seed=9).load(live.save(tmp_path / "state"))
        np.testing.assert_array_equal(live.act(), run.actions[t])
        live.update(env.expected_rewards(run.actions[: t + 1])[-1])
    if name != "greedy":
        assert (lbm.run(env, agent, T=80, seed=6, keep_actions=True).actions != run.actions).any()


@pytest.mark.parametrize("kind", ["ball", "finite", "contextual"])
def test_random_is_uniform(kind: str) -> None:
    T, actions = 300, SETS[kind]
    env = lbm.LBM(THETA, actions=actions)
    played = np.concatenate(
        [lbm.run(env, lbm.Random(), T=T, seed=s, keep_actions=True).actions for s in range(20)]
    )
    n = len(played)
    if kind == "ball":
        # ||a||^d is uniform, and the direction has no mean and the covariance I/d.
        norms = np.linalg.norm(played, axis=1)
        counts = np.histogram(norms**D, bins=10, range=(0.0, 1.0))[0]
        assert (np.abs(counts - n / 10) < 5 * math.sqrt(n * 0.09)).all()
        unit = played / norms[:, None]
        assert np.abs(unit.mean(axis=0)).max() < 5 / math.sqrt(n * D)
        assert np.abs(unit.T @ unit / n - np.eye(D) / D).max() < 5 * 0.3 / math.sqrt(n)
        return
    K = actions.K
    steps = np.tile(np.arange(T), 20)
    sets = actions.arms[steps] if actions.varies else np.broadcast_to(actions.arms, (n, K, D))
    counts = np.bincount((sets == played[:, None]).all(axis=2).argmax(axis=1), minlength=K)
    assert (np.abs(counts - n / K) < 5 * math.sqrt(n / K * (1 - 1 / K))).all()


def test_thetas_are_drawn_from_the_posterior() -> None:
    """On the ball the action is the direction of the draw: told a theta and V, its mean and spread show."""
    agent = lbm.LinTS(subgaussian=0.5, lam=4.0)
    live = agent.start(lbm.Ball(2), seed=0)
    live.replay([[1.0, 0.0], [0.6, 0.8]] * 20, [0.9, 0.2] * 20)
    theta, V_inv = live.theta, live.V_inv
    policy = live._policy
    draws = []
    for _ in range(4000):
        policy.plan_next_block()
        draws.append(policy.block.actions[0].copy())
    rng = np.random.default_rng(1)
    expected = rng.multivariate_normal(theta, 0.25 * V_inv, size=200_000)
    angle = np.arctan2(expected[:, 1], expected[:, 0])
    found = np.arctan2(*np.array(draws).T[::-1])
    middle = np.median(angle)
    assert abs(np.median(found) - middle) < 5 * 1.25 * angle.std() / math.sqrt(len(found))
    for q in (0.1, 0.25, 0.75, 0.9):
        share = float((found < np.quantile(angle, q)).mean())
        assert abs(share - q) < 5 * math.sqrt(q * (1 - q) / len(found))


def test_the_schedule_explores_less_and_less() -> None:
    actions = lbm.Finite(np.eye(3))
    env = lbm.LBM([1.0, 0.0, 0.0], m=0, gamma=0.0, sigma=0.1, actions=actions)
    early, late = [], []
    for seed in range(30):
        other = lbm.run(env, lbm.EpsilonGreedy(), T=1000, seed=seed, keep_actions=True).actions[:, 0] == 0.0
        early.append(other[:15].mean())
        late.append(other[500:].mean())
    # Two of three arms of a uniform draw; then about 15/750 of the steps, averaged over 1/t.
    assert np.mean(early) == pytest.approx(2 / 3, abs=5 * math.sqrt(2 / 9 / 450))
    share = 2 / 3 * np.mean(15 / np.arange(501, 1001))
    assert np.mean(late) == pytest.approx(share, abs=5 * math.sqrt(share / 15_000) + 0.002)


def test_they_learn_where_there_is_no_memory() -> None:
    env = lbm.LBM(THETA, m=0, gamma=0.0, sigma=0.1, actions=SETS["finite"])
    best_arm = float((SETS["finite"].arms @ THETA).max())
    for name, least in {"LinTS": 0.95, "LinTS, inflated": 0.8, "EpsilonGreedy": 0.85}.items():
        share = lbm.run(env, AGENTS[name], T=1000, seed=0).reward[-1] / (1000 * best_arm)
        assert share > least, name


def test_bad_arguments_are_refused() -> None:
    for make, words in (
        (lambda: lbm.LinTS(0), "horizon must be"),
        (lambda: lbm.LinTS(inflate=True), "horizon must be a number of steps for inflate=True, got None"),
        (lambda: lbm.LinTS(lam=0.0), "lam must be"),
        (lambda: lbm.LinTS(subgaussian=-1.0), "subgaussian must be"),
        (lambda: lbm.LinTS(radius="other"), "radius must be"),
        (lambda: lbm.EpsilonGreedy(1.5), "epsilon must be"),
        (lambda: lbm.EpsilonGreedy(lam=-1.0), "lam must be"),
    ):
        with pytest.raises(ValueError, match=words):
            make()
    assert lbm.LinTS(100) == lbm.LinTS(horizon=100)
    assert lbm.Random() == lbm.Random()
    assert "epsilon=0.2" in repr(lbm.EpsilonGreedy(0.2))


def test_doubling_begins_again_with_thompson_sampling() -> None:
    live = lbm.Doubling(lbm.LinTS(4)).start(lbm.Ball(2), seed=0)
    for _ in range(5):
        live.act()
        live.update(0.5)
    live.act()
    assert live._policy.learner.estimator.ledger[0] == 1.0
