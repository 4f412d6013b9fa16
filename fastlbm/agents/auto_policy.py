"""Auto at work: owns the candidates' regressions, which of them plans, and who is given up."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._base.types import Array
from ..kernels import weighing
from ..kernels.block_state import end_block, next_step, plans_made, played_actions, set_next_step
from ..kernels.estimator import LOG_DET, Estimator, noise_variance
from ..kernels.evidence import absorb_log, absorb_reward, candidate_features, member, push_all
from ..kernels.learning import Learner, LearnerConfig
from ..kernels.optimism import O3M
from ..kernels.playing import Recorder, elapsed
from ..kernels.rewards import History, ModelParams
from ..kernels.weighing import (
    CONTINUED,
    DRAW,
    FOUND,
    LARGEST,
    LAST_LOOK,
    LAST_PROBE,
    LOOKS,
    OFFERS,
    PROBES,
    PROBING,
    STEPS,
    TO_GO,
    TOLD,
    Weighing,
)
from ..model.actions import ActionSet, Ball
from ..model.memory_matrix import check_memory_matrix
from . import probes
from .auto_grid import Grid, Model
from .auto_plans import Plans
from .base import LearningAgent
from .candidates import Log, marginals
from .learners import Task, make_config
from .misfit import Misfit, Stretch
from .offers import arms_among
from .policy import BlockPolicy, Origin, PastBlock, Policy, Rng

#: A candidate whose evidence is behind by this factor, e^25, is given up.
BEHIND = 25.0
#: Steps of which actions and rewards are kept: so many first ones, and so many last ones.
KEPT = 1000
#: Steps of a log between two looks at who is far behind.
REVIEW = 64
#: theta ~ N(0, sigma^2/(s lam) I), each of these s as likely as the others: how large theta is beside the
#: noise is not known. With s = 1 alone a candidate who needs only a small theta looks far better than it is.
SCALES: Array = np.array([1.0, 1.0 / 16.0, 1.0 / 256.0, 1.0 / 4096.0])
#: The probability that a misfit is told although a candidate is right; look k takes 3/((k+2)(k+3)) of it. So
#: many looks in a row must find it, so that candidates who are about to be offered have the time.
FALSE_ALARM, IN_A_ROW = 0.02, 2
#: Memories that must not explain the rewards, at most; and how far behind they are not asked, in logarithms:
#: that a given wrong one, as likely at first, leads the right one by that has a probability of e^-10 at most.
LOOKED_AT, UNLIKELY = 9, 10.0

#: Plans of which a row of the log is kept before it is read.
ROWS = 256


def _rows(steps: Any) -> Any:
    """Where steps are kept."""
    return np.where(steps < KEPT, steps, KEPT + steps % KEPT)


class AutoPolicy(BlockPolicy):
    """Regressions of all candidates on all rewards; plans of a probable one, from the true history."""

    def __init__(self, agent: LearningAgent, actions: ActionSet, grid: Grid, rng: Rng, step: int) -> None:
        self.A0, self.grid = grid.A0, grid
        self.planner, d = Plans(actions, self.A0), len(self.A0)
        self.play = self.planner.play
        super().__init__(self.play, d, rng, step)
        self.agent, self.actions = agent, actions
        if not grid.models:
            raise ValueError("memories, gammas and decays must hold a model that A0 allows, got none")
        self.log, self.marks = Log(), np.zeros(6, dtype=np.int64)
        self.probing = np.zeros(6, dtype=np.int64)
        # The first steps, then the last ones, in a ring.
        n = 2 * KEPT
        flags = np.zeros((2, n), dtype=bool)
        self.kept = Stretch(np.zeros((n, d)), np.zeros(n), seen=flags[0], probed=flags[1])
        self._offer(np.arange(len(grid.models)))

    def _offer(self, alive: Any) -> None:
        """These candidates, numbers of models, begin with nothing."""
        d, M, D = len(self.A0), self.grid.recent, len(self.grid.decays)
        self.chosen = 0
        self._begin(alive)
        self.recent, self.arms, self.past = np.zeros((M, d)), np.full(M, -1), np.zeros((D, d, d))
        self.picked = np.full(self.play, -1)
        self.windows = np.zeros((self.play, (M + 1) * d + D * d * d))
        self.planner.forget()
        self._use(0)

    def _begin(self, alive: Any) -> None:
        """These candidates have seen nothing."""
        self.alive = alive
        self.candidates, self.log_prior = self.grid.candidates(alive, self.agent.lam)
        self.posterior, self.edge = self.log_prior.copy(), self.grid.edge(alive)
        self.features = np.zeros((self.play, len(alive) * len(self.A0)))

    def model(self, j: int) -> Model:
        """Of a candidate, a number among those alive."""
        found: Model = self.grid.models[self.alive[j]]
        return found

    def _use(self, chosen: int) -> None:
        """Plan for this candidate from now on, a number among those alive."""
        log_det = self.candidates.ledger[:, LOG_DET]
        grown = float(log_det[chosen] - log_det[self.chosen]) if self.chosen >= 0 else math.inf
        self.config, self.chosen = self.config_of(chosen), chosen
        self.planner.use(self.model(chosen), grown)

    def config_of(self, j: int) -> LearnerConfig:
        """How a candidate plans, a number among those alive."""
        model = self.model(j)
        _, rho = check_memory_matrix(self.A0, len(self.A0), model.weight, model.gamma)
        task = Task(kind=O3M, m=model.window, gamma=model.gamma, L=1, A0=None, switch=0.0)
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
        return Origin(epoch=int(self.marks[OFFERS]))

    def stop(self, on: bool) -> None:
        self.config.first.stop.fill(on)

    @property
    def weighing(self) -> Weighing:
        """What compiled code takes of all this."""
        return Weighing(
            candidates=self.candidates, log_prior=self.log_prior, posterior=self.posterior, scales=SCALES,
            sigma=self.agent.subgaussian or 0.0, behind=BEHIND, edge=self.edge,
            fades=self.grid.may_fade, past=self.past, recent=self.recent, arms=self.arms,
            picked=self.picked, features=self.features, windows=self.windows, marks=self.marks,
            probing=self.probing,
            **self.kept._asdict(),
        )  # fmt: skip

    def log_posterior(self) -> Array:
        """Of the candidates alive."""
        weighing.weigh(self.weighing)
        return self.posterior

    def beliefs(self) -> dict[str, Any]:
        weights = np.exp(self.log_posterior())
        believed = marginals(("memory", "gamma", "decay"), map(self.model, range(len(weights))), weights)
        return {**super().beliefs(), **believed, "misfit": bool(self.marks[TOLD])}

    def details(self) -> dict[str, Any]:
        return self.log.columns(("step", "m", "gamma", "decay", "probability", "noise", "misfit"))

    # --- learning ---------------------------------------------------------------------------------------

    def absorb_late(self, b: Array, y: float, block: PastBlock) -> None:
        window = b[: b.size - self.past.size].reshape(-1, len(self.A0))
        past, features = b[window.size :].reshape(self.past.shape), np.zeros((1, self.features.shape[1]))
        candidate_features(self.candidates, past.copy(), window[:-1].copy(), window[-1:].copy(), features)
        absorb_reward(self.candidates, features[0], y)

    def _learn(self) -> None:
        """From what was played of the block."""
        weighing.learn_played(self.weighing, self.block, len(played_actions(self.block)))

    def _keep(self, actions: Array, rewards: Array) -> None:
        """These were played, with these rewards, NaN for none; not more than KEPT of them."""
        at, seen = _rows(self.marks[STEPS] + np.arange(len(actions))), np.isfinite(rewards)
        self.kept.actions[at], self.kept.seen[at], self.kept.probed[at] = actions, seen, False
        self.kept.rewards[at] = np.where(seen, rewards, 0.0)
        self.marks[STEPS] += len(actions)

    def _past(self, first: int, end: int) -> Stretch:
        """What was kept of these steps."""
        rows = _rows(np.arange(first, end))
        return Stretch(*(array[rows] for array in self.kept))

    def _push(self, actions: Array, arms: Any) -> None:
        """These were played last."""
        M = len(self.recent)
        self.recent[:] = np.concatenate((self.recent, actions))[-M:]
        self.arms[:] = np.concatenate((self.arms, arms))[-M:]
        push_all(self.candidates, self.past, np.ascontiguousarray(actions), 0, len(actions))

    # --- what others play, and what they offer ----------------------------------------------------------

    @property
    def span(self) -> int:
        return self.grid.span

    def recent_actions(self) -> Array:
        return np.concatenate((self.recent, played_actions(self.block)))

    def set_history(self, recent: Array) -> None:
        before, last = recent[: len(recent) - len(self.recent)], recent[len(recent) - len(self.recent) :]
        self.past[:] = 0.0
        push_all(self.candidates, self.past, np.ascontiguousarray(before), 0, len(before))
        self._push(last, self._numbers(last))

    def _numbers(self, actions: Array) -> Any:
        """Of actions (n, d) among the arms, -1 for none."""
        if self.actions.varies or isinstance(self.actions, Ball):
            return np.full(len(actions), -1)
        return arms_among(self.actions.sets()[0], actions)

    def offer(self, arms: Array, before: Array) -> None:
        self.planner.offer(arms)

    def interrupt(self) -> None:
        self._learn()
        end_block(self.block)
        self.planner.interrupt()

    def absorb_log(self, before: Array, actions: Array, rewards: Array) -> None:
        past = np.zeros_like(self.past)
        push_all(self.candidates, past, np.ascontiguousarray(before), 0, len(before))
        absorb_log(self.candidates, past, before[len(before) - len(self.recent) :], actions, rewards)

    def watch(self, before: Array, actions: Array, rewards: Array) -> None:
        self.interrupt()
        for t in range(0, len(actions), REVIEW):
            played, y = actions[t : t + REVIEW], rewards[t : t + REVIEW]
            absorb_log(self.candidates, self.past, self.recent, played, y)
            self._keep(played, y)
            self._push(played, self._numbers(played))
            self._review(self._expect)
        set_next_step(self.block, int(next_step(self.block)) + len(actions))

    # --- planning ---------------------------------------------------------------------------------------

    def plan_next_block(self) -> None:
        if plans_made(self.block) > 0:
            self._learn()
            self.planner.played()
        self._review(self._choose)
        self._plan()

    def advance(
        self, model: ModelParams, history: History, recorder: Recorder, noise: Rng, until: int
    ) -> None:
        if self.planner.ball is None:
            return super().advance(model, history, recorder, noise, until)
        while int(elapsed(recorder)) < until:
            log, planner = np.zeros((ROWS, 4)), self.planner.ball.planner(self._learner_of_block())
            event = weighing.run_weighed(
                self.weighing, planner, self.chosen, log, self.block, self.rng,
                model, history, recorder, noise, until,
            )  # fmt: skip
            for row in log[log[:, 3] > 0.0].tolist():
                self._note(*row[:3])
            if event == weighing.STOPPED:
                return None
            if event != weighing.PLAYED:
                self._see_to(event)
                self._plan()
        return None

    def _see_to(self, event: int) -> None:
        """What compiled code leaves to Python before the next plan."""
        chosen, what = divmod(event, weighing.EVENTS)
        if what & (weighing.OFFER | weighing.GIVE_UP):
            self._review(self._choose)
            return
        if what & weighing.USE:
            self._use(chosen)
        if what & weighing.LOOK:
            self._look(self.posterior)

    def _plan(self) -> None:
        """The next block, by the one who was chosen."""
        noise = math.sqrt(noise_variance(self.estimator))
        self._note(int(next_step(self.block)), math.exp(self.posterior[self.chosen]), noise)
        if weighing.probe_is_due(self.weighing):
            self._probe()
        else:
            learner, at = self._learner_of_block(), self.candidates.endless[self.chosen]
            past = self.past[at] if at >= 0 else self.A0
            self.picked[:] = self.planner.plan(learner, self.recent, past, self.arms, self.block, self.rng)
        weighing.lay_out(self.weighing, self.block)

    def _probe(self) -> None:
        """The next block is no plan: it shows whether the model holds beside them."""
        marks = self.probing
        if marks[TO_GO] == 0:
            marks[TO_GO], marks[LAST_PROBE] = probes.steps_of(int(marks[PROBES])), self.marks[STEPS]
            marks[PROBES] += 1
        number, left, theta = int(marks[PROBES]) - 1, int(marks[TO_GO]), self.estimator.theta
        self.picked[:] = self.planner.probe(number, left, theta, self.recent[-1], self.block, self.rng)
        marks[TO_GO], marks[PROBING] = max(left - self.play, 0), 1

    def _learner_of_block(self) -> Learner:
        return Learner(self.config, self.estimator, np.zeros((self.play, len(self.A0))))

    def _note(self, step: float, probability: float, noise: float) -> None:
        m, gamma, decay = self.model(self.chosen)
        self.log.add((int(step), float(m), gamma, decay, probability, noise, bool(self.marks[TOLD])))

    def _review(self, choose: Callable[[Array], int]) -> None:
        """Who is on offer, who is given up, who plans, and whether none is right."""
        posterior = self.log_posterior()
        if sign := weighing.more_to_offer(self.weighing):
            likely = self.model(int(weighing.most_probable(self.weighing, -1)))
            self._offer_more(*(self.grid.longer() if sign == LARGEST else self.grid.fainter(likely)))
            posterior = self.log_posterior()
        if weighing.is_behind(self.weighing):
            posterior = self._give_up(posterior)
        chosen = choose(posterior)
        if chosen != self.chosen:
            self._use(chosen)
        if weighing.look_is_due(self.weighing):
            self._look(posterior)

    def _choose(self, posterior: Array) -> int:
        """A memory that is drawn from the posterior, now and then; see `weighing.choose`."""
        self.posterior[:] = posterior
        return int(weighing.choose(self.weighing, self.chosen, self.rng))

    def _expect(self, posterior: Array) -> int:
        """Who plans next, as far as that can be told without a draw: while others play, nobody plans.

        So what is learned from a log does not depend on how it is cut.
        """
        likely = self.chosen
        if weighing.draw_is_due(self.weighing, self.chosen):
            likely, self.marks[DRAW] = int(weighing.most_probable(self.weighing, -1)), 0
        return int(weighing.most_probable(self.weighing, int(self.candidates.memory[likely])))

    def _look(self, posterior: Array) -> None:
        """A look for a misfit: whether no memory, with its most probable exponent, explains what was kept."""
        k = self.marks[LOOKS] = self.marks[LOOKS] + 1
        level, steps = FALSE_ALARM * 3.0 / ((k + 2.0) * (k + 3.0)), int(self.marks[STEPS])
        self.probing[LAST_LOOK] = steps
        ends = [(0, steps)] if steps <= 2 * KEPT else [(0, KEPT), (steps - KEPT, steps)]
        past, best = [self._past(*end) for end in ends], dict[Any, Model]()
        for j in np.argsort(-posterior, kind="stable"):
            if posterior[j] > posterior.max() - UNLIKELY:
                best.setdefault(self.model(j).memory, self.model(j))
        fresh = self.probing[CONTINUED] == 0
        models = itertools.islice(best.values(), LOOKED_AT)
        found = all(Misfit(past, self.A0, *model, fresh=fresh).p_value() < level for model in models)
        self.marks[FOUND] = self.marks[FOUND] + 1 if found else 0
        if self.marks[FOUND] >= IN_A_ROW:
            self.marks[TOLD] = 1
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
        self._begin(self.alive[kept])
        for name in Estimator._fields:
            getattr(self.candidates, name)[...] = getattr(before, name)[kept]
        self.candidates.residual[...] = before.residual[:, kept]
        same = np.flatnonzero(self.alive == at)
        self.chosen = int(same[0]) if len(same) else -1
        self.posterior[:] = posterior[kept]
        return self.posterior

    def _offer_more(self, largest: int, around: int) -> None:
        """More memories beside those alive, as of `Grid.offer`; all learn anew from what was kept."""
        alive, before, now = {self.model(j) for j in range(len(self.alive))}, self.grid.models, self.past
        if around == self.grid.around:
            self.marks[FOUND] = 0  # what those who were offered before do not explain the others may
        self.grid.offer(largest, around)
        alive |= set(self.grid.models) - set(before)
        self._offer(np.array([j for j, model in enumerate(self.grid.models) if model in alive]))
        self.marks[OFFERS] += 1
        self.marks[DRAW] = 0
        steps = int(self.marks[STEPS])
        past = self._past(max(0, steps - KEPT), steps)
        if steps > KEPT:  # what came before is not known
            past.seen[: min(self.grid.forgets(self.alive), KEPT // 2)] = False
        features = np.zeros((1, self.features.shape[1]))
        for action, y, known in zip(*past[:3], strict=True):
            if known:
                candidate_features(self.candidates, self.past, self.recent, action[None], features)
                absorb_reward(self.candidates, features[0], float(y))
            self._push(action[None], [-1])
        self.past[:] = now

    def continue_from(self, before: Policy) -> None:
        if isinstance(before, AutoPolicy):
            self._push(before.recent, before.arms)
            self.past[:] = before.past
            self.probing[CONTINUED] = 1
            played = played_actions(before.block)
            self._push(played, before.picked[: len(played)])

    # --- its state --------------------------------------------------------------------------------------

    def state(self) -> dict[str, Array]:
        arrays: dict[str, Any] = {f"block.{name}": a for name, a in self.block._asdict().items()}
        for name in (*Estimator._fields, "residual"):
            arrays[f"candidates.{name}"] = getattr(self.candidates, name)
        for name in ("recent", "arms", "past", "picked", "features", "windows", "marks", "probing"):
            arrays[name] = getattr(self, name)
        arrays |= {f"kept.{name}": array for name, array in self.kept._asdict().items()}
        return arrays | self.planner.state()

    def cursor(self) -> list[int]:
        return [self.grid.largest, self.grid.around, self.chosen, *map(int, self.alive)]

    def set_cursor(self, cursor: list[int]) -> None:
        largest, around, chosen, *alive = map(int, cursor)
        self.grid.offer(largest, around)
        offered = len(self.grid.models)
        if alive != sorted(set(alive)) or not alive or not (alive[0] >= 0 and alive[-1] < offered):
            raise ValueError(f"{len(alive)} of {offered} candidates that nobody offers")
        if not 0 <= chosen < len(alive):
            raise ValueError(f"one of {len(alive)} candidates must be chosen, got {chosen}")
        self._offer(np.array(alive))
        self._use(chosen)

    def check(self, changed: bool = False) -> None:
        super().check(changed)
        self.planner.check()
        if not ((self.marks >= 0).all() and (self.probing >= 0).all()) or (self.arms < -1).any():
            raise ValueError("steps and arms must be counted from 0 on")
        if not (np.isfinite(self.past).all() and (self.past == self.past.transpose(0, 2, 1)).all()):
            raise ValueError("what was played must be symmetric matrices")
