"""What `fastlbm doctor` finds out: owns the facts about an installation and the self-test of its core."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import llvmlite
import llvmlite.binding
import numba
import numpy as np
import scipy

from ._version import __version__
from .kernels import _cache, _jit, _link, _probe, search

#: Largest relative error that the self-test allows between the gradient and central differences,
#: whose own error is about 1e-10 at the step of 1e-5.
TOLERANCE = 1e-7


def facts() -> Iterator[tuple[str, str]]:
    """What is installed, what the machine offers, how the core is compiled."""
    settings: Any = numba.config  # its attributes are set at run time
    yield "fastlbm", __version__
    yield "python", f"{platform.python_version()}, {platform.platform()}"
    for package in (numba, llvmlite, np, scipy):
        yield package.__name__, package.__version__

    features = sorted(f for f, on in llvmlite.binding.get_host_cpu_features().items() if on)
    vector = [f for f in features if f.startswith(("sse4", "avx", "fma", "neon", "sve"))]
    yield "cpu", llvmlite.binding.get_host_cpu_name()
    yield "vectors", " ".join(vector) or "none"
    yield "threads", f"{os.cpu_count()} in the machine, {settings.NUMBA_NUM_THREADS} for Numba"

    if settings.DISABLE_JIT:
        yield "jit", "off (NUMBA_DISABLE_JIT)"
        return
    yield "jit", "on"
    yield "calls", _calls()
    yield from _disk_cache()


def _calls() -> str:
    """How kernels call each other."""
    if not _jit.LINKED:
        return f"inlined by Numba, slower to compile ({_link.why_off()})"
    if _probe.is_tested():
        return "by address"
    first, last = (".".join(map(str, version)) for version in _probe.TESTED)
    return f"by address; Numba is not one of the versions tested, {first} to {last}, but passed a trial"


def _disk_cache() -> Iterator[tuple[str, str]]:
    """Where compiled code is kept, and the digest of the sources that it belongs to."""
    kept = _jit.cache_of(search.search)
    if kept is None:
        yield "disk cache", f"off ({_jit.why_not_kept(search.search)})"
        return
    place = next(filter(_cache.is_writable, kept.places), None)
    if place is None:
        yield "disk cache", f"on, {kept.places[0]}, NOT writable"
    else:
        yield "disk cache", f"on, {place}, writable"
    yield "sources", kept.digest + ("" if kept.is_current() else ", CHANGED since they were loaded")


def self_tests() -> Iterator[tuple[str, float, float, float]]:
    """Name, relative error of the gradient, seconds of the first and of a later call, of each form."""
    from .planning.objective import block_ucb

    d, m, L, step, repeats = 3, 2, 4, 1e-5, 100
    rng = np.random.default_rng(0)
    block = rng.standard_normal((m + L, d))
    block /= np.linalg.norm(block, axis=1, keepdims=True)
    theta = np.full(d, d**-0.5)
    forms = {"Gram form": None, "dense form": np.diag([1.0, 2.0, 3.0])}
    for name, A0 in forms.items():

        def ucb(actions: np.ndarray, A0: np.ndarray | None = A0) -> tuple[float, np.ndarray]:
            return block_ucb(actions, m=m, gamma=-3.0, theta=theta, V_inv=0.5 * np.eye(d), beta=1.0, A0=A0)

        start = perf_counter()
        gradient = ucb(block)[1]
        first = perf_counter() - start
        shifts = step * np.eye(block.size).reshape(-1, *block.shape)
        slopes = np.array([ucb(block + s)[0] - ucb(block - s)[0] for s in shifts]) / (2.0 * step)
        error = np.abs(gradient.ravel() - slopes).max() / np.abs(slopes).max()
        start = perf_counter()
        for _ in range(repeats):
            ucb(block)
        yield name, float(error), first, (perf_counter() - start) / repeats
