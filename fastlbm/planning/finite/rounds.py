"""Search by rounds: owns which memories powers with poles serve, and how a set of arms is searched then."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..._base.interrupts import interruptible
from ..._base.types import Array
from ...kernels.arm_annealing import make_draws
from ...kernels.arm_beams import kinds_of
from ...kernels.arm_catalogue import make_catalogue
from ...kernels.arm_grounds import Ground, RoundEffort
from ...kernels.arm_poles import GRID, fit_poles
from ...kernels.arm_rounds import search_rounds
from ...kernels.arm_screens import group_arms
from ...kernels.arm_search import ArmEffort
from ...kernels.arm_spans import spans_pay
from ...kernels.arm_worth import Poles
from ...kernels.memory import GRAM_FROM, isotropic_scale
from ...kernels.optimism import Belief
from ...kernels.powers import POWER
from ..effort import round_arms, round_visit
from ..plans import Index
from .states import Model, ucb

#: Memories that were tried.
_LONGEST = 6
#: An error of the power that is small enough, relative to its largest value; and one that still serves.
_FINE, _COARSE = 6e-4, 5e-3
#: Poles at the most: powers below -4 need four.
_MOST = 4
#: Sets of fewer arms have few good blocks, far apart: the other search finds them more often.
_FEWEST = 16
#: How much of what the best arm earns without memory an arm does at least that comes first, where d > 2m and
#: elsewhere.
_EARNING, _EARNING_LITTLE = 0.3, 0.15
#: How many of all others come first there as well.
_RESTS = 16


def poles_of(model: Model) -> Poles | None:
    """x^gamma as a sum of inverses for all memory matrices of a model; None if a few poles do not serve.

    They do for rotting, A0 = c I and a memory that does not fade, where arms are many and not large
    beside A0.

    >>> poles = poles_of(Model(np.eye(20), m=2, gamma=-1.0, A0=None))
    >>> poles.shifts, poles.weights
    (array([1.]), array([1.]))
    """
    variant = model.variant
    if not (1 <= model.m <= _LONGEST and model.gamma < 0.0 and model.K >= _FEWEST):
        return None
    if variant.decay < 1.0 or variant.response != POWER:
        return None
    c = isotropic_scale(model.params.A0) or 0.0
    with np.errstate(all="ignore"):
        most = c + model.m * float((model.arms**2).sum(-1).max())
    if not (c >= GRAM_FROM and most < 1e3 * c):
        return None
    return _fitted(model.gamma, c, most)


@lru_cache(maxsize=64)
def _fitted(gamma: float, c: float, most: float) -> Poles | None:
    """As few poles as serve between c and `most`, found once: four of them take a millisecond or two."""
    error = np.inf
    for count in range(1, _MOST + 1):
        if error > _FINE:
            shifts, weights, error = fit_poles(gamma, c, most, count, GRID)
    return Poles(shifts=c + shifts, weights=weights) if error <= _COARSE else None


def find_by_rounds(
    model: Model,
    belief: Belief,
    n: int,
    poles: Poles,
    warm: Index,
    rng: np.random.Generator,
    *,
    effort: RoundEffort | None = None,
    before: Array | None = None,
) -> tuple[Index, float]:
    """The best n arms that the search finds, from `warm` (k, n) as well, and about what they are worth.

    They may follow the actions `before` (m, d).
    """
    past = np.zeros((0, model.d)) if before is None else before
    if effort is None:
        effort = round_arms(
            model.d, model.m, model.K, len(past) + n, poles=len(poles.shifts), bonus=belief.beta > 0.0
        )
    effort, head = effort._replace(stop=np.zeros(1, dtype=np.int64)), len(past)
    order, some = np.arange(model.K), model.K
    if head == 0 and (effort.width > 0 or spans_pay(model.d, model.m)):
        order, some = _earning_first(model, belief)
    wide = narrow = ground_of(model, belief, poles, order, past)
    if some < model.K:
        narrow = ground_of(model, belief, poles, order[:some], past)
    starts = np.zeros((len(warm), head + n), dtype=np.int64)
    starts[:, head:] = np.argsort(order)[warm]
    rows = model.K + np.arange(head)
    found, value = interruptible(
        lambda: search_rounds(wide, narrow, poles, model.m, rows, starts, effort, rng),
        stop=lambda on: effort.stop.fill(on),
        seconds=2.0 * effort.budget,
    )
    return order[found[head:]].astype(np.intp), float(value)


def rounds_like(effort: ArmEffort, model: Model, poles: Poles, bonus: bool) -> RoundEffort:
    """Rounds for what the other search does with this effort.

    Looks cost less here, least where d <= 2m: there more of them earn more, elsewhere hardly (measured).
    """
    looks, hot = (3, 0.06) if spans_pay(model.d, model.m) else (4, 0.8 / model.d)
    cycles = effort.cycles * effort.cycle_visits
    visit, _ = round_visit(model.d, model.m, model.K, poles=len(poles.shifts), bonus=bonus)
    share = cycles / (effort.visits + cycles)
    budget = looks * (effort.visits + cycles) * visit
    return RoundEffort(
        budget=budget, cycles=share, mixed=0.5, slow=0.0, sweeps=4, stretch=4, hot=hot, cold=0.01
    )


def ground_of(model: Model, belief: Belief, poles: Poles, numbers: Index, past: Array) -> Ground:
    """The ground of some of the arms, with actions of the past (m, d) or (0, d) behind them."""
    own = np.ascontiguousarray(model.arms[numbers])
    catalogue = make_catalogue(np.concatenate((own, past)), belief.theta, belief.V_inv, belief.beta)
    visit, exact = round_visit(
        model.d, model.m, len(numbers), poles=len(poles.shifts), bonus=belief.beta > 0.0
    )
    return Ground(
        catalogue=catalogue,
        grouped=group_arms(own, catalogue.size),
        K=len(numbers),
        draws=make_draws(np.full(len(numbers), -np.inf)),
        visit=visit,
        exact=exact,
    )


def _earning_first(model: Model, belief: Belief) -> tuple[Index, int]:
    """All arms, and how many come first: those that earn something without memory, beside the best of them.

    Good blocks have nearly no others but for their ends (measured). Where d <= 2m some of all others come
    first as well, to rest with.
    """
    worth = ucb(np.ascontiguousarray(model.arms.T), belief.theta, belief.V_inv, float(belief.beta))
    spans = spans_pay(model.d, model.m)
    first = worth >= (_EARNING if spans else _EARNING_LITTLE) * worth.max()
    if not spans:
        others = np.flatnonzero(~first)
        kinds = kinds_of(np.ascontiguousarray(model.arms[others]), _RESTS)
        first[others[np.unique(kinds, return_index=True)[1]]] = True
    some = int(first.sum())
    return (np.argsort(~first, kind="stable"), some) if some > 4 * model.m else (np.arange(model.K), model.K)
