"""A finished study answers from its folder alone, with the numbers that it had; else it is computed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import fastlbm as lbm
from fastlbm import cli
from fastlbm.experiments import finished
from fastlbm.experiments import study as studies
from fastlbm.experiments.finished import summary_of_finished
from tests.experiments.conftest import TEXT


@pytest.fixture
def out(file: Path, tmp_path: Path) -> Path:
    lbm.Study.from_toml(file).run(tmp_path / "out", progress=False)
    return tmp_path / "out"


def same(file: Path, out: Path) -> bool:
    """Whether the folder alone gives the summary of the study."""
    found = summary_of_finished(file, out)
    if found is None:
        return False
    study = lbm.Study.from_toml(file)
    pd.testing.assert_frame_equal(found[1], study.results(out).summary(), check_dtype=False, check_exact=True)
    return found[0] == study.spec.name


def test_the_folder_alone_gives_the_summary(file: Path, out: Path) -> None:
    assert same(file, out)
    file.write_text("# the same study\n" + TEXT.replace("seed = 3", "seed   =   3 # the third"))
    assert same(file, out)


def test_fewer_seeds_and_settings_are_the_rows_of_those(file: Path, out: Path) -> None:
    file.write_text(TEXT.replace("seeds = 6", "seeds = 4").replace("T = [60, 120]", "T = 60"))
    assert summary_of_finished(file, out) is None
    lbm.Study.from_toml(file).run(out, progress=False)
    assert same(file, out)


def test_merged_pieces_and_work_done_twice(file: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies, "MOST_FILES", 1)
    lbm.Study.from_toml(file).run(out, progress=False)
    (many,) = (out / "pieces").iterdir()
    assert many.name.startswith("many-")
    assert same(file, out)
    lbm.Study.from_toml(file).run(out.with_name("again"), progress=False)
    for piece in (out.with_name("again") / "pieces").iterdir():
        (out / "pieces" / piece.name).write_bytes(piece.read_bytes())
    assert same(file, out)


def test_settings_that_share_their_rows(file: Path, out: Path) -> None:
    file.write_text(TEXT + '\n[agent.again]\ntype = "OracleGreedy"\n')
    lbm.Study.from_toml(file).run(out, progress=False)
    assert same(file, out)


def remove_a_piece(file: Path, out: Path) -> None:
    next((out / "pieces").iterdir()).unlink()


def damage_a_piece(file: Path, out: Path) -> None:
    next((out / "pieces").iterdir()).write_bytes(b"?")


def more_seeds(file: Path, out: Path) -> None:
    file.write_text(TEXT.replace("seeds = 6", "seeds = 7"))


def another_agent(file: Path, out: Path) -> None:
    file.write_text(TEXT.replace("switch = [0.0, 1.0]", "switch = [0.0, 0.5]"))


def no_toml(file: Path, out: Path) -> None:
    file.write_text("name = ")


def no_integer(file: Path, out: Path) -> None:
    file.write_text(TEXT.replace("seeds = 6", "seeds = 6.0"))


def change_manifest(**changes: object) -> Callable[[Path, Path], None]:
    def change(file: Path, out: Path) -> None:
        manifest = json.loads((out / "manifest.json").read_text())
        (out / "manifest.json").write_text(json.dumps({**manifest, **changes}))

    return change


@pytest.mark.parametrize(
    "change",
    [
        remove_a_piece,
        damage_a_piece,
        more_seeds,
        another_agent,
        no_toml,
        no_integer,
        change_manifest(numbers=3),
        change_manifest(versions={"fastlbm": "0.1.0"}),
        change_manifest(versions=3),
        change_manifest(settings=[]),
        change_manifest(settings=3),
        change_manifest(settings=[{"current": True}]),
        change_manifest(format="another"),
    ],
)
def test_what_is_not_sure_is_left_to_the_study(
    file: Path, out: Path, change: Callable[[Path, Path], None]
) -> None:
    change(file, out)
    assert summary_of_finished(file, out) is None
    assert summary_of_finished(file, out.with_name("none")) is None


def test_a_class_of_ones_own_is_left_to_the_study(tmp_path: Path) -> None:
    file, out = tmp_path / "own.toml", tmp_path / "out"
    own = '[env.own]\ntype = "tests.own_example:PlainModel"\ntheta = [0.6, 0.8]\nm = 1\ngamma = -2.0\n'
    file.write_text(f'T = 8\nseeds = 2\n[agent.a]\ntype = "OFUL"\n{own}')
    lbm.Study.from_toml(file).run(out, progress=False)
    assert summary_of_finished(file, out) is None


def test_the_command_says_the_same_either_way(
    file: Path, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answers() -> list[str]:
        for options in ([], ["--json"]):
            assert cli.main(["study", str(file), "--out", str(out), *options]) == 0
        said = capsys.readouterr()
        assert said.err == ""
        return said.out.splitlines()

    quick = answers()
    monkeypatch.setattr(finished, "summary_of_finished", lambda *_: None)
    assert answers() == quick


def test_nothing_is_loaded_that_plays(file: Path, out: Path) -> None:
    code = (
        "import sys; from fastlbm import cli; code = cli.main(sys.argv[1:]); "
        "print([name for name in ('numba', 'fastlbm.agents', 'scipy') if name in sys.modules]); "
        "sys.exit(code)"
    )
    command = [sys.executable, "-c", code, "study", str(file), "--out", str(out)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
