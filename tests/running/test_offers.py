"""Arms that are told step by step, names, and catalogues that change."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import fastlbm as lbm
from tests.agents.test_learners import SETS, THETA
from tests.running.test_live import snapshot

D = 3
#: All agents that can choose among arms which are told step by step.
AGENTS: dict[str, lbm.agents.Agent] = {
    "Rolling": lbm.Rolling(2, -3.0),
    "Rolling without memory": lbm.Rolling(0, 0.0),
    "Auto": lbm.Auto(memories=[0, 1, 2], gammas=[-3.0, -1.0, 1.0]),
    "Auto, all": lbm.Auto(),
    "OFUL": lbm.OFUL(300),
    "O3M": lbm.O3M(2, -3.0, 300, L=4),
    "O3M without memory": lbm.O3M(0, 0.0, 300, L=4),
    "LinTS": lbm.LinTS(300),
    "EpsilonGreedy": lbm.EpsilonGreedy(),
    "Random": lbm.Random(),
    "Doubling": lbm.Doubling(lbm.O3M(2, -3.0, 20)),
    "BanditCombiner": lbm.BanditCombiner([(0, 0.0), (2, -3.0)], 300, L=3),
    "EvidenceSelector": lbm.EvidenceSelector([(0, 0.0), (2, -3.0)], 300, L=3),
    "RegretBalancing": lbm.RegretBalancing([(0, 0.0), (2, -3.0)], 300, L=3),
    "Corral": lbm.Corral([(0, 0.0), (2, -3.0)], 300, L=3, smooth=False),
}
SONGS = lbm.Finite(SETS["finite"].arms, names=list("abcde"))


def sets(seed: int, T: int, most: int = 9) -> list[np.ndarray]:
    """A set a step, each of another size."""
    rng = np.random.default_rng(seed)
    rows = [rng.standard_normal((int(rng.integers(1, most + 1)), D)) for _ in range(T)]
    return [arms / np.linalg.norm(arms, axis=1, keepdims=True) for arms in rows]


def reward(action: np.ndarray, t: int) -> float:
    return float(action @ THETA) + 0.1 * (t % 3)


# --- arms that are told ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ball", "finite", "contextual"])
@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_chooses_among_the_arms_of_the_step(name: str, kind: str, tmp_path: Path) -> None:
    agent = AGENTS[name]
    live, other = agent.start(SETS[kind], seed=3), agent.start(SETS[kind], seed=3)
    for t, arms in enumerate(sets(0, 60)):
        action = live.act(arms)
        assert (arms[live.arm] == action).all()
        assert live.name is None
        assert live.step == t
        np.testing.assert_array_equal(action, other.act(arms))
        if t % 5 != 2:
            live.update(reward(action, t))
            other.update(reward(action, t))
        if t % 17 == 7:  # a state goes on as if nothing had happened
            live = agent.start(SETS[kind], seed=8).load(live.save(tmp_path / "state"))
    assert (live.t, live.plans) == (60, other.plans)


@pytest.mark.parametrize("name", ["OFUL", "LinTS", "EpsilonGreedy", "Random", "Rolling without memory"])
def test_without_memory_sets_that_are_told_are_a_contextual_set(name: str) -> None:
    agent, arms = AGENTS[name], SETS["contextual"].arms
    told, known = agent.start(lbm.Ball(D), seed=2), agent.start(SETS["contextual"], seed=2)
    for t in range(80):
        action = told.act(arms[t])
        np.testing.assert_array_equal(action, known.act())
        for live in (told, known):
            live.update(reward(action, t))


def test_the_oracle_chooses_among_what_is_told() -> None:
    env = lbm.LBM(THETA, m=2, gamma=-3.0, sigma=0.0)
    live = lbm.OracleGreedy().start(env)
    past: list[np.ndarray] = []
    for arms in sets(1, 20):
        best = max(arms, key=lambda a: env.expected_rewards([a], history=np.array(past).reshape(-1, D))[0])
        past.append(live.act(arms))
        np.testing.assert_array_equal(past[-1], best)


def test_planning_for_sets_that_are_not_known_earns_more_than_not_planning() -> None:
    env = lbm.LBM(THETA, m=2, gamma=-2.0, sigma=0.1)
    totals = {}
    for name in ("Rolling", "O3M", "Auto", "OFUL"):
        agent = {
            "Rolling": lbm.Rolling(2, -2.0),
            "O3M": lbm.O3M(2, -2.0, 300, L=8, subgaussian=None),
            "Auto": lbm.Auto(memories=[0, 1, 2, 3], gammas=[-3.0, -2.0, -1.0, 1.0]),
            "OFUL": lbm.OFUL(300, subgaussian=None),
        }[name]
        live, noise = agent.start(lbm.Ball(D), seed=0), env.draw_noise(300, seed=1)
        actions: list[np.ndarray] = []
        for t, arms in enumerate(sets(5, 300, most=8)):
            actions.append(live.act(arms))
            live.update(
                env.expected_rewards(actions[-1:], history=np.array(actions[:-1]).reshape(-1, D))[0]
                + noise[t]
            )
        totals[name] = env.expected_rewards(actions).sum()
    assert totals["Rolling"] > 1.25 * totals["OFUL"]
    assert totals["O3M"] > 1.2 * totals["OFUL"]
    assert totals["Auto"] > 1.1 * totals["OFUL"]


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (lbm.OM(2, -3.0, 300, L=4), "agent must choose one action at a time"),
        (lbm.OMBlock(2, -3.0, 300, L=4), "agent must choose one action at a time"),
        (lbm.O3M(2, -3.0, 300, L=4, switch=1.0), "switch must be 0 on a Offered set"),
        (lbm.Corral([(2, -3.0)], 300, L=4), "actions must stay the same for Corral with smooth=True"),
        (lbm.Cyclic([[1.0, 0.0, 0.0]]), "actions must be arms that are known in advance here"),
    ],
)
def test_an_agent_that_cannot_says_so_and_goes_on(agent: lbm.agents.Agent, words: str) -> None:
    live = agent.start(lbm.Ball(D), seed=0)
    live.act()
    before = snapshot(live)
    with pytest.raises(ValueError, match=words):
        live.act(SETS["finite"].arms)
    assert snapshot(live) == before
    live.act()
    assert live.t == 2


@pytest.mark.parametrize(
    ("arms", "words"),
    [
        ([[1.0, 0.0]], "arms must have the dimension of the actions, 3, got 2"),
        (np.zeros((0, 3)), "arms must hold at least one arm"),
        ([[2.0, 0.0, 0.0]], "arms must lie in the unit ball"),
        ([[np.nan, 0.0, 0.0]], "arms must be finite"),
        ([1.0, 0.0, 0.0], "arms must have shape"),
    ],
)
def test_bad_arms_change_nothing(arms: object, words: str) -> None:
    live = lbm.Rolling(2, -3.0).start(lbm.Ball(D))
    live.act()
    before = snapshot(live)
    with pytest.raises(ValueError, match=words):
        live.act(arms)  # type: ignore[arg-type]
    assert snapshot(live) == before


def test_a_set_and_told_arms_may_take_turns() -> None:
    """A catalogue of which some songs cannot be played at times."""
    live = AGENTS["Rolling"].start(SONGS, seed=0)
    for t in range(40):
        action = live.act(SONGS.arms[t % 5 : t % 5 + 1]) if t % 7 < 3 else live.act()
        assert live.name == SONGS.names[t % 5 if t % 7 < 3 else live.arm]
        live.update(reward(action, t))
    assert live.plans >= 20


# --- names ----------------------------------------------------------------------------------------------


def test_a_live_policy_tells_the_name() -> None:
    live = lbm.OFUL(100).start(SONGS)
    assert (live.arm, live.name, live.step) == (None, None, None)
    action = live.act()
    np.testing.assert_array_equal(SONGS.arm(live.name), action)
    assert SONGS.names[live.arm] == live.name
    few = lbm.Finite(SONGS.arms[1:3], names=["x", "y"])
    action = live.act(few)
    np.testing.assert_array_equal(few.arm(live.name), action)
    live.observe(SONGS.arm("d"), 0.5)
    assert (live.arm, live.name) == (3, "d")
    live.observe(np.zeros(D), 0.5)
    assert (live.arm, live.name) == (None, None)
    ball = lbm.OFUL(100).start(lbm.Ball(D))
    ball.act()
    assert (ball.arm, ball.name) == (None, None)
    contextual = lbm.OFUL(100).start(SETS["contextual"])
    for t in range(3):
        np.testing.assert_array_equal(
            SETS["contextual"].arms[t][contextual.act() is None or contextual.arm], contextual._own.action
        )


def test_after_loading_the_last_arm_is_known(tmp_path: Path) -> None:
    live = lbm.OFUL(100).start(SONGS, seed=1)
    live.act()
    again = lbm.OFUL(100).start(SONGS).load(live.save(tmp_path / "state"))
    assert (again.arm, again.name, again.step) == (live.arm, live.name, 0)


@pytest.mark.nojit
def test_names_are_checked() -> None:
    arms = np.eye(2)
    for names, error, words in (
        (["a"], ValueError, "names must be one for each of the 2 arms, got 1"),
        (["a", "a"], ValueError, "names must differ from each other, got 'a' twice"),
        (["a", 2], TypeError, "names must be texts, one for each arm"),
        ("ab", TypeError, "names must be texts, one for each arm"),
    ):
        with pytest.raises(error, match=words):
            lbm.Finite(arms, names=names)  # type: ignore[arg-type]
    named = lbm.Finite(arms, names=["a", "b"])
    for catalogue in (named, lbm.Finite(arms)):
        with pytest.raises(ValueError, match="name must be the name of an arm, got 'c'"):
            catalogue.arm("c")
    assert named != lbm.Finite(arms)
    assert named != lbm.Finite(arms, names=["b", "a"])
    assert pickle.loads(pickle.dumps(named)) == named
    assert repr(named) == "Finite(arms=[[1.0, 0.0], [0.0, 1.0]], names=('a', 'b'))"


@pytest.mark.nojit
def test_policies_share_the_arms_and_nobody_can_change_them() -> None:
    arms = np.eye(2)
    catalogue = lbm.Finite(arms)
    arms[0, 0] = 0.5
    assert catalogue.arms[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        catalogue.arms[0, 0] = 0.5
    assert np.shares_memory(catalogue.sets(), catalogue.sets())
    policies = [lbm.OFUL(10).start(catalogue)._policy for _ in range(2)]
    assert np.shares_memory(policies[0].planner.arms, policies[1].planner.arms)


# --- catalogues that change -----------------------------------------------------------------------------

FINITE: dict[str, lbm.agents.Agent] = {
    **AGENTS,
    "OM": lbm.OM(2, -3.0, 300, L=4),
    "OMBlock": lbm.OMBlock(2, -3.0, 300, L=3),
    "Rolling rarely": lbm.Rolling(2, -3.0, switch=1.0),
    "Corral, smooth": lbm.Corral([(0, 0.0), (2, -3.0)], 300, L=3, eta=5.0),
}


@pytest.mark.parametrize("name", FINITE)
def test_a_state_goes_on_with_another_catalogue(name: str, tmp_path: Path) -> None:
    agent = FINITE[name]
    live = agent.start(SONGS, seed=1)
    for t in range(23):
        action = live.act()
        if t not in (11, 22):
            live.update(reward(action, t))
    path = live.save(tmp_path / "state")
    same = agent.start(SONGS).load(path)
    changed = lbm.Finite(np.vstack((SONGS.arms[2:], np.eye(3))), names=list("cdexyz"))
    other = agent.start(changed).load(path)
    assert (other.t, other.missing, other.plans) == (23, live.missing, live.plans)
    for policy in (same, other):
        for step in live.missing:  # Doubling has forgotten the first one
            policy.update(0.3, step=step)
        policy.observe(np.zeros(D))  # ends the block of both
    if same.theta is not None:
        np.testing.assert_allclose(same.theta, other.theta, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(same.V_inv, other.V_inv, rtol=0.0, atol=1e-12)
    for t in range(24, 60):
        action = other.act()
        assert (changed.arms[other.arm] == action).all()
        assert other.name == changed.names[other.arm]
        other.update(reward(action, t))
    again = agent.start(changed).load(other.save(tmp_path / "state"))
    np.testing.assert_array_equal(again.act(), other.act())


def test_another_set_is_not_a_changed_catalogue(tmp_path: Path) -> None:
    agent = lbm.OFUL(100)
    path = agent.start(SONGS).save(tmp_path / "state")
    data = agent.start(SONGS).to_bytes()
    for other in (lbm.Ball(3), lbm.Finite(np.eye(2)), SETS["contextual"]):
        live = agent.start(other)
        with pytest.raises(ValueError, match="path must be a state of the same actions"):
            live.load(path)
        with pytest.raises(ValueError, match="data must be a state of the same actions"):
            live.from_bytes(data)
        live.act()


def test_a_changed_catalogue_of_a_version_before_is_refused() -> None:
    path = Path(__file__).parents[1] / "data" / "live-2" / "OFUL.npz"
    with pytest.raises(ValueError, match="path must be a state of the same actions"):
        lbm.OFUL(100).start(lbm.Finite(np.eye(2))).load(path)


# --- bytes ----------------------------------------------------------------------------------------------


def test_bytes_are_small_and_checked() -> None:
    agent = lbm.OFUL(100)
    live = agent.start(SONGS, seed=1)
    live.act()
    data = live.to_bytes()
    assert len(data) < 2500
    for wrong in (b"", b"fastlbm\x00", data[:-1], data + b"x", data[:60] + b"\x00" + data[61:], data[40:]):
        with pytest.raises(ValueError, match=r"^data must be"):
            agent.start(SONGS).from_bytes(wrong)
    again = agent.start(SONGS).from_bytes(data)
    assert snapshot(again) == snapshot(live)
