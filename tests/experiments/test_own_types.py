"""Agents and environments of one's own in studies: killed, on processes and on Dask, changed, forged."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fastlbm as lbm
from fastlbm import cli
from fastlbm.experiments.grammar import StudyError
from fastlbm.experiments.own_types import OwnType
from fastlbm.experiments.report.data import gather
from fastlbm.running.own import OwnCodeError
from tests.experiments.test_study import DASK, LOOP, ROOT
from tests.own_example import MODULE, PlainModel, RidgeGreedy  # type: ignore[attr-defined]

TEXT = """
name = "own"
seed = 3
seeds = 4
T = [30, 60]
record = 6

[env.rotting]
theta = [0.6, 0.8]
m = 1
gamma = -2.0

[agent.ridge]
type = "own:RidgeGreedy"
[agent.ridge.grid]
explore = [0.1, 0.5]

[agent.oful]
type = "OFUL"
"""
#: The same with an environment that is not the built-in one.
PLAIN = TEXT.replace("[env.rotting]", '[env.plain]\ntype = "tests.own_example:PlainModel"')


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "own.py").write_text(MODULE)
    (folder / "small.toml").write_text(TEXT)
    return folder / "small.toml"


def pieces(out: Path) -> dict[str, int]:
    """The finished pieces of a study and when they were written."""
    return {p.name: p.stat().st_mtime_ns for p in (out / "pieces").glob("*.parquet")}


@pytest.mark.parametrize("text", [TEXT, PLAIN])
def test_a_file_gives_what_python_gives_on_any_workers(file: Path, tmp_path: Path, text: str) -> None:
    file.write_text(text)
    study = lbm.Study.from_toml(file)
    one = study.run(tmp_path / "one", executor=1, progress=False).frame
    three = study.run(tmp_path / "three", executor=3, progress=False).frame
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        there = study.run(tmp_path / "there", executor=pool, progress=False).frame
    pd.testing.assert_frame_equal(three, one, check_exact=True)
    pd.testing.assert_frame_equal(there, one, check_exact=True)
    env: Any = lbm.LBM([0.6, 0.8], 1, -2.0) if text == TEXT else PlainModel([0.6, 0.8], 1, -2.0)
    seed = np.random.SeedSequence(3, spawn_key=(2,))
    run = lbm.run(env, RidgeGreedy(explore=0.5), T=60, seed=seed, record=6)
    rows = one.query("agent == 'ridge(explore=0.5)' and T == 60 and seed == 2")
    np.testing.assert_array_equal(rows["observed"], run.observed)


def test_killed_and_resumed_nothing_is_lost(file: Path, tmp_path: Path) -> None:
    file.write_text(TEXT.replace("seeds = 4", "seeds = 30").replace("[30, 60]", "[200, 400]"))
    study, out = lbm.Study.from_toml(file), tmp_path / "out"
    whole = study.run(tmp_path / "whole", progress=False).frame
    there: dict[str, int] = {}
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", LOOP, str(file), str(out)])
        while process.poll() is None and len(pieces(out)) <= len(there):
            time.sleep(0.01)
        process.kill()
        assert process.wait() == -signal.SIGKILL  # in the middle of it
        assert there.items() < pieces(out).items()
        there = pieces(out)
    frame = study.run(out, progress=False).frame
    pd.testing.assert_frame_equal(frame, whole, check_exact=True)
    assert there.items() < pieces(out).items()


def test_a_dask_cluster_gives_the_same_though_its_workers_have_no_such_file(
    file: Path, tmp_path: Path
) -> None:
    """The text goes to them: they cannot import it, being started elsewhere; one of them is killed."""
    pytest.importorskip("distributed")
    script = tmp_path / "cluster.py"
    script.write_text(DASK)
    done = subprocess.run(
        [sys.executable, str(script), str(file), str(tmp_path / "dask")],
        timeout=300, capture_output=True, text=True,
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "the study is finished" in done.stdout, done.stderr
    study = lbm.Study.from_toml(file)
    here = study.run(tmp_path / "here", progress=False).frame
    pd.testing.assert_frame_equal(study.results(tmp_path / "dask").frame, here, check_exact=True)


MANY = """
import sys
import fastlbm as lbm
from distributed import Client, LocalCluster
from tests.own_example import RidgeGreedy

if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            env = lbm.LBM([0.6, 0.8], 1, -2.0)
            executor = client.get_executor(pure=False, retries=2)
            results = lbm.run_many(env, {"r": RidgeGreedy()}, T=60, seeds=4, executor=executor, record=6)
            results.frame.to_pickle(sys.argv[1])
"""


def test_many_runs_on_dask_are_those_of_threads(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    script, table = tmp_path / "many.py", tmp_path / "table.pkl"
    script.write_text(MANY)
    subprocess.run(
        [sys.executable, str(script), str(table)],
        timeout=300, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    here = lbm.run_many(lbm.LBM([0.6, 0.8], 1, -2.0), {"r": RidgeGreedy()}, T=60, seeds=4, record=6)
    pd.testing.assert_frame_equal(pd.read_pickle(table), here.frame, check_exact=True)


# --- what a row depends on ---------------------------------------------------------------------------------


def test_a_changed_class_or_argument_is_computed_anew_and_the_rest_is_kept(
    file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    before = lbm.Study.from_toml(file).run(out, progress=False).frame
    there = pieces(out)
    (file.parent / "own.py").write_text(MODULE.replace("np.eye(actions.d)", "2 * np.eye(actions.d)"))
    after = lbm.Study.from_toml(file).run(out, progress=False).frame
    new = pieces(out)
    assert there.items() <= new.items()
    assert len(new) == len(there) + 4  # two settings at two horizons, not OFUL
    same = before["reward"] == after["reward"]
    assert same[before["agent"] == "oful"].all()
    assert not same[before["agent"] == "ridge(explore=0.1)"].all()
    file.write_text(TEXT.replace("explore = [0.1, 0.5]", "explore = [0.1, 0.6]"))
    lbm.Study.from_toml(file).run(out, progress=False)
    assert len(pieces(out)) == len(new) + 2
    (file.parent / "own.py").write_text(MODULE)
    file.write_text(TEXT)
    back = lbm.Study.from_toml(file)
    pd.testing.assert_frame_equal(back.results(out).frame, before, check_exact=True)


def test_keys_hold_the_class_the_arguments_and_the_text(file: Path) -> None:
    def keys() -> set[str]:
        study = lbm.Study.from_toml(file)
        return {study.spec.key(cell) for cell in study.spec.cells if cell.agent_name != "oful"}

    first, other = keys(), file.parent / "own.py"
    other.write_text(MODULE + "\n# a comment\n")
    second = keys()
    other.write_text(MODULE + "\nclass Other(RidgeGreedy):\n    pass\n")
    third = keys()
    file.write_text(TEXT.replace("own:RidgeGreedy", "own:Other"))
    fourth = keys()
    assert len(first | second | third | fourth) == 4 * len(first)
    assert len(first) == 4


def test_results_are_read_without_the_file_and_without_running_it(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(PLAIN)
    out = tmp_path / "out"
    frame = lbm.Study.from_toml(file).run(out, progress=False).frame
    (file.parent / "own.py").unlink()
    file.unlink()
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["study"]["code"] == {"own": MODULE}
    pd.testing.assert_frame_equal(lbm.Study.from_results(out).results(out).frame, frame, check_exact=True)
    assert cli.main(["plot", str(out), "--kind", "reward"]) == 0
    assert cli.main(["plot", str(out), "--kind", "regret"]) == 2
    assert "regret must be that of an LBM" in capsys.readouterr().err
    # A forged folder is drawn, or not, but what it brings is not run.
    victim = tmp_path / "victim"
    manifest["study"]["code"]["own"] = f"open({str(victim)!r}, 'w')"
    manifest["study"]["agent"]["ridge"]["explore"] = "no number"
    del manifest["study"]["agent"]["ridge"]["grid"]
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.warns(UserWarning, match="not finished"):
        lbm.Study.from_results(out).results(out).summary()
    assert not victim.exists()
    # One who wants it run says so.
    again = lbm.Study.from_dict(
        {**manifest["study"], "code": {"own": MODULE}, "agent": {"a": {"type": "OFUL"}}}
    )
    assert len(again.spec.cells) == 2


def test_arguments_are_columns_and_the_manifest_has_them(file: Path, tmp_path: Path) -> None:
    file.write_text(PLAIN)
    results = lbm.Study.from_toml(file).run(tmp_path, progress=False)
    first = results.settings.iloc[0].to_dict()
    assert first["env_type"] == "tests.own_example:PlainModel"
    assert (first["env_m"], first["env_gamma"], first["env_theta"]) == (1, -2.0, "[0.6, 0.8]")
    assert not {"d", "m", "gamma", "actions"} & first.keys()
    by_agent = results.settings.groupby("agent", sort=False)[["agent_type", "agent_explore"]].first()
    assert by_agent["agent_type"].tolist() == ["own:RidgeGreedy", "own:RidgeGreedy", "OFUL"]
    np.testing.assert_array_equal(by_agent["agent_explore"], [0.1, 0.5, np.nan])
    assert len(results.plot(against="agent_explore").axes) == 2  # one for each horizon
    settings = json.loads((tmp_path / "manifest.json").read_text())["settings"]
    assert settings[0]["env_gamma"] == -2.0
    piece = next((tmp_path / "pieces").iterdir())
    assert pd.read_parquet(piece)["d"].unique().tolist() == [2]


def test_a_number_too_large_for_a_column_is_a_text(file: Path, tmp_path: Path) -> None:
    file.write_text(TEXT.replace("explore = [0.1, 0.5]", f"explore = [{2**64}]"))
    frame = lbm.Study.from_toml(file).run(tmp_path, progress=False).frame
    assert set(frame["agent_explore"].dropna()) == {str(2**64)}


def test_an_own_agent_meets_a_fresh_model_with_every_seed(file: Path, tmp_path: Path) -> None:
    file.write_text(TEXT.replace("theta = [0.6, 0.8]", "instances = {d = 2}"))
    study = lbm.Study.from_toml(file)
    results = study.run(tmp_path, progress=False)
    cell = next(c for c in study.spec.cells if c.agent_name == "ridge(explore=0.5)" and c.T == 60)
    models = [cell.model(number) for number in range(4)]
    for number, env in enumerate(models):
        seed = np.random.SeedSequence(3, spawn_key=(number,))
        alone = lbm.run(env, RidgeGreedy(explore=0.5), T=60, seed=seed, record=6)
        rows = results.frame.query("agent == 'ridge(explore=0.5)' and T == 60 and seed == @number")
        np.testing.assert_array_equal(rows["reward"], alone.reward)
    best = np.mean([lbm.opt_bounds(env, 60).upper for env in models])
    assert results.comparator("rotting", np.array([60]))[0] == pytest.approx(best)


BLIND = """
import numpy as np
import fastlbm as lbm

class Blind(lbm.OwnEnvironment):
    actions = lbm.Ball(2)
    def reset(self, seed):
        self.rng = np.random.default_rng(seed)
    def step(self, action):
        return float(action[0] + 0.1 * self.rng.standard_normal()), None
"""


def test_a_report_of_own_things_says_observed_and_runs_nothing_of_them(file: Path, tmp_path: Path) -> None:
    (file.parent / "blind.py").write_text(BLIND)
    file.write_text(TEXT + '[env.blind]\ntype = "blind:Blind"\n')
    lbm.Study.from_toml(file).run(tmp_path, progress=False)
    victim = tmp_path / "victim"
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    for name in ("own", "blind"):
        manifest["study"]["code"][name] += f"\nopen({str(victim)!r}, 'w')\n"
    assert cli.main(["report", str(tmp_path)]) == 0
    results = lbm.Study.from_results(tmp_path).results(tmp_path)
    assert (results.envs.keys(), sorted(results.frame["env"].unique())) == ({"rotting"}, ["blind", "rotting"])
    content = gather(results, progress=False)
    assert content["envs"]["blind"]["what"] == "cumulative observed reward"
    assert content["envs"]["rotting"]["what"] == "cumulative expected reward"
    assert set(content["envs"]["blind"]["curves"]["oful"]) == {"T", "t", "reward"}
    assert "opt" in content["envs"]["rotting"]["curves"]["oful"]
    assert any("blind has no regret: it is an environment of your own" in note for note in content["notes"])
    shown = [(row["env"], row["agent"], row["seed"]) for row in content["behaviour"]]
    assert shown == [("rotting", "oful", seed) for seed in range(len(shown))] != []
    assert "cumulative expected reward (observed in blind), mean" in results.latex()
    (axes,) = results.plot(envs={"blind": "mine"}).axes
    assert axes.get_ylabel() == "cumulative observed reward"
    assert results.plot("regret", envs=["rotting"]).axes
    # Neither does a forged folder get to run what it brings.
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    content = gather(lbm.Study.from_results(tmp_path).results(tmp_path), progress=False)
    assert any("the study is not finished" in note for note in content["notes"])
    assert not victim.exists()


def test_two_folders_may_have_files_of_one_name(tmp_path: Path) -> None:
    ends = []
    for scale in ("1e6", "1e-6"):
        folder = tmp_path / f"folder{scale}"
        folder.mkdir()
        (folder / "own.py").write_text(MODULE.replace("1e6", scale))
        (folder / "small.toml").write_text(TEXT)
        frame = lbm.Study.from_toml(folder / "small.toml").run(folder / "out", progress=False).frame
        ends.append(frame.query("agent == 'ridge(explore=0.1)'")["reward"].iloc[-1])
    assert abs(ends[0]) > 1e3 * abs(ends[1])


def test_threads_that_begin_at_once_run_the_text_once() -> None:
    """A second one that finds half a module would miss the class."""
    kind = OwnType("late:Late", "import time\ntime.sleep(0.3)\nclass Late:\n    pass\n")
    with ThreadPoolExecutor(4) as pool:
        found = [future.result() for future in [pool.submit(kind.load) for _ in range(4)]]
    assert len(set(found)) == 1


def test_a_file_may_import_what_lies_beside_it_and_take_the_horizon(file: Path, tmp_path: Path) -> None:
    (file.parent / "beside_it_lies.py").write_text("SHARE = 0.25\n")
    (file.parent / "own.py").write_text(
        MODULE + "\nfrom beside_it_lies import SHARE\n"
        "class Decays(RidgeGreedy):\n"
        "    def __init__(self, horizon, m):\n"
        "        super().__init__(SHARE + m / horizon)\n"
        "    def details(self):\n"
        "        return {'explore': self.explore}\n"
    )
    text = TEXT.replace('"own:RidgeGreedy"', '"own:Decays"\nm = "env"').replace(
        "[agent.ridge.grid]\nexplore = [0.1, 0.5]\n", ""
    )
    file.write_text(text)
    study = lbm.Study.from_toml(file)
    assert not study.run(tmp_path / "out", progress=False).missing
    cell = next(cell for cell in study.spec.cells if cell.agent_name == "ridge" and cell.T == 60)
    run = lbm.run(cell.env, cell.agent, T=5)
    assert run.details == {"explore": 0.25 + 1 / 60}


# --- mistakes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "where", "words"),
    [
        ("own:RidgeGreedy", "own:Missing", "agent.ridge.type", "must name a class, got own:Missing"),
        ("own:RidgeGreedy", "nowhere:RidgeGreedy", "agent.ridge.type", "ModuleNotFoundError"),
        ("own:RidgeGreedy", "own:", "agent.ridge.type", 'must be "module:Class"'),
        ("own:RidgeGreedy", "own:np", "agent.ridge.type", "must name a class"),
        ("own:RidgeGreedy", "Ridge", "agent.ridge.type", 'must be one of .* or "module:Class"'),
        ("explore = [0.1, 0.5]", "exlore = [0.1, 0.5]", "agent.ridge.grid.exlore", "is not a key here"),
        ("[agent.ridge.grid]\nexplore", "explore", "", ""),
        ("explore = [0.1, 0.5]", 'explore = ["much"]', "", ""),
        ("explore = [0.1, 0.5]", "explore = [2020-01-01]", "agent.ridge", "numbers, texts, lists and tables"),
        ("explore = [0.1, 0.5]", 'explore = ["env"]', "agent.ridge.grid.explore", 'cannot be "env"'),
        ("own:RidgeGreedy", "builtins:dict", "agent.ridge", "no signature found"),
    ],
)
def test_mistakes_in_the_file_are_told_with_their_line(
    file: Path, old: str, new: str, where: str, words: str
) -> None:
    file.write_text(TEXT.replace(old, new))
    if not words:  # what only the class could refuse, and does not until it acts
        assert lbm.Study.from_toml(file).spec.cells
        return
    with pytest.raises(StudyError, match=rf"small.toml:\d+: {where}: .*{words}"):
        lbm.Study.from_toml(file)


def test_mistakes_in_the_code_are_told(file: Path, tmp_path: Path) -> None:
    own = file.parent / "own.py"
    own.write_text(MODULE.replace("self.explore = explore", "self.explore = {}[explore]"))
    with pytest.raises(StudyError, match=r"agent.ridge: own:RidgeGreedy\(explore=0.1\) raised KeyError: 0.1"):
        lbm.Study.from_toml(file)
    own.write_text("class RidgeGreedy:\n    def __init__(self, explore): pass\n")
    with pytest.raises(StudyError, match=r"agent.ridge.*own:RidgeGreedy must be an agent such as O3M"):
        lbm.Study.from_toml(file)
    own.write_text("class RidgeGreedy(:\n")
    with pytest.raises(StudyError, match=r"agent.ridge.type: .* SyntaxError"):
        lbm.Study.from_toml(file)
    own.write_text(MODULE.replace("return self.a", "return self.a if self.V.trace() < 9 else 3"))
    study = lbm.Study.from_toml(file)
    with pytest.raises(OwnCodeError, match=r"step \d+: act\(\) of own:RidgeGreedy must return an action"):
        study.run(tmp_path / "out", progress=False)
    assert cli.main(["study", str(file), "--out", str(tmp_path / "out"), "--quiet"]) == 2
    file.write_text(PLAIN.replace("m = 1", 'm = "env"').replace("own:RidgeGreedy", "OFUL"))
    with pytest.raises(StudyError):
        lbm.Study.from_toml(file)


def test_an_own_environment_has_nothing_for_env(file: Path) -> None:
    file.write_text(PLAIN + 'subgaussian = "env"\n')
    with pytest.raises(
        StudyError, match=r'agent.oful.subgaussian: cannot be "env" in tests.own_example:Plain'
    ):
        lbm.Study.from_toml(file)


def test_code_must_be_texts() -> None:
    document = {"T": 5, "env": {"e": {"theta": [1.0]}}, "agent": {"a": {"type": "OFUL"}}, "code": {"own": 3}}
    with pytest.raises(StudyError, match="code: must be a table with the texts of modules"):
        lbm.Study.from_dict(document)
