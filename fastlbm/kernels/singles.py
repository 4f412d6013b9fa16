"""Vectors in single precision, of SINGLES numbers: owns their loads and stores; see `vectors`.

Twice as many as doubles in a register, for what is only looked at roughly: seven digits, and sizes from 1e-37
to 1e38.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from ._jit import inline, kernel_nested
from ._types import SingleRows
from .vectors import (
    WIDTH,
    Several,
    VectorType,
    at_least,
    define,
    define_arithmetic,
    doubles,
    intrinsic,
    larger,
    place,
    root,
    spread,
    sum_of,
    total,
)

#: Numbers in a vector of single precision.
SINGLES = 2 * WIDTH

_singles = VectorType(f"singles{SINGLES}", ir.FloatType(), SINGLES)
# Numba's stubs know less than what is used here.
_f32: Any = types.float32
_array: Any = types.Array
_number: Any = types.intp

define_arithmetic(_singles, _f32)


def single_zeros() -> Several:
    """A vector of zeros."""
    return np.zeros(SINGLES, dtype=np.float32)


def load_singles(x: SingleRows, i: int, j: int) -> Several:
    """The numbers x[i, j:j+SINGLES]; nothing checks that they exist."""
    found = x[i, j : j + SINGLES].copy()
    assert found.shape == (SINGLES,)
    return found


def store_singles(x: SingleRows, i: int, j: int, vector: Several) -> None:
    """The vector into x[i, j:j+SINGLES]; nothing checks that there is room."""
    x[i, j : j + SINGLES] = vector


def store_narrowed(x: SingleRows, i: int, j: int, vector: Several) -> None:
    """A vector of WIDTH doubles into x[i, j:j+WIDTH]; nothing checks that there is room."""
    x[i, j : j + WIDTH] = vector


def single_at(x: SingleRows, i: int, j: int) -> Several:
    """The number x[i, j] in all places; nothing checks that it exists."""
    return np.full(SINGLES, x[i, j])


def running(x: Several) -> Several:
    """Sums of the first number, the first two, and so on."""
    k = 1
    while k < SINGLES:
        x = x + np.append(np.zeros(k, dtype=np.float32), x[:-k])
        k *= 2
    return x


def how_many_up_to(x: Several, most: Any) -> int:
    """How many of the numbers are not above `most`."""
    return int((x <= np.float32(most)).sum())


def largest(x: Several) -> Any:
    """The largest number."""
    return x.max()


@inline
def line_of_singles(x: Any) -> int:
    """The first number of x (size,) that begins a line of the cache, see `line_of`."""
    return -(x.ctypes.data // 4) % SINGLES


@kernel_nested
def single_rows(rows: int, columns: int) -> SingleRows:
    """Zeros (rows, columns) from the beginning of a line of the cache on."""
    room = np.zeros(rows * columns + SINGLES, dtype=np.float32)
    first = line_of_singles(room)
    return room[first : first + rows * columns].reshape(rows, columns)


@define(single_zeros, (), _singles)
def _zeros(context: Any, builder: Any, signature: Any) -> Any:
    return ir.Constant(_singles.llvm, [0.0] * SINGLES)


@define(load_singles, (_array, _number, _number), _singles, dtype=_f32)
def _load(context: Any, builder: Any, signature: Any, x: Any, i: Any, j: Any) -> Any:
    return builder.load(place(context, builder, signature.args[0], x, i, j, of=_singles.llvm), align=4)


@define(store_singles, (_array, _number, _number, _singles), types.none, dtype=_f32)
def _store(context: Any, builder: Any, signature: Any, x: Any, i: Any, j: Any, vector: Any) -> Any:
    builder.store(vector, place(context, builder, signature.args[0], x, i, j, of=_singles.llvm), align=4)
    return context.get_dummy_value()


@define(store_narrowed, (_array, _number, _number, doubles), types.none, dtype=_f32)
def _store_narrowed(context: Any, builder: Any, signature: Any, x: Any, i: Any, j: Any, vector: Any) -> Any:
    narrow = ir.VectorType(ir.FloatType(), WIDTH)
    address = place(context, builder, signature.args[0], x, i, j, of=narrow)
    builder.store(builder.fptrunc(vector, narrow), address, align=4)
    return context.get_dummy_value()


@define(single_at, (_array, _number, _number), _singles, dtype=_f32)
def _single_at(context: Any, builder: Any, signature: Any, x: Any, i: Any, j: Any) -> Any:
    address = place(context, builder, signature.args[0], x, i, j, of=ir.FloatType())
    return spread(builder, builder.load(address), _singles.llvm)


def _moved(builder: Any, x: Any, k: int) -> Any:
    """Each number k places later; zeros come first."""
    nothing, places = ir.Constant(_singles.llvm, [0.0] * SINGLES), ir.VectorType(ir.IntType(32), SINGLES)
    return builder.shuffle_vector(nothing, x, ir.Constant(places, [SINGLES - k + i for i in range(SINGLES)]))


@define(running, (_singles,), _singles)
def _running(context: Any, builder: Any, signature: Any, x: Any) -> Any:
    k = 1
    while k < SINGLES:
        x = builder.fadd(x, _moved(builder, x, k))
        k *= 2
    return x


@define(how_many_up_to, (_singles, _f32), _number)
def _how_many_up_to(context: Any, builder: Any, signature: Any, x: Any, most: Any) -> Any:
    chosen = builder.fcmp_ordered("<=", x, spread(builder, most, _singles.llvm))
    bits = builder.bitcast(chosen, ir.IntType(SINGLES))
    return builder.zext(builder.ctpop(bits), ir.IntType(64))


@define(largest, (_singles,), _f32)
def _largest(context: Any, builder: Any, signature: Any, x: Any) -> Any:
    half = SINGLES // 2
    while half:
        places = ir.VectorType(ir.IntType(32), half)
        low, high = (ir.Constant(places, list(range(k, k + half))) for k in (0, half))
        nothing = ir.Constant(x.type, ir.Undefined)
        x, y = builder.shuffle_vector(x, nothing, low), builder.shuffle_vector(x, nothing, high)
        x = builder.select(builder.fcmp_ordered(">", x, y), x, y)
        half //= 2
    return builder.extract_element(x, ir.IntType(32)(0))


@define(root, (_singles,), _singles)
def _root(context: Any, builder: Any, signature: Any, x: Any) -> Any:
    return intrinsic(builder, f"llvm.sqrt.v{SINGLES}f32", _singles.llvm, x)


@define(at_least, (_singles, _f32), _singles)
def _at_least(context: Any, builder: Any, signature: Any, x: Any, low: Any) -> Any:
    limit = spread(builder, low, _singles.llvm)
    return builder.select(builder.fcmp_ordered(">", x, limit), x, limit)


@define(larger, (_singles, _singles), _singles)
def _larger(context: Any, builder: Any, signature: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


@define(total, (_singles,), _f32)
def _total(context: Any, builder: Any, signature: Any, x: Any) -> Any:
    return sum_of(builder, x)
