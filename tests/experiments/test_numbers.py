"""Versions of the numbers: what an earlier version stored is read, told, kept, and never mixed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import fastlbm as lbm
from fastlbm import cli
from fastlbm._version import NUMBERS
from fastlbm.experiments import store as stores
from fastlbm.experiments import study as studies
from fastlbm.experiments.store import Store, StoreError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """The folder of a study as the first version left it: two agents, two seeds, T=20."""
    return Path(shutil.copytree(ROOT / "tests" / "data" / "stored_study", tmp_path / "stored"))


def document(folder: Path) -> dict[str, object]:
    return dict(json.loads((folder / "manifest.json").read_text())["study"])


def set_numbers(monkeypatch: pytest.MonkeyPatch, numbers: int) -> None:
    for module in (stores, studies):
        monkeypatch.setattr(module, "NUMBERS", numbers)


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_a_stored_study_is_read_and_resumed_without_computing(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = lbm.Study.from_dict(document(stored))
    words = f"the rows are of version 1 of the numbers, this is version {NUMBERS}"
    with pytest.warns(UserWarning, match=words):
        results = study.results(stored)
    read = results.frame
    assert results.numbers == 1
    assert list(read.columns)[:7] == ["env", "agent", "T", "seed", "t", "reward", "observed"]
    assert {"d", "m", "gamma", "sigma", "agent_type"} <= set(read.columns[7:])  # told by the study
    assert len(read) == 2 * 2 * 2
    manifest, before = (stored / "manifest.json").read_bytes(), contents(stored / "pieces")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a finished study computed something")

    monkeypatch.setattr(studies, "play_episode", refuse)
    with pytest.warns(UserWarning, match=words):
        resumed = study.run(stored, executor=1, progress=False).frame
    pd.testing.assert_frame_equal(resumed, read, check_exact=True)
    assert contents(stored / "pieces") == before
    assert (stored / "manifest.json").read_bytes() == manifest


def test_a_stored_study_is_drawn_and_said_to_be_old(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plot", str(stored), "--band", "none"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told == [line for line in told if line.startswith("fastlbm: the rows are of version 1")]
    assert told


def test_a_stored_study_is_extended_and_its_pieces_are_kept(stored: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="version 1"):
        old = lbm.Study.from_dict(document(stored)).results(stored).frame
    before = contents(stored / "pieces")
    study = lbm.Study.from_dict({**document(stored), "seeds": 3, "T": [20, 30]})
    with pytest.warns(UserWarning, match="2 pieces are of version 1 .* kept in .*, computed again"):
        results = study.run(stored, executor=1, progress=False)
    extended = results.frame
    assert contents(stored / "superseded" / "numbers-1") == before
    assert json.loads((stored / "manifest.json").read_text())["numbers"] == results.numbers == NUMBERS
    fresh = study.run(tmp_path / "fresh", executor=1, progress=False).frame
    pd.testing.assert_frame_equal(extended, fresh, check_exact=True)
    # Another machine may round differently: the stored rows come from one, these from this. Plans have other
    # numbers by now, what is earned without a plan has not.
    kept = extended.query("seed < 2 and T == 20").reset_index(drop=True)
    numbers = ["reward", "observed"]
    pd.testing.assert_frame_equal(kept.drop(columns=numbers), old.drop(columns=numbers))
    unplanned = "agent == 'greedy'"
    assert len(kept.query(unplanned)) == 4
    pd.testing.assert_frame_equal(kept.query(unplanned), old.query(unplanned), rtol=1e-6)


def test_no_table_mixes_versions_of_the_numbers(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, text = tmp_path / "out", file.read_text()
    file.write_text(text.replace("seeds = 6", "seeds = 2"))
    lbm.Study.from_toml(file).run(out, progress=False)
    old = contents(out / "pieces")
    file.write_text(text.replace("seeds = 6", "seeds = 4"))
    study = lbm.Study.from_toml(file)
    set_numbers(monkeypatch, NUMBERS + 1)
    with pytest.warns(UserWarning, match=f"are of version {NUMBERS} of the numbers, .* computed again"):
        results = study.run(out, progress=False)
    assert results.numbers == NUMBERS + 1
    assert not results.missing
    assert {piece.numbers for piece in Store(out).scan()[0].pieces} == {NUMBERS + 1}
    assert contents(out / "superseded" / f"numbers-{NUMBERS}") == old
    # Were they there together, nothing would be read, and a run would sort it out.
    for name in old:
        shutil.copy(out / "superseded" / f"numbers-{NUMBERS}" / name, out / "pieces" / name)
    with pytest.raises(StoreError, match=f"several versions of the numbers .{NUMBERS}, {NUMBERS + 1}."):
        study.results(out)
    with pytest.warns(UserWarning, match="computed again"):
        again = study.run(out, progress=False).frame
    pd.testing.assert_frame_equal(again, results.frame, check_exact=True)


def test_rows_of_a_newer_version_are_read_and_not_replaced(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as later:
        set_numbers(later, NUMBERS + 1)
        lbm.Study.from_toml(file).run(out, progress=False)
    before = contents(out / "pieces")
    with pytest.warns(UserWarning, match=f"of version {NUMBERS + 1} of the numbers, this is"):
        lbm.Study.from_toml(file).run(out, progress=False)
    file.write_text(file.read_text().replace("seeds = 6", "seeds = 7"))
    with pytest.raises(StoreError, match="go on with the version of fastlbm that computed them"):
        lbm.Study.from_toml(file).run(out, progress=False)
    assert contents(out / "pieces") == before
