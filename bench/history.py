"""The stored measurements: what a machine is, how one JSON file keeps records, what counts as slower."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding
import numba
import numpy as np

from .suite import Measured

#: The stored measurements of this repository.
PATH = Path(__file__).with_name("history.json")
#: Records of one machine that a new one is compared with: their median.
RECENT = 5
#: What is slower by less than the first share is never named, by more than the second always.
LEAST, MOST = 0.10, 0.15
#: Between them: this many times the noise of both measurements.
NOISES = 3.0


class Finding(NamedTuple):
    """One entry that changed: how many times as slow as before, the limit, and the work before and now."""

    name: str
    factor: float
    limit: float
    work: tuple[int, int]

    @property
    def slower(self) -> bool:
        return self.factor > self.limit


def fingerprint() -> dict[str, str]:
    """What decides about speed on this machine."""
    return {
        "cpu": _cpu(),
        "core": llvmlite.binding.get_host_cpu_name(),
        "cores": str(os.cpu_count()),
        "os": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "llvm": ".".join(map(str, llvmlite.binding.llvm_version_info)),
    }


def _cpu() -> str:
    """The model of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )


def load(path: Path) -> list[dict[str, Any]]:
    """All records of a file, none if it does not exist."""
    if not path.exists():
        return []
    try:
        records = json.loads(path.read_text(encoding="utf-8"))["records"]
        if not isinstance(records, list):
            raise TypeError("records")
        for record in records:
            if not isinstance(record["machine"], dict) or not isinstance(record["day"], str):
                raise TypeError("machine or day")
            for entry in record["entries"].values():
                ratio, noise, _ = float(entry["ratio"]), float(entry["noise"]), int(entry["work"])
                if not (0.0 < ratio < math.inf and 0.0 <= noise < math.inf):
                    raise ValueError("ratio")
    except (ValueError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path.name} is damaged ({type(error).__name__}: {error}): restore or delete it"
        ) from error
    return list(records)


def append(path: Path, machine: Mapping[str, str], found: Mapping[str, Measured], day: str) -> None:
    """Adds a record; the file is replaced as a whole, so that it is never half written."""
    entries = {
        name: {"ratio": float(f"{x.ratio:.5g}"), "noise": float(f"{x.noise:.2g}"), "work": x.work}
        for name, x in found.items()
    }
    records = [*load(path), {"day": day, "machine": dict(machine), "entries": entries}]
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"records": records}, indent=1) + "\n", encoding="utf-8")
    fresh.replace(path)


def of_machine(records: list[dict[str, Any]], machine: Mapping[str, str]) -> list[dict[str, Any]]:
    """The records of one fingerprint, in their order."""
    return [record for record in records if record["machine"] == dict(machine)]


def reference(records: list[dict[str, Any]], name: str) -> Measured | None:
    """What to compare an entry with: the median of its last few records, its work in the last one."""
    past = [record["entries"][name] for record in records if name in record["entries"]][-RECENT:]
    if not past:
        return None
    ratio, noise = (float(np.median([entry[key] for entry in past])) for key in ("ratio", "noise"))
    return Measured(ratio, noise, int(past[-1]["work"]))


def compare(records: list[dict[str, Any]], found: Mapping[str, Measured]) -> dict[str, Finding]:
    """Every entry that has a past in these records, with how it compares."""
    findings = {}
    for name, now in found.items():
        before = reference(records, name)
        if before is not None:
            limit = 1.0 + min(max(LEAST, NOISES * (before.noise + now.noise)), MOST)
            findings[name] = Finding(name, now.ratio / before.ratio, limit, (before.work, now.work))
    return findings
