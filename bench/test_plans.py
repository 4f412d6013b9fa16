"""Plans on the ball, cold and warm, and on finite sets; SciPy from one start beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlbm as lbm

from . import optimisers
from .learners import ROTTING

SHAPES = {
    "d3-m2-L20": {"d": 3, "m": 2, "L": 20, "gamma": -3.0},
    "d3-m2-L60": {"d": 3, "m": 2, "L": 60, "gamma": -3.0},
    "d5-m1-L20": {"d": 5, "m": 1, "L": 20, "gamma": -2.5},
    "d4-m3-L10": {"d": 4, "m": 3, "L": 10, "gamma": 2.0},
}


def theta(d: int) -> np.ndarray:
    return np.arange(1.0, d + 1.0) / np.linalg.norm(np.arange(1.0, d + 1.0))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("kind", ["cold", "warm"])
def test_plan(benchmark: Any, timed: Any, name: str, kind: str) -> None:
    shape: dict[str, Any] = {**SHAPES[name], "theta": theta(SHAPES[name]["d"])}  # type: ignore[arg-type]
    previous = lbm.plan_block(**shape).actions if kind == "warm" else None
    benchmark.group = name
    evaluations = lbm.plan_block(**shape, previous=previous).evaluations
    plan = timed(lambda: lbm.plan_block(**shape, previous=previous), evaluation=evaluations)
    assert plan.evaluations == evaluations


@pytest.mark.parametrize("method", ["L-BFGS-B, x/max(1, |x|)", "SLSQP, constraints"])
def test_scipy_from_one_start(benchmark: Any, timed: Any, method: str) -> None:
    p = optimisers.problems(1)[0]
    start = np.tile(np.eye(3), (8, 1))[:22].ravel() + 0.1
    benchmark.group = "d3-m2-L20"
    assert timed(optimisers.scipy_methods(p)[method], start, start=1) > 0.0


@pytest.mark.parametrize(("K", "m"), [(4, 2), (16, 2), (48, 2), (8, 4)])
def test_finite_plan(timed: Any, K: int, m: int) -> None:
    arms = lbm.Finite(lbm.Ball(3).sample(K, seed=1))
    shape: dict[str, Any] = {"d": 3, "m": m, "gamma": -3.0, "L": 20, "theta": ROTTING.theta, "actions": arms}
    assert timed(lambda: lbm.plan_block(**shape), window=20 * K ** (m + 1)).exact
