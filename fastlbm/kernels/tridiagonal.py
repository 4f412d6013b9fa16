"""Symmetric matrices as tridiagonal ones: owns the reflections there and back, and solutions.

X = H T H^T with T tridiagonal and H a product of d - 2 reflections I - beta v v^T. Functions of T times a
vector cost little where they are sums of inverses, and what is found goes back by the same reflections.

Matrices come in groups, see `triangles`. What is kept of a group is in an array t, what is not in an array s.
"""

from __future__ import annotations

from ._jit import inline, kernel_internal
from ._types import Tile, Vector
from .arithmetic import fma
from .triangles import row_of, triangle
from .vectors import Several, absolute, at_least, pick, put, root, signed_as, where_above, zeros

#: A squared norm up to this is that of a zero vector: the squares are about to underflow.
_NOTHING = 1e-280


@inline
def _dot(t: Tile, v: int, s: Tile, x: int, first: int, d: int) -> Several:
    """The sum of v_i x_i over i >= first, in two halves: one sum would wait for its last term."""
    one, other = zeros(), zeros()
    for i in range(first, d - 1, 2):
        one = fma(pick(t, v + i), pick(s, x + i), one)
        other = fma(pick(t, v + i + 1), pick(s, x + i + 1), other)
    if (d - first) % 2 == 1:
        one = fma(pick(t, v + d - 1), pick(s, x + d - 1), one)
    return one + other


@inline
def _reflect(t: Tile, v: int, beta: Several, s: Tile, x: int, first: int, d: int) -> None:
    """x becomes (I - beta v v^T) x."""
    share = -(beta * _dot(t, v, s, x, first, d))
    for i in range(first, d):
        put(s, x + i, fma(share, pick(t, v + i), pick(s, x + i)))


@inline
def _two_rows(
    M: Tile, base: int, t: Tile, before: int, v: int, s: Tile, w: int, p: int, i: int, d: int
) -> None:
    """The rows i and i + 1 of `_next`."""
    r0, r1 = base + row_of(d, i), base + row_of(d, i + 1)
    w0, w1, u0, u1 = pick(s, w + i), pick(s, w + i + 1), pick(t, before + i), pick(t, before + i + 1)
    v0, v1 = pick(t, v + i), pick(t, v + i + 1)
    corner = fma(-u0, w0, fma(-w0, u0, pick(M, r0 + i)))
    beside = fma(-u0, w1, fma(-w0, u1, pick(M, r0 + i + 1)))
    other = fma(-u1, w1, fma(-w1, u1, pick(M, r1 + i + 1)))
    put(M, r0 + i, corner)
    put(M, r0 + i + 1, beside)
    put(M, r1 + i + 1, other)
    p0 = fma(corner, v0, fma(beside, v1, pick(s, p + i)))
    p1 = fma(beside, v0, fma(other, v1, pick(s, p + i + 1)))
    for j in range(i + 2, d):
        wj, uj, vj = pick(s, w + j), pick(t, before + j), pick(t, v + j)
        e0 = fma(-u0, wj, fma(-w0, uj, pick(M, r0 + j)))
        e1 = fma(-u1, wj, fma(-w1, uj, pick(M, r1 + j)))
        put(M, r0 + j, e0)
        put(M, r1 + j, e1)
        p0, p1 = fma(e0, vj, p0), fma(e1, vj, p1)
        put(s, p + j, fma(e0, v0, fma(e1, v1, pick(s, p + j))))
    put(s, p + i, p0)
    put(s, p + i + 1, p1)


@kernel_internal
def _next(
    M: Tile, base: int, t: Tile, before: int, v: int, s: Tile, w: int, p: int, first: int, d: int
) -> None:
    """M becomes M - u w^T - w u^T, u at `before`, and p = M v; rows and columns from `first` on.

    Both at once: a matrix is read once a reflection.
    """
    for i in range(first, d):
        put(s, p + i, zeros())
    for i in range(first, d - 1, 2):
        _two_rows(M, base, t, before, v, s, w, p, i, d)
    if (d - first) % 2 == 1:
        last = base + row_of(d, d - 1) + d - 1
        w0, u0 = pick(s, w + d - 1), pick(t, before + d - 1)
        corner = fma(-u0, w0, fma(-w0, u0, pick(M, last)))
        put(M, last, corner)
        put(s, p + d - 1, fma(corner, pick(t, v + d - 1), pick(s, p + d - 1)))


@inline
def _weigh(t: Tile, v: int, beta: Several, s: Tile, w: int, p: int, first: int, d: int) -> None:
    """w = beta (p - beta/2 (v^T p) v).

    With p = M v, M - v w^T - w v^T is (I - beta v v^T) M (I - beta v v^T).
    """
    share = -(0.5 * beta * _dot(t, v, s, p, first, d))
    for i in range(first, d):
        put(s, w + i, beta * fma(share, pick(t, v + i), pick(s, p + i)))


@kernel_internal
def to_tridiagonal(t: Tile, X: int, T: int, s: Tile, w: int, x: int, d: int) -> None:
    """The matrices X become vectors v, those of reflection i behind the diagonal of row i; d >= 3.

    The diagonals become 0. The places T hold those of the tridiagonal matrices, then what is beside them,
    then the betas: 3 d. The vectors x of s become H^T x; w are 2 d places of scratch.
    """
    off, betas, p = T + d, T + 2 * d, w + d
    for i in range(d):
        put(s, w + i, zeros())
    before = X
    for k in range(d - 1):
        row = X + row_of(d, k)
        u, share = -pick(t, before + k), -pick(s, w + k)
        for j in range(k, d):
            put(t, row + j, fma(u, pick(s, w + j), fma(share, pick(t, before + j), pick(t, row + j))))
        put(t, T + k, pick(t, row + k))
        put(t, row + k, zeros())
        head = pick(t, row + k + 1)
        if k == d - 2:
            put(t, off + k, head)
            break
        square = _dot(t, row, t, row, k + 1, d)
        norm = root(square)
        half = at_least(fma(absolute(head), norm, square), _NOTHING)  # of v^T v
        beta = where_above(square, _NOTHING, 1.0 / half, zeros())
        beside = signed_as(norm, head)
        put(t, row + k + 1, head + beside)
        put(t, off + k, where_above(square, _NOTHING, -beside, zeros()))
        put(t, betas + k, beta)
        _next(t, X, t, before, row, s, w, p, k + 1, d)
        _weigh(t, row, beta, s, w, p, k + 1, d)
        _reflect(t, row, beta, s, x, k + 1, d)
        before = row
    last, row = X + triangle(d) - 1, X + row_of(d, d - 3) + d - 1
    put(t, T + d - 1, fma(-2.0 * pick(t, row), pick(s, w + d - 1), pick(t, last)))
    put(t, last, zeros())


@kernel_internal
def turn(t: Tile, X: int, T: int, s: Tile, x: int, d: int) -> None:
    """The vectors x become H^T x, with what `to_tridiagonal` left."""
    for k in range(d - 2):
        _reflect(t, X + row_of(d, k), pick(t, T + 2 * d + k), s, x, k + 1, d)


@kernel_internal
def turn_back(t: Tile, X: int, T: int, s: Tile, x: int, d: int) -> None:
    """The vectors x become H x."""
    for k in range(d - 3, -1, -1):
        _reflect(t, X + row_of(d, k), pick(t, T + 2 * d + k), s, x, k + 1, d)


@inline
def _rows_above(t: Tile, before: int, v: int, s: Tile, M: int, w: int, p: int, first: int, d: int) -> None:
    """`_next` for the rows above `first`, where u and v are 0; four at once, or the last again and again."""
    for i in range(0, first, 4):
        i1, i2, i3 = min(i + 1, first - 1), min(i + 2, first - 1), min(i + 3, first - 1)
        r0, r1, r2, r3 = M + row_of(d, i), M + row_of(d, i1), M + row_of(d, i2), M + row_of(d, i3)
        w0, w1, w2, w3 = -pick(s, w + i), -pick(s, w + i1), -pick(s, w + i2), -pick(s, w + i3)
        p0, p1, p2, p3 = zeros(), zeros(), zeros(), zeros()
        for j in range(first, d):
            uj, vj = pick(t, before + j), pick(t, v + j)
            e0, e1 = fma(w0, uj, pick(s, r0 + j)), fma(w1, uj, pick(s, r1 + j))
            e2, e3 = fma(w2, uj, pick(s, r2 + j)), fma(w3, uj, pick(s, r3 + j))
            put(s, r0 + j, e0)
            put(s, r1 + j, e1)
            put(s, r2 + j, e2)
            put(s, r3 + j, e3)
            p0, p1, p2, p3 = fma(e0, vj, p0), fma(e1, vj, p1), fma(e2, vj, p2), fma(e3, vj, p3)
        put(s, p + i, p0)
        put(s, p + i1, p1)
        put(s, p + i2, p2)
        put(s, p + i3, p3)


@kernel_internal
def turn_matrix_back(t: Tile, X: int, T: int, s: Tile, M: int, w: int, x: int, d: int) -> None:
    """The symmetric matrices M become H M H^T and the vectors x H x; w are 2 d places of scratch."""
    p = w + d
    for i in range(d):
        put(s, w + i, zeros())
    before = X + row_of(d, d - 3)
    for k in range(d - 3, -2, -1):
        v = X + row_of(d, max(k, 0))
        # The last time there is nothing to multiply with any more.
        _rows_above(t, before, v, s, M, w, p, k + 1, d)
        _next(s, M, t, before, v, s, w, p, k + 1, d)
        if k >= 0:
            beta = pick(t, T + 2 * d + k)
            _weigh(t, v, beta, s, w, p, k + 1, d)
            for i in range(k + 1):
                put(s, w + i, beta * pick(s, p + i))
            _reflect(t, v, beta, s, x, k + 1, d)
        before = v


@kernel_internal
def pivots(t: Tile, T: int, shifts: Vector, count: int, out: int, d: int) -> None:
    """Inverses of the pivots of T + shift, d places each, for so many shifts; those behind the last are 0.

    Three at once, which do not wait for each other.
    """
    off, n = T + d, shifts.shape[0]
    for k in range(0, count, 3):
        k1, k2 = min(k + 1, count - 1), min(k + 2, count - 1)
        c0, c1 = shifts[k] if k < n else 0.0, shifts[k1] if k1 < n else 0.0
        c2 = shifts[k2] if k2 < n else 0.0
        o0, o1, o2 = out + k * d, out + k1 * d, out + k2 * d
        square, i0, i1, i2 = zeros(), zeros(), zeros(), zeros()
        for i in range(d):
            main = pick(t, T + i)
            i0 = 1.0 / fma(square, i0, main + c0)
            i1 = 1.0 / fma(square, i1, main + c1)
            i2 = 1.0 / fma(square, i2, main + c2)
            put(t, o0 + i, i0)
            put(t, o1 + i, i1)
            put(t, o2 + i, i2)
            beside = pick(t, off + min(i, d - 2))
            square = -(beside * beside)


@inline
def solve(t: Tile, T: int, inverse: int, s: Tile, x: int, z: Tile, out: int, scale: float, d: int) -> None:
    """out = scale (T + shift)^-1 x, with the inverses of its pivots; out is in z."""
    off = T + d
    found = zeros()
    ratio = zeros()
    for i in range(d):
        found = fma(ratio, found, scale * pick(s, x + i))
        pivot = pick(t, inverse + i)
        put(z, out + i, found * pivot)
        ratio = -(pick(t, off + min(i, d - 2)) * pivot)
    found = pick(z, out + d - 1)
    for i in range(d - 2, -1, -1):
        found = fma(-(pick(t, off + i) * pick(t, inverse + i)), found, pick(z, out + i))
        put(z, out + i, found)


@inline
def multiply(t: Tile, T: int, z: Tile, x: int, s: Tile, out: int, d: int) -> None:
    """out = T x; x is in z, out in s."""
    off = T + d
    left, here = zeros(), pick(z, x)
    for i in range(d):
        right = pick(z, x + min(i + 1, d - 1))
        above = pick(t, off + max(i - 1, 0))
        total = fma(pick(t, T + i), here, above * left)
        if i < d - 1:
            total = fma(pick(t, off + i), right, total)
        put(s, out + i, total)
        left, here = here, right
