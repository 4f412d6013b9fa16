"""Cycles: owns the maximum mean cycle and the cycles of a fixed period."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..._base.types import Array
from ...kernels.dynamic_programs import bellman, howard
from ...kernels.ties import SUM_SHARE, margin, reaches
from ..plans import Index
from .states import States, Walks, digits, places

#: Iterations of Howard's algorithm, which rarely takes twenty.
_ITERATIONS = 1000


class MeanCycle(NamedTuple):
    """A cycle of mean c with values(s, a) - c + bias(s') <= bias(s) + gap: no mean is above c + gap."""

    indices: Index
    mean: float
    bias: Array  # (S,)
    gap: float
    exact: bool


def maximum_mean_cycle(states: States, values: Array) -> MeanCycle:
    """The maximum mean cycle of step values (W, K)."""
    K, rank = states.K, states.rank
    policy = values.argmax(axis=1).astype(np.int32)[rank]
    bias = np.zeros(states.S)
    rounding = margin(float(np.abs(values).max()), SUM_SHARE)
    root, gap = howard(values, rank, policy, bias, rounding, _ITERATIONS)
    arms: list[int] = []
    rewards: list[float] = []
    state = root
    while not arms or state != root:
        arms.append(int(policy[state]))
        rewards.append(float(values[rank[state], arms[-1]]))
        state = (state * K + arms[-1]) % states.S
    mean = math.fsum(rewards) / len(arms)
    indices = np.array(arms, dtype=np.intp)
    return MeanCycle(indices=indices, mean=mean, bias=bias, gap=float(gap), exact=gap <= 10.0 * rounding)


def closed_walk(
    states: States, values: Array, period: int, known: Index | None, most: float
) -> tuple[Index, bool]:
    """The closed walk of `period` steps with the largest sum of step values (W, K), and whether it is that.

    `known` (period,) is a good one; with more than `most` operations to do, the best so far is returned.

    With the bias of the maximum mean cycle, no steps from s to s' earn more than bias(s) - bias(s') above its
    mean: this bounds what a start can give, and prunes the way.
    """
    K, m, S = states.K, states.m, states.S
    if period <= m:
        cycles = digits(np.arange(K**period), K, period)
        before = cycles[:, np.arange(-m, 0) % period]
        totals = states.collect(values, before @ places(K, m), cycles.T)
        return cycles[int(totals.argmax())], True
    top = maximum_mean_cycle(states, values)
    if period % len(top.indices) == 0:
        return np.tile(top.indices, period // len(top.indices)), top.exact
    rounding = period * (margin(float(np.abs(values).max()), SUM_SHARE) + max(top.gap, 0.0))
    # Walks through a start that is done need no second look: it gets a row of its own, which leads nowhere.
    centred = np.vstack((values - top.mean, np.full((1, K), -math.inf)))
    rank = states.rank.copy()
    walks = Walks(states, period)
    indices = top.indices[np.arange(period) % len(top.indices)] if known is None else known
    before = indices[np.arange(-m, 0) % period] @ places(K, m)
    best = float(states.collect(centred, np.array([before]), indices)[0])
    batch = 1
    while True:
        V = top.bias.copy()
        V += bellman(centred[None], rank, period, V, np.empty((0, S), dtype=np.int32))
        bound = V - top.bias
        walks.operations += period * S * K
        for start in np.argsort(-bound, kind="stable")[:batch]:
            if reaches(best, bound[start], rounding):
                return indices, top.exact
            if walks.operations > most:
                return indices, False
            ends, totals = walks.reach(centred, rank, int(start), top.bias, rounding - best)
            total = float(totals[ends == start].max(initial=-math.inf))
            rank[start] = len(values)
            if total > best:
                best, indices = total, walks.trace(int(start))
        batch *= 2
