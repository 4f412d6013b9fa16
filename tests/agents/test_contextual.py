"""Contextual sets: nobody looks into the future, and rewards are learned with the features really played."""

from __future__ import annotations

import numpy as np
import pytest

import fastlbm as lbm
from tests import naive, problems
from tests.agents.test_learners import THETA, agents

T, CUT = 60, 23
SETS = np.stack([problems.ball(4, 3, np.random.default_rng(t)) for t in range(T)])
PAIRS = [(0, 0.0), (1, -2.0), (2, -1.0)]
AGENTS = {
    **{name: agent for name, agent in agents().items() if getattr(agent, "switch", 0.0) == 0.0},
    "Combiner": lbm.BanditCombiner(PAIRS, T, L=4, scale=0.01),
    "Balancing": lbm.RegretBalancing(PAIRS, T, L=4, scale=0.01),
    "Corral": lbm.Corral(PAIRS, T, L=4, smooth=False),
    "Selector": lbm.EvidenceSelector(PAIRS, T, L=4),
    "Doubling": lbm.Doubling(lbm.O3M(1, -2.0, 10, L=3)),
}


def other_future(last: int = CUT) -> np.ndarray:
    """The same sets up to a last step, and others behind it."""
    sets = np.stack([problems.ball(4, 3, np.random.default_rng(t + 99)) for t in range(T)])
    sets[: last + 1] = SETS[: last + 1]
    return sets


def play(agent: lbm.agents.Agent, actions: lbm.model.ActionSet, steps: int) -> np.ndarray:
    env = lbm.LBM(THETA, m=2, gamma=-3.0, actions=actions)
    return lbm.run(env, agent, T=steps, seed=3, keep_actions=True).actions


@pytest.mark.parametrize("name", AGENTS)
def test_what_is_played_does_not_depend_on_sets_to_come(name: str) -> None:
    one, other = (play(AGENTS[name], lbm.Contextual(sets), T) for sets in (SETS, other_future()))
    np.testing.assert_array_equal(one[: CUT + 1], other[: CUT + 1])
    assert (one[CUT + 1 :] != other[CUT + 1 :]).any()
    assert lbm.Contextual(SETS).contains(one).all()


def test_who_knows_a_schedule_uses_it() -> None:
    agent = lbm.O3M(2, -3.0, T, L=8)
    one = play(agent, lbm.Scheduled(SETS), T)
    assert lbm.Scheduled(SETS).contains(one).all()
    others = {last: play(agent, lbm.Scheduled(other_future(last)), T) for last in range(10, 40)}
    assert any((one[: last + 1] != other[: last + 1]).any() for last, other in others.items())


def test_knowing_the_schedule_is_worth_something() -> None:
    rewards = {}
    for kind in (lbm.Contextual, lbm.Scheduled):
        sets = np.stack([problems.orthogonal(3, np.random.default_rng(t)) for t in range(200)])
        env = lbm.LBM(THETA, m=2, gamma=-3.0, actions=kind(sets))
        rewards[kind] = lbm.run(env, lbm.O3M(2, -3.0, 200, L=8, subgaussian=0.1), T=200).reward[-1]
    assert rewards[lbm.Contextual] < rewards[lbm.Scheduled]


@pytest.mark.parametrize("late", [0, 5])
def test_rewards_are_learned_with_the_features_of_what_was_played(late: int) -> None:
    m, L = 2, 3
    live = lbm.O3M(m, -2.0, T, L=L).start(lbm.Contextual(SETS), seed=0)
    rng = np.random.default_rng(1)
    actions, y = [], []
    for t in range(T):
        actions.append(live.act())
        y.append(float(rng.uniform(-1.0, 1.0)))
        if t >= late:
            live.update(y[t - late], step=t - late)
    n = m + L
    done = T // n - 1  # blocks before the present one, which began at the last plan
    learned = [t for t in range(done * n) if t % n >= m]
    blocks = np.array(actions)[: done * n].reshape(done, n, 3)
    B = np.concatenate([naive.features(block, m, -2.0, None) for block in blocks])
    V = np.eye(3) + B.T @ B
    np.testing.assert_allclose(live.V_inv, np.linalg.inv(V), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(live.theta, np.linalg.solve(V, B.T @ np.array(y)[learned]), rtol=1e-9)
