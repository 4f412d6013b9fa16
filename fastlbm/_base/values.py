"""Values: owns how the model and the action sets store, compare, show and pickle their parameters.

A value is a frozen dataclass with slots whose `__init__` validates its arguments, in the order of the
fields, and stores them with `_set`.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from .display import as_table
from .types import Array


class Value:
    """Equality, hash, repr and pickling by the arguments of `__init__`."""

    __slots__ = ()
    #: Arguments that came later, with what they were before there was a choice: then they are in no key, so
    #: that states and studies that were stored before still have theirs.
    _LATER: ClassVar[dict[str, Any]] = {}

    def _set(self, **fields: Any) -> None:
        """Store fields past the freeze, arrays as read-only copies."""
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value = np.add(value, 0.0, order="C")  # turns -0.0 into 0.0: equal arrays have equal bytes
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def _arguments(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}  # type: ignore[arg-type]

    def _key(self) -> tuple[Any, ...]:
        """The value as nested tuples of plain Python, the same in every process."""
        arguments = self._arguments()
        later = [(name, arguments.pop(name)) for name in self._LATER]
        changed = [(name, _plain(value)) for name, value in later if value != self._LATER[name]]
        return (type(self).__name__, *map(_plain, arguments.values()), *changed)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        later, arguments = self._LATER, self._arguments().items()
        told = [each for each in arguments if each[0] not in later or each[1] != later[each[0]]]
        shown = ", ".join(f"{name}={_show(value)}" for name, value in told)
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        shown = {name: value for name, value in self._arguments().items() if value is not None}
        return as_table(type(self).__name__, shown)

    def __reduce__(self) -> tuple[Any, ...]:
        # Through __init__: an unpickled array would be writable.
        return type(self), tuple(self._arguments().values())


def writable(array: Array) -> Array:
    """The array, or a copy if it is read-only: numba compiles a kernel anew for read-only arguments."""
    return array if array.flags.writeable else array.copy()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    return value._key() if isinstance(value, Value) else value


def _show(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if value.size <= 12 else f"<array {value.shape}>"
    return repr(value)
