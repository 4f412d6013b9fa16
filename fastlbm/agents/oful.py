"""OFUL: owns the learner that does not know of memory."""

from __future__ import annotations

from dataclasses import dataclass

from .._base import validation
from ..kernels.optimism import O3M
from ..model.actions import ActionSet
from ..model.lbm import LBM
from .base import LearningAgent
from .learners import LearnerPolicy, Task, make_learner
from .policy import Rng


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class OFUL(LearningAgent):
    """OFUL (Abbasi-Yadkori, Pal and Szepesvari 2011), which does not know of memory: O3M with m = 0.

    On the ball its optimistic action is solved for, not searched. With `switch` an action is repeated until
    much was learned: quick, but where it rots OFUL earns far less than without.

    Use it where nothing rots or rises, or to see what ignoring the memory costs.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=0)
    >>> bool(lbm.run(env, lbm.OFUL(horizon=500), T=500).reward[-1] > 450.0)
    True
    """

    horizon: int
    lam: float
    delta: float | None
    subgaussian: float | None
    switch: float
    radius: str

    def __init__(
        self,
        horizon: int,
        lam: float = 1.0,
        delta: float | None = None,
        subgaussian: float | None = 1.0,
        switch: float = 0.0,
        radius: str = "trace",
    ) -> None:
        self._set_learning(horizon=horizon, lam=lam, delta=delta, subgaussian=subgaussian, radius=radius)
        self._set(switch=validation.real("switch", switch, low=0.0))

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> LearnerPolicy:
        task = Task(kind=O3M, m=0, gamma=0.0, L=1, A0=None, switch=self.switch)
        return make_learner(self, task, actions, rng=rng, step=step)
