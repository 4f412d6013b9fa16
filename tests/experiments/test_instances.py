"""Random instances: a fresh model for every seed, the same for all agents; averages paired by instance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastlbm as lbm
from fastlbm.experiments.grammar import StudyError, parse
from fastlbm.experiments.instances import Instances


def document(**changes: Any) -> dict[str, Any]:
    env = {"m": 1, "gamma": -2.0, "sigma": 0.1, "instances": {"d": 2}}
    return {
        "seed": 5, "seeds": 4, "T": [20, 40], "record": 4,
        "env": {"e": {**env, **changes}},
        "agent": {"greedy": {"type": "OracleGreedy"}, "oful": {"type": "OFUL", "subgaussian": "env"}},
    }  # fmt: skip


def test_every_seed_has_a_model_of_its_own_and_all_agents_meet_it(tmp_path: Path) -> None:
    study = lbm.Study.from_dict(document())
    frame = study.run(tmp_path, progress=False).frame
    for cell in study.spec.cells:
        for seed in range(4):
            env = cell.model(seed)
            assert (env.d, env.m, env.gamma, env.sigma) == (2, 1, -2.0, 0.1)
            assert np.linalg.norm(env.theta) == pytest.approx(1.0)
            stream = np.random.SeedSequence(5, spawn_key=(seed,))
            alone = lbm.run(env, cell.agent, cell.T, seed=stream, record=4)
            mine = frame.query("agent == @cell.agent_name and T == @cell.T and seed == @seed")
            np.testing.assert_array_equal(mine["reward"], alone.reward)
    thetas = {tuple(study.spec.cells[0].model(seed).theta) for seed in range(4)}
    assert len(thetas) == 4
    assert all(cell.model(2) == study.spec.cells[0].model(2) for cell in study.spec.cells)


def test_more_seeds_keep_the_instances_and_another_root_draws_others(tmp_path: Path) -> None:
    small = lbm.Study.from_dict(document()).run(tmp_path, progress=False).frame
    large = lbm.Study.from_dict({**document(), "seeds": 6}).run(tmp_path, progress=False).frame
    kept = large[large["seed"] < 4].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, small, check_exact=True)
    one, other = (parse({**document(), "seed": seed}).cells[0] for seed in (5, 6))
    assert one.model(0) != other.model(0)


@given(st.integers(0, 2**40), st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 5))
def test_an_instance_depends_on_the_root_and_the_number_alone(root: int, number: int, d: int, K: int) -> None:
    like = lbm.LBM.random(d=d, m=1, gamma=-1.0)
    one = Instances(like, arms=K, root=root).draw(number)
    assert one == Instances(like, arms=K, root=root).draw(number)
    assert one.theta.tolist() == Instances(like, arms=None, root=root).draw(number).theta.tolist()
    assert one.actions.arms.shape == (K, d)  # type: ignore[attr-defined]
    np.testing.assert_allclose(np.linalg.norm(one.actions.arms, axis=1), 1.0)  # type: ignore[attr-defined]


def test_arms_are_fresh_if_asked_and_kept_if_given() -> None:
    cell = parse(document(instances={"d": 2, "arms": 3})).cells[0]
    assert cell.model(0).actions != cell.model(1).actions
    cell = parse(document(actions={"finite": [[1.0, 0.0], [0.0, 1.0]]})).cells[0]
    assert cell.model(0).actions == cell.model(1).actions == lbm.Finite(np.eye(2))


def test_keys_tell_instances_from_one_model() -> None:
    def key(**changes: Any) -> str:
        spec = parse(document(**changes))
        return spec.key(spec.cells[0])

    arms = parse(document(instances={"d": 2, "arms": 3})).cells[0].model(0).actions
    first = parse(document()).cells[0].env
    plain = document()
    plain["env"]["e"] = {"theta": first.theta.tolist(), "m": 1, "gamma": -2.0, "sigma": 0.1}
    spec = parse(plain)
    keys = [key(), key(instances={"d": 2, "arms": 3}), key(instances={"d": 3}), spec.key(spec.cells[0])]
    keys.append(key(actions={"finite": arms.arms.tolist()}))  # type: ignore[attr-defined]
    assert len(set(keys)) == 5


def test_regret_is_that_of_each_instance(tmp_path: Path) -> None:
    """Rising: what is best differs with theta and arms, so that one comparator would serve none of them."""
    study = lbm.Study.from_dict(document(gamma=1.0, instances={"d": 2, "arms": 3}))
    results = study.run(tmp_path, progress=False)
    opt = {s: lbm.opt_bounds(study.spec.cells[0].model(s), 40).upper for s in range(4)}
    assert len(set(opt.values())) == 4
    last = results.frame.query("agent == 'oful' and t == 40 and T == 40")
    regrets = np.array([opt[s] for s in last["seed"]]) - last["reward"].to_numpy()
    (axes,) = results.plot("regret", agents=["oful"], band="none").axes
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(regrets.mean())
    (axes,) = results.plot("regret", agents=["oful"], against="T").axes
    assert axes.containers[0].lines[0].get_ydata()[-1] == pytest.approx(regrets.mean())
    steps = np.array([40])
    assert results.comparator("e", steps, seed=2)[0] == opt[2]
    assert results.comparator("e", steps)[0] == pytest.approx(np.mean(list(opt.values())))
    # Paired by instance: the interval of the mean is that of rewards, the test that of differences.
    assert results.summary()["seeds"].tolist() == [4] * 4


def test_the_manifest_does_not_claim_one_theta(tmp_path: Path) -> None:
    lbm.Study.from_dict(document()).run(tmp_path, progress=False)
    for mine in json.loads((tmp_path / "manifest.json").read_text())["settings"]:
        assert (mine["theta"], mine["instances"], mine["d"]) == (None, "one for each seed", 2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"theta": [1.0, 0.0]}, "env.e: must have one of theta, random = "),
        ({"random": {"d": 2}}, "env.e: must have one of theta, random = "),
        ({"instances": 3}, r"env.e.instances: must be \{d = ..., arms = ...\}, got 3"),
        ({"instances": {"d": 2, "seed": 1}}, "env.e.instances.seed: is not a key here; allowed are d, arms"),
        ({"instances": {"d": 0}}, "env.e.instances.d: d must be an integer"),
        ({"instances": {"d": 2, "arms": 0}}, "env.e.instances.arms: arms must be an integer"),
        (
            {"instances": {"d": 1, "arms": 2}, "actions": {"finite": [[1.0]]}},
            "env.e.instances.arms: must not be there with actions as well",
        ),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        parse(document(**changes))
