"""`python -m bench kernels`: the cost of value and gradient beside `numpy.linalg.eigh`, and how it grows."""

from __future__ import annotations

from .problems import Problem, eigh_seconds, problem, seconds_per_window

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


def main() -> None:
    """The table of the promises, then the growth in d, m and L."""
    print(f"{'value + gradient, one window':32} {'ns':>8} {'eigh ns':>9} {'eigh/ours':>10} {'promised':>9}")
    for label, p, promised in HEADLINES:
        ours, yardstick, times = ratio(p)
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
