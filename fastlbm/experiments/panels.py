"""Panels: own the curves and words of one panel of a figure, and which names are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import plots
from .._base import validation
from .._base.types import Array
from .statistics import band_of

if TYPE_CHECKING:
    import pandas as pd


def longest_words(rows: Mapping[str, pd.DataFrame]) -> str:
    """Which horizons the curves of the longest ones leave out; nothing if there are no others."""
    every = {int(T) for mine in rows.values() for T in mine["T"].unique()}
    shown = {int(T) for mine in rows.values() for T in mine.groupby("agent")["T"].max()}
    hidden = ", ".join(map(str, sorted(every - shown)))
    drawn = ", ".join(map(str, sorted(shown)))
    return f"longest horizon, T={drawn} (not drawn: T={hidden})" if hidden else ""


def exponent_words(T: Array, regret: Array) -> str:
    """The slope of log regret over log T, if there are two of them."""
    return f", exponent {np.polyfit(np.log(T), np.log(regret), 1)[0]:.2f}" if len(T) >= 2 else ""


def curve_over(agent: str, rows: pd.DataFrame, name: str, band: tuple[str, float]) -> plots.Curve:
    """The mean and band of `value` at each value of the parameter."""
    groups = [(x, mine["value"].to_numpy()) for x, mine in rows.groupby(name)]
    edges = [band_of(values[None, :], *band) for _, values in groups]
    return plots.Curve(
        label=agent,
        x=np.array([x for x, _ in groups]),
        mean=np.array([values.mean() for _, values in groups]),
        low=np.array([float(low[0]) for low, _ in edges]),
        high=np.array([float(high[0]) for _, high in edges]),
    )


def chosen_of(
    name: str, value: Sequence[str] | Mapping[str, str] | None, allowed: Sequence[str]
) -> dict[str, str]:
    """Labels by name, in order."""
    if value is None:
        return {str(each): str(each) for each in allowed}
    if isinstance(value, str):
        value = [value]
    labels = dict(value) if isinstance(value, Mapping) else {each: each for each in value}
    for each in labels:
        validation.choice(name, each, tuple(allowed))
    if not labels:
        raise ValueError(f"{name} must choose at least one of {', '.join(allowed)}, got none")
    return labels


def short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float, np.number)) else str(value)
