"""`python -m bench steps`: what a step costs when Python decides or pays, and 1,000 environments at once."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

import fastlbm as lbm

from .timing import loop, race

COPIES = 1000
PARAMETERS: dict[str, Any] = {"theta": [0.54, 0.83, 0.1], "m": 2, "gamma": -3.0, "sigma": 0.1}
#: The loops over copies, as the table calls them.
LOOPS = {
    "plain": "NumPy, a Python loop",
    "single": "LBMEnv, a Python loop",
    "sync": "LBMEnv, Gymnasium's SyncVectorEnv",
}


class PlainEnvironment:
    """A step of the model as one writes it in NumPy."""

    def __init__(self, theta: list[float], m: int, gamma: float, sigma: float) -> None:
        self.theta, self.gamma, self.sigma = np.array(theta), gamma, sigma
        self.recent, self.rng = np.zeros((m, len(theta))), np.random.default_rng(0)

    def step(self, action: np.ndarray) -> float:
        values, vectors = np.linalg.eigh(np.eye(len(action)) + self.recent.T @ self.recent)
        reward = action @ (vectors * values**self.gamma) @ (vectors.T @ self.theta)
        self.recent[:-1] = self.recent[1:]
        self.recent[-1] = action
        return reward + self.sigma * self.rng.standard_normal()


def vector(n: int, mode: str | None = None) -> Any:
    """n environments of Gymnasium, by default the compiled ones."""
    import gymnasium

    envs = gymnasium.make_vec(
        "fastlbm/LBM-v0", num_envs=n, vectorization_mode=mode, horizon=10**9, **PARAMETERS
    )
    envs.reset(seed=0)
    return envs


def competitors(n: int) -> dict[str, Callable[[], object]]:
    """A step of n environments, by their names in LOOPS, and of the compiled ones, "vector"."""
    actions = lbm.Ball(3).sample(n, seed=0)
    plain = [PlainEnvironment(**PARAMETERS) for _ in range(n)]
    sync, ours = vector(n, "sync"), vector(n)
    single = [env.unwrapped for env in sync.envs]
    return {
        "plain": lambda: [env.step(action) for env, action in zip(plain, actions, strict=True)],
        "single": lambda: [env.step(action) for env, action in zip(single, actions, strict=True)],
        "sync": lambda: sync.step(actions),
        "vector": lambda: ours.step(actions),
    }


def has_gymnasium() -> bool:
    return find_spec("gymnasium") is not None


def measure() -> dict[str, float]:
    """Seconds of a step of all COPIES, by competitor."""
    return race({name: loop(call) for name, call in competitors(COPIES).items()}, rounds=7)


class Still(lbm.OwnAgent):
    """Plays one action."""

    def begin(self, actions: Any, seed: Any) -> None:
        self.action = np.eye(actions.d)[0]

    def act(self) -> Any:
        return self.action

    def update(self, y: float) -> None:
        pass


def main() -> None:
    if not has_gymnasium():
        raise ValueError("steps needs the package gymnasium")
    best = measure()
    ours = best.pop("vector")
    print(f"{COPIES} environments, one step of all: {1e3 * ours:.2f} ms, {1e9 * ours / COPIES:.0f} ns each")
    for name, seconds in best.items():
        print(f"  {LOOPS[name]:<36} {1e3 * seconds:7.1f} ms  {seconds / ours:6.0f}x")
    env, T = lbm.LBM(**PARAMETERS), 2000
    agents = {"compiled": lbm.Cyclic(np.eye(3)[:1]), "step by step": Still()}
    steps = race({name: loop(lambda agent=agent: lbm.run(env, agent, T)) for name, agent in agents.items()})
    for name, seconds in steps.items():
        print(f"a step of a run with one action, {name}: {1e6 * seconds / T:.2f} us")
