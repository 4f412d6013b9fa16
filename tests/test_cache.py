"""Compiled code on disk: never old, never damaged, never in the way. Each process is one of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import config

from fastlbm.kernels import _cache, _jit, search

pytestmark = pytest.mark.skipif(
    bool(config.DISABLE_JIT) or _cache.why_off() is not None, reason="needs the compiler and its cache"
)

ROOT = Path(__file__).parents[1]
BOTH_MODES = pytest.mark.parametrize("link", ["1", "0"])


def answer(code: str, *path: Path, cache: Path, **settings: str) -> str:
    """What the code prints in a process with these settings; without `path` it runs this package."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path or (ROOT,)))}
    environment |= {"NUMBA_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1", **settings}
    environment.pop("FASTLBM_CACHE", None)
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip() + done.stderr


def kept(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.nbc"))


# --- what is loaded is what the sources say ----------------------------------------------------------------


REWARDS = """
import fastlbm as lbm
print(lbm.LBM([0.6, 0.8], m=1, gamma=-1.7).expected_rewards(3 * [[0.6, 0.8]]))
"""


def test_an_edited_inlined_function_of_another_file_is_noticed(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "fastlbm", tmp_path / "fastlbm", ignore=shutil.ignore_patterns("__pycache__"))
    cache = tmp_path / "cache"
    before = answer(REWARDS, tmp_path, cache=cache)
    # No time and no size tells: as when a wheel is installed over another.
    source = tmp_path / "fastlbm" / "kernels" / "powers.py"
    stat, text = source.stat(), source.read_text()
    source.write_text(
        text.replace("math.expm1(gamma * math.log1p(gap))", "math.expm1(gamma * math.expm1(gap))")
    )
    os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert source.stat().st_size == stat.st_size
    after = answer(REWARDS, tmp_path, cache=cache)
    assert after == answer(REWARDS, tmp_path, cache=cache, NUMBA_DISABLE_JIT="1") != before


INNER = """
from fastlbm.kernels._jit import inline, kernel, kernel_internal

@kernel_internal
def value(x):
    return x + {shift}

@inline
def piece(x):
    return 2.0 * value(x)

@kernel
def alone(x):
    return piece(x)
"""
OUTER = """
from inner import piece
from fastlbm.kernels._jit import dispatcher_of, kernel

@kernel
def outer(x):
    return piece(x) + 1.0

def run():
    print(outer(1.0), sum(dispatcher_of(outer).stats.cache_hits.values()))
"""


class Modules:
    """A caller and its callee, in folders of their own: the digest of one does not know the other."""

    def __init__(self, folder: Path) -> None:
        self.folders = [folder / "one", folder / "two"]
        self.cache = folder / "cache"
        for each in self.folders:
            each.mkdir()
        (self.folders[1] / "outer.py").write_text(OUTER)
        self.write_inner(INNER.format(shift=1.0))

    def write_inner(self, text: str) -> None:
        (self.folders[0] / "inner.py").write_text(text)

    def run(self, code: str = "import outer; outer.run()", **settings: str) -> str:
        return answer(code, *self.folders, ROOT, cache=self.cache, **settings)


@pytest.fixture
def modules(tmp_path: Path) -> Modules:
    return Modules(tmp_path)


linked = pytest.mark.skipif(not _jit.LINKED, reason="is about calls by address")


@linked
def test_addresses_are_filled_in_when_code_comes_from_the_cache(modules: Modules) -> None:
    # The piece is compiled into another kernel first, in a process of its own.
    assert modules.run("import inner; print(inner.alone(1.0))") == "4.0"
    assert modules.run() == "5.0 0"
    assert modules.run() == "5.0 1"
    modules.write_inner(INNER.format(shift=20.0))
    assert modules.run() == "43.0 1"  # the callee alone is compiled anew


@linked
@pytest.mark.parametrize(
    ("change", "result"),
    [
        (lambda text: text.replace("x + 1.0", "x + 1.0j"), "(3+2j)"),
        (lambda text: text.replace("value", "worth"), "5.0"),
    ],
    ids=["result of another type", "callee gone"],
)
def test_a_caller_whose_callee_has_changed_is_compiled_again(
    change: Any, result: str, modules: Modules
) -> None:
    modules.run()
    modules.write_inner(change(INNER.format(shift=1.0)))
    assert modules.run() == f"{result} 0"
    assert modules.run() == f"{result} 1"


def test_sources_that_change_under_a_process_are_not_mixed(modules: Modules) -> None:
    late = "import inner, outer, pathlib; p = pathlib.Path(outer.__file__); p.write_text(p.read_text() + '#')"
    modules.run(f"{late}; outer.run()")
    assert not [path for path in kept(modules.cache) if path.name.startswith("outer")]


def test_settings_that_change_machine_code_have_code_of_their_own(modules: Modules) -> None:
    for opt, checks in (("3", "0"), ("max", "0"), ("3", "1")):
        assert modules.run(NUMBA_OPT=opt, NUMBA_BOUNDSCHECK=checks) == "5.0 0"
    assert modules.run(NUMBA_OPT="3", NUMBA_BOUNDSCHECK="0") == "5.0 1"


MODELS = """
from typing import NamedTuple
from numba.extending import overload
from fastlbm.kernels._jit import dispatcher_of, kernel, kernel_internal

class Line(NamedTuple):
    slope: float

class Square(NamedTuple):
    scale: float

@kernel_internal
def line(p, x):
    return p.slope * x

@kernel_internal
def square(p, x):
    return p.scale * x * x

KERNELS = {Line: line, Square: square}

def value(p, x):
    raise NotImplementedError

@overload(value)
def choose(p, x):
    chosen = KERNELS[p.instance_class]
    return lambda p, x: chosen(p, x)

@kernel
def total(a, b, x):
    return value(a, x) + value(b, x)

def run():
    print(total(Line(2.0), Square(3.0), 2.0), sum(dispatcher_of(total).stats.cache_hits.values()))
"""


@BOTH_MODES
def test_an_overloaded_function_may_choose_a_kernel_by_type(link: str, tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(MODELS)
    for hits in (0, 1):
        run = answer("import models; models.run()", tmp_path, ROOT, cache=tmp_path, FASTLBM_LINK=link)
        assert run == f"16.0 {hits}"


def test_kernels_that_close_over_other_values_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "family.py").write_text(
        "from fastlbm.kernels._jit import dispatcher_of, kernel\n"
        "def make(n):\n"
        "    @kernel\n"
        "    def f(x):\n"
        "        return n * x\n"
        "    return f\n"
    )
    code = (
        "import family; fs = [family.make(n) for n in (2, 3)]; "
        "print(*(f(1) for f in fs), *(len(family.dispatcher_of(f).stats.cache_hits) for f in fs))"
    )
    assert answer(code, tmp_path, ROOT, cache=tmp_path) == "2 3 0 0"
    assert answer(code, tmp_path, ROOT, cache=tmp_path) == "2 3 1 1"


# --- files that are not as they should be -------------------------------------------------------------------


def fresh_kernel(*places: Path) -> tuple[Any, _cache.KernelCache]:
    """A kernel that is kept in these places, not compiled yet; the same one every time."""

    @_jit.kernel
    def halve(x: float) -> float:
        return 0.5 * x

    cache = _jit.cache_of(halve)
    assert cache is not None
    cache.places = list(places)
    return halve, cache


def hits(kernel: Any) -> int:
    return sum(_jit.dispatcher_of(kernel).stats.cache_hits.values())


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        *(lambda content, k=k: content[:k] + bytes([content[k] ^ 1]) + content[k + 1 :] for k in (3, 99, -9)),
    ],
    ids=["cut", "empty", "flip digest", "flip head", "flip tail"],
)
def test_damaged_files_are_thrown_away(damage: Any, tmp_path: Path) -> None:
    for expected in (0, 1):
        halve, _ = fresh_kernel(tmp_path)
        assert (halve(1.0), hits(halve)) == (0.5, expected)
    (path,) = kept(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    for expected in (0, 1):
        halve, _ = fresh_kernel(tmp_path)
        assert (halve(1.0), hits(halve)) == (0.5, expected)


def damages(content: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """A file as a full disk, a power cut or a bad sector may leave it."""
    n = len(content)
    at = sorted(int(k) for k in rng.integers(0, n, 4))
    yield content[: at[0]]
    yield content[: n - 1]
    yield b""
    yield bytes(n)
    yield content[: at[1]] + bytes([content[at[1]] ^ (1 << int(rng.integers(8)))]) + content[at[1] + 1 :]
    yield content[: at[2]] + rng.bytes(min(64, n - at[2])) + content[at[2] + 64 :]
    yield content[: at[0]] + bytes(at[3] - at[0]) + content[at[3] :]
    yield content + rng.bytes(32)
    yield content[32:]
    yield rng.bytes(n)


@pytest.mark.slow
def test_a_whole_cache_of_damaged_files_is_compiled_again(tmp_path: Path) -> None:
    """Every file of a run, damaged in every way, 60 of them or more."""
    code = "import fastlbm as lbm; print(lbm.run(lbm.LBM([0.6, 0.8]), lbm.OFUL(20), T=20).observed[-1].hex())"
    rng = np.random.default_rng(0)
    right, count = answer(code, cache=tmp_path), 0
    while count < 60:
        for path in kept(tmp_path):
            *_, damaged = zip(range(count % 10 + 1), damages(path.read_bytes(), rng), strict=False)
            path.write_bytes(damaged[1])
            count += 1
        assert answer(code, cache=tmp_path) == right


def another_kernel(place: Path) -> Any:
    """The same types, other code."""

    @_jit.kernel
    def double(x: float) -> float:
        return 2.0 * x

    cache = _jit.cache_of(double)
    assert cache is not None
    cache.places = [place]
    return double


def test_files_in_each_others_place_are_not_run(tmp_path: Path) -> None:
    for _ in range(2):
        halve, double = fresh_kernel(tmp_path)[0], another_kernel(tmp_path)
        assert (halve(1.0), double(1.0)) == (0.5, 2.0)
        one, other = kept(tmp_path)
        content = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(content)


def test_a_folder_in_the_place_of_a_file_is_removed(tmp_path: Path) -> None:
    fresh_kernel(tmp_path)[0](1.0)
    (path,) = kept(tmp_path)
    path.unlink()
    path.mkdir()
    for expected in (0, 1):
        halve, _ = fresh_kernel(tmp_path)
        assert (halve(1.0), hits(halve)) == (0.5, expected)


def test_a_place_that_cannot_be_written_to_is_told_once(modules: Modules) -> None:
    modules.cache.write_text("not a directory")
    said = modules.run()
    assert said.startswith("5.0 0")
    assert said.count("RuntimeWarning: Compiled code cannot be kept on disk") == 1


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, content: bytes) -> None:
        path.open("wb").close()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    monkeypatch.setattr(_cache, "_told", False)
    halve, cache = fresh_kernel(tmp_path)
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        assert halve(1.0) == 0.5
    assert cache.is_empty()
    assert not any(tmp_path.iterdir())


def test_what_cannot_be_written_in_one_place_is_kept_in_the_next(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    halve, cache = fresh_kernel(tmp_path / "file" / "one", tmp_path / "two")
    assert [_cache.is_writable(place) for place in cache.places] == [False, True]
    assert cache.is_empty()
    assert not (tmp_path / "two").exists()
    halve(1.0)
    assert kept(tmp_path / "two")
    assert not cache.is_empty()


def test_files_that_are_no_sources_do_no_harm(modules: Modules) -> None:
    (modules.folders[1] / ".#outer.py").symlink_to("nobody@nowhere")  # an editor's lock
    assert modules.run() == "5.0 0"
    assert modules.run() == "5.0 1"


def test_old_folders_are_removed_when_a_new_one_is_made(tmp_path: Path) -> None:
    names = [f"fastlbm-{k}" for k in range(_cache.KEPT + 2)]
    for age, name in enumerate(names):
        _cache._write(tmp_path / name / "kernel", b"")
        os.utime(tmp_path / name, (age, age))
    _cache._mark_as_used(tmp_path / names[-3])
    (tmp_path / "another").mkdir()
    _cache._write(tmp_path / "fastlbm-new" / "kernel", b"")
    assert {path.name for path in tmp_path.iterdir()} == {"fastlbm-new", "another", *names[-3:]}


# --- what is said about it ----------------------------------------------------------------------------------


def test_no_cache_rather_than_an_unsafe_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_cache, "absent", lambda *names: "such thing")
    why = _cache.why_off.__wrapped__()
    assert why.endswith("has no such thing")
    monkeypatch.setattr(_cache, "why_off", lambda: why)
    with pytest.raises(AssertionError):
        fresh_kernel(tmp_path)


def test_the_doctor_says_how_kernels_are_called_and_kept(tmp_path: Path) -> None:
    code = "from fastlbm import doctor\nfor name, value in doctor.facts(): print(f'{name}: {value}')"
    said = answer(code, cache=tmp_path, FASTLBM_LINK="0")
    assert "calls: inlined by Numba, slower to compile (FASTLBM_LINK=0)" in said
    said = answer(code, cache=tmp_path, FASTLBM_LINK="1")
    assert "calls: by address" in said
    cache = _jit.cache_of(search.search)
    assert cache is not None
    assert f"disk cache: on, {tmp_path / 'kernels'}/fastlbm-{cache.digest}, writable" in said
    assert f"sources: {cache.digest}" in said
