"""The experiments: claims that can fail, tables that are the same twice, mistakes named, labels apart."""

from __future__ import annotations

import ast
import itertools
import math
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text

import fastlbm as lbm
from fastlbm.agents.learners import DELTA
from reproduce import __main__ as command
from reproduce import (
    approximation,
    arms,
    claims,
    confidence,
    fig2,
    instances,
    knowledge,
    look,
    rolling,
    statements,
)
from reproduce.page import Page, markdown
from tests.test_citations import LABELS

ROOT = Path(__file__).resolve().parent.parent


def claim(value: float, low: float, high: float, remark: str = "") -> claims.Claim:
    number = claims.Number(value, low, high)
    return claims.Claim(
        "c", "w", "s", "m", number=number, at_least=1.0, at_most=2.0, must=(1.2, 1.8), remark=remark
    )


@pytest.mark.parametrize(
    ("made", "verdict", "fails"),
    [
        (claim(1.5, 1.4, 1.6), "holds", False),
        (claim(1.5, 1.4, 1.6, "but"), "holds with a remark", False),
        (claim(1.5, 0.9, 1.6), "holds with a remark", False),
        (claim(0.9, 0.8, 1.1), "does not hold", True),
        (claim(1.9, 1.85, 1.95), "holds", True),
        (claim(2.1, 1.9, 2.2), "does not hold", True),
        (claim(math.nan, math.nan, math.nan), "does not hold", True),
    ],
)
def test_verdicts_and_failures(made: claims.Claim, verdict: str, fails: bool) -> None:
    assert made.verdict == verdict
    assert bool(made.failed) == fails
    assert command.report([made]) == int(fails)


def test_an_interval_across_the_bound_is_told() -> None:
    assert "across" in claim(0.9, 0.8, 1.1).remarks
    assert "across" in claim(1.5, 0.9, 1.6).remarks
    assert claim(0.9, 0.8, 0.95).remarks == ""


def test_an_interruption_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_make", interrupted)
    assert command.main(["greedy", "--out", str(tmp_path)]) == 130


def test_an_unchecked_statement_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.report([], ["some claim"]) == 1
    assert "FAILED some claim" in capsys.readouterr().err


def test_intervals_cover_the_mean_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(200):
        number = claims.mean(rng.standard_normal(40))
        inside += number.low <= 0.0 <= number.high
    assert 180 <= inside <= 199
    values = rng.uniform(1.0, 2.0, 30)
    assert claims.ratio(2.0 * values, values) == pytest.approx((2.0, 2.0, 2.0))
    T = np.array([10.0, 100.0, 1000.0])
    regrets = 3.0 * T[:, None] ** 0.7 * np.array([[0.9, 1.1]])
    assert claims.exponent(T, regrets).value == pytest.approx(0.7)


def test_a_line_is_carried_on() -> None:
    T = np.array([10.0, 100.0, 1000.0])
    number = claims.carried(T, 3.0 * T[:, None] ** 0.7 * np.array([[0.9, 1.1]]), 1e9)
    assert number.value == pytest.approx(3.0 * 1e9**0.7)
    assert number.low == pytest.approx(0.9 * number.value)
    assert number.over(number.value).high == pytest.approx(1.1)


@pytest.mark.parametrize("low", [1, 7, 1000])
def test_where_a_bound_first_says_something(low: int) -> None:
    # 50 T^(3/4) is below T from 50^4 on.
    found = claims.first_below(lambda T: 50.0 * T**0.75, lambda T: float(T), low=low)
    assert 50**4 <= found <= 1.001 * 50**4
    assert claims.first_below(lambda T: 1.0, lambda T: float(T), low=low) == low


def test_statements_name_their_place_by_number_and_label() -> None:
    for name, said in claims.statements().items():
        if said["where"] == "not in the paper":
            continue
        labels = re.findall(r"(\S+(?: \S+)?), (\w+:[\w-]+)", said["where"])
        assert labels, (name, said["where"])
        for number, label in labels:
            assert number.replace("Appendix", "Section").endswith(LABELS[label]), (name, said["where"])


def test_every_statement_can_fail() -> None:
    for name, said in claims.statements().items():
        assert "at_least" in said or "at_most" in said, name
        assert all(math.isfinite(end) for end in said["must"]), name
    # What cannot be exceeded by anything is not compared with a regret that was measured.
    for name in ("Theorem 1", "regret bounds"):
        assert name not in claims.statements()


def test_every_statement_is_checked_by_an_experiment_that_runs_with_claims() -> None:
    words, patterns = set(), []
    for experiment in command.GROUPS["claims"]:
        text = (ROOT / "reproduce" / f"{experiment.replace('-', '_')}.py").read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words.add(node.value)
            elif isinstance(node, ast.JoinedStr):  # a name with a part that varies
                parts = [re.escape(v.value) if isinstance(v, ast.Constant) else ".*" for v in node.values]
                patterns += ["".join(parts)] if parts[0] != ".*" and len(parts[0]) > 5 else []
    for name, said in claims.statements().items():
        low, high = said["must"]
        assert low < high, name
        assert name in words or any(re.fullmatch(pattern, name) for pattern in patterns), name


def test_the_tables_are_the_same_twice_and_hold_the_closed_forms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("once", "twice"):
        assert command.main(["fig1-right", "greedy", "--quick", "--out", str(tmp_path / name)]) == 0
    printed = capsys.readouterr().out
    for page in ("fig1-right", "greedy"):
        for ending in (".png", ".pdf", ".csv", ".md"):
            path = tmp_path / "once" / page / f"{page}{ending}"
            assert str(path) in printed
            assert path.stat().st_size > 0
            if ending in (".csv", ".md"):
                assert path.read_bytes() == (tmp_path / "twice" / page / path.name).read_bytes()
    table = (tmp_path / "once/fig1-right/fig1-right.md").read_text()
    short, greedy, pi_2 = 3.0, math.sqrt(0.01), math.sqrt(0.99)  # m (m+1)/2 steps' worth is missing
    assert f"| 0.1 | oracle greedy | {(3 * 1200 - short) * greedy:.3f} | 360.000 | -0.300 |" in table
    assert f"| 0.1 | pi_2 | {(2 * 1200 - short) * pi_2:.3f} | 2387.970 | -2.985 |" in table
    # More runs keep the ones that are there.
    pieces = set((tmp_path / "once/fig1-right/study/pieces").iterdir())
    assert command.main(["fig1-right", "--runs", "6", "--out", str(tmp_path / "once")]) == 0
    assert pieces < set((tmp_path / "once/fig1-right/study/pieces").iterdir())


def test_the_losses_of_proposition_2_are_those_of_all_sequences() -> None:
    arms_, m, L, T = np.array([[0.0], [1.0]]), 1, 2, 6
    env = lbm.LBM([1.0], m=m, gamma=-3.0, actions=lbm.Finite(arms_))
    OPT = max(env.expected_rewards(arms_[list(a)]).sum() for a in itertools.product(range(2), repeat=T))
    blocks = [arms_[list(a)] for a in itertools.product(range(2), repeat=m + L)]
    values = [env.expected_rewards(block)[m:].sum() for block in blocks]
    losses = [
        OPT - env.expected_rewards(np.tile(block, (T // (m + L), 1))).sum()
        for block, value in zip(blocks, values, strict=True)
        if value == max(values)
    ]
    part, step = statements.loss(env, arms_, L, T)
    assert part in [pytest.approx(loss / (2 * m * 1.0 * T / (m + L))) for loss in losses]
    assert step == pytest.approx(OPT / T - max(values) / L)
    assert statements.reward_range(env, arms_) == 1.0


def test_the_counterexamples_by_hand() -> None:
    # Play, rest, play; the best two steps in a row are play, play after a rest.
    assert statements.step_of_three() == pytest.approx(2 / 3 - (1 + 1 / 8) / 2)
    # The first arm pays 0.45 and then 0.45 (1 + 1/4)^2; the second one 0.43 and then 0.43 * 4.
    collected, best = arms.greedy_fails(T=100)
    assert collected == pytest.approx(0.45 + 99 * 0.45 * 1.25**2)
    assert best == pytest.approx(0.43 + 99 * 0.43 * 4)
    # The only best block is 0.75, 0.75, -1; OPT plays -1 three times.
    R = 2.125**-3.7
    OPT, block = 1 + 2**-3.7 + 3**-3.7, -0.75 - 0.75 * 1.5625**-3.7 + R
    assert statements.without_zero(1) == pytest.approx((OPT - block) / (2 * 2 * R))
    # Four arms, m infinite: what was played long ago still counts.
    assert arms.largest_difference(math.inf) < 1e-9


def test_lemma_1_holds_for_rewards_that_are_not_negative() -> None:
    assert statements.lemma_1(signed=False, cases=100).max() <= 0.0
    assert statements.lemma_1(signed=True, cases=100).max() > 0.0


def test_features_are_what_rewards_are_linear_in() -> None:
    env = lbm.LBM.random(d=4, m=3, gamma=-1.5, seed=0)
    actions = lbm.Ball(4).sample(30, seed=0)
    np.testing.assert_allclose(confidence.features(env, actions) @ env.theta, env.expected_rewards(actions))


def test_exponents_are_those_of_the_theorem_s_algorithm() -> None:
    text = (ROOT / "reproduce/regret.toml").read_text(encoding="utf-8")
    agent = tomllib.loads(text)["agent"]["O3M"]
    assert agent.keys() == {"type", "m", "gamma", "T"}  # L, delta and switch are the defaults
    assert lbm.O3M(m=2, gamma=-3.0, horizon=1000).switch == 0.0


def test_auto_is_told_nothing() -> None:
    """Studies tell agents the horizon, which is of no use to one whose delta is that without a horizon."""
    told = {"type": "Auto", "delta": DELTA}
    for name in ("knowledge", "headline"):
        text = (ROOT / f"reproduce/{name}.toml").read_text(encoding="utf-8")
        assert tomllib.loads(text)["agent"]["Auto"] == told
    assert {"Auto": told} == rolling.NOTHING


def test_the_truth_is_among_all_candidates_and_may_be_discarded() -> None:
    assert [len(field["candidates"]) for field in knowledge.FIELDS.values()] == [5, 3, 30]
    assert all([2, -3.0] in field["candidates"] for field in knowledge.FIELDS.values())
    for field in ("gamma among 5", "m among 3"):
        assert knowledge.FIELDS[field]["candidates"][1] == [2, -3.0]
        assert knowledge.still_active(3, field, scale=1.0).all()
        assert not knowledge.still_active(3, field, scale=0.001).all()


def test_the_bound_of_figure_2_has_two_losses_of_m_steps_in_a_block() -> None:
    known = lbm.theory.block_regret_bound(T=1296, d=3, m=1, gamma=2.0, L=5)
    assert fig2.bound("O3M", 5, 1296) == pytest.approx(known + 2 * 1 * 4.0 * 1296 / 6)


def test_cycles_are_averaged_when_the_memory_is_their_own() -> None:
    env = lbm.LBM([1.0, 0.0], m=2, gamma=-1.0)
    assert approximation.average(env, np.eye(2)[[0]]) == pytest.approx(1 / 3)


def test_a_number_outside_of_its_interval_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = claims.statements()
    said["greedy's regret, rising"]["must"] = [2.0, 3.0]
    monkeypatch.setattr("reproduce.page.statements", lambda: said)
    assert command.main(["greedy", "--out", str(tmp_path)]) == 1
    assert "FAILED greedy's regret, rising: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["fig3"], ["--out", __file__], ["--runs", "1"], ["--runs", "many"], ["fig2", "fig4"]]
)
def test_mistakes_are_named(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        command.main(arguments)
    assert stop.value.code == 2
    assert "must be" in (words := capsys.readouterr().err) or "invalid int value" in words


def test_every_agent_looks_different() -> None:
    shapes = [(one.dashes, one.marker) for one in look.LOOKS.values() if one.marker]
    assert len(set(shapes)) == len(shapes)  # told apart without colour


def test_labels_at_the_ends_keep_apart() -> None:
    figure, (axes,) = look.panels(1)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    look.label_ends(axes, {"O3M": 0.50, "OM": 0.51, "OFUL": 0.505, "pi_2": 0.99})
    figure.draw_without_rendering()
    boxes = sorted(Text.get_window_extent(text).extents[[1, 3]].tolist() for text in axes.texts)
    assert len(boxes) == 4
    assert all(above[0] >= below[1] - 1.0 for below, above in itertools.pairwise(boxes))  # in pixels


def test_pages_write_plain_tables(tmp_path: Path) -> None:
    page = Page("x", tmp_path)
    page.numbers(("a", "b"), [("one, two", 1.0), ("three", 1 / 3)])
    assert (tmp_path / "x/x.csv").read_text() == 'a,b\n"one, two",1\nthree,0.3333333333\n'
    assert markdown(("a", "b"), [(1, 2)]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert markdown(("a", "b"), [("|x|", 2)]).endswith("| \\|x\\| | 2 |")
    with pytest.raises(KeyError):
        page.claim("a statement that is not there", claims.exact(1.0))


def test_random_instances_are_those_of_their_description() -> None:
    envs = instances.instances(30)
    assert [env.theta.tolist() for env in instances.instances(7)] == [env.theta.tolist() for env in envs[:7]]
    assert {env.d for env in envs} == set(range(2, 9))
    assert {env.m for env in envs} <= set(range(6))
    assert all(-4.0 <= env.gamma <= 1.5 and 0.05 <= env.sigma <= 0.3 for env in envs)
    general = [k for k, env in enumerate(envs) if not np.array_equal(env.A0, np.eye(env.d))]
    assert general == [5, 11, 17, 23, 29]
    assert not np.array_equal(instances.instances(1, seed=1)[0].theta, envs[0].theta)


def test_the_best_cycles_keep_the_order_of_their_instances() -> None:
    envs = [lbm.LBM([0.6, 0.8], m=1, gamma=gamma) for gamma in (-2.0, 1.0)]
    rotting, rising = instances.best_cycles(envs)
    assert rotting.average == pytest.approx(lbm.best_cycle(envs[0]).average)
    assert rising.average == pytest.approx(2.0)  # theta again and again: (1 + 1)^1
