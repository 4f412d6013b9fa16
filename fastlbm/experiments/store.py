"""The folder of a study: owns its files and their soundness; knows nothing of what is in the rows.

    DIR/manifest.json           the study, what the pieces of each KEY are of (`settings`), versions
    DIR/pieces/KEY-A-B.parquet  rows of the seeds A..B of one cell, never changed; many small ones are merged
    DIR/pieces/many-X.parquet   the same rows of a great many pieces, where there were thousands of files
    DIR/superseded/numbers-N/   pieces of version N of the numbers that were computed anew
    DIR/damaged/                files that were found damaged
    DIR/.lock                   held by the process that works on the folder, freed by its end
    DIR/.holder                 the words about that process, for others that are refused

Every file is there as a whole or not at all; nothing is written without the lock. A piece holds the version
of the numbers that made it, and a digest of its key, its seeds, this version and its rows.

Anything that reads Parquet and JSON reads a folder: join the rows of pieces/*.parquet with the `settings` of
the manifest on `key`; the current ones are those of the study, and `study.seeds` is how many seeds count. A
piece that was computed twice repeats rows: a row is one of a key, a seed and a step. An infinite parameter is
the text "inf" (`Infinity`, which is no JSON, in some older folders). In Polars:

    manifest = json.load(open("DIR/manifest.json"))
    settings = pl.DataFrame(manifest["settings"], infer_schema_length=None).filter("current")
    rows = pl.read_parquet("DIR/pieces/*.parquet", columns=["key", "seed", "t", "reward", "observed"])
    rows = rows.unique(["key", "seed", "t"]).filter(pl.col("seed") < manifest["study"]["seeds"])
    rows.join(settings, on="key")

Pieces of version 0.1 have no column `key`: it is what their name begins with.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock, Timeout

from .._base import files
from .._version import NUMBERS, __version__
from . import strict_json
from .pieces import (
    COLUMNS,
    Columns,
    Contents,
    Piece,
    encoded,
    facts_of,
    facts_of_many,
    joined,
    name_of_many,
    read_many,
    read_piece,
)

if TYPE_CHECKING:
    import pandas as pd

#: Version 1 of the format, whose pieces have a digest of their rows alone, is read as well.
FORMAT, VERSION = "fastlbm study", 2
#: Files among the pieces above which all of them become one, whatever their cells.
MOST_FILES = 5000
#: What a manifest must have, and of which type.
MANIFEST = {"name": str, "fingerprint": str, "study": dict}
#: Where a manifest says which texts of its study are numbers that JSON has not.
_NO_JSON = "infinite"
#: What a manifest says of where it comes from.
_ORIGIN = ("versions", "machine")
_NAME = re.compile(r"(\w+)-(0|[1-9]\d{0,17})-(0|[1-9]\d{0,17})\.parquet", re.ASCII)
_MANY = re.compile(r"many-[0-9a-f]+\.parquet", re.ASCII)


class StoreError(OSError):
    """The folder cannot be used as it is; the message says what to do."""


class Store:
    """One study's folder."""

    def __init__(self, out: Path) -> None:
        self.out, self.pieces = out, out / "pieces"

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[dict[str, Any] | None]:
        """Make the folder this study's, or go on with it: its manifest, None in a new folder.

        A folder of something else, or of a study with another name, is refused. The folder is this process's
        alone until the context ends; what a killed process left half-written is removed.
        """
        with self._explained_errors():
            self._require_folder()
            self._manifest_of(name)  # before anything is made in a folder of something else
            self.pieces.mkdir(parents=True, exist_ok=True)
        with self.lock():
            with self._explained_errors():
                for folder in (self.pieces, self.out):
                    files.remove_partial(folder)
                manifest = self._manifest_of(name)
            yield manifest

    def _require_folder(self) -> None:
        """Refuse a file, and a place below a file."""
        there = next((path for path in (self.out, *self.out.parents) if path.exists()), None)
        if there is not None and not there.is_dir():
            where = "which is a file" if there == self.out else f"but {there} is a file"
            raise StoreError(
                f"out must be a folder, which is made if it is not there, got {str(self.out)!r}, {where}: "
                "choose another name"
            )

    def _manifest_of(self, name: str) -> dict[str, Any] | None:
        """The manifest, which must be of the study `name`; None in a new folder."""
        manifest = self.manifest()
        if manifest is not None and manifest["name"] != name:
            raise StoreError(
                f"{self.out} holds the study {manifest['name']!r}, not {name!r}: choose another folder"
            )
        return manifest

    def describe(
        self,
        document: dict[str, Any],
        fingerprint: str,
        numbers: int,
        settings: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Make the manifest that of the study in `document`, with rows of this version of the numbers.

        `settings` say what the pieces of each `key` are of. Those of an earlier form of the study, whose
        pieces are still there, are kept as not `current`.
        """
        content = {"name": document["name"], "fingerprint": fingerprint, "study": document}
        keys = {mine["key"] for mine in settings}
        with self._explained_errors():
            before = (self.manifest() or {}).get("settings", [])
            every = [{**mine, "current": True} for mine in settings]
            every += [{**other, "current": False} for other in before if other.get("key") not in keys]
            self._write_manifest({**content, "numbers": numbers, "settings": every})

    def _write_manifest(self, content: dict[str, Any]) -> None:
        whole = {
            "format": FORMAT,
            "version": VERSION,
            **content,
            **origin(),
        }
        if found := strict_json.places(content["study"]):
            whole[_NO_JSON] = found
        settings = ",\n  ".join(map(strict_json.dumps, whole.pop("settings")))  # a line each
        text = (
            strict_json.dumps(whole, indent=1).removesuffix("\n}")
            + f',\n "settings": [\n  {settings}\n ]\n}}\n'
        )
        files.write_atomically(self.out / "manifest.json", text.encode())

    def manifest(self) -> dict[str, Any] | None:
        """The manifest, or None in a new folder."""
        path = self.out / "manifest.json"
        if not path.exists():
            return None
        try:
            content = json.loads(path.read_bytes())
            wrong = content.get("format") != FORMAT
        except (ValueError, AttributeError, RecursionError):
            raise _damaged(path) from None
        if wrong:
            raise StoreError(f"{path} is not the manifest of a study: choose another folder")
        if content.get("version") not in range(1, VERSION + 1):
            raise StoreError(
                f"{self.out} was written by another version of the format ({content.get('version')}, here "
                f"{VERSION}): use the version of fastlbm that wrote it, or another folder"
            )
        settings = content.get("settings", [])  # the first versions have none
        sound = isinstance(settings, list) and all(isinstance(mine, dict) for mine in settings)
        if not sound or not all(isinstance(content.get(key), kind) for key, kind in MANIFEST.items()):
            raise _damaged(path)
        try:
            strict_json.restore(content["study"], content.pop(_NO_JSON, ()))
        except (LookupError, TypeError, ValueError):
            raise _damaged(path) from None
        return dict(content)

    def facts(self) -> dict[str, Any]:
        """Versions, the machine, and when it was described and last written to, as far as is known."""
        manifest = self.manifest() or {}
        found: dict[str, Any] = {name: manifest[name] for name in _ORIGIN if name in manifest}
        for name, path in (("described", self.out / "manifest.json"), ("last written", self.pieces)):
            if path.exists():
                moment = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
                found[name] = moment.strftime("%Y-%m-%d %H:%M UTC")
        return found

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

    def scan(self, keys: Collection[str] | None = None) -> tuple[Contents, list[str]]:
        """The sound pieces of these keys (all there are by default), and the names of damaged ones.

        A file whose name is not that of a piece counts as damaged. One listing serves all keys, and each file
        is opened once.
        """
        found, damaged = Contents(), []
        folder = str(self.pieces)  # making a Path takes longer than opening a file
        with self._explained_errors():
            for name in sorted(os.listdir(folder)) if self.pieces.is_dir() else ():
                named = _NAME.fullmatch(name)
                if not name.endswith(".parquet") or (named and keys is not None and named[1] not in keys):
                    continue
                try:
                    with open(os.path.join(folder, name), "rb") as file:
                        content = file.read()
                except FileNotFoundError:  # set aside by the process that works on the folder
                    continue
                try:
                    if _MANY.fullmatch(name):
                        found.add(*read_many(content, keys), name)
                        continue
                    if not named:
                        raise ValueError(f"{name} is not the name of a piece")
                    key = sys.intern(named[1])  # one string for all pieces of a key
                    piece, columns = read_piece(content, key, int(named[2]), int(named[3]))
                    found.add([piece], columns, name)
                except Exception:  # a damaged file may raise anything
                    damaged.append(name)
        return found, damaged

    def count(self) -> int:
        """The files among the pieces."""
        with self._explained_errors():
            return len(os.listdir(self.pieces))

    def set_aside(self, names: Collection[str], folder: str) -> Path:
        """Move pieces to a folder in this one, where they are kept."""
        aside = self.out / folder
        with self._explained_errors():
            aside.mkdir(parents=True, exist_ok=True)
            for name in names:
                (self.pieces / name).replace(aside / name)
        return aside

    def write(self, key: str, seeds: range, frame: pd.DataFrame, anew: bool = False) -> None:
        """Keep the rows of consecutive seeds; a second time changes nothing, unless it is `anew`.

        Columns of `frame` other than COLUMNS, each with one value, are for those who read the file with
        something else: they are written and not read.
        """
        columns: Columns = {name: np.ascontiguousarray(frame[name], kind) for name, kind in COLUMNS.items()}
        piece = Piece(key, seeds[0], seeds[-1], numbers=NUMBERS, rows=len(frame))
        path = self.pieces / piece.name
        if path.exists() and not anew:
            return
        told = {name: frame[name] for name in frame if name not in COLUMNS}
        self._write_rows(path, columns, told, facts_of(piece, columns))

    def _write_rows(
        self, path: Path, columns: Columns, told: Mapping[str, Any], facts: Mapping[bytes, bytes]
    ) -> None:
        content = encoded(columns, told, facts)
        with self._explained_errors():
            files.write_atomically(path, content)

    def merge(self, contents: Contents, told: Mapping[str, Mapping[str, Any]]) -> None:
        """Make one piece of those of a key whose seeds follow each other; `told` has the columns of its key.

        The merged piece is on the disk before the others are removed: whoever reads in between finds rows
        twice, which counts as once.
        """
        import pandas as pd

        ends = np.cumsum([piece.rows for piece in contents.pieces]).tolist()
        for group in _consecutive(contents.pieces):
            if not all(map(contents.is_own_file, group)):
                continue
            places = [slice(ends[k] - contents.pieces[k].rows, ends[k]) for k in group]
            rows = {name: np.concatenate([contents.column(name)[at] for at in places]) for name in COLUMNS}
            pieces = [contents.pieces[k] for k in group]
            seeds = range(pieces[0].first, pieces[-1].last + 1)
            # Anew: a file of that name may be damaged, and the small pieces will be gone.
            self.write(pieces[0].key, seeds, pd.DataFrame(rows | dict(told[pieces[0].key])), anew=True)
            with self._explained_errors():
                for piece in pieces:
                    (self.pieces / piece.name).unlink(missing_ok=True)

    def gather(self, contents: Contents, told: Mapping[str, Mapping[str, Any]]) -> None:
        """Make one file of all pieces that are files of their own, in the same way and as safely.

        A file takes 0.2 ms to be opened, read and checked, whatever is in it.
        """
        from .parameters import as_columns  # and models with them, which reading does not need

        current = [piece.numbers == NUMBERS for piece in contents.pieces]
        mine = [k for k in range(len(contents)) if contents.is_own_file(k) and current[k]]
        if len(mine) < 2:
            return
        pieces = [contents.pieces[k] for k in mine]
        counts = [piece.rows for piece in contents.pieces]
        rows = np.repeat(np.isin(np.arange(len(counts)), mine), counts)
        columns: Columns = {name: contents.column(name)[rows] for name in COLUMNS}
        numbers = {key: number for number, key in enumerate(told)}
        index = np.repeat([numbers[piece.key] for piece in pieces], [piece.rows for piece in pieces])
        facts = facts_of_many(joined(pieces), columns)
        path = self.pieces / name_of_many(facts)
        self._write_rows(path, columns, as_columns(list(told.values()), index), facts)
        with self._explained_errors():
            for piece in pieces:
                (self.pieces / piece.name).unlink(missing_ok=True)

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


def _consecutive(pieces: Sequence[Piece]) -> Iterator[list[int]]:
    """The places of pieces, two or more, of one key and these numbers whose seeds follow each other."""
    order = sorted(range(len(pieces)), key=lambda k: (pieces[k].key, pieces[k].first, pieces[k].last))
    group: list[int] = []
    for k in [*order, None]:
        if k is not None and group:
            last, mine = pieces[group[-1]], pieces[k]
            if (last.key, last.last + 1, last.numbers) == (mine.key, mine.first, mine.numbers):
                group.append(k)
                continue
        if len(group) > 1 and pieces[group[0]].numbers == NUMBERS:
            yield group
        group = [] if k is None else [k]


def _damaged(path: Path) -> StoreError:
    return StoreError(f"{path} is damaged: delete it and run the study again; sound pieces are kept")


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def origin() -> dict[str, dict[str, str]]:
    """The versions and the machine that work here, by the names of _ORIGIN."""
    return {
        "versions": _versions(),
        "machine": {"node": platform.node(), "system": platform.platform()},
    }


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
