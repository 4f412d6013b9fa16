"""The best plans known of sets of arms, and default plans beside them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fastlbm as lbm
from bench import arm_records, arms


def test_blocks_that_are_known_fit_their_problems() -> None:
    known = arm_records.read()
    assert set(known) == set(arms.SETS)
    for name, blocks in known.items():
        problems = arms.problems(name)
        assert len(blocks) == len(problems)
        for p, block in zip(problems, blocks, strict=True):
            assert len(block) == p["m"] + p["L"]
            assert min(block) >= 0
            assert max(block) < len(p["actions"].arms)
            assert np.isfinite(arm_records.value_of(p, block))


@pytest.mark.parametrize(
    ("name", "i"), [("first", 0), ("first", 1), ("first", 4), ("second", 2), ("third", 2)]
)
def test_default_plans_beside_them(name: str, i: int) -> None:
    p = arms.problems(name)[i]
    best = arm_records.value_of(p, arm_records.read()[name][i])
    plans = [lbm.plan_block(**p, seed=seed).value for seed in range(2)]
    assert min(plans) >= 0.98 * best
    assert max(plans) >= 0.99 * best


def test_searches_keep_what_is_better(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arm_records, "FILE", tmp_path / "records.json")
    monkeypatch.setattr(arm_records, "TIMES", 1.0)
    p = arms.problems("first")[0]
    assert arm_records.read() == {}
    arm_records.write({"one": [[0] * (p["m"] + p["L"])]})
    before = arm_records.value_of(p, arm_records.read()["one"][0])
    arm_records.search({"one": [p]}, 1e-3)
    after = arm_records.read()["one"][0]
    assert arm_records.value_of(p, after) > before
    # What is worse leaves the file alone.
    monkeypatch.setattr(arm_records, "long_search", lambda p, seed: np.zeros(len(after), dtype=int))
    arm_records.search({"one": [p]}, 1e-5)
    assert arm_records.read() == {"one": [after]}
    assert json.loads(arm_records.FILE.read_text()) == {"one": [after]}


def test_values_are_those_of_blocks() -> None:
    p = arms.problems("first")[2]
    plan = lbm.plan_block(**p, seed=3)
    assert plan.indices is not None
    assert arm_records.value_of(p, plan.indices) == pytest.approx(plan.value, rel=1e-12)
    assert arm_records.value_of(p, []) == -np.inf
