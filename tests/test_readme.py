"""The README: its Python runs and prints what it says, its commands are those of continuous integration."""

import re
import tomllib
from pathlib import Path

import pytest

from fastlbm.experiments.grammar import parse
from tests.own_example import EXAMPLE

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_python_prints_what_the_comments_say(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks run in order, each with the names of those before it."""
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL))
    promised = re.findall(r"^print\(.*\)  # (.*)$", code, flags=re.MULTILINE)
    assert promised
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == promised


def test_it_is_short_and_has_the_example_of_an_own_agent() -> None:
    assert len(README.splitlines()) <= 200
    assert EXAMPLE in README


def test_the_study_is_one() -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    spec = parse(tomllib.loads(text), "README.md", text)
    assert len(spec.cells) == 2 * 2 * 4
    assert spec.seeds == 20


def test_commands_are_those_of_continuous_integration() -> None:
    commands = re.findall(r"^python3 -m venv .*$", README, flags=re.MULTILINE)
    assert ["pytest" in command for command in commands] == [False, True]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert [command for command in commands if f'"{command}"' not in script] == []
