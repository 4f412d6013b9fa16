"""Ctrl-C in long work: it is heard while compiled code runs, and nothing is left half done."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm._base.interrupts import deferred, in_kernel, interruptible, load
from fastlbm.kernels.memory import make_memory
from fastlbm.kernels.optimism import O3M, Belief
from fastlbm.kernels.search import search
from fastlbm.planning.effort import COLD_BLOCK
from fastlbm.running import episode, live
from tests import problems
from tests.experiments.conftest import TEXT


def press_soon() -> None:
    threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,)).start()


def test_ctrl_c_ends_compiled_work_by_its_flag() -> None:
    told, calls = threading.Event(), []

    def stop(on: bool) -> None:
        calls.append(on)
        if on:
            told.set()

    press_soon()
    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: told.wait(60.0), stop)
    assert calls == [False, True]


def test_ctrl_c_ends_python_work() -> None:
    def work() -> None:
        for _ in range(6000):  # a minute, if nobody ends it
            time.sleep(0.01)

    before = threading.active_count()
    press_soon()
    with pytest.raises(KeyboardInterrupt):
        interruptible(work, lambda on: None)
    assert threading.active_count() <= before + 1  # the timer may still be ending


def test_ctrl_c_in_short_compiled_work_is_heard_when_it_is_over() -> None:
    """Numba makes an error of one that comes while it makes objects of results."""
    rng = np.random.default_rng(0)
    arms = problems.ball(300, 24, rng)
    plan = {"d": 24, "m": 3, "L": 20, "gamma": -2.0, "theta": arms[0], "actions": lbm.Finite(arms)}
    lbm.plan_block(**plan)

    def plan_for_long() -> None:
        for _ in range(1000):
            lbm.plan_block(**plan)

    for _ in range(3):
        threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,)).start()
        with pytest.raises(KeyboardInterrupt):
            plan_for_long()


def test_where_an_interrupt_waits() -> None:
    def stack(*modules: str) -> FrameType:
        """The frames of functions of these modules, the innermost first."""
        frame = None
        for module in reversed(modules):
            frame = SimpleNamespace(f_globals={"__name__": module}, f_back=frame)
        return cast("FrameType", frame)

    boxing, kernel, compiler = "numba.core.serialize", "fastlbm.kernels._link", "numba.core.dispatcher"
    assert in_kernel(stack(boxing, kernel, "__main__"))
    assert in_kernel(stack(kernel, "__main__"))
    assert not in_kernel(stack(boxing, compiler, kernel, "__main__"))
    assert not in_kernel(stack("__main__"))
    assert not in_kernel(None)


def test_short_work_is_done_at_once() -> None:
    found: list[int] = []
    interruptible(lambda: found.append(threading.get_ident()), lambda on: None, seconds=0.01)
    interruptible(lambda: found.append(threading.get_ident()), lambda on: None, seconds=10.0)
    assert found[0] == threading.get_ident() != found[1]


def test_results_and_errors_come_back() -> None:
    assert interruptible(lambda: 7, lambda on: None) == 7
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0, lambda on: None)
    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: time.sleep(0.3), lambda on: None, is_over=lambda: True)


def test_a_search_that_is_told_to_stop_evaluates_nothing_more() -> None:
    theta = np.array([0.6, 0.8])
    memory, A0 = make_memory(np.eye(2), 1, -2.0)
    belief = Belief(theta, np.eye(2), 0.0, O3M)
    free = np.empty((2, 0))
    for flag in (0, 1):
        effort = COLD_BLOCK._replace(stop=np.array([flag]))
        _, _, evaluations, _ = search(
            memory, A0, belief, 9, False, free, free, effort, -np.inf, np.random.default_rng(0)
        )
        assert (evaluations == 0) == bool(flag)


def interrupted(work: Callable[[], Any], stop: Callable[[bool], None], **_: object) -> None:
    """As if Ctrl-C came at the beginning of a plan."""
    stop(True)
    work()
    raise KeyboardInterrupt


AGENTS = [
    lbm.O3M(1, -2.0, 100, L=3),
    lbm.OMBlock(1, -2.0, 100, L=3),
    lbm.O3M(1, -2.0, 100, L=3, switch=1.0),
    lbm.Rolling(1, -2.0),
    lbm.Rolling(1, -2.0, switch=1.0),
    lbm.EvidenceSelector([(0, 0.0), (1, -2.0), (2, -1.0)], 100, L=3),
    lbm.BanditCombiner([(0, 0.0), (1, -2.0)], 100, L=3),
    lbm.RegretBalancing([(0, 0.0), (1, -2.0)], 100, L=3),
    lbm.Corral([(0, 0.0), (1, -2.0)], 100, L=3),
]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: type(agent).__name__)
def test_a_live_policy_goes_on_as_if_it_had_not_been_interrupted(
    agent: lbm.agents.Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_LONG", -1.0)
    one, other = (agent.start(lbm.Ball(2), seed=1) for _ in range(2))
    for t in range(14):
        with monkeypatch.context() as patch:
            patch.setattr(live, "interruptible", interrupted)
            try:
                action = one.act()
            except KeyboardInterrupt:
                action = None
        if action is None:
            assert one.t == t
            action = one.act()
        np.testing.assert_array_equal(action, other.act())
        for policy in (one, other):
            policy.update(float(action[0]))
    np.testing.assert_array_equal(one.theta, other.theta)


def test_a_run_that_is_interrupted_plays_no_plan_that_was_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(episode, "interruptible", interrupted)
    env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    with pytest.warns(RuntimeWarning, match="interrupted after 0 of 50 steps"):
        run = lbm.run(env, lbm.O3M(1, -2.0, 100, L=3), T=50)
    assert not run.complete
    assert (len(run.t), run.plans) == (0, 0)


def test_a_run_is_ended_from_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    stop = threading.Event()

    def late(
        work: Callable[[], Any], stop: Callable[[bool], None], is_over: Callable[[], bool], seconds: float
    ) -> Any:
        assert seconds < 1.0  # not worth a thread, but for the test
        event.set()
        return interruptible(work, stop, is_over)

    event = stop
    monkeypatch.setattr(episode, "interruptible", late)
    run = episode.play_episode(
        env, lbm.O3M(1, -2.0, 10**6, L=3), 10**6, 0, points=np.array([10**6]), stop=stop
    )
    assert not run.complete


# --- Ctrl-C while modules are loaded ------------------------------------------------------------------------


def press_and(do: Callable[[], object]) -> None:
    """Ctrl-C where it must wait, and something after it."""
    with deferred():
        signal.raise_signal(signal.SIGINT)
        do()


def test_ctrl_c_is_heard_after_what_must_not_be_interrupted() -> None:
    reached: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        press_and(lambda: reached.append("the end"))
    assert reached == ["the end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with deferred():
        pass
    with pytest.raises(ZeroDivisionError):
        press_and(lambda: 1 / 0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_of_others_are_left_alone() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with deferred():
            signal.raise_signal(signal.SIGINT)
            assert heard == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_is_not_installed_is_left_out() -> None:
    load("no_such_module_of_anybody", "json")


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("pandas", ["study", "small.toml"]),
        ("pyarrow.parquet", ["study", "small.toml"]),
        ("numba", ["study", "small.toml", "--quiet"]),
        ("tqdm.auto", ["study", "small.toml"]),
        ("numba.typed.typeddict", ["bounds", "--theta=0.6,0.8", "--T", "10"]),
        ("matplotlib.figure", ["plan", "--theta=0.6,0.8", "--out", "plan.png"]),
    ],
)
def test_ctrl_c_in_an_import_that_swallows_it_ends_the_command(
    module: str, command: list[str], tmp_path: Path
) -> None:
    """Some modules swallow it, and what goes on may then wait for ever for a lock of an import."""
    code = f"""
import importlib.abc, signal, sys
class Presser(importlib.abc.MetaPathFinder):
    def find_spec(self, name, *_):
        if name == {module!r}:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                print("swallowed")
sys.meta_path.insert(0, Presser())
from fastlbm.cli import main
sys.exit(main(sys.argv[1:]))
"""
    (tmp_path / "small.toml").write_text(TEXT)
    run = [sys.executable, "-c", code, *command]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == ""
    assert done.returncode == 130
    assert done.stderr.startswith("fastlbm: stopped")
    assert done.stderr.count("\n") == 1
