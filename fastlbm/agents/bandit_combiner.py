"""The Bandit Combiner: owns the paper's bandit over candidates, which learn from their own blocks only.

Corollary 1, cor:model_selection, and Algorithm 2, alg:bc.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import theory
from .._base import validation
from .._base.types import Array
from ..kernels.block_state import next_step
from ..model.actions import ActionSet
from ..model.lbm import LBM
from .candidates import CandidateAgent, CountingPolicy, Pair
from .policy import Policy, Rng


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class BanditCombiner(CandidateAgent):
    """The paper's Bandit Combiner over O3M instances (Algorithm 2, alg:bc), for candidates (m, gamma).

    Round by round, the candidate with the largest index plays one block and learns from it alone; one whose
    putative regret exceeds what its bound allows is discarded (never the last one). `scale` multiplies the
    constants of the theory, see `theory.combiner_constants`; 1 is the paper. With the paper's constants
    the index is driven by R_j/T_bc, not by rewards, wherever candidates differ in m.

    `L` is one length for all, one each, or from the theory; a candidate with gamma = 0 plays blocks of L, not
    m+L. Live, a block counts once, from its first reward on, late or not; every later reward corrects its
    average. What others play is learned by all candidates and is nobody's block. After a run `run.details`
    says which candidate played at which step, with all indices and who was still active.

    Use it to compare with the paper's way to choose; `EvidenceSelector` and `Auto` earn more.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    >>> agent = lbm.BanditCombiner([(1, -2.0), (1, -1.0)], horizon=200, L=5)
    >>> run = lbm.run(env, agent, T=200)
    >>> sorted(set(run.details["candidate"].tolist()))
    [0, 1]
    """

    candidates: tuple[Pair, ...]
    horizon: int
    L: int | tuple[int, ...] | None
    scale: float
    lam: float
    delta: float | None
    subgaussian: float | None
    radius: str
    A0: Array | None

    def __init__(
        self,
        candidates: Iterable[Pair],
        horizon: int,
        L: int | Sequence[int] | None = None,
        scale: float = 1.0,
        lam: float = 1.0,
        delta: float | None = None,
        subgaussian: float | None = 1.0,
        radius: str = "trace",
        A0: ArrayLike | None = None,
    ) -> None:
        self._set_learning(horizon=horizon, lam=lam, delta=delta, subgaussian=subgaussian, radius=radius)
        self._set(
            scale=validation.real("scale", scale, low=1.0 / validation.LARGEST, high=validation.LARGEST)
        )
        self._set_candidates(candidates, L, A0)

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        constants = theory.combiner_constants(
            self.horizon,
            actions.d,
            self.candidates,
            L=list(self.L) if isinstance(self.L, tuple) else self.L,
            lam=self.lam,
            delta=self.delta,
            scale=self.scale,
            subgaussian=1.0 if self.subgaussian is None else self.subgaussian,
            A0=self.A0,
        )
        members = self._members([int(length) for length in constants.L], actions, rng, step)
        return CombinerPolicy(members, constants, rng, step)


class CombinerPolicy(CountingPolicy):
    """Algorithm 2 of the paper, alg:bc."""

    names = ("step", "candidate", "index", "active")

    def __init__(
        self, members: Sequence[Policy], constants: theory.CombinerConstants, rng: Rng, step: int
    ) -> None:
        super().__init__(members, rng, step)
        N = len(members)
        self.constants = constants
        self.plays, self.rewards, self.excess = np.zeros(N), np.zeros(N), np.zeros(N)
        self.active = np.ones(N)

    def index(self) -> Array:
        """The index of each candidate; infinite before its first block, minus infinity once discarded."""
        c, n = self.constants, np.maximum(self.plays, 1.0)
        optimism = np.minimum(c.reward_range, c.C * n ** (c.alpha - 1.0) + 4.0 * c.width / np.sqrt(n))
        index = self.rewards / n + optimism - c.R / c.T_bc
        # Its rewards may still be to come; on another set than before it has made no plan.
        fresh = np.array([policy.plans == 0 for policy in self.members]) & (self.plays == 0.0)
        return np.where(self.active > 0.0, np.where(fresh, np.inf, index), -np.inf)

    def plan_next_block(self) -> None:
        self._account()
        index = self.index()
        chosen = int(np.argmax(index))
        self.log.add((int(next_step(self.block)), chosen, index, self.active > 0.0))
        self.hand_over(chosen)

    def _count(self, i: int, reward: float) -> None:
        self.excess[i] += self.rewards[i] / max(self.plays[i], 1.0) - reward  # 0/0 = 0
        self.rewards[i] += reward
        self.plays[i] += 1.0
        self._discard_if_due(i)

    def _correct(self, i: int, change: float) -> None:
        self.excess[i] -= change  # what was compared with it stays
        self.rewards[i] += change
        self._discard_if_due(i)

    def _discard_if_due(self, i: int) -> None:
        c, n = self.constants, self.plays[i]
        limit = c.C[i] * n**c.alpha + 12.0 * c.width[i] * math.sqrt(n)
        if self.excess[i] >= limit and self.active.sum() > 1.0:
            self.active[i] = 0.0

    def state(self) -> dict[str, Array]:
        names = ("plays", "rewards", "excess", "active")
        return super().state() | {name: getattr(self, name) for name in names}
