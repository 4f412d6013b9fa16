"""Integer powers of many memory matrices without their spectra: owns products and solutions in groups.

b = X^-k a takes a Cholesky factor X = R^T R and k solutions, x_1 = X^-1 a, x_2 = X^-1 x_1, and so on; with
v_i = X^-i u the gradient of <u, b> with respect to X is minus the sum of v_i x_{k+1-i}^T over i = 1..k, made
symmetric. b = X^k a takes k products, and the gradient is the sum of v_i x_{k-1-i}^T over i = 0..k-1.

A spectrum of size d costs about thirty times that (measured: d=16, gamma=-3). It serves a memory without end,
whose matrices have full rank however large d is; windows of fewer than d actions have the Gram form. Matrices
come in groups, see `triangles`; X and the vectors x_i are kept of each, in the tiles.
"""

from __future__ import annotations

from ._jit import inline, kernel_internal
from ._types import Matrix, Rows, Tile, Tiles
from .arithmetic import fma
from .eigen_tiles import is_extreme
from .memory import Memory
from .powers import INTEGER
from .triangles import add_pairs, row_of, triangle
from .vectors import WIDTH, line_of, pick, put, read, root, write, zeros


@inline
def has_integer_power(memory: Memory, A0: Matrix) -> bool:
    """Whether these kernels serve: X is not close to singular where it is inverted, nor extreme."""
    power, size = memory.power, 0.0
    for i in range(A0.shape[0]):
        size = max(size, A0[i, i])
    return power.kind == INTEGER and power.floor < 0.0 and (size == 0.0 or not is_extreme(size))


@inline
def _eliminate(t: Tile, X: int, j: int, k: int, d: int) -> None:
    """The rows j and k of X less what the rows of R above them leave; eight entries at once.

    Beyond the end of a row its last entry is computed again.
    """
    one, other = X + row_of(d, j), X + row_of(d, k)
    for i in range(j, d, 4):
        i1, i2, i3 = min(i + 1, d - 1), min(i + 2, d - 1), min(i + 3, d - 1)
        a0, a1, a2, a3 = pick(t, one + i), pick(t, one + i1), pick(t, one + i2), pick(t, one + i3)
        b0, b1, b2, b3 = pick(t, other + i), pick(t, other + i1), pick(t, other + i2), pick(t, other + i3)
        row = X
        for r in range(j):
            u, v = -pick(t, row + j), -pick(t, row + k)
            x = pick(t, row + i)
            a0, b0 = fma(u, x, a0), fma(v, x, b0)
            x = pick(t, row + i1)
            a1, b1 = fma(u, x, a1), fma(v, x, b1)
            x = pick(t, row + i2)
            a2, b2 = fma(u, x, a2), fma(v, x, b2)
            x = pick(t, row + i3)
            a3, b3 = fma(u, x, a3), fma(v, x, b3)
            row += d - 1 - r
        if i > j:
            put(t, other + i, b0)
        put(t, other + i1, b1)
        put(t, other + i2, b2)
        put(t, other + i3, b3)
        put(t, one + i, a0)
        put(t, one + i1, a1)
        put(t, one + i2, a2)
        put(t, one + i3, a3)


@kernel_internal
def _factor(t: Tile, X: int, d: int) -> None:
    """X becomes R, its upper triangle, with 1/R_ii on the diagonal."""
    for j in range(0, d, 2):
        k = min(j + 1, d - 1)
        one, other = X + row_of(d, j), X + row_of(d, k)
        if j > 0:
            _eliminate(t, X, j, k, d)
        pivot = 1.0 / root(pick(t, one + j))
        put(t, one + j, pivot)
        if k == j:
            break
        beside = pick(t, one + k) * pivot
        put(t, one + k, beside)
        last = 1.0 / root(fma(-beside, beside, pick(t, other + k)))
        put(t, other + k, last)
        for i in range(k + 1, d):
            x = pick(t, one + i) * pivot
            put(t, one + i, x)
            put(t, other + i, fma(-beside, x, pick(t, other + i)) * last)


@inline
def _solve(t: Tile, R: int, z: Tile, x: int, d: int) -> None:
    """x becomes X^-1 x, with what `_factor` left; two unknowns at once."""
    for i in range(0, d - 1, 2):
        one, other = R + row_of(d, i), R + row_of(d, i + 1)
        u = pick(z, x + i) * pick(t, one + i)
        v = fma(-u, pick(t, one + i + 1), pick(z, x + i + 1)) * pick(t, other + i + 1)
        put(z, x + i, u)
        put(z, x + i + 1, v)
        for j in range(i + 2, d):
            put(z, x + j, fma(-v, pick(t, other + j), fma(-u, pick(t, one + j), pick(z, x + j))))
    if d % 2 == 1:
        pivot = pick(t, R + triangle(d) - 1)
        put(z, x + d - 1, pick(z, x + d - 1) * pivot * pivot)
    for i in range(d - d % 2 - 2, -1, -2):
        one, other = R + row_of(d, i), R + row_of(d, i + 1)
        u, v = pick(z, x + i), pick(z, x + i + 1)
        # Those that were found last come last: nothing else waits for them.
        for j in range(d - 1, i + 1, -1):
            known = -pick(z, x + j)
            u, v = fma(known, pick(t, one + j), u), fma(known, pick(t, other + j), v)
        v = v * pick(t, other + i + 1)
        u = fma(-v, pick(t, one + i + 1), u) * pick(t, one + i)
        put(z, x + i, u)
        put(z, x + i + 1, v)


@inline
def _multiply(t: Tile, X: int, z: Tile, x: int, s: Tile, out: int, d: int) -> None:
    """out = X x, X being the upper triangle of a symmetric matrix; x is in z, out in s."""
    for i in range(d):
        put(s, out + i, zeros())
    for i in range(0, d - 1, 2):
        one, other = X + row_of(d, i), X + row_of(d, i + 1)
        u, v, beside = pick(z, x + i), pick(z, x + i + 1), pick(t, one + i + 1)
        a = fma(pick(t, one + i), u, fma(beside, v, pick(s, out + i)))
        b = fma(pick(t, other + i + 1), v, fma(beside, u, pick(s, out + i + 1)))
        for j in range(i + 2, d):
            e, f, w = pick(t, one + j), pick(t, other + j), pick(z, x + j)
            a, b = fma(e, w, a), fma(f, w, b)
            put(s, out + j, fma(e, u, fma(f, v, pick(s, out + j))))
        put(s, out + i, a)
        put(s, out + i + 1, b)
    if d % 2 == 1:
        e, u = pick(t, X + triangle(d) - 1), pick(z, x + d - 1)
        put(s, out + d - 1, fma(e, u, pick(s, out + d - 1)))


@kernel_internal
def _powers(
    negative: bool, order: int, t: Tile, X: int, s: Tile, now: int, z: Tile, first: int, step: int, d: int
) -> None:
    """The vectors at `now` become X^order or X^-order times them; z keeps x_0, x_1, .. or x_1, x_2, .."""
    for k in range(order):
        x = first + k * step
        for i in range(d):
            put(z, x + i, pick(s, now + i))
        if negative:
            _solve(t, X, z, x, d)
            for i in range(d):
                put(s, now + i, pick(z, x + i))
        else:
            _multiply(t, X, z, x, s, now, d)


@kernel_internal
def integer_forward(memory: Memory, A0: Matrix, a: Rows, D: Rows, tiles: Tiles, group: Rows, B: Rows) -> None:
    """Features B (d, N) of the actions a (d, N), given the sums D before each; leaves factors in tiles."""
    d, N = a.shape
    negative, order = memory.power.negative, int(abs(memory.power.gamma))
    t, s = tiles.reshape(-1)[line_of(tiles) :], group.reshape(-1)[line_of(group) :]
    X = 0
    for start in range(0, N, WIDTH):
        count, pair = min(N - start, WIDTH), 0
        for i in range(d):
            for j in range(i, d):
                put(t, X + pair, A0[i, j] + read(D, pair, start, count))
                pair += 1
            put(s, i, read(a, i, start, count))
        if negative:
            _factor(t, X, d)
        _powers(negative, order, t, X, s, 0, t, X + triangle(d), d, d)
        for i in range(d):
            write(B, i, start, count, pick(s, i))
        X += triangle(d) + order * d


@kernel_internal
def integer_backward(memory: Memory, U: Rows, D: Rows, tiles: Tiles, group: Rows, grad: Rows) -> None:
    """Fills grad (d, N) with what comes from the actions themselves, and D with the upper triangles of H."""
    d, N = grad.shape
    negative, order = memory.power.negative, int(abs(memory.power.gamma))
    t, s = tiles.reshape(-1)[line_of(tiles) :], group.reshape(-1)[line_of(group) :]
    X, S, y, sign = 0, d, d + triangle(d), -1.0 if negative else 1.0
    for start in range(0, N, WIDTH):
        count = min(N - start, WIDTH)
        for i in range(d):
            put(s, i, read(U, i, start, count))
        # The first vector of the forward step belongs to the last of this one.
        _powers(negative, order, t, X, s, 0, s, y + (order - 1) * d, -d, d)
        add_pairs(t, X + triangle(d), s, y, order, S, d)
        for k in range(triangle(d)):
            write(D, k, start, count, sign * pick(s, S + k))
        for i in range(d):
            write(grad, i, start, count, pick(s, i))
        X += triangle(d) + order * d
