"""Auto: owns the learner that is told nothing: its parameters, and the grid that it offers itself."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.types import Array
from .._base.values import writable
from ..model.actions import ActionSet
from ..model.lbm import LBM
from .auto_grid import Grid
from .auto_policy import AutoPolicy
from .base import LearningAgent
from .policy import Policy, Rng

#: The grid, unless told: memories, exponents in steps of a quarter, decays of memories without end, and those
#: that are on offer when there is a sign that the memory fades.
MEMORIES = (*range(9), math.inf)
GAMMAS = tuple(k / 4 for k in range(-20, 13))
DECAYS = (0.5, 0.7, 0.9)
FADING = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Auto(LearningAgent):
    """Told nothing: m, gamma, whether the memory fades, the noise and the horizon come from the data.

    Every candidate (m, gamma) of a grid keeps a regression on all rewards, as in `EvidenceSelector`, with the
    noise and the size of theta beside it integrated out; all windows are as likely at first. Each plan is
    that of `Rolling` for a memory that is drawn from the posterior, anew when there are a tenth more steps,
    with its most probable exponent: plans of a memory that is too long never show what a shorter one earns.
    On 60 random instances, two runs each of 750 steps (`python -m bench choices`), that collects 0.932 of the
    best cycle, in the worst run 0.825; the most probable candidate 0.878 and 0.632, one that is drawn, memory
    and exponent, 0.929 and 0.781.

    `memories`, `gammas` and `decays` restrict the grid, by default windows of 0 to 8 actions and exponents of
    -5 to 3 in steps of a quarter, and memories without end whose decay is 0.5, 0.7 or 0.9, each a hundredth
    as likely at first as a window. If the largest window on offer is the most probable, twice as many are
    offered, up to 64. If a memory without end is, or if a look for a misfit finds one, more decays are, from
    0.5 to 0.95, memories of 2 to 16 actions that fade by them, and twice as many windows. Who is offered
    later learns from the last thousand rewards. With `memories`, which may hold `math.inf`, there is nothing
    else on offer: windows, and the three decays where there is no end; with `decays` each m has all of them,
    infinite ones those below 1. `decays=[1.0]` is the paper's model alone. Candidates whose evidence is far
    behind are given up and cost nothing. `lam`, `delta`, `subgaussian` and `radius` are as for `Rolling`; a
    number for `subgaussian` is taken as sigma by the evidence as well.

    On ten memories that fade without end Auto has 0.979 of what Rolling collects in 3,000 steps that is told
    all (`python -m bench memories`; at least 0.957), on ten that fade and end 0.970 (at least 0.917). On arms
    rewards teach the same, but plans go through the last actions alone that are not nearly forgotten.

    Now and then it plays a probe, see agents/probes.py: 6 or 9 steps that nobody planned, first after 75 and
    then after 2.2 times as many each time, 39 of the first 2,000. They show what a wrong model that is right
    on its own plans would hide, and cost 0.011 of the reward of 1,500 steps (on 30 random instances there is
    0.948 of the best cycle, without them 0.959), and less of longer runs: their number grows with ln T.

    If F-tests say that what no probable memory explains is not noise (see agents/misfit.py), because the
    rewards follow no model of this form, that is told once as a warning, and from then on by
    `live.explain()`, `live.details()` and `run.details`; there are no more probes then. Where a candidate is
    right the probability of that is about 0.02 at most, as far as F-tests hold for actions that depend on
    rewards, and the harmonic mean of p-values for tests that depend on each other. There are looks after
    290, 464, .. steps, each after 1.6 times as many, at the first and the last thousand steps, and a second
    one 30 steps after one that found something. A model that is wrong but explains even probes to within the
    noise is not noticed: `python -m bench misfits` has how often others are.

    Proven: what `EvidenceSelector` says of the evidence, for candidates that are never given up. Not proven:
    that the truth is found, which needs actions that tell candidates apart, and any bound on the regret.

    Use it unless you know m and gamma.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    >>> run = lbm.run(env, lbm.Auto(), T=300, seed=0)
    >>> int(run.details["m"][-1]), bool(run.reward[-1] > 190.0)
    (1, True)
    """

    _LATER: ClassVar[dict[str, Any]] = {"decays": None}

    horizon: int | None
    memories: tuple[int | float, ...] | None
    gammas: tuple[float, ...] | None
    lam: float
    delta: float | None
    subgaussian: float | None
    radius: str
    A0: Array | None
    decays: tuple[float, ...] | None

    def __init__(
        self,
        horizon: int | None = None,
        memories: Iterable[float] | None = None,
        gammas: Iterable[float] | None = None,
        lam: float = 1.0,
        delta: float | None = None,
        subgaussian: float | None = None,
        radius: str = "estimate",
        A0: ArrayLike | None = None,
        decays: Iterable[float] | None = None,
    ) -> None:
        self._set_learning(
            horizon=horizon, lam=lam, delta=delta, subgaussian=subgaussian, radius=radius, any_time=True
        )
        if memories is not None:
            memories = tuple(validation.memory("memories", m, allow_inf=True) for m in memories)
        if gammas is not None:
            gammas = tuple(validation.real("gammas", gamma) for gamma in gammas)
        if decays is not None:
            decays = tuple(_decay(decay) for decay in decays)
        for name, values in (("memories", memories), ("gammas", gammas), ("decays", decays)):
            if values is not None and (len(values) == 0 or len(set(values)) < len(values)):
                raise ValueError(f"{name} must be distinct numbers, at least one, got {list(values)}")
        if memories is not None and math.inf in memories and decays is not None and min(decays) == 1.0:
            raise ValueError("decays must hold one below 1 where memories are infinite, got [1.0]")
        if A0 is not None:
            d = len(validation.array("A0", A0, (None, None)))
            A0 = validation.symmetric("A0", validation.array("A0", A0, (d, d)))
        self._set(memories=memories, gammas=gammas, A0=A0, decays=decays)

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> Policy:
        if self.A0 is not None and len(self.A0) != actions.d:
            raise ValueError(f"A0 must have the dimension of the actions, {actions.d}, got {len(self.A0)}")
        A0 = np.eye(actions.d) if self.A0 is None else writable(self.A0)
        gammas = GAMMAS if self.gammas is None else self.gammas
        free = self.memories is None
        grid = Grid(
            self._offered(), gammas, A0, grows=free, fading=FADING if free and self.decays is None else ()
        )
        return AutoPolicy(self, actions, grid, rng=rng, step=step)

    def _offered(self) -> list[tuple[float, float]]:
        """The memories on offer, with their decays."""
        found: list[tuple[float, float]] = []
        for m in MEMORIES if self.memories is None else self.memories:
            decays = self.decays or (DECAYS if m == math.inf else (1.0,))
            found += [(m, decay) for decay in decays if m < math.inf or decay < 1.0]
        return found


def _decay(value: Any) -> float:
    try:
        return validation.decay(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"decays must hold decays: {error}") from None
