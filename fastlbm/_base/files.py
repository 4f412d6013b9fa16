"""Files: owns how one is written, as a whole or not at all, and the digest of what is in it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
from pathlib import Path

#: How the name of a file that is being written ends.
PARTIAL = ".part"


def write_atomically(path: Path, content: bytes) -> None:
    """Make `content` the file at `path`: whoever reads it finds the old file or the new one, each whole.

    The content goes to a new file beside the target, which is synced and renamed. A symbolic link at `path`
    is replaced, not followed. If anything fails, the old file stays, nothing is left beside it, and an error
    of the system names `path`.
    """
    partial = path.with_name(f"{path.name[:100]}.{secrets.token_hex(8)}{PARTIAL}")
    try:
        with partial.open("xb") as file:  # a file of this name, or a link, would be an error
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from None  # of the class of its number
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename in the folder last through a loss of power, where the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows opens no folder; elsewhere it may be one that cannot be listed
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # what file systems say that cannot
            raise
    finally:
        os.close(descriptor)


def remove_partial(folder: Path) -> None:
    """Remove what killed processes left half-written; only where nobody else is writing."""
    for left in folder.glob(f"*{PARTIAL}"):
        left.unlink()


def digest(*parts: bytes) -> str:
    """The SHA-256 of the parts, one after the other, in hexadecimal digits.

    >>> digest(b"ab", b"c") == digest(b"abc")
    True
    """
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()
