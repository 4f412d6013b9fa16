"""One file, saved by several at once: whoever loads it finds a whole state, and nothing else is left."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import fastlbm as lbm

AGENT = lbm.OFUL(100)

#: Save and load in turns; the states of two processes differ in their number of steps.
ROUNDS = """
import sys
import fastlbm as lbm
path, rounds, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
live = lbm.OFUL(100).start(lbm.Ball(2))
for _ in range(steps):
    live.act()
    live.update(0.5)
for _ in range(rounds):
    live.save(path)
    assert lbm.OFUL(100).start(lbm.Ball(2)).load(path).t in (3, 7)
"""


def started(steps: int) -> lbm.Live:
    live = AGENT.start(lbm.Ball(2))
    for _ in range(steps):
        live.act()
        live.update(0.5)
    return live


def save_in_threads(folder: Path, rounds: int) -> None:
    path, problems = folder / "state", []

    def work(steps: int) -> None:
        live = started(steps)
        try:
            for _ in range(rounds):
                live.save(path)
                assert AGENT.start(lbm.Ball(2)).load(path).t in (3, 7)
        except BaseException as error:
            problems.append(error)

    workers = [threading.Thread(target=work, args=(steps,)) for steps in (3, 7)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not problems
    assert os.listdir(folder) == ["state"]


def save_in_processes(folder: Path, rounds: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", ROUNDS, str(folder / "state"), str(rounds), str(steps)],
            env=environment, stderr=subprocess.PIPE, text=True,
        )
        for steps in (3, 7)
    ]  # fmt: skip
    for worker in workers:
        _, said = worker.communicate()
        assert worker.returncode == 0, said
    assert os.listdir(folder) == ["state"]


def test_two_threads_save_and_load_one_path(tmp_path: Path) -> None:
    save_in_threads(tmp_path, 20)


def test_two_processes_save_and_load_one_path(tmp_path: Path) -> None:
    save_in_processes(tmp_path, 20)


@pytest.mark.slow
@pytest.mark.parametrize("savers", [save_in_threads, save_in_processes])
def test_two_hundred_rounds_on_one_path(savers: object, tmp_path: Path) -> None:
    savers(tmp_path, 200)  # type: ignore[operator]


def test_a_link_in_the_place_of_a_state_is_replaced(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "state").symlink_to(victim)
    started(3).save(tmp_path / "state")
    assert victim.read_text() == "precious"
    assert AGENT.start(lbm.Ball(2)).load(tmp_path / "state").t == 3


def test_a_full_disk_leaves_the_old_state_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(3).save(tmp_path / "state")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*state'$"):
        started(7).save(tmp_path / "state")
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["state"]
    assert AGENT.start(lbm.Ball(2)).load(tmp_path / "state").t == 3
