"""The folder of a study: owns its files and their soundness; knows nothing of what is in the rows.

    DIR/manifest.json           the study, versions, the machine that began it
    DIR/pieces/KEY-A-B.parquet  rows of the seeds A..B of one cell, never changed
    DIR/damaged/                files that were found damaged
    DIR/.lock                   held by the process that works on the folder, freed by its end
    DIR/.holder                 the words about that process, for others that are refused

Every file is there as a whole or not at all; nothing is written without the lock.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from .._base import files
from .._version import __version__

if TYPE_CHECKING:
    import pandas as pd

FORMAT, VERSION = "fastlbm study", 1
COLUMNS = ("seed", "t", "reward", "observed")
_DIGEST = b"fastlbm.digest"


class StoreError(OSError):
    """The folder cannot be used as it is; the message says what to do."""


class Store:
    """One study's folder."""

    def __init__(self, out: Path) -> None:
        self.out, self.pieces = out, out / "pieces"

    @contextlib.contextmanager
    def open(self, name: str, fingerprint: str, document: dict[str, Any]) -> Iterator[None]:
        """Make the folder this study's, or go on with it; another study's folder is refused.

        The folder is this process's alone until the context ends; what a killed process left half-written is
        removed.
        """
        with self._explained_errors():
            self._fingerprint(name)  # before anything is made in a folder of something else
            self.pieces.mkdir(parents=True, exist_ok=True)
        with self.lock():
            with self._explained_errors():
                for folder in (self.pieces, self.out):
                    files.remove_partial(folder)
                if self._fingerprint(name) != fingerprint:
                    self._write_manifest(name, fingerprint, document)
            yield

    def _fingerprint(self, name: str) -> str | None:
        """The fingerprint in the manifest, which must be of the study `name`; None in a new folder."""
        manifest = self.manifest()
        if manifest is None:
            return None
        if manifest["name"] != name:
            raise StoreError(
                f"{self.out} holds the study {manifest['name']!r}, not {name!r}: choose another folder"
            )
        return str(manifest["fingerprint"])

    def _write_manifest(self, name: str, fingerprint: str, document: dict[str, Any]) -> None:
        content = {
            "format": FORMAT,
            "version": VERSION,
            "name": name,
            "fingerprint": fingerprint,
            "study": document,
            "versions": _versions(),
            "machine": {"node": platform.node(), "system": platform.platform()},
        }
        files.write_atomically(self.out / "manifest.json", json.dumps(content, indent=1).encode())

    def manifest(self) -> dict[str, Any] | None:
        """The manifest, or None in a new folder."""
        path = self.out / "manifest.json"
        if not path.exists():
            return None
        try:
            content = json.loads(path.read_bytes())
            wrong = content.get("format") != FORMAT
        except (ValueError, AttributeError):
            raise StoreError(
                f"{path} is damaged: delete it and run the study again; sound pieces are kept"
            ) from None
        if wrong:
            raise StoreError(f"{path} is not the manifest of a study: choose another folder")
        if content.get("version") != VERSION:
            raise StoreError(
                f"{self.out} was written by another version of the format ({content.get('version')}, here "
                f"{VERSION}): use the version of fastlbm that wrote it, or another folder"
            )
        return dict(content)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """The folder is this process's alone; a second process is refused at once, a killed one frees it."""
        lock, holder = FileLock(self.out / ".lock", timeout=0), self.out / ".holder"
        with self._explained_errors():
            try:
                lock.acquire()
            except Timeout:
                raise StoreError(
                    f"another process ({_read_text(holder) or 'unknown'}) works on {self.out}: wait for it; "
                    "this command then continues where it stopped"
                ) from None
        try:
            with self._explained_errors():
                # Not in the lock itself, which nobody else can read on Windows.
                files.write_atomically(holder, f"process {os.getpid()} on {platform.node()}".encode())
            yield
        finally:
            with contextlib.suppress(OSError):
                holder.unlink(missing_ok=True)
            lock.release()

    def scan(self) -> tuple[dict[str, set[int]], list[Path]]:
        """The seeds that are there, by key, and files that were damaged and are now set aside."""
        found: dict[str, set[int]] = {}
        damaged = []
        for path in sorted(self.pieces.glob("*.parquet")):
            key, seeds = _named(path)
            if key is None or not _is_sound(path):
                aside = self.out / "damaged" / path.name
                aside.parent.mkdir(exist_ok=True)
                path.replace(aside)
                damaged.append(aside)
            else:
                found.setdefault(key, set()).update(seeds)
        return found, damaged

    def write(self, key: str, seeds: range, frame: pd.DataFrame) -> None:
        """Keep the rows of consecutive seeds; a second time changes nothing."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.pieces / f"{key}-{seeds[0]}-{seeds[-1]}.parquet"
        if path.exists():
            return
        table = pa.Table.from_pandas(frame[list(COLUMNS)], preserve_index=False)
        table = table.replace_schema_metadata({_DIGEST: _digest(table).encode()})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        with self._explained_errors():
            files.write_atomically(path, sink.getvalue().to_pybytes())

    def read(self, key: str) -> pd.DataFrame:
        """The rows of a key, each seed once."""
        import pandas as pd

        parts = [
            _table(path).to_pandas()
            for path in sorted(self.pieces.glob(f"{key}-*.parquet"), key=lambda p: _named(p)[1].start)
        ]
        if not parts:
            return pd.DataFrame({name: [] for name in COLUMNS})
        frame = pd.concat(parts, ignore_index=True)
        return frame.drop_duplicates(["seed", "t"]).sort_values(["seed", "t"], ignore_index=True)

    @contextlib.contextmanager
    def _explained_errors(self) -> Iterator[None]:
        """What the system says of the folder, with what to do about it."""
        try:
            yield
        except StoreError:
            raise
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                words = (
                    "is full: free some space and run the same command again; every finished piece is safe"
                )
            elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                words = f"cannot be written to ({error.strerror}): choose another folder"
            else:
                words = f"cannot be used: {error}"
            raise StoreError(f"{self.out} {words}") from None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _named(path: Path) -> tuple[str | None, range]:
    """The key and the seeds that a file's name says."""
    parts = path.name.removesuffix(".parquet").split("-")
    if len(parts) != 3 or not (parts[1].isdigit() and parts[2].isdigit()):
        return None, range(0)
    return parts[0], range(int(parts[1]), int(parts[2]) + 1)


def _table(path: Path) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(path, memory_map=False, use_threads=False)


def _is_sound(path: Path) -> bool:
    try:
        table = _table(path)
        stored = (table.schema.metadata or {}).get(_DIGEST, b"").decode()
        seeds = set(table.column("seed").to_pylist())
        return stored == _digest(table) and seeds == set(_named(path)[1])
    except Exception:  # a damaged file may raise anything
        return False


def _digest(table: Any) -> str:
    return files.digest(*(table.column(name).to_numpy().tobytes() for name in COLUMNS))


def _versions() -> dict[str, str]:
    import numba
    import numpy
    import pandas

    return {
        "fastlbm": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "numba": numba.__version__,
        "pandas": pandas.__version__,
    }
