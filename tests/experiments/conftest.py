"""What the tests of studies share: a small study, and the folder of the one that a module has."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastlbm as lbm

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


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the study of the module's DOCUMENT was run."""
    out = tmp_path_factory.mktemp("study")
    lbm.Study.from_dict(request.module.DOCUMENT).run(out, progress=False)
    return out
