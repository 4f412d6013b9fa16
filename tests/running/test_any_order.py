"""Whatever comes in whatever order, the estimate is ridge regression on what was really played."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator

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
    everybody: bool | frozenset[int] = True  # who learns what others play

    @initialize(seed=numbers, ball=st.booleans())
    def start(self, seed: int, ball: bool) -> None:
        self.actions = lbm.Ball(D) if ball else lbm.Finite(arms(seed))
        self.live = self.agent.start(self.actions, seed=seed)
        self.played: list[np.ndarray] = []
        # Whether the reward of a step is learned from, should it come, or by whom.
        self.learned: list[bool | frozenset[int]] = []
        self.y: list[float] = []
        self.position, self.offered = 0, False

    # --- what may happen ----------------------------------------------------------------------------------

    def own(self, action: np.ndarray, y: float | None) -> None:
        self.played.append(action)
        self.learned.append(self.who_learns())
        self.y.append(math.nan)
        if y is not None:
            self.live.update(y)
            self.y[-1] = y

    def who_learns(self) -> bool | frozenset[int]:
        learned = self.block == 0 or self.position >= self.memory[0]
        self.position = (self.position + 1) % max(self.block, 1)
        return learned

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
        self.learned.extend([self.everybody] * len(actions))
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
        for found, inverse, (m, gamma, *fading), learned in self.estimates(live):
            decay = fading[0] if fading else 1.0
            kept = [t for t, y in enumerate(self.y) if learned[t] and not math.isnan(y)]
            windows = [self.window(t, m, decay) for t in kept]
            B = np.array([naive.features(w, len(w) - 1, gamma, None)[0] for w in windows]).reshape(-1, D)
            V = LAM * np.eye(D) + B.T @ B
            theta = np.linalg.solve(V, B.T @ np.array([self.y[t] for t in kept]))
            np.testing.assert_allclose(found, theta, rtol=0.0, atol=1e-10)
            np.testing.assert_allclose(inverse, np.linalg.inv(V), rtol=0.0, atol=1e-10)

    def window(self, t: int, m: float, decay: float) -> np.ndarray:
        """The action of a step behind those that count, each as long as it counts."""
        k = t if m == math.inf else int(m)
        before = [np.zeros(D)] * k + self.played
        return np.array([*(before[t + s] * decay ** (0.5 * (k - 1 - s)) for s in range(k)), before[t + k]])

    def estimates(self, live: lbm.Live) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[float, ...], list]]:
        """theta, V^-1, the model, m and gamma first, and whether each step is learned from."""
        assert live.theta is not None
        assert live.V_inv is not None
        yield live.theta, live.V_inv, self.model(live), self.learned

    def model(self, live: lbm.Live) -> tuple[float, ...]:
        return self.memory


class ChoosingMachine(Machine):
    def model(self, live: lbm.Live) -> tuple[float, ...]:
        """The model of the candidate whose estimate is shown."""
        policy = live._policy
        if isinstance(self.agent, lbm.EvidenceSelector):
            return self.agent.candidates[policy.chosen]
        model: tuple[float, ...] = policy.model(policy.chosen)
        return model


PAIRS = [(0, 0.0), (1, 1.0), (2, -1.5)]
LENGTH = 2


class MembersMachine(Machine):
    """Agents whose candidates learn from their own blocks, and all of them from what others play."""

    everybody = frozenset(range(len(PAIRS)))

    def who_learns(self) -> frozenset[int]:
        chosen: int = self.live._policy.chosen
        if self.position == 0:
            self.playing = chosen
        assert chosen == self.playing
        m, at = PAIRS[chosen][0], self.position
        self.position = (at + 1) % (1 if self.offered and m == 0 else m + LENGTH)
        return frozenset([chosen] if at >= m else [])

    def estimates(self, live: lbm.Live) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[float, ...], list]]:
        for j, policy in enumerate(live._policy.members):
            e = policy.learner.estimator
            yield e.theta, e.V_inv, PAIRS[j], [j in who for who in self.learned]


class SmoothMachine(MembersMachine):
    @rule(seed=numbers)
    def act_among(self, seed: int) -> None:
        before = self.live.to_bytes()
        with pytest.raises(ValueError, match="actions must stay the same for Corral with smooth=True"):
            self.live.act(arms(seed))
        assert self.live.to_bytes() == before


CASES: dict[str, tuple[lbm.agents.Agent, tuple[int, float], int]] = {
    "OFUL": (lbm.OFUL(300, lam=LAM), (0, 0.0), 0),
    "LinTS": (lbm.LinTS(300, lam=LAM), (0, 0.0), 0),
    "EpsilonGreedy": (lbm.EpsilonGreedy(lam=LAM), (0, 0.0), 0),
    "Rolling": (lbm.Rolling(2, -1.5, lam=LAM), (2, -1.5), 0),
    "O3M": (lbm.O3M(2, -1.5, 300, L=3, lam=LAM), (2, -1.5), 5),
    "EvidenceSelector": (
        lbm.EvidenceSelector(PAIRS, 300, L=LENGTH, lam=LAM),
        (0, 0.0),
        0,
    ),
    "Auto": (lbm.Auto(memories=[0, 1, 2], gammas=[-1.5, 1.0], lam=LAM), (0, 0.0), 0),
    "Auto, fading": (
        lbm.Auto(memories=[0, 3, math.inf], gammas=[-1.5, 1.0], decays=[1.0, 0.6, 0.8], lam=LAM),
        (0, 0.0),
        0,
    ),
    "BanditCombiner": (lbm.BanditCombiner(PAIRS, 300, L=LENGTH, lam=LAM), (0, 0.0), 0),
    "RegretBalancing": (lbm.RegretBalancing(PAIRS, 300, L=LENGTH, lam=LAM, scale=0.01), (0, 0.0), 0),
    "Corral": (lbm.Corral(PAIRS, 300, L=LENGTH, lam=LAM, smooth=False), (0, 0.0), 0),
    "Corral, smooth": (lbm.Corral(PAIRS, 300, L=LENGTH, lam=LAM), (0, 0.0), 0),
}
KINDS: dict[str, type[Machine]] = {
    "Auto": ChoosingMachine,
    "Auto, fading": ChoosingMachine,
    "EvidenceSelector": ChoosingMachine,
    "BanditCombiner": MembersMachine,
    "RegretBalancing": MembersMachine,
    "Corral": MembersMachine,
    "Corral, smooth": SmoothMachine,
}


def check(name: str, examples: int, steps: int) -> None:
    agent, memory, block = CASES[name]
    machine = type(name, (KINDS.get(name, Machine),), {"agent": agent, "memory": memory, "block": block})
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
