"""The command line with arguments and study files that nobody meant: an answer, no traceback."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path
from typing import Any

import pytest

from fastlbm import cli

#: Values that are played in a moment, and those that must be refused before anything is computed.
SMALL = ["0", "1", "2", "3", "0.5", "-1", "1e-300", "I"]
HUGE = ["1000000000", "9223372036854775808", "1e18", "1e300", "inf", "-inf", "1" * 400]
ODD = ["nan", "--", "", "x", "-", "²", "0x10", "1_0", ",", "0.6,,0.8", "nan,0", "1e400,0", "é\0"]
PLAN = [["--theta=0.6,0.8"], ["--m", "1"], ["--gamma=-2"], ["--A0", "1,2"], ["--seed", "3"], ["--out", "-"]]
BOUNDS = [["--theta=0.6,0.8"], ["--m", "1"], ["--gamma=-2"], ["--A0", "I"], ["--T", "9"], ["--L", "3"]]
PLOT = [["--kind", "reward"], ["--comparator", "oracle greedy"], ["--band", "none"]]


def mutated(rng: random.Random, options: list[list[str]]) -> list[str]:
    """The options with one or two values replaced, or an option left out or given twice."""
    words = [list(option) for option in options if rng.random() < 0.95]
    for _ in range(rng.randint(1, 2)):
        option = rng.choice(words)
        value = rng.choice(rng.choice([SMALL, SMALL, HUGE, HUGE, ODD]))
        if "=" in option[0] or rng.random() < 0.7:  # a value of its own may be taken for an option
            option[:] = [f"{option[0].split('=')[0]}={value}"]
        else:
            option[1:] = [value]
    return [word for option in words for word in option]


def answer(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> bool:
    """Whether the arguments got past the parser; whatever they are, the command answers as promised."""
    try:
        code: Any = cli.main(arguments)
        parsed = True
    except SystemExit as stop:
        code, parsed = stop.code, False
    except BaseException as error:
        raise AssertionError(f"{arguments} raised {error!r}") from error
    err = capsys.readouterr().err
    assert code in (0, 2), arguments
    assert "Traceback" not in err
    assert bool(err) or code == 0, arguments
    return parsed


@pytest.mark.parametrize("count", [50, pytest.param(1000, marks=pytest.mark.slow)])
def test_mutated_arguments_get_an_answer(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(dumped(document()))
    assert cli.main(["study", "s.toml", "--jobs", "1", "--quiet"]) == 0
    rng, parsed = random.Random(1), 0
    kinds = {
        "plan": [*PLAN, ["--L", "3"]],
        "plan ": [*PLAN, ["--cycle", "2"]],
        "plan  ": [*PLAN, ["--cycle-up-to", "2"]],
        "bounds": BOUNDS,
        "plot s": PLOT,
        "study s.toml": [["--jobs", "2"], ["--quiet"], ["--out", "s"]],
    }
    for _ in range(count):
        command = rng.choice(list(kinds))
        parsed += answer([*command.split(), *mutated(rng, kinds[command])], capsys)
    assert parsed > count / 2


# --- study files ------------------------------------------------------------------------------------------


def document() -> dict[str, Any]:
    return {
        "seeds": 2,
        "T": [5, 8],
        "record": 3,
        "env": {
            "ball": {"theta": [0.3, 0.4], "m": 1, "gamma": -2.0, "sigma": 0.1},
            "arms": {"theta": [0.3, 0.4], "m": 1, "actions": {"finite": [[1.0, 0.0], [0.0, 1.0]]}},
        },
        "agent": {
            "greedy": {"type": "OracleGreedy"},
            "block": {"type": "O3M", "m": "env", "gamma": "env", "L": 1, "grid": {"switch": [0.0, 1.0]}},
            "selector": {"type": "EvidenceSelector", "candidates": [[0, 0.0], [1, -2.0]], "L": 2},
        },
    }


def dumped(value: Any, top: bool = True) -> str:
    """The value as TOML, tables inline below the top."""
    if isinstance(value, dict):
        pairs = [f"{json.dumps(key)} = {dumped(item, top=False)}" for key, item in value.items()]
        return "\n".join(pairs) if top else "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(dumped(item, top=False) for item in value) + "]"
    if isinstance(value, float):
        return repr(value)  # nan and inf are TOML's as well
    return json.dumps(value)


#: What a number becomes most of the time: most of such studies can be run.
NEAR: dict[type, list[Any]] = {int: [1, 2, 3], float: [0.0, 0.1, 0.5, -0.5]}
VALUES: list[Any] = [
    0, 1, 2, 3, -1, 0.5, 1e-300, 10**9, 2**53, 2**63, 10**18, 1e300, float("nan"), float("inf"), True, "env",
    "", "x", "O3M", "OM", "OMBlock", "OFUL", "Cyclic", "Doubling", "BanditCombiner", "log", [], [[]], [1, 2],
    [0.0, 0.0], [1e308, 1.0], {}, {"ball": 2}, {"finite": []}, {"random": 1}, [[0, 0.0]], {"type": "OFUL"},
]  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """(table or list, key) of everything in a document but the number of seeds."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [(value, key) for key, _ in items if key != "seeds"]
    return found + [place for _, inner in items for place in places(inner)]


def is_played(value: Any) -> bool:
    """Whether a horizon is one that a test can wait for, or one that is refused."""
    return not (isinstance(value, (int, float)) and 8 < value <= 2**53)


@pytest.mark.parametrize("count", [30, pytest.param(1000, marks=pytest.mark.slow)])
def test_mutated_studies_get_an_answer(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, read = random.Random(2), 0
    for number in range(count):
        study = document()
        for _ in range(rng.choice([1, 1, 2])):
            every = places(study)
            numbers = [(table, key) for table, key in every if type(table[key]) in NEAR]
            near = rng.random() < 0.8
            table, key = rng.choice(numbers if near else every)
            value = rng.choice(NEAR[type(table[key])] if near else VALUES)
            if key == "T" or (isinstance(key, int) and table is study.get("T")):
                value = value if is_played(value) else 3
            if near or rng.random() < 0.8:
                table[key] = value
            elif isinstance(table, dict):
                del table[key]
        file, out = tmp_path / f"{number}.toml", tmp_path / f"out-{number}"
        file.write_text(dumped(study), encoding="utf-8")
        with warnings.catch_warnings():
            answer(["study", str(file), "--out", str(out), "--jobs", "1", "--quiet"], capsys)
        if out.exists():
            read += 1
            answer(["plot", str(out), "--out", str(tmp_path / "a.png"), "--band", "none"], capsys)
    assert read > count / 2
