"""Blocks to features and back where the memory has no end: owns its kernels, and the choice of a dense form.

The tiles are those of `memory`, dense form, with the sums of `fading` for windows; powers of larger matrices
are taken without spectra, see `integer_powers` and `fractional_powers`.
"""

from __future__ import annotations

from numba import types
from numba.extending import overload

from ._jit import INLINED, inline, kernel_internal
from ._types import Matrix, Rows, Tiles
from .eigen_tiles import TILE
from .fading import Fading, add_fading_sums, fading_sums
from .fractional_powers import fractional_backward, fractional_forward
from .integer_powers import has_integer_power, integer_backward, integer_forward
from .matrix_functions import make_layout
from .memory import Memory, backward_tiles, forward_tiles, general_backward, general_forward
from .power_poles import MOST_TERMS, poles_from
from .powers import HALF, INTEGER
from .triangles import triangle


@inline
def without_spectra(memory: Memory) -> bool:
    """Whether tiles hold groups, and need not be 0 at first; some A0 need spectra still."""
    kind = memory.power.kind
    return kind == INTEGER or (kind <= HALF and memory.d >= poles_from(kind))


@inline
def tile_rows(memory: Memory) -> int:
    """Rows (.., TILE) of a tile that holds groups of windows, or what spectra need."""
    d = memory.d
    kept = triangle(d) + (4 + 2 * MOST_TERMS) * d if without_spectra(memory) else 0
    return max(make_layout(d).rows, kept)


@inline
def scratch_rows(d: int) -> int:
    """Rows (.., WIDTH) of scratch for a group of windows, and one to begin with a line of the cache."""
    return triangle(d) + (3 + MOST_TERMS) * d + 1


@inline
def _clear(memory: Memory, tiles: Tiles) -> None:
    """Tiles that hold spectra after all."""
    for tile in range(tiles.shape[0] if without_spectra(memory) else 0):
        for w in range(make_layout(memory.d).rows * TILE):
            tiles[tile, w] = 0.0


@kernel_internal
def endless_forward(
    memory: Memory,
    A0: Matrix,
    past: Matrix,
    poles: Matrix,
    lanes: int,
    a: Rows,
    D: Rows,
    tiles: Tiles,
    group: Rows,
    B: Rows,
) -> None:
    """Features B (d, N) of all actions of the blocks in a (d, N), after the past; fills the tiles."""
    fading_sums(a, past, memory.decay, memory.wraps, lanes, D)
    if has_integer_power(memory, A0):
        integer_forward(memory, A0, a, D, tiles, group, B)
    elif poles.shape[1] > 0:
        fractional_forward(memory, A0, poles, a, D, tiles, group, B)
    else:
        _clear(memory, tiles)
        forward_tiles(memory, A0, lanes, a, D, True, tiles, B)


@kernel_internal
def endless_backward(
    memory: Memory,
    A0: Matrix,
    poles: Matrix,
    lanes: int,
    a: Rows,
    U: Rows,
    D: Rows,
    tiles: Tiles,
    group: Rows,
    grad: Rows,
) -> None:
    """The gradient (d, N), given U = d value / d B."""
    if has_integer_power(memory, A0):
        integer_backward(memory, U, D, tiles, group, grad)
    elif poles.shape[1] > 0:
        fractional_backward(memory, poles, U, D, tiles, group, grad)
    else:
        backward_tiles(memory, lanes, a, U, D, True, tiles, grad)
    add_fading_sums(a, memory.decay, memory.wraps, lanes, D, grad)


def dense_forward(
    memory: Memory, form: Matrix | Fading, lanes: int, a: Rows, D: Rows, tiles: Tiles, group: Rows, B: Rows
) -> None:
    """`general_forward`, or `endless_forward` by the type of the form."""
    if isinstance(form, Fading):
        endless_forward(memory, form.A0, form.past, form.poles, lanes, a, D, tiles, group, B)
    else:
        general_forward(memory, form, lanes, a, D, tiles, B)


def dense_backward(
    memory: Memory,
    form: Matrix | Fading,
    lanes: int,
    a: Rows,
    U: Rows,
    D: Rows,
    tiles: Tiles,
    group: Rows,
    grad: Rows,
) -> None:
    """`general_backward`, or `endless_backward` by the type of the form."""
    if isinstance(form, Fading):
        endless_backward(memory, form.A0, form.poles, lanes, a, U, D, tiles, group, grad)
    else:
        general_backward(memory, lanes, a, U, D, tiles, grad)


@overload(dense_forward, jit_options=INLINED)
def _dense_forward(memory, form, lanes, a, D, tiles, group, B):  # type: ignore[no-untyped-def]
    if isinstance(form, types.Array):
        return lambda memory, form, lanes, a, D, tiles, group, B: general_forward(
            memory, form, lanes, a, D, tiles, B
        )
    return lambda memory, form, lanes, a, D, tiles, group, B: endless_forward(
        memory, form.A0, form.past, form.poles, lanes, a, D, tiles, group, B
    )


@overload(dense_backward, jit_options=INLINED)
def _dense_backward(memory, form, lanes, a, U, D, tiles, group, grad):  # type: ignore[no-untyped-def]
    if isinstance(form, types.Array):
        return lambda memory, form, lanes, a, U, D, tiles, group, grad: general_backward(
            memory, lanes, a, U, D, tiles, grad
        )
    return lambda memory, form, lanes, a, U, D, tiles, group, grad: endless_backward(
        memory, form.A0, form.poles, lanes, a, U, D, tiles, group, grad
    )
