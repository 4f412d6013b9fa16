"""Environments of Gymnasium for agents of the package and of one's own."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fastlbm as lbm
from fastlbm.running.seeds import children
from tests.own_example import RidgeGreedy  # type: ignore[attr-defined]

gymnasium = pytest.importorskip("gymnasium")
from gymnasium import spaces  # noqa: E402

ID = "fastlbm/LBM-v0"
PARAMETERS: dict[str, Any] = {"theta": [0.6, 0.0, 0.8], "m": 2, "gamma": -3.0, "horizon": 1000}


class Probe(gymnasium.Env):  # type: ignore[misc]
    """Pays the sum of its action, tells what it got, ends after three steps."""

    def __init__(self, space: Any) -> None:
        self.action_space, self.observation_space = space, spaces.Discrete(2)
        self.got: list[Any] = []
        self.seeds: list[Any] = []

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.t = 0
        return 0, {}

    def step(self, action: Any) -> Any:
        assert self.t < 3, "it is over"
        assert self.action_space.contains(action)
        self.t += 1
        self.got.append(action)
        return 0, float(np.sum(action)), self.t == 3, False, {}


def test_an_agent_drives_the_model_through_gymnasium_as_it_drives_the_model() -> None:
    quiet = {**PARAMETERS, "sigma": 0.0}
    env, model = lbm.GymEnvironment(ID, **quiet), lbm.LBM([0.6, 0.0, 0.8], 2, -3.0, sigma=0.0)
    for agent in (lbm.O3M(2, -3.0, 80, L=5), RidgeGreedy()):
        there, here = (lbm.run(one, agent, T=80, seed=2, keep_actions=True) for one in (env, model))
        np.testing.assert_array_equal(there.actions, here.actions)
        np.testing.assert_array_equal(there.reward, here.reward)
        np.testing.assert_array_equal(there.observed, there.reward)


def test_expected_rewards_are_taken_where_they_are_told() -> None:
    noisy = lbm.run(lbm.GymEnvironment(ID, **PARAMETERS), lbm.Cyclic(np.eye(3)), T=30, seed=1)
    quiet = lbm.run(lbm.LBM([0.6, 0.0, 0.8], 2, -3.0), lbm.Cyclic(np.eye(3)), T=30)
    np.testing.assert_allclose(noisy.reward, quiet.reward, rtol=1e-12)
    assert not np.array_equal(noisy.observed, noisy.reward)
    untold = lbm.run(lbm.GymEnvironment(Probe(spaces.Discrete(3))), lbm.OFUL(10), T=10)
    np.testing.assert_array_equal(untold.reward, untold.observed)


def play(space: Any, action: Any, **more: Any) -> tuple[lbm.GymEnvironment, Probe]:
    """An adapter around a probe, after five steps of an action."""
    probe = Probe(space)
    env = lbm.GymEnvironment(probe, **more)
    env.reset(children(0)[0])
    for _ in range(5):
        env.step(np.array(action))
    return env, probe


def test_arms_are_numbers_from_the_start_of_the_space() -> None:
    env, probe = play(spaces.Discrete(3, start=5), [0.0, 0.0, 1.0])
    assert env.actions == lbm.Finite(np.eye(3))
    assert probe.got == [7] * 5
    assert probe.seeds[1:] == [None]  # the second episode
    assert isinstance(probe.seeds[0], int)
    env, probe = play(spaces.Discrete(2), [0.6, 0.8], arms=[[1.0, 0.0], [0.6, 0.8]])
    assert env.actions.d == 2
    assert probe.got == [1] * 5


def test_the_ball_touches_the_sides_of_a_box() -> None:
    low, high = np.array([[-1.0, 0.0]], np.float32), np.array([[3.0, 10.0]], np.float32)
    box = spaces.Box(low, high, dtype=np.float32)
    env, probe = play(box, [1.0, 0.0])
    assert env.actions == lbm.Ball(2)
    np.testing.assert_array_equal(probe.got[0], [[3.0, 5.0]])
    np.testing.assert_array_equal(play(box, [0.0, -1.0])[1].got[0], [[1.0, 0.0]])
    same = np.array([0.123456789, -0.3])
    np.testing.assert_array_equal(play(spaces.Box(-1.0, 1.0, (2,), np.float64), same)[1].got[0], same)


def test_runs_work_on_copies_and_workers_make_their_own() -> None:
    probe = Probe(spaces.Discrete(3))
    lbm.run(lbm.GymEnvironment(probe), lbm.OFUL(10), T=10)
    assert probe.got == []
    env, two = lbm.GymEnvironment(ID, **PARAMETERS), {"oful": lbm.OFUL(40), "ridge": RidgeGreedy()}
    one = lbm.run_many(env, two, T=40, seeds=3, executor=1, record=4).frame
    three = lbm.run_many(env, two, T=40, seeds=3, executor=3, record=4).frame
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        there = lbm.run_many(env, two, T=40, seeds=3, executor=pool, record=4).frame
    pd.testing.assert_frame_equal(three, one, check_exact=True)
    pd.testing.assert_frame_equal(there, one, check_exact=True)


def test_a_study_file_may_name_it(tmp_path: Path) -> None:
    file = tmp_path / "gym.toml"
    file.write_text(
        'T = 30\nseeds = 2\nrecord = 3\n[env.gym]\ntype = "fastlbm:GymEnvironment"\nenv = "fastlbm/LBM-v0"\n'
        "theta = [0.6, 0.0, 0.8]\nm = 2\nhorizon = 100\n[env.gym.grid]\ngamma = [-3.0, -1.0]\n"
        '[agent.oful]\ntype = "OFUL"\n'
    )
    frame = lbm.Study.from_toml(file).run(tmp_path / "out", progress=False).frame
    assert frame["env"].unique().tolist() == ["gym(gamma=-3.0)", "gym(gamma=-1.0)"]
    env = lbm.GymEnvironment(ID, theta=[0.6, 0.0, 0.8], m=2, horizon=100, gamma=-1.0)
    run = lbm.run(env, lbm.OFUL(30), T=30, seed=np.random.SeedSequence(0, spawn_key=(1,)), record=3)
    rows = frame.query("env == 'gym(gamma=-1.0)' and seed == 1")
    np.testing.assert_array_equal(rows["observed"], run.observed)


@pytest.mark.parametrize(
    ("env", "more", "error", "words"),
    [
        (3, {}, TypeError, "env must be an environment of Gymnasium or the id of one, got 3"),
        (Probe(spaces.MultiBinary(2)), {}, TypeError, "env must have a Discrete space of actions or a Box"),
        (Probe(spaces.Box(0, 9, (2,), np.int64)), {}, TypeError, "or a Box of floats"),
        (Probe(spaces.Box(0.0, np.inf, (2,))), {}, ValueError, "a Box of actions with finite bounds"),
        (Probe(spaces.Discrete(3)), {"arms": np.eye(2)}, ValueError, r"arms must have shape \(3, any\)"),
        (Probe(spaces.Box(0.0, 1.0, (2,))), {"arms": np.eye(2)}, ValueError, "arms must be left out"),
        (Probe(spaces.Discrete(3)), {"m": 2}, TypeError, "env must be an id to be made with parameters"),
    ],
)
def test_what_is_no_bandit_is_refused(env: Any, more: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        lbm.GymEnvironment(env, **more)


def test_an_environment_of_gymnasium_is_not_one_of_ours_without_the_adapter() -> None:
    with pytest.raises(TypeError, match=r"of Gymnasium: use GymEnvironment\(...\)"):
        lbm.run(gymnasium.make(ID, **PARAMETERS), lbm.OFUL(10), T=10)
