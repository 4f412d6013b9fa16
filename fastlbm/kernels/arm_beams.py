"""A beam of prefixes: owns which arms a prefix may grow by, and which prefixes stay.

All have the same number of arms. Each is tried with the arms that are best by a form of `arm_screens`, and
grows by those that are best by what they earn and what `arm_prefixes` promises. Of all that come of them the
best stay. Arms of a kind lie near each other: prefixes that end with the same kinds count as the same, so
that those that stay differ.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal, kernel_nested
from ._types import Integers, Rows, SingleRows, Vector
from .arm_catalogue import LAST, Catalogue
from .arm_prefixes import (
    MOST,
    Bench,
    Prefixes,
    aim,
    begin,
    expect,
    gather,
    grow,
    make_bench,
    make_prefixes,
    promise_forms,
    weigh,
)
from .arm_screens import GROUP, screen
from .arm_worth import Poles
from .singles import SINGLES, load_singles, single_rows, store_singles
from .vectors import larger

#: About so many arms are tried.
MANY = 24
#: Of so many that are drawn each of the first m arms is the most promising one.
DRAWN = SINGLES
#: So many stay at the most of those that a prefix grows to.
CHILDREN = 2
#: So many arms at the end tell prefixes apart.
ALIKE = 3
#: So many kinds there are.
KINDS = 48


class Side(NamedTuple):
    """Arms that a prefix may grow by, the first K of all."""

    grouped: SingleRows  # see `group_arms`
    size: float  # in units of which they are
    kinds: Integers  # (K,)
    scores: SingleRows  # (groups, GROUP)


class Offers(NamedTuple):
    """What prefixes may grow to."""

    parents: Integers  # (W CHILDREN,)
    arms: Integers  # (W CHILDREN,)
    kinds: Integers  # (W CHILDREN,)
    values: Vector  # (W CHILDREN,) what they earned
    hopes: Vector  # (W CHILDREN,) and with the promise
    table: Integers  # (slots,) which endings there are among those that stay
    tried: Integers  # (MOST,) the arms that are tried
    near: Integers  # (1,) an arm that was good last
    margin: Vector  # (1,) how far from the best score an arm is tried


@kernel
def make_side(grouped: SingleRows, size: float, kinds: Integers) -> Side:
    groups = (kinds.shape[0] + GROUP - 1) // GROUP
    return Side(
        grouped=grouped,
        size=size,
        kinds=kinds,
        scores=single_rows(groups, GROUP),
    )


@kernel
def kinds_of(A: Rows, count: int) -> Integers:
    """Arms (K, d) in so many kinds: the next one begins with the arm farthest from where all others begin."""
    K, d = A.shape
    kinds, far, centre = np.zeros(K, dtype=np.int64), np.full(K, math.inf), 0
    for kind in range(min(count, K)):
        most = 0
        for k in range(K):
            square = 0.0
            for i in range(d):
                square += (A[k, i] - A[centre, i]) ** 2
            if square < far[k]:
                far[k], kinds[k] = square, kind
            if far[k] > far[most]:
                most = k
        centre = most
    return kinds


@inline
def _shortlist(side: Side, offers: Offers, bench: Bench) -> int:
    """The arms with the best scores, about MANY of them, are tried; returns how many."""
    K, count, top = side.kinds.shape[0], 0, -math.inf
    for w in range(K % GROUP, GROUP if K % GROUP > 0 else 0):
        side.scores[K // GROUP, w] = -math.inf
    x = load_singles(side.scores, 0, 0)
    for g in range(side.scores.shape[0]):
        x = larger(x, larger(load_singles(side.scores, g, 0), load_singles(side.scores, g, SINGLES)))
    store_singles(bench.earned, 0, 0, x)
    for w in range(SINGLES):
        top = max(top, bench.earned[0, w])
    least = np.float32(top - offers.margin[0])
    for k in range(K):
        if side.scores[k // GROUP, k % GROUP] >= least and count < MOST:
            offers.tried[count] = k
            count += 1
    offers.margin[0] = max(offers.margin[0] * (1.1 if count < MANY else 0.9), 1e-4)
    return count


@kernel_internal
def _offer(
    A: Rows,
    side: Side,
    m: int,
    p: int,
    left: int,
    q: int,
    count: int,
    now: Prefixes,
    bench: Bench,
    offers: Offers,
) -> int:
    """What prefix q may grow to, behind the offers that there are; returns how many there are then."""
    K, first, best = side.kinds.shape[0], count, count
    few = K
    aim(m, p, q, now, bench)
    if few > MOST:
        promise_forms(A, offers.near[0], side.size, m, p, q, now, bench)
        screen(side.grouped, bench.forms.small, A.shape[1], bench.beta > 0.0, K, side.scores)
        few = _shortlist(side, offers, bench)
    else:
        for k in range(few):
            offers.tried[k] = k
    gather(A, offers.tried, few, bench)
    weigh(m, p, left, q, few, now, bench)
    for c in range(few):
        k = offers.tried[c]
        hope, kind, at = now.values[q] + bench.earned[1, c], side.kinds[k], first
        while at < count and offers.kinds[at] != kind:
            at += 1
        if at == count and count - first < CHILDREN:
            count += 1
        else:
            if at == count:
                at = first
                for x in range(first + 1, count):
                    at = x if offers.hopes[x] < offers.hopes[at] else at
            if not hope > offers.hopes[at]:
                continue
        offers.parents[at], offers.arms[at], offers.kinds[at] = q, k, kind
        offers.values[at], offers.hopes[at] = now.values[q] + bench.earned[0, c], hope
    for x in range(first + 1, count):
        best = x if offers.hopes[x] > offers.hopes[best] else best
    offers.near[0] = offers.arms[best]
    return count


@inline
def _differs(now: Prefixes, offers: Offers, x: int, t: int) -> bool:
    """Whether offer x, for position t, ends with other kinds than those before it, which it now joins."""
    key, q, slots = offers.kinds[x] + 1, offers.parents[x], offers.table.shape[0]
    for s in range(1, min(ALIKE, t + 1)):
        key = key * 1048573 + now.kinds[q, t - s] + 1
    at = (key * 40503 & 0x7FFFFFFFFFFF) % slots
    while offers.table[at] != 0 and offers.table[at] != key:
        at = (at + 1) % slots
    found = offers.table[at] == 0
    offers.table[at] = key
    return found


@kernel_nested
def _start(
    A: Rows,
    K: int,
    m: int,
    p: int,
    now: Prefixes,
    after: Prefixes,
    bench: Bench,
    tried: Integers,
    rng: np.random.Generator,
) -> None:
    """The first m arms of all prefixes, which earn nothing."""
    W = now.values.shape[0]
    expect(m, m, bench)
    for q in range(W):
        begin(m, p, q, now, bench)
    for t in range(m):
        source, into = (now, after) if t % 2 == 0 else (after, now)
        for q in range(W):
            for c in range(DRAWN):
                tried[c] = int(K * rng.random())
            aim(m, p, q, source, bench)
            gather(A, tried, DRAWN, bench)
            weigh(m, p, m, q, DRAWN, source, bench)
            best = 0
            for c in range(1, DRAWN):
                more = bench.earned[1, c] - bench.earned[0, c]
                best = c if more > bench.earned[1, best] - bench.earned[0, best] else best
            now.arms[q, t] = tried[best]
            grow(A, now.arms[q, t], m, p, q, source, q, into, bench)
    if m % 2 == 1:
        now.inverses[:], now.goal[:], now.power[:] = after.inverses, after.goal, after.power


@kernel
def search_beam(
    catalogue: Catalogue,
    wide: Side,
    narrow: Side,
    poles: Poles,
    m: int,
    n: int,
    W: int,
    rng: np.random.Generator,
) -> Integers:
    """Blocks (k, n) of arms, the best first, of W prefixes side by side.

    They have narrow arms, but for the first m and the last ones. Where all arms are of one kind each prefix
    grows by the best arm alone.
    """
    A, d, p, bonus = catalogue.A, catalogue.A.shape[1], poles.shifts.shape[0], catalogue.beta > 0.0
    now, after = make_prefixes(W, n, d, m, p, bonus), make_prefixes(W, n, d, m, p, bonus)
    bench, most, held = make_bench(catalogue, poles, m), W * CHILDREN, W
    offers = Offers(
        parents=np.zeros(most, dtype=np.int64),
        arms=np.zeros(most, dtype=np.int64),
        kinds=np.zeros(most, dtype=np.int64),
        values=np.zeros(most),
        hopes=np.zeros(most),
        table=np.zeros(4 * W + 1, dtype=np.int64),
        tried=np.zeros(MOST, dtype=np.int64),
        near=np.zeros(1, dtype=np.int64),
        margin=np.full(1, 0.2),
    )
    _start(A, wide.kinds.shape[0], m, p, now, after, bench, offers.tried, rng)
    for t in range(m, n):
        left, count = n - 1 - t, 0
        expect(m, left, bench)
        for q in range(held):
            side = narrow if left >= LAST else wide
            count = _offer(A, side, m, p, left, q, count, now, bench, offers)
        order, held = np.argsort(-offers.hopes[:count]), 0
        offers.table[:] = 0
        for x in order:
            if held < W and _differs(now, offers, x, t):
                q = offers.parents[x]
                for s in range(t):
                    after.arms[held, s], after.kinds[held, s] = now.arms[q, s], now.kinds[q, s]
                after.arms[held, t], after.kinds[held, t] = offers.arms[x], offers.kinds[x]
                after.values[held] = offers.values[x]
                if left > 0:
                    grow(A, offers.arms[x], m, p, q, now, held, after, bench)
                held += 1
        now, after = after, now
    return now.arms[:held].copy()
