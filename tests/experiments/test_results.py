"""Results: summaries, bands, comparators, and figures that say what they show."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import fastlbm as lbm
from fastlbm import plots
from fastlbm.experiments.results import BANDS, COMPARATORS, StudyResults, band_of, bound_of
from fastlbm.planning import bounds


def test_the_summary_has_means_intervals_and_adjusted_tests(file: Path, tmp_path: Path) -> None:
    results = lbm.Study.from_toml(file).run(tmp_path / "out", progress=False)
    summary = results.summary()
    assert len(summary) == 18
    last = results.frame[results.frame["t"] == results.frame["T"]]
    means = last.groupby(["env", "agent", "T"])["reward"].mean()
    for row in summary.itertuples():
        assert row.mean == pytest.approx(means[row.env, row.agent, row.T])
        assert row.low <= row.mean + 1e-12
        assert row.mean <= row.high + 1e-12
    assert summary["p_vs_best"].isna().sum() == 6
    assert (summary["p_vs_best"].dropna() >= 2.0 / 64.0).all()


@pytest.mark.parametrize("kind", ["reward", "regret", "loglog"])
def test_plots_say_what_they_show(file: Path, tmp_path: Path, kind: str) -> None:
    results = lbm.Study.from_toml(file).run(tmp_path / "out", progress=False)
    comparator = "oracle greedy" if kind == "regret" else "lower"
    figure = results.plot(kind, comparator, band="quantiles")
    titles = [axes.get_title() for axes in figure.axes if axes.get_visible()]
    assert titles == ["rotting", "arms(gamma=-2.0)", "arms(gamma=1.0)"]
    if kind != "loglog":
        assert "quantiles" in figure.legends[0].get_title().get_text()
    else:
        assert any("Theorem 1" in text.get_text() for text in figure.axes[0].get_legend().get_texts())


def synthetic(T: tuple[int, ...] = (10, 100)) -> StudyResults:
    """Rewards whose regret against m = 0, theta = (1, 0), is exactly the square root of the horizon."""
    rows = [
        {"env": "e", "agent": "a", "T": n, "seed": s, "t": n, "reward": n - n**0.5, "observed": 0.0}
        for n in T
        for s in range(3)
    ]
    return StudyResults(pd.DataFrame(rows), {"e": lbm.LBM([1.0, 0.0], m=0)})


def test_the_exponent_is_that_of_the_growth() -> None:
    (axes,) = synthetic().plot("loglog").axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a, exponent 0.50", "Theorem 1"]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [10**0.5, 10.0])
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), bound_of(lbm.LBM([1.0, 0.0], m=0), [10, 100]))
    (alone,) = synthetic((100,)).plot("loglog").axes
    assert alone.get_legend().get_texts()[0].get_text() == "a"  # one point has no slope


def partial() -> StudyResults:
    """Agents a and b, where b lacks the best seeds, and c, which has not begun."""
    rows = [
        {"env": "e", "agent": name, "T": 10, "seed": s, "t": t, "reward": float(t * s + k), "observed": 0.0}
        for k, (name, seeds) in enumerate({"a": 4, "b": 2}.items())
        for s in range(seeds)
        for t in (5, 10)
    ]
    missing = {("e", "b", 10): 2, ("e", "c", 10): 4}
    return StudyResults(pd.DataFrame(rows), {"e": lbm.LBM([1.0, 0.0], m=0)}, missing=missing)


TOLD = "not finished: 6 runs are missing, 2 of them of b in e with T=10, the others of 1 more settings"


def test_a_summary_of_a_part_is_over_the_seeds_that_all_agents_have() -> None:
    with pytest.warns(UserWarning, match=TOLD):
        summary = partial().summary()
    assert summary[["agent", "seeds", "mean"]].values.tolist() == [["a", 2, 5.0], ["b", 2, 6.0]]
    frame = partial().frame
    frame.loc[frame["agent"] == "b", "seed"] += 4  # no seed in common: nothing can be said
    with pytest.warns(UserWarning, match="not finished"):
        assert StudyResults(frame, partial().envs, missing={("e", "b", 10): 4}).summary().empty


def test_a_reward_that_is_no_number_is_not_a_missing_one() -> None:
    frame = synthetic((10,)).frame
    frame.loc[0, "reward"] = np.nan
    (row,) = StudyResults(frame, {}).summary().itertuples()
    assert row.seeds == 3
    assert np.isnan(row.mean)


@pytest.mark.parametrize("kind", ["reward", "loglog"])
def test_a_figure_of_a_part_says_so_and_takes_the_same_seeds(kind: str) -> None:
    with pytest.warns(UserWarning, match=TOLD):
        figure = partial().plot(kind, "lower", band="none")
    (axes,) = figure.axes
    note = figure.get_supxlabel() if kind == "loglog" else figure.legends[0].get_title().get_text()
    assert "not finished: 6 runs are missing" in note
    ends = [float(line.get_ydata()[-1]) for line in axes.lines[:2]]
    assert ends == ([5.0, 6.0] if kind == "reward" else [5.0, 4.0])  # OPT is 10


def test_nothing_finished_is_no_figure() -> None:
    results = partial()
    nothing = StudyResults(results.frame[:0], results.envs, missing={("e", "a", 10): 4})
    with pytest.warns(UserWarning, match="4 runs are missing"), pytest.raises(ValueError, match="none yet"):
        nothing.plot()
    with pytest.warns(UserWarning, match="4 runs are missing"):
        assert nothing.summary().empty


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("kind", ["reward", "regret"])
def test_the_note_names_the_band_and_the_comparator(kind: str, band: str) -> None:
    title = synthetic().plot(kind, "lower", band, confidence=0.9).legends[0].get_title().get_text()
    assert ("regret against the lower bound on OPT" in title) == (kind == "regret")
    assert ("bands: " in title) == (band != "none")
    assert ("90%" in title) == (band != "none")


def test_bands_hold_what_they_promise() -> None:
    values = np.random.default_rng(1).standard_normal((20, 400)) + np.arange(20)[:, None]
    mean = values.mean(axis=1)
    widths = {}
    for band in BANDS:
        low, high = band_of(values, band, 0.95)
        assert (low <= mean).all()
        assert (mean <= high).all()
        widths[band] = float((high - low).mean())
        inside = ((values > low[:, None]) & (values < high[:, None])).mean()
        assert (abs(inside - 0.95) < 0.01) == (band == "quantiles")
    # The pointwise band of the mean of 400 values has a width of 2 x 1.96 / 20.
    assert widths["bootstrap"] == pytest.approx(0.196, rel=0.1)
    assert widths["bootstrap"] < widths["simultaneous"] < widths["quantiles"]
    assert widths["none"] == 0.0
    low, high = band_of(values[:, :1], "bootstrap", 0.95)
    np.testing.assert_array_equal(low, high)


def test_comparators_are_in_order() -> None:
    env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    results = StudyResults(pd.DataFrame(), {"e": env})
    steps = np.array([10, 40])
    found = {kind: results.comparator("e", steps, kind) for kind in COMPARATORS}
    for kind in COMPARATORS:
        assert (found[kind] <= found["opt"] + 1e-9).all()
    assert (found["lower"] >= found["best cycle"] - 1e-9).all()
    bounds = lbm.opt_bounds(env, 40)
    assert (found["lower"][1], found["opt"][1]) == (bounds.lower, bounds.upper)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "pie"}, "kind must be one of 'reward', 'regret', 'loglog', got 'pie'"),
        ({"comparator": "me"}, "comparator must be one of 'opt'"),
        ({"band": "rubber"}, "band must be one of 'bootstrap'"),
        ({"confidence": 1.0}, "confidence must be a finite number in"),
    ],
)
def test_bad_arguments_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        synthetic().plot(**changes)  # type: ignore[arg-type]
    if "confidence" in changes:
        with pytest.raises(ValueError, match=words):
            synthetic().summary(1.0)


# --- what is drawn: selection, order, labels, a parameter, pages ------------------------------------------


def sweep() -> StudyResults:
    """Two agents in environments of every m in 0..2 and sigma in 0.1, 0.2; stationary, so that OPT is T."""
    rows, envs = [], {}
    for m in range(3):
        for sigma in (0.1, 0.2):
            name = f"e(m={m}, sigma={sigma})"
            envs[name] = lbm.LBM([1.0, 0.0], m=m, gamma=0.0, sigma=sigma)
            for k, agent in enumerate(("a", "b")):
                told = {"env": name, "agent": agent, "T": 10, "m": m, "sigma": sigma, "agent_L": float(k + 1)}
                rows += [
                    {**told, "seed": s, "t": t, "reward": t - m - k * sigma + (s - 0.5) / 10, "observed": 0.0}
                    for s in range(2)
                    for t in (5, 10)
                ]
    return StudyResults(pd.DataFrame(rows), envs)


def test_agents_and_environments_are_chosen_ordered_and_labelled() -> None:
    look = {"agents": {"b": "second", "a": "first"}, "envs": ["e(m=1, sigma=0.1)", "e(m=0, sigma=0.1)"]}
    figure = sweep().plot("regret", band="none", **look)
    assert [axes.get_title() for axes in figure.axes] == look["envs"]
    lines = {line.get_label(): line.get_ydata().tolist() for line in figure.axes[0].lines}
    assert list(lines) == ["second", "first"]
    np.testing.assert_allclose(lines["first"], [1.0, 1.0])
    np.testing.assert_allclose(lines["second"], [1.1, 1.1])
    one = sweep().plot(agents="a", envs={"e(m=0, sigma=0.1)": "nothing remembered"})
    assert one.axes[0].get_title() == "nothing remembered"
    with pytest.raises(ValueError, match="agents must be one of 'a', 'b', got 'c'"):
        sweep().plot(agents=["c"])
    with pytest.raises(ValueError, match="envs must choose at least one of"):
        sweep().plot(envs=[])


def test_regret_is_drawn_against_a_parameter() -> None:
    figure = sweep().plot("regret", against="m")
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in panels] == ["sigma=0.1", "sigma=0.2"]
    (bars,) = [c for c in panels[1].containers if c.get_label() == "b" or c is panels[1].containers[1]]
    np.testing.assert_allclose(bars.lines[0].get_xdata(), [0, 1, 2])
    np.testing.assert_allclose(bars.lines[0].get_ydata(), [0.2, 1.2, 2.2])
    (axes,) = sweep().plot("reward", against="T", envs=["e(m=1, sigma=0.1)"]).axes
    assert (axes.get_xlabel(), axes.get_title()) == ("T", "")
    with pytest.raises(ValueError, match="against must be one of 'T', 'm', 'sigma', 'agent_L', got 'width'"):
        sweep().plot(against="width")


def test_environments_of_the_same_parameters_are_averaged() -> None:
    frame = sweep().frame.assign(sigma=0.1)
    (axes,) = StudyResults(frame, sweep().envs).plot("regret", against="m").axes
    np.testing.assert_allclose(axes.containers[1].lines[0].get_ydata(), [0.15, 1.15, 2.15])


def test_agents_that_differ_by_the_parameter_are_one_line() -> None:
    frame = sweep().frame
    frame["agent"] = "O3M(L=" + frame["agent_L"].astype(str) + ")"
    (axes,) = StudyResults(frame, sweep().envs).plot(against="agent_L", envs=["e(m=0, sigma=0.1)"]).axes
    assert len(axes.containers) == 1
    np.testing.assert_allclose(axes.containers[0].lines[0].get_ydata(), [10.0, 9.9])


def test_figures_are_pages_and_a_plot_is_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "pages", lambda panels: [{name: each} for name, each in panels.items()])
    figures = sweep().figures("reward")
    assert len(figures) == 6
    assert "page 2 of 6" in figures[1].legends[0].get_title().get_text()
    with pytest.warns(UserWarning, match="the panels are on 6 pages, this is the first"):
        assert sweep().plot().axes[0].get_title() == "e(m=0, sigma=0.1)"


def test_a_plot_is_drawn_into_axes() -> None:
    axes = Figure().subplots()
    figure = sweep().plot(envs=["e(m=0, sigma=0.1)"], ax=axes)
    assert figure is axes.figure
    assert len(axes.lines) == 2


def test_a_comparator_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for every agent, nor for every noise, nor again for another figure."""
    asked, real = Counter(), bounds.best_cycle

    def counted(env: lbm.LBM, **keywords: object) -> object:
        asked[env.gamma] += 1
        return real(env, **keywords)

    monkeypatch.setattr(bounds, "best_cycle", counted)
    results = sweep()
    for name, env in results.envs.items():
        results.envs[name] = lbm.LBM(env.theta, m=1, gamma=-1.0 - env.m, sigma=env.sigma)
    results.plot("regret")
    results.plot("regret", "lower")
    results.plot("loglog")
    results.plot("regret", against="m")
    assert asked == {-1.0: 1, -2.0: 1, -3.0: 1}


def test_progress_is_shown_while_comparators_are_computed(capsys: pytest.CaptureFixture[str]) -> None:
    results = sweep()
    results.plot("regret", progress=False)
    results.plot("regret")  # all is there
    sweep().plot("regret", progress="rarely")
    assert capsys.readouterr().err == ""
    sweep().plot("regret")
    assert "3.00/3.00" in capsys.readouterr().err


def note_of(figure: Figure) -> str:
    """The caption of a figure, on one line."""
    text = figure.legends[0].get_title().get_text() if figure.legends else figure.get_supxlabel()
    return str(text.replace("\n", " "))


def fading() -> StudyResults:
    """Two horizons in a memory without end, where OPT is at most T times the largest reward, and in arms."""
    envs = {
        "endless": lbm.LBM([0.6, 0.8], m=math.inf, gamma=-2.0, decay=0.5),
        "arms": lbm.LBM([0.6, 0.8], m=1, gamma=-2.0, actions=lbm.Finite([[1.0, 0.0], [0.0, 1.0]])),
    }
    rows = [
        {"env": env, "agent": "a", "T": T, "seed": s, "t": T, "reward": 0.1 * T, "observed": 0.0, "d": 2}
        for env in envs
        for T in (50, 100)
        for s in range(2)
    ]
    return StudyResults(pd.DataFrame(rows), envs)


def test_regret_is_against_the_best_cycle_where_opt_says_little() -> None:
    results, far = fading(), "the bounds on OPT, {:.4g} and {:.4g} at T=100, are too far apart"
    bounds = lbm.opt_bounds(results.envs["endless"], 100)
    assert bounds.upper > 1.2 * bounds.lower
    words = f"against the best cycle: {far.format(bounds.lower, bounds.upper)}"
    ends = {kind: results.comparator("endless", [50, 100], kind) for kind in ("opt", "best cycle")}
    figure = results.plot("regret", envs=["endless"], progress=False)
    assert f"regret {words};" in note_of(figure)
    assert figure.axes[0].lines[0].get_ydata()[-1] == pytest.approx(ends["best cycle"][1] - 10.0)
    figure = results.plot("loglog", envs=["endless"], progress=False)
    assert f"regret {words}" in note_of(figure)
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), ends["best cycle"] - [5.0, 10.0])
    figure = results.plot("regret", "opt", envs=["endless"], progress=False)  # what is chosen is obeyed
    above = f"{bounds.upper / bounds.lower - 1.0:.0%} above the lower one at T=100"
    assert f"regret against OPT (its upper bound, {above})" in note_of(figure)
    assert figure.axes[0].lines[0].get_ydata()[-1] == pytest.approx(ends["opt"][1] - 10.0)
    note = note_of(results.plot("regret", progress=False))
    assert note.startswith(f"regret against OPT (exact); in endless {words};")


def test_what_is_drawn_together_has_one_comparator() -> None:
    results = fading()
    figure = results.plot("regret", against="d", progress=False)
    assert "regret against the best cycle: the bounds on OPT are too far apart, by up to" in note_of(figure)
    cycle = [results.comparator(env, [100], "best cycle")[0] - 10.0 for env in results.envs]
    assert figure.axes[1].containers[0].lines[0].get_ydata() == pytest.approx(np.mean(cycle))


def test_bounds_that_are_near_are_told() -> None:
    results = sweep()
    results.envs.update({name: lbm.LBM([0.6, 0.8], m=1, gamma=-2.0) for name in results.envs})
    note = note_of(results.plot("regret", progress=False))
    assert re.match(
        r"regret against OPT \(its upper bound where it is not exact, up to \d.*% above the lower", note
    )


def test_horizons_that_are_not_drawn_are_told() -> None:
    results = fading()
    for kind in ("reward", "regret"):
        note = note_of(results.plot(kind, progress=False))
        assert "longest horizon, T=100 (not drawn: T=50)" in note
        figure = results.plot(kind, T=50, progress=False)
        assert "not drawn" not in note_of(figure)
        assert [axes.lines[0].get_xdata()[-1] for axes in figure.axes if axes.get_visible()] == [50, 50]
    assert "not drawn" not in note_of(results.plot("loglog", progress=False))
    with pytest.raises(ValueError, match="T must be one of the horizons 50, 100, got 70"):
        results.plot(T=70)


def test_bounds_are_computed_where_whole_blocks_end() -> None:
    """A comparator over many steps takes a few searches, and is that of opt_bounds where it was computed."""
    env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)  # blocks of 30
    results, steps = StudyResults(pd.DataFrame(), {"e": env}), np.arange(5, 605, 5)
    found = results.comparator("e", steps)
    (model,) = results._comparators._models.values()
    assert set(model._search._values) <= {5, 30, 600 % 30}
    for T in (5, 60, 600):
        assert found[steps == T][0] == pytest.approx(lbm.opt_bounds(env, T).upper)
    middle = found[steps == 330][0]
    assert lbm.opt_bounds(env, 330).lower <= middle <= lbm.opt_bounds(env, 330).upper * 1.01
