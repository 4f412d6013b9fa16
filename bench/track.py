"""`python -m bench track`: whether something got slower than the stored measurements of the same machine.

Every entry of the suite is measured as a ratio to a fixed compiled loop (bench/suite.py) and compared with
the records of the same fingerprint in bench/history.json. What seems slower by more than its noise is
measured again, twice, before it is named. The exit code is 1 if something is slower, else 0.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from . import history
from .history import Finding
from .suite import ENTRIES, Measured, measure

#: How often a suspect is measured again.
CONFIRMATIONS = 2
#: Tries of the self-test with a slowdown, and without one.
TRIES = 5
#: Share of work that the self-test adds.
SHARE = 0.3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", action="store_true", help="append what was measured to the history")
    parser.add_argument(
        "--history", type=Path, default=history.PATH, metavar="FILE", help="another history file"
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="measure this entry only; may be repeated"
    )
    parser.add_argument(
        "--inject",
        action="append",
        default=[],
        metavar="NAME=SHARE",
        help="make an entry do a share more of the same work than it says, such as 0.3: the alarm must ring",
    )
    parser.add_argument(
        "--selftest",
        action="store_true",
        help=f"{TRIES} tries with {100 * SHARE:.0f}%% more work and {TRIES} without, against a fresh record",
    )


def injections(given: list[str]) -> dict[str, float]:
    """NAME=SHARE, checked."""
    found = {}
    for text in given:
        name, _, share = text.rpartition("=")
        try:
            found[_known(name)] = float(share)
        except ValueError:
            raise ValueError(
                f"--inject must be NAME=SHARE with a known NAME, got {text!r}; {_names()}"
            ) from None
        if not 0.0 < found[name] < 10.0:
            raise ValueError(f"--inject must add a share between 0 and 10, got {text!r}")
    return found


def _known(name: str) -> str:
    if name not in ENTRIES:
        raise ValueError(f"no entry has the name {name!r}; {_names()}")
    return name


def _names() -> str:
    return "names: " + ", ".join(map(repr, ENTRIES))


def check(
    records: list[dict[str, Any]], names: Collection[str], inject: Mapping[str, float] | None = None
) -> tuple[dict[str, Measured], dict[str, Finding]]:
    """Measures, and measures again what seems slower; the smallest ratio of an entry counts."""
    found = measure(names, inject)
    for _ in range(CONFIRMATIONS):
        suspects = [name for name, finding in history.compare(records, found).items() if finding.slower]
        if not suspects:
            break
        for name, again in measure(suspects, inject).items():
            found[name] = min(found[name], again, key=lambda measured: measured.ratio)
    return found, history.compare(records, found)


def table(found: Mapping[str, Measured], findings: Mapping[str, Finding]) -> str:
    """What was measured, one entry a line, with what changed."""
    lines = [f"{'entry':28} {'ratio':>10} {'noise':>7} {'before':>8} {'limit':>7}"]
    for name, now in found.items():
        line = f"{name:28} {now.ratio:10.4g} {now.noise:7.1%}"
        if name in findings:
            finding = findings[name]
            line += f" {finding.factor:7.2f}x {finding.limit:6.2f}x" + ("  SLOWER" if finding.slower else "")
            if finding.work[0] != finding.work[1]:
                line += f"  (work {finding.work[0]} -> {finding.work[1]})"
        else:
            line += "      new"
        lines.append(line)
    return "\n".join(lines)


def selftest() -> int:
    """Whether an injected slowdown is caught every time, and nothing is named without one."""
    print(f"a fresh record, then {TRIES} tries without a change and {TRIES} with {SHARE:.0%} more work")
    caught = quiet = alarms = 0
    names = list(ENTRIES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.json"
        history.append(path, history.fingerprint(), measure(names), _today())
        records = history.load(path)
        for k in range(TRIES):
            _, findings = check(records, names)
            slower = [f.name for f in findings.values() if f.slower]
            quiet += not slower
            largest = max(f.factor for f in findings.values())
            print(f"  no change: {', '.join(slower) or 'no alarm'}, at most {largest:.2f}x", flush=True)
            victim = names[k * len(names) // TRIES]
            _, findings = check(records, names, {victim: SHARE})
            others = [f.name for f in findings.values() if f.slower and f.name != victim]
            caught += findings[victim].slower
            alarms += len(others)
            what = f"{findings[victim].factor:.2f}x, {'caught' if findings[victim].slower else 'MISSED'}"
            print(
                f"  {victim} + {SHARE:.0%}: {what}{'; false: ' if others else ''}{', '.join(others)}",
                flush=True,
            )
    print(
        f"caught {caught} of {TRIES}, quiet {quiet} of {TRIES}, false alarms beside the caught ones: {alarms}"
    )
    return 0 if caught == quiet == TRIES and not alarms else 1


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def main(options: argparse.Namespace) -> int:
    inject = injections(options.inject)
    names = [_known(name) for name in options.only or ENTRIES]
    if unmeasured := [name for name in inject if name not in names]:
        raise ValueError(f"--inject needs an entry that is measured, got {unmeasured[0]!r}")
    if options.store and inject:
        raise ValueError("--store does not go with --inject: the record would be wrong")
    if options.store and not options.history.parent.is_dir():
        raise ValueError(f"--history must be in a folder that exists, got {str(options.history)!r}")
    if options.selftest:
        return selftest()
    machine = history.fingerprint()
    records = history.of_machine(history.load(options.history), machine)
    found, findings = check(records, names, inject)
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    print(table(found, findings))
    slower = [finding.name for finding in findings.values() if finding.slower]
    if not records:
        print("no record of this machine: nothing to compare with; --store makes one")
    elif not findings:
        print("no record of these entries: nothing to compare with")
    else:
        print(f"slower: {', '.join(slower)}" if slower else "nothing got slower by more than its noise")
    if options.store:
        history.append(options.history, machine, found, _today())
        print(f"stored in {options.history.name}")
    return 1 if slower else 0
