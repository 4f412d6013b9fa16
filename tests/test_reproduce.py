"""The experiments: claims that can fail, tables that are the same twice, mistakes named, labels apart."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text

from reproduce import __main__ as command
from reproduce import claims, look
from reproduce.page import Page, markdown

ROOT = Path(__file__).resolve().parent.parent


def claim(value: float, low: float, high: float, remark: str = "") -> claims.Claim:
    number = claims.Number(value, low, high)
    return claims.Claim(
        "c", "w", "s", "m", number=number, at_least=1.0, at_most=2.0, must=(1.2, 1.8), remark=remark
    )


@pytest.mark.parametrize(
    ("made", "verdict", "fails"),
    [
        (claim(1.5, 1.4, 1.6), "holds", False),
        (claim(1.5, 1.4, 1.6, "but"), "holds with a remark", False),
        (claim(1.5, 0.9, 1.6), "holds with a remark", False),
        (claim(0.9, 0.8, 1.1), "does not hold", True),
        (claim(1.9, 1.85, 1.95), "holds", True),
        (claim(2.1, 1.9, 2.2), "does not hold", True),
        (claim(math.nan, math.nan, math.nan), "does not hold", True),
    ],
)
def test_verdicts_and_failures(made: claims.Claim, verdict: str, fails: bool) -> None:
    assert made.verdict == verdict
    assert bool(made.failed) == fails
    assert command.report([made]) == int(fails)


def test_an_interval_across_the_bound_is_told() -> None:
    assert "across" in claim(0.9, 0.8, 1.1).remarks
    assert "across" in claim(1.5, 0.9, 1.6).remarks
    assert claim(0.9, 0.8, 0.95).remarks == ""


def test_an_interruption_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_make", interrupted)
    assert command.main(["greedy", "--out", str(tmp_path)]) == 130


def test_an_unchecked_statement_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.report([], ["some claim"]) == 1
    assert "FAILED some claim" in capsys.readouterr().err


def test_intervals_cover_the_mean_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(200):
        number = claims.mean(rng.standard_normal(40))
        inside += number.low <= 0.0 <= number.high
    assert 180 <= inside <= 199
    values = rng.uniform(1.0, 2.0, 30)
    assert claims.ratio(2.0 * values, values) == pytest.approx((2.0, 2.0, 2.0))
    T = np.array([10.0, 100.0, 1000.0])
    regrets = 3.0 * T[:, None] ** 0.7 * np.array([[0.9, 1.1]])
    assert claims.exponent(T, regrets).value == pytest.approx(0.7)


def test_every_statement_is_checked_by_an_experiment_that_runs_with_claims() -> None:
    sources = "".join(
        (ROOT / "reproduce" / f"{name.replace('-', '_')}.py").read_text() for name in command.GROUPS["claims"]
    )
    for name, said in claims.statements().items():
        low, high = said["must"]
        assert low < high, name
        stem = name.removesuffix(", rotting").removesuffix(", rising")
        assert f'"{name}"' in sources or stem in sources, name


def test_the_tables_are_the_same_twice_and_hold_the_closed_forms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("once", "twice"):
        assert command.main(["fig1-right", "greedy", "--quick", "--out", str(tmp_path / name)]) == 0
    printed = capsys.readouterr().out
    for page in ("fig1-right", "greedy"):
        for ending in (".png", ".pdf", ".csv", ".md"):
            path = tmp_path / "once" / page / f"{page}{ending}"
            assert str(path) in printed
            assert path.stat().st_size > 0
            if ending in (".csv", ".md"):
                assert path.read_bytes() == (tmp_path / "twice" / page / path.name).read_bytes()
    table = (tmp_path / "once/fig1-right/fig1-right.md").read_text()
    short, greedy, pi_2 = 3.0, math.sqrt(0.01), math.sqrt(0.99)  # m (m+1)/2 steps' worth is missing
    assert f"| 0.1 | oracle greedy | {(3 * 1200 - short) * greedy:.3f} | 360.000 | -0.300 |" in table
    assert f"| 0.1 | pi_2 | {(2 * 1200 - short) * pi_2:.3f} | 2387.970 | -2.985 |" in table
    # More runs keep the ones that are there.
    pieces = set((tmp_path / "once/fig1-right/study/pieces").iterdir())
    assert command.main(["fig1-right", "--runs", "6", "--out", str(tmp_path / "once")]) == 0
    assert pieces < set((tmp_path / "once/fig1-right/study/pieces").iterdir())


def test_a_number_outside_of_its_interval_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = claims.statements()
    said["greedy's regret, rising"]["must"] = [2.0, 3.0]
    monkeypatch.setattr("reproduce.page.statements", lambda: said)
    assert command.main(["greedy", "--out", str(tmp_path)]) == 1
    assert "FAILED greedy's regret, rising: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["fig3"], ["--out", __file__], ["--runs", "1"], ["--runs", "many"], ["fig2", "fig4"]]
)
def test_mistakes_are_named(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        command.main(arguments)
    assert stop.value.code == 2
    assert "must be" in (words := capsys.readouterr().err) or "invalid int value" in words


def test_every_agent_looks_different() -> None:
    shapes = [(one.dashes, one.marker) for one in look.LOOKS.values() if one.marker]
    assert len(set(shapes)) == len(shapes)  # told apart without colour


def test_labels_at_the_ends_keep_apart() -> None:
    figure, (axes,) = look.panels(1)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    look.label_ends(axes, {"O3M": 0.50, "OM": 0.51, "OFUL": 0.505, "pi_2": 0.99})
    figure.draw_without_rendering()
    boxes = sorted(Text.get_window_extent(text).extents[[1, 3]].tolist() for text in axes.texts)
    assert len(boxes) == 4
    assert all(above[0] >= below[1] - 1.0 for below, above in itertools.pairwise(boxes))  # in pixels


def test_pages_write_plain_tables(tmp_path: Path) -> None:
    page = Page("x", tmp_path)
    page.numbers(("a", "b"), [("one, two", 1.0), ("three", 1 / 3)])
    assert (tmp_path / "x/x.csv").read_text() == 'a,b\n"one, two",1\nthree,0.3333333333\n'
    assert markdown(("a", "b"), [(1, 2)]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    with pytest.raises(KeyError):
        page.claim("a statement that is not there", claims.exact(1.0))
