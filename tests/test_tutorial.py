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


def test_a_kernel_shows_pictures_and_tables_and_no_mistake(tmp_path: Path) -> None:
    """As Jupyter runs it: each cell in a kernel of its own process."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    outputs = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    shown = [out.data for out in outputs if out.output_type in ("display_data", "execute_result")]
    assert sum("image/png" in data for data in shown) >= 2
    assert sum("<table" in data.get("text/html", "") for data in shown) >= 2
    assert all(len(data.get("text/plain", "")) < 600 for data in shown)
    # Only progress and the notice of compiling may go to stderr.
    errors = "".join(out.text for out in outputs if out.output_type == "stream" and out.name == "stderr")
    assert "Warning" not in errors
    assert "Traceback" not in errors
