"""Search without tables: owns how a set of arms becomes a problem of the compiled search."""

from __future__ import annotations

import numpy as np

from ..._base.interrupts import interruptible
from ..._base.types import Array
from ...kernels.arm_breeding import breed_arms
from ...kernels.arm_climbs import ArmProblem, ArmTask
from ...kernels.arm_search import ArmEffort, find_arms
from ...kernels.optimism import O3M, Belief
from ...kernels.rolling import features_after
from ..effort import arm_seconds, cold_arms, wide_arms
from ..plans import Index, Plan
from .objective import Objective, largest_value
from .rounds import find_by_rounds, poles_of, rounds_like
from .states import Model


def plan_by_search(
    model: Model,
    objective: Objective,
    rng: np.random.Generator,
    *,
    warm: Index | None = None,
    effort: ArmEffort | None = None,
) -> Plan:
    """A block of m+L arms; from `warm` (k, m+L) as well."""
    indices, _ = find(model, objective.belief, objective.n, rng, warm=warm, effort=effort)
    upper = largest_value(model, objective.belief, objective.n - model.m)
    return objective.plan(indices, objective.total(indices), upper, exact=False)


def search_cycle(objective: Objective, rng: np.random.Generator, found: Index) -> Index:
    """A cycle, from those that were `found` (count, period) and from random ones."""
    model, period = objective.model, objective.n
    constant = np.repeat(np.arange(model.K)[:, None], period, axis=1)
    drawn = rng.integers(model.K, size=(8, period))
    starts = np.concatenate((found, constant, drawn))
    return find(model, objective.belief, period, rng, warm=starts, wrap=True)[0]


def find(
    model: Model,
    belief: Belief,
    n: int,
    rng: np.random.Generator,
    *,
    wrap: bool = False,
    before: Array | None = None,
    warm: Index | None = None,
    effort: ArmEffort | None = None,
) -> tuple[Index, float]:
    """The best n arms that the search finds, and their value; with `before` (m, d), after these actions."""
    bonus = belief.beta > 0.0
    poles = None if wrap or model.varying or belief.kind != O3M else poles_of(model)
    if poles is not None:
        rounds = None if effort is None else rounds_like(effort, model, poles, bonus)
        starts = np.zeros((0, n), dtype=np.int64) if warm is None else warm
        found, value = find_by_rounds(model, belief, n, poles, starts, rng, effort=rounds, before=before)
        return found, value if before is None else value_after(model, belief, before, found)
    problem = make_problem(model, belief, n, wrap, before)
    first, kernel = problem.task.head, find_arms
    starts = np.zeros((0, first + n), dtype=np.int64)
    if warm is not None:
        starts = np.concatenate((np.zeros((len(warm), first)), warm), axis=1).astype(np.int64)
    if effort is None and belief.kind == O3M and not (wrap or first > 0 or model.varying):
        kernel, effort = breed_arms, wide_arms(model.memory, model.K, n, bonus=bonus)
    elif effort is None:
        effort = cold_arms(model.memory, model.K, bonus=bonus)
    effort = effort._replace(stop=np.zeros(1, dtype=np.int64))
    arms, value, _ = interruptible(
        lambda: kernel(problem, starts, effort, rng),
        stop=lambda on: effort.stop.fill(on),
        seconds=2.0 * arm_seconds(model.d),
    )
    return arms[first:].astype(np.intp), float(value)


def value_after(model: Model, belief: Belief, before: Array, indices: Index) -> float:
    """The sum of the optimistic rewards of arms after the actions `before` (m, d), exactly."""
    n, F = len(indices), np.zeros((len(indices), model.d))
    actions = np.ascontiguousarray(model.actions(np.arange(n), indices))
    features_after(model.memory, model.form, np.ascontiguousarray(before), actions, n, F)
    squares = np.einsum("ti,ij,tj->t", F, belief.V_inv, F)
    return float(np.sum(F @ belief.theta + belief.beta * np.sqrt(np.maximum(squares, 0.0))))


def make_problem(model: Model, belief: Belief, n: int, wrap: bool, before: Array | None) -> ArmProblem:
    """The problem of n arms, of a cycle with `wrap`, or after the actions `before` (m, d)."""
    head = 0 if before is None else len(before)
    given = np.zeros((model.d, head + n))
    if before is not None:
        given[:, :head] = before.T
    columns = model.columns()
    which = np.minimum(np.maximum(np.arange(-head, n), 0), len(columns) - 1)
    task = ArmTask(columns=columns, which=which, given=given, head=head, tail=0, wrap=wrap)
    return ArmProblem(memory=model.memory, A0=model.form, model=model.params, belief=belief, task=task)
