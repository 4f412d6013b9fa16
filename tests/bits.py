"""Prints digests of what agents do, one a line: every bit of their actions and rewards counts."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

import fastlbm as lbm

THETA = [0.54, 0.64, 0.54]
STEPS = 60


def main() -> None:
    arms = lbm.Finite(np.vstack((np.eye(3), THETA)))
    selector = lbm.EvidenceSelector([(0, 0.0), (1, -2.0), (2, -3.0)], STEPS, L=4)
    A0 = np.diag([1.0, 2.0, 3.0])
    for name, matrix, actions, agents in (
        ("ball", None, lbm.Ball(3), [*learners(), lbm.OFUL(STEPS), lbm.OracleGreedy(), selector]),
        ("arms", None, arms, [*learners(), lbm.OFUL(STEPS), lbm.OracleGreedy()]),
        ("ball, any A0", A0, lbm.Ball(3), [learners(A0)[0], *learners(A0)[2:]]),
    ):
        env = lbm.LBM(THETA, m=2, gamma=-2.7, A0=matrix, sigma=0.1, actions=actions)
        for agent in agents:
            found = hashlib.sha256(lbm.run(env, agent, T=STEPS, seed=1).observed.tobytes())
            if not isinstance(agent, lbm.OracleGreedy):  # which knows the model and has no live form
                found.update(played(env, agent))
            print(f"{name}, {type(agent).__name__}: {found.hexdigest()[:16]}")


def learners(A0: np.ndarray | None = None) -> list[Any]:
    return [
        lbm.O3M(2, -2.7, STEPS, L=4, A0=A0),
        lbm.OM(2, -2.7, STEPS, L=4),
        lbm.Rolling(2, -2.7, A0=A0),
        lbm.Auto(memories=[0, 2], gammas=[-2.7], A0=A0),
    ]


def played(env: lbm.LBM, agent: Any) -> bytes:
    """The actions of an agent, one step at a time, in a world without noise."""
    live = agent.start(env.actions, seed=1)
    actions = np.zeros((STEPS, 3))
    for t in range(STEPS):
        actions[t] = live.act()
        live.update(env.expected_rewards(actions[t : t + 1], history=actions[:t])[0])
    return actions.tobytes()


if __name__ == "__main__":
    main()
