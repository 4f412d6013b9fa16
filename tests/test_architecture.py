"""What the layout promises: short files and functions, constructors by keyword, citations that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(
    path for folder in ("fastlbm", "bench", "reproduce", "tests") for path in (ROOT / folder).rglob("*.py")
)
MOST_FILES, MOST_LINES, LONGEST_FUNCTION, MOST_POSITIONAL = 10, 450, 75, 4

pytestmark = pytest.mark.nojit


def functions(path: Path) -> Iterator[tuple[str, str]]:
    """Name and source of every function of a file."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, "\n".join(lines[node.lineno - 1 : node.end_lineno])


def test_few_files_lie_directly_in_the_package() -> None:
    assert len(list((ROOT / "fastlbm").glob("*.py"))) <= MOST_FILES


def test_no_file_is_long() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES
    }
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


def test_no_function_is_long_unless_it_says_why() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in FILES
        for name, source in functions(path)
        if len(source.splitlines()) > LONGEST_FUNCTION and "# Long: " not in source
    ]
    assert long == []


def test_constructors_with_many_arguments_are_called_by_keyword() -> None:
    found = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and len(node.args) > MOST_POSITIONAL:
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if re.match(r"_?[A-Z]\w*[a-z]", name) and not re.match(r"[A-Z]_", name):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {name}")
    assert found == []


def test_the_map_names_files_that_exist_and_all_folders() -> None:
    import fastlbm

    words = fastlbm.__doc__ or ""
    for name in re.findall(r"\b[a-z_]+/[a-z_]+\.py\b", words):
        assert (ROOT / "fastlbm" / name).is_file(), name
    folders = [path.name for path in (ROOT / "fastlbm").iterdir() if (path / "__init__.py").exists()]
    assert [name for name in folders if f"    {name}/" not in words] == []
    files = [path.stem for path in (ROOT / "fastlbm").glob("[a-z]*.py")]
    assert [name for name in files if not re.search(rf"^    .*\b{name}\b", words, flags=re.MULTILINE)] == []
