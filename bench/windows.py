"""`python -m bench kernels`: the cost of value and gradient beside `numpy.linalg.eigh`, and how it grows."""

from __future__ import annotations

import fastlbm as lbm

from .problems import Problem, eigh_seconds, problem, seconds_per_window
from .timing import fastest

#: What is promised of one window at L = 20: (label, problem, at most this share of an eigh of its matrix).
HEADLINES = (
    ("d=3 m=2 gamma=-3   A0=I", problem(3, 2, 20, -3.0), 25),
    ("d=3 m=2 gamma=-2.5 A0=I", problem(3, 2, 20, -2.5), 12),
    ("d=3 m=2 gamma=-3   A0 general", problem(3, 2, 20, -3.0, isotropic=False), 7),
    ("d=50 m=2 gamma=-3  A0=I", problem(50, 2, 20, -3.0), 80),
)


def ratio(p: Problem, rounds: int = 3) -> tuple[float, float, float]:
    """Seconds a window, seconds an eigh, and their ratio: the median of interleaved rounds."""
    pairs = sorted(
        ((seconds_per_window(p), eigh_seconds(p)) for _ in range(rounds)), key=lambda x: x[1] / x[0]
    )
    ours, yardstick = pairs[rounds // 2]
    return ours, yardstick, yardstick / ours


#: The same of a window inside of `plan_block`, per evaluation that the plan counts: (d, promised).
PLANS = ((3, 25), (50, 80))


def plan_ratio(d: int, beta: float, L: int = 20, rounds: int = 3) -> tuple[float, float, float]:
    """`ratio` for a window inside of a cold plan with m=2, gamma=-3: its time over evaluations times L."""
    p = problem(d, 2, L, -3.0)
    asked = {"d": d, "m": 2, "gamma": -3.0, "L": L, "theta": p.theta, "V_inv": p.V_inv, "beta": beta}
    work = lbm.plan_block(**asked).evaluations * L  # type: ignore[arg-type]
    pairs = sorted(
        ((fastest(lambda: lbm.plan_block(**asked)) / work, eigh_seconds(p)) for _ in range(rounds)),  # type: ignore[arg-type]
        key=lambda x: x[1] / x[0],
    )
    ours, yardstick = pairs[rounds // 2]
    return ours, yardstick, yardstick / ours


def main() -> None:
    """The tables of the promises, then the growth in d, m and L."""
    print(f"{'value + gradient, one window':32} {'ns':>8} {'eigh ns':>9} {'eigh/ours':>10} {'promised':>9}")
    for label, p, promised in HEADLINES:
        ours, yardstick, times = ratio(p)
        print(f"{label:32} {ours * 1e9:8.1f} {yardstick * 1e9:9.0f} {times:10.1f} {promised:9d}")
    for d, promised in PLANS:
        for beta in (0.0, 1.5):
            ours, yardstick, times = plan_ratio(d, beta)
            label = f"inside a plan, d={d} beta={beta:g}"
            print(f"{label:32} {ours * 1e9:8.1f} {yardstick * 1e9:9.0f} {times:10.1f} {promised:9d}")
    growth = (
        ("d", [(d, problem(d, 2, 20, -3.0)) for d in (2, 3, 4, 8, 16, 32, 64)]),
        ("d, A0 general", [(d, problem(d, 2, 20, -3.0, isotropic=False)) for d in (2, 3, 4, 8, 16, 32, 64)]),
        ("m, d=16", [(m, problem(16, m, 20, -3.0)) for m in range(1, 9)]),
        ("m, d=3", [(m, problem(3, m, 20, -3.0)) for m in range(1, 9)]),
        ("L", [(L, problem(3, 2, L, -3.0)) for L in (1, 2, 5, 10, 20, 50, 100, 200)]),
        ("gamma", [(g, problem(3, 2, 20, g)) for g in (-4.0, -3.0, -2.5, -1.0, 0.5, 1.0, 2.0, 3.7)]),
    )
    for name, cases in growth:
        print(f"\nns a window against {name} (else d=3, m=2, L=20, gamma=-3, A0=I)")
        print("  ".join(f"{value:g}: {seconds_per_window(p) * 1e9:.0f}" for value, p in cases))
