"""Seeds: own the random numbers of a run.

A seed gives two streams: the noise, the same for every agent, and the agent's own draws.
"""

from __future__ import annotations

import numpy as np

from .._base import validation
from .._base.types import Seed


def streams(seed: Seed) -> tuple[np.random.Generator, np.random.Generator]:
    """The generators of the noise and of the agent; the same for equal seeds, however often asked."""
    if isinstance(seed, np.random.Generator):
        seed = np.random.SeedSequence(seed.integers(2**32, size=4).tolist())
    elif not isinstance(seed, np.random.SeedSequence):
        validation.generator("seed", seed)
        seed = np.random.SeedSequence(seed)
    noise, agent = (
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, i), pool_size=seed.pool_size)
        for i in range(2)
    )
    return np.random.default_rng(noise), np.random.default_rng(agent)
