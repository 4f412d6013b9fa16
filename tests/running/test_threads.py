"""One live policy and several threads: every reward comes to the action that it belongs to."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest

import fastlbm as lbm
from tests import naive

AGENTS: dict[str, tuple[lbm.agents.Agent, int, float]] = {
    "OFUL": (lbm.OFUL(10**4), 0, 0.0),
    "Rolling": (lbm.Rolling(1, -1.0), 1, -1.0),
    "LinTS": (lbm.LinTS(), 0, 0.0),
}


def in_threads(work: Callable[[int], None], count: int) -> None:
    problems: list[BaseException] = []

    def guarded(k: int) -> None:
        try:
            work(k)
        except BaseException as error:
            problems.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    workers = [threading.Thread(target=guarded, args=(k,)) for k in range(count)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    assert not problems


@pytest.mark.parametrize("name", AGENTS)
def test_every_reward_comes_to_its_own_action(name: str) -> None:
    agent, m, gamma = AGENTS[name]
    live = agent.start(lbm.Ball(2), seed=0)
    rows: dict[int, tuple[np.ndarray, float]] = {}

    def work(k: int) -> None:
        rng = np.random.default_rng(k)
        for t in range(40):
            y = float(rng.uniform(-1.0, 1.0))
            if t % 10 == 9:
                action = lbm.Ball(2).sample(1, seed=rng)[0]
                live.observe(action, y)
            else:
                arms = lbm.Ball(2).sample(3, seed=rng)
                told = t % 4 == 0
                action = live.act(arms) if told else live.act()
                assert not told or (arms[live.arm] == action).all()
                live.update(y)
            step = live.step
            assert step is not None
            assert step not in rows
            rows[step] = (action, y)

    in_threads(work, 4)
    assert live.t == len(rows) == 160
    assert live.missing == []
    live.replay([[0.0, 0.0]], [np.nan])
    actions = np.array([rows[t][0] for t in range(160)])
    y = np.array([rows[t][1] for t in range(160)])
    B = naive.features(np.vstack((np.zeros((m, 2)), actions)), m, gamma, None)
    V = np.eye(2) + B.T @ B
    np.testing.assert_allclose(live.theta, np.linalg.solve(V, B.T @ y), rtol=0.0, atol=1e-10)


def test_a_thread_that_was_given_nothing_speaks_of_the_last_action_of_all() -> None:
    live = lbm.OFUL(100).start(lbm.Ball(2))
    live.act()  # this thread's
    in_threads(lambda _: live.act(), 1)
    in_threads(lambda _: live.update(0.7), 1)  # of the other thread's action, the last one
    assert live.missing == [0]
    assert live.step == 0
    live.update(0.3)
    assert live.missing == []


def test_two_actions_without_a_reward_between_them_wait_for_two_rewards() -> None:
    live = lbm.OFUL(100).start(lbm.Ball(2))
    barrier = threading.Barrier(2)

    def work(k: int) -> None:
        live.act()
        barrier.wait()  # both have acted before either is rewarded
        live.update(float(k))

    in_threads(work, 2)
    assert (live.t, live.missing) == (2, [])
