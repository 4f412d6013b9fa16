"""Pools: who owns the workers, what is in flight, what is stopped, and the progress bar."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest

from fastlbm._base import pool as pool_module
from fastlbm._base.pool import TRIES, UNKNOWN_WORKERS, Pool, Progress


def square(x: int) -> int:
    return x * x


def tasks(count: int) -> Iterator[tuple[int, dict[str, int]]]:
    return ((x, {"x": x}) for x in range(count))


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_every_task_is_done_once(workers: int | None) -> None:
    with Pool(workers) as pool:
        assert pool.has_own_threads
        found = list(pool.completed(square, tasks(50)))
        assert sorted(found) == [(x, x * x) for x in range(50)]
        assert list(pool.completed(square, [])) == []
        assert sorted(pool.completed(square, tasks(3), at_once=3)) == [(0, 0), (1, 1), (2, 4)]


def test_an_executor_that_was_handed_in_stays_open() -> None:
    with ThreadPoolExecutor(2) as threads:
        with Pool(threads) as pool:
            assert not pool.has_own_threads
            assert pool.stop is None
            assert sorted(pool.completed(square, tasks(5))) == [(x, x * x) for x in range(5)]
        assert threads.submit(square, 3).result() == 9


def test_own_threads_end_with_the_context() -> None:
    before = threading.active_count()
    with Pool(2) as pool:
        list(pool.completed(square, tasks(5)))
        assert threading.active_count() > before
    assert threading.active_count() == before
    assert pool.stop is not None
    assert pool.stop.is_set()


class Counted(ThreadPoolExecutor):
    """An executor that knows how many tasks it has at most."""

    def __init__(self) -> None:
        super().__init__(1)
        self.most = self.now = 0

    def submit(self, *arguments: Any, **keywords: Any) -> Future[Any]:
        self.now += 1
        self.most = max(self.most, self.now)
        return super().submit(*arguments, **keywords)


@pytest.mark.parametrize(("at_once", "most"), [(None, UNKNOWN_WORKERS), (7, 7), (1, 1)])
def test_so_many_tasks_are_handed_over_at_once(at_once: int | None, most: int) -> None:
    with Counted() as executor, Pool(executor) as pool:
        for _ in pool.completed(square, tasks(100), at_once):
            executor.now -= 1
        assert executor.most == most


class Forgetful(ThreadPoolExecutor):
    """An executor that loses what it is given, the first times."""

    def __init__(self, losses: int) -> None:
        super().__init__(1)
        self.losses = losses

    def submit(self, *arguments: Any, **keywords: Any) -> Future[Any]:
        if self.losses == 0:
            return super().submit(*arguments, **keywords)
        self.losses -= 1
        future: Future[Any] = Future()
        future.set_exception(ValueError("a worker died"))
        return future


def test_a_lost_task_is_handed_over_again() -> None:
    with Forgetful(TRIES - 1) as executor, Pool(executor) as pool:
        assert sorted(pool.completed(square, tasks(3), at_once=1)) == [(0, 0), (1, 1), (2, 4)]
    with (
        Forgetful(TRIES) as executor,
        Pool(executor) as pool,
        pytest.raises(ValueError, match="a worker died"),
    ):
        list(pool.completed(square, tasks(3), at_once=1))


def test_a_task_that_raises_is_not_tried_again() -> None:
    calls: list[int] = []

    def fails(x: int) -> int:
        calls.append(x)
        raise KeyError(x)

    with ThreadPoolExecutor(1) as executor, Pool(executor) as pool, pytest.raises(KeyError, match="0"):
        list(pool.completed(fails, tasks(1)))
    assert calls == [0]


def test_later_tasks_may_depend_on_earlier_results() -> None:
    known = [1]

    def doubled() -> Iterator[tuple[int, dict[str, int]]]:
        for k in range(5):
            yield k, {"x": known[-1] + 1}

    with Pool(1) as pool:
        for _, result in pool.completed(square, doubled(), at_once=1):
            known.append(result)
    assert known == [1, 4, 25, 676, 458329, 210066388900]


def test_the_end_stops_what_runs_and_cancels_what_waits() -> None:
    begun: list[int] = []

    def patient(x: int, stop: threading.Event) -> None:
        begun.append(x)
        if x > 0 and not stop.wait(60):
            raise AssertionError("nobody said stop")

    with contextlib.suppress(KeyboardInterrupt), Pool(1) as pool:
        waiting = ((x, {"x": x, "stop": pool.stop}) for x in range(100))
        for _ in pool.completed(patient, waiting, at_once=100):
            raise KeyboardInterrupt
    assert len(begun) in (1, 2)


def test_what_an_executor_has_not_begun_is_cancelled() -> None:
    gate, begun = threading.Event(), []

    def patient(x: int) -> None:
        begun.append(x)
        if x > 0:
            gate.wait(60)

    with ThreadPoolExecutor(1) as threads:
        with Pool(threads) as pool:
            next(pool.completed(patient, tasks(10)))
        gate.set()
    assert len(begun) in (1, 2)


def test_what_a_task_raises_is_raised_here() -> None:
    with Pool(2) as pool, pytest.raises(ZeroDivisionError):
        list(pool.completed(lambda x: 1 // (x - 3), tasks(10)))


def test_warming_up_is_for_own_threads() -> None:
    seen: list[tuple[int, str]] = []

    def note(x: int) -> None:
        seen.append((x, threading.current_thread().name))

    with Pool(2) as pool:
        pool.warm_up(note, [{"x": 1}, {"x": 2}])
    assert seen == [(1, threading.current_thread().name), (2, threading.current_thread().name)]
    with ThreadPoolExecutor(1) as threads, Pool(threads) as pool:
        pool.warm_up(note, [{"x": 3}])
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("executor", "error", "words"),
    [
        (
            "two",
            TypeError,
            "executor must be a .*, a number of threads or None, got 'two'",
        ),
        (0, ValueError, "executor must be an integer >= 1, got 0"),
        (True, TypeError, "executor must be an integer, got True"),
        (10**9, ValueError, "executor must be at most 1024 threads, got 1000000000"),
    ],
)
def test_other_executors_are_refused(executor: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Pool(executor)


def test_threads_may_advance_the_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(1000, "steps", 200) as progress, Pool(4) as pool:
        for _ in pool.completed(progress.add, ((k, {"steps": 8}) for k in range(100))):
            time.sleep(0)
    assert "1.00k/1.00k" in capsys.readouterr().err
    with Progress(0, "steps") as silent:
        silent.add(5)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("rarely", [0.0, 60.0])
def test_progress_in_a_file_is_a_line_now_and_then(
    rarely: float, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "_RARELY", rarely)
    with Progress(10, "steps", shown="rarely") as progress:
        progress.add(10)
    assert ("10.0/10.0" in capsys.readouterr().err) == (rarely == 0.0)


class Cluster(Executor):
    """As Dask's executor: it knows its workers, who may be gone for a while."""

    def __init__(self) -> None:
        self._client = self
        self.looks = 0
        self.future: Future[Any] = Future()

    def scheduler_info(self) -> dict[str, Any]:
        self.looks += 1
        if self.looks == 3:
            self.future.set_result((7, None))
        return {"workers": {}}

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        return self.future


def test_whoever_waits_for_a_cluster_without_workers_is_told_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_LOOK", 0.01)
    words = "all workers of the Dask cluster are gone: waiting for new"
    with pytest.warns(UserWarning, match=words) as told, Pool(Cluster()) as pool:
        assert list(pool.completed(pow, [("a", {})])) == [("a", 7)]
    assert len(told) == 1


def test_an_executor_that_tells_nothing_of_its_workers_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_LOOK", 0.01)
    with ThreadPoolExecutor(1) as threads, Pool(threads) as pool:
        assert list(pool.completed(nap, [("a", {"seconds": 0.1})])) == [("a", None)]


def nap(seconds: float) -> None:
    time.sleep(seconds)


def test_progress_is_a_bar_or_rare() -> None:
    with pytest.raises(ValueError, match="progress must be one of 'rarely', got 'often'"):
        Progress(10, "steps", shown="often")
