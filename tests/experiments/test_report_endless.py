"""The report of a study with a memory without end and parts of one's own, in a real browser."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

import fastlbm as lbm
from fastlbm.experiments.report.data import gather
from fastlbm.experiments.results import StudyResults
from tests.experiments.browser import keep_screenshot, open_browser, wait_for, why_not

DOCUMENT: dict[str, Any] = {
    "seeds": 2, "T": 40, "record": 10,
    "env": {
        "fade": {"theta": [0.6, 0.8], "gamma": -2.0, "m": math.inf, "grid": {"decay": [0.5, 0.9]}},
        "ends": {"theta": [0.6, 0.8], "gamma": -2.0, "m": 2, "decay": 0.5},
        "paper": {"theta": [0.6, 0.8], "gamma": -2.0, "m": 2},
        "own": {"type": "tests.own_example:PlainModel", "theta": [0.6, 0.8], "gamma": -2.0, "m": 2},
    },
    "agent": {
        "told nothing": {"type": "Auto", "decays": [0.5, 0.9]},
        "mine": {"type": "tests.own_example:RidgeGreedy"},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> StudyResults:
    return lbm.Study.from_dict(DOCUMENT).run(tmp_path_factory.mktemp("study"), progress=False)


@pytest.fixture(scope="module")
def browser(results: StudyResults, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if why_not():
        pytest.skip(f"a page is tested in a browser: {why_not()}")
    page = results.report(tmp_path_factory.mktemp("page") / "report.html", progress=False)
    with open_browser(tmp_path_factory.mktemp("profile")) as found:
        found.get(page.as_uri())
        code = "return document.querySelectorAll('.posterior .main-svg').length"
        wait_for(lambda: found.execute_script(code))
        yield found


def choose(browser: Any, name: str, value: str) -> None:
    code = (
        "const c = document.getElementById(arguments[0]); c.value = arguments[1];"
        "c.dispatchEvent(new Event('change', {bubbles: true}))"
    )
    browser.execute_script(code, name, value)


def drawn(browser: Any) -> list[list[Any]]:
    return browser.execute_script("return document.getElementById('against-figure').data.map(t => t.x)")  # type: ignore[no-any-return]


def test_infinite_parameters_are_texts_and_own_agents_are_named(results: StudyResults) -> None:
    content = gather(results, progress=False)
    assert content["envs"]["fade(decay=0.5)"]["parameters"]["m"] == "inf"
    assert content["envs"]["ends"]["parameters"]["m"] == 2
    columns, rows = (content["environments"][name] for name in ("columns", "rows"))
    memories = {row[0]: row[columns.index("m")] for row in rows}
    assert memories == {
        "fade(decay=0.5)": "inf",
        "fade(decay=0.9)": "inf",
        "ends": 2,
        "paper": 2,
        "own": None,
    }
    assert content["own"] == {
        **{env: ["mine"] for env in ("fade(decay=0.5)", "fade(decay=0.9)", "ends", "paper")},
        "own": ["told nothing", "mine"],
    }


def test_tables_and_beliefs_show_infinity(browser: Any) -> None:
    cells = browser.execute_script(
        "return [...document.querySelectorAll('#environments tbody tr')].map(r => r.cells[2])"
        ".map(c => [c.textContent, c.className])"
    )
    assert cells == [[text, "number"] for text in ("inf", "inf", "2", "2", "")]
    believed = browser.execute_script("return document.querySelector('.posterior').data[0].x")
    assert believed[-1] == "inf"
    assert "NaN" not in browser.find_element("tag name", "body").text
    keep_screenshot(browser, "report-endless")


def test_parameters_that_some_environments_lack_are_offered(browser: Any) -> None:
    offered = [
        each.get_attribute("value") for each in browser.find_elements("css selector", "#against option")
    ]
    assert offered == ["m", "decay"]
    choose(browser, "env", "fade(decay=0.5)")
    choose(browser, "against", "decay")
    assert drawn(browser) == [[0.5, 0.9]] * 2
    assert "m=inf, gamma=-2" in browser.find_element("id", "against-note").text
    choose(browser, "against", "m")
    assert drawn(browser) == [[2, "inf"]] * 2
    code = "return document.getElementById('against-figure')._fullLayout.xaxis.type"
    assert browser.execute_script(code) == "category"
    choose(browser, "env", "ends")
    assert drawn(browser) == [[2, "inf"]] * 2
    choose(browser, "against", "decay")
    assert drawn(browser) == [[0.5, 1]] * 2
    choose(browser, "env", "own")
    assert drawn(browser) == []
    assert "There is nothing to show over decay" in browser.find_element("id", "against-note").text
    assert browser.get_log("browser") == []


def test_agents_of_ones_own_that_are_not_shown_are_named(browser: Any) -> None:
    choose(browser, "env", "paper")
    note = browser.find_element("id", "work-note").text
    assert "Not shown: mine, because agents and environments of your own are not played again" in note
    choose(browser, "env", "own")
    note = browser.find_element("id", "work-note").text
    assert note.startswith("No agent was played again here. Not shown: told nothing, mine, because")
