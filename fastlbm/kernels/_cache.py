"""Where compiled code is kept: owns its files, their key, and what is done about bad ones.

Numba's own cache knows the file of a function alone, and a kernel would live on with old copies of what it
inlined from other files. Here code lies in a folder that is named after the content of all sources that it
can come from. A folder has one file for each kernel and list of types: a digest of its own name and of the
rest, so that damage, or files in each other's place, are noticed before they are run, and what Numba makes of
a compiled function.

`FASTLBM_CACHE=0` in the environment turns it off.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import config

from . import _together
from ._notice import NOTICE
from ._probe import absent

#: Folders of other digests that are left beside a new one: versions that take turns, or share a place.
KEPT = 3

#: What the machine code depends on, beside the sources: one folder for each.
VERSIONS = numba.__version__, llvmlite.__version__, np.__version__, sys.implementation.cache_tag

#: Numba's settings that it depends on as well, and that may differ from one process to the next.
SETTINGS = (
    "OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DISABLE_INTEL_SVML", "USING_SVML", "ENABLE_AVX",
    "CPU_NAME", "CPU_FEATURES", "DEBUGINFO_DEFAULT", "EXTEND_VARIABLE_LIFETIMES", "ENABLE_PROFILING",
    "LLVM_REFPRUNE_PASS", "LLVM_REFPRUNE_FLAGS", "DEBUG_NRT", "NRT_STATS", "JIT_COVERAGE",
)  # fmt: skip

_KERNELS = Path(__file__).resolve().parent
_told = False


@cache
def why_off() -> str | None:
    """Why nothing is kept on disk; None if it is."""
    if os.environ.get("FASTLBM_CACHE", "1") == "0":
        return "FASTLBM_CACHE=0"
    missing = absent(
        "numba.core.compiler:CompileResult._reduce",
        "numba.core.compiler:CompileResult._rebuild",
        "numba.core.codegen:JITCPUCodegen.magic_tuple",
        "numba.core.dispatcher:Dispatcher.add_overload",
        "numba.core.serialize:dumps",
        "numba.misc.appdirs:AppDirs",
    )
    if missing is None and not hasattr(_dispatcher(), "_cache"):
        missing = "the _cache of a dispatcher"
    return None if missing is None else f"Numba {numba.__version__} has no {missing}"


def _dispatcher() -> Any:
    make: Any = numba.njit
    return make(lambda: None)


class Sources:
    """The Python files of the kernels and of one more folder, as they were when they were first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folders = sorted({_KERNELS, folder})
        self._stamps = self._stat()
        self.digest = self._digest()

    def are_unchanged(self) -> bool:
        """Whether they still are what they were: a process may have imported some before and some after."""
        try:
            stamps = self._stat()
            if stamps != self._stamps:
                if self._digest() != self.digest:
                    return False
                self._stamps = stamps
        except OSError:  # one of them is being replaced
            return False
        return True

    def _stat(self) -> list[tuple[str, int, int, int]]:
        """What the file system says of them, much sooner than a digest."""
        stats = ((str(path), path.stat()) for path in self._files())
        return [(path, stat.st_mtime_ns, stat.st_size, stat.st_ino) for path, stat in stats]

    def _digest(self) -> str:
        found = hashlib.sha256(repr(VERSIONS).encode())
        for path in self._files():
            content = path.read_bytes()
            # Kernels of equal content are the same in any place; other code may import what is around it.
            name = path.name if path.parent == _KERNELS else str(path)
            found.update(f"\n{name} {len(content)}\n".encode() + content)
        return found.hexdigest()[:12]

    def _files(self) -> Iterator[Path]:
        for folder in self._folders:
            yield from filter(Path.is_file, sorted(folder.glob("*.py")))


#: One of them for each folder in a process.
sources = cache(Sources)


def places(folder: Path) -> list[Path]:
    """Where the code of kernels in this folder is kept, first choice first: below where Numba would do it."""
    from numba.misc.appdirs import AppDirs  # what `why_off` has looked for

    settings: Any = config  # its attributes are set at run time
    if settings.CACHE_DIR:
        roots = [Path(settings.CACHE_DIR, folder.name)]
    else:
        user: Any = AppDirs(appname="numba", appauthor=False)  # type: ignore[no-untyped-call]
        roots = [folder / "__pycache__", Path(user.user_cache_dir, folder.name)]
    return [root / f"fastlbm-{sources(folder).digest}" for root in roots]


class KernelCache:
    """The files of one kernel, with the methods that a dispatcher of Numba asks for."""

    def __init__(self, dispatcher: Any, mode: str) -> None:
        function = dispatcher.py_func
        folder = Path(function.__code__.co_filename).resolve().parent
        self._sources = sources(folder)
        self.digest = self._sources.digest
        self.places = places(folder)
        name = f"{Path(function.__code__.co_filename).stem}.{function.__qualname__}-{mode}"
        self._name = name.replace("<", "").replace(">", "")
        self._key = _identity(function), sorted(dispatcher.targetoptions.items())
        self._is_core = folder == _KERNELS and mode == "linked"

    @property
    def cache_path(self) -> str:
        """The first choice among the places."""
        return str(self.places[0])

    def is_current(self) -> bool:
        """Whether the sources are what they were when this process read them."""
        return self._sources.are_unchanged()

    def is_empty(self) -> bool:
        """Whether nothing is kept of this kernel, for any types."""
        return not any(next(place.glob(f"{self._name}-*.nbc"), None) for place in self.places)

    def load_overload(self, types: Any, context: Any) -> Any:
        """What was compiled for these types; None if it must be compiled here."""
        context.refresh()  # what is loaded may call what was imported only now
        if not self._sources.are_unchanged():
            return None
        name = self._file(types, context.codegen())
        found = self._load(types, context, name)
        if found is None:
            NOTICE.look_at(self.places)
            if self._is_core:
                _together.begin(self.places, types)
            path = self._claim(name)
            if path is not None:
                found = self._load(types, context, name)
                if found is not None:
                    _together.release(path)
        return found

    def _claim(self, name: str) -> Path | None:
        """Tell other processes that this one compiles; the file, if one of them may have made it by now."""
        for place in self.places:
            with suppress(OSError):
                _make(place)
                return place / name if _together.claim(place / name) else None
        return None

    def _load(self, types: Any, context: Any, name: str) -> Any:
        for place in self.places:
            # Whatever is wrong with it (gone, damaged, a kernel that it calls has changed), it is made anew.
            with suppress(Exception):
                found = _rebuild(context, types, place / name)
                _mark_as_used(place)
                return found
        return None

    def save_overload(self, types: Any, result: Any) -> None:
        """Keep what was compiled for these types, where that is possible."""
        with NOTICE.shown():  # Python may look for garbage at the end, which takes a while after so much
            try:
                self._save(types, result)
            finally:
                name = self._file(types, result.codegen)
                for place in self.places:
                    _together.release(place / name)

    def _save(self, types: Any, result: Any) -> None:
        if not self._sources.are_unchanged():
            return None
        if result.lifted or result.library.has_dynamic_globals:
            return _tell(f"{self._name} holds addresses of this process")
        name = self._file(types, result.codegen)
        problem = ""
        try:
            body = _body(types, result)
        except Exception as error:  # pickle's, of any kind
            return _tell(f"{self._name}: {error}")
        for place in self.places:
            try:
                return _write(place / name, _digest(place / name, body) + body)
            except FileNotFoundError:  # another process has just removed the folder
                return None
            except OSError as error:
                problem = str(error)
        return _tell(problem)

    def _file(self, types: Any, codegen: Any) -> str:
        values = [getattr(config, name, None) for name in SETTINGS]
        settings = [str(getattr(value, "_raw_value", value)) for value in values]  # NUMBA_OPT=max equals 3
        key = repr((self._key, str(types), codegen.magic_tuple(), settings))
        return f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.nbc"

    # Numba's other methods of a cache: `recompile` flushes it, and nothing calls the rest.
    def flush(self) -> None:
        """Remove what is kept of this kernel."""
        for place in self.places:
            for path in place.glob(f"{self._name}-*.nbc"):
                with suppress(OSError):
                    path.unlink()


def is_writable(place: Path) -> bool:
    """Whether files of the usual size can be written there, once it is made."""
    existing = next(folder for folder in (place, *place.parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(bytes(2**20))
            file.flush()
            return True
    except OSError:
        return False


def attach(dispatcher: Any, mode: str) -> None:
    """Keep the code of a dispatcher on disk, apart from that of other modes; without a source it is not."""
    if why_off() is not None or not os.path.isfile(dispatcher.py_func.__code__.co_filename):
        return
    try:
        dispatcher._cache = KernelCache(dispatcher, mode)
    except Exception as problem:  # sources that cannot be read, or a closure over what cannot be pickled
        _tell(f"{dispatcher.py_func.__qualname__}: {problem}")


def _identity(value: Any) -> Any:
    """What tells a function from others in the same sources: its place, its code, what it closes over."""
    function = getattr(value, "__wrapped__", value)  # of a kernel or a dispatcher
    if not hasattr(function, "__code__"):
        from numba.core.serialize import dumps

        return hashlib.sha256(dumps(value)).hexdigest()  # type: ignore[no-untyped-call]
    code = function.__code__
    cells = [_identity(cell.cell_contents) for cell in function.__closure__ or ()]
    return function.__module__, function.__qualname__, code.co_firstlineno, code.co_code, cells


def _body(types: Any, result: Any) -> bytes:
    from numba.core.serialize import dumps

    body: bytes = dumps((types, result._reduce()))  # type: ignore[no-untyped-call]
    return body


def _digest(path: Path, body: bytes) -> bytes:
    """Of what is in a file, of its name, which tells kernels apart, and its folder's, which tells sources."""
    return hashlib.sha256(f"{path.parent.name}/{path.name}\n".encode() + body).digest()


def _rebuild(context: Any, types: Any, path: Path) -> Any:
    from numba.core.compiler import CompileResult

    content = path.read_bytes()
    if _digest(path, content[32:]) != content[:32]:
        raise ValueError("damaged, or of another kernel")
    kept, parts = pickle.loads(content[32:])
    if kept != types:
        raise ValueError("types of the same name")
    return CompileResult._rebuild(context, *parts)  # type: ignore[no-untyped-call]


def _write(path: Path, content: bytes) -> None:
    """Write a file of a place, which appears whole or not at all."""
    _make(path.parent)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    if path.is_dir():  # who knows why
        shutil.rmtree(path, ignore_errors=True)
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _make(new: Path) -> None:
    """Make a folder, if it is not there, and remove old siblings of a new one.

    Who still uses one of them finds nothing there and compiles.
    """
    if new.is_dir():
        return
    new.mkdir(parents=True, exist_ok=True)
    used: list[tuple[float, Path]] = []
    for other in new.parent.glob("fastlbm-*"):
        with suppress(OSError):  # another process may be at it, too
            if other != new:
                used.append((other.stat().st_mtime, other))
    for _, other in sorted(used, reverse=True)[KEPT:]:
        shutil.rmtree(other, ignore_errors=True)


@cache
def _mark_as_used(place: Path) -> None:
    with suppress(OSError):
        os.utime(place)


def _tell(problem: str) -> None:
    """Say once in a process that something cannot be kept."""
    global _told
    if not _told:
        _told = True
        warnings.warn(
            f"Compiled code cannot be kept on disk ({problem}), so every process compiles it again. "
            "NUMBA_CACHE_DIR=DIR keeps it in another directory; FASTLBM_CACHE=0 does without.",
            RuntimeWarning,
            stacklevel=2,
        )
