"""Names of arms: own how they are checked, told from numbers, and found."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: So many names of a set are shown in an error, and so many letters of each.
_SHOWN, _LETTERS = 5, 40


def checked_names(names: Sequence[str], K: int) -> tuple[str, ...]:
    """K different texts.

    >>> checked_names(["Blue", "Red"], 2)
    ('Blue', 'Red')
    """
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"names must be texts, one for each arm, got {names!r}")
    found = tuple(map(str, names))
    if len(found) != K:
        raise ValueError(f"names must be one for each of the {K} arms, got {len(found)}")
    if len(set(found)) < K:
        twice = next(name for k, name in enumerate(found) if name in found[:k])
        raise ValueError(f"names must differ from each other, got {twice!r} twice")
    return found


def told_names(argument: str, value: Any) -> list[Any] | None:
    """The entries of a list with texts in it, which is one of names; None of anything else.

    >>> told_names("arms", ["Blue", "Red"]), told_names("arms", np.array([[0.6, 0.8]]))
    (['Blue', 'Red'], None)
    """
    if isinstance(value, str):
        raise TypeError(f"{argument} must be a list of names or an array of numbers, got the text {value!r}")
    entries = value
    if not isinstance(value, (list, tuple)):
        try:
            array = np.asarray(value)  # such as a column of a table
        except (TypeError, ValueError):
            return None
        if array.ndim != 1 or array.dtype.kind not in "OTU":
            return None
        entries = array.tolist()
    return list(entries) if any(isinstance(entry, str) for entry in entries) else None


def find_names(must: str, wanted: Sequence[Any], names: tuple[str, ...] | None) -> NDArray[np.intp]:
    """Where each of the wanted is among the names; an error begins with what they `must` be.

    >>> find_names("arms must be names of arms", ["Red", "Blue"], ("Blue", "Red"))
    array([1, 0])
    >>> find_names("arms must be names of arms", ["Rde", "Blue"], ("Blue", "Red"))
    Traceback (most recent call last):
    ...
    ValueError: arms must be names of arms, got 'Rde', where the names are 'Blue', 'Red'
    """
    places = {name: k for k, name in enumerate(names or ())}
    for name in wanted:
        if not isinstance(name, str) or name not in places:
            raise ValueError(f"{must}, got {_cut(name)}, where {_known(name, names)}")
    return np.array([places[name] for name in wanted], dtype=np.intp)


def _known(name: Any, names: tuple[str, ...] | None) -> str:
    """What there is, in a few words: of many names those that are like this one."""
    if names is None:
        return "the arms have no names: see Finite(arms, names=...)"
    near = difflib.get_close_matches(name, names, _SHOWN) if isinstance(name, str) else []
    shown = ", ".join(map(_cut, names if len(names) <= _SHOWN else near or names[:_SHOWN]))
    return (
        f"the names are {shown}" if len(names) <= _SHOWN else f"there are {len(names)} names, such as {shown}"
    )


def _cut(name: Any) -> str:
    text = repr(name)
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS]}..."
