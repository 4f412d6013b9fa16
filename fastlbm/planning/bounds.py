"""Bounds: owns lower and upper bounds on OPT, the optimal expected reward of a horizon.

OPT is the value of equation (3), eq:opt_sequence, of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, cached_property

import numpy as np

from .._base import validation
from .._base.types import Array, Seed
from .._base.values import writable
from ..kernels.fading import reach_of, total_weight
from ..kernels.memory import isotropic_scale, make_memory
from ..model.actions import Ball
from ..model.lbm import LBM
from ..model.response import Response
from .blocks import arms_of, finite_memory, plannable_memory, search_ball
from .cycles import best_cycle, reward_of_cycle, true_belief
from .effort import cold_block
from .finite import FinitePlanner
from .plans import Cycle, OptBounds

#: Steps that are added up one by one where the memory does not end: 10^8 numbers take 800 MB.
MOST_GROWING = 10**8


def opt_bounds(
    env: LBM, T: int, L: int | None = None, max_period: int | None = None, seed: Seed = 0
) -> OptBounds:
    """Bounds on OPT, the largest expected reward of T steps from an empty history.

    Exact where it can be: finite and contextual sets (dynamic programming over the last m actions, while it
    fits), the stationary case, and rising with A0 = c I on the ball, see `_rising`. Otherwise the lower bound
    is what a cycle collects when it is played, from its best phase, and the upper bound adds up the best
    blocks of `L` counted actions, see `_sum_of_blocks`: proven on finite sets, on the ball as good as the
    search for these blocks (`certified`). `max_period` is the longest cycle tried. Where m is infinite and
    the memory fades, the upper bound is T times the largest reward: blocks give none.

    Use it to know how far from the best a policy can be.

    >>> import fastlbm as lbm
    >>> bounds = opt_bounds(lbm.LBM([0.6, 0.8], m=2, gamma=1.0), T=4)
    >>> bounds.lower, bounds.exact
    (9.0, True)
    """
    return OptSearch(env, max_period, seed).bounds(T, L)


class OptSearch:
    """Bounds on OPT at many horizons, those of `opt_bounds`: what they share is searched for once.

    >>> import fastlbm as lbm
    >>> search = OptSearch(lbm.LBM([0.6, 0.8], m=2, gamma=1.0))
    >>> [search.bounds(T).lower for T in (1, 4)]
    [1.0, 9.0]
    """

    def __init__(self, env: LBM, max_period: int | None = None, seed: Seed = 0) -> None:
        self.env, self._max_period, self.seed = env, max_period, seed
        self._values: dict[int, float] = {}

    @cached_property
    def cycle(self) -> Cycle:
        return best_cycle(self.env, max_period=self._max_period, seed=self.seed)

    def block_value(self, L: int) -> float:
        """r~ of the best block on the ball."""
        if L not in self._values:
            self._values[L] = _searched_value(self.env, self.cycle, self.seed, L)
        return self._values[L]

    def bounds(self, T: int, L: int | None = None) -> OptBounds:
        """The bounds of T steps, see `opt_bounds`."""
        T, env = validation.integer("T", T, low=1), self.env
        env.actions.require(T)
        if env.is_stationary:
            return _exact(_stationary(env, T), T, "stationary: the best action at every step")
        if not isinstance(env.actions, Ball):
            return _finite_bounds(self, T, L)
        c = isotropic_scale(env.A0)
        if env.gamma > 0.0 and c is not None and env.response == "power":
            return _exact(_rising(env, T, c), T, "rising, A0 = c I: theta's direction at every step")
        return _sandwich(self, T, L)


def _exact(value: float, T: int, method: str) -> OptBounds:
    return OptBounds(lower=value, upper=value, exact=True, certified=True, T=T, method=method)


def _stationary(env: LBM, T: int) -> float:
    """OPT where no reward depends on the past."""
    direction = env.memory_matrix() @ env.theta
    if isinstance(env.actions, Ball):
        return T * float(np.linalg.norm(direction))
    best = (arms_of(env.actions, T) @ direction).max(axis=-1)
    return math.fsum(best) if env.actions.varies else T * float(best)


def _rising(env: LBM, T: int, c: float) -> float:
    """OPT on the ball for gamma > 0 and A0 = c I, c >= 0: sum of (c + min(t-1, m))^gamma ||theta||.

    No eigenvalue of c I and min(t-1, m) outer products is above c + min(t-1, m), so no reward is larger, and
    theta's direction at every step attains all of them at once. With a decay the same holds with the sum of
    their weights in the place of their number. For c > 0 that is oracle greedy. For c = 0
    the first reward is 0 whatever is played, so that every first action is greedy: after one without a share
    of theta's direction, such as the zero action, greedy earns nothing for ever.
    """
    # The steps whose windows are not full; one without end is full when the rest is below rounding.
    growing = int(min(T, reach_of(env.decay) if env.m == math.inf and env.decay < 1.0 else env.m))
    if growing > MOST_GROWING:
        raise ValueError(f"T must be at most {MOST_GROWING} with a memory as long as that, got {T}")
    steady = (T - growing) * (c + total_weight(env.m, env.decay)) ** env.gamma if growing < T else 0.0
    counts = np.arange(growing) * 1.0
    if env.decay < 1.0:
        counts = -np.expm1(counts * math.log(env.decay)) / (1.0 - env.decay)
    return float(np.linalg.norm(env.theta)) * float(np.sum((c + counts) ** env.gamma) + steady)


def _finite_bounds(search: OptSearch, T: int, L: int | None) -> OptBounds:
    env = search.env
    planner = _planner(env, arms_of(env.actions, T))
    try:
        value = planner.optimum(env.theta, T)
    except ValueError:
        if env.actions.varies:
            raise
        return _sandwich(search, T, L)
    return _exact(value, T, "dynamic programming over the last m actions")


def _planner(env: LBM, arms: Array) -> FinitePlanner:
    return FinitePlanner(arms, m=finite_memory(env), gamma=env.gamma, A0=env.A0, variant=env._variant)


def default_block(m: float) -> int:
    """The L of the blocks that bound OPT from above, if nothing else is said; 30 where m is infinite."""
    return 30 * int(max(m, 1)) if m < math.inf else 30


def _sandwich(search: OptSearch, T: int, L: int | None) -> OptBounds:
    """The best cycle played, and the sum of best blocks, or T times the largest reward if that is less."""
    env = search.env
    m = plannable_memory(env)
    if m == math.inf:
        return _cycle_and_largest(search, T)
    L = min(T, default_block(m) if L is None else validation.integer("L", L, low=1))
    cycle = search.cycle
    lower = max(
        reward_of_cycle(env, np.roll(cycle.actions, -shift, axis=0), T) for shift in range(len(cycle.actions))
    )
    if isinstance(env.actions, Ball):
        blocks = _full_windows(T, L, search.block_value)
        most = T * _largest_reward(env)
    else:
        arms = arms_of(env.actions, T)
        most = T * _largest_reward(env) * float(np.linalg.norm(arms, axis=1).max())
        blocks = _sum_of_blocks(env, arms, T, L, most / T, search.seed)
    certified = most <= blocks or not isinstance(env.actions, Ball)
    upper = max(min(blocks, most), lower)
    return OptBounds(
        lower=lower,
        upper=upper,
        exact=certified and upper == lower,
        certified=certified,
        T=T,
        method=f"best cycle played, best block with L={L}",
        cycle=cycle,
    )


def _largest_reward(env: LBM) -> float:
    """R where it is proven; of a response of one's own nobody knows it."""
    return math.inf if isinstance(env.response, Response) else env.reward_bound


def _cycle_and_largest(search: OptSearch, T: int) -> OptBounds:
    """Where the memory has no end: the best cycle played, and T times the largest reward.

    The sum of best blocks is no bound here: the windows of a block hold all that was played before it.
    """
    env, cycle = search.env, search.cycle
    turned = (np.roll(cycle.actions, -shift, axis=0) for shift in range(len(cycle.actions)))
    lower = max(reward_of_cycle(env, actions, T) for actions in turned)
    upper = max(T * _largest_reward(env), lower)
    method = "best cycle played, T times the largest reward"
    return OptBounds(
        lower=lower, upper=upper, exact=upper == lower, certified=True, T=T, method=method, cycle=cycle
    )


def _full_windows(n: int, L: int, value: Callable[[int], float]) -> float:
    """What n steps collect at most whose windows hold m actions of the set: L of them `value(L)` = r~(a~_L).

    Cut into pieces of L steps, each with the m actions before it is a block of m+L.
    """
    pieces, rest = divmod(n, L)
    return (pieces * value(L) if pieces else 0.0) + (value(rest) if rest else 0.0)


def _sum_of_blocks(env: LBM, arms: Array, T: int, L: int, largest: float, seed: Seed) -> float:
    """An upper bound on OPT(T) for arms (K, d), none of whose rewards is above `largest`.

    With the zero action among the arms the empty history is m of them, as on the ball, and all T windows are
    full. Without it a window that is not full may pay more than any block does (the proof of Proposition 2,
    prop:approx_cyclic, takes no notice of that); but only the first m are not: OPT(T) <= OPT(m) + what T - m
    steps with full windows collect, for T > m. Where both bounds hold the smaller one counts. OPT(m) is a
    dynamic program, or where that does not fit at most m times `largest`.
    """
    planner = _planner(env, arms)
    belief = true_belief(env)

    @cache
    def value(length: int) -> float:
        try:
            return planner.plan(belief, length, seed, require_exact=True).upper
        except ValueError:  # its tables do not fit
            return planner.plan(belief, length, seed).upper

    early = min(planner.model.m, T)
    try:
        first = planner.optimum(env.theta, early) if early else 0.0
    except ValueError:
        first = early * largest
    bound = first + _full_windows(T - early, L, value)
    has_zero = not arms.any(axis=1).all()
    return min(bound, _full_windows(T, L, value)) if has_zero else bound


def _searched_value(env: LBM, cycle: Cycle, seed: Seed, L: int) -> float:
    """r~ of the best block that the search of the ball finds.

    The search also starts from the cycle, at each phase: a block that plays it is never worse than it.
    """
    m = finite_memory(env)
    n, period = m + L, len(cycle.actions)
    phases = [cycle.actions[(np.arange(n) + shift) % period] for shift in range(period)]
    plan = search_ball(
        make_memory(writable(env.A0), m, env.gamma, env._variant),
        true_belief(env),
        n,
        warm=np.stack(phases, axis=1).reshape(n * period, env.d),
        effort=cold_block(n, m),
        rng=validation.generator("seed", seed),
    )
    return plan.value
