"""The page of a plan, as data and in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm import cli
from fastlbm.experiments.report import plan as plans
from fastlbm.experiments.report.plan import gather_plans
from tests.experiments.browser import keep_screenshot, offers, open_browser, wait_for, why_not

ENV = lbm.LBM([0.6, 0.8], m=1, gamma=-2.5)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MEMORIES", (0, 2))
    monkeypatch.setattr(plans, "GAMMAS", (-1.0, 1.0))


def test_every_memory_and_exponent_has_its_best_cycle() -> None:
    content = gather_plans(ENV, progress=False)
    assert (content["memories"], content["gammas"]) == ([0, 1, 2], ["-2.5", "-1", "1"])
    assert content["start"] == [1, 0]
    assert content["turns"]
    assert len(content["plans"]) == 9
    mine = content["plans"]["1,-2.5"]
    cycle = lbm.best_cycle(ENV, max_period=8)
    assert mine["average"] == cycle.average
    np.testing.assert_allclose(mine["actions"][:, :2], cycle.actions[:2].T, atol=1e-4)
    assert mine["rewards"][20 : 20 + mine["period"]].mean() == pytest.approx(cycle.average)
    np.testing.assert_allclose(mine["memory"][:, 0], [1.0, 1.0])  # nothing was played yet
    assert mine["memory"].sum(axis=0)[1:] == pytest.approx(3.0)  # one action of norm 1 is remembered


def test_a_model_that_does_not_exist_has_no_plan() -> None:
    env = lbm.LBM([0.6, 0.8], m=1, gamma=1.0, A0=np.diag([1.0, 0.0]))
    content = gather_plans(env, progress=False)
    assert content["plans"]["1,-1"] is None
    assert content["plans"]["1,1"] is not None
    assert not content["turns"]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    if why_not():
        pytest.skip(f"a page is tested in a browser: {why_not()}")
    with open_browser(tmp_path / "profile") as opened:
        yield opened


def test_the_sliders_change_the_plan(
    browser: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.html"
    command = ["plan", "--theta", "0.6,0.8", "--m", "1", "--gamma=-2.5", "--L", "3", "--out", "-"]
    assert cli.main([*command, "--html", str(path)]) == 0
    assert str(path) in capsys.readouterr().out
    assert cli.main([*command, "--html", str(path)]) == 2
    assert "html must be a new file" in capsys.readouterr().err
    browser.get(path.as_uri())

    def shown() -> Any:
        return browser.execute_script("return document.getElementById('actions').data[0].z")

    def slide(name: str, value: int) -> None:
        browser.execute_script(
            f"const e = document.getElementById('{name}'); e.value = {value};"
            "e.dispatchEvent(new Event('input', {bubbles: true}))"
        )

    content = gather_plans(ENV, progress=False)["plans"]
    wait_for(lambda: browser.execute_script("return document.querySelectorAll('.main-svg').length"))
    np.testing.assert_allclose(shown(), content["1,-2.5"]["actions"], atol=1e-4)
    assert any("Download plot" in offer for offer in offers(browser))
    assert not any(re.search("share|cloud|send", words, re.IGNORECASE) for words in offers(browser))
    slide("angle", 90)
    x, y = content["1,-2.5"]["actions"]
    np.testing.assert_allclose(shown(), [-y, x], atol=1e-4)
    slide("angle", 0)
    slide("m", 2)
    slide("gamma", 1)
    np.testing.assert_allclose(shown(), content["2,-1"]["actions"], atol=1e-4)
    assert f"pays {content['2,-1']['average']:.4g}" in browser.find_element("id", "words").text
    assert browser.find_element("id", "words").text.startswith("m = 2, gamma = -1, theta = (")
    assert browser.get_log("browser") == []
    keep_screenshot(browser, "plan")
