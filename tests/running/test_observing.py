"""Actions that somebody else chose, one by one and as whole logs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm.agents.corral import log_barrier_step
from fastlbm.kernels import weighing
from tests import naive
from tests.agents.test_learners import SETS, THETA
from tests.running.test_live import snapshot
from tests.running.test_offers import AGENTS, FINITE, D

LOG_LENGTH = 150


def log(seed: int = 0, n: int = LOG_LENGTH) -> tuple[np.ndarray, np.ndarray]:
    """Actions of the ball and rewards, a fifth of which are missing."""
    rng = np.random.default_rng(seed)
    actions = lbm.Ball(D).sample(n, seed=rng)
    y = actions @ THETA + 0.1 * rng.standard_normal(n)
    return actions, np.where(rng.random(n) < 0.2, math.nan, y)


def ridge(actions: np.ndarray, y: np.ndarray, m: int, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """theta and V^-1 of all actions that have a reward, with lam = 1."""
    B = naive.features(np.vstack((np.zeros((m, D)), actions)), m, gamma, None)
    seen = ~np.isnan(y)
    V = np.eye(D) + B[seen].T @ B[seen]
    return np.linalg.solve(V, B[seen].T @ y[seen]), np.linalg.inv(V)


@pytest.mark.parametrize("kind", ["ball", "finite", "contextual"])
@pytest.mark.parametrize("name", [*FINITE, "O3M rarely"])
def test_a_log_at_once_is_a_log_step_by_step(name: str, kind: str) -> None:
    agent = {**FINITE, "O3M rarely": lbm.O3M(2, -3.0, 300, L=4, switch=1.0)}[name]
    if SETS[kind].varies and (getattr(agent, "switch", 0.0) > 0.0 or getattr(agent, "smooth", False)):
        pytest.skip("refused")
    actions, y = log()
    one, many = agent.start(SETS[kind], seed=1), agent.start(SETS[kind], seed=1)
    for live in (one, many):
        for _ in range(7):  # in the middle of a block
            live.update(float(live.act() @ THETA))
    for action, reward in zip(actions, y, strict=True):
        one.observe(action, None if math.isnan(reward) else float(reward))
    assert many.replay(actions, y) is many
    assert one.t == many.t == 7 + LOG_LENGTH
    begin = 140 if name == "Doubling" else 0  # a new epoch has forgotten what it waited for
    assert one.missing == [t for t in np.flatnonzero(np.isnan(y)) + 7 if t >= begin]
    assert many.missing == []
    if one.theta is not None and one.theta.shape == (D,):
        np.testing.assert_allclose(one.theta, many.theta, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(one.V_inv, many.V_inv, rtol=0.0, atol=1e-10)
    for live in (one, many):
        for _ in range(8):
            live.update(float(live.act() @ THETA))
        assert live.t == 15 + LOG_LENGTH


@pytest.mark.parametrize(
    ("agent", "m", "gamma"),
    [
        (lbm.OFUL(300), 0, 0.0),
        (lbm.Rolling(2, -3.0), 2, -3.0),
        (lbm.Rolling(4, 1.0), 4, 1.0),
        (lbm.O3M(2, -3.0, 300, L=4), 2, -3.0),
        (lbm.OM(1, -1.0, 300, L=4), 1, -1.0),
        (lbm.O3M(2, -3.0, 300, L=4, switch=1.0), 2, -3.0),
        (lbm.LinTS(), 0, 0.0),
    ],
)
def test_fit_is_ridge_regression(agent: lbm.agents.Agent, m: int, gamma: float) -> None:
    actions, y = log(n=2500)  # longer than what is learned from at once
    theta, V_inv = ridge(actions, y, m, gamma)
    for on in (None, SETS["finite"]):
        live = agent.fit(actions, y, on=on)
        np.testing.assert_allclose(live.theta, theta, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(live.V_inv, V_inv, rtol=0.0, atol=1e-10)


def test_every_candidate_learns_from_a_log() -> None:
    actions, y = log()
    pairs = [(0, 0.0), (1, -1.0), (2, -3.0)]
    selector = lbm.EvidenceSelector(pairs, 300, L=3).fit(actions, y)._policy
    combiner = lbm.BanditCombiner(pairs, 300, L=3).fit(actions, y)._policy
    balancing = lbm.RegretBalancing(pairs, 300, L=3).fit(actions, y)._policy
    corral = lbm.Corral(pairs, 300, L=3).fit(actions, y)._policy
    auto = lbm.Auto(memories=[0, 1, 2], gammas=[-1.0, -3.0]).fit(actions, y)._policy
    for j, (m, gamma) in enumerate(pairs):
        theta, _ = ridge(actions, y, m, gamma)
        np.testing.assert_allclose(selector.candidates.theta[j], theta, atol=1e-10)
        for policy in (combiner, balancing, corral):
            np.testing.assert_allclose(policy.members[j].learner.estimator.theta, theta, atol=1e-10)
    # A log is no block of anybody.
    assert combiner.plays.sum() == balancing.plays.sum() == balancing.begun.sum() == 0.0
    np.testing.assert_array_equal(corral.p, np.full(3, 1.0 / 3.0))
    for j, at in enumerate(auto.alive):
        m, gamma, _ = auto.grid.models[at]
        np.testing.assert_allclose(auto.candidates.theta[j], ridge(actions, y, m, gamma)[0], atol=1e-10)


def test_what_auto_learns_from_its_own_log_is_what_it_learned() -> None:
    env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    agent = lbm.Auto()
    live, noise = agent.start(lbm.Ball(2), seed=0), env.draw_noise(300, seed=0)
    actions: list[np.ndarray] = []
    y = []
    for t in range(300):
        actions.append(live.act())
        y.append(float(env.expected_rewards(actions[-2:])[-1] + noise[t]))
        live.update(y[-1])
    live.observe([0.0, 0.0])
    fitted = agent.fit(actions, y)
    fitted.observe([0.0, 0.0])
    memory, other = live.explain().memory, fitted.explain().memory
    assert max(memory, key=memory.get) == max(other, key=other.get) == 1
    np.testing.assert_allclose(fitted.theta, live.theta, atol=1e-8)
    assert fitted.explain().noise == pytest.approx(live.explain().noise, rel=1e-6)


def test_what_auto_draws_does_not_depend_on_logs() -> None:
    """While others play nobody plans: no memory is drawn, and one that was drawn goes on."""
    live = lbm.Auto(memories=[0, 1, 2], gammas=[-1.0]).start(lbm.Ball(D), seed=0)
    for _ in range(30):
        live.act()
    policy = live._policy
    policy.marks[weighing.DRAW] = 33
    stream = policy.rng.bit_generator.state
    for m in (1, 2):  # all are as probable, for no reward has come
        policy._use(int(np.flatnonzero(policy.candidates.m == m)[0]))
        live.observe([0.5, 0.5, 0.0])
        assert policy.candidates.m[policy.chosen] == m
    live.replay(np.zeros((9, D)), np.full(9, math.nan))  # a draw is due
    assert policy.candidates.m[policy.chosen] == 0
    assert policy.rng.bit_generator.state == stream
    live.act()
    assert policy.rng.bit_generator.state != stream


def test_a_log_that_follows_no_model_is_told() -> None:
    actions, t = lbm.Ball(D).sample(2000, seed=0), np.arange(2000)
    noise = 0.1 * np.random.default_rng(0).standard_normal(2000)
    turning = np.column_stack((np.cos(t / 200), np.sin(t / 200), np.zeros(2000)))
    agent = lbm.Auto(memories=[0, 1], gammas=[-1.0, 1.0])
    with pytest.warns(RuntimeWarning, match="do not follow any model on offer"):
        live = agent.fit(actions, (actions * turning).sum(axis=1) + noise)
    assert live.explain().misfit
    assert not agent.fit(actions, actions @ THETA + noise).explain().misfit


def test_steps_of_balancing_stay_when_blocks_are_of_other_lengths() -> None:
    live = lbm.RegretBalancing([(0, 0.0), (2, -3.0)], 300, L=3).start(lbm.Ball(D), seed=0)
    for t in range(40):
        live.act()
        live.update(0.1 * (t % 3))
    live.observe(np.zeros(D))
    before = live._policy
    for arms in (np.eye(D), None):
        live.act(arms)
        policy = live._policy
        assert policy is not before
        steps = policy.begun * policy.B
        steps[policy.chosen] -= policy.B[policy.chosen]  # the block that begins
        np.testing.assert_allclose(steps, before.begun * before.B, rtol=1e-14)
        np.testing.assert_allclose(policy.plays * policy.B, before.plays * before.B, rtol=1e-14)
        np.testing.assert_allclose(policy.rewards * policy.B, before.rewards * before.B, rtol=1e-14)
        assert policy.plays.min() > 0.0
        assert policy.B.tolist() == ([3, 5] if arms is None else [1, 5])
        before = policy


def test_a_block_of_corral_that_is_cut_short_counts_with_what_it_brought() -> None:
    live = lbm.Corral([(0, 0.0), (0, -1.0)], 300, L=4, eta=1.0).start(lbm.Ball(D), seed=0)
    policy = live._policy
    for t in range(4):
        live.act()
        live.update(0.1 * t)
    live.observe(np.zeros(D))
    np.testing.assert_array_equal(policy.p, [0.5, 0.5])  # the first block of a round is not its loss
    for y in (0.6, 0.2):
        live.act()
        live.update(y)
    assert policy.again
    losses = np.zeros(2)
    losses[policy.chosen] = (1.0 - 0.4) / 2.0 / policy.drawn[policy.chosen]
    expected = log_barrier_step(policy.p, losses, policy.rates)
    live.observe(np.zeros(D))
    np.testing.assert_allclose(policy.p, expected, rtol=1e-12)
    live.act()
    assert not policy.again
    np.testing.assert_allclose(policy.p, expected, rtol=1e-12)  # it counts once


def test_a_log_longer_than_memories_on_offer_can_offer_more() -> None:
    env = lbm.LBM([0.6, 0.8], m=10, gamma=-1.0, sigma=0.01)
    actions = lbm.Ball(2).sample(400, seed=1)
    y = env.expected_rewards(actions) + env.draw_noise(400, seed=2)
    live = lbm.Auto(lam=0.1).fit(actions, y)
    memory = live.explain().memory
    assert max(memory, key=memory.get) == 10
    live.act()


def test_the_next_plan_follows_what_was_observed() -> None:
    """Rolling plays what is best after the foreign action, not after its own last one."""
    env = lbm.LBM(
        [0.6, 0.8], m=1, gamma=-3.0, sigma=0.0, actions=lbm.Finite([[0.6, 0.8], [0.8, -0.6], [1.0, 0.0]])
    )
    for actions in (env.actions, lbm.Ball(2)):
        live = lbm.Rolling(1, -3.0).start(actions, seed=0)
        past: list[np.ndarray] = []
        for _ in range(200):
            past.append(live.act())
            live.update(env.expected_rewards(past[-2:])[-1])
        for foreign in actions.sample(3, seed=0):
            live.observe(foreign, float(env.expected_rewards([foreign], history=past[-1:])[0]))
            past.append(live.act())
            live.update(float(env.expected_rewards(past[-1:], history=[foreign])[0]))
            if isinstance(actions, lbm.Finite):
                assert (past[-1] != foreign).any()  # it is rotten for a step


def test_a_reward_of_a_foreign_action_may_be_late() -> None:
    for name, agent in {
        **AGENTS,
        "OracleGreedy": lbm.OracleGreedy(),
        "Cyclic": lbm.Cyclic(np.eye(3)),
    }.items():
        env = lbm.LBM(THETA, m=2, gamma=-3.0)
        late, soon = (agent.start(env if name == "OracleGreedy" else env.actions, seed=0) for _ in range(2))
        late.observe([1.0, 0.0, 0.0])
        soon.observe([1.0, 0.0, 0.0], 0.4)
        assert (late.missing, soon.missing, late.t) == ([0], [], 1)
        late.update(0.4)
        assert late.missing == []
        if late.theta is not None:
            np.testing.assert_allclose(late.theta, soon.theta, atol=1e-14)
        np.testing.assert_array_equal(late.act(), soon.act())
        with pytest.raises(ValueError, match="step must be one whose reward is missing"):
            late.update(0.4, step=0)


def test_the_oracle_knows_what_others_played() -> None:
    env = lbm.LBM(THETA, m=2, gamma=-3.0, sigma=0.0, actions=SETS["finite"])
    live = lbm.OracleGreedy().start(env)
    past = [live.act()]
    for action in SETS["finite"].arms[:3]:
        live.observe(action)
        past.append(action)
        best = max(env.actions.arms, key=lambda a: env.expected_rewards([a], history=past)[0])
        past.append(live.act())
        np.testing.assert_array_equal(past[-1], best)


def test_a_cycle_goes_on_where_it_was() -> None:
    live = lbm.Cyclic(np.eye(3)).start(lbm.Ball(3))
    live.act()
    live.observe([0.0, 0.0, 0.5], 1.0)
    np.testing.assert_array_equal([live.act() for _ in range(3)], np.eye(3)[[1, 2, 0]])
    assert live.t == 5


def test_epochs_of_doubling_end_within_a_log() -> None:
    actions, y = log(n=50)
    y = np.nan_to_num(y)
    live = lbm.Doubling(lbm.OFUL(8)).fit(actions, y)  # epochs of 8, 16, 32 steps: the third began at 24
    theta, V_inv = ridge(actions[24:], y[24:], 0, 0.0)
    np.testing.assert_allclose(live.theta, theta, atol=1e-12)
    np.testing.assert_allclose(live.V_inv, V_inv, atol=1e-12)
    live.act()
    assert live.t == 51


def test_om_block_counts_what_others_played_and_learns_nothing_from_it() -> None:
    live = lbm.OMBlock(1, -1.0, 100, L=2).start(lbm.Ball(D))
    V_inv = live.V_inv
    live.replay(*log(n=9))
    np.testing.assert_array_equal(live.V_inv, V_inv)
    for _ in range(4):
        live.act()
        live.update(0.5)
    assert (live.V_inv != V_inv).any()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda live: live.observe([1.0, 0.0], 0.5), ValueError, "action must have shape"),
        (lambda live: live.observe([2.0, 0.0, 0.0], 0.5), ValueError, "action must lie in the unit ball"),
        (lambda live: live.observe([1.0, 0.0, 0.0], math.nan), ValueError, "y must be a finite number"),
        (lambda live: live.observe([1.0, 0.0, 0.0], "x"), TypeError, "y must be a real number"),
        (lambda live: live.replay([[1.0, 0.0, 0.0]], [0.5, 0.5]), ValueError, "rewards must have shape"),
        (lambda live: live.replay([[1.0, 0.0, 0.0]], [math.inf]), ValueError, "rewards must be finite"),
        (lambda live: live.replay([[1.0, 0.0, 0.0]], [1e200]), ValueError, "rewards must hold numbers"),
        (lambda live: live.replay([[1.0, 0.0, 0.0]], ["x"]), TypeError, "rewards must be an array"),
        (lambda live: live.replay([[1.0, 0.0]], [0.5]), ValueError, "actions must have shape"),
        (lambda live: live.replay([[1.0, 1.0, 0.0]], [0.5]), ValueError, "actions must lie in the unit"),
        (lambda live: live.agent.fit([1.0, 0.0], [0.5]), ValueError, "actions must have shape"),
    ],
)
def test_bad_logs_change_nothing(call: object, error: type[Exception], words: str) -> None:
    live = lbm.O3M(2, -3.0, 300, L=4).start(lbm.Ball(D))
    live.act()
    before = snapshot(live)
    with pytest.raises(error, match=words):
        call(live)  # type: ignore[operator]
    assert snapshot(live) == before
