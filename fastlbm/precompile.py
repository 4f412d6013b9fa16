"""Compiling ahead of use: owns which calls compile the core; may start processes of its own.

Numba compiles one function at a time in a process, so that the forms of the core are compiled side by side in
processes, each of which leaves what it made in the cache on disk.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .kernels import _cache, _jit, search
from .kernels.rewards import make_history
from .kernels.stepping import play_step, play_steps

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


#: What the second process of a first run compiles: what the first process, which goes through the calls of an
#: episode one by one, comes to last.
LATE = (
    "pair.pair_forward",
    "memory.general_forward",
    "optimism.additive",
    "optimism.joint",
    "pair.pair_backward",
    "pair_ucb.pair_ucb",
    "memory.general_backward",
    "lanes.lane_sums",
    "estimator.repeats",
    "ascent._make_climb",
    "ascent._without_done",
    "search._draw_start",
    "search._best_when_repeated",
    "search._change",
    "search._turn_first_actions",
    "playing.play_block",
    "lookahead.cycle_bias",
    "learning.cycle_features",
    "lookahead.plan_ahead",
)


def beside(asked: bytes) -> None:
    """Compile the LATE kernels for an episode whose kernel is being compiled for these types, pickled."""
    for kernel, types in late_kernels(pickle.loads(asked)):
        kernel.link(types)


def late_kernels(asked: Sequence[Any]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The LATE kernels that an episode of these types needs, with the types of their parameters.

    Those are found by the annotations, among the parts of `asked` and of the results of kernels before.
    """
    known = _common_types()
    _add_parts(known, asked)
    unused = "memory" if str(known.get("Matrix | None")) == "none" else "pair"
    for name in LATE:
        module, function = name.split(".")
        kernel = getattr(import_module(f"fastlbm.kernels.{module}"), function)
        wanted = [str(a) for p, a in kernel.__annotations__.items() if p != "return"]
        if not module.startswith(unused) and all(annotation in known for annotation in wanted):
            types = tuple(known[annotation] for annotation in wanted)
            yield kernel, types
            _add_parts(known, [kernel.link(types)])


def _common_types() -> dict[str, Any]:
    """Numba's types of arrays and numbers, by annotation."""
    from numba import typeof

    from .kernels.optimism import Belief

    matrix, vector = np.eye(1), np.ones(1)
    examples: dict[str, Any] = {"Rows": matrix, "Tiles": matrix, "Matrix": matrix, "Vector": vector}
    examples |= {"int": 1, "float": 1.0, "bool": True, "Integers": np.ones(1, dtype=np.int64)}
    examples |= {"np.random.Generator": np.random.default_rng(0), "Belief": Belief(vector, matrix, 1.0, 0)}
    return {annotation: typeof(value) for annotation, value in examples.items()}  # type: ignore[no-untyped-call]


def _add_parts(types: dict[str, Any], whole: Sequence[Any]) -> None:
    """The NamedTuples among these types, and in them, by name; a planner also tells the type of A0."""
    parts = list(whole)
    for part in parts:  # grows
        if hasattr(part, "instance_class"):
            types[part.instance_class.__name__] = part
            parts += part.types
            if "A0" in part.fields and "memory" in part.fields:
                types["Matrix | None"] = part.types[part.fields.index("A0")]


def _in_process(group: str) -> None:
    """Run one of the GROUPS in a process; it says itself what went wrong.

    It runs this very package and, with -P, nothing of the current directory.
    """
    here = str(Path(__file__).parents[1])
    path = f"import sys; {here!r} in sys.path or sys.path.insert(0, {here!r})"
    code = f"{path}; from fastlbm import precompile; precompile.{group}()"
    environment = {**os.environ, "FASTLBM_BESIDE": "0", "FASTLBM_QUIET": "1"}
    subprocess.run([sys.executable, "-P", "-c", code], env=environment, check=True)


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
    _steps(env)


def general() -> None:
    """Any A0, or m >= d: spectra of the memory matrix; and the oracle, which knows the model."""
    from . import LBM, EpsilonGreedy, LinTS, OracleGreedy, Random, run

    env = LBM(np.full(3, 0.5), m=2, gamma=-3.0, A0=np.diag([1.0, 2.0, 3.0]))
    for agent in (OracleGreedy(), LinTS(), EpsilonGreedy(), Random()):
        run(env, agent, T=20)
    _learners(env)


def _steps(env: LBM) -> None:
    """What agents of one's own and Gymnasium need."""
    params, noise = env._params(), np.random.default_rng(0)
    recent, rows = np.zeros((1, int(env.m), env.d)), np.zeros((1, env.d))
    play_step(params, make_history(params), rows[0], noise)
    play_steps(
        params, recent, np.zeros((0, 0, 0)), rows, np.ones(1, dtype=np.bool_), noise, np.zeros(1), np.zeros(1)
    )


def _learners(env: LBM) -> None:
    from . import O3M, OM, OMBlock, best_block, run

    for learner in (O3M, OM, OMBlock):
        run(env, learner(2, -3.0, 40, L=4, A0=env.A0), T=20)
    best_block(env, L=4)
