"""The evidence selector: owns the choice of the candidate that explains the rewards best.

It uses the structure of the model: all candidates learn from all rewards, and the evidence compares them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.types import Array
from .._base.values import writable
from ..kernels.block_state import end_block, next_step, plans_made, played_actions
from ..kernels.estimator import LOG_DET, SAMPLES, Estimator
from ..kernels.evidence import (
    PRIOR_SCALE,
    PRIOR_SHAPE,
    CandidateSet,
    absorb_block,
    absorb_log,
    absorb_reward,
    candidate_features,
)
from ..kernels.learning import Learner
from ..kernels.powers import eigenvalue_floor
from ..kernels.rewards import gram_scale
from ..model.actions import ActionSet
from ..model.lbm import LBM
from .candidates import CandidateAgent, MemberPolicy, Pair, marginals
from .learners import LearnerPolicy
from .policy import PastBlock, Policy, Rng


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class EvidenceSelector(CandidateAgent):
    """O3M for the candidate (m, gamma) that explains the rewards best.

    Under a candidate, rewards are linear in features that follow from the actions really played, so every
    candidate has a Bayesian regression on every reward: theta ~ N(0, sigma^2/lam I) gives

        ln p(y_1..y_n) = -1/2 [n ln(2 pi sigma^2) + ln det V/det(lam I) + r/sigma^2]
        r = sum_t (y_t - <b_t, theta_t>)^2 / (1 + b_t^T V_t^-1 b_t),   theta_t, V_t before step t

    for a known `sigma`; without one sigma^2 ~ InverseGamma(1, 0.01) is integrated out. The posterior has a
    uniform prior over the candidates. Each block is the O3M block of the most probable candidate, or with
    `draw` of one drawn from the posterior, planned from the candidate's regression on all rewards.

    Proven: for Gaussian noise of size sigma and the truth among the N candidates, with probability 1 - delta
    none of the N - 1 others' log evidences ever exceeds the truth's by more than

        ln((N-1)/delta) + lam ||theta||^2/(2 sigma^2) + 1/2 ln det V/det(lam I),   V the truth's

    and a given one of them never by more than that with ln(1/delta): its evidence over the likelihood at
    theta is a nonnegative martingale, and the truth's evidence is at least that likelihood times
    exp(-lam ||theta||^2/(2 sigma^2)) det(V/lam)^(-1/2); N - 1 of them share delta. Not proven: that others
    fall behind, which needs actions that tell them apart, and any bound on the regret.

    Candidates with m = 0 or gamma = 0 are the stationary model under several names (for A0 = I), whose
    probabilities add up. After a run `run.details` has the log posterior over time.

    Use it where a few pairs are possible and one of them is right; otherwise `Auto`.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    >>> pairs = [(m, g) for m in (0, 1, 2) for g in (-2.0, -1.0)]
    >>> run = lbm.run(env, lbm.EvidenceSelector(pairs, horizon=300, L=6), T=300)
    >>> pairs[int(run.details["log_posterior"][-1].argmax())]
    (1, -2.0)
    """

    candidates: tuple[Pair, ...]
    horizon: int
    L: int | tuple[int, ...] | None
    lam: float
    delta: float | None
    subgaussian: float | None
    sigma: float | None
    draw: bool
    radius: str
    A0: Array | None

    def __init__(
        self,
        candidates: Iterable[Pair],
        horizon: int,
        L: int | Sequence[int] | None = None,
        lam: float = 1.0,
        delta: float | None = None,
        subgaussian: float | None = 1.0,
        sigma: float | None = None,
        draw: bool = False,
        radius: str = "trace",
        A0: ArrayLike | None = None,
    ) -> None:
        self._set_learning(horizon=horizon, lam=lam, delta=delta, subgaussian=subgaussian, radius=radius)
        if sigma is not None:
            sigma = validation.real("sigma", sigma, low=1.0 / validation.LARGEST, high=validation.LARGEST)
        self._set(sigma=sigma, draw=bool(draw))
        self._set_candidates(candidates, L, A0)

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        lengths = [self._length(j) for j in range(len(self.candidates))]
        members = self._members(lengths, actions, rng, step)
        A0 = np.eye(actions.d) if self.A0 is None else writable(self.A0)
        return SelectorPolicy(members, self, A0, rng=rng, step=step)


class SelectorPolicy(MemberPolicy):
    """The candidates' regressions on all rewards; the estimators of the members are rows of them."""

    names = ("step", "candidate", "log_posterior")

    def __init__(
        self, members: Sequence[LearnerPolicy], agent: EvidenceSelector, A0: Array, rng: Rng, step: int
    ) -> None:
        super().__init__(members, rng, step)
        N, d = len(members), len(A0)
        m = np.array([m if gamma != 0.0 else 0 for m, gamma in agent.candidates])
        rows = zip(*(policy.learner.estimator for policy in members), strict=True)
        stacks = dict(zip(Estimator._fields, map(np.array, rows), strict=True))
        self.candidates = CandidateSet(
            m=m,
            gamma=np.array([gamma for _, gamma in agent.candidates]),
            decay=np.ones(N),
            memory=m,
            endless=np.full(N, -1),
            decays=np.zeros(0),
            c=np.array([gram_scale(A0, k) for k in m]),
            floor=np.array([eigenvalue_floor(A0, k, gamma) for k, gamma in agent.candidates]),
            A0=A0,
            **stacks,
            residual=np.zeros((2, N)),
        )
        self._share_estimators()
        self.agent = agent
        self.recent = np.zeros((max(1, int(m.max())), d))
        self.past = np.zeros((0, d, d))  # no memory is without end
        self.features = np.zeros((0, N * d))

    def _share_estimators(self) -> None:
        for j, policy in enumerate(self.members):
            rows = {name: getattr(self.candidates, name)[j] for name in Estimator._fields}
            policy.use_estimator(Estimator(**rows))  # type: ignore[attr-defined]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._share_estimators()  # copies of views are views of nothing

    @property
    def learner(self) -> Learner | None:
        # All rewards of a block are learned from, each by all candidates.
        learner = self.inner.learner
        return learner and Learner(learner.config._replace(m=0), learner.estimator, self.features)

    def absorb_late(self, b: Array, y: float, block: PastBlock) -> None:
        absorb_reward(self.candidates, np.ascontiguousarray(b), y)

    def log_evidence(self) -> Array:
        """ln p(rewards | candidate) (N,), up to a constant that all candidates share."""
        return log_evidence(self.candidates, self.agent.sigma)

    def recent_actions(self) -> Array:
        """The last actions that were played, as many as the longest memory on offer needs."""
        rows = np.concatenate((self.recent, played_actions(self.block)))
        return rows[len(rows) - len(self.recent) :]

    @property
    def span(self) -> int:
        return len(self.recent)

    def set_history(self, recent: Array) -> None:
        self.recent[:] = recent[len(recent) - self.span :]
        super().set_history(recent)

    def continue_from(self, before: Policy) -> None:
        if isinstance(before, SelectorPolicy):
            self.set_history(before.recent_actions())

    def interrupt(self) -> None:
        if len(self.features) > 0:
            absorb_block(self.candidates, self.features, self.block)
        for policy in self.members:
            end_block(policy.block)
        self.features = self.features[:0]

    def absorb_log(self, before: Array, actions: Array, rewards: Array) -> None:
        absorb_log(self.candidates, self.past, before[len(before) - self.span :], actions, rewards)

    def log_posterior(self) -> Array:
        """With the same prior probability for every candidate; none for one whose regression overflowed."""
        from scipy.special import logsumexp

        evidence = self.log_evidence()
        evidence[~np.isfinite(evidence)] = -np.inf
        if not np.isfinite(evidence).any():
            raise ValueError("candidates must have features that a regression can hold, got none: rescale A0")
        posterior: Array = evidence - logsumexp(evidence)
        return posterior

    def beliefs(self) -> dict[str, Any]:
        weights = np.exp(self.log_posterior())
        return {**super().beliefs(), **marginals(("memory", "gamma"), self.agent.candidates, weights)}

    def plan_next_block(self) -> None:
        if plans_made(self.block) > 0:
            absorb_block(self.candidates, self.features, self.block)
            self.recent[:] = self.recent_actions()
        posterior = self.log_posterior()
        if self.agent.draw:
            chosen = int(np.argmax(posterior + self.rng.gumbel(size=len(posterior))))
        else:
            # Candidates may be the same model under two names: of equal ones the first, rounding aside.
            chosen = int(np.argmax(posterior >= posterior.max() - 1e-9))
        self.log.add((int(next_step(self.block)), chosen, posterior))
        self.hand_over(chosen)
        self.features = np.zeros((len(self.block.actions), self.features.shape[1]))
        candidate_features(self.candidates, self.past, self.recent, self.block.actions, self.features)

    def ensure_block(self) -> None:
        super().ensure_block()
        if self.replans:
            candidate_features(self.candidates, self.past, self.recent, self.block.actions, self.features)

    def cursor(self) -> list[int]:
        return [len(self.features)]

    def set_cursor(self, cursor: list[int]) -> None:
        (n,) = cursor
        if n not in (0, *(len(policy.block.actions) for policy in self.members)):
            raise ValueError(f"no candidate has blocks of {n} actions")
        self.features = np.zeros((n, self.features.shape[1]))

    def state(self) -> dict[str, Array]:
        changing = (*Estimator._fields, "residual")
        arrays = {f"candidates.{name}": getattr(self.candidates, name) for name in changing}
        arrays |= {"recent": self.recent, "features": self.features}
        # The members' estimators are rows of these, their own features are not used.
        members = super().state().items()
        return arrays | {n: a for n, a in members if ".estimator." not in n and not n.endswith(".features")}


def log_evidence(candidates: CandidateSet, sigma: float | None) -> Array:
    """ln p(rewards | candidate) (N,), up to a constant that all candidates share; without sigma, over it."""
    ledger = candidates.ledger
    return evidence_of(ledger[:, SAMPLES], ledger[:, LOG_DET], candidates.residual[0], sigma)


def evidence_of(n: Array, log_det: Array, rest: Array, sigma: float | None) -> Array:
    """The same from the rewards seen, ln det V/det(lam I) and the residual."""
    if sigma is not None:
        known: Array = -0.5 * (n * math.log(2.0 * math.pi * sigma**2) + log_det + rest / sigma**2)
        return known
    from scipy.special import gammaln  # whoever only reads a study need not wait for it

    a, b = PRIOR_SHAPE, PRIOR_SCALE
    result: Array = (
        gammaln(a + 0.5 * n)
        - gammaln(a)
        + a * math.log(b)
        - (a + 0.5 * n) * np.log(b + 0.5 * rest)
        - 0.5 * (n * math.log(2.0 * math.pi) + log_det)
    )
    return result
