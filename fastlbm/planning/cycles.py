"""Cycles: owns the search for the best cycle, and what a cycle collects when it is played."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .._base import validation
from .._base.types import Array, Seed
from .._base.values import writable
from ..kernels import ties
from ..kernels.fading import reach_of
from ..kernels.memory import Memory, make_memory
from ..kernels.optimism import O3M, Belief
from ..kernels.rewards import make_history, rewards
from ..model.actions import Ball
from ..model.lbm import LBM
from ..model.memory_matrix import check_memory_matrix
from .blocks import plannable_memory, search_ball
from .effort import CYCLE
from .finite import FinitePlanner
from .plans import Cycle

#: Steps of a cycle that are played one by one until its rewards repeat themselves, and those at a time.
MOST_STEPS, _STRETCH = 10**8, 2**16


def best_cycle(env: LBM, period: int | None = None, max_period: int | None = None, seed: Seed = 0) -> Cycle:
    """The cycle with the largest average reward, windows wrapping around.

    Of one `period`, or the best of all up to `max_period`, 6(m+1) by default. Playing it from any history
    collects its average once m steps have passed. Where m is infinite and the memory fades, on the ball, that
    is the limit, and periods are tried as if m were 1/(1 - decay), at most 8. Exact on finite sets that are
    small enough: if the best cycle of every period tried is known, or if no policy has a larger average in
    the long run.

    Use it for a schedule to repeat when the model is known, and as what learners are measured by.

    >>> import fastlbm as lbm
    >>> cycle = best_cycle(lbm.LBM([0.6, 0.8], m=1, gamma=-2.0), period=2)
    >>> cycle.actions.shape, round(cycle.average, 4)
    ((2, 2), 0.7275)
    """
    m = plannable_memory(env)
    if env.actions.varies:
        raise ValueError(f"env.actions must be the same at every step for a cycle, got {env.actions!r}")
    on_ball = isinstance(env.actions, Ball)
    memory = make_memory(writable(env.A0), m, env.gamma, env._variant)
    if period is not None:
        periods = [validation.integer("period", period, low=1)]
    else:
        last = (
            6 * (memory[0].turn + 1)
            if max_period is None
            else validation.integer("max_period", max_period, low=1)
        )
        periods = list(range(1, last + 1))
    if not on_ball:
        arms = env.actions.sets()[0]
        planner = FinitePlanner(arms, m=int(m), gamma=env.gamma, A0=env.A0, variant=env._variant)
        found = [planner.cycle(env.theta, p, seed) for p in periods]
    else:
        check_memory_matrix(env.A0, env.d, 0, env.gamma, differentiable=True, variant=env._variant)
        found = [_cycle_in_ball(env, memory, p, seed) for p in periods]
    # A longer cycle must be better, not better by rounding.
    best = found[0]
    for cycle in found[1:]:
        if ties.exceeds(cycle.average, best.average, ties.margin(best.average, ties.ASCENT_SHARE)):
            best = cycle
    if not on_ball and not all(cycle.exact for cycle in found):
        best = replace(best, exact=_is_long_run_optimum(planner, env.theta, best))
    return best


def _is_long_run_optimum(planner: FinitePlanner, theta: Array, cycle: Cycle) -> bool:
    """Whether the cycle's average is proven to be that of the best policy there is; False if that is open."""
    try:
        best = planner.long_run(theta)
    except ValueError:  # its tables do not fit
        return False
    return best.exact and ties.reaches(cycle.average, best.average, ties.margin(best.average, ties.SUM_SHARE))


def _cycle_in_ball(env: LBM, memory: tuple[Memory, Array | None], period: int, seed: Seed) -> Cycle:
    plan = search_ball(
        memory,
        true_belief(env),
        period,
        warm=np.empty((0, env.d)),
        effort=CYCLE,
        rng=validation.generator("seed", seed),
        wrap=True,
    )
    return Cycle(actions=plan.actions, average=plan.value / period, exact=False)


def true_belief(env: LBM) -> Belief:
    """The belief of who knows theta: UCBs are rewards."""
    return Belief(theta=writable(env.theta), V_inv=np.eye(env.d), beta=0.0, kind=O3M)


def reward_of_cycle(env: LBM, cycle: Array, T: int) -> float:
    """What the cycle (period, d) collects in T steps from an empty history; all but the start is periodic.

    Where the memory has no end the start is as long as it takes until the rest is below rounding.

    >>> import fastlbm as lbm
    >>> reward_of_cycle(lbm.LBM([0.6, 0.8], m=2, gamma=1.0), [[0.6, 0.8]], T=4)
    9.0
    """
    period = len(cycle)
    m = reach_of(env.decay) if env.m == math.inf else int(env.m)
    start = -(-m // period) * period  # whole periods until the window is full
    if min(start, T) > MOST_STEPS:
        raise ValueError(f"T must be at most {MOST_STEPS} with a memory as long as that, got {T}")
    turns, left = divmod(max(T - start, 0), period)
    if start >= T:
        return _played(env, cycle, T)[0]
    first, steady = _played(env, cycle, start)
    return float(first + turns * steady.sum() + steady[:left].sum())


def _played(env: LBM, cycle: Array, steps: int) -> tuple[float, Array]:
    """What so many steps of the cycle collect, and the rewards (period,) of the turn after them."""
    model, total = env._params(), 0.0
    history, turn = make_history(model), np.array(cycle, dtype=np.float64)
    stretch = np.tile(turn, (max(1, -(-min(steps, _STRETCH) // len(turn))), 1))
    with np.errstate(all="ignore"):
        for done in range(0, steps, len(stretch)):
            total += float(rewards(model, history, stretch[: steps - done]).sum())
        return total, rewards(model, history, turn)
