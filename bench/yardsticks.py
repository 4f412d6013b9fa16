"""The same objective by other means: NumPy, JAX if it is installed, and plain C if there is a compiler.

Value and exact gradient of the O3M block UCB, as `fastlbm.block_ucb` has them. Each maker takes a `Problem`
and returns a function of the number of evaluations, which makes them in a row and returns the last one.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fastlbm.kernels.memory import make_memory
from fastlbm.kernels.powers import INTEGER

from .problems import Problem, prepare, repeat
from .timing import loop

#: `times` evaluations; the last value and its gradient (m+L, d).
Evaluations = Callable[[int], tuple[float, np.ndarray]]

#: The compiler's options: those that one takes, and two more without which GCC leaves square roots and
#: choices out of its vector instructions. They change nothing that this code can observe.
PLAIN = ("-O3", "-march=native")
TUNED = (*PLAIN, "-fno-math-errno", "-fno-trapping-math")

#: Blocks in one call of JAX's vmap.
BATCH = 64


def ours(p: Problem) -> Evaluations:
    """fastlbm's kernel."""
    e = prepare(p)

    def run(times: int) -> tuple[float, np.ndarray]:
        repeat(*e, times)
        return float(e.values[0]), e.grad.T

    return run


def numpy_ucb(p: Problem, actions: np.ndarray) -> tuple[float, np.ndarray]:
    """All windows at once, for m >= 1: one batched eigh, Loewner matrices, batched products around them."""
    m, gamma = p.m, p.gamma
    L = len(actions) - m
    windows = np.stack([actions[s : s + L] for s in range(m)], axis=1)  # (L, m, d)
    lam, Q = np.linalg.eigh(p.A0 + windows.transpose(0, 2, 1) @ windows)
    powers = lam**gamma
    w = (actions[m:, None, :] @ Q)[:, 0]
    B = (Q @ (powers * w)[:, :, None])[:, :, 0]
    VB = B @ p.V_inv
    norm = np.sqrt((VB * B).sum(axis=1))
    value = (B @ p.theta).sum() + p.beta * norm.sum()
    U = p.theta + (p.beta / norm)[:, None] * VB

    v = (U[:, None, :] @ Q)[:, 0]
    gap = lam[:, :, None] - lam[:, None, :]
    near = np.abs(gap) <= 1e-6 * lam[:, :, None]
    gap[near] = 1.0
    loewner = (powers[:, :, None] - powers[:, None, :]) / gap
    # Nearly equal ones: the derivative in the middle is as good there as the quotient is elsewhere.
    j, i, k = np.nonzero(near)
    loewner[near] = gamma * (0.5 * (lam[j, i] + lam[j, k])) ** (gamma - 1.0)
    wv = w[:, :, None] * v[:, None, :]
    H = Q @ (loewner * (wv + wv.transpose(0, 2, 1))) @ Q.transpose(0, 2, 1)
    shares = windows @ H
    grad = np.zeros_like(actions)
    grad[m:] = (Q @ (powers * v)[:, :, None])[:, :, 0]
    for s in range(m):
        grad[s : s + L] += shares[:, s]
    return float(value), grad


def eigh(p: Problem) -> Callable[[int], object]:
    """`numpy.linalg.eigh` alone, on the memory matrices of all windows."""
    X = p.matrices()
    return loop(lambda: np.linalg.eigh(X))


def numpy(p: Problem) -> Evaluations:
    """NumPy, one call after the other."""
    return loop(lambda: numpy_ucb(p, p.actions))


def has_jax() -> bool:
    """Whether JAX can be imported."""
    try:
        import jax  # noqa: F401
    except ImportError:
        return False
    return True


@cache
def _jax_functions(m: int, gamma: float) -> tuple[Any, Any]:
    """Compiled value_and_grad of one block, and of BATCH blocks."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")

    def value(actions, A0, theta, V_inv, beta):  # type: ignore[no-untyped-def]
        L = actions.shape[0] - m
        windows = jnp.stack([actions[s : s + L] for s in range(m)], axis=1)
        # The derivative of eigh divides by gaps between eigenvalues, which random blocks have; equal ones, as
        # of parallel actions, give NaN.
        lam, Q = jnp.linalg.eigh(A0 + jnp.einsum("lsi,lsj->lij", windows, windows))
        B = jnp.einsum("lik,lk,ljk,lj->li", Q, lam**gamma, Q, actions[m:])
        return (B @ theta).sum() + beta * jnp.sqrt(jnp.einsum("li,ij,lj->l", B, V_inv, B)).sum()

    one = jax.value_and_grad(value)
    return jax.jit(one), jax.jit(jax.vmap(one, in_axes=(0, None, None, None, None)))


def jax_jit(p: Problem) -> Evaluations:
    """JAX through eigh, float64, one call of the compiled function an evaluation."""
    return _jax(p, 0)


def jax_vmap(p: Problem) -> Evaluations:
    """The same inside vmap: BATCH evaluations a call, and a repetition is a call."""
    return _jax(p, BATCH)


def _jax(p: Problem, batch: int) -> Evaluations:
    import jax

    call = _jax_functions(p.m, p.gamma)[1 if batch else 0]
    block = np.repeat(p.actions[None], batch, axis=0) if batch else p.actions
    arguments = [jax.device_put(x) for x in (block, p.A0, p.theta, p.V_inv, p.beta)]
    jax.block_until_ready(call(*arguments))  # compiles

    def run(times: int) -> tuple[float, np.ndarray]:
        for _ in range(times):
            value, grad = jax.block_until_ready(call(*arguments))
        return (float(value[0]), np.asarray(grad[0])) if batch else (float(value), np.asarray(grad))

    return run


def compiler() -> str | None:
    """The C compiler: $CC, cc or gcc."""
    return next(
        (path for name in (os.environ.get("CC"), "cc", "gcc") if name and (path := shutil.which(name))), None
    )


@cache
def _library(options: tuple[str, ...]) -> Any:
    """pair.c, compiled; the file may go once it is loaded."""
    source = Path(__file__).with_name("pair.c")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "pair.so"
        command = [str(compiler()), *options, "-shared", "-fPIC", str(source), "-o", str(target), "-lm"]
        subprocess.run(command, check=True, capture_output=True)
        function = ctypes.CDLL(str(target)).block_ucb
    function.restype = ctypes.c_double
    return function


def has_closed_form(p: Problem) -> bool:
    """Whether pair.c computes it: m = 2, A0 = I and an integer gamma."""
    memory, A0 = make_memory(p.A0, p.m, p.gamma)
    return A0 is None and p.m == 2 and memory.power.c == 1.0 and memory.power.kind == INTEGER


def plain_c(p: Problem, options: tuple[str, ...] = PLAIN) -> Evaluations:
    """Plain C of the same closed forms."""
    if not has_closed_form(p):
        raise ValueError(f"pair.c needs m=2, A0=I and an integer gamma, got m={p.m}, gamma={p.gamma:g}")
    function, e = _library(options), prepare(p)
    power = e.memory.power
    d, L = p.actions.shape[1], p.windows
    coefficients = np.array([power.y0, float(power.negative), *power.first, *power.second])
    work, grad = np.zeros((20 + 2 * d) * L), np.zeros_like(e.a)

    def at(x: np.ndarray) -> ctypes.c_void_p:
        return x.ctypes.data_as(ctypes.c_void_p)

    fixed = (ctypes.c_long(d), ctypes.c_long(L), at(e.a), at(p.theta), at(p.V_inv), ctypes.c_double(p.beta))
    arrays = (at(coefficients), at(work), at(grad))
    kept = (e.a, p, coefficients, work)  # as long as the function: C has only their addresses

    def run(times: int, kept: object = kept) -> tuple[float, np.ndarray]:
        return float(function(*fixed, *arrays, ctypes.c_long(times))), grad.T

    return run
