"""The report of a study, as data and in a real browser."""

from __future__ import annotations

import base64
import json
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fastlbm as lbm
from fastlbm import cli
from fastlbm.experiments.report import data as report_data
from fastlbm.experiments.report.data import gather
from fastlbm.experiments.results import StudyResults
from tests.experiments.browser import (
    as_desk,
    as_phone,
    keep_file,
    keep_screenshot,
    offers,
    open_browser,
    wait_for,
    why_not,
)

NASTY = "</script><script>alert(1)</script><!--"
DOCUMENT: dict[str, Any] = {
    "name": "a small report",
    "seed": 2, "seeds": 5, "T": [40, 90], "record": 30,
    "env": {
        "rotting": {"theta": [0.6, 0.8], "m": 1, "grid": {"gamma": [-1.0, -2.0, -3.0]}},
        NASTY: {"theta": [0.6, 0.8], "m": 1, "gamma": -2.0, "actions": {"finite": [[1.0, 0.0], [0.0, 1.0]]}},
    },
    "agent": {
        "greedy": {"type": "OracleGreedy"},
        "learner": {"type": "O3M", "m": "env", "gamma": "env", "L": 5, "subgaussian": "env"},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def results(folder: Path) -> StudyResults:
    return lbm.Study.from_dict(DOCUMENT).results(folder)


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    assert cli.main(["report", str(folder)]) == 0
    return folder / "report.html"


def longest(results: StudyResults, env: str, agent: str) -> pd.DataFrame:
    frame = results.frame
    return frame[(frame["env"] == env) & (frame["agent"] == agent) & (frame["T"] == 90)]


# --- the data ---------------------------------------------------------------------------------------------


def test_the_page_holds_all_that_it_needs(page: Path, results: StudyResults) -> None:
    text = page.read_text()
    assert not re.search(r"<(script|link|img|iframe)[^>]*\b(src|href)=\"(?!data:)", text)
    (inside,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', text)
    content = json.loads(inside, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert content["name"] == "a small report"
    assert list(content["envs"]) == list(results.envs)
    assert len(text.encode()) < 10e6


def test_means_and_regrets_are_those_of_the_frame(results: StudyResults) -> None:
    content = gather(results, progress=False)
    for env, shown in content["envs"].items():
        for agent, curve in shown["curves"].items():
            mine = longest(results, env, agent)
            means = mine.groupby("t")["reward"].mean()
            np.testing.assert_allclose(curve["reward"]["mean"], means[curve["t"]], rtol=1e-5)
            opt = results.comparator(env, means.index.to_numpy(), "opt")
            regret = opt - means.to_numpy()
            np.testing.assert_allclose(curve["opt"]["mean"], regret, rtol=1e-4, atol=1e-5)
            assert curve["t"][-1] == 90
        final = {(row["agent"], row["T"]): row["reward"]["mean"] for row in shown["final"]}
        assert len(final) == 4
    summary = results.summary()
    columns = content["summary"]["columns"]
    shown_means = [row[columns.index("mean")] for row in content["summary"]["rows"]]
    np.testing.assert_allclose(shown_means, summary["mean"], rtol=1e-5)


def test_what_is_played_again_is_the_run(results: StudyResults) -> None:
    study = lbm.Study.from_dict(DOCUMENT)
    for number, cell in enumerate(study.spec.cells):
        seed = np.random.SeedSequence(2, spawn_key=(number % 5,))
        run = lbm.run(cell.env, cell.agent, cell.T, seed=seed, keep_actions=True)
        assert results.replay is not None
        again = results.replay(cell.env_name, cell.agent_name, cell.T, 30, number % 5)
        assert again is not None
        np.testing.assert_allclose(again["actions"].T, run.actions[:30], atol=6e-4)
        np.testing.assert_allclose(np.cumsum(again["rewards"]), run.reward[:30])


def test_agents_are_played_again_while_there_is_time(
    results: StudyResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = gather(results, progress=False)["behaviour"]
    assert [row["seed"] for row in played] == [0] * 8 + [1] * 8 + [2] * 8
    monkeypatch.setattr(report_data, "REPLAY_SECONDS", -1.0)
    content = gather(results, progress=False)
    assert content["behaviour"] == []
    assert any(
        "8 of 8 agents in their environments are not shown at work" in note for note in content["notes"]
    )


def test_a_comparator_that_is_not_there_is_told(tmp_path: Path) -> None:
    arms = np.random.default_rng(0).uniform(-0.5, 0.5, (8, 2, 2)).tolist()
    env = {"theta": [0.6, 0.8], "m": 1, "gamma": -2.0, "actions": {"contextual": arms}}
    document = {"T": 8, "seeds": 2, "env": {"e": env}, "agent": {"a": {"type": "OracleGreedy"}}}
    content = gather(lbm.Study.from_dict(document).run(tmp_path, progress=False), progress=False)
    assert set(content["envs"]["e"]["curves"]["a"]) == {"T", "t", "reward", "opt", "lower", "oracle greedy"}
    assert any(
        "e is not compared with the best cycle: env.actions must be" in note for note in content["notes"]
    )


def test_what_was_asked_is_told_without_repetition(results: StudyResults) -> None:
    content = gather(results, progress=False)
    columns, rows = content["environments"]["columns"], content["environments"]["rows"]
    assert [row[0] for row in rows] == list(results.envs)
    assert [row[columns.index("gamma")] for row in rows] == [-1.0, -2.0, -3.0, -2.0]
    assert [row[columns.index("K")] for row in rows] == [None, None, None, 2.0]
    greedy, learner = content["players"]["rows"]
    assert greedy == ["greedy", "OracleGreedy", "40, 90", ""]
    assert learner[:3] == ["learner", "O3M", "40, 90"]
    told = dict(word.split(" = ") for word in learner[3].split(", "))
    assert (told["m"], told["gamma"]) == ("1", "that of the environment")
    assert (told["horizon"], told["L"], told["subgaussian"]) == ("T", "5", "0.1")
    assert told["lam"] == "1"


def test_a_report_without_plotly_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    assert cli.main(["report", str(folder), "--out", str(folder / "other.html")]) == 2
    assert 'pip install "fastlbm[report]"' in capsys.readouterr().err


# --- in a browser -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if why_not():
        pytest.skip(f"a page is tested in a browser: {why_not()}")
    with open_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def shown(browser: Any, page: Path) -> Any:
    """The page, freshly loaded and drawn."""
    as_desk(browser)
    browser.get(page.as_uri())
    wait_for(lambda: browser.execute_script("return document.querySelectorAll('.picture .main-svg').length"))
    return browser


def choose(browser: Any, control: str, value: str) -> None:
    from selenium.webdriver.support.ui import Select

    Select(browser.find_element("id", control)).select_by_value(value)


def lines(browser: Any, figure: str = "curves") -> dict[str, Any]:
    """What a figure shows: its named lines."""
    code = f"return document.getElementById('{figure}').data.filter(t => t.name).map(t => [t.name, t.x, t.y])"
    return {name: (x, y) for name, x, y in browser.execute_script(code)}


def axis(browser: Any, figure: str, name: str) -> Any:
    return browser.execute_script(f"return document.getElementById('{figure}').layout.{name}")


def test_the_page_loads_without_errors_and_without_network(shown: Any) -> None:
    assert shown.get_log("browser") == []
    assert shown.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert shown.find_element("tag name", "h1").text == "a small report"
    assert shown.find_element("id", "lead").text == "4 environments, 2 agents, 5 seeds"
    keep_screenshot(shown, "report")


def test_no_button_offers_to_send_anything(shown: Any) -> None:
    assert any("Download plot" in offer for offer in offers(shown))
    assert not any(re.search("share|cloud|send", words, re.IGNORECASE) for words in offers(shown))
    code = "return [...document.querySelectorAll('.js-plotly-plot')].map(p => p._context.plotlyServerURL)"
    assert set(shown.execute_script(code)) == {""}


def test_the_numbers_shown_are_those_of_the_frame(shown: Any, results: StudyResults) -> None:
    for env in results.envs:
        choose(shown, "env", env)
        for agent, (x, y) in lines(shown).items():
            mine = longest(results, env, agent)
            np.testing.assert_allclose(y, mine.groupby("t")["reward"].mean()[x], rtol=1e-5)
    summary = results.summary()
    rows = "[...document.querySelectorAll('#summary tbody tr')]"
    cells = shown.execute_script(f"return {rows}.map(r => [...r.cells].map(c => c.textContent))")
    assert [row[2] for row in cells] == summary["agent"].tolist()
    assert [float(row[3]) for row in cells] == pytest.approx(summary["mean"].tolist(), rel=1e-3)


def test_the_controls_change_the_picture(shown: Any, results: StudyResults) -> None:
    reward = lines(shown)
    assert list(reward) == ["greedy", "learner"]
    choose(shown, "quantity", "regret")
    regret, env = lines(shown), next(iter(results.envs))
    for agent, (x, y) in regret.items():
        opt = results.comparator(env, np.array(x), "opt")
        np.testing.assert_allclose(y, opt - np.array(reward[agent][1]), atol=1e-3)
    choose(shown, "comparator", "oracle greedy")
    np.testing.assert_allclose(lines(shown)["greedy"][1], 0.0, atol=1e-4)
    assert "regret against oracle greedy" in shown.find_element("id", "curves-note").text
    choose(shown, "comparator", "opt")
    choose(shown, "axes", "log")
    assert axis(shown, "curves", "xaxis.type") == axis(shown, "curves", "yaxis.type") == "log"
    assert any("exponent" in name for name in lines(shown))
    assert "Theorem 1" in lines(shown)
    shown.find_element("css selector", "#agents input[value=greedy]").click()
    assert [name.split(",")[0] for name in lines(shown)] == ["learner", "Theorem 1"]
    choose(shown, "env", NASTY)
    assert len(shown.find_elements("css selector", "#behaviour .agent-work")) == 1
    assert shown.get_log("browser") == []
    keep_screenshot(shown, "report-controls")


def test_growth_and_parameters_are_drawn(shown: Any, results: StudyResults) -> None:
    growth = lines(shown, "growth")
    assert growth["Theorem 1"]
    assert [x for name, (x, _) in growth.items() if name != "Theorem 1"] == [[40, 90], [40, 90]]
    choose(shown, "against", "gamma")
    found = lines(shown, "against-figure")
    final = results.frame.query("agent == 'learner' and t == 90 and T == 90 and actions == 'ball'")
    means = final.groupby("gamma")["reward"].mean()
    assert found["learner"][0] == [-3, -2, -1]
    np.testing.assert_allclose(found["learner"][1], means, rtol=1e-5)
    choose(shown, "against", "T")
    assert lines(shown, "against-figure")["learner"][0] == [40, 90]


def test_the_table_is_sorted_by_a_click(shown: Any) -> None:
    def means() -> list[float]:
        code = "return [...document.querySelectorAll('#summary tbody tr')].map(r => r.cells[3].textContent)"
        return [float(text) for text in shown.execute_script(code)]

    for order in (sorted(means()), sorted(means(), reverse=True)):
        shown.execute_script("document.querySelectorAll('#summary th')[3].click()")
        assert means() == order


def test_agents_at_work_are_drawn(shown: Any) -> None:
    code = "return [...document.querySelectorAll('.picture:not(.posterior)')].map(p => p.data[0].z)"
    heat = shown.execute_script(code)
    assert [len(rows) for rows in heat] == [2, 2]  # a row for each coordinate
    words = shown.find_element("id", "behaviour").text
    assert "learner:" in words
    assert "theta:" in words
    choose(shown, "run", "2")
    assert "steps of seed 2 in" in shown.find_element("id", "work-note").text
    again = shown.execute_script(code)
    assert again[0] == heat[0]  # the oracle plays theta, whatever the noise
    assert again[1] != heat[1]
    assert shown.get_log("browser") == []


def test_what_agents_believe_is_drawn(browser: Any, tmp_path: Path) -> None:
    selector = {"type": "EvidenceSelector", "candidates": [[0, -1.0], [1, -2.0], [2, -2.0]], "L": 5}
    document = {
        "T": 60, "seeds": 2, "env": {"e": {"theta": [0.6, 0.8], "m": 1, "gamma": -2.0}},
        "agent": {"selector": selector, "auto": {"type": "Auto"}, "greedy": {"type": "OracleGreedy"}},
    }  # fmt: skip
    results = lbm.Study.from_dict(document).run(tmp_path, progress=False)
    results.report(tmp_path / "report.html", progress=False)
    browser.get((tmp_path / "report.html").as_uri())
    code = "return document.querySelectorAll('.posterior .main-svg').length"
    wait_for(lambda: browser.execute_script(code))
    code = "return [...document.querySelectorAll('.posterior')].map(p => p.data.map(t => [t.x, t.y]))"
    drawn = browser.execute_script(code)
    assert results.replay is not None
    for agent, (memory, gamma, theta) in zip(("selector", "auto"), drawn, strict=True):
        again = results.replay("e", agent, 60, 60, 0)
        assert again is not None
        for (x, y), name in ((memory, "memory"), (gamma, "gamma")):
            told = {float(value): p for value, p in again["posterior"][name].items()}
            assert dict(zip(map(float, x), y, strict=True)) == pytest.approx(told, abs=1e-5)
            assert sum(y) == pytest.approx(1.0, abs=1e-4)
        np.testing.assert_allclose(theta[1], again["posterior"]["theta"], rtol=1e-5)
    assert browser.get_log("browser") == []
    assert not browser.find_element("id", "against-figure").is_displayed()
    assert not browser.find_element("id", "against").is_displayed()
    hidden = browser.find_elements("css selector", "#parameter, nav a[href='#parameter']")
    assert [each.is_displayed() for each in hidden] == [False, False]
    keep_screenshot(browser, "report-beliefs")


def test_a_phone_shows_all_of_it(browser: Any, page: Path) -> None:
    as_phone(browser)
    browser.get(page.as_uri())
    wait_for(lambda: browser.execute_script("return document.querySelectorAll('.picture .main-svg').length"))
    width, inner = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert inner == 390
    assert width <= inner  # nothing sticks out
    inside = browser.execute_script(
        "return [...document.querySelectorAll('.figure, select, fieldset')].filter(e => e.offsetParent)"
        ".map(e => e.getBoundingClientRect()).every(r => r.left >= 0 && r.right <= innerWidth + 1)"
    )
    assert inside
    apart = browser.execute_script(
        "return [...document.querySelectorAll('.figure')].filter(e => e.offsetParent)"
        ".map(e => [e.querySelector('.xtitle').getBoundingClientRect(),"
        " e.querySelector('.legend').getBoundingClientRect()])"
        ".map(([title, legend]) => legend.top - title.bottom)"
    )
    assert len(apart) == 3
    assert min(apart) >= 0  # no legend lies on the words of an axis
    keep_screenshot(browser, "report-phone")
    as_desk(browser)


def test_it_is_printed_without_controls(shown: Any) -> None:
    pdf = base64.b64decode(shown.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pdf.startswith(b"%PDF")
    keep_file("report.pdf", pdf)
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not shown.find_element("id", "controls").is_displayed()
    assert not any(each.is_displayed() for each in shown.find_elements("class name", "modebar-container"))
    assert shown.find_element("id", "curves").is_displayed()
    chosen = shown.find_element("id", "env").get_attribute("value")
    assert shown.find_element("id", "curves-note").text.startswith(f"{chosen}; ")  # the control is not there
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_regret_is_against_what_says_something(browser: Any, tmp_path: Path) -> None:
    near = {"theta": [0.6, 0.8], "m": 1, "gamma": -2.0}
    envs = {"near": near, "far": {**near, "m": math.inf, "decay": 0.5}}
    document = {"T": [20, 50], "seeds": 2, "env": envs, "agent": {"a": {"type": "OracleGreedy"}}}
    results = lbm.Study.from_dict(document).run(tmp_path, progress=False)
    browser.get(results.report(tmp_path / "report.html", progress=False).as_uri())
    wait_for(lambda: browser.execute_script("return document.querySelectorAll('#curves .main-svg').length"))

    def told(part: str = "curves-note") -> str:
        return str(browser.find_element("id", part).text)

    assert "longest horizon, T=50 (not drawn: T=20)" in told()
    choose(browser, "quantity", "regret")
    assert "regret against OPT (its upper bound, " in told()
    choose(browser, "env", "far")
    for part in ("curves-note", "growth-note"):
        assert "regret against the best cycle: the bounds on OPT, " in told(part)
    table = browser.find_element("id", "environments").text.splitlines()
    assert table[2].split()[:3] == ["far", "2", "inf"]
    x, y = lines(browser)["a"]
    best = results.comparator("far", np.array(x), "best cycle")
    means = results.frame.query("env == 'far' and T == 50").groupby("t")["reward"].mean()
    np.testing.assert_allclose(y, best - means[x], atol=1e-4)
    choose(browser, "comparator", "opt")  # what is chosen stays
    assert "regret against OPT (its upper bound, " in told()
    choose(browser, "env", "near")
    choose(browser, "env", "far")
    assert browser.find_element("id", "comparator").get_attribute("value") == "opt"
    assert browser.get_log("browser") == []
    keep_screenshot(browser, "report-far")


def test_one_line_has_one_comparator(browser: Any, tmp_path: Path) -> None:
    env = {"theta": [0.6, 0.8], "m": math.inf, "decay": 0.5, "grid": {"gamma": [1.0, -2.0]}}
    document = {"T": 20, "seeds": 2, "env": {"e": env}, "agent": {"a": {"type": "OracleGreedy"}}}
    results = lbm.Study.from_dict(document).run(tmp_path, progress=False)
    browser.get(results.report(tmp_path / "report.html", progress=False).as_uri())
    choose(browser, "quantity", "regret")
    assert "regret against OPT (exact);" in browser.find_element("id", "curves-note").text
    assert browser.find_element("id", "against-note").text.startswith("regret against the best cycle;")
    best = [results.comparator(name, np.array([20]), "best cycle")[0] for name in reversed(results.envs)]
    final = results.frame.query("t == 20").groupby("gamma")["reward"].mean()
    np.testing.assert_allclose(lines(browser, "against-figure")["a"][1], best - final, atol=1e-4)


def test_warnings_are_shown(browser: Any, tmp_path: Path) -> None:
    document = {**DOCUMENT, "env": {"e": {"theta": [0.6, 0.8], "m": 1}}}
    lbm.Study.from_dict(document).run(tmp_path, progress=False)
    pieces = sorted((tmp_path / "pieces").iterdir())
    pieces[0].write_bytes(b"?")
    assert cli.main(["report", str(tmp_path)]) == 0
    browser.get((tmp_path / "report.html").as_uri())
    notes = wait_for(lambda: browser.find_element("id", "notes").text)
    assert "is damaged and left out" in notes
    assert "the study is not finished: 5 runs are missing" in notes


def test_an_environment_of_ones_own_has_rewards_and_no_regret(browser: Any, tmp_path: Path) -> None:
    env = {"type": "tests.own_example:PlainModel", "theta": [0.6, 0.8], "m": 1, "gamma": -2.0}
    lbm.Study.from_dict(
        {"T": [10, 20], "seeds": 2, "env": {"own": env}, "agent": {"a": {"type": "OFUL"}}}
    ).run(tmp_path, progress=False)
    assert cli.main(["report", str(tmp_path)]) == 0
    browser.get((tmp_path / "report.html").as_uri())
    wait_for(lambda: browser.execute_script("return document.querySelectorAll('#curves .main-svg').length"))
    assert list(lines(browser)) == ["a"]
    assert axis(browser, "curves", "yaxis.title.text") == "cumulative expected reward"
    choose(browser, "quantity", "regret")
    assert lines(browser) == {}
    assert browser.find_element("id", "curves-note").text == "There is nothing to show."
    assert not browser.find_element("id", "growth-part").is_displayed()
    assert "own has no regret" in browser.find_element("id", "notes").text
    assert browser.get_log("browser") == []
