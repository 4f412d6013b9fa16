"""The folder of a study: one process at a time, damage noticed, failures explained."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fastlbm as lbm
from fastlbm import cli
from fastlbm.experiments.store import Store, StoreError
from tests.experiments.conftest import TEXT

HOLD = """
import sys, time
from pathlib import Path
from fastlbm.experiments.store import Store
with Store(Path(sys.argv[1])).lock():
    print("held", flush=True)
    time.sleep(600)
"""


def hold(out: Path) -> subprocess.Popen[str]:
    """A process that holds the folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(out)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_refused_at_once_and_changes_nothing(file: Path, tmp_path: Path) -> None:
    study, out = lbm.Study.from_toml(file), tmp_path / "out"
    study.run(out, progress=False)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.name[0] != "."}
    file.write_text(TEXT.replace("seeds = 6", "seeds = 9"))
    larger = lbm.Study.from_toml(file)
    with hold(out) as process:
        try:
            words = f"another process .process {process.pid} on .* works on .*: wait for it"
            for _ in range(2):  # the words about the holder are still there for the next one
                with pytest.raises(StoreError, match=words):
                    larger.run(out, progress=False)
            after = {p: p.read_bytes() for p in out.rglob("*") if p.is_file() and p.name[0] != "."}
            assert after == before
        finally:
            process.send_signal(signal.SIGKILL)
    larger.run(out, progress=False)  # a killed process holds nothing
    assert (out / ".lock").exists()
    assert json.loads((out / "manifest.json").read_text())["study"]["seeds"] == 9


def test_two_stores_of_one_process_exclude_each_other(file: Path, tmp_path: Path) -> None:
    study, out = lbm.Study.from_toml(file), tmp_path / "out"
    study.run(out, progress=False)
    with Store(out).lock(), pytest.raises(StoreError, match=f"another process .*{os.getpid()}.* works on"):
        study.run(out, progress=False)
    study.run(out, progress=False)


def test_the_manifest_is_written_under_the_lock(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, refused = tmp_path / "out", []
    real = Store._write_manifest

    def write(self: Store, *arguments: object) -> None:
        with pytest.raises(StoreError, match="works on"), Store(out).lock():
            pass
        refused.append(True)
        real(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "_write_manifest", write)
    lbm.Study.from_toml(file).run(out, progress=False)
    assert refused == [True]


def test_a_folder_of_something_else_is_left_as_it_is(file: Path, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": "another"}')
    before = sorted(tmp_path.iterdir())
    with pytest.raises(StoreError, match="is not the manifest of a study"):
        lbm.Study.from_toml(file).run(tmp_path, progress=False)
    assert sorted(tmp_path.iterdir()) == before


def test_the_store_needs_no_module_of_one_system() -> None:
    """The lock is that of a library: the module can be imported where there is no fcntl."""
    code = "import sys; sys.modules['fcntl'] = None; import fastlbm.experiments.study"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_wrong_executors_are_refused_before_anything_is_written(file: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="executor must be"):
        lbm.Study.from_toml(file).run(tmp_path / "out", executor="threads")  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


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


def test_pieces_that_changed_places_are_damaged(file: Path, tmp_path: Path) -> None:
    """Their rows are sound, and of other settings: the digest holds the key."""
    study, out = lbm.Study.from_toml(file), tmp_path / "out"
    whole = study.run(out, progress=False).frame
    one, two = sorted((out / "pieces").iterdir())[:2]
    one_bytes, two_bytes = one.read_bytes(), two.read_bytes()
    one.write_bytes(two_bytes)
    two.write_bytes(one_bytes)
    with pytest.warns(UserWarning, match="is damaged and left out"):
        results = study.results(out)
    assert len(results.missing) == 2
    with pytest.warns(UserWarning, match="was damaged: set aside"):
        frame = study.run(out, progress=False).frame
    pd.testing.assert_frame_equal(frame, whole, check_exact=True)


def test_no_flipped_bit_changes_what_is_read(file: Path, tmp_path: Path) -> None:
    study, out = lbm.Study.from_toml(file), tmp_path / "out"
    whole = study.run(out, progress=False).frame
    piece = sorted((out / "pieces").iterdir())[0]
    sound, rng, noticed = piece.read_bytes(), random.Random(0), 0
    for _ in range(150):
        flipped = bytearray(sound)
        flipped[rng.randrange(len(sound))] ^= 1 << rng.randrange(8)
        piece.write_bytes(bytes(flipped))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            results = study.results(out)
        noticed += len(results.missing)
        assert len(results.missing) == len(told)
        if not results.missing:  # a bit that no row depends on
            pd.testing.assert_frame_equal(results.frame, whole, check_exact=True)
    assert noticed > 50


@pytest.mark.parametrize(
    "name", ["KEY-\u00b2-\u00b3.parquet", "KEY-00-1.parquet", "KEY-0.parquet", "-.parquet"]
)
def test_names_of_no_piece_are_set_aside(file: Path, tmp_path: Path, name: str) -> None:
    study, out = lbm.Study.from_toml(file), tmp_path / "out"
    study.run(out, progress=False)
    (out / "pieces" / name).write_bytes(b"?")
    with pytest.warns(UserWarning, match="is damaged and left out"):
        study.results(out)
    with pytest.warns(UserWarning, match="was damaged: set aside"):
        assert not study.run(out, progress=False).missing
    assert (out / "damaged" / name).exists()


def test_two_studies_without_names_do_not_share_a_folder(tmp_path: Path) -> None:
    def study(
        gamma: float, seeds: int, kind: str = "OracleGreedy", more: tuple[float, ...] = ()
    ) -> lbm.Study:
        env = {"theta": [0.6, 0.8], "m": 1, "grid": {"gamma": [gamma, *more]}}
        agents = {"a": {"type": kind}}
        return lbm.Study.from_dict({"T": 5, "seeds": seeds, "env": {"e": env}, "agent": agents})

    study(-2.0, 2).run(tmp_path, progress=False)
    study(-2.0, 3).run(tmp_path, progress=False)  # more of the same
    study(-2.0, 3, more=(-3.0,)).run(tmp_path, progress=False)  # its rows are there
    manifest = (tmp_path / "manifest.json").read_bytes()
    for other, kind in ((study(-1.0, 2), "env"), (study(-2.0, 2, "OFUL", (-3.0,)), "agent")):
        with pytest.raises(StoreError, match=f"another study without a name .no {kind} of it is in this one"):
            other.run(tmp_path, progress=False)
    assert (tmp_path / "manifest.json").read_bytes() == manifest


START = """
import sys
import fastlbm as lbm
study = lbm.Study.from_toml(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
try:
    study.run(sys.argv[2], 1, progress=False)
except OSError as error:
    assert "works on" in str(error), error
"""


def test_processes_that_start_at_once_do_not_disturb_each_other(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [
        subprocess.Popen([sys.executable, "-c", START, str(file), str(out)], **pipes) for _ in range(3)
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in started:
        process.communicate(timeout=120)
    assert [process.returncode for process in started] == [0, 0, 0]
    assert not lbm.Study.from_toml(file).results(out).missing


@pytest.mark.parametrize("key", ["name", "fingerprint", "study"])
def test_a_manifest_without_its_keys_is_damaged(
    file: Path, tmp_path: Path, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    study, out = lbm.Study.from_toml(file), tmp_path / "out"
    study.run(out, progress=False)
    content = json.loads((out / "manifest.json").read_text())
    for broken in ({k: v for k, v in content.items() if k != key}, {**content, key: 3}):
        (out / "manifest.json").write_text(json.dumps(broken))
        with pytest.raises(StoreError, match=r"manifest\.json is damaged: delete it"):
            study.run(out, progress=False)
        assert cli.main(["plot", str(out)]) == 2
        assert "manifest.json is damaged" in capsys.readouterr().err


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
    present, damaged = Store(out).scan()
    assert present
    assert not damaged
    assert not list(out.rglob("*.part"))
    study.run(out, progress=False)
