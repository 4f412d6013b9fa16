"""Auto on memories that fade: it weighs them by their evidence, finds them out and keeps them."""

from __future__ import annotations

import copy
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm.agents import auto_policy
from fastlbm.agents.auto_grid import ENDING, FADES, MOST, Model
from fastlbm.agents.auto_policy import AutoPolicy
from fastlbm.kernels import weighing
from tests.agents.test_auto import evidence, play
from tests.agents.test_learners import SETS, THETA
from tests.naive_weighing import fading_features

Array = np.ndarray
ENDLESS = lbm.LBM(THETA, m=math.inf, gamma=-2.0, decay=0.75, sigma=0.1)


def policy_of(live: lbm.Live) -> AutoPolicy:
    assert isinstance(live._policy, AutoPolicy)
    return live._policy


def models_of(policy: AutoPolicy) -> list[Model]:
    """Of the candidates alive."""
    return [policy.model(j) for j in range(len(policy.alive))]


# --- which models are on offer --------------------------------------------------------------------------


def memories_of(agent: lbm.Auto) -> set[tuple[float, float]]:
    return {model.memory for model in policy_of(agent.start(lbm.Ball(2))).grid.models}


def test_which_memories_are_on_offer() -> None:
    windows = {(m, 1.0) for m in range(9)}
    assert memories_of(lbm.Auto()) == windows | {(math.inf, decay) for decay in (0.5, 0.7, 0.9)}
    assert memories_of(lbm.Auto(decays=[1.0])) == windows
    assert memories_of(lbm.Auto(memories=[0, 2, 3])) == {(0, 1.0), (2, 1.0), (3, 1.0)}
    assert memories_of(lbm.Auto(memories=[3, math.inf], decays=[1.0, 0.8])) == {
        (3, 1.0), (3, 0.8), (math.inf, 0.8), (0, 1.0),
    }  # fmt: skip
    # The last action counts once, whatever the decay.
    assert memories_of(lbm.Auto(memories=[1, 2], gammas=[-1.0], decays=[0.8])) == {(1, 1.0), (2, 0.8)}
    assert memories_of(lbm.Auto(memories=[math.inf], gammas=[-1.0])) == {
        (math.inf, decay) for decay in (0.5, 0.7, 0.9)
    }


def test_what_may_be_offered_later() -> None:
    grid = policy_of(lbm.Auto().start(lbm.Ball(2))).grid
    told = set(grid.models)
    around = grid.gammas.index(-2.0)
    grid.offer(16, around)
    more = set(grid.models) - told
    fading = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
    ending = {(m, decay) for m in ENDING for decay in fading}
    assert {model.memory for model in more} == (
        {(m, 1.0) for m in range(9, 17)} | ending | {(math.inf, decay) for decay in (0.6, 0.8, 0.95)}
    )
    assert {model.gamma for model in more if model.memory in ending} == {
        -4.0 + k / 4 for k in range(13) if k != 16
    }
    assert len(grid.models) == len(set(grid.models))
    for largest, number in ((7, -1), (MOST + 1, -1), (8, 33), (8, -2)):
        with pytest.raises(ValueError, match="cannot be on offer"):
            grid.offer(largest, number)
    told_all = policy_of(lbm.Auto(decays=[1.0, 0.7]).start(lbm.Ball(2))).grid
    assert not told_all.may_fade
    with pytest.raises(ValueError, match="cannot be on offer"):
        told_all.offer(8, 3)


# --- what it believes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ball", "finite", "contextual"])
def test_the_posterior_is_that_of_the_evidence(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_policy, "BEHIND", math.inf)
    env = lbm.LBM(THETA, m=math.inf, gamma=-2.0, decay=0.7, sigma=0.0, actions=SETS[kind])
    agent = lbm.Auto(memories=[0, 3, math.inf], gammas=[-2.0, 1.0], lam=0.7, decays=[1.0, 0.6, 0.9])
    live = agent.start(env.actions, seed=1)
    actions = np.array(play(live, lambda past, a, t: env.expected_rewards([*past, a])[-1], 31))
    y = env.expected_rewards(actions) + 0.1 * np.random.default_rng(0).standard_normal(31)
    policy, logs = policy_of(live), {}
    for m, gamma, decay in models_of(policy):
        B = fading_features(actions, m, gamma, decay)[:30]
        lams = [evidence(B, y[:30], 0.7 * scale) for scale in auto_policy.SCALES]
        prior = (1.0 if decay == 1.0 else FADES) / (2.0 if m > 0 else 1.0)
        logs[m, gamma, decay] = np.logaddexp.reduce(lams) + math.log(prior)
    assert len(logs) == 1 + 2 * 5
    total = np.logaddexp.reduce(list(logs.values()))
    for model, value in zip(models_of(policy), policy.log_posterior(), strict=True):
        assert value == pytest.approx(logs[model] - total, abs=1e-7)


def test_it_says_what_it_believes() -> None:
    agent = lbm.Auto(memories=[1, 2, math.inf], gammas=[-2.0, -1.0], decays=[1.0, 0.6, 0.75])
    live = agent.start(lbm.Ball(3), seed=0)
    play(live, lambda past, a, t: ENDLESS.expected_rewards([*past, a])[-1], 300)
    said = live.explain()
    assert said.memory is not None
    assert said.decay is not None
    assert said.memory[math.inf] > 0.99
    assert said.decay[0.75] > 0.95
    assert "memory m: inf (" in str(said)
    assert "decay: 0.75 (" in str(said)
    assert said.as_dict()["memory"]["inf"] == said.memory[math.inf]
    labels = [axes.get_xlabel() for axes in said.plot().axes]
    assert labels == ["memory m", "exponent gamma", "decay", "coordinate of theta"]
    details = live.details()
    assert (details["m"][-1], details["gamma"][-1], details["decay"][-1]) == (math.inf, -2.0, 0.75)
    plain = lbm.Auto(memories=[1], gammas=[-1.0]).start(lbm.Ball(3), seed=0)
    plain.act()
    assert "decay" not in str(plain.explain())


# --- what it finds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "m", "gamma", "decay"),
    [(3, math.inf, -3.0, 0.7), (2, math.inf, -1.5, 0.85), (2, 6, -1.0, 0.7)],
)
def test_told_nothing_it_earns_nearly_what_rolling_does_that_knows_all(
    d: int, m: float, gamma: float, decay: float
) -> None:
    env = lbm.LBM.random(d=d, m=m, gamma=gamma, seed=d, decay=decay, sigma=0.1)
    known = lbm.run(env, lbm.Rolling(m=m, gamma=gamma, decay=decay), T=1200, seed=1, record=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no misfit
        run = lbm.run(env, lbm.Auto(), T=1200, seed=1, record=1)
        without = lbm.Auto(decays=[1.0])
    assert run.reward[-1] > 0.9 * known.reward[-1]
    assert run.details["decay"][-1] < 1.0
    assert not run.details["misfit"].any()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        windows = lbm.run(env, without, T=1200, seed=1, record=1)
    assert set(windows.details["decay"].tolist()) == {1.0}
    assert run.reward[-1] > windows.reward[-1]


def test_a_memory_that_fades_and_ends_is_found() -> None:
    env = lbm.LBM.random(d=2, m=5, gamma=-2.0, seed=3, decay=0.8, sigma=0.05)
    run = lbm.run(env, lbm.Auto(), T=1500, seed=0, record=1)
    assert (run.details["m"][-1], run.details["decay"][-1]) == (5.0, 0.8)


def test_what_is_offered_later_has_learned_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_policy, "KEPT", 80)
    monkeypatch.setattr("fastlbm.agents.auto.GAMMAS", (-2.0, -1.0))
    live = lbm.Auto().start(lbm.Ball(3), seed=0)
    rng, actions, rewards = np.random.default_rng(0), list[Array](), list[float]()
    while policy_of(live).origin.epoch == 0 and len(actions) < 400:
        actions.append(live.act())
        rewards.append(ENDLESS.expected_rewards(actions)[-1] + 0.05 * rng.standard_normal())
        if policy_of(live).origin.epoch == 0:
            live.update(rewards[-1])
    policy, n = policy_of(live), len(actions) - 1
    assert policy.grid.around >= 0
    assert n > 80
    played = np.array(actions[:n])
    models = models_of(policy)
    assert {model.memory for model in models} >= {(m, 0.6) for m in ENDING}
    # Of 80 steps 40 are not learned from: what came before them matters too much.
    for row, (m, gamma, decay) in enumerate(models):
        B = fading_features(played[n - 80 :], m, gamma, decay)[40:]
        theta = np.linalg.solve(np.eye(3) + B.T @ B, B.T @ np.array(rewards[n - 40 : n]))
        np.testing.assert_allclose(policy.candidates.theta[row], theta, rtol=1e-8, atol=1e-10)
    # What memories without end hold now is that of all steps.
    for decay, past in zip(policy.grid.decays, policy.past, strict=True):
        weights = decay ** np.arange(n - 1.0, -1.0, -1.0)
        np.testing.assert_allclose(past, (played * weights[:, None]).T @ played, atol=1e-12)


def test_a_misfit_offers_more_before_it_is_told() -> None:
    policy = policy_of(lbm.Auto().start(lbm.Ball(2), seed=0))
    policy.marks[weighing.FOUND] = 1
    policy.plan_next_block()
    assert policy.grid.around >= 0
    assert policy.marks[weighing.FOUND] == 1
    assert not policy.grid.may_fade


def test_arms_that_tire_and_recover() -> None:
    rng = np.random.default_rng(7)
    arms = rng.normal(size=(10, 3))
    arms /= np.linalg.norm(arms, axis=1)[:, None]
    env = lbm.LBM(THETA, m=math.inf, gamma=-3.0, decay=0.7, actions=lbm.Finite(arms))
    run = lbm.run(env, lbm.Auto(), T=400, seed=0, record=1)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # it may say that no window fits
        windows = lbm.run(env, lbm.Auto(decays=[1.0]), T=400, seed=0, record=1)
    assert run.details["decay"][-1] < 1.0
    assert run.reward[-1] > 1.1 * windows.reward[-1]


# --- its state ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ball", "finite", "contextual", "offered"])
def test_a_state_goes_on_as_if_nothing_had_happened(kind: str, tmp_path: Path) -> None:
    agent = lbm.Auto(memories=[2, math.inf], gammas=[-2.0, -1.0], decays=[1.0, 0.6, 0.8])
    actions: Any = lbm.Ball(3) if kind == "offered" else SETS[kind]
    offers = np.random.default_rng(3).uniform(-0.5, 0.5, (60, 4, 3))
    live, rng = agent.start(actions, seed=0), np.random.default_rng(0)
    for t in range(60):
        live.act(offers[t]) if kind == "offered" else live.act()
        if t % 5 != 2:
            live.update(rng.normal())
    others = [
        agent.start(actions, seed=9).load(live.save(tmp_path / "state.npz")),
        agent.start(actions, seed=9).from_bytes(live.to_bytes()),
        copy.deepcopy(live),
    ]
    for t in range(12):
        late = live.missing[0]
        for other in (*others, live):
            other.update(0.1 * t, step=late)
            other.act(offers[t]) if kind == "offered" else other.act()
            other.update(0.3)
        for other in others:
            np.testing.assert_array_equal(other.theta, live.theta)
            np.testing.assert_array_equal(policy_of(other).past, policy_of(live).past)
    assert {type(other) for other in others} == {lbm.Live}


def test_forged_pasts_are_refused() -> None:
    live = lbm.Auto().start(lbm.Ball(2), seed=0)
    live.act()
    policy = policy_of(live)
    policy.check()
    for damage in (np.array([[0.0, 1.0], [0.0, 0.0]]), np.full((2, 2), np.nan)):
        policy.past[1] = damage
        with pytest.raises(ValueError, match="symmetric"):
            policy.check()


def test_a_log_is_learned_as_if_it_had_been_played() -> None:
    agent = lbm.Auto(memories=[0, math.inf], gammas=[-2.0], decays=[0.6, 0.8])
    rng = np.random.default_rng(0)
    actions = rng.normal(size=(150, 3))
    actions /= 1.0 + np.linalg.norm(actions, axis=1)[:, None]
    y = rng.normal(size=150)
    whole = policy_of(agent.fit(actions, y))
    pieces = agent.start(lbm.Ball(3), seed=0)
    for t in range(150):
        pieces.observe(actions[t], None if t == 90 else y[t])
    pieces.update(y[90], step=90)
    for policy in (whole, policy_of(pieces)):
        for row, (m, gamma, decay) in enumerate(models_of(policy)):
            B = fading_features(actions, m, gamma, decay)
            theta = np.linalg.solve(np.eye(3) + B.T @ B, B.T @ y)
            np.testing.assert_allclose(policy.candidates.theta[row], theta, atol=1e-9)


def test_restarts_know_the_past() -> None:
    agent = lbm.Doubling(lbm.Auto(horizon=20, memories=[0, math.inf], gammas=[-3.0], decays=[0.5]))
    live = agent.start(lbm.Ball(3), seed=0)
    actions = np.array(play(live, lambda past, a, t: float(a @ THETA), 21))
    weights = 0.5 ** np.arange(19.0, -1.0, -1.0)
    inner: Any = live._policy
    np.testing.assert_allclose(inner.inner.past[0], (actions[:20] * weights[:, None]).T @ actions[:20])
