"""Beams: what prefixes earn and promise against definitions, and the blocks that come of them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.kernels import arm_beams, arm_catalogue, arm_prefixes, arm_screens
from fastlbm.kernels._jit import kernel
from fastlbm.kernels.arm_prefixes import ALONG, BESIDE
from tests import naive
from tests.kernels.test_arm_rounds import catalogue_of, poles_for, power_of, value_of

pytestmark = pytest.mark.nojit


@kernel
def weighed(catalogue, poles, m, left, prefix, tried, near, now, after, bench) -> None:
    """Prefix 1 of two gets arms one after the other; then some are tried."""
    A, p, count = catalogue.A, poles.shifts.shape[0], prefix.shape[0]
    for q in range(2):
        arm_prefixes.begin(m, p, q, now, bench)
    source, into = now, after
    for t in range(count):
        for q in range(2):
            arm_prefixes.grow(A, prefix[t] if q == 1 else prefix[0], m, p, q, source, q, into, bench)
        source, into = into, source
    arm_prefixes.expect(m, left, bench)
    arm_prefixes.aim(m, p, 1, source, bench)
    arm_prefixes.gather(A, tried, tried.shape[0], bench)
    arm_prefixes.promise_forms(A, near, catalogue.size, m, p, 1, source, bench)
    arm_prefixes.weigh(m, p, left, 1, tried.shape[0], source, bench)


def tried_arms(
    catalogue: Any, poles: Any, m: int, left: int, prefix: np.ndarray, tried: np.ndarray, near: int
) -> Any:
    """What arms that are tried are worth to a prefix, in `earned` and in the forms."""
    d, p = catalogue.A.shape[1], len(poles.shifts)
    bench = arm_prefixes.make_bench(catalogue, poles, m)
    pair = [arm_prefixes.make_prefixes(2, 1, d, m, p, catalogue.beta > 0.0) for _ in range(2)]
    weighed(catalogue, poles, m, left, prefix, tried, near, *pair, bench)
    return bench


def directions(catalogue: Any, theta: np.ndarray, poles: Any, m: int, prefix: np.ndarray) -> list[np.ndarray]:
    """The best direction of each of the m steps behind a prefix, of the arms that the window has then."""
    b = []
    for v in range(m):
        window = catalogue.A[prefix[max(len(prefix) - (m - v), 0) :]]
        b.append(power_of(poles, naive.memory_matrix(window, np.eye(len(theta)))) @ theta)
    return b


def unit_of(catalogue: Any, theta: np.ndarray, V_inv: np.ndarray) -> float:
    """What the largest arm may earn without memory."""
    widths = np.einsum("ki,ij,kj->k", catalogue.A, V_inv, catalogue.A)
    return max(catalogue.size * np.linalg.norm(theta), catalogue.beta * np.sqrt(widths.max()))


@settings(max_examples=25, deadline=None)
@given(
    m=st.integers(1, 6),
    d=st.sampled_from([1, 2, 3, 5, 9]),
    gamma=st.sampled_from([-2.0, -0.7, -3.0]),
    beta=st.sampled_from([0.0, 0.6]),
    left=st.sampled_from([0, 1, 3, 20]),
    seed=st.integers(0, 100),
)
def test_what_arms_earn_and_promise(m: int, d: int, gamma: float, beta: float, left: int, seed: int) -> None:
    K, rng = 23, np.random.default_rng(seed)
    catalogue, theta, V_inv = catalogue_of(K, d, beta, seed)
    poles, prefix, tried = poles_for(m, gamma), rng.integers(K, size=m + seed % 3), np.arange(17)
    bench, unit = tried_arms(catalogue, poles, m, left, prefix, tried, 3), unit_of(catalogue, theta, V_inv)
    free, along = power_of(poles, np.eye(d))[0, 0], theta / np.linalg.norm(theta)
    power = power_of(poles, naive.memory_matrix(catalogue.A[prefix[-m:]], np.eye(d)))
    for arm in tried:
        b = power @ catalogue.A[arm]
        earned = b @ theta + beta * np.sqrt(b @ V_inv @ b)
        assert bench.earned[0, arm] == pytest.approx(earned / (unit * free), rel=1e-3, abs=2e-4)
        promise = 0.0
        for v, x in enumerate(directions(catalogue, theta, poles, m, np.append(prefix, arm))[:left]):
            beside = np.linalg.norm(x - (x @ along) * along)
            promise += catalogue.size * (ALONG[v] * (x @ along) + BESIDE[v] * beside)
        expected = (earned + promise) / (unit * free)
        # What a window has beside theta is a root: of a rounding, if it has no arms.
        assert bench.earned[1, arm] == pytest.approx(expected, rel=1e-3, abs=2e-3)


@settings(max_examples=20, deadline=None)
@given(
    m=st.integers(1, 5),
    d=st.sampled_from([2, 3, 5, 8]),
    gamma=st.sampled_from([-2.0, -1.0, -3.0]),
    beta=st.sampled_from([0.0, 0.6]),
    seed=st.integers(0, 100),
)
def test_forms_of_a_promise(m: int, d: int, gamma: float, beta: float, seed: int) -> None:
    """They are the promise, linear around that without one more arm, for the arm that is given."""
    K, near, rng = 9, 4, np.random.default_rng(seed)
    catalogue, theta, V_inv = catalogue_of(K, d, beta, seed)
    poles, prefix = poles_for(m, gamma), rng.integers(K, size=m + 1)
    bench, unit = (
        tried_arms(catalogue, poles, m, m, prefix, np.arange(K), near),
        unit_of(catalogue, theta, V_inv),
    )
    free, along, lost = power_of(poles, np.eye(d))[0, 0], theta / np.linalg.norm(theta), 0.0
    for v in range(m):
        window = prefix[len(prefix) - (m - v - 1) :]
        before = power_of(poles, naive.memory_matrix(catalogue.A[window], np.eye(d))) @ theta
        window = np.append(window, near)
        after = power_of(poles, naive.memory_matrix(catalogue.A[window], np.eye(d))) @ theta
        rest = before - (before @ along) * along
        # Beside theta there may be no more than a rounding: the smaller it is, the less it counts.
        size = np.sqrt(rest @ rest + 1e-5 * before @ before)
        aim = ALONG[v] * along + BESIDE[v] * rest / size
        lost += catalogue.size * (before - after) @ aim / (unit * free)
    a, small = catalogue.A[near] / catalogue.size, bench.forms.small
    products = np.outer(a, a)[np.triu_indices(d)]
    k = len(products)
    Q, R, W = small[1, : 2 * k : 2] @ products, small[1, 1 : 2 * k : 2] @ products, small[2, :k] @ products
    found = Q / (1.0 + R)
    assert found == pytest.approx(lost, rel=2e-2, abs=5e-3)
    own = a @ small[0, :d] + np.sqrt(W if beta else 0.0)
    assert own == pytest.approx(bench.earned[0, near], rel=1e-4, abs=1e-5)


def sides_of(catalogue: Any, kinds: np.ndarray) -> Any:
    return arm_beams.make_side(
        arm_screens.group_arms(catalogue.A[: len(kinds)], catalogue.size), catalogue.size, kinds
    )


def beam_of(catalogue: Any, poles: Any, m: int, n: int, W: int, seed: int, some: int = 0) -> np.ndarray:
    """Blocks of a beam; in their midst of the first arms alone."""
    K = len(catalogue.A)
    kinds = arm_beams.kinds_of(catalogue.A[: some or K], arm_beams.KINDS)
    wide, narrow = sides_of(catalogue, np.zeros(K, dtype=np.int64)), sides_of(catalogue, kinds)
    return arm_beams.search_beam(catalogue, wide, narrow, poles, m, n, W, np.random.default_rng(seed))


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("m", [2, 3])
def test_a_beam_with_room_for_all_finds_the_best(m: int, beta: float) -> None:
    """Two arms, and as many prefixes as there are endings: nothing is lost but at the end."""
    n, d = m + 6, 3
    catalogue, theta, V_inv = catalogue_of(2, d, beta, seed=5)
    poles = poles_for(m, -2.0)
    block = beam_of(catalogue, poles, m, n, 64, 0)[0]
    inner = n - arm_catalogue.LAST
    ends = itertools.product(range(2), repeat=n - m)
    blocks = [np.append(block[:m], end) for end in ends]
    values = np.array([value_of(catalogue, theta, V_inv, poles, m, x) for x in blocks])
    found = value_of(catalogue, theta, V_inv, poles, m, block)
    # The last arms are each the best one alone.
    same = np.array([(x[inner:] == block[inner:]).all() for x in blocks])
    assert found == pytest.approx(values[same].max(), rel=1e-6)
    assert found >= values.max() - 0.1 * abs(values.max())


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_wider_beams_earn_more(beta: float) -> None:
    """And all more than what is drawn; the same seed gives the same blocks."""
    K, d, m, n = 90, 4, 3, 13
    mean = []
    for W in (1, 8, 64):
        values = []
        for seed in range(6):
            catalogue, theta, V_inv = catalogue_of(K, d, beta, seed)
            poles = poles_for(m, -2.0)
            blocks = beam_of(catalogue, poles, m, n, W, seed, some=60)
            np.testing.assert_array_equal(blocks, beam_of(catalogue, poles, m, n, W, seed, some=60))
            assert blocks.shape[1] == n
            assert 1 <= len(blocks) <= W
            assert 0 <= blocks.min() <= blocks.max() < K
            assert blocks[:, m : n - arm_catalogue.LAST].max() < 60
            value = [value_of(catalogue, theta, V_inv, poles, m, block) for block in blocks]
            assert value[0] == pytest.approx(max(value), rel=1e-4)
            drawn = np.random.default_rng(seed).integers(K, size=(30, n))
            best = max(value_of(catalogue, theta, V_inv, poles, m, block) for block in drawn)
            values.append(value[0] / best)
        mean.append(np.mean(values))
    assert 1.2 < mean[0] < mean[1] < mean[2]


@pytest.mark.parametrize("size", [1e-30, 1.0, 20.0])
@pytest.mark.parametrize("unit", [0.0, 1e-120, 1.0, 1e120])
def test_beams_of_any_size(size: float, unit: float) -> None:
    K, d, m, n = 60, 3, 2, 9
    catalogue, theta, V_inv = catalogue_of(K, d, 0.5, 0)
    large = arm_catalogue.make_catalogue(size * catalogue.A, unit * theta, V_inv, 0.5 * unit)
    poles = poles_for(m, -2.0)
    blocks = beam_of(large, poles, m, n, 8, 1)
    assert 0 <= blocks.min() <= blocks.max() < K
    if unit == 0.0:
        return
    worth = [value_of(large, unit * theta, V_inv, poles, m, block) for block in blocks]
    drawn = np.random.default_rng(0).integers(K, size=(50, n))
    assert worth[0] > max(value_of(large, unit * theta, V_inv, poles, m, block) for block in drawn)
    bench = tried_arms(large, poles, m, 20, blocks[0], np.arange(5), 0)
    assert np.isfinite(bench.earned[:, :5]).all()


@pytest.mark.parametrize("c", [0.125, 0.25, 0.5])
def test_lanes_that_are_nobodys(c: float) -> None:
    """Entries that are whole numbers made a division by zero beside the lanes of a prefix, and no blocks."""
    m, n, K = 2, 12, 60
    for seed in range(4):
        A = np.random.default_rng(seed).integers(-1, 2, size=(K, 4)).astype(float)
        A /= np.sqrt((A**2).sum(1).max())
        catalogue = arm_catalogue.make_catalogue(A, np.array([1.0, 0.5, 0.0, -1.0]), np.eye(4), 0.0)
        one = poles_for(m, -1.0)._replace(shifts=np.array([c]), weights=np.array([1.0]))
        assert len(beam_of(catalogue, one, m, n, 30, seed)) > 1


def test_kinds() -> None:
    A = np.random.default_rng(0).normal(size=(40, 3))
    kinds = arm_beams.kinds_of(A, 6)
    # The first centre is the first arm, each further one that farthest from those before.
    centres = [0]
    for _ in range(5):
        far = ((A[:, None] - A[centres]) ** 2).sum(-1).min(1)
        centres.append(int(far.argmax()))
    np.testing.assert_array_equal(kinds, ((A[:, None] - A[centres]) ** 2).sum(-1).argmin(1))
    np.testing.assert_array_equal(np.sort(arm_beams.kinds_of(A[:4], 6)), np.arange(4))
    assert not arm_beams.kinds_of(np.ones((5, 2)), 3).any()
    assert arm_beams.kinds_of(np.ones((0, 2)), 3).shape == (0,)
