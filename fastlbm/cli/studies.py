"""`fastlbm study`, `plot`, `export` and `report`: studies are run, drawn, carried away and told of."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .._base.interrupts import load
from .options import Commands, Parser, add_command, add_force, add_json, integer, numbers, words
from .printing import print_json, progress, telling_of_compiling

if TYPE_CHECKING:
    import pandas as pd

    from ..experiments.results import StudyResults
    from ..experiments.study import Study


def add_commands(commands: Commands[Parser]) -> None:
    _add_study(commands)
    _add_plot(commands)
    export = add_command(
        commands,
        "export",
        _export,
        help="write the rows of a study's folder to a file, or its summary as a LaTeX table",
        description="Write all rows with their parameters to a .parquet, .csv or .json file, or the summary "
        "as a table for a paper to a .tex file.",
    )
    export.add_argument("dir", metavar="DIR", help="The results of a study are in this folder.")
    export.add_argument(
        "file", metavar="FILE", help="The file is written in the format that its ending names."
    )
    add_force(export)
    report = add_command(
        commands,
        "report",
        _report,
        help="write a page about a study's folder, to be looked at in a browser",
        description="Write one page with all that a study asked and what came out; it needs no network.",
    )
    report.add_argument("dir", metavar="DIR", help="The results of a study are in this folder.")
    report.add_argument(
        "--out", metavar="FILE", help="The page is written to FILE. The default is DIR/report.html."
    )
    add_force(report)


def _add_study(commands: Commands[Parser]) -> None:
    study = add_command(
        commands,
        "study",
        _study,
        help="run a study file, or go on with it",
        description="Compute what is missing of a study and print its summary. The same command continues a "
        "study that was stopped, by whatever; a finished one answers at once.",
        kept="; what is finished is kept, and the same command goes on from there",
    )
    study.add_argument("file", metavar="FILE", help="The study is described in this TOML file.")
    study.add_argument(
        "--out", metavar="DIR", help="Its results are kept in DIR. The default is FILE without its ending."
    )
    study.add_argument(
        "--jobs",
        type=integer,
        metavar="N",
        help="N threads work, executor=N in Python. The default is one a core.",
    )
    study.add_argument(
        "--dask", metavar="ADDRESS", help="The Dask cluster with the scheduler at ADDRESS works instead."
    )
    study.add_argument(
        "--quiet",
        action="store_true",
        help="No progress is shown. Without this it is a bar on a terminal, elsewhere a line a minute.",
    )
    add_json(study)


def _add_plot(commands: Commands[Parser]) -> None:
    plot = add_command(
        commands,
        "plot",
        _plot,
        help="draw the results in a study's folder",
        description="Draw cumulative reward, regret, or regret against the horizon on log-log axes.",
    )
    plot.add_argument("dir", metavar="DIR", help="The results of a study are in this folder.")
    plot.add_argument(
        "--kind",
        default="reward",
        help="The figure shows reward, regret, or loglog, regret against the horizon. "
        "The default is %(default)s.",
    )
    plot.add_argument(
        "--comparator",
        help="Regret is measured against opt, lower, 'best cycle' or 'oracle greedy'. The default is opt, or "
        "'best cycle' where the upper bound on OPT exceeds the lower one by more than a fifth.",
    )
    plot.add_argument(
        "--T", type=integer, metavar="N", help="The horizon N is drawn. The default is the longest one."
    )
    plot.add_argument(
        "--band",
        default="bootstrap",
        help="The bands are bootstrap, simultaneous, quantiles or none. The default is %(default)s.",
    )
    plot.add_argument(
        "--against",
        metavar="NAME",
        help="Final values are drawn over this parameter, such as gamma, d, m, T or agent_L.",
    )
    plot.add_argument(
        "--agents", type=words, metavar="A,B,...", help="These agents are drawn, in this order; else all."
    )
    plot.add_argument(
        "--envs", type=words, metavar="A,B,...", help="These environments are drawn, in this order; else all."
    )
    plot.add_argument("--size", type=numbers, metavar="W,H", help="A figure is W by H inches.")
    plot.add_argument(
        "--out",
        metavar="FILE",
        help="The picture is written to FILE. The default is DIR/KIND.png. Panels that do not fit on a page "
        "go to FILE-1, FILE-2, ..., or on pages of a PDF.",
    )
    add_force(plot)


def _study(options: argparse.Namespace) -> int:
    if options.jobs is not None and options.jobs < 1:
        raise ValueError(
            f"--jobs must be the number of threads that work, at least 1, got {options.jobs}; "
            "leave it out for one thread a core"
        )
    file = Path(options.file)
    out = Path(options.out or (file.with_suffix("") if file.name else file))  # a dot is told to be no file
    name, summary = _answer(file, out, options)
    if options.json:
        rows = summary.to_dict(orient="records")
        print_json({"study": name, "folder": str(out.resolve()), "summary": rows})
        return 0
    print(summary.to_string(index=False, float_format=lambda x: f"{x:.4g}"))
    print(
        "mean: of the final rewards over the seeds; low and high: its 95% bootstrap interval; "
        "p_vs_best: of a paired test against the best agent, NaN for that one itself"
    )
    print(f"results in {out.resolve()}; draw them with: fastlbm plot {out}")
    return 0


def _answer(file: Path, out: Path, options: argparse.Namespace) -> tuple[str, pd.DataFrame]:
    """The name of the study and its summary, computed if it is not there."""
    load("pandas", "pyarrow.parquet", "fastlbm.experiments.finished")
    from ..experiments.finished import summary_of_finished

    found = summary_of_finished(file, out)
    if found is not None:
        return found
    load("fastlbm.experiments.study", "tqdm.auto")
    from ..experiments.study import Study

    study = Study.from_toml(file)
    with telling_of_compiling(options.quiet):
        results = _run(study, out, options)
    return results.name, results.summary()


def _run(study: Study, out: Path, options: argparse.Namespace) -> StudyResults:
    if options.dask is None:
        return study.run(out, options.jobs, progress=not options.quiet and progress())
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError(f"--dask needs the package distributed, got {error}") from None
    with Client(options.dask) as client:  # type: ignore[no-untyped-call, unused-ignore]
        executor = client.get_executor(pure=False, retries=2)
        return study.run(out, executor, progress=not options.quiet and progress())


def _require_study(name: str) -> None:
    """Before anything else is said of a folder that is none, or a file."""
    if not Path(name, "manifest.json").is_file():
        raise ValueError(f"DIR must be the folder of a study's results, got {name!r} without a manifest.json")


def read_folder(name: str) -> StudyResults:
    """The results in the folder of a study; nothing that came with it is run."""
    load("fastlbm.experiments.study", "pandas", "pyarrow.parquet", "tqdm.auto")
    from ..experiments.study import Study

    return Study.from_results(name).results(name)


def _plot(options: argparse.Namespace) -> int:
    _require_study(options.dir)
    load("matplotlib.figure", "matplotlib.backends.backend_agg", "fastlbm.plots")
    from .. import plots

    path = Path(options.out or Path(options.dir) / f"{options.kind}.png")
    path = plots.picture_path(str(path), replace=options.force)
    first = plots.page_paths(path, 2)[0]
    if first != path:
        plots.picture_path(str(first), replace=options.force)
    results = read_folder(options.dir)
    look = {"against": options.against, "agents": options.agents, "envs": options.envs, "T": options.T}
    look |= {"size": options.size, "progress": progress()}
    with telling_of_compiling():
        figures = results.figures(options.kind, options.comparator, options.band, **look)
    for each in plots.save_pages(figures, path):
        print(each.resolve())
    return 0


def _export(options: argparse.Namespace) -> int:
    _require_study(options.dir)
    from ..experiments.export import ENDINGS, new_file

    path = new_file("FILE", options.file, ENDINGS, options.force, remedy="--force")
    print(read_folder(options.dir).export(path, replace=options.force).resolve())
    return 0


def _report(options: argparse.Namespace) -> int:
    import warnings

    _require_study(options.dir)
    load("fastlbm.experiments.report", "plotly.offline")
    from ..experiments.export import new_file
    from ..experiments.report import require_plotly

    path = options.out or Path(options.dir) / "report.html"
    path = new_file("out", path, (".html", ".htm"), options.force, remedy="--force")
    require_plotly()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        results = read_folder(options.dir)
    with telling_of_compiling():
        results.report(path, options.force, [str(each.message) for each in told], progress())
    print(path.resolve())
    return 0
