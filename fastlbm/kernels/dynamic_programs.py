"""Dynamic programs over the last m arms of a finite set: owns the states and their transitions.

A state is the last m arms, the oldest the leading digit in base K: S = K^m states. Playing arm a leads from
s to (s K + a) mod S. X = A0 + sum of a a^T does not care about order, so that states with the same arms
share a row of step values, one of W: the value of arm a in state s is values[rank[s], a].
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ._jit import inline, kernel, kernel_norefcount
from ._types import Matrix, Rows, Vector
from .ties import reaches

Cube = NDArray[np.float64]
Table = NDArray[np.int32]
Indices = NDArray[np.int64]

#: Steps after which the values are shifted towards 0, so that a million of them add no rounding.
_SHIFT_EVERY = 64


@inline
def _next(s: int, a: int, K: int, S: int) -> int:
    """The state after arm a in state s."""
    return (s * K + a) % S


@inline
def _ways_on(s: int, rank: Table, K: int) -> tuple[int, int, int]:
    """The row of state s, and (to, one): arm a leads to the state to + one a. One remainder for all arms."""
    S = rank.shape[0]
    return rank[s], s * K % S, 1 if S > 1 else 0  # without memory every arm leads to the one state


@kernel
def fill_states(K: int, m: int, windows: Table, rank: Table) -> int:
    """Fills windows (W, m) with the distinct sorted windows and rank (S,) with the row of every state.

    W is the number of multisets, (K+m-1 choose m), and is returned.
    """
    digits = np.empty(m, dtype=np.int64)
    count = 0
    for s in range(rank.shape[0]):
        code = s
        for i in range(m - 1, -1, -1):
            digits[i] = code % K
            code //= K
        for i in range(1, m):
            x, j = digits[i], i
            while j > 0 and digits[j - 1] > x:
                digits[j] = digits[j - 1]
                j -= 1
            digits[j] = x
        code = 0
        for i in range(m):
            code = code * K + digits[i]
        # A sorted window has the smallest code of its permutations: the others come later.
        if code == s:
            for i in range(m):
                windows[count, i] = digits[i]
            rank[s] = count
            count += 1
        else:
            rank[s] = rank[code]
    return count


@kernel
def bellman(values: Cube, rank: Table, steps: int, V: Vector, policy: Table) -> float:
    """V_t(s) = max_a values_t(s, a) + V_{t+1}(s'), t = steps-1..0; V (S,) holds V_steps, then V_0 - shift.

    Returns the shift. values is (steps, W, K) or, the same at every step, (1, W, K). policy (steps, S), or
    (0, S) to do without, gets the first best arm.
    """
    K, S = values.shape[2], rank.shape[0]
    varying, keep = values.shape[0] > 1, policy.shape[0] > 0
    tail = max(S // K, 1)
    # Two indices: numba checks the sign of a flat one at every element (measured: half of the speed).
    ahead = np.empty((tail, K))
    flat = ahead.reshape(tail * K)
    total = 0.0
    for back in range(steps):
        t = steps - 1 - back
        row = t if varying else 0
        # A first state without a way on has -inf, which must not spread.
        if back % _SHIFT_EVERY == 0 and V[0] > -math.inf:
            shift = V[0]
            total += shift
            for s in range(S):
                V[s] -= shift
        for s in range(tail * K):
            # Without memory every arm leads to the one state.
            flat[s] = V[s] if S > 1 else V[0]
        for oldest in range(S // tail):
            for u in range(tail):
                s = oldest * tail + u
                at, arm = rank[s], 0
                best = values[row, at, 0] + ahead[u, 0]
                for a in range(1, K):
                    x = values[row, at, a] + ahead[u, a]
                    arm = a if x > best else arm
                    best = x if x > best else best
                V[s] = best
                if keep:
                    policy[t, s] = arm
    return total


@kernel_norefcount
def reach(
    values: Matrix, rank: Table, start: int, bias: Vector, slack: float, W: Rows, here: Table, back: Table
) -> tuple[int, int]:
    """The best values of n = back.shape[0] steps from `start`: of walks to every state that they reach.

    Returns how often a state was left and the number r of states reached: here[n % 2, :r], with their values
    in row n % 2 of W. W (2, S) is -inf before and must be made so again; back[t, s] is the state before s;
    values is (W, K), m >= 1. A state whose value so far plus bias(s) - bias(start) is below -slack is left
    out: where values(s, a) + bias(s') <= bias(s), no walk through it closes with -slack or more.
    """
    K, S = values.shape[1], rank.shape[0]
    W[0, start] = 0.0
    here[0, 0] = start
    reached, count = 1, 0
    for t in range(back.shape[0]):
        old = t % 2
        new = 1 - old
        active, reached = reached, 0
        for i in range(active):
            s = here[old, i]
            so_far = W[old, s]
            W[old, s] = -math.inf
            if so_far + bias[s] - bias[start] < -slack:
                continue
            count += 1
            at, to = rank[s], s * K % S
            for a in range(K):
                x, q = so_far + values[at, a], to + a
                if x > W[new, q]:
                    if W[new, q] == -math.inf:
                        here[new, reached] = q
                        reached += 1
                    W[new, q] = x
                    back[t, q] = s
    return count, reached


@kernel
def howard(
    values: Matrix, rank: Table, policy: Table, bias: Vector, rounding: float, limit: int
) -> tuple[int, float]:
    """A state on a cycle of maximum mean, by Howard's policy iteration for several chains; and a certificate.

    policy (S,) is where to begin and becomes the policy; bias (S,) likewise. With the mean c of the cycle
    the certificate is gap = max values(s, a) - c + bias(s') - bias(s): no cycle's mean exceeds c + gap.
    Gains smaller than `rounding` do not count; `limit` bounds the iterations.
    """
    K, S = values.shape[1], rank.shape[0]
    gain, seen, path = np.zeros(S), np.empty(S, dtype=np.int64), np.empty(S, dtype=np.int64)
    root, top = 0, -math.inf
    for iteration in range(limit):
        root, top = _evaluate_policy(values, rank, policy, gain, bias, seen, path)
        if iteration == limit - 1 or not _improve_policy(values, rank, policy, gain, bias, rounding):
            break
    gap = -math.inf
    for s in range(S):
        at, to, one = _ways_on(s, rank, K)
        for a in range(K):
            gap = max(gap, values[at, a] - top + bias[to + one * a] - bias[s])
    return root, gap


@inline
def _evaluate_policy(
    values: Matrix, rank: Table, policy: Table, gain: Vector, bias: Vector, seen: Indices, path: Indices
) -> tuple[int, float]:
    """Gain and bias of every state under the policy; returns a state of the best cycle and its mean."""
    K, S = values.shape[1], rank.shape[0]
    root, top = 0, -math.inf
    for s in range(S):
        seen[s] = -1
    for s in range(S):
        n, u = 0, s
        while seen[u] < 0:
            seen[u] = s
            path[n] = u
            n += 1
            u = _next(u, policy[u], K, S)
        closed = n > 0 and seen[u] == s
        if closed:
            # A new cycle through u, whose bias stays as it was: it is what makes the iteration end.
            total, length, v = 0.0, 0, u
            while length == 0 or v != u:
                total += values[rank[v], policy[v]]
                length += 1
                v = _next(v, policy[v], K, S)
            gain[u] = total / length
            if gain[u] > top:
                root, top = u, gain[u]
        for i in range(n - 1, -1, -1):
            v = path[i]
            if not closed or v != u:
                q = _next(v, policy[v], K, S)
                gain[v] = gain[q]
                bias[v] = values[rank[v], policy[v]] - gain[q] + bias[q]
    return root, top


@inline
def _improve_policy(
    values: Matrix, rank: Table, policy: Table, gain: Vector, bias: Vector, rounding: float
) -> bool:
    """The arms that lead to a larger gain or, for the same gain, bias; returns whether any changed."""
    K, S = values.shape[1], rank.shape[0]
    changed = False
    for s in range(S):
        arm, best = -1, gain[s] + rounding
        at, to, one = _ways_on(s, rank, K)
        for a in range(K):
            q = to + one * a
            if gain[q] > best:
                arm, best = a, gain[q]
        if arm < 0:
            best = bias[s] + rounding
            for a in range(K):
                q = to + one * a
                x = values[at, a] - gain[s] + bias[q]
                if reaches(gain[q], gain[s], rounding) and x > best:
                    arm, best = a, x
        if arm >= 0:
            policy[s] = arm
            changed = True
    return changed
