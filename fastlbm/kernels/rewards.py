"""What an action pays: owns the model's parameters and its history, and knows nothing of learners.

y_t = <a_t, X_t^gamma theta> + noise with X_t = A0 + sum of a a^T over the last m actions (equations (1) and
(2) of the paper, eq:reward and eq:A-def), each counted decay^(s-1) times if it was s steps ago. An episode
and `LBM.expected_rewards` give the same bits, in whatever stretches they are computed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_nested, kernel_norefcount
from ._types import Matrix, Rows, Vector
from .eigen_matrix import eigen
from .fading import PAPER, Variant, total_weight
from .memory import GRAM_FROM, isotropic_scale
from .noise import GAUSSIAN
from .powers import NO_FLOOR, OWN, POWER, eigenvalue_floor, settled, shifted_first_difference
from .responses import response_at


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
    decay: float
    kind: int  # of the response: POWER, SATURATING or OWN
    value: int  # the address of an OWN response


class History(NamedTuple):
    """What was played, as far as it matters."""

    recent: Rows  # (m, d) the last m actions, the latest last; zeros before the first
    X: Matrix  # (d, d) of an infinite memory: A0 and all actions; if it fades, the actions alone


@inline
def forgets(model: ModelParams) -> bool:
    """Whether rewards depend on nothing that was played: x^0 and the saturating response to it are 1."""
    return model.gamma == 0.0 and model.kind != OWN


def gram_scale(A0: Matrix, m: float) -> float:
    """c for A0 = c I and 0 < m < d, where the Gram form serves; else 0."""
    c = isotropic_scale(A0) or 0.0
    return c if 0 < m < len(A0) and c >= GRAM_FROM else 0.0


def make_model_params(
    theta: Vector,
    A0: Matrix,
    m: float,
    gamma: float,
    sigma: float = 0.0,
    noise: int = GAUSSIAN,
    variant: Variant = PAPER,
) -> ModelParams:
    """The parameters of a model as the kernels take them."""
    power = variant.response == POWER
    c = gram_scale(A0, m) if power else 0.0
    no_floor = c > 0.0 or not power
    return ModelParams(
        theta=theta,
        A0=A0,
        m=-1 if m == math.inf else int(m),
        gamma=gamma,
        c=c,
        floor=NO_FLOOR if no_floor else eigenvalue_floor(A0, total_weight(m, variant.decay), gamma),
        sigma=sigma,
        noise=noise,
        decay=variant.decay,
        kind=variant.response,
        value=variant.value,
    )


def make_history(model: ModelParams) -> History:
    """The history of a model in which nothing was played."""
    fades = model.m < 0 and model.decay < 1.0
    X = np.zeros_like(model.A0) if fades else model.A0.copy()
    return History(np.zeros((max(model.m, 0), len(model.theta))), X)


@kernel
def weighted(recent: Rows, decay: float) -> Rows:
    """Actions (m, d), the latest last, as they count: the one s steps ago times sqrt(decay)^(s-1)."""
    m, d = recent.shape
    out = np.empty((m, d))
    for s in range(m):
        weight = decay ** (0.5 * (m - 1 - s))
        for i in range(d):
            out[s, i] = weight * recent[s, i]
    return out


@kernel_nested
def _as_it_counts(model: ModelParams, history: History) -> History:
    """The history of a memory that fades as one that does not: weighted actions, and A0 with all of them."""
    d = model.A0.shape[0]
    X = np.empty((d, d))
    for i in range(d):
        for j in range(d):
            X[i, j] = history.X[i, j] + (model.A0[i, j] if model.m < 0 else 0.0)
    return History(weighted(history.recent, model.decay), X)


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
    respond(POWER, 0, c, gamma, floor, recent, A, Q, v, out)


@inline
def respond(
    kind: int,
    value: int,
    c: float,
    gamma: float,
    floor: float,
    recent: Rows,
    A: Matrix,
    Q: Matrix,
    v: Vector,
    out: Vector,
) -> None:
    """The same for any response."""
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
            along *= response_at(kind, value, gamma, settled(A[r, r], top, d, floor))
            for i in range(d):
                out[i] += Q[i, r] * along


@kernel
def response(model: ModelParams, history: History, out: Vector) -> None:
    """X^gamma theta (d,): the reward of an action now is its inner product with this."""
    d = model.theta.shape[0]
    if forgets(model):
        for i in range(d):
            out[i] = model.theta[i]
        return
    k = model.m if model.c > 0.0 else d
    A, Q = np.empty((k, k)), np.empty((k, k))
    if model.decay < 1.0:
        history = _as_it_counts(model, history)
    decompose(model.c, history.X, history.recent, A, Q)
    recent, theta = history.recent, model.theta
    respond(model.kind, model.value, model.c, model.gamma, model.floor, recent, A, Q, theta, out)


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
                # With decay = 1 the same as without it.
                history.X[i, j] = model.decay * history.X[i, j] + action[i] * action[j]
    if m > 0:
        for i in range(d):
            for s in range(m - 1):
                history.recent[s, i] = history.recent[s + 1, i]
            history.recent[m - 1, i] = action[i]
