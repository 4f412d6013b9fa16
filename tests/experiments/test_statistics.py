"""Statistics: the tests over seeds, beside SciPy's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fastlbm.experiments.statistics import EXACT, adjusted_for_many, paired_tests


@pytest.mark.parametrize("n", [1, 2, 7, 20, EXACT, EXACT + 1, 300])
def test_the_paired_test_is_wilcoxons(n: int) -> None:
    values = np.random.default_rng(n).normal(0.2, 1.0, (n, 4))
    np.testing.assert_allclose(paired_tests(values), stats.wilcoxon(values, axis=0).pvalue, rtol=1e-12)


def test_many_differences_with_ties_and_zeros_are_corrected_for_them() -> None:
    values = np.random.default_rng(0).integers(-3, 5, (EXACT + 20, 1)).astype(float)
    wanted = stats.wilcoxon(values[:, 0]).pvalue  # normal for so many
    np.testing.assert_allclose(paired_tests(values), [wanted], rtol=1e-12)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_few_differences_with_ties_and_zeros_are_counted_out(whole: list[int]) -> None:
    """Every way to give the differences signs is as likely as every other."""
    kept = np.array([value for value in whole if value], dtype=float)
    ranks = stats.rankdata(np.abs(kept))
    sums = [ranks @ signs for signs in itertools.product((0.0, 1.0), repeat=len(kept))]
    seen = ranks @ (kept > 0.0)
    wanted = min(1.0, 2.0 * min(np.mean(np.array(sums) <= seen), np.mean(np.array(sums) >= seen)))
    np.testing.assert_allclose(paired_tests(np.array(whole, dtype=float)[:, None]), [wanted], rtol=1e-12)


def test_no_difference_is_no_evidence() -> None:
    np.testing.assert_array_equal(paired_tests(np.zeros((5, 2))), [1.0, 1.0])


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_p_values_are_adjusted_as_benjamini_and_hochberg_do(values: list[float]) -> None:
    wanted = stats.false_discovery_control(values)
    np.testing.assert_allclose(adjusted_for_many(np.array(values)), wanted, rtol=1e-12, atol=1e-300)


def test_nothing_to_adjust_is_nothing() -> None:
    assert adjusted_for_many(np.array([])).shape == (0,)
