"""Rolling plans: owns the state of a learner that plans from its true history, and its blocks.

Every reward after a known history is linear in a feature that the learner can compute, so all of them count
and all are learned from. A block is what is played of a plan; the next plan starts from the rest of it.
With `switch` a plan is the way into a cycle, one block, and the cycle, repeated, another.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_nested, kernel_norefcount
from ._types import Integers, Matrix, Rows, Vector
from .block_state import BlockState, cursor, length, plans_made, start_short_block
from .blocks import features, make_work
from .estimator import LOG_DET, SAMPLES, Estimator, passes_of_plan
from .fading import Fading, push_past
from .learning import Learner, LearnerConfig, learn_from_block, radius
from .lookahead import better_cycle, plan_ahead
from .memory import Memory
from .optimism import Belief
from .search import Effort

#: The cycle is searched anew when det V has grown by this factor.
NEW_CYCLE = 1.5
#: A plan is played to its end only after so many times as many steps: the first ones are guesses.
SETTLED = 4
#: Most periods that are tried then; and how many times more once theta is known, when a cycle stays the best.
MOST_TRIES = 16
MORE_TRIES = 4
#: theta is known where its confidence set is so small a share of it.
KNOWN = 1e-3

# Entries of `Outlook.marks`: actions planned and not played yet, period of the cycle, the phase at which it
# goes on after the plan, whether the cycle comes next.
_LEFT, _PERIOD, _PHASE, _ENTERED = 0, 1, 2, 3


class Outlook(NamedTuple):
    """What a rolling learner carries from plan to plan, changed in place."""

    recent: Rows  # (m, d) the last actions that were played
    plan: Rows  # (d, ahead+m) the rest of the last plan, from its beginning; as of `plan_ahead`
    cycle: Rows  # (d, longest period)
    marks: Integers  # (4,)
    log_det: Vector  # (1,) of V, when the cycle was searched
    past: Matrix  # (d, d) of a memory without end: what `Fading` calls so, the same array; else (0, 0)


class RollingConfig(NamedTuple):
    """How a rolling learner plans."""

    ahead: int
    play: int
    patience: int  # steps for which one more period of cycles is tried
    thrifty: bool  # no period is tried beyond that
    cycles: Effort  # for each of them
    steps: Effort  # for the actions ahead


class RollingPlanner(NamedTuple):
    """A learner that plans from its true history, on the ball."""

    learner: Learner
    memory: Memory
    A0: Matrix | None
    outlook: Outlook
    rolling: RollingConfig


def make_outlook(memory: Memory, form: Any, ahead: int, longest: int) -> Outlook:
    """Nothing was played, nothing is planned."""
    m, d = memory.m, memory.d
    return Outlook(
        recent=np.zeros((m, d)),
        plan=np.zeros((d, ahead + memory.tail)),
        cycle=np.zeros((d, longest)),
        marks=np.zeros(4, dtype=np.int64),
        log_det=np.zeros(1),
        past=form.past if isinstance(form, Fading) else np.zeros((0, 0)),
    )


def check_outlook(outlook: Outlook, ahead: int) -> None:
    """Raise a `ValueError` unless a learner can go on from it."""
    longest = outlook.cycle.shape[1]
    left, period, phase, entered = outlook.marks.tolist()
    known = 0 <= period <= longest and 0 <= phase < max(period, 1)
    if not (0 <= left <= ahead and known and entered in (0, min(period, 1))):
        raise ValueError(f"a plan of {ahead} actions cannot stand at {outlook.marks.tolist()}")
    for actions in (outlook.recent.T, outlook.plan, outlook.cycle):
        if not float(np.square(actions).sum(axis=0).max(initial=0.0)) <= 1.0 + 1e-6:
            raise ValueError("the actions of a plan must lie in the unit ball")
    if not np.isfinite(outlook.log_det).all():
        raise ValueError("a determinant must be finite")
    if not (np.isfinite(outlook.past).all() and (outlook.past == outlook.past.T).all()):
        raise ValueError("what was played must be a symmetric matrix")


@inline
def learn_rolling(planner: RollingPlanner, block: BlockState) -> None:
    """What a rolling learner takes from a block: all rewards, and what was played."""
    config, e, F = planner.learner
    learn_from_block(config, e, F, block)
    if plans_made(block) > 0:
        _push_block(planner.memory, block, planner.outlook)


@kernel_nested
def _push_block(memory: Memory, block: BlockState, outlook: Outlook) -> None:
    """The last m actions, or all, after the block was played as often as it was to be."""
    n, (m, d) = length(block), outlook.recent.shape
    _, passes, _ = cursor(block)
    played = n * passes
    for _ in range(passes if memory.endless else 0):
        push_past(outlook.past, memory.decay, block.actions, 0, n)
    for s in range(m):
        back = m - s  # steps before now
        for i in range(d):
            if back <= played:
                outlook.recent[s, i] = block.actions[(n - back % n) % n, i]
            else:
                outlook.recent[s, i] = outlook.recent[s + played, i]
    move_on(outlook, played)


@inline
def move_on(outlook: Outlook, played: int) -> None:
    """So many actions of the plan were played."""
    outlook.marks[_LEFT] = max(outlook.marks[_LEFT] - played, 0)


def forget_cycle(outlook: Outlook) -> None:
    """What comes after a plan is searched anew in the next one, from what there is."""
    outlook.log_det[0] = -1e300  # less than any: the next plan searches


def set_recent(memory: Memory, outlook: Outlook, recent: Rows) -> None:
    """The actions `recent` (m, d) were played last; of a memory without end, any number of them."""
    if memory.endless:
        outlook.past[:] = 0.0
        push_past(outlook.past, memory.decay, np.ascontiguousarray(recent), 0, len(recent))
    else:
        outlook.recent[:] = recent


def start_from(memory: Memory, outlook: Outlook, recent: Rows) -> None:
    """As `set_recent`, and nothing is planned; the cycle is still known."""
    set_recent(memory, outlook, recent)
    outlook.marks[_LEFT], outlook.marks[_ENTERED] = 0, 0


@kernel_norefcount
def plan_block_from_here(planner: RollingPlanner, block: BlockState, rng: np.random.Generator) -> None:
    """`plan_rolling` for Python."""
    plan_rolling(planner, block, rng)


@inline
def plan_rolling(planner: RollingPlanner, block: BlockState, rng: np.random.Generator) -> None:
    """The next actions of a plan from here; with `switch`, the way into a cycle or the cycle."""
    config, e, F = planner.learner
    _plan_from_here(config, e, F, planner.memory, planner.A0, planner.outlook, planner.rolling, block, rng)


@kernel_nested
def _plan_from_here(
    config: LearnerConfig,
    e: Estimator,
    F: Rows,
    memory: Memory,
    A0: Matrix | None,
    outlook: Outlook,
    rolling: RollingConfig,
    block: BlockState,
    rng: np.random.Generator,
) -> None:
    marks, d = outlook.marks, memory.d
    if marks[_ENTERED] == 1:
        # What comes before are m actions of the cycle: its windows are its own from the first on.
        marks[_ENTERED] = 0
        P = marks[_PERIOD]
        for t in range(P):
            for i in range(d):
                block.actions[t, i] = outlook.cycle[i, (marks[_PHASE] + t) % P]
        features_after(memory, A0, outlook.recent, block.actions, P, F)
        start_short_block(block, P, passes_of_plan(e, F[:P], config.switch, 0))
        return
    belief = Belief(e.theta, e.V_inv, radius(config, e), config.kind)
    renewed = _renew_cycle(config, e, memory, A0, belief, outlook, rolling, rng)
    P = marks[_PERIOD]
    cycle = _first_columns(outlook.cycle, P)
    ahead, left = rolling.ahead, marks[_LEFT]
    joins = np.arange(P) if renewed else np.full(1, (marks[_PHASE] + P * memory.tail - memory.tail) % P)
    if left == 0:
        joins = joins[:0]
    given = min(left, ahead)
    warm = np.empty((d, given))
    shift = outlook.plan.shape[1] - left - memory.tail
    for i in range(d):
        for t in range(given):
            warm[i, t] = outlook.plan[i, shift + t]
    plan, phase, _, _ = plan_ahead(
        memory, A0, belief, outlook.recent, cycle, warm, joins, renewed or left == 0, ahead, rolling.steps
    )
    if rolling.steps.stop[0] != 0:
        return  # nothing was planned: the block is still done
    for i in range(d):
        for t in range(plan.shape[1]):
            outlook.plan[i, t] = plan[i, t]
    marks[_LEFT], marks[_PHASE] = ahead, phase
    n = rolling.play
    if config.switch > 0.0 and e.ledger[SAMPLES] >= SETTLED * (ahead + memory.m):
        marks[_ENTERED] = 1
        n = ahead + memory.m
    for t in range(n):
        for i in range(d):
            block.actions[t, i] = plan[i, t]
    features_after(memory, A0, outlook.recent, block.actions, n, F)
    start_short_block(block, n, 1)


@kernel_nested
def _first_columns(x: Rows, n: int) -> Rows:
    """A copy of them."""
    out = np.empty((x.shape[0], n))
    for i in range(x.shape[0]):
        for t in range(n):
            out[i, t] = x[i, t]
    return out


@kernel_nested
def _renew_cycle(
    config: LearnerConfig,
    e: Estimator,
    memory: Memory,
    A0: Matrix | None,
    belief: Belief,
    outlook: Outlook,
    rolling: RollingConfig,
    rng: np.random.Generator,
) -> bool:
    """Searches the cycle anew, if there is none or enough was learned since; returns whether it did."""
    P = outlook.marks[_PERIOD]
    grown = e.ledger[LOG_DET] > outlook.log_det[0] + math.log(NEW_CYCLE)
    if P > 0 and not grown and config.switch == 0.0:
        return False
    warm = _first_columns(outlook.cycle, P)
    # In proportion to the steps until the next search, if det V goes on growing like samples^d.
    steps = e.ledger[SAMPLES] * (NEW_CYCLE ** (1.0 / memory.d) - 1.0)
    more = MORE_TRIES if config.switch == 0.0 and _is_known(belief) else 1
    tries = 1 + int(more * steps / rolling.patience)
    if rolling.thrifty and P > 0:
        tries = int(steps / rolling.patience + rng.random())
    tries = min(tries, more * MOST_TRIES)
    longest = outlook.cycle.shape[1]
    cycle = better_cycle(memory, A0, belief, warm, longest, tries, rolling.cycles, rng)
    P = cycle.shape[1]
    for i in range(memory.d):
        for t in range(P):
            outlook.cycle[i, t] = cycle[i, t]
    outlook.marks[_PERIOD] = P
    outlook.log_det[0] = e.ledger[LOG_DET]
    return True


@kernel_nested
def _is_known(belief: Belief) -> bool:
    """Whether what is not known of theta changes no plan that is worth a search."""
    spread, size = 0.0, 0.0
    for i in range(belief.theta.shape[0]):
        spread += belief.V_inv[i, i]
        size += belief.theta[i] * belief.theta[i]
    return belief.beta * belief.beta * spread <= KNOWN * KNOWN * size


@kernel
def features_after(memory: Memory, A0: Matrix | None, before: Rows, actions: Rows, n: int, F: Rows) -> None:
    """F (.., d), its first n rows: the features of n actions (.., d) after the actions `before` (m, d)."""
    m, d = before.shape
    sequence = np.empty((d, m + n))
    for i in range(d):
        for t in range(m + n):
            sequence[i, t] = before[t, i] if t < m else actions[t - m, i]
    work = make_work(memory, A0, m + n, 1)
    features(memory, A0, sequence, 1, work)
    for t in range(n):
        for i in range(d):
            F[t, i] = work.B[i, m + t]
