"""Studies of models and agents of the package that a file of one's own makes, with responses of one's own."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fastlbm as lbm

RESPONSES = """
import fastlbm as lbm

def value(x, gamma):
    return 1.0 + gamma * (x - 1.0) / (1.0 + x)

def slope(x, gamma):
    return 2.0 * gamma / (1.0 + x) ** 2

def bends(gamma):
    return lbm.LBM([0.6, 0.8], m=2, gamma=gamma, response=lbm.Response(value, slope))

def knows(gamma):
    return lbm.Rolling(m=2, gamma=gamma, response=lbm.Response(value, slope))
"""
BENDS = """
T = 40
seeds = 2
[env.bends]
type = "bending:bends"
gamma = -0.6
[agent.knows]
type = "bending:knows"
gamma = -0.6
[agent.oful]
type = "OFUL"
"""


def test_a_function_may_make_a_model_or_an_agent_of_the_package(tmp_path: Path) -> None:
    """So that a file has responses of one's own; the rewards are those of the model itself."""
    (tmp_path / "bending.py").write_text(RESPONSES)
    (tmp_path / "bends.toml").write_text(BENDS)
    study = lbm.Study.from_toml(tmp_path / "bends.toml")
    here = study.run(tmp_path / "here", executor=1, progress=False).frame
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        there = study.run(tmp_path / "there", executor=pool, progress=False).frame
    pd.testing.assert_frame_equal(there, here, check_exact=True)
    scope: dict[str, Any] = {"__name__": "bending"}
    exec(RESPONSES, scope)
    seed = np.random.SeedSequence(0, spawn_key=(1,))
    for name, agent in (("knows", scope["knows"](-0.6)), ("oful", lbm.OFUL(40))):
        run = lbm.run(scope["bends"](-0.6), agent, T=40, seed=seed)
        rows = here[(here["agent"] == name) & (here["seed"] == 1)]
        np.testing.assert_array_equal(rows["observed"], run.observed)
