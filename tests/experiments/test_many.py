"""Many runs: any workers and any order give the same, and Ctrl-C keeps what is finished."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fastlbm as lbm
from fastlbm._base.pool import Pool
from fastlbm.experiments import many
from tests.agents.test_learners import ROTTING, SETS, THETA, agents


def test_frames_do_not_depend_on_workers_or_order() -> None:
    env = lbm.LBM(THETA, m=2, gamma=-3.0)
    some = {name: agent for name, agent in agents(200).items() if name != "OMBlock"}
    frames = [lbm.run_many(env, some, T=200, seeds=5, executor=count, record=20).frame for count in (1, 2, 8)]
    frames.append(lbm.run_many(env, some, T=200, seeds=[4, 0, 3, 1, 2], record=20).frame)
    with ThreadPoolExecutor(3) as pool:
        frames.append(lbm.run_many(env, some, T=200, seeds=5, executor=pool, record=20).frame)
    for frame in frames[1:]:
        pd.testing.assert_frame_equal(frame, frames[0], check_exact=True)
    assert list(frames[0].columns) == ["agent", "seed", "t", "reward", "observed"]
    assert len(frames[0]) == len(some) * 5 * 20
    alone = lbm.run(env, some["O3M"], T=200, seed=3, record=20)
    rows = frames[0].query("agent == 'O3M' and seed == 3")
    np.testing.assert_array_equal(rows["observed"], alone.observed)
    np.testing.assert_array_equal(rows["t"], alone.t)


def test_processes_serve_as_well() -> None:
    env = lbm.LBM(THETA, m=2, gamma=-3.0, actions=SETS["finite"])
    two = {"oful": lbm.OFUL(50), "greedy": lbm.OracleGreedy()}
    here = lbm.run_many(env, two, T=50, seeds=2, record=5).frame
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        there = lbm.run_many(env, two, T=50, seeds=2, executor=pool, record=5, progress=True).frame
    pd.testing.assert_frame_equal(there, here, check_exact=True)


def test_interrupted_runs_keep_what_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = lbm.run_many(ROTTING, {"a": lbm.OracleGreedy()}, T=100, seeds=6, executor=1, record=10)
    real = Pool.completed

    def interrupted(self: Pool, *arguments: Any, **keywords: Any) -> Iterator[Any]:
        for k, finished in enumerate(real(self, *arguments, **keywords)):
            if k == 2:
                raise KeyboardInterrupt
            yield finished

    monkeypatch.setattr(Pool, "completed", interrupted)
    with pytest.warns(RuntimeWarning, match="interrupted with 2 of 6"):
        results = lbm.run_many(ROTTING, {"a": lbm.OracleGreedy()}, T=100, seeds=6, executor=1, record=10)
    assert not results.complete
    assert whole.complete
    assert len(results.runs) == 2
    kept = whole.frame[whole.frame["seed"].isin(results.frame["seed"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(results.frame, kept, check_exact=True)
    assert len(results.frame) == 20


def test_interrupted_runs_are_compared_by_the_seeds_that_all_agents_have() -> None:
    two = {"greedy": lbm.OracleGreedy(), "still": lbm.Cyclic([[1.0, 0.0, 0.0]])}
    whole = lbm.run_many(ROTTING, two, T=60, seeds=3, record=6)
    runs = {key: run for key, run in whole.runs.items() if key != ("still", 1)}
    with pytest.warns(UserWarning, match="1 runs are missing, 1 of them of still"):
        summary = many.Results(runs, ROTTING, complete=False).summary()
    assert summary["seeds"].tolist() == [2, 2]
    ends = [whole.runs["greedy", seed].reward[-1] for seed in (0, 2)]
    assert summary["mean"][0] == pytest.approx(np.mean(ends))


@pytest.mark.parametrize("T", [2**63, 2**53 + 1])
def test_horizons_beyond_all_integers_are_refused(T: int) -> None:
    with pytest.raises(ValueError, match="T must be an integer from 1 to 9007199254740992, got"):
        lbm.run_many(ROTTING, {"a": lbm.OracleGreedy()}, T=T, seeds=1)


def test_ctrl_c_while_compiling_ends_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(many, "play_episode", interrupted)
    with pytest.warns(RuntimeWarning, match="interrupted with 0 of 3"):
        results = lbm.run_many(ROTTING, {"a": lbm.OracleGreedy()}, T=10, seeds=3)
    assert not results.complete
    assert results.frame.empty
    with pytest.raises(ValueError, match="runs must hold at least one finished run"):
        results.summary()


def test_the_title_of_a_plot_has_the_decay() -> None:
    env = lbm.LBM([0.6, 0.8], m=2, gamma=-2.0, decay=0.5)
    results = lbm.run_many(env, {"greedy": lbm.OracleGreedy()}, T=20, seeds=2, record=5)
    (axes,) = results.plot().axes
    assert axes.get_title().replace("\n", " ") == "d=2, m=2, gamma=-2, decay=0.5, sigma=0.1"


def test_a_summary_shows_its_means_on_a_narrow_terminal() -> None:
    results = lbm.run_many(ROTTING, {"OracleGreedy": lbm.OracleGreedy()}, T=1200, seeds=2, record=1)
    with pd.option_context("display.width", 80):
        first = repr(results.summary()).splitlines()[0]
    assert first.split() == ["T", "agent", "mean", "low", "high", "seeds", "p_vs_best"]


def test_summary_and_plot_are_those_of_a_study_with_one_environment() -> None:
    two = {"greedy": lbm.OracleGreedy(), "still": lbm.Cyclic([[1.0, 0.0, 0.0]])}
    results = lbm.run_many(ROTTING, two, T=60, seeds=3, record=6)
    summary = results.summary()
    assert list(summary) == ["T", "agent", "mean", "low", "high", "seeds", "p_vs_best"]
    assert summary[["T", "agent", "seeds"]].values.tolist() == [[60, "greedy", 3], [60, "still", 3]]
    assert summary["mean"][1] == pytest.approx(results.runs["still", 0].reward[-1])
    figure = results.plot("regret", "oracle greedy", band="none")
    greedy, still = figure.axes[0].lines
    assert (greedy.get_label(), still.get_label()) == ("greedy", "still")
    np.testing.assert_allclose(greedy.get_ydata(), 0.0, atol=1e-12)
    np.testing.assert_array_equal(still.get_xdata(), [10, 20, 30, 40, 50, 60])


def test_progress_counts_the_steps_of_all_runs(capsys: pytest.CaptureFixture[str]) -> None:
    lbm.run_many(ROTTING, {"a": lbm.OracleGreedy()}, T=100, seeds=2, progress=True)
    assert "200/200" in capsys.readouterr().err


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"agents": {}}, TypeError, "agents must map names"),
        ({"agents": [lbm.OracleGreedy()]}, TypeError, "agents must map names"),
        ({"agents": {"x": 3}}, TypeError, r"agents\['x'\] must be an agent"),
        ({"agents": {"x": lbm.O3M(2, -1.0, 2)}}, ValueError, "horizon must hold a block"),
        ({"seeds": 0}, ValueError, "seeds must be"),
        ({"seeds": [1, 1]}, ValueError, "seeds must be distinct"),
        ({"seeds": []}, ValueError, "seeds must be distinct"),
        ({"executor": "threads"}, TypeError, "executor must be"),
        ({"executor": 0}, ValueError, "executor must be"),
    ],
)
def test_bad_arguments_are_refused(changes: dict[str, object], error: type[Exception], words: str) -> None:
    arguments: dict[str, object] = {"env": ROTTING, "agents": {"g": lbm.OracleGreedy()}, "T": 10}
    with pytest.raises(error, match=words):
        lbm.run_many(**{**arguments, **changes})  # type: ignore[arg-type]


def test_a_plot_takes_the_axes_of_others() -> None:
    from matplotlib.figure import Figure

    env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    runs = lbm.run_many(env, {"greedy": lbm.OracleGreedy(), "random": lbm.Random()}, T=20, seeds=2, record=5)
    figure = Figure()
    every = figure.subplots(1, 2, squeeze=False)
    assert runs.plot(ax=every[:, :1], agents={"random": "chance"}, progress=False) is figure
    (line,) = every[0, 0].lines
    assert line.get_label() == "chance"
    assert every[0, 0].get_title() == "d=2, m=1, gamma=-2, sigma=0.1"
    assert not every[0, 1].lines
    for given in (3, [every[0, 0], "two"], figure):
        with pytest.raises(TypeError, match="ax must be Matplotlib's axes, one or several, got "):
            runs.plot(ax=given, progress=False)
    with pytest.raises(ValueError, match="ax must be one axes for each of the 1 panels, got 2"):
        runs.plot(ax=every, progress=False)
    with pytest.raises(ValueError, match="size must not be given with ax"):
        runs.plot(ax=every[0, 0], size=(3.0, 2.0), progress=False)
