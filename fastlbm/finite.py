"""Planning over finite sets of arms: owns the tables of step values and which method serves a problem;
Section 3.1 of the paper for arms (K, d), and for one set of arms a step (n, K, d) its Remark 1.

A reward depends on m+1 consecutive arms. Whatever is a sum of rewards is therefore planned exactly by
dynamic programming over the last m arms, K^m states; what is not is planned by a sequence of such sums.
Arguments come checked; theta, V_inv and A0 as for `block_ucb`, and `A0=None` is the identity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from . import _validate
from ._validate import Array, Seed
from ._value import writable
from .kernels.blocks import Work, features, make_work
from .kernels.dynamic import bellman, fill_states, howard, reach
from .kernels.memory import make_memory
from .kernels.optimism import O3M, OM, OM_BLOCK, Belief, additive, joint

Index = NDArray[np.intp]
Table = NDArray[np.int32]

#: Bytes that tables may take.
BUDGET = 2**30
#: Values that differ by less, relative to their size, are equal.
TIE = 1e-12
#: Steps of dynamic programs spent on a tie.
_TIE_OPERATIONS = 2e7
#: Steps of dynamic programs spent on a cycle of given length, some seconds.
_CYCLE_OPERATIONS = 5e8
#: Of these, what is spent before a search for a good cycle.
_EASY_CYCLE = 1e8
#: The same for a horizon, about ten seconds; and windows to solve where every step has its own arms.
_HORIZON_OPERATIONS = 1e10
_WINDOWS = 2e7
#: Windows that are solved side by side.
_LANES = 1024
#: Step values of contextual sets that are kept at a time (32 MB).
_CHUNK = 2**22
#: Actions of the blocks that are valued side by side.
_COLUMNS = 2**14
#: Windows that a beam search may solve in all, which decides its width.
_BEAM_WINDOWS = 2e6
#: Directions that the search for an OM plan begins with: along the longest axes, and of random blocks.
_AXES, _RANDOM = 8, 8
#: Products that a sweep over a block may take where dynamic programs do most of the work, some milliseconds.
_SWEEP_COST = 5e6
#: Size up to which spectra are taken: LAPACK's threads get in the way of others (measured: seconds at 300).
_SMALL = 64
#: Windows that the search for a cycle may solve, about, which decides how often it begins again.
_CYCLE_WINDOWS = 2e6
#: Iterations of Howard's algorithm, which rarely takes twenty.
_ITERATIONS = 1000


class FinitePlan(NamedTuple):
    """A block of arms; no block's value is above `upper`."""

    indices: Index  # (m+L,)
    value: float
    upper: float
    exact: bool
    evaluations: int  # values of blocks computed; a dynamic program counts as one


class FiniteCycle(NamedTuple):
    """Arms played over and over, and their average reward."""

    indices: Index
    average: float
    exact: bool


class FiniteOptimum(NamedTuple):
    """The largest total reward of a horizon and, where asked for, arms that collect it."""

    value: float
    indices: Index | None


def plan_finite(
    arms: Array,
    *,
    m: int,
    gamma: float,
    L: int,
    theta: Array,
    V_inv: Array | None = None,
    beta: float = 0.0,
    kind: int = O3M,
    A0: Array | None = None,
    budget: int = BUDGET,
    require_exact: bool = False,
    seed: Seed = 0,
) -> FinitePlan:
    """The block of m+L arms with the largest UCB; arms (K, d), or (m+L, K, d) for one set a step.

    O3M, and every kind with beta = 0, is exact. OM and OM-Block are the maximum of <b, theta'> over blocks
    and over the ellipsoid of theta' around theta: each is solved in turn for the other, from many theta'.
    Of blocks with the same value, O3M on (K, d) takes the one whose first m arms earn most after the last m,
    as in a cycle; exactly so unless ties are too many.

    Tables beyond `budget` bytes raise a `ValueError` with `require_exact`, else a beam search plans.

    >>> plan_finite(np.eye(2), m=1, gamma=-1.0, L=3, theta=np.array([0.6, 0.8])).indices
    array([0, 1, 0, 1])
    """
    model = _Model(arms, m, gamma, A0)
    size = len(theta)
    matrix = np.eye(size) if V_inv is None else np.array(V_inv, dtype=np.float64, order="C")
    if beta == 0.0 and kind == OM:
        kind = O3M
    belief = Belief(np.array(theta, dtype=np.float64), matrix, float(beta), kind)
    objective = _Objective(model, belief, m + L)
    with np.errstate(all="ignore"):
        if not model.fits(L, belief, budget, require_exact):
            return _plan_by_search(model, objective, L, _validate.generator("seed", seed))
        if kind == O3M:
            return _plan_additive(model, objective, L)
        return _plan_joint(model, objective, L, _validate.generator("seed", seed))


def best_cycle_finite(
    arms: Array,
    *,
    m: int,
    gamma: float,
    theta: Array,
    period: int,
    A0: Array | None = None,
    budget: int = BUDGET,
    seed: Seed = 0,
) -> FiniteCycle:
    """The cycle of `period` arms with the largest average reward, windows wrapping around; arms (K, d).

    A closed walk of `period` states: exact unless too many first states come into question.

    >>> best_cycle_finite(np.eye(2), m=1, gamma=-1.0, theta=np.array([0.6, 0.8]), period=2)
    FiniteCycle(indices=array([1, 0]), average=0.7, exact=True)
    """
    model = _Model(arms, m, gamma, A0)
    belief = Belief(np.array(theta, dtype=np.float64), np.eye(model.d), 0.0, O3M)
    objective = _Objective(model, belief, period, cyclic=True)
    rng = _validate.generator("seed", seed)
    with np.errstate(all="ignore"):
        if not model.fits(period, belief, budget, False):
            indices = _search_cycle(objective, rng, np.empty((0, period), dtype=np.intp))
            return FiniteCycle(indices, objective.total(indices) / period, False)
        states = _States(model.K, m)
        values = model.values(states, m, belief.theta, belief.V_inv, 0.0)
        indices, exact = _closed_walk(states, values, period, None, min(_EASY_CYCLE, _CYCLE_OPERATIONS))
        if not exact:
            # What a search finds prunes most of the work.
            indices = _search_cycle(objective, rng, indices[None])
            indices, exact = _closed_walk(states, values, period, indices, _CYCLE_OPERATIONS)
        return FiniteCycle(indices, objective.total(indices) / period, exact)


def long_run_optimum(
    arms: Array, *, m: int, gamma: float, theta: Array, A0: Array | None = None, budget: int = BUDGET
) -> FiniteCycle:
    """The largest long-run average reward: a maximum mean cycle over the K^m states; arms (K, d).

    >>> long_run_optimum(np.eye(2), m=1, gamma=-1.0, theta=np.array([0.6, 0.8])).average
    0.7
    """
    model = _Model(arms, m, gamma, A0)
    belief = Belief(np.array(theta, dtype=np.float64), np.eye(model.d), 0.0, O3M)
    with np.errstate(all="ignore"):
        model.fits(1, belief, budget, True)
        states = _States(model.K, m)
        values = model.values(states, m, belief.theta, belief.V_inv, 0.0)
        cycle = _maximum_mean_cycle(states, values)
    return FiniteCycle(cycle.indices, cycle.mean, cycle.exact)


def finite_horizon_optimum(
    arms: Array,
    T: int,
    *,
    m: int,
    gamma: float,
    theta: Array,
    A0: Array | None = None,
    budget: int = BUDGET,
    plan: bool = False,
) -> FiniteOptimum:
    """OPT: the largest total reward of T steps from an empty history; arms (K, d) or (T, K, d).

    `plan` asks for the arms as well, which takes a table of T K^m entries. Work or tables beyond what is
    feasible raise a `ValueError`.

    >>> finite_horizon_optimum(np.eye(2), 3, m=1, gamma=-1.0, theta=np.array([0.6, 0.8]), plan=True)
    FiniteOptimum(value=2.2, indices=array([1, 0, 1]))
    """
    model = _Model(arms, m, gamma, A0)
    K, theta = model.K, np.array(theta, dtype=np.float64)
    early = min(m, T)
    late = T - early
    S = K**early
    each, most = (S, _WINDOWS) if model.varying else (S * K, _HORIZON_OPERATIONS)
    if late * each > most:
        raise ValueError(
            f"T must be at most {m + int(most) // each} for the optimum of K={K} arms with m={m}, got {T}"
        )
    need = S * (12 * m + 32 + (4 * late if plan else 0))
    if need > budget:
        raise model.refusal(S, need, budget)
    belief = Belief(theta, np.eye(model.d), 0.0, O3M)
    with np.errstate(all="ignore"):
        V, shift = np.zeros(S), 0.0
        policy = np.empty((late if plan else 0, S), dtype=np.int32)
        if late > 0:
            model.fits(1, belief, budget, True)
            states = _States(K, m, distinct=not model.varying)
            for begin, values in _backward_values(model, states, theta, m, T):
                steps = len(values) if model.varying else late
                part = policy[begin - m : begin - m + steps] if plan else policy
                shift += bellman(values, states.rank, steps, V, part)
        # The first m steps, with zero actions before them: step t has K^t states.
        first: list[Index] = []
        for t in range(early - 1, -1, -1):
            windows = np.zeros((K**t, m), dtype=np.int32)
            windows[:, m - t :] = _digits(np.arange(K**t), K, t)
            sets = np.zeros((m, K, model.d))
            for i in range(t):
                sets[m - t + i] = model.at(i)
            rewards = model.rewards(sets, windows, theta, model.at(t))
            rewards += V.reshape(-1, K)
            first.append(rewards.argmax(axis=1))
            V = rewards.max(axis=1)
    value = float(V[0] + shift)
    if not plan:
        return FiniteOptimum(value, None)
    indices = np.empty(T, dtype=np.intp)
    state = 0
    for t in range(T):
        indices[t] = first[early - 1 - t][state] if t < early else policy[t - early, state]
        state = state * K + int(indices[t])
        if t >= early:
            state %= S
    return FiniteOptimum(value, indices)


def _backward_values(
    model: _Model, states: _States, theta: Array, first: int, T: int
) -> Iterator[tuple[int, Array]]:
    """Step values of the steps first..T-1, the last ones first, as (first step, values (steps, W, K))."""
    if not model.varying:
        yield first, model.values(states, first, theta, np.eye(model.d), 0.0)[None]
        return
    chunk = max(1, _CHUNK // (states.S * model.K))
    for end in range(T, first, -chunk):
        begin = max(first, end - chunk)
        yield (
            begin,
            np.array([model.values(states, t, theta, np.eye(model.d), 0.0) for t in range(begin, end)]),
        )


# --- states and step values ---------------------------------------------------------------------------


def _digits(codes: Index, K: int, m: int) -> Index:
    """The m digits of each code in base K, the leading one first: (len(codes), m)."""
    digits: Index = codes[:, None] // _places(K, m) % K
    return digits


def _places(K: int, m: int) -> Index:
    """What a digit is worth, the leading one first."""
    return np.array([K**i for i in range(m - 1, -1, -1)], dtype=np.intp)


class _States:
    """The K^m states of the last m arms. `distinct` merges those whose memory matrix is the same."""

    def __init__(self, K: int, m: int, distinct: bool = True) -> None:
        self.K, self.m, self.S = K, m, K**m
        self.windows: Table
        if distinct:
            self.windows = np.empty((math.comb(K + m - 1, m), m), dtype=np.int32)
            self.rank: Table = np.empty(self.S, dtype=np.int32)
            fill_states(K, m, self.windows, self.rank)
        else:
            self.windows = _digits(np.arange(self.S), K, m).astype(np.int32)
            self.rank = np.arange(self.S, dtype=np.int32)

    def digits(self, state: int) -> Index:
        """The m arms of a state."""
        return _digits(np.array([state]), self.K, self.m).ravel()

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
        tolerance = TIE * max(abs(top), float(np.abs(values).max()))
        starts = np.flatnonzero(top - tolerance <= V)
        bound = np.full(self.S, math.inf)
        if len(starts) > 1:
            bound[:] = 0.0
            table = values[self.rank]
            for _ in range(self.m):
                bound = (bound[:, None] + table).reshape(self.K, self.S).max(axis=0)
            starts = starts[np.argsort(-bound[starts], kind="stable")]
        centred, flat = values - top / L, np.zeros(self.S)
        walks = _Walks(self, L)
        best, indices = -math.inf, None
        for start in starts:
            if walks.operations > _TIE_OPERATIONS or best >= bound[start] - tolerance:
                break
            ends, totals = walks.reach(centred, self.rank, int(start), flat, math.inf)
            ends = ends[-tolerance <= totals]
            closing = self.collect(values, ends, self.digits(int(start)))
            if len(ends) > 0 and closing.max() > best:
                best = float(closing.max())
                way = walks.trace(int(ends[closing.argmax()]))
                indices = np.concatenate((self.digits(int(start)), way))
        return indices


class _Walks:
    """Best walks of n steps from one state after the other; owns the tables of `reach`."""

    def __init__(self, states: _States, n: int) -> None:
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


class _Model:
    """Arms under a memory: computes features of windows that are given by indices; owns the workspaces."""

    def __init__(self, arms: Array, m: int, gamma: float, A0: Array | None) -> None:
        self.arms = np.asarray(arms, dtype=np.float64)
        self.K, self.d = self.arms.shape[-2:]
        self.m = m
        self.varying = self.arms.ndim == 3
        matrix, self.power_bound = _validate.memory_matrix(A0, self.d, m, gamma)
        self.memory, self.form = make_memory(writable(matrix), m, gamma)
        self._works: dict[tuple[int, int], Work] = {}

    def at(self, t: int) -> Array:
        """The arms (K, d) of step t."""
        return self.arms[t] if self.varying else self.arms

    def sets(self, t: int) -> Array:
        """The arms (m, K, d) of the m steps before t."""
        if self.varying:
            return self.arms[t - self.m : t]
        return np.broadcast_to(self.arms, (self.m, self.K, self.d))

    def work(self, columns: int, lanes: int) -> Work:
        """A workspace for `lanes` blocks in `columns` columns."""
        key = columns, lanes
        if key not in self._works:
            self._works[key] = make_work(self.memory, self.form, columns, lanes)
        return self._works[key]

    def apply(self, sets: Array, windows: Table, vectors: Array) -> Array:
        """X^gamma x of every window with every x, (d, count*k), window by window.

        windows (count, m) holds indices into sets (m, K, d), the x are vectors (k, d).
        """
        m, k = self.m, len(vectors)
        count = len(windows) * k
        lanes = min(_LANES, count)
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
            features(self.memory, self.form, block, lanes, work)
            out[:, begin : begin + n] = work.B[:, first : first + n]
        return out

    def features(self, states: _States, t: int) -> Array:
        """The features (d, W K) of every window and arm of step t."""
        return self.apply(self.sets(t), states.windows, self.at(t))

    def rewards(self, sets: Array, windows: Table, theta: Array, arms: Array) -> Array:
        """<X^gamma a, theta> (count, K) of every window with every arm: X^gamma theta serves all arms."""
        # Not by BLAS: its threads wait for each other when the machine is busy.
        products: Array = np.einsum("iw,ki->wk", self.apply(sets, windows, theta[None]), arms, order="C")
        return products

    def values(self, states: _States, t: int, theta: Array, V_inv: Array, beta: float) -> Array:
        """The UCB (W, K) of every window and arm of step t: <b, theta> + beta ||b||."""
        if beta == 0.0:
            return self.rewards(self.sets(t), states.windows, theta, self.at(t))
        return _ucb(self.features(states, t), theta, V_inv, beta).reshape(-1, self.K)

    def fits(self, L: int, belief: Belief, budget: int, required: bool) -> bool:
        """Whether the tables for L steps fit; if they must, raise `ValueError` where they do not."""
        K, m, d = self.K, self.m, self.d
        S = K**m
        pairs = K * (S if self.varying else math.comb(K + m - 1, m))
        joint = belief.kind != O3M
        rows = L if self.varying or belief.kind == OM_BLOCK else 1
        kept = (L if self.varying else 1) * d if joint else 0
        bonus = 2 * d + 2 if belief.beta > 0.0 else 0
        need = 8 * pairs * (rows + 1 + kept + bonus) + S * (8 * L + 16 * K + 24 * m + 56)
        if need <= budget and S < 2**31:
            windows = (S if belief.beta == 0.0 and not joint else S * K) * L
            if required or not self.varying or windows <= _WINDOWS:
                return True
        if required:
            raise self.refusal(S, need, budget)
        return False

    def refusal(self, S: int, need: int, budget: int) -> ValueError:
        """What to raise when tables of S states need too many bytes."""
        return ValueError(
            f"actions must have few enough arms for exact tables in budget={budget} bytes, "
            f"got K={self.K} arms with m={self.m}: {S} states take {need} bytes"
        )


def _ucb(B: Array, theta: Array, V_inv: Array, beta: float) -> Array:
    """<b, theta> + beta ||b|| of every column of B (d, N)."""
    N = B.shape[1]
    values = np.empty(N)
    additive(theta, V_inv, beta, 0, N, B, np.zeros_like(B), np.zeros((2, N)), values)
    return values


class _Objective:
    """Values of blocks, or of cycles, given by their arms; counts them."""

    def __init__(self, model: _Model, belief: Belief, n: int, cyclic: bool = False) -> None:
        self.model, self.belief, self.n, self.cyclic = model, belief, n, cyclic
        self.evaluations = 0
        self.everything = np.arange(-model.m if cyclic else 0, n) % n

    def evaluate(self, positions: Index, indices: Index) -> tuple[Array, Array]:
        """Values (lanes,) of blocks and their derivative with respect to the features (d, steps*lanes).

        indices (steps, lanes) are the arms at `positions` (steps,) of the block; all but the first m of them
        are valued.
        """
        model, (steps, lanes) = self.model, indices.shape
        actions = model.arms[positions[:, None], indices] if model.varying else model.arms[indices]
        block = np.ascontiguousarray(actions.transpose(2, 0, 1)).reshape(model.d, steps * lanes)
        work = model.work(steps * lanes, lanes)
        values = np.empty(lanes)
        features(model.memory, model.form, block, lanes, work)
        belief = self.belief
        if belief.kind == O3M:
            additive(
                belief.theta, belief.V_inv, belief.beta, model.m, lanes, work.B, work.U, work.scratch, values
            )
        else:
            joint(belief, model.m, lanes, block, work.B, work.U, values)
        self.evaluations += lanes
        return values, work.U

    def values(self, positions: Index, indices: Index) -> Array:
        """The values of `evaluate`, some lanes at a time."""
        lanes = max(1, _COLUMNS // len(positions))
        parts = [indices[:, i : i + lanes] for i in range(0, indices.shape[1], lanes)]
        return np.concatenate([self.evaluate(positions, part)[0] for part in parts])

    def total(self, indices: Index) -> float:
        """The value of one block (n,), or the sum of rewards of one cycle (n,)."""
        return float(self.evaluate(self.everything, indices[self.everything, None])[0][0])

    def gradient(self, indices: Index) -> tuple[float, Array]:
        """The value of one block (m+L,), OM or OM-Block, and the theta' (1 or m+L, d) that attains it."""
        values, U = self.evaluate(self.everything, indices[:, None])
        m = self.model.m
        return float(values[0]), (U if self.belief.kind == OM_BLOCK else U[:, m : m + 1]).T.copy()

    def size(self, indices: Index) -> float:
        """The length |b| of the vector b in R^{d(m+L)} of one block (m+L,), see OM-Block."""
        model, m = self.model, self.model.m
        self.evaluate(self.everything, indices[:, None])
        B = model.work(self.n, 1).B.copy()
        for t in range(m):
            B[:, t] = model.at(t)[indices[t]]
        return float(np.linalg.norm(B))

    def _touched(self, j: int) -> Index:
        """The positions that an evaluation needs to see what the arm at position j changes."""
        m, n = self.model.m, self.n
        if self.belief.kind != O3M:
            return self.everything
        if self.cyclic:
            return np.arange(j - m, j + min(m, n - 1) + 1) % n
        return np.arange(max(0, j - m), min(n, j + m + 1))

    def sweep_cost(self) -> float:
        """About how many products one sweep of `improve` takes."""
        size = len(self.belief.theta)
        return float(self.n * self.model.K) * (self.n * 64.0 + size * size)

    def improve(self, indices: Index, sweeps: int = 20) -> Index:
        """Coordinate search: the best arm at one position after the other, until no change pays."""
        indices = indices.copy()
        K = self.model.K
        for _ in range(sweeps):
            changed = False
            for j in range(self.n):
                positions = self._touched(j)
                candidates = np.repeat(indices[positions, None], K, axis=1)
                candidates[positions == j] = np.arange(K)
                values = self.values(positions, candidates)
                best = int(values.argmax())
                now = float(values[indices[j]])
                if values[best] > now + TIE * max(abs(now), float(np.abs(values).max())):
                    indices[j], changed = best, True
            if not changed:
                break
        return indices


# --- blocks -------------------------------------------------------------------------------------------


def _plan_additive(model: _Model, objective: _Objective, L: int) -> FinitePlan:
    """One dynamic program."""
    m, (theta, V_inv, beta, _) = model.m, objective.belief
    states = _States(model.K, m, distinct=not model.varying)
    steps = range(m, m + L) if model.varying else range(m, m + 1)
    values = np.array([model.values(states, t, theta, V_inv, beta) for t in steps])
    indices, upper, V = states.best_walk(values, L)
    if m > 0 and not model.varying:
        closed = states.best_closed(values[0], L, V, upper)
        indices = indices if closed is None else closed
    value = objective.total(indices)
    return FinitePlan(indices, value, max(value, upper), True, objective.evaluations)


def _plan_joint(model: _Model, objective: _Objective, L: int, rng: np.random.Generator) -> FinitePlan:
    """OM and OM-Block: the best block for theta', the best theta' for the block, and so on."""
    belief = objective.belief
    linear = _Linear(model, belief, L)
    indices, upper = linear.additive_plan()
    cheap = objective.sweep_cost() <= _SWEEP_COST

    def climb(indices: Index, polish: bool) -> tuple[Index, float, Array]:
        value, direction = objective.gradient(indices)
        while True:
            after = linear.plan(direction)
            higher, turned = objective.gradient(after)
            enough = value + TIE * abs(value)
            if polish and not higher > enough:
                after = objective.improve(indices)
                higher, turned = objective.gradient(after)
            if not higher > enough:
                return indices, value, direction
            indices, value, direction = after, higher, turned

    # The ellipsoid of OM is small and its starts are many; OM-Block's has d(m+L) dimensions.
    polish = cheap and belief.kind == OM_BLOCK
    best, value, direction = climb(indices, polish)
    seen = {indices.tobytes(), best.tobytes()}
    for start in _directions(objective, rng):
        if value >= upper - TIE * abs(upper):
            break
        indices = linear.plan(start)
        if indices.tobytes() not in seen:
            seen.add(indices.tobytes())
            indices, higher, turned = climb(indices, polish)
            seen.add(indices.tobytes())
            if higher > value:
                best, value, direction = indices, higher, turned
    if cheap and not polish:
        best, value, direction = climb(best, True)
    closed = linear.closed_plan(direction)
    if closed is not None:
        higher, _ = objective.gradient(closed)
        if higher >= value - TIE * abs(value):
            best, value = closed, higher
    size = objective.size(best)
    if belief.kind == OM_BLOCK and size > 0.0:
        upper = min(upper, linear.quadratic_bound(size))
    exact = value >= upper - TIE * abs(upper)
    return FinitePlan(best, value, max(value, upper), exact, objective.evaluations)


def _directions(objective: _Objective, rng: np.random.Generator) -> Iterator[Array]:
    """theta' to begin with, as parts (1 or m+L, d): the centre, the ends of axes, those of random blocks."""
    theta, V_inv, beta, _ = objective.belief
    shape = -1, objective.model.d
    yield theta.reshape(shape)
    if beta > 0.0:
        if len(theta) <= _SMALL:
            spectrum, Q = np.linalg.eigh(V_inv)
            axes = Q * (beta * np.sqrt(np.maximum(spectrum, 0.0)))
            for axis in axes.T[::-1][:_AXES]:
                yield (theta + axis).reshape(shape)
                yield (theta - axis).reshape(shape)
        for _ in range(_RANDOM):
            yield objective.gradient(rng.integers(objective.model.K, size=objective.n))[1]


def _products(parts: Array, B: Array) -> Array:
    """<part, b> (steps, N) of parts (steps, d) and features (steps, d, N); one step stands for all."""
    products: Array
    if len(B) == 1:
        products = np.einsum("ti,in->tn", parts, B[0], order="C")
    else:
        products = np.einsum("ti,tin->tn", np.broadcast_to(parts, (len(B), len(B[0]))), B, order="C")
    return products


def _largest_eigenvalue(matrix: Array) -> float:
    """The largest eigenvalue of a symmetric matrix, or for a large matrix a bound of it."""
    if len(matrix) <= _SMALL:
        return float(np.linalg.eigvalsh(matrix)[-1])
    return float(np.abs(matrix).sum(axis=1).max())


class _Linear:
    """Exact plans of <b, theta'> for any theta', from the features of every window and arm.

    theta' comes in parts: one for all steps (OM), or one for each of the m+L steps (OM-Block), of which the
    first m belong to the actions themselves.
    """

    def __init__(self, model: _Model, belief: Belief, L: int) -> None:
        m = model.m
        self.belief, self.L = belief, L
        self.states = _States(model.K, m, distinct=not model.varying)
        steps = range(m, m + L) if model.varying else range(m, m + 1)
        self.B = np.array([model.features(self.states, t) for t in steps])
        self.first = [np.ascontiguousarray(model.at(t).T) for t in range(m if belief.kind == OM_BLOCK else 0)]
        self.shape = -1, len(self.states.windows), model.K
        self.closes = not model.varying and belief.kind == OM and m > 0

    def _first_values(self, terms: Iterable[Array]) -> Array:
        """Sums (S,) of what the arms of a state add, one term (K,) for each of them; no terms add 0."""
        total = np.zeros(1)
        for term in terms:
            total = (total[:, None] + term).ravel()
        return total if len(total) == self.states.S else np.zeros(self.states.S)

    def plan(self, direction: Array) -> Index:
        """The best block for theta' = direction (1 or m+L, d)."""
        values = _products(direction[-self.L :], self.B).reshape(self.shape)
        first = self._first_values(part @ arms for part, arms in zip(direction, self.first, strict=False))
        return self.states.best_walk(values, self.L, first)[0]

    def closed_plan(self, direction: Array) -> Index | None:
        """Of the best blocks for theta' the one that closes best as a cycle; None where that is undefined."""
        if not self.closes:
            return None
        values = _products(direction, self.B).reshape(self.shape)
        _, top, V = self.states.best_walk(values, self.L)
        return self.states.best_closed(values[0], self.L, V, top)

    def additive_plan(self) -> tuple[Index, float]:
        """The best block if every part had a bonus of its own, and its value, which bounds all values.

        ||sum of parts|| <= sum of ||part||, the reason why O3M's bound is above OM's.
        """
        theta, V_inv, beta, _ = self.belief
        d, m = self.B.shape[1], len(self.first)
        parts = [
            (theta[i : i + d], np.ascontiguousarray(V_inv[i : i + d, i : i + d]), beta)
            for i in range(0, len(theta), d)
        ]
        steps = max(len(parts) - m, len(self.B))
        values = np.array([_ucb(self.B[j % len(self.B)], *parts[(m + j) % len(parts)]) for j in range(steps)])
        first = self._first_values(_ucb(arms, *parts[i]) for i, arms in enumerate(self.first))
        indices, upper, _ = self.states.best_walk(values.reshape(self.shape), self.L, first)
        return indices, upper

    def quadratic_bound(self, size: float) -> float:
        """A bound of all values of OM-Block, good if the best b is about as long as `size` > 0.

        beta ||b|| <= beta sqrt(lambda) |b| <= beta sqrt(lambda) (size + |b|^2/size)/2 with the largest
        eigenvalue lambda of V_inv, or a bound of it, and |b|^2 is a sum over the parts.
        """
        theta, V_inv, beta, _ = self.belief
        scale = 0.5 * beta * math.sqrt(_largest_eigenvalue(V_inv))
        parts = theta.reshape(len(self.first) + self.L, -1)
        weight = scale / size
        values = _products(parts[-self.L :], self.B) + weight * np.square(self.B).sum(axis=1)
        first = self._first_values(
            part @ arms + weight * np.square(arms).sum(axis=0)
            for part, arms in zip(parts, self.first, strict=False)
        )
        return self.states.best_walk(values.reshape(self.shape), self.L, first)[1] + scale * size


# --- without tables -----------------------------------------------------------------------------------


def _plan_by_search(model: _Model, objective: _Objective, L: int, rng: np.random.Generator) -> FinitePlan:
    """A beam search, then a coordinate search; both again from the neighbourhood of what they found."""
    m, K = model.m, model.K
    constant = np.repeat(np.arange(min(K, _LANES))[:, None], m, axis=1)
    starts = np.concatenate((constant, rng.integers(K, size=(_LANES // 4, m))))
    best, value = np.zeros(m + L, dtype=np.intp), -math.inf
    for _ in range(2):
        indices = objective.improve(_beam(model, objective.belief, L, starts))
        higher = objective.total(indices)
        if higher > value:
            best, value = indices, higher
        near = np.repeat(best[None, :m], m * K, axis=0)
        near[np.arange(m * K), np.repeat(np.arange(m), K)] = np.tile(np.arange(K), m)
        starts = np.concatenate((best[None, :m], near))
        if m > 0 and not model.varying:
            # In a good block every window is a good beginning.
            starts = np.concatenate((sliding_window_view(best, m), near))
    upper = _largest_value(model, objective.belief, L)
    return FinitePlan(best, value, max(value, upper), False, objective.evaluations)


def _beam(model: _Model, belief: Belief, L: int, starts: Index) -> Index:
    """A block of m+L arms by beam search on the additive UCB, from the first windows `starts` (count, m)."""
    m, K, d = model.m, model.K, model.d
    theta, V_inv, beta, kind = belief
    width = int(np.clip(_BEAM_WINDOWS / (K * L), 16, _LANES))
    starts = starts[: max(width, int(_BEAM_WINDOWS / (4 * K)))]
    windows = np.unique(starts, axis=0) if m > 0 else starts[:1]
    score = np.zeros(len(windows))
    blocks = windows.copy()
    for t in range(0 if kind == OM_BLOCK else m, m + L):
        part = slice(t * d, t * d + d) if kind == OM_BLOCK else slice(None)
        parts = theta[part], np.ascontiguousarray(V_inv[part, part]), beta
        if t < m:
            score += _ucb(np.ascontiguousarray(model.at(t)[blocks[:, t]].T), *parts)
            continue
        B = model.apply(model.sets(t), windows.astype(np.int32), model.at(t))
        scores = (score[:, None] + _ucb(B, *parts).reshape(-1, K)).ravel()
        order = np.argsort(-scores, kind="stable")[: 4 * width]
        parents, arms = np.divmod(order, K)
        windows = np.concatenate((windows[parents], arms[:, None]), axis=1)[:, 1:]
        # Of blocks that end in the same window the best one stays: it is the first.
        first = np.unique(windows, axis=0, return_index=True)[1] if m > 0 else np.zeros(1, dtype=np.intp)
        kept = np.sort(first)[:width]
        windows, score = windows[kept], scores[order[kept]]
        blocks = np.concatenate((blocks[parents[kept]], arms[kept, None]), axis=1)
    best: Index = blocks[int(score.argmax())]
    return best


def _largest_value(model: _Model, belief: Belief, L: int) -> float:
    """A bound of every block's UCB from the norms alone: ||b|| <= (largest power) ||a||."""
    theta, V_inv, beta, kind = belief
    size = float(np.sqrt(np.einsum("...i,...i->...", model.arms, model.arms)).max())
    root = beta * math.sqrt(_largest_eigenvalue(V_inv)) if beta > 0.0 else 0.0
    sizes = np.full(L, size * model.power_bound)
    if kind != OM_BLOCK:
        return float(sizes.sum()) * (float(np.linalg.norm(theta)) + root) * (1.0 + TIE)
    sizes = np.concatenate((np.full(model.m, size), sizes))
    lengths = np.linalg.norm(theta.reshape(-1, model.d), axis=1)
    return float(sizes @ lengths + root * np.linalg.norm(sizes)) * (1.0 + TIE)


# --- cycles -------------------------------------------------------------------------------------------


class _MeanCycle(NamedTuple):
    """A cycle of mean c with values(s, a) - c + bias(s') <= bias(s) + gap: no mean is above c + gap."""

    indices: Index
    mean: float
    bias: Array  # (S,)
    gap: float
    exact: bool


def _maximum_mean_cycle(states: _States, values: Array) -> _MeanCycle:
    """The maximum mean cycle of step values (W, K)."""
    K, rank = states.K, states.rank
    policy = values.argmax(axis=1).astype(np.int32)[rank]
    bias = np.zeros(states.S)
    rounding = TIE * float(np.abs(values).max())
    root, gap = howard(values, rank, policy, bias, rounding, _ITERATIONS)
    arms: list[int] = []
    rewards: list[float] = []
    state = root
    while not arms or state != root:
        arms.append(int(policy[state]))
        rewards.append(float(values[rank[state], arms[-1]]))
        state = (state * K + arms[-1]) % states.S
    mean = math.fsum(rewards) / len(arms)
    return _MeanCycle(np.array(arms, dtype=np.intp), mean, bias, float(gap), gap <= 10.0 * rounding)


def _closed_walk(
    states: _States, values: Array, period: int, known: Index | None, most: float
) -> tuple[Index, bool]:
    """The closed walk of `period` steps with the largest sum of step values (W, K), and whether it is that.

    `known` (period,) is a good one; with more than `most` operations to do, the best so far is returned.

    With the bias of the maximum mean cycle, no steps from s to s' earn more than bias(s) - bias(s') above its
    mean: this bounds what a start can give, and prunes the way.
    """
    K, m, S = states.K, states.m, states.S
    if period <= m:
        cycles = _digits(np.arange(K**period), K, period)
        before = cycles[:, np.arange(-m, 0) % period]
        totals = states.collect(values, before @ _places(K, m), cycles.T)
        return cycles[int(totals.argmax())], True
    top = _maximum_mean_cycle(states, values)
    if period % len(top.indices) == 0:
        return np.tile(top.indices, period // len(top.indices)), top.exact
    tolerance = period * (TIE * float(np.abs(values).max()) + max(top.gap, 0.0))
    # Walks through a start that is done need no second look: it gets a row of its own, which leads nowhere.
    centred = np.vstack((values - top.mean, np.full((1, K), -math.inf)))
    rank = states.rank.copy()
    walks = _Walks(states, period)
    indices = top.indices[np.arange(period) % len(top.indices)] if known is None else known
    before = indices[np.arange(-m, 0) % period] @ _places(K, m)
    best = float(states.collect(centred, np.array([before]), indices)[0])
    batch = 1
    while True:
        V = top.bias.copy()
        V += bellman(centred[None], rank, period, V, np.empty((0, S), dtype=np.int32))
        bound = V - top.bias
        walks.operations += period * S * K
        for start in np.argsort(-bound, kind="stable")[:batch]:
            if best >= bound[start] - tolerance:
                return indices, top.exact
            if walks.operations > most:
                return indices, False
            ends, totals = walks.reach(centred, rank, int(start), top.bias, tolerance - best)
            total = float(totals[ends == start].max(initial=-math.inf))
            rank[start] = len(values)
            if total > best:
                best, indices = total, walks.trace(int(start))
        batch *= 2


def _search_cycle(objective: _Objective, rng: np.random.Generator, found: Index) -> Index:
    """Coordinate search from the best of `found` (count, period), constant, random and beam-searched cycles,
    then again and again from a change of the best cycle: a stretch drawn anew, or one arm less and another
    one elsewhere.
    """
    model, period = objective.model, objective.n
    m, K = model.m, model.K
    constant = np.repeat(np.arange(K)[:, None], period, axis=1)
    starts = np.concatenate((found, constant, rng.integers(K, size=(_RANDOM, period))))
    block = _beam(model, objective.belief, 2 * period, starts[:, np.arange(-m, 0) % period])
    starts = np.concatenate((starts, sliding_window_view(block[m:], period)))
    totals = objective.values(objective.everything, starts.T[objective.everything])
    best: Index = starts[0]
    value = -math.inf
    tries = list(starts[np.argsort(-totals, kind="stable")[:4]])
    windows = 4.0 * period * K * (m + 1)  # of a coordinate search, about
    for number in range(len(tries) + int(np.clip(_CYCLE_WINDOWS / windows, 16, 400))):
        if number < len(tries):
            start = tries[number]
        elif number % 2 == 0:
            start = best.copy()
            stretch = int(rng.integers(1, min(period, m + 2) + 1))
            start[(int(rng.integers(period)) + np.arange(stretch)) % period] = rng.integers(K, size=stretch)
        else:
            start = np.delete(best, rng.integers(period))
            start = np.insert(start, rng.integers(period), rng.integers(K))
        indices = objective.improve(start)
        total = objective.total(indices)
        if total > value:
            best, value = indices, total
    return best
