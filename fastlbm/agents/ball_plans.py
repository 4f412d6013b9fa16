"""Plans on the ball: owns what to play next after a history, for one memory size."""

from __future__ import annotations

from .._base.types import Array
from .._base.values import writable
from ..kernels.block_state import BlockState
from ..kernels.learning import Learner
from ..kernels.memory import make_memory
from ..kernels.rolling import (
    RollingConfig,
    RollingPlanner,
    check_outlook,
    forget_cycle,
    make_outlook,
    move_on,
    plan_block_from_here,
    start_from,
)
from ..model.memory_matrix import check_memory_matrix
from ..planning.effort import rolling_effort
from .policy import Rng


class BallPlans:
    """What to play next on the ball, after a history: the outlook and the effort of one memory size."""

    def __init__(self, A0: Array, m: int, gamma: float, *, ahead: int, play: int, rare: bool = False) -> None:
        d = len(A0)
        check_memory_matrix(A0, d, m, gamma, differentiable=True)
        self.A0, self.m, self.effort = A0, m, rolling_effort(d, m, rare)
        self.ahead, self.play = ahead, play
        self.outlook = make_outlook(m, d, ahead, self.effort.longest)
        self.use(gamma)

    def use(self, gamma: float) -> None:
        """Plan for this exponent from now on."""
        self.memory = make_memory(writable(self.A0), self.m, gamma)
        forget_cycle(self.outlook)

    def planner(self, learner: Learner) -> RollingPlanner:
        """The compiled planner of a learner."""
        stop = learner.config.first.stop
        memory, form = self.memory
        return RollingPlanner(
            learner=learner,
            memory=memory,
            A0=form,
            outlook=self.outlook,
            rolling=RollingConfig(
                ahead=self.ahead,
                play=self.play,
                patience=self.effort.patience,
                cycles=self.effort.cycle._replace(stop=stop),
                steps=self.effort.steps._replace(stop=stop),
            ),
        )

    def plan(self, learner: Learner, recent: Array, block: BlockState, rng: Rng) -> None:
        """Start a block after the actions `recent` (m, d)."""
        self.outlook.recent[:] = recent
        plan_block_from_here(self.planner(learner), block, rng)

    def played(self, steps: int) -> None:
        """So many actions of the last plan were played."""
        move_on(self.outlook, steps)

    def start_from(self, recent: Array) -> None:
        """The actions `recent` (m, d) were played last, by anybody, and nothing is planned."""
        start_from(self.outlook, recent)

    def state(self) -> dict[str, Array]:
        """Everything that changes, by name."""
        return {f"outlook.{name}": array for name, array in self.outlook._asdict().items()}

    def check(self) -> None:
        """Raise a `ValueError` if nothing can be planned from its state."""
        check_outlook(self.outlook)
