"""Baselines: own the agents that others are compared with. None knows of memory; all play on every set."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base import validation
from .._base.types import Array
from ..kernels.baselines import EpsilonPlanner, RandomPlanner, ThompsonPlanner
from ..kernels.estimator import make_estimator
from ..kernels.learning import Learner
from ..kernels.optimism import O3M
from ..model.actions import ActionSet
from ..model.lbm import LBM
from .base import Agent, LearningAgent
from .learners import CompiledLearner, Task, make_config
from .policy import CompiledPolicy, Policy, Rng


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class LinTS(LearningAgent):
    """Linear Thompson sampling, which does not know of memory: the best action for a theta that is drawn.

    Theta is drawn from N(theta_hat, v^2 V^-1) at every step. By default v is the size of the noise, which
    makes this the posterior for a prior N(0, v^2/lam I): `subgaussian`, or estimated from the rewards if that
    is None. With `inflate` v is OFUL's radius for delta/(4 horizon), as Abeille and Lazaric (2017) need it to
    prove a regret of order d^(3/2) sqrt(T) in a world without memory; the posterior, of which no such
    bound is known for every theta, earns more. `lam`, `delta` (1/horizon by default) and `radius` are as for
    `O3M`.

    Use it where nothing rots or rises, or as a baseline that draws where OFUL is optimistic.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=0, actions=lbm.Finite([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]))
    >>> bool(lbm.run(env, lbm.LinTS(horizon=500), T=500).reward[-1] > 450.0)
    True
    """

    horizon: int | None
    lam: float
    delta: float | None
    subgaussian: float | None
    inflate: bool
    radius: str

    def __init__(
        self,
        horizon: int | None = None,
        lam: float = 1.0,
        delta: float | None = None,
        subgaussian: float | None = None,
        inflate: bool = False,
        radius: str = "determinant",
    ) -> None:
        self._set_learning(
            horizon=horizon, lam=lam, delta=delta, subgaussian=subgaussian, radius=radius, any_time=True
        )
        if inflate and horizon is None:
            raise ValueError("horizon must be a number of steps for inflate=True, got None")
        self._set(inflate=bool(inflate))

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        learner = _learner(self, actions.d)
        if self.inflate and self.horizon is not None:
            config = learner.config
            sure = config.confidence + 2.0 * math.log(4.0 * self.horizon)
            learner = learner._replace(config=config._replace(confidence=sure))
        planner = ThompsonPlanner(learner, actions.sets(), self.inflate)
        return BaselineLearner(learner, planner, rng=rng, step=step)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class EpsilonGreedy(Agent):
    """Epsilon-greedy, which does not know of memory: the best action for the estimate, or sometimes any.

    `epsilon` is the probability of any action, a uniform member of the set. None is the schedule
    min(1, 5 d/t) at step t, that of Auer, Cesa-Bianchi and Fischer (2002) with the dimension in the place of
    the number of arms and one constant for what they take from the gaps. `lam` regularises the estimate.

    Use it as a simple baseline, or where nothing rots or rises.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=0, actions=lbm.Finite([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]))
    >>> bool(lbm.run(env, lbm.EpsilonGreedy(), T=500).reward[-1] > 450.0)
    True
    """

    epsilon: float | None
    lam: float

    def __init__(self, epsilon: float | None = None, lam: float = 1.0) -> None:
        if epsilon is not None:
            epsilon = validation.real("epsilon", epsilon, low=0.0, high=1.0)
        lam = validation.real("lam", lam, low=1.0 / validation.LARGEST, high=validation.LARGEST)
        self._set(epsilon=epsilon, lam=lam)

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        learner = _learner(LinTS(lam=self.lam), actions.d)
        planner = EpsilonPlanner(learner, actions.sets(), -1.0 if self.epsilon is None else self.epsilon)
        return BaselineLearner(learner, planner, rng=rng, step=step)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Random(Agent):
    """Plays a uniform member of the set at every step.

    Use it as the least that a learner should earn.

    >>> import fastlbm as lbm
    >>> live = lbm.Random().start(lbm.Finite([[1.0, 0.0], [0.0, 1.0]]), seed=0)
    >>> sorted({tuple(live.act().tolist()) for _ in range(20)})
    [(0.0, 1.0), (1.0, 0.0)]
    """

    def __init__(self) -> None:
        pass

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        return RandomPolicy(actions, rng, step)


def _learner(agent: LearningAgent, d: int) -> Learner:
    """A regression on the actions themselves."""
    task = Task(kind=O3M, m=0, gamma=0.0, L=1, A0=None, switch=0.0)
    return Learner(make_config(agent, task, d, 1.0), make_estimator(d, agent.lam), np.zeros((1, d)))


class BaselineLearner(CompiledLearner):
    """LinTS and EpsilonGreedy at work."""

    def __init__(self, learner: Learner, planner: ThompsonPlanner | EpsilonPlanner, rng: Rng, step: int):
        super().__init__(learner, 1, learner.features.shape[1], rng=rng, step=step)
        self.planner = planner

    def features_of(self, before: Array, actions: Array) -> Array:
        return actions


class RandomPolicy(CompiledPolicy):
    """Random at work."""

    def __init__(self, actions: ActionSet, rng: Rng, step: int) -> None:
        super().__init__(1, actions.d, rng, step)
        self.planner = RandomPlanner(actions.sets())
