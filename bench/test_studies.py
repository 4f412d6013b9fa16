"""Studies, with one thread and two; start-up in fresh processes; memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fastlbm as lbm

from . import growth
from .studies import STUDY, resume

RUN = "lbm.run(lbm.LBM([0.6, 0.8], m=2, gamma=-3.0), lbm.O3M(2, -3.0, 100), T=100)"
#: What a user's first lines do.
FIRST = {"import": "import fastlbm", "first run": f"import fastlbm as lbm; {RUN}"}


@pytest.mark.parametrize("threads", [1, 2])
def test_study(timed: Any, tmp_path: Path, threads: int) -> None:
    study = lbm.Study.from_dict({**STUDY, "seeds": 10, "T": 500})
    folders = (tmp_path / str(k) for k in range(10**6))
    results = timed(lambda: study.run(next(folders), executor=threads, progress=False), step=10 * 500)
    assert set(results.frame["seed"]) == set(range(10))


@pytest.mark.parametrize("seeds_in_piece", [10, 1])
def test_resuming(benchmark: Any, seeds_in_piece: int) -> None:
    first, again = benchmark.pedantic(resume, args=(100, seeds_in_piece), rounds=1)
    *_, peak, rows = first
    benchmark.extra_info["MB"] = peak
    assert rows == again[-1] == 100 * 10 * 2


@pytest.mark.parametrize("name", FIRST)
def test_startup(timed: Any, name: str) -> None:
    timed(lambda: subprocess.run([sys.executable, "-c", FIRST[name]], check=True), start=1)


def test_startup_with_an_empty_cache(benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if benchmark.disabled:
        pytest.skip("takes long, and only its time is of interest")
    folders = (tmp_path / str(k) for k in range(10))

    def compile_all() -> None:
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(next(folders)))
        subprocess.run([sys.executable, "-c", FIRST["first run"]], check=True)

    benchmark.pedantic(compile_all, rounds=1)
    benchmark.extra_info["starts"] = 1


@pytest.mark.skipif(not growth.can_measure_peaks(), reason="needs Linux's /proc")
def test_memory_does_not_grow_with_T(benchmark: Any) -> None:
    first, last = benchmark.pedantic(growth.peaks, args=((10**4, 10**6),), rounds=1)
    benchmark.extra_info.update({"KiB at T=10^4": first, "KiB at T=10^6": last})
    assert last - first < 2048
