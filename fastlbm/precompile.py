"""Compiling ahead of use: owns which calls compile the core; may start processes of its own.

Numba compiles one function at a time in a process. So processes take turns at a list of small calls, and each
leaves what it made in the cache on disk. What others compile right now they wait for, and do not make twice.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .kernels import _cache, _jit, _together, search
from .kernels._notice import NOTICE
from .kernels.rewards import make_history
from .kernels.stepping import play_step, play_steps
from .kernels.weighing import Weighing

if TYPE_CHECKING:
    from .model.actions import Finite
    from .model.lbm import LBM

#: Functions of this module, those that compile longest first; neighbours have little in common.
CALLS = (
    "catalogue_blocks", "offers", "isotropic", "auto", "general", "isotropic_rolling", "baselines",
    "selection", "general_rolling", "arms", "blocks", "catalogue", "steps",
)  # fmt: skip

#: Processes that compile at most: each needs 300 MB, and Numba's own functions are compiled in each of them.
PROCESSES = 4


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
    """Compile what agents and plans need, in several processes; nothing happens to what is there already.

    What is rare is left to its first use: sets of arms with another A0, many arms without rotting, arms
    revealed step by step to agents that plan, memories that never end, choices among candidates by their
    rewards.
    """
    if why_not() is not None:
        return
    calls = deque(CALLS)
    processes = min(PROCESSES, _together.cores())
    kept = _jit.cache_of(search.search)
    assert kept is not None
    NOTICE.look_at(kept.places)
    with NOTICE.shown() if is_cold() else nullcontext(), ThreadPoolExecutor(processes) as pool:
        running = [pool.submit(_in_process, calls) for _ in range(processes)]
    for process in running:
        process.result()


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
    """Compile the LATE kernels for an episode whose kernel is being compiled for these types, pickled.

    Who weighs models plans for m >= d as well, with the kernels of any A0.
    """
    kinds = pickle.loads(asked)
    for kernel, types in late_kernels(kinds):
        kernel.link(types)
    if any(getattr(kind, "instance_class", None) is Weighing for kind in kinds):
        general_rolling()


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


def _in_process(calls: deque[str]) -> None:
    """Hand calls to a process, one by one, until none is left; it says itself what went wrong.

    It runs this very package and, with -P, nothing of the current directory.
    """
    here = str(Path(__file__).parents[1])
    path = f"import sys; {here!r} in sys.path or sys.path.insert(0, {here!r})"
    code = f"{path}; from fastlbm import precompile; precompile.work_off()"
    environment = {**os.environ, "FASTLBM_BESIDE": "0", "FASTLBM_QUIET": "1"}
    command, pipe = [sys.executable, "-P", "-c", code], subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(IndexError, BrokenPipeError):
            answer = "done"
            while answer:  # it has none after an error
                process.stdin.write(calls.popleft() + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
        with suppress(BrokenPipeError):
            process.stdin.close()
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)


def work_off() -> None:
    """Make the calls whose names come in, a line each, and answer each with a line; Ctrl-C ends it.

    Nearly all that Numba makes stays: what is left after a call is not looked at for garbage again.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # who started it has the word
    gc.disable()
    for line in sys.stdin:
        globals()[line.strip()]()
        print("done", flush=True)
        gc.collect()
        gc.freeze()


def _model(general: bool = False, m: int = 2, actions: Finite | None = None) -> LBM:
    from . import LBM

    return LBM(
        np.full(3, 0.5), m=m, gamma=-3.0, A0=np.diag([1.0, 2.0, 3.0]) if general else None, actions=actions
    )


def _few() -> Finite:
    from . import Finite

    return Finite(np.eye(3))


def _many() -> Finite:
    """More arms than tables over the last m = 4 of them have room for."""
    from . import Finite

    return Finite(np.random.default_rng(0).standard_normal((40, 3)) / 4.0)


def isotropic() -> None:
    """A0 = I: the closed forms."""
    from . import O3M, run

    run(_model(), O3M(2, -3.0, 40, L=4), T=20)


def general() -> None:
    """Any A0, or m >= d: spectra of the memory matrix."""
    from . import O3M, run

    env = _model(general=True)
    run(env, O3M(2, -3.0, 40, L=4, A0=env.A0), T=20)


def isotropic_rolling() -> None:
    """Plans that go on from the history."""
    from . import Rolling, run

    run(_model(), Rolling(2, -3.0), T=20)


def general_rolling() -> None:
    """The same with any A0, or m >= d."""
    from . import Rolling, run

    env = _model(general=True)
    run(env, Rolling(2, -3.0, A0=env.A0), T=20)


def auto() -> None:
    """Models that are weighed."""
    from . import Auto, run

    for actions in (None, _few()):
        run(_model(actions=actions), Auto(), T=100)


def arms() -> None:
    """Few arms: dynamic programs."""
    from . import O3M, OM, Rolling, best_block, best_cycle, run

    env = _model(actions=_few())
    for agent in (O3M(2, -3.0, 40, L=4), OM(2, -3.0, 40, L=4), Rolling(2, -3.0)):
        run(env, agent, T=20)
    best_block(env, L=4)
    best_cycle(env, period=3)


def catalogue() -> None:
    """Many arms, a plan a step."""
    from . import Rolling, run

    run(_model(m=4, actions=_many()), Rolling(4, -3.0), T=20)


def catalogue_blocks() -> None:
    """Many arms, a plan a block."""
    from . import O3M, run

    run(_model(m=4, actions=_many()), O3M(4, -3.0, 40, L=8), T=20)


def blocks() -> None:
    """The other block learners, and plans of those who know the model."""
    from . import OM, OMBlock, best_block, best_cycle, run

    for env in (_model(), _model(general=True)):
        for learner in (OM, OMBlock):
            run(env, learner(2, -3.0, 40, L=4, A0=env.A0), T=20)
        best_block(env, L=4)
        best_cycle(env, period=3)


def selection() -> None:
    """Candidates that are chosen by what they predict."""
    from . import EvidenceSelector, run

    run(_model(), EvidenceSelector([(0, 0.0), (2, -3.0)], 40, L=4), T=20)


def baselines() -> None:
    """Those who ignore the memory, and the oracle, which knows the model."""
    from . import OFUL, EpsilonGreedy, LinTS, OracleGreedy, Random, run

    for env in (_model(general=True), _model(), _model(actions=_few())):
        for agent in (OracleGreedy(), OFUL(40), LinTS(), EpsilonGreedy(), Random()):
            run(env, agent, T=20)


def steps() -> None:
    """What agents of one's own and Gymnasium need."""
    env = _model()
    params, noise = env._params(), np.random.default_rng(0)
    recent, rows = np.zeros((1, int(env.m), env.d)), np.zeros((1, env.d))
    play_step(params, make_history(params), rows[0], noise)
    play_steps(
        params, recent, np.zeros((0, 0, 0)), rows, np.ones(1, dtype=np.bool_), noise, np.zeros(1), np.zeros(1)
    )


def offers() -> None:
    """A service: arms that are told step by step, and rewards that come later."""
    from . import Auto, Ball

    for actions in (Ball(3), _many()):
        live = Auto().start(actions)
        live.act()
        live.update(0.5)
        live.act(np.eye(3))
        live.update(0.5, step=1)
        live.observe([0.0, 0.6, 0.8], 0.5)
        live.act()
