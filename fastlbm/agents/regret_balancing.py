"""Regret balancing: owns the choice of the candidate whose bound allows it the least regret so far."""

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
from .learners import LearnerPolicy
from .policy import Policy, Rng


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class RegretBalancing(CandidateAgent):
    """Regret bound balancing and elimination over O3M instances, for candidates (m, gamma).

    Pacchiano, Dann, Gentile and Bartlett (2020), "Regret Bound Balancing and Elimination for Model Selection
    in Bandits and RL". A candidate that has played k blocks of B = m+L steps, n = kB steps of mean reward u,
    claims a regret of at most R(k) against OPT/T a step. The active candidate with the smallest claim plays
    the next block and learns from it alone. Then every candidate is discarded whose claim is refuted,

        u + (R(k) + w)/n  <  the largest  u' - w'/n' - x'  of an active candidate
        R(k) = 2 max(L rho, beta sqrt(L)) sqrt(2 k d ln(1 + k L rho^2/(d lam))) + 2 m rho k
        w    = subgaussian sqrt((n+1) ln((n+1) N^2/delta^2)),      x = 2 max_j(m_j rho_j)/B

    with rho and the radius beta of `theory.confidence_radius` after kL samples. `scale` multiplies R, w and
    x; 1 is what is proven, and at T = 1200 discards nobody. With a small one the truth is discarded for what
    learning costs it: `python -m reproduce knowledge` measures both. `L` is one length for all, one each, or
    from the theory; a candidate with gamma = 0 plays blocks of L.

    Proven, for scale = 1, a given `subgaussian` and the truth among the N candidates: with probability
    1 - 2 delta the truth is never discarded, and the regret against OPT is at most, with * the truth,

        sum_j  R_j + 2 w_j + (n_j/n_*) (R_* + 2 w_*) + n_j x_*,     R_j <= R_* + what one block adds to R_j

    with all numbers as of the last test that j passed, after which one more block of it costs 2 rho B_j at
    most. That is the paper's argument with all steps of a block counted. The paper's learners do not disturb
    each other; these do, through the memory. (1) The first m steps of a block, whatever was played before,
    cost at most 2 m rho against OPT, and all other windows are the block's own: so R holds for the truth. It
    is the proof of Theorem 2, thm:regret_hp, with 2 max(L rho, beta sqrt(L)) min(1, .) for a block. (2) A
    block can earn more than its part of OPT from what others left, by x B at most: without x, which the paper
    does not need, the truth could be discarded. Where the truth is not a candidate nothing is proven; nor
    on sets that vary, nor for plans that a search found, which may miss the best block. T is taken as a
    multiple of every B.

    Live, blocks are balanced when they begin, and count once, from the first reward of their last L steps
    on; the rewards of the first m steps count if they come in time. After a run `run.details` says who played
    at which step, with all claims and who was still active.

    Use it to compare ways to choose; `EvidenceSelector` and `Auto` earn more.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    >>> agent = lbm.RegretBalancing([(0, 0.0), (1, -2.0)], horizon=800, L=6, scale=0.05)
    >>> lbm.run(env, agent, T=800).details["active"][-1].tolist()
    [False, True]
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
        lengths = [self._length(j) for j in range(len(self.candidates))]
        return BalancingPolicy(self._members(lengths, actions, rng, step), self, rng, step)


class BalancingPolicy(CountingPolicy):
    """The candidates' claims, and who is still believed."""

    names = ("step", "candidate", "claim", "active")
    whole = True

    def __init__(self, members: Sequence[LearnerPolicy], agent: RegretBalancing, rng: Rng, step: int) -> None:
        super().__init__(members, rng, step)
        self.agent = agent
        self.m = np.array([policy.learner.config.m for policy in members])
        self.B, self.d = np.array([policy.block.actions.shape for policy in members]).T
        self.rho = np.array([theory.reward_bound(m, gamma, agent.A0) for m, gamma in agent.candidates])
        # Blocks that began, those that count, the sum of their average rewards, and who is believed.
        self.begun, self.plays, self.rewards, self.active = np.zeros((4, len(members)))
        self.active += 1.0

    def claims(self, blocks: Array) -> Array:
        """R (N,) after so many blocks of each."""
        lam, L, d = self.agent.lam, self.B - self.m, self.d
        volume = d * np.log1p(blocks * L * self.rho**2 / (d * lam))
        beta = self._noise * np.sqrt(2.0 * math.log(1.0 / self._delta) + volume) + math.sqrt(lam)
        loss = 2.0 * np.maximum(L * self.rho, beta * np.sqrt(L)) * np.sqrt(2.0 * blocks * volume)
        result: Array = self.agent.scale * (loss + 2.0 * self.m * self.rho * blocks)
        return result

    def widths(self, steps: Array) -> Array:
        """w (N,) after so many steps of each: the noise of all of them, at any time, by Robbins' mixture."""
        odds = 2.0 * math.log(len(self.members) / self._delta)
        result: Array = self._noise * np.sqrt((steps + 1.0) * (np.log(steps + 1.0) + odds))
        return self.agent.scale * result

    @property
    def _noise(self) -> float:
        return 1.0 if self.agent.subgaussian is None else self.agent.subgaussian

    @property
    def _delta(self) -> float:
        return 1.0 / self.agent.horizon if self.agent.delta is None else self.agent.delta

    def plan_next_block(self) -> None:
        self._account()
        claims = self.claims(self.begun)  # the rewards of a block that began may still be to come
        open_ = np.where(self.active > 0.0, claims, np.inf)
        chosen = int(np.argmax(open_ <= open_.min() * (1.0 + 1e-9)))  # of equal ones the first
        self.log.add((int(next_step(self.block)), chosen, claims, self.active > 0.0))
        self.begun[chosen] += 1.0
        self.hand_over(chosen)

    def inherit(self, before: Policy) -> None:
        super().inherit(before)
        if isinstance(before, BalancingPolicy):
            # Blocks may be of other lengths on this set: steps stay what they were.
            for counts in (self.begun, self.plays, self.rewards):
                counts *= before.B / self.B

    def _count(self, i: int, reward: float) -> None:
        self.rewards[i] += reward
        self.plays[i] += 1.0
        self._discard()

    def _correct(self, i: int, change: float) -> None:
        self.rewards[i] += change
        self._discard()

    def _discard(self) -> None:
        """Who claims too little; the best one never does, and who has not played yet claims nothing."""
        heard = (self.active > 0.0) & (self.plays > 0.0)
        k = np.maximum(self.plays, 1.0)
        n, mean = k * self.B, self.rewards / k
        width, excess = self.widths(n) / n, 2.0 * self.agent.scale * (self.m * self.rho).max() / self.B
        proven = np.where(heard, mean - width - excess, -np.inf).max()
        self.active[heard & (mean + self.claims(k) / n + width < proven)] = 0.0

    def check(self, changed: bool = False) -> None:
        super().check(changed)
        if not (self.active > 0.0).any():
            raise ValueError("one candidate must be active")

    def state(self) -> dict[str, Array]:
        names = ("begun", "plays", "rewards", "active")
        return super().state() | {name: getattr(self, name) for name in names}
