"""The command line: the doctor finds a healthy core healthy and a broken one broken, help is quick,
plans and bounds are those of the library.
"""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from pathlib import Path

import numpy as np
import pytest

import fastlbm
from fastlbm import cli, precompile
from fastlbm.kernels import _cache, search
from fastlbm.kernels._jit import cache_of, dispatcher_of
from fastlbm.planning import objective as blocks

THETA = [0.5, 0.77, 0.09]
MODEL = ["--theta", "0.5,0.77,0.09"]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"fastlbm {fastlbm.__version__}\n"


def test_the_doctor_passes_the_core(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split() == ["self-test", "OK"]
    assert {"python", "numba", "cpu", "threads", "jit"} <= {line.split()[0] for line in lines}


@pytest.mark.parametrize("factor", [1.0 + 1e-5, float("nan")])
def test_the_doctor_notices_a_wrong_gradient(
    factor: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = blocks.block_ucb

    def wrong(*args: object, **keywords: object) -> object:
        value, gradient = right(*args, **keywords)  # type: ignore[arg-type]
        return value, factor * gradient

    monkeypatch.setattr(blocks, "block_ucb", wrong)
    assert cli.main(["doctor"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].split() == ["self-test", "FAILED"]


def test_the_doctor_reports_an_exception(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(blocks, "block_ucb")
    assert cli.main(["doctor"]) == 1
    assert "ImportError" in capsys.readouterr().out


def test_import_and_help_do_not_load_numba() -> None:
    code = (
        "import sys, fastlbm.cli; fastlbm.cli._parser().format_help(); "
        "sys.exit(bool({'numba', 'matplotlib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_is_there() -> None:
    assert [name for name in fastlbm.__all__ if not hasattr(fastlbm, name)] == []
    assert set(fastlbm.__all__) <= set(dir(fastlbm))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fastlbm.nothing


def _read(out: str, n: int) -> tuple[list[list[str]], dict[str, str]]:
    """The rows of the table and the facts below it."""
    lines = out.splitlines()
    return [line.split() for line in lines[1 : n + 1]], dict(
        line.split(maxsplit=1) for line in lines[n + 1 :]
    )


def _check_png(path: Path) -> None:
    from matplotlib.image import imread

    assert path.read_bytes().startswith(b"\x89PNG")
    pixels = imread(path)
    assert min(pixels.shape[:2]) > 600
    assert len(np.unique(pixels[..., :3].reshape(-1, 3), axis=0)) > 20


def test_plan_of_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["plan", *MODEL, "--L", "5", "--out", "plan.png"]) == 0
    rows, facts = _read(capsys.readouterr().out, 7)
    plan = fastlbm.best_block(fastlbm.LBM(THETA), 5)
    assert [row[0] for row in rows] == [str(step) for step in range(1, 8)]
    np.testing.assert_allclose([[float(x) for x in row[1:4]] for row in rows], plan.actions, atol=5.1e-5)
    assert [row[4] for row in rows[:2]] == ["-", "-"]
    assert sum(float(row[4]) for row in rows[2:]) == pytest.approx(plan.value, abs=1e-5)
    assert float(facts["total"]) == pytest.approx(plan.value, abs=1e-6)
    assert float(facts["average"]) == pytest.approx(plan.value / 5, abs=1e-6)
    assert (facts["evaluations"], facts["exact"]) == (str(plan.evaluations), "no")
    assert facts["converged"] == ("yes" if plan.converged else "no")
    assert Path(facts["picture"]) == tmp_path / "plan.png"
    _check_png(tmp_path / "plan.png")


@pytest.mark.parametrize(("choice", "period"), [(["--cycle", "3"], 3), (["--cycle-up-to", "2"], 2)])
def test_plan_of_a_cycle(
    choice: list[str], period: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cycle.png"
    assert cli.main(["plan", *MODEL, *choice, "--A0", "1,1,2", "--out", str(path)]) == 0
    rows, facts = _read(capsys.readouterr().out, period)
    assert facts["period"] == str(period)
    rewards = [float(row[4]) for row in rows]  # steady, so they have the average of the cycle
    assert np.mean(rewards) == pytest.approx(float(facts["average"]), abs=2e-6)
    _check_png(path)


@pytest.mark.parametrize("out", [[], ["--out", "-"]])
def test_plan_without_a_picture(
    out: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["plan", *MODEL, "--m", "0", "--cycle", "1", "--A0", "I", *out]) == 0
    assert "picture" not in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bounds", *MODEL, "--T", "50", "--L", "10"]) == 0
    facts = {line[:12].strip(): line[13:] for line in capsys.readouterr().out.splitlines()}
    bounds = fastlbm.opt_bounds(fastlbm.LBM(THETA), 50, L=10)
    assert float(facts["lower"]) == pytest.approx(bounds.lower, abs=1e-6)
    assert float(facts["upper"]) == pytest.approx(bounds.upper, abs=1e-6)
    assert facts["per step"] == f"{bounds.lower / 50:.6f} to {bounds.upper / 50:.6f}"
    assert float(facts["gap"].split("%")[0]) == pytest.approx(100 * bounds.gap, abs=1e-4)
    assert (facts["exact"], facts["method"]) == ("no", bounds.method)
    assert facts["certified"] == "no, the upper bound is as good as a search"
    assert cli.main(["bounds", *MODEL, "--gamma", "1", "--T", "5"]) == 0
    facts = {line[:12].strip(): line[13:] for line in capsys.readouterr().out.splitlines()}
    assert (facts["exact"], facts["certified"]) == ("yes", "yes")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "--theta", "1,1"], "theta must lie in the unit ball"),
        (["plan", *MODEL, "--m", "1.5"], "m must be an integer >= 0"),
        (["plan", *MODEL, "--m", "inf"], "a block needs a finite memory"),
        (["plan", *MODEL, "--A0", "1,2"], "A0 must have shape (3, 3), got (2, 2)"),
        (["plan", *MODEL, "--L", "0"], "L must be an integer >= 1"),
        (["plan", *MODEL, "--out", "plan.what"], "out must end with one of"),
        (["plan", *MODEL, "--out", "nowhere/plan.png"], "out must be in a directory that exists"),
        (["bounds", *MODEL, "--T", "0"], "T must be an integer >= 1"),
    ],
)
def test_bad_input(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1
    assert printed.out == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--L=1000000000", "L must be at most 100000, got 1000000000"),
        ("--m=1e300", "m must be at most 10000, got 1e+300"),
        ("--cycle=1000000000", "cycle must be at most 100000, got 1000000000"),
        ("--cycle-up-to=1000000000", "cycle_up_to must be at most 10000, got 1000000000"),
    ],
)
def test_numbers_that_would_never_end_are_refused(
    option: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["plan", *MODEL, option, "--out", "-"]) == 2
    assert capsys.readouterr().err == f"fastlbm: {message}\n"
    assert cli.main(["bounds", *MODEL, "--T", str(2**63)]) == 2
    assert f"T must be at most {2**53}, got {2**63}" in capsys.readouterr().err


def test_bounds_of_a_long_horizon_take_no_memory(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bounds", "--theta=0.6,0.8", "--m=1", "--gamma=2", f"--T={10**15}"]) == 0
    assert f"{1.0 + 4.0 * (10**15 - 1):.6f}" in capsys.readouterr().out
    assert cli.main(["bounds", "--theta=0.6,0.8", "--m=inf", "--gamma=2", f"--T={10**15}"]) == 2
    assert "T must be at most 100000000 with a memory" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--m=--", "--theta=--", "--L=--"])
def test_a_value_of_two_dashes_is_none(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["plan", *MODEL, option])
    assert stop.value.code == 2
    assert "error: every option must have a value, got -- for one of them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["bounds", *MODEL, "--T", "9"], "fastlbm: stopped\n"),
        (["study", "a.toml"], "fastlbm: stopped; what is finished is kept, and the same command goes on"),
    ],
)
def test_ctrl_c_is_a_sentence(
    command: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fastlbm.planning.bounds.opt_bounds", interrupted)
    monkeypatch.setattr("fastlbm.experiments.study.Study.from_toml", interrupted)
    assert cli.main(command) == 130
    assert words in capsys.readouterr().err


def test_theta_must_be_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["plan", "--theta", "0.5,x"])
    assert stop.value.code == 2
    assert "must be numbers separated by commas, got '0.5,x'" in capsys.readouterr().err


def test_compile_fills_the_cache_and_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[str] = []

    def here(calls: deque[str]) -> None:  # what processes would do
        while calls:
            made.append(calls.popleft())
            getattr(precompile, made[-1])()

    monkeypatch.setattr(precompile, "_in_process", here)
    assert cli.main(["compile"]) == 0
    assert "compiled" in capsys.readouterr().out
    assert sorted(made) == sorted(precompile.CALLS)
    assert not precompile.is_cold()
    monkeypatch.setattr(
        precompile, "isotropic", lambda: subprocess.run([sys.executable, "-c", "1/0"], check=True)
    )
    assert cli.main(["compile"]) == 1
    assert "ended with 1" in capsys.readouterr().err
    planner = cache_of(search.search)
    assert planner is not None
    (tmp_path / "file").touch()
    monkeypatch.setattr(planner, "places", [tmp_path / "file" / "x"])
    assert precompile.is_cold()
    assert cli.main(["compile"]) == 2
    assert "no file can be written in" in capsys.readouterr().err
    monkeypatch.setattr(dispatcher_of(search.search), "_cache", None)
    monkeypatch.setattr(_cache, "why_off", lambda: "FASTLBM_CACHE=0")
    assert not precompile.is_cold()
    assert cli.main(["compile"]) == 2
    assert "FASTLBM_CACHE=0" in capsys.readouterr().err


def test_compiling_runs_nothing_of_the_current_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "fastlbm.py").write_text("raise SystemExit(3)")
    (tmp_path / "numpy.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    calls = deque(["is_cold", "is_cold"])
    precompile._in_process(calls)  # imports all, compiles nothing
    assert not calls
    with pytest.raises(subprocess.CalledProcessError):
        precompile._in_process(deque(["nothing_of_that_name"]))
