"""CORRAL: owns the distribution over candidates, how it moves, and the blocks that may be played again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import theory
from .._base import validation
from .._base.types import Array
from ..kernels.block_state import next_step, plans_made
from ..model.actions import ActionSet
from ..model.lbm import LBM
from .candidates import CandidateAgent, CountingPolicy, Pair
from .learners import LearnerPolicy
from .policy import Origin, PastBlock, Policy, Rng

#: Blocks of a candidate that are kept to be played again: of more, as many drawn from all of them.
KEPT = 256


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Corral(CandidateAgent):
    """CORRAL over O3M instances, for candidates (m, gamma), made smooth so that they may be stochastic.

    Agarwal, Luo, Neyshabur and Schapire (2017), "Corralling a Band of Bandit Algorithms": a candidate is
    drawn from p, its loss divided by its probability moves p by a step of mirror descent with the log barrier

        1/p_j' = 1/p_j + eta_j (loss_j - c),   c such that p' sums to 1

    p' is mixed with 1/T_bc of the uniform distribution, and eta_j is multiplied by e^(1/ln T_bc) whenever
    p_j falls to less than half of what it was at the last time, so that eta_j never falls. Pacchiano, Phan,
    Abbasi-Yadkori, Rao, Zimmert, Lattimore and Szepesvari (2020), "Model Selection in Contextual Stochastic
    Bandit Problems": with `smooth` a round is two blocks of the candidate, its next one, and one of all that
    it has played so far, drawn uniformly, whose loss is the round's. The loss is (R - mean reward of all
    m+L steps)/2R, cut to [0, 1], R the largest rho of a candidate. `L` as for `BanditCombiner`.

    Their guarantee: if candidate j, alone, has a regret of at most C n^(2/3) in n rounds with high
    probability (n^(2/3) as in Corollary 1, cor:model_selection), then in T_bc rounds over N candidates the
    expected regret is, up to logarithms, at most

        N^(1/3) T_bc^(2/3) + N^(1/3) C^(3/2) T_bc^(2/3)       with eta = (N/T_bc)^(2/3), the default

    of the mean rewards of rounds. What of it holds here. (1) Candidates disturb each other through the memory
    in the first m steps of a block, which cost at most 2 m R; the windows of the others are the block's own
    if m is at least the true one, as for the candidate that the guarantee speaks of. (2) Rounds differ in
    length where m+L does: in steps it is a guarantee for the part min(m+L)/max(m+L) of OPT only, by
    Lemma 1 of the paper. (3) A candidate learns from both blocks of a round, which its confidence sets
    allow. (4) Beyond 256 blocks of a candidate the old one is drawn from 256 that were drawn from all.
    (5) Noise that is cut with the loss biases it. Without `smooth`, the only way on sets that vary, every
    block is a round, and nothing is proven for a candidate as O3M, which learns only from what it plays.

    Live, blocks count as for `RegretBalancing`; a late loss is divided by the probability with which its
    candidate was drawn last. After a run `run.details` says who played at which step, whether an old block
    again, and all probabilities.

    Use it to compare ways to choose; `EvidenceSelector` and `Auto` earn more.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    >>> agent = lbm.Corral([(0, 0.0), (1, -2.0)], horizon=400, L=6, eta=5.0)
    >>> run = lbm.run(env, agent, T=400)
    >>> bool(run.details["probability"][-1].argmax() == 1), run.details["again"][:4].tolist()
    (True, [False, True, False, True])
    """

    candidates: tuple[Pair, ...]
    horizon: int
    L: int | tuple[int, ...] | None
    eta: float | None
    smooth: bool
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
        eta: float | None = None,
        smooth: bool = True,
        lam: float = 1.0,
        delta: float | None = None,
        subgaussian: float | None = 1.0,
        radius: str = "trace",
        A0: ArrayLike | None = None,
    ) -> None:
        self._set_learning(horizon=horizon, lam=lam, delta=delta, subgaussian=subgaussian, radius=radius)
        if eta is not None:
            eta = validation.real("eta", eta, low=1.0 / validation.LARGEST, high=validation.LARGEST)
        self._set(eta=eta, smooth=bool(smooth))
        self._set_candidates(candidates, L, A0)

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        if self.smooth and actions.varies:
            raise ValueError(
                "actions must stay the same for Corral with smooth=True, which plays old blocks again, got "
                "arms that change from step to step: try smooth=False"
            )
        lengths = [self._length(j) for j in range(len(self.candidates))]
        return CorralPolicy(self._members(lengths, actions, rng, step), self, rng, step)


class CorralPolicy(CountingPolicy):
    """The distribution over candidates, its learning rates, and the blocks that may be played again."""

    names = ("step", "candidate", "again", "probability")
    whole = True
    members: Sequence[LearnerPolicy]

    def __init__(self, members: Sequence[LearnerPolicy], agent: Corral, rng: Rng, step: int) -> None:
        super().__init__(members, rng, step)
        N, blocks = len(members), [policy.block.actions for policy in members]
        rounds = -(-agent.horizon // (min(map(len, blocks)) * (1 + agent.smooth)))
        self.smooth, self.rounds = agent.smooth, max(2, rounds)
        self.R = max(theory.reward_bound(m, gamma, agent.A0) for m, gamma in agent.candidates)
        eta = (N / self.rounds) ** (2.0 / 3.0) if agent.eta is None else agent.eta
        self.p, self.drawn, self.low, self.rates = np.full((4, N), 1.0 / N)
        self.low *= 0.5
        self.rates[:] = eta
        self._again = np.zeros(1, dtype=np.int64)
        self.seen = np.zeros(N, dtype=np.int64)  # blocks that each one planned
        room = [min(KEPT, -(-agent.horizon // len(block))) * agent.smooth for block in blocks]
        features = [policy.learner.features for policy in members]
        self.blocks = [np.zeros((n, *block.shape)) for n, block in zip(room, blocks, strict=True)]
        self.features = [np.zeros((n, *F.shape)) for n, F in zip(room, features, strict=True)]

    @property
    def again(self) -> bool:
        """Whether the present block is an old one."""
        return bool(self._again[0])

    @property
    def origin(self) -> Origin:
        return Origin(member=self.chosen + self.again * len(self.members))

    @property
    def width(self) -> int:
        return 2 * len(self.members)

    def probabilities(self) -> Array:
        """With which the next candidate is drawn, (N,)."""
        mixed: Array = (1.0 - 1.0 / self.rounds) * self.p + 1.0 / (self.rounds * len(self.p))
        return mixed

    def plan_next_block(self) -> None:
        self._account()
        again = self.smooth and not self.again and plans_made(self.block) > 0
        probabilities = self.probabilities()
        i = self.chosen if again else int(self.rng.choice(len(self.p), p=probabilities))
        self.log.add((int(next_step(self.block)), i, again, probabilities))
        self._again[0] = again
        if again:
            q = int(self.rng.integers(min(self.seen[i], len(self.blocks[i]))))
            self.members[i].play_again(self.blocks[i][q], self.features[i][q])
            return
        self.drawn[i] = probabilities[i]
        self.hand_over(i)
        self._keep(i)

    def _keep(self, i: int) -> None:
        """Its new block may be played again: all of the first ones, then each with the same probability."""
        self.seen[i] += 1
        room, at = len(self.blocks[i]), int(self.seen[i]) - 1
        if at >= room > 0:
            at = int(self.rng.integers(self.seen[i]))
        if at < room:
            self.blocks[i][at] = self.block.actions
            self.features[i][at] = self.members[i].learner.features

    def _account(self) -> None:
        if self.again or not self.smooth:
            super()._account()

    def forget_arms(self) -> None:
        super().forget_arms()
        # Nothing is left to be played again, and the next round is a new one.
        self.seen[:], self._again[0] = 0, self.smooth

    def absorb_late(self, b: Array, y: float, block: PastBlock) -> None:
        again, i = divmod(block.member, len(self.members))
        if again or not self.smooth:
            super().absorb_late(b, y, block._replace(member=i))
        else:
            self.members[i].absorb_late(b, y, block)

    def _count(self, i: int, reward: float) -> None:
        self._move(i, min(1.0, max(0.0, 0.5 - 0.5 * reward / self.R)))

    def _correct(self, i: int, change: float) -> None:
        self._move(i, -0.5 * change / self.R)

    def _move(self, i: int, loss: float) -> None:
        """The step for a loss of candidate i; who has become unlikely learns faster from then on."""
        losses = np.zeros(len(self.p))
        losses[i] = loss / self.drawn[i]
        self.p[:] = log_barrier_step(self.p, losses, self.rates)
        p = self.probabilities()
        rare = p < self.low
        self.low[rare] = 0.5 * p[rare]
        self.rates[rare] *= math.exp(1.0 / math.log(self.rounds))

    def check(self, changed: bool = False) -> None:
        super().check(changed)
        if not (self.p > 0.0).all() or abs(self.p.sum() - 1.0) > 1e-6:
            raise ValueError("the probabilities of candidates must be positive and sum to 1")
        if not all((array > 0.0).all() for array in (self.drawn, self.low, self.rates)):
            raise ValueError("probabilities and learning rates must be positive")
        due = self.smooth and not self.again and plans_made(self.block) > 0
        if self._again[0] not in (0, self.smooth) or (self.seen < 0).any() or due > self.seen[self.chosen]:
            raise ValueError("a block that was never planned cannot be played again")
        if any(float(np.square(old).sum(axis=-1).max(initial=0.0)) > 1.0 + 1e-6 for old in self.blocks):
            raise ValueError("the actions of old blocks must lie in the unit ball")

    def state(self) -> dict[str, Array]:
        arrays: dict[str, Any] = super().state() | {"again": self._again}
        arrays |= {name: getattr(self, name) for name in ("p", "drawn", "low", "rates", "seen")}
        for j, (blocks, features) in enumerate(zip(self.blocks, self.features, strict=True)):
            arrays |= {f"{j}.old.blocks": blocks, f"{j}.old.features": features}
        return arrays


def log_barrier_step(p: Array, losses: Array, rates: Array) -> Array:
    """argmin over distributions q of <q, losses> + sum_j 1/rates_j (q_j/p_j - ln(q_j/p_j)).

    1/q_j = 1/p_j + rates_j (losses_j - c). The sum of q grows with c and is convex in it, so that Newton's
    method comes down to c from above, where no q_j exceeds 1.
    """
    c = min(losses.max(), (losses + (1.0 / p - 1.0) / rates).min())
    for _ in range(100):
        q: Array = 1.0 / (1.0 / p + rates * (losses - c))
        surplus = q.sum() - 1.0
        if surplus <= 1e-15 * len(q):
            break
        c -= surplus / (rates * q * q).sum()
    q /= q.sum()
    return q
