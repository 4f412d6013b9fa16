"""Files of rows: own how pieces lie in them and how it is known that they are sound."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._base import files

COLUMNS = {"seed": np.int64, "t": np.int64, "reward": np.float64, "observed": np.float64}
#: The rows of a piece, an array a column.
Columns = dict[str, NDArray[Any]]
_DIGEST, _NUMBERS, _PIECES = b"fastlbm.digest", b"fastlbm.numbers", b"fastlbm.pieces"


class Piece(NamedTuple):
    """The rows of the seeds first..last of a key, and the version of the numbers that made them."""

    key: str
    first: int
    last: int
    numbers: int
    rows: int

    @property
    def name(self) -> str:
        return f"{self.key}-{self.first}-{self.last}.parquet"


class Contents:
    """The sound pieces of a folder, and their rows one after the other in one array a column."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.files: list[str] = []  # where each of them is
        self._bytes = {name: bytearray() for name in COLUMNS}  # 10^5 small arrays would take 80 MB

    def add(self, pieces: Sequence[Piece], columns: Columns, file: str) -> None:
        """Pieces of a file, and their rows one after the other."""
        self.pieces += pieces
        self.files += [file] * len(pieces)
        for name, values in columns.items():
            self._bytes[name] += values.data.cast("B")

    def column(self, name: str) -> NDArray[Any]:
        """All rows of a column, in the order of the pieces."""
        return np.frombuffer(self._bytes[name], COLUMNS[name])

    def is_own_file(self, k: int) -> bool:
        """Whether the k-th piece is a file of its own, not a part of one."""
        return self.files[k] == self.pieces[k].name

    def __len__(self) -> int:
        return len(self.pieces)


def encoded(columns: Columns, told: Mapping[str, Any], facts: Mapping[bytes, bytes]) -> bytes:
    """A file of the columns, of others that are told for those who read it with something else, and facts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    others = {name: pa.array(values) for name, values in told.items()}
    for name, values in others.items():
        if pa.types.is_dictionary(values.type):  # the same types in all files
            others[name] = values.dictionary_decode()
    table = pa.table({**columns, **others}, metadata=dict(facts))
    sink = pa.BufferOutputStream()
    # Small and plain: a study may have 10^5 pieces of a few rows, and each is read whole.
    pq.write_table(
        table, sink, compression="none", use_dictionary=list(others) or False, write_statistics=False
    )
    content: bytes = sink.getvalue().to_pybytes()
    return content


def facts_of(piece: Piece, columns: Columns) -> dict[bytes, bytes]:
    """What is written beside the rows of a piece."""
    return {_DIGEST: _digest(piece, columns).encode(), _NUMBERS: str(piece.numbers).encode()}


def facts_of_many(pieces: Sequence[Piece], columns: Columns) -> dict[bytes, bytes]:
    """What is written beside the rows of many pieces."""
    every, digest = _digest_of_many(pieces, columns)
    return {_DIGEST: digest.encode(), _NUMBERS: str(pieces[0].numbers).encode(), _PIECES: every}


def joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Those of one key of which one follows the other, as one: there is less to be read.

    >>> joined([Piece("a", 0, 0, 3, 2), Piece("a", 1, 4, 3, 8), Piece("a", 6, 6, 3, 2)])
    [Piece(key='a', first=0, last=4, numbers=3, rows=10), Piece(key='a', first=6, last=6, numbers=3, rows=2)]
    """
    found: list[Piece] = []
    for piece in pieces:
        before = found[-1] if found else None
        if before and (before.key, before.last + 1, before.numbers) == (
            piece.key,
            piece.first,
            piece.numbers,
        ):
            found[-1] = before._replace(last=piece.last, rows=before.rows + piece.rows)
        else:
            found.append(piece)
    return found


def name_of_many(facts: Mapping[bytes, bytes]) -> str:
    return f"many-{facts[_DIGEST].decode()[:16]}.parquet"


def _read_rows(content: bytes) -> tuple[Columns, Mapping[bytes, bytes]]:
    """The columns in a file, and the facts beside them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # A quarter of the time of `read_table`, which looks for a dataset.
    file = pq.ParquetFile(pa.BufferReader(content), pre_buffer=False)
    table = file.read(list(COLUMNS), use_threads=False)
    columns = {name: np.ascontiguousarray(table.column(name).to_numpy()) for name in COLUMNS}
    return columns, table.schema.metadata or {}


def read_piece(content: bytes, key: str, first: int, last: int) -> tuple[Piece, Columns]:
    """The piece in a file and its columns, if it is sound."""
    columns, facts = _read_rows(content)
    if _NUMBERS in facts:
        piece = Piece(key, first, last, numbers=int(facts[_NUMBERS]), rows=len(columns["t"]))
        digest = _digest(piece, columns)
    else:  # version 1 of the format
        piece = Piece(key, first, last, numbers=1, rows=len(columns["t"]))
        digest = files.digest(*(values.tobytes() for values in columns.values()))
        seeds = np.unique(columns["seed"])
        if (seeds[0], seeds[-1], len(seeds)) != (first, last, last - first + 1):
            raise ValueError(f"{key} has rows of other seeds than {first} to {last}")
    if facts[_DIGEST] != digest.encode():
        raise ValueError(f"{key} has another digest than its rows")
    return piece, columns


def read_many(content: bytes, keys: Collection[str] | None) -> tuple[list[Piece], Columns]:
    """The pieces of these keys (all by default) in a file of many, and their rows, if it is sound."""
    columns, facts = _read_rows(content)
    pieces = [Piece(sys.intern(key), *rest) for key, *rest in json.loads(facts[_PIECES])]
    counts = [piece.rows for piece in pieces]
    if facts[_DIGEST] != _digest_of_many(pieces, columns)[1].encode() or sum(counts) != len(columns["t"]):
        raise ValueError("many pieces have another digest than their rows")
    wanted = [keys is None or piece.key in keys for piece in pieces]
    if not all(wanted):
        rows = np.repeat(wanted, counts)
        columns = {name: values[rows] for name, values in columns.items()}
        pieces = [piece for piece, is_wanted in zip(pieces, wanted, strict=True) if is_wanted]
    return pieces, columns


def _digest_of_many(pieces: Sequence[Piece], columns: Columns) -> tuple[bytes, str]:
    """The pieces as JSON, and the digest of these and their rows."""
    every = json.dumps(pieces, separators=(",", ":")).encode()
    return every, files.digest(every, *(values.tobytes() for values in columns.values()))


def _digest(piece: Piece, columns: Columns) -> str:
    return files.digest(repr(tuple(piece)).encode(), *(values.tobytes() for values in columns.values()))
