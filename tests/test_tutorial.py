"""The tutorial notebook, executed cell by cell as a notebook does it."""

from __future__ import annotations

import ast
import io
import json
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parent.parent / "reproduce" / "tutorial.ipynb"


def execute(source: str, names: dict[str, Any]) -> tuple[str, Any]:
    """What a cell prints, and the value of its last line if that is an expression."""
    tree, printed = ast.parse(source), io.StringIO()
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(tree, str(NOTEBOOK), "exec"), names)
        value = (
            None if last is None else eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)
        )
    return printed.getvalue(), value


def test_every_cell_of_the_tutorial_shows_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") for cell in cells)  # they are made where they are looked at
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        printed, value = execute("".join(cell["source"]), names)
        assert printed or value is not None
        if hasattr(value, "savefig"):
            assert value._repr_png_().startswith(b"\x89PNG")
        elif value is not None:
            assert "<table" in value._repr_html_()
            assert len(repr(value)) < 600
    means = names["results"].summary().query("T == 200").groupby("agent")["mean"].mean()
    assert means["O3M"] > means["OFUL"]
    assert names["cycle"].average > 0.7
