"""`fastlbm plan` and `fastlbm bounds`: what is best in a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .._base.interrupts import load
from .options import Commands, Parser, add_command, add_force, add_json, add_model, integer
from .printing import print_json, progress, telling_of_compiling, yes

if TYPE_CHECKING:
    from .._base.types import Array
    from ..model.lbm import LBM


def add_commands(commands: Commands[Parser]) -> None:
    plan = add_command(
        commands,
        "plan",
        _plan,
        help="plan the best block or cycle of a model, as a table or a picture",
        description="Plan the best block of m+L actions in the unit ball or the best cycle.",
    )
    add_model(plan)
    length = plan.add_mutually_exclusive_group()
    length.add_argument(
        "--L", type=integer, default=20, help="The block has L counted actions. The default is %(default)s."
    )
    length.add_argument("--cycle", type=integer, metavar="PERIOD", help="A cycle of this period is planned.")
    length.add_argument(
        "--cycle-up-to", type=integer, metavar="P", help="The best cycle of a period from 1 to P is planned."
    )
    plan.add_argument(
        "--out",
        metavar="FILE",
        help="A picture is written to FILE, such as plan.png. There is none without this, or for a dash (-).",
    )
    plan.add_argument(
        "--html",
        metavar="FILE",
        help="A page is written to FILE: best cycles with sliders for m, gamma and the direction of theta.",
    )
    add_force(plan)
    add_json(plan)

    bounds = add_command(
        commands,
        "bounds",
        _bounds,
        help="bound what the optimal policy of a model collects",
        description="Bound the largest expected reward of T steps in the unit ball from an empty history.",
    )
    add_model(bounds)
    bounds.add_argument("--T", type=integer, required=True, help="The policy plays T steps, such as 1e3.")
    bounds.add_argument(
        "--L", type=integer, help="The upper bound plans blocks of L counted actions. The default is 30 m."
    )
    add_json(bounds)


def _model(options: argparse.Namespace) -> LBM:
    load("fastlbm.planning.bounds", "fastlbm.planning.cycles", "tqdm.auto")
    import numpy as np

    from ..model.lbm import LBM

    A0 = None if options.A0 is None else np.diag(options.A0)
    return LBM(options.theta, options.m, options.gamma, A0)


def _plan(options: argparse.Namespace) -> int:
    env = _model(options)
    _check_lengths(options)
    path = None
    if options.out not in (None, "-"):
        load("matplotlib.figure", "matplotlib.backends.backend_agg", "fastlbm.plots")
        from .. import plots

        path = plots.picture_path(options.out, replace=options.force)
    html = None
    if options.html is not None:
        from ..experiments.export import new_file
        from ..experiments.report import require_plotly, write_plan_page

        html = new_file("html", options.html, (".html", ".htm"), options.force, remedy="--force")
        require_plotly()
    with telling_of_compiling():
        actions, rewards, skipped, title, facts = _planned(env, options)
        if html is not None:
            write_plan_page(env, html, progress())
            facts["page"] = str(html.resolve())
    if path is not None:
        title += rf", $m={int(env.m)}$, $\gamma={env.gamma:g}$"
        figure = plots.draw_plan(actions, rewards, theta=env.theta, counted_from=skipped, title=title)
        plots.save(figure, path)
        facts["picture"] = str(path.resolve())
    if options.json:
        counted = [None] * skipped + rewards[skipped:].tolist()
        print_json({"actions": actions, "rewards": counted, **facts})
        return 0
    print("step" + "".join(f"{f'a_{i + 1}':>9}" for i in range(env.d)) + f"{'reward':>11}")
    for step, (action, reward) in enumerate(zip(actions, rewards, strict=True), start=1):
        shown = f"{reward:z.6f}" if step > skipped else "-"
        print(f"{step:>4}" + "".join(f"{x:>z9.4f}" for x in action) + f" {shown:>10}")
    for name, value in facts.items():
        print(f"{name:<12} {_shown(value)}")
    return 0


def _check_lengths(options: argparse.Namespace) -> None:
    """Before anything is said of files; the planners use the same words."""
    from .._base import validation

    names = {"L": "L", "cycle": "period", "cycle_up_to": "max_period"}
    for option, name in names.items():
        if getattr(options, option) is not None:
            validation.integer(name, getattr(options, option), low=1)
    if options.cycle is None and options.cycle_up_to is None:
        validation.memory("env.m", options.m, allow_inf=False)
    validation.generator("seed", options.seed)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return yes(value)
    return f"{value:z.6f}" if isinstance(value, float) else str(value)


def _planned(env: LBM, options: argparse.Namespace) -> tuple[Array, Array, int, str, dict[str, Any]]:
    """The actions, their rewards, how many of them do not count, a title, and facts."""
    import numpy as np

    from ..planning.blocks import best_block
    from ..planning.cycles import best_cycle

    if options.cycle is None and options.cycle_up_to is None:
        plan = best_block(env, options.L, options.seed)
        actions, skipped = plan.actions, int(env.m)
        counted = env.expected_rewards(actions[skipped:], history=actions[:skipped])
        rewards = np.concatenate([env.expected_rewards(actions[:skipped]), counted])
        facts = {"total": float(plan.value), "average": float(plan.value / options.L)}
        facts |= {"evaluations": int(plan.evaluations), "converged": bool(plan.converged)}
        return actions, rewards, skipped, f"Best block, $L={options.L}$", facts | {"exact": bool(plan.exact)}
    cycle = best_cycle(env, options.cycle, options.cycle_up_to, options.seed)
    actions, period = cycle.actions, len(cycle.actions)
    rewards = env.expected_rewards(actions, history=np.tile(actions, (-(-int(env.m) // period), 1)))
    facts = {"total": float(period * cycle.average), "average": float(cycle.average)}
    return (
        actions,
        rewards,
        0,
        f"Best cycle, period {period}",
        facts
        | {
            "period": period,
            "exact": bool(cycle.exact),
        },
    )


def _bounds(options: argparse.Namespace) -> int:
    from ..planning.bounds import opt_bounds

    env = _model(options)
    with telling_of_compiling():
        found = opt_bounds(env, options.T, options.L, seed=options.seed)
    if options.json:
        names = ("T", "lower", "upper", "gap", "exact", "certified", "method")
        print_json({name: getattr(found, name) for name in names})
        return 0
    print(f"{'lower':<12} {found.lower:z.6f}")
    print(f"{'upper':<12} {found.upper:z.6f}")
    print(f"{'per step':<12} {found.lower / found.T:z.6f} to {found.upper / found.T:z.6f}")
    print(f"{'gap':<12} {100.0 * found.gap:z.4f}% of the upper bound")
    print(f"{'exact':<12} {yes(found.exact)}")
    print(f"{'certified':<12} {'yes' if found.certified else 'no, the upper bound is as good as a search'}")
    print(f"{'method':<12} {found.method}")
    return 0
