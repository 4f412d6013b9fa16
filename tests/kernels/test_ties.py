"""Ties: better by more than rounding, as good up to rounding, the same in Python and in kernels."""

from __future__ import annotations

import numpy as np
import pytest

from fastlbm.kernels import ties
from fastlbm.kernels._jit import kernel_norefcount

pytestmark = pytest.mark.nojit

SHARES = (ties.ASCENT_SHARE, ties.SUM_SHARE, ties.ACTION_SHARE)


@kernel_norefcount
def verdicts(x: float, y: float, share: float) -> tuple[bool, bool]:
    rounding = ties.margin(y, share)
    return ties.exceeds(x, y, rounding), ties.reaches(x, y, rounding)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("y", [3.0, -3.0, 1e-200, -1e200, 0.0])
def test_a_margin_either_way(share: float, y: float) -> None:
    rounding = ties.margin(y, share)
    assert rounding == share * abs(y)
    for factor, better, as_good in ((2.0, True, True), (0.5, False, True), (0.0, False, True), (-2.0, 0, 0)):
        x = y + factor * rounding
        if y == 0.0:
            better, as_good = False, True
        assert ties.exceeds(x, y, rounding) == better
        assert ties.reaches(x, y, rounding) == as_good
        assert verdicts(x, y, share) == (better, as_good)


def test_nothing_reaches_or_exceeds_what_is_not_a_number() -> None:
    for x, y in ((np.nan, 1.0), (1.0, np.nan)):
        assert not ties.exceeds(x, y, 0.0)
        assert not ties.reaches(x, y, 0.0)


def test_arrays() -> None:
    values = np.array([1.0, 1.0 - 1e-13, 0.5])
    assert ties.reaches(values, 1.0, ties.margin(1.0, ties.SUM_SHARE)).tolist() == [True, True, False]
