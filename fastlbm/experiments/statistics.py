"""Statistics: own intervals, bands and tests over seeds; arrays in, arrays out."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .._base.types import Array, Integers

#: Differences up to which the paired test is exact.
EXACT = 50
#: What the band around a curve is, and how a figure says it.
BANDS = {
    "bootstrap": "{:.0%} bootstrap of the mean, pointwise",
    "simultaneous": "{:.0%} bootstrap of the mean, simultaneous over steps",
    "quantiles": "quantiles, {:.0%} of the runs inside",
    "none": "",
}


def paired_tests(differences: Array) -> Array:
    """The p-value of Wilcoxon's signed-rank test for each column; 1 where all differences are zero.

    Two-sided; zeros are left out, ties share their rank. Exact for up to EXACT differences, also with ties;
    beyond that normal, with the correction for ties.
    """
    # SciPy has this test too, but loading scipy.stats takes as long as all else that a finished study does.
    return np.array([_paired_test(column) for column in differences.T])


def _paired_test(differences: Array) -> float:
    kept = differences[differences != 0.0]
    if not len(kept):
        return 1.0
    _, place, ties = np.unique(np.abs(kept), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(ties) - ties + 1)[place]  # twice the rank, an integer also where it is shared
    positive = int(doubled[kept > 0.0].sum())
    if len(differences) <= EXACT:
        chances = _signed_ranks(tuple(np.sort(doubled).tolist()))
        tail = min(chances[: positive + 1].sum(), chances[positive:].sum())
        return min(1.0, 2.0 * float(tail))
    # Of twice the sum of ranks: the mean is half of their total, the variance a quarter of their squares.
    distance = abs(positive - doubled.sum() / 2.0)
    return math.erfc(distance / math.sqrt(float((doubled**2).sum()) / 2.0))


@lru_cache(maxsize=64)
def _signed_ranks(doubled: tuple[int, ...]) -> Array:
    """The chance of each sum of twice the ranks, if each of them counts or not with a chance of a half."""
    chances = np.zeros(sum(doubled) + 1)
    chances[0] = 1.0
    for rank in doubled:
        with_it = np.zeros_like(chances)
        with_it[rank:] = chances[:-rank]
        chances = 0.5 * (chances + with_it)
    return chances


def adjusted_for_many(values: Array) -> Array:
    """P-values adjusted for their number, after Benjamini and Hochberg: the share of false discoveries."""
    order = np.argsort(values)[::-1]
    scaled = values[order] * len(values) / np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled))
    return adjusted


@lru_cache(maxsize=4)
def _draws(count: int, times: int) -> Integers:
    """Indices (times, count) of samples with replacement, always the same."""
    return np.random.default_rng(0).integers(count, size=(times, count))


def intervals(values: Array, confidence: float) -> tuple[Array, Array]:
    """A bootstrap interval of the mean of each column, by percentiles; nothing for one value."""
    # As scipy.stats.bootstrap has it with a seed of 0, up to rounding, in a fraction of its time.
    means = np.stack([column[_draws(len(values), 2000)].mean(axis=1) for column in values.T], axis=1)
    low, high = np.percentile(means, [50.0 * (1.0 - confidence), 50.0 * (1.0 + confidence)], axis=0)
    same = np.ptp(values, axis=0) == 0.0
    return np.where(same, values[0], low), np.where(same, values[0], high)


@lru_cache(maxsize=4)
def _shares(count: int) -> Array:
    """The share (500, count) that each of the seeds has in samples with replacement, always the same."""
    draws = np.random.default_rng(0).integers(count, size=(500, count))
    return np.stack([np.bincount(draw, minlength=count) for draw in draws]) / count


def band_of(values: Array, band: str, confidence: float) -> tuple[Array, Array]:
    """The edges of the band around the mean of values (points, seeds)."""
    tails = [50.0 * (1.0 - confidence), 50.0 * (1.0 + confidence)]
    if band == "none" or values.shape[1] < 2:
        return values.mean(axis=1), values.mean(axis=1)
    if band == "quantiles":
        low, high = np.percentile(values, tails, axis=1)
        return low, high
    # (500, points): a product takes a tenth of the time of taking the values.
    means = _shares(values.shape[1]) @ np.ascontiguousarray(values.T)
    if band == "simultaneous":
        # The whole mean curve inside with this confidence: the largest studentised deviation of a draw.
        centre, error = values.mean(axis=1), means.std(axis=0) + 1e-300
        width = np.quantile(np.abs((means - centre) / error).max(axis=1), confidence) * error
        return centre - width, centre + width
    low, high = np.percentile(means, tails, axis=0)
    return low, high
