"""Misfit: owns the test whether rewards follow a model (m, gamma, decay), whatever its theta.

Under the right model nothing that was known before explains what a regression leaves over. What could is
put beside the features of the model, and an F-test says whether it does: functions of <a_t, a_{t-s}> (another
memory), <a_t, a_{t-s}> <a_{t-s}, theta> (a memory with other weights: the derivatives of the reward by them,
to first order), features of other exponents, features of each quarter of the time (a theta that changes),
errors of the steps before (what comes again when the same actions do), coordinates that tire each for itself,
products of the action and the last one, and functions of what the model expects (a reward that is bent).

Most of that shows where an agent plays what it did not plan, see probes.py: each such step may have a mean of
its own (Chow's test, of what the rest predicts), all of them another theta, and some of the above.

Each group is tested as a whole and by its best member; the p-values are joined by their harmonic mean. gamma
is refined and its derivative belongs to the model: a grid of exponents is no misfit. Nor is one of decays,
where a memory fades.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._base.types import Array
from .._base.values import writable
from ..kernels.fading import Variant, turn_of_memory
from ..kernels.memory import make_memory
from ..kernels.rolling import features_after

#: Errors that are looked back at, and most steps of which products are looked at.
ERRORS, LAGS = 30, 40
#: Steps before an action in which each coordinate is looked at by itself.
WINDOWS = (1, 2, 3)
#: Steps before a probe of which products are looked at by themselves.
NEAR = 3
#: Most coordinates of which all products are looked at.
FEW = 8
#: Errors of this part of the rewards are of no account: gamma is not refined further.
NEGLIGIBLE = 1e-3
#: First and last distance at which gamma is refined, and how far from it other exponents are.
STEPS, OTHER = (0.25, 0.0625), 1.0
#: The same distances for a decay, in parts of them, and what is left of an action that is forgotten.
DECAY_STEP, FORGOTTEN = 0.2, 1e-3
#: What is left of a direction beside others, in squares, if it counts.
LEFT = 1e-6


class Stretch(NamedTuple):
    """What was played without a gap, and what came of it."""

    actions: Array  # (n, d)
    rewards: Array  # (n,)
    seen: NDArray[np.bool_]  # (n,) whether there was a reward
    probed: NDArray[np.bool_]  # (n,) whether it was a probe


class Misfit:
    """The test of a memory and an exponent on stretches of the past; `p_value` is all that it is for.

    `fresh` says that nothing was played before the first stretch; else that is not known.
    """

    def __init__(
        self,
        stretches: Sequence[Stretch],
        A0: Array,
        m: float,
        gamma: float,
        decay: float = 1.0,
        *,
        fresh: bool = False,
    ) -> None:
        self.A0, self.m, self.gamma, self.decay = A0, m, gamma, decay
        turn = turn_of_memory(decay) if m == math.inf else int(m)
        self.lags = min(2 * turn + 4, max(LAGS, turn))
        #: Steps at the beginning of a stretch that are not looked at: what came before is not known.
        self.lead = self.lags
        if m == math.inf:
            self.lead = max(self.lags, math.ceil(math.log(FORGOTTEN) / math.log(decay)))
        if fresh:
            stretches = [_after_nothing(stretches[0], self.lead), *stretches[1:]]
        self.stretches = stretches
        self.seen = np.concatenate([s.seen[self.lead :] for s in stretches]).astype(bool)
        self.probed = np.concatenate([s.probed[self.lead :] for s in stretches])[self.seen]
        self.y = np.concatenate([s.rewards[self.lead :] for s in stretches])[self.seen]
        #: Exponents nearby are models as well.
        self.flexible = m > 0 and gamma != 0.0 and float(np.linalg.eigvalsh(A0)[0]) > 0.0
        #: And so are decays.
        self.fades = self.flexible and decay < 1.0

    def p_value(self) -> float:
        """About the probability of errors that are explained so well, if the model is right."""
        if len(self.y) < 2 * (ERRORS + self.A0.shape[0]):
            return 1.0
        with np.errstate(over="ignore", invalid="ignore"):  # of huge rewards
            model, theta = self._model()
            basis = orthonormal(model)
            errors = self.y - basis @ (basis.T @ self.y)
            groups = self._groups(theta, errors)
            slack = NEGLIGIBLE**2 * float(self.y @ self.y)
            return harmonic_mean([p for group in groups for p in explained(basis, errors, group, slack)])

    def _features(self, gamma: float, decay: float | None = None) -> Array:
        """Of all actions that have a reward and whose window is known."""
        if gamma == 0.0:
            return self._actions(0)
        variant = Variant(self.decay if decay is None else decay)
        memory, form = make_memory(writable(self.A0), self.m, gamma, variant)
        rows = []
        for s in self.stretches:
            first = max(self.lead - memory.m, 0) if self.m < math.inf else 0
            played = np.ascontiguousarray(s.actions[first:])
            now, before = played[memory.m :], played[: memory.m]
            F = np.zeros(now.shape)
            features_after(memory, form, before, now, len(now), F)
            rows.append(F[self.lead - first - memory.m :])
        found: Array = np.concatenate(rows)[self.seen]
        return found

    def _actions(self, lag: int) -> Array:
        """Those of so many steps before."""
        rows = [s.actions[self.lead - lag : max(len(s.actions) - lag, 0)] for s in self.stretches]
        found: Array = np.concatenate(rows)[self.seen]
        return found

    def _model(self) -> tuple[Array, Array]:
        """Features (n, .) of the best exponent and decay nearby, with the derivatives by them, and theta."""
        slopes: dict[str, Array] = {}
        width = 0.0
        for h, (name, size) in product(STEPS, (("gamma", 1.0), ("decay", DECAY_STEP))):
            if not (self.flexible if name == "gamma" else self.fades):
                continue
            at, h = getattr(self, name), h * size
            if name == "decay":
                h = min(h, 0.5 * (1.0 - at), 0.5 * at)
                width = 2.0 * h
            near = [self._features(**{"gamma": self.gamma, name: at + x}) for x in (-h, 0.0, h)]
            low, here, high = (_rest(B, self.y) for B in near)
            slopes[name], curve = near[2] - near[0], low - 2.0 * here + high
            step = 0.5 * h * (low - high) / curve if curve > 0.0 else h * np.sign(low - high)
            setattr(self, name, at + float(np.clip(step, -h, h)))
        B = self._features(self.gamma)
        theta = np.linalg.lstsq(B, self.y, rcond=LEFT)[0]
        model = np.column_stack((B, *(slope @ theta for slope in slopes.values())))
        if self.fades and not 0.0 < self.decay + width * self._last_share(model) <= 1.0:
            model = model[:, :-1]  # it would explain what no decay does: older actions that count for more
        return model, theta

    def _last_share(self, columns: Array) -> float:
        """What a regression of the rewards makes of the last of the columns (n, .)."""
        size = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
        return float(np.linalg.lstsq(columns / size, self.y, rcond=LEFT)[0][-1] / size[-1])

    def _groups(self, theta: Array, errors: Array) -> list[Array]:
        """What might explain the errors, columns of (n, .)."""
        now, products, weights = self._actions(0), [], []
        for s in range(1, self.lags + 1):
            before = self._actions(s)
            product = np.einsum("ti,ti->t", now, before)
            products += [product, np.abs(product), np.square(product)]
            weights.append(product * (before @ theta))
        others = [self._features(self.gamma + x) for x in (-OTHER, OTHER)] if self.flexible else []
        B, quarter = self._features(self.gamma), np.arange(len(errors)) * 4 // len(errors)
        times = [B * (quarter == k)[:, None] for k in range(3)]
        bent = self._bent(B @ theta, [other @ theta for other in (*others, now)])
        groups = [
            np.column_stack(products),
            np.column_stack(weights),
            np.column_stack((*others, now)),
            np.column_stack(times),
            self._errors_before(errors),
            *(self._by_coordinate(window) for window in WINDOWS),
            bent,
            self._beside_last(theta),
        ]
        if self.probed.any():
            near = np.column_stack(products[: 3 * NEAR])
            each = np.zeros((len(errors), int(self.probed.sum())))
            each[self.probed] = np.eye(each.shape[1])
            groups.append(each)
            groups += [columns * self.probed[:, None] for columns in (B, near, bent)]
        return groups

    def _bent(self, expected: Array, others: list[Array]) -> Array:
        """What the model expects (n,), not in proportion; and what `others`, with the same theta, expect."""
        powers = [expected**k for k in (2, 3)]
        sizes = [np.linalg.norm(self._actions(s), axis=1) for s in (0, 1)]
        return np.column_stack((*powers, *(expected * size**k for size in sizes for k in (1, 2)), *others))

    def _beside_last(self, theta: Array) -> Array:
        """Products of the action and the last one, by coordinates; if they are many, one along theta."""
        now, last = self._actions(0), self._actions(1)
        if now.shape[1] > FEW:
            return np.column_stack((now * (last @ theta)[:, None], last * (now @ theta)[:, None]))
        products: Array = np.einsum("ti,tj->tij", now, last)
        return products.reshape(len(now), -1)

    def _by_coordinate(self, window: int) -> Array:
        """Each coordinate of the action, less for what it was lately: by 1 + sum of a_i^2, and its cube."""
        now, used = self._actions(0), np.zeros((len(self.y), len(self.A0)))
        for s in range(1, window + 1):
            used += np.square(self._actions(s))
        return np.column_stack((now / (1.0 + used), now / (1.0 + used) ** 3))

    def _errors_before(self, errors: Array) -> Array:
        """(n, ERRORS): the errors 1, 2, .. steps before, 0 where there was none."""
        padded, rows, at = np.zeros(len(self.seen)), [], 0
        padded[self.seen] = errors
        for s in self.stretches:
            n = max(len(s.actions) - self.lead, 0)
            mine = np.concatenate((np.zeros(ERRORS), padded[at : at + n]))
            rows.append(np.lib.stride_tricks.sliding_window_view(mine, ERRORS)[:n])
            at += n
        found: Array = np.concatenate(rows)[self.seen]
        return found


def harmonic_mean(p_values: Sequence[float]) -> float:
    """One p-value of many that may depend on each other: near n times the least, less if many are small.

    That it is one to within a small factor, if it is small, is due to D. J. Wilson, "The harmonic mean
    p-value for combining dependent tests", PNAS 116 (2019).
    """
    return float(len(p_values) / np.sum(1.0 / np.clip(p_values, 1e-300, 1.0)))


def _after_nothing(s: Stretch, lead: int) -> Stretch:
    """The same behind `lead` steps in which nothing was played."""
    return Stretch(*(np.concatenate((np.zeros((lead, *x.shape[1:]), x.dtype), x)) for x in s))


def orthonormal(columns: Array) -> Array:
    """An orthonormal basis (n, .) of what columns (n, .) span, directions that rounding decides aside."""
    size = np.linalg.norm(columns, axis=0)
    columns = columns[:, size > 0.0] / size[size > 0.0]
    squares, turn = np.linalg.eigh(columns.T @ columns)
    kept = squares > LEFT
    basis: Array = columns @ (turn[:, kept] / np.sqrt(squares[kept]))
    return basis


def _rest(B: Array, y: Array) -> float:
    """The sum of squares that a regression leaves over."""
    return float(y @ y - np.square(orthonormal(B).T @ y).sum())


def explained(basis: Array, errors: Array, columns: Array, slack: float) -> tuple[float, float]:
    """p-values of the F-test of all columns (n, .) beside a basis, and of the best single one of them.

    `errors` are orthogonal to the basis; `slack` is added to their squares. With x the share of the squares
    that q directions leave over, of f + q, x is Beta(f/2, q/2) under Gaussian noise if they explain nothing.
    """
    from scipy.special import betainc

    n, k = basis.shape
    size = np.linalg.norm(columns, axis=0)
    columns = columns - basis @ (basis.T @ columns)
    left = np.linalg.norm(columns, axis=0)
    kept = left > np.sqrt(LEFT) * size
    total = float(errors @ errors) + slack
    if not (kept.any() and total > 0.0):  # all errors may be 0, as where nothing is ever earned
        return 1.0, 1.0
    columns = columns[:, kept] / left[kept]
    best = float(np.square(columns.T @ errors).max())
    single = columns.shape[1] * betainc(0.5 * (n - k - 1), 0.5, 1.0 - best / total)
    within = orthonormal(columns)
    q = within.shape[1]
    if k + q > n // 2:
        return 1.0, float(single)
    part = float(np.square(within.T @ errors).sum())
    return float(betainc(0.5 * (n - k - q), 0.5 * q, max(1.0 - part / total, 0.0))), float(single)
