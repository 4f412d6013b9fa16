"""Candidates weighed by their evidence: owns their posterior, who plans, and runs between events.

As long as nobody is given up or offered and the same candidate plans, a run on the ball stays in here. What
is rare is an event: the run returns to Python, which sees to it and comes back.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal, kernel_nested, kernel_norefcount
from ._types import Flags, Integers, Matrix, Rows, Vector
from .block_state import BlockState, is_done, length, next_step, plans_made
from .estimator import SAMPLES, noise_variance
from .evidence import (
    PRIOR_SCALE,
    PRIOR_SHAPE,
    CandidateSet,
    absorb_block,
    candidate_features,
    evidence_terms,
    push_all,
)
from .playing import Recorder, elapsed, play_block
from .rewards import History, ModelParams
from .rolling import RollingPlanner, move_on, plan_rolling

#: Steps before longer memories are offered, and before more of those that fade are.
FEW, ENOUGH = 60, 120
#: Signs that more must be offered, see `more_to_offer`.
LARGEST, ENDLESS = 1, 2
#: Candidates are given up when so many of those alive are left.
LEFT = 0.7
#: The memory that plans is drawn anew when there are so many times as many steps, or when it is less probable
#: than another one by this factor, e^7.
REDRAW, UNLIKELY = 1.1, 7.0
#: Log evidences that differ by less are equal.
EQUAL = 1e-9
#: Steps before the first look for a misfit, times as many before the next one, and steps until then after one
#: that found something: those who are offered then have learned from the past already.
FIRST_LOOK, NEXT_LOOK, SECOND_LOOK = 290, 1.6, 30
#: Steps before the first probe, and times as many before the next one.
FIRST_PROBE, NEXT_PROBE = 75, 2.2

# Entries of `marks`: steps so far, whether a misfit was told, times that more memories were offered, looks
# for a misfit so far, how many of the last found one, the step at which the memory is drawn anew.
STEPS, TOLD, OFFERS, LOOKS, FOUND, DRAW = 0, 1, 2, 3, 4, 5
# Entries of `probing`: probes so far, steps of the last one that are not planned yet, whether the block is of
# it, the steps before it, the steps before the last look, whether others played before the first step.
PROBES, TO_GO, PROBING, LAST_PROBE, LAST_LOOK, CONTINUED = 0, 1, 2, 3, 4, 5

#: What Python must see to: nothing, for the steps are played; a plan that was stopped; memories to offer;
#: candidates to give up; another candidate who plans; a look for a misfit; a log that is full; a probe.
PLAYED, STOPPED, OFFER, GIVE_UP, USE, LOOK, FULL, PROBE = 0, 1, 2, 4, 8, 16, 32, 64
#: In an event, the number of the candidate who plans is above this.
EVENTS = 128


class Weighing(NamedTuple):
    """Candidates who learn from everything that is played, and what of it is kept; changed in place."""

    candidates: CandidateSet
    log_prior: Vector  # (N,)
    posterior: Vector  # (N,) its logarithm, when it was taken last
    scales: Vector  # (K,) of lam, each as likely as the others
    sigma: float  # the noise, or 0 if it is not known
    behind: float  # who is less probable than another one by e to this is given up
    edge: Integers  # (N,) LARGEST, ENDLESS or 0: who is a sign, if probable, that more must be offered
    fades: bool  # whether more memories that fade may be offered
    past: Matrix  # (D, d, d) what memories without end hold
    recent: Rows  # (M, d) the last actions
    arms: Integers  # (M,) their numbers
    picked: Integers  # (n,) those of the block
    features: Rows  # (n, N d) of the block
    windows: Rows  # (n, (M+1) d + D d^2) of the block's actions, each behind the M before it; and `past` then
    actions: Rows  # (2K, d) the first K steps, then the last ones, in a ring
    rewards: Vector  # (2K,)
    seen: Flags  # (2K,) whether there was a reward
    probed: Flags  # (2K,) whether it was a probe
    marks: Integers  # (6,)
    probing: Integers  # (6,)


# --- what is known --------------------------------------------------------------------------------------


@kernel
def weigh(w: Weighing) -> None:
    """The posterior of the candidates, by the evidence of `evidence_selector.evidence_of` over all scales.

    All candidates have seen the same rewards: what depends on their number alone cancels.
    """
    N, K = w.log_prior.shape[0], w.scales.shape[0]
    log_det, rest, logs = np.empty((N, K)), np.empty((N, K)), np.empty(K)
    evidence_terms(w.candidates, w.scales, log_det, rest)
    largest = -np.inf
    for j in range(N):
        shape = PRIOR_SHAPE + 0.5 * w.candidates.ledger[j, SAMPLES]
        for k in range(K):
            if w.sigma > 0.0:
                logs[k] = -0.5 * (log_det[j, k] + rest[j, k] / (w.sigma * w.sigma))
            else:
                logs[k] = -shape * math.log(PRIOR_SCALE + 0.5 * rest[j, k]) - 0.5 * log_det[j, k]
        value = w.log_prior[j] + _log_sum(logs)
        w.posterior[j] = value if np.isfinite(value) else -np.inf
        largest = max(largest, w.posterior[j])
    for j in range(N):
        w.posterior[j] -= largest
    total = _log_sum(w.posterior)
    for j in range(N):
        w.posterior[j] -= total


@kernel_internal
def _log_sum(x: Vector) -> float:
    """ln of the sum of e^x."""
    top, total = -np.inf, 0.0
    for k in range(x.shape[0]):
        top = max(top, x[k])
    if top == -np.inf:
        return top
    for k in range(x.shape[0]):
        total += math.exp(x[k] - top)
    return top + math.log(total)


@kernel_norefcount
def most_probable(w: Weighing, memory: int) -> int:
    """The most probable candidate with a memory, -1 for any: of equal ones the first, rounding aside."""
    largest = -np.inf
    for j in range(w.posterior.shape[0]):
        if memory < 0 or w.candidates.memory[j] == memory:
            largest = max(largest, w.posterior[j])
    for j in range(w.posterior.shape[0]):
        if (memory < 0 or w.candidates.memory[j] == memory) and w.posterior[j] >= largest - EQUAL:
            return j
    return 0


@kernel_norefcount
def draw_is_due(w: Weighing, chosen: int) -> bool:
    """Whether the memory of the candidate who plans is to be drawn anew; -1 for one who was given up."""
    if chosen < 0 or w.marks[STEPS] >= w.marks[DRAW]:
        return True
    mine, any_ = most_probable(w, w.candidates.memory[chosen]), most_probable(w, -1)
    return w.posterior[mine] < w.posterior[any_] - UNLIKELY


@kernel_norefcount
def choose(w: Weighing, chosen: int, rng: np.random.Generator) -> int:
    """The most probable one of a memory that is drawn from the posterior, now and then.

    The plan of a memory that is too long shows nothing of what a shorter one would earn: the most probable
    candidate alone can be wrong for ever.
    """
    likely = chosen
    if draw_is_due(w, chosen):
        w.marks[DRAW] = math.ceil(REDRAW * w.marks[STEPS])
        at, total = rng.random(), 0.0
        likely = w.posterior.shape[0] - 1
        for j in range(w.posterior.shape[0]):
            total += math.exp(w.posterior[j])
            if total >= at:
                likely = j
                break
    return most_probable(w, w.candidates.memory[likely])


@kernel_norefcount
def is_behind(w: Weighing) -> bool:
    """Whether so many candidates are far behind that they are to be given up."""
    N, left = w.posterior.shape[0], 0
    floor = w.posterior[most_probable(w, -1)] - w.behind
    for j in range(N):
        left += w.posterior[j] > floor
    return left < LEFT * N


@kernel_norefcount
def more_to_offer(w: Weighing) -> int:
    """LARGEST if the largest memory on offer is the most probable, and larger ones may be offered.

    ENDLESS if one without end is, or if a look found a misfit, and more that fade may be; else 0.
    """
    largest, endless = 0.0, 0.0
    for j in range(w.posterior.shape[0]):
        likely = math.exp(w.posterior[j])
        largest += likely if w.edge[j] == LARGEST else 0.0
        endless += likely if w.edge[j] == ENDLESS else 0.0
    if w.marks[STEPS] >= FEW and largest > 0.5:
        return LARGEST
    if w.fades and ((w.marks[STEPS] >= ENOUGH and endless > 0.5) or w.marks[FOUND] > 0):
        return ENDLESS
    return 0


@kernel_norefcount
def look_is_due(w: Weighing) -> bool:
    """Whether it is time to look for a misfit."""
    steps, last = w.marks[STEPS], w.probing[LAST_LOOK]
    if w.marks[TOLD] > 0 or steps < FIRST_LOOK:
        return False
    return steps >= NEXT_LOOK * last or (w.marks[FOUND] > 0 and steps >= last + SECOND_LOOK)


@kernel_norefcount
def probe_is_due(w: Weighing) -> bool:
    """Whether the next block is one of a probe; once a misfit was told there is no need for any."""
    steps = w.marks[STEPS]
    if w.marks[TOLD] > 0:
        return False
    return w.probing[TO_GO] > 0 or (steps >= FIRST_PROBE and steps >= NEXT_PROBE * w.probing[LAST_PROBE])


# --- what is played -------------------------------------------------------------------------------------


@inline
def kept_row(step: int, room: int) -> int:
    """Where a step is kept, if the first and the last `room` are."""
    return step if step < room else room + step % room


@kernel
def learn_played(w: Weighing, block: BlockState, played: int) -> None:
    """The first `played` actions of the block were played: they are kept and learned from."""
    room, (M, d) = w.rewards.shape[0] // 2, w.recent.shape
    for t in range(played):
        row, count = kept_row(w.marks[STEPS] + t, room), block.reward_counts[t]
        w.seen[row], w.probed[row] = count > 0.0, w.probing[PROBING] > 0
        w.rewards[row] = block.reward_sums[t] / count if count > 0.0 else 0.0
        for i in range(d):
            w.actions[row, i] = block.actions[t, i]
    w.marks[STEPS] += played
    w.probing[PROBING] = 0
    absorb_block(w.candidates, w.features, block)
    for s in range(M):
        for i in range(d):
            if s + played < M:
                w.recent[s, i] = w.recent[s + played, i]
            else:
                w.recent[s, i] = block.actions[s + played - M, i]
        w.arms[s] = w.arms[s + played] if s + played < M else w.picked[s + played - M]
    push_all(w.candidates, w.past, block.actions, 0, played)


@kernel
def lay_out(w: Weighing, block: BlockState) -> None:
    """The windows and the features of the actions of a new block, for every candidate."""
    (M, d), n, past = w.recent.shape, block.actions.shape[0], w.past.copy()
    for t in range(n):
        for k in range(past.shape[0]):
            for i in range(d):
                for j in range(d):
                    w.windows[t, (M + 1 + k * d + i) * d + j] = past[k, i, j]
        push_all(w.candidates, past, block.actions, t, t + 1)
        for s in range(M + 1):
            for i in range(d):
                action = w.recent[t + s, i] if t + s < M else block.actions[t + s - M, i]
                w.windows[t, s * d + i] = action
    candidate_features(w.candidates, w.past, w.recent, block.actions, w.features)


@kernel_norefcount
def run_weighed(
    w: Weighing,
    planner: RollingPlanner,
    chosen: int,
    log: Matrix,
    block: BlockState,
    rng: np.random.Generator,
    model: ModelParams,
    history: History,
    recorder: Recorder,
    noise: np.random.Generator,
    until: int,
) -> int:
    """Learns, chooses, plans and plays on the ball, until a given step or an event, which is returned.

    `planner` is that of the candidate `chosen`. After an event what was played is learned from, and the next
    block is not planned. `log` (n, 4) gets a row for each plan: its step, the probability and the noise of
    the one who plans, and 1.
    """
    rows = 0
    while elapsed(recorder) < until:
        if is_done(block):
            if plans_made(block) > 0:
                learn_played(w, block, length(block))
                move_on(planner.outlook, length(block))
            event = _event(w, chosen, rng)
            if rows == log.shape[0] - 1:
                event |= FULL
            if event % EVENTS != PLAYED:
                return event
            log[rows, 0], log[rows, 1] = next_step(block), math.exp(w.posterior[chosen])
            log[rows, 2], log[rows, 3] = math.sqrt(noise_variance(planner.learner.estimator)), 1.0
            rows += 1
            plan_after(w, planner, chosen, block, rng)
            if is_done(block):
                return STOPPED
        play_block(model, history, recorder, block, noise, until)
    return PLAYED


@kernel_nested
def _event(w: Weighing, chosen: int, rng: np.random.Generator) -> int:
    """What there is to see to before the next plan, and EVENTS times who plans it."""
    weigh(w)
    if more_to_offer(w) != 0:
        return OFFER
    if is_behind(w):
        return GIVE_UP
    found = choose(w, chosen, rng)
    event = EVENTS * found
    if found != chosen:
        event |= USE
    if look_is_due(w):
        event |= LOOK
    if probe_is_due(w):
        event |= PROBE
    return event


@inline
def plan_after(
    w: Weighing, planner: RollingPlanner, chosen: int, block: BlockState, rng: np.random.Generator
) -> None:
    """The next block, after the last actions."""
    outlook, M = planner.outlook, w.recent.shape[0]
    m, d = outlook.recent.shape
    at = w.candidates.endless[chosen]
    for i in range(d if planner.memory.endless else 0):
        for k in range(d):
            outlook.past[i, k] = w.past[at, i, k]
    for s in range(m):
        for i in range(d):
            outlook.recent[s, i] = w.recent[M - m + s, i]
    plan_rolling(planner, block, rng)
    lay_out(w, block)
