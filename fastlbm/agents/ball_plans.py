"""Plans on the ball: owns what to play next after a history, for one memory size."""

from __future__ import annotations

from .._base.types import Array
from .._base.values import writable
from ..kernels.block_state import BlockState
from ..kernels.fading import PAPER, Fading, Variant, actions_kept, total_weight
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
    set_recent,
    start_from,
)
from ..model.memory_matrix import check_memory_matrix
from ..planning.effort import RollingEffort
from .policy import Rng


class BallPlans:
    """What to play next on the ball, after a history: the outlook and the effort of one memory size."""

    def __init__(
        self,
        A0: Array,
        m: float,
        gamma: float,
        *,
        ahead: int,
        play: int,
        effort: RollingEffort,
        variant: Variant = PAPER,
    ) -> None:
        d = len(A0)
        weight = total_weight(m, variant.decay)
        check_memory_matrix(A0, d, weight, gamma, differentiable=True, variant=variant)
        self.A0, self.m, self.variant, self.ahead, self.play = A0, m, variant, ahead, play
        self.memory, self.effort = make_memory(writable(A0), m, gamma, variant), effort
        self.outlook = make_outlook(*self.memory, ahead, effort.longest)
        forget_cycle(self.outlook)

    @property
    def span(self) -> int:
        """How many of the last actions it must be told: m, or all that are not below rounding, see there."""
        return actions_kept(self.m, self.variant.decay)

    def use(self, gamma: float, grown: float | None = None) -> None:
        """Plan for this exponent from now on, with a new cycle, unless told by how much ln det V differs."""
        memory, form = make_memory(writable(self.A0), self.m, gamma, self.variant)
        if isinstance(form, Fading):
            form = form._replace(past=self.outlook.past)
        self.memory = memory, form
        if grown is None:
            forget_cycle(self.outlook)
        else:
            self.outlook.log_det[0] += grown

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
                thrifty=self.effort.thrifty,
                cycles=self.effort.cycle._replace(stop=stop),
                steps=self.effort.steps._replace(stop=stop),
            ),
        )

    def plan(self, learner: Learner, recent: Array, past: Array, block: BlockState, rng: Rng) -> None:
        """Start a block after the actions `recent` (m, d), or where a memory without end holds `past`."""
        if self.memory[0].endless:
            self.outlook.past[:] = past
        else:
            set_recent(self.memory[0], self.outlook, recent)
        plan_block_from_here(self.planner(learner), block, rng)

    def played(self, steps: int) -> None:
        """So many actions of the last plan were played."""
        move_on(self.outlook, steps)

    def start_from(self, recent: Array) -> None:
        """The actions `recent`, as of `set_recent`, were played last, by anybody, and nothing is planned."""
        start_from(self.memory[0], self.outlook, recent)

    def state(self) -> dict[str, Array]:
        """Everything that changes, by name."""
        parts = self.outlook._asdict()
        kept = parts if self.memory[0].endless else {name: parts[name] for name in parts if name != "past"}
        return {f"outlook.{name}": array for name, array in kept.items()}

    def check(self) -> None:
        """Raise a `ValueError` if nothing can be planned from its state."""
        check_outlook(self.outlook, self.ahead)
