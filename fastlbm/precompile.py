"""Compiling ahead of use: owns which calls compile the core; may start processes of its own.

Numba compiles one function at a time in a process, so that the forms of the core are compiled side by side in
processes, each of which leaves what it made in the cache on disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .kernels import _cache, _jit, search

if TYPE_CHECKING:
    from .model.lbm import LBM

#: The calls of a process each, about as long as each other.
GROUPS = ("isotropic", "general")


def why_not() -> str | None:
    """Why compiling ahead is of no use: nothing is kept on disk; None if it is of use."""
    kept = _jit.cache_of(search.search)
    if kept is not None and not any(map(_cache.is_writable, kept.places)):
        return f"no file can be written in {' or '.join(map(str, kept.places))}"
    return _jit.why_not_kept(search.search)


def is_cold() -> bool:
    """Whether the cache on disk has no planner yet, the part that takes longest to compile."""
    kept = _jit.cache_of(search.search)
    return kept is not None and kept.is_empty()


def compile_all() -> None:
    """Compile what agents and plans need, in several processes; nothing happens to what is there already."""
    if why_not() is not None:
        return
    with ThreadPoolExecutor(min(len(GROUPS), os.cpu_count() or 1)) as pool:
        list(pool.map(_in_process, GROUPS))


def _in_process(group: str) -> None:
    """Run one of the GROUPS in a process; it says itself what went wrong.

    It runs this very package and, with -P, nothing of the current directory.
    """
    here = str(Path(__file__).parents[1])
    path = f"import sys; {here!r} in sys.path or sys.path.insert(0, {here!r})"
    code = f"{path}; from fastlbm import precompile; precompile.{group}()"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def isotropic() -> None:
    """A0 = I: the closed forms; plans, arms and selection."""
    from . import LBM, OFUL, EvidenceSelector, Finite, best_cycle, run

    theta = np.full(3, 0.5)
    env = LBM(theta, m=2, gamma=-3.0)
    _learners(env)
    best_cycle(env, period=3)
    run(env, OFUL(40), T=20)
    run(env, EvidenceSelector([(0, 0.0), (2, -3.0)], 40, L=4), T=20)
    arms = LBM(theta, m=2, gamma=-3.0, actions=Finite(np.eye(3)))
    _learners(arms)
    run(arms, OFUL(40), T=20)


def general() -> None:
    """Any A0, or m >= d: spectra of the memory matrix; and the oracle, which knows the model."""
    from . import LBM, EpsilonGreedy, LinTS, OracleGreedy, Random, run

    env = LBM(np.full(3, 0.5), m=2, gamma=-3.0, A0=np.diag([1.0, 2.0, 3.0]))
    for agent in (OracleGreedy(), LinTS(), EpsilonGreedy(), Random()):
        run(env, agent, T=20)
    _learners(env)


def _learners(env: LBM) -> None:
    from . import O3M, OM, OMBlock, best_block, run

    for learner in (O3M, OM, OMBlock):
        run(env, learner(2, -3.0, 40, L=4, A0=env.A0), T=20)
    best_block(env, L=4)
