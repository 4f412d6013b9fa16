"""Beyond the paper: planning from the true history (Rolling) beside the paper's blocks.

A block of the paper has m actions whose rewards are neither counted nor learned from, it ends without a
future, its length must be guessed, and its radius assumes noise of size 1. Rolling plans from the last m
actions that were really played and learns from every reward; the noise is known or estimated. Auto, on the
random instances, does the same and is told nothing. All are measured against the best cycle known: T times
its average, less the reward, is called the regret, the ratio of the two the share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import fastlbm as lbm
from fastlbm.experiments.results import StudyResults

from . import look
from .claims import Array, Number, exact, exponent, mean, ratio
from .instances import best_cycles, instances
from .page import Page, markdown
from .regret import best_cycle_known

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The agents of every panel, with their names in it.
NAMES = {
    "OFUL": "OFUL",
    "O3M, theory": "O3M, $L$ of Theorem 1",
    "OM": "OM, $L = 20$",
    "O3M": "O3M, $L = 20$",
    "Rolling, noise known": "Rolling, noise known",
    "Rolling": "Rolling, noise estimated",
    "Rolling, switch 1": "Rolling, switch = 1",
    "Auto": "Auto, told nothing",
}
#: Only on the instances: told nothing, not even A0; delta is that without a horizon.
NOTHING = {"Auto": {"type": "Auto", "delta": 0.01}}
#: Only in the table of instances: what the noise and what the plan from the history is worth.
APART = {
    "O3M, noise estimated": {"L": 20, "type": "O3M", "subgaussian": "estimated"},
    "Rolling, noise 1": {"type": "Rolling", "subgaussian": 1.0},
}
TS, RARE = [100, 300, 1000, 3000, 10_000, 30_000, 100_000], [1000, 10**4, 10**5, 10**6, 10**7]
SHARE = "share of the best cycle"
AHEAD = [3, 6, 9, 15, 20, 30]
#: Random instances, their horizon and runs.
COUNT, STEPS, RUNS = 30, 1500, 2


class Found(NamedTuple):
    """What was measured: x, and by agent values (settings, runs)."""

    x: Array
    values: dict[str, Array]


def make(page: Page) -> None:
    """Run the studies, draw regret over T, d, m and gamma and shares, write the tables, check the claims."""
    document = page.document()
    document["seeds"] = page.runs(document["seeds"])
    rotting = document["env"].pop("rotting")
    if page.quick:
        document["env"]["d"]["grid"]["random"] = [{"d": d, "seed": 0} for d in (2, 4)]
        document["env"]["m"]["grid"]["m"] = [1]
        document["env"]["gamma"]["grid"]["gamma"] = [1.0]
    regrets = over_shapes(page.study(document), document)
    fixed = {**document, "env": {"rotting": rotting}}
    horizons = page.study(over_horizons(fixed, page.quick), "horizons")
    cycle = best_cycle_known(horizons.envs["rotting"]).average
    regrets = {"T": along(horizons, cycle), **regrets}
    steps = [9, 15, 30] if page.quick else AHEAD
    ahead = page.study(over_ahead(fixed, steps), "ahead")
    looked = {
        agent: Found(np.array(steps), {agent: shares(ahead, agent, cycle, steps)})
        for agent in ("O3M", "Rolling")
    }
    envs = {str(k): env for k, env in enumerate(instances(COUNT)) if not page.quick or easy(env)}
    best = {k: c.average for k, c in zip(envs, best_cycles(list(envs.values())), strict=True)}
    random = of_instances(page.study(over_instances(document, envs, page.quick), "instances"), best)

    with look.style():
        page.figure(draw(regrets, looked, random, document["seeds"]))
    page.numbers(
        ("what", "over", "value", "agent", "mean", "smallest", "largest"),
        lines("regret", regrets)
        + lines("share", {"L": looked["O3M"], "ahead": looked["Rolling"], "instance": random}),
    )
    page.text(*tables(regrets, looked, random, envs, best, document["seeds"]))
    check(page, regrets["T"], looked["Rolling"], random, cycle)


# The studies.


def over_horizons(document: dict[str, Any], quick: bool) -> dict[str, Any]:
    """The same agents at many horizons, and Rolling with rare plans at long ones."""
    rare = {**document["agent"]["Rolling"], "switch": 1.0, "T": RARE[3:4] if quick else RARE}
    agents = {**document["agent"], "Rolling, switch 1": rare}
    T = [1000, 10_000] if quick else TS
    return {**document, "name": "rolling, horizons", "T": T, "agent": agents}


def over_ahead(document: dict[str, Any], steps: list[int]) -> dict[str, Any]:
    """Rolling that looks near or far, and O3M with short and long blocks."""
    O3M = {key: value for key, value in document["agent"]["O3M"].items() if key != "L"}
    agents = {
        "O3M": {**O3M, "grid": {"L": steps}},
        "Rolling": {**document["agent"]["Rolling"], "grid": {"ahead": steps}},
    }
    return {**document, "name": "rolling, ahead", "agent": agents}


def over_instances(document: dict[str, Any], envs: dict[str, lbm.LBM], quick: bool) -> dict[str, Any]:
    """The same agents on random instances, Auto, and two more to tell apart what they owe to what."""
    told = {"m": "env", "gamma": "env", "A0": "env"}
    more = {} if quick else {name: {**agent, **told} for name, agent in APART.items()}
    return {
        **document,
        "name": "rolling, instances",
        "T": STEPS,
        "seeds": min(RUNS, document["seeds"]) if not quick else 1,
        "env": environments(envs),
        "agent": {**document["agent"], **NOTHING, **more},
    }


def environments(envs: dict[str, lbm.LBM]) -> dict[str, dict[str, Any]]:
    """The tables of these problems in a study."""
    return {
        name: {
            "theta": env.theta.tolist(),
            "m": int(env.m),
            "gamma": env.gamma,
            "sigma": env.sigma,
            "A0": env.A0.tolist(),
        }
        for name, env in envs.items()
    }


# What they show.


def over_shapes(results: StudyResults, document: dict[str, Any]) -> dict[str, Found]:
    """The regret over d, m and gamma."""
    names = list(results.envs)
    cycles = best_cycles([results.envs[name] for name in names])
    best = {name: document["T"] * cycle.average for name, cycle in zip(names, cycles, strict=True)}
    grids = {name: table["grid"] for name, table in document["env"].items()}
    grids["d"] = {"d": [one["d"] for one in grids["d"]["random"]]}
    found = {}
    for over, grid in grids.items():
        mine = [name for name in names if name.startswith(f"{over}(")]
        found[over] = Found(
            np.array(grid[over]),
            {a: np.array([best[e] - rewards(results, a, e) for e in mine]) for a in document["agent"]},
        )
    return found


def along(results: StudyResults, cycle: float) -> Found:
    """The regret over T; an agent without a horizon has NaN there."""
    tables = {
        agent: rows.pivot(index="T", columns="seed", values="reward")
        for agent, rows in results.frame.groupby("agent", sort=False)
    }
    T = np.unique(results.frame["T"])
    return Found(
        T, {agent: T[:, None] * cycle - table.reindex(T).to_numpy() for agent, table in tables.items()}
    )


def shares(results: StudyResults, agent: str, cycle: float, steps: list[int]) -> Array:
    """(steps, runs): the share of the best cycle, by how far the agent looks."""
    key, T = ("L" if agent == "O3M" else "ahead"), int(results.frame["T"].max())
    found = [rewards(results, f"{agent}({key}={n})", "rotting") for n in steps]
    return np.array(found) / (cycle * T)


def of_instances(results: StudyResults, best: dict[str, float], T: int = STEPS) -> Found:
    """The share of the best cycle of every instance."""
    values = {
        agent: np.array([rewards(results, agent, name) / (T * best[name]) for name in best])
        for agent in results.frame["agent"].unique()
    }
    return Found(np.array([int(name) for name in best]), values)


def rewards(results: StudyResults, agent: str, env: str) -> Array:
    """Total expected reward of every run."""
    frame = results.frame
    return np.asarray(frame[(frame["agent"] == agent) & (frame["env"] == env)]["reward"])


# How it looks.


def draw(regrets: dict[str, Found], looked: dict[str, Found], random: Found, runs: int) -> Figure:
    """Above over T, over how far one looks and on the instances; below over d, m and gamma."""
    figure, axes = look.panels(3, height=4.9, rows=2)
    titles = {
        "T": (r"Figure 1, left: $d = 3$, $m = 2$, $\gamma = -3$", "horizon $T$"),
        "d": (r"$m = 2$, $\gamma = -3$, $T = 1200$", "$d$"),
        "m": (r"$d = 3$, $\gamma = -3$, $T = 1200$", "$m$"),
        "gamma": ("$d = 3$, $m = 2$, $T = 1200$", r"$\gamma$"),
    }
    for panel, (over, found) in zip((axes[0], *axes[3:]), regrets.items(), strict=True):
        for agent in (name for name in NAMES if name in found.values):
            there = np.isfinite(found.values[agent][:, 0])
            look.dots(panel, agent, found.x[there], found.values[agent][there], NAMES[agent])
        panel.set_xscale("log" if over == "T" else "linear")
        if over != "T":
            panel.set_xticks(found.x[np.abs(found.x) != 0.5], [f"{x:g}" for x in found.x if abs(x) != 0.5])
        look.finish(panel, *titles[over], "regret" if over in ("T", "d") else "")
    low, high = (f([panel.get_ylim() for panel in axes[3:]]) for f in (np.min, np.max))
    for panel in axes[3:]:
        panel.set_ylim(low, high)
    for agent, found in looked.items():
        _middle(axes[1], agent, found.x, found.values[agent])
    axes[1].set(xticks=looked["O3M"].x, ylim=(0.0, 1.03))
    look.finish(axes[1], "Figure 1, left: $T = 1200$", "$L$ of O3M, steps ahead of Rolling", SHARE)
    order = np.argsort(random.values["O3M"].mean(axis=1))
    for agent in (name for name in NAMES if name in random.values):
        share = random.values[agent].mean(axis=1)[order]
        shown = {**look.look(agent), "linestyle": "", "label": NAMES[agent]}
        axes[2].plot(np.arange(1, len(order) + 1), share, **shown)
    axes[2].set(xlim=(0, len(order) + 1), ylim=(0.0, 1.03))
    look.finish(axes[2], f"{len(order)} random instances, $T = {STEPS}$", "instance, by the share of O3M", "")
    handles = {line.get_label(): line for panel in (axes[2], axes[0]) for line in panel.get_lines()}
    figure.legend(
        [handles[words] for words in NAMES.values()], NAMES.values(), ncols=4, loc="outside upper center"
    )
    figure.supxlabel(f"regret: mean of {runs} runs, bands: smallest to largest", fontsize=look.SMALL)
    return figure


def _middle(axes: Axes, agent: str, x: Array, values: Array) -> None:
    """Means of values (settings, runs), with a band from the smallest to the largest."""
    axes.plot(x, values.mean(axis=1), **look.look(agent))
    color = look.LOOKS[agent].color
    axes.fill_between(x, values.min(axis=1), values.max(axis=1), color=color, alpha=0.25, linewidth=0)


# Tables and claims.


def lines(what: str, found: dict[str, Found]) -> list[tuple[Any, ...]]:
    """The numbers, one setting of one agent a line."""
    return [
        (what, over, x, agent, row.mean(), row.min(), row.max())
        for over, one in found.items()
        for agent, values in one.values.items()
        for x, row in zip(one.x, values, strict=True)
        if np.isfinite(row[0])
    ]


def tables(
    regrets: dict[str, Found],
    looked: dict[str, Found],
    random: Found,
    envs: dict[str, lbm.LBM],
    best: dict[str, float],
    runs: int,
) -> list[str]:
    """The same in words, as Markdown."""
    share = {agent: values.mean(axis=1) for agent, values in random.values.items()}
    summary = [
        (
            agent,
            mean(mine).text(3),
            f"{mine.min():.3f}",
            (mine > share["O3M"]).sum() if agent != "O3M" else "",
            (mine > share["OFUL"]).sum() if agent != "OFUL" else "",
        )
        for agent, mine in share.items()
    ]
    parts = [
        f"Share of the best cycle known on {len(envs)} random instances, T = {STEPS}, each the mean of "
        f"{random.values['O3M'].shape[1]} runs. O3M and OM without more words have L = 20, as in Figure 1, "
        "left; Rolling without more words estimates the noise; Auto and OFUL are told nothing, all others "
        "m, gamma and A0.",
        markdown(
            ("agent", "mean (95% interval)", "worst", "more than O3M on", "more than OFUL on"),
            summary,
        ),
        f"Regret against the best cycle known, mean of {runs} runs: Figure 1, left (d = 3, m = 2, "
        "gamma = -3, sigma = 0.1), over T, and around it at T = 1200:",
    ]
    agents = list(regrets["T"].values)
    rows = [
        (over, f"{x:g}", *(_cell(one.values[a][i]) if a in one.values else "" for a in agents))
        for over, one in regrets.items()
        for i, x in enumerate(one.x)
    ]
    parts.append(markdown(("over", "value", *agents), rows))
    parts.append("Share of the best cycle known on Figure 1, left, T = 1200, by how far one looks:")
    pairs = zip(*(looked[name].values[name].mean(axis=1) for name in looked), strict=True)
    columns = ("L of O3M, `ahead` of Rolling", *looked)
    parts.append(
        markdown(
            columns, [(n, *(f"{v:.3f}" for v in two)) for n, two in zip(looked["O3M"].x, pairs, strict=True)]
        )
    )
    rows = [
        (
            *(
                name,
                str(env.d),
                str(env.m),
                f"{env.gamma:g}",
                f"{env.sigma:g}",
                "I" if _plain(env) else "general",
            ),
            *(f"{value:.3f}" for value in (best[name], *(mine[i] for mine in share.values()))),
        )
        for i, (name, env) in enumerate(envs.items())
    ]
    columns = ("instance", "d", "m", "gamma", "sigma", "A0", "best cycle, a step", *share)
    return [*parts, "The instances one by one:", markdown(columns, rows)]


def _cell(regret: Array) -> str:
    return f"{regret.mean():.1f}" if np.isfinite(regret[0]) else ""


def easy(env: lbm.LBM) -> bool:
    """Whether an instance is for the quick form."""
    return env.d <= 4 and env.d * env.m <= 15 and _plain(env)


def _plain(env: lbm.LBM) -> bool:
    return bool(np.array_equal(env.A0, np.eye(env.d)))


def check(page: Page, horizons: Found, ahead: Found, random: Found, cycle: float) -> None:
    """What Rolling must show, and what the paper's defaults do not."""
    share = {agent: values.mean(axis=1) for agent, values in random.values.items()}
    page.claim("Rolling on instances", mean(share["Rolling"]), O3M=f"{share['O3M'].mean():.3f}")
    page.claim("Rolling and O3M", exact((share["Rolling"] > share["O3M"]).mean()))
    page.claim("Auto on instances", mean(share["Auto"]), O3M=f"{share['O3M'].mean():.3f}")
    worst = exact(share["Auto"].min())
    page.claim("Auto, worst instance", worst, run=f"{random.values['Auto'].min():.3f}")
    page.claim("Auto and O3M", exact((share["Auto"] > share["O3M"]).mean()))
    page.claim("noise estimated", ratio(share["Rolling"], share["Rolling, noise known"]))
    theory, OFUL = share["O3M, theory"], share["OFUL"]
    words = {"theory": f"{theory.mean():.3f}", "OFUL": f"{OFUL.mean():.3f}"}
    page.claim("Theorem 1's L and OFUL", exact((theory >= OFUL).mean()), **words)
    far = dict(zip(ahead.x, ahead.values["Rolling"], strict=True))
    page.claim("Rolling, Figure 1 left", mean(far[9]))
    page.claim("ahead", exact(np.ptp([far[n].mean() for n in (9, 15, 30)])))
    at = {agent: dict(zip(horizons.x, values, strict=True)) for agent, values in horizons.values.items()}
    rare: Number = mean(1.0 - at["Rolling, switch 1"][10**6] / (10**6 * cycle))
    page.claim("Rolling, switch = 1", rare)
    page.claim("regret of Rolling and O3M", ratio(at["Rolling"][10_000], at["O3M"][10_000]))
    T = [t for t in TS if t in at["O3M"] and 1000 <= t <= 10_000]
    page.claim("exponent of Rolling", exponent(T, np.array([at["Rolling"][t] for t in T])))
