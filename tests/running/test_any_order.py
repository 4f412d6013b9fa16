"""Whatever comes in whatever order, the estimate is ridge regression on what was really played."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import fastlbm as lbm
from tests import naive

D = 2
LAM = 0.7
numbers = st.integers(0, 2**32 - 1)
rewards = st.floats(-1.0, 1.0)


def arms(seed: int) -> np.ndarray:
    """Some arms, one to six."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((int(rng.integers(1, 7)), D))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Machine(RuleBasedStateMachine):
    """A live policy, and beside it the list of all that was played, with the rewards that came."""

    agent: lbm.agents.Agent
    memory: tuple[int, float]  # m and gamma of the features
    block = 0  # actions of a block, of which the first m are not learned from; 0: all are

    @initialize(seed=numbers, ball=st.booleans())
    def start(self, seed: int, ball: bool) -> None:
        self.actions = lbm.Ball(D) if ball else lbm.Finite(arms(seed))
        self.live = self.agent.start(self.actions, seed=seed)
        self.played: list[np.ndarray] = []
        self.learned: list[bool] = []  # whether the reward of a step is learned from, should it come
        self.y: list[float] = []
        self.position, self.offered = 0, False

    # --- what may happen ----------------------------------------------------------------------------------

    def own(self, action: np.ndarray, y: float | None) -> None:
        self.played.append(action)
        self.learned.append(self.block == 0 or self.position >= self.memory[0])
        self.position = (self.position + 1) % max(self.block, 1)
        self.y.append(math.nan)
        if y is not None:
            self.live.update(y)
            self.y[-1] = y

    @rule(y=rewards | st.none(), n=st.integers(1, 4))
    def act(self, y: float | None, n: int) -> None:
        if self.offered:
            self.position, self.offered = 0, False
        for _ in range(n):
            self.own(self.live.act(), y)

    @rule(y=rewards | st.none(), seed=numbers)
    def act_among(self, y: float | None, seed: int) -> None:
        if not self.offered:
            self.position, self.offered = 0, True
        offered = arms(seed)
        self.own(self.live.act(offered), y)
        assert (offered[self.live.arm] == self.played[-1]).all()

    @rule(y=rewards | st.none(), seed=numbers)
    def observe(self, y: float | None, seed: int) -> None:
        self.foreign(arms(seed)[:1], np.array([math.nan if y is None else y]))
        self.live.observe(self.played[-1], y)

    @rule(seed=numbers, n=st.integers(0, 6))
    def replay(self, seed: int, n: int) -> None:
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(n) < 0.3, math.nan, rng.uniform(-1.0, 1.0, n))
        log = np.concatenate([arms(seed + k)[:1] for k in range(n)]) if n else np.zeros((0, D))
        if n:
            self.foreign(log, y)
        self.live.replay(log, y)

    def foreign(self, actions: np.ndarray, y: np.ndarray) -> None:
        self.played.extend(actions)
        self.learned.extend([True] * len(actions))
        self.y.extend(y)
        self.position = 0

    @precondition(lambda self: self.live.missing)
    @rule(y=rewards, which=numbers)
    def update_late(self, y: float, which: int) -> None:
        step = self.live.missing[which % len(self.live.missing)]
        self.live.update(y, step=step)
        self.y[step] = y

    @rule(seed=numbers, change=st.booleans())
    def reload(self, seed: int, change: bool) -> None:
        """On the same set, or on one to which arms came, and from which others went."""
        if change and isinstance(self.actions, lbm.Finite):
            kept = self.actions.arms[seed % 2 :]
            self.actions = lbm.Finite(np.concatenate((kept, arms(seed))))
            self.position = 0 if not self.offered else self.position
        self.live = self.agent.start(self.actions, seed=1).from_bytes(self.live.to_bytes())

    # --- what must hold -----------------------------------------------------------------------------------

    @invariant()
    def the_estimate_is_ridge_regression(self) -> None:
        if not hasattr(self, "live"):
            return
        assert self.live.t == len(self.played)
        live = copy.deepcopy(self.live)
        live.replay(np.zeros((1, D)), [math.nan])  # ends the block: all that came is learned
        m, gamma = self.model(live)
        before = [np.zeros(D)] * m + self.played
        kept = [t for t, y in enumerate(self.y) if self.learned[t] and not math.isnan(y)]
        windows = [np.array(before[t : t + m + 1]) for t in kept]
        B = np.array([naive.features(w, m, gamma, None)[0] for w in windows]).reshape(-1, D)
        V = LAM * np.eye(D) + B.T @ B
        theta = np.linalg.solve(V, B.T @ np.array([self.y[t] for t in kept]))
        np.testing.assert_allclose(live.theta, theta, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(live.V_inv, np.linalg.inv(V), rtol=0.0, atol=1e-10)

    def model(self, live: lbm.Live) -> tuple[int, float]:
        return self.memory


class ChoosingMachine(Machine):
    def model(self, live: lbm.Live) -> tuple[int, float]:
        """The model of the candidate whose estimate is shown."""
        policy = live._policy
        if isinstance(self.agent, lbm.EvidenceSelector):
            return self.agent.candidates[policy.chosen]
        pair: tuple[int, float] = policy.pairs[policy.alive[policy.chosen]]
        return pair


CASES: dict[str, tuple[lbm.agents.Agent, tuple[int, float], int]] = {
    "OFUL": (lbm.OFUL(300, lam=LAM), (0, 0.0), 0),
    "LinTS": (lbm.LinTS(300, lam=LAM), (0, 0.0), 0),
    "EpsilonGreedy": (lbm.EpsilonGreedy(lam=LAM), (0, 0.0), 0),
    "Rolling": (lbm.Rolling(2, -1.5, lam=LAM), (2, -1.5), 0),
    "O3M": (lbm.O3M(2, -1.5, 300, L=3, lam=LAM), (2, -1.5), 5),
    "EvidenceSelector": (
        lbm.EvidenceSelector([(0, 0.0), (1, 1.0), (2, -1.5)], 300, L=2, lam=LAM),
        (0, 0.0),
        0,
    ),
    "Auto": (lbm.Auto(memories=[0, 1, 2], gammas=[-1.5, 1.0], lam=LAM), (0, 0.0), 0),
}


def check(name: str, examples: int, steps: int) -> None:
    agent, memory, block = CASES[name]
    kind = ChoosingMachine if name in ("Auto", "EvidenceSelector") else Machine
    machine = type(name, (kind,), {"agent": agent, "memory": memory, "block": block})
    options = settings(
        max_examples=examples,
        stateful_step_count=steps,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    run_state_machine_as_test(machine, settings=options)


@pytest.mark.parametrize("name", CASES)
def test_the_estimate_is_ridge_regression_on_what_was_played(name: str) -> None:
    check(name, examples=10, steps=20)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_estimate_is_ridge_regression_after_long_histories(name: str) -> None:
    check(name, examples=100, steps=60)
