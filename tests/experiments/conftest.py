"""A small study that the tests of studies share."""

from __future__ import annotations

from pathlib import Path

import pytest

TEXT = """
name = "small"
seed = 3
seeds = 6
T = [60, 120]
record = 10
spacing = "log"

[env.rotting]
theta = [0.6, 0.8]
m = 1
gamma = -2.0
sigma = 0.1

[env.arms]
theta = [0.6, 0.8]
m = 1
actions = {finite = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]}
[env.arms.grid]
gamma = [-2.0, 1.0]

[agent.greedy]
type = "OracleGreedy"

[agent.oful]
type = "OFUL"
subgaussian = "env"
[agent.oful.grid]
switch = [0.0, 1.0]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(TEXT)
    return path
