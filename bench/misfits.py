"""`python -m bench misfits`: how often and when Auto tells that rewards follow none of its models.

Wrong worlds have other memories, or a theta that changes; the noise is 0.1. A warning is right there, and
wrong on memories that fade and on the random instances. The size of a misfit is what the best of the probable
memories leaves over of the expected rewards of all that was played, as a sum of squares over the variance of
the noise: no test can tell one of 10 or less from noise reliably, with a false alarm in 50 runs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np

import fastlbm as lbm
from fastlbm.agents.auto_policy import AutoPolicy
from fastlbm.agents.misfit import Misfit, Stretch, orthonormal
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


def fading_of_three(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    values, Q = remembered(past, len(action), 0.6 ** np.arange(3))
    return float(action @ (Q * (1.0 + values) ** -2.0) @ Q.T @ theta)


def powers(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    values, Q = remembered(past, len(action), np.ones(2))
    by_coordinate = (1.0 + values) ** np.linspace(-3.0, 0.5, len(action))[:, None]
    return float(theta @ np.einsum("ij,ij,j->i", Q, by_coordinate, Q.T @ action))


def coordinates(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    used = np.square(past[-3:]).sum(axis=0) if past else np.zeros(len(action))
    return float(action @ (theta * (1.0 + used) ** np.linspace(-3.0, -0.5, len(action))))


def count(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    return float(action @ theta - 0.3 * sum(float(action @ before > 0.7) for before in past[-4:]))


def saturated(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    return math.tanh(2.0 * paper(past, action, theta))


def lag_2(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    like = max(action @ past[-2], 0.0) if len(past) > 1 else 0.0
    return float(action @ theta * (1.0 - 0.8 * like))


def lag_5(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    return float(action @ theta - (0.7 * max(action @ past[-5], 0.0) if len(past) > 4 else 0.0))


def row(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    alike = [float(action @ before > 0.7) for before in reversed(past)]
    return float(action @ theta) * 0.6 ** (alike.index(0.0) if 0.0 in alike else len(alike))


def mean_of_six(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    return float(action @ theta - (0.8 * abs(action @ np.mean(past[-6:], axis=0)) if past else 0.0))


def sine(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    return float(action @ theta * (1.0 + 0.6 * math.sin(3.0 * sum(abs(a @ action) for a in past[-3:]))))


def alike(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    return float(action @ theta) * (0.2 if past and action @ past[-1] > 0.9 else 1.0)


def rotation(theta: Array, other: Array, past: list[Array], action: Array) -> float:
    angle, turned = 1.5 * past[-1][0] if past else 0.0, theta.copy()
    turned[0] = math.cos(angle) * theta[0] - math.sin(angle) * theta[1]
    turned[1] = math.sin(angle) * theta[0] + math.cos(angle) * theta[1]
    return float(action @ turned)


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
    "another exponent for each eigenvalue": powers,
    "coordinates that tire each by itself": coordinates,
    "a loss for each of the last 4 that was alike": count,
    "a reward that saturates": saturated,
    "actions like the one 2 steps ago earn less": lag_2,
    "a penalty on actions like the one 5 steps ago": lag_5,
    "0.6 as much for each alike one in a row": row,
    "a penalty on the mean of the last 6": mean_of_six,
    "a wave of how like the last 3 it is": sine,
    "a fifth for what is like the last action": alike,
    "the last action turns theta in a plane": rotation,
    "a theta that turns in 400 steps": periodic,
    "another theta from step 500 on": change,
}
#: Auto has models of these: a warning is wrong.
EXPLAINED: dict[str, World] = {
    "a memory that fades by 0.7 a step": fading,
    "one that fades by 0.6 and ends after 3": fading_of_three,
}


def told(world: World, d: int, seed: int) -> tuple[int | None, float]:
    """The step at which a misfit is told, and its size."""
    rng = np.random.default_rng([seed, d])
    theta, other = (v / np.linalg.norm(v) for v in rng.normal(size=(2, d)))
    live, past, expected, step = lbm.Auto().start(lbm.Ball(d), seed=seed), list[Array](), list[float](), None
    for t in range(T):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RuntimeWarning)
            action = live.act()
        step = t if caught else step
        expected.append(world(theta, other, past, action))
        live.update(expected[-1] + SIGMA * rng.standard_normal())
        past.append(action)
    policy = live._policy
    assert isinstance(policy, AutoPolicy)
    stretch = Stretch(np.array(past), np.array(expected), seen=np.full(T, True), probed=np.full(T, False))
    order = [policy.model(int(j)).memory for j in np.argsort(-policy.log_posterior(), kind="stable")]
    probable = list(dict.fromkeys(order))[:4]
    return step, min(left_over(stretch, *memory, gamma) for memory in probable for gamma in (-3.0, -1.0, 0.5))


def left_over(stretch: Stretch, m: float, decay: float, gamma: float) -> float:
    """Of expected rewards, beside the features of a memory and the best exponent found from gamma on."""
    for _ in range(4):  # the exponent moves by a third at most
        test = Misfit([stretch], np.eye(stretch.actions.shape[1]), m, gamma, decay=decay, fresh=True)
        basis = orthonormal(test._model()[0])
        gamma, decay = test.gamma, test.decay
    return float(np.square(test.y - basis @ (basis.T @ test.y)).sum() / SIGMA**2)


def main() -> None:
    """Print, for every world, how many runs tell and when, and the false alarms on random instances."""
    warnings.simplefilter("ignore", RuntimeWarning)
    print(f"Auto, misfits told within {T} steps, noise {SIGMA}, d {sorted(set(DIMENSIONS))}")
    for name, world in (WORLDS | EXPLAINED).items():
        runs = [told(world, DIMENSIONS[k % len(DIMENSIONS)], k) for k in range(RUNS)]
        found, sizes = sorted(t for t, _ in runs if t is not None), [round(size) for _, size in runs]
        missed = [round(size) for t, size in runs if t is None]
        print(
            f"  {name:45}: {len(found)} of {RUNS}, after {found} steps; sizes {sorted(sizes)}, of those not "
            f"told {sorted(missed)}",
            flush=True,
        )
    episodes = [
        lbm.run(env, lbm.Auto(A0=env.A0), T=T, seed=k, record=1)
        for k, env in enumerate(instances(COUNT, seed=ROOT))
    ]
    wrong = sum(bool(run.details["misfit"].any()) for run in episodes)
    print(f"  {'random instances, of the right form':45}: {wrong} of {COUNT}")
