"""Blocks of actions to features and back, the forward and backward steps, for any m, d and A0.

A block is kept time-contiguous: actions (d, N), one row a coordinate, one column an action. Several
blocks lie side by side, `lanes` of them, column t*lanes + s holding action t of block s: the actions of
a window are then the same row shifted by multiples of `lanes`, whatever the number of blocks, and every
loop runs with unit stride over windows of all blocks. A window is kept in the column of its action.

X_j = A0 + sum of the m actions before j, b_j = X_j^gamma a_j: equation (2), eq:A-def, of the paper, and
its action in equation (1), eq:reward.

Dense form: the spectrum of X_j, size d. Gram form, for A0 = c I and m < d, with U the d x m matrix of
the window: X^gamma = c^gamma I + U phi(U^T U) U^T with phi(x) = ((c + x)^gamma - c^gamma)/x, size m.
In the Gram form every inner product that a window needs is one of D_s[r] = <a_r, a_{r+s}>, s = 0..m,
shared by all windows, and so is the derivative with respect to it. In the dense form with many actions in
a window, the sums over windows slide: what they cost does not depend on m.

With a `decay` below 1 the action s steps ago counts decay^(s-1) times: in the Gram form as an action that is
shorter, in the dense form as a weight of its a a^T, and sliding sums are those of `fading`, where a memory
without end has its form as well. decay = 1 takes none of these branches.

This module owns the tiles of both forms; the Gram form for m <= 2 has a module of its own, `pair`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ._jit import inline, kernel_internal
from ._types import Matrix, Rows, Tile, Tiles
from .arithmetic import column
from .eigen_tiles import TILE, is_extreme, spectra, spectra_of_any_size
from .fading import PAPER, Fading, Variant, slide, slide_fading, tail_of, total_weight, turn_of_memory
from .matrix_functions import (
    apply,
    general_differences,
    make_layout,
    root_differences,
    rotate_in,
    settle,
    weigh_matrix,
    weigh_rows,
    weighted_gradient,
)
from .power_poles import poles_of
from .powers import GENERAL, HALF, POWER, Power, eigenvalue_floor, make_power
from .responses import response_differences

#: Below this c the Gram form subtracts numbers of the size of c^gamma: the dense form is used.
GRAM_FROM = 1e-3
#: The same where the actions of a window can span all directions (m >= d): the dense form subtracts nothing.
#: With d > m it rounds as much, in the directions that were not played, and the Gram form is quicker.
GRAM_FROM_SPANNED = 0.25

#: With more actions than this in a window, the dense form does not sum them up anew for each window.
SLIDE_FROM = 12


class Memory(NamedTuple):
    """What the memory matrix is made of, beside A0. `k` is the size of the spectra."""

    d: int
    m: int  # actions before a block that its windows need; 0 if the memory has no end, see `fading`
    gram: bool
    k: int
    power: Power
    decay: float
    endless: bool
    wraps: bool  # of a memory without end: the block is a cycle
    turn: int  # m, or about how many actions count where there is no end
    tail: int  # m, or the steps after which nearly all is forgotten


@inline
def as_cycle(memory: Memory) -> Memory:
    """The same, for blocks that are cycles; only a memory without end makes a difference."""
    return Memory(
        d=memory.d,
        m=memory.m,
        gram=memory.gram,
        k=memory.k,
        power=memory.power,
        decay=memory.decay,
        endless=memory.endless,
        wraps=True,
        turn=memory.turn,
        tail=memory.tail,
    )


def isotropic_scale(A0: Matrix) -> float | None:
    """The c of A0 = c I, or None where A0 is no multiple of the identity."""
    c = float(A0[0, 0])
    return c if bool((c * np.eye(len(A0)) == A0).all()) else None


def make_memory(
    A0: Matrix, m: float, gamma: float, variant: Variant = PAPER, longest: float = 1.0
) -> tuple[Memory, Matrix | None]:
    """The Memory, and what the kernels take for A0: None selects the closed forms of `pair`.

    None is a type of its own, so that a problem compiles only the kernels of its form; and so is `Fading`, of
    an infinite m, with what was played before: nothing, until somebody fills it. Norms are up to `longest`.
    """
    d, decay, weight = A0.shape[0], variant.decay, total_weight(m, variant.decay)
    if m == math.inf:
        power = _dense_power(A0, weight, gamma, variant)
        turn, tail = turn_of_memory(decay), tail_of(decay)
        fading: Any = Fading(A0, np.zeros((d, d)), poles_of(A0, weight, power, longest))
        shape: dict[str, Any] = {"m": 0, "gram": False, "k": d, "turn": turn, "tail": tail}
        return Memory(d=d, power=power, decay=decay, endless=True, wraps=False, **shape), fading
    size, c = int(m), isotropic_scale(A0) or 0.0
    least = longest * longest * (GRAM_FROM if size < d else GRAM_FROM_SPANNED)
    isotropic = c >= least and variant.response == POWER
    if isotropic and size <= 2:
        gram, k, form = True, 2, None
    else:
        gram = isotropic and size < d
        k, form = size if gram else d, A0
    power = make_power(gamma, c) if gram else _dense_power(A0, weight, gamma, variant)
    shape = {"m": size, "gram": gram, "k": k, "turn": size, "tail": size}
    return Memory(d=d, power=power, decay=decay, endless=False, wraps=False, **shape), form


def _dense_power(A0: Matrix, weight: float, gamma: float, variant: Variant) -> Power:
    """How the dense form takes f; what is no power has no floor: it has values and slopes at 0."""
    if variant.response == POWER:
        return make_power(gamma, None, eigenvalue_floor(A0, weight, gamma))
    plain = make_power(0.0, None)
    return plain._replace(gamma=gamma, kind=variant.response, value=variant.value, slope=variant.slope)


@kernel_internal
def _shifted_products(a: Rows, m: int, lanes: int, D: Rows) -> None:
    """D_s[r] = <a_r, a_{r+s}>, s = 0..m."""
    D[:] = 0.0
    for s in range(m + 1):
        shift = column(s * lanes)
        for i in range(a.shape[0]):
            for w in range(a.shape[1] - shift):
                D[s, w] += a[i, w] * a[i, w + shift]


@kernel_internal
def _window_sums(a: Rows, m: int, decay: float, lanes: int, D: Rows) -> None:
    """D (d(d+1)/2 + 2, ...): the upper triangle of the sum of a a^T over the window of each action."""
    d, N = a.shape
    row = 0
    for i in range(d):
        for j in range(i, d):
            for w in range(N):
                D[row, w] = a[i, w] * a[j, w]
            row += 1
    if decay < 1.0:
        slide_fading(D, row, m, decay, lanes, False)
    else:
        slide(D, row, m, lanes)


@kernel_internal
def _add_window_sums(a: Rows, m: int, decay: float, lanes: int, D: Rows, grad: Rows) -> None:
    """Adds to grad what comes through the window sums, given their derivative D, the upper triangle of H.

    An action is in the windows of the next m, which are those before the one after them: D goes on behind the
    last action for as long, with zeros.
    """
    d, N = a.shape
    if decay < 1.0:
        slide_fading(D, D.shape[0] - 2, m, decay, lanes, True)
    else:
        slide(D, D.shape[0] - 2, m, lanes)
    later = column((m + 1) * lanes)
    row = 0
    for i in range(d):
        for j in range(i, d):
            for w in range(N):
                grad[i, w] += D[row, later + w] * a[j, w]
            if i != j:
                for w in range(N):
                    grad[j, w] += D[row, later + w] * a[i, w]
            row += 1


@kernel_internal
def _add_products(a: Rows, m: int, lanes: int, K: Rows, grad: Rows) -> None:
    """Adds to grad what comes through D, given K_s[r] = d value / d D_s[r]."""
    for s in range(m + 1):
        shift = column(s * lanes)
        for i in range(a.shape[0]):
            for w in range(a.shape[1] - shift):
                grad[i, w] += K[s, w] * a[i, w + shift]
            for w in range(a.shape[1] - shift):
                grad[i, w + shift] += K[s, w] * a[i, w]


@inline
def _load_gram(memory: Memory, lanes: int, D: Rows, start: int, n: int, t: Tile) -> None:
    """X and q of n windows from the shifted products D."""
    m, k, decay = memory.m, memory.k, memory.decay
    at = make_layout(k)
    # X = U^T U and q = U^T a; row s belongs to s + 1 steps ago.
    for s in range(m):
        for r in range(s, m):
            row, shift = at.X + s * m + r, column(start - (r + 1) * lanes)
            for w in range(n):
                t[row, w] = D[r - s, shift + w]
        row, shift = at.q + s, column(start - (s + 1) * lanes)
        for w in range(n):
            t[row, w] = D[s + 1, shift + w]
    if decay < 1.0:
        weigh_matrix(t, at.X, math.sqrt(decay), k, n)
        weigh_rows(t, at.q, math.sqrt(decay), k, n)


@inline
def _load_dense(
    memory: Memory, A0: Matrix, lanes: int, a: Rows, D: Rows, slides: bool, start: int, n: int, t: Tile
) -> None:
    """X and q of n windows from the actions, or from the sums D where these slide."""
    d, m, decay = memory.d, memory.m, memory.decay
    at = make_layout(memory.k)
    # X = A0 + sum of a a^T and q = a.
    pair = -1
    for i in range(d):
        for j in range(i, d):
            row = at.X + i * d + j
            pair += 1
            if slides:
                initial = A0[i, j]
                for w in range(n):
                    t[row, w] = initial + D[pair, start + w]
            weight = 1.0
            for s in range(0, 0 if slides else max(m, 1), 2):
                # Two actions of the window a pass; a missing one counts as 0.
                shift, other = (
                    column(start - min(s + 1, m) * lanes),
                    column(start - min(s + 2, m) * lanes),
                )
                initial, keep = (A0[i, j], 0.0) if s == 0 else (0.0, 1.0)
                one, two = weight if s < m else 0.0, decay * weight if s + 1 < m else 0.0
                weight *= decay * decay
                for w in range(n):
                    t[row, w] = (initial + keep * t[row, w]) + (
                        one * a[i, shift + w] * a[j, shift + w] + two * a[i, other + w] * a[j, other + w]
                    )
        row = at.q + i
        for w in range(n):
            t[row, w] = a[i, start + w]


@inline
def _tile_forward(
    memory: Memory,
    A0: Matrix,
    lanes: int,
    a: Rows,
    D: Rows,
    slides: bool,
    start: int,
    n: int,
    t: Tile,
    B: Rows,
) -> None:
    """Features B (d, N) of the n <= TILE windows from column `start`; leaves the spectra in t.

    Where window sums slide, D holds them.
    """
    d, m, k, gram, power = memory.d, memory.m, memory.k, memory.gram, memory.power
    decay = memory.decay
    at = make_layout(k)
    if gram:
        _load_gram(memory, lanes, D, start, n, t)
    else:
        _load_dense(memory, A0, lanes, a, D, slides, start, n, t)
    # X is at least A0, and beyond it at most m: no other A0 makes it extreme.
    size = 1.0 if gram else 0.0
    for i in range(0 if gram else d):
        size = max(size, A0[i, i])
    if size == 0.0 or is_extreme(size):
        spectra_of_any_size(t, at.X, at.lam, at.Q, k, n)
    else:
        spectra(t, at.X, at.lam, at.Q, k, n)
    if power.floor >= 0.0:
        settle(t, at.lam, power.floor, k, n)
    if power.kind == GENERAL:
        general_differences(power, gram, t, k, n)
    elif power.kind > HALF:
        response_differences(power, t, k, n)
    else:
        root_differences(power, gram, t, k, n)
    rotate_in(t, at.Q, at.q, at.lam, k, n)
    apply(t, at.Q, at.f, at.lam, at.y, at.z, k, n)
    if gram and decay < 1.0:
        weigh_rows(t, at.z, math.sqrt(decay), k, n)
    for i in range(d):
        if gram:
            for w in range(n):
                B[i, start + w] = power.c_power * a[i, start + w]
            for s in range(m):
                row, shift = at.z + s, column(start - (s + 1) * lanes)
                for w in range(n):
                    B[i, start + w] += t[row, w] * a[i, shift + w]
        else:
            row = at.z + i
            for w in range(n):
                B[i, start + w] = t[row, w]


@inline
def _tile_backward(
    memory: Memory,
    lanes: int,
    a: Rows,
    U: Rows,
    slides: bool,
    start: int,
    n: int,
    t: Tile,
    K: Rows,
    grad: Rows,
) -> None:
    """Adds the share of n windows to grad (d, N) and, in the Gram form, to K_s[r] = d value / d D_s[r].

    Where window sums slide, K gets the upper triangle of H instead.
    """
    d, m, k, gram = memory.d, memory.m, memory.k, memory.gram
    at = make_layout(k)
    # p = U^T u or u.
    for s in range(k):
        row = at.p + s
        if gram:
            shift = column(start - (s + 1) * lanes)
            for w in range(n):
                t[row, w] = 0.0
            for i in range(d):
                for w in range(n):
                    t[row, w] += a[i, shift + w] * U[i, start + w]
        else:
            for w in range(n):
                t[row, w] = U[s, start + w]
    weighted_gradient(t, math.sqrt(memory.decay) if gram else 1.0, k, n)
    if gram:
        for s in range(m):
            row, shift = at.y + s, column(start - (s + 1) * lanes)
            for w in range(n):
                K[s + 1, shift + w] += t[row, w]
            for r in range(s, m):
                row, shift = at.X + s * m + r, column(start - (r + 1) * lanes)
                # `_add_products` differentiates <a, a> from both sides: the diagonal counts once.
                factor = 1.0 if r == s else 2.0
                for w in range(n):
                    K[r - s, shift + w] += factor * t[row, w]
    for i in range(d):
        if gram:
            for w in range(n):
                grad[i, start + w] += memory.power.c_power * U[i, start + w]
            for s in range(m):
                row, shift = at.z + s, column(start - (s + 1) * lanes)
                for w in range(n):
                    grad[i, shift + w] += t[row, w] * U[i, start + w]
        else:
            row = at.y + i
            for w in range(n):
                grad[i, start + w] += t[row, w]
            double = 2.0
            for s in range(0 if slides else m):
                shift = column(start - (s + 1) * lanes)
                for j in range(0, d, 3):
                    # H a with H = 2 S, three columns of H a pass.
                    one, two = double if j + 1 < d else 0.0, double if j + 2 < d else 0.0
                    j1, j2 = min(j + 1, d - 1), min(j + 2, d - 1)
                    h0 = at.X + min(i, j) * d + max(i, j)
                    h1, h2 = at.X + min(i, j1) * d + max(i, j1), at.X + min(i, j2) * d + max(i, j2)
                    for w in range(n):
                        grad[i, shift + w] += (
                            double * t[h0, w] * a[j, shift + w]
                            + one * t[h1, w] * a[j1, shift + w]
                            + two * t[h2, w] * a[j2, shift + w]
                        )
                double *= memory.decay
    if slides:
        _keep_derivatives(d, start, n, t, K)


@inline
def _keep_derivatives(d: int, start: int, n: int, t: Tile, K: Rows) -> None:
    """H = 2 S of n windows, the upper triangle."""
    at = make_layout(d)
    pair = 0
    for i in range(d):
        for j in range(i, d):
            row = at.X + i * d + j
            for w in range(n):
                K[pair, start + w] = 2.0 * t[row, w]
            pair += 1


@kernel_internal
def general_forward(memory: Memory, A0: Matrix, lanes: int, a: Rows, D: Rows, tiles: Tiles, B: Rows) -> None:
    """Features B (d, N) of all windows of the blocks in a (d, N); leaves the spectra in the tiles."""
    slides = not memory.gram and memory.m > SLIDE_FROM
    if memory.gram:
        _shifted_products(a, memory.m, lanes, D)
    elif slides:
        _window_sums(a, memory.m, memory.decay, lanes, D)
    forward_tiles(memory, A0, lanes, a, D, slides, tiles, B)


@inline
def forward_tiles(
    memory: Memory, A0: Matrix, lanes: int, a: Rows, D: Rows, slides: bool, tiles: Tiles, B: Rows
) -> None:
    """`_tile_forward` for all windows."""
    N = a.shape[1]
    for tile in range(tiles.shape[0]):
        start = column(memory.m * lanes + tile * TILE)
        t = tiles[tile].reshape(-1, TILE)
        _tile_forward(memory, A0, lanes, a, D, slides, start, min(TILE, N - start), t, B)


@kernel_internal
def general_backward(memory: Memory, lanes: int, a: Rows, U: Rows, D: Rows, tiles: Tiles, grad: Rows) -> None:
    """The gradient, given U = d value / d B: adds to the first m columns of grad (d, N), fills the others.

    D is used up.
    """
    slides = not memory.gram and memory.m > SLIDE_FROM
    backward_tiles(memory, lanes, a, U, D, slides, tiles, grad)
    if memory.gram:
        _add_products(a, memory.m, lanes, D, grad)
    elif slides:
        _add_window_sums(a, memory.m, memory.decay, lanes, D, grad)


@inline
def backward_tiles(
    memory: Memory, lanes: int, a: Rows, U: Rows, D: Rows, slides: bool, tiles: Tiles, grad: Rows
) -> None:
    """`_tile_backward` for all windows; D and the last columns of grad are filled anew."""
    N = a.shape[1]
    D[:] = 0.0
    for i in range(a.shape[0]):
        for w in range(memory.m * lanes, N):
            grad[i, w] = 0.0
    for tile in range(tiles.shape[0]):
        start = column(memory.m * lanes + tile * TILE)
        t = tiles[tile].reshape(-1, TILE)
        _tile_backward(memory, lanes, a, U, slides, start, min(TILE, N - start), t, D, grad)
