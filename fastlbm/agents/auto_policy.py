"""Auto at work: owns the candidates' regressions, which of them plans, and who is given up."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._base.types import Array
from ..kernels.block_state import next_step, plans_made, played_actions, start_block
from ..kernels.estimator import SAMPLES, Estimator, make_estimator, noise_variance
from ..kernels.evidence import CandidateSet, absorb_block, absorb_reward, candidate_features, member
from ..kernels.learning import Learner, radius
from ..kernels.optimism import O3M, Belief
from ..kernels.powers import eigenvalue_floor
from ..kernels.rewards import gram_scale
from ..model.actions import ActionSet, Ball
from ..model.memory_matrix import check_memory_matrix
from .base import LearningAgent
from .candidates import Log, Pair
from .evidence_selector import log_evidence
from .learners import Task, make_config
from .misfit import Misfit
from .policy import BlockPolicy, Origin, PastBlock, Policy, Rng
from .rolling import BallPlans
from .rolling_arms import PLAY, ArmPlans, ahead_of

#: A candidate whose evidence is behind by this factor, e^25, is given up.
BEHIND = 25.0
#: Steps of which actions and rewards are kept, for candidates that are offered later; most memories offered.
KEPT, MOST = 1000, 64
#: Rewards before more memories are offered.
FEW = 60
#: Rewards for each dimension of which a theta is a guess; how many after them show whether a model holds.
GUESSES, EARLY = 10, 150
#: Errors that were larger then than since by so many standard errors are told.
SURPRISE = 4.0
#: Steps for which a misfit must be seen, so that candidates who are about to be found have the time.
PERSISTS = 300

Grid = tuple[Sequence[int], Sequence[float], bool]


def pairs_of(memories: Iterable[int], gammas: Sequence[float], A0: Array) -> list[Pair]:
    """The pairs (m, gamma) of a grid, each model once, without those that A0 does not allow."""
    plain = bool((np.eye(len(A0)) == A0).all())
    pairs: list[Pair] = []
    for m in memories:
        for gamma in gammas:
            # Without memory the power of the identity is the identity, whatever gamma.
            pair = (0, 0.0) if gamma == 0.0 or (m == 0 and plain) else (m, gamma)
            try:
                check_memory_matrix(A0, len(A0), *pair, differentiable=pair[0] > 0)
            except ValueError:
                continue
            if pair not in pairs:
                pairs.append(pair)
    return pairs


class AutoPolicy(BlockPolicy):
    """Regressions of all candidates on all rewards; plans of the most probable one, from the true history.

    `grid` is the memories and exponents on offer, and whether more memories may be offered.
    """

    def __init__(
        self, agent: LearningAgent, actions: ActionSet, A0: Array, grid: Grid, rng: Rng, step: int
    ) -> None:
        self.play = PLAY if actions.known_ahead else 1
        super().__init__(self.play, len(A0), rng, step)
        self.agent, self.actions, self.A0 = agent, actions, A0
        memories, self.gammas, self.grows = grid
        self.pairs = pairs_of(memories, self.gammas, A0)
        if not self.pairs:
            raise ValueError("memories and gammas must hold a pair that A0 allows, got none")
        self.misfit, self.log = Misfit(), Log()
        # Steps so far, whether a misfit was told, times that more memories were offered, steps of a misfit.
        self.marks = np.zeros(4, dtype=np.int64)
        self.kept = np.zeros((KEPT, len(A0))), np.zeros(KEPT), np.zeros(KEPT, dtype=bool)
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
        self.residuals = np.full((2, len(alive)), -1.0)  # after the first rewards, and after some more
        self._arm_plans: dict[int, ArmPlans] = {}
        self.ball_plans: BallPlans | None = None
        self._use(0)

    def _fresh(self) -> CandidateSet:
        """Those alive, who have seen nothing."""
        N = len(self.alive)
        m = np.array([self.pairs[j][0] for j in self.alive])
        gamma = np.array([self.pairs[j][1] for j in self.alive])
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
        m, gamma = self.pairs[self.alive[chosen]]
        _, rho = check_memory_matrix(self.A0, len(self.A0), m, gamma)
        task = Task(kind=O3M, m=m, gamma=gamma, L=1, A0=None, switch=0.0)
        self.config = make_config(self.agent, task, len(self.A0), rho)._replace(m=0)
        self.chosen = chosen
        if isinstance(self.actions, Ball):
            if self.ball_plans is None or self.ball_plans.m != m:
                self.ball_plans = BallPlans(self.A0, m, gamma, ahead=ahead_of(None, m), play=self.play)
            self.ball_plans.use(gamma)

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
        return Origin(epoch=int(self.marks[2]))  # rewards that are missing when more is offered are given up

    def stop(self, on: bool) -> None:
        self.config.first.stop.fill(on)

    def log_posterior(self) -> Array:
        """With the same prior probability for every candidate alive."""
        evidence = log_evidence(self.candidates, self.agent.subgaussian)
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
            "misfit": bool(self.marks[1]),
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
        """From the block that is done: errors of the one who planned it, then all regressions."""
        d, e = len(self.A0), self.estimator
        for t in range(self.play):
            y = math.nan
            if self.block.reward_counts[t] > 0.0:
                y = float(self.block.reward_sums[t] / self.block.reward_counts[t])
            b = self.features[t, self.chosen * d : (self.chosen + 1) * d]
            self.misfit.add(float((y - b @ e.theta) / math.sqrt(1.0 + b @ e.V_inv @ b)))
            at = int(self.marks[0]) % KEPT
            self.kept[0][at], self.kept[2][at] = self.block.actions[t], math.isfinite(y)
            self.kept[1][at] = y if math.isfinite(y) else 0.0
            self.marks[0] += 1
        absorb_block(self.candidates, self.features, self.block)
        self._mark_residuals()
        self._push(played_actions(self.block), self.picked)

    def _mark_residuals(self) -> None:
        """Keep what is left over after the first rewards, of theta that were guesses, and after some more."""
        for mark, count in enumerate(self._early()):
            if self.candidates.ledger[0, SAMPLES] >= count and self.residuals[mark, 0] < 0.0:
                self.residuals[mark] = self.candidates.residual[0]

    def _early(self) -> tuple[int, int]:
        return GUESSES * len(self.A0), GUESSES * len(self.A0) + EARLY

    def surprise(self) -> float:
        """How much larger the errors of the one who plans were early than they are since.

        The ratio of variances less 1, in its standard errors for a right model and Gaussian noise. In all, a
        prior that is too narrow adds lam ||theta||^2 to the errors: what it has not added yet is taken off.
        """
        n, (first, end) = float(self.candidates.ledger[0, SAMPLES]), self._early()
        before, after = self.residuals[:, self.chosen]
        if after < 0.0 or n < end + EARLY:
            return 0.0
        later = (float(self.candidates.residual[0, self.chosen]) - after) / (n - end)
        prior = self.agent.lam * float(self.estimator.theta @ self.estimator.theta)
        early = after - before - max(prior - (before - first * later), 0.0)
        ratio = early / (end - first) / max(later, 1e-300)
        return float((ratio - 1.0) / math.sqrt(2.0 / (end - first) + 2.0 / (n - end)))

    def _push(self, actions: Array, arms: Any) -> None:
        """These were played last."""
        M = len(self.recent)
        self.recent[:] = np.concatenate((self.recent, actions))[-M:]
        self.arms[:] = np.concatenate((self.arms, arms))[-M:]

    # --- planning ---------------------------------------------------------------------------------------

    def plan_next_block(self) -> None:
        if plans_made(self.block) > 0:
            self._learn()
            if self.ball_plans is not None:
                self.ball_plans.played(self.play)
        posterior = self.log_posterior()
        if self.grows and self._largest_is_likely(posterior):
            self._offer_more()
            posterior = self.log_posterior()
        if (posterior > posterior.max() - BEHIND).sum() < 0.7 * len(posterior):
            posterior = self._give_up(posterior)
        # Of equal ones the first, rounding aside.
        chosen = int(np.argmax(posterior >= posterior.max() - 1e-9))
        if chosen != self.chosen:
            self._use(chosen)
        self._tell(float(np.exp(posterior[self.chosen])))
        self._plan()
        M = len(self.recent)
        rows = np.concatenate((self.recent, self.block.actions))
        for t in range(self.play):
            self.windows[t] = rows[t : t + M + 1].ravel()
        candidate_features(self.candidates, self.recent, self.block.actions, self.features)

    def _plan(self) -> None:
        """The next block, by the candidate that was chosen."""
        m, gamma = self.pairs[self.alive[self.chosen]]
        e, M = self.estimator, len(self.recent)
        recent, arms = self.recent[M - m :], self.arms[M - m :]
        if self.ball_plans is not None:
            learner = Learner(self.config, e, np.zeros((self.play, len(self.A0))))
            self.ball_plans.plan(learner, recent, self.block, self.rng)
            return
        j = int(self.alive[self.chosen])
        if j not in self._arm_plans:
            ahead = ahead_of(None, m)
            self._arm_plans[j] = ArmPlans(self.actions, m=m, gamma=gamma, A0=self.A0, ahead=ahead)
        plans, belief = self._arm_plans[j], Belief(e.theta, e.V_inv, float(radius(self.config, e)), O3M)
        found = plans.policy(belief, arms, self.play)
        if found is None:
            found, actions = plans.search(belief, recent, int(next_step(self.block)), self.rng)
        else:
            actions = plans.sets[0][found]
        self.picked[:], self.block.actions[:] = found[: self.play], actions[: self.play]
        start_block(self.block, 1)

    def _tell(self, probability: float) -> None:
        """The log, and once that no candidate explains the rewards."""
        found = self.misfit.found or self.surprise() > SURPRISE
        self.marks[3] = self.marks[3] + self.play if found else 0
        if not self.marks[1] and self.marks[3] >= PERSISTS:
            self.marks[1] = 1
            warnings.warn(
                f"after {int(self.marks[0])} steps the rewards do not follow any model on offer: the errors "
                "of the most probable one are not noise",
                RuntimeWarning,
                stacklevel=2,
            )
        m, gamma = self.pairs[self.alive[self.chosen]]
        noise = math.sqrt(noise_variance(self.estimator))
        self.log.add((int(next_step(self.block)), m, gamma, probability, noise, bool(self.marks[1])))

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
        self.residuals = self.residuals[:, kept]
        self.features = np.zeros((self.play, len(kept) * len(self.A0)))
        same = np.flatnonzero(self.alive == at)
        self.chosen = int(same[0]) if len(same) else -1
        return posterior[kept]

    def _largest_is_likely(self, posterior: Array) -> bool:
        """Whether the largest memory on offer is the most probable, and a larger one can be offered."""
        M = max(m for m, _ in self.pairs)
        likely = float(np.exp(posterior[self.candidates.m == M]).sum())
        return M < MOST and self.marks[0] >= FEW and likely > 0.5

    def _offer_more(self) -> None:
        """Memories up to twice as many beside those alive; all learn anew from what was kept."""
        alive = [self.pairs[j] for j in self.alive]
        M = max(m for m, _ in self.pairs)
        self._grow(min(2 * M, MOST))
        new = [j for j, pair in enumerate(self.pairs) if pair in alive or pair[0] > M]
        self._offer(np.array(new))
        self.misfit = Misfit()  # the errors of those who were offered before say nothing of the others
        self.marks[2] += 1
        steps = int(self.marks[0])
        order = np.arange(max(0, steps - KEPT), steps) % KEPT
        actions, rewards, seen = (array[order] for array in self.kept)
        if steps > KEPT:
            seen[: len(self.recent)] = False  # what came before is not known
        features = np.zeros((1, self.features.shape[1]))
        for action, y, known in zip(actions, rewards, seen, strict=True):
            if known:
                candidate_features(self.candidates, self.recent, action[None], features)
                absorb_reward(self.candidates, features[0], float(y))
                self._mark_residuals()
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
        for name in ("recent", "arms", "picked", "features", "windows", "residuals", "marks"):
            arrays[name] = getattr(self, name)
        arrays |= dict(zip(("kept.actions", "kept.rewards", "kept.seen"), self.kept, strict=True))
        plans = {} if self.ball_plans is None else self.ball_plans.state()
        return arrays | self.misfit.state() | plans

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

    def check(self) -> None:
        super().check()
        if self.ball_plans is not None:
            self.ball_plans.check()
        if not (self.marks >= 0).all() or (self.arms < -1).any():
            raise ValueError("steps and arms must be counted from 0 on")
