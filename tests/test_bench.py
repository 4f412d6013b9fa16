"""The benchmarks as programs: yardsticks compute the same, `track` judges right. No test asserts a time."""

from __future__ import annotations

import json
import platform
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlbm as lbm
from bench import __main__ as command
from bench import agents, growth, headline, history, learners, report, rows, steps, suite, track, yardsticks
from bench.problems import Problem, problem
from bench.suite import Measured
from tests import naive

MACHINE = {"cpu": "a", "numba": "1"}
ENTRY = next(iter(suite.ENTRIES))


def close(found: tuple[float, np.ndarray], p: Problem) -> None:
    value, grad = naive.block_ucb(p.actions, p.m, p.gamma, p.theta, p.V_inv, p.beta, "O3M", p.A0)
    assert found[0] == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(found[1], grad, rtol=0.0, atol=1e-10 * np.abs(grad).max())


@pytest.mark.parametrize(
    "shape", [(3, 2, 20, -3.0, True), (5, 2, 7, 2.0, True), (4, 3, 5, -2.5, False), (2, 1, 1, 0.5, False)]
)
def test_numpy_computes_the_same(shape: tuple[int, int, int, float, bool]) -> None:
    d, m, L, gamma, isotropic = shape
    p = problem(d, m, L, gamma, isotropic=isotropic)
    close(yardsticks.numpy(p)(2), p)


def test_numpy_with_equal_eigenvalues() -> None:
    p = problem(3, 2, 6, -3.0)
    p = p._replace(actions=np.tile(p.actions[:1], (8, 1)))
    close(yardsticks.numpy(p)(1), p)


@pytest.mark.skipif(yardsticks.compiler() is None, reason="needs a C compiler")
@pytest.mark.parametrize("options", [yardsticks.PLAIN, yardsticks.TUNED])
@pytest.mark.parametrize(("d", "L", "gamma"), [(3, 20, -3.0), (4, 1, -1.0), (7, 13, 2.0), (2, 5, -4.0)])
def test_c_computes_the_same(options: tuple[str, ...], d: int, L: int, gamma: float) -> None:
    p = problem(d, 2, L, gamma)
    close(yardsticks.plain_c(p, options)(3), p)


@pytest.mark.parametrize(("m", "gamma", "isotropic"), [(1, -3.0, True), (2, -2.5, True), (2, -3.0, False)])
def test_c_refuses_what_it_does_not_compute(m: int, gamma: float, isotropic: bool) -> None:
    with pytest.raises(ValueError, match=r"pair\.c needs m=2"):
        yardsticks.plain_c(problem(3, m, 5, gamma, isotropic=isotropic))


@pytest.mark.skipif(not yardsticks.has_jax(), reason="needs JAX")
def test_jax_computes_the_same() -> None:
    p = problem(3, 2, 20, -3.0)
    close(yardsticks.jax_jit(p)(1), p)
    close(yardsticks.jax_vmap(p)(1), p)


def stored(path: Path, *ratios: float, noise: float = 0.01, work: int = 7) -> list[dict[str, object]]:
    for ratio in ratios:
        history.append(path, MACHINE, {ENTRY: Measured(ratio, noise, work)}, "2023-02-16")
    return history.of_machine(history.load(path), MACHINE)


@pytest.mark.parametrize(
    ("now", "noise", "slower"),
    [
        (1.0, 0.01, False),
        (1.09, 0.0, False),  # below what is ever named
        (1.14, 0.0, True),
        (1.14, 0.06, False),  # within the noise
        (1.3, 0.5, True),  # above what noise can excuse
        (0.5, 0.0, False),
    ],
)
def test_slower_by_more_than_the_noise(tmp_path: Path, now: float, noise: float, slower: bool) -> None:
    records = stored(tmp_path / "history.json", 1.0)
    assert history.compare(records, {ENTRY: Measured(now, noise, 7)})[ENTRY].slower is slower


def test_one_lucky_record_does_not_count(tmp_path: Path) -> None:
    records = stored(tmp_path / "history.json", 1.0, 0.7, 1.02, 0.99, 1.01)
    assert not history.compare(records, {ENTRY: Measured(1.05, 0.0, 7)})[ENTRY].slower


def test_the_last_records_count(tmp_path: Path) -> None:
    records = stored(tmp_path / "history.json", *[2.0] * 4, *[1.0] * history.RECENT)
    assert history.compare(records, {ENTRY: Measured(1.3, 0.0, 7)})[ENTRY].slower


def test_other_machines_and_missing_entries(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    records = stored(path, 1.0)
    assert history.compare(records, {"new": Measured(9.0, 0.0, 1)}) == {}
    assert history.of_machine(history.load(path), {**MACHINE, "numba": "2"}) == []
    assert history.load(tmp_path / "absent.json") == []
    table = track.table({"new": Measured(9.0, 0.0, 1)}, {})
    assert re.search(r"new .* new", table)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"records": 3}',
        '{"records": [{"machine": "a", "entries": {}}]}',
        '{"records": [{"machine": {}, "entries": {"x": {"ratio": -1, "noise": 0, "work": 1}}}]}',
        '{"records": [{"machine": {}, "entries": {"x": {"ratio": 1}}}]}',
    ],
)
def test_a_damaged_history_is_refused_and_kept(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "history.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        command.main(["track", "--history", str(path)])
    assert ended.value.code == 2
    assert "history.json is damaged" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == text


def test_the_stored_history_is_sound() -> None:
    for record in history.load(history.PATH):
        assert set(record["machine"]) == set(history.fingerprint())
        assert set(record["entries"]) <= set(suite.ENTRIES)


def synthetic(monkeypatch: pytest.MonkeyPatch, slowdown: float = 1.0, bad_luck: int = 0) -> None:
    """Measurements without a clock: ratio 1 and some noise, half as much again `bad_luck` times."""
    rng, left = np.random.default_rng(0), [bad_luck]

    def measure(names: list[str], inject: dict[str, float] | None = None) -> dict[str, Measured]:
        luck = 1.5 if left[0] > 0 else 1.0
        left[0] -= 1
        share = inject or {}
        noisy = {name: luck * slowdown * (1.0 + share.get(name, 0.0)) for name in names}
        return {name: Measured(x * (1.0 + 0.02 * rng.random()), 0.01, 7) for name, x in noisy.items()}

    monkeypatch.setattr(track, "measure", measure)


def test_the_self_test_passes_on_synthetic_timings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    synthetic(monkeypatch)
    assert command.main(["track", "--selftest"]) == 0
    assert "caught 5 of 5, quiet 5 of 5, false alarms beside the caught ones: 0" in capsys.readouterr().out


def test_track_stores_compares_and_rings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = ["--history", str(tmp_path / "history.json")]
    synthetic(monkeypatch)
    assert command.main(["track", *path, "--store"]) == 0
    assert "nothing to compare with" in capsys.readouterr().out
    assert command.main(["track", *path]) == 0
    assert "nothing got slower" in capsys.readouterr().out
    assert command.main(["track", *path, "--inject", f"{ENTRY}=0.3"]) == 1
    assert f"slower: {ENTRY}\n" in capsys.readouterr().out
    synthetic(monkeypatch, bad_luck=1)  # measured again, the suspects are fine
    assert command.main(["track", *path]) == 0
    text = (tmp_path / "history.json").read_text(encoding="utf-8")
    assert len(json.loads(text)["records"]) == 1


def test_changed_work_is_told(tmp_path: Path) -> None:
    findings = history.compare(stored(tmp_path / "h.json", 1.0), {ENTRY: Measured(1.0, 0.0, 8)})
    assert not findings[ENTRY].slower
    assert "(work 7 -> 8)" in track.table({ENTRY: Measured(1.0, 0.0, 8)}, findings)


def test_an_injection_is_more_of_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    monkeypatch.setattr(suite, "STAGE", 1e-3)
    monkeypatch.setattr(suite, "ENTRIES", {"x": lambda: suite.Entry(counted.append, 10, 1)})
    monkeypatch.setattr(suite, "yardstick", lambda: lambda times: None)
    suite.measure(["x"])
    suite.measure(["x"], {"x": 0.3})
    assert set(counted) == {1, 10, 13}


def test_stages_end_when_they_bring_nothing_new() -> None:
    assert not suite.settled([{"x": 1.0}, {"x": 0.9}, {"x": 1.0}])
    assert suite.settled([{"x": 1.0}, {"x": 0.995}, {"x": 1.1}])
    found = suite.summarise([{"": 2.0, "x": 4.0}, {"": 2.0, "x": 4.4}, {"": 2.2, "x": 5.0}], "x", 3)
    assert found == pytest.approx((2.0, 0.1, 3))


@pytest.mark.parametrize("name", suite.ENTRIES)
def test_entries_repeat_themselves(name: str) -> None:
    entry = suite.ENTRIES[name]()
    entry.call(1)
    assert entry.times >= 10
    assert entry.work == suite.ENTRIES[name]().work


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["track", "--inject", "nothing=0.3"], "--inject must be NAME=SHARE"),
        (["track", "--inject", ENTRY], "--inject must be NAME=SHARE"),
        (["track", "--inject", f"{ENTRY}=fast"], "--inject must be NAME=SHARE"),
        (["track", "--inject", f"{ENTRY}=-1"], "between 0 and 10"),
        (["track", "--only", "nothing"], "no entry has the name 'nothing'"),
        (["track", "--store", "--inject", f"{ENTRY}=0.3"], "--store does not go with --inject"),
        (
            ["track", "--store", "--history", "no/such/folder/x.json"],
            "--history must be in a folder that exists",
        ),
        (["headline", "--json", "no/such/folder/x.json"], "--json must be in a folder that exists"),
        (["report", "--out", __file__], "File exists"),
        (["nothing"], "invalid choice"),
        ([], "required"),
    ],
)
def test_bad_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_the_fingerprint_names_no_host_and_no_path() -> None:
    machine = history.fingerprint()
    assert platform.node() not in machine.values()
    assert not any(folder in json.dumps(machine) for folder in (str(Path.home()), sys.prefix))


def test_the_exponent_is_that_of_the_tail() -> None:
    sizes = [1.0, 2.0, 4.0, 8.0]
    assert growth.slope(sizes, [7.0, 2.0, 8.0, 32.0], tail=2.0) == pytest.approx(2.0)


def test_a_report_writes_its_files(tmp_path: Path) -> None:
    curves = [growth.measure(growth.find("d", "with the bonus"), (8, 9))]
    curves += [growth.Curve("T", "O3M", "episode", [10.0, 100.0], seconds=[0.1, 1.0], tail=0.0)]
    records = stored(tmp_path / "history.json", 1.0, 1.1)
    paths = report.write(tmp_path / "out", curves, records)
    names = {"growth.png", "growth.pdf", "history.png", "history.pdf", "growth.csv", "growth.md"}
    assert {path.name for path in paths} == names
    assert all(path.stat().st_size > 0 for path in paths)
    assert "| T | O3M | 10 to 100 | 0.1 | 1 s an episode | 1.00 from 10 on |" in paths[-1].read_text()
    assert len(report.write(tmp_path / "bare", curves, [])) == 4


def test_misses_are_marked() -> None:
    assert headline.line(headline.at_least(1, "x", 40, 39.0)).endswith("MISSED")
    assert headline.line(headline.at_most(1, "x", 1.5, 1.2)).endswith("ok")
    assert headline.line(headline.Row(1, "x", ">= 100x", "JAX is not installed")).endswith("-")
    assert headline.line(headline.told(1, "x", "3x")).endswith("3x")


def test_the_tables_of_both_readmes_are_printed() -> None:
    row = rows.at_least(8, "  x |y|", 2, 1.5)._replace(readme=("x", "3 s", "NumPy: 9 s", "3"))
    text = rows.for_readme([row, rows.told(9, "z", "1x")])
    assert text == "| | fastlbm | beside it | ratio |\n|---|---|---|---|\n| x | 3 s | NumPy: 9 s | 3 |"
    assert rows.markdown([row]).splitlines()[-1] == r"| 8 | x \|y\| | >= 2x | 1.5x | **missed** |"
    first = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
    assert "\n".join(text.splitlines()[:2]) in first


def test_learners_are_measured_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "T", 60)
    monkeypatch.setattr(agents, "SEEDS", 1)
    found = list(agents.rolling())
    assert [row.number for row in found] == [8, 8]
    assert found[0].readme[2].startswith("O3M, L = 20: ")
    assert 0.0 < agents.played(agents.ROTTING, lbm.OFUL(60), 60, 1).reward < 1.0


def test_those_who_know_theta_are_measured_without_parts_of_cycles(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bursts = np.cumsum(np.tile([3.0] + [0.0] * 17, 200))
    assert learners.steady(bursts, 100, 603) == pytest.approx(3.0 / 18.0, rel=1e-3)
    learners.theta_known(count=2, roots=[77])
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 4
    assert all(line.endswith(", 0 below 0.999") for line in told[1:])


def test_environments_that_are_compared_pay_the_same() -> None:
    """But for the noise, which is not drawn in one order."""
    env = lbm.LBM(**{**steps.PARAMETERS, "sigma": 0.0})
    plain = steps.PlainEnvironment(**{**steps.PARAMETERS, "sigma": 0.0})
    actions = lbm.Ball(3).sample(6, seed=1)
    np.testing.assert_allclose([plain.step(a) for a in actions], env.expected_rewards(actions), rtol=1e-12)


def test_the_table_of_steps_has_all_competitors(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gymnasium")
    monkeypatch.setattr(steps, "COPIES", 3)

    def race(calls: dict[str, Any], **_: object) -> dict[str, float]:
        return {name: 1.0 for name, call in calls.items() if call(1) is not None}

    monkeypatch.setattr(steps, "race", race)
    assert command.main(["steps"]) == 0
    told = capsys.readouterr().out
    assert [words for words in steps.LOOPS.values() if f"{words} " not in told] == []
    assert told.count("1x") == len(steps.LOOPS)
