"""Studies: any workers give the same, nothing is ever lost, what an earlier version stored is kept."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fastlbm as lbm
from fastlbm import cli
from fastlbm.experiments import grammar, store
from fastlbm.experiments import study as studies
from fastlbm.experiments.store import Store
from tests.experiments.conftest import TEXT

ROOT = Path(__file__).resolve().parents[2]


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
            print("the study is finished", flush=True)
"""


def test_a_dask_cluster_that_loses_a_worker_gives_the_same(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    script = tmp_path / "cluster.py"
    script.write_text(DASK)
    done = subprocess.run(
        [sys.executable, str(script), str(file), str(tmp_path / "dask")],
        timeout=300, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    # Not the exit code: a cluster that is closed while it starts a worker again may raise.
    assert "the study is finished" in done.stdout, done.stderr
    study = lbm.Study.from_toml(file)
    here = study.run(tmp_path / "here", progress=False).frame
    pd.testing.assert_frame_equal(study.results(tmp_path / "dask").frame, here, check_exact=True)


# --- work that is lost, work that is much ------------------------------------------------------------------


def slow_seeds(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Every seed takes so long by the study's clock."""
    now, real = [0.0], studies.play_episode

    def play(*arguments: Any, **keywords: Any) -> Any:
        now[0] += seconds
        return real(*arguments, **keywords)

    monkeypatch.setattr(studies, "play_episode", play)
    monkeypatch.setattr(studies.time, "perf_counter", lambda: now[0])


def test_a_piece_ends_when_its_time_is_used_up(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guess before anything is timed would be all 40 seeds of a cell in one piece."""
    file.write_text(TEXT.replace("seeds = 6", "seeds = 40"))
    study = lbm.Study.from_toml(file)
    whole = study.run(tmp_path / "whole", progress=False).frame
    slow_seeds(monkeypatch, studies.LONGEST_PIECE / 3.5)
    monkeypatch.setattr(studies, "MOST_PIECES", 10**6)  # they stay as they were computed
    frame = study.run(tmp_path / "slow", executor=1, progress=False).frame
    pd.testing.assert_frame_equal(frame, whole, check_exact=True)
    sizes = [piece.last - piece.first + 1 for piece in Store(tmp_path / "slow").scan()[0].pieces]
    assert max(sizes) == 4
    assert sum(sizes) == 40 * len(study.spec.cells)


def test_a_thousand_million_seeds_begin_at_once(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(TEXT.replace("seeds = 6", "seeds = 1_000_000_000"))
    study, out, written = lbm.Study.from_toml(file), tmp_path / "out", []
    real = Store.write

    def write(self: Store, key: str, seeds: range, frame: pd.DataFrame) -> None:
        real(self, key, seeds, frame)
        written.append(len(seeds))
        if len(written) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Store, "write", write)
    with pytest.raises(KeyboardInterrupt):
        study.run(out, executor=1, progress=False)
    results = study.results(out)
    assert results.frame["seed"].nunique() == sum(written)
    assert sum(results.missing.values()) == 10**9 * len(study.spec.cells) - sum(written)


def test_the_folder_is_listed_once_and_every_piece_read_once(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, out = lbm.Study.from_toml(file), tmp_path / "out"
    study.run(out, progress=False)
    pieces = len(list((out / "pieces").iterdir()))  # more than cells on a slow machine
    calls: Counter[str] = Counter()

    def counted(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def call(*arguments: Any) -> Any:
            calls[name] += 1
            return real(*arguments)

        monkeypatch.setattr(owner, name, call)

    counted(store.os, "listdir")
    counted(store, "read_piece")
    counted(grammar.Spec, "key")
    again = lbm.Study.from_toml(file)
    again.run(out, progress=False)
    assert calls == {"listdir": 1, "read_piece": pieces, "key": len(again.spec.cells)}


def test_cells_that_differ_by_name_share_their_rows(tmp_path: Path) -> None:
    env = {"theta": [0.6, 0.8], "m": 1, "gamma": -2.0}
    agents = {"b": {"type": "OracleGreedy"}, "a": {"type": "OracleGreedy"}}
    study = lbm.Study.from_dict({"T": 5, "seeds": 2, "record": 1, "env": {"e": env}, "agent": agents})
    results = study.run(tmp_path / "out", progress=False)
    rows = results.frame[["agent", "seed", "t"]].values.tolist()
    assert rows == [["b", 0, 5], ["b", 1, 5], ["a", 0, 5], ["a", 1, 5]]
    assert len(list((tmp_path / "out" / "pieces").iterdir())) == 1
    assert not results.missing


# --- the command line -----------------------------------------------------------------------------------


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


def test_ctrl_c_of_the_command_line_keeps_what_is_finished(file: Path, tmp_path: Path) -> None:
    file.write_text(TEXT.replace("seeds = 6", "seeds = 100_000"))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "fastlbm", "study", str(file), "--out", str(out), "--quiet"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not list(out.glob("pieces/*.parquet")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "fastlbm: stopped; what is finished is kept, and the same command goes on from there\n"
    assert len(lbm.Study.from_toml(file).results(out).frame)
