"""What results show of themselves: a short line, and in a notebook a table with a picture."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm._base.display import as_picture, as_table, short

ENV = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)


def things(folder: Path) -> dict[str, Any]:
    document = {
        "T": 300, "seeds": 3, "env": {"e": {"theta": [0.6, 0.8], "m": 1}},
        "agent": {"<b>greedy</b>": {"type": "OracleGreedy"}},
    }  # fmt: skip
    study = lbm.Study.from_dict(document)
    live = lbm.O3M(m=1, gamma=-2.0, horizon=50, L=4).start(lbm.Ball(2))
    live.act()
    return {
        "model": ENV,
        "agent": lbm.OFUL(100),
        "arms": lbm.Finite(np.eye(20)),
        "plan": lbm.best_block(ENV, L=30),
        "cycle": lbm.best_cycle(ENV, period=2),
        "bounds": lbm.opt_bounds(ENV, 50),
        "run": lbm.run(ENV, lbm.OracleGreedy(), T=1000, keep_actions=True),
        "runs": lbm.run_many(ENV, {"<b>greedy</b>": lbm.OracleGreedy()}, T=1000, seeds=30),
        "study": study,
        "results": study.run(folder, progress=False),
        "live": live,
    }


class Tags(HTMLParser):
    """Every opened tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_everything_shows_itself_in_a_few_words_and_as_a_table(tmp_path: Path) -> None:
    for name, thing in things(tmp_path).items():
        assert len(repr(thing)) < 600, name
        page = Tags()
        page.feed(thing._repr_html_())
        assert page.open == []
        assert "table" in page.seen, name
        assert "b" not in page.seen, name  # names are text
        assert len(thing._repr_html_()) < 200_000
        assert ("svg" in page.seen) == (name in ("plan", "cycle", "run")), name


def test_what_is_shown_is_what_there_is(tmp_path: Path) -> None:
    found = things(tmp_path)
    assert repr(found["runs"]) == "Results(runs=30, agents=['<b>greedy</b>'], complete=True)"
    assert (
        repr(found["study"]) == "Study(name='study', envs=['e'], agents=['<b>greedy</b>'], T=[300], seeds=3)"
    )
    assert "rows=600, envs=1, agents=1, seeds=3, missing=0" in repr(found["results"])
    assert "plans=1" in repr(found["live"])
    assert f"value={found['plan'].value:.6g}" in repr(found["plan"])
    assert "<th" in found["results"].summary_html()
    summary = found["results"].summary()
    assert f"{summary['mean'][0]:.4g}" in found["results"]._repr_html_()


@pytest.mark.nojit
def test_pictures_have_a_cell_for_each_coordinate() -> None:
    picture = as_picture(np.array([[1.0, -1.0], [0.0, 2.0]]))
    assert picture.count("<rect") == 4
    assert picture.count("rgb(255,0,0)") == 2
    assert "rgb(0,0,255)" in picture
    assert as_picture(np.zeros((0, 2))) == ""
    assert as_picture(np.zeros((10**4, 2))).count("<rect") == 400


@pytest.mark.nojit
def test_values_are_shown_in_short() -> None:
    assert short(np.arange(3)) == "[0, 1, 2]"
    assert short("x" * 1000) == "<str>"
    assert as_table("a<b", {"c<d": "e<f"}).count("&lt;") == 3
