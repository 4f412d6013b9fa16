"""Files of studies as strict JSON, also where a memory has no end: manifests, pieces and exported rows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fastlbm as lbm
from fastlbm import cli
from fastlbm.experiments.export import _json
from fastlbm.experiments.results import StudyResults

DOCUMENT: dict[str, Any] = {
    "name": "inf", "seeds": 2, "T": 20, "record": 4,
    "env": {
        "window": {"theta": [0.6, 0.8], "m": 2, "gamma": -2.0},
        "inf": {"theta": [0.6, 0.8], "gamma": -2.0, "decay": 0.5, "grid": {"m": [1, math.inf]}},
    },
    "agent": {"knows": {"type": "Rolling", "m": "env", "gamma": "env", "decay": "env"}},
}  # fmt: skip
ENDLESS = "inf(m=inf)"


@pytest.fixture(scope="module")
def results(folder: Path) -> StudyResults:
    return lbm.Study.from_results(folder).results(folder)


def strict(text: str) -> Any:
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def test_the_manifest_is_strict_and_says_the_same_study(folder: Path) -> None:
    manifest = strict((folder / "manifest.json").read_text())
    assert manifest["study"]["env"]["inf"]["grid"]["m"] == [1, "inf"]
    assert {each["env"]: each["m"] for each in manifest["settings"]}[ENDLESS] == "inf"
    settings = pl.read_json(folder / "manifest.json")["settings"].explode().struct.unnest()
    memories = dict(zip(settings["env"], settings["m"].cast(pl.Float64), strict=True))
    assert memories == {"window": 2.0, "inf(m=1)": 1.0, ENDLESS: math.inf}
    study, again = lbm.Study.from_dict(DOCUMENT), lbm.Study.from_results(folder)
    assert again.spec.document == study.spec.document
    assert again.fingerprint == study.fingerprint == manifest["fingerprint"]
    assert again._keys == study._keys


def test_pieces_say_parameters_in_strict_json(folder: Path) -> None:
    rows = pl.read_parquet(folder / "pieces" / "*.parquet")
    assert {strict(text)["m"] for text in rows["agent_parameters"]} == {1, 2, "inf"}
    assert set(rows["m"]) == {1.0, 2.0, math.inf}


def test_a_manifest_with_infinities_as_they_were_is_read(tmp_path: Path) -> None:
    study = lbm.Study.from_dict(DOCUMENT)
    whole = study.run(tmp_path, progress=False).frame
    path = tmp_path / "manifest.json"
    manifest = strict(path.read_text())
    old = {**manifest, "study": study.spec.document}
    del old["infinite"]
    old["settings"] = [
        {**each, "m": math.inf if each["m"] == "inf" else each["m"]} for each in old["settings"]
    ]
    path.write_text(json.dumps(old))
    assert "Infinity" in path.read_text()
    read = lbm.Study.from_results(tmp_path)
    assert read.fingerprint == study.fingerprint
    pd.testing.assert_frame_equal(read.results(tmp_path).frame, whole, check_exact=True)
    more = {**DOCUMENT, "seeds": 3}  # which writes the manifest again
    lbm.Study.from_dict(more).run(tmp_path, progress=False)
    assert strict(path.read_text())["infinite"] == manifest["infinite"] == [["env", "inf", "grid", "m", 1]]


@pytest.mark.parametrize("where", [3, [["env", "nobody"]], [["name"]], [[]]])
def test_places_that_are_none_are_damage(tmp_path: Path, where: Any) -> None:
    document = {**DOCUMENT, "name": "small", "env": {"e": {"theta": [1.0], "m": 1, "gamma": -1.0}}}
    lbm.Study.from_dict(document).run(tmp_path, progress=False)
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({**strict(path.read_text()), "infinite": where}))
    with pytest.raises(OSError, match=r"manifest\.json is damaged"):
        lbm.Study.from_results(tmp_path)


def test_exported_rows_have_all_digits_and_infinities(folder: Path, results: StudyResults) -> None:
    path = folder / "rows.json"
    assert cli.main(["export", str(folder), str(path)]) == 0
    rows = pd.DataFrame(strict(path.read_text()))
    frame = results.frame
    assert list(rows) == list(frame)
    for name in frame:
        if frame[name].dtype.kind in "if":
            np.testing.assert_array_equal(rows[name].astype(float), frame[name], err_msg=name)
        else:
            assert rows[name].tolist() == frame[name].tolist()
    assert set(rows.loc[rows["env"] == ENDLESS, "m"]) == {"inf"}
    read = pl.read_json(path, infer_schema_length=None)
    assert read["reward"].to_list() == frame["reward"].tolist()
    assert read["m"].cast(pl.Float64).to_list() == frame["m"].tolist()
    np.testing.assert_array_equal(pd.read_json(path, precise_float=True)["m"], frame["m"])


def test_every_kind_of_value_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal(60) * 10.0 ** rng.integers(-300, 300, 60)
    frame = pd.DataFrame({
        'na"me': [*numbers, np.nan, -np.inf],
        "text": pd.Categorical(["a", None, 'ä"'] * 20 + ["a", "a"]),
        "yes": [True, False] * 31,
        "count": np.arange(62) + 2**60,
    })  # fmt: skip
    monkeypatch.setattr("fastlbm.experiments.export._ROWS_AT_ONCE", 7)
    rows = strict(_json(frame).decode())
    assert [row['na"me'] for row in rows] == [*numbers, None, "-inf"]
    assert [row["text"] for row in rows][:4] == ["a", None, 'ä"', "a"]
    assert [row["yes"] for row in rows] == frame["yes"].tolist()
    assert [row["count"] for row in rows] == frame["count"].tolist()
    assert strict(_json(frame.iloc[:0]).decode()) == []
