"""Bounds: owns lower and upper bounds on OPT, the optimal expected reward of a horizon.

OPT is the value of equation (3), eq:opt_sequence, of the paper.
"""

from __future__ import annotations

import math

import numpy as np

from .._base import validation
from .._base.validation import Seed
from .._base.values import writable
from ..kernels.memory import isotropic_scale
from ..model.actions import Ball
from ..model.lbm import LBM
from .blocks import arms_of, best_block, finite_memory, search_ball
from .cycles import best_cycle, reward_of_cycle, true_belief
from .effort import cold_block
from .finite import FinitePlanner
from .plans import Cycle, OptBounds


def opt_bounds(
    env: LBM, T: int, L: int | None = None, max_period: int | None = None, seed: Seed = 0
) -> OptBounds:
    """Bounds on OPT, the largest expected reward of T steps from an empty history.

    Exact where it can be: finite and contextual sets (dynamic programming over the last m actions, while it
    fits), the stationary case, and rising with A0 = c I on the ball, where greedy is optimal and
    r*_t = (c + min(t-1, m))^gamma ||theta||. Otherwise the lower bound is what a cycle collects when it is
    played, from its best phase, and the upper bound follows from OPT(T) <= floor(T/L) r~(a~_L) +
    r~(a~_{T mod L}) (the proof of Proposition 2, prop:approx_cyclic); r~(a~) is the best block found, so
    this bound is as good as the search. `L` is its block length, `max_period` the longest cycle tried.

    >>> import fastlbm as lbm
    >>> bounds = opt_bounds(lbm.LBM([0.6, 0.8], m=2, gamma=1.0), T=4)
    >>> bounds.lower, bounds.exact
    (9.0, True)
    """
    T = validation.integer("T", T, low=1)
    env.actions.require(T)
    if not isinstance(env.actions, Ball):
        return _finite_bounds(env, T, L, max_period, seed)
    if env.is_stationary:
        value = T * float(np.linalg.norm(env.memory_matrix() @ env.theta))
        return _exact(value, T, "stationary: the best action at every step")
    c = isotropic_scale(env.A0)
    if env.gamma > 0.0 and c is not None:
        steps = np.minimum(np.arange(T), env.m)
        value = float(np.linalg.norm(env.theta)) * float(np.sum((c + steps) ** env.gamma))
        return _exact(value, T, "rising, A0 = c I: greedy is optimal")
    return _sandwich(env, T, L, max_period, seed)


def _exact(value: float, T: int, method: str) -> OptBounds:
    return OptBounds(lower=value, upper=value, exact=True, T=T, method=method)


def _finite_bounds(env: LBM, T: int, L: int | None, max_period: int | None, seed: Seed) -> OptBounds:
    planner = FinitePlanner(arms_of(env.actions, T), m=finite_memory(env), gamma=env.gamma, A0=env.A0)
    try:
        value = planner.optimum(env.theta, T)
    except ValueError:
        if env.actions.varies:
            raise
        return _sandwich(env, T, L, max_period, seed)
    return _exact(value, T, "dynamic programming over the last m actions")


def _sandwich(env: LBM, T: int, L: int | None, max_period: int | None, seed: Seed) -> OptBounds:
    """The best cycle played, and the best block."""
    m = finite_memory(env)
    L = min(T, 30 * max(m, 1) if L is None else validation.integer("L", L, low=1))
    cycle = best_cycle(env, max_period=max_period, seed=seed)
    lower = max(
        reward_of_cycle(env, np.roll(cycle.actions, -shift, axis=0), T) for shift in range(len(cycle.actions))
    )
    upper = T // L * _best_value(env, m, L, cycle, seed)
    if T % L:
        upper += _best_value(env, m, T % L, cycle, seed)
    upper = max(min(upper, T * env.reward_bound), lower)
    method = f"best cycle played, best block with L={L}"
    return OptBounds(lower=lower, upper=upper, exact=False, T=T, method=method, cycle=cycle)


def _best_value(env: LBM, m: int, L: int, cycle: Cycle, seed: Seed) -> float:
    """r~ of the best block: a bound of a finite set's plan, or what the search of the ball finds.

    The search also starts from the cycle, at each phase: a block that plays it is never worse than it.
    """
    if not isinstance(env.actions, Ball):
        plan = best_block(env, L, seed)
        return plan.upper if math.isfinite(plan.upper) else plan.value
    n, period = m + L, len(cycle.actions)
    phases = [cycle.actions[(np.arange(n) + shift) % period] for shift in range(period)]
    plan = search_ball(
        writable(env.A0),
        m,
        env.gamma,
        true_belief(env),
        n,
        warm=np.stack(phases, axis=1).reshape(n * period, env.d),
        effort=cold_block(n, m),
        rng=validation.generator("seed", seed),
    )
    return plan.value
