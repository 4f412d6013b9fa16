"""Studies with what the paper's model does not have: decay and response as columns, endless memories."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm import cli
from fastlbm.experiments.parameters import of_env
from fastlbm.experiments.results import StudyResults

PAPER = {"theta": [0.6, 0.8], "m": 2, "gamma": -2.0}
OWN = {"type": "tests.own_example:PlainModel", **PAPER}
DOCUMENT: dict[str, Any] = {
    "seeds": 2, "T": 20, "record": 4,
    "env": {
        "paper": PAPER,
        "fade": {**PAPER, "grid": {"decay": [0.5, 1.0]}},
        "bounded": {**PAPER, "response": "saturating"},
        "own": OWN,
    },
    "agent": {"oful": {"type": "OFUL"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def results(folder: Path) -> StudyResults:
    return lbm.Study.from_results(folder).results(folder)


def test_the_papers_models_say_their_decay_and_response(folder: Path, results: StudyResults) -> None:
    told = results.settings.set_index("env")[["decay", "response"]].astype(object)
    expected = {
        "paper": [1.0, "power"],
        "fade(decay=0.5)": [0.5, "power"],
        "fade(decay=1.0)": [1.0, "power"],
        "bounded": [1.0, "saturating"],
    }
    assert {env: row.tolist() for env, row in told.drop("own").iterrows()} == expected
    assert told.loc["own"].isna().all()
    names = list(results.frame)
    assert names.index("actions") < names.index("decay") < names.index("response") < names.index("agent_type")
    settings = {each["env"]: each for each in json.loads((folder / "manifest.json").read_text())["settings"]}
    for env, values in expected.items():
        assert [settings[env]["decay"], settings[env]["response"]] == values
    assert "decay" not in settings["own"]


def test_a_study_of_the_papers_models_has_no_such_column(tmp_path: Path) -> None:
    document = {**DOCUMENT, "env": {"paper": PAPER}}
    frame = lbm.Study.from_dict(document).run(tmp_path, progress=False).frame
    assert not {"decay", "response"} & set(frame)


def test_a_plot_against_decay_has_all_of_its_values(results: StudyResults) -> None:
    envs = ["fade(decay=0.5)", "fade(decay=1.0)"]
    (panel,) = results.plot(against="decay", envs=envs).axes
    assert next(list(line.get_xdata()) for line in panel.lines if len(line.get_xdata()) > 1) == [0.5, 1.0]


def test_a_plot_against_m_has_infinity(tmp_path: Path) -> None:
    env = {"theta": [0.6, 0.8], "gamma": -2.0, "decay": 0.5, "grid": {"m": [1, 3, math.inf]}}
    results = lbm.Study.from_dict({**DOCUMENT, "env": {"e": env}}).run(tmp_path, progress=False)
    (panel,) = results.plot(against="m").axes
    assert [text.get_text() for text in panel.get_xticklabels()] == ["1", "3", "inf"]
    line = panel.lines[0]
    means = results.summary().set_index("env")["mean"]
    assert list(line.get_xdata()) == [0, 1, 2]
    np.testing.assert_allclose(line.get_ydata(), means[[f"e(m={m})" for m in (1, 3, "inf")]])


def value(x: float, gamma: float) -> float:
    return 1.0 + gamma * (x - 1.0) / (1.0 + x)


def slope(x: float, gamma: float) -> float:
    return 2.0 * gamma / (1.0 + x) ** 2


def test_a_response_of_ones_own_is_told_by_its_name() -> None:
    env = lbm.LBM([0.6, 0.8], m=2, gamma=-0.5, response=lbm.Response(value, slope))
    assert of_env(env)["response"] == repr(env.response)
    frame = lbm.run_many(env, {"oful": lbm.OFUL(9)}, T=9, seeds=2).as_study().frame
    assert set(frame["response"]) == {repr(env.response)}


def test_envs_leave_out_the_one_without_regret(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "regret.png"
    command = ["plot", str(folder), "--kind", "regret", "--comparator", "best cycle"]
    assert cli.main(command) == 2
    told = capsys.readouterr().err
    assert "own is an environment of your own" in told
    assert "choose the others by envs (on the command line --envs)" in told
    assert cli.main([*command, "--envs", "fade(decay=0.5),paper"]) == 0
    assert out.exists()
    assert cli.main([*command, "--envs", "paper,nobody", "--force"]) == 2
    assert "envs must be one of 'paper', 'fade(decay=0.5)'" in capsys.readouterr().err
