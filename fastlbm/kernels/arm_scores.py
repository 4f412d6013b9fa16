"""What every arm would be worth at one position of a block: owns the estimate that shortlists arms.

A change of the action a_j changes its own feature X_j^gamma a_j and the memory matrices X_t of the m windows
after it, by a a^T. The first is known exactly for all arms from X_j^gamma alone. The second is estimated by
the derivative S_t of what window t is worth with respect to X_t: an arm a is worth about

    <a, X_j^gamma theta> + beta sqrt(a^T M a) + a^T (sum of S_t) a,   M = X_j^gamma V^-1 X_j^gamma

so that one pass over the arms, d^2 products each, ranks all of them (measured: among the first four in nine
of ten changes is the best one). It only shortlists: rounding and nearly equal eigenvalues do not matter.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import kernel, kernel_internal, kernel_norefcount
from ._types import Integers, Matrix, Rows, Vector
from .arithmetic import column
from .optimism import O3M, Belief
from .powers import POWER, settled
from .responses import response_at
from .rewards import ModelParams, decompose, weighted

#: Arms that are looked at side by side: what they need stays in the first-level cache.
STRIP = 256
#: Eigenvalues whose ratio is closer to 1 count as equal.
_NEAR = 1e-4


@kernel
def window_power(
    model: ModelParams, window: Rows, P: Matrix, E: Matrix, powers: Vector, slopes: Matrix
) -> int:
    """P (d, d) = X^gamma of a window (m, d), and its spectrum; returns the number k of its directions.

    E (d+2, d) gets the k unit eigenvectors that differ from the rest of space, slopes (k+1, k+1) the divided
    differences of their powers, the last row and column those with the rest, where X is c I.
    """
    m, d = window.shape
    c, gamma = model.c, model.gamma
    size = m if c > 0.0 else d
    A, Q = np.empty((size, size)), np.empty((size, size))
    if model.decay < 1.0:
        window = weighted(window, model.decay)
    decompose(c, model.A0, window, A, Q)
    top = 0.0
    for i in range(size):
        top = max(top, A[i, i])
    lam = np.empty(size + 1)
    k = 0
    for r in range(size):
        if c > 0.0:
            if A[r, r] <= 1e-12 * top:
                continue  # the window has no such direction
            lam[k] = c + A[r, r]
            scale = 1.0 / math.sqrt(A[r, r])
            for i in range(d):
                E[k, i] = 0.0
            for s in range(m):
                share = scale * Q[s, r]
                for i in range(d):
                    E[k, i] += share * window[s, i]
        else:
            lam[k] = max(settled(A[r, r], top, d, model.floor), 1e-12)
            for i in range(d):
                E[k, i] = Q[i, r]
        k += 1
    lam[k] = c if c > 0.0 else 1.0
    for i in range(k + 1):
        powers[i] = response_at(model.kind, model.value, gamma, lam[i])
    for i in range(k + 1):
        for j in range(k + 1):
            if abs(lam[i] - lam[j]) <= _NEAR * lam[i]:
                slopes[i, j] = gamma * powers[i] / lam[i]
                if model.kind != POWER:
                    near = lam[i] * (1.0 + _NEAR)
                    ahead = response_at(model.kind, model.value, gamma, near)
                    slopes[i, j] = (ahead - powers[i]) / (near - lam[i])
            else:
                slopes[i, j] = (powers[i] - powers[j]) / (lam[i] - lam[j])
    rest = powers[k] if c > 0.0 else 0.0
    for i in range(d):
        for j in range(i + 1):
            total = rest if i == j else 0.0
            for r in range(k):
                total += (powers[r] - rest) * E[r, i] * E[r, j]
            P[i, j] = total
            P[j, i] = total
    return k


@kernel
def window_matrices(
    model: ModelParams, belief: Belief, window: Rows, action: Vector, u: Vector, P: Matrix, S: Matrix
) -> None:
    """P (d, d) = X^gamma of a window (m, d), and S (d, d), the derivative with respect to X of its worth.

    u (d,) is the derivative with respect to the feature of its action (d,); computed here for O3M.
    """
    d = action.shape[0]
    E, powers, slopes = np.empty((d + 2, d)), np.empty(d + 1), np.empty((d + 1, d + 1))
    k = window_power(model, window, P, E, powers, slopes)
    if belief.kind == O3M:
        _derivative(belief, P, action, u)
    # The action and u along the eigenvectors; what is left of them are two more directions.
    w, v = np.empty(k + 2), np.empty(k + 2)
    for i in range(d):
        E[k, i], E[k + 1, i] = action[i], u[i]
    for r in range(k):
        w[r], v[r] = 0.0, 0.0
        for i in range(d):
            w[r] += E[r, i] * action[i]
            v[r] += E[r, i] * u[i]
        for i in range(d):
            E[k, i] -= w[r] * E[r, i]
            E[k + 1, i] -= v[r] * E[r, i]
    # S = E^T N E, the formula of Daleckii and Krein.
    count = k + 2 if model.c > 0.0 else k
    N, half = np.zeros((count, count)), np.empty((count, d))
    for r in range(k):
        for s in range(k):
            N[r, s] = 0.5 * slopes[r, s] * (w[r] * v[s] + v[r] * w[s])
        if model.c > 0.0:
            N[r, k] = 0.5 * slopes[r, k] * v[r]
            N[r, k + 1] = 0.5 * slopes[r, k] * w[r]
            N[k, r], N[k + 1, r] = N[r, k], N[r, k + 1]
    if model.c > 0.0:
        N[k, k + 1] = 0.5 * slopes[k, k]
        N[k + 1, k] = N[k, k + 1]
    for r in range(count):
        for i in range(d):
            half[r, i] = 0.0
        for s in range(count):
            share = N[r, s]
            for i in range(d):
                half[r, i] += share * E[s, i]
    for i in range(d):
        for j in range(i, d):
            total = 0.0
            for r in range(count):
                total += E[r, i] * half[r, j]
            S[i, j] = total


@kernel
def _derivative(belief: Belief, P: Matrix, action: Vector, u: Vector) -> None:
    """u (d,) of O3M: theta + beta V^-1 b/||b|| for the feature b = P a."""
    d = action.shape[0]
    theta, V_inv, beta = belief.theta, belief.V_inv, belief.beta
    for i in range(d):
        u[i] = theta[i]
    if beta == 0.0:
        return
    b, squared = np.zeros(d), 0.0
    for i in range(d):
        for j in range(d):
            b[i] += P[i, j] * action[j]
    for i in range(d):
        for j in range(d):
            squared += b[i] * V_inv[i, j] * b[j]
    if squared > 1e-300:
        scale = beta / math.sqrt(squared)
        for i in range(d):
            for j in range(d):
                u[i] += scale * V_inv[i, j] * b[j]


@kernel
def own_worth(belief: Belief, P: Matrix, lin: Vector, M: Matrix) -> None:
    """lin (d,) = P theta and, the upper triangle, M (d, d) = P V^-1 P: what arms earn themselves, for O3M."""
    d = P.shape[0]
    for i in range(d):
        lin[i] = 0.0
        for j in range(d):
            lin[i] += P[i, j] * belief.theta[j]
    if belief.beta == 0.0:
        return
    half = np.zeros((d, d))
    for i in range(d):
        for k in range(d):
            share = P[i, k]
            for j in range(d):
                half[i, j] += share * belief.V_inv[k, j]
    for i in range(d):
        for j in range(i, d):
            total = 0.0
            for k in range(d):
                total += half[i, k] * P[j, k]
            M[i, j] = total


@kernel_norefcount
def score_arms(A: Rows, lin: Vector, M: Matrix, beta: float, H: Matrix, scratch: Rows, out: Vector) -> None:
    """out (K,) = <lin, a> + beta sqrt(a^T M a) + a^T H a of the arms A (d, K).

    Of M and H the upper triangles count; scratch is (3, STRIP).
    """
    d, K = A.shape
    for begin in range(0, K, STRIP):
        n, first = min(STRIP, K - begin), column(begin)
        for w in range(n):
            scratch[0, w] = 0.0
            scratch[1, w] = 0.0
        for i in range(d):
            _row(A, i, first, n, H, lin[i], scratch, 1)
            if beta > 0.0:
                _row(A, i, first, n, M, 0.0, scratch, 0)
        for w in range(n):
            out[first + w] = scratch[1, w]
        if beta > 0.0:
            for w in range(n):
                out[first + w] += beta * math.sqrt(max(scratch[0, w], 0.0))


@kernel_internal
def _row(A: Rows, i: int, first: int, n: int, H: Matrix, shift: float, scratch: Rows, out: int) -> None:
    """Row `out` of scratch += a_i (shift + H_ii a_i + 2 sum over j > i of H_ij a_j), four j a pass."""
    d, first = A.shape[0], column(first)
    h = H[i, i]
    for w in range(n):
        scratch[2, w] = shift + h * A[i, first + w]
    for j in range(i + 1, d, 4):
        j1, j2, j3 = min(j + 1, d - 1), min(j + 2, d - 1), min(j + 3, d - 1)
        h0 = 2.0 * H[i, j]
        h1 = 2.0 * H[i, j1] if j + 1 < d else 0.0
        h2 = 2.0 * H[i, j2] if j + 2 < d else 0.0
        h3 = 2.0 * H[i, j3] if j + 3 < d else 0.0
        for w in range(n):
            scratch[2, w] += (h0 * A[j, first + w] + h1 * A[j1, first + w]) + (
                h2 * A[j2, first + w] + h3 * A[j3, first + w]
            )
    for w in range(n):
        scratch[out, w] += A[i, first + w] * scratch[2, w]


@kernel_norefcount
def shortlist(scores: Vector, now: int, found: Integers, best: Vector) -> int:
    """found gets the arm `now` and behind it the arms with the largest scores (K,); returns how many."""
    most, count = found.shape[0], 1
    found[0] = now
    least = -math.inf
    for k in range(scores.shape[0]):
        if scores[k] > least or (count < most and k != now):
            if k == now:
                continue
            r = min(count, most - 1)
            while r > 1 and best[r - 1] < scores[k]:
                best[r], found[r] = best[r - 1], found[r - 1]
                r -= 1
            best[r], found[r] = scores[k], k
            count = min(count + 1, most)
            if count == most:
                least = best[most - 1]
    return count
