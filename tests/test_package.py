"""The package as it is given away: its versions agree, and every public name is explained."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

import pytest

import fastlbm

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAMES = [name for name in fastlbm.__all__ if name != "__version__"]


def test_versions_agree() -> None:
    citation = re.search(
        r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE
    )
    headings = re.findall(r"^## \[(.+)\]$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    released = [heading for heading in headings if heading != "Unreleased"]
    assert citation is not None
    assert citation[1] == released[0] == fastlbm.__version__


def test_the_metadata_is_complete() -> None:
    wanted = {"description", "readme", "license", "license-files", "authors", "keywords", "classifiers"}
    assert wanted <= set(PROJECT)
    versions = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">={versions[0]}"


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example_and_says_when_to_use_it(name: str) -> None:
    """Examples are run by `pytest --doctest-modules fastlbm`."""
    words = inspect.getdoc(getattr(fastlbm, name)) or ""
    assert re.search(r"^>>> ", words, re.MULTILINE), f"{name} has no example"
    assert "Use it " in words, f"{name} does not say when to use it"


@pytest.mark.parametrize("name", [name for name in dir(fastlbm.theory) if name.islower() and name[0] != "_"])
def test_every_formula_has_an_example(name: str) -> None:
    formula = getattr(fastlbm.theory, name)
    assert not callable(formula) or ">>> " in (inspect.getdoc(formula) or "")
