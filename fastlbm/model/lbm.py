"""The model: owns the parameters of a linear bandit with memory and its expected rewards;
Section 2, sec:model, of the paper: equation (1), eq:reward, and equation (2), eq:A-def.

It holds no state: what was played before comes as an argument, noise comes from a seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.types import Array, Seed
from .._base.values import Value, writable
from ..kernels import rewards as kernels
from ..kernels.fading import PAPER, Variant, total_weight
from ..kernels.noise import NOISES, draw_many
from ..kernels.powers import eigenvalue_floor
from .actions import ActionSet, Ball
from .memory_matrix import check_memory_matrix, matrix_power
from .response import Response, make_variant


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class LBM(Value):
    """A linear bandit with memory: `y_t = <a_t, A(a_{t-m}, ..., a_{t-1}) theta> + eta_t`.

    `A(a_1, ..., a_m) = (A0 + sum a_s a_s^T)^gamma`. theta (d,) lies in the unit ball; m is an integer or
    `math.inf`; A0 (d, d), symmetric and positive semidefinite, is the identity by default; sigma is the
    standard deviation of the noise and its sub-Gaussian factor; `actions` is the unit ball by default.

    With a `decay` in (0, 1) the memory fades: `A0 + sum decay^(s-1) a_{t-s} a_{t-s}^T`, s = 1..m, where m may
    be infinite and R stays finite all the same. decay = 1 is the paper's.

    `response` is what is done with the eigenvalues x of that sum: "power" is the paper's x^gamma;
    "saturating", exp(gamma (1 - e^(1-x))), begins at x = 1 like it and levels off at e^gamma; a `Response` is
    one's own. The paper's theory is about the power alone.

    Use it to describe the problem: agents are run on it, planned for and compared by it.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([1.0, 0.0], m=1, gamma=-1.0)
    >>> env.expected_rewards([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8], [1.0, 0.0]])
    array([1.  , 0.5 , 0.3 , 0.82])
    >>> env.d, env.is_stationary
    (2, False)
    >>> fading = lbm.LBM([1.0, 0.0], m=float("inf"), gamma=-1.0, decay=0.5)
    >>> fading.expected_rewards([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    array([1.        , 0.5       , 0.        , 0.57142857])
    """

    _LATER: ClassVar[dict[str, Any]] = {"decay": 1.0, "response": "power"}

    theta: Array
    m: int | float
    gamma: float
    A0: Array
    sigma: float
    actions: ActionSet
    noise: str
    decay: float
    response: str | Response
    power_bound: float = field(init=False)

    def __init__(
        self,
        theta: ArrayLike,
        m: float = 2,
        gamma: float = -3.0,
        A0: ArrayLike | None = None,
        sigma: float = 0.1,
        actions: ActionSet | None = None,
        noise: str = "gaussian",
        decay: float = 1.0,
        response: str | Response = "power",
    ) -> None:
        vector = validation.in_ball("theta", validation.array("theta", theta, (None,)))
        d = len(vector)
        if d == 0:
            raise ValueError("theta must have at least one dimension, got shape (0,)")
        m = validation.memory("m", m, allow_inf=True)
        gamma = validation.real("gamma", gamma)
        decay = validation.decay(decay)
        variant = make_variant(decay, response)
        matrix, power_bound = check_memory_matrix(A0, d, total_weight(m, decay), gamma, variant=variant)
        if actions is None:
            actions = Ball(d)
        elif not isinstance(actions, ActionSet):
            raise TypeError(f"actions must be a Ball, a Finite or a Contextual, got {actions!r}")
        if actions.d != d:
            raise ValueError(f"actions must have the dimension of theta, {d}, got {actions.d}")
        sigma = validation.real("sigma", sigma, low=0.0, high=validation.LARGEST)
        noise = validation.choice("noise", noise, NOISES)
        self._set(theta=vector, m=m, gamma=gamma, A0=matrix, power_bound=power_bound)
        self._set(sigma=sigma, actions=actions, noise=noise, decay=decay, response=response)

    @classmethod
    def random(cls, d: int = 3, m: float = 2, gamma: float = -3.0, seed: Seed = 0, **parameters: Any) -> Self:
        """A model whose theta is uniform on the unit sphere; `parameters` as for `LBM`.

        >>> env = LBM.random(d=4, seed=1)
        >>> env.d, round(float(env.theta @ env.theta), 12)
        (4, 1.0)
        """
        d = validation.integer("d", d, low=1)
        direction = validation.generator("seed", seed).standard_normal(d)
        return cls(direction / np.linalg.norm(direction), m, gamma, **parameters)

    @property
    def d(self) -> int:
        """Dimension of theta and of the actions."""
        return len(self.theta)

    @property
    def is_stationary(self) -> bool:
        """Whether the expected reward ignores the past (Example 1)."""
        return self.m == 0 or (self.gamma == 0.0 and not isinstance(self.response, Response))

    @property
    def reward_bound(self) -> float:
        """R: no expected reward is larger in size; infinity if m is, decay = 1 and gamma > 0.

        The paper's (m+1)^(gamma+) for A0 = I (equation (8), eq:bound_R), here for any A0 and times ||theta||;
        with a decay the sum of the weights, (1 - decay^m)/(1 - decay), takes the place of m. For a `Response`
        of one's own it is the largest of many values, which proves nothing.

        >>> LBM([0.6, 0.8], m=2, gamma=2.0).reward_bound
        9.0
        """
        size = float(np.linalg.norm(self.theta))
        return self.power_bound * size if size > 0.0 else 0.0  # inf * 0 is NaN

    def expected_rewards(self, actions: ArrayLike, history: ArrayLike | None = None) -> Array:
        """Expected reward (T,) of each step of the sequence `actions` (T, d).

        `history` (h, d) was played before: its last m rows count, all where m is infinite, missing ones are
        zero. Any finite actions will do, in the action set or not.

        >>> env = LBM([0.6, 0.8], m=2, gamma=-3.0)
        >>> env.expected_rewards([[0.6, 0.8], [0.6, 0.8]])
        array([1.   , 0.125])
        >>> env.expected_rewards([[0.6, 0.8]], history=[[0.6, 0.8]])
        array([0.125])
        """
        rows = validation.array("actions", actions, (None, self.d))
        past = self._window(history)
        with np.errstate(all="ignore"):
            model = self._params()
            before = kernels.make_history(model)
            for action in past:
                kernels.push(model, before, writable(action))
            rewards: Array = kernels.rewards(model, before, writable(rows))
        return self._finite("actions", rewards)

    def _params(self) -> kernels.ModelParams:
        """The model as the kernels take it; without memory its parameter takes in A0^gamma."""
        noise = NOISES.index(self.noise)
        if self.is_stationary:
            theta = self.memory_matrix() @ self.theta
            A0, m, gamma, variant = np.eye(self.d), 0.0, 0.0, PAPER
        else:
            theta, A0, m, gamma = writable(self.theta), writable(self.A0), self.m, self.gamma
            variant = self._variant
        return kernels.make_model_params(
            theta, A0, m=m, gamma=gamma, sigma=self.sigma, noise=noise, variant=variant
        )

    @property
    def _variant(self) -> Variant:
        """How the memory differs from the paper's."""
        return make_variant(self.decay, self.response)

    def memory_matrix(self, history: ArrayLike | None = None) -> Array:
        """A(history) = (A0 + sum a_s a_s^T)^gamma (d, d) over the last m rows of `history` (h, d).

        With a decay, the row s steps before the end counts decay^(s-1) times.

        >>> LBM([1.0, 0.0], m=2, gamma=-1.0).memory_matrix([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        array([[1.        , 0.        ],
               [0.        , 0.33333333]])
        """
        past = self._window(history)
        with np.errstate(all="ignore"):
            if self.decay < 1.0:
                past = past * self.decay ** (0.5 * np.arange(len(past) - 1.0, -1.0, -1.0))[:, None]
            X = self._finite("history", self.A0 + past.T @ past)
            floor = eigenvalue_floor(self.A0, total_weight(self.m, self.decay), self.gamma)
            return self._finite("history", matrix_power(X, self.gamma, floor, self._variant))

    def draw_noise(self, n: int, seed: Seed = None) -> Array:
        """Noise eta (n,) of standard deviation sigma.

        >>> sorted(set(LBM([1.0], noise="rademacher").draw_noise(100, seed=0).tolist()))
        [-0.1, 0.1]
        """
        n = validation.integer("n", n, low=0)
        rng = validation.generator("seed", seed)
        return draw_many(NOISES.index(self.noise), self.sigma, n, rng)

    def _window(self, history: ArrayLike | None) -> Array:
        if history is None:
            return np.empty((0, self.d))
        past = validation.array("history", history, (None, self.d))
        return past[int(max(len(past) - self.m, 0)) :]

    def _finite(self, name: str, result: Array) -> Array:
        if not np.isfinite(result).all():
            raise ValueError(
                f"{name} must keep the memory matrix and its powers finite, got powers that overflow "
                f"with gamma={self.gamma:g}"
            )
        return result
