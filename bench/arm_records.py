"""The best plans known of the sets of arms in `arms`: owns the file of their blocks, looks for better ones.

A value is always computed anew, exactly, from the block that is in the file.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import fastlbm as lbm
from fastlbm.kernels.arm_grounds import KEPT
from fastlbm.kernels.optimism import O3M, Belief
from fastlbm.planning.effort import round_arms
from fastlbm.planning.finite.rounds import find_by_rounds, poles_of
from fastlbm.planning.finite.states import Model

#: For each set of problems the blocks, as numbers of arms; none where nothing is known.
FILE = Path(__file__).with_name("arm_records.json")
#: A search takes so many times what a plan takes.
TIMES = 40.0

#: A problem, as arguments of `plan_block`.
Problem = dict[str, Any]


def read() -> dict[str, list[list[int]]]:
    """The blocks that are known."""
    found: dict[str, list[list[int]]] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return found


def value_of(p: Problem, block: list[int] | np.ndarray) -> float:
    """What a block of arms is worth; -inf for one without arms."""
    if len(block) == 0:
        return -np.inf
    rewards = {name: p[name] for name in ("m", "gamma", "theta")}
    rewards |= {"V_inv": p.get("V_inv", np.eye(p["d"])), "beta": p.get("beta", 0.0)}
    return float(lbm.block_ucb(p["actions"].arms[np.asarray(block)], **rewards)[0])


def long_search(p: Problem, seed: int) -> np.ndarray:
    """The block that a long search finds; every second one anneals whole blocks for most of its time.

    The others have as many islands more, where there are some.
    """
    model = Model(p["actions"].arms, m=p["m"], gamma=p["gamma"], A0=None)
    poles, n = poles_of(model), p["m"] + p["L"]
    if poles is None:
        indices = lbm.plan_block(**p, seed=seed).indices
        assert indices is not None
        return indices
    V_inv, beta = p.get("V_inv", np.eye(p["d"])), p.get("beta", 0.0)
    belief = Belief(theta=p["theta"], V_inv=V_inv, beta=beta, kind=O3M)
    nothing, rng = np.zeros((0, n), dtype=np.int64), np.random.default_rng([99, seed])
    effort = round_arms(model.d, model.m, model.K, n, poles=len(poles.shifts), bonus=beta > 0.0)
    effort = effort._replace(
        budget=TIMES * effort.budget,
        width=int(TIMES * effort.width),
        beam=TIMES * effort.beam,
        islands=min(int(TIMES * effort.islands), KEPT),
    )
    if seed % 2:
        effort = effort._replace(cycles=0.05, slow=0.95, width=0, islands=0)
    return find_by_rounds(model, belief, n, poles, nothing, rng, effort=effort)[0]


def search(sets: dict[str, list[Problem]], minutes: float) -> None:
    """Looks for better blocks, one problem after the other; each that is found is in the file at once."""
    end, seed = time.monotonic() + 60.0 * minutes, int(time.time())
    while True:
        for name, problems in sets.items():
            for i, p in enumerate(problems):
                if time.monotonic() > end:
                    return
                seed += 1
                blocks = read()
                known = blocks.setdefault(name, [[] for _ in problems])
                before, block = value_of(p, known[i]), long_search(p, seed)
                value = value_of(p, block)
                if value > before + 1e-9 * abs(before) or not known[i]:
                    known[i] = [int(k) for k in block]
                    write(blocks)
                    print(f"  {name} {i}: {value:.6f}, before {before:.6f}", flush=True)


def write(blocks: dict[str, list[list[int]]]) -> None:
    """The file, a block a line."""
    lines = (
        f' "{name}": [\n  ' + ",\n  ".join(json.dumps(block) for block in known) + "\n ]"
        for name, known in blocks.items()
    )
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
