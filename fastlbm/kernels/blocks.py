"""One evaluation of block objectives: forward, optimism, backward; owns the workspace."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import kernel
from ._types import Matrix, Rows, Vector
from .memory import Memory, add_products, shifted_products, tile_backward, tile_forward
from .optimism import O3M, Belief, additive, joint
from .pair import ROWS, pair_backward, pair_forward
from .spectra import TILE
from .spectral import make_layout


class Work(NamedTuple):
    """Arrays that an evaluation fills, for blocks of one shape."""

    B: Rows  # (d, N) features
    U: Rows  # (d, N) derivative of the objective with respect to the features
    D: Rows  # (m+1, N) shifted inner products, then the derivative with respect to them
    tiles: Matrix  # (tiles, rows*TILE) spectra
    scratch: Rows  # (2, N)


@kernel
def make_work(memory: Memory, A0: Matrix | None, N: int, lanes: int) -> Work:
    """A workspace for `lanes` blocks in N columns."""
    d, m = memory.d, memory.m
    rows = ROWS if A0 is None else make_layout(memory.k).rows
    shifts = m + 1 if memory.gram and A0 is not None else 0
    count = (N - m * lanes + TILE - 1) // TILE
    return Work(
        np.zeros((d, N)),
        np.zeros((d, N)),
        np.zeros((shifts, N)),
        np.zeros((count, rows * TILE)),
        np.zeros((2, N)),
    )


@kernel
def features(memory: Memory, A0: Matrix | None, a: Rows, lanes: int, work: Work) -> None:
    """work.B from the blocks that lie side by side in a (d, N); keeps the spectra for `evaluate`."""
    m = memory.m
    B, D, tiles = work.B, work.D, work.tiles
    N = a.shape[1]
    if A0 is not None and memory.gram:
        shifted_products(a, m, lanes, D)
    for tile in range(tiles.shape[0]):
        start = m * lanes + tile * TILE
        n = min(TILE, N - start)
        if A0 is None:
            pair_forward(memory.power, m, lanes, a, start, n, tiles[tile], B)
        else:
            tile_forward(memory, A0, lanes, a, D, start, n, tiles[tile].reshape(-1, TILE), B)


@kernel
def evaluate(
    memory: Memory,
    A0: Matrix | None,
    belief: Belief,
    a: Rows,
    lanes: int,
    work: Work,
    values: Vector,
    grad: Rows,
) -> None:
    """values (lanes,) and grad (d, N) of the blocks that lie side by side in a (d, N)."""
    d, m = memory.d, memory.m
    B, U, K, tiles = work.B, work.U, work.D, work.tiles
    N = a.shape[1]
    features(memory, A0, a, lanes, work)
    if belief.kind == O3M:
        additive(belief.theta, belief.V_inv, belief.beta, m, lanes, B, U, work.scratch, values)
    else:
        joint(belief, m, lanes, a, B, U, values)
    # The features of the first m actions are the actions themselves (OM-Block), or absent and U is 0.
    for i in range(d):
        for w in range(m * lanes):
            grad[i, w] = U[i, w]
        for w in range(m * lanes, N):
            grad[i, w] = 0.0
    if A0 is not None:
        K[:] = 0.0
    for tile in range(tiles.shape[0]):
        start = m * lanes + tile * TILE
        n = min(TILE, N - start)
        if A0 is None:
            pair_backward(memory.power, m, lanes, a, U, start, n, tiles[tile], grad)
        else:
            tile_backward(memory, lanes, a, U, start, n, tiles[tile].reshape(-1, TILE), K, grad)
    if A0 is not None and memory.gram:
        add_products(a, m, lanes, K, grad)
