"""Slow, obvious references for what Auto learns from and what it makes of a posterior."""

from __future__ import annotations

import math

import numpy as np

from tests import naive

Array = np.ndarray


def draw_is_due(posterior: Array, m: list[int], chosen: int, steps: int, draw: int) -> bool:
    """Whether Auto draws a memory anew: it is time, or another one is more probable by e^7."""
    if chosen < 0 or steps >= draw:
        return True
    mine = max(p for p, k in zip(posterior, m, strict=True) if k == m[chosen])
    return bool(mine < max(posterior) - 7.0)


def chosen_of_posterior(posterior: Array, m: list[int], chosen: int, due: bool, x: float) -> int:
    """The first most probable candidate with the memory of `chosen`, or of who is drawn by x in (0, 1)."""
    if due:
        above = [j for j in range(len(m)) if sum(np.exp(posterior[: j + 1])) >= x]
        chosen = above[0] if above else len(m) - 1
    mine = [j for j in range(len(m)) if m[j] == m[chosen]]
    best = max(posterior[j] for j in mine)
    return next(j for j in mine if posterior[j] >= best - 1e-9)


def fading_features(actions: Array, m: float, gamma: float, decay: float, A0: Array | None = None) -> Array:
    """Features (T, d) of a memory that fades: as if the action s steps ago were sqrt(decay)^(s-1) as long."""
    T, d = actions.shape
    rows = np.zeros((T, d))
    for t in range(T):
        k = t if m == math.inf else int(m)
        before = np.concatenate((np.zeros((k, d)), actions))[t : t + k]
        shorter = before * decay ** (0.5 * np.arange(k - 1.0, -1.0, -1.0))[:, None]
        rows[t] = naive.features(np.concatenate((shorter, actions[t : t + 1])), k, gamma, A0)[0]
    return rows
