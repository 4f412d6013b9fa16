"""What all arms are about worth at a position: owns the quadratic forms that `arm_worth` is screened with.

A window loses (a^T y)(a^T z) / D by an arm a, pole by pole, with y and z of the other arms and
D = 1 + a^T R a, see `arm_worth`. Here all windows and poles share one R, the mean of theirs, and what that
changes is set right for the arm that is at the position now. A bonus is linear around the feature of now. So

    worth(a) = a^T q + beta sqrt(a^T W a) - a^T Q a / (1 + a^T R a)

up to a constant: some d^2 products an arm, whatever m and the number of poles are. The best arm of all is
nearly always among the first three by it (measured); exact worths of the few that are drawn mend the rest.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal
from ._types import Integers, Matrix, Rows, Vector
from .arithmetic import column, fma
from .arm_worth import Arms, Poles, Room, Shape, counts
from .vectors import WIDTH, at_least, load, root, store, zeros

#: Sums of so many arms are taken side by side.
STRIP = 64
#: Arms are looked at in groups of four vectors.
GROUP = 4 * WIDTH


class Forms(NamedTuple):
    """The forms of a position; of matrices what is on the diagonal and above, that above twice.

    Rows of d' numbers are d filled up with zeros to whole vectors.
    """

    q: Matrix  # (1, d')
    Q: Matrix  # (d, d')
    R: Matrix  # (d, d')
    W: Matrix  # (d, d')
    around: Matrix  # (2m+1, d') the arms around the position, and its own
    under: Matrix  # (2m+1, d') V^-1 times them
    belief: Matrix  # (d+1, d') theta, and V^-1
    rows: Matrix  # (4, d') scratch
    coefficients: Vector  # (m,) scratch
    near: Vector  # (2m,) inner products of the arm of now with those around it
    scale: Matrix  # (m, p) D of the windows for the arm of now


@kernel
def make_forms(target: Vector, V_inv: Matrix, m: int, p: int) -> Forms:
    d = target.shape[0]
    wide = (d + WIDTH - 1) // WIDTH * WIDTH
    belief = np.zeros((d + 1, wide))
    for k in range(d):
        belief[0, k] = target[k]
        for i in range(d):
            belief[1 + i, k] = V_inv[i, k]
    return Forms(
        q=np.zeros((1, wide)),
        Q=np.zeros((d, wide)),
        R=np.zeros((d, wide)),
        W=np.zeros((d, wide)),
        around=np.zeros((2 * m + 1, wide)),
        under=np.zeros((2 * m + 1, wide)),
        belief=belief,
        rows=np.zeros((4, wide)),
        coefficients=np.zeros(m),
        near=np.zeros(2 * m),
        scale=np.zeros((m, p)),
    )


@inline
def _set(y: Matrix, r: int, x: float, a: Matrix, s: int) -> None:
    """Row r of y = x times row s of a."""
    for k in range(0, y.shape[1], WIDTH):
        store(y, r, k, x * load(a, s, k))


@inline
def _add(y: Matrix, r: int, x: float, a: Matrix, s: int) -> None:
    """Row r of y += x times row s of a."""
    for k in range(0, y.shape[1], WIDTH):
        store(y, r, k, fma(x, load(a, s, k), load(y, r, k)))


@inline
def _add_outer(X: Matrix, x: float, y: Matrix, r: int, z: Matrix, s: int) -> None:
    """X += x times the outer product of row r of y and row s of z."""
    for k in range(0, X.shape[1], WIDTH):
        row = x * load(z, s, k)
        for i in range(X.shape[0]):
            store(X, i, k, fma(y[r, i], row, load(X, i, k)))


@kernel_internal
def _own_forms(beta: float, m: int, free: float, room: Room, f: Forms) -> None:
    """q and W: what an arm earns itself."""
    _set(f.q, 0, free, f.belief, 0)
    for r in range(m):
        _add(f.q, 0, room.lin[r], f.around, r)
    if beta == 0.0:
        return
    for i in range(f.W.shape[0]):
        _set(f.W, i, free * free, f.belief, i + 1)
    for r in range(m):
        _set(f.rows, 0, room.second[r, 0], f.around, 0)
        _add(f.rows, 0, 2.0 * free * room.first[r, 0], f.under, 0)
        for s in range(1, m):
            _add(f.rows, 0, 2.0 * free * room.first[r, s], f.under, s)
            _add(f.rows, 0, room.second[r, s], f.around, s)
        _add_outer(f.W, 1.0, f.around, r, f.rows, 0)


@kernel_internal
def _shared_form(square: float, poles: Poles, shape: Shape, j: int, room: Room, f: Forms) -> float:
    """R, and D of the arm of now window by window; returns the mean of them."""
    m, p, q, near = shape.m, poles.shifts.shape[0], shape.m - 1, f.near
    windows, mean, alone = 0, 0.0, 0.0
    f.R[:] = 0.0
    for i in range(p):
        alone += 1.0 / poles.shifts[i]
    for v in range(m):
        if not counts(shape, j + 1 + v):
            continue
        windows += 1
        for i in range(p):
            D = fma(1.0 / poles.shifts[i], square, 1.0)
            for r in range(q):
                x = 0.0
                for s in range(q):
                    x = fma(room.T[v, i, r, s], near[v + 1 + s], x)
                D = fma(near[v + 1 + r], x, D)
            f.scale[v, i] = D
            mean += D
        for r in range(q):
            _set(f.rows, 0, 0.0, f.around, 0)
            for s in range(q):
                weight = 0.0
                for i in range(p):
                    weight += room.T[v, i, r, s]
                _add(f.rows, 0, weight, f.around, v + 1 + s)
            _add_outer(f.R, 1.0, f.around, v + 1 + r, f.rows, 0)
    share = 1.0 / max(windows * p, 1)
    for i in range(f.R.shape[0]):
        f.R[i, i] += windows * alone
        _set(f.R, i, share, f.R, i)
    return mean * share


@kernel_internal
def _optimistic(beta: float, poles: Poles, m: int, v: int, free: float, room: Room, f: Forms) -> None:
    """Row 3 += beta V^-1 b / |b| for the feature b of window v with the arm of now."""
    p, q, near, weight = poles.shifts.shape[0], m - 1, f.near, f.coefficients
    own = 0.0
    for r in range(q):
        weight[r] = room.mixed[v, r]
    for i in range(p):
        inverse = 1.0 / poles.shifts[i]
        A = inverse * near[v + m]
        for r in range(q):
            A += room.action[v, i, r] * near[v + 1 + r]
        A = poles.weights[i] * A / f.scale[v, i]
        own += A * inverse
        for r in range(q):
            for s in range(q):
                weight[r] -= A * room.T[v, i, r, s] * near[v + 1 + s]
    _set(f.rows, 0, free, f.around, v + m)
    _set(f.rows, 1, free, f.under, v + m)
    _add(f.rows, 0, -own, f.around, 2 * m)
    _add(f.rows, 1, -own, f.under, 2 * m)
    for r in range(q):
        _add(f.rows, 0, weight[r], f.around, v + 1 + r)
        _add(f.rows, 1, weight[r], f.under, v + 1 + r)
    square = 0.0
    for i in range(f.Q.shape[0]):
        square += f.rows[0, i] * f.rows[1, i]
    _add(f.rows, 3, beta / math.sqrt(square) if square > 0.0 else 0.0, f.rows, 1)


@kernel_internal
def _lost_form(
    beta: float, mean: float, poles: Poles, shape: Shape, j: int, free: float, room: Room, f: Forms
) -> None:
    """Q: what windows lose by an arm."""
    m, p, q, e = shape.m, poles.shifts.shape[0], shape.m - 1, f.coefficients
    f.Q[:] = 0.0
    for v in range(m):
        if not counts(shape, j + 1 + v):
            continue
        _set(f.rows, 3, 1.0, f.belief, 0)
        if beta > 0.0:
            _optimistic(beta, poles, m, v, free, room, f)
            for r in range(q):
                e[r] = 0.0
                for k in range(f.Q.shape[0]):
                    e[r] += f.rows[3, k] * f.around[v + 1 + r, k]
        for i in range(p):
            inverse = 1.0 / poles.shifts[i]
            _set(f.rows, 0, inverse, f.around, v + m)
            _set(f.rows, 1, inverse, f.rows, 3)
            for r in range(q):
                _add(f.rows, 0, room.action[v, i, r], f.around, v + 1 + r)
                x = room.theta[v, i, r]
                if beta > 0.0:
                    x = 0.0
                    for s in range(q):
                        x += room.T[v, i, r, s] * e[s]
                _add(f.rows, 1, x, f.around, v + 1 + r)
            _add_outer(f.Q, poles.weights[i] * mean / f.scale[v, i], f.rows, 0, f.rows, 1)


@kernel_internal
def _fold(X: Matrix) -> None:
    """A matrix (d, d') becomes what `Forms` has of it."""
    for i in range(X.shape[0]):
        for k in range(i + 1, X.shape[0]):
            X[i, k] += X[k, i]


@kernel_internal
def fill_forms(
    A: Rows,
    VA: Rows,
    arms: Arms,
    poles: Poles,
    shape: Shape,
    block: Integers,
    j: int,
    free: float,
    room: Room,
    f: Forms,
) -> None:
    """The forms of position j of a block (n,) of rows of A, after `prepare_at`.

    The inner products are of its arms, row by row and column by column.
    """
    m, n, d = shape.m, shape.n, A.shape[1]
    for s in range(2 * m + 1):
        place = j if s == 2 * m else j - m + s + (s >= m)
        if shape.wrap or 0 <= place < n:
            arm = block[place % n]
            if s < 2 * m:
                f.near[s] = arms.G[place % n, j]
            for i in range(d):
                f.around[s, i] = A[arm, i]
            for i in range(d if arms.beta > 0.0 else 0):
                f.under[s, i] = VA[arm, i]
    f.q[:] = 0.0
    f.W[:] = 0.0
    if counts(shape, j):
        _own_forms(arms.beta, m, free, room, f)
    mean = _shared_form(arms.squares[j], poles, shape, j, room, f)
    _lost_form(arms.beta, mean, poles, shape, j, free, room, f)
    _fold(f.Q)
    _fold(f.R)
    if arms.beta > 0.0:
        _fold(f.W)


@kernel
def columns_of(A: Rows) -> Rows:
    """The arms (K, d) in groups: rows from g d on have the d entries of each arm of group g, as columns.

    What is read one after the other lies so; zeros fill up the last group.
    """
    K, d = A.shape
    columns = np.zeros(((K + GROUP - 1) // GROUP * d, GROUP))
    for k in range(K):
        for i in range(d):
            columns[k // GROUP * d + i, k % GROUP] = A[k, i]
    return columns


@kernel_internal
def _add_bonus(columns: Rows, W: Matrix, beta: float, scores: Rows) -> None:
    """Adds beta sqrt(a^T W a) to the scores (groups, GROUP)."""
    d, h, u, v = W.shape[0], WIDTH, 2 * WIDTH, 3 * WIDTH
    for g in range(scores.shape[0]):
        o = g * d
        square, square_h, square_u, square_v = zeros(), zeros(), zeros(), zeros()
        for i in range(d):
            x, x_h, x_u, x_v = zeros(), zeros(), zeros(), zeros()
            for s in range(i, d):
                w = W[i, s]
                x, x_h = fma(w, load(columns, o + s, 0), x), fma(w, load(columns, o + s, h), x_h)
                x_u, x_v = fma(w, load(columns, o + s, u), x_u), fma(w, load(columns, o + s, v), x_v)
            square, square_h = (
                fma(load(columns, o + i, 0), x, square),
                fma(load(columns, o + i, h), x_h, square_h),
            )
            square_u = fma(load(columns, o + i, u), x_u, square_u)
            square_v = fma(load(columns, o + i, v), x_v, square_v)
        store(scores, g, 0, fma(beta, root(at_least(square, 0.0)), load(scores, g, 0)))
        store(scores, g, h, fma(beta, root(at_least(square_h, 0.0)), load(scores, g, h)))
        store(scores, g, u, fma(beta, root(at_least(square_u, 0.0)), load(scores, g, u)))
        store(scores, g, v, fma(beta, root(at_least(square_v, 0.0)), load(scores, g, v)))


@kernel_internal
def screen(columns: Rows, f: Forms, beta: float, scores: Rows) -> None:
    """scores (groups, GROUP): what all arms are about worth, see `columns_of`."""
    d, q, Q, R = f.Q.shape[0], f.q, f.Q, f.R
    for half in range(2 * scores.shape[0]):
        g, j = half // 2, half % 2 * 2 * WIDTH
        o, h = g * d, j + WIDTH
        own, lost, scale = zeros(), zeros(), zeros() + 1.0
        own_2, lost_2, scale_2 = zeros(), zeros(), zeros() + 1.0
        for i in range(d):
            x, y, x_2, y_2 = zeros(), zeros(), zeros(), zeros()
            for s in range(i, d):
                a, b = load(columns, o + s, j), load(columns, o + s, h)
                x, x_2 = fma(Q[i, s], a, x), fma(Q[i, s], b, x_2)
                y, y_2 = fma(R[i, s], a, y), fma(R[i, s], b, y_2)
            a, b = load(columns, o + i, j), load(columns, o + i, h)
            own, lost, scale = fma(q[0, i], a, own), fma(a, x, lost), fma(a, y, scale)
            own_2, lost_2, scale_2 = fma(q[0, i], b, own_2), fma(b, x_2, lost_2), fma(b, y_2, scale_2)
        store(scores, g, j, own - lost / scale)
        store(scores, g, h, own_2 - lost_2 / scale_2)
    if beta > 0.0:
        _add_bonus(columns, f.W, beta, scores)


@kernel_internal
def propose(
    table: Rows,
    temperature: float,
    weights: Vector,
    lanes: Vector,
    drawn: Integers,
    rng: np.random.Generator,
) -> None:
    """drawn (c,): arms with probabilities that are about exp(score / temperature), up to a factor.

    The table is that of `screen`, weights (K,) say how many arms there are. The exponential is (1 + x/64)^64,
    which needs no library; lanes (STRIP,) are sums over every STRIP-th arm.
    """
    scores, k, top, total = table.reshape(table.size), weights.shape[0], -math.inf, 0.0
    lanes[:] = -math.inf
    for begin in range(0, k, STRIP):
        first = column(begin)
        for w in range(min(STRIP, k - begin)):
            lanes[w] = scores[first + w] if scores[first + w] > lanes[w] else lanes[w]
    for w in range(STRIP):
        top = max(top, lanes[w])
        lanes[w] = 0.0
    each = 1.0 / (64.0 * temperature)
    for begin in range(0, k, STRIP):
        first = column(begin)
        for w in range(min(STRIP, k - begin)):
            y = max(fma(scores[first + w] - top, each, 1.0), 0.0)
            y *= y
            y *= y
            y *= y
            y *= y
            y *= y
            weights[first + w] = y * y
            lanes[w] += y * y
    for w in range(STRIP):
        total += lanes[w]
    for c in range(drawn.shape[0]):
        u, w = rng.random() * total, 0
        while w < min(STRIP, k) - 1 and u >= lanes[w]:
            u -= lanes[w]
            w += 1
        while w + STRIP < k and u >= weights[w]:
            u -= weights[w]
            w += STRIP
        drawn[c] = w
