"""Many small pieces become few: the same rows at every moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fastlbm as lbm
from fastlbm.experiments import study as studies
from fastlbm.experiments.store import Piece, Store, _consecutive
from tests.experiments.conftest import TEXT
from tests.experiments.test_export import check_means
from tests.experiments.test_study import slow_seeds


@pytest.fixture
def many(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[lbm.Study, pd.DataFrame]:
    """A study whose pieces have one or two seeds each, and its rows."""
    file.write_text(TEXT.replace("seeds = 6", "seeds = 8"))
    study = lbm.Study.from_toml(file)
    whole = study.run(tmp_path / "whole", progress=False).frame
    slow_seeds(monkeypatch, 0.6)
    return study, whole


def pieces(out: Path) -> list[str]:
    return sorted(path.name for path in (out / "pieces").iterdir())


def test_many_pieces_become_one_for_each_cell(
    many: tuple[lbm.Study, pd.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (study, whole), out = many, tmp_path / "out"
    study.run(out, executor=1, progress=False)
    assert len(pieces(out)) > 2 * len(study.spec.cells)  # they are few: nothing is merged
    monkeypatch.setattr(studies, "MOST_PIECES", 10)
    study.run(out, progress=False)
    assert len(pieces(out)) > 2 * len(study.spec.cells)  # there was nothing to compute
    results = study.run(tmp_path / "merged", executor=1, progress=False)
    assert pieces(tmp_path / "merged") == sorted(f"{key}-0-7.parquet" for key in study._keys)
    pd.testing.assert_frame_equal(results.frame, whole, check_exact=True)
    check_means(tmp_path / "merged", results)


@pytest.mark.parametrize("moment", [0, 1, 7])
def test_interrupted_while_merging_no_row_is_lost_or_twice(
    many: tuple[lbm.Study, pd.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    (study, whole), out = many, tmp_path / "out"
    monkeypatch.setattr(studies, "MOST_PIECES", 10)
    real, removed = Path.unlink, []

    def unlink(self: Path, *arguments: Any, **keywords: Any) -> None:
        if self.suffix == ".parquet":
            if len(removed) == moment:
                raise KeyboardInterrupt
            removed.append(self)
        real(self, *arguments, **keywords)

    monkeypatch.setattr(Path, "unlink", unlink)
    with pytest.raises(KeyboardInterrupt):
        study.run(out, executor=1, progress=False)
    monkeypatch.setattr(Path, "unlink", real)
    results = study.run(out, progress=False)
    pd.testing.assert_frame_equal(results.frame, whole, check_exact=True)
    check_means(out, results)


def test_only_what_follows_each_other_is_merged() -> None:
    def piece(key: str, first: int, last: int, numbers: int = studies.NUMBERS) -> Piece:
        return Piece(key, first, last, numbers=numbers, rows=1)

    every = [
        piece("a", 4, 5), piece("a", 0, 1), piece("a", 2, 3),  # one
        piece("b", 0, 1), piece("b", 3, 4),  # a gap
        piece("c", 0, 1, 1), piece("c", 2, 3, 1),  # of an earlier version of the numbers
        piece("d", 0, 3), piece("d", 2, 5), piece("d", 6, 7),  # twice, then one after the other
        piece("e", 8, 9),
    ]  # fmt: skip
    assert list(_consecutive(every)) == [[1, 2, 0], [8, 9]]
    assert list(_consecutive([])) == []


@pytest.mark.parametrize("damaged_before", [False, True])
def test_a_merged_piece_is_as_sound_as_any(damaged_before: bool, tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.open("x"):
        for seed in range(3):
            rows = {"seed": [seed] * 2, "t": [1, 2], "reward": np.arange(2.0) + seed, "observed": [0.0] * 2}
            store.write("k", range(seed, seed + 1), pd.DataFrame(rows))
        before = store.scan()[0]
        if damaged_before:
            (store.pieces / "k-0-2.parquet").write_bytes(b"no rows")
        store.merge(before, {"k": {"key": "k"}})
        after, damaged = store.scan()
    assert [piece.name for piece in after.pieces] == ["k-0-2.parquet"]
    assert not damaged
    np.testing.assert_array_equal(after.column("reward"), before.column("reward"))


def test_a_great_many_pieces_become_one_file(
    many: tuple[lbm.Study, pd.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (study, whole), out = many, tmp_path / "out"
    monkeypatch.setattr(studies, "MOST_PIECES", 5)
    monkeypatch.setattr(studies, "MOST_FILES", 10)
    results = study.run(out, executor=1, progress=False)
    names = pieces(out)
    assert 1 < len(names) <= 20  # some were gathered on the way
    assert any(name.startswith("many-") for name in names)
    pd.testing.assert_frame_equal(results.frame, whole, check_exact=True)
    check_means(out, results)  # by what reads Parquet alone
    again = study.run(out, progress=False)
    pd.testing.assert_frame_equal(again.frame, whole, check_exact=True)


def test_pieces_of_a_finished_study_are_gathered_when_it_is_read(
    many: tuple[lbm.Study, pd.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (study, whole), out = many, tmp_path / "out"
    study.run(out, executor=1, progress=False)
    monkeypatch.setattr(studies, "MOST_FILES", 10)
    study.run(out, progress=False)
    (name,) = pieces(out)
    results = study.run(out, progress=False)
    pd.testing.assert_frame_equal(results.frame, whole, check_exact=True)
    assert pieces(out) == [name]
    # More seeds come beside it, and what it holds of other settings is left alone.
    more = lbm.Study.from_dict({**study.spec.document, "seeds": 9})
    assert more.run(out, progress=False).frame["seed"].max() == 8
    part = {**study.spec.document, "agent": {"greedy": study.spec.document["agent"]["greedy"]}}
    frame = lbm.Study.from_dict(part).run(out, progress=False).frame
    wanted = whole[whole["agent"] == "greedy"].reset_index(drop=True)
    pd.testing.assert_frame_equal(frame[wanted.columns[:7]], wanted[wanted.columns[:7]], check_exact=True)


def test_a_damaged_file_of_many_is_set_aside_and_computed_again(
    many: tuple[lbm.Study, pd.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (study, whole), out = many, tmp_path / "out"
    monkeypatch.setattr(studies, "MOST_FILES", 10)
    study.run(out, progress=False)
    study.run(out, progress=False)
    (name,) = pieces(out)
    content = bytearray((out / "pieces" / name).read_bytes())
    content[100] ^= 1  # a bit of a row
    (out / "pieces" / name).write_bytes(content)
    with pytest.warns(UserWarning, match=f"{name} was damaged: set aside"):
        results = study.run(out, progress=False)
    pd.testing.assert_frame_equal(results.frame, whole, check_exact=True)


def test_a_file_of_many_of_other_numbers_is_superseded_as_a_whole(
    many: tuple[lbm.Study, pd.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (study, whole), out = many, tmp_path / "out"
    monkeypatch.setattr(studies, "MOST_FILES", 10)
    study.run(out, progress=False)
    study.run(out, progress=False)
    (name,) = pieces(out)
    monkeypatch.setattr(studies, "NUMBERS", studies.NUMBERS + 1)
    more = lbm.Study.from_dict({**study.spec.document, "seeds": 9})
    with pytest.warns(UserWarning, match="of the numbers, this is version"):
        more.run(out, progress=False)
    assert (out / "superseded" / f"numbers-{studies.NUMBERS - 1}" / name).is_file()
    assert len(whole)
