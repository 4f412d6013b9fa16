"""Learners for `python -m bench headline`: Rolling, Auto and arms, each beside what it is compared with."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import fastlbm as lbm

from .arms import catalogue, cpu_seconds, unit
from .learners import ROTTING, WIDE
from .problems import eigh_seconds, problem
from .rows import Row, at_least, at_most, short, told

T, SEEDS = 1218, 10


class Played(NamedTuple):
    """Steps a second of the fastest run, in CPU time, and the mean reward a step."""

    rate: float
    reward: float


def played(env: lbm.LBM, agent: Any, steps: int, seeds: int = SEEDS) -> Played:
    """Runs with several seeds; what they need is compiled before."""
    lbm.run(env, agent, T=min(steps, 50))
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # false alarms are for `misfits`
        pairs = [cpu_seconds(lambda s=s: lbm.run(env, agent, T=steps, seed=s)) for s in range(seeds)]
    rewards = [run.reward[-1] / steps for _, run in pairs]
    return Played(steps / min(seconds for seconds, _ in pairs), float(np.mean(rewards)))


def words(found: Played, steps: int = 1) -> str:
    """As the README has it: the reward of so many steps, one by default."""
    rate = f"{round(found.rate, -3 if found.rate >= 10_000 else -1):,.0f} steps/s"
    return f"{rate}, reward {found.reward * steps:.0f}" if steps > 1 else f"{rate}, {found.reward:.3f} a step"


def rolling() -> Iterator[Row]:
    """8: Rolling at the setting of the paper's Figure 1 left, beside O3M."""
    best = lbm.best_cycle(ROTTING, period=13).average
    ours = played(ROTTING, lbm.Rolling(2, -3.0, T), T)
    o3m = played(ROTTING, lbm.O3M(2, -3.0, T, L=20), T)
    note = f" (O3M {100 * o3m.reward / best:.1f}%)"
    row = at_least(8, "Rolling, Figure 1 left: of the best cycle", 98.5, 100 * ours.reward / best, "%", note)
    what, ratio = "`Rolling` on Figure 1, left", f"{ours.reward / o3m.reward:.2f} in reward"
    yield row._replace(readme=(what, words(ours, T), f"O3M, L = 20: {words(o3m, T)}", ratio))
    eigh = 1.0 / ours.rate / eigh_seconds(problem(3, 2, 20, -3.0))
    yield at_most(8, "  a step / eigh of a 3 x 3 matrix", 20, eigh)


def auto() -> Iterator[Row]:
    """9: Auto, told nothing, beside O3M, which is told m and gamma."""
    ours, o3m = played(ROTTING, lbm.Auto(), T), played(ROTTING, lbm.O3M(2, -3.0, T, L=20), T)
    ratio = ours.reward / o3m.reward
    row = at_least(9, "Auto, Figure 1 left: reward / O3M, told all", 1, ratio)
    beside = f"O3M, told m and gamma: {words(o3m, T)}"
    yield row._replace(
        readme=("`Auto` on Figure 1, left, told nothing", words(ours, T), beside, f"{ratio:.2f} in reward")
    )
    yield at_least(9, "  steps a second, d=3", 5000, ours.rate, "")
    wide = played(WIDE, lbm.Auto(), T, 3)
    yield at_least(9, "  steps a second, d=16", 1000, wide.rate, "")


def songs(K: int, d: int, m: int) -> lbm.LBM:
    """A catalogue in clusters, which wears out."""
    rng = np.random.default_rng(0)
    arms = lbm.Finite(catalogue(K, d, max(K // 20, 1), rng))
    return lbm.LBM(unit(rng.normal(size=d)), m=m, gamma=-2.0, sigma=0.1, actions=arms)


def arms() -> Iterator[Row]:
    """10: catalogues, beside OFUL, which ignores the memory; and ten arms."""
    env = songs(200, 16, 4)
    ours, oful = played(env, lbm.Rolling(4, -2.0), 1500, 2), played(env, lbm.OFUL(1500), 1500, 2)
    ratio = ours.reward / oful.reward
    row = at_least(10, "200 songs, d=16, m=4: Rolling, steps a second", 300, ours.rate, "")
    what = "`Rolling` on 200 songs, d=16, m=4, gamma=-2"
    yield row._replace(readme=(what, words(ours), f"OFUL: {words(oful)}", f"{ratio:.1f} in reward"))
    yield at_least(10, "  reward / OFUL's", 1, ratio)
    many = played(songs(10_000, 32, 4), lbm.Rolling(4, -2.0), 60, 1)
    yield at_least(10, "  10,000 songs, d=32: steps a second", 10, many.rate, "")
    rng = np.random.default_rng(0)
    few = lbm.LBM(unit(rng.normal(size=3)), 2, -3.0, sigma=0.1, actions=lbm.Finite(catalogue(10, 3, 0, rng)))
    rates = {kind.__name__: played(few, kind(2, -3.0, 20_000), 20_000, 3) for kind in (lbm.O3M, lbm.Rolling)}
    yield at_least(10, "  ten arms, m=2: O3M, steps a second", 60_000, rates["O3M"].rate, "")
    other = rates["Rolling"]
    share = other.reward / rates["O3M"].reward
    yield told(
        10, "  ... Rolling", f"{short(other.rate)} steps a second, {short(share)}x O3M's reward", other.rate
    )
