"""Answers of the command line for programs and shells: JSON, exit codes, completion, notices."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import config

import fastlbm as lbm
from fastlbm import cli
from fastlbm.cli.printing import complain, telling_of_compiling
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
    plan = ["plan", *MODEL, "--L", "2", "--out", "plan.png"]
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
from fastlbm.cli.printing import complain, telling_of_compiling
from fastlbm.kernels._jit import kernel
with telling_of_compiling(quiet=sys.argv[1] == "quiet"):
    kernel(lambda x: x + 1)(1)
    kernel(lambda x: x + 2)(1)
kernel(lambda x: x + 3)(1)
"""


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs the compiler")
@pytest.mark.parametrize(("mode", "told"), [("told", "0"), ("quiet", "0"), ("told", "1")])
def test_whoever_waits_for_the_compiler_is_told_so_once(mode: str, told: str) -> None:
    environment = {**os.environ, "FASTLBM_QUIET": told}
    command = [sys.executable, "-c", COMPILE, mode]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    expected = (mode, told) == ("told", "0")
    assert done.stderr.count("fastlbm: compiling for this machine") == expected
    assert len(done.stderr.splitlines()) == expected


@pytest.mark.parametrize("before", [None, "0", "1"])
def test_quiet_is_over_with_the_command(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FASTLBM_QUIET", raising=False)
    if before is not None:
        monkeypatch.setenv("FASTLBM_QUIET", before)
    with telling_of_compiling(quiet=True):
        assert os.environ["FASTLBM_QUIET"] == "1"
    assert os.environ.get("FASTLBM_QUIET") == before
    with telling_of_compiling():
        assert os.environ.get("FASTLBM_QUIET") == before


def test_sentences_do_not_stick_to_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    from tqdm.auto import tqdm

    with tqdm(total=3, file=sys.stderr) as bar:
        bar.refresh()
        complain("something is wrong")
    assert re.search(r"\r *\rfastlbm: something is wrong\n", capsys.readouterr().err)


def test_whoever_reads_the_first_line_only_is_told_nothing(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(TEXT)
    command = [sys.executable, "-m", "fastlbm", "study", "small.toml", "--quiet", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}
    for _ in range(2):  # computed, and from its folder
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # nobody reads at all
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait() == 0


def test_a_broken_pipe_elsewhere_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("fastlbm.planning.bounds.opt_bounds", broken)
    assert cli.main(["bounds", *MODEL, "--T", "9"]) == 2
    assert "Broken pipe" in capsys.readouterr().err


def test_theta_may_begin_with_a_minus(capsys: pytest.CaptureFixture[str]) -> None:
    rest = ["--m", "1", "--gamma", "-2e0", "--L", "2"]
    found = answer(["plan", "--theta", "-0.6,0.8", *rest], capsys)
    assert found == answer(["plan", "--theta=-0.6,0.8", *rest], capsys)
    assert found["total"] == pytest.approx(lbm.best_block(lbm.LBM([-0.6, 0.8], m=1, gamma=-2.0), 2).value)
    assert "A0 must" in _complaint(["plan", *MODEL, "--A0", "-1,2"], capsys)
    assert "theta must lie" in _complaint(["bounds", "--theta", "-.6,-1", "--T", "3"], capsys)


def _complaint(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(arguments) == 2
    return capsys.readouterr().err


def test_mistakes_in_arguments_are_told_before_those_about_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.png").touch()
    plan = ["plan", *MODEL, "--out", str(tmp_path / "plan.png")]
    for wrong, words in [
        (["--L", "0"], "L must be an integer >= 1, got 0"),
        (["--cycle", "0"], "period must be an integer >= 1, got 0"),
        (["--cycle-up-to", "-1"], "max_period must be an integer >= 1, got -1"),
        (["--seed", "-1"], "seed must be an integer >= 0"),
        (["--m", "inf"], "a block needs a finite memory"),
        ([], "which exists: --force replaces it"),
    ]:
        assert words in _complaint([*plan, *wrong], capsys)
