"""Regularised least squares, one feature or one block of features at a time: owns V, its inverse and theta.

V = lam I + sum b b^T, U = sum y b, theta = V^-1 U (equation (11) of the paper, eq:est_theta). V^-1 is kept by
Sherman-Morrison and its log-determinant by the factor of each update; both are taken anew from V by a
Cholesky factorisation every REFRESH updates, and whenever as many features as dimensions arrive at once,
which is then cheaper.
Features are first added to a recent sum, which joins V at a refresh, with what rounding takes kept beside it:
10^8 of them lose no digits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ._jit import inline, kernel, kernel_internal, kernel_norefcount
from ._types import Matrix, Rows, Vector
from .powers import rounding

#: Rank-one updates between two factorisations.
REFRESH = 512

#: Rounding in a pivot beside that in an eigenvalue; a pivot that is lost in it counts as _LOST times that.
_PIVOT_ROUNDING, _LOST = 16.0, 2.0**12

# Entries of the ledger.
SAMPLES, LOG_DET, UPDATES, LAM, SQUARES, SQUARES_LOST = 0, 1, 2, 3, 4, 5

#: The noise before there is data: sigma^2 ~ InverseGamma(shape, scale), a weak prior.
NOISE_SHAPE, NOISE_SCALE = 1.0, 0.1


class Estimator(NamedTuple):
    """What the learner knows, all of it changed in place."""

    V: Matrix  # (D, D) without the recent features
    U: Vector  # (D,) likewise
    V_recent: Matrix
    U_recent: Vector
    V_lost: Matrix  # what rounding took from V, and from U
    U_lost: Vector
    V_inv: Matrix  # of all features
    theta: Vector
    ledger: (
        Vector  # (6,) samples, ln det V/det(lam I), updates since the last refresh, lam, sum of y^2 (twice)
    )


def make_estimator(D: int, lam: float) -> Estimator:
    """An estimator that has seen nothing."""
    eye = np.eye(D)
    return Estimator(
        V=lam * eye,
        U=np.zeros(D),
        V_recent=np.zeros((D, D)),
        U_recent=np.zeros(D),
        V_lost=np.zeros((D, D)),
        U_lost=np.zeros(D),
        V_inv=eye / lam,
        theta=np.zeros(D),
        ledger=np.array([0.0, 0.0, 0.0, lam, 0.0, 0.0]),
    )


@kernel
def absorb(e: Estimator, b: Vector, count: float, total: float, squares: float) -> None:
    """Feature b (D,) seen `count` times with rewards that sum to `total`, their squares to `squares`.

    theta is left alone.
    """
    D = b.shape[0]
    w = np.empty(D)
    squared = 0.0
    for i in range(D):
        s = 0.0
        for j in range(D):
            s += e.V_inv[i, j] * b[j]
        w[i] = s
        squared += b[i] * s
    _add(e, b, count, total, squares)
    growth = 1.0 + count * max(squared, 0.0)
    scale = count / growth
    for i in range(D):
        for j in range(i + 1):
            e.V_inv[i, j] -= scale * w[i] * w[j]
            e.V_inv[j, i] = e.V_inv[i, j]
    e.ledger[LOG_DET] += math.log(growth)
    e.ledger[UPDATES] += 1.0
    # A large growth leaves little of V_inv along b, and few of its digits.
    if e.ledger[UPDATES] >= REFRESH or growth > 1e6 or squared < 0.0:
        refresh(e)


@kernel
def absorb_all(e: Estimator, F: Rows, counts: Vector, totals: Vector, squares: Vector) -> None:
    """Features F (rows, D), each with its count and its sums of rewards and of their squares; then theta."""
    rows, D = F.shape
    b = np.empty(D)
    for row in range(rows):
        if counts[row] > 0.0:
            for i in range(D):
                b[i] = F[row, i]
            if rows < D:
                absorb(e, b, counts[row], totals[row], squares[row])
            else:
                _add(e, b, counts[row], totals[row], squares[row])
    if rows >= D:
        refresh(e)
    estimate(e)


@kernel_norefcount
def estimate(e: Estimator) -> None:
    """theta = V^-1 U."""
    D = e.theta.shape[0]
    for i in range(D):
        s = 0.0
        for j in range(D):
            s += e.V_inv[i, j] * (e.U[j] + (e.U_recent[j] + e.U_lost[j]))
        e.theta[i] = s


@kernel_norefcount
def noise_variance(e: Estimator) -> float:
    """The posterior mean of sigma^2 in the conjugate regression, theta ~ N(0, sigma^2/lam I).

    The residual y^T y - theta^T U is the sum of squared one-step errors, (y - <b, theta>)^2/(1 + b^T V^-1 b).
    """
    residual = e.ledger[SQUARES] + e.ledger[SQUARES_LOST]
    for i in range(e.theta.shape[0]):
        residual -= e.theta[i] * (e.U[i] + (e.U_recent[i] + e.U_lost[i]))
    return (NOISE_SCALE + 0.5 * max(residual, 0.0)) / (NOISE_SHAPE + 0.5 * e.ledger[SAMPLES])


@kernel_internal
def _add(e: Estimator, b: Vector, count: float, total: float, squares: float) -> None:
    D = b.shape[0]
    e.ledger[SAMPLES] += count
    e.ledger[SQUARES], e.ledger[SQUARES_LOST] = _sum(e.ledger[SQUARES], squares, e.ledger[SQUARES_LOST])
    for i in range(D):
        e.U_recent[i] += total * b[i]
        for j in range(D):
            e.V_recent[i, j] += count * b[i] * b[j]


@kernel
def refresh(e: Estimator) -> None:
    """V^-1 and the log-determinant anew from V, which takes in the recent features."""
    D = e.V.shape[0]
    for i in range(D):
        total, e.U_lost[i] = _sum(e.U[i], e.U_recent[i], e.U_lost[i])
        e.U[i], e.U_recent[i] = total, 0.0
        for j in range(D):
            total, e.V_lost[i, j] = _sum(e.V[i, j], e.V_recent[i, j], e.V_lost[i, j])
            e.V[i, j], e.V_recent[i, j] = total, 0.0
    R = np.empty((D, D))
    e.ledger[LOG_DET] = cholesky_of_sum(e.V, R) - D * math.log(e.ledger[LAM])
    e.ledger[UPDATES] = 0.0
    # V = R R^T; the inverse of R in its place, then V^-1 = R^-T R^-1.
    for j in range(D):
        R[j, j] = 1.0 / R[j, j]
        for i in range(j + 1, D):
            s = 0.0
            for k in range(j, i):
                s += R[i, k] * R[k, j]
            R[i, j] = -s / R[i, i]
    for i in range(D):
        for j in range(i + 1):
            s = 0.0
            for k in range(i, D):
                s += R[k, i] * R[k, j]
            e.V_inv[i, j] = s
            e.V_inv[j, i] = s


@inline
def _sum(x: float, y: float, lost: float) -> tuple[float, float]:
    """x + y and what rounding took from it, to the lost before (Knuth's two-sum)."""
    y += lost
    total = x + y
    share = total - x
    return total, (x - (total - share)) + (y - share)


@kernel_norefcount
def cholesky(V: Matrix, R: Matrix) -> float:
    """The lower triangle R with V = R R^T, and ln det V."""
    return _factor(V, R, 0.0)


@kernel_norefcount
def cholesky_of_sum(V: Matrix, R: Matrix) -> float:
    """The same for a V that is at least lam I, of which rounding may have left nothing.

    That is where features are 10^7 times as long as sqrt(lam). A pivot that is rounding counts as much
    larger, as if lam were, so that rounding is small beside it; what is below it, rounding too, counts as 0.
    """
    return _factor(V, R, _PIVOT_ROUNDING)


@inline
def _factor(V: Matrix, R: Matrix, share: float) -> float:
    """R and ln det V; pivots up to `share` of what is rounding beside the diagonal are lost."""
    D = V.shape[0]
    log_det = 0.0
    for j in range(D):
        s = V[j, j]
        for k in range(j):
            s -= R[j, k] * R[j, k]
        least = share * rounding(V[j, j], D)
        lost = s <= least and share > 0.0
        pivot = math.sqrt(max(_LOST * least if lost else s, 1e-300))
        R[j, j] = pivot
        log_det += 2.0 * math.log(pivot)
        for i in range(j + 1, D):
            s = V[i, j]
            for k in range(j):
                s -= R[i, k] * R[j, k]
            R[i, j] = 0.0 if lost else s / pivot
    return log_det


#: No plan is repeated more often.
MOST = 2**40


@kernel
def passes_of_plan(e: Estimator, F: Rows, switch: float, lead: int) -> int:
    """How often a plan is played: `repeats`, but for no longer than half of what was learned from before.

    Where features are small beside lam, det V does not grow for a long time, and the first plan, a guess,
    would be kept. A plan that ends by this rule makes the passes a third more, or half: they are few.
    """
    known = int(e.ledger[SAMPLES]) // (2 * max(F.shape[0] - lead, 1))
    return min(repeats(e, F, switch, lead), max(known, 1))


@kernel
def repeats(e: Estimator, F: Rows, switch: float, lead: int) -> int:
    """How often a block with features F (rows, D) is played until det V has grown by more than 1 + switch.

    The first `lead` rows take the place of the next `lead` in the first pass, see `block_state.slot`.

    The rarely switching rule of OFUL (Abbasi-Yadkori, Pal and Szepesvari 2011, Section 5.1): the number is
    known in advance, for V after k passes is. At least once; once for switch = 0.
    """
    if switch <= 0.0:
        return 1
    rows, D = F.shape
    G, R, trial = np.zeros((D, D)), np.empty((D, D)), np.empty((D, D))
    other = np.zeros((D, D))  # what the first pass has more than another one
    for row in range(rows):
        for i in range(D):
            for j in range(D):
                share = F[row, i] * F[row, j]
                if row >= lead:
                    G[i, j] += share
                if row < 2 * lead:
                    other[i, j] += share if row < lead else -share
    # After `low` passes det V has not grown enough, after `high` it has; first k = 0 says what is enough.
    k, low, high, enough = 0, 0, MOST, 0.0
    while high - low > 1:
        for i in range(D):
            for j in range(D):
                trial[i, j] = (e.V[i, j] + e.V_recent[i, j]) + k * G[i, j]
                if k > 0:
                    trial[i, j] += other[i, j]
        log_det = cholesky(trial, R)
        if k == 0:
            enough = log_det + math.log1p(switch)
        elif log_det > enough:
            high = k
        else:
            low = k
        k = min(max(2 * low, 1), (low + high + 1) // 2)
    return high
