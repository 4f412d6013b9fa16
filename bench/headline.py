"""`python -m bench headline`: what is asked of fastlbm's speed, and what this machine shows, in one table."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import fastlbm as lbm

from . import agents, growth, history, optimisers, startup, steps, yardsticks
from .learners import ROTTING, timed
from .problems import problem
from .rows import Row, at_least, at_most, for_readme, line, markdown, short, told
from .timing import loop, race

#: Steps a second and reward of the paper's published code at the same setting; it is not run here.
PUBLISHED = (28, 264)
#: The options that C gets beside -O3 -march=native.
TWO = yardsticks.TUNED[len(yardsticks.PLAIN) :]


def gradient() -> Iterator[Row]:
    """1: value and gradient at d=3, m=2, L=20, gamma=-3."""
    p = problem(3, 2, 20, -3.0)
    calls: dict[str, Callable[[int], object]] = {
        "ours": yardsticks.ours(p),
        "numpy": yardsticks.numpy(p),
        "eigh": yardsticks.eigh(p),
    }
    if jax := yardsticks.has_jax():
        calls["jit"] = yardsticks.jax_jit(p)
        calls["vmap"] = yardsticks.jax_vmap(p)
    if compiler := yardsticks.compiler():
        calls["C"] = yardsticks.plain_c(p)
        calls["tuned C"] = yardsticks.plain_c(p, yardsticks.TUNED)
    best = race(calls, rounds=40)
    ours = best["ours"]
    best["vmap"] = best.get("vmap", 0.0) / yardsticks.BATCH

    def beside(name: str) -> str:
        return f" ({best[name] * 1e6:,.3g} us, ours {ours * 1e6:.3g} us)"

    row = at_least(1, "value and gradient: NumPy / ours", 40, best["numpy"] / ours, note=beside("numpy"))
    what = "value and gradient of a block UCB, d=3, m=2, L=20"
    theirs = f"the same in NumPy: {short(best['numpy'] * 1e6)} us"
    yield row._replace(readme=(what, f"{ours * 1e6:.2g} us", theirs, short(best["numpy"] / ours)))
    yield told(
        1, "  its eigh alone / ours", f"{short(best['eigh'] / ours)}x{beside('eigh')}", best["eigh"] / ours
    )
    if jax:
        yield at_least(1, "  JAX jit / ours", 100, best["jit"] / ours, note=beside("jit"))
        yield at_least(1, "  JAX vmap(64) / ours", 25, best["vmap"] / ours, note=beside("vmap"))
    else:
        yield Row(1, "  JAX jit / ours", ">= 100x", "JAX is not installed")
        yield Row(1, "  JAX vmap(64) / ours", ">= 25x", "JAX is not installed")
    if compiler:
        yield at_most(1, "  ours / plain C, -O3 -march=native", 1.5, ours / best["C"], note=beside("C"))
        ratio = ours / best["tuned C"]
        yield told(1, f"  ... and {' '.join(TWO)}", f"{short(ratio)}x{beside('tuned C')}", ratio)
        long = problem(3, 2, 200, -3.0)
        best = race(
            {"ours": yardsticks.ours(long), "C": yardsticks.plain_c(long, yardsticks.TUNED)}, rounds=40
        )
        ratio = best["ours"] / best["C"]
        yield told(1, "  ... the same at L=200", f"{short(ratio)}x", ratio)
    else:
        yield Row(1, "  ours / plain C", "<= 1.5x", "there is no C compiler")


def plan() -> Iterator[Row]:
    """2: a cold plan beside SciPy's optimisers from the same starts."""
    races = [optimisers.race(p) for p in optimisers.problems()]
    methods = [min(r.scipy, key=lambda name: r.scipy[name]) for r in races]
    times = [r.scipy[name] / r.ours for r, name in zip(races, methods, strict=True)]
    worst = int(np.argmin(times))
    theirs, ours = races[worst].scipy[methods[worst]], races[worst].ours
    note = f" ({methods[worst]}: {theirs * 1e3:.0f} ms, ours {ours * 1e3:.2g} ms)"
    what = f"cold plan, {races[0].starts} starts: SciPy's best / ours, worst of {len(races)}"
    beside = f"SciPy's best optimiser with our gradient: {theirs * 1e3:.0f} ms"
    cold = "a cold plan to 99.9% of the best known, from the same starts"
    row = at_least(2, what, 20, times[worst], note=note)
    yield row._replace(readme=(cold, f"{ours * 1e3:.2g} ms", beside, short(times[worst])))
    yield at_least(2, "  share of the best value known, worst", 99.9, 100 * min(r.share for r in races), "%")
    for name in races[0].scipy:
        spent = [f"{1e3 * r.scipy[name]:,.0f}" for r in races]
        yield told(2, f"  {name}", f"{', '.join(spent)} ms")
    full = min(r.scipy[name] / r.full for r, name in zip(races, methods, strict=True))
    yield told(2, "  SciPy's best / ours with local moves as well", f"{short(full)}x", full)


def figure() -> Iterator[Row]:
    """3: O3M at the setting of the paper's Figure 1 left."""
    agent = lbm.O3M(m=2, gamma=-3.0, horizon=1218, L=20, delta=0.01)
    runs = [min((timed(agent, 1218, seed) for _ in range(3)), key=lambda pair: pair[0]) for seed in range(20)]
    rate = 1218 / float(np.mean([seconds for seconds, _ in runs]))
    mean = float(np.mean([run.reward[-1] for _, run in runs]))
    what = "O3M on the paper's Figure 1, left, T = 1218"
    theirs = f"published code: {PUBLISHED[0]} steps/s, {PUBLISHED[1]}"
    row = at_least(3, "O3M, Figure 1 left: steps a second, one core", 50_000, rate, "")
    ours = f"{round(rate, -3):,.0f} steps/s, reward {mean:.0f}"
    yield row._replace(readme=(what, ours, theirs, short(rate / PUBLISHED[0])))
    yield at_least(3, "  total expected reward, mean of 20 seeds", 700, mean, "")


def rarely() -> Iterator[Row]:
    """4: switch=1 beside drawing the noise alone."""
    T, piece = 10**7, np.empty(10**5)
    agent = lbm.O3M(2, -3.0, T, switch=1.0)
    rng = np.random.default_rng(0)

    def draw() -> None:
        for _ in range(T // len(piece)):
            rng.standard_normal(out=piece)

    lbm.run(ROTTING, agent, T=50)
    best = race({"run": loop(lambda: lbm.run(ROTTING, agent, T=T)), "draw": loop(draw)}, rounds=5)
    note = f" ({best['run']:.3g} s and {best['draw']:.3g} s)"
    ratio = best["run"] / best["draw"]
    row = at_most(4, "switch=1, T=10^7: time / drawing the noise", 6, ratio, note=note)
    theirs = f"drawing the noise alone: {best['draw']:.2g} s"
    yield row._replace(
        readme=("O3M with `switch=1`, T = 10^7", f"{best['run']:.2g} s", theirs, f"1/{ratio:.2g}")
    )


def grows() -> Iterator[Row]:
    """5: growth."""
    bare, bonus = (growth.measure(growth.find("d", f"with{x} the bonus")) for x in ("out", ""))
    yield at_most(5, "exponent of d without the bonus, d=8..64, A0=I", 1.1, bare.exponent, "")
    rest = [max(x - y, 1e-12) for x, y in zip(bonus.seconds, bare.seconds, strict=True)]
    share = growth.slope(bare.sizes, rest, 8)
    yield at_most(5, "  of what the bonus adds, V^-1 b", 2.1, share, "")
    sums = growth.measure(growth.find("m", "window sums, d=3"))
    grown = sums.seconds[-1] / sums.seconds[0]
    note = f" ({sums.seconds[0] * 1e9:.0f} and {sums.seconds[-1] * 1e9:.0f} ns)"
    yield at_most(5, "  a window at d=3: m=64 / m=4", 1.25, grown, note=note)
    for label in ("O3M", "O3M, switch=1"):
        found = growth.measure(growth.find("T", label)).exponent
        yield at_most(5, f"  exponent of T, episodes of {label}", 1.05, found, "")
    if growth.can_measure_peaks():
        first, last = growth.peaks((10**4, 10**7))
        note = f" of {first:,} KiB"
        yield at_most(5, "  memory: T=10^7 beyond T=10^4", 1024, last - first, " KiB", note)
    else:
        yield Row(5, "  memory: T=10^7 beyond T=10^4", "<= 1,024 KiB", "needs Linux")
    times = growth.threads()
    load = f" (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)" if hasattr(os, "getloadavg") else ""
    yield at_least(5, "  two threads / one", 1.7, times, note=load)


def starts(quick: bool) -> Iterator[Row]:
    """6: start-up in fresh processes."""
    found = startup.measure(quick)
    for name, bound in startup.ASKED.items():
        if name in found:
            row = at_most(6, f"start-up: {name}", bound, found[name], " s")
            if name == startup.COLD:
                warm = found["first run, warm"]
                ours, theirs = f"{found[name]:.0f} s", f"once it is compiled: {warm:.2g} s"
                ratio = f"1/{short(found[name] / warm)}"
                row = row._replace(readme=("a first run, nothing compiled yet", ours, theirs, ratio))
            yield row
        else:
            yield Row(6, f"start-up: {name}", f"<= {bound:g} s", "skipped by --quick")


def at_once() -> Iterator[Row]:
    """7: a step of 1,000 environments of Gymnasium at once, beside one after the other."""
    what = f"a step of {steps.COPIES:,} environments: "
    if not steps.has_gymnasium():
        yield Row(7, f"{what}NumPy / ours", ">= 20x", "Gymnasium is not installed")
        return
    best = steps.measure()
    ours = best["vector"]
    note = f" ({best['plain'] * 1e3:.3g} ms, ours {ours * 1e3:.2g} ms)"
    yield at_least(7, f"{what}NumPy / ours", 20, best["plain"] / ours, note=note)
    for name in ("single", "sync"):
        yield told(7, f"  {steps.LOOPS[name]} / ours", f"{short(best[name] / ours)}x", best[name] / ours)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="leave out what starts from an empty cache")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table to a JSON file as well")


def main(options: argparse.Namespace) -> int:
    if options.json is not None and not options.json.parent.is_dir():
        raise ValueError(f"--json must be in a folder that exists, got {str(options.json)!r}")
    machine = history.fingerprint()
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    print(f"  {'':52} {'asked':>12}  measured")
    rows: list[Row] = []
    parts = (gradient, plan, figure, rarely, grows, lambda: starts(options.quick), at_once)
    for part in (*parts, agents.rolling, agents.auto, agents.arms):
        for row in part():
            print(line(row), flush=True)
            rows.append(row)
    missed = [row.what.strip() for row in rows if row.ok is False]
    print(f"missed: {'; '.join(missed)}" if missed else "nothing missed")
    print(f"\nfor README.md:\n\n{for_readme(rows)}\n\nfor bench/README.md:\n\n{markdown(rows)}")
    if options.json is not None:
        table = {"machine": machine, "rows": [row._asdict() for row in rows]}
        options.json.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return 0
