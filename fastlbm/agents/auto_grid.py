"""The models that Auto weighs: owns which (m, gamma, decay) are on offer, and what they begin with."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .._base.types import Array
from ..kernels.estimator import make_estimator
from ..kernels.evidence import CandidateSet
from ..kernels.fading import PAPER, Variant, reach_of, tail_of, total_weight, turn_of_memory
from ..kernels.powers import eigenvalue_floor
from ..kernels.rewards import gram_scale
from ..kernels.weighing import ENDLESS, LARGEST
from ..model.memory_matrix import check_memory_matrix

#: m, and the decay.
Memory = tuple[float, float]
#: Most memories offered.
MOST = 64
#: What is left of an action when a memory without end is taken to have forgotten it, where nothing is known
#: of what came before.
FORGOTTEN = 1e-3
#: How likely a memory that fades is at first, beside one that does not.
FADES = 0.01
#: Memories that fade and end, which are offered when there is a sign.
ENDING = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16)


class Model(NamedTuple):
    """What a candidate believes; m may be infinite where decay < 1."""

    m: float
    gamma: float
    decay: float = 1.0

    @property
    def memory(self) -> Memory:
        """What candidates share who differ in the exponent alone."""
        return self.m, self.decay

    @property
    def turn(self) -> int:
        """m, or about how many actions count where there is no end."""
        return turn_of_memory(self.decay) if self.m == math.inf else int(self.m)

    @property
    def window(self) -> int:
        """m, or fewer of the last actions if they count nearly as all do: what plans on arms go through."""
        return int(self.m) if self.decay == 1.0 else int(min(self.m, tail_of(self.decay)))

    @property
    def forgets(self) -> int:
        """m, or the steps after which so little is left of an action that it does not matter."""
        return int(self.m) if self.m < math.inf else math.ceil(math.log(FORGOTTEN) / math.log(self.decay))

    @property
    def variant(self) -> Variant:
        """How the memory differs from the paper's."""
        return Variant(self.decay) if self.decay < 1.0 else PAPER

    @property
    def weight(self) -> float:
        """The most that actions add to an eigenvalue."""
        return total_weight(self.m, self.decay)


class Grid:
    """The models on offer: memories by exponents, each model once, without those that A0 does not allow.

    `memories` are pairs (m, decay). `grows` says whether larger m may be offered, with the decays of those
    that end; `fading` are the decays of memories, with an end and without, that may be when there is a sign.
    """

    def __init__(
        self,
        memories: Iterable[Memory],
        gammas: Sequence[float],
        A0: Array,
        *,
        grows: bool,
        fading: Sequence[float],
    ) -> None:
        self.A0, self.gammas, self.grows, self.fading = A0, tuple(gammas), grows, tuple(fading)
        self.memories = tuple(memories)
        self.models = self._told = self._models(self.memories, self.gammas)
        self.decays = sorted({*fading, *(model.decay for model in self.models if model.m == math.inf)})
        self.largest = int(max((m for m, *_ in self.models if m < math.inf), default=0))
        self.least = self.largest
        #: The number of the exponent around which memories fade and end, -1 if none is on offer.
        self.around = -1

    def __deepcopy__(self, memo: dict[int, Any]) -> Grid:
        return copy.copy(self)  # what it holds is replaced, never changed

    def _models(self, memories: Iterable[Memory], gammas: Sequence[float]) -> list[Model]:
        return list(_models_of(tuple(memories), tuple(gammas), self.A0.tobytes(), len(self.A0)))

    def offer(self, largest: int, around: int) -> None:
        """Memories up to `largest` are on offer, and those that fade; if they end, `around` an exponent."""
        if not (largest == self.least or (self.grows and self.least < largest <= MOST)):
            raise ValueError(f"memories up to {largest} cannot be on offer")
        if not (around == -1 or (self.fading and 0 <= around < len(self.gammas))):
            raise ValueError(f"memories that fade cannot be on offer around exponent {around}")
        self.largest, self.around = largest, around
        own = list(dict.fromkeys(decay for m, decay in self.memories if 1 < m < math.inf)) or [1.0]
        longer = [(m, decay) for m in range(self.least + 1, largest + 1) for decay in own]
        fading = list[Model]()
        if around >= 0:
            at = self.gammas[around]
            # With a weight of 1 for each of its actions a memory that fades seems to be a milder one.
            low, high = (at - 2.0, at + 1.0) if at <= 0.0 else (at - 1.0, at + 2.0)
            near = [gamma for gamma in self.gammas if low <= gamma <= high]
            fading = self._models([(m, decay) for m in ENDING for decay in self.fading], near)
            fading += self._models([(math.inf, decay) for decay in self.fading], self.gammas)
        found = [*self._told, *fading, *self._models(longer, self.gammas)]
        self.models = list(dict.fromkeys(found))

    def longer(self) -> tuple[int, int]:
        """What to offer when the largest memory is likely."""
        return min(2 * self.largest, MOST), self.around

    def fainter(self, likely: Model) -> tuple[int, int]:
        """What to offer when memories that fade are likely, or when none explains the rewards.

        A long window is more like a memory without end than like a short one: longer ones come as well.
        """
        largest = self.longer()[0] if likely.m == math.inf else self.largest
        return largest, int(np.argmin(np.abs(np.array(self.gammas) - likely.gamma)))

    @property
    def may_fade(self) -> bool:
        """Whether more memories that fade may be offered."""
        return len(self.fading) > 0 and self.around < 0

    @property
    def recent(self) -> int:
        """How many of the last actions are kept."""
        return max(1, *(model.window if model.m == math.inf else int(model.m) for model in self.models))

    @property
    def span(self) -> int:
        """How many of the last actions decide what a reward teaches, or will, all below rounding aside."""
        return max(MOST if self.grows else self.recent, *map(reach_of, self.decays), 0)

    def forgets(self, alive: Any) -> int:
        """The steps after which what came before matters to none of those alive."""
        return max(self.models[int(j)].forgets for j in alive)

    def edge(self, alive: Any) -> Any:
        """Of those alive (N,), who is a sign that more must be offered: see `weighing.more_to_offer`."""
        grows = self.grows and self.largest < MOST
        found = np.zeros(len(alive), dtype=np.int64)
        for k, j in enumerate(alive):
            m, _, decay = self.models[j]
            if m == math.inf:
                found[k] = ENDLESS if self.may_fade else 0
            elif grows and m == self.largest and (decay == 1.0 or not self.fading):
                found[k] = LARGEST
        return found

    def candidates(self, alive: Any, lam: float) -> tuple[CandidateSet, Array]:
        """Those alive, numbers of models, who have seen nothing, and the logarithm of their prior."""
        chosen, N = [self.models[j] for j in alive], len(alive)
        ends = [0 if model.m == math.inf else int(model.m) for model in chosen]
        offered = Counter(model.memory for model in self.models)
        numbers = {memory: k for k, memory in enumerate(offered)}
        one = make_estimator(len(self.A0), lam)
        candidates = CandidateSet(
            m=np.array(ends),
            gamma=np.array([model.gamma for model in chosen]),
            decay=np.array([model.decay for model in chosen]),
            memory=np.array([numbers[model.memory] for model in chosen]),
            endless=np.array([self.decays.index(x.decay) if x.m == math.inf else -1 for x in chosen]),
            decays=np.array(self.decays),
            c=np.array([gram_scale(self.A0, m) for m in ends]),
            floor=np.array([eigenvalue_floor(self.A0, x.weight, x.gamma) for x in chosen]),
            A0=self.A0,
            **{name: np.repeat(array[None], N, axis=0) for name, array in one._asdict().items()},
            residual=np.zeros((2, N)),
        )
        # Every window is as likely as the others, and so is every exponent of one.
        shares = np.array([1.0 if model.decay == 1.0 else FADES for model in chosen])
        return candidates, np.log(shares / [offered[model.memory] for model in chosen])


@lru_cache(maxsize=64)  # thousands of users have the same
def _models_of(
    memories: tuple[Memory, ...], gammas: tuple[float, ...], matrix: bytes, d: int
) -> tuple[Model, ...]:
    A0 = np.frombuffer(matrix).reshape(d, d)
    plain = bool((np.eye(len(A0)) == A0).all())
    models: dict[Model, None] = {}
    for m, decay in memories:
        for gamma in gammas:
            # Without memory the power of the identity is the identity, whatever gamma.
            empty = gamma == 0.0 or (m == 0 and plain)
            # The last action counts once, whatever the decay.
            model = Model(0, 0.0) if empty else Model(m, gamma, decay if m > 1 else 1.0)
            try:
                check_memory_matrix(A0, len(A0), model.weight, model.gamma, differentiable=model.m > 0)
            except ValueError:
                continue
            models[model] = None
    return tuple(models)
