"""What people do wrong most: each answer is a sentence that says how to go on."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm import cli
from tests.experiments.conftest import TEXT


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(TEXT)
    return path


def second_update() -> None:
    live = lbm.OFUL(horizon=10).start(lbm.Ball(2))
    live.act()
    live.update(0.5)
    live.update(0.5)


def late_second_update() -> None:
    live = lbm.OFUL(horizon=10).start(lbm.Ball(2))
    for _ in range(2):
        live.act()
        live.update(0.5)
    live.update(0.5, step=0)


@pytest.mark.parametrize(
    ("mistake", "error", "words"),
    [
        (second_update, ValueError, "got 0, which has its reward: call act() for the next step before its"),
        (late_second_update, ValueError, "got 0, which has its reward, or can have none any more: only"),
        (
            lambda: lbm.O3M(),  # type: ignore[call-arg]
            TypeError,
            "O3M must be called as O3M(m=..., gamma=..., horizon=...): missing a required argument: 'm'; it "
            "takes m, gamma, horizon, L, lam,",
        ),
        (
            lambda: lbm.OFUL(10, lamda=1.0),  # type: ignore[call-arg]
            TypeError,
            "OFUL must be called as OFUL(horizon=...): got an unexpected keyword argument 'lamda'; it takes",
        ),
        (
            lambda: lbm.OracleGreedy(3),  # type: ignore[call-arg]
            TypeError,
            "OracleGreedy must be called as OracleGreedy(): too many positional arguments; it takes no arg",
        ),
        (lambda: lbm.Finite([]), ValueError, "such as [[1.0, 0.0], [0.0, 1.0]], got none"),
        (
            lambda: lbm.OFUL(10).start(np.eye(3)),  # type: ignore[arg-type]
            TypeError,
            "got an object of type ndarray; for arms write start(Finite(array)), a row each, for the ball",
        ),
        (
            lambda: lbm.OFUL(10).start([[1.0, 0.0]]),  # type: ignore[arg-type]
            TypeError,
            "got an object of type list; for arms write start(Finite(array))",
        ),
    ],
)
def test_a_mistake_gets_a_sentence_that_helps(
    mistake: Callable[[], object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as raised:
        mistake()
    said = str(raised.value)
    assert words in said
    assert len(said) < 400
    assert "\n" not in said


def test_no_jobs_is_no_number_of_threads(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["study", str(file), "--jobs", "0"]) == 2
    said = capsys.readouterr().err
    assert said == (
        "fastlbm: --jobs must be the number of threads that work, at least 1, got 0; leave it out for one "
        "thread a core\n"
    )
    assert not file.with_suffix("").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["study", "none.toml"], "a study must be a TOML file, got 'none.toml', which is not there"),
        (["study", "."], "a study must be a TOML file, got '.', a folder"),
        (["plot", "none"], "DIR must be the folder of a study's results, got 'none' without a manifest.json"),
        (["export", "none", "x.csv"], "DIR must be the folder of a study's results, got 'none' without"),
        (["report", "small.toml"], "DIR must be the folder of a study's results, got 'small.toml' without"),
    ],
)
def test_what_is_no_study_is_told_as_such(
    arguments: list[str],
    words: str,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(file.parent)
    assert cli.main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"fastlbm: {words}")
    assert "Errno" not in said
    assert list(file.parent.iterdir()) == [file]


def test_damage_says_what_was_lost_and_what_becomes_of_it(file: Path, tmp_path: Path) -> None:
    study, out = lbm.Study.from_toml(file), tmp_path / "out"
    study.run(out, progress=False)
    piece = sorted((out / "pieces").iterdir())[0]
    piece.write_bytes(b"?")
    where = r"\(seeds 0 to 5 of (greedy|oful\(switch=[01]\.0\)) in (rotting|arms\(.*\)) with T=(60|120)\)"
    with pytest.warns(UserWarning, match=rf"{piece.name} {where} in .* is damaged and left out: run the"):
        study.results(out)
    words = (
        rf"{piece.name} {where} was damaged: set aside in {re.escape(str(out / 'damaged'))}, computed again"
    )
    with pytest.warns(UserWarning, match=words):
        study.run(out, progress=False)
