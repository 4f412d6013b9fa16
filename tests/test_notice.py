"""The line that counts kernels: there while somebody compiles and somebody looks, and gone afterwards."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from numba import config

from fastlbm.kernels import _cache, _notice
from tests.test_cache import ROOT, Modules, modules  # noqa: F401  (a fixture)


class Bar:
    """What tqdm would draw."""

    def __init__(self, words: str, began: float) -> None:
        self.words, self.began, self.closed = [words], began, False

    def set_description_str(self, words: str) -> None:
        self.words.append(words)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Bar]:
    """The bars that are made, for somebody who looks at a terminal."""
    made: list[Bar] = []

    def make(words: str, began: float) -> Bar:
        made.append(Bar(words, began))
        return made[-1]

    monkeypatch.setattr(_notice, "_make_bar", make)
    monkeypatch.setattr(_notice, "somebody_looks", lambda: True)
    monkeypatch.setattr(_notice, "_is_notebook", lambda: False)
    monkeypatch.setattr(_notice, "DELAY", 0.0)
    monkeypatch.setattr(_notice, "TICK", 0.01)
    return made


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 20.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_line_is_there_from_the_first_to_the_last(bars: list[Bar], tmp_path: Path) -> None:
    notice = _notice.Notice()
    notice.look_at([tmp_path])
    notice.begin()
    notice.begin()
    wait_for(lambda: bars)
    notice.done += 1
    notice.end()
    wait_for(lambda: bars[0].words[-1].endswith(": 1 kernel"))
    (tmp_path / "one.nbc").touch()
    (tmp_path / "two.nbc").touch()  # another process made them
    wait_for(lambda: bars[0].words[-1].endswith(": 2 kernels"))
    assert not bars[0].closed
    notice.end()
    assert bars[0].closed, "before anything else is printed"
    assert bars[0].words[0] == "fastlbm compiles, once for this version and machine: 0 kernels"


def test_the_next_kernel_goes_on_with_count_and_time(bars: list[Bar]) -> None:
    notice = _notice.Notice()
    for number in (1, 2):
        with notice.shown():
            wait_for(lambda number=number: len(bars) == number)
            notice.done += 1
    assert [bar.words[0] for bar in bars] == ["fastlbm compiles: 0 kernels", "fastlbm compiles: 1 kernel"]
    assert bars[0].began == bars[1].began


def test_what_is_over_in_a_moment_is_not_told(bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_notice, "DELAY", 60.0)
    with _notice.Notice().shown():
        time.sleep(0.05)
    assert not bars


def test_in_a_notebook_the_line_outlasts_a_pause(bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_notice, "_is_notebook", lambda: True)
    monkeypatch.setattr(_notice, "STAY", 1.0)
    notice = _notice.Notice()
    for _ in range(3):
        with notice.shown():
            wait_for(lambda: bars)
    assert [bar.closed for bar in bars] == [False]
    wait_for(lambda: bars[0].closed)
    with notice.shown():
        wait_for(lambda: len(bars) == 2)
    wait_for(lambda: bars[1].closed)


def test_where_nobody_looks_there_is_a_sentence_for_who_asked(
    bars: list[Bar], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_notice, "somebody_looks", lambda: False)
    before = threading.active_count()
    said: list[str] = []
    for quiet, expected in (("1", []), ("0", ["compiling"])):
        monkeypatch.setenv("FASTLBM_QUIET", quiet)
        notice = _notice.Notice()
        notice.in_words = lambda: said.append("compiling")
        for _ in range(2):
            with notice.shown():
                pass
        assert said == expected
    assert not bars
    assert threading.active_count() <= before, "no thread was needed"


CODE = """
import sys
from fastlbm.kernels import _notice
_notice.DELAY = 0.0
import outer, inner
print("begin")
outer.run()
inner.alone(1.0)
print("end")
"""


def on_a_terminal(modules: Modules, **settings: str) -> str:  # noqa: F811
    """What a person sees of the code."""
    pty = pytest.importorskip("pty")
    path = os.pathsep.join(map(str, [*modules.folders, ROOT]))
    settings = {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(modules.cache), "FASTLBM_QUIET": "0", **settings}
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", CODE], env=os.environ | settings, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    with suppress(OSError), open(ours, "rb", buffering=0) as terminal:  # Linux's way to say that it is over
        while part := terminal.read(4096):
            seen += part
    assert process.wait() == 0, seen
    return seen.decode()


@pytest.mark.skipif(
    bool(config.DISABLE_JIT) or _cache.why_off() is not None, reason="needs the compiler and its cache"
)
def test_a_person_sees_the_count_once_and_then_what_was_printed(modules: Modules) -> None:  # noqa: F811
    silent = on_a_terminal(modules, FASTLBM_QUIET="1")
    assert re.fullmatch(r"begin\s+5.0 0\s+end\s+", silent)
    for path in modules.cache.rglob("*.nbc"):
        path.unlink()
    cold = on_a_terminal(modules)
    assert "\rfastlbm compiles, once for this version and machine: 0 kernels [00:00]" in cold
    assert "kernels/s" not in cold
    assert "1 kernels" not in re.sub(r"\d\d+ kernels", "", cold)
    shown = [line.rpartition("\r")[2] for line in cold.replace("\r\n", "\n").strip().split("\n")]
    assert shown == ["begin", "5.0 0", "end"], "nothing is left of the line"
    assert re.fullmatch(r"begin\s+5.0 1\s+end\s+", on_a_terminal(modules)), "nothing is compiled"
