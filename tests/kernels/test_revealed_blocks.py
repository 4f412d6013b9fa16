"""O3M on sets that are revealed step by step: its next arm against all plans."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastlbm as lbm
from fastlbm.agents.learners import CompiledRevealedLearner, RevealedArmLearner
from fastlbm.agents.policy import PastBlock
from fastlbm.kernels.block_state import add_reward, cursor, next_action
from tests import naive, problems

pytestmark = pytest.mark.nojit


def policy_of(
    sets: np.ndarray, m: int, gamma: float, L: int, A0: np.ndarray | None
) -> CompiledRevealedLearner:
    agent = lbm.O3M(m, gamma, 1000, L=L, A0=A0)
    policy = agent._policy(lbm.Contextual(sets), None, np.random.default_rng(0), 0)
    assert isinstance(policy, CompiledRevealedLearner)
    return policy


@settings(max_examples=12, deadline=None)
@given(
    K=st.integers(1, 3),
    d=st.integers(1, 3),
    m=st.integers(1, 3),
    L=st.integers(1, 3),
    gamma=st.sampled_from([-2.0, -0.7, 1.0]),
    seed=st.integers(0, 100),
)
def test_the_next_arm_begins_a_best_plan(K: int, d: int, m: int, L: int, gamma: float, seed: int) -> None:
    n, T = m + L, 2 * (m + L) + 2
    rng = np.random.default_rng([seed, K, d, m, L])
    sets = problems.ball(T * K, d, rng).reshape(T, K, d)
    A0 = problems.initial_matrix("dense" if seed % 2 else "default", d, rng)
    policy = policy_of(sets, m, gamma, L, A0)
    for step in range(T):
        policy.ensure_block()
        belief, block = policy._belief(), policy.block
        position = int(cursor(block)[0])
        # The sets to come: those seen last, the latest first.
        ahead = [sets[max(step - a, 0)] for a in range(n - position)]
        played = block.actions[:position]
        plans = itertools.product(*(range(K) for _ in ahead))
        values = {
            plan: naive.block_value(
                np.array([*played, *(s[k] for s, k in zip(ahead, plan, strict=True))]), m, gamma,
                belief.theta, belief.V_inv, belief.beta, "O3M", A0,
            )
            for plan in plans
        }  # fmt: skip
        top = max(values.values())
        action = block.actions[position]
        chosen = [v for plan, v in values.items() if np.array_equal(sets[step, plan[0]], action)]
        assert max(chosen) == pytest.approx(top, rel=1e-9, abs=1e-9)
        if position >= m:
            feature = naive.features(block.actions[position - m : position + 1], m, gamma, A0)[-1]
            np.testing.assert_allclose(policy.learner.features[position - m], feature, rtol=1e-9, atol=1e-11)
        _play(policy, float(rng.normal()))


def _play(policy: CompiledRevealedLearner, y: float) -> None:
    """The next action is played and has the reward y; now and then a late one comes, and beliefs change."""
    position, passes, _ = cursor(policy.block)
    action = next_action(policy.block)
    add_reward(policy.block, position, passes, y)
    if y > 0.5:
        policy.absorb_late(action, y, PastBlock(member=0, came=0, total=0.0))


def test_a_run_decides_as_a_live_policy_does() -> None:
    rng, T = np.random.default_rng(0), 90
    sets = problems.ball(T * 5, 3, rng).reshape(T, 5, 3)
    env = lbm.LBM(rng.normal(size=3) / 3, m=2, gamma=-2.0, sigma=0.1, actions=lbm.Contextual(sets))
    agent = lbm.O3M(2, -2.0, T, L=6)
    run = lbm.run(env, agent, T=T, seed=3, record=T, keep_actions=True)
    live = agent.start(env.actions, seed=0)
    for t, y in enumerate(np.diff(run.observed, prepend=0.0)):
        np.testing.assert_array_equal(live.act(), run.actions[t])
        live.update(y)


def test_large_sets_are_planned_without_tables() -> None:
    sets = problems.ball(30 * 200, 3, np.random.default_rng(0)).reshape(30, 200, 3)
    policy = lbm.O3M(3, -2.0, 30, L=5)._policy(lbm.Contextual(sets), None, np.random.default_rng(0), 0)
    assert type(policy) is RevealedArmLearner
