"""The figures: the numbers that the paper states, the same tables twice, mistakes named."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from reproduce import __main__ as command
from reproduce import fig1_right


def test_fig1_right_has_the_closed_forms_of_the_paper() -> None:
    curves, distance = fig1_right.rewards()
    short = fig1_right.M * (fig1_right.M + 1) / 2  # steps' worth of reward that an empty memory costs
    e_1, e_2 = math.sqrt(fig1_right.EPSILON), math.sqrt(1.0 - fig1_right.EPSILON)
    assert distance < 1e-12
    np.testing.assert_allclose(curves[fig1_right.GREEDY][-1], 1200 * 3 * e_1 - short * e_1, rtol=1e-12)
    np.testing.assert_allclose(curves[fig1_right.E1][-1], 1200 * 3 * e_1 - short * e_1, rtol=1e-12)
    np.testing.assert_allclose(curves[fig1_right.PI2][-1], 1200 * 2 * e_2 - short * e_2, rtol=1e-12)


def test_the_tables_are_the_same_twice_and_in_the_readme(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("once", "twice"):
        assert command.main(["fig1-right", "--out", str(tmp_path / name)]) == 0
    printed = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert len(printed) == 8
    assert all(path.stat().st_size > 0 for path in printed)
    for table in ("fig1_right.csv", "fig1_right.md"):
        assert (tmp_path / "once" / table).read_bytes() == (tmp_path / "twice" / table).read_bytes()
    readme = (Path(command.__file__).parent / "README.md").read_text(encoding="utf-8")
    rows = [line for line in (tmp_path / "once" / "fig1_right.md").read_text().splitlines() if "|" in line]
    assert [row for row in rows if row not in readme] == []


@pytest.mark.parametrize("arguments", [["fig2"], ["--out", __file__]])
def test_mistakes_are_named(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        command.main(arguments)
    assert stop.value.code == 2
    assert "must be" in capsys.readouterr().err
