"""Agents and environments of one's own: in runs, with the bits of compiled ones, and mistakes in them."""

from __future__ import annotations

import copy
import doctest
import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastlbm as lbm
from fastlbm.running.own import OwnCodeError
from fastlbm.running.seeds import AgentSeed, streams
from fastlbm.running.stepwise import SteppedModel
from tests.agents.test_learners import ROTTING, SETS, THETA, agents
from tests.own_example import EXAMPLE, PlainModel, RidgeGreedy  # type: ignore[attr-defined]


class Wrapped:
    """Any model, as an environment of one's own."""

    def __init__(self, model: lbm.LBM) -> None:
        self.inner, self.actions = SteppedModel(model), model.actions

    def reset(self, seed: Any) -> None:
        self.inner.reset(seed)

    def step(self, action: Any) -> Any:
        return self.inner.step(action)


class Repeats:
    """An agent that plays the rows of a list, and keeps what it hears."""

    def __init__(self, rows: Any) -> None:
        self.rows, self.heard = rows, []

    def start(self, actions: Any, seed: Any) -> Any:
        return self

    def act(self) -> Any:
        return self.rows[len(self.heard) % len(self.rows)]

    def update(self, y: float) -> None:
        self.heard.append(y)

    def details(self) -> dict[str, Any]:
        return {"heard": self.heard}


def test_the_example_is_that_of_the_documentation() -> None:
    examples = doctest.DocTestParser().get_examples(lbm.OwnAgent.__doc__ or "")
    assert EXAMPLE in [example.source for example in examples]
    assert len(EXAMPLE.splitlines()) <= 15


@pytest.mark.parametrize("kind", SETS)
def test_the_example_plays_on_every_set(kind: str) -> None:
    env = lbm.LBM(THETA, m=2, gamma=-3.0, actions=SETS[kind])
    assert lbm.run(env, RidgeGreedy(), T=20, seed=0).complete


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("name", agents())
def test_a_package_agent_step_by_step_has_the_bits_of_a_compiled_run(name: str, kind: str) -> None:
    agent = agents()[name]
    if SETS[kind].varies and getattr(agent, "switch", 0.0) > 0.0:
        pytest.skip("refused")
    if isinstance(agent, lbm.OracleGreedy):
        pytest.skip("knows the model")
    env = lbm.LBM(THETA, m=2, gamma=-3.0, actions=SETS[kind])
    compiled = lbm.run(env, agent, T=100, seed=5, keep_actions=True)
    stepped = lbm.run(Wrapped(env), agent, T=100, seed=5, keep_actions=True)
    for column in ("t", "reward", "observed", "actions"):
        np.testing.assert_array_equal(getattr(stepped, column), getattr(compiled, column))
    assert stepped.plans == compiled.plans


def test_an_own_agent_around_a_package_agent_draws_what_that_draws() -> None:
    class Around:
        def start(self, actions: Any, seed: Any) -> Any:
            return lbm.O3M(2, -3.0, 200, L=6).start(actions, seed)

    for seed in (3, np.random.SeedSequence(1, spawn_key=(2,))):
        inner = lbm.run(ROTTING, lbm.O3M(2, -3.0, 200, L=6), T=200, seed=seed)
        outer = lbm.run(ROTTING, Around(), T=200, seed=seed)
        np.testing.assert_array_equal(outer.observed, inner.observed)


def test_seeds_of_agents_are_their_own_and_say_so() -> None:
    noise, agent = streams(7)
    seeds: list[Any] = []

    class Asks(RidgeGreedy):
        def begin(self, actions: Any, seed: Any) -> None:
            seeds.append(seed)
            super().begin(actions, seed)

    lbm.run(ROTTING, Asks(), T=1, seed=7)
    assert isinstance(seeds[0], AgentSeed)
    assert np.random.default_rng(seeds[0]).random() == agent.random()
    assert np.random.default_rng(7).random() not in (noise.random(), agent.random())


@settings(max_examples=30)
@given(
    d=st.integers(1, 4), m=st.integers(0, 4), gamma=st.floats(-3.0, 2.0), seed=st.integers(0, 2**32),
    sigma=st.sampled_from([0.0, 0.3]),
)  # fmt: skip
def test_rewards_of_a_plain_environment_are_those_of_the_model(
    d: int, m: int, gamma: float, seed: int, sigma: float
) -> None:
    theta = lbm.LBM.random(d, seed=seed).theta
    env, plain = lbm.LBM(theta, m, gamma, sigma=sigma), PlainModel(theta, m, gamma, sigma)
    rows = lbm.Cyclic(lbm.Ball(d).sample(7, seed=seed))
    compiled, stepped = (lbm.run(one, rows, T=25, seed=seed) for one in (env, plain))
    size = max(env.reward_bound, 1.0)
    np.testing.assert_allclose(stepped.reward, compiled.reward, rtol=0.0, atol=1e-10 * size)
    np.testing.assert_allclose(stepped.observed, compiled.observed, rtol=0.0, atol=1e-10 * size)


def test_a_learner_collects_the_same_in_a_plain_environment() -> None:
    plain = PlainModel([0.6, 0.8], 1, -2.0)
    env = lbm.LBM([0.6, 0.8], 1, -2.0)
    for agent in (lbm.O3M(1, -2.0, 60, L=4), RidgeGreedy()):
        here, there = (lbm.run(one, agent, T=60, seed=1).reward[-1] for one in (env, plain))
        assert there == pytest.approx(here, rel=1e-6)


def test_every_agent_meets_the_same_noise() -> None:
    noise = []
    for agent in (lbm.OFUL(100), RidgeGreedy(), RidgeGreedy(explore=0.9)):
        run = lbm.run(ROTTING, agent, T=100, seed=4)
        noise.append(np.diff(run.observed - run.reward, prepend=0.0))
    np.testing.assert_allclose(noise[1], noise[0], atol=1e-12)
    np.testing.assert_allclose(noise[2], noise[0], atol=1e-12)


def test_runs_share_nothing() -> None:
    agent, env = Repeats([[1.0, 0.0]]), PlainModel([0.6, 0.8], 1, -2.0)
    before = copy.deepcopy((vars(agent), {k: v for k, v in vars(env).items() if k != "theta"}))
    first, again = (lbm.run(env, agent, T=20, seed=2) for _ in range(2))
    assert (vars(agent), {k: v for k, v in vars(env).items() if k != "theta"}) == before
    np.testing.assert_array_equal(first.observed, again.observed)
    assert first.details["heard"] == again.details["heard"]
    assert first.details["heard"][0] == first.observed[0]


def test_any_workers_give_the_same() -> None:
    two = {"ridge": RidgeGreedy(), "oful": lbm.OFUL(60)}
    for env in (lbm.LBM([0.6, 0.8], 1, -2.0), PlainModel([0.6, 0.8], 1, -2.0)):
        one = lbm.run_many(env, two, T=60, seeds=3, executor=1, record=6).frame
        four = lbm.run_many(env, two, T=60, seeds=3, executor=4, record=6).frame
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            there = lbm.run_many(env, two, T=60, seeds=3, executor=pool, record=6).frame
        pd.testing.assert_frame_equal(four, one, check_exact=True)
        pd.testing.assert_frame_equal(there, one, check_exact=True)
        alone = lbm.run(env, two["ridge"], T=60, seed=2, record=6)
        rows = one.query("agent == 'ridge' and seed == 2")
        np.testing.assert_array_equal(rows["observed"], alone.observed)


class Silent(PlainModel):
    """Does not know what to expect."""

    def step(self, action: Any) -> Any:
        return super().step(action)[0], None


def test_what_nobody_expects_counts_as_observed() -> None:
    results = lbm.run_many(Silent([0.6, 0.8], 1, -2.0), {"r": RidgeGreedy()}, T=30, seeds=2, record=3)
    known = lbm.run_many(PlainModel([0.6, 0.8], 1, -2.0), {"r": RidgeGreedy()}, T=30, seeds=2, record=3)
    np.testing.assert_array_equal(results.frame["reward"], known.frame["observed"])
    np.testing.assert_array_equal(results.frame["observed"], known.frame["observed"])
    assert results.plot().axes[0].get_ylabel() == "cumulative observed reward"
    assert known.plot().axes[0].get_ylabel() == "cumulative expected reward"
    assert len(results.summary()) == 1
    for kind in ("regret", "loglog"):
        with pytest.raises(ValueError, match=r"regret must be that of an LBM.*environment of your own"):
            known.plot(kind)


def test_progress_and_an_early_end_work_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    lbm.run(ROTTING, RidgeGreedy(), T=300, progress=True)
    assert "300/300" in capsys.readouterr().err

    class Ends(RidgeGreedy):
        def update(self, y: float) -> None:
            super().update(y)
            if self.V.trace() > 40:
                raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match="interrupted after"):
        run = lbm.run(ROTTING, Ends(), T=300)
    assert not run.complete
    assert 30 < len(run.t) < 100


def test_threads_end_between_two_slow_steps() -> None:
    from fastlbm.running.episode import play_episode

    stop = threading.Event()

    class Stops(RidgeGreedy):
        def update(self, y: float) -> None:
            stop.wait(0.25)  # longer than a stretch
            stop.set()

    run = play_episode(ROTTING, Stops(), 1000, 0, points=np.arange(1, 1001), stop=stop)
    assert len(run.t) == 1


# --- mistakes ----------------------------------------------------------------------------------------------


def agent_that(mistake: Any, at: int = 2) -> Any:
    """An agent that acts by `mistake` in its step `at`, 0, 1, ..., and plays the first arm before."""

    class Mistaken(lbm.OwnAgent):
        def begin(self, actions: Any, seed: Any) -> None:
            self.t = 0

        def act(self) -> Any:
            self.t += 1
            return mistake() if self.t == at + 1 else np.array([1.0, 0.0, 0.0])

        def update(self, y: float) -> None:
            pass

    return Mistaken()


def failing() -> Any:
    return 1 / 0


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda: [1.0, 0.0], r"it must have shape \(3,\), got \(2,\)"),
        (lambda: np.ones((1, 3)), r"it must have shape \(3,\), got \(1, 3\)"),
        (lambda: 2, r"it must have shape \(3,\), got \(\)"),
        (lambda: None, r"it must have shape \(3,\), got \(\)"),
        (lambda: "left", "it must be an array of real numbers"),
        (lambda: [np.nan, 0.0, 0.0], "it must be finite, got NaN"),
        (lambda: [2.0, 0.0, 0.0], r"it must be a member of the set, got \[2.0, 0.0, 0.0\] of norm 2"),
        (
            lambda: np.linalg.solve(np.zeros((3, 3)), np.ones(3)),
            r"LinAlgError: .* \(.*test_own.py, line \d+\)",
        ),
        (failing, r"ZeroDivisionError: division by zero \(.*test_own.py, line \d+\)"),
    ],
)
def test_a_mistake_of_act_is_told_with_its_step(mistake: Any, words: str) -> None:
    with pytest.raises(OwnCodeError, match=rf"^step 3: act\(\) of Mistaken .*{words}"):
        lbm.run(ROTTING, agent_that(mistake), T=10)


def test_single_precision_is_precise_enough() -> None:
    """A unit vector in float32 is longer than 1 by its rounding; what is played is in the set."""
    arm = np.array([0.6, 0.0, 0.8], dtype=np.float32)
    assert np.linalg.norm(arm.astype(float)) > 1.0 + 1e-8
    for actions in (lbm.Ball(3), lbm.Finite([[0.6, 0.0, 0.8], [1.0, 0.0, 0.0]])):
        env = lbm.LBM(THETA, 2, -3.0, actions=actions)
        run = lbm.run(env, agent_that(lambda: arm), T=5, keep_actions=True)
        assert actions.contains(run.actions).all()
        np.testing.assert_allclose(run.actions[2], arm, atol=1e-7)
    with pytest.raises(OwnCodeError, match=r"step 3: .* of norm 1\.000001"):
        lbm.run(ROTTING, agent_that(lambda: [1.000001, 0.0, 0.0]), T=5)


def test_details_must_be_a_mapping() -> None:
    class Counts(RidgeGreedy):
        def details(self) -> int:
            return 5

    with pytest.raises(OwnCodeError, match=r"details\(\) of Counts must return a mapping, got 5"):
        lbm.run(ROTTING, Counts(), T=5)


def test_what_is_not_an_arm_is_told() -> None:
    env = lbm.LBM(THETA, 2, -3.0, actions=lbm.Finite(np.eye(3)))
    with pytest.raises(OwnCodeError, match=r"step 3: act\(\) of Mistaken must return an action .*member"):
        lbm.run(env, agent_that(lambda: np.array([0.5, 0.5, 0.0])), T=10)
    sets = np.stack([np.eye(3)[:2]] * 2 + [np.eye(3)[1:]])
    env = lbm.LBM(THETA, 2, -3.0, actions=lbm.Contextual(sets))
    with pytest.raises(OwnCodeError, match="step 3: act"):
        lbm.run(env, agent_that(lambda: np.array([1.0, 0.0, 0.0])), T=3)


@pytest.mark.parametrize("executor", [1, "process"])
def test_an_update_that_raises_is_told_with_its_step(executor: Any) -> None:
    agent = FailsInUpdate()
    words = r"^step 4: update\(.*\) of FailsInUpdate raised KeyError: 'lost' \(.*test_own.py, line \d+\)"
    if executor == "process":
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool, pytest.raises(OwnCodeError, match=words):
            lbm.run_many(ROTTING, {"a": agent}, T=10, seeds=1, executor=pool)
    else:
        with pytest.raises(OwnCodeError, match=words):
            lbm.run_many(ROTTING, {"a": agent}, T=10, seeds=1, executor=executor)


def test_what_cannot_go_to_a_process_is_told_by_its_name() -> None:
    good, bad = RidgeGreedy(), RidgeGreedy()
    bad.explore = lambda: 0.1
    context, words = multiprocessing.get_context("spawn"), r"agents\['bad'\] must be one that can be pickled"
    with ProcessPoolExecutor(1, mp_context=context) as pool, pytest.raises(TypeError, match=words):
        lbm.run_many(ROTTING, {"good": good, "bad": bad}, T=5, seeds=1, executor=pool)


class FailsInUpdate(lbm.OwnAgent):
    def begin(self, actions: Any, seed: Any) -> None:
        self.t = 0

    def act(self) -> Any:
        self.t += 1
        return [1.0, 0.0, 0.0]

    def update(self, y: float) -> None:
        if self.t == 4:
            raise KeyError("lost")


class Pays(PlainModel):
    """Returns what it is told to."""

    def __init__(self, value: Any) -> None:
        super().__init__([0.6, 0.8], 1, -2.0)
        self.value = value

    def step(self, action: Any) -> Any:
        return self.value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.0, r"must return \(observed, expected or None\), got 1.0"),
        ((1.0,), r"must return \(observed, expected or None\), got \(1.0,\)"),
        ((None, 1.0), "got None as observed"),
        ((np.nan, 1.0), "observed must be a finite number"),
        ((1.0, np.inf), "expected must be a finite number"),
        (("much", None), "observed must be a real number, got 'much'"),
    ],
)
def test_a_mistake_of_an_environment_is_told_with_its_step(value: Any, words: str) -> None:
    with pytest.raises(OwnCodeError, match=rf"^step 1: step\(action\) of Pays .*{words}"):
        lbm.run(Pays(value), lbm.OFUL(10), T=10)


def test_numbers_of_numpy_are_rewards() -> None:
    for one in (np.float32(0.5), np.float64(0.5), np.array(0.5), np.int64(1)):
        assert lbm.run(Pays((one, one)), lbm.OFUL(10), T=2).reward[0] == float(one)


class NoUpdate:
    def start(self, actions: Any, seed: Any) -> Any:
        return object()


@pytest.mark.parametrize(
    ("agent", "error", "words"),
    [
        (3, TypeError, "agent must be an agent such as O3M.*or an object with a method start.*got 3"),
        (RidgeGreedy, TypeError, "got the class RidgeGreedy: make an object of it"),
        (NoUpdate(), OwnCodeError, r"start\(actions, seed\) of NoUpdate must return something with act"),
    ],
)
def test_what_is_no_agent_is_refused(agent: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        lbm.run(ROTTING, agent, T=5)


class NoSet(PlainModel):
    def __init__(self) -> None:
        self.actions = [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (3, r"env must be an LBM, or an object with actions, reset\(seed\) and step\(action\), got 3"),
        (PlainModel, "got the class PlainModel"),
        (NoSet(), r"env.actions must be a set of actions such as Ball\(3\)"),
    ],
)
def test_what_is_no_environment_is_refused(env: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        lbm.run(env, lbm.OFUL(5), T=5)


def test_an_oracle_needs_the_model() -> None:
    with pytest.raises(TypeError, match="OracleGreedy must be started with the LBM that it knows"):
        lbm.run_many(PlainModel([0.6, 0.8], 1, -2.0), {"o": lbm.OracleGreedy()}, T=5, seeds=1)
