"""Blocks: owns the search for a block with the largest UCB, or with the largest reward.

The block a~ of equation (5), eq:best_block, of the paper, and the maximisation of the UCBs of Section 4,
sec:algo. The ball is searched by `kernels.search`; sets of arms are planned by `finite`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.interrupts import interruptible
from .._base.types import Array, Seed
from ..kernels.fading import total_weight
from ..kernels.memory import Memory
from ..kernels.optimism import OM_BLOCK, Belief
from ..kernels.search import Effort, search
from ..model.actions import ActionSet, Ball
from ..model.lbm import LBM
from ..model.memory_matrix import check_memory_matrix
from ..model.response import Response, make_variant
from .effort import COLD_BLOCK, SEARCHES, UNLIMITED, WARM_BLOCK, cold_block, most_seconds
from .finite import FinitePlanner
from .objective import make_belief, memory_after
from .plans import Plan


def plan_block(
    *,
    d: int,
    m: float,
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
    history: ArrayLike | None = None,
    starts: int | None = None,
    moves: int | None = None,
    max_evaluations: int | None = None,
    tolerance: float = COLD_BLOCK.tolerance,
    exact: bool = False,
    decay: float = 1.0,
    response: str | Response = "power",
) -> Plan:
    """A block of m+L actions that maximises the UCB of `block_ucb` (its arguments have the same names).

    With a `history` (m, d), the last actions that were played, the oldest first: L actions that maximise it
    when they follow these. Rows of zeros stand for steps before the first. That is what `Rolling` plans, but
    for what comes after the plan, which counts there and not here.

    With a `decay` below 1 the action s steps ago counts decay^(s-1) times in the memory. m may be `math.inf`
    then, on the ball: L actions, all of which count, after a `history` of any number of rows, or of none.
    `response` is that of `LBM`.

    On the ball: about `starts` ascents side by side, from good cycles and from actions drawn at random, and
    `moves` local changes of the best block. With a `previous` plan of the same shape the defaults are
    few starts and no moves, enough after one more block of data; without one there are 32 starts, more for
    long memories, and (m+1)(m+L+20) moves.
    `max_evaluations` bounds the work: no ascent begins beyond it. On finite sets the plan is exact for O3M;
    `exact=True` refuses anything less. Deterministic for a seed.

    Use it to plan for an estimate of theta, with a bonus for what is not known yet.

    >>> plan = plan_block(d=2, m=1, gamma=-2.0, L=4, theta=[0.8, 0.6])
    >>> plan.actions.shape, plan.converged, plan.value > 2.8
    ((5, 2), True, True)
    """
    d = validation.integer("d", d, low=1)
    on_ball = actions is None or isinstance(actions, Ball)
    given, decay = validation.memory("m", m, allow_inf=on_ball), validation.decay(decay, m)
    m = 0 if given == math.inf else int(given)
    L = validation.integer("L", L, low=1)
    gamma = validation.real("gamma", gamma)
    belief = make_belief(theta, V_inv, beta, optimism, d, m + L)
    before = None if history is None or given == math.inf else check_history(history, m, d)
    variant, weight = make_variant(decay, response), total_weight(given, decay)
    matrix, _ = check_memory_matrix(A0, d, weight, gamma, differentiable=on_ball, variant=variant)
    tolerance = validation.real("tolerance", tolerance, low=0.0, open_low=True)
    if actions is not None and actions.d != d:
        raise ValueError(f"actions must have the dimension d={d}, got {actions.d}")
    if actions is not None and not isinstance(actions, Ball):
        if actions.varies:
            actions.require(L if before is not None else m + L)
        planner = FinitePlanner(arms_of(actions, m + L), m=m, gamma=gamma, A0=matrix, variant=variant)
        after = planner.plan if before is None else partial(planner.plan_after, before=before)
        return after(belief, L=L, rng=seed, require_exact=exact)
    if exact:
        raise ValueError("exact plans need a finite set of actions, got exact=True for the ball")
    warm = _warm(previous, before, (m + L, d))
    memory = memory_after(matrix, given, gamma, variant, history)
    turn = memory[0].turn
    effort = _effort(m + L, turn, previous is not None, starts, moves, max_evaluations, tolerance)
    rng = validation.generator("seed", seed)
    searches = SEARCHES if previous is None and d <= turn else 1
    best = _search_often(searches, memory, belief, m + L, before=before, warm=warm, effort=effort, rng=rng)
    return without_first(best, 0 if before is None else m)


def _search_often(
    searches: int, memory: tuple[Memory, Array | None], belief: Belief, n: int, *, effort: Effort, **how: Any
) -> Plan:
    """The best of some searches by `search_ball`, as long as the effort allows for."""
    best = search_ball(memory, belief, n, effort=effort, **how)
    evaluations = best.evaluations
    for _ in range(searches - 1):
        if evaluations >= effort.limit:
            break
        plan = search_ball(memory, belief, n, effort=effort, **how)
        evaluations += plan.evaluations
        best = replace(max(best, plan, key=lambda p: p.value), evaluations=evaluations)
    return best


def best_block(env: LBM, L: int = 20, seed: Seed = 0, **effort: int | None) -> Plan:
    """The block a~ of m+L actions with the largest proxy reward r~, the rewards of its last L.

    Equation (5), eq:best_block, of the paper. `effort` as in `plan_block`: starts, moves, max_evaluations.

    Use it to see what L steps pay at best when the model is known.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([1.0, 0.0], m=1, gamma=-1.0, actions=lbm.Finite([[1.0, 0.0], [0.0, 1.0]]))
    >>> plan = best_block(env, L=3)
    >>> plan.value, plan.exact
    (2.0, True)
    """
    return plan_block(
        d=env.d,
        m=plannable_memory(env),
        gamma=env.gamma,
        L=L,
        theta=env.theta,
        A0=env.A0,
        actions=env.actions,
        seed=seed,
        decay=env.decay,
        response=env.response,
        **effort,  # type: ignore[arg-type]
    )


def search_ball(
    memory: tuple[Memory, Array | None],
    belief: Belief,
    n: int,
    *,
    warm: Array,
    effort: Effort,
    rng: np.random.Generator,
    before: Array | None = None,
    wrap: bool = False,
) -> Plan:
    """The search of the ball for n actions, of a cycle with `wrap`; `warm` (n*k, d) holds k side by side.

    `memory` is what `make_memory` makes. The first m of the n actions are `before` (m, d), if given.
    """
    params, form = memory
    columns = np.ascontiguousarray(warm.T)
    first = np.ascontiguousarray((np.empty((0, params.d)) if before is None else before).T)
    effort = effort._replace(stop=np.zeros(1, dtype=np.int64))
    block, value, evaluations, converged = interruptible(
        lambda: search(params, form, belief, n, wrap, first, columns, effort, -np.inf, rng),
        stop=lambda on: effort.stop.fill(on),
        seconds=most_seconds(effort, n, params.d, params.turn) if belief.kind != OM_BLOCK else math.inf,
    )
    return Plan(
        actions=np.ascontiguousarray(block.T),
        value=float(value),
        evaluations=int(evaluations),
        converged=bool(converged),
        exact=False,
        upper=math.inf,
    )


def _warm(previous: ArrayLike | None, before: Array | None, shape: tuple[int, int]) -> Array:
    """The block to start from, or none: a previous plan, after what was given before it."""
    n, d = shape
    if previous is None:
        return np.empty((0, d))
    if before is None:
        return validation.array("previous", previous, (n, d))
    return np.concatenate((before, validation.array("previous", previous, (n - len(before), d))))


def check_history(history: ArrayLike, m: int, d: int) -> Array:
    """The last m actions (m, d), checked."""
    return validation.in_ball("history", validation.array("history", history, (m, d)))


def without_first(plan: Plan, m: int) -> Plan:
    """The plan without its first m actions, which were given."""
    if m == 0:
        return plan
    indices = None if plan.indices is None else plan.indices[m:]
    return replace(plan, actions=plan.actions[m:], indices=indices)


def arms_of(actions: ActionSet, steps: int) -> Array:
    """The arms (K, d), or (steps, K, d) of the first steps of a set that varies."""
    return actions.sets()[:steps] if actions.varies else actions.sets()[0]


def plannable_memory(env: LBM) -> float:
    """The m of a model that can be planned for: it ends or, on the ball, fades."""
    fades = env.decay < 1.0 and isinstance(env.actions, Ball)
    return validation.memory("env.m", env.m, allow_inf=fades)


def finite_memory(env: LBM) -> int:
    """The m of a model whose memory must end."""
    return int(validation.memory("env.m", env.m, allow_inf=False))


def _effort(
    n: int,
    m: int,
    warm: bool,
    starts: int | None,
    moves: int | None,
    max_evaluations: int | None,
    tolerance: float,
) -> Effort:
    """The preset for a block of n actions, with what the caller asks for instead, checked."""
    preset = WARM_BLOCK if warm else cold_block(n, m)
    return preset._replace(
        starts=validation.integer(
            "starts", preset.starts if starts is None else starts, low=0 if warm else 1
        ),
        moves=validation.integer("moves", preset.moves if moves is None else moves, low=0),
        tolerance=preset.tolerance if tolerance == COLD_BLOCK.tolerance else tolerance,
        limit=UNLIMITED
        if max_evaluations is None
        else validation.integer("max_evaluations", max_evaluations, low=1),
    )
