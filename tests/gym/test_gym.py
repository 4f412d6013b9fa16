"""Gymnasium: its own checker, states that are Markov, and vectors that are what single environments are."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastlbm as lbm

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
ID = "fastlbm/LBM-v0"
THETA = [0.6, 0.0, 0.8]
ARMS = lbm.Finite(np.vstack([np.eye(3), [0.6, 0.0, 0.8]]))
KINDS: dict[str, dict[str, Any]] = {
    "ball": {},
    "arms": {"actions": ARMS},
    "no memory": {"m": 0},
    "flat": {"gamma": 0.0},
    "long memory": {"m": 5, "A0": np.diag([1.0, 2.0, 0.5])},
    "one dimension": {"theta": [1.0]},
    "fading": {"m": 3, "decay": 0.6},
}
#: A memory without end: what is observed is a matrix.
ENDLESS: dict[str, Any] = {"m": np.inf, "decay": 0.8}


def parameters(kind: str = "ball", **changes: Any) -> dict[str, Any]:
    return {"theta": THETA, "m": 2, "gamma": -3.0, "horizon": 7, **KINDS[kind], **changes}


# --- one environment ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_checker_of_gymnasium_finds_nothing(kind: str) -> None:
    """Warnings are errors here."""
    check_env(gymnasium.make(ID, **parameters(kind)).unwrapped)


@settings(max_examples=40)
@given(kind=st.sampled_from(sorted(KINDS)), seed=st.integers(0, 2**32 - 1))
def test_what_is_observed_is_a_markov_state(kind: str, seed: int) -> None:
    """It alone says what an action pays, what is observed next, and when the episode ends."""
    given_ = parameters(kind, sigma=0.0)
    env = gymnasium.make(ID, **given_)
    horizon = given_.pop("horizon")
    model = lbm.LBM(**given_)
    env.action_space.seed(seed)
    observed, info = env.reset(seed=seed)
    assert info == {}
    np.testing.assert_array_equal(observed, np.zeros(int(model.m) * model.d + 1))
    for t in range(1, horizon + 1):
        action, before = env.action_space.sample(), observed
        observed, reward, terminated, truncated, info = env.step(action)
        assert observed in env.observation_space
        vector = ARMS.arms[action] if kind == "arms" else model.actions.project([action])[0]
        history = before[:-1].reshape(int(model.m), model.d)
        expected = model.expected_rewards([vector], history=history)[0]
        assert reward == pytest.approx(expected, rel=1e-12, abs=1e-14)
        assert info == {"expected": reward}
        following = np.vstack([history, vector])[1:] if model.m else history
        np.testing.assert_array_equal(observed[:-1], following.ravel())
        assert observed[-1] == t / horizon
        assert (terminated, truncated) == (False, observed[-1] == 1.0)


def test_a_step_after_the_end_is_warned_of_once() -> None:
    env = gymnasium.make(ID, **parameters(horizon=2)).unwrapped
    env.reset(seed=0)
    env.step(THETA)
    assert env.step(THETA)[3]
    with pytest.warns(UserWarning, match="over after 2 steps, and step was called: call reset first"):
        env.step(THETA)
    env.step(THETA)
    env.reset()
    env.step(THETA)


def test_the_state_of_a_memory_without_end() -> None:
    """What is observed says what an action pays, and what is observed next."""
    given_ = parameters(**ENDLESS, sigma=0.0, horizon=40)
    env = gymnasium.make(ID, **given_)
    check_env(gymnasium.make(ID, **given_).unwrapped)
    rng, upper, total = np.random.default_rng(0), np.triu_indices(3), np.zeros((3, 3))
    observed, _ = env.reset(seed=0)
    for _ in range(40):
        action = lbm.Ball(3).sample(1, seed=rng)[0]
        lam, Q = np.linalg.eigh(np.eye(3) + total)
        expected = action @ (Q * lam**-3.0) @ Q.T @ np.array(THETA)
        observed, reward, *_ = env.step(action)
        assert reward == pytest.approx(expected, rel=1e-12, abs=1e-14)
        total = 0.8 * total + np.outer(action, action)
        np.testing.assert_allclose(observed[:-1], 0.2 * total[upper], rtol=0, atol=1e-14)
        assert observed in env.observation_space


def test_noise_is_that_of_the_seed_and_of_the_model() -> None:
    env = gymnasium.make(ID, **parameters(horizon=3000, sigma=0.5, noise="rademacher"))

    def noise(seed: int) -> np.ndarray:
        env.reset(seed=seed)
        steps = [env.step(np.array([1.0, 0.0, 0.0])) for _ in range(200)]
        return np.array([reward - info["expected"] for _, reward, _, _, info in steps])

    np.testing.assert_array_equal(noise(1), noise(1))
    assert not np.array_equal(noise(1), noise(2))
    np.testing.assert_allclose(np.abs(noise(1)), 0.5, rtol=1e-12)


def test_actions_outside_of_the_ball_are_scaled_and_others_refused() -> None:
    env = gymnasium.make(ID, **parameters(sigma=0.0))
    env.reset(seed=0)
    observed, reward, *_ = env.step(np.array([3.0, 0.0, 4.0]))
    np.testing.assert_allclose(observed[3:6], [0.6, 0.0, 0.8])
    assert reward == pytest.approx(1.0 * (0.36 + 0.64))
    for wrong in ([np.nan, 0.0, 0.0], [1.0, 0.0]):
        with pytest.raises(ValueError, match=r"action must (be finite|have shape \(1, 3\))"):
            env.unwrapped.step(wrong)
    arms = gymnasium.make(ID, **parameters("arms")).unwrapped
    arms.reset(seed=0)
    for wrong in (4, -1, 1.5):
        with pytest.raises(ValueError, match="action must be the number of an arm, from 0 to 3"):
            arms.step(wrong)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"m": np.inf}, ValueError, "m must be a finite integer"),
        ({"horizon": 0}, ValueError, "horizon must be an integer >= 1"),
        (
            {"actions": lbm.Contextual(np.ones((7, 1, 3)) / 2)},
            TypeError,
            "actions must be a Ball or a Finite",
        ),
        ({"theta": [2.0]}, ValueError, "theta must lie in the unit ball"),
        ({"num_envs": 0}, ValueError, "num_envs must be an integer >= 1"),
    ],
)
def test_bad_parameters_are_refused(changes: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        gymnasium.make_vec(ID, **{"num_envs": 2, **parameters(**changes)})
    if "num_envs" not in changes:
        with pytest.raises(error, match=words):
            gymnasium.make(ID, **parameters(**changes))


# --- many at once ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "endless"])
def test_a_vector_is_what_single_environments_are(kind: str) -> None:
    """Over several episodes, with the steps between them in which all begin anew."""
    given_ = parameters(**ENDLESS, sigma=0.0) if kind == "endless" else parameters(kind, sigma=0.0)
    ours = gymnasium.make_vec(ID, num_envs=4, **given_)
    theirs = gymnasium.make_vec(ID, num_envs=4, vectorization_mode="sync", **given_)
    assert type(ours).__name__ == "LBMVectorEnv"
    assert ours.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    for name in ("observation_space", "action_space", "single_observation_space", "single_action_space"):
        assert getattr(ours, name) == getattr(theirs, name), name
    ours.action_space.seed(0)
    np.testing.assert_array_equal(ours.reset(seed=0)[0], theirs.reset(seed=0)[0])
    for step in range(26):
        if step == 10:  # from now on they end at different times
            mask = np.array([True, False, True, False])
            one, other = (envs.reset(options={"reset_mask": mask}) for envs in (ours, theirs))
            np.testing.assert_array_equal(one[0], other[0])
        actions = ours.action_space.sample()
        (*one, ours_info), (*other, theirs_info) = (envs.step(actions) for envs in (ours, theirs))
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left, right)
            assert left.dtype == right.dtype
        assert ours_info.keys() == theirs_info.keys()
        for key in ours_info:
            np.testing.assert_array_equal(ours_info[key], theirs_info[key])


def test_the_noise_of_a_vector_is_reproducible_and_that_of_its_copies_is_not_the_same() -> None:
    envs = gymnasium.make_vec(ID, num_envs=2000, **parameters(sigma=0.5))
    rest = np.zeros((2000, 3))
    envs.reset(seed=1)
    first = envs.step(rest)[1]
    envs.reset(seed=1)
    np.testing.assert_array_equal(envs.step(rest)[1], first)
    assert not np.array_equal(envs.step(rest)[1], first)
    np.testing.assert_allclose(first.std(), 0.5, rtol=0.1)


def test_what_a_vector_returned_stays_as_it_was() -> None:
    envs = gymnasium.make_vec(ID, num_envs=3, **parameters())
    envs.action_space.seed(0)
    kept = [envs.reset(seed=0)[0], *envs.step(envs.action_space.sample())[:4]]
    copies = [array.copy() for array in kept]
    for _ in range(9):
        envs.step(envs.action_space.sample())
    for array, copied in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(array, copied)


@pytest.mark.parametrize("mask", [[True, False], np.array([1, 0]), np.array([True])])
def test_a_mask_must_be_one(mask: Any) -> None:
    envs = gymnasium.make_vec(ID, num_envs=2, **parameters())
    with pytest.raises(ValueError, match=r"reset_mask must be an array \(2,\) of booleans"):
        envs.reset(options={"reset_mask": mask})


# --- how Gymnasium hears of it -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("import gymnasium, fastlbm", ID),
        ("import fastlbm, gymnasium", ID),
        ("import fastlbm, importlib.util; importlib.util.find_spec('gymnasium'); import gymnasium", ID),
        ("import gymnasium", f"fastlbm:{ID}"),
        ("import fastlbm, gymnasium", f"fastlbm:{ID}"),
    ],
)
def test_gymnasium_knows_the_environment_whatever_was_imported_first(imports: str, name: str) -> None:
    code = f"{imports}; print(gymnasium.make({name!r}, theta=[1.0], horizon=3).spec.id)"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout == f"{ID}\n"


def test_importing_the_package_loads_no_gymnasium_and_works_without_it() -> None:
    code = "import sys, fastlbm; sys.exit('gymnasium' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import sys; sys.modules['gymnasium'] = None; import fastlbm as lbm; lbm.LBM([1.0]); lbm.OwnAgent"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_entry_point_registers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, name = project["entry-points"]["gymnasium.envs"]["fastlbm"].split(":")
    known = gymnasium.registry.pop(ID)
    getattr(import_module(module), name)()
    assert gymnasium.registry[ID] == known
