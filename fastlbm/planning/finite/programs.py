"""Plans from tables: owns the dynamic programs of additive and joint UCBs, and of a horizon."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from ..._base.types import Array
from ...kernels.dynamic_programs import bellman
from ...kernels.optimism import OM, OM_BLOCK, Belief
from ...kernels.ties import SUM_SHARE, exceeds, margin, reaches
from ..plans import Index, Plan
from .objective import SMALL, Objective, largest_eigenvalue
from .states import Model, Table, Tables, digits, ucb

#: Directions that the search for an OM plan begins with: along the longest axes, and of random blocks.
_AXES, _RANDOM = 8, 8
#: Products that a sweep over a block may take where dynamic programs do most of the work, some milliseconds.
_SWEEP_COST = 5e6
#: Step values of contextual sets that are kept at a time (32 MB).
_CHUNK = 2**22


def plan_additive(tables: Tables, objective: Objective, L: int) -> Plan:
    """One dynamic program."""
    model, states, (theta, V_inv, beta, _) = tables.model, tables.states, objective.belief
    m = model.m
    steps = range(m, m + L) if model.varying else range(m, m + 1)
    values = np.array([tables.values(t, theta, V_inv, beta) for t in steps])
    indices, upper, V = states.best_walk(values, L)
    if m > 0 and not model.varying:
        closed = states.best_closed(values[0], L, V, upper)
        indices = indices if closed is None else closed
    return objective.plan(indices, objective.total(indices), upper, exact=True)


def plan_joint(tables: Tables, objective: Objective, L: int, rng: np.random.Generator) -> Plan:
    """OM and OM-Block: the best block for theta', the best theta' for the block, and so on."""
    belief = objective.belief
    linear = _Linear(tables, belief, L)
    indices, upper = linear.additive_plan()
    cheap = objective.sweep_cost() <= _SWEEP_COST

    def climb(indices: Index, polish: bool) -> tuple[Index, float, Array]:
        value, direction = objective.gradient(indices)
        while True:
            after = linear.plan(direction)
            higher, turned = objective.gradient(after)
            rounding = margin(value, SUM_SHARE)
            if polish and not exceeds(higher, value, rounding):
                after = objective.improve(indices)
                higher, turned = objective.gradient(after)
            if not exceeds(higher, value, rounding):
                return indices, value, direction
            indices, value, direction = after, higher, turned

    # The ellipsoid of OM is small and its starts are many; OM-Block's has d(m+L) dimensions.
    polish = cheap and belief.kind == OM_BLOCK
    best, value, direction = climb(indices, polish)
    seen = {indices.tobytes(), best.tobytes()}
    for start in _directions(objective, rng):
        if reaches(value, upper, margin(upper, SUM_SHARE)):
            break
        indices = linear.plan(start)
        if indices.tobytes() not in seen:
            seen.add(indices.tobytes())
            indices, higher, turned = climb(indices, polish)
            seen.add(indices.tobytes())
            if higher > value:
                best, value, direction = indices, higher, turned
    if cheap and not polish:
        best, value, direction = climb(best, True)
    closed = linear.closed_plan(direction)
    if closed is not None:
        higher, _ = objective.gradient(closed)
        if reaches(higher, value, margin(value, SUM_SHARE)):
            best, value = closed, higher
    size = objective.size(best)
    if belief.kind == OM_BLOCK and size > 0.0:
        upper = min(upper, linear.quadratic_bound(size))
    exact = reaches(value, upper, margin(upper, SUM_SHARE))
    return objective.plan(best, value, upper, exact)


def _directions(objective: Objective, rng: np.random.Generator) -> Iterator[Array]:
    """theta' to begin with, as parts (1 or m+L, d): the centre, the ends of axes, those of random blocks."""
    theta, V_inv, beta, _ = objective.belief
    shape = -1, objective.model.d
    yield theta.reshape(shape)
    if beta > 0.0:
        if len(theta) <= SMALL:
            spectrum, Q = np.linalg.eigh(V_inv)
            axes = Q * (beta * np.sqrt(np.maximum(spectrum, 0.0)))
            for axis in axes.T[::-1][:_AXES]:
                yield (theta + axis).reshape(shape)
                yield (theta - axis).reshape(shape)
        for _ in range(_RANDOM):
            yield objective.gradient(rng.integers(objective.model.K, size=objective.n))[1]


def _products(parts: Array, B: Array) -> Array:
    """<part, b> (steps, N) of parts (steps, d) and features (steps, d, N); one step stands for all."""
    products: Array
    if len(B) == 1:
        products = np.einsum("ti,in->tn", parts, B[0], order="C")
    else:
        products = np.einsum("ti,tin->tn", np.broadcast_to(parts, (len(B), len(B[0]))), B, order="C")
    return products


class _Linear:
    """Exact plans of <b, theta'> for any theta', from the features of every window and arm.

    theta' comes in parts: one for all steps (OM), or one for each of the m+L steps (OM-Block), of which the
    first m belong to the actions themselves.
    """

    def __init__(self, tables: Tables, belief: Belief, L: int) -> None:
        model = tables.model
        m = model.m
        self.belief, self.L, self.states = belief, L, tables.states
        self.B = (
            np.array([tables.features(t) for t in range(m, m + L)])
            if model.varying
            else tables.features(m)[None]
        )
        self.first = [np.ascontiguousarray(model.at(t).T) for t in range(m if belief.kind == OM_BLOCK else 0)]
        self.shape = -1, len(self.states.windows), model.K
        self.closes = not model.varying and belief.kind == OM and m > 0

    def _first_values(self, terms: Iterable[Array]) -> Array:
        """Sums (S,) of what the arms of a state add, one term (K,) for each of them; no terms add 0."""
        total = np.zeros(1)
        for term in terms:
            total = (total[:, None] + term).ravel()
        return total if len(total) == self.states.S else np.zeros(self.states.S)

    def plan(self, direction: Array) -> Index:
        """The best block for theta' = direction (1 or m+L, d)."""
        values = _products(direction[-self.L :], self.B).reshape(self.shape)
        first = self._first_values(part @ arms for part, arms in zip(direction, self.first, strict=False))
        return self.states.best_walk(values, self.L, first)[0]

    def closed_plan(self, direction: Array) -> Index | None:
        """Of the best blocks for theta' the one that closes best as a cycle; None where that is undefined."""
        if not self.closes:
            return None
        values = _products(direction, self.B).reshape(self.shape)
        _, top, V = self.states.best_walk(values, self.L)
        return self.states.best_closed(values[0], self.L, V, top)

    def additive_plan(self) -> tuple[Index, float]:
        """The best block if every part had a bonus of its own, and its value, which bounds all values.

        ||sum of parts|| <= sum of ||part||, the reason why O3M's bound is above OM's.
        """
        theta, V_inv, beta, _ = self.belief
        d, m = self.B.shape[1], len(self.first)
        parts = [
            (theta[i : i + d], np.ascontiguousarray(V_inv[i : i + d, i : i + d]), beta)
            for i in range(0, len(theta), d)
        ]
        steps = max(len(parts) - m, len(self.B))
        values = np.array([ucb(self.B[j % len(self.B)], *parts[(m + j) % len(parts)]) for j in range(steps)])
        first = self._first_values(ucb(arms, *parts[i]) for i, arms in enumerate(self.first))
        indices, upper, _ = self.states.best_walk(values.reshape(self.shape), self.L, first)
        return indices, upper

    def quadratic_bound(self, size: float) -> float:
        """A bound of all values of OM-Block, good if the best b is about as long as `size` > 0.

        beta ||b|| <= beta sqrt(lambda) |b| <= beta sqrt(lambda) (size + |b|^2/size)/2 with the largest
        eigenvalue lambda of V_inv, or a bound of it, and |b|^2 is a sum over the parts.
        """
        theta, V_inv, beta, _ = self.belief
        scale = 0.5 * beta * math.sqrt(largest_eigenvalue(V_inv))
        parts = theta.reshape(len(self.first) + self.L, -1)
        weight = scale / size
        values = _products(parts[-self.L :], self.B) + weight * np.square(self.B).sum(axis=1)
        first = self._first_values(
            part @ arms + weight * np.square(arms).sum(axis=0)
            for part, arms in zip(parts, self.first, strict=False)
        )
        return self.states.best_walk(values.reshape(self.shape), self.L, first)[1] + scale * size


def late_steps(tables: Tables, theta: Array, T: int, V: Array, policy: Table) -> float:
    """Steps m..T-1 of a horizon, backwards; V (S,) holds 0, then what each state collects, less a shift.

    Returns the shift. policy (T-m, S), or (0, S) to do without, gets the best arms.
    """
    model, m = tables.model, tables.model.m
    shift = 0.0
    for begin, values in _backward_values(tables, theta, T):
        steps = len(values) if model.varying else T - m
        part = policy[begin - m : begin - m + steps] if len(policy) else policy
        shift += float(bellman(values, tables.states.rank, steps, V, part))
    return shift


def _backward_values(tables: Tables, theta: Array, T: int) -> Iterator[tuple[int, Array]]:
    """Step values of the steps m..T-1, the last ones first, as (first step, values (steps, W, K))."""
    model, m = tables.model, tables.model.m
    if not model.varying:
        yield m, tables.rewards(m, theta)[None]
        return
    chunk = max(1, _CHUNK // (tables.states.S * model.K))
    for end in range(T, m, -chunk):
        begin = max(m, end - chunk)
        yield begin, np.array([tables.rewards(t, theta) for t in range(begin, end)])


def early_steps(model: Model, theta: Array, V: Array, steps: int) -> tuple[Array, list[Index]]:
    """The first steps <= m of a horizon, with zero actions before them: step t has K^t states.

    V (K^steps,) is what each state collects afterwards. Returns that of the one first state, (1,), and the
    best arms of the states of every step.
    """
    m, K = model.m, model.K
    policy: list[Index] = []
    for t in range(steps - 1, -1, -1):
        windows = np.zeros((K**t, m), dtype=np.int32)
        windows[:, m - t :] = digits(np.arange(K**t), K, t)
        sets = np.zeros((m, K, model.d))
        for i in range(t):
            sets[m - t + i] = model.at(i)
        rewards = model.rewards(sets, windows, theta, model.at(t))
        rewards += V.reshape(-1, K)
        policy.append(rewards.argmax(axis=1))
        V = rewards.max(axis=1)
    return V, policy[::-1]


def follow(early: list[Index], late: Table, K: int) -> Index:
    """The arms (T,) that the policies of the early and late steps choose."""
    steps, S = len(early), late.shape[1]
    indices = np.empty(steps + len(late), dtype=np.intp)
    state = 0
    for t in range(len(indices)):
        indices[t] = early[t][state] if t < steps else late[t - steps, state]
        state = state * K + int(indices[t])
        if t >= steps:
            state %= S
    return indices
