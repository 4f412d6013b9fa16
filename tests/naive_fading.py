"""Fifty digits where the memory fades, or has no end, or responds otherwise; as of the module `naive`."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np

from tests.naive import Array, _optimism_mp, _vectors_mp, _WindowMP


def block_ucb_mp(
    actions: Array,
    m: float,
    gamma: float,
    theta: Array,
    V_inv: Array | None,
    beta: float,
    optimism: str = "O3M",
    A0: Array | None = None,
    decay: float = 1.0,
    history: Array | None = None,
    dps: int = 50,
) -> tuple[float, Array]:
    """Value and gradient with `dps` digits (half of them are right in the gradient), rounded to float64.

    An action that counts decay^(s-1) times is one that is the root of that as long. With an infinite m all
    actions are counted, each after all before it and the `history`.
    """
    problem = {"theta": theta, "V_inv": V_inv, "beta": beta, "optimism": optimism}
    n, d = actions.shape
    with mp.workdps(dps):
        rows = _vectors_mp(actions)
        matrix = _vectors_mp(np.eye(d) if A0 is None else np.asarray(A0))
        lead, root = 0 if m == math.inf else int(m), mp.sqrt(mp.mpf(decay))
        past = [] if history is None else _vectors_mp(history)
        windows, sources = [], []
        for j in range(lead, n):
            source = list(range(-len(past) if m == math.inf else j - lead, j))
            actual = [rows[s] if s >= 0 else past[s] for s in source]
            shorter = [[root ** (j - 1 - s) * x for x in a] for s, a in zip(source, actual, strict=True)]
            windows.append(_WindowMP(shorter, rows[j], gamma, matrix))
            sources.append((j, source))
        B = [window.apply(window.a) for window in windows]
        scale = max(window.norm * mp.norm(window.a) for window in windows)
        value, U, direct = _optimism_mp(B, rows[:lead], problem, scale)
        grad = [list(row) for row in direct] + [w.apply(u) for w, u in zip(windows, U, strict=True)]
        for (j, source), window, u in zip(sources, windows, U, strict=True):
            for s, part in zip(source, window.backward(u), strict=True):
                if s >= 0:
                    weight = root ** (j - 1 - s)
                    grad[s] = [x + weight * y for x, y in zip(grad[s], part, strict=True)]
        return float(value), np.array([[float(x) for x in row] for row in grad])
