"""The README's agent of one's own, word for word, and an environment that describes the built-in model."""

from __future__ import annotations

import numpy as np

import fastlbm as lbm

EXAMPLE = """\
class RidgeGreedy(lbm.OwnAgent):
    def __init__(self, explore=0.1):
        self.explore = explore
    def begin(self, actions, seed):
        self.actions, self.rng = actions, np.random.default_rng(seed)
        self.V, self.s, self.t = np.eye(actions.d), np.zeros(actions.d), 0
    def act(self):
        explores = self.rng.random() < self.explore
        goal = self.rng.standard_normal(len(self.s)) if explores else np.linalg.solve(self.V, self.s)
        self.a = self.actions.project([1e6 * goal], start=self.t)[0]  # as far that way as it goes
        return self.a
    def update(self, y):
        self.V += np.outer(self.a, self.a)
        self.s, self.t = self.s + y * self.a, self.t + 1
"""
#: The same as a module.
MODULE = f"import numpy as np\nimport fastlbm as lbm\n\n{EXAMPLE}"

exec(compile(EXAMPLE, __file__, "exec"))  # RidgeGreedy, as others import it from here


class PlainModel:
    """`LBM` in plain NumPy: equations (1) and (2) of the paper, eq:reward and eq:A-def, A0 = I."""

    def __init__(self, theta: list[float], m: int, gamma: float, sigma: float = 0.1) -> None:
        self.theta, self.m, self.gamma, self.sigma = np.array(theta), m, gamma, sigma
        self.actions = lbm.Ball(len(theta))

    def reset(self, seed: object) -> None:
        self.rng, self.past = np.random.default_rng(seed), []

    def step(self, action: np.ndarray) -> tuple[float, float]:
        window = self.past[max(len(self.past) - self.m, 0) :]
        values, vectors = np.linalg.eigh(np.eye(len(action)) + sum(np.outer(a, a) for a in window))
        expected = float(action @ (vectors * values**self.gamma) @ vectors.T @ self.theta)
        self.past.append(action)
        return expected + self.sigma * self.rng.standard_normal(), expected
