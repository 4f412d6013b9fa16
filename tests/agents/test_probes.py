"""Probes: what they are made of, when Auto plays them, and that they are told from its plans."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm.agents import probes
from fastlbm.agents.auto_policy import AutoPolicy
from tests.agents.test_auto import play
from tests.agents.test_learners import SETS, THETA

Array = np.ndarray


def drawn(theta: Array, before: Array, times: int = 400) -> Array:
    rng = np.random.default_rng(0)
    return np.array([probes.in_ball(probes.DRAWN, 6, 3, theta, before, 2, rng) for _ in range(times)])


@pytest.mark.parametrize(("turn", "rests"), [(0, 0), (1, 1), (2, 2), (9, 2)])
def test_the_best_direction_is_repeated_after_a_rest_and_then_turned_round(turn: int, rests: int) -> None:
    rng = np.random.default_rng(0)
    parts = [probes.in_ball(probes.REPEATED, left, 3, 5.0 * THETA, THETA, turn, rng) for left in (9, 6, 3)]
    signs = [0.0] * rests + [1.0] * (8 - rests) + [-1.0]
    np.testing.assert_allclose(np.concatenate(parts), np.outer(signs, THETA / np.linalg.norm(THETA)))
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state


def test_what_is_drawn_lies_on_the_side_of_theta_or_is_the_last_again() -> None:
    theta, before = np.array([0.0, 2.0, 0.0]), np.array([0.0, -0.3, 0.0])
    found = drawn(theta, before)
    sizes = np.linalg.norm(found, axis=2)
    assert sizes.max() <= 1.0
    assert 0.4 < np.mean(sizes > 1.0 - 1e-12) < 0.6
    first = found[:, 0] / sizes[:, :1]
    again = np.abs(first - [0.0, -1.0, 0.0]).max(axis=1) < 1e-9
    assert 0.2 < again.mean() < 0.4
    assert (first[~again, 1] > 0.0).all()
    same = np.einsum("ti,ti->t", found[:, 1], found[:, 2]) > (1.0 - 1e-9) * sizes[:, 1] * sizes[:, 2]
    assert 0.2 < same.mean() < 0.4


def test_nothing_is_known_at_first() -> None:
    for d in (1, 3):
        zero = np.zeros(d)
        assert np.isfinite(drawn(zero, zero, times=20)).all()
        assert (
            np.abs(probes.in_ball(probes.REPEATED, 3, 3, zero, zero, 2, np.random.default_rng(0))).max()
            == 1.0
        )


def test_probes_of_arms() -> None:
    arms, rng = np.array([[1.0, 0.0], [0.0, 1.0], [-0.6, 0.0], [0.5, 0.5]]), np.random.default_rng(0)
    theta, before = np.array([0.9, 0.1]), np.array([0.0, 1.0])
    repeated = [
        probes.among_arms(probes.REPEATED, left, arms, theta, before, rng) for left in range(9, 0, -1)
    ]
    assert repeated == [0] * 8 + [2]
    picked = [probes.among_arms(probes.DRAWN, 6, arms, theta, before, rng) for _ in range(800)]
    shares = np.bincount(picked, minlength=4) / 800
    np.testing.assert_allclose(shares, [0.175, 0.475, 0.175, 0.175], atol=0.06)


def started(kind: str, T: int, seed: int = 0) -> tuple[lbm.Live, list[Array]]:
    """A policy of Auto after T steps in a world of the right form, and what it played."""
    env = lbm.LBM(THETA, m=1, gamma=-2.0, actions=SETS[kind])
    live = lbm.Auto(memories=[0, 1, 2], gammas=[-2.0, -1.0]).start(env.actions, seed=seed)
    return live, go_on(live, env, [], T)


def go_on(live: lbm.Live, env: lbm.LBM, past: list[Array], T: int) -> list[Array]:
    rng = np.random.default_rng(len(past))
    for _ in range(T):
        past.append(live.act())
        live.update(env.expected_rewards(past[-2:])[-1] + 0.1 * rng.standard_normal())
    return past


@pytest.mark.parametrize("kind", ["ball", "finite"])
def test_probes_come_less_and_less_often(kind: str) -> None:
    live, actions = started(kind, 420)
    live.act()
    policy = live._policy
    assert isinstance(policy, AutoPolicy)
    at = np.flatnonzero(policy.kept.probed)
    begins = [75, 165, 366]  # 2.2 times as many steps, when a block ends
    assert at.tolist() == [t for b, n in zip(begins, (9, 6, 9), strict=True) for t in range(b, b + n)]
    played = np.array(actions)
    np.testing.assert_array_equal(policy.kept.actions[:420], played)
    if kind == "ball":
        np.testing.assert_array_equal(played[[75, 366]], 0.0)  # a rest, as long as is remembered
        np.testing.assert_allclose(np.linalg.norm(played[[77, 83, 374]], axis=1), 1.0)
        np.testing.assert_allclose(played[83], -played[82], atol=1e-12)


def test_probes_on_sets_that_change_and_on_arms_that_are_offered() -> None:
    rng = np.random.default_rng(3)
    env = lbm.LBM(THETA, m=1, gamma=-2.0, actions=lbm.Contextual(rng.uniform(-0.5, 0.5, (200, 4, 3))))
    live = lbm.Auto(memories=[0, 1], gammas=[-2.0]).start(env.actions, seed=0)
    assert env.actions.contains(go_on(live, env, [], 180)).all()
    assert np.flatnonzero(live._policy.kept.probed).tolist() == [*range(75, 84), *range(165, 171)]
    offered, past = lbm.Auto(memories=[0, 1], gammas=[-2.0]).start(lbm.Ball(3), seed=0), []
    for _ in range(100):
        arms = rng.uniform(-0.5, 0.5, (5, 3))
        past.append(offered.act(arms))
        assert (arms == past[-1]).all(axis=1).any()
        offered.update(env.expected_rewards(past[-2:])[-1] + 0.1 * rng.standard_normal())
    assert np.flatnonzero(offered._policy.kept.probed).tolist() == [*range(75, 84)]


@pytest.mark.parametrize("T", [74, 77, 79, 84])
def test_a_state_that_is_saved_within_a_probe_goes_on(T: int, tmp_path: Path) -> None:
    env = lbm.LBM(THETA, m=1, gamma=-2.0)
    live, past = started("ball", T)
    again = live.agent.start(lbm.Ball(3)).load(live.save(tmp_path / "state"))
    one, other = go_on(live, env, list(past), 30), go_on(again, env, list(past), 30)
    np.testing.assert_array_equal(one, other)


def test_after_a_long_log_there_is_one_probe_not_many() -> None:
    env, rng = lbm.LBM(THETA, m=1, gamma=-2.0), np.random.default_rng(0)
    actions = env.actions.sample(900, seed=1)
    live = lbm.Auto(memories=[0, 1], gammas=[-2.0]).start(lbm.Ball(3), seed=0)
    live.replay(actions, env.expected_rewards(actions) + 0.1 * rng.standard_normal(900))
    go_on(live, env, list(actions), 60)
    assert np.flatnonzero(live._policy.kept.probed).tolist() == [*range(900, 909)]


def test_no_probe_once_a_misfit_is_told() -> None:
    live = lbm.Auto(memories=[0, 1], gammas=[-2.0]).start(lbm.Ball(3), seed=0)
    with pytest.warns(RuntimeWarning, match="do not follow any model"):
        play(live, lambda past, action, t: math.sin(t / 9.0) + float(action[0]), 900)
    policy = live._policy
    assert isinstance(policy, AutoPolicy)
    assert np.flatnonzero(policy.kept.probed).max() < 200
