"""What a live policy is told: owns how arms, actions and rewards are checked, in numbers or by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.types import Array
from ..model.actions import ActionSet, Ball, Finite
from ..model.names import find_names, told_names


def names_of(actions: ActionSet | None) -> tuple[str, ...] | None:
    """The names of the arms; None if they have none."""
    return actions.names if isinstance(actions, Finite) else None


def arm_of(action: Array, actions: ActionSet | None, step: int) -> int | None:
    """The number of an action (d,) among the arms of its step, the first of equals; None if it is none."""
    if actions is None or isinstance(actions, Ball):
        return None
    sets = actions.sets()
    same = np.flatnonzero((sets[min(step, len(sets) - 1)] == action).all(axis=1))
    return int(same[0]) if len(same) else None


def offered_arms(arms: ArrayLike | Finite, actions: ActionSet) -> Finite:
    """The arms of a step: a set, an array (K, d), or names of arms of the set `actions`."""
    if isinstance(arms, Finite):
        found = arms
    elif (names := told_names("arms", arms)) is None:
        found = Finite(arms)
    else:
        rows = _named_rows("arms must be names of arms, or an array (K, d)", names, actions)
        if len(set(names)) < len(names):
            twice = next(name for k, name in enumerate(names) if name in names[:k])
            raise ValueError(f"arms must be names that differ from each other, got {twice!r} twice")
        found = Finite(rows, names=names)
    if found.d != actions.d:
        raise ValueError(f"arms must have the dimension of the actions, {actions.d}, got {found.d}")
    return found


def one_action(action: ArrayLike, actions: ActionSet) -> tuple[Array, int | None]:
    """An action (d,) of the unit ball; with the number of its arm if it was told by the name of that."""
    must = f"action must be the name of an arm, or {actions.d} numbers"
    if isinstance(action, str):
        arm = int(find_names(must, [action], names_of(actions))[0])
        return actions.sets()[0, arm].copy(), arm
    if told_names("action", action) is not None:
        raise TypeError(f"{must}, got a list with texts, {action!r}")
    return validation.in_ball("action", validation.array("action", action, (actions.d,))), None


def many_actions(log: ArrayLike, actions: ActionSet) -> Array:
    """Actions (n, d) of the unit ball, or their names."""
    names = told_names("actions", log)
    if names is not None:
        return _named_rows("actions must be names of arms, or an array (n, d)", names, actions)
    return validation.in_ball("actions", validation.array("actions", log, (None, actions.d)))


def _named_rows(must: str, names: list[Any], actions: ActionSet) -> Array:
    places = find_names(must, names, names_of(actions))
    rows: Array = actions.sets()[0, places]
    return rows


def one_reward(name: str, y: Any) -> float:
    """A reward, also as an array without axes."""
    y = y.item() if isinstance(y, np.ndarray) and y.ndim == 0 else y
    return validation.real(name, y, low=-validation.LARGEST, high=validation.LARGEST)


def many_rewards(rewards: ArrayLike, n: int) -> Array:
    """Rewards (n,), of which some may be NaN."""
    try:
        y = np.array(rewards, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"rewards must be an array of real numbers: {error}") from None
    validation.bounded("rewards", validation.array("rewards", np.where(np.isnan(y), 0.0, y), (n,)))
    return y
