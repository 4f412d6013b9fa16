"""Vectors of WIDTH numbers as values of compiled code: owns what they can do, and how LLVM is told.

A loop over windows is fast if LLVM makes vector instructions of it. It decides so by rules of its own, checks
first whether the arrays overlap, and leaves what is beyond the last whole vector to a scalar loop: for a
block of twenty windows that is most of the time. A kernel that names its vectors has none of this, and is
compiled sooner. LLVM cuts them to the size that the processor has.
Without the compiler a vector is an array of NumPy of this length. `singles` has those of single precision.
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

from ._jit import inline, kernel_nested
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


class VectorType(types.Type):
    """Numba's type of a vector."""

    def __init__(self, name: str, element: Any, width: int) -> None:
        super().__init__(name=name)
        self.llvm = ir.VectorType(element, width)


#: Numba's type of a vector of WIDTH doubles.
doubles = VectorType(f"vector{WIDTH}", ir.DoubleType(), WIDTH)
_several: Any = doubles.llvm
_index: Any = ir.IntType(32)


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):
    """Numbers in a register."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.llvm)  # type: ignore[no-untyped-call]


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


def number_at(x: Rows, i: int, j: int) -> Several:
    """The number x[i, j] in all places; nothing checks that it exists."""
    return np.full(WIDTH, x[i, j])


def totals(x: Tile, i: int) -> Several:
    """The sums of WIDTH vectors of a flat array from number i on, as `total` makes them."""
    return np.array([total(pick(x, k)) for k in range(i, i + WIDTH)])


@inline
def line_of(x: Tile) -> int:
    """The first number of x that begins a line of the cache: vectors across lines take twice as long."""
    return -(x.ctypes.data // 8) % WIDTH


@kernel_nested
def rows_of_lines(rows: int, columns: int) -> Rows:
    """Zeros (rows, columns) from the beginning of a line of the cache on."""
    room = np.zeros(rows * columns + WIDTH)
    first = line_of(room)
    return room[first : first + rows * columns].reshape(rows, columns)


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


def larger(x: Several, y: Several) -> Several:
    """Of each two numbers the larger one."""
    return np.where(x > y, x, y)


def total(x: Several) -> float:
    """The sum of the numbers: of halves, of halves of these, and so on."""
    while len(x) > 1:
        x = x[: len(x) // 2] + x[len(x) // 2 :]
    return float(x[0])


def signed_as(x: Several, y: Several) -> Several:
    """x with its sign changed where y is negative."""
    return np.where(np.signbit(y), -x, x)


def spread(builder: Any, value: Any, kind: Any = _several) -> Any:
    """A vector of equal numbers, of LLVM's type `kind`; what is a vector stays one."""
    if value.type == kind:
        return value
    if value.type != kind.element:
        value = builder.fptrunc(value, kind.element)
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, value, _index(0))
    return builder.shuffle_vector(
        first, nothing, ir.Constant(ir.VectorType(_index, kind.count), [0] * kind.count)
    )


def define(
    function: Callable[..., Any], kinds: tuple[Any, ...], result: Any, ndim: int = 2, dtype: Any = _f64
) -> Callable[[Any], Any]:
    """Decorates what builds the instructions of a function of arguments of these kinds."""

    def typer(*given: Any) -> Any:
        rows = [k for k, kind in zip(given, kinds, strict=True) if kind is _array]
        if any(not isinstance(x, _array) or x.ndim != ndim or x.dtype != dtype for x in rows):
            return None
        return result(*(g if kind is _array else kind for g, kind in zip(given, kinds, strict=True)))

    def decorate(build: Any) -> Any:
        type_callable(function)(lambda _: update_wrapper(typer, function))

        def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return build(context, builder, signature, *values)

        return lower_builtin(function, *kinds)(lower)  # type: ignore[no-untyped-call]

    return decorate


def place(context: Any, builder: Any, kind: Any, x: Any, *index: Any, of: Any = _several) -> Any:
    """The address of the vector at an index, of LLVM's type `of`."""
    array = context.make_array(kind)(context, builder, x)
    first = _build.get_item_pointer(context, builder, kind, array, list(index), wraparound=False)
    return builder.bitcast(first, of.as_pointer())


def _within(builder: Any, count: Any) -> Any:
    """Which of the numbers of a vector are among the first `count`."""
    narrow = builder.trunc(count, _index)
    kind = ir.VectorType(_index, WIDTH)
    limit, nothing = ir.Constant(kind, ir.Undefined), ir.Constant(kind, ir.Undefined)
    limit = builder.insert_element(limit, narrow, _index(0))
    limit = builder.shuffle_vector(limit, nothing, ir.Constant(kind, [0] * WIDTH))
    return builder.icmp_signed("<", ir.Constant(kind, list(range(WIDTH))), limit)


def intrinsic(builder: Any, name: str, result: Any, *values: Any) -> Any:
    """A call of one of LLVM's own functions."""
    kind = ir.FunctionType(result, [v.type for v in values])
    return builder.call(_build.get_or_insert_function(builder.module, kind, name), values)


@define(zeros, (), doubles)
def _zeros(context: Any, builder: Any, signature: Any) -> Any:
    return ir.Constant(_several, [0.0] * WIDTH)


@define(load, (_array, _number, _number), doubles)
def _load(context: Any, builder: Any, signature: Any, x: Any, i: Any, j: Any) -> Any:
    return builder.load(place(context, builder, signature.args[0], x, i, j), align=8)


@define(store, (_array, _number, _number, doubles), types.none)
def _store(context: Any, builder: Any, signature: Any, x: Any, i: Any, j: Any, vector: Any) -> Any:
    builder.store(vector, place(context, builder, signature.args[0], x, i, j), align=8)
    return context.get_dummy_value()


def _number_of(builder: Any, i: Any) -> Any:
    """Where vector number i begins: the width is known to LLVM, so that most of it is part of an address."""
    return builder.mul(i, i.type(WIDTH))


@define(pick, (_array, _number), doubles, ndim=1)
def _pick(context: Any, builder: Any, signature: Any, x: Any, i: Any) -> Any:
    address = place(context, builder, signature.args[0], x, _number_of(builder, i))
    return builder.load(address, align=8)


@define(put, (_array, _number, doubles), types.none, ndim=1)
def _put(context: Any, builder: Any, signature: Any, x: Any, i: Any, vector: Any) -> Any:
    builder.store(vector, place(context, builder, signature.args[0], x, _number_of(builder, i)), align=8)
    return context.get_dummy_value()


@define(load_first, (_array, _number, _number, _number), doubles)
def _load_first(context: Any, builder: Any, signature: Any, x: Any, i: Any, j: Any, count: Any) -> Any:
    address, chosen = place(context, builder, signature.args[0], x, i, j), _within(builder, count)
    name, nothing = f"llvm.masked.load.v{WIDTH}f64.p0", ir.Constant(_several, [0.0] * WIDTH)
    return intrinsic(builder, name, _several, address, _index(8), chosen, nothing)


@define(store_first, (_array, _number, _number, _number, doubles), types.none)
def _store_first(
    context: Any, builder: Any, signature: Any, x: Any, i: Any, j: Any, count: Any, vector: Any
) -> Any:
    address, chosen = place(context, builder, signature.args[0], x, i, j), _within(builder, count)
    name = f"llvm.masked.store.v{WIDTH}f64.p0"
    intrinsic(builder, name, ir.VoidType(), vector, address, _index(8), chosen)
    return context.get_dummy_value()


@define(root, (doubles,), doubles)
def _root(context: Any, builder: Any, signature: Any, x: Any) -> Any:
    return intrinsic(builder, f"llvm.sqrt.v{WIDTH}f64", _several, x)


@define(absolute, (doubles,), doubles)
def _absolute(context: Any, builder: Any, signature: Any, x: Any) -> Any:
    return intrinsic(builder, f"llvm.fabs.v{WIDTH}f64", _several, x)


@define(at_least, (doubles, _f64), doubles)
def _at_least(context: Any, builder: Any, signature: Any, x: Any, low: Any) -> Any:
    limit = spread(builder, low)
    return builder.select(builder.fcmp_ordered(">", x, limit), x, limit)


@define(where_above, (doubles, _f64, doubles, doubles), doubles)
def _where_above(context: Any, builder: Any, signature: Any, x: Any, low: Any, y: Any, z: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", x, spread(builder, low)), y, z)


@define(larger, (doubles, doubles), doubles)
def _larger(context: Any, builder: Any, signature: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


@define(total, (doubles,), _f64)
def _total(context: Any, builder: Any, signature: Any, x: Any) -> Any:
    return sum_of(builder, x)


def sum_of(builder: Any, x: Any) -> Any:
    """The sum of a vector, by halves."""
    half = x.type.count // 2
    while half:
        places = ir.VectorType(_index, half)
        low, high = (ir.Constant(places, list(range(k, k + half))) for k in (0, half))
        nothing = ir.Constant(x.type, ir.Undefined)
        x = builder.fadd(builder.shuffle_vector(x, nothing, low), builder.shuffle_vector(x, nothing, high))
        half //= 2
    return builder.extract_element(x, _index(0))


@define(number_at, (_array, _number, _number), doubles)
def _number_at(context: Any, builder: Any, signature: Any, x: Any, i: Any, j: Any) -> Any:
    address = place(context, builder, signature.args[0], x, i, j, of=ir.DoubleType())
    return spread(builder, builder.load(address))


@define(totals, (_array, _number), doubles, ndim=1)
def _totals(context: Any, builder: Any, signature: Any, x: Any, i: Any) -> Any:
    first = place(context, builder, signature.args[0], x, _number_of(builder, i))
    rows = [builder.load(builder.gep(first, [_index(k)]), align=8) for k in range(WIDTH)]
    places, half = ir.VectorType(_index, WIDTH), WIDTH // 2
    while half:
        # Two vectors become one: sums of halves of one lie beside those of the other, pieces by pieces.
        pieces = [(k // (2 * half) * 2 * half + k % half, k // half % 2 * WIDTH) for k in range(WIDTH)]
        low, high = (ir.Constant(places, [k + more + other for k, other in pieces]) for more in (0, half))
        rows = [
            builder.fadd(builder.shuffle_vector(a, b, low), builder.shuffle_vector(a, b, high))
            for a, b in zip(rows[:half], rows[half:], strict=True)
        ]
        half //= 2
    return rows[0]


@define(signed_as, (doubles, doubles), doubles)
def _signed_as(context: Any, builder: Any, signature: Any, x: Any, y: Any) -> Any:
    bits = ir.VectorType(ir.IntType(64), WIDTH)
    sign = builder.and_(builder.bitcast(y, bits), ir.Constant(bits, [1 << 63] * WIDTH))
    return builder.bitcast(builder.xor(builder.bitcast(x, bits), sign), _several)


def _arithmetic(vector: VectorType, number: Any, operation: Any, name: str) -> None:
    """+, -, * or / of two vectors, or of one and a number."""

    def typer(x: Any, y: Any) -> Any:
        if vector in (x, y) and all(kind in (vector, number) for kind in (x, y)):
            return vector(x, y)
        return None

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        x, y = (spread(builder, value, vector.llvm) for value in values)
        return getattr(builder, name)(x, y)

    type_callable(operation)(lambda _: typer)
    for kinds in ((vector, vector), (vector, number), (number, vector)):
        lower_builtin(operation, *kinds)(lower)  # type: ignore[no-untyped-call]


def define_arithmetic(vector: VectorType, number: Any) -> None:
    """+, -, *, / and `fma` of vectors, or of vectors and numbers."""
    for name in ("add", "sub", "mul", "truediv"):
        for operation in (getattr(operator, name), getattr(operator, f"i{name}")):
            _arithmetic(vector, number, operation, f"f{name.removeprefix('true')}")

    def typer(x: Any, y: Any, z: Any) -> Any:
        kinds = (x, y, z)
        if vector in kinds and all(kind in (vector, number) for kind in kinds):
            return vector(*kinds)
        return None

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        short = "f64" if vector.llvm.element == _several.element else "f32"
        name = f"llvm.fma.v{vector.llvm.count}{short}"
        return intrinsic(builder, name, vector.llvm, *(spread(builder, v, vector.llvm) for v in values))

    type_callable(fma)(lambda _: typer)
    for kinds in product((vector, number), repeat=3):
        if vector in kinds:
            lower_builtin(fma, *kinds)(lower)  # type: ignore[no-untyped-call]


define_arithmetic(doubles, _f64)


@type_callable(operator.neg)
def _type_of_neg(context: Any) -> Any:
    return lambda x: doubles(doubles) if x == doubles else None


@lower_builtin(operator.neg, doubles)  # type: ignore[no-untyped-call]
def _lower_neg(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.fneg(values[0])
