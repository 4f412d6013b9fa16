"""The inverses of all windows of a block that is new: owns how they are made, see `arm_inverses`."""

from __future__ import annotations

from ._jit import inline, kernel_internal
from ._types import Integers, Rows
from .arithmetic import fma
from .arm_catalogue import Catalogue
from .arm_inverses import ACTION, FEATURE, GOAL, OTHERS, TARGET, Inverses, aim, apply
from .arm_screens import Forms
from .arm_worth import Poles, Shape, counts
from .vectors import WIDTH, Several, load, read, store, where_above, zeros


@kernel_internal
def start_inverses(
    catalogue: Catalogue, poles: Poles, shape: Shape, block: Integers, f: Forms, inv: Inverses
) -> None:
    """All of it, for a block (n,) of rows of the catalogue."""
    m, n, p, rows, A, x = shape.m, shape.n, poles.shifts.shape[0], inv.rows, catalogue.A, inv.arms
    d, columns = inv.d, (n + m) * p
    wide = d + OTHERS
    for k in range(n + 2 * m):
        arm = block[(k - m) % n]
        for r in range(d):
            x[1 + r, k] = A[arm, r]
    for r in range(d):
        for s in range(r, d):
            for t in range(0, n + m, WIDTH):
                y = zeros()
                for k in range(m):
                    y = fma(load(x, 1 + r, t + k), load(x, 1 + s, t + k), y)
                store(x, 0, t, y)
            for i in range(p):
                shift = poles.shifts[i] if r == s else 0.0
                for t in range(n + m):
                    rows[r * wide + s, t * p + i] = x[0, t] + shift
    for t in range(n + m):
        valid = counts(shape, t)
        for i in range(p):
            rows[d * wide, t * p + i] = poles.weights[i] if valid else 0.0
            rows[d * wide + 1, t * p + i] = 1.0 if valid else 0.0
            for r in range(d):
                rows[r * wide + d + ACTION, t * p + i] = x[1 + r, t + m] if valid else 0.0
    for r in range(d):
        store(rows, r * wide + r, columns, zeros() + 1.0)  # the last vector is filled up
    for c in range(0, columns, WIDTH):
        _invert(rows, d, c, read(rows, d * wide + 1, c, columns - c))
    for r in range(d):
        store(rows, r * wide + r, columns, zeros())
    apply(rows, d, ACTION, 0, columns, FEATURE)
    aim(f.belief, catalogue.beta, p, 0, n + m - 1, d, rows, inv.features)
    apply(rows, d, TARGET, 0, columns, GOAL)


@inline
def _invert(S: Rows, d: int, c: int, valid: Several) -> None:
    """Positive definite matrices side by side become their inverses, or zeros where they do not count."""
    w = d + OTHERS
    for k in range(d):
        # The sweep operator, which keeps them symmetric; at the end there is the inverse times -1.
        pivot = 1.0 / load(S, k * w + k, c)
        for r in range(d):
            if r == k:
                continue
            share = -pivot * load(S, r * w + k if r < k else k * w + r, c)
            for s in range(r, k):
                store(S, r * w + s, c, fma(share, load(S, s * w + k, c), load(S, r * w + s, c)))
            for s in range(max(r, k + 1), d):
                store(S, r * w + s, c, fma(share, load(S, k * w + s, c), load(S, r * w + s, c)))
        for r in range(k):
            store(S, r * w + k, c, pivot * load(S, r * w + k, c))
        for s in range(k + 1, d):
            store(S, k * w + s, c, pivot * load(S, k * w + s, c))
        store(S, k * w + k, c, -pivot)
    for r in range(d):
        for s in range(r, d):
            x = where_above(valid, 0.5, -load(S, r * w + s, c), zeros())
            store(S, r * w + s, c, x)
            store(S, s * w + r, c, x)
