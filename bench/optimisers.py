"""A cold plan beside SciPy's optimisers, which get our gradient and the starts of our search."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

import fastlbm as lbm
from fastlbm.kernels._jit import kernel
from fastlbm.kernels.blocks import evaluate, make_work
from fastlbm.kernels.memory import make_memory
from fastlbm.kernels.optimism import O3M, Belief
from fastlbm.kernels.search import _make_starts
from fastlbm.planning.effort import COLD_BLOCK

from .plans import THETA
from .timing import fastest

#: What a plan must reach, as a share of the best value known.
GOOD = 0.999


class Race(NamedTuple):
    """Seconds of one problem; a method of SciPy that misses GOOD takes infinitely long."""

    ours: float  # from the same starts, making them included
    full: float  # the default plan, with its local moves
    scipy: dict[str, float]
    share: float  # of the best known, ours from the starts
    starts: int


def problems(count: int = 3) -> list[dict[str, Any]]:
    """The instance of Figure 1 left at L = 20: theta known, then after more and more data."""
    rng = np.random.default_rng(5)
    shape = {"d": 3, "m": 2, "gamma": -3.0, "L": 20}
    found = [{**shape, "theta": THETA, "V_inv": np.eye(3), "beta": 0.0}]
    for k in range(1, count):
        data = 0.5 * rng.standard_normal((40 * k * k, 3))
        V_inv = np.linalg.inv(np.eye(3) + data.T @ data)
        found.append({**shape, "theta": THETA + V_inv @ rng.standard_normal(3), "V_inv": V_inv, "beta": 1.0})
    return found


@kernel
def starts(memory, A0, belief, n, effort, rng):  # type: ignore[no-untyped-def]
    """The starts of `search`, (d, n*count), and their count."""
    x, count, _ = _make_starts(memory, A0, belief, n, False, np.empty((memory.d, 0)), effort, rng)
    return x, count


@cache
def _objectives(d: int, m: int, gamma: float, n: int) -> tuple[Any, Any]:
    """Minus value and gradient of a flat block x, compiled for one shape so that a call takes little.

    The first one takes the actions x/max(1, |x|), with the chain rule; the second takes x as it is.
    """
    memory, A0 = make_memory(np.eye(d), m, gamma)

    @kernel
    def in_ball(x, theta, V_inv, beta, grad):  # type: ignore[no-untyped-def]
        a, inner, values = np.empty((d, n)), np.empty((d, n)), np.empty(1)
        for w in range(n):
            size = 0.0
            for i in range(d):
                size += x[w * d + i] * x[w * d + i]
            for i in range(d):
                a[i, w] = x[w * d + i] / math.sqrt(max(size, 1.0))
        evaluate(
            memory, A0, Belief(theta, V_inv, beta, O3M), a, 1, make_work(memory, A0, n, 1), values, inner
        )
        for w in range(n):
            size, along = 0.0, 0.0
            for i in range(d):
                size += x[w * d + i] * x[w * d + i]
                along += inner[i, w] * a[i, w]
            for i in range(d):
                across = inner[i, w] - (along * a[i, w] if size > 1.0 else 0.0)
                grad[w * d + i] = -across / math.sqrt(max(size, 1.0))
        return -values[0]

    @kernel
    def anywhere(x, theta, V_inv, beta, grad):  # type: ignore[no-untyped-def]
        a, inner, values = np.empty((d, n)), np.empty((d, n)), np.empty(1)
        for w in range(n):
            for i in range(d):
                a[i, w] = x[w * d + i]
        evaluate(
            memory, A0, Belief(theta, V_inv, beta, O3M), a, 1, make_work(memory, A0, n, 1), values, inner
        )
        for w in range(n):
            for i in range(d):
                grad[w * d + i] = -inner[i, w]
        return -values[0]

    return in_ball, anywhere


def scipy_methods(p: dict[str, Any]) -> dict[str, Callable[[np.ndarray], float]]:
    """The value that each of SciPy's methods reaches from a flat start."""
    d, n = p["d"], p["m"] + p["L"]
    in_ball, anywhere = _objectives(d, p["m"], p["gamma"], n)
    theta, V_inv, beta = p["theta"], p["V_inv"], p["beta"]

    def objective(compiled: Any) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        def call(x: np.ndarray) -> tuple[float, np.ndarray]:
            grad = np.empty(n * d)
            return compiled(x, theta, V_inv, beta, grad), grad

        return call

    diagonal = np.arange(n)

    def inside(x: np.ndarray) -> np.ndarray:
        return 1.0 - np.einsum("wi,wi->w", x.reshape(n, d), x.reshape(n, d))

    def inside_slope(x: np.ndarray) -> np.ndarray:
        slope = np.zeros((n, n, d))
        slope[diagonal, diagonal] = -2.0 * x.reshape(n, d)
        return slope.reshape(n, n * d)

    def minimise(method: str, compiled: Any, **options: Any) -> Callable[[np.ndarray], float]:
        return lambda x: -optimize.minimize(objective(compiled), x, jac=True, method=method, **options).fun

    return {
        "L-BFGS-B, x/max(1, |x|)": minimise("L-BFGS-B", in_ball),
        "SLSQP, x/max(1, |x|)": minimise("SLSQP", in_ball),
        "SLSQP, constraints": minimise(
            "SLSQP", anywhere, constraints={"type": "ineq", "fun": inside, "jac": inside_slope}
        ),
    }


def race(p: dict[str, Any], rounds: int = 3) -> Race:
    """Our ascents and SciPy's from the same starts, each to its own end; the best block counts."""
    n = p["m"] + p["L"]
    memory, A0 = make_memory(np.eye(p["d"]), p["m"], p["gamma"])
    belief = Belief(p["theta"], p["V_inv"], p["beta"], O3M)
    effort = COLD_BLOCK._replace(polish=0)
    x, count = starts(memory, A0, belief, n, effort, np.random.default_rng(0))
    blocks = np.ascontiguousarray(x.reshape(p["d"], n, count).transpose(2, 1, 0)).reshape(count, -1)
    known = lbm.plan_block(**p, seed=100, starts=200, moves=1000).value
    methods = scipy_methods(p)
    reached: dict[str, float] = {}
    best = dict.fromkeys((*methods, "ours", "full"), math.inf)
    for _ in range(rounds):
        for name, climb in methods.items():
            climb(blocks[0])  # compiles
            begin = time.perf_counter()
            reached[name] = max(climb(block) for block in blocks)
            best[name] = min(best[name], time.perf_counter() - begin)
        best["ours"] = min(best["ours"], fastest(lambda: lbm.plan_block(**p, moves=0), 3))
        best["full"] = min(best["full"], fastest(lambda: lbm.plan_block(**p), 3))
    known = max(known, *reached.values())
    theirs = {name: best[name] if reached[name] >= GOOD * known else math.inf for name in methods}
    share = lbm.plan_block(**p, moves=0).value / known
    return Race(best["ours"], best["full"], theirs, share=share, starts=count)
