"""The command line: owns arguments and printing.

Everything heavy is imported by the command that needs it, so that `fastlbm --help` is quick.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .model.lbm import LBM

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


#: The largest numbers that commands take: beyond them a plan does not fit into memory, or never ends.
LARGEST = {"m": 10_000, "L": 100_000, "cycle": 100_000, "cycle_up_to": 10_000, "T": 2**53}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command (`argv` defaults to the arguments of the process).

    The exit code is 2 for bad input and 130 after Ctrl-C, each with a sentence.

    >>> main(["doctor"])  # doctest: +ELLIPSIS
    fastlbm ...
    self-test    OK
    0
    """
    parser = _parser()
    try:
        options = parser.parse_args(argv)
    except ValueError:  # of argparse itself, for the value "--"; or the value becomes an empty list
        options = argparse.Namespace(value=[])
    if [] in vars(options).values():
        parser.error("every option must have a value, got -- for one of them")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _print_warning
            _refuse_huge(options)
            code: int = options.run(options)
    except KeyboardInterrupt:
        kept = "; what is finished is kept, and the same command goes on from there"
        _complain("stopped" + (kept if options.run is _study else ""))
        return 130
    except MemoryError as error:
        _complain(f"this needs more memory than there is: choose smaller numbers. {error}".strip())
        return 2
    except (ValueError, OSError, OverflowError) as error:  # about an argument, a file or a folder
        _complain(str(error) or type(error).__name__)
        return 2
    return code


def _refuse_huge(options: argparse.Namespace) -> None:
    for name, most in LARGEST.items():
        value = getattr(options, name, None)
        if value is not None and most < value < math.inf:
            raise ValueError(f"{name} must be at most {most}, got {value}")


def _complain(words: str) -> None:
    print(f"fastlbm: {words}", file=sys.stderr)


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _complain(str(message))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fastlbm", description="Linear bandits with memory.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    doctor = commands.add_parser(
        "doctor",
        help="show what is installed and how the core is compiled, and test it",
        description="Show what is installed and how the core is compiled, then check the core's gradient "
        "against central differences. The exit code is 1 if that fails.",
    )
    doctor.set_defaults(run=_doctor)
    compile_ = commands.add_parser(
        "compile",
        help="compile the core now, so that first calls need not",
        description="Compile the core in several processes and keep it on disk, as when an image is built: "
        "first calls then only load it. What is there already is left as it is.",
    )
    compile_.set_defaults(run=_compile)

    _add_plan(commands)
    _add_bounds(commands)
    _add_study(commands)
    _add_plot(commands)
    return parser


def _add_plan(commands: Commands) -> None:
    plan = commands.add_parser(
        "plan",
        help="plan the best block or cycle of a model, as a table and a picture",
        description="Plan the best block of m+L actions in the unit ball or the best cycle.",
    )
    _add_model(plan)
    length = plan.add_mutually_exclusive_group()
    length.add_argument(
        "--L", type=int, default=20, help="The block has L counted actions. The default is %(default)s."
    )
    length.add_argument("--cycle", type=int, metavar="PERIOD", help="A cycle of this period is planned.")
    length.add_argument(
        "--cycle-up-to", type=int, metavar="P", help="The best cycle of a period from 1 to P is planned."
    )
    plan.add_argument(
        "--out",
        default="plan.png",
        metavar="FILE",
        help="The picture is written to FILE; there is none for a dash (-). The default is %(default)s.",
    )
    plan.set_defaults(run=_plan)


def _add_bounds(commands: Commands) -> None:
    bounds = commands.add_parser(
        "bounds",
        help="bound what the optimal policy of a model collects",
        description="Bound the largest expected reward of T steps in the unit ball from an empty history.",
    )
    _add_model(bounds)
    bounds.add_argument("--T", type=int, required=True, help="The policy plays T steps.")
    bounds.add_argument(
        "--L", type=int, help="The upper bound plans blocks of L counted actions. The default is 30 m."
    )
    bounds.set_defaults(run=_bounds)


def _add_study(commands: Commands) -> None:
    study = commands.add_parser(
        "study",
        help="run a study file, or go on with it",
        description="Compute what is missing of a study and print its summary. The same command continues a "
        "study that was stopped, by whatever; a finished one answers at once.",
    )
    study.add_argument("file", metavar="FILE", help="The study is described in this TOML file.")
    study.add_argument(
        "--out", metavar="DIR", help="Its results are kept in DIR. The default is FILE without its ending."
    )
    study.add_argument("--jobs", type=int, metavar="N", help="N threads work. The default is one a core.")
    study.add_argument(
        "--dask", metavar="ADDRESS", help="The Dask cluster with the scheduler at ADDRESS works instead."
    )
    study.add_argument("--quiet", action="store_true", help="No progress bar is shown.")
    study.set_defaults(run=_study)


def _add_plot(commands: Commands) -> None:
    plot = commands.add_parser(
        "plot",
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
        default="opt",
        help="Regret is measured against opt, lower, 'best cycle' or 'oracle greedy'. "
        "The default is %(default)s.",
    )
    plot.add_argument(
        "--band",
        default="bootstrap",
        help="The bands are bootstrap, simultaneous, quantiles or none. The default is %(default)s.",
    )
    plot.add_argument(
        "--out", metavar="FILE", help="The picture is written to FILE. The default is DIR/KIND.png."
    )
    plot.set_defaults(run=_plot)


def _add_model(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--theta",
        type=_numbers,
        required=True,
        metavar="X,Y,...",
        help="The parameter has a norm of at most 1. Write --theta=-0.6,0.8 if it begins with a minus.",
    )
    command.add_argument(
        "--m", type=float, default=2, help="The memory holds m actions. The default is %(default)s."
    )
    command.add_argument(
        "--gamma",
        type=float,
        default=-3.0,
        help="The exponent is negative for rotting, positive for rising rewards. The default is %(default)s.",
    )
    command.add_argument(
        "--A0",
        type=_diagonal,
        metavar="X,Y,...",
        help="The initial matrix has this diagonal; I is the identity, the default.",
    )
    command.add_argument(
        "--seed", type=int, default=0, help="The search draws from this seed. The default is %(default)s."
    )


def _numbers(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers separated by commas, got {text!r}") from None


def _diagonal(text: str) -> list[float] | None:
    return None if text == "I" else _numbers(text)


def _model(options: argparse.Namespace) -> LBM:
    import numpy as np

    from .model.lbm import LBM

    A0 = None if options.A0 is None else np.diag(options.A0)
    return LBM(options.theta, options.m, options.gamma, A0)


def _plan(options: argparse.Namespace) -> int:
    import numpy as np

    from . import plots
    from .planning.blocks import best_block
    from .planning.cycles import best_cycle

    env = _model(options)
    path = None if options.out == "-" else plots.picture_path(options.out)
    if options.cycle is None and options.cycle_up_to is None:
        plan = best_block(env, options.L, options.seed)
        actions, skipped = plan.actions, int(env.m)
        counted = env.expected_rewards(actions[skipped:], history=actions[:skipped])
        rewards = np.concatenate([env.expected_rewards(actions[:skipped]), counted])
        title = f"Best block, $L={options.L}$"
        facts = {"total": f"{plan.value:z.6f}", "average": f"{plan.value / options.L:z.6f}"}
        facts |= {"evaluations": str(plan.evaluations), "converged": _yes(plan.converged)}
        facts["exact"] = _yes(plan.exact)
    else:
        cycle = best_cycle(env, options.cycle, options.cycle_up_to, options.seed)
        actions, skipped, period = cycle.actions, 0, len(cycle.actions)
        rewards = env.expected_rewards(actions, history=np.tile(actions, (-(-int(env.m) // period), 1)))
        title = f"Best cycle, period {period}"
        facts = {"total": f"{period * cycle.average:z.6f}", "average": f"{cycle.average:z.6f}"}
        facts |= {"period": str(period), "exact": _yes(cycle.exact)}

    print("step" + "".join(f"{f'a_{i + 1}':>9}" for i in range(env.d)) + f"{'reward':>11}")
    for step, (action, reward) in enumerate(zip(actions, rewards, strict=True), start=1):
        shown = f"{reward:z.6f}" if step > skipped else "-"
        print(f"{step:>4}" + "".join(f"{x:>z9.4f}" for x in action) + f" {shown:>10}")
    for name, value in facts.items():
        print(f"{name:<12} {value}")
    if path is not None:
        title += rf", $m={int(env.m)}$, $\gamma={env.gamma:g}$"
        figure = plots.draw_plan(actions, rewards, theta=env.theta, counted_from=skipped, title=title)
        plots.save(figure, path)
        print(f"{'picture':<12} {path.resolve()}")
    return 0


def _bounds(options: argparse.Namespace) -> int:
    from .planning.bounds import opt_bounds

    found = opt_bounds(_model(options), options.T, options.L, seed=options.seed)
    print(f"{'lower':<12} {found.lower:z.6f}")
    print(f"{'upper':<12} {found.upper:z.6f}")
    print(f"{'per step':<12} {found.lower / found.T:z.6f} to {found.upper / found.T:z.6f}")
    print(f"{'gap':<12} {100.0 * found.gap:z.4f}% of the upper bound")
    print(f"{'exact':<12} {_yes(found.exact)}")
    print(f"{'certified':<12} {'yes' if found.certified else 'no, the upper bound is as good as a search'}")
    print(f"{'method':<12} {found.method}")
    return 0


def _study(options: argparse.Namespace) -> int:
    from pathlib import Path

    from .experiments.study import Study

    study = Study.from_toml(options.file)
    out = Path(options.out or Path(options.file).with_suffix(""))
    if options.dask is None:
        results = study.run(out, options.jobs, progress=not options.quiet)
    else:
        try:
            from distributed import Client
        except ImportError as error:
            raise ValueError(f"--dask needs the package distributed, got {error}") from None
        with Client(options.dask) as client:  # type: ignore[no-untyped-call, unused-ignore]
            executor = client.get_executor(pure=False, retries=2)
            results = study.run(out, executor, progress=not options.quiet)
    print(results.summary().to_string(index=False, float_format=lambda x: f"{x:.4g}"))
    print(f"results in {out.resolve()}; draw them with: fastlbm plot {out}")
    return 0


def _plot(options: argparse.Namespace) -> int:
    from pathlib import Path

    from . import plots
    from .experiments.study import Study

    folder = Path(options.dir)
    study = Study.from_results(folder)
    path = plots.picture_path(options.out or str(folder / f"{options.kind}.png"))
    results = study.results(folder)
    plots.save(results.plot(options.kind, options.comparator, options.band), path)
    print(path.resolve())
    return 0


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"


def _compile(options: argparse.Namespace) -> int:
    import subprocess
    import time

    from . import precompile

    why_not = precompile.why_not()
    if why_not is not None:
        raise ValueError(f"compiled code cannot be kept on disk: {why_not}")
    begin = time.perf_counter()
    try:
        precompile.compile_all()
    except subprocess.CalledProcessError as error:  # its own words are above
        print(f"fastlbm: a process that compiles ended with {error.returncode}", file=sys.stderr)
        return 1
    print(f"compiled, or there before: {time.perf_counter() - begin:.1f} s")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    passed = True
    try:
        from . import doctor

        for name, value in doctor.facts():
            print(f"{name:<12} {value}", flush=True)
        for name, error, first, repeated in doctor.self_tests():
            passed &= error < doctor.TOLERANCE  # NaN is no pass
            times = f"first call {first:.2f} s, then {1e6 * repeated:.1f} us"
            print(f"{name:<12} gradient off by {error:.1e}, {times}", flush=True)
    except Exception as problem:  # whatever is broken is what the doctor is for
        passed = False
        print(f"{'problem':<12} {type(problem).__name__}: {problem}")
    print(f"{'self-test':<12} {'OK' if passed else 'FAILED'}")
    return 0 if passed else 1
