"""States and step values: owns the tables of the last m arms and the memory's workspaces.

A state is a code of m digits in base K, the oldest arm leading; a table of step values has one row for each
window whose memory matrix differs, and one column for each arm.
"""

from __future__ import annotations

import copy
import math

import numpy as np
from numpy.typing import NDArray

from ..._base.types import Array
from ...kernels.blocks import Work, compute_features, make_work
from ...kernels.dynamic_programs import bellman, fill_states, reach
from ...kernels.fading import PAPER, Variant, total_weight
from ...kernels.memory import make_memory
from ...kernels.optimism import O3M, OM_BLOCK, Belief, additive
from ...kernels.powers import OWN
from ...kernels.rewards import make_model_params
from ...kernels.ties import SUM_SHARE, margin, reaches
from ...model.memory_matrix import check_memory_matrix
from ..effort import spectrum_seconds
from ..plans import Index

Table = NDArray[np.int32]

#: Steps of dynamic programs spent on a tie.
_TIE_OPERATIONS = 2e7
#: Windows to solve where every step has its own arms.
WINDOWS = 2e7
#: Windows that are solved side by side.
LANES = 1024
#: Workspaces of different shapes that are kept.
_WORKS = 16


def digits(codes: Index, K: int, m: int) -> Index:
    """The m digits of each code in base K, the leading one first: (len(codes), m)."""
    digits: Index = codes[:, None] // places(K, m) % K
    return digits


def places(K: int, m: int) -> Index:
    """What a digit is worth, the leading one first."""
    return np.array([K**i for i in range(m - 1, -1, -1)], dtype=np.intp)


class States:
    """The K^m states of the last m arms. `distinct` merges those whose memory matrix is the same."""

    def __init__(self, K: int, m: int, distinct: bool = True) -> None:
        self.K, self.m, self.S = K, m, K**m
        self.windows: Table
        if distinct:
            self.windows = np.empty((math.comb(K + m - 1, m), m), dtype=np.int32)
            self.rank: Table = np.empty(self.S, dtype=np.int32)
            fill_states(K, m, self.windows, self.rank)
        else:
            self.windows = digits(np.arange(self.S), K, m).astype(np.int32)
            self.rank = np.arange(self.S, dtype=np.int32)

    def digits(self, state: int) -> Index:
        """The m arms of a state."""
        return digits(np.array([state]), self.K, self.m).ravel()

    def best_walk(self, values: Array, L: int, first: Array | None = None) -> tuple[Index, float, Array]:
        """The m+L arms with the largest sum of step values; that sum, and the best sum (S,) from every state.

        values is (L, W, K), or (1, W, K) for steps that are all alike; `first` (S,) is added for the first m
        arms.
        """
        policy = np.empty((L, self.S), dtype=np.int32)
        V = np.zeros(self.S)
        V += bellman(values, self.rank, L, V, policy)
        if first is not None:
            V += first
        state = int(V.argmax())
        total = float(V[state])
        indices = np.empty(self.m + L, dtype=np.intp)
        indices[: self.m] = self.digits(state)
        for t in range(L):
            indices[self.m + t] = policy[t, state]
            state = (state * self.K + int(policy[t, state])) % self.S
        return indices, total, V

    def collect(self, values: Array, states: Index | Table, arms: Index) -> Array:
        """Sums of step values of `arms` (steps,), or of (steps, len(states)), played from several states."""
        total = np.zeros(len(states))
        states = states.astype(np.intp)
        for arm in arms:
            total += values[self.rank[states], arm]
            states = (states * self.K + arm) % self.S
        return total

    def best_closed(self, values: Array, L: int, V: Array, top: float) -> Index | None:
        """Of the m+L arms whose sum is `top`, those that earn most when the first m follow the last m again.

        The start states that attain `top` come in the order of the most that any m steps to them earn; once
        that is reached no other start can do better. Ties beyond _TIE_OPERATIONS are not looked at.
        """
        rounding = margin(max(abs(top), float(np.abs(values).max())), SUM_SHARE)
        starts = np.flatnonzero(reaches(V, top, rounding))
        bound = np.full(self.S, math.inf)
        if len(starts) > 1:
            bound[:] = 0.0
            table = values[self.rank]
            for _ in range(self.m):
                bound = (bound[:, None] + table).reshape(self.K, self.S).max(axis=0)
            starts = starts[np.argsort(-bound[starts], kind="stable")]
        centred, flat = values - top / L, np.zeros(self.S)
        walks = Walks(self, L)
        best, indices = -math.inf, None
        for start in starts:
            if walks.operations > _TIE_OPERATIONS or reaches(best, bound[start], rounding):
                break
            ends, totals = walks.reach(centred, self.rank, int(start), flat, math.inf)
            ends = ends[reaches(totals, 0.0, rounding)]
            closing = self.collect(values, ends, self.digits(int(start)))
            if len(ends) > 0 and closing.max() > best:
                best = float(closing.max())
                way = walks.trace(int(ends[closing.argmax()]))
                indices = np.concatenate((self.digits(int(start)), way))
        return indices


class Walks:
    """Best walks of n steps from one state after the other; owns the tables of `reach`."""

    def __init__(self, states: States, n: int) -> None:
        self.K, self.row = states.K, n % 2
        self.operations = 0
        self._W = np.full((2, states.S), -math.inf)
        self._here = np.empty((2, states.S), dtype=np.int32)
        self._back = np.empty((n, states.S), dtype=np.int32)

    def reach(self, values: Array, rank: Table, start: int, bias: Array, slack: float) -> tuple[Table, Array]:
        """The states that n steps from `start` reach, and the best sums of step values on the way."""
        count, reached = reach(values, rank, start, bias, slack, self._W, self._here, self._back)
        self.operations += self.K * count
        ends = self._here[self.row, :reached].copy()
        totals = self._W[self.row, ends]
        self._W[self.row, ends] = -math.inf
        return ends, totals

    def trace(self, state: int) -> Index:
        """The arms of the best walk to a state that was reached last."""
        indices = np.empty(len(self._back), dtype=np.intp)
        for t in range(len(self._back) - 1, -1, -1):
            indices[t] = state % self.K
            state = int(self._back[t, state])
        return indices


class Model:
    """Arms (K, d), or one set of arms a step (n, K, d), under a memory.

    Computes features of windows that are given by indices; owns the workspaces.
    """

    def __init__(self, arms: Array, m: int, gamma: float, A0: Array | None, variant: Variant = PAPER) -> None:
        self.arms = np.asarray(arms, dtype=np.float64)
        self.K, self.d = self.arms.shape[-2:]
        self.m, self.gamma = m, gamma
        self.varying = self.arms.ndim == 3
        # Whether the order of the last m arms does not matter.
        self.unordered = not self.varying and (variant.decay == 1.0 or m < 2)
        self.variant = variant
        weight = total_weight(m, variant.decay)
        matrix, self.power_bound = check_memory_matrix(A0, self.d, weight, gamma, variant=variant)
        if variant.response == OWN:
            self.power_bound = math.inf  # nobody knows it
        self.memory, self.form = make_memory(matrix, m, gamma, variant)
        self.params = make_model_params(np.zeros(self.d), matrix, m, gamma, variant=variant)
        self._columns: Array | None = None
        self._works: dict[tuple[int, int], Work] = {}

    def from_step(self, start: int, n: int) -> Model:
        """The model of n steps from `start` on, with the same workspaces; the last set goes on behind it."""
        if not self.varying:
            return self
        model = copy.copy(self)
        model.arms = self.arms[np.minimum(start + np.arange(n), len(self.arms) - 1)]
        return model

    def at(self, t: int) -> Array:
        """The arms (K, d) of step t."""
        return self.arms[t] if self.varying else self.arms

    def sets(self, t: int) -> Array:
        """The arms (m, K, d) of the m steps before t."""
        if self.varying:
            return self.arms[t - self.m : t]
        return np.broadcast_to(self.arms, (self.m, self.K, self.d))

    def actions(self, positions: Index, indices: Index) -> Array:
        """The actions of arms that are given by their steps and indices."""
        return self.arms[positions, indices] if self.varying else self.arms[indices]

    def columns(self) -> Array:
        """The sets of arms as kernels search them, (1 or n, d, K)."""
        if self.varying:
            return np.ascontiguousarray(self.arms.transpose(0, 2, 1))
        if self._columns is None:
            self._columns = np.ascontiguousarray(self.arms.T)[None]
        return self._columns

    def work(self, columns: int, lanes: int) -> Work:
        """A workspace for `lanes` blocks in `columns` columns."""
        key = columns, lanes
        if key not in self._works:
            if len(self._works) >= _WORKS:
                self._works.clear()
            self._works[key] = make_work(self.memory, self.form, columns, lanes)
        return self._works[key]

    def apply(self, sets: Array, windows: Table, vectors: Array) -> Array:
        """X^gamma x of every window with every x, (d, count*k), window by window.

        windows (count, m) holds indices into sets (m, K, d), the x are vectors (k, d).
        """
        m, k = self.m, len(vectors)
        count = len(windows) * k
        lanes = min(LANES, count)
        first = m * lanes
        work = self.work(first + lanes, lanes)
        block, out = np.zeros((self.d, first + lanes)), np.empty((self.d, count))
        columns = np.ascontiguousarray(vectors.T)
        for begin in range(0, count, lanes):
            n = min(lanes, count - begin)
            which, vector = np.divmod(np.arange(begin, begin + n), k)
            for s in range(m):
                block[:, s * lanes : s * lanes + n] = sets[s][windows[which, s]].T
            block[:, first : first + n] = columns[:, vector]
            compute_features(self.memory, self.form, block, lanes, work)
            out[:, begin : begin + n] = work.B[:, first : first + n]
        return out

    def rewards(self, sets: Array, windows: Table, theta: Array, arms: Array) -> Array:
        """<X^gamma a, theta> (count, K) of every window with every arm: X^gamma theta serves all arms."""
        # Not by BLAS: its threads wait for each other when the machine is busy.
        products: Array = np.einsum("iw,ki->wk", self.apply(sets, windows, theta[None]), arms, order="C")
        return products

    def fits(self, L: int, belief: Belief, budget: int, required: bool) -> bool:
        """Whether the tables for L steps fit; if they must, raise `ValueError` where they do not."""
        K, m, d = self.K, self.m, self.d
        S = K**m
        pairs = K * (math.comb(K + m - 1, m) if self.unordered else S)
        joint = belief.kind != O3M
        rows = L if self.varying or belief.kind == OM_BLOCK else 1
        kept = (L if self.varying else 1) * d if joint else 0
        bonus = 2 * d + 2 if belief.beta > 0.0 else 0
        need = 8 * pairs * (rows + 1 + kept + bonus) + S * (8 * L + 16 * K + 24 * m + 56)
        if need <= budget and S < 2**31:
            windows = (S if belief.beta == 0.0 and not joint else S * K) * L
            if required or not self.varying or windows <= WINDOWS:
                return True
        if required:
            raise self.refusal(S, need, budget)
        return False

    def is_quick(self, L: int, belief: Belief) -> bool:
        """Whether a dynamic program of L steps takes no longer than a search, about."""
        K, m, d = self.K, self.m, self.d
        S = K**m
        ordered = S * L if self.varying else S
        pairs = K * (math.comb(K + m - 1, m) if self.unordered else ordered)
        windows = pairs if belief.beta > 0.0 or belief.kind != O3M else pairs // K
        # Measured; it has to be less than ten thousand spectra.
        window = 70e-9 * (1.0 + d * m / 6.0)
        return bool(2.2e-9 * S * K * L + windows * window <= 7e3 * spectrum_seconds(d))

    def refusal(self, S: int, need: int, budget: int) -> ValueError:
        """What to raise when tables of S states need too many bytes."""
        return ValueError(
            f"actions must have few enough arms for exact tables in budget={budget} bytes, "
            f"got K={self.K} arms with m={self.m}: {S} states take {need} bytes"
        )


class Tables:
    """The step values of every window and arm; keeps the features where all steps are alike."""

    def __init__(self, model: Model, states: States, budget: int) -> None:
        self.model, self.states = model, states
        self._most = 0 if model.varying else budget // 2
        self._features: Array | None = None

    def features(self, t: int) -> Array:
        """The features (d, W K) of every window and arm of step t; kept if they take half of the budget."""
        if self._features is not None:
            return self._features
        B = self.model.apply(self.model.sets(t), self.states.windows, self.model.at(t))
        if B.nbytes <= self._most:
            self._features = B
        return B

    def values(self, t: int, theta: Array, V_inv: Array, beta: float) -> Array:
        """The UCB (W, K) of every window and arm of step t: <b, theta> + beta ||b||."""
        if beta == 0.0:
            return self.rewards(t, theta)
        return ucb(self.features(t), theta, V_inv, beta).reshape(-1, self.model.K)

    def rewards(self, t: int, theta: Array) -> Array:
        """The reward (W, K) of every window and arm of step t."""
        return self.model.rewards(self.model.sets(t), self.states.windows, theta, self.model.at(t))


def ucb(B: Array, theta: Array, V_inv: Array, beta: float) -> Array:
    """<b, theta> + beta ||b|| of every column of B (d, N)."""
    N = B.shape[1]
    values = np.empty(N)
    additive(theta, V_inv, beta, 0, N, B, np.zeros_like(B), np.zeros((2, N)), values)
    return values
