"""Files: whole or not at all, whoever else writes, and whatever fails."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fastlbm._base import files

SIZE = 200_000


def is_whole(content: bytes) -> bool:
    return len(content) == SIZE and len(set(content)) == 1


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    files.write_atomically(path, b"one")
    assert path.read_bytes() == b"one"
    files.write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert path.stat().st_mode == plain.stat().st_mode  # as readable as any other file


def test_threads_that_write_one_path_leave_a_whole_file(tmp_path: Path) -> None:
    path, seen = tmp_path / "a.bin", []
    files.write_atomically(path, b"0" * SIZE)
    done = threading.Event()

    def write(letter: bytes) -> None:
        for _ in range(40):
            files.write_atomically(path, letter * SIZE)

    def read() -> None:
        while not done.is_set():
            seen.append(path.read_bytes())

    writers = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b")]
    reader = threading.Thread(target=read)
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert len({content[:1] for content in seen}) >= 2  # the reader was there while they wrote
    assert all(map(is_whole, seen))
    assert list(tmp_path.iterdir()) == [path]


WRITE = """
import sys
from pathlib import Path
from fastlbm._base.files import write_atomically
print("ready", flush=True)
sys.stdin.readline()
for _ in range(60):
    write_atomically(Path(sys.argv[1]), sys.argv[2].encode() * int(sys.argv[3]))
"""


def test_processes_that_write_one_path_leave_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, str(path), letter, str(SIZE)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for letter in "ab"
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    seen = []
    while any(process.poll() is None for process in processes):
        if path.exists():
            seen.append(path.read_bytes())
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    assert seen
    assert all(map(is_whole, seen))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_links_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"mine")
    path = tmp_path / "a.bin"
    path.symlink_to(precious)
    files.write_atomically(path, b"new")
    assert not path.is_symlink()
    assert path.read_bytes() == b"new"
    assert precious.read_bytes() == b"mine"
    # Someone who guesses the name of the temporary file stops the write, and gets nothing written.
    monkeypatch.setattr(files.secrets, "token_hex", lambda _: "guessed")
    (tmp_path / f"a.bin.guessed{files.PARTIAL}").symlink_to(precious)
    with pytest.raises(FileExistsError):
        files.write_atomically(path, b"newer")
    assert precious.read_bytes() == b"mine"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, error: BaseException
) -> None:
    path = tmp_path / "a.bin"
    files.write_atomically(path, b"old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(*((os, "fsync") if failing == "fsync" else (Path, "replace")), fail)
    with pytest.raises(type(error)):
        files.write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the one beside it, which nobody knows."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "full").touch()
    for path, kind in ((tmp_path / "none" / "a.bin", FileNotFoundError), (tmp_path / "folder", OSError)):
        with pytest.raises(kind) as raised:
            files.write_atomically(path, b"new")
        assert str(raised.value).endswith(f": {str(path)!r}")
        assert files.PARTIAL not in str(raised.value)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "no room")))
    with pytest.raises(OSError, match=r"no room: '.*a\.bin'$"):
        files.write_atomically(tmp_path / "a.bin", b"new")


@pytest.mark.parametrize(
    ("code", "fails"), [(errno.EINVAL, False), (errno.ENOTSUP, False), (errno.EIO, True)]
)
def test_a_folder_is_synced_where_the_system_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, fails: bool
) -> None:
    real, folders = os.fsync, []

    def sync(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}") or len(folders) == 1:
            raise OSError(code, os.strerror(code))
        folders.append(descriptor)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    if fails:
        with pytest.raises(OSError, match=os.strerror(code)):
            files.write_atomically(tmp_path / "a.bin", b"new")
    else:
        files.write_atomically(tmp_path / "a.bin", b"new")
    assert (tmp_path / "a.bin").read_bytes() == b"new"


def test_a_folder_that_cannot_be_opened_is_not_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, which opens no folder."""

    def refuse(path: object, *_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(files.os, "open", refuse)
    files.write_atomically(tmp_path / "a.bin", b"new")
    monkeypatch.undo()
    assert (tmp_path / "a.bin").read_bytes() == b"new"


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    for name in ("a.part", "a.bin.0123.part", "a.bin", "part"):
        (tmp_path / name).write_bytes(b"")
    files.remove_partial(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.bin", "part"]


def test_a_digest_is_that_of_the_parts_joined() -> None:
    assert files.digest(b"ab", b"", b"c") == hashlib.sha256(b"abc").hexdigest()
    assert files.digest() == hashlib.sha256().hexdigest()
