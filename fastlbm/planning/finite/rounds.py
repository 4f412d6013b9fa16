"""Search by rounds: owns which memories powers with poles serve, and how a set of arms is searched then."""

from __future__ import annotations

import numpy as np

from ..._base.interrupts import interruptible
from ...kernels.arm_annealing import make_catalogue
from ...kernels.arm_poles import GRID, fit_poles
from ...kernels.arm_rounds import search_rounds
from ...kernels.arm_worth import Poles
from ...kernels.memory import GRAM_FROM, isotropic_scale
from ...kernels.optimism import Belief
from ...kernels.powers import POWER
from ..effort import arm_seconds, round_arms
from ..plans import Index
from .states import Model

#: Memories that are not too long for dynamic programs of few arms.
_LONGEST = 6
#: An error of the power that is small enough, relative to its largest value; and one that still serves.
_FINE, _COARSE = 6e-4, 5e-3
#: Poles at the most.
_MOST = 3


def poles_of(model: Model) -> Poles | None:
    """x^gamma as a sum of inverses for all memory matrices of a model; None if a few poles do not serve.

    They do for rotting, A0 = c I and a memory that does not fade, where arms are not large beside A0.

    >>> poles = poles_of(Model(np.eye(3), m=2, gamma=-1.0, A0=None))
    >>> poles.shifts, poles.weights
    (array([1.]), array([1.]))
    """
    variant = model.variant
    if not (1 <= model.m <= _LONGEST and model.gamma < 0.0):
        return None
    if variant.decay < 1.0 or variant.response != POWER:
        return None
    c = isotropic_scale(model.params.A0) or 0.0
    with np.errstate(all="ignore"):
        most = c + model.m * float((model.arms**2).sum(-1).max())
    if not (c >= GRAM_FROM and most < 1e3 * c):
        return None
    error = np.inf
    for count in range(1, _MOST + 1):
        if error > _FINE:
            shifts, weights, error = fit_poles(model.gamma, c, most, count, GRID)
    return Poles(shifts=c + shifts, weights=weights) if error <= _COARSE else None


def find_by_rounds(
    model: Model,
    belief: Belief,
    n: int,
    poles: Poles,
    warm: Index,
    rng: np.random.Generator,
    times: float = 1.0,
) -> tuple[Index, float]:
    """The best n arms that the search finds, from `warm` (k, n) as well, and about what they are worth.

    It may take so many `times` as long as a plan does.
    """
    arms = np.ascontiguousarray(model.arms)
    catalogue = make_catalogue(arms, belief.theta, belief.V_inv, belief.beta)
    count, bonus = len(poles.shifts), belief.beta > 0.0
    effort = round_arms(model.d, model.m, model.K, n, poles=count, bonus=bonus)
    effort = effort._replace(budget=times * effort.budget, stop=np.zeros(1, dtype=np.int64))
    found, value = interruptible(
        lambda: search_rounds(catalogue, poles, model.m, n, warm, effort, rng),
        stop=lambda on: effort.stop.fill(on),
        seconds=2.0 * times * arm_seconds(model.d),
    )
    return found.astype(np.intp), float(value)
