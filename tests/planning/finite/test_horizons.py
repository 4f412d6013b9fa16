"""The optimum of a horizon, against the enumeration of every sequence of arms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlbm.kernels.optimism import O3M
from fastlbm.planning.finite import programs
from tests import naive
from tests.planning.finite.problems import (
    INSTANCES,
    codes,
    everything,
    make,
    planner_of,
    window_features,
)


@pytest.mark.nojit
@pytest.mark.parametrize("contextual", [False, True])
@pytest.mark.parametrize("instance", [INSTANCES[i] for i in (0, 1, 2, 4, 7, 8, 11, 12)])
def test_finite_horizon_optimum(instance: tuple[Any, ...], contextual: bool) -> None:
    K, m, _, d, gamma, _ = instance
    for T in (1, 2, 3, 5):
        problem = make(*instance, kind=O3M, n=T if contextual else None)
        arguments = {key: problem[key] for key in ("arms", "m", "gamma", "theta", "A0")}
        best = planner_of(arguments).best_sequence(arguments["theta"], T)
        sets = np.broadcast_to(problem["arms"], (T, K, d))
        # The empty history is a set with the zero action alone before every sequence.
        padded = np.concatenate((np.zeros((m, K, d)), sets))
        windows = [window_features(padded[t : t + m + 1], gamma, problem["A0"]) for t in range(T)]
        sequences = np.concatenate((np.zeros((m, K**T), dtype=np.intp), everything(K, T)))
        totals = sum((windows[t] @ problem["theta"])[codes(sequences[t : t + m + 1], K)] for t in range(T))
        assert best.value == pytest.approx(totals.max(), rel=1e-12)
        assert best.indices is not None
        played = naive.expected_rewards(
            problem["theta"], m, gamma, problem["A0"], sets[np.arange(T), best.indices]
        )
        assert best.value == pytest.approx(played.sum(), rel=1e-12)
        assert planner_of(arguments).optimum(arguments["theta"], T) == best.value


def test_contextual_horizon_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make(3, 2, 1, 2, -3.0, "default", O3M, n=40)
    arguments = {key: problem[key] for key in ("arms", "m", "gamma", "theta", "A0")}
    whole = planner_of(arguments).best_sequence(arguments["theta"], 40)
    monkeypatch.setattr(programs, "_CHUNK", 27 * 7)
    pieces = planner_of(arguments).best_sequence(arguments["theta"], 40)
    np.testing.assert_array_equal(whole.indices, pieces.indices)
    assert whole.value == pytest.approx(pieces.value, rel=1e-14)
