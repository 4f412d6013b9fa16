"""Explanations: own what an agent at work believes, in words, as numbers and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.types import Array
from ..plots import draw_beliefs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Probabilities below this are left out of the words, and so many values at most are told one by one.
_TOLD, _MOST = 0.005, 5


@dataclass(frozen=True, repr=False)
class Explanation:
    """What an agent believes after `step` steps; None where it has no belief. It shows itself as text.

    `memory`, `gamma` and `decay` are probabilities by value, of an agent that does not know them; m is
    infinite where a memory has no end. `noise` is the standard deviation of a reward, `theta` (d,) the
    estimate and `spread` (d,) the standard deviation of each of its entries, given the noise; `misfit` says
    that the rewards follow no model that the agent has.
    """

    step: int
    memory: Mapping[float, float] | None = None
    gamma: Mapping[float, float] | None = None
    noise: float | None = None
    theta: Array | None = None
    spread: Array | None = None
    misfit: bool | None = None
    decay: Mapping[float, float] | None = None

    def as_dict(self) -> dict[str, Any]:
        """The same in plain Python, fit for JSON: keys of probabilities are text."""
        found: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, Mapping):
                found[name] = {f"{key:g}": float(p) for key, p in value.items()}
            else:
                found[name] = value.tolist() if isinstance(value, np.ndarray) else value
        return found

    def plot(self) -> Figure:
        """The probabilities of memory and gamma, and of the decay if it may be below 1; theta and spread."""
        title = f"After {self.step} steps"
        return draw_beliefs(
            self.memory, self.gamma, self.theta, self.spread, decay=self._fading(), title=title
        )

    def _fading(self) -> Mapping[float, float] | None:
        """The probabilities of decays, unless it is known that nothing fades."""
        return self.decay if self.decay and min(self.decay) < 1.0 else None

    def __str__(self) -> str:
        lines = [f"After {self.step} steps:"]
        found = {"memory m": self.memory, "exponent gamma": self.gamma, "decay": self._fading()}
        for name, values in found.items():
            if values is not None:
                lines.append(f"  {name}: {_most_probable(values)}")
        if self.noise is not None:
            lines.append(f"  noise of a reward: {self.noise:.3g}")
        if self.theta is not None and self.spread is not None:
            pairs = zip(self.theta, self.spread, strict=True)
            lines.append("  theta: " + ", ".join(f"{x:.3f} +- {s:.3f}" for x, s in pairs))
        if self.misfit:
            lines.append("  The rewards follow none of these models: the errors are not noise.")
        if len(lines) == 1:
            lines.append("  the agent does not learn, or has no theta of a step.")
        return "\n".join(lines)

    __repr__ = __str__


def _most_probable(values: Mapping[float, float]) -> str:
    """The most probable values one by one, and how many others share the rest.

    >>> _most_probable({0: 0.0, 1: 0.25, 2: 0.75})
    '2 (75%), 1 (25%)'
    >>> _most_probable({gamma: 0.1 for gamma in range(-5, 5)})
    '-5 (10%), -4 (10%), -3 (10%), -2 (10%), -1 (10%), and 5 others (50%)'
    """
    likely = sorted(((value, p) for value, p in values.items() if p > 0.0), key=lambda item: -item[1])
    told = [(value, p) for value, p in likely if p >= _TOLD][:_MOST]
    words = [f"{value:g} ({100 * p:.0f}%)" for value, p in told]
    others = likely[len(told) :]
    rest = sum(p for _, p in others)
    if rest >= _TOLD:
        words.append(f"and {len(others)} {'others' if len(others) > 1 else 'other'} ({100 * rest:.0f}%)")
    return ", ".join(words)
