"""`python -m bench studies`: how much of a study is spent in kernels, what a second thread gives, and what a
finished study of 10^4 settings x 10 seeds takes to be resumed, in 10^4 pieces and in 10^5.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fastlbm as lbm
from fastlbm._version import NUMBERS
from fastlbm.agents.learners import BallLearner
from fastlbm.experiments.parameters import of_piece
from fastlbm.experiments.store import Store

EPISODES = 1000
STUDY = {
    "T": 1000,
    "seeds": EPISODES,
    "record": 100,
    "env": {"rotting": {"theta": [0.54, 0.83, 0.1], "m": 2, "gamma": -3.0, "sigma": 0.1}},
    "agent": {"O3M": {"type": "O3M", "m": 2, "gamma": -3.0, "L": 20}},
}
SETTINGS, SEEDS = 10_000, 10
#: A fresh process that resumes the study: seconds to parse it, to resume it (clock, processor), of a summary;
#: peak memory.
RESUME = """
import json, resource, sys, time
import fastlbm as lbm
from fastlbm.experiments import study as _
begin = time.perf_counter()
study = lbm.Study.from_dict(json.load(open(sys.argv[1])))
parsed, work = time.perf_counter(), time.process_time()
results = study.run(sys.argv[2], progress=False)
resumed, work = time.perf_counter(), time.process_time() - work
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
rows = len(results.frame)
results.summary()
print(json.dumps([parsed - begin, resumed - parsed, work, time.perf_counter() - resumed, peak, rows]))
"""


def many_settings(settings: int) -> dict[str, Any]:
    """A study of this many settings, ten agents in each environment."""
    gammas = np.linspace(-3.0, -1.0, settings // 10).tolist()
    return {
        "name": "many settings",
        "T": 20,
        "seeds": SEEDS,
        "record": 2,
        "env": {"rotting": {"theta": [0.6, 0.8], "m": 1, "grid": {"gamma": gammas}}},
        "agent": {"OFUL": {"type": "OFUL", "grid": {"lam": list(range(1, 11))}}},
    }


def write_pieces(document: dict[str, Any], out: Path, seeds_in_piece: int) -> None:
    """The folder of the study when it is finished, with rows that nobody computed; not synced."""
    study, store, rng = lbm.Study.from_dict(document), Store(out), np.random.default_rng(0)
    sync, os.fsync = os.fsync, lambda _: None
    try:
        with store.open(study.spec.name):
            store.describe(study.spec.document, study.fingerprint, NUMBERS, study._settings())
            for cell in study.spec.cells:
                key = study.spec.key(cell)
                told = of_piece(key, cell.env, cell.agent, cell.T)
                for first in range(0, SEEDS, seeds_in_piece):
                    seeds = range(first, first + seeds_in_piece)
                    rows = {"seed": np.repeat(seeds, 2), "t": np.tile([10, 20], len(seeds))}
                    rewards = rng.random((2, 2 * len(seeds)))
                    values = {"reward": rewards[0], "observed": rewards[1]}
                    store.write(key, seeds, pd.DataFrame({**rows, **values, **told}))
    finally:
        os.fsync = sync


def resume(settings: int, seeds_in_piece: int) -> list[tuple[float, float, float, float, float, int]]:
    """What RESUME prints for a study of so many settings, all of it there, and what the next time."""
    document = many_settings(settings)
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "study.json"), Path(folder, "out")
        file.write_text(json.dumps(document))
        write_pieces(document, out, seeds_in_piece)
        command = [sys.executable, "-c", RESUME, str(file), str(out)]
        done = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(2)]
    return [tuple(json.loads(each.stdout)) for each in done]


def print_resuming() -> None:
    for seeds_in_piece in (SEEDS, 1):
        (parsed, resumed, work, summed, peak, rows), again = resume(SETTINGS, seeds_in_piece)
        pieces = SETTINGS * SEEDS // seeds_in_piece
        print(
            f"{SETTINGS} settings x {SEEDS} seeds in {pieces} pieces, {rows} rows: parsed in {parsed:.1f} s, "
            f"resumed in {resumed:.1f} s ({work:.1f} of the processor), at most {peak:.0f} MB, summary in "
            f"{summed:.1f} s; the next time in {again[1]:.1f} s ({again[2]:.1f})"
        )


def seconds(threads: int) -> float:
    """Wall time of the study from nothing."""
    study = lbm.Study.from_dict(STUDY)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        study.run(folder, executor=threads, progress=False)
        return time.perf_counter() - begin


def main() -> None:
    print_resuming()
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
