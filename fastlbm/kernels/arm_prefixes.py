"""Beginnings of blocks: owns what one more arm earns, and what the steps behind it are likely to be worth.

Of m arms the window v steps later holds the last m - v, and b_v = X_v^gamma theta is the best direction then.
Arms that will be played have some of theta, and some of the rest of b_v. So a prefix promises

    sum over v < m of (ALONG_v <theta, b_v> / |theta| + BESIDE_v |b_v - its part along theta|)

for arms of size one. These shares were fitted to what the steps behind many prefixes earned with the best
arms that were found; they serve all models that were tried, and other ones earn no more (measured).

With x^gamma = sum of w_i / (x + s_i), see `arm_poles`, a prefix has S_v = (X_v + s_i)^-1 without its oldest
arm, in lane i m + v. One more arm x is one rank more, d^2 operations for all windows:

    S_v - mu (S_v x)(S_v x)^T / (1 + mu x^T S_v x)

Single precision is enough: arms are in units of the largest one, c + s_i in those of c, rewards in those of
what the largest arm may earn without memory; mu is what that makes of an arm.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, Rows, SingleRows, Vector
from .arithmetic import fma
from .arm_catalogue import Catalogue
from .arm_screens import Forms, make_forms
from .arm_worth import Poles
from .singles import SINGLES, load_singles, single_zeros, store_singles
from .vectors import at_least, root, total

#: How much of theta and of the rest arms have that are played v = 0, 1, ... steps later.
ALONG = (0.2, 0.35, 0.5, 0.4, 0.4, 0.4)
BESIDE = (0.35, 0.35, 0.3, 0.15, 0.15, 0.15)
#: So many arms are tried at the most.
MOST = 3 * SINGLES


class Prefixes(NamedTuple):
    """Beginnings of blocks, side by side."""

    arms: Integers  # (W, n)
    kinds: Integers  # (W, n) see `arm_beams`
    values: Vector  # (W,) what they earned
    inverses: SingleRows  # (1, W d d m p) entry (r, s) of prefix q is from ((q d + r) d + s) m p on
    power: Rows  # (W, d d) X^gamma of the window of now; with a bonus alone
    goal: Rows  # (W, d) X^gamma theta of it


class Bench(NamedTuple):
    """What is known of rewards, and scratch; in lane i m + v it is pole i of window v."""

    scale: float  # arms times this are in units of the largest one
    beta: float
    mu: float
    theta: SingleRows  # (2, d) theta, and theta / |theta|
    weights: SingleRows  # (3, lanes) w_i, 1 where it counts, 1 of all but the last window
    fresh: SingleRows  # (1, lanes) 1 / (c + s_i) of the last window, which is empty
    shares: SingleRows  # (2, lanes) ALONG and BESIDE of the windows that still come
    forms: Forms
    goal: SingleRows  # (1, d) X^gamma theta
    width: SingleRows  # (d, d) beta^2 X^gamma V^-1 X^gamma, what is above the diagonal twice
    turned: Rows  # (d, d)
    own: SingleRows  # (1, d) an arm
    y: SingleRows  # (d, lanes) S theta
    z: SingleRows  # (d, lanes)
    Sz: SingleRows  # (d, lanes)
    Sx: SingleRows  # (d, lanes)
    b: SingleRows  # (d, lanes)
    few: SingleRows  # (d, MOST) the arms that are tried, side by side
    earned: SingleRows  # (2, MOST) what they earn, and with the promise


@inline
def _lanes(m: int, p: int) -> int:
    """Lanes with room for a vector that begins at any of them."""
    return m * p + SINGLES


@kernel
def make_prefixes(W: int, n: int, d: int, m: int, p: int, bonus: bool) -> Prefixes:
    return Prefixes(
        arms=np.zeros((W, n), dtype=np.int64),
        kinds=np.zeros((W, n), dtype=np.int64),
        values=np.zeros(W),
        inverses=np.zeros((1, W * d * d * m * p + 2 * SINGLES), dtype=np.float32),
        power=np.zeros((W if bonus else 0, d * d)),
        goal=np.zeros((W, d)),
    )


@kernel
def make_bench(catalogue: Catalogue, poles: Poles, m: int) -> Bench:
    d, p, c, free = catalogue.target.shape[0], poles.shifts.shape[0], poles.shifts[0], 0.0
    lanes, largest, square, wide = _lanes(m, p), 0.0, 0.0, 0.0
    for i in range(p):
        free += poles.weights[i] / poles.shifts[i]
    for r in range(d):
        largest = max(largest, abs(catalogue.target[r]))
    for r in range(d if largest > 0.0 else 0):
        square += (catalogue.target[r] / largest) ** 2
    for k in range(catalogue.widths.shape[0]):
        wide = max(wide, catalogue.widths[k])
    unit = max(catalogue.size * largest * math.sqrt(square), catalogue.beta * math.sqrt(wide))
    unit = unit if unit > 0.0 else 1.0
    theta, weights = np.zeros((2, d), dtype=np.float32), np.zeros((3, lanes), dtype=np.float32)
    fresh, width = np.zeros((1, lanes), dtype=np.float32), np.zeros((d, d), dtype=np.float32)
    for r in range(d):
        theta[0, r] = catalogue.target[r] * catalogue.size / unit
        theta[1, r] = catalogue.target[r] / largest / math.sqrt(square) if square > 0.0 else 0.0
    for i in range(p):
        for v in range(m):
            weights[0, i * m + v], weights[1, i * m + v] = poles.weights[i] / (c * free), 1.0
            weights[2, i * m + v] = 1.0 if v < m - 1 else 0.0
        fresh[0, i * m + m - 1] = c / poles.shifts[i]
    rows = np.zeros((5 * d, lanes), dtype=np.float32)
    return Bench(
        scale=1.0 / catalogue.size,
        beta=catalogue.beta * catalogue.size / unit,
        mu=catalogue.size**2 / c,
        theta=theta,
        weights=weights,
        fresh=fresh,
        shares=np.zeros((2, lanes), dtype=np.float32),
        forms=make_forms(catalogue.target, catalogue.V_inv),
        goal=np.zeros((1, d), dtype=np.float32),
        width=width,
        turned=np.zeros((d, d)),
        own=np.zeros((1, d), dtype=np.float32),
        y=rows[:d],
        z=rows[d : 2 * d],
        Sz=rows[2 * d : 3 * d],
        Sx=rows[3 * d : 4 * d],
        b=rows[4 * d :],
        few=np.zeros((d, MOST), dtype=np.float32),
        earned=np.zeros((2, MOST), dtype=np.float32),
    )


@inline
def expect(m: int, left: int, bench: Bench) -> None:
    """So many steps are left behind the next one."""
    for v in range(m):
        bench.shares[0, v] = ALONG[min(v, 5)] if v < left else 0.0
        bench.shares[1, v] = BESIDE[min(v, 5)] if v < left else 0.0


@kernel_internal
def begin(m: int, p: int, q: int, now: Prefixes, bench: Bench) -> None:
    """Prefix q has no arms."""
    d = now.goal.shape[1]
    for r in range(d * d):
        for i in range(p):
            for v in range(m):
                x = bench.fresh[0, i * m + m - 1] if r % (d + 1) == 0 else np.float32(0.0)
                now.inverses[0, (q * d * d + r) * m * p + i * m + v] = x


@inline
def aim(m: int, p: int, q: int, now: Prefixes, bench: Bench) -> None:
    """What one more arm earns prefix q, and y."""
    d, w, V_inv = bench.y.shape[0], m * p, bench.forms.belief[1:]
    for c in range(0, w, SINGLES):
        for r in range(d):
            x = single_zeros()
            for s in range(d):
                x = fma(load_singles(now.inverses, 0, ((q * d + r) * d + s) * w + c), bench.theta[0, s], x)
            store_singles(bench.y, r, c, x)
    for r in range(d):
        bench.goal[0, r] = now.goal[q, r]
    for s in range(d if bench.beta > 0.0 else 0):
        for r in range(d):
            x = 0.0
            for k in range(d):
                x += V_inv[r, k] * now.power[q, k * d + s]
            bench.turned[r, s] = x
    for r in range(d if bench.beta > 0.0 else 0):
        for s in range(r, d):
            x = 0.0
            for k in range(d):
                x += now.power[q, r * d + k] * bench.turned[k, s]
            bench.width[r, s] = bench.beta * bench.beta * (x if r == s else 2.0 * x)


@inline
def gather(A: Rows, tried: Integers, count: int, bench: Bench) -> None:
    """The so many arms that are tried, side by side."""
    for c in range((count + SINGLES - 1) // SINGLES * SINGLES):
        arm = tried[c if c < count else 0]
        for r in range(A.shape[1]):
            bench.few[r, c] = A[arm, r] * bench.scale


@kernel_internal
def weigh(m: int, p: int, left: int, q: int, count: int, now: Prefixes, bench: Bench) -> None:
    """What the arms that are tried earn prefix q, and with its promise then, after `aim` and `gather`."""
    d, w, S, few, b, Sx = bench.y.shape[0], m * p, now.inverses, bench.few, bench.b, bench.Sx
    mu = np.float32(bench.mu)
    for c in range(0, count, SINGLES):
        earned, hope = single_zeros(), single_zeros()
        for r in range(d):
            earned = fma(bench.goal[0, r], load_singles(few, r, c), earned)
        if bench.beta > 0.0:
            width = single_zeros()
            for r in range(d):
                x = single_zeros()
                for s in range(r, d):
                    x = fma(bench.width[r, s], load_singles(few, s, c), x)
                width = fma(load_singles(few, r, c), x, width)
            earned = earned + root(at_least(width, 0.0))
        for v in range(min(m, left)):
            for i in range(p):
                lane, weight = i * m + v, bench.weights[0, i * m + v]
                inner, square = single_zeros(), single_zeros()
                for r in range(d):
                    u, x = load_singles(few, r, c), single_zeros()
                    if v < m - 1:
                        for s in range(d):
                            x = fma(S[0, ((q * d + r) * d + s) * w + lane], load_singles(few, s, c), x)
                    else:
                        x = u * bench.fresh[0, lane]
                    store_singles(Sx, r, 0, x)
                    inner, square = fma(bench.y[r, lane], u, inner), fma(u, x, square)
                share = inner * (-mu * weight) / (square * mu + np.float32(1.0))
                for r in range(d):
                    x = load_singles(b, r, 0) if i > 0 else single_zeros()
                    x = fma(share, load_singles(Sx, r, 0), x) + weight * bench.y[r, lane]
                    store_singles(b, r, 0, x)
            along, square = single_zeros(), single_zeros()
            for r in range(d):
                x = load_singles(b, r, 0)
                along, square = fma(bench.theta[1, r], x, along), fma(x, x, square)
            beside = root(at_least(square - along * along, 0.0))
            hope = fma(bench.shares[0, v], along, fma(bench.shares[1, v], beside, hope))
        store_singles(bench.earned, 0, c, earned)
        store_singles(bench.earned, 1, c, earned + hope)


@kernel_internal
def grow(
    A: Rows, arm: int, m: int, p: int, q: int, now: Prefixes, o: int, after: Prefixes, bench: Bench
) -> None:
    """Prefix o of those after is prefix q of now with one more arm, but for what is played and earned.

    They are made one after the other: what is written beyond the lanes of an entry is set right by the next.
    """
    d, w, own, Sx, goal = bench.y.shape[0], m * p, bench.own, bench.Sx, bench.z
    mu = np.float32(bench.mu)
    for r in range(d):
        own[0, r] = A[arm, r] * bench.scale
    for c in range(0, w, SINGLES):
        square = single_zeros()
        for r in range(d):
            x = single_zeros()
            for s in range(d):
                x = fma(load_singles(now.inverses, 0, ((q * d + r) * d + s) * w + c), own[0, s], x)
            store_singles(Sx, r, c, x)
            square = fma(own[0, r], x, square)
        # Beyond the lanes of an entry are those of the next one, for which this is no number above 1.
        square = square * load_singles(bench.weights, 1, c)
        store_singles(bench.b, 0, c, -mu / (square * mu + np.float32(1.0)))
    for r in range(d):
        for c in range(0, w, SINGLES):
            store_singles(goal, r, c, single_zeros())
        for s in range(d):
            at, into = ((q * d + r) * d + s) * w, ((o * d + r) * d + s) * w
            for c in range(0, w, SINGLES):
                x = load_singles(Sx, r, c) * load_singles(bench.b, 0, c)
                x = fma(x, load_singles(Sx, s, c), load_singles(now.inverses, 0, at + c))
                store_singles(after.inverses, 0, into + c, x)
                store_singles(goal, r, c, fma(bench.theta[0, s], x, load_singles(goal, r, c)))
            if bench.beta > 0.0:
                after.power[o, r * d + s] = 0.0
                for i in range(p):
                    after.power[o, r * d + s] += bench.weights[0, i * m] * after.inverses[0, into + i * m]
            for c in range(0, w, SINGLES):
                # The windows move on by one; the last one is empty.
                x = load_singles(after.inverses, 0, into + c + 1) * load_singles(bench.weights, 2, c)
                if r == s:
                    x = x + load_singles(bench.fresh, 0, c)
                store_singles(after.inverses, 0, into + c, x)
        after.goal[o, r] = 0.0
        for i in range(p):
            after.goal[o, r] += bench.weights[0, i * m] * goal[r, i * m]


@inline
def _directions(m: int, p: int, bench: Bench) -> None:
    """z of all lanes: ALONG theta and BESIDE it, in the direction of what b_v has beside theta now."""
    d, y, z, b = bench.y.shape[0], bench.y, bench.z, bench.b
    for c in range(0, m * p, SINGLES):
        weights = load_singles(bench.weights, 0, c)
        for r in range(d):
            store_singles(z, r, c, weights * load_singles(y, r, c))
    along, square = single_zeros(), single_zeros()
    for r in range(d):
        x = load_singles(z, r, 0)
        for i in range(1, p):
            x = x + load_singles(z, r, i * m)
        store_singles(b, r, 0, x)
        along, square = fma(bench.theta[1, r], x, along), fma(x, x, square)
    # A window without arms has b_v along theta: what is left then is a rounding, which has no direction.
    beside = root(at_least(square - along * along, 1e-20) + square * np.float32(1e-5))
    share = load_singles(bench.shares, 1, 0) / beside
    for r in range(d):
        x = load_singles(b, r, 0) - along * bench.theta[1, r]
        x = share * x + load_singles(bench.shares, 0, 0) * bench.theta[1, r]
        for i in range(p):
            store_singles(z, r, i * m, x)  # the next pole sets right what is beyond


@kernel_internal
def promise_forms(
    A: Rows, arm: int, size: float, m: int, p: int, q: int, now: Prefixes, bench: Bench
) -> None:
    """The forms of `arm_screens`, about what prefix q loses of its promise by one more arm, after `aim`.

    They are for arms in units of `size`.

    The promise is taken for linear around that of now. All lanes share one R, as there; what that changes is
    set right for the given arm, which should be a good one.
    """
    d, w, small, y, D = bench.y.shape[0], m * p, bench.forms.small, bench.y, bench.b
    unit, at = size * bench.scale, 0
    _directions(m, p, bench)
    for r in range(d):
        bench.own[0, r] = A[arm, r] * bench.scale
    mean, lanes, mu = np.float32(0.0), np.float32(w), np.float32(bench.mu)
    for c in range(0, w, SINGLES):
        square = single_zeros()
        for r in range(d):
            x, u = single_zeros(), single_zeros()
            for s in range(d):
                entry = load_singles(now.inverses, 0, ((q * d + r) * d + s) * w + c)
                x, u = fma(entry, load_singles(bench.z, s, c), x), fma(entry, bench.own[0, s], u)
            store_singles(bench.Sz, r, c, x)
            square = fma(bench.own[0, r], u, square)
        counted = load_singles(bench.weights, 1, c)
        square = square * counted * mu + np.float32(1.0)  # see `grow`
        store_singles(D, 0, c, square)
        mean += total(square * counted)
    for c in range(0, w, SINGLES):
        x = load_singles(bench.weights, 0, c) / load_singles(D, 0, c)
        store_singles(D, 0, c, x * (mu * mean / lanes))
    for r in range(d):
        small[0, r] = bench.goal[0, r] * unit
        for s in range(r, d):
            lost, shared = single_zeros(), single_zeros()
            for c in range(0, w, SINGLES):
                x = load_singles(y, r, c) * load_singles(bench.Sz, s, c)
                if s > r:
                    x = fma(load_singles(y, s, c), load_singles(bench.Sz, r, c), x)
                lost = fma(load_singles(D, 0, c), x, lost)
                x = load_singles(now.inverses, 0, ((q * d + r) * d + s) * w + c)
                shared = fma(load_singles(bench.weights, 1, c), x, shared)
            small[1, 2 * at] = total(lost) * unit * unit
            small[1, 2 * at + 1] = total(shared) * (2.0 if s > r else 1.0) * mu / lanes * unit * unit
            small[2, at] = bench.width[r, s] * unit * unit
            at += 1
