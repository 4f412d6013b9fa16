"""Corollary 1 as a number, against its proof written out once more."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastlbm import theory

pytestmark = pytest.mark.nojit

pairs = st.lists(
    st.tuples(st.integers(1, 6), st.sampled_from([-3.0, -1.0, 0.5, 2.0])),
    min_size=1,
    max_size=5,
    unique=True,
)


def written_out(T: int, d: int, candidates: list[tuple[int, float]], truth: tuple[int, float]) -> float:
    """The end of the proof, with equation (30), eq:regret_cutko, as the regret F of the Combiner."""
    blocks = {m: max(m + 1, math.ceil(math.sqrt(m / d) * T**0.25 - 1e-9)) for m, _ in candidates}
    shortest, longest = min(blocks.values()), max(blocks.values())
    rounds, N = math.ceil(T / shortest), len(candidates)
    m, gamma = truth
    R = (m + 1) ** max(gamma, 0.0)
    C = (
        4 * (4 * m / d) ** (1 / 3) * R * math.sqrt(d * math.log(1 + rounds * blocks[m] * R**2 / d))
        * (1 + math.sqrt(math.log(T) + d * math.log(1 + rounds * R**2 / d)))
    )  # fmt: skip
    F = (
        C * rounds ** (2 / 3)
        + 5 * math.sqrt(30) / 18 * C**1.5 * rounds ** (2 / 3)
        + 1152 * R**2 * rounds ** (1 / 3) * math.log(rounds**3 * N * T)
        + (N - 1) * rounds ** (2 / 3)
    )
    # Lemma 1 on r~ of the blocks, then what their first steps cost at most: a bound for this part of OPT ...
    bound, part = shortest * F + max(k for k, _ in candidates) * R * rounds, shortest / longest
    bound += part * R * T * m / blocks[m]  # ... in place of its L/(m+L), by OPT <= R T,
    aim = math.sqrt(min(k for k, _ in candidates) / max(k for k, _ in candidates))
    if aim > part:  # ... in place of min |a|/max |a|, which lengths rounded up make smaller than 1/sqrt(M),
        bound += (aim - part) * R * T
    return bound + 2 * R * T * (1 / T)  # ... and in expectation.


@given(candidates=pairs, which=st.integers(0, 4), d=st.integers(1, 6), T=st.integers(1300, 10**12))
def test_the_number_is_that_of_the_proof(
    candidates: list[tuple[int, float]], which: int, d: int, T: int
) -> None:
    truth = candidates[which % len(candidates)]
    found = theory.combiner_regret_bound(T=T, d=d, candidates=candidates, truth=truth)
    assert found.regret == pytest.approx(written_out(T, d, candidates, truth), rel=1e-9)
    memories = [m for m, _ in candidates]
    assert found.share == pytest.approx(math.sqrt(min(memories) / max(memories)))


def test_the_order_is_the_paper_s() -> None:
    # T^(3/4) up to logarithms: over six decades, far out, the bound grows by 4.5 and a little.
    values = [
        theory.combiner_regret_bound(T, 3, [(1, -3.0), (2, -3.0)], (2, -3.0)).regret for T in (10**40, 10**46)
    ]
    assert 4.5 < math.log10(values[1] / values[0]) < 4.7


def test_one_memory_asks_for_all_of_opt() -> None:
    found = theory.combiner_regret_bound(10**6, 3, iter([(2, -3.0), (2, -1.0)]), (2, -1.0))
    assert found.share == 1.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"candidates": [(0, 0.0), (2, -3.0)]}, "candidates must hold truth"),
        ({"truth": (3, -3.0)}, "candidates must hold truth"),
        ({"candidates": []}, "candidates must be distinct pairs"),
        ({"candidates": 5}, "candidates must be pairs"),
        ({"T": 36}, r"T must be at least max m\^2 d\^2 \+ 1 = 37, got 36"),
        ({"T": 0}, "T must be"),
        ({"d": 0}, "d must be"),
    ],
)
def test_mistakes_are_named(change: dict[str, Any], words: str) -> None:
    right: dict[str, Any] = {"T": 1200, "d": 3, "candidates": [(1, -3.0), (2, -3.0)], "truth": (2, -3.0)}
    with pytest.raises(ValueError, match=words):
        theory.combiner_regret_bound(**{**right, **change})
