"""Answers of the command line for programs and shells: JSON, exit codes, completion, notices."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm import cli
from fastlbm.cli.printing import telling_of_compiling
from fastlbm.cli.upkeep import _commands, completion_script, fish_script
from tests.experiments.conftest import TEXT

MODEL = ["--theta", "0.6,0.8", "--m", "1", "--gamma=-2"]
ENV = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)


def answer(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> Any:
    assert cli.main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def test_a_plan_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["plan", *MODEL, "--L", "4", "--out", "-"], capsys)
    plan = lbm.best_block(ENV, 4)
    np.testing.assert_array_equal(found["actions"], plan.actions)
    assert (found["total"], found["evaluations"], found["exact"]) == (plan.value, plan.evaluations, False)
    assert found["rewards"][0] is None
    assert sum(found["rewards"][1:]) == pytest.approx(plan.value)
    found = answer(["plan", *MODEL, "--cycle", "2", "--out", "-"], capsys)
    assert found["period"] == len(found["actions"]) == len(found["rewards"]) == 2


def test_bounds_as_json_at_a_horizon_in_short(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["bounds", *MODEL, "--T", "1e2"], capsys)
    bounds = lbm.opt_bounds(ENV, 100)
    assert found == {
        "T": 100, "lower": bounds.lower, "upper": bounds.upper, "gap": bounds.gap, "exact": bounds.exact,
        "certified": bounds.certified, "method": bounds.method,
    }  # fmt: skip


def test_a_study_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "small.toml"
    file.write_text(TEXT)
    found = answer(["study", str(file), "--jobs", "1"], capsys)
    summary = lbm.Study.from_toml(file).results(tmp_path / "small").summary()
    assert found["study"] == "small"
    assert found["folder"] == str((tmp_path / "small").resolve())
    assert [row["mean"] for row in found["summary"]] == summary["mean"].tolist()
    assert [row["p_vs_best"] is None for row in found["summary"]] == summary["p_vs_best"].isna().tolist()


def test_a_file_is_no_folder_for_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "small.toml"
    file.write_text(TEXT)
    for out, where in ((file, "which is a file"), (file / "below", f"but {file} is a file")):
        assert cli.main(["study", str(file), "--out", str(out), "--quiet"]) == 2
        told = capsys.readouterr().err
        assert told == (
            f"fastlbm: out must be a folder, which is made if it is not there, got {str(out)!r}, {where}: "
            "choose another name\n"
        )
    assert file.read_text() == TEXT


def test_a_study_says_what_its_columns_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "small.toml"
    file.write_text(TEXT)
    assert cli.main(["study", str(file), "--quiet"]) == 0
    first, *_, words, _ = capsys.readouterr().out.splitlines()
    assert first.split() == ["env", "T", "agent", "mean", "low", "high", "seeds", "p_vs_best"]
    assert "low and high: its 95% bootstrap interval" in words
    assert "NaN for that one itself" in words


def test_a_finished_study_waits_for_no_library_that_it_does_not_need(tmp_path: Path) -> None:
    """These take longer to load than a finished study to be read."""
    file = tmp_path / "small.toml"
    file.write_text(TEXT)
    assert cli.main(["study", str(file), "--quiet"]) == 0
    code = (
        "import sys, fastlbm.cli; assert fastlbm.cli.main(['study', sys.argv[1]]) == 0; "
        "print({'distributed', 'matplotlib', 'plotly', 'scipy.special', 'scipy.stats'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_the_doctor_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["doctor"], capsys)
    assert found["passed"] is True
    assert found["fastlbm"] == lbm.__version__
    assert found["Gram form"]["gradient_error"] < 1e-7


@pytest.mark.parametrize("text", ["1.5", "x", "nan", "inf", ""])
def test_what_is_no_integer_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["bounds", *MODEL, f"--T={text}"])
    assert stop.value.code == 2
    assert f"must be an integer such as 1000 or 1e3, got {text!r}" in capsys.readouterr().err


def test_pictures_are_not_replaced_without_being_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = ["plan", *MODEL, "--L", "2"]
    (tmp_path / "plan.png").write_text("mine")
    assert cli.main(plan) == 2
    assert (
        "out must be a new file, got 'plan.png', which exists: --force replaces it" in capsys.readouterr().err
    )
    assert (tmp_path / "plan.png").read_text() == "mine"
    assert cli.main([*plan, "--force"]) == 0
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "small.toml").write_text(TEXT)
    assert cli.main(["study", "small.toml", "--quiet"]) == 0
    for kept in ("small/reward.png", "small/reward-1.png"):
        (tmp_path / kept).write_text("mine")
        assert cli.main(["plot", "small"]) == 2
        assert "which exists" in capsys.readouterr().err
        (tmp_path / kept).unlink()
    assert cli.main(["plot", "small", "--against", "gamma", "--agents", "greedy", "--size", "4,3"]) == 0
    assert (tmp_path / "small" / "reward.png").exists()


def test_exit_codes_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    help_ = " ".join(capsys.readouterr().out.split())
    for words in ("0 the command did", "1 the self-test failed", "2 an argument", "130 stopped by Ctrl-C"):
        assert words in help_


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["fastlbm", "pl"], {"plan", "plot"}),
        (["fastlbm", "plan", "--cy"], {"--cycle", "--cycle-up-to"}),
        (["fastlbm", "study", "--q"], {"--quiet"}),
        (["fastlbm", "study", "sm"], {"small.toml"}),
        (["fastlbm", "completion", "b"], {"bash"}),
    ],
)
def test_a_shell_completes(
    typed: list[str], offered: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert script == completion_script(cli._parser())
    (tmp_path / "small.toml").touch()
    words = " ".join(f"'{word}'" for word in typed)
    test = f'{script}\nCOMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _fastlbm; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", test], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert set(done.stdout.split()) == offered


def test_completion_is_for_shells_that_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "zsh"]) == 0
    assert capsys.readouterr().out.startswith("autoload -U +X bashcompinit && bashcompinit\n")
    assert cli.main(["completion", "tcsh"]) == 2
    assert "SHELL must be one of bash, zsh, fish, got 'tcsh'" in capsys.readouterr().err


def test_fish_gets_every_command_and_option_with_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "fish"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, command in _commands(cli._parser()).items():
        assert sum(f" -a {name} -d '" in line for line in lines) == 1
        here = [line for line in lines if f"'__fish_seen_subcommand_from {name}'" in line]
        for action in command._actions:
            if action.option_strings:
                (line,) = [line for line in here if f" -l {action.option_strings[-1][2:]} " in line]
                assert (" -r " in line) == (action.nargs != 0)
    assert all(line.replace("\\'", "").count("'") % 2 == 0 for line in lines)


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("fastlbm pl", {"plan", "plot"}),
        ("fastlbm plan --cy", {"--cycle", "--cycle-up-to"}),
        ("fastlbm completion b", {"bash"}),
        ("fastlbm study sm", {"small.toml"}),
    ],
)
def test_fish_completes(typed: str, offered: set[str], tmp_path: Path) -> None:
    (tmp_path / "small.toml").touch()
    script = f"{fish_script(cli._parser())}\ncomplete -C '{typed}'"
    done = subprocess.run(["fish", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert {line.split("\t")[0] for line in done.stdout.splitlines()} == offered


COMPILE = """
import sys
from fastlbm.cli.printing import telling_of_compiling
import numba
with telling_of_compiling(quiet=sys.argv[1] == "quiet"):
    numba.njit(lambda x: x + 1)(1)
    numba.njit(lambda x: x + 2)(1)
numba.njit(lambda x: x + 3)(1)
"""


@pytest.mark.parametrize("mode", ["told", "quiet"])
def test_whoever_waits_for_the_compiler_is_told_so_once(mode: str) -> None:
    done = subprocess.run([sys.executable, "-c", COMPILE, mode], capture_output=True, text=True, check=True)
    assert done.stderr.count("fastlbm: compiling for this machine") == (mode == "told")
    assert len(done.stderr.splitlines()) == (mode == "told")


def test_a_terminal_shows_how_many_functions_are_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import numba

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with telling_of_compiling():
        numba.njit(lambda x: x + 1)(1)
    if not numba.config.DISABLE_JIT:
        assert "functions compiled" in capsys.readouterr().err
