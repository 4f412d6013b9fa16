"""States of live policies: own their two forms, their soundness and how an older version is read.

A file is a NumPy .npz without pickled objects: arrays by name, and a header with a digest of everything. For
databases the same is packed into bytes, a third of the size for small states: MAGIC, the length of a header,
the header, which lists the arrays, the arrays, and a digest of all that.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .._base.files import digest, write_atomically
from .._base.types import Array

#: What a state file says of itself; the number changes with what is in it.
FORMAT = "fastlbm live state"
VERSION = 4
#: Versions before that hold the same, some policies aside, see `restoring`.
SAME = (3,)
#: How packed bytes begin, and which types of arrays they may hold.
MAGIC = b"fastlbm\x00"
_TYPES = ("<f8", "<i8", "|b1")
#: What the arrays of version 1 are called today; a name that ends with a dot stands for all behind it.
_SINCE_1 = {
    "desk.block": "block.actions",
    "desk.reward": "block.expected",
    "desk.total": "block.reward_sums",
    "desk.seen": "block.reward_counts",
    "desk.at": "block.counters",
    "past.": "history.",
    "jury.": "candidates.",
    "author": "chosen",
    "waiting.": "pending.",
}
#: What version 1 kept of late rewards, block by block for every candidate, and of what does not change.
_GONE_SINCE_1 = ("waiting", "late", "jury.m", "jury.gamma", "jury.c", "jury.A0")


def write_state(path: Path, header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write header and arrays, in one piece or not at all."""
    header = {"format": FORMAT, "version": VERSION, **header}
    header["digest"] = _digest(arrays, header)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    content = io.BytesIO()
    np.savez(content, header=text, **arrays)  # type: ignore[arg-type]
    write_atomically(path, content.getvalue())


def pack_state(header: dict[str, Any], arrays: dict[str, Array]) -> bytes:
    """Header and arrays as bytes."""
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    listed = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    text = json.dumps({"version": VERSION, **header, "arrays": listed}, separators=(",", ":")).encode()
    parts = [MAGIC, len(text).to_bytes(4, "little"), text, *(array.tobytes() for array in arrays.values())]
    return b"".join((*parts, hashlib.sha256(b"".join(parts)).digest()))


def unpack_state(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """What `pack_state` packed, checked as far as that goes."""
    end = len(data) - hashlib.sha256().digest_size
    if data[: len(MAGIC)] != MAGIC or hashlib.sha256(data[: max(end, 0)]).digest() != data[max(end, 0) :]:
        raise ValueError("data must be an undamaged state of a live policy, got other bytes")
    begin = len(MAGIC) + 4
    at = begin + int.from_bytes(data[len(MAGIC) : begin], "little")
    arrays: dict[str, Array] = {}
    try:
        header = json.loads(data[begin:at])
        for name, kind, shape in header.pop("arrays"):
            if kind not in _TYPES or min(shape, default=0) < 0:
                raise ValueError(f"an array of type {kind!r} and shape {shape}")
            size = math.prod(shape) * np.dtype(kind).itemsize
            if at + size > end:
                raise ValueError(f"no room for an array of shape {shape}")
            arrays[name] = np.frombuffer(data[at : at + size], dtype=kind).reshape(shape).copy()
            at += size
        if at != end:
            raise ValueError("bytes that belong to no array")
    except Exception as error:  # a forged header can make of it what it likes
        raise ValueError(f"data must be a state of a live policy, got bytes that are none: {error}") from None
    if header.get("version") not in (*SAME, VERSION):
        raise ValueError(
            f"data must be a state of version {VERSION}, got version {header.get('version')!r}; files of "
            "older versions can be loaded and packed anew"
        )
    return header, arrays


def fingerprint(value: Any) -> str:
    """A fingerprint of an agent or a set, the same in every process."""
    return digest(repr(value._key()).encode())


def _digest(arrays: dict[str, Array], header: dict[str, Any]) -> str:
    rest = {name: value for name, value in header.items() if name != "digest"}
    parts = [json.dumps(rest, sort_keys=True).encode()]
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        parts += [f"{name} {array.dtype.str} {array.shape}".encode(), array.tobytes()]
    return digest(*parts)


def read_state(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a state file, by their names of today, checked as far as that goes."""
    try:
        arrays = _read_arrays(path)
        header = json.loads(arrays.pop("header").tobytes())
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # zipfile raises what it likes on a damaged file
        raise ValueError(f"path must be a state file of a live policy, got {str(path)!r}: {error}") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"path must be a state file of a live policy, got {str(path)!r}, which is not one")
    if header.get("version") not in (1, 2, *SAME, VERSION):
        raise ValueError(
            f"path must be a state file of version 1 to {VERSION}, got version {header.get('version')!r}"
        )
    if header.get("digest") != _digest(arrays, header):
        raise ValueError(f"path must be an undamaged state file, got {str(path)!r}, whose digest differs")
    if header["version"] == 1:
        arrays = {_renamed(name): array for name, array in arrays.items() if name not in _GONE_SINCE_1}
        arrays = _completed(arrays)
    return header, arrays


def _read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file, none of which is larger than what lies on the disk."""
    size = path.stat().st_size
    with path.open("rb") as begin:
        if begin.read(4) != b"PK\x03\x04":
            raise ValueError("it is no .npz file")
    with zipfile.ZipFile(path) as file:
        entries = file.infolist()
        # `write_state` does not compress: a file that becomes larger when it is read is not one of its.
        if sum(entry.file_size for entry in entries) > size:
            raise ValueError(f"its arrays would take more than the {size} bytes of the file")
        return {entry.filename.removesuffix(".npy"): _parse_array(file.read(entry)) for entry in entries}


def _parse_array(content: bytes) -> Array:
    """An array in the .npy format, if its shape is that of the bytes that follow."""
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array of another version of the format")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    rest = content[stream.tell() :]
    if dtype.hasobject or fortran or math.prod(shape) * dtype.itemsize != len(rest):
        raise ValueError(f"an array of shape {shape} and type {dtype} is not what follows")
    return np.frombuffer(rest, dtype=dtype).reshape(shape).copy()


def _renamed(name: str) -> str:
    """The name that an array of version 1 has today; a number before it says which member it belongs to."""
    member, _, rest = name.partition(".")
    if member.isdigit():
        return f"{member}.{_renamed(rest)}"
    for old, new in _SINCE_1.items():
        if name == old or (old.endswith(".") and name.startswith(old)):
            return new + name.removeprefix(old)
    return name


def _completed(arrays: dict[str, Array]) -> dict[str, Array]:
    """With what version 1 did not keep: how long a block is, and squares of rewards, which nobody had."""
    found = dict(arrays)
    for name, array in arrays.items():
        owner, _, field = name.rpartition(".")
        if name.endswith("block.counters"):
            found[name] = np.append(array, len(arrays[f"{owner}.actions"]))
            found[f"{owner}.reward_squares"] = np.zeros_like(arrays[f"{owner}.reward_sums"])
        elif field == "ledger":
            found[name] = np.concatenate((array, np.zeros((*array.shape[:-1], 2))), axis=-1)
    return found


def fill(name: str, array: Array, saved: Array) -> None:
    """The saved numbers into an array of the same shape and type."""
    if saved.shape != array.shape or saved.dtype != array.dtype:
        raise ValueError(f"{name} of shape {array.shape}")
    if not np.isfinite(saved).all():
        raise ValueError(f"{name} with NaN or infinity")
    array[...] = saved
