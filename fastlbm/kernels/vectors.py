"""Vectors of WIDTH numbers as values of compiled code: owns what they can do, and how LLVM is told.

A loop over windows is fast if LLVM makes vector instructions of it. It decides so by rules of its own, checks
first whether the arrays overlap, and leaves what is beyond the last whole vector to a scalar loop: for a
block of twenty windows that is most of the time. A kernel that names its vectors has none of this, and is
compiled sooner. LLVM cuts them to the size that the processor has.

Without the compiler a vector is an array of NumPy of this length.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import update_wrapper
from itertools import product
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, models, register_model, type_callable

from ._jit import inline
from ._types import Rows, Tile
from .arithmetic import fma

#: Numbers in a vector: those of the widest registers there are; two or four narrower ones take its place.
WIDTH = 8

#: A vector. The type checker takes it for anything: formulas such as `fma` serve numbers as well.
Several = Any

# Numba's stubs know less than what is used here.
_f64: Any = types.float64
_build: Any = cgutils
_array: Any = types.Array
_number: Any = types.intp


class _VectorType(types.Type):
    """Numba's type of a vector."""

    def __init__(self) -> None:
        super().__init__(name=f"vector{WIDTH}")


_vector = _VectorType()
_double: Any = ir.DoubleType()
_several: Any = ir.VectorType(_double, WIDTH)
_index: Any = ir.IntType(32)


@register_model(_VectorType)
class _VectorModel(models.PrimitiveModel):
    """WIDTH doubles in a register."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _several)  # type: ignore[no-untyped-call]


def zeros() -> Several:
    """A vector of zeros."""
    return np.zeros(WIDTH)


def load(x: Rows, i: int, j: int) -> Several:
    """The numbers x[i, j:j+WIDTH]; nothing checks that they exist."""
    found = x[i, j : j + WIDTH].copy()
    assert found.shape == (WIDTH,)
    return found


def load_first(x: Rows, i: int, j: int, count: int) -> Several:
    """The numbers x[i, j:j+count] and zeros; count is from 1 to WIDTH."""
    found = np.zeros(WIDTH)
    found[:count] = x[i, j : j + count]
    return found


def store(x: Rows, i: int, j: int, vector: Several) -> None:
    """The vector into x[i, j:j+WIDTH]; nothing checks that there is room."""
    x[i, j : j + WIDTH] = vector


def store_first(x: Rows, i: int, j: int, count: int, vector: Several) -> None:
    """The first `count` of the vector into x[i, j:j+count]; count is from 1 to WIDTH."""
    x[i, j : j + count] = vector[:count]


def pick(x: Tile, i: int) -> Several:
    """Vector number i of a flat array: the numbers x[i*WIDTH:(i+1)*WIDTH]; nothing checks that they exist."""
    found = x[i * WIDTH : (i + 1) * WIDTH].copy()
    assert found.shape == (WIDTH,)
    return found


def put(x: Tile, i: int, vector: Several) -> None:
    """The vector into place number i of a flat array; nothing checks that there is room."""
    x[i * WIDTH : (i + 1) * WIDTH] = vector


@inline
def line_of(x: Tile) -> int:
    """The first number of x that begins a line of the cache: vectors across lines take twice as long."""
    return -(x.ctypes.data // 8) % WIDTH


@inline
def read(x: Rows, i: int, j: int, count: int) -> Several:
    """The numbers x[i, j:j+WIDTH], those from `count` on as 0; count is at least 1."""
    return load(x, i, j) if count >= WIDTH else load_first(x, i, j, count)


@inline
def write(x: Rows, i: int, j: int, count: int, vector: Several) -> None:
    """The vector into x[i, j:j+WIDTH], without those from `count` on; count is at least 1."""
    if count >= WIDTH:
        store(x, i, j, vector)
    else:
        store_first(x, i, j, count, vector)


def root(x: Several) -> Several:
    """The square roots."""
    return np.sqrt(x)


def absolute(x: Several) -> Several:
    """The sizes of the numbers."""
    return np.abs(x)


def at_least(x: Several, low: float) -> Several:
    """The numbers, or `low` where it is larger."""
    return np.where(x > low, x, low)


def where_above(x: Several, low: float, y: Several, z: Several) -> Several:
    """y where x > low, else z."""
    return np.where(x > low, y, z)


def signed_as(x: Several, y: Several) -> Several:
    """x with its sign changed where y is negative."""
    return np.where(np.signbit(y), -x, x)


def _spread(builder: Any, value: Any) -> Any:
    """A vector of equal numbers; what is a vector stays one."""
    if value.type == _several:
        return value
    nothing = ir.Constant(_several, ir.Undefined)
    first = builder.insert_element(nothing, value, _index(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_index, WIDTH), [0] * WIDTH))


def _define(
    function: Callable[..., Any], kinds: tuple[Any, ...], result: Any, ndim: int = 2
) -> Callable[[Any], Any]:
    """Decorates what builds the instructions of a function of arguments of these kinds."""

    def typer(*given: Any) -> Any:
        rows = [k for k, kind in zip(given, kinds, strict=True) if kind is _array]
        if any(not isinstance(x, _array) or x.ndim != ndim or x.dtype != _f64 for x in rows):
            return None
        return result(*(g if kind is _array else kind for g, kind in zip(given, kinds, strict=True)))

    def decorate(build: Any) -> Any:
        type_callable(function)(lambda _: update_wrapper(typer, function))

        def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return build(context, builder, signature, *values)

        return lower_builtin(function, *kinds)(lower)  # type: ignore[no-untyped-call]

    return decorate


def _place(context: Any, builder: Any, kind: Any, x: Any, *index: Any) -> Any:
    """The address of the vector at an index."""
    array = context.make_array(kind)(context, builder, x)
    first = _build.get_item_pointer(context, builder, kind, array, list(index), wraparound=False)
    return builder.bitcast(first, _several.as_pointer())


def _within(builder: Any, count: Any) -> Any:
    """Which of the numbers of a vector are among the first `count`."""
    narrow = builder.trunc(count, _index)
    kind = ir.VectorType(_index, WIDTH)
    limit, nothing = ir.Constant(kind, ir.Undefined), ir.Constant(kind, ir.Undefined)
    limit = builder.insert_element(limit, narrow, _index(0))
    limit = builder.shuffle_vector(limit, nothing, ir.Constant(kind, [0] * WIDTH))
    return builder.icmp_signed("<", ir.Constant(kind, list(range(WIDTH))), limit)


def _intrinsic(builder: Any, name: str, result: Any, *values: Any) -> Any:
    """A call of one of LLVM's own functions."""
    kind = ir.FunctionType(result, [v.type for v in values])
    return builder.call(_build.get_or_insert_function(builder.module, kind, name), values)


@_define(zeros, (), _vector)
def _zeros(context: Any, builder: Any, signature: Any) -> Any:
    return ir.Constant(_several, [0.0] * WIDTH)


@_define(load, (_array, _number, _number), _vector)
def _load(context: Any, builder: Any, signature: Any, x: Any, i: Any, j: Any) -> Any:
    return builder.load(_place(context, builder, signature.args[0], x, i, j), align=8)


@_define(store, (_array, _number, _number, _vector), types.none)
def _store(context: Any, builder: Any, signature: Any, x: Any, i: Any, j: Any, vector: Any) -> Any:
    builder.store(vector, _place(context, builder, signature.args[0], x, i, j), align=8)
    return context.get_dummy_value()


def _number_of(builder: Any, i: Any) -> Any:
    """Where vector number i begins: the width is known to LLVM, so that most of it is part of an address."""
    return builder.mul(i, i.type(WIDTH))


@_define(pick, (_array, _number), _vector, ndim=1)
def _pick(context: Any, builder: Any, signature: Any, x: Any, i: Any) -> Any:
    place = _place(context, builder, signature.args[0], x, _number_of(builder, i))
    return builder.load(place, align=8)


@_define(put, (_array, _number, _vector), types.none, ndim=1)
def _put(context: Any, builder: Any, signature: Any, x: Any, i: Any, vector: Any) -> Any:
    builder.store(vector, _place(context, builder, signature.args[0], x, _number_of(builder, i)), align=8)
    return context.get_dummy_value()


@_define(load_first, (_array, _number, _number, _number), _vector)
def _load_first(context: Any, builder: Any, signature: Any, x: Any, i: Any, j: Any, count: Any) -> Any:
    place, chosen = _place(context, builder, signature.args[0], x, i, j), _within(builder, count)
    name, nothing = f"llvm.masked.load.v{WIDTH}f64.p0", ir.Constant(_several, [0.0] * WIDTH)
    return _intrinsic(builder, name, _several, place, _index(8), chosen, nothing)


@_define(store_first, (_array, _number, _number, _number, _vector), types.none)
def _store_first(
    context: Any, builder: Any, signature: Any, x: Any, i: Any, j: Any, count: Any, vector: Any
) -> Any:
    place, chosen = _place(context, builder, signature.args[0], x, i, j), _within(builder, count)
    name = f"llvm.masked.store.v{WIDTH}f64.p0"
    _intrinsic(builder, name, ir.VoidType(), vector, place, _index(8), chosen)
    return context.get_dummy_value()


@_define(root, (_vector,), _vector)
def _root(context: Any, builder: Any, signature: Any, x: Any) -> Any:
    return _intrinsic(builder, f"llvm.sqrt.v{WIDTH}f64", _several, x)


@_define(absolute, (_vector,), _vector)
def _absolute(context: Any, builder: Any, signature: Any, x: Any) -> Any:
    return _intrinsic(builder, f"llvm.fabs.v{WIDTH}f64", _several, x)


@_define(at_least, (_vector, _f64), _vector)
def _at_least(context: Any, builder: Any, signature: Any, x: Any, low: Any) -> Any:
    limit = _spread(builder, low)
    return builder.select(builder.fcmp_ordered(">", x, limit), x, limit)


@_define(where_above, (_vector, _f64, _vector, _vector), _vector)
def _where_above(context: Any, builder: Any, signature: Any, x: Any, low: Any, y: Any, z: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", x, _spread(builder, low)), y, z)


@_define(signed_as, (_vector, _vector), _vector)
def _signed_as(context: Any, builder: Any, signature: Any, x: Any, y: Any) -> Any:
    bits = ir.VectorType(ir.IntType(64), WIDTH)
    sign = builder.and_(builder.bitcast(y, bits), ir.Constant(bits, [1 << 63] * WIDTH))
    return builder.bitcast(builder.xor(builder.bitcast(x, bits), sign), _several)


def _arithmetic(operation: Any, name: str) -> None:
    """+, -, * or / of two vectors, or of one and a number."""

    def typer(x: Any, y: Any) -> Any:
        if _vector in (x, y) and all(kind in (_vector, _f64) for kind in (x, y)):
            return _vector(x, y)
        return None

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        x, y = (_spread(builder, value) for value in values)
        return getattr(builder, name)(x, y)

    type_callable(operation)(lambda _: typer)
    for kinds in ((_vector, _vector), (_vector, _f64), (_f64, _vector)):
        lower_builtin(operation, *kinds)(lower)  # type: ignore[no-untyped-call]


for _operation, _name in (
    (operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"), (operator.truediv, "fdiv"),
    (operator.iadd, "fadd"), (operator.isub, "fsub"), (operator.imul, "fmul"), (operator.itruediv, "fdiv"),
):  # fmt: skip
    _arithmetic(_operation, _name)


@type_callable(operator.neg)
def _type_of_neg(context: Any) -> Any:
    return lambda x: _vector(_vector) if x == _vector else None


@lower_builtin(operator.neg, _vector)  # type: ignore[no-untyped-call]
def _lower_neg(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.fneg(values[0])


@type_callable(fma)
def _type_of_fma(context: Any) -> Any:
    def typer(x: Any, y: Any, z: Any) -> Any:
        kinds = (x, y, z)
        if _vector in kinds and all(kind in (_vector, _f64) for kind in kinds):
            return _vector(*kinds)
        return None

    return typer


def _lower_fma(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return _intrinsic(builder, f"llvm.fma.v{WIDTH}f64", _several, *(_spread(builder, v) for v in values))


for _kinds in product((_vector, _f64), repeat=3):
    if _vector in _kinds:
        lower_builtin(fma, *_kinds)(_lower_fma)  # type: ignore[no-untyped-call]
