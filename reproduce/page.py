"""What an experiment leaves behind: owns its folder, where its study, figures, tables and claims go."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastlbm as lbm
from fastlbm.agents import Agent
from fastlbm.experiments.results import StudyResults

from .claims import Array, Claim, Number, statements

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent


class Page:
    """One experiment: `python -m reproduce NAME` writes OUT/NAME/NAME.png, .pdf, .csv and .md."""

    def __init__(
        self, name: str, out: Path, runs: int | None = None, quick: bool = False, gallery: Path | None = None
    ) -> None:
        self.name, self.folder, self.quick, self.gallery = name, out / name, quick, gallery
        self._runs = runs
        self.written: list[Path] = []
        self.claims: list[Claim] = []
        self.folder.mkdir(parents=True, exist_ok=True)

    def runs(self, usual: int) -> int:
        """Runs of a setting: what was asked for, else 5 in the quick form, else the usual number."""
        return self._runs or (min(5, usual) if self.quick else usual)

    def document(self, file: str = "") -> dict[str, Any]:
        """The study file of the experiment, as a nested dictionary."""
        path = HERE / f"{file or self.name.replace('-', '_')}.toml"
        return tomllib.loads(path.read_text(encoding="utf-8"))

    def study(self, document: dict[str, Any], folder: str = "study") -> StudyResults:
        """Run a study in the experiment's folder, or what of it is missing there."""
        made = lbm.Study.from_dict(copy.deepcopy(document))
        print(
            f"{self.name}: {document['name']}, {len(made.spec.cells)} settings x {made.spec.seeds} runs",
            flush=True,
        )
        return made.run(self.folder / folder)

    def figure(self, figure: Figure) -> None:
        """Write a figure as PNG and PDF."""
        for ending, metadata in ((".png", {}), (".pdf", {"CreationDate": None})):
            path = self.folder / f"{self.name}{ending}"
            figure.savefig(path, dpi=300, metadata=metadata)
            self.written.append(path)
        if self.gallery is not None:
            figure.savefig(self.gallery / f"{self.name}.png", dpi=130)

    def numbers(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write the figure's numbers as CSV."""
        lines = [",".join(columns), *(",".join(_cell(value) for value in row) for row in rows)]
        self._write(".csv", "\n".join(lines) + "\n")

    def text(self, *parts: str) -> None:
        """Write the tables in words, as Markdown."""
        self._write(".md", "\n\n".join(parts) + "\n")

    def claim(self, name: str, number: Number, **words: str) -> None:
        """Check a statement of the claims' files; `words` fill its remark."""
        said = statements()[name]
        remark = said.get("remark", "").format(**words)
        self.claims.append(
            Claim(name, number=number, **{**said, "must": tuple(said["must"]), "remark": remark})
        )

    def _write(self, ending: str, text: str) -> None:
        path = self.folder / f"{self.name}{ending}"
        path.write_text(text, encoding="utf-8")
        self.written.append(path)
        if self.gallery is not None and ending == ".md":
            (self.gallery / path.name).write_text(text, encoding="utf-8")


def played(env: lbm.LBM, agent: Agent, T: int, seed: int = 0) -> Array:
    """The actions (T, d) of one run."""
    actions = lbm.run(env, agent, T=T, seed=seed, keep_actions=True).actions
    assert actions is not None  # they were asked for
    return actions


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"' if "," in value else value
    return f"{value:.10g}"


def markdown(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; numbers as they come, so format them before. A bar in a cell stays one."""
    lines = [columns, ["---"] * len(columns), *rows]
    cells = [[str(value).replace("|", "\\|") for value in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
