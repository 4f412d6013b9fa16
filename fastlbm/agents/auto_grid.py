"""The models that Auto weighs: owns which (m, gamma, decay) are on offer, and what they begin with."""

from __future__ import annotations

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
from ..model.memory_matrix import check_memory_matrix

#: Most memories offered.
MOST = 64
#: What is left of an action when a memory without end is taken to have forgotten it, where nothing is known
#: of what came before.
FORGOTTEN = 1e-3


class Model(NamedTuple):
    """What a candidate believes; m may be infinite where decay < 1."""

    m: float
    gamma: float
    decay: float = 1.0

    @property
    def memory(self) -> tuple[float, float]:
        """What candidates share who differ in the exponent alone."""
        return self.m, self.decay

    @property
    def turn(self) -> int:
        """m, or about how many actions count where there is no end."""
        return turn_of_memory(self.decay) if self.m == math.inf else int(self.m)

    @property
    def window(self) -> int:
        """m, or the last actions that count nearly as all do: what plans on arms go through."""
        return tail_of(self.decay) if self.m == math.inf else int(self.m)

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
    that end.
    """

    def __init__(
        self, memories: Iterable[tuple[float, float]], gammas: Sequence[float], A0: Array, *, grows: bool
    ) -> None:
        self.A0, self.gammas, self.grows = A0, tuple(gammas), grows
        self.memories = tuple(memories)
        self.models = self.told = self._models(self.memories)
        self.decays = sorted({model.decay for model in self.models if model.m == math.inf})

    def _models(self, memories: Iterable[tuple[float, float]]) -> list[Model]:
        return list(_models_of(tuple(memories), self.gammas, self.A0.tobytes(), len(self.A0)))

    @property
    def largest(self) -> int:
        """The largest memory of those that end."""
        return _largest(self.models)

    @property
    def recent(self) -> int:
        """How many of the last actions are kept."""
        return max(1, *(model.window for model in self.models))

    @property
    def span(self) -> int:
        """How many of the last actions decide what a reward teaches, or will, all below rounding aside."""
        return max(MOST if self.grows else self.recent, *map(reach_of, self.decays), 0)

    @property
    def forgets(self) -> int:
        """The steps after which what came before matters to none."""
        after = (math.ceil(math.log(FORGOTTEN) / math.log(decay)) for decay in self.decays)
        return max(self.largest, *after, 0)

    def grow(self, top: int) -> None:
        """Memories up to `top` are on offer, those that were not told behind the others."""
        told = _largest(self.told)
        if not (top == told or (self.grows and told < top <= MOST)):
            raise ValueError(f"memories up to {top} cannot be on offer")
        decays = list(dict.fromkeys(decay for m, decay in self.memories if 1 < m < math.inf)) or [1.0]
        more = [(m, decay) for m in range(told + 1, top + 1) for decay in decays]
        self.models = self.told + self._models(more)

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
        # Every memory is as likely as the others, and so is every exponent of one.
        return candidates, -np.log([float(offered[model.memory]) for model in chosen])


def _largest(models: Sequence[Model]) -> int:
    return int(max((model.m for model in models if model.m < math.inf), default=0))


@lru_cache(maxsize=64)  # thousands of users have the same
def _models_of(
    memories: tuple[tuple[float, float], ...], gammas: tuple[float, ...], matrix: bytes, d: int
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
