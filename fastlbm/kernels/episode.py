"""Episodes, compiled end to end: owns the loop of learning, planning and playing, for every planner."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._jit import kernel_norefcount
from .block_state import BlockState, is_done
from .planners import learn, plan
from .playing import Recorder, elapsed, play_block
from .rewards import History, ModelParams


@kernel_norefcount
def plan_next_block(planner: Any, block: BlockState, rng: np.random.Generator) -> None:
    """Learn from the block that is done, and plan the next one; for Python."""
    learn(planner, block)
    plan(planner, block, rng)


@kernel_norefcount
def run_blocks(
    planner: Any,
    block: BlockState,
    rng: np.random.Generator,
    model: ModelParams,
    history: History,
    recorder: Recorder,
    noise: np.random.Generator,
    until: int,
) -> None:
    """Algorithm 1 of the paper, alg:OFUL-memory-algo, and every policy like it, until a given step.

    It can go on from there, and a live policy decides by the very same functions.
    """
    while elapsed(recorder) < until:
        if is_done(block):
            learn(planner, block)
            plan(planner, block, rng)
            if is_done(block):
                return  # the plan was stopped
        play_block(model, history, recorder, block, noise, until)
