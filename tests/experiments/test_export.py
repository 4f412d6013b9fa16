"""Data that speaks: columns of parameters, folders that others can read, files that are carried away."""

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
from fastlbm.experiments.export import latex_table, latex_text
from fastlbm.experiments.parameters import as_columns, of_agent, of_env
from fastlbm.experiments.results import StudyResults
from fastlbm.experiments.store import Store
from tests.experiments.conftest import TEXT

VALUES = ["key", "seed", "t", "reward", "observed"]


@pytest.fixture
def results(file: Path, tmp_path: Path) -> StudyResults:
    return lbm.Study.from_toml(file).run(tmp_path / "out", progress=False)


def test_every_row_has_the_parameters_of_its_setting(file: Path, results: StudyResults) -> None:
    frame = results.frame
    for cell in lbm.Study.from_toml(file).spec.cells:
        mine = frame[
            (frame["env"] == cell.env_name) & (frame["agent"] == cell.agent_name) & (frame["T"] == cell.T)
        ]
        for name, value in (of_env(cell.env) | of_agent(cell.agent)).items():
            assert (mine[name] == value).all(), name
    assert frame.loc[frame["agent"] == "greedy", "agent_switch"].isna().all()
    assert frame.loc[frame["env"] == "rotting", "K"].isna().all()
    assert len(results.settings) == 18
    assert not {"seed", "t", "reward"} & set(results.settings.columns)


def test_parameters_of_every_kind_are_columns() -> None:
    told = of_agent(lbm.Doubling(lbm.OFUL(8)))
    assert told["agent_type"] == "Doubling"
    assert told["agent_agent"].startswith("OFUL(horizon=8")
    assert "agent_A0" not in of_agent(lbm.O3M(1, -2.0, 50, A0=np.eye(2)))
    assert of_env(lbm.LBM([1.0], m=math.inf, gamma=-1.0, actions=lbm.Finite([[1.0], [0.5]])))["K"] == 2
    columns = as_columns([{"m": 1, "x": "a"}, {"m": math.inf}, {"m": 2, "x": True}], np.array([0, 1, 1, 2]))
    np.testing.assert_array_equal(columns["m"], [1.0, np.inf, np.inf, 2.0])
    assert pd.Series(columns["x"]).astype(object).fillna("-").tolist() == ["a", "-", "-", "True"]
    assert as_columns([{"m": 1}, {"m": 2}], np.array([1]))["m"].dtype == np.int64


def test_many_runs_have_parameters_when_they_are_a_study() -> None:
    env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    agents = {"greedy": lbm.OracleGreedy(), "learner": lbm.OFUL(9, lam=2.0)}
    settings = lbm.run_many(env, agents, T=9, seeds=2, record=3).as_study().settings
    assert settings[["agent", "d", "gamma"]].values.tolist() == [["greedy", 2, -2.0], ["learner", 2, -2.0]]
    assert settings["agent_lam"].fillna(0.0).tolist() == [0.0, 2.0]


# --- the folder, read by something else ---------------------------------------------------------------------


def read_with_polars(out: Path) -> pl.DataFrame:
    """What the docstring of the store tells to do."""
    manifest = json.loads((out / "manifest.json").read_text())
    settings = pl.DataFrame(manifest["settings"], infer_schema_length=None).filter("current")
    rows = pl.read_parquet(out / "pieces" / "*.parquet", columns=VALUES)
    rows = rows.unique(["key", "seed", "t"]).filter(pl.col("seed") < manifest["study"]["seeds"])
    return rows.join(settings, on="key")


def means_with_polars(out: Path) -> dict[Any, float]:
    last = read_with_polars(out).filter(pl.col("t") == pl.col("T"))
    means = last.group_by("env", "agent", "T").agg(pl.col("reward").mean())
    return {row[:3]: row[3] for row in means.iter_rows()}


def check_means(out: Path, results: StudyResults) -> None:
    summary = results.summary()
    mine = {(row.env, row.agent, row.T): row.mean for row in summary.itertuples()}
    assert means_with_polars(out) == pytest.approx(mine, rel=1e-12)
    assert len(mine) == len(results.settings)


def test_polars_and_the_manifest_give_the_means_of_the_summary(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    check_means(out, lbm.Study.from_toml(file).run(out, progress=False))
    # Another form of the study: fewer seeds, an agent less, another one changed. Its old pieces stay.
    text = TEXT.replace("seeds = 6", "seeds = 4").replace("switch = [0.0, 1.0]", "switch = [0.0, 2.0]")
    file.write_text(text)
    check_means(out, lbm.Study.from_toml(file).run(out, progress=False))
    settings = json.loads((out / "manifest.json").read_text())["settings"]
    keys = {name.name.split("-")[0] for name in (out / "pieces").iterdir()}
    assert keys == {mine["key"] for mine in settings}
    assert {mine["agent"] for mine in settings if not mine["current"]} == {"oful(switch=1.0)"}
    again = {mine["agent"]: mine["agent_switch"] for mine in settings if "agent_switch" in mine}
    assert again == {f"oful(switch={x})": x for x in (0.0, 1.0, 2.0)}


def test_pieces_alone_say_what_they_are(file: Path, tmp_path: Path) -> None:
    lbm.Study.from_toml(file).run(tmp_path, progress=False)
    rows = pl.read_parquet(tmp_path / "pieces" / "*.parquet")
    found = rows.filter(pl.col("agent_type") == "OFUL").select("d", "m", "gamma", "sigma", "T").unique()
    assert sorted(found.rows()) == [(2, 1.0, gamma, 0.1, T) for gamma in (-2.0, 1.0) for T in (60, 120)]
    switches = {json.loads(text).get("switch") for text in rows["agent_parameters"].unique()}
    assert switches == {None, 0.0, 1.0}


def test_a_folder_of_the_version_before_gets_its_settings(file: Path, tmp_path: Path) -> None:
    study = lbm.Study.from_toml(file)
    whole = study.run(tmp_path, progress=False).frame
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    settings = manifest.pop("settings")
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    for path in (tmp_path / "pieces").iterdir():  # without columns of parameters
        key, first, last = path.stem.split("-")
        rows = pd.read_parquet(path)[VALUES[1:]]
        path.unlink()
        Store(tmp_path).write(key, range(int(first), int(last) + 1), rows)
    pd.testing.assert_frame_equal(study.results(tmp_path).frame, whole, check_exact=True)
    pd.testing.assert_frame_equal(study.run(tmp_path, progress=False).frame, whole, check_exact=True)
    assert json.loads((tmp_path / "manifest.json").read_text())["settings"] == settings


@pytest.mark.parametrize("settings", [3, [3], {}])
def test_settings_that_are_none_are_damage(file: Path, tmp_path: Path, settings: Any) -> None:
    study = lbm.Study.from_toml(file)
    study.run(tmp_path, progress=False)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "settings": settings}))
    with pytest.raises(OSError, match=r"manifest\.json is damaged"):
        study.run(tmp_path, progress=False)


# --- files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_exported_rows_are_those_of_the_frame(results: StudyResults, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    assert cli.main(["export", str(tmp_path / "out"), str(path)]) == 0
    if ending == "parquet":
        read = pl.read_parquet(path)
    else:  # types of all rows: a parameter may be missing in the first ones
        read = (pl.read_csv if ending == "csv" else pl.read_json)(path, infer_schema_length=None)
    assert read.columns == list(results.frame.columns)
    for name in ("env", "T", "seed", "t", "d"):
        assert read[name].to_list() == results.frame[name].tolist()
    np.testing.assert_allclose(read["reward"], results.frame["reward"], rtol=1e-14)
    switch = read["agent_switch"].fill_null(np.nan).to_numpy()
    np.testing.assert_array_equal(switch, results.frame["agent_switch"])


def test_nothing_is_replaced_without_being_told(
    results: StudyResults, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("mine")
    with pytest.raises(
        FileExistsError, match=r"must be a new file, .* which exists: replace=True replaces it"
    ):
        results.export(path)
    assert cli.main(["export", str(tmp_path / "out"), str(path)]) == 2
    told = capsys.readouterr().err
    assert "must be a new file" in told
    assert told.endswith("which exists: --force replaces it\n")
    assert path.read_text() == "mine"
    assert cli.main(["export", str(tmp_path / "out"), str(path), "--force"]) == 0
    assert len(pd.read_csv(path)) == len(results.frame)
    with pytest.raises(
        ValueError, match=r"path must end with one of .parquet, .csv, .json, .tex, got '.*xls'"
    ):
        results.export(tmp_path / "rows.xls")


def test_a_table_for_a_paper(results: StudyResults, tmp_path: Path) -> None:
    path = results.export(tmp_path / "table.tex")
    text = path.read_text()
    assert text == results.latex()
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 1 + 6
    assert {row.count("&") for row in rows} == {1 + 3}
    assert all(r"\mathbf" in row for row in rows[1:])
    summary = results.summary()
    best = summary[summary["p_vs_best"].isna()].iloc[0]
    assert f"\\mathbf{{{best['mean']:.2f}}}" in rows[1]
    assert text.count("{") == text.count("}")


def test_the_table_has_gaps_escapes_and_digits_of_the_interval() -> None:
    rows = [("a_b", 10, "x", 4, 123.456, 123.0, 124.0, np.nan), ("a_b", 10, "y", 4, 9.0, 9.0, 9.0, 0.01)]
    rows += [("c", 10, "x", 4, 0.0, 0.0, 0.0, np.nan)]
    columns = ["env", "T", "agent", "seeds", "mean", "low", "high", "p_vs_best"]
    text = latex_table(pd.DataFrame(rows, columns=columns), name="50% & more", confidence=0.9)
    assert r"a\_b & 10 & $\mathbf{123.5}$ {\scriptsize$[123.0, 124.0]$} & $9.000$" in text
    assert "c & 10 & $\\mathbf{0.0}$ {\\scriptsize$[0.0, 0.0]$} & --- \\\\" in text
    assert r"\caption{50\% \& more: cumulative expected reward, mean over 4 seeds with a 90\%" in text
    assert r"\label{tab:50-more}" in text
    assert latex_text("~^\\#") == r"\textasciitilde{}\textasciicircum{}\textbackslash{}\#"
