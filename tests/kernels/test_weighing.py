"""Weighing: who is chosen, given up and offered; runs that are compiled decide as those that are not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastlbm as lbm
from fastlbm.agents.auto_policy import AutoPolicy
from fastlbm.kernels import weighing
from tests import naive_weighing as naive
from tests.agents.test_learners import ROTTING


def policy_of(memories: list[int], gammas: list[float]) -> AutoPolicy:
    live = lbm.Auto(memories=memories, gammas=gammas).start(lbm.Ball(3), seed=0)
    live.act()
    assert isinstance(live._policy, AutoPolicy)
    return live._policy


POLICY = policy_of([0, 1, 2], [-2.0, -1.0, 1.0])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-40.0, 0.0), min_size=7, max_size=7),
    st.integers(0, 200),
    st.integers(0, 200),
    st.integers(-1, 6),
    st.floats(1.0, 30.0),
)
def test_who_is_chosen_and_who_is_given_up(
    logs: list[float], steps: int, draw: int, chosen: int, behind: float
) -> None:
    w = POLICY.weighing._replace(behind=behind)
    posterior = np.array(logs) - np.logaddexp.reduce(logs)
    w.posterior[:], w.marks[weighing.STEPS], w.marks[weighing.DRAW] = posterior, steps, draw
    m = w.candidates.m.tolist()
    assert weighing.is_behind(w) == (sum(posterior > posterior.max() - behind) < 0.7 * 7)
    due = naive.draw_is_due(posterior, m, chosen, steps, draw)
    assert weighing.draw_is_due(w, chosen) == due
    found = weighing.choose(w, chosen, np.random.default_rng(3))
    x = float(np.random.default_rng(3).random())
    assert found == naive.chosen_of_posterior(posterior, m, chosen, due, x)
    assert w.marks[weighing.DRAW] == (math.ceil(1.1 * steps) if due else draw)


def test_longer_memories_are_offered_when_the_longest_is_likely() -> None:
    w = POLICY.weighing
    w = w._replace(edge=np.where(w.candidates.m == 2, weighing.LARGEST, 0))
    w.marks[weighing.STEPS] = 100
    w.posterior[:] = np.log(np.where(w.candidates.m == 2, 0.2, 0.1))
    assert weighing.more_to_offer(w) == weighing.LARGEST
    assert weighing.more_to_offer(w._replace(edge=np.zeros_like(w.edge))) == 0
    w.posterior[:] = np.log(np.where(w.candidates.m == 2, 0.1, 0.175))
    assert weighing.more_to_offer(w) == 0
    w.marks[weighing.STEPS] = 59
    w.posterior[:] = np.log(np.where(w.candidates.m == 2, 0.2, 0.1))
    assert weighing.more_to_offer(w) == 0


def test_more_that_fade_are_offered_when_one_is_likely_or_none_explains_the_rewards() -> None:
    w = POLICY.weighing
    w = w._replace(edge=np.where(w.candidates.m == 2, weighing.ENDLESS, 0), fades=True)
    w.marks[weighing.STEPS], w.marks[weighing.FOUND] = 120, 0
    w.posterior[:] = np.log(np.where(w.candidates.m == 2, 0.2, 0.1))
    assert weighing.more_to_offer(w) == weighing.ENDLESS
    assert weighing.more_to_offer(w._replace(fades=False)) == 0
    w.marks[weighing.STEPS] = 119
    assert weighing.more_to_offer(w) == 0
    w.marks[weighing.FOUND] = 1
    assert weighing.more_to_offer(w) == weighing.ENDLESS
    assert weighing.more_to_offer(w._replace(fades=False)) == 0
    w.marks[weighing.FOUND] = 0


@pytest.mark.parametrize(
    ("steps", "last", "found", "told", "due"),
    [
        (289, 0, 0, 0, False), (290, 0, 0, 0, True), (290, 0, 0, 1, False), (463, 290, 0, 0, False),
        (464, 290, 0, 0, True), (319, 290, 1, 0, False), (320, 290, 1, 0, True), (320, 290, 1, 1, False),
        (10**5, 0, 0, 0, True), (10**5 + 3, 10**5, 0, 0, False),
    ],
)  # fmt: skip
def test_when_to_look(steps: int, last: int, found: int, told: int, due: bool) -> None:
    w = POLICY.weighing._replace(marks=np.zeros(6, dtype=np.int64), probing=np.zeros(6, dtype=np.int64))
    w.marks[[weighing.STEPS, weighing.FOUND, weighing.TOLD]] = steps, found, told
    w.probing[weighing.LAST_LOOK] = last
    assert weighing.look_is_due(w) == due


@pytest.mark.parametrize(
    ("steps", "last", "to_go", "told", "due"),
    [
        (74, 0, 0, 0, False), (75, 0, 0, 0, True), (75, 0, 0, 1, False), (78, 75, 6, 0, True),
        (78, 75, 6, 1, False), (84, 75, 0, 0, False), (164, 75, 0, 0, False), (165, 75, 0, 0, True),
        (10**5, 0, 0, 0, True), (10**5 + 9, 10**5, 0, 0, False),
    ],
)  # fmt: skip
def test_when_to_probe(steps: int, last: int, to_go: int, told: int, due: bool) -> None:
    w = POLICY.weighing._replace(marks=np.zeros(6, dtype=np.int64), probing=np.zeros(6, dtype=np.int64))
    w.marks[[weighing.STEPS, weighing.TOLD]] = steps, told
    w.probing[[weighing.LAST_PROBE, weighing.TO_GO]] = last, to_go
    assert weighing.probe_is_due(w) == due


FADES = lbm.LBM.random(d=2, m=math.inf, gamma=-2.0, seed=1, decay=0.7)


@pytest.mark.parametrize(
    ("stretch", "env", "agent"),
    [
        *((n, ROTTING, lbm.Auto(memories=range(4), gammas=[-3.0, -2.0, -1.0, 1.0])) for n in (1, 7, 400)),
        (7, FADES, lbm.Auto(memories=[1, 3, math.inf], gammas=[-3.0, -2.0, -1.0], decays=[1.0, 0.5, 0.7])),
        (400, FADES, lbm.Auto(gammas=[-3.0, -2.0, -1.0])),
    ],
)  # fmt: skip
def test_a_run_that_is_compiled_decides_as_one_that_is_not(
    stretch: int, env: lbm.LBM, agent: lbm.Auto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastlbm.agents.auto_policy.ROWS", 5)  # the log is full every few plans
    monkeypatch.setattr("fastlbm.running.episode._STRETCH_SECONDS", stretch * 1e-4)
    compiled = lbm.run(env, agent, T=400, seed=4, keep_actions=True)
    monkeypatch.setattr(AutoPolicy, "advance", AutoPolicy.__mro__[1].advance)
    stepwise = lbm.run(env, agent, T=400, seed=4, keep_actions=True)
    np.testing.assert_array_equal(compiled.actions, stepwise.actions)
    assert compiled.plans == stepwise.plans == len(compiled.details["step"])
    for name, column in compiled.details.items():
        np.testing.assert_array_equal(column, stepwise.details[name])
