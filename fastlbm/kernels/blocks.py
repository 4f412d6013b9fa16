"""One evaluation of block objectives: forward, optimism, backward; owns the workspace."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_norefcount
from ._types import Matrix, Rows, Tiles, Vector
from .eigen_tiles import TILE
from .endless import dense_backward, dense_forward, scratch_rows, tile_rows, without_spectra
from .matrix_functions import make_layout
from .memory import SLIDE_FROM, Memory
from .optimism import O3M, Belief, additive, joint
from .pair import ROWS, groups_of, pair_backward, pair_forward
from .pair_ucb import pair_ucb
from .vectors import WIDTH, line_of


class Work(NamedTuple):
    """Arrays that an evaluation fills, for blocks of one shape."""

    B: Rows  # (d, N) features
    U: Rows  # (d, N) derivative of the objective with respect to the features
    #: (m+1, N) shifted inner products, or sums over windows, then the derivative with respect to them; in the
    #: form of `pair` the parts of the gradient, and the UCBs of windows
    D: Rows
    tiles: Tiles  # (tiles, rows*TILE) spectra
    scratch: Rows  # (2, N)
    #: (2 d, WIDTH) features of a group of windows of `pair`, and V_inv times them; scratch of `endless`
    group: Rows


@kernel
def make_work(memory: Memory, A0: Matrix | None, N: int, lanes: int) -> Work:
    """A workspace for `lanes` blocks in N columns."""
    d, m = memory.d, memory.m
    if A0 is None:
        return Work(
            B=np.zeros((d, N)),
            U=np.zeros((d, N)),
            D=np.zeros((3 * d + 1, N + WIDTH)),
            tiles=np.zeros((groups_of(N - m * lanes), ROWS * WIDTH)),
            scratch=np.zeros((2, N)),
            group=np.zeros((2 * d, WIDTH)),
        )
    rows = make_layout(memory.k).rows
    shared, columns = 0, N
    if memory.gram:
        shared = m + 1
    elif m > SLIDE_FROM or memory.endless:
        shared, columns = d * (d + 1) // 2 + 2, N + (m + 1) * lanes
    count = (N - m * lanes + TILE - 1) // TILE
    if memory.endless:
        rows = tile_rows(memory)
    # They begin with a line of the cache: vectors across lines take up to a third longer (measured).
    size = count * rows * TILE
    room = np.empty(size + WIDTH)
    first = line_of(room)
    if not (memory.endless and without_spectra(memory)):
        room[:] = 0.0
    return Work(
        B=np.zeros((d, N)),
        U=np.zeros((d, N)),
        D=np.empty((shared, columns)) if memory.endless else np.zeros((shared, columns)),
        tiles=room[first : first + size].reshape(count, rows * TILE),
        scratch=np.zeros((2, N)),
        group=np.empty((scratch_rows(d) if memory.endless else 0, WIDTH)),
    )


@inline
def features(memory: Memory, A0: Matrix | None, a: Rows, lanes: int, work: Work) -> None:
    """work.B (d, N) of all windows of the blocks that lie side by side in a (d, N).

    Compiled, the form is chosen by the type of A0: a problem compiles only the kernels that it needs.
    """
    if A0 is None:
        pair_forward(memory, lanes, a, work.tiles, work.B)
    else:
        dense_forward(memory, A0, lanes, a, work.D, work.tiles, work.group, work.B)


@inline
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
    m = memory.m
    B, U = work.B, work.U
    if A0 is None and belief.kind == O3M:
        pair_ucb(memory, belief, lanes, a, work.tiles, work.D, work.group, values, grad)
        return
    features(memory, A0, a, lanes, work)
    if A0 is None:
        joint(belief, m, lanes, a, B, U, values)
        pair_backward(memory, lanes, a, U, work.tiles, work.D, grad)
        return
    if belief.kind == O3M:
        additive(belief.theta, belief.V_inv, belief.beta, m, lanes, B, U, work.scratch, values)
    else:
        joint(belief, m, lanes, a, B, U, values)
    # The features of the first m actions are the actions themselves (OM-Block), or absent and U is 0.
    for i in range(a.shape[0]):
        for w in range(m * lanes):
            grad[i, w] = U[i, w]
    dense_backward(memory, A0, lanes, a, U, work.D, work.tiles, work.group, grad)


@kernel_norefcount
def compute_features(memory: Memory, A0: Matrix | None, a: Rows, lanes: int, work: Work) -> None:
    """`features` for Python."""
    features(memory, A0, a, lanes, work)


@kernel_norefcount
def compute_value(
    memory: Memory,
    A0: Matrix | None,
    belief: Belief,
    a: Rows,
    lanes: int,
    work: Work,
    values: Vector,
    grad: Rows,
) -> None:
    """`evaluate` for Python."""
    evaluate(memory, A0, belief, a, lanes, work, values, grad)
