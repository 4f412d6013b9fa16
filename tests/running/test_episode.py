"""One run: records, paired noise, stretches, seeds and interruptions."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm.running import episode
from tests.agents.test_learners import ROTTING, SETS, THETA, agents


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("name", agents())
def test_the_record_is_what_the_model_says_of_the_actions(name: str, kind: str) -> None:
    agent = agents()[name]
    if SETS[kind].varies and getattr(agent, "switch", 0.0) > 0.0:
        pytest.skip("refused")
    env = lbm.LBM(THETA, m=2, gamma=-3.0, actions=SETS[kind])
    run = lbm.run(env, agent, T=130, keep_actions=True)
    assert run.complete
    assert run.actions.shape == (130, 3)
    assert env.actions.contains(run.actions).all()
    np.testing.assert_array_equal(run.t, np.arange(1, 131))
    np.testing.assert_allclose(run.reward, np.cumsum(env.expected_rewards(run.actions)), rtol=1e-12)
    eta = np.diff(run.observed - run.reward, prepend=0.0)
    np.testing.assert_allclose(eta.std(), 0.1, rtol=0.3)


@pytest.mark.parametrize("m", [0, 1, 3, 7, math.inf])
@pytest.mark.parametrize("gamma", [-3.0, -0.7, 0.0, 1.3])
def test_a_cycle_collects_what_the_model_says(m: float, gamma: float) -> None:
    block = lbm.Ball(3).sample(5, seed=0)
    env = lbm.LBM(THETA, m=m, gamma=gamma, sigma=0.0)
    run = lbm.run(env, lbm.Cyclic(block), T=63, keep_actions=True)
    np.testing.assert_array_equal(run.actions, block[np.arange(63) % 5])
    np.testing.assert_allclose(run.reward, np.cumsum(env.expected_rewards(run.actions)), rtol=1e-12)
    np.testing.assert_array_equal(run.observed, run.reward)


def test_every_agent_meets_the_same_noise() -> None:
    env = lbm.LBM(THETA, m=1, gamma=-1.0, sigma=0.3)
    two = [lbm.Cyclic([[1.0, 0.0, 0.0]]), lbm.OFUL(200), lbm.O3M(1, -1.0, 200, L=7)]
    noise = []
    for agent in two:
        run = lbm.run(env, agent, T=200, seed=4)
        noise.append(np.diff(run.observed - run.reward, prepend=0.0))
    np.testing.assert_allclose(noise[1], noise[0], atol=1e-12)
    np.testing.assert_allclose(noise[2], noise[0], atol=1e-12)
    other = lbm.run(env, two[0], T=200, seed=5)
    assert not np.allclose(np.diff(other.observed - other.reward, prepend=0.0), noise[0])


def test_what_is_recorded_does_not_change_what_happens() -> None:
    agent = lbm.O3M(2, -3.0, 500, L=6)
    every = lbm.run(ROTTING, agent, T=500)
    for record in (1, 7, 100, [3, 77, 500]):
        run = lbm.run(ROTTING, agent, T=500, record=record)
        np.testing.assert_array_equal(run.reward, every.reward[run.t - 1])
        np.testing.assert_array_equal(run.observed, every.observed[run.t - 1])


def test_points_are_linear_or_logarithmic_and_end_with_the_run() -> None:
    cycle = lbm.Cyclic([[1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(lbm.run(ROTTING, cycle, T=1000, record=4).t, [250, 500, 750, 1000])
    np.testing.assert_array_equal(
        lbm.run(ROTTING, cycle, T=1000, record=4, spacing="log").t, [1, 10, 100, 1000]
    )
    log = lbm.run(ROTTING, cycle, T=10**5, record=50, spacing="log").t
    assert log[-1] == 10**5
    assert (np.diff(log) > 0).all()
    assert len(lbm.run(ROTTING, cycle, T=5).t) == 5


def test_any_horizon_cuts_the_last_block() -> None:
    agent = lbm.O3M(2, -3.0, 100, L=6)
    long = lbm.run(ROTTING, agent, T=100, keep_actions=True)
    for T in (1, 3, 8, 15, 99):
        short = lbm.run(ROTTING, agent, T=T, keep_actions=True)
        np.testing.assert_array_equal(short.actions, long.actions[:T])
        np.testing.assert_array_equal(short.reward, long.reward[:T])


def test_the_length_of_a_stretch_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    for agent in (lbm.O3M(2, -3.0, 3000, L=6, switch=0.5), lbm.Doubling(lbm.OFUL(100))):
        slow = lbm.run(ROTTING, agent, T=3000, keep_actions=True)
        monkeypatch.setattr(episode, "_STRETCH_SECONDS", 1e-9)
        quick = lbm.run(ROTTING, agent, T=3000, keep_actions=True)
        monkeypatch.undo()
        np.testing.assert_array_equal(slow.actions, quick.actions)
        np.testing.assert_array_equal(slow.observed, quick.observed)


def test_memory_does_not_grow_with_the_horizon() -> None:
    import tracemalloc

    sizes = []
    for T in (10**4, 10**6):
        agent = lbm.O3M(2, -3.0, 10**4, L=20, switch=1.0)
        lbm.run(ROTTING, agent, T=10)
        tracemalloc.start()
        lbm.run(ROTTING, agent, T=T)
        sizes.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert sizes[1] < 1.1 * sizes[0] + 10_000


# --- seeds ----------------------------------------------------------------------------------------------


def test_a_seed_is_an_integer_a_sequence_or_a_generator() -> None:
    agent = lbm.O3M(1, -1.0, 100, L=4)

    def final(seed: object) -> float:
        return float(lbm.run(ROTTING, agent, T=60, seed=seed).observed[-1])

    assert final(3) == final(3) == final(np.random.SeedSequence(3))
    sequence = np.random.SeedSequence(3)
    assert final(sequence) == final(sequence)  # nothing is spawned from it
    assert final(np.random.SeedSequence(3, spawn_key=(1,))) != final(3)
    assert final(np.random.default_rng(3)) == final(np.random.default_rng(3))
    assert final(None) != final(None)
    generator = np.random.default_rng(3)
    assert final(generator) != final(generator)  # it moves on
    still = lbm.LBM(THETA, m=2, gamma=-3.0, sigma=0.0)
    live, past = agent.start(still.actions, seed=np.random.default_rng(5)), []
    run = lbm.run(still, agent, T=20, seed=np.random.default_rng(5), keep_actions=True)
    for t in range(20):
        past.append(live.act())
        live.update(np.asarray(still.expected_rewards(past)[-1]))
        np.testing.assert_array_equal(past[t], run.actions[t])
    with pytest.raises((TypeError, ValueError), match="seed must be"):
        final("three")


# --- compiled code ----------------------------------------------------------------------------------------


SCRIPT = """
import numpy as np, fastlbm as lbm
env = lbm.LBM([0.48, 0.6, 0.64], m=2, gamma=-1.7)
first = env.expected_rewards(lbm.Ball(3).sample(50, seed=0))
run = lbm.run(env, lbm.OFUL(3000), T=3000)
print(run.observed.tobytes().hex(), first.tobytes().hex())
"""


def test_compiled_now_or_loaded_from_disk_the_bits_are_the_same(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    texts = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert any(tmp_path.rglob("*.nbc"))
    assert texts[0] == texts[1]


# --- interruption ---------------------------------------------------------------------------------------


def test_an_interrupted_run_keeps_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = lbm.O3M(2, -3.0, 10**5, L=6)
    whole = lbm.run(ROTTING, agent, T=3000, record=300)
    calls = []

    def interrupt(self: object, steps: int) -> None:
        calls.append(steps)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(episode.Progress, "add", interrupt)
    with pytest.warns(RuntimeWarning, match="interrupted after"):
        run = lbm.run(ROTTING, agent, T=3000, record=300)
    assert not run.complete
    assert 0 < len(run.t) < 300
    np.testing.assert_array_equal(run.observed, whole.observed[: len(run.t)])


def test_progress_is_shown_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    lbm.run(ROTTING, lbm.OracleGreedy(), T=100, progress=True)
    assert "100" in capsys.readouterr().err
    lbm.run(ROTTING, lbm.OracleGreedy(), T=100)
    assert capsys.readouterr().err == ""


# --- bad input ------------------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"T": 0}, ValueError, "T must be"),
        ({"T": 2.5}, ValueError, "T must be"),
        ({"env": 3}, TypeError, "env must be an LBM"),
        ({"agent": lbm.Ball(3)}, TypeError, "agent must be an agent"),
        ({"record": 0}, ValueError, "record must be"),
        ({"record": [5, 3]}, ValueError, "record must hold increasing steps"),
        ({"record": [1, 99]}, ValueError, "record must hold increasing steps from 1 to T=10"),
        ({"spacing": "square"}, ValueError, "spacing must be one of"),
        ({"seed": -1}, ValueError, "seed must be"),
        ({"env": lbm.LBM(THETA, actions=lbm.Contextual(np.zeros((4, 2, 3))))}, ValueError, "each of T=10"),
    ],
)
def test_bad_runs_are_refused(changes: dict[str, object], error: type[Exception], words: str) -> None:
    arguments: dict[str, object] = {"env": ROTTING, "agent": lbm.OracleGreedy(), "T": 10}
    with pytest.raises(error, match=words):
        lbm.run(**{**arguments, **changes})  # type: ignore[arg-type]
