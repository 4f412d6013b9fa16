"""Playing one step: owns what an action pays when somebody else decides, in one model or in many at once."""

from __future__ import annotations

import numpy as np

from ._jit import kernel
from ._types import Flags, Rows, Tensor, Vector
from .noise import draw
from .rewards import History, ModelParams, product, push, response


@kernel
def play_step(
    model: ModelParams, history: History, action: Vector, noise: np.random.Generator
) -> tuple[float, float]:
    """Observed and expected reward of the action (d,), which is added to the history.

    One draw of noise a step, as in an episode: the same bits.
    """
    g = np.empty(action.shape[0])
    response(model, history, g)
    expected = product(g, action)
    push(model, history, action)
    return expected + draw(model.noise, model.sigma, noise), expected


@kernel
def play_steps(
    model: ModelParams,
    recent: Tensor,
    X: Tensor,
    actions: Rows,
    playing: Flags,
    noise: np.random.Generator,
    observed: Vector,
    expected: Vector,
) -> None:
    """A step of n copies of a model, each with its last m actions, `recent` (n, m, d).

    Where m is infinite these are none, and X (n, d, d) is the `History.X` of each; else X is (0, 0, 0).
    Fills the rewards (n,) of the actions (n, d), which are added to `recent`. A copy that is not `playing`
    (n,) keeps its history, has rewards of 0 and draws no noise.
    """
    n, d = actions.shape
    g = np.empty(d)
    for k in range(n):
        observed[k], expected[k] = 0.0, 0.0
        if playing[k]:
            history = History(recent[k], X[k] if X.shape[0] > 0 else model.A0)
            response(model, history, g)
            expected[k] = product(g, actions[k])
            push(model, history, actions[k])
            observed[k] = expected[k] + draw(model.noise, model.sigma, noise)
