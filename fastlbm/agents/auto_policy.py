"""Auto at work: owns the candidates' regressions, which of them plans, and who is given up."""

from __future__ import annotations

import itertools
import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base.types import Array
from ..kernels.block_state import end_block, next_step, plans_made, played_actions, set_next_step
from ..kernels.estimator import SAMPLES, Estimator, make_estimator, noise_variance
from ..kernels.evidence import (
    CandidateSet,
    absorb_block,
    absorb_log,
    absorb_reward,
    candidate_features,
    evidence_terms,
    member,
)
from ..kernels.learning import Learner, LearnerConfig
from ..kernels.optimism import O3M
from ..kernels.powers import eigenvalue_floor
from ..kernels.rewards import gram_scale
from ..model.actions import ActionSet, Ball
from ..model.memory_matrix import check_memory_matrix
from .auto_plans import Plans
from .base import LearningAgent
from .candidates import Log, pairs_of
from .evidence_selector import evidence_of
from .learners import Task, make_config
from .misfit import Misfit, Stretch
from .offers import arms_among
from .policy import BlockPolicy, Origin, PastBlock, Policy, Rng

#: A candidate whose evidence is behind by this factor, e^25, is given up.
BEHIND = 25.0
#: Steps of which actions and rewards are kept: so many first ones, and so many last ones.
KEPT = 1000
#: Most memories offered, and rewards before more are.
MOST, FEW = 64, 60
#: Steps of a log between two looks at who is far behind.
REVIEW = 64
#: theta ~ N(0, sigma^2/(s lam) I), each of these s as likely as the others: how large theta is beside the
#: noise is not known. With s = 1 alone a candidate who needs only a small theta looks far better than it is.
SCALES: Array = np.array([1.0, 1.0 / 16.0, 1.0 / 256.0, 1.0 / 4096.0])
#: The memory that plans is drawn anew when there are so many times as many steps, or when it is less probable
#: than another one by this factor, e^7.
REDRAW, UNLIKELY = 1.1, 7.0
#: Steps before the first look for a misfit, and times as many before the next one.
FIRST_LOOK, NEXT_LOOK = 300, 1.6
#: The probability that a misfit is told although a candidate is right; look k may take 1/(k(k+1)) of it. So
#: many looks in a row must find it, so that candidates who are about to be offered have the time.
FALSE_ALARM, LOOKS = 0.02, 2
#: Memories that must not explain the rewards, at most; others are much less probable.
LOOKED_AT = 4

# Entries of `marks`: steps so far, whether a misfit was told, times that more memories were offered, looks
# for a misfit so far, how many of the last found one, the step at which the memory is drawn anew.
_STEPS, _TOLD, _OFFERS, _LOOKS, _FOUND, _DRAW = 0, 1, 2, 3, 4, 5

Grid = tuple[Sequence[int], Sequence[float], bool]


def _rows(steps: Any) -> Any:
    """Where steps are kept."""
    return np.where(steps < KEPT, steps, KEPT + steps % KEPT)


class AutoPolicy(BlockPolicy):
    """Regressions of all candidates on all rewards; plans of a probable one, from the true history.

    `grid` is the memories and exponents on offer, and whether more memories may be offered.
    """

    def __init__(
        self, agent: LearningAgent, actions: ActionSet, A0: Array, grid: Grid, rng: Rng, step: int
    ) -> None:
        self.planner = Plans(actions, A0)
        self.play = self.planner.play
        super().__init__(self.play, len(A0), rng, step)
        self.agent, self.actions, self.A0 = agent, actions, A0
        memories, self.gammas, self.grows = grid
        self.pairs = pairs_of(memories, self.gammas, A0)
        if not self.pairs:
            raise ValueError("memories and gammas must hold a pair that A0 allows, got none")
        self.log, self.marks = Log(), np.zeros(6, dtype=np.int64)
        # The first steps, then the last ones, in a ring.
        self.kept = Stretch(np.zeros((2 * KEPT, len(A0))), np.zeros(2 * KEPT), np.zeros(2 * KEPT, dtype=bool))
        self._offer(np.arange(len(self.pairs)))

    def _offer(self, alive: Any) -> None:
        """These candidates, numbers of pairs, begin with nothing."""
        d = len(self.A0)
        self.alive, self.chosen = alive, 0
        self.candidates = self._fresh()
        M = max(1, *(m for m, _ in self.pairs))
        self.recent, self.arms = np.zeros((M, d)), np.full(M, -1)
        self.picked = np.full(self.play, -1)
        self.features = np.zeros((self.play, len(alive) * d))
        self.windows = np.zeros((self.play, (M + 1) * d))  # of the block's actions, for rewards that are late
        self.planner.forget()
        self._use(0)

    def _fresh(self) -> CandidateSet:
        """Those alive, who have seen nothing."""
        N = len(self.alive)
        m = np.array([self.pairs[j][0] for j in self.alive])
        gamma = np.array([self.pairs[j][1] for j in self.alive])
        offered = Counter(k for k, _ in self.pairs)
        # Every memory is as likely as the others, and so is every exponent of one.
        self.log_prior = -np.log([float(offered[k]) for k in m.tolist()])
        one = make_estimator(len(self.A0), self.agent.lam)
        return CandidateSet(
            m=m,
            gamma=gamma,
            c=np.array([gram_scale(self.A0, k) for k in m]),
            floor=np.array([eigenvalue_floor(self.A0, k, g) for k, g in zip(m, gamma, strict=True)]),
            A0=self.A0,
            **{name: np.repeat(array[None], N, axis=0) for name, array in one._asdict().items()},
            residual=np.zeros((2, N)),
        )

    def _use(self, chosen: int) -> None:
        """Plan for this candidate from now on, a number among those alive."""
        self.config, self.chosen = self.config_of(chosen), chosen
        self.planner.use(*self.pairs[self.alive[chosen]])

    def config_of(self, j: int) -> LearnerConfig:
        """How a candidate plans, a number among those alive."""
        m, gamma = self.pairs[self.alive[j]]
        _, rho = check_memory_matrix(self.A0, len(self.A0), m, gamma)
        task = Task(kind=O3M, m=m, gamma=gamma, L=1, A0=None, switch=0.0)
        return make_config(self.agent, task, len(self.A0), rho)._replace(m=0)

    # --- what is known ----------------------------------------------------------------------------------

    @property
    def estimator(self) -> Estimator:
        """That of the candidate who plans."""
        return member(self.candidates, self.chosen)

    @property
    def learner(self) -> Learner:
        return Learner(self.config, self.estimator, self.windows)

    @property
    def origin(self) -> Origin:
        # Rewards that are missing when more is offered are given up.
        return Origin(epoch=int(self.marks[_OFFERS]))

    def stop(self, on: bool) -> None:
        self.config.first.stop.fill(on)

    def log_posterior(self) -> Array:
        """Of the candidates alive."""
        shape = len(self.alive), len(SCALES)
        log_det, rest = np.zeros(shape), np.zeros(shape)
        evidence_terms(self.candidates, SCALES, log_det, rest)
        n = self.candidates.ledger[:, SAMPLES, None]
        logs = evidence_of(n, log_det, rest, self.agent.subgaussian)
        evidence = self.log_prior + np.logaddexp.reduce(logs, axis=1)
        evidence[~np.isfinite(evidence)] = -np.inf
        evidence -= evidence.max()
        posterior: Array = evidence - math.log(np.exp(evidence).sum())
        return posterior

    def beliefs(self) -> dict[str, Any]:
        weights = np.exp(self.log_posterior())
        memories: dict[int, float] = {}
        gammas: dict[float, float] = {}
        for j, weight in zip(self.alive, weights, strict=True):
            m, gamma = self.pairs[j]
            memories[m] = memories.get(m, 0.0) + float(weight)
            gammas[gamma] = gammas.get(gamma, 0.0) + float(weight)
        return {
            **super().beliefs(),
            "memory": dict(sorted(memories.items())),
            "gamma": dict(sorted(gammas.items())),
            "misfit": bool(self.marks[_TOLD]),
        }

    def details(self) -> dict[str, Any]:
        return self.log.columns(("step", "m", "gamma", "probability", "noise", "misfit"))

    # --- learning ---------------------------------------------------------------------------------------

    def absorb_late(self, b: Array, y: float, block: PastBlock) -> None:
        window = b.reshape(-1, len(self.A0))
        features = np.zeros((1, self.features.shape[1]))
        candidate_features(self.candidates, window[:-1].copy(), window[-1:].copy(), features)
        absorb_reward(self.candidates, features[0], y)

    def _learn(self) -> None:
        """From what was played of the block."""
        played = played_actions(self.block)
        counts, sums = self.block.reward_counts[: len(played)], self.block.reward_sums[: len(played)]
        self._keep(played, np.divide(sums, counts, where=counts > 0.0, out=np.full(len(played), math.nan)))
        absorb_block(self.candidates, self.features, self.block)
        self._push(played, self.picked[: len(played)])

    def _keep(self, actions: Array, rewards: Array) -> None:
        """These were played, with these rewards, NaN for none; not more than KEPT of them."""
        at, seen = _rows(self.marks[_STEPS] + np.arange(len(actions))), np.isfinite(rewards)
        self.kept.actions[at], self.kept.seen[at] = actions, seen
        self.kept.rewards[at] = np.where(seen, rewards, 0.0)
        self.marks[_STEPS] += len(actions)

    def _past(self, first: int, end: int) -> Stretch:
        """What was kept of these steps."""
        rows = _rows(np.arange(first, end))
        return Stretch(*(array[rows] for array in self.kept))

    def _push(self, actions: Array, arms: Any) -> None:
        """These were played last."""
        M = len(self.recent)
        self.recent[:] = np.concatenate((self.recent, actions))[-M:]
        self.arms[:] = np.concatenate((self.arms, arms))[-M:]

    # --- what others play, and what they offer ----------------------------------------------------------

    @property
    def span(self) -> int:
        return MOST if self.grows else len(self.recent)

    def recent_actions(self) -> Array:
        return np.concatenate((self.recent, played_actions(self.block)))

    def set_history(self, recent: Array) -> None:
        self.recent[:] = recent[len(recent) - len(self.recent) :]
        self.arms[:] = -1
        if not (self.actions.varies or isinstance(self.actions, Ball)):
            self.arms[:] = arms_among(self.actions.sets()[0], self.recent)

    def offer(self, arms: Array, before: Array) -> None:
        self.planner.offer(arms)

    def interrupt(self) -> None:
        self._learn()
        end_block(self.block)
        self.planner.interrupt()

    def absorb_log(self, before: Array, actions: Array, rewards: Array) -> None:
        absorb_log(self.candidates, before[len(before) - len(self.recent) :], actions, rewards)

    def watch(self, before: Array, actions: Array, rewards: Array) -> None:
        self.interrupt()
        for t in range(0, len(actions), REVIEW):
            played, y = actions[t : t + REVIEW], rewards[t : t + REVIEW]
            self.absorb_log(self.recent, played, y)
            self._keep(played, y)
            self.set_history(np.concatenate((self.recent, played)))
            self._review(self._expect)
        set_next_step(self.block, int(next_step(self.block)) + len(actions))

    # --- planning ---------------------------------------------------------------------------------------

    def plan_next_block(self) -> None:
        if plans_made(self.block) > 0:
            self._learn()
            self.planner.played()
        posterior = self._review(self._choose)
        m, gamma = self.pairs[self.alive[self.chosen]]
        noise, probability = math.sqrt(noise_variance(self.estimator)), float(np.exp(posterior[self.chosen]))
        told = bool(self.marks[_TOLD])
        self.log.add((int(next_step(self.block)), m, gamma, probability, noise, told))
        learner = Learner(self.config, self.estimator, np.zeros((self.play, len(self.A0))))
        self.picked[:] = self.planner.plan(learner, self.recent, self.arms, self.block, self.rng)
        M = len(self.recent)
        rows = np.concatenate((self.recent, self.block.actions))
        for t in range(self.play):
            self.windows[t] = rows[t : t + M + 1].ravel()
        candidate_features(self.candidates, self.recent, self.block.actions, self.features)

    def _review(self, choose: Callable[[Array], int]) -> Array:
        """Who is on offer, who is given up, who plans, and whether none is right; returns the posterior."""
        posterior = self.log_posterior()
        if self.grows and self._largest_is_likely(posterior):
            self._offer_more()
            posterior = self.log_posterior()
        if (posterior > posterior.max() - BEHIND).sum() < 0.7 * len(posterior):
            posterior = self._give_up(posterior)
        chosen = choose(posterior)
        if chosen != self.chosen:
            self._use(chosen)
        if not self.marks[_TOLD] and self.marks[_STEPS] >= FIRST_LOOK * NEXT_LOOK ** self.marks[_LOOKS]:
            self._look(posterior)
        return posterior

    def _choose(self, posterior: Array) -> int:
        """The most probable one of a memory that is drawn from the posterior, now and then.

        The plan of a memory that is too long shows nothing of what a shorter one would earn: the most
        probable candidate alone can be wrong for ever.
        """
        likely = self.chosen
        if self._draw_is_due(posterior):
            self.marks[_DRAW] = math.ceil(REDRAW * self.marks[_STEPS])
            drawn = int(np.searchsorted(np.cumsum(np.exp(posterior)), self.rng.random()))
            likely = min(drawn, len(posterior) - 1)
        return self._best_of_memory(likely, posterior)

    def _expect(self, posterior: Array) -> int:
        """Who plans next, as far as that can be told without a draw: while others play, nobody plans.

        So what is learned from a log does not depend on how it is cut.
        """
        likely = self.chosen
        if self._draw_is_due(posterior):
            likely, self.marks[_DRAW] = int(np.argmax(posterior >= posterior.max() - 1e-9)), 0
        return self._best_of_memory(likely, posterior)

    def _draw_is_due(self, posterior: Array) -> bool:
        if self.chosen < 0 or self.marks[_STEPS] >= self.marks[_DRAW]:
            return True
        m = self.candidates.m
        return bool(posterior[m == m[self.chosen]].max() < posterior.max() - UNLIKELY)

    def _best_of_memory(self, j: int, posterior: Array) -> int:
        """The most probable candidate with the memory of j: of equal ones the first, rounding aside."""
        mine = np.where(self.candidates.m == self.candidates.m[j], posterior, -np.inf)
        return int(np.argmax(mine >= mine.max() - 1e-9))

    def _look(self, posterior: Array) -> None:
        """A look for a misfit: whether no memory, with its most probable exponent, explains what was kept."""
        k = self.marks[_LOOKS] = self.marks[_LOOKS] + 1
        level, steps = FALSE_ALARM / (k * (k + 1.0)), int(self.marks[_STEPS])
        ends = [(0, steps)] if steps <= 2 * KEPT else [(0, KEPT), (steps - KEPT, steps)]
        past, best = [self._past(*end) for end in ends], dict[int, float]()
        for j in np.argsort(-posterior, kind="stable"):
            best.setdefault(*self.pairs[self.alive[j]])
        models = itertools.islice(best.items(), LOOKED_AT)
        found = all(Misfit(past, self.A0, *model).p_value() < level for model in models)
        self.marks[_FOUND] = self.marks[_FOUND] + 1 if found else 0
        if self.marks[_FOUND] >= LOOKS:
            self.marks[_TOLD] = 1
            warnings.warn(
                f"after {steps} steps the rewards do not follow any model on offer: the errors of the most "
                "probable one are not noise",
                RuntimeWarning,
                stacklevel=2,
            )

    # --- the candidates on offer ------------------------------------------------------------------------

    def _give_up(self, posterior: Array) -> Array:
        """Only those who are not far behind go on."""
        kept = np.flatnonzero(posterior > posterior.max() - BEHIND)
        before, at = self.candidates, int(self.alive[self.chosen])
        self.alive = self.alive[kept]
        self.candidates = self._fresh()
        for name in Estimator._fields:
            getattr(self.candidates, name)[...] = getattr(before, name)[kept]
        self.candidates.residual[...] = before.residual[:, kept]
        self.features = np.zeros((self.play, len(kept) * len(self.A0)))
        same = np.flatnonzero(self.alive == at)
        self.chosen = int(same[0]) if len(same) else -1
        return posterior[kept]

    def _largest_is_likely(self, posterior: Array) -> bool:
        """Whether the largest memory on offer is the most probable, and a larger one can be offered."""
        M = len(self.recent)
        likely = float(np.exp(posterior[self.candidates.m == M]).sum())
        return M < MOST and self.marks[_STEPS] >= FEW and likely > 0.5

    def _offer_more(self) -> None:
        """Memories up to twice as many beside those alive; all learn anew from what was kept."""
        alive = [self.pairs[j] for j in self.alive]
        M = max(m for m, _ in self.pairs)
        self._grow(min(2 * M, MOST))
        new = [j for j, pair in enumerate(self.pairs) if pair in alive or pair[0] > M]
        self._offer(np.array(new))
        self.marks[_OFFERS] += 1
        self.marks[_DRAW] = 0
        self.marks[_FOUND] = 0  # what those who were offered before do not explain the others may
        steps = int(self.marks[_STEPS])
        past = self._past(max(0, steps - KEPT), steps)
        if steps > KEPT:
            past.seen[: len(self.recent)] = False  # what came before is not known
        features = np.zeros((1, self.features.shape[1]))
        for action, y, known in zip(*past, strict=True):
            if known:
                candidate_features(self.candidates, self.recent, action[None], features)
                absorb_reward(self.candidates, features[0], float(y))
            self._push(action[None], [-1])

    def _grow(self, top: int) -> None:
        """The pairs of memories up to `top` are on offer, behind those that were."""
        M = max(m for m, _ in self.pairs)
        self.pairs = self.pairs + pairs_of(range(M + 1, top + 1), self.gammas, self.A0)

    def continue_from(self, before: Policy) -> None:
        if isinstance(before, AutoPolicy):
            self._push(before.recent, before.arms)
            played = played_actions(before.block)
            self._push(played, before.picked[: len(played)])

    # --- its state --------------------------------------------------------------------------------------

    def state(self) -> dict[str, Array]:
        arrays: dict[str, Any] = {f"block.{name}": a for name, a in self.block._asdict().items()}
        for name in (*Estimator._fields, "residual"):
            arrays[f"candidates.{name}"] = getattr(self.candidates, name)
        for name in ("recent", "arms", "picked", "features", "windows", "marks"):
            arrays[name] = getattr(self, name)
        arrays |= {f"kept.{name}": array for name, array in self.kept._asdict().items()}
        return arrays | self.planner.state()

    def cursor(self) -> list[int]:
        return [max(m for m, _ in self.pairs), self.chosen, *map(int, self.alive)]

    def set_cursor(self, cursor: list[int]) -> None:
        top, chosen, *alive = map(int, cursor)
        M = max(m for m, _ in self.pairs)
        if not (top == M or (self.grows and M < top <= MOST)):
            raise ValueError(f"memories up to {top} cannot be on offer")
        self._grow(top)
        if alive != sorted(set(alive)) or not alive or not (alive[0] >= 0 and alive[-1] < len(self.pairs)):
            raise ValueError(f"{len(alive)} of {len(self.pairs)} candidates that nobody offers")
        if not 0 <= chosen < len(alive):
            raise ValueError(f"one of {len(alive)} candidates must be chosen, got {chosen}")
        self._offer(np.array(alive))
        self._use(chosen)

    def check(self, changed: bool = False) -> None:
        super().check(changed)
        self.planner.check()
        if not (self.marks >= 0).all() or (self.arms < -1).any():
            raise ValueError("steps and arms must be counted from 0 on")
