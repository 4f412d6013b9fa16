"""Processes that find the same cache empty: each kernel is compiled once, the second process is of use."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from numba import config, typeof
from numba.core.serialize import dumps

import fastlbm as lbm
from fastlbm import precompile
from fastlbm.kernels import _jit, _together, weighing
from tests.test_cache import ROOT, Modules, answer, kept, modules  # noqa: F401  (a fixture)

pytestmark = pytest.mark.skipif(
    bool(config.DISABLE_JIT) or not _jit.LINKED, reason="is about kernels that call each other by address"
)


def test_who_finds_a_kernel_claimed_waits_for_it(tmp_path: Path) -> None:
    path = tmp_path / "kernel.nbc"
    other = FileLock(path.with_suffix(".lock"))
    waited: list[bool] = []
    thread = threading.Thread(target=lambda: waited.append(_together.claim(path)))
    with other:
        thread.start()
        thread.join(timeout=0.3)
        assert thread.is_alive()
        assert not waited
    thread.join(timeout=10.0)
    assert waited == [True]
    _together.release(path)


def test_a_claim_is_free_again_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kernel.nbc"
    assert not _together.claim(path)
    assert not _together.claim(path), "a compilation that failed may be tried again"
    with pytest.raises(Exception, match="lock"):
        FileLock(path.with_suffix(".lock"), timeout=0).acquire()
    _together.release(path)
    assert not list(tmp_path.iterdir())


def test_who_waits_too_long_goes_on_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_together, "PATIENCE", 0.05)
    path = tmp_path / "kernel.nbc"
    with FileLock(path.with_suffix(".lock")):
        assert _together.claim(path)
        _together.release(path)  # of what it does not hold
        with pytest.raises(Exception, match="lock"):
            FileLock(path.with_suffix(".lock"), timeout=0).acquire()


def test_processes_that_start_together_compile_each_kernel_once(modules: Modules) -> None:  # noqa: F811
    code = """
import outer, inner, numba
from fastlbm.kernels._jit import dispatcher_of
outer.run()
print(*[sum(dispatcher_of(k).stats.cache_misses.values()) for k in (outer.outer, inner.value)])
"""
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(modules.run(code))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(text.startswith("5.0 ") for text in found)
    misses = [text.split()[2:] for text in found]
    assert [sum(map(int, each)) for each in zip(*misses, strict=True)] == [1, 1]
    assert not list(modules.cache.rglob("*.lock"))


FAILS = """
from fastlbm.kernels._jit import kernel
from fastlbm.kernels import _together

@kernel
def fails(x):
    return x.nothing

try:
    fails(1.0)
except Exception as error:
    print(type(error).__name__, _together._claims)
"""


def test_a_compilation_that_fails_lets_its_claims_go(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILS)
    assert answer("import failing", tmp_path, ROOT, cache=tmp_path / "cache") == "TypingError {}"


def asked_for(agent: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """The types for which the loop of an episode is compiled."""
    from fastlbm.agents import policy

    kinds: list[tuple[Any, ...]] = []

    def spy(*arguments: Any) -> None:
        kinds.append(tuple(map(typeof, arguments)))
        run_blocks(*arguments)

    run_blocks = policy.run_blocks
    with monkeypatch.context() as patch:
        patch.setattr(policy, "run_blocks", spy)
        lbm.run(lbm.LBM.random(d=3, m=2, gamma=-3.0, seed=0), agent, T=60)
    return kinds[0]


def test_the_second_process_compiles_what_a_first_run_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = set()
    for agent in (lbm.O3M(2, -3.0, 100, L=4), lbm.Rolling(2, -3.0)):
        for kernel, kinds in precompile.late_kernels(asked_for(agent, monkeypatch)):
            if kinds in kernel.compiled.overloads:  # before it is asked for
                needed.add(f"{kernel.__module__.rpartition('.')[2]}.{kernel.__qualname__}")
    general = {"memory.general_forward", "memory.general_backward"}  # of other A0
    assert set(precompile.LATE) - needed == general


def test_an_empty_cache_gets_a_second_process(tmp_path: Path) -> None:
    code = """
import fastlbm as lbm
from fastlbm.kernels import _together
_together.cores = lambda: 2
env = lbm.LBM.random(d=3, m=2, gamma=-3.0, seed=0)
lbm.run(env, lbm.O3M(2, -3.0, 100, L=4), T=100)
print(_together._second.wait())
"""
    assert answer(code, cache=tmp_path) == "0"
    files = kept(tmp_path)
    assert (
        answer(code.replace("print(_together._second.wait())", "print(_together._second)"), cache=tmp_path)
        == "None"
    )
    assert kept(tmp_path) == files, "nothing was left to compile"


def test_garbage_is_not_collected_while_something_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_together, "_claims", {})  # of whatever ran before
    first, second = tmp_path / "one.nbc", tmp_path / "two.nbc"
    for collects in (True, False):
        (gc.enable if collects else gc.disable)()
        try:
            _together.claim(first)
            _together.claim(second)
            assert not gc.isenabled()
            _together.release(first)
            assert not gc.isenabled()
            _together.release(second)
            assert gc.isenabled() == collects
        finally:
            gc.enable()


def test_who_weighs_models_gets_the_form_for_long_memories_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    asked: list[tuple[Any, ...]] = []
    run_weighed = weighing.run_weighed

    def spy(*arguments: Any) -> Any:
        asked.append(tuple(map(typeof, arguments)))
        return run_weighed(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(weighing, "run_weighed", spy)
        lbm.run(lbm.LBM.random(d=3, m=2, gamma=-3.0, seed=0), lbm.Auto(), T=60)
    monkeypatch.setattr(precompile, "late_kernels", lambda kinds: ())
    monkeypatch.setattr(precompile, "general_rolling", lambda: made.append("general"))
    precompile.beside(dumps(asked[0]))
    assert made == ["general"]
    precompile.beside(dumps(asked_for(lbm.Rolling(2, -3.0), monkeypatch)))
    assert made == ["general"]


@pytest.mark.skipif(os.name == "nt", reason="no groups of processes")
def test_ctrl_c_ends_those_who_compile_with_one_word(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-m", "fastlbm", "compile"], env=environment, cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        while not list(tmp_path.rglob("*.nbc")):  # until the first kernel is there
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 130
    assert said.splitlines()[-1] == "fastlbm: stopped"
    assert "Traceback" not in said
    assert "Warning" not in said
