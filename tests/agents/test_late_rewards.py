"""Late rewards of agents over candidates: a block counts once, whenever its rewards come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm.agents.corral import CorralPolicy

PAIRS = [(0, 0.0), (1, -1.5), (2, 0.0), (2, -1.5)]
L, T = 3, 240
NEVER = 10**6


def delays(kind: str, rng: np.random.Generator) -> np.ndarray:
    """How many steps later the reward of each step comes."""
    t = np.arange(T)
    return {
        "in time": np.zeros(T, dtype=int),
        "one of each block late": np.where(t % 3 == 2, 7, 0),
        "all late": np.full(T, 8),
        "all very late": np.full(T, 100),
        "in any order": rng.integers(0, 40, size=T),
        "some never": np.where(rng.random(T) < 0.5, NEVER, rng.integers(0, 20, size=T)),
    }[kind]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(
    "kind", ["in time", "one of each block late", "all late", "all very late", "in any order", "some never"]
)
@pytest.mark.parametrize("pairs", [PAIRS, PAIRS[1:2]])
def test_a_block_counts_once(
    pairs: list[tuple[int, float]], kind: str, restart: bool, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    due = np.arange(T) + delays(kind, rng)
    y = rng.uniform(-0.5, 0.5, size=T)
    agent = lbm.BanditCombiner(pairs, 600, L=L)
    live = agent.start(lbm.Ball(2), seed=1)
    starts: list[tuple[int, int]] = []
    for t in range(T + 100):
        if t < T:
            plans = live.plans
            live.act()
            if live.plans > plans:
                starts.append((t, live._policy.chosen))
        for step in rng.permutation(np.flatnonzero(due == t)):
            live.update(y[step], step=step)
        if restart and t % 17 == 5:
            live.save(tmp_path / "state")
            live = agent.start(lbm.Ball(2), seed=9).load(tmp_path / "state")
    # The block that is being played has not been counted yet.
    plays, rewards = np.zeros(len(pairs)), np.zeros(len(pairs))
    for start, i in starts[:-1]:
        m = pairs[i][0] if pairs[i][1] != 0.0 else 0
        steps = np.arange(start + m, start + m + L)
        came = steps[due[steps] < NEVER]
        if len(came):
            plays[i] += 1
            rewards[i] += y[came].mean()
    np.testing.assert_array_equal(live._policy.plays, plays)
    np.testing.assert_allclose(live._policy.rewards, rewards, rtol=1e-12, atol=1e-12)
    assert plays.sum() == len(starts) - 1 or kind == "some never"


def test_one_late_reward_in_each_of_200_blocks() -> None:
    live = lbm.BanditCombiner([(1, -1.0)], 2000, L=4).start(lbm.Ball(2))
    for t in range(1000):
        live.act()
        if t % 5 != 4:
            live.update(0.1)
        if t >= 5 and t % 5 == 2:
            live.update(0.1, step=t - 3)
    live.act()
    assert live._policy.plays.tolist() == [200.0]
    assert live._policy.rewards == pytest.approx([20.0])


def test_a_state_of_version_1_counts_its_blocks_once() -> None:
    # 18 steps, the fourth of every five without a reward: the blocks from 3, 7 and 11 on count already.
    path = Path(__file__).parents[1] / "data" / "live-1" / "BanditCombiner.npz"
    live = lbm.BanditCombiner([(0, 0.0), (1, -2.0)], 100, L=3).start(lbm.Ball(2)).load(path)
    assert live._policy.plays.tolist() == [1.0, 3.0]
    for step in (8, 13, 3):
        live.update(0.5, step=step)
    assert live._policy.plays.tolist() == [1.0, 3.0]
    live.act()
    live.act()
    assert live._policy.plays.tolist() == [1.0, 4.0]


def whole(start: int, m: int, due: np.ndarray, y: np.ndarray) -> float:
    """What a block counts with all of its steps, once all rewards came; NaN if none did."""
    steps = np.arange(start, start + m + L)
    first, rest = steps[:m], steps[m:][due[steps[m:]] < NEVER]
    if len(rest) == 0:
        return np.nan
    in_time = due[rest] < start + m + L
    # The first m steps count as their rewards in time, else as what the block counted when it counted first.
    first = first[due[first] < start + m + L]
    begin = rest[in_time] if in_time.any() else rest[[np.argmin(due[rest])]]
    lead = y[first].mean() if len(first) and in_time.any() else y[begin].mean()
    return float((m * lead + L * y[rest].mean()) / (m + L))


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(
    "kind", ["in time", "one of each block late", "all late", "all very late", "some never"]
)
@pytest.mark.parametrize(
    "agent", [lbm.RegretBalancing(PAIRS, 600, L=L), lbm.Corral(PAIRS, 600, L=L)], ids=str
)
def test_whole_blocks_count_once(
    agent: lbm.RegretBalancing | lbm.Corral,
    kind: str,
    restart: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    due = np.arange(T) + delays(kind, rng)
    y = rng.uniform(-0.5, 0.5, size=T)
    losses = np.zeros(len(PAIRS))
    monkeypatch.setattr(CorralPolicy, "_move", lambda _, i, loss: np.add.at(losses, i, loss))
    live = agent.start(lbm.Ball(2), seed=1)
    starts: list[tuple[int, int]] = []
    for t in range(T + 100):
        if t < T:
            plans = live.plans
            live.act()
            if live.plans > plans:
                starts.append((t, live._policy.chosen))
        for step in np.flatnonzero(due == t):
            live.update(y[step], step=step)
        if restart and t % 17 == 5:
            live.save(tmp_path / "state")
            live = agent.start(lbm.Ball(2), seed=9).load(tmp_path / "state")
    expected, counted = np.zeros(len(PAIRS)), np.zeros(len(PAIRS))
    for k, (start, i) in enumerate(starts[:-1]):
        m = PAIRS[i][0] if PAIRS[i][1] != 0.0 else 0
        value = whole(start, m, due, y)
        if not np.isnan(value) and (k % 2 == 1 or isinstance(agent, lbm.RegretBalancing)):
            counted[i] += 1
            expected[i] += value
    if isinstance(agent, lbm.Corral):  # only blocks that are played again count
        np.testing.assert_allclose(losses, 0.5 * counted - 0.5 * expected, rtol=1e-9, atol=1e-12)
    else:
        np.testing.assert_array_equal(live._policy.plays, counted)
        np.testing.assert_allclose(live._policy.rewards, expected, rtol=1e-9, atol=1e-12)
    assert counted.sum() > 10
