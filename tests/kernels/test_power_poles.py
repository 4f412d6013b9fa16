"""Powers as sums of inverses, against fifty digits."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.kernels.fading import total_weight
from fastlbm.kernels.power_poles import POLES_FROM, POLES_OF_HALVES_FROM, fit_power, poles_of
from fastlbm.kernels.powers import NO_FLOOR, eigenvalue_floor, make_power
from tests.naive import Array

pytestmark = pytest.mark.nojit

TOLERANCE = 1e-13


def poles(A0: Array, gamma: float, decay: float, longest: float = 1.0) -> Array:
    weight = total_weight(math.inf, decay)
    return poles_of(A0, weight, make_power(gamma, None, eigenvalue_floor(A0, weight, gamma)), longest)


def error(alpha: float, low: float, high: float, found: Array) -> float:
    """The largest error at points of the interval, relative to the power."""
    worst = mp.mpf(0)
    with mp.workdps(50):
        for x in np.geomspace(low, high, 60):
            total = mp.fsum(mp.mpf(w) / (mp.mpf(x) + mp.mpf(s)) for s, w in found.T)
            worst = max(worst, abs(total * mp.mpf(x) ** mp.mpf(alpha) - 1))
    return float(worst)


@pytest.mark.parametrize("ratio", [1.01, 2.0, 6.0, 50.0, 1e3, 9e3])
@pytest.mark.parametrize("alpha", [1e-3, 0.3, 0.5, 0.95])
def test_the_sum_is_the_power(alpha: float, ratio: float) -> None:
    for low in (1.0, 1e-3, 40.0):
        found = fit_power(alpha, low, ratio * low, 30)
        assert error(alpha, low, ratio * low, found) <= TOLERANCE
        assert (found[0] >= 0.0).all()
        assert (found[1] > 0.0).all()  # nothing cancels


@settings(max_examples=40, deadline=None)
@given(
    alpha=st.floats(1e-6, 1.0 - 1e-6),
    low=st.floats(1e-5, 1e5),
    ratio=st.floats(1.01, 1e4),
)
def test_any_power_on_any_interval(alpha: float, low: float, ratio: float) -> None:
    found = fit_power(alpha, low, low * ratio, 40)
    assert 1 <= found.shape[1] <= 24
    assert error(alpha, low, low * ratio, found) <= TOLERANCE


def test_few_poles_are_needed() -> None:
    assert fit_power(0.7, 1.0, 6.0, 30).shape[1] == 8
    assert fit_power(0.7, 1.0, 51.0, 30).shape[1] == 12
    assert fit_power(0.7, 1.0, 51.0, 11).shape == (2, 0)


def test_where_spectra_are_left() -> None:
    A0 = np.eye(12)
    assert poles(A0, -1.7, 0.8).shape[1] == 8
    assert poles(A0, -1.7, 0.8, longest=3.0).shape[1] > 8
    assert poles(np.eye(POLES_FROM), -1.7, 0.8).shape[1] == 8
    for gamma in (-2.0, 0.0, 3.0, -7.0):
        assert poles(A0, gamma, 0.8).shape == (2, 0)  # an integer
    assert poles(np.eye(POLES_FROM - 1), -1.7, 0.8).shape == (2, 0)
    assert poles(np.eye(POLES_OF_HALVES_FROM - 1), -2.5, 0.8).shape == (2, 0)
    assert poles(np.eye(POLES_OF_HALVES_FROM), -2.5, 0.8).shape[1] == 8
    assert poles(A0, -1.7, 1.0 - 1e-9).shape == (2, 0)
    assert poles(A0, -1.7, 0.8, longest=1e3).shape == (2, 0)
    assert poles(A0, -1.7, 0.8, longest=1e300).shape == (2, 0)
    assert poles(1e-5 * A0, -1.7, 0.8).shape == (2, 0)
    assert poles(1e-9 * A0, -1.7, 1e-3).shape == (2, 0)
    assert poles(1e9 * A0, -1.7, 0.8).shape == (2, 0)
    assert poles(A0, -1e30 - 0.5, 0.8).shape == (2, 0)
    assert poles(A0, -40.5, 0.8).shape == (2, 0)  # too many factors for a tile
    singular = np.diag([0.0, *[1.0] * 11])
    assert eigenvalue_floor(singular, 5.0, 1.5) == NO_FLOOR
    assert poles(singular, 1.5, 0.8).shape == (2, 0)


def test_nobody_changes_the_poles_of_others() -> None:
    first = poles(np.eye(10), -0.7, 0.8)
    first[:] = 0.0
    assert (poles(np.eye(10), -0.7, 0.8) > 0.0).all()
