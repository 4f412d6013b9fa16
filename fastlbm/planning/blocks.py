"""Planning: owns the search for good blocks and cycles and for the value of the optimal policy.

Section 3.1 of the paper (the block a~ of equation (6), Propositions 2 and 3) and the maximisation of the
UCBs of Section 4. The ball is searched by `kernels.search`; finite sets are solved by `finite`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.validation import Array, Seed
from .._base.values import writable
from ..kernels.memory import make_memory
from ..kernels.optimism import O3M, Belief
from ..kernels.search import Effort, search
from ..model.actions import ActionSet, Ball, Contextual, Finite
from ..model.lbm import LBM
from .finite import planner as finite
from .objective import make_belief

#: Default effort for the ball (MOVES: for cycles, blocks have `_moves`); how good it is: bench/README.md.
STARTS, CYCLES, MOVES, TICKS, POLISH, TOLERANCE = 32, 4, 40, 300, 1200, 1e-7
#: Searches for one block when d <= m.
SEARCHES = 3


@dataclass(frozen=True)
class Plan:
    """A block of m+L actions.

    `value` is the objective, `evaluations` how many block values and gradients were computed over all
    starts. `exact` says that no block is better; otherwise `upper` bounds what a better one could have, if
    such a bound is known (else infinity).
    """

    actions: Array
    value: float
    evaluations: int
    converged: bool
    exact: bool
    upper: float


@dataclass(frozen=True)
class Cycle:
    """Actions (period, d) to be played again and again, and their average reward once the cycle repeats."""

    actions: Array
    average: float
    exact: bool


@dataclass(frozen=True)
class OptBounds:
    """`lower` <= OPT <= `upper`, the optimal expected reward of T steps; `exact` where they meet.

    `cycle` is a policy that collects the lower bound, `method` says where the bounds come from.
    """

    lower: float
    upper: float
    exact: bool
    T: int
    method: str
    cycle: Cycle | None = None

    @property
    def gap(self) -> float:
        """(upper - lower) relative to the size of the upper bound."""
        return (self.upper - self.lower) / abs(self.upper) if self.upper != 0.0 else self.upper - self.lower


def plan_block(
    *,
    d: int,
    m: int,
    gamma: float,
    L: int,
    theta: ArrayLike,
    V_inv: ArrayLike | None = None,
    beta: float = 0.0,
    optimism: str = "O3M",
    A0: ArrayLike | None = None,
    actions: ActionSet | None = None,
    seed: Seed = 0,
    previous: ArrayLike | None = None,
    starts: int | None = None,
    moves: int | None = None,
    max_evaluations: int | None = None,
    tolerance: float = TOLERANCE,
    exact: bool = False,
) -> Plan:
    """A block of m+L actions that maximises the UCB of `block_ucb` (its arguments have the same names).

    On the ball: about `starts` ascents side by side, from good cycles and from actions drawn at random, and
    `moves` local changes of the best block. With a `previous` plan (m+L, d) the defaults are few starts and
    no moves, enough after one more block of data; without one there are 32 starts, more for long memories,
    and (m+1)(m+L+20) moves.
    `max_evaluations` bounds the work: no ascent begins beyond it. On finite sets the plan is exact for O3M;
    `exact=True` refuses anything less. Deterministic for a seed.

    >>> plan = plan_block(d=2, m=1, gamma=-2.0, L=4, theta=[0.8, 0.6])
    >>> plan.actions.shape, plan.converged, plan.value > 2.8
    ((5, 2), True, True)
    """
    d = validation.integer("d", d, low=1)
    m = int(validation.memory("m", m, allow_inf=False))
    L = validation.integer("L", L, low=1)
    gamma = validation.real("gamma", gamma)
    belief = make_belief(theta, V_inv, beta, optimism, d, m + L)
    matrix, _ = validation.memory_matrix(
        A0, d, m, gamma, differentiable=actions is None or isinstance(actions, Ball)
    )
    tolerance = validation.real("tolerance", tolerance, low=0.0, open_low=True)
    if actions is None:
        actions = Ball(d)
    if actions.d != d:
        raise ValueError(f"actions must have the dimension d={d}, got {actions.d}")
    if not isinstance(actions, Ball):
        return _plan_finite(actions, m, gamma, L, belief, matrix, seed, exact)
    if exact:
        raise ValueError("exact plans need a finite set of actions, got exact=True for the ball")
    warm = np.empty((0, d)) if previous is None else validation.array("previous", previous, (m + L, d))
    few = previous is not None
    effort = Effort(
        validation.integer(
            "starts", (3 if few else STARTS) if starts is None else starts, low=0 if few else 1
        ),
        0 if few else CYCLES,
        validation.integer("moves", (0 if few else _moves(m + L, m)) if moves is None else moves, low=0),
        60 if few else TICKS,
        240 if few else POLISH,
        1e-4 if few and tolerance == TOLERANCE else tolerance,
        2**62 if max_evaluations is None else validation.integer("max_evaluations", max_evaluations, low=1),
    )
    rng = validation.generator("seed", seed)
    # With more actions in a window than directions there are far more local maxima: several searches.
    best = _search(matrix, m, gamma, belief, m + L, False, warm, effort, rng)
    evaluations = best.evaluations
    for _ in range(0 if few or d > m else SEARCHES - 1):
        if evaluations >= effort.limit:
            break
        plan = _search(matrix, m, gamma, belief, m + L, False, warm, effort, rng)
        evaluations += plan.evaluations
        best = max(best, plan, key=lambda p: p.value)
    return replace(best, evaluations=evaluations)


def _moves(n: int, m: int) -> int:
    """Moves for a block of n actions: long blocks and long memories have more places to go wrong."""
    return (m + 1) * (n + 20)


def _search(
    A0: Array,
    m: int,
    gamma: float,
    belief: Belief,
    n: int,
    wrap: bool,
    warm: Array,
    effort: Effort,
    seed: Seed,
) -> Plan:
    """The search of the ball; `warm` (n*k, d) holds k blocks side by side."""
    memory, form = make_memory(A0, m, gamma)
    rng = validation.generator("seed", seed)
    columns = np.ascontiguousarray(warm.T)
    block, value, evaluations, converged = search(memory, form, belief, n, wrap, columns, effort, rng)
    actions = np.ascontiguousarray(block.T)
    return Plan(actions, float(value), int(evaluations), bool(converged), False, math.inf)


def _plan_finite(
    actions: ActionSet, m: int, gamma: float, L: int, belief: Belief, A0: Array, seed: Seed, exact: bool
) -> Plan:
    if isinstance(actions, Contextual):
        actions.require(m + L)
    arms = writable(_arms(actions)[: m + L] if isinstance(actions, Contextual) else _arms(actions))
    found = finite.plan_finite(
        arms,
        m=m,
        gamma=gamma,
        L=L,
        theta=belief.theta,
        V_inv=belief.V_inv,
        beta=belief.beta,
        kind=belief.kind,
        A0=A0,
        require_exact=exact,
        seed=seed,
    )
    steps = np.arange(m + L)
    block = arms[steps, found.indices] if arms.ndim == 3 else arms[found.indices]
    return Plan(block, found.value, found.evaluations, True, found.exact, found.upper)


def _arms(actions: ActionSet) -> Array:
    if not isinstance(actions, (Finite, Contextual)):
        raise TypeError(f"actions must be a Ball, a Finite or a Contextual, got {actions!r}")
    return actions.arms


def _finite_memory(env: LBM) -> int:
    return int(validation.memory("env.m", env.m, allow_inf=False))


def best_block(env: LBM, L: int = 20, seed: Seed = 0, **effort: int | None) -> Plan:
    """The block a~ of m+L actions with the largest proxy reward r~ (equation (6)), the rewards of its last L.

    `effort` as in `plan_block`: starts, moves, max_evaluations.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([1.0, 0.0], m=1, gamma=-1.0, actions=lbm.Finite([[1.0, 0.0], [0.0, 1.0]]))
    >>> plan = best_block(env, L=3)
    >>> plan.value, plan.exact
    (2.0, True)
    """
    return plan_block(
        d=env.d,
        m=_finite_memory(env),
        gamma=env.gamma,
        L=L,
        theta=env.theta,
        A0=env.A0,
        actions=env.actions,
        seed=seed,
        **effort,  # type: ignore[arg-type]
    )


def best_cycle(env: LBM, period: int | None = None, max_period: int | None = None, seed: Seed = 0) -> Cycle:
    """The cycle with the largest average reward, windows wrapping around.

    Of one `period`, or the best of all up to `max_period`, 6(m+1) by default. Playing it from any history
    collects its average once m steps have passed. Exact on finite sets that are small enough.

    >>> import fastlbm as lbm
    >>> cycle = best_cycle(lbm.LBM([0.6, 0.8], m=1, gamma=-2.0), period=2)
    >>> cycle.actions.shape, round(cycle.average, 4)
    ((2, 2), 0.7275)
    """
    m = _finite_memory(env)
    if isinstance(env.actions, Contextual):
        raise ValueError("env.actions must be the same at every step for a cycle, got a Contextual")
    if period is not None:
        periods = [validation.integer("period", period, low=1)]
    else:
        last = 6 * (m + 1) if max_period is None else validation.integer("max_period", max_period, low=1)
        periods = list(range(1, last + 1))
    found = [_cycle(env, m, p, seed) for p in periods]
    # A longer cycle must be better, not better by rounding.
    best = found[0]
    for cycle in found[1:]:
        if cycle.average > best.average + 1e-9 * abs(best.average):
            best = cycle
    return best


def _cycle(env: LBM, m: int, period: int, seed: Seed) -> Cycle:
    if isinstance(env.actions, Finite):
        arms = writable(env.actions.arms)
        result = finite.best_cycle_finite(
            arms,
            m=m,
            gamma=env.gamma,
            theta=writable(env.theta),
            period=period,
            A0=writable(env.A0),
            seed=seed,
        )
        return Cycle(arms[result.indices], result.average, result.exact)
    belief = Belief(writable(env.theta), np.eye(env.d), 0.0, O3M)
    effort = Effort(STARTS, 0, MOVES, TICKS, POLISH, TOLERANCE, 2**62)
    validation.memory_matrix(env.A0, env.d, m, env.gamma, differentiable=True)
    plan = _search(writable(env.A0), m, env.gamma, belief, period, True, np.empty((0, env.d)), effort, seed)
    return Cycle(plan.actions, plan.value / period, False)


def opt_bounds(
    env: LBM, T: int, L: int | None = None, max_period: int | None = None, seed: Seed = 0
) -> OptBounds:
    """Bounds on OPT, the largest expected reward of T steps from an empty history.

    Exact where it can be: finite and contextual sets (dynamic programming over the last m actions, while it
    fits), the stationary case, and rising with A0 = c I on the ball, where greedy is optimal and
    r*_t = (c + min(t-1, m))^gamma ||theta||. Otherwise the lower bound is what a cycle collects when it is
    played, from its best phase, and the upper bound follows from OPT(T) <= floor(T/L) r~(a~_L) +
    r~(a~_{T mod L}) (proof of Proposition 2); r~(a~) is the best block found, so this bound is as good as the
    search. `L` is its block length, `max_period` the longest cycle tried.

    >>> import fastlbm as lbm
    >>> bounds = opt_bounds(lbm.LBM([0.6, 0.8], m=2, gamma=1.0), T=4)
    >>> bounds.lower, bounds.exact
    (9.0, True)
    """
    T = validation.integer("T", T, low=1)
    env.actions.require(T)
    if not isinstance(env.actions, Ball):
        return _finite_bounds(env, T, L, max_period, seed)
    size = float(np.linalg.norm(env.theta))
    if env.is_stationary:
        value = T * float(np.linalg.norm(env.memory_matrix() @ env.theta))
        return OptBounds(value, value, True, T, "stationary: the best action at every step")
    c = float(env.A0[0, 0])
    if env.gamma > 0.0 and np.array_equal(env.A0, c * np.eye(env.d)):
        steps = np.minimum(np.arange(T), env.m)
        value = size * float(np.sum((c + steps) ** env.gamma))
        return OptBounds(value, value, True, T, "rising, A0 = c I: greedy is optimal")
    return _sandwich(env, T, L, max_period, seed)


def _finite_bounds(env: LBM, T: int, L: int | None, max_period: int | None, seed: Seed) -> OptBounds:
    m = _finite_memory(env)
    arms = writable(_arms(env.actions)[:T] if isinstance(env.actions, Contextual) else _arms(env.actions))
    try:
        best = finite.finite_horizon_optimum(
            arms, T, m=m, gamma=env.gamma, theta=writable(env.theta), A0=writable(env.A0)
        )
    except ValueError:
        if isinstance(env.actions, Contextual):
            raise
        return _sandwich(env, T, L, max_period, seed)
    return OptBounds(best.value, best.value, True, T, "dynamic programming over the last m actions")


def _sandwich(env: LBM, T: int, L: int | None, max_period: int | None, seed: Seed) -> OptBounds:
    m = _finite_memory(env)
    L = min(T, 30 * max(m, 1) if L is None else validation.integer("L", L, low=1))
    cycle = best_cycle(env, max_period=max_period, seed=seed)
    lower = max(
        _played(env, np.roll(cycle.actions, -shift, axis=0), T) for shift in range(len(cycle.actions))
    )
    upper = T // L * _ceiling(env, m, L, cycle, seed)
    if T % L:
        upper += _ceiling(env, m, T % L, cycle, seed)
    upper = max(min(upper, T * env.reward_bound), lower)
    return OptBounds(lower, upper, False, T, f"best cycle played, best block with L={L}", cycle)


def _ceiling(env: LBM, m: int, L: int, cycle: Cycle, seed: Seed) -> float:
    """r~ of the best block: a bound of a finite set's plan, or what the search of the ball finds.

    The search also starts from the cycle, at each phase: a block that plays it is never worse than it.
    """
    if not isinstance(env.actions, Ball):
        plan = best_block(env, L, seed)
        return plan.upper if math.isfinite(plan.upper) else plan.value
    n, period = m + L, len(cycle.actions)
    phases = [cycle.actions[(np.arange(n) + shift) % period] for shift in range(period)]
    belief = Belief(writable(env.theta), np.eye(env.d), 0.0, O3M)
    effort = Effort(STARTS, CYCLES, _moves(n, m), TICKS, POLISH, TOLERANCE, 2**62)
    warm = np.stack(phases, axis=1).reshape(n * period, env.d)
    return _search(writable(env.A0), m, env.gamma, belief, n, False, warm, effort, seed).value


def _played(env: LBM, cycle: Array, T: int) -> float:
    """What the cycle collects in T steps from an empty history; all but the start is periodic."""
    period, m = len(cycle), int(env.m)
    start = -(-m // period) * period  # whole periods until the window is full
    turns, left = divmod(max(T - start, 0), period)
    rewards = env.expected_rewards(np.tile(cycle, (start // period + 2, 1)))
    if start >= T:
        return float(rewards[:T].sum())
    steady = rewards[start : start + period]
    return float(rewards[:start].sum() + turns * steady.sum() + steady[:left].sum())
