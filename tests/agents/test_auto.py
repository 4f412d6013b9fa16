"""Auto: what it believes is the evidence, what it is not told it finds, what it cannot explain it says."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm.agents import auto_policy
from fastlbm.kernels import weighing
from tests import naive, problems
from tests.agents.test_learners import ROTTING, SETS, THETA

Array = np.ndarray


def play(
    live: lbm.Live, reward: Callable[[list[Array], Array, int], float], T: int, seed: int = 0
) -> list[Array]:
    """T steps in any world: its reward of an action after those before, and noise of 0.1."""
    rng, actions = np.random.default_rng(seed), []
    for t in range(T):
        action = live.act()
        live.update(reward(actions, action, t) + 0.1 * rng.standard_normal())
        actions.append(action)
    return actions


def evidence(B: Array, y: Array, lam: float) -> float:
    """ln p(y) with theta ~ N(0, sigma^2/lam I) and sigma^2 ~ InverseGamma(1, 0.01), from scratch."""
    n = len(B)
    cov = np.eye(n) + B @ B.T / lam
    a, b, quadratic = 1.0, 0.01, y @ np.linalg.solve(cov, y)
    return float(
        math.lgamma(a + n / 2) - math.lgamma(a) + a * math.log(b) - (a + n / 2) * math.log(b + quadratic / 2)
        - 0.5 * n * math.log(2 * math.pi) - 0.5 * np.linalg.slogdet(cov)[1]
    )  # fmt: skip


# --- what it believes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ball", "finite", "contextual"])
def test_the_posterior_is_that_of_the_evidence(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_policy, "BEHIND", math.inf)
    env = lbm.LBM(THETA, m=2, gamma=-2.0, sigma=0.0, actions=SETS[kind])
    agent = lbm.Auto(memories=[0, 1, 2, 3], gammas=[-2.0, 1.0], lam=0.7)
    live = agent.start(env.actions, seed=1)
    actions = play(live, lambda past, a, t: env.expected_rewards([*past, a])[-1], 31)
    rng = np.random.default_rng(0)
    y = env.expected_rewards(actions) + 0.1 * rng.standard_normal(31)
    policy = live._policy
    known = int(policy.candidates.ledger[0, 0])
    assert known == 30
    found = dict(zip(map(policy.model, range(len(policy.alive))), policy.log_posterior(), strict=True))
    assert set(found) == {(0, 0.0, 1.0), *((m, g, 1.0) for m in (1, 2, 3) for g in (-2.0, 1.0))}
    logs = {}
    for m, gamma, decay in found:
        B = naive.features(np.concatenate((np.zeros((m, 3)), actions)), m, gamma, None)
        # The size of theta beside the noise is not known; nor is m, of which 0 has one exponent, others two.
        lams = [evidence(B[:known], y[:known], 0.7 * scale) for scale in auto_policy.SCALES]
        logs[m, gamma, decay] = np.logaddexp.reduce(lams) - math.log(2.0 if m > 0 else 1.0)
    total = np.logaddexp.reduce(list(logs.values()))
    for pair, value in found.items():
        assert value == pytest.approx(logs[pair] - total, abs=1e-7)


def test_what_is_far_behind_is_given_up_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = lbm.Auto(memories=range(4), gammas=[-3.0, -1.0, 1.0])
    short = lbm.run(ROTTING, agent, T=400, seed=1, keep_actions=True)
    policies = []
    live = agent.start(lbm.Ball(3), seed=1)
    play(live, lambda past, a, t: ROTTING.expected_rewards([*past[-2:], a])[-1], 300)
    policies.append(len(live._policy.alive))
    monkeypatch.setattr(auto_policy, "BEHIND", math.inf)
    whole = lbm.run(ROTTING, agent, T=400, seed=1, keep_actions=True)
    np.testing.assert_array_equal(short.actions, whole.actions)
    assert policies[0] < 10


def test_it_says_what_it_believes() -> None:
    live = lbm.Auto(memories=range(4), gammas=[-3.0, -1.0, 1.0]).start(lbm.Ball(3), seed=0)
    play(live, lambda past, a, t: ROTTING.expected_rewards([*past[-2:], a])[-1], 400)
    said = live.explain()
    assert max(said.memory, key=said.memory.get) == 2
    assert sum(said.memory.values()) == pytest.approx(1.0)
    assert sum(said.gamma.values()) == pytest.approx(1.0)
    assert said.noise == pytest.approx(0.1, rel=0.25)
    assert (np.abs(said.theta - THETA) < 6.0 * said.spread + 0.05).all()
    assert said.misfit is False
    assert "memory m: 2 (" in str(said)
    assert json.loads(json.dumps(said.as_dict()))["memory"]["2"] == pytest.approx(said.memory[2])
    assert [axes.get_xlabel() for axes in said.plot().axes] == [
        "memory m", "exponent gamma", "coordinate of theta",
    ]  # fmt: skip
    other = lbm.O3M(2, -3.0, 100).start(lbm.Ball(3))
    other.act()
    assert other.explain().memory is None
    assert "theta" in str(other.explain())
    assert "does not learn" in str(lbm.OracleGreedy().start(ROTTING).explain())


# --- what it finds --------------------------------------------------------------------------------------


def test_told_nothing_it_earns_more_than_o3m_that_is_told_everything() -> None:
    for seed, (d, m, gamma) in enumerate([(3, 2, -3.0), (4, 1, 1.2), (2, 3, -2.0), (5, 0, 0.0)]):
        env = lbm.LBM.random(d=d, m=m, gamma=gamma, seed=seed, sigma=0.1)
        run = lbm.run(env, lbm.Auto(), T=900, seed=seed, record=1)
        known = lbm.run(env, lbm.O3M(m, gamma, 900, L=20), T=900, seed=seed, record=1)
        assert run.reward[-1] > known.reward[-1]
        assert run.reward[-1] > 0.9 * 900 * lbm.best_cycle(env).average
        assert not run.details["misfit"][-1]


def test_a_longer_memory_than_was_offered_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastlbm.agents.auto.MEMORIES", (0, 1, 2))
    monkeypatch.setattr("fastlbm.agents.auto.GAMMAS", (-2.0, -1.0, 1.0))
    env = lbm.LBM(THETA, m=4, gamma=-2.0, sigma=0.05)
    run = lbm.run(env, lbm.Auto(), T=1500, seed=0)
    assert run.details["m"][-1] == 4
    assert run.reward[-1] > 0.85 * 1500 * lbm.best_cycle(env).average
    restricted = lbm.run(env, lbm.Auto(memories=[0, 1, 2]), T=300, seed=0)
    assert set(restricted.details["m"].tolist()) <= {0, 1, 2}


def test_what_is_offered_later_has_learned_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastlbm.agents.auto.MEMORIES", (0, 1))
    monkeypatch.setattr("fastlbm.agents.auto.GAMMAS", (-2.0,))
    monkeypatch.setattr(auto_policy, "KEPT", 40)
    live = lbm.Auto().start(lbm.Ball(3), seed=0)
    env = lbm.LBM(THETA, m=3, gamma=-2.0, sigma=0.0)
    rng, actions, rewards, epoch = np.random.default_rng(0), [], [], 0
    while live._policy.origin.epoch == 0 and len(actions) < 400:
        actions.append(live.act())
        rewards.append(env.expected_rewards(actions)[-1] + 0.05 * rng.standard_normal())
        if live._policy.origin.epoch == 0:
            live.update(rewards[-1])
    epoch, n = live._policy.origin.epoch, len(actions) - 1
    assert epoch == 1
    policy = live._policy
    M = policy.grid.largest
    assert M == 2
    for row, j in enumerate(policy.alive):
        m, gamma, _ = policy.grid.models[j]
        B = naive.features(np.concatenate((np.zeros((m, 3)), actions[:n])), m, gamma, None)[n - 40 + M :]
        V = np.eye(3) + B.T @ B
        theta = np.linalg.solve(V, B.T @ np.array(rewards[n - 40 + M : n]))
        np.testing.assert_allclose(policy.candidates.theta[row], theta, rtol=1e-8, atol=1e-10)


def test_late_rewards_are_learned_by_all_candidates() -> None:
    live = lbm.Auto(memories=[0, 1, 2], gammas=[-2.0]).start(lbm.Ball(3), seed=0)
    y = np.random.default_rng(1).uniform(-0.3, 0.3, 40)
    actions = []
    for t in range(40):
        actions.append(live.act())
        if t % 4 != 1:
            live.update(y[t])
        if t >= 10 and (t - 10) % 4 == 1:
            live.update(y[t - 10], step=t - 10)
    live.act()
    policy, steps = live._policy, np.arange(39)
    learned = (steps % 4 != 1) | (steps + 10 <= 39)
    for row, j in enumerate(policy.alive):
        m, gamma, _ = policy.grid.models[j]
        B = naive.features(np.concatenate((np.zeros((m, 3)), actions)), m, gamma, None)[:39][learned]
        theta = np.linalg.solve(np.eye(3) + B.T @ B, B.T @ y[:39][learned])
        np.testing.assert_allclose(policy.candidates.theta[row], theta, rtol=1e-8, atol=1e-10)


def test_a_memory_that_is_believed_is_not_for_ever() -> None:
    # With sigma = 0.3 the cycle of m = 2 shows nothing of what m = 1 would earn.
    env = lbm.LBM.random(d=4, m=1, gamma=-2.3, seed=1, sigma=0.3)
    best = lbm.best_cycle(env).average
    for seed in range(4):
        run = lbm.run(env, lbm.Auto(memories=range(5)), T=900, seed=seed, record=2)
        assert np.diff(run.reward)[-1] > 0.9 * 450 * best


def test_the_memory_that_plans_is_drawn_from_the_posterior() -> None:
    live = lbm.Auto(memories=[0, 1, 2], gammas=[-1.0]).start(lbm.Ball(3), seed=0)
    live.act()
    policy, drawn = live._policy, []
    posterior = np.log([0.5, 0.3, 0.2])
    for _ in range(600):
        policy.marks[weighing.DRAW] = 0
        drawn.append(policy._choose(posterior))
    counts = np.bincount(drawn, minlength=3)
    assert (np.abs(counts - [300, 180, 120]) < 4.5 * np.sqrt([150, 126, 96])).all()
    policy.chosen, policy.marks[weighing.DRAW] = 1, 10**6
    assert {policy._choose(posterior) for _ in range(50)} == {1}
    assert 1 not in {policy._choose(np.log([0.5, 1e-5, 0.5])) for _ in range(50)}


def test_memory_does_not_grow_with_the_horizon() -> None:
    live = lbm.Auto(memories=[1, 2], gammas=[-3.0, -2.75]).start(lbm.Ball(3), seed=0)
    rng, size = np.random.default_rng(0), {}
    for t in range(5001):
        if t in (2400, 5000):
            size[t] = {name: array.shape for name, array in live._policy.state().items()}
        action = live.act()
        live.update(float(action @ THETA) + 0.1 * rng.standard_normal())
    assert size[2400] == size[5000]


# --- what it cannot explain -----------------------------------------------------------------------------


def of_lag_3(past: list[Array], action: Array, t: int) -> float:
    theta = np.array([0.5, 0.8, 0.33])
    return float(action @ theta - 0.8 * (action @ past[-3]) ** 2) if len(past) > 2 else 0.0


def turning(past: list[Array], action: Array, t: int) -> float:
    return float(action @ [math.cos(t / 200), math.sin(t / 200), 0.0])


def every_third(past: list[Array], action: Array, t: int) -> float:
    return float(action @ THETA) * (1.0 if t % 3 else -0.5)


def like_the_last(past: list[Array], action: Array, t: int) -> float:
    return float(action @ THETA) * (0.2 if past and action @ past[-1] > 0.9 else 1.0)


def bent(past: list[Array], action: Array, t: int) -> float:
    """A cycle does not show it: probes do."""
    return math.tanh(2.0 * ROTTING.expected_rewards([*past[-2:], action])[-1])


@pytest.mark.parametrize("world", [of_lag_3, turning, every_third, like_the_last, bent])
def test_rewards_of_another_form_are_told(world: Callable[[list[Array], Array, int], float]) -> None:
    live = lbm.Auto().start(lbm.Ball(3), seed=2)
    with pytest.warns(RuntimeWarning, match="do not follow any model on offer"):
        play(live, world, 2000, seed=2)
    assert live.explain().misfit
    assert live.details()["misfit"][-1]
    assert "follow none of these models" in str(live.explain())


def test_a_right_model_is_no_misfit() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(4):
            env = lbm.LBM.random(d=2 + seed, m=seed, gamma=-2.1, seed=seed, sigma=0.05)
            assert not lbm.run(env, lbm.Auto(), T=1200, seed=seed).details["misfit"].any()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lbm.Auto(memories=[]), "memories must be distinct"),
        (lambda: lbm.Auto(memories=[1, 1]), "memories must be distinct"),
        (lambda: lbm.Auto(memories=[-1]), "memories must be"),
        (lambda: lbm.Auto(memories=[math.inf], decays=[1.0]), "decays must hold one below 1"),
        (lambda: lbm.Auto(decays=[]), "decays must be distinct"),
        (lambda: lbm.Auto(decays=[0.0]), "decays must hold decays"),
        (lambda: lbm.Auto(decays=["x"]), "decays must hold decays"),
        (lambda: lbm.Auto(gammas=[math.nan]), "gammas must be"),
        (lambda: lbm.Auto(A0=np.eye(2)).start(lbm.Ball(3)), "A0 must have the dimension"),
        (lambda: lbm.Auto(gammas=[0.5], memories=[2], A0=np.diag([1.0, 0.0])).start(lbm.Ball(2)), "A0"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(make: Callable[[], object], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def test_restarts_know_the_past() -> None:
    agent = lbm.Doubling(lbm.Auto(horizon=20, memories=[0, 2], gammas=[-3.0]))
    live = agent.start(lbm.Ball(3), seed=0)
    actions = play(live, lambda past, a, t: ROTTING.expected_rewards([*past[-2:], a])[-1], 22)
    np.testing.assert_array_equal(live._policy.inner.recent, actions[18:20])


def test_arms_that_are_many() -> None:
    arms = problems.ball(60, 3, np.random.default_rng(0))
    env = lbm.LBM(THETA, m=2, gamma=-3.0, actions=lbm.Finite(arms / np.linalg.norm(arms, axis=1)[:, None]))
    run = lbm.run(env, lbm.Auto(memories=[0, 2], gammas=[-3.0, -1.0]), T=150, seed=0)
    assert run.reward[-1] > lbm.run(env, lbm.OFUL(150), T=150, seed=0).reward[-1]


def test_a_selector_says_what_it_believes() -> None:
    pairs = [(0, -1.0), (1, -2.0), (1, -3.0), (2, -2.0)]
    live = lbm.EvidenceSelector(pairs, horizon=300, L=6).start(lbm.Ball(2), seed=0)
    env, rng = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0), np.random.default_rng(0)
    history = np.zeros((1, 2))
    for _ in range(120):
        action = live.act()
        live.update(float(env.expected_rewards(action[None], history=history)[0] + 0.1 * rng.normal()))
        history = action[None]
    said = live.explain()
    weights = np.exp(live.details()["log_posterior"][-1])
    assert said.memory == pytest.approx({m: weights[[k == m for k, _ in pairs]].sum() for m in (0, 1, 2)})
    of_gamma = {g: weights[[k == g for _, k in pairs]].sum() for g in (-3.0, -2.0, -1.0)}
    assert said.gamma == pytest.approx(of_gamma)
    assert said.memory[1] > 0.9
    assert "memory m: 1 (" in str(said)
