"""Value and gradient of a block: compiled, in NumPy, and the eigenproblems alone in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests import naive

from .problems import prepare, problem, repeat

CASES = {
    "d3-m2-L20-gamma-3": {"d": 3, "m": 2, "L": 20, "gamma": -3.0},
    "d3-m2-L20-gamma-2.5": {"d": 3, "m": 2, "L": 20, "gamma": -2.5},
    "d3-m2-L20-gamma3.7": {"d": 3, "m": 2, "L": 20, "gamma": 3.7},
    "d3-m2-L20-general-A0": {"d": 3, "m": 2, "L": 20, "gamma": -3.0, "isotropic": False},
    "d3-m4-L20": {"d": 3, "m": 4, "L": 20, "gamma": -3.0},
    "d16-m4-L20": {"d": 16, "m": 4, "L": 20, "gamma": -3.0},
    "d50-m2-L20": {"d": 50, "m": 2, "L": 20, "gamma": -3.0},
    "d3-m2-L200": {"d": 3, "m": 2, "L": 200, "gamma": -3.0},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("library", ["fastlbm", "numpy", "eigh"])
def test_value_and_gradient(benchmark, name: str, library: str) -> None:  # type: ignore[no-untyped-def]
    p = problem(**CASES[name])
    benchmark.group = name
    benchmark.extra_info["windows"] = p.windows
    if library == "fastlbm":
        times = 100
        e = prepare(p)
        repeat(*e, 1)  # compiles
        benchmark.extra_info["evaluations"] = times
        benchmark(repeat, *e, times)
        reference, grad = naive.block_ucb(p.actions, p.m, p.gamma, p.theta, p.V_inv, p.beta, "O3M", p.A0)
        assert e.values[0] == pytest.approx(reference, rel=1e-10)
        np.testing.assert_allclose(e.grad.T, grad, rtol=0.0, atol=1e-9 * np.abs(grad).max())
    elif library == "numpy":
        benchmark.extra_info["evaluations"] = 1
        benchmark(naive.block_ucb, p.actions, p.m, p.gamma, p.theta, p.V_inv, p.beta, "O3M", p.A0)
    else:
        benchmark(np.linalg.eigh, p.matrices())
