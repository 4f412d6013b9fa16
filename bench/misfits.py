"""`python -m bench misfits`: how often and when Auto tells that rewards follow none of its models.

Wrong worlds have other memories, or a theta that changes; the noise is 0.1. A warning is right there, and
wrong on the random instances.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np

import fastlbm as lbm
from reproduce.instances import instances

Array = np.ndarray
#: theta, another one, the actions so far, the latest last, and the one that is played: its expected reward.
World = Callable[[Array, Array, list[Array], Array], float]
T, SIGMA, RUNS, DIMENSIONS = 2000, 0.1, 10, (3, 3, 4, 2, 5)
#: Instances that nothing else is measured on.
COUNT, ROOT = 20, 3


def remembered(past: list[Array], d: int, weights: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of the weighted sum of a a^T, the latest action first."""
    S = np.zeros((d, d))
    for weight, action in zip(weights, reversed(past), strict=False):
        S += weight * np.outer(action, action)
    return np.linalg.eigh(S)


def paper(past: list[Array], action: Array, theta: Array) -> float:
    """m = 2, gamma = -2."""
    values, Q = remembered(past, len(action), np.ones(2))
    return float(action @ (Q * (1.0 + values) ** -2.0) @ Q.T @ theta)


def lag(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    return float(action @ theta - (0.8 * (action @ past[-3]) ** 2 if len(past) > 2 else 0.0))


def cosine(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    sizes = np.linalg.norm(action) * np.linalg.norm(past[-1]) if past else 0.0
    return float(action @ theta - (0.5 * max(action @ past[-1] / sizes, 0.0) if sizes > 0.0 else 0.0))


def saturating(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    values, Q = remembered(past, len(action), np.ones(4))
    return float(action @ (Q * (2.0 - np.exp(-2.0 * np.maximum(values, 0.0))) ** -3.0) @ Q.T @ theta)


def fading(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    values, Q = remembered(past, len(action), 0.7 ** np.arange(60))
    return float(action @ (Q * (1.0 + values) ** -2.0) @ Q.T @ theta)


def powers(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    values, Q = remembered(past, len(action), np.ones(2))
    by_coordinate = (1.0 + values) ** np.linspace(-3.0, 0.5, len(action))[:, None]
    return float(theta @ np.einsum("ij,ij,j->i", Q, by_coordinate, Q.T @ action))


def periodic(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    angle, across = 2.0 * math.pi * len(past) / 400.0, other - theta * (other @ theta)
    across = across / np.linalg.norm(across)
    return paper(past, action, math.cos(angle) * theta + math.sin(angle) * across)


def change(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    return paper(past, action, theta if len(past) < 500 else other)


WORLDS: dict[str, World] = {
    "a penalty on actions like the one 3 steps ago": lag,
    "a penalty on the cosine with the last action": cosine,
    "a memory that saturates": saturating,
    "a memory that fades by 0.7 a step": fading,
    "another exponent for each coordinate": powers,
    "a theta that turns in 400 steps": periodic,
    "another theta from step 500 on": change,
}


def told(world: World, d: int, seed: int) -> int | None:
    """The step at which a misfit is told."""
    rng = np.random.default_rng([seed, d])
    theta, other = (v / np.linalg.norm(v) for v in rng.normal(size=(2, d)))
    live, past = lbm.Auto().start(lbm.Ball(d), seed=seed), list[Array]()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for t in range(T):
            try:
                action = live.act()
            except RuntimeWarning:
                return t
            live.update(world(theta, other, past, action) + SIGMA * rng.standard_normal())
            past.append(action)
    return None


def main() -> None:
    """Print, for every world, how many runs tell and when, and the false alarms on random instances."""
    warnings.simplefilter("ignore", RuntimeWarning)
    print(f"Auto, misfits told within {T} steps, noise {SIGMA}, d {sorted(set(DIMENSIONS))}")
    for name, world in WORLDS.items():
        steps = [told(world, DIMENSIONS[k % len(DIMENSIONS)], k) for k in range(RUNS)]
        found = sorted(t for t in steps if t is not None)
        print(f"  {name:45}: {len(found)} of {RUNS}, after {found} steps", flush=True)
    runs = [
        lbm.run(env, lbm.Auto(A0=env.A0), T=T, seed=k, record=1)
        for k, env in enumerate(instances(COUNT, seed=ROOT))
    ]
    wrong = sum(bool(run.details["misfit"].any()) for run in runs)
    print(f"  {'random instances, of the right form':45}: {wrong} of {COUNT}")
