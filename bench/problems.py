"""Problems that the benchmarks share, and how one evaluation is timed without Python around it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fastlbm.kernels._jit import kernel
from fastlbm.kernels.blocks import Work, evaluate, make_work
from fastlbm.kernels.fading import Variant
from fastlbm.kernels.memory import Memory, make_memory
from fastlbm.kernels.optimism import O3M, Belief

from .timing import fastest


class Problem(NamedTuple):
    """One block of m + L random unit actions and an O3M belief."""

    m: int
    gamma: float
    A0: np.ndarray
    theta: np.ndarray
    V_inv: np.ndarray
    beta: float
    actions: np.ndarray  # (m + L, d)

    @property
    def windows(self) -> int:
        return len(self.actions) - self.m

    def matrices(self) -> np.ndarray:
        """The memory matrices of all windows (L, d, d): what a spectral method has to decompose."""
        starts = range(self.windows)
        return np.stack(
            [self.A0 + self.actions[j : j + self.m].T @ self.actions[j : j + self.m] for j in starts]
        )


def problem(d: int, m: int, L: int, gamma: float, *, isotropic: bool = True, seed: int = 0) -> Problem:
    """The problem of one size; with `isotropic=False` A0 is a random positive definite matrix."""
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((m + L, d))
    actions /= np.linalg.norm(actions, axis=1, keepdims=True)
    root = rng.standard_normal((d, d)) / np.sqrt(d)
    A0 = np.eye(d) if isotropic else 0.5 * np.eye(d) + root @ root.T
    theta = rng.standard_normal(d)
    features = rng.standard_normal((4 * d, d))
    V_inv = np.linalg.inv(np.eye(d) + features.T @ features)
    return Problem(
        m=m,
        gamma=gamma,
        A0=A0,
        theta=theta / np.linalg.norm(theta),
        V_inv=V_inv,
        beta=1.5,
        actions=actions,
    )


class Evaluation(NamedTuple):
    """Everything a compiled evaluation takes."""

    memory: Memory
    A0: np.ndarray | None
    belief: Belief
    a: np.ndarray
    lanes: int
    work: Work
    values: np.ndarray
    grad: np.ndarray


def prepare(p: Problem, lanes: int = 1, decay: float = 1.0, endless: bool = False) -> Evaluation:
    """The problem, `lanes` copies of it side by side, ready for `repeat`.

    With a decay the memory fades; without end, the first m actions are what was played before.
    """
    memory, A0 = make_memory(p.A0, math.inf if endless else p.m, p.gamma, Variant(decay))
    actions = p.actions[p.m :] if endless else p.actions
    a = np.repeat(actions.T, lanes, axis=1).copy()
    work = make_work(memory, A0, a.shape[1], lanes)
    belief = Belief(p.theta, p.V_inv, p.beta, O3M)
    return Evaluation(
        memory=memory,
        A0=A0,
        belief=belief,
        a=a,
        lanes=lanes,
        work=work,
        values=np.empty(lanes),
        grad=np.empty_like(a),
    )


@kernel
def repeat(memory, A0, belief, a, lanes, work, values, grad, times):  # type: ignore[no-untyped-def]
    """`times` evaluations in a row, as an optimiser makes them: no Python in between."""
    for _ in range(times):
        evaluate(memory, A0, belief, a, lanes, work, values, grad)


def seconds_per_window(p: Problem, lanes: int = 1) -> float:
    """Cost of value and gradient for one window."""
    e = prepare(p, lanes)
    times = max(1, 20_000 // (p.windows * lanes * max(1, p.actions.shape[1] // 4)))
    return fastest(lambda: repeat(*e, times)) / (times * p.windows * lanes)


def eigh_seconds(p: Problem) -> float:
    """Cost of `numpy.linalg.eigh` for one memory matrix of the problem, all of them in one call."""
    X = p.matrices()
    return fastest(lambda: np.linalg.eigh(X)) / p.windows
