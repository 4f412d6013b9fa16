"""State files that nobody saved: refused when they are loaded, before they cost memory, time or a crash."""

from __future__ import annotations

import hashlib
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlbm as lbm
from fastlbm.running import state_file

PAIRS = [(0, 0.0), (1, -2.0)]
AGENTS: dict[str, lbm.agents.Agent] = {
    "O3M": lbm.O3M(1, -2.0, 100, L=3),
    "OMBlock": lbm.OMBlock(1, -1.0, 100, L=3),
    "Doubling": lbm.Doubling(lbm.O3M(1, -1.0, 8, L=3)),
    "EvidenceSelector": lbm.EvidenceSelector(PAIRS, 100, L=3),
    "BanditCombiner": lbm.BanditCombiner(PAIRS, 100, L=3),
    "Corral": lbm.Corral(PAIRS, 100, L=3),
    "RegretBalancing": lbm.RegretBalancing(PAIRS, 100, L=3),
}
Change = Callable[[dict[str, Any], dict[str, np.ndarray]], None]


def saved(name: str, path: Path) -> lbm.Live:
    """A policy that misses a reward now and then, and its file."""
    live = AGENTS[name].start(lbm.Ball(2), seed=4)
    for t in range(18):
        live.act()
        if t % 5 != 3:
            live.update(0.1 * (t % 3))
    live.save(path)
    return live


def forge(path: Path, change: Change) -> None:
    """Change a file and its digest."""
    header, arrays = state_file.read_state(path)
    change(header, arrays)
    del header["digest"]
    state_file.write_state(path, header, arrays)


def put(name: str, index: Any, value: float) -> Change:
    def change(_: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays[name][index] = value

    return change


def rename(old: str, new: str) -> Change:
    def change(_: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        name = next(name for name in arrays if name.startswith(old))
        arrays[new] = arrays.pop(name)

    return change


def tell(key: str, value: Any) -> Change:
    return lambda header, _: header.update({key: value})


FORGERIES: dict[str, tuple[str, Change]] = {
    "position": ("O3M", put("block.counters", 0, 77)),
    "negative position": ("O3M", put("block.counters", 0, -1)),
    "passes": ("O3M", put("block.counters", 2, -5)),
    "step": ("O3M", put("block.counters", 3, -(2**60))),
    "an action of the length 1e200": ("O3M", put("block.actions", (0, 0), 1e200)),
    "NaN": ("O3M", put("estimator.theta", 0, np.nan)),
    "member": ("BanditCombiner", put("chosen", 0, 7)),
    "a member's position": ("BanditCombiner", put("1.block.counters", 0, 99)),
    "nobody active": ("RegretBalancing", put("active", slice(None), 0.0)),
    "a probability below 0": ("Corral", put("p", 0, -0.5)),
    "probabilities above 1": ("Corral", put("p", slice(None), 0.9)),
    "a rate of 0": ("Corral", put("rates", 1, 0.0)),
    "a block that is old twice": ("Corral", put("again", 0, 2)),
    "an old block that nobody planned": ("Corral", put("seen", slice(None), 0)),
    "an old action of the length 1e200": ("Corral", put("0.old.blocks", (0, 0, 0), 1e200)),
    "epoch": ("Doubling", tell("policy", [60, 8 * (2**60 - 1), 3])),
    "an epoch of 400 digits": ("Doubling", tell("policy", [10**400, 8, 3])),
    "an epoch at another step": ("Doubling", tell("policy", [1, 9, 2])),
    "a cursor that is none": ("Doubling", tell("policy", "ten")),
    "a block of 10^13 actions": ("EvidenceSelector", tell("policy", [10**13])),
    "generator": ("O3M", tell("generator", {"bit_generator": "PCG64", "state": {"state": -(10**90)}})),
    "a plan of no steps": ("O3M", rename("pending.plan.16", "pending.plan.16.0.0.0")),
    "a plan in the future": ("O3M", rename("pending.plan.16", "pending.plan.1000000000000000.4.1.0")),
    "a plan by nobody": ("BanditCombiner", rename("pending.plan.", "pending.plan.0.4.1.9")),
    "a reward of the future": ("O3M", put("pending.steps", -1, 10**15)),
    "another present plan": ("O3M", put("pending.current", 0, 5)),
    "the last actions": ("O3M", put("live.recent", (0, 0), 5.0)),
    "infinite last actions": ("O3M", put("live.recent", (0, 0), np.inf)),
    "more last actions": ("O3M", lambda _, arrays: arrays.update({"live.recent": np.zeros((7, 2))})),
    "arms that were offered": ("O3M", tell("offered", True)),
    "a negative number of plans": ("O3M", tell("plans", -1)),
    "an action of another dimension": (
        "O3M",
        lambda _, arrays: arrays.update({"pending.window.3": np.zeros((2, 3))}),
    ),
    "an action that nobody waits for": (
        "O3M",
        lambda _, arrays: arrays.update({"pending.window.16": np.zeros((2, 2))}),
    ),
    "an action of NaN": (
        "O3M",
        lambda _, arrays: arrays.update({"pending.window.13": np.full((2, 2), np.nan)}),
    ),
    "features of another shape": (
        "O3M",
        lambda _, arrays: arrays.update(
            {n: np.zeros((3, 9)) for n in arrays if n.startswith("pending.plan.")}
        ),
    ),
    "rewards of another block": (
        "OMBlock",
        lambda _, arrays: arrays.update({"pending.block.16": np.zeros(9)}),
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_file_is_refused(name: str, tmp_path: Path) -> None:
    kind, change = FORGERIES[name]
    live = saved(kind, tmp_path / "state")
    assert AGENTS[kind].start(lbm.Ball(2)).load(tmp_path / "state").t == 18
    forge(tmp_path / "state", change)
    with pytest.raises(ValueError, match=r"^path must be"):
        live.load(tmp_path / "state")
    live.act()
    assert live.t == 19


def test_a_file_that_grows_when_it_is_read_is_refused_before(tmp_path: Path) -> None:
    saved("O3M", tmp_path / "state")
    bomb = tmp_path / "bomb"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file, file.open("header.npy", "w") as entry:
        for _ in range(200):
            entry.write(bytes(2**20))
    assert bomb.stat().st_size < 2**20
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="would take more than the"):
            AGENTS["O3M"].start(lbm.Ball(2)).load(bomb)
        assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", ["(1000000000000000,)", "(-8,)", "(4294967296, 4294967296)", "(2, 3)"])
def test_a_shape_that_is_not_there_is_refused(shape: str, tmp_path: Path) -> None:
    words = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + len(words).to_bytes(2, "little") + words.encode() + bytes(64)
    with zipfile.ZipFile(tmp_path / "state", "w") as file:
        file.writestr("header.npy", content)
    with pytest.raises(ValueError, match=r"^path must be a state file of a live policy"):
        AGENTS["O3M"].start(lbm.Ball(2)).load(tmp_path / "state")


def test_a_folder_and_a_deep_header_are_no_states(tmp_path: Path) -> None:
    deep = np.frombuffer(("[" * 10**5).encode(), dtype=np.uint8)
    np.savez(tmp_path / "deep.npz", header=deep)
    for path in (tmp_path, tmp_path / "deep.npz"):
        with pytest.raises(ValueError, match=r"^path must be a state file of a live policy"):
            AGENTS["O3M"].start(lbm.Ball(2)).load(path)


def test_forged_offers_and_catalogues_are_refused(tmp_path: Path) -> None:
    arms = np.eye(2)
    live = lbm.Rolling(1, -2.0).start(lbm.Finite(arms))
    path = live.save(tmp_path / "state")
    forge(path, put("block.counters", 5, 99))
    with pytest.raises(ValueError, match=r"^path must be"):  # also where plans are made anew
        lbm.Rolling(1, -2.0).start(lbm.Finite(arms[:1])).load(path)
    live.act(arms)
    for change in (
        put("offers.count", 0, -1),
        put("offers.pool", (0, 0), 9.0),
        put("live.recent", 0, np.inf),
    ):
        live.save(path)
        forge(path, change)
        with pytest.raises(ValueError, match=r"^path must be"):
            lbm.Rolling(1, -2.0).start(lbm.Finite(arms)).load(path)


def test_forged_bytes_are_refused() -> None:
    agent = lbm.OFUL(100)
    live = agent.start(lbm.Ball(2))
    live.act()
    header, arrays = state_file.unpack_state(live.to_bytes())

    def packed(text: str) -> bytes:
        parts = state_file.MAGIC + len(text).to_bytes(4, "little") + text.encode()
        return parts + hashlib.sha256(parts).digest()

    listed = '{"version": 3, "arrays": [["x", %s, %s]]}'
    for data, words in (
        (packed("{"), "got bytes that are none"),
        (packed("[]"), "got bytes that are none"),
        (packed('{"arrays": 7}'), "got bytes that are none"),
        (packed(listed % ('"O"', "[1]")), "an array of type 'O'"),
        (packed(listed % ('"<f8"', "[1000000000000]")), "no room for an array"),
        (packed(listed % ('"<f8"', "[-1]")), "an array of type"),
        (packed(listed % ('"<f8"', "[]")), "no room for an array"),
        (packed('{"version": 2, "arrays": []}'), "data must be a state of version 4, got version 2"),
        (state_file.pack_state(header, {**arrays, "more": np.zeros(2)}), "an array that no policy has"),
        (state_file.pack_state({**header, "generator": 1}, arrays), "data must be an undamaged state"),
    ):
        with pytest.raises(ValueError, match=r"^data must be") as caught:
            live.from_bytes(data)
        assert words in str(caught.value)
    assert agent.start(lbm.Ball(2)).from_bytes(state_file.pack_state(header, arrays)).t == 1
