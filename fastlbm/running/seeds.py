"""Seeds: own the random numbers of a run.

A seed gives two streams: the noise, the same for every agent, and the agent's own draws.
"""

from __future__ import annotations

import numpy as np

from .._base import validation
from .._base.types import Seed


class AgentSeed(np.random.SeedSequence):
    """The seed of an agent's own draws in a run, for `np.random.default_rng`.

    An agent of the package that is started with it draws what it draws in the run itself.
    """


def children(seed: Seed) -> tuple[np.random.SeedSequence, AgentSeed]:
    """The seeds of the noise and of the agent; the same for equal seeds, however often asked."""
    if isinstance(seed, np.random.Generator):
        seed = np.random.SeedSequence(seed.integers(2**32, size=4).tolist())
    elif not isinstance(seed, np.random.SeedSequence):
        validation.generator("seed", seed)
        seed = np.random.SeedSequence(seed)
    key, size = seed.spawn_key, seed.pool_size
    noise = np.random.SeedSequence(seed.entropy, spawn_key=(*key, 0), pool_size=size)
    if isinstance(seed, AgentSeed):
        return noise, seed
    return noise, AgentSeed(seed.entropy, spawn_key=(*key, 1), pool_size=size)


def streams(seed: Seed) -> tuple[np.random.Generator, np.random.Generator]:
    """The generators of the noise and of the agent, from their seeds."""
    noise, agent = children(seed)
    return np.random.default_rng(noise), np.random.default_rng(agent)
