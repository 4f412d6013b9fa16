"""`python -m bench sweep`: what a study of 27 environments x 3 agents x 100 seeds takes to be looked at.

Each command runs in a process of its own; the processor's time does not depend on who else works.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SEEDS = 100
STUDY = """
name = "sweep"
T = 1000
seeds = {seeds}
record = 100

[env.rotting]
sigma = 0.1
[env.rotting.grid]
random = [{{d = 2, seed = 0}}, {{d = 3, seed = 0}}, {{d = 5, seed = 0}}]
m = [1, 2, 3]
gamma = [-3.0, -2.0, -1.0]

[agent.O3M]
type = "O3M"
m = "env"
gamma = "env"
subgaussian = "env"
L = 20

[agent.OFUL]
type = "OFUL"
subgaussian = "env"

[agent.greedy]
type = "OracleGreedy"
"""
#: The commands after the study, and the seconds that are asked.
LOOKS = {
    "a finished study answers": (["study", "sweep.toml"], 1.0),
    "regret plot, 27 panels": (["plot", "sweep", "--kind", "regret"], 60.0),
    "report": (["report", "sweep"], 30.0),
}


def timed(folder: Path, arguments: list[str]) -> tuple[float, float]:
    """Seconds of a command, by the clock and by the processor."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "fastlbm", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"fastlbm {' '.join(arguments)} must end with 0, it said {done.stderr}")
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(seeds: int = SEEDS) -> dict[str, Any]:
    """Seconds (clock, processor) of the study and of each look at it, and the bytes of the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sweep.toml").write_text(STUDY.format(seeds=seeds))
        found: dict[str, Any] = {"study": timed(folder, ["study", "sweep.toml"])}
        for what, (arguments, _) in LOOKS.items():
            found[what] = timed(folder, arguments)
        found["bytes"] = (folder / "sweep" / "report.html").stat().st_size
        found["rows"] = len(json.loads((folder / "sweep" / "manifest.json").read_text())["settings"])
    return found


def main() -> None:
    found = measure()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    wall, cpu = found["study"]
    print(f"27 environments x 3 agents x {SEEDS} seeds: {wall:.1f} s, {cpu:.1f} s of the processor")
    for what, (_, asked) in LOOKS.items():
        wall, cpu = found[what]
        print(f"{what}: {wall:.2f} s (asked {asked:g} s), {cpu:.2f} s of the processor")
    print(f"the page has {found['bytes'] / 1e6:.1f} MB (asked 10); load {load:.1f} on {os.cpu_count()} cores")
