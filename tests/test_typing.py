"""Types as a user's type checker sees them, from outside of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

USER = Path(__file__).with_name("typed_user.py")
WRONG = """
import fastlbm as lbm
lbm.Nothing
lbm.O3M(m=2, gama=-3.0, horizon=10)
lbm.run(lbm.Ball(2), lbm.OFUL(horizon=10), T="10")
lbm.best_cycle(lbm.LBM([1.0], m=1)).actions.append(3)
"""


def mypy(file: Path, cwd: Path) -> tuple[int, str]:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cwd / "cache"), str(file)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_a_program_with_strict_types_is_right(tmp_path: Path) -> None:
    file = tmp_path / "user.py"
    file.write_text(USER.read_text(encoding="utf-8"), encoding="utf-8")
    code, said = mypy(file, tmp_path)
    assert (code, said.splitlines()[-1]) == (0, "Success: no issues found in 1 source file")


def test_mistakes_are_found(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(WRONG, encoding="utf-8")
    _, said = mypy(file, tmp_path)
    lines = {int(line.split(":")[1]) for line in said.splitlines() if ": error: " in line}
    assert lines == {3, 4, 5, 6}
