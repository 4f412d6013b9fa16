"""What blocks and cycles of arms are worth: owns their values, bounds of them and a sweep over all arms."""

from __future__ import annotations

import math

import numpy as np

from ..._base.types import Array
from ...kernels.blocks import compute_features
from ...kernels.optimism import O3M, OM_BLOCK, Belief, additive, joint
from ...kernels.ties import SUM_SHARE, exceeds, margin
from ..plans import Index, Plan
from .states import Model

#: Actions of the blocks that are valued side by side.
_COLUMNS = 2**14
#: Size up to which spectra are taken: LAPACK's threads get in the way of others (measured: seconds at 300).
SMALL = 64


class Objective:
    """Values of blocks, or of cycles, given by their arms; counts them."""

    def __init__(self, model: Model, belief: Belief, n: int, cyclic: bool = False) -> None:
        self.model, self.belief, self.n, self.cyclic = model, belief, n, cyclic
        self.evaluations = 0
        self.everything = np.arange(-model.m if cyclic else 0, n) % n

    def evaluate(self, positions: Index, indices: Index) -> tuple[Array, Array]:
        """Values (lanes,) of blocks and their derivative with respect to the features (d, steps*lanes).

        indices (steps, lanes) are the arms at `positions` (steps,) of the block; all but the first m of them
        are valued.
        """
        model, (steps, lanes) = self.model, indices.shape
        actions = model.actions(positions[:, None], indices)
        block = np.ascontiguousarray(actions.transpose(2, 0, 1)).reshape(model.d, steps * lanes)
        work = model.work(steps * lanes, lanes)
        values = np.empty(lanes)
        compute_features(model.memory, model.form, block, lanes, work)
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
                size = max(abs(now), float(np.abs(values).max()))
                if exceeds(values[best], now, margin(size, SUM_SHARE)):
                    indices[j], changed = best, True
            if not changed:
                break
        return indices

    def plan(self, indices: Index, value: float, upper: float, exact: bool) -> Plan:
        """A block (m+L,) as the plan that was looked for; `upper` is a bound but for rounding."""
        return Plan(
            actions=self.model.actions(self.everything, indices),
            value=value,
            evaluations=self.evaluations,
            converged=True,
            exact=exact,
            upper=max(value, upper),
            indices=indices,
        )


def largest_value(model: Model, belief: Belief, L: int) -> float:
    """A bound of every block's UCB from the norms alone: ||b|| <= (largest power) ||a||."""
    theta, V_inv, beta, kind = belief
    size = float(np.sqrt(np.einsum("...i,...i->...", model.arms, model.arms)).max())
    root = beta * math.sqrt(largest_eigenvalue(V_inv)) if beta > 0.0 else 0.0
    sizes = np.full(L, size * model.power_bound)
    if kind != OM_BLOCK:
        return float(sizes.sum()) * (float(np.linalg.norm(theta)) + root) * (1.0 + SUM_SHARE)
    sizes = np.concatenate((np.full(model.m, size), sizes))
    lengths = np.linalg.norm(theta.reshape(-1, model.d), axis=1)
    return float(sizes @ lengths + root * np.linalg.norm(sizes)) * (1.0 + SUM_SHARE)


def largest_eigenvalue(matrix: Array) -> float:
    """The largest eigenvalue of a symmetric matrix, or for a large matrix a bound of it."""
    if len(matrix) <= SMALL:
        return float(np.linalg.eigvalsh(matrix)[-1])
    return float(np.abs(matrix).sum(axis=1).max())
