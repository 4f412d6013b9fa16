"""Slow references for the tests and benchmarks: the definitions of the paper, written down once more.

Two layers that check each other: NumPy (double precision, `block_ucb` vectorised well enough to be an
honest competitor in benchmarks) and mpmath (50 digits, suffix `_mp`). Nothing here imports fastlbm.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import mpmath as mp
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.float64]
Problem = dict[str, Any]
Vector = list[Any]  # of mpf: mpmath has no types

OPTIMISM = ("O3M", "OM", "OM-Block")
GAMMAS = (-4.0, -3.0, -2.5, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.7)


# --- double precision ---------------------------------------------------------------------------------


def power(X: Array, gamma: float) -> Array:
    """X^gamma of a symmetric positive semidefinite X, with 0^0 = 1."""
    lam, Q = np.linalg.eigh(X)
    return (Q * np.maximum(lam, 0.0) ** gamma) @ Q.T


def memory_matrix(window: Array, A0: Array | None, decay: float = 1.0) -> Array:
    """A0 + sum of decay^(s-1) a a^T over the window (s, d), a the action s steps ago."""
    X = np.eye(window.shape[1]) if A0 is None else np.array(A0, dtype=np.float64)
    for s, a in enumerate(window[::-1]):
        X = X + decay**s * np.outer(a, a)
    return X


def expected_rewards(
    theta: Array,
    m: float,
    gamma: float,
    A0: Array | None,
    actions: Array,
    history: Array | None = None,
    decay: float = 1.0,
) -> Array:
    """<X_t^gamma a_t, theta> of a sequence (T, d); before the history (h, d) there were zero actions."""
    past, rewards = [] if history is None else list(np.asarray(history, dtype=np.float64)), []
    for a in np.asarray(actions, dtype=np.float64):
        window = np.array(past[int(max(0, len(past) - m)) :]).reshape(-1, len(a))
        rewards.append(theta @ power(memory_matrix(window, A0, decay), gamma) @ a)
        past.append(a)
    return np.array(rewards)


def features(actions: Array, m: float, gamma: float, A0: Array | None, decay: float = 1.0) -> Array:
    """b_j = X_j^gamma a_j of the windows j = m..n-1, (n-m, d); with an infinite m of all actions, (n, d)."""
    lead, steps = (0, range(len(actions))) if m == math.inf else (int(m), range(int(m), len(actions)))
    windows = [memory_matrix(actions[0 if m == math.inf else j - lead : j], A0, decay) for j in steps]
    return np.array([power(X, gamma) @ a for X, a in zip(windows, actions[lead:], strict=True)])


def block_value(
    actions: Array,
    m: float,
    gamma: float,
    theta: Array,
    V_inv: Array | None,
    beta: float,
    optimism: str,
    A0: Array | None = None,
    decay: float = 1.0,
) -> float:
    """The optimistic value of a block (m+L, d); optimism "none" is the plain expected reward."""

    def ucb(x: Array) -> float:
        return float(x @ theta + (beta * math.sqrt(x @ V_inv @ x) if beta else 0.0))

    B = features(actions, m, gamma, A0, decay)
    if optimism == "none":
        return float((B @ theta).sum())
    if optimism == "O3M":
        return sum(ucb(b) for b in B)
    if optimism == "OM":
        return ucb(B.sum(axis=0))
    if optimism == "OM-Block":
        return ucb(np.concatenate([actions[: len(actions) - len(B)].ravel(), B.ravel()]))
    raise ValueError(optimism)


def loewner(lam: Array, gamma: float) -> Array:
    """Divided differences of x^gamma, (..., k) -> (..., k, k); the derivative where the points meet."""
    x, y = lam[..., :, None], lam[..., None, :]
    if gamma == 0.0:
        return np.zeros(np.broadcast_shapes(x.shape, y.shape))
    # From the point with the larger power neither 0 nor a steep gamma overflows.
    larger, smaller = (np.maximum, np.minimum) if gamma > 0.0 else (np.minimum, np.maximum)
    base = larger(x, y)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (smaller(x, y) - base) / base
        # x^gamma - y^gamma = y^gamma expm1(gamma log(x/y)) cancels nowhere.
        ratio = np.expm1(gamma * np.log1p(z)) / z
    return base ** (gamma - 1.0) * np.where(x == y, gamma, ratio)


def _bonus(B: Array, V_inv: Array | None, beta: float) -> tuple[Array, Array]:
    """beta ||b||_Vinv and its gradient for every row of B; 0 at the kink b = 0."""
    if beta == 0.0 or V_inv is None:
        return np.zeros(len(B)), np.zeros_like(B)
    VB = B @ V_inv
    norm = np.sqrt(np.einsum("ji,ji->j", VB, B))
    return beta * norm, beta * VB / np.where(norm > 0.0, norm, 1.0)[:, None]


def block_ucb(
    actions: Array,
    m: int,
    gamma: float,
    theta: Array,
    V_inv: Array | None,
    beta: float,
    optimism: str = "O3M",
    A0: Array | None = None,
) -> tuple[float, Array]:
    """Value and gradient (m+L, d): all windows at once, one batched eigh."""
    n, d = actions.shape
    L = n - m
    played = actions[m:]
    X = np.repeat((np.eye(d) if A0 is None else A0)[None], L, axis=0)
    if m:
        windows = sliding_window_view(actions[:-1], m, axis=0)
        X += windows @ windows.transpose(0, 2, 1)
    lam, Q = np.linalg.eigh(X)
    lam = np.maximum(lam, 0.0)
    powers = lam**gamma
    w = np.einsum("lik,li->lk", Q, played)
    B = np.einsum("lik,lk->li", Q, powers * w)

    direct = np.zeros((m, d))
    if optimism in ("none", "O3M"):
        bonus, dB = _bonus(B, V_inv, beta if optimism == "O3M" else 0.0)
        value, U = (B @ theta).sum() + bonus.sum(), theta + dB
    elif optimism == "OM":
        s = B.sum(axis=0)
        bonus, ds = _bonus(s[None], V_inv, beta)
        value, U = s @ theta + bonus[0], np.broadcast_to(theta + ds[0], (L, d))
    elif optimism == "OM-Block":
        b = np.concatenate([actions[:m].ravel(), B.ravel()])
        bonus, db = _bonus(b[None], V_inv, beta)
        value, slices = b @ theta + bonus[0], (theta + db[0]).reshape(n, d)
        direct, U = slices[:m], slices[m:]
    else:
        raise ValueError(optimism)

    v = np.einsum("lik,li->lk", Q, U)
    wv = w[:, :, None] * v[:, None, :]
    H = Q @ (loewner(lam, gamma) * (wv + wv.transpose(0, 2, 1))) @ Q.transpose(0, 2, 1)
    grad = np.empty((n, d))
    grad[:m] = direct
    grad[m:] = np.einsum("lik,lk->li", Q, powers * v)
    for s in range(m):
        grad[s : s + L] += np.einsum("lij,lj->li", H, actions[s : s + L])
    return float(value), grad


# --- fifty digits -------------------------------------------------------------------------------------


def _vectors_mp(rows: Any) -> list[Vector]:
    return [[mp.mpf(x) for x in row] for row in (rows.tolist() if isinstance(rows, np.ndarray) else rows)]


def _scalar_power_mp(x: Any, gamma: Any) -> Any:
    if callable(gamma):  # a response that is no power
        return gamma(x)
    if gamma == int(gamma):
        return x ** int(gamma)
    return max(x, mp.mpf(0)) ** mp.mpf(gamma)


def power_mp(X: Any, gamma: float) -> Any:
    """X^gamma of a symmetric mp.matrix."""
    lam, Q = mp.eigsy(X)
    return Q * mp.diag([_scalar_power_mp(x, gamma) for x in lam]) * Q.T


def _optimism_mp(
    B: list[Vector], first: list[Vector], problem: Problem, scale: Any
) -> tuple[Any, list[Vector], list[Vector]]:
    """Value, its gradient with respect to the features, and that to the first m actions (OM-Block only)."""
    theta = [mp.mpf(x) for x in np.asarray(problem["theta"]).tolist()]
    beta, optimism = mp.mpf(problem["beta"]), problem["optimism"]
    V_inv = None if problem["V_inv"] is None else np.asarray(problem["V_inv"]).tolist()
    d = len(B[0])

    def ucb(x: Vector) -> tuple[Any, Vector]:
        mean = mp.fdot(x, theta)
        # Rounding must not turn the kink at 0 into an arbitrary direction.
        if beta == 0 or max(map(abs, x)) <= scale * mp.sqrt(mp.eps):
            return mean, theta
        Vx = [mp.fdot(row, x) for row in V_inv]
        norm = mp.sqrt(mp.fdot(Vx, x))
        return mean + beta * norm, [t + beta * y / norm for t, y in zip(theta, Vx, strict=True)]

    zero = [[mp.mpf(0)] * d for _ in first]
    if optimism == "none":
        return sum(mp.fdot(b, theta) for b in B), [theta] * len(B), zero
    if optimism == "O3M":
        terms = [ucb(b) for b in B]
        return sum(value for value, _ in terms), [u for _, u in terms], zero
    if optimism == "OM":
        value, u = ucb([mp.fsum(column) for column in zip(*B, strict=True)])
        return value, [u] * len(B), zero
    if optimism == "OM-Block":
        value, u = ucb([x for part in [*first, *B] for x in part])
        slices = [u[i : i + d] for i in range(0, len(u), d)]
        return value, slices[len(first) :], slices[: len(first)]
    raise ValueError(optimism)


def _extend_mp(Z: list[Vector], vectors: list[Vector]) -> list[Vector]:
    """The orthonormal vectors Z and more of them, to span `vectors` as well."""
    Z = list(Z)
    for vector in vectors:
        size = mp.norm(vector)
        if size == 0:
            continue
        x = [c / size for c in vector]
        for _ in range(2):
            for z in Z:
                p = mp.fdot(x, z)
                x = [c - p * y for c, y in zip(x, z, strict=True)]
        rest = mp.norm(x)
        if rest > mp.eps ** mp.mpf("0.8"):
            Z.append([c / rest for c in x])
    return Z


def _coordinates_mp(Z: list[Vector], x: Vector) -> Vector:
    return [mp.fdot(z, x) for z in Z]


def _combine_mp(Z: list[Vector], coefficients: Vector, d: int) -> Vector:
    return [mp.fsum(c * z[i] for c, z in zip(coefficients, Z, strict=True)) for i in range(d)]


class _WindowMP:
    """X = c I + Z S Z^T with Z^T Z = I: X^gamma = c^gamma I + Z ((c I + S)^gamma - c^gamma I) Z^T.

    This shrinks the eigenproblem when A0 - c I has few nonzero columns and is exact otherwise too. The
    derivative with respect to X is a difference quotient at a step of half of the digits: it knows nothing
    of eigenvalue gaps and leaves 25 of 50 digits.
    """

    def __init__(self, window: list[Vector], a: Vector, gamma: float, A0: list[Vector]) -> None:
        d = len(a)
        self.window, self.a, self.gamma, self.d = window, a, gamma, d
        self.c = Counter(A0[i][i] for i in range(d)).most_common(1)[0][0]
        self.rest = [[A0[i][k] - (self.c if i == k else 0) for k in range(d)] for i in range(d)]
        spanning = [row for row in self.rest if any(row)] + window
        if len(spanning) >= d:
            self.Z = [[mp.mpf(i == k) for k in range(d)] for i in range(d)]
        else:
            self.Z = _extend_mp([], spanning)
        # c^gamma need not exist when nothing is outside of the span.
        self.outside = _scalar_power_mp(self.c, gamma) if len(self.Z) < d else mp.mpf(0)
        self.F = power_mp(self._matrix(self.Z), gamma) if self.Z else mp.matrix(0, 0)
        self.norm = max([abs(self.outside), *map(abs, self.F)])

    def _matrix(self, Z: list[Vector]) -> Any:
        X = mp.diag([self.c] * len(Z))
        rest = [[mp.fdot(row, z) if any(row) else mp.mpf(0) for row in self.rest] for z in Z]
        window = [_coordinates_mp(Z, a) for a in self.window]
        for i, z in enumerate(Z):
            for k in range(len(Z)):
                X[i, k] += mp.fdot(z, rest[k]) + mp.fsum(a[i] * a[k] for a in window)
        return (X + X.T) / 2

    def apply(self, x: Vector) -> Vector:
        """X^gamma x."""
        y = _coordinates_mp(self.Z, x)
        inside = _combine_mp(self.Z, list(self.F * mp.matrix(y)) if y else [], self.d)
        span = _combine_mp(self.Z, y, self.d)
        return [self.outside * (p - q) + r for p, q, r in zip(x, span, inside, strict=True)]

    def backward(self, u: Vector) -> list[Vector]:
        """The gradient of <u, X^gamma a> with respect to every action of the window."""
        size = mp.norm(u) * mp.norm(self.a)
        if size == 0 or not self.window:
            return [[mp.mpf(0)] * self.d for _ in self.window]
        Z = _extend_mp(self.Z, [self.a, u])
        k, inner = len(Z), len(self.Z)
        p, q = mp.matrix(_coordinates_mp(Z, self.a)), mp.matrix(_coordinates_mp(Z, u))
        step = mp.sqrt(mp.eps)
        moved = power_mp(self._matrix(Z) + step / size * (p * q.T + q * p.T), self.gamma)
        still = mp.diag([self.outside] * k)
        for i in range(inner):
            for j in range(inner):
                still[i, j] = self.F[i, j]
        H = (moved - still) * (size / step)
        return [_combine_mp(Z, list(H * mp.matrix(_coordinates_mp(Z, a))), self.d) for a in self.window]


def block_ucb_mp(
    actions: Array,
    m: int,
    gamma: float,
    theta: Array,
    V_inv: Array | None,
    beta: float,
    optimism: str = "O3M",
    A0: Array | None = None,
    dps: int = 50,
) -> tuple[float, Array]:
    """Value and gradient with `dps` digits (half of them are right in the gradient), rounded to float64."""
    problem = {"theta": theta, "V_inv": V_inv, "beta": beta, "optimism": optimism}
    n, d = actions.shape
    with mp.workdps(dps):
        rows = _vectors_mp(actions)
        matrix = _vectors_mp(np.eye(d) if A0 is None else np.asarray(A0))
        windows = [_WindowMP(rows[j - m : j], rows[j], gamma, matrix) for j in range(m, n)]
        B = [window.apply(window.a) for window in windows]
        scale = max(window.norm * mp.norm(window.a) for window in windows)
        value, U, direct = _optimism_mp(B, rows[:m], problem, scale)
        grad = [list(row) for row in direct] + [w.apply(u) for w, u in zip(windows, U, strict=True)]
        for j, (window, u) in enumerate(zip(windows, U, strict=True)):
            for s, part in enumerate(window.backward(u)):
                grad[j + s] = [x + y for x, y in zip(grad[j + s], part, strict=True)]
        return float(value), np.array([[float(x) for x in row] for row in grad])


def block_value_mp(actions: list[Vector], problem: Problem) -> Any:
    """The value at the working precision, with d x d matrices throughout; `problem` as for `block_ucb`."""
    m, gamma, A0 = problem["m"], problem["gamma"], problem["A0"]
    n, d = len(actions), len(actions[0])
    B = []
    for j in range(m, n):
        X = mp.matrix(np.eye(d).tolist() if A0 is None else np.asarray(A0).tolist())
        for a in actions[j - m : j]:
            X += mp.matrix(a) * mp.matrix(a).T
        B.append(list(power_mp(X, gamma) * mp.matrix(actions[j])))
    return _optimism_mp(B, actions[:m], problem, mp.mpf(0))[0]


def differences_mp(problem: Problem, dps: int = 80) -> Array:
    """The gradient by central differences of `block_value_mp`, entry by entry: nothing but the definition."""
    with mp.workdps(dps):
        actions = _vectors_mp(problem["actions"])
        step = mp.mpf(10) ** (-dps // 3)
        grad = np.empty((len(actions), len(actions[0])))
        for j, row in enumerate(actions):
            for i, x in enumerate(row):
                row[i] = x + step
                above = block_value_mp(actions, problem)
                row[i] = x - step
                below = block_value_mp(actions, problem)
                row[i] = x
                grad[j, i] = float((above - below) / (2 * step))
        return grad


def differences(problem: Problem, step: float = 1e-7) -> Array:
    """The gradient by central differences of `block_value` in double precision."""
    actions = problem["actions"]
    rest = {key: value for key, value in problem.items() if key != "actions"}
    grad = np.empty(actions.shape)
    for index in np.ndindex(*actions.shape):
        shift = np.zeros(actions.shape)
        shift[index] = step
        grad[index] = (block_value(actions + shift, **rest) - block_value(actions - shift, **rest)) / (
            2.0 * step
        )
    return grad


# --- learners and the model ---------------------------------------------------------------------------


def ridge(lam: float, F: Array, counts: Array, totals: Array) -> tuple[Array, Array, Array, float]:
    """V, V^-1, theta and ln det V/det(lam I) of features (N, D) with their counts and sums of rewards."""
    D = F.shape[1]
    V = lam * np.eye(D) + (F.T * counts) @ F
    V_inv = np.linalg.inv(V)
    return V, V_inv, V_inv @ (totals @ F), float(np.linalg.slogdet(V)[1] - D * math.log(lam))


def ridge_mp(
    lam: float, F: Array, counts: Array, totals: Array, dps: int = 50
) -> tuple[Array, Array, Array, float]:
    """The same with `dps` digits, rounded to float64."""
    D = F.shape[1]
    with mp.workdps(dps):
        V, U = mp.mpf(lam) * mp.eye(D), mp.zeros(D, 1)
        for row, count, total in zip(F.tolist(), counts.tolist(), totals.tolist(), strict=True):
            b = mp.matrix(row)
            V += mp.mpf(count) * (b * b.T)
            U += mp.mpf(total) * b
        V_inv = V**-1
        theta = V_inv * U
        log_det = mp.log(mp.det(V)) - D * mp.log(mp.mpf(lam))

        def numbers(X: Any) -> Array:
            return np.array([[float(x) for x in row] for row in X.tolist()])

        return numbers(V), numbers(V_inv), numbers(theta)[:, 0], float(log_det)


def repeats(V: Array, F: Array, switch: float, most: int) -> int:
    """The smallest k with det(V + k F^T F) > (1 + switch) det V, at most `most`; 1 for switch = 0."""
    if switch == 0.0:
        return 1
    enough = np.linalg.slogdet(V)[1] + math.log1p(switch)
    G = F.T @ F
    return next((k for k in range(1, most) if np.linalg.slogdet(V + k * G)[1] > enough), most)


def linear_ucb(actions: Array, g: Array, W: Array, beta: float) -> Array:
    """<a, g> + beta ||a||_W of actions (..., d)."""
    squared = ((actions @ W) * actions).sum(axis=-1)
    return actions @ g + beta * np.sqrt(np.maximum(squared, 0.0))


def ball_bound(g: Array, W: Array, beta: float) -> float:
    """An upper bound on <a, g> + beta ||a||_W over the unit ball that is tight: Lagrange's dual.

    max ||g + H u||^2 over unit u, H^2 = beta^2 W, is the least nu + <g, (I + H (nu I - H^2)^-1 H) g> over nu
    above the largest h^2, a convex function of nu.
    """
    lam, Q = np.linalg.eigh(W)
    h2, c = beta**2 * np.maximum(lam, 0.0), Q.T @ g
    unit = max(h2.max(), float(np.linalg.norm(g)) ** 2)
    if unit == 0.0:
        return 0.0
    h2, c = h2 / unit, c / math.sqrt(unit)

    def dual(log_mu: float) -> float:
        nu_gap = math.exp(log_mu) + (h2.max() - h2)
        return float(math.exp(log_mu) + h2.max() + (c**2 * (1.0 + h2 / nu_gap)).sum())

    # Convex in mu = nu - max h^2, so with a single valley in its logarithm: by thirds.
    low, high = math.log(1e-40), math.log(4.0)
    for _ in range(110):
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (low, right) if dual(left) <= dual(right) else (left, high)
    return math.sqrt(unit * dual(low))
