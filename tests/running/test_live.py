"""Live policies: the decisions of `run`, files of their state, late and missing rewards."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import pickle
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm.kernels.block_state import cursor
from tests import naive
from tests.agents.test_learners import SETS, THETA, agents, play_live

T = 90


def start(agent: lbm.agents.Agent, env: lbm.LBM, seed: int = 0) -> lbm.Live:
    return agent.start(env if isinstance(agent, lbm.OracleGreedy) else env.actions, seed=seed)


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("name", [*agents(), "Cyclic"])
def test_live_and_run_decide_alike_and_a_saved_policy_goes_on(name: str, kind: str, tmp_path: Path) -> None:
    env = lbm.LBM(THETA, m=2, gamma=-3.0, sigma=0.0, actions=SETS[kind])
    if name == "Cyclic":
        if SETS[kind].varies:
            pytest.skip("no block lies in every set")
        agent: lbm.agents.Agent = lbm.Cyclic(SETS["finite"].arms[:3])
    else:
        agent = agents()[name]
    if SETS[kind].varies and getattr(agent, "switch", 0.0) > 0.0:
        pytest.skip("refused")
    run = lbm.run(env, agent, T=T, seed=5, keep_actions=True)
    live = start(agent, env, seed=5)
    past: list[np.ndarray] = []
    for t in range(T):
        if t in (1, 38, 61):
            live.save(tmp_path / "state")
            live = start(agent, env, seed=77).load(tmp_path / "state")
        past.append(live.act())
        live.update(env.expected_rewards(past)[-1])
        np.testing.assert_array_equal(past[-1], run.actions[t])
    assert live.t == T
    assert live.plans == run.plans


def test_live_decisions_do_not_depend_on_the_world_around_them() -> None:
    """The world may have another memory than the learner believes, or be of another form."""
    agent = lbm.O3M(1, -2.0, 100, L=4)
    for env in (
        lbm.LBM(THETA, m=4, gamma=-1.3, sigma=0.0),
        lbm.LBM(THETA, m=2, gamma=-1.0, A0=np.diag([1.0, 2.0, 3.0]), sigma=0.0),
        lbm.LBM(THETA, m=math.inf, gamma=-1.0, sigma=0.0),
    ):
        _, actions = play_live(agent, env, 60, seed=2)
        np.testing.assert_array_equal(actions, lbm.run(env, agent, 60, seed=2, keep_actions=True).actions)


# --- late and missing rewards ---------------------------------------------------------------------------


def ridge(live: lbm.Live, B: np.ndarray, y: np.ndarray) -> None:
    """The policy knows what the regression on features B and rewards y says."""
    V = np.eye(B.shape[1]) + B.T @ B
    np.testing.assert_allclose(live.V_inv, np.linalg.inv(V), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(live.theta, np.linalg.solve(V, B.T @ y), rtol=1e-9, atol=1e-12)


def blocks_of(actions: list[np.ndarray], n: int) -> list[np.ndarray]:
    return [np.array(actions[k : k + n]) for k in range(0, len(actions) - n + 1, n)]


def test_a_missing_reward_is_not_learned_from() -> None:
    m, L = 1, 3
    live = lbm.O3M(m, -1.0, 100, L=L).start(lbm.Ball(2))
    rewards = [0.3, 0.1, None, 0.7, 0.2, None, 0.4, 0.9]
    actions = []
    for y in rewards:
        actions.append(live.act())
        if y is not None:
            live.update(y)
    live.act()
    B = np.concatenate([naive.features(b, m, -1.0, None) for b in blocks_of(actions, m + L)])
    kept = [(b, y) for b, y in zip(B, [0.1, None, 0.7, None, 0.4, 0.9], strict=True) if y is not None]
    ridge(live, np.array([b for b, _ in kept]), np.array([y for _, y in kept]))


@pytest.mark.parametrize("switch", [0.0, 3.0])
def test_a_late_reward_counts_from_the_next_plan_on(switch: float) -> None:
    m, L, n = 1, 3, 4
    live = lbm.O3M(m, -1.0, 500, L=L, switch=switch).start(lbm.Ball(2), seed=1)
    y = np.random.default_rng(0).uniform(-1.0, 1.0, 41)
    actions: list[np.ndarray] = []
    while len(actions) < 40 or cursor(live._policy.block)[0] != 1:
        t = len(actions)
        if t == 41:
            break
        actions.append(live.act())
        if t % 3 != 0:
            live.update(y[t])
        if t >= 15 and (t - 15) % 3 == 0:
            live.update(y[t - 15], step=t - 15)  # fifteen steps late: of a plan before, or of this one
    blocks = blocks_of(actions, n)
    B = np.concatenate([naive.features(b, m, -1.0, None) for b in blocks])
    steps = np.concatenate([np.arange(k * n + m, (k + 1) * n) for k in range(len(blocks))])
    learned = (steps % 3 != 0) | (steps + 15 < len(actions))
    if switch == 0.0:
        # The estimate is as of the last plan, which knows every reward that came before the last action.
        ridge(live, B[learned], y[steps[learned]])
    assert live.plans < len(blocks) + 2


def test_om_block_learns_from_whole_blocks_alone() -> None:
    m, L, n = 1, 2, 3
    live = lbm.OMBlock(m, -1.0, 100, L=L).start(lbm.Ball(2))
    y = np.arange(1.0, 13.0) / 12.0
    actions = []
    for t in range(12):
        actions.append(live.act())
        if t not in (4, 8):
            live.update(y[t])
        if t == 10:
            live.update(y[4], step=4)
    live.act()
    blocks = blocks_of(actions, n)
    B = np.array([np.concatenate([b[:m].ravel(), naive.features(b, m, -1.0, None).ravel()]) for b in blocks])
    sums = np.array([y[k * n + m : (k + 1) * n].sum() for k in range(4)])
    whole = np.array([True, True, False, True])
    ridge(live, B[whole], sums[whole])


def test_waiting_rewards_survive_a_restart(tmp_path: Path) -> None:
    for agent in (lbm.O3M(1, -1.0, 100, L=3), lbm.OMBlock(1, -1.0, 100, L=3)):
        policies = []
        for restart in (False, True):
            live = agent.start(lbm.Ball(2), seed=3)
            for t in range(30):
                live.act()
                if t % 4 != 2:
                    live.update(0.1 * t)
                if t >= 9 and (t - 7) % 4 == 2:
                    live.update(0.2, step=t - 7)
                if restart:
                    live.save(tmp_path / "state")
                    live = agent.start(lbm.Ball(2), seed=8).load(tmp_path / "state")
            policies.append(live)
        np.testing.assert_array_equal(policies[0].theta, policies[1].theta)
        np.testing.assert_array_equal(policies[0].act(), policies[1].act())


def test_rewards_that_never_come_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastlbm.running.pending.PATIENCE", 20)
    live = lbm.OMBlock(0, -1.0, 1000, L=3).start(lbm.Ball(2))
    for t in range(300):
        live.act()
        if t % 3 == 0:
            live.update(0.5)
    sizes = live._pending
    assert len(sizes._steps) <= 20
    assert len(sizes._blocks) <= 20
    assert len(sizes._plans) <= 22
    with pytest.raises(ValueError, match="step must be one whose reward is missing"):
        live.update(0.1, step=1)


def test_a_restart_of_doubling_forgets_what_was_waiting() -> None:
    live = lbm.Doubling(lbm.OFUL(4)).start(lbm.Ball(2))
    for _ in range(5):
        live.act()
    with pytest.raises(ValueError, match="since the last restart"):
        live.update(0.5, step=2)
    live.update(0.5, step=4)


# --- bad input ------------------------------------------------------------------------------------------


def snapshot(live: lbm.Live) -> dict[str, bytes]:
    arrays = {**live._policy.state(), **live._pending.state()}
    return {name: np.asarray(a).tobytes() for name, a in arrays.items()}


@pytest.mark.nojit
@pytest.mark.parametrize("y", [math.nan, math.inf, -math.inf])
def test_a_reward_must_be_finite(y: float) -> None:
    live = lbm.OFUL(10).start(lbm.Ball(2))
    live.act()
    before = snapshot(live)
    with pytest.raises(ValueError, match="y must be a finite number"):
        live.update(y)
    assert snapshot(live) == before
    live.update(0.5)


@pytest.mark.nojit
def test_an_update_needs_a_step_that_waits_for_it() -> None:
    live = lbm.OFUL(10).start(lbm.Ball(2))
    with pytest.raises(ValueError, match="update must come after act"):
        live.update(0.5)
    live.act()
    live.update(0.5)
    before = snapshot(live)
    for step in (None, 0):
        with pytest.raises(ValueError, match="step must be one whose reward is missing"):
            live.update(0.5, step=step)
    with pytest.raises(ValueError, match="step must be an integer from 0 to 0"):
        live.update(0.5, step=1)
    with pytest.raises(TypeError, match="y must be a real number"):
        live.update("much")  # type: ignore[arg-type]
    assert snapshot(live) == before


def test_the_end_of_a_contextual_set_is_an_error() -> None:
    live = lbm.OFUL(10).start(lbm.Contextual(SETS["contextual"].arms[:2]))
    for _ in range(2):
        live.act()
    with pytest.raises(ValueError, match="a set for each of T=3 steps"):
        live.act()
    assert live.t == 2


def rewrite(path: Path, change: object) -> None:
    """Change the header of a state file."""
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(arrays.pop("header").tobytes())
    change(header, arrays)  # type: ignore[operator]
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez(file, header=text, **arrays)


def test_a_wrong_or_damaged_file_changes_nothing(tmp_path: Path) -> None:
    agent = lbm.O3M(1, -2.0, 100, L=4)
    live = agent.start(lbm.Ball(2), seed=0)
    for _ in range(7):
        live.act()
        live.update(0.3)
    good = live.save(tmp_path / "good")
    before = snapshot(live)

    def refused(path: Path, words: str, policy: lbm.Live = live) -> None:
        with pytest.raises(ValueError, match=words):
            policy.load(path)

    bad = tmp_path / "bad"
    data = good.read_bytes()
    for wrong in (b"", b"not a state", data[: len(data) // 2], data[:-20], b"\x93NUMPY" + data):
        bad.write_bytes(wrong)
        refused(bad, "path must be a state file of a live policy")
    for at in range(60, len(data) - 60, 97):
        flipped = bytearray(data)
        flipped[at] ^= 0xFF
        bad.write_bytes(bytes(flipped))
        # A few bytes of the container mean nothing, such as the time of writing.
        with contextlib.suppress(ValueError):
            live.load(bad)
        assert snapshot(live) == before
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    refused(tmp_path / "other.npz", "path must be a state file")
    bad.write_bytes(data)
    rewrite(bad, lambda header, _: header.update(version=0))
    refused(bad, "version 1 to 4, got version 0")
    bad.write_bytes(data)
    rewrite(bad, lambda header, _: header.update(format="something"))
    refused(bad, "which is not one")
    bad.write_bytes(data)
    rewrite(bad, lambda _, arrays: arrays["estimator.theta"].__setitem__(0, 9.0))
    refused(bad, "digest differs")
    bad.write_bytes(data)
    rewrite(bad, lambda header, _: header.pop("generator"))
    refused(bad, "undamaged")
    refused(good, "same agent", lbm.O3M(1, -2.0, 100, L=5).start(lbm.Ball(2)))
    refused(good, "same actions", agent.start(lbm.Ball(3)))
    with pytest.raises(FileNotFoundError):
        live.load(tmp_path / "nowhere")
    assert snapshot(live) == before
    assert live.load(good) is live
    assert snapshot(live) == before


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = lbm.OFUL(10).start(lbm.Ball(2))
    live.act()
    path = live.save(tmp_path / "state")
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    live.update(0.1)
    with pytest.raises(OSError, match="disk full"):
        live.save(path)
    assert path.read_bytes() == before


def test_a_file_is_of_one_moment_while_another_thread_goes_on(tmp_path: Path) -> None:
    agent = lbm.EvidenceSelector([(0, 0.0), (1, -2.0), (2, -1.0)], 10**4, L=2)
    live = agent.start(lbm.Ball(2), seed=0)
    live.act()
    stop = threading.Event()

    def go_on() -> None:
        while not stop.is_set():
            live.act()
            live.update(0.3)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    worker = threading.Thread(target=go_on)
    worker.start()
    try:
        for _ in range(40):
            loaded = agent.start(lbm.Ball(2)).load(live.save(tmp_path / "state"))
            loaded.act()
    finally:
        stop.set()
        worker.join()
        sys.setswitchinterval(interval)


COPIED = agents() | {"EvidenceSelector": lbm.EvidenceSelector([(0, 0.0), (1, -2.0), (2, -1.0)], 10**4, L=2)}


COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x))}


@pytest.mark.parametrize("kind", COPIES)
@pytest.mark.parametrize("name", COPIED)
def test_a_copy_of_a_policy_decides_alike(name: str, kind: str) -> None:
    live = start(COPIED[name], lbm.LBM(THETA, m=2, gamma=-3.0))
    live.act()
    live.update(0.5)
    other = COPIES[kind](live)
    for t in range(30):
        np.testing.assert_array_equal(live.act(), other.act())
        for policy in (live, other):
            policy.update(0.1 * (t % 4))


def test_a_policy_is_copied_while_others_use_it() -> None:
    live = lbm.OFUL(horizon=10_000).start(SETS["finite"], seed=0)
    stop = threading.Event()

    def use() -> None:
        while not stop.is_set():
            live.act()
            live.update(0.1)

    thread = threading.Thread(target=use)
    thread.start()
    try:
        for _ in range(50):
            other = copy.deepcopy(live)
            assert len(other.missing) <= 1
    finally:
        stop.set()
        thread.join()
