"""The page of a plan: owns the best cycles of a model for several memories and exponents, with sliders."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base.pool import Pool, Progress
from ..._base.types import Array
from ...model.lbm import LBM
from ...planning.cycles import best_cycle

#: What the sliders offer beside the model's own m and gamma.
MEMORIES, GAMMAS = (0, 1, 2, 3, 4), (-4.0, -3.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0)
#: Steps that are shown from an empty history, and the longest cycle in numbers of m+1.
STEPS, LONGEST = 36, 4


def gather_plans(env: LBM, progress: bool | str = True) -> dict[str, Any]:
    """The best cycle of every memory and exponent, played from an empty history."""
    memories = sorted({*MEMORIES, int(env.m)})
    gammas = sorted({*GAMMAS, float(env.gamma)})
    isotropic = bool(np.allclose(env.A0, env.A0[0, 0] * np.eye(env.d)))
    tasks = [((m, gamma), {"env": env, "m": m, "gamma": gamma}) for m in memories for gamma in gammas]
    plans: dict[str, Any] = {}
    with Progress(len(tasks), "plans", shown=progress) as bar, Pool() as pool:
        for (m, gamma), plan in pool.completed(_played, tasks):
            plans[f"{m},{gamma:g}"] = plan
            bar.add(1)
    return {
        "name": "What to play",
        "theta": env.theta,
        "memories": memories,
        "gammas": [f"{gamma:g}" for gamma in gammas],
        "start": [memories.index(int(env.m)), gammas.index(float(env.gamma))],
        "turns": isotropic and env.d > 1,
        "plans": plans,
    }


def _played(env: LBM, m: int, gamma: float) -> dict[str, Any] | None:
    """What the best cycle does in STEPS steps; None where the model does not exist, as for a singular A0."""
    try:
        model = LBM(env.theta, m, gamma, env.A0)
        cycle = best_cycle(model, max_period=LONGEST * (m + 1))
    except ValueError:
        return None
    actions: Array = np.tile(cycle.actions, (-(-STEPS // len(cycle.actions)), 1))[:STEPS]
    same = np.tile(model.theta / np.linalg.norm(model.theta), (STEPS, 1))
    return {
        "actions": actions.T.round(4),
        "rewards": model.expected_rewards(actions),
        "same": model.expected_rewards(same),
        "memory": np.array([_spectrum(model, actions[max(k - m, 0) : k]) for k in range(STEPS)]).T,
        "period": len(cycle.actions),
        "average": cycle.average,
    }


def _spectrum(model: LBM, past: Array) -> Array:
    """The eigenvalues of A0 + sum a a^T, the largest first."""
    values: Array = np.linalg.eigvalsh(model.A0 + past.T @ past).astype(np.float64)
    return values[::-1]
