"""The folder of a study: one process at a time, damage noticed, failures explained."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import fastlbm as lbm
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
