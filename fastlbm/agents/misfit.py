"""Misfit: owns the sign that rewards do not follow the model that explains them best.

Under the right model the one-step errors are noise, each independent of the others. Where the model is wrong,
what it misses comes again when the same actions come again, and good plans are nearly periodic: errors at
some distance in time are alike. Time that changes the rewards shows in the same way.
"""

from __future__ import annotations

import numpy as np

from .._base.types import Array

#: Distances in time that are looked at.
LAGS = 40
#: Errors from before so many steps hardly count; the first ones, of models that were guesses, not at all.
SPAN, GUESSES = 4000.0, 200
#: Correlations that are told: this large, and this many standard errors of one without dependence.
LARGE, SURE = 0.1, 5.0
#: All of them together: the sum of their squares, each in standard errors, which is LAGS +- sqrt(2 LAGS) if
#: there is no dependence (Box and Pierce 1970).
MANY = 75.0
#: Errors that must have been seen.
ENOUGH = 500


class Misfit:
    """Correlations of one-step errors, in units of their own size, at distances of 1 to LAGS steps."""

    def __init__(self) -> None:
        self.last = np.zeros(LAGS)  # errors of the last steps, the latest first ...
        self.present = np.zeros(LAGS, dtype=bool)  # ... and whether there was one
        self.products = np.zeros(LAGS)
        self.weights = np.zeros(LAGS)
        self.totals = np.zeros(3)  # sum of squares, their number, errors seen

    def add(self, error: float) -> None:
        """The error of the next step, NaN if there was no reward."""
        seen, present = self.present, bool(np.isfinite(error))
        if present and self.totals[2] < GUESSES:
            self.totals[2] += 1.0
            present = False
        elif present:
            keep = 1.0 - 1.0 / SPAN
            self.products[seen] = keep * self.products[seen] + error * self.last[seen]
            self.weights[seen] = keep * self.weights[seen] + 1.0
            self.totals[:2] = keep * self.totals[:2] + (error * error, 1.0)
            self.totals[2] += 1.0
        self.last[1:], self.present[1:] = self.last[:-1].copy(), self.present[:-1].copy()
        self.last[0], self.present[0] = error if present else 0.0, present

    def correlations(self) -> Array:
        """At the distances 1 to LAGS; 0 where nothing is known."""
        size = self.totals[0] / max(self.totals[1], 1.0)
        if size <= 0.0:
            return np.zeros(LAGS)
        found: Array = self.products / np.maximum(self.weights, 1.0) / size
        return found

    @property
    def found(self) -> bool:
        """Whether the errors are not noise."""
        if self.totals[2] < ENOUGH:
            return False
        found = self.correlations()
        sure = SURE / np.sqrt(np.maximum(self.weights, 1.0))
        together = float(self.weights @ np.square(found))
        return bool((found > np.maximum(LARGE, sure)).any()) or together > MANY

    def state(self) -> dict[str, Array]:
        """Everything, as arrays by name."""
        return {f"misfit.{name}": array for name, array in self.__dict__.items()}
