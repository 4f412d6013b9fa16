"""The report of a study: owns one page that needs nothing else, neither network nor server.

Its figures are Plotly's: one call draws anew whatever was chosen, hovering reads the values of all agents at
once, and the library is one file that can lie in the page. Bokeh wants its own objects for every control,
Altair a compiler of its own to be without network. `data` gathers what is shown, `page.js` draws it; `plan`
and `plan.js` do the same for `fastlbm plan --html`.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from ..._base.files import write_atomically
from ...model.lbm import LBM
from .data import as_plain, gather
from .plan import gather_plans

__all__ = ["gather", "require_plotly", "write_plan_page", "write_report"]


def require_plotly() -> str:
    """The text of Plotly's JavaScript."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ValueError(
            f'a report needs Plotly: install it with pip install "fastlbm[report]", got {error}'
        ) from None
    text: str = get_plotlyjs()
    return text


def write_report(results: Any, path: Path, notes: Sequence[str] = (), progress: bool | str = True) -> None:
    """Write the page of `results`, a `StudyResults`; `notes` are shown among its warnings."""
    _write_page(path, "page", lambda: gather(results, notes, progress))


def write_plan_page(env: LBM, path: Path, progress: bool | str = True) -> None:
    """Write a page of what is best in a model, with sliders for m, gamma and the direction of theta."""
    _write_page(path, "plan", lambda: as_plain(gather_plans(env, progress)))


def _write_page(path: Path, name: str, gathered: Callable[[], dict[str, Any]]) -> None:
    plotly = require_plotly()
    content = gathered()
    data = json.dumps(content, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "TITLE": html.escape(content["name"]),
        "STYLE": _part("page.css"),
        "DATA": data,
        "PLOTLY": plotly,
        "SCRIPT": _part(f"{name}.js"),
    }
    pieces = _part(f"{name}.html").split("@@")  # text and names of parts by turns
    page = "".join(parts[piece] if k % 2 else piece for k, piece in enumerate(pieces))
    write_atomically(path, page.encode())


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
