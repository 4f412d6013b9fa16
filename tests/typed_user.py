"""A program of somebody who uses fastlbm with a strict type checker; see test_typing."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import fastlbm as lbm
from fastlbm.experiments.results import StudyResults
from fastlbm.planning.plans import Cycle, OptBounds, Plan
from fastlbm.running.episode import Run

Floats = NDArray[np.float64]


class Stubborn(lbm.OwnAgent):
    """Plays the same at every step."""

    def begin(self, actions: Any, seed: Any) -> None:
        self.action: Floats = actions.project(np.ones((1, actions.d)))[0]

    def act(self) -> Floats:
        return self.action

    def update(self, y: float) -> None:
        pass


def learn(theta: list[float]) -> float:
    env = lbm.LBM(theta, m=2, gamma=-3.0, sigma=0.1)
    agent = lbm.O3M(m=2, gamma=-3.0, horizon=1200, L=20)
    run = assert_type(lbm.run(env, agent, T=1200, seed=0), Run)
    assert_type(run.reward, Floats)
    many = lbm.run_many(env, {"O3M": agent, "Auto": lbm.Auto(), "mine": Stubborn()}, T=100, seeds=2)
    many.plot("regret")
    return float(run.reward[-1])


def plan(env: lbm.LBM) -> tuple[float, float]:
    block = assert_type(lbm.best_block(env, L=20), Plan)
    cycle = assert_type(lbm.best_cycle(env, period=3), Cycle)
    bounds = assert_type(lbm.opt_bounds(env, T=1000), OptBounds)
    assert_type(block.actions, Floats)
    assert_type(bounds.exact, bool)
    value, gradient = lbm.block_ucb(
        block.actions, m=2, gamma=-3.0, theta=env.theta, V_inv=np.eye(env.d), beta=1.0
    )
    assert_type(value, float)
    assert_type(gradient, Floats)
    return cycle.average, bounds.upper


def serve(arms: list[list[float]]) -> Floats:
    live = lbm.Rolling(m=2, gamma=-3.0).start(lbm.Finite(arms), seed=0)
    live.act()
    live.update(0.5)
    assert_type(live.arm, int | None)
    return assert_type(live.act(arms), Floats)


def study(path: str) -> None:
    results = assert_type(lbm.Study.from_toml(path).run("out", executor=2), StudyResults)
    results.report("page.html", replace=True)
    assert_type(lbm.__version__, str)


def theory() -> float:
    bound = assert_type(lbm.theory.regret_bound(1000, d=3, m=2, gamma=-3.0), float | Floats)
    return float(bound) + lbm.theory.block_length(1000, d=3, m=2)
