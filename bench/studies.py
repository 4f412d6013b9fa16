"""`python -m bench studies`: how much of a study is spent in kernels, and what a second thread gives."""

from __future__ import annotations

import tempfile
import time

import fastlbm as lbm
from fastlbm.agents.learners import BallLearner

EPISODES = 1000
STUDY = {
    "T": 1000,
    "seeds": EPISODES,
    "record": 100,
    "env": {"rotting": {"theta": [0.54, 0.83, 0.1], "m": 2, "gamma": -3.0, "sigma": 0.1}},
    "agent": {"O3M": {"type": "O3M", "m": 2, "gamma": -3.0, "L": 20}},
}


def seconds(threads: int) -> float:
    """Wall time of the study from nothing."""
    study = lbm.Study.from_dict(STUDY)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        study.run(folder, executor=threads, progress=False)
        return time.perf_counter() - begin


def main() -> None:
    lbm.Study.from_dict({**STUDY, "seeds": 2}).run(tempfile.mkdtemp(), progress=False)  # compiles
    inside = 0.0
    real = BallLearner.advance

    def timed(*arguments: object) -> None:
        nonlocal inside
        begin = time.perf_counter()
        real(*arguments)
        inside += time.perf_counter() - begin

    BallLearner.advance = timed  # type: ignore[assignment, method-assign]
    wall = seconds(1)
    BallLearner.advance = real  # type: ignore[method-assign]
    print(f"{EPISODES} episodes, O3M, T=1000, one thread: {wall:.2f} s, {inside / wall:.1%} of it in kernels")
    one, two = min(seconds(1) for _ in range(2)), min(seconds(2) for _ in range(2))
    print(f"two threads: {two:.2f} s, {one / two:.2f} times one thread ({one:.2f} s)")
