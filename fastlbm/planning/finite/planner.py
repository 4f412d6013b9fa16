"""Planning over finite sets of arms: owns which method serves a problem, and may touch the `_finite` modules;
Section 3.1 of the paper for arms (K, d), and for one set of arms a step (n, K, d) its Remark 1.

A reward depends on m+1 consecutive arms. Whatever is a sum of rewards is therefore planned exactly by
dynamic programming over the last m arms, K^m states; what is not is planned by a sequence of such sums.
Arguments come checked; theta, V_inv and A0 as for `block_ucb`, and `A0=None` is the identity.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..._base import validation
from ..._base.validation import Array, Seed
from ...kernels.dynamic_programs import bellman
from ...kernels.optimism import O3M, OM, Belief
from .beam import Objective, plan_by_search
from .cycles import closed_walk, maximum_mean_cycle, search_cycle
from .programs import plan_additive, plan_joint
from .states import WINDOWS, Index, Model, States, digits

#: Bytes that tables may take.
BUDGET = 2**30
#: Steps of dynamic programs spent on a cycle of given length, some seconds.
_CYCLE_OPERATIONS = 5e8
#: Of these, what is spent before a search for a good cycle.
_EASY_CYCLE = 1e8
#: The same for a horizon, about ten seconds.
_HORIZON_OPERATIONS = 1e10
#: Step values of contextual sets that are kept at a time (32 MB).
_CHUNK = 2**22


class FinitePlan(NamedTuple):
    """A block of arms; no block's value is above `upper`."""

    indices: Index  # (m+L,)
    value: float
    upper: float
    exact: bool
    evaluations: int  # values of blocks computed; a dynamic program counts as one


class FiniteCycle(NamedTuple):
    """Arms played over and over, and their average reward."""

    indices: Index
    average: float
    exact: bool


class FiniteOptimum(NamedTuple):
    """The largest total reward of a horizon and, where asked for, arms that collect it."""

    value: float
    indices: Index | None


def plan_finite(
    arms: Array,
    *,
    m: int,
    gamma: float,
    L: int,
    theta: Array,
    V_inv: Array | None = None,
    beta: float = 0.0,
    kind: int = O3M,
    A0: Array | None = None,
    budget: int = BUDGET,
    require_exact: bool = False,
    seed: Seed = 0,
) -> FinitePlan:
    """The block of m+L arms with the largest UCB; arms (K, d), or (m+L, K, d) for one set a step.

    O3M, and every kind with beta = 0, is exact. OM and OM-Block are the maximum of <b, theta'> over blocks
    and over the ellipsoid of theta' around theta: each is solved in turn for the other, from many theta'.
    Of blocks with the same value, O3M on (K, d) takes the one whose first m arms earn most after the last m,
    as in a cycle; exactly so unless ties are too many.

    Tables beyond `budget` bytes raise a `ValueError` with `require_exact`, else a beam search plans.

    >>> plan_finite(np.eye(2), m=1, gamma=-1.0, L=3, theta=np.array([0.6, 0.8])).indices
    array([0, 1, 0, 1])
    """
    model = Model(arms, m, gamma, A0)
    size = len(theta)
    matrix = np.eye(size) if V_inv is None else np.array(V_inv, dtype=np.float64, order="C")
    if beta == 0.0 and kind == OM:
        kind = O3M
    belief = Belief(np.array(theta, dtype=np.float64), matrix, float(beta), kind)
    objective = Objective(model, belief, m + L)
    with np.errstate(all="ignore"):
        if not model.fits(L, belief, budget, require_exact):
            found = plan_by_search(model, objective, L, validation.generator("seed", seed))
        elif kind == O3M:
            found = plan_additive(model, objective, L)
        else:
            found = plan_joint(model, objective, L, validation.generator("seed", seed))
    return FinitePlan(*found, objective.evaluations)


def best_cycle_finite(
    arms: Array,
    *,
    m: int,
    gamma: float,
    theta: Array,
    period: int,
    A0: Array | None = None,
    budget: int = BUDGET,
    seed: Seed = 0,
) -> FiniteCycle:
    """The cycle of `period` arms with the largest average reward, windows wrapping around; arms (K, d).

    A closed walk of `period` states: exact unless too many first states come into question.

    >>> best_cycle_finite(np.eye(2), m=1, gamma=-1.0, theta=np.array([0.6, 0.8]), period=2)
    FiniteCycle(indices=array([1, 0]), average=0.7, exact=True)
    """
    model = Model(arms, m, gamma, A0)
    belief = Belief(np.array(theta, dtype=np.float64), np.eye(model.d), 0.0, O3M)
    objective = Objective(model, belief, period, cyclic=True)
    rng = validation.generator("seed", seed)
    with np.errstate(all="ignore"):
        if not model.fits(period, belief, budget, False):
            indices = search_cycle(objective, rng, np.empty((0, period), dtype=np.intp))
            return FiniteCycle(indices, objective.total(indices) / period, False)
        states = States(model.K, m)
        values = model.values(states, m, belief.theta, belief.V_inv, 0.0)
        indices, exact = closed_walk(states, values, period, None, min(_EASY_CYCLE, _CYCLE_OPERATIONS))
        if not exact:
            # What a search finds prunes most of the work.
            indices = search_cycle(objective, rng, indices[None])
            indices, exact = closed_walk(states, values, period, indices, _CYCLE_OPERATIONS)
        return FiniteCycle(indices, objective.total(indices) / period, exact)


def long_run_optimum(
    arms: Array, *, m: int, gamma: float, theta: Array, A0: Array | None = None, budget: int = BUDGET
) -> FiniteCycle:
    """The largest long-run average reward: a maximum mean cycle over the K^m states; arms (K, d).

    >>> long_run_optimum(np.eye(2), m=1, gamma=-1.0, theta=np.array([0.6, 0.8])).average
    0.7
    """
    model = Model(arms, m, gamma, A0)
    belief = Belief(np.array(theta, dtype=np.float64), np.eye(model.d), 0.0, O3M)
    with np.errstate(all="ignore"):
        model.fits(1, belief, budget, True)
        states = States(model.K, m)
        values = model.values(states, m, belief.theta, belief.V_inv, 0.0)
        cycle = maximum_mean_cycle(states, values)
    return FiniteCycle(cycle.indices, cycle.mean, cycle.exact)


def finite_horizon_optimum(
    arms: Array,
    T: int,
    *,
    m: int,
    gamma: float,
    theta: Array,
    A0: Array | None = None,
    budget: int = BUDGET,
    plan: bool = False,
) -> FiniteOptimum:
    """OPT: the largest total reward of T steps from an empty history; arms (K, d) or (T, K, d).

    `plan` asks for the arms as well, which takes a table of T K^m entries. Work or tables beyond what is
    feasible raise a `ValueError`.

    >>> finite_horizon_optimum(np.eye(2), 3, m=1, gamma=-1.0, theta=np.array([0.6, 0.8]), plan=True)
    FiniteOptimum(value=2.2, indices=array([1, 0, 1]))
    """
    model = Model(arms, m, gamma, A0)
    K, theta = model.K, np.array(theta, dtype=np.float64)
    early = min(m, T)
    late = T - early
    S = K**early
    each, most = (S, WINDOWS) if model.varying else (S * K, _HORIZON_OPERATIONS)
    if late * each > most:
        raise ValueError(
            f"T must be at most {m + int(most) // each} for the optimum of K={K} arms with m={m}, got {T}"
        )
    need = S * (12 * m + 32 + (4 * late if plan else 0))
    if need > budget:
        raise model.refusal(S, need, budget)
    belief = Belief(theta, np.eye(model.d), 0.0, O3M)
    with np.errstate(all="ignore"):
        V, shift = np.zeros(S), 0.0
        policy = np.empty((late if plan else 0, S), dtype=np.int32)
        if late > 0:
            model.fits(1, belief, budget, True)
            states = States(K, m, distinct=not model.varying)
            for begin, values in _backward_values(model, states, theta, m, T):
                steps = len(values) if model.varying else late
                part = policy[begin - m : begin - m + steps] if plan else policy
                shift += bellman(values, states.rank, steps, V, part)
        # The first m steps, with zero actions before them: step t has K^t states.
        first: list[Index] = []
        for t in range(early - 1, -1, -1):
            windows = np.zeros((K**t, m), dtype=np.int32)
            windows[:, m - t :] = digits(np.arange(K**t), K, t)
            sets = np.zeros((m, K, model.d))
            for i in range(t):
                sets[m - t + i] = model.at(i)
            rewards = model.rewards(sets, windows, theta, model.at(t))
            rewards += V.reshape(-1, K)
            first.append(rewards.argmax(axis=1))
            V = rewards.max(axis=1)
    value = float(V[0] + shift)
    if not plan:
        return FiniteOptimum(value, None)
    indices = np.empty(T, dtype=np.intp)
    state = 0
    for t in range(T):
        indices[t] = first[early - 1 - t][state] if t < early else policy[t - early, state]
        state = state * K + int(indices[t])
        if t >= early:
            state %= S
    return FiniteOptimum(value, indices)


def _backward_values(
    model: Model, states: States, theta: Array, first: int, T: int
) -> Iterator[tuple[int, Array]]:
    """Step values of the steps first..T-1, the last ones first, as (first step, values (steps, W, K))."""
    if not model.varying:
        yield first, model.values(states, first, theta, np.eye(model.d), 0.0)[None]
        return
    chunk = max(1, _CHUNK // (states.S * model.K))
    for end in range(T, first, -chunk):
        begin = max(first, end - chunk)
        yield (
            begin,
            np.array([model.values(states, t, theta, np.eye(model.d), 0.0) for t in range(begin, end)]),
        )
