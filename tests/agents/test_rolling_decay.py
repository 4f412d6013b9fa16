"""Rolling on memories that fade: it learns and plans with the features that were played, live as in a run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlbm as lbm
from tests import naive

INF = math.inf


def problem(m: float, decay: float = 0.7, **changes: Any) -> tuple[lbm.LBM, lbm.Rolling]:
    env = lbm.LBM([0.6, 0.0, 0.8], m=m, gamma=-2.0, decay=decay, **{"sigma": 0.1, **changes})
    return env, lbm.Rolling(m=m, gamma=-2.0, decay=decay)


def play(live: Any, env: lbm.LBM, n: int, past: list[Any]) -> list[Any]:
    """n more steps without noise."""
    for _ in range(n):
        past.append(live.act())
        live.update(env.expected_rewards(past)[-1])
    return past


@pytest.mark.parametrize("m", [2, 4, INF])
def test_it_learns_with_the_features_that_were_played(m: float) -> None:
    env, agent = problem(m)
    live = agent.start(lbm.Ball(3), seed=0)
    past = np.array(play(live, env, 30, []))
    live.act()  # ten blocks of three are over
    known = live._policy.learner.estimator
    window = 0 if m == INF else int(m)
    padded = np.concatenate((np.zeros((window, 3)), past[:30]))
    F = naive.features(padded, m, -2.0, None, 0.7)
    V = np.eye(3) + F.T @ F
    np.testing.assert_allclose(known.V_inv, np.linalg.inv(V), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("m", [3, INF])
def test_a_run_and_a_live_policy_decide_alike(m: float) -> None:
    env, agent = problem(m, sigma=0.0)
    run = lbm.run(env, agent, T=60, seed=5, keep_actions=True)
    live = agent.start(lbm.Ball(3), seed=5)
    np.testing.assert_allclose(np.array(play(live, env, 60, [])), run.actions, rtol=0, atol=1e-9)


@pytest.mark.parametrize("m", [3, INF])
def test_it_goes_on_from_a_file_with_the_same_bits(m: float, tmp_path: Path) -> None:
    env, agent = problem(m)
    live = agent.start(lbm.Ball(3), seed=1)
    past = play(live, env, 40, [])
    live.save(tmp_path / "state.npz")
    other = agent.start(lbm.Ball(3), seed=9).load(tmp_path / "state.npz")
    one, two = play(live, env, 20, list(past)), play(other, env, 20, list(past))
    np.testing.assert_array_equal(np.array(one), np.array(two))


@pytest.mark.parametrize("m", [3, INF])
def test_what_others_play_counts(m: float) -> None:
    """Observed actions are in the memory and are learned from, with the features that they had."""
    env, agent = problem(m)
    log = lbm.Ball(3).sample(25, seed=2)
    rewards = env.expected_rewards(log)
    live = agent.fit(log, rewards)
    window = 0 if m == INF else int(m)
    F = naive.features(np.concatenate((np.zeros((window, 3)), log)), m, -2.0, None, 0.7)
    theta = np.linalg.solve(np.eye(3) + F.T @ F, F.T @ rewards)
    np.testing.assert_allclose(live.theta, theta, rtol=1e-9, atol=1e-12)
    action = live.act()
    single = agent.start(lbm.Ball(3), seed=0)
    for a, y in zip(log, rewards, strict=True):
        single.observe(a, y)
    np.testing.assert_allclose(single.theta, theta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(single.act(), action, rtol=0, atol=1e-7)


@pytest.mark.parametrize("decay", [0.9999, 1.0 - 1e-9])
def test_a_memory_that_hardly_fades_needs_no_endless_list(decay: float) -> None:
    env, agent = problem(INF, decay)
    live = agent.start(lbm.Ball(3), seed=0)
    past = play(live, env, 10, [])
    live.observe([1.0, 0.0, 0.0], 0.5)
    F = naive.features(np.array([*past, [1.0, 0.0, 0.0]]), INF, -2.0, None, decay)
    np.testing.assert_allclose(
        live._policy.learner.estimator.V_inv, np.linalg.inv(np.eye(3) + F.T @ F), rtol=1e-9, atol=1e-12
    )
    assert len(live.to_bytes()) < 2_000_000
    assert agent.start(lbm.Ball(3)).from_bytes(live.to_bytes()).t == 11


def test_arms_that_are_offered_with_a_memory_without_end() -> None:
    env, agent = problem(INF)
    live = agent.start(lbm.Ball(3), seed=0)
    past: list[Any] = []
    for t in range(12):
        past.append(live.act(lbm.Ball(3).sample(5, seed=t)))
        live.update(env.expected_rewards(past)[-1])
    F = naive.features(np.array(past), INF, -2.0, None, 0.7)
    live.act(np.eye(3))
    V_inv = live._policy.learner.estimator.V_inv
    np.testing.assert_allclose(V_inv, np.linalg.inv(np.eye(3) + F.T @ F), rtol=1e-8, atol=1e-10)


def test_arms_with_a_window_that_fades() -> None:
    arms = lbm.Finite(np.vstack([np.eye(3), [0.6, 0.0, 0.8]]))
    env = lbm.LBM([0.6, 0.0, 0.8], m=2, gamma=-2.0, decay=0.5, actions=arms, sigma=0.05)
    knows = lbm.run(env, lbm.Rolling(m=2, gamma=-2.0, decay=0.5), T=400, seed=0).reward[-1]
    assert knows >= 0.97 * 400 * lbm.best_cycle(env).average


def test_doubling_carries_what_was_played() -> None:
    env, _ = problem(INF)
    agent = lbm.Doubling(lbm.Rolling(m=INF, gamma=-2.0, decay=0.7, horizon=16))
    assert lbm.run(env, agent, T=100, seed=0).reward[-1] > 0.0


def test_where_it_cannot_serve_it_says_so() -> None:
    with pytest.raises(ValueError, match="m must"):
        lbm.Rolling(m=INF, gamma=-2.0)
    with pytest.raises(ValueError, match="switch"):
        lbm.Rolling(m=INF, gamma=-2.0, decay=0.5, switch=1.0)
    with pytest.raises(ValueError, match="decay"):
        lbm.Rolling(m=2, gamma=-2.0, decay=2.0)
    with pytest.raises(ValueError, match="m must be finite on a set of arms"):
        lbm.Rolling(m=INF, gamma=-2.0, decay=0.5).start(lbm.Finite(np.eye(2)))


def test_a_study_takes_decay_from_the_environment() -> None:
    study = lbm.Study.from_dict(
        {
            "T": 20,
            "seeds": 1,
            "env": {"fading": {"theta": [0.6, 0.8], "m": INF, "gamma": -2.0, "decay": 0.8}},
            "agent": {"Rolling": {"type": "Rolling", "m": "env", "gamma": "env", "decay": "env"}},
        }
    )
    (cell,) = study.spec.cells
    assert cell.agent == lbm.Rolling(m=INF, gamma=-2.0, decay=0.8, horizon=20)


def test_knowing_it_pays() -> None:
    """Beside the windows that it might be taken for."""
    env, agent = problem(INF, 0.75)
    knows = lbm.run(env, agent, T=600, seed=0).reward[-1]
    assert knows >= 0.95 * 600 * lbm.best_cycle(env, max_period=8).average
    for m in (1, 2, 4):
        assert knows > 1.05 * lbm.run(env, lbm.Rolling(m=m, gamma=-2.0), T=600, seed=0).reward[-1]
