"""`python -m bench memories`: what a window of a memory that fades costs, and what it is worth to know it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

import fastlbm as lbm

from . import endless
from .problems import prepare, problem, repeat
from .timing import race

L, DECAY = 20, 0.8
#: d, gamma and whether A0 = I. In the last four a window of 8 has spectra of size 8, however large d is;
#: without an end there are matrices of size d, and no spectra of them are needed.
SHAPES = (
    (3, -3.0, True),
    (3, -1.7, True),
    (3, -3.0, False),
    (8, -3.0, True),
    (16, -3.0, False),
    (16, -3.0, True),
    (16, -1.7, True),
    (32, -3.0, True),
    (32, -1.7, True),
)
#: The instances without end: seed, d, gamma and decay.
INSTANCES = (
    (0, 3, -3.0, 0.7),
    (1, 2, -2.0, 0.8),
    (2, 4, -1.5, 0.6),
    (3, 3, -2.0, 0.9),
    (4, 5, -2.5, 0.7),
    (5, 2, -1.0, 0.5),
    (6, 3, -4.0, 0.8),
    (7, 4, -2.0, 0.9),
    (8, 3, -1.0, 0.75),
    (9, 6, -3.0, 0.6),
)
#: Those that end: seed, d, gamma, m and decay.
ENDING = (
    (10, 3, -3.0, 2, 0.7),
    (11, 2, -2.0, 4, 0.8),
    (12, 4, -1.5, 3, 0.6),
    (13, 3, -2.0, 8, 0.9),
    (14, 5, -2.5, 4, 0.5),
    (15, 2, -1.0, 6, 0.7),
    (16, 3, -4.0, 3, 0.8),
    (17, 4, -2.0, 12, 0.9),
    (18, 3, -1.0, 5, 0.75),
    (19, 3, 1.0, 4, 0.6),
)
T, WINDOWS = 3000, (1, 2, 3, 4, 5, 6)


def costs(d: int, gamma: float, isotropic: bool, lanes: int) -> dict[str, float]:
    """Nanoseconds a window, all in turns: m = 2 and 8 with and without a decay, and no end."""
    shapes = {f"{m}": problem(d, m, L, gamma, isotropic=isotropic) for m in (2, 8)}
    cases = {(f"m={m}", 1.0, False): p for m, p in shapes.items()}
    cases |= {(f"m={m} fading", DECAY, False): p for m, p in shapes.items()}
    cases[("m=inf fading", DECAY, True)] = shapes["8"]
    calls = {}
    for (name, decay, no_end), p in cases.items():
        e = prepare(p, lanes, decay, no_end)
        calls[name] = lambda times, e=e: repeat(*e, times)
    return {name: 1e9 * found / (L * lanes) for name, found in race(calls, rounds=40).items()}


def earned(
    seed: int, d: int, gamma: float, decay: float, m: float = math.inf
) -> tuple[float, float, float, float]:
    """What Rolling earns that knows all, Rolling with the window best in hindsight, Auto, the best cycle."""
    env = lbm.LBM.random(d=d, m=m, gamma=gamma, seed=seed, decay=decay)

    def total(agent: lbm.Rolling | lbm.Auto) -> float:
        return float(lbm.run(env, agent, T=T, seed=seed, record=1).reward[-1])

    knows = total(lbm.Rolling(m=m, gamma=gamma, decay=decay))
    window = max(total(lbm.Rolling(m=m, gamma=gamma)) for m in WINDOWS)
    return knows, window, total(lbm.Auto()), T * lbm.best_cycle(env).average


def main() -> None:
    """The tables: of costs, of costs without end beside m = 8, of what is earned."""
    print(f"ns a window, value and gradient, L={L}, decay {DECAY}; 1 block or 8 side by side")
    for d, gamma, isotropic in SHAPES:
        for lanes in (1, 8):
            ns = costs(d, gamma, isotropic, lanes)
            told = ", ".join(f"{name}: {value:.0f}" for name, value in ns.items())
            more = [ns[f"m={m} fading"] / ns[f"m={m}"] for m in (2, 8)]
            no_end = ns["m=inf fading"] / ns["m=8 fading"]
            shape = f"d={d} gamma={gamma:g} A0 {'= I' if isotropic else 'general'}, {lanes} side by side"
            print(f"  {shape}: {told}")
            print(f"    fading is {more[0]:.2f} (m=2) and {more[1]:.2f} (m=8) of a window; no end is")
            print(f"    {no_end:.2f} of m=8 that fades", flush=True)
    endless.main()
    warnings.simplefilter("ignore", RuntimeWarning)
    print(f"\nRolling and Auto on memories that fade without end, T={T}")
    compare([(seed, d, gamma, math.inf, decay) for seed, d, gamma, decay in INSTANCES])
    print(f"\nThe same on memories that fade and end, T={T}")
    compare(ENDING)


def compare(instances: Sequence[tuple[int, int, float, float, float]]) -> None:
    """One table: what is earned on instances (seed, d, gamma, m, decay)."""
    shares = []
    for seed, d, gamma, m, decay in instances:
        knows, window, auto, cycle = earned(seed, d, gamma, decay, m)
        shares.append((window / knows, auto / knows))
        print(
            f"  d={d} gamma={gamma:g} m={m:g} decay={decay:g}: told all {knows:.0f}, told gamma and the best "
            f"of the windows {WINDOWS[0]} to {WINDOWS[-1]} {window:.0f}, Auto {auto:.0f}, best cycle "
            f"{cycle:.0f}",
            flush=True,
        )
    window, auto = np.array(shares).T
    print(f"  share of what is told all: windows {window.mean():.3f} (largest {window.max():.3f}), ", end="")
    print(f"Auto {auto.mean():.3f} (smallest {auto.min():.3f})")
