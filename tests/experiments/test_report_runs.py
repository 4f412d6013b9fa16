"""The report of many runs, which is that of a study with one environment."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fastlbm as lbm
from tests.experiments.browser import keep_screenshot, open_browser, wait_for, why_not


@pytest.fixture(scope="module")
def runs() -> lbm.Results:
    env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    agents = {"greedy": lbm.OracleGreedy(), "learner": lbm.O3M(m=1, gamma=-2.0, horizon=50, L=5)}
    return lbm.run_many(env, agents, T=50, seeds=[4, 7], record=5, keep_actions=True)


def test_many_runs_have_a_report_as_well(runs: lbm.Results, tmp_path: Path) -> None:
    path = runs.report(tmp_path / "runs.html", progress=False, notes=["a note"])
    (inside,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', path.read_text())
    content = json.loads(inside)
    assert content["name"] == "Runs with d=2, m=1, gamma=-2, sigma=0.1"
    assert content["notes"] == ["a note"]
    assert content["facts"]["study"] == {"seeds": 2, "T": 50, "record": 5}
    assert content["facts"]["versions"]["fastlbm"] == lbm.__version__
    assert [(row["seed"], row["agent"]) for row in content["behaviour"]] == [
        (seed, agent) for seed in (4, 7) for agent in ("greedy", "learner")
    ]
    for row in content["behaviour"]:
        run = runs.runs[row["agent"], row["seed"]]
        np.testing.assert_allclose(np.array(row["actions"]).T, run.actions[:50], atol=6e-4)
    with pytest.raises(FileExistsError, match="path must be a new file"):
        runs.report(path)


def test_many_runs_are_carried_away_as_well(runs: lbm.Results, tmp_path: Path) -> None:
    rows = pd.read_csv(runs.export(tmp_path / "runs.csv"))
    assert len(rows) == len(runs.frame)
    assert runs.latex(0.9) == runs.as_study().latex(0.9)
    assert runs.export(tmp_path / "runs.tex").read_text() == runs.latex()


@pytest.mark.skipif(bool(why_not()), reason=f"a page is tested in a browser: {why_not()}")
def test_a_page_of_many_runs_has_no_empty_parts(runs: lbm.Results, tmp_path: Path) -> None:
    with open_browser(tmp_path / "profile") as browser:
        look_at(browser, runs, tmp_path)


def look_at(browser: Any, runs: lbm.Results, tmp_path: Path) -> None:
    browser.get(runs.report(tmp_path / "runs.html", progress=False).as_uri())
    wait_for(lambda: browser.execute_script("return document.querySelectorAll('.picture .main-svg').length"))
    assert browser.find_element("id", "lead").text == "1 environment, 2 agents, 2 seeds"
    shown = [part for part in browser.find_elements("tag name", "section") if part.is_displayed()]
    assert [part.get_attribute("id") for part in shown] == ["outcome", "table", "work", "question", "origin"]
    links = [link.text for link in browser.find_elements("css selector", "nav a") if link.is_displayed()]
    assert links == ["Outcome", "Table", "At work", "Settings", "Origin"]
    for part in browser.find_elements("tag name", "select"):
        assert part.find_elements("tag name", "option") or not part.is_displayed()
    assert "steps of seed 4 in" in browser.find_element("id", "work-note").text
    assert browser.get_log("browser") == []
    keep_screenshot(browser, "report-runs")
