"""The command line: owns arguments and printing.

Everything heavy is imported by the command that needs it, so that `fastlbm --help` is quick.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from ._version import __version__

#: Largest relative error that the self-test allows between the gradient and central differences,
#: whose own error is about 1e-10 at the step of 1e-5.
TOLERANCE = 1e-7


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command (`argv` defaults to the arguments of the process); the exit code.

    >>> main(["doctor"])  # doctest: +ELLIPSIS
    fastlbm ...
    self-test    OK
    0
    """
    options = _parser().parse_args(argv)
    code: int = options.run(options)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fastlbm", description="Linear bandits with memory.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    doctor = commands.add_parser(
        "doctor",
        help="show what is installed and how the core is compiled, and test it",
        description="Show what is installed and how the core is compiled, then check the core's gradient "
        "against central differences. The exit code is 1 if that fails.",
    )
    doctor.set_defaults(run=_doctor)
    return parser


def _doctor(options: argparse.Namespace) -> int:
    try:
        for name, value in _facts():
            print(f"{name:<12} {value}", flush=True)
        passed = True
        for name, error, first, repeated in _self_tests():
            passed &= error < TOLERANCE  # NaN is no pass
            times = f"first call {first:.2f} s, then {1e6 * repeated:.1f} us"
            print(f"{name:<12} gradient off by {error:.1e}, {times}", flush=True)
    except Exception as problem:  # whatever is broken is what the doctor is for
        passed = False
        print(f"{'problem':<12} {type(problem).__name__}: {problem}")
    print(f"{'self-test':<12} {'OK' if passed else 'FAILED'}")
    return 0 if passed else 1


def _facts() -> Iterator[tuple[str, str]]:
    """What is installed, what the machine offers, how the core is compiled."""
    import os
    import platform

    import llvmlite
    import llvmlite.binding
    import numba
    import numpy
    import scipy
    from numba.extending import is_jitted

    from .kernels import _jit

    settings: Any = numba.config  # its attributes are set at run time
    yield "fastlbm", __version__
    yield "python", f"{platform.python_version()}, {platform.platform()}"
    for package in (numba, llvmlite, numpy, scipy):
        yield package.__name__, package.__version__

    features = sorted(f for f, on in llvmlite.binding.get_host_cpu_features().items() if on)
    vector = [f for f in features if f.startswith(("sse4", "avx", "fma", "neon", "sve"))]
    yield "cpu", llvmlite.binding.get_host_cpu_name()
    yield "vectors", " ".join(vector) or "none"
    yield "threads", f"{os.cpu_count()} in the machine, {settings.NUMBA_NUM_THREADS} for Numba"

    jit = not settings.DISABLE_JIT
    yield "jit", "on" if jit else "off (NUMBA_DISABLE_JIT)"
    if not _jit.CACHE:
        yield "disk cache", "off (FASTLBM_CACHE=0)"
    elif jit:
        from .kernels import blocks

        path = next(str(f.stats.cache_path) for f in vars(blocks).values() if is_jitted(f))
        yield "disk cache", f"on, {path}, {'writable' if _is_writable(path) else 'NOT writable'}"


def _is_writable(directory: str) -> bool:
    import tempfile
    from pathlib import Path

    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def _self_tests() -> Iterator[tuple[str, float, float, float]]:
    """Name, relative error of the gradient, seconds of the first and of a later call, of each form."""
    from time import perf_counter

    import numpy as np

    from .blocks import block_ucb

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
