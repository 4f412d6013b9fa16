"""What an action pays: owns the model's parameters and its history, and knows nothing of learners.

y_t = <a_t, X_t^gamma theta> + noise with X_t = A0 + sum of a a^T over the last m actions (equations (1) and
(2) of the paper, eq:reward and eq:A-def). An episode and `LBM.expected_rewards` give the same bits, in
whatever stretches they are computed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_norefcount
from ._types import Matrix, Rows, Vector
from .eigen_matrix import eigen
from .memory import GRAM_FROM, isotropic_scale
from .noise import GAUSSIAN
from .powers import NO_FLOOR, eigenvalue_floor, settled, shifted_first_difference


class ModelParams(NamedTuple):
    """The parameters of the model."""

    theta: Vector
    A0: Matrix
    m: int  # -1: infinite
    gamma: float
    c: float  # `gram_scale`: A0 = c I and m < d, or 0
    floor: float  # `eigenvalue_floor`
    sigma: float
    noise: int  # its number in `noise.NOISES`


class History(NamedTuple):
    """What was played, as far as it matters."""

    recent: Rows  # (m, d) the last m actions, the latest last; zeros before the first
    X: Matrix  # (d, d) A0 and all actions, for an infinite memory


def gram_scale(A0: Matrix, m: float) -> float:
    """c for A0 = c I and 0 < m < d, where the Gram form serves; else 0."""
    c = isotropic_scale(A0) or 0.0
    return c if 0 < m < len(A0) and c >= GRAM_FROM else 0.0


def make_model_params(
    theta: Vector, A0: Matrix, m: float, gamma: float, sigma: float = 0.0, noise: int = GAUSSIAN
) -> ModelParams:
    """The parameters of a model as the kernels take them."""
    size = -1 if m == math.inf else int(m)
    c = gram_scale(A0, m)
    floor = NO_FLOOR if c > 0.0 else eigenvalue_floor(A0, m, gamma)
    return ModelParams(theta=theta, A0=A0, m=size, gamma=gamma, c=c, floor=floor, sigma=sigma, noise=noise)


def make_history(model: ModelParams) -> History:
    """The history of a model in which nothing was played."""
    return History(np.zeros((max(model.m, 0), len(model.theta))), model.A0.copy())


@inline
def decompose(c: float, X: Matrix, recent: Rows, A: Matrix, Q: Matrix) -> None:
    """The spectrum of a window: of R R^T for c > 0, R = recent (m, d), else of X + R^T R; on A's diagonal."""
    m, d = recent.shape
    if c > 0.0:
        for s in range(m):
            for r in range(s + 1):
                A[s, r] = 0.0
                for i in range(d):
                    A[s, r] += recent[s, i] * recent[r, i]
                A[r, s] = A[s, r]
    else:
        for i in range(d):
            for j in range(d):
                A[i, j] = X[i, j]
                for s in range(m):
                    A[i, j] += recent[s, i] * recent[s, j]
    eigen(A, Q)


@inline
def multiply(
    c: float, gamma: float, floor: float, recent: Rows, A: Matrix, Q: Matrix, v: Vector, out: Vector
) -> None:
    """out (d,) = X^gamma v for the window that was decomposed; the Gram form is c^gamma v + R^T phi R v."""
    m, d = recent.shape
    top = 0.0
    for i in range(d if floor >= 0.0 else 0):
        top = max(top, A[i, i])
    scale = c**gamma if c > 0.0 else 0.0
    k = m if c > 0.0 else d
    for i in range(d):
        out[i] = scale * v[i]
    for r in range(k):
        along = 0.0
        if c > 0.0:
            for s in range(m):
                share = 0.0
                for i in range(d):
                    share += recent[s, i] * v[i]
                along += Q[s, r] * share
            along *= shifted_first_difference(c, A[r, r], gamma)
            for s in range(m):
                share = Q[s, r] * along
                for i in range(d):
                    out[i] += share * recent[s, i]
        else:
            for i in range(d):
                along += Q[i, r] * v[i]
            along *= settled(A[r, r], top, d, floor) ** gamma
            for i in range(d):
                out[i] += Q[i, r] * along


@kernel
def response(model: ModelParams, history: History, out: Vector) -> None:
    """X^gamma theta (d,): the reward of an action now is its inner product with this."""
    d = model.theta.shape[0]
    if model.gamma == 0.0:
        for i in range(d):
            out[i] = model.theta[i]
        return
    k = model.m if model.c > 0.0 else d
    A, Q = np.empty((k, k)), np.empty((k, k))
    decompose(model.c, history.X, history.recent, A, Q)
    multiply(model.c, model.gamma, model.floor, history.recent, A, Q, model.theta, out)


@kernel_norefcount
def product(x: Vector, y: Vector) -> float:
    """<x, y>."""
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * y[i]
    return s


@kernel
def rewards(model: ModelParams, history: History, actions: Rows) -> Vector:
    """Expected rewards (T,) of actions (T, d), which are played."""
    T, d = actions.shape
    g, before, out = np.zeros(d), np.zeros(d), np.empty(T)
    same, m = -1, history.recent.shape[0]
    for t in range(T):
        # The same action for m steps: the window is what it was.
        if model.m < 0 or same < m:
            response(model, history, g)
        action = actions[t]
        out[t] = product(g, action)
        push(model, history, action)
        equal = t > 0
        for i in range(d):
            equal = equal and action[i] == before[i]
            before[i] = action[i]
        same = same + 1 if equal else 0
    return out


@kernel_norefcount
def push(model: ModelParams, history: History, action: Vector) -> None:
    """The action was played."""
    m, d = history.recent.shape
    if model.m < 0:
        for i in range(d):
            for j in range(d):
                history.X[i, j] += action[i] * action[j]
    if m > 0:
        for i in range(d):
            for s in range(m - 1):
                history.recent[s, i] = history.recent[s + 1, i]
            history.recent[m - 1, i] = action[i]
