"""Studies: their files, their folders, and that nothing is ever lost."""

from __future__ import annotations

import contextlib
import errno
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastlbm as lbm
from fastlbm import cli
from fastlbm.experiments.grammar import StudyError, parse
from fastlbm.experiments.store import Store, StoreError

ROOT = Path(__file__).resolve().parent.parent
TEXT = """
name = "small"
seed = 3
seeds = 6
T = [60, 120]
record = 10
spacing = "log"

[env.rotting]
theta = [0.6, 0.8]
m = 1
gamma = -2.0
sigma = 0.1

[env.arms]
theta = [0.6, 0.8]
m = 1
actions = {finite = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]}
[env.arms.grid]
gamma = [-2.0, 1.0]

[agent.greedy]
type = "OracleGreedy"

[agent.oful]
type = "OFUL"
subgaussian = "env"
[agent.oful.grid]
switch = [0.0, 1.0]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(TEXT)
    return path


# --- files --------------------------------------------------------------------------------------------


def test_a_file_is_multiplied_out(file: Path) -> None:
    study = lbm.Study.from_toml(file)
    cells = study.spec.cells
    assert len(cells) == 3 * 3 * 2
    assert [c.env_name for c in cells][::6] == ["rotting", "arms(gamma=-2.0)", "arms(gamma=1.0)"]
    assert {c.agent_name for c in cells} == {"greedy", "oful(switch=0.0)", "oful(switch=1.0)"}
    oful = next(c for c in cells if c.agent_name == "oful(switch=1.0)" and c.T == 120)
    assert oful.agent == lbm.OFUL(120, subgaussian=0.1, switch=1.0)
    assert study.fingerprint == lbm.Study.from_toml(file).fingerprint
    assert len({study.spec.key(c) for c in cells}) == len(cells)


def test_an_agent_may_have_horizons_of_its_own_taken_together_with_arguments(file: Path) -> None:
    own = '[agent.O3M]\ntype = "O3M"\nm = "env"\ngamma = "env"\n[agent.O3M.zip]\nL = [2, 4]\nT = [30, 90]\n'
    file.write_text(TEXT + own)
    cells = [c for c in lbm.Study.from_toml(file).spec.cells if c.env_name == "rotting"]
    mine = [(c.agent_name, c.T, c.agent) for c in cells if "O3M" in c.agent_name]
    assert mine == [
        ("O3M", 30, lbm.O3M(1, -2.0, 30, L=2)),
        ("O3M", 90, lbm.O3M(1, -2.0, 90, L=4)),
    ]
    assert [c.T for c in cells] == sorted(c.T for c in cells)
    document = {
        "seeds": 2,
        "env": {"e": {"theta": [0.6, 0.8], "m": 1, "gamma": -2.0}},
        "agent": {"greedy": {"type": "OracleGreedy", "T": [5, 7]}},
    }
    frame = lbm.Study.from_dict(document).run(file.parent / "own", progress=False).frame
    assert sorted(set(zip(frame["T"], frame["seed"], strict=True))) == [(5, 0), (5, 1), (7, 0), (7, 1)]
    assert cli.main(["plot", str(file.parent / "own"), "--kind", "loglog"]) == 0


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seeds = 6", "seeds = 0", ":4: seeds: seeds must be an integer >= 1|:4: seeds: .* from 1"),
        ("seeds = 6", "sedes = 6", ":4: sedes: is not a key here; allowed are name, seed"),
        ("T = [60, 120]", "", "must have T"),
        ("T = [60, 120]", "T = [60, 60]", ":5: T: must be distinct"),
        ('spacing = "log"', 'spacing = "cubic"', ":7: spacing: spacing must be one of 'linear', 'log'"),
        ("gamma = -2.0\nsigma", 'gamma = "x"\nsigma', ":12: env.rotting.gamma: gamma must be a real number"),
        (
            "theta = [0.6, 0.8]\nm = 1\ngamma",
            "theta = [0.6, 1.8]\nm = 1\ngamma",
            ":10: env.rotting.theta: theta",
        ),
        ("sigma = 0.1", "sigmas = 0.1", ":13: env.rotting.sigmas: is not a key here"),
        ("{finite = ", "{infinite = ", "env.arms.actions.infinite: is not a key here; allowed are ball"),
        ("gamma = [-2.0, 1.0]", "gamma = []", "env.arms.grid: must be a table of lists"),
        ("[agent.greedy]\ntype", "[agent.greedy]\nkind", "agent.greedy.type: must be one of O3M"),
        ('type = "OFUL"', 'type = "UFO"', "agent.oful.type: must be one of O3M, OM"),
        ('subgaussian = "env"', 'lam = "env"', 'agent.oful.lam: cannot be "env"'),
        (
            "switch = [0.0, 1.0]",
            "switch = [-1.0]",
            ":29: agent.oful.switch: switch must be|agent.oful.*switch",
        ),
        ("[env.rotting]", "[env.rotting", "not a TOML file"),
        (
            "switch = [0.0, 1.0]",
            "switch = [0.0, 0.0]",
            "agent.oful: must not be there twice, got oful.switch=0.0. with",
        ),
        (
            "[agent.oful.grid]",
            "[agent.oful.zip]\nswitch = 1.0\n[agent.oful.x]",
            "agent.oful.zip: must be a table",
        ),
        (
            "switch = [0.0, 1.0]",
            "switch = [0.0]\n[agent.oful.zip]\nlam = [1.0]\nT = [9, 10]",
            "agent.oful.zip: must hold lists of one length, got lengths .1, 2.",
        ),
        (
            "switch = [0.0, 1.0]",
            "switch = [0.0]\n[agent.oful.zip]\nswitch = [1.0]",
            "agent.oful.zip.switch: is in the grid",
        ),
        ("switch = [0.0, 1.0]", "T = [0]", ":29: agent.oful.grid.T: T must be an integer"),
        ("gamma = [-2.0, 1.0]", "gamma = [-2.0, -2.0]", "env: must not have arms.gamma=-2.0. twice"),
        ("gamma = [-2.0, 1.0]", 'gamma = ["x"]', ":20: env.arms.grid.gamma: gamma must be a real"),
    ],
)
def test_errors_name_the_line_the_key_and_what_is_allowed(file: Path, old: str, new: str, words: str) -> None:
    assert old in TEXT
    file.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(StudyError, match=words):
        lbm.Study.from_toml(file)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**20)
    | st.floats()
    | st.sampled_from(["env", "O3M", "OFUL", "Doubling", "", "log", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["d", "m", "T", "x"]), inner),
    max_leaves=6,
)


def paths(document: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here] if here else []
    if isinstance(document, dict):
        for key, value in document.items():
            found += paths(value, (*here, key))
    elif isinstance(document, list):
        for k, value in enumerate(document):
            found += paths(value, (*here, k))
    return found


def mutate(data: st.DataObject) -> None:
    """A study with a few values replaced or removed is read, or refused with an error of its own."""
    document = tomllib.loads(TEXT)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(paths(document)))
        place: Any = document
        try:
            for key in path[:-1]:
                place = place[key]
            if data.draw(st.booleans()):
                place[path[-1]] = data.draw(VALUES)
            elif isinstance(place, dict):
                place.pop(path[-1], None)
        except (KeyError, IndexError, TypeError):
            continue
    with contextlib.suppress(StudyError):
        parse(document)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_mutated_studies_never_fail_inside(data: st.DataObject) -> None:
    mutate(data)


@pytest.mark.slow
@settings(max_examples=10_000, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_ten_thousand_mutated_studies_never_fail_inside(data: st.DataObject) -> None:
    mutate(data)


def mutate_text(path: Path, data: st.DataObject) -> None:
    """A file with characters deleted, doubled and replaced is read, or refused with an error of its own."""
    text = list(TEXT)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at] = data.draw(st.sampled_from(["", text[at] * 2, *'[]={}"', "\n", "9", "-", "."]))
    path.write_text("".join(text))
    with contextlib.suppress(StudyError):
        lbm.Study.from_toml(path)


@settings(max_examples=200)
@given(st.data())
def test_mutated_files_never_fail_inside(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    mutate_text(tmp_path_factory.getbasetemp() / "mutated.toml", data)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(st.data())
def test_ten_thousand_mutated_files_never_fail_inside(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    mutate_text(tmp_path_factory.getbasetemp() / "mutated.toml", data)


# --- running --------------------------------------------------------------------------------------------


def test_any_workers_give_the_same_and_a_finished_study_answers_at_once(file: Path, tmp_path: Path) -> None:
    study = lbm.Study.from_toml(file)
    one = study.run(tmp_path / "one", executor=1, progress=False).frame
    assert (one.groupby(["env", "agent", "T"])["seed"].nunique() == 6).all()
    files = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "one" / "pieces").iterdir()}
    again = study.run(tmp_path / "one", progress=False).frame
    assert {p.name: p.stat().st_mtime_ns for p in (tmp_path / "one" / "pieces").iterdir()} == files
    two = study.run(tmp_path / "two", executor=2, progress=False).frame
    with ThreadPoolExecutor(3) as threads:
        three = study.run(tmp_path / "three", executor=threads, progress=False).frame
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as processes:
        four = study.run(tmp_path / "four", executor=processes, progress=False).frame
    for frame in (again, two, three, four):
        pd.testing.assert_frame_equal(frame, one, check_exact=True)
    # A seed of the study is a run with its SeedSequence.
    cell = study.spec.cells[0]
    seed = np.random.SeedSequence(3, spawn_key=(2,))
    run = lbm.run(cell.env, cell.agent, cell.T, seed=seed, record=10, spacing="log")
    rows = one.query("env == 'rotting' and agent == 'greedy' and T == 60 and seed == 2")
    np.testing.assert_array_equal(rows["observed"], run.observed)


def test_extending_a_study_keeps_what_is_there(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    small = lbm.Study.from_toml(file).run(out, progress=False).frame
    before = {p.name: p.stat().st_mtime_ns for p in (out / "pieces").iterdir()}
    file.write_text(TEXT.replace("seeds = 6", "seeds = 9").replace("T = [60, 120]", "T = [60, 120, 30]"))
    large = lbm.Study.from_toml(file).run(out, progress=False).frame
    after = {p.name: p.stat().st_mtime_ns for p in (out / "pieces").iterdir()}
    assert before.items() <= after.items()
    kept = large.query("seed < 6 and T != 30").reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, small, check_exact=True)
    fresh = lbm.Study.from_toml(file).run(tmp_path / "fresh", progress=False).frame
    pd.testing.assert_frame_equal(large, fresh, check_exact=True)


LOOP = "import sys, fastlbm as lbm; lbm.Study.from_toml(sys.argv[1]).run(sys.argv[2], 2, progress=False)"


def kill_at_random(file: Path, out: Path, kills: int) -> None:
    """Start the study again and again, each time killed a moment later."""
    rng = random.Random(0)
    for _ in range(kills):
        process = subprocess.Popen([sys.executable, "-c", LOOP, str(file), str(out)])
        time.sleep(rng.uniform(0.6, 2.5))
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("kills", [5, pytest.param(30, marks=pytest.mark.slow)])
def test_killed_at_any_moment_nothing_is_lost(file: Path, tmp_path: Path, kills: int) -> None:
    file.write_text(TEXT.replace("seeds = 6", "seeds = 100").replace("[60, 120]", "[2000, 4000]"))
    study, out = lbm.Study.from_toml(file), tmp_path / "out"
    whole = study.run(tmp_path / "whole", progress=False).frame
    kill_at_random(file, out, kills)
    times = {p.name: p.stat().st_mtime_ns for p in (out / "pieces").glob("*.parquet")}
    frame = study.run(out, progress=False).frame
    pd.testing.assert_frame_equal(frame, whole, check_exact=True)
    assert not list(out.rglob("*.part"))
    # What was there was not computed again.
    assert times.items() <= {p.name: p.stat().st_mtime_ns for p in (out / "pieces").iterdir()}.items()


def test_two_processes_do_not_disturb_each_other(file: Path, tmp_path: Path) -> None:
    study, out = lbm.Study.from_toml(file), tmp_path / "out"
    study.run(out, progress=False)
    store = Store(out)
    with store.held(), pytest.raises(StoreError, match=f"another process .*{os.getpid()}.* works on"):
        study.run(out, progress=False)
    study.run(out, progress=False)


def test_damaged_files_are_set_aside_and_computed_again(file: Path, tmp_path: Path) -> None:
    study, out = lbm.Study.from_toml(file), tmp_path / "out"
    whole = study.run(out, progress=False).frame
    pieces = sorted((out / "pieces").iterdir())
    pieces[0].write_bytes(pieces[0].read_bytes()[:-40])
    flipped = bytearray(pieces[1].read_bytes())
    flipped[len(flipped) // 3] ^= 0x10
    pieces[1].write_bytes(bytes(flipped))
    (out / "pieces" / "stranger.parquet").write_bytes(b"?")
    (out / "pieces" / "left.part").write_bytes(b"half")
    with pytest.warns(UserWarning, match="was damaged: set aside"):
        frame = study.run(out, progress=False).frame
    pd.testing.assert_frame_equal(frame, whole, check_exact=True)
    assert len(list((out / "damaged").iterdir())) >= 2
    assert not (out / "pieces" / "left.part").exists()


def test_a_folder_of_something_else_is_refused(file: Path, tmp_path: Path) -> None:
    study, out = lbm.Study.from_toml(file), tmp_path / "out"
    study.run(out, progress=False)
    manifest = out / "manifest.json"
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**content, "version": 99}))
    with pytest.raises(StoreError, match="another version of the format"):
        study.run(out, progress=False)
    manifest.write_text(json.dumps({**content, "name": "another"}))
    with pytest.raises(StoreError, match="holds the study 'another', not 'small'"):
        study.run(out, progress=False)
    manifest.write_text("{")
    with pytest.raises(StoreError, match="damaged: delete it"):
        study.run(out, progress=False)
    manifest.unlink()
    study.run(out, progress=False)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "is full: free some space"),
        (errno.EROFS, "cannot be written to"),
        (errno.EIO, "cannot be used"),
    ],
)
def test_a_disk_that_fails_says_what_to_do(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    study, out = lbm.Study.from_toml(file), tmp_path / "out"
    real, calls = os.fsync, []

    def failing(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) > 8:
            raise OSError(code, os.strerror(code))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(StoreError, match=words):
        study.run(out, executor=1, progress=False)
    monkeypatch.undo()
    sound, damaged = Store(out).sound()
    assert sound
    assert not damaged
    assert not list(out.rglob("*.part"))
    study.run(out, progress=False)


DASK = """
import sys, os, signal, threading, time
import fastlbm as lbm
from distributed import Client, LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            first = sorted(client.run(os.getpid).values())[0]

            def kill():
                pieces = os.path.join(sys.argv[2], "pieces")
                while not (os.path.isdir(pieces) and len(os.listdir(pieces)) > 2):
                    time.sleep(0.01)
                os.kill(first, signal.SIGKILL)

            threading.Thread(target=kill, daemon=True).start()
            executor = client.get_executor(pure=False, retries=2)
            lbm.Study.from_toml(sys.argv[1]).run(sys.argv[2], executor, progress=False)
"""


def test_a_dask_cluster_that_loses_a_worker_gives_the_same(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    script = tmp_path / "cluster.py"
    script.write_text(DASK)
    subprocess.run(
        [sys.executable, str(script), str(file), str(tmp_path / "dask")],
        check=True, timeout=300, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    study = lbm.Study.from_toml(file)
    here = study.run(tmp_path / "here", progress=False).frame
    pd.testing.assert_frame_equal(study.results(tmp_path / "dask").frame, here, check_exact=True)


# --- results ----------------------------------------------------------------------------------------------


def test_the_summary_has_means_intervals_and_adjusted_tests(file: Path, tmp_path: Path) -> None:
    results = lbm.Study.from_toml(file).run(tmp_path / "out", progress=False)
    summary = results.summary()
    assert len(summary) == 18
    last = results.frame[results.frame["t"] == results.frame["T"]]
    means = last.groupby(["env", "agent", "T"])["reward"].mean()
    for row in summary.itertuples():
        assert row.mean == pytest.approx(means[row.env, row.agent, row.T])
        assert row.low <= row.mean + 1e-12
        assert row.mean <= row.high + 1e-12
    assert summary["p_vs_best"].isna().sum() == 6
    assert (summary["p_vs_best"].dropna() >= 2.0 / 64.0).all()


@pytest.mark.parametrize("kind", ["reward", "regret", "loglog"])
def test_plots_say_what_they_show(file: Path, tmp_path: Path, kind: str) -> None:
    results = lbm.Study.from_toml(file).run(tmp_path / "out", progress=False)
    comparator = "oracle greedy" if kind == "regret" else "lower"
    figure = results.plot(kind, comparator, band="quantiles")
    titles = [axes.get_title() for axes in figure.axes if axes.get_visible()]
    assert titles == ["rotting", "arms(gamma=-2.0)", "arms(gamma=1.0)"]
    if kind != "loglog":
        assert "quantiles" in figure.legends[0].get_title().get_text()
    else:
        assert any("Theorem 1" in text.get_text() for text in figure.axes[0].get_legend().get_texts())
    with pytest.raises(ValueError, match="kind must be one of"):
        results.plot("pie")


def test_the_command_line_runs_continues_and_draws(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert cli.main(["study", str(file), "--out", str(out), "--jobs", "1", "--quiet"]) == 0
    first = capsys.readouterr().out
    assert "oful(switch=1.0)" in first
    assert cli.main(["study", str(file), "--out", str(out), "--quiet"]) == 0
    assert capsys.readouterr().out == first
    assert cli.main(["plot", str(out)]) == 0
    assert (out / "reward.png").stat().st_size > 1000
    assert cli.main(["plot", str(tmp_path)]) == 2
    assert "without a manifest.json" in capsys.readouterr().err
    file.write_text("T = 0")
    assert cli.main(["study", str(file)]) == 2
    assert "small.toml" in capsys.readouterr().err
    assert cli.main(["study", str(tmp_path / "nowhere.toml")]) == 2
