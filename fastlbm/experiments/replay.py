"""Replays: own the beginning of a run of a study, played again one step at a time, to be looked at."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..agents import Agent
from ..model.lbm import LBM
from ..running.seeds import streams
from .grammar import Spec


def replay(spec: Spec, env_name: str, agent_name: str, T: int, steps: int) -> dict[str, Any] | None:
    """What an agent did in the first steps of seed 0: actions (d, steps), rewards, plans, beliefs in words.

    The decisions are those of the run: a live policy and a run share their code and their random numbers.
    None if the agent or the environment is of one's own: reading results runs no code that came with them.
    """
    cell = next(c for c in spec.cells if (c.env_name, c.agent_name, c.T) == (env_name, agent_name, T))
    env, n = cell.model(0), min(T, steps)
    if not isinstance(env, LBM) or not isinstance(cell.agent, Agent):
        return None
    seed = np.random.SeedSequence(spec.seed, spawn_key=(0,))
    live, noise = cell.agent.start(env, seed), env.draw_noise(n, streams(seed)[0])
    actions, rewards = np.empty((n, env.d)), np.empty(n)
    m = int(min(env.m, n))
    for k in range(n):
        actions[k] = live.act()
        past = actions[max(k - m, 0) : k]
        rewards[k] = env.expected_rewards(actions[k : k + 1], history=past)[0]
        live.update(float(rewards[k] + noise[k]))
    first, *told = str(live.explain()).splitlines() if live.theta is not None else [""]
    return {
        "actions": actions.T.round(3),
        "rewards": rewards,
        "plans": live.plans,
        "beliefs": f"{first} " + "; ".join(line.strip() for line in told),
    }
