"""Vectors in single precision, of SINGLES numbers: owns their loads and stores; see `vectors`.

Twice as many as doubles in a register, for what is only looked at roughly: seven digits, and sizes from 1e-37
to 1e38.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

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
