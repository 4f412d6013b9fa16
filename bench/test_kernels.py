"""Kernels, each beside others that do the same: value and gradient, spectra, the update of V^-1, ascents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fastlbm.kernels.arm_annealing import Heat, anneal
from fastlbm.kernels.arm_beams import KINDS, kinds_of, make_side, search_beam
from fastlbm.kernels.arm_catalogue import make_catalogue
from fastlbm.kernels.arm_looks import make_desk
from fastlbm.kernels.arm_poles import GRID, fit_poles
from fastlbm.kernels.arm_screens import group_arms
from fastlbm.kernels.arm_worth import Poles, Shape
from fastlbm.kernels.ascent import Ends, ascend
from fastlbm.kernels.eigen_tiles import TILE, spectra
from fastlbm.kernels.estimator import make_estimator
from fastlbm.kernels.optimism import O3M, Belief
from fastlbm.planning.finite.rounds import ground_of, poles_of
from fastlbm.planning.finite.states import Model
from tests import naive

from . import yardsticks
from .problems import prepare, problem
from .suite import absorb_often

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
#: Makers of the competitors, and how many blocks one repetition evaluates.
LIBRARIES: dict[str, tuple[Callable[..., Any], int]] = {
    "fastlbm": (yardsticks.ours, 1),
    "numpy": (yardsticks.numpy, 1),
    "eigh": (yardsticks.eigh, 1),
    "C": (yardsticks.plain_c, 1),
    "jax-jit": (yardsticks.jax_jit, 1),
    "jax-vmap": (yardsticks.jax_vmap, yardsticks.BATCH),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_value_and_gradient(benchmark: Any, timed: Any, name: str, library: str) -> None:
    p = problem(**CASES[name])  # type: ignore[arg-type]
    make, blocks = LIBRARIES[library]
    if library == "C" and (yardsticks.compiler() is None or not yardsticks.has_closed_form(p)):
        pytest.skip("needs a C compiler, m=2, A0=I and an integer gamma")
    if library.startswith("jax") and not yardsticks.has_jax():
        pytest.skip("needs JAX")
    benchmark.group = name
    times = 100 if library in ("fastlbm", "C") else 1
    call = make(p)
    found = timed(call, times, evaluation=times * blocks, window=times * blocks * p.windows)
    if library != "eigh":
        value, grad = naive.block_ucb(p.actions, p.m, p.gamma, p.theta, p.V_inv, p.beta, "O3M", p.A0)
        assert found[0] == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(found[1], grad, rtol=0.0, atol=1e-9 * np.abs(grad).max())


@pytest.mark.parametrize("k", [2, 3, 4, 8, 16])
@pytest.mark.parametrize("library", ["fastlbm", "eigh"])
def test_spectra(benchmark: Any, timed: Any, k: int, library: str) -> None:
    root = np.random.default_rng(0).standard_normal((TILE, k, k))
    X = np.eye(k) + root @ root.transpose(0, 2, 1)
    benchmark.group = f"spectra-{k}"
    if library == "eigh":
        timed(np.linalg.eigh, X, problem=TILE)
        return
    # Rows of the tile: the matrices, the eigenvectors, and the eigenvalues behind scratch.
    rows, lam = np.zeros((5 * k * k + 2 * k, TILE)), 4 * k * k
    entries = X.transpose(1, 2, 0).reshape(k * k, TILE)

    def solve() -> None:
        rows[: k * k] = entries
        spectra(rows, 0, lam, k * k, k, TILE)

    timed(solve, problem=TILE)
    expected = np.linalg.eigvalsh(X)
    np.testing.assert_allclose(np.sort(rows[lam : lam + k].T), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("d", [3, 16, 64])
@pytest.mark.parametrize("library", ["fastlbm", "numpy"])
def test_update_of_the_inverse(benchmark: Any, timed: Any, d: int, library: str) -> None:
    b, times = np.random.default_rng(0).standard_normal(d) / d, 100
    benchmark.group = f"Sherman-Morrison-{d}"
    if library == "fastlbm":
        timed(absorb_often, make_estimator(d, 1.0), b, times, update=times)
        return
    V_inv = np.eye(d)

    def update() -> None:
        for _ in range(times):
            w = V_inv @ b
            V_inv[:] -= np.outer(w, w) / (1.0 + b @ w)

    timed(update, update=times)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("name", ["d3-m2-L20-gamma-3", "d16-m4-L20"])
def test_ascent(timed: Any, name: str, lanes: int) -> None:
    e = prepare(problem(**CASES[name]), lanes)  # type: ignore[arg-type]
    start, values, never = 0.9 * e.a, np.empty(lanes), np.zeros(1, dtype=np.int64)

    def climb() -> int:
        values[:] = 0.0
        ends = Ends(lead=0, head=0, tail=0)
        return ascend(e.memory, e.A0, e.belief, start.copy(), ends, 20, 1e-300, -np.inf, values, never)

    evaluations = climb()
    assert timed(climb, evaluation=evaluations) == evaluations
    assert np.isfinite(values).all()


@pytest.mark.parametrize("library", ["fastlbm", "eigh"])
def test_beam(benchmark: Any, timed: Any, library: str) -> None:
    """Steps of prefixes with 2,000 arms, beside the spectra of the m windows that a step looks at."""
    K, d, m, L, W = 2000, 8, 4, 20, 50
    rng = np.random.default_rng(0)
    A, theta = rng.standard_normal((K, d)), np.eye(d)[0]
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    benchmark.group = "beam"
    if library == "eigh":
        X = np.eye(d) + A[: W * m, :, None] * A[: W * m, None, :]
        timed(np.linalg.eigh, X, step=W)
        return
    catalogue = make_catalogue(A, theta, np.eye(d), 0.0)
    shifts, weights, _ = fit_poles(-2.0, 1.0, 1.0 + m, 2, GRID)
    kinds, grouped = kinds_of(A, KINDS), group_arms(A, catalogue.size)
    side, poles = make_side(grouped, catalogue.size, kinds), Poles(1.0 + shifts, weights)

    def search() -> Any:
        return search_beam(catalogue, side, side, poles, m, m + L, W, np.random.default_rng(0))

    assert timed(search, step=W * L).shape[1] == m + L


@pytest.mark.parametrize("library", ["fastlbm", "eigh"])
@pytest.mark.parametrize(("d", "m"), [(5, 4), (8, 5), (16, 4), (10, 2)])  # by inverses, by inner products
def test_look(benchmark: Any, timed: Any, library: str, d: int, m: int) -> None:
    """Looks at all of 300 arms while a block is annealed, about half of which change an arm."""
    K, n, sweeps, rng = 300, m + 20, 50, np.random.default_rng(0)
    A = rng.standard_normal((K, d))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    benchmark.group = f"look-d{d}-m{m}"
    if library == "eigh":
        timed(np.linalg.eigh, np.eye(d) + A[:, :, None] * A[:, None, :], look=K)
        return
    model = Model(A, m=m, gamma=-2.0, A0=None)
    poles = poles_of(model)
    assert poles is not None
    belief = Belief(theta=A[0], V_inv=np.eye(d), beta=0.0, kind=O3M)
    ground = ground_of(model, belief, poles, np.arange(K), np.zeros((0, d)))
    desk = make_desk(ground.catalogue, ground.grouped, K, m, n, len(poles.shifts))
    block, heat, shape = rng.integers(K, size=n), Heat(hot=0.05, cold=0.05, sweeps=sweeps), Shape(m, n, False)

    def sweep() -> Any:
        return anneal(
            ground.catalogue, poles, shape, block.copy(), 0, 0, n, K, heat, desk, ground.draws,
            np.random.default_rng(0),
        )  # fmt: skip

    assert timed(sweep, look=sweeps * n)[0] > 0.0
