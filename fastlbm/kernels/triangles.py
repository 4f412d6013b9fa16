"""Groups of symmetric matrices: owns where their entries are, and sums of products of vectors.

Matrices come in groups of WIDTH, one number of each in a vector of a flat array; of a matrix its upper
triangle, row after row, entry (i, j) in the place `row_of(d, i) + j` behind a base.
"""

from __future__ import annotations

from ._jit import inline, kernel_internal
from ._types import Tile
from .arithmetic import fma
from .vectors import pick, put, zeros


@inline
def row_of(d: int, i: int) -> int:
    """Where the entries (i, j) begin, as if with j = 0."""
    return i * d - i * (i + 1) // 2


@inline
def triangle(d: int) -> int:
    """Vectors of a matrix."""
    return d * (d + 1) // 2


@kernel_internal
def add_pairs(t: Tile, x: int, s: Tile, y: int, n: int, S: int, d: int) -> None:
    """S = the sum of x y^T + y x^T over n pairs; eight entries at once share what is read.

    Beyond the end of a row its last entry is computed again.
    """
    for i in range(0, d, 2):
        k = min(i + 1, d - 1)
        one, other = S + row_of(d, i), S + row_of(d, k)
        for j in range(i, d, 4):
            j1, j2, j3 = min(j + 1, d - 1), min(j + 2, d - 1), min(j + 3, d - 1)
            a0, a1, a2, a3 = zeros(), zeros(), zeros(), zeros()
            b0, b1, b2, b3 = zeros(), zeros(), zeros(), zeros()
            for p in range(n):
                u, v = x + p * d, y + p * d
                ui, uk, vi, vk = pick(t, u + i), pick(t, u + k), pick(s, v + i), pick(s, v + k)
                uj, vj = pick(t, u + j), pick(s, v + j)
                a0, b0 = fma(ui, vj, fma(vi, uj, a0)), fma(uk, vj, fma(vk, uj, b0))
                uj, vj = pick(t, u + j1), pick(s, v + j1)
                a1, b1 = fma(ui, vj, fma(vi, uj, a1)), fma(uk, vj, fma(vk, uj, b1))
                uj, vj = pick(t, u + j2), pick(s, v + j2)
                a2, b2 = fma(ui, vj, fma(vi, uj, a2)), fma(uk, vj, fma(vk, uj, b2))
                uj, vj = pick(t, u + j3), pick(s, v + j3)
                a3, b3 = fma(ui, vj, fma(vi, uj, a3)), fma(uk, vj, fma(vk, uj, b3))
            if j > i:
                put(s, other + j, b0)
            put(s, other + j1, b1)
            put(s, other + j2, b2)
            put(s, other + j3, b3)
            put(s, one + j, a0)
            put(s, one + j1, a1)
            put(s, one + j2, a2)
            put(s, one + j3, a3)
