"""The command line: the doctor finds a healthy core healthy and a broken one broken, help is quick."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fastlbm
from fastlbm import blocks, cli


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
    code = "import sys, fastlbm.cli; fastlbm.cli._parser().format_help(); sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_is_there() -> None:
    assert [name for name in fastlbm.__all__ if not hasattr(fastlbm, name)] == []
    assert set(fastlbm.__all__) <= set(dir(fastlbm))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fastlbm.nothing
