"""Replays: own the beginning of a run, played again one step at a time, to be looked at."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.types import Seed
from ..agents import Agent
from ..model.lbm import LBM
from ..running.seeds import streams
from .grammar import Spec

#: What is drawn of what an agent believes.
POSTERIOR = ("memory", "gamma", "theta", "spread")


def replay(
    spec: Spec, env_name: str, agent_name: str, T: int, steps: int, number: int = 0
) -> dict[str, Any] | None:
    """What an agent of a study did in the first steps of a seed, see `replay_run`."""
    cell = next(c for c in spec.cells if (c.env_name, c.agent_name, c.T) == (env_name, agent_name, T))
    seed = np.random.SeedSequence(spec.seed, spawn_key=(number,))
    return replay_run(cell.model(number), cell.agent, min(T, steps), seed)


def replay_run(env: Any, agent: Any, n: int, seed: Seed) -> dict[str, Any] | None:
    """What an agent did in the first n steps of a run: actions (d, n), rewards, plans, what it believes.

    Beliefs are there in words and, for a picture, as the numbers of `Live.explain`.

    The decisions are those of the run: a live policy and a run share their code and their random numbers.
    None if the agent or the environment is of one's own: reading results runs no code that came with them.
    """
    if not isinstance(env, LBM) or not isinstance(agent, Agent):
        return None
    live, noise = agent.start(env, seed), env.draw_noise(n, streams(seed)[0])
    actions, rewards = np.empty((n, env.d)), np.empty(n)
    m = int(min(env.m, n))
    for k in range(n):
        actions[k] = live.act()
        past = actions[max(k - m, 0) : k]
        rewards[k] = env.expected_rewards(actions[k : k + 1], history=past)[0]
        live.update(float(rewards[k] + noise[k]))
    found = {"actions": actions.T.round(3), "rewards": rewards, "plans": live.plans}
    if live.theta is None:
        return found
    explanation = live.explain()
    first, *told = str(explanation).splitlines()
    words = f"{first} " + "; ".join(line.strip() for line in told)
    numbers = explanation.as_dict()
    return {**found, "beliefs": words, "posterior": {name: numbers[name] for name in POSTERIOR}}
