"""Symmetric matrices as tridiagonal ones: owns the reflections there and back, and solutions.

X = H T H^T with T tridiagonal and H a product of d - 2 reflections I - beta v v^T. Functions of T times a
vector cost little where they are sums of inverses, and what is found goes back by the same reflections.

Matrices come in groups of WIDTH, one number of each in a row of an array (rows, WIDTH); of a matrix its upper
triangle, row after row, entry (i, j) in the row `row_of(d, i) + j` behind a base.
"""

from __future__ import annotations

from ._jit import inline, kernel_internal
from ._types import Rows
from .arithmetic import fma
from .vectors import Several, absolute, at_least, load, root, signed_as, store, where_above, zeros

#: A squared norm up to this is that of a zero vector: the squares are about to underflow.
_NOTHING = 1e-280


@inline
def row_of(d: int, i: int) -> int:
    """Where the entries (i, j) begin, as if with j = 0."""
    return i * d - i * (i + 1) // 2


@inline
def triangle(d: int) -> int:
    """Rows of a matrix."""
    return d * (d + 1) // 2


@inline
def _times(t: Rows, M: int, d: int, i: int, end: int, v: int, w: int) -> None:
    """Adds to w what the entries (i, j) and (j, i) of M, i <= j < end, add to M v."""
    row, one = M + row_of(d, i), load(t, v + i, 0)
    total = fma(load(t, row + i, 0), one, load(t, w + i, 0))
    for j in range(i + 1, end):
        entry = load(t, row + j, 0)
        total = fma(entry, load(t, v + j, 0), total)
        store(t, w + j, 0, fma(entry, one, load(t, w + j, 0)))
    store(t, w + i, 0, total)


@inline
def _times_four(t: Rows, M: int, d: int, i: int, v: int, w: int) -> None:
    """The same for the rows i to i + 3 at once, j >= i + 4."""
    r0, r1, r2, r3 = _rows_of_four(M, d, i)
    v0, v1, v2, v3 = _four(t, v + i)
    w0, w1, w2, w3 = _four(t, w + i)
    for j in range(i + 4, d):
        e0, e1, e2, e3 = load(t, r0 + j, 0), load(t, r1 + j, 0), load(t, r2 + j, 0), load(t, r3 + j, 0)
        one = load(t, v + j, 0)
        w0, w1, w2, w3 = fma(e0, one, w0), fma(e1, one, w1), fma(e2, one, w2), fma(e3, one, w3)
        store(t, w + j, 0, fma(e0, v0, fma(e1, v1, load(t, w + j, 0))) + fma(e2, v2, e3 * v3))
    store(t, w + i, 0, w0)
    store(t, w + i + 1, 0, w1)
    store(t, w + i + 2, 0, w2)
    store(t, w + i + 3, 0, w3)


@inline
def _subtract(t: Rows, M: int, d: int, i: int, end: int, v: int, w: int) -> None:
    """The entries (i, j) of M, i <= j < end, less those of v w^T + w v^T."""
    row, one, other = M + row_of(d, i), -load(t, v + i, 0), -load(t, w + i, 0)
    for j in range(i, end):
        left = fma(one, load(t, w + j, 0), load(t, row + j, 0))
        store(t, row + j, 0, fma(other, load(t, v + j, 0), left))


@inline
def _subtract_four(t: Rows, M: int, d: int, i: int, v: int, w: int) -> None:
    """The same for the rows i to i + 3 at once, j >= i + 4."""
    r0, r1, r2, r3 = _rows_of_four(M, d, i)
    v0, v1, v2, v3 = _four(t, v + i)
    w0, w1, w2, w3 = _four(t, w + i)
    for j in range(i + 4, d):
        one, other = -load(t, v + j, 0), -load(t, w + j, 0)
        store(t, r0 + j, 0, fma(w0, one, fma(v0, other, load(t, r0 + j, 0))))
        store(t, r1 + j, 0, fma(w1, one, fma(v1, other, load(t, r1 + j, 0))))
        store(t, r2 + j, 0, fma(w2, one, fma(v2, other, load(t, r2 + j, 0))))
        store(t, r3 + j, 0, fma(w3, one, fma(v3, other, load(t, r3 + j, 0))))


@inline
def _rows_of_four(M: int, d: int, i: int) -> tuple[int, int, int, int]:
    """Where the rows i to i + 3 of M begin."""
    return M + row_of(d, i), M + row_of(d, i + 1), M + row_of(d, i + 2), M + row_of(d, i + 3)


@inline
def _four(t: Rows, x: int) -> tuple[Several, Several, Several, Several]:
    """Four numbers of vectors, one after the other."""
    return load(t, x, 0), load(t, x + 1, 0), load(t, x + 2, 0), load(t, x + 3, 0)


@inline
def _reflect_both(t: Rows, M: int, d: int, first: int, v: int, beta: Several, w: int) -> None:
    """M becomes (I - beta v v^T) M (I - beta v v^T), from `first` on, before which v = 0; w is scratch.

    The rows v + i and w + i belong to the coordinate i. Four rows of M at once share what is read.
    """
    for i in range(first, d):
        store(t, w + i, 0, zeros())
    for i in range(first, d, 4):
        end = min(i + 4, d)
        for r in range(i, end):
            _times(t, M, d, r, end, v, w)
        if end < d:
            _times_four(t, M, d, i, v, w)
    # w is M v so far, and becomes beta (w - beta/2 (v^T w) v): M - v w^T - w v^T is what is wanted.
    share = zeros()
    for i in range(first, d):
        share = fma(load(t, v + i, 0), load(t, w + i, 0), share)
    share = 0.5 * beta * share
    for i in range(first, d):
        store(t, w + i, 0, beta * (load(t, w + i, 0) - share * load(t, v + i, 0)))
    for i in range(first, d, 4):
        end = min(i + 4, d)
        for r in range(i, end):
            _subtract(t, M, d, r, end, v, w)
        if end < d:
            _subtract_four(t, M, d, i, v, w)


@kernel_internal
def to_tridiagonal(t: Rows, X: int, T: int, w: int, d: int) -> None:
    """The matrices X become vectors v, those of reflection i behind the diagonal of row i; d >= 3.

    The rows T hold the diagonal of the tridiagonal matrices, then what is beside it, then the betas: 3 d.
    """
    off, betas = T + d, T + 2 * d
    for k in range(d - 2):
        row = X + row_of(d, k)
        square, head = zeros(), load(t, row + k + 1, 0)
        for j in range(k + 1, d):
            x = load(t, row + j, 0)
            square = fma(x, x, square)
        norm = root(square)
        half = at_least(fma(absolute(head), norm, square), _NOTHING)  # of v^T v
        beta = where_above(square, _NOTHING, 1.0 / half, zeros())
        beside = signed_as(norm, head)
        store(t, row + k + 1, 0, head + beside)
        store(t, off + k, 0, where_above(square, _NOTHING, -beside, zeros()))
        store(t, betas + k, 0, beta)
        _reflect_both(t, X, d, k + 1, row, beta, w)
    for i in range(d):
        store(t, T + i, 0, load(t, X + row_of(d, i) + i, 0))
    store(t, off + d - 2, 0, load(t, X + row_of(d, d - 2) + d - 1, 0))


@inline
def _reflect(t: Rows, v: int, beta: Several, x: int, first: int, d: int) -> None:
    """x becomes (I - beta v v^T) x."""
    share = zeros()
    for i in range(first, d):
        share = fma(load(t, v + i, 0), load(t, x + i, 0), share)
    share = -(beta * share)
    for i in range(first, d):
        store(t, x + i, 0, fma(share, load(t, v + i, 0), load(t, x + i, 0)))


@inline
def _reflect_four(t: Rows, v: int, beta: Several, x: int, first: int, d: int) -> None:
    """The same for four vectors, one behind the other."""
    y, z, u = x + d, x + 2 * d, x + 3 * d
    a, b, c, e = zeros(), zeros(), zeros(), zeros()
    for i in range(first, d):
        one = load(t, v + i, 0)
        a, b = fma(one, load(t, x + i, 0), a), fma(one, load(t, y + i, 0), b)
        c, e = fma(one, load(t, z + i, 0), c), fma(one, load(t, u + i, 0), e)
    a, b, c, e = -(beta * a), -(beta * b), -(beta * c), -(beta * e)
    for i in range(first, d):
        one = load(t, v + i, 0)
        store(t, x + i, 0, fma(a, one, load(t, x + i, 0)))
        store(t, y + i, 0, fma(b, one, load(t, y + i, 0)))
        store(t, z + i, 0, fma(c, one, load(t, z + i, 0)))
        store(t, u + i, 0, fma(e, one, load(t, u + i, 0)))


@kernel_internal
def turn(t: Rows, X: int, T: int, x: int, d: int) -> None:
    """The vectors x become H^T x, with what `to_tridiagonal` left."""
    for k in range(d - 2):
        _reflect(t, X + row_of(d, k), load(t, T + 2 * d + k, 0), x, k + 1, d)


@kernel_internal
def turn_back(t: Rows, X: int, T: int, x: int, count: int, d: int) -> None:
    """So many vectors x, one behind the other, become H x."""
    for first in range(0, count, 4):
        whole = first + 4 <= count
        for k in range(d - 3, -1, -1):
            v, beta = X + row_of(d, k), load(t, T + 2 * d + k, 0)
            if whole:
                _reflect_four(t, v, beta, x + first * d, k + 1, d)
            for s in range(first, first if whole else count):
                _reflect(t, v, beta, x + s * d, k + 1, d)


@kernel_internal
def solve(t: Rows, T: int, shift: float, x: int, out: int, w: int, d: int) -> None:
    """out = (T + shift)^-1 x, for positive definite T + shift; w are rows of scratch."""
    off = T + d
    inverse, found = 1.0 / (load(t, T, 0) + shift), load(t, x, 0)
    store(t, out, 0, found * inverse)
    for i in range(1, d):
        beside = load(t, off + i - 1, 0)
        ratio = beside * inverse
        store(t, w + i - 1, 0, ratio)
        inverse = 1.0 / (load(t, T + i, 0) + shift - ratio * beside)
        found = load(t, x + i, 0) - ratio * found
        store(t, out + i, 0, found * inverse)
    found = found * inverse
    for i in range(d - 2, -1, -1):
        found = load(t, out + i, 0) - load(t, w + i, 0) * found
        store(t, out + i, 0, found)


@kernel_internal
def multiply(t: Rows, T: int, x: int, out: int, d: int) -> None:
    """out = T x."""
    off = T + d
    for i in range(d):
        total = load(t, T + i, 0) * load(t, x + i, 0)
        if i > 0:
            total = fma(load(t, off + i - 1, 0), load(t, x + i - 1, 0), total)
        if i < d - 1:
            total = fma(load(t, off + i, 0), load(t, x + i + 1, 0), total)
        store(t, out + i, 0, total)
