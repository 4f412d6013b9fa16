"""Agents for unknown m and gamma: own the choice among candidates, each of which is an O3M.

`BanditCombiner` is the paper's (Corollary 1 and its Algorithm 2): a bandit over candidates, which learn from
their own blocks only. `EvidenceSelector` uses the structure of the model: all candidates learn from all
rewards, and the evidence says which of them explains them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from .. import theory
from .._base import validation
from .._base.validation import Array
from .._base.values import writable
from ..kernels.estimator import LOG_DET, SAMPLES, Estimator
from ..kernels.evidence import Jury, hear, imagine, listen
from ..kernels.world import PLANS, PLAYED, POSITION, REPEATS, STEP, Desk, make_world
from ..model.actions import ActionSet
from ..model.lbm import LBM
from .base import O3M, _Learning
from .policies import Policy, Rng

Pair = tuple[int, float]
#: Entries of a log; when it is full every other one is dropped.
LOG = 4096


class Log:
    """What a policy did over time, at most LOG rows of it: memory does not grow with the horizon."""

    def __init__(self) -> None:
        self.every, self.count = 1, 0
        self.rows: list[tuple[Any, ...]] = []

    def add(self, row: tuple[Any, ...]) -> None:
        if self.count % self.every == 0:
            self.rows.append(row)
            if len(self.rows) >= LOG:
                self.rows = self.rows[::2]
                self.every *= 2
        self.count += 1

    def columns(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """The log as arrays by name."""
        return {name: np.array([row[k] for row in self.rows]) for k, name in enumerate(names)}


class _Meta(Policy):
    """A policy that hands the desk to one of several policies, block by block."""

    names: tuple[str, ...]

    def __init__(self, members: list[Policy], rng: Rng, step: int) -> None:
        self.members, self.rng = members, rng
        self.numbers = np.zeros(1, dtype=np.int64)  # who has the desk
        members[0].desk.at[STEP] = step
        self.log = Log()

    @property
    def author(self) -> int:  # type: ignore[override]
        return int(self.numbers[0])

    @property
    def desk(self) -> Desk:
        return self.members[self.author].desk

    @property
    def plans(self) -> int:
        return sum(policy.plans for policy in self.members)

    def hand_over(self, chosen: int) -> None:
        """The chosen one thinks and has the desk."""
        step = self.desk.at[STEP]
        self.numbers[0] = chosen
        self.desk.at[STEP] = step
        self.members[chosen].think()

    def details(self) -> dict[str, NDArray[Any]]:
        return self.log.columns(self.names)

    def state(self) -> dict[str, Array]:
        arrays: dict[str, Any] = {"author": self.numbers}
        for j, policy in enumerate(self.members):
            arrays |= {f"{j}.{name}": array for name, array in policy.state().items()}
        return arrays


class _Combined(_Meta):
    """Algorithm 2 of the paper."""

    names = ("step", "candidate", "index", "active")

    def __init__(
        self, members: list[Policy], constants: theory.CombinerConstants, rng: Rng, step: int
    ) -> None:
        super().__init__(members, rng, step)
        N = len(members)
        self.constants = constants
        self.plays, self.rewards, self.excess = np.zeros(N), np.zeros(N), np.zeros(N)
        # Blocks without a reward so far; number and sum of rewards that came after their blocks.
        self.waiting, self.late = np.zeros(N), np.zeros((2, N))
        self.active = np.ones(N)

    @property
    def m(self) -> int:  # type: ignore[override]
        return self.members[self.author].m

    @property
    def F(self) -> Array | None:  # type: ignore[override]
        return self.members[self.author].F

    @property
    def estimator(self) -> Estimator | None:  # type: ignore[override]
        return self.members[self.author].estimator

    def beta(self) -> float | None:
        return self.members[self.author].beta()

    def absorb(self, b: Array, y: float, author: int = 0) -> None:
        self.members[author].absorb(b, y)
        # As many late rewards as a block has count as one block.
        self.late[:, author] += (1.0, y)
        if self.late[0, author] >= self.constants.L[author]:
            self._count(author, self.late[1, author] / self.late[0, author])
            self.late[:, author] = 0.0
            self.waiting[author] = max(self.waiting[author] - 1.0, 0.0)

    def index(self) -> Array:
        """The index of each candidate; infinite before its first play, minus infinity once discarded."""
        c, n = self.constants, np.maximum(self.plays, 1.0)
        optimism = np.minimum(c.reward_range, c.C * n ** (c.alpha - 1.0) + 4.0 * c.width / np.sqrt(n))
        index = self.rewards / n + optimism - c.R / c.T_bc
        fresh = self.plays + self.waiting == 0.0
        return np.where(self.active > 0.0, np.where(fresh, np.inf, index), -np.inf)

    def think(self) -> None:
        self._account()
        index = self.index()
        chosen = int(np.argmax(index))
        self.log.add((int(self.desk.at[STEP]), chosen, index, self.active > 0.0))
        self.hand_over(chosen)

    def _account(self) -> None:
        """The average reward of the last L steps of the block, putative regret, discards."""
        i, desk, m = self.author, self.desk, self.m
        if desk.at[PLANS] == 0:
            return
        if desk.seen[m:].any():
            self._count(i, float(desk.total[m:].sum() / desk.seen[m:].sum()))
        else:
            self.waiting[i] += 1.0

    def _count(self, i: int, reward: float) -> None:
        """A block of candidate i had this average reward."""
        self.excess[i] += self.rewards[i] / max(self.plays[i], 1.0) - reward  # 0/0 = 0
        self.rewards[i] += reward
        self.plays[i] += 1.0
        c, n = self.constants, self.plays[i]
        limit = c.C[i] * n**c.alpha + 12.0 * c.width[i] * math.sqrt(n)
        if self.excess[i] >= limit and self.active.sum() > 1.0:
            self.active[i] = 0.0

    def state(self) -> dict[str, Array]:
        names = ("plays", "rewards", "excess", "active", "waiting", "late")
        return super().state() | {name: getattr(self, name) for name in names}


class _Selecting(_Meta):
    """The jury of candidates; the estimators of the members are its rows."""

    F: Array

    names = ("step", "candidate", "log_posterior")

    def __init__(
        self, members: list[Policy], agent: EvidenceSelector, A0: Array, rng: Rng, step: int
    ) -> None:
        super().__init__(members, rng, step)
        pairs, d, N = agent.candidates, len(A0), len(members)
        m = np.array([pair[0] if pair[1] != 0.0 else 0 for pair in pairs])
        gamma = np.array([pair[1] for pair in pairs])
        c = np.array([make_world(np.zeros(d), A0, k, g).c for k, g in zip(m, gamma, strict=True)])
        estimators = [policy.estimator for policy in members]
        stacks = [np.array(rows) for rows in zip(*estimators, strict=True)]
        self.jury = Jury(m, gamma, c, A0, *stacks, np.zeros((2, N)))  # type: ignore[call-arg]
        for j, policy in enumerate(members):
            policy.estimator = Estimator(*(stack[j] for stack in stacks))
        self.agent = agent
        self.recent = np.zeros((max(1, int(m.max())), d))
        self.F = np.zeros((0, N * d))

    @property
    def estimator(self) -> Estimator | None:  # type: ignore[override]
        return self.members[self.author].estimator

    def beta(self) -> float | None:
        return self.members[self.author].beta()

    def absorb(self, b: Array, y: float, author: int = 0) -> None:
        hear(self.jury, np.ascontiguousarray(b), y)

    def log_evidence(self) -> Array:
        """ln p(rewards | candidate) (N,), up to a constant that all candidates share."""
        n = self.jury.ledger[:, SAMPLES]
        log_det = self.jury.ledger[:, LOG_DET]
        rest = self.jury.residual[0]
        if self.agent.sigma is not None:
            s2 = self.agent.sigma**2
            known: Array = -0.5 * (n * math.log(2.0 * math.pi * s2) + log_det + rest / s2)
            return known
        a, b = PRIOR_SHAPE, PRIOR_SCALE
        result: Array = (
            gammaln(a + 0.5 * n)
            - gammaln(a)
            + a * math.log(b)
            - (a + 0.5 * n) * np.log(b + 0.5 * rest)
            - 0.5 * (n * math.log(2.0 * math.pi) + log_det)
        )
        return result

    def recall(self) -> Array | None:
        desk = self.desk
        at = int(desk.at[POSITION]) if desk.at[PLAYED] < desk.at[REPEATS] else len(desk.block)
        rows = np.concatenate((self.recent, desk.block[: at if desk.at[PLANS] > 0 else 0]))
        return rows[len(rows) - len(self.recent) :]

    def remember(self, actions: Array) -> None:
        self.recent[:] = actions

    def log_posterior(self) -> Array:
        """With the same prior probability for every candidate; none for one whose regression overflowed."""
        evidence = self.log_evidence()
        evidence[~np.isfinite(evidence)] = -np.inf
        if not np.isfinite(evidence).any():
            raise ValueError("candidates must have features that a regression can hold, got none: rescale A0")
        posterior: Array = evidence - logsumexp(evidence)
        return posterior

    def think(self) -> None:
        desk = self.desk
        if desk.at[PLANS] > 0:
            listen(self.jury, self.F, desk)
            self.remember(self.recall())  # type: ignore[arg-type]
        posterior = self.log_posterior()
        if self.agent.draw:
            chosen = int(np.argmax(posterior + self.rng.gumbel(size=len(posterior))))
        else:
            # Candidates may be the same model under two names: of equal ones the first, rounding aside.
            chosen = int(np.argmax(posterior >= posterior.max() - 1e-9))
        self.log.add((int(desk.at[STEP]), chosen, posterior))
        self.hand_over(chosen)
        self.F = np.zeros((len(self.desk.block), self.F.shape[1]))
        imagine(self.jury, self.recent, self.desk.block, self.F)

    def place(self) -> list[int]:
        return [len(self.F)]

    def enter_place(self, place: list[int]) -> None:
        self.F = np.zeros((int(place[0]), self.F.shape[1]))

    def state(self) -> dict[str, Array]:
        arrays = {f"jury.{name}": array for name, array in self.jury._asdict().items()}
        arrays |= {"recent": self.recent, "features": self.F}
        # The members' estimators are the jury's, their own features are not used.
        members = super().state().items()
        return arrays | {n: a for n, a in members if ".estimator." not in n and not n.endswith(".features")}


#: sigma^2 ~ InverseGamma(shape, scale): a weak prior around a noise of 0.1.
PRIOR_SHAPE, PRIOR_SCALE = 1.0, 0.01


class _Choosing(_Learning):
    """What agents over candidates share."""

    __slots__ = ()
    candidates: tuple[Pair, ...]
    L: int | tuple[int, ...] | None
    A0: Array | None

    def _set_candidates(
        self, candidates: Iterable[Pair], L: int | Sequence[int] | None, A0: ArrayLike | None
    ) -> None:
        pairs = _pairs(candidates)
        if A0 is not None:
            d = len(validation.array("A0", A0, (None, None)))
            A0 = validation.symmetric("A0", validation.array("A0", A0, (d, d)))
        if L is not None and np.ndim(L) == 0:
            L = validation.integer("L", L, low=1)
        elif L is not None:
            L = tuple(validation.integer("L", length, low=1) for length in np.ravel(np.asarray(L)))
            if len(L) != len(pairs):
                raise ValueError(f"L must hold one length for each of the {len(pairs)} candidates, got {L}")
        self._set(candidates=pairs, L=L, A0=A0)
        for j in range(len(pairs)):
            self._candidate(j, self._length(j))

    def _length(self, j: int) -> int | None:
        return self.L[j] if isinstance(self.L, tuple) else self.L

    def _candidate(self, j: int, L: int | None) -> O3M:
        """The O3M of one candidate; an error names it."""
        m, gamma = self.candidates[j]
        try:
            return O3M(
                m, gamma, self.horizon, L, self.lam, self.delta, self.subgaussian, 0.0, self.radius, self.A0
            )
        except (TypeError, ValueError) as error:
            raise _unplayable(m, gamma, error) from None

    def _members(
        self, lengths: Sequence[int | None], actions: ActionSet, rng: Rng, step: int
    ) -> list[Policy]:
        members = []
        for j, L in enumerate(lengths):
            agent = self._candidate(j, L)
            try:
                members.append(agent._policy(actions, None, rng, step))
            except ValueError as error:
                raise _unplayable(*self.candidates[j], error) from None
        return members


def _unplayable(m: Any, gamma: Any, error: Exception) -> Exception:
    """The error that names the candidate."""
    return type(error)(f"candidates must be playable, got (m, gamma) = ({m}, {gamma}): {error}")


def _pairs(candidates: Iterable[Pair]) -> tuple[Pair, ...]:
    try:
        pairs = [(m, gamma) for m, gamma in candidates]
    except (TypeError, ValueError):
        raise ValueError(f"candidates must be pairs (m, gamma), got {candidates!r}") from None
    if not pairs:
        raise ValueError("candidates must hold at least one pair (m, gamma), got none")
    checked: list[Pair] = []
    for m, gamma in pairs:
        try:
            pair = (int(validation.memory("m", m, allow_inf=False)), validation.real("gamma", gamma))
        except (TypeError, ValueError) as error:
            raise _unplayable(m, gamma, error) from None
        if pair in checked:
            raise ValueError(f"candidates must be distinct, got {pair} twice")
        checked.append(pair)
    return tuple(checked)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class BanditCombiner(_Choosing):
    """The paper's Bandit Combiner over O3M instances (Algorithm 2), for candidates (m, gamma).

    Round by round, the candidate with the largest index plays one block and learns from it alone; one whose
    putative regret exceeds what its bound allows is discarded (never the last one). `scale` multiplies the
    constants of the theory, see `theory.combiner_constants`; 1 is the paper. With the paper's constants
    the index is driven by R_j/T_bc, not by rewards, wherever candidates differ in m.

    `L` is one length for all, one each, or from the theory; a candidate with gamma = 0 plays blocks of L, not
    m+L. Live, a block whose rewards all come late counts when as many have come. After a run `run.details`
    says which candidate played at which step, with all indices and who was still active.

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
    subgaussian: float
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
        subgaussian: float = 1.0,
        radius: str = "trace",
        A0: ArrayLike | None = None,
    ) -> None:
        self._set_learning(horizon, lam, delta, subgaussian, radius)
        self._set(scale=validation.real("scale", scale, low=0.0, open_low=True))
        self._set_candidates(candidates, L, A0)

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        constants = theory.combiner_constants(
            self.horizon,
            actions.d,
            self.candidates,
            list(self.L) if isinstance(self.L, tuple) else self.L,
            self.lam,
            self.delta,
            self.scale,
            self.subgaussian,
            self.A0,
        )
        members = self._members([int(length) for length in constants.L], actions, rng, step)
        return _Combined(members, constants, rng, step)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class EvidenceSelector(_Choosing):
    """O3M for the candidate (m, gamma) that explains the rewards best.

    Under a candidate, rewards are linear in features that follow from the actions really played, so every
    candidate has a Bayesian regression on every reward: theta ~ N(0, sigma^2/lam I) gives

        ln p(y_1..y_n) = -1/2 [n ln(2 pi sigma^2) + ln det V/det(lam I) + r/sigma^2]
        r = sum_t (y_t - <b_t, theta_t>)^2 / (1 + b_t^T V_t^-1 b_t),   theta_t, V_t before step t

    for a known `sigma`; without one sigma^2 ~ InverseGamma(1, 0.01) is integrated out. The posterior has a
    uniform prior over the candidates. Each block is the O3M block of the most probable candidate, or with
    `draw` of one drawn from the posterior, planned from the candidate's regression on all rewards.

    Proven: for Gaussian noise of size sigma and the truth among the candidates, with probability 1 - delta
    no other candidate's log evidence ever exceeds the truth's by more than

        ln(1/delta) + lam ||theta||^2/(2 sigma^2) + 1/2 ln det V/det(lam I),   V the truth's

    for the evidence of another over the likelihood at theta is a nonnegative martingale, and the truth's
    evidence is at least that likelihood times exp(-lam ||theta||^2/(2 sigma^2)) det(V/lam)^(-1/2). Not
    proven: that others fall behind, which needs actions that tell them apart, and any bound on the regret.

    Candidates with m = 0 or gamma = 0 are the stationary model under several names (for A0 = I), whose
    probabilities add up. After a run `run.details` has the log posterior over time.

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
    subgaussian: float
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
        subgaussian: float = 1.0,
        sigma: float | None = None,
        draw: bool = False,
        radius: str = "trace",
        A0: ArrayLike | None = None,
    ) -> None:
        self._set_learning(horizon, lam, delta, subgaussian, radius)
        if sigma is not None:
            sigma = validation.real("sigma", sigma, low=0.0, open_low=True)
        self._set(sigma=sigma, draw=bool(draw))
        self._set_candidates(candidates, L, A0)

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        lengths = [self._length(j) for j in range(len(self.candidates))]
        members = self._members(lengths, actions, rng, step)
        A0 = np.eye(actions.d) if self.A0 is None else writable(self.A0)
        return _Selecting(members, self, A0, rng, step)
