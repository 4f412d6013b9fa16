"""The grammar of studies: what a file means, and that every mistake in it is named."""

from __future__ import annotations

import contextlib
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastlbm as lbm
from fastlbm import agents, cli
from fastlbm.experiments.grammar import AGENTS, StudyError, parse
from fastlbm.model.actions import ACTION_SETS, ActionSet, Offered
from tests.experiments.conftest import TEXT

DATA = Path(__file__).resolve().parent.parent / "data"


def test_a_file_is_multiplied_out(file: Path) -> None:
    study = lbm.Study.from_toml(file)
    cells = study.spec.cells
    assert len(cells) == 3 * 3 * 2
    assert [c.env_name for c in cells][::6] == ["rotting", "arms(gamma=-2.0)", "arms(gamma=1.0)"]
    assert {c.agent_name for c in cells} == {"greedy", "oful(switch=0.0)", "oful(switch=1.0)"}
    oful = next(c for c in cells if c.agent_name == "oful(switch=1.0)" and c.T == 120)
    assert oful.agent == lbm.OFUL(120, subgaussian=0.1, switch=1.0)
    assert study.fingerprint == lbm.Study.from_toml(file).fingerprint
    assert len({study.spec.key(c) for c in cells}) == len(cells)


def test_an_agent_may_have_horizons_of_its_own_taken_together_with_arguments(file: Path) -> None:
    own = '[agent.O3M]\ntype = "O3M"\nm = "env"\ngamma = "env"\n[agent.O3M.zip]\nL = [2, 4]\nT = [30, 90]\n'
    file.write_text(TEXT + own)
    cells = [c for c in lbm.Study.from_toml(file).spec.cells if c.env_name == "rotting"]
    mine = [(c.agent_name, c.T, c.agent) for c in cells if "O3M" in c.agent_name]
    assert mine == [
        ("O3M", 30, lbm.O3M(1, -2.0, 30, L=2)),
        ("O3M", 90, lbm.O3M(1, -2.0, 90, L=4)),
    ]
    assert [c.T for c in cells] == sorted(c.T for c in cells)
    document = {
        "seeds": 2,
        "env": {"e": {"theta": [0.6, 0.8], "m": 1, "gamma": -2.0}},
        "agent": {"greedy": {"type": "OracleGreedy", "T": [5, 7]}},
    }
    frame = lbm.Study.from_dict(document).run(file.parent / "own", progress=False).frame
    assert sorted(set(zip(frame["T"], frame["seed"], strict=True))) == [(5, 0), (5, 1), (7, 0), (7, 1)]
    assert cli.main(["plot", str(file.parent / "own"), "--kind", "loglog"]) == 0


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seeds = 6", "seeds = 0", ":4: seeds: seeds must be an integer >= 1|:4: seeds: .* from 1"),
        ("seeds = 6", "sedes = 6", ":4: sedes: is not a key here; allowed are name, seed"),
        ("T = [60, 120]", "", "must have T"),
        ("T = [60, 120]", "T = [60, 60]", ":5: T: must be distinct"),
        ('spacing = "log"', 'spacing = "cubic"', ":7: spacing: spacing must be one of 'linear', 'log'"),
        ("gamma = -2.0\nsigma", 'gamma = "x"\nsigma', ":12: env.rotting.gamma: gamma must be a real number"),
        (
            "theta = [0.6, 0.8]\nm = 1\ngamma",
            "theta = [0.6, 1.8]\nm = 1\ngamma",
            ":10: env.rotting.theta: theta",
        ),
        ("sigma = 0.1", "sigmas = 0.1", ":13: env.rotting.sigmas: is not a key here"),
        ("{finite = ", "{infinite = ", "env.arms.actions.infinite: is not a key here; allowed are ball"),
        ("gamma = [-2.0, 1.0]", "gamma = []", "env.arms.grid: must be a table of lists"),
        ("[agent.greedy]\ntype", "[agent.greedy]\nkind", "agent.greedy.type: must be one of O3M"),
        ('type = "OFUL"', 'type = "UFO"', "agent.oful.type: must be one of O3M, OFUL, .*, got 'UFO'"),
        ('subgaussian = "env"', 'lam = "env"', 'agent.oful.lam: cannot be "env"'),
        (
            "switch = [0.0, 1.0]",
            "switch = [-1.0]",
            ":29: agent.oful.switch: switch must be|agent.oful.*switch",
        ),
        ("[env.rotting]", "[env.rotting", "not a TOML file"),
        (
            "switch = [0.0, 1.0]",
            "switch = [0.0, 0.0]",
            "agent.oful: must not be there twice, got oful.switch=0.0. with",
        ),
        (
            "[agent.oful.grid]",
            "[agent.oful.zip]\nswitch = 1.0\n[agent.oful.x]",
            "agent.oful.zip: must be a table",
        ),
        (
            "switch = [0.0, 1.0]",
            "switch = [0.0]\n[agent.oful.zip]\nlam = [1.0]\nT = [9, 10]",
            "agent.oful.zip: must hold lists of one length, got lengths .1, 2.",
        ),
        (
            "switch = [0.0, 1.0]",
            "switch = [0.0]\n[agent.oful.zip]\nswitch = [1.0]",
            "agent.oful.zip.switch: is in the grid",
        ),
        ("switch = [0.0, 1.0]", "T = [0]", ":29: agent.oful.grid.T: T must be an integer"),
        ("gamma = [-2.0, 1.0]", "gamma = [-2.0, -2.0]", "env: must not have arms.gamma=-2.0. twice"),
        ("gamma = [-2.0, 1.0]", 'gamma = ["x"]', ":20: env.arms.grid.gamma: gamma must be a real"),
    ],
)
def test_errors_name_the_line_the_key_and_what_is_allowed(file: Path, old: str, new: str, words: str) -> None:
    assert old in TEXT
    file.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(StudyError, match=words):
        lbm.Study.from_toml(file)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**20)
    | st.floats()
    | st.sampled_from(["env", "O3M", "OFUL", "Doubling", "", "log", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["d", "m", "T", "x"]), inner),
    max_leaves=6,
)


def paths(document: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here] if here else []
    if isinstance(document, dict):
        for key, value in document.items():
            found += paths(value, (*here, key))
    elif isinstance(document, list):
        for k, value in enumerate(document):
            found += paths(value, (*here, k))
    return found


def mutate(data: st.DataObject) -> None:
    """A study with a few values replaced or removed is read, or refused with an error of its own."""
    document = tomllib.loads(TEXT)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(paths(document)))
        place: Any = document
        try:
            for key in path[:-1]:
                place = place[key]
            if data.draw(st.booleans()):
                place[path[-1]] = data.draw(VALUES)
            elif isinstance(place, dict):
                place.pop(path[-1], None)
        except (KeyError, IndexError, TypeError):
            continue
    with contextlib.suppress(StudyError):
        parse(document)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_mutated_studies_never_fail_inside(data: st.DataObject) -> None:
    mutate(data)


@pytest.mark.slow
@settings(max_examples=10_000, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_ten_thousand_mutated_studies_never_fail_inside(data: st.DataObject) -> None:
    mutate(data)


def mutate_text(path: Path, data: st.DataObject) -> None:
    """A file with characters deleted, doubled and replaced is read, or refused with an error of its own."""
    text = list(TEXT)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at] = data.draw(st.sampled_from(["", text[at] * 2, *'[]={}"', "\n", "9", "-", "."]))
    path.write_text("".join(text))
    with contextlib.suppress(StudyError):
        lbm.Study.from_toml(path)


@settings(max_examples=200)
@given(st.data())
def test_mutated_files_never_fail_inside(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    mutate_text(tmp_path_factory.getbasetemp() / "mutated.toml", data)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(st.data())
def test_ten_thousand_mutated_files_never_fail_inside(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    mutate_text(tmp_path_factory.getbasetemp() / "mutated.toml", data)


# --- every agent and set of actions -------------------------------------------------------------------


#: Agents that the first version did not have.
LATER = {"Auto", "Corral", "EpsilonGreedy", "LinTS", "Random", "RegretBalancing", "Rolling"}


def test_keys_of_cells_are_those_of_stored_studies() -> None:
    """A key that changes would compute again what is stored: made by the first version."""
    stored = json.loads((DATA / "study_keys.json").read_text())
    spec = parse(stored["study"])
    assert spec.fingerprint == stored["fingerprint"]
    assert {f"{c.env_name}/{c.agent_name}": spec.key(c) for c in spec.cells} == stored["keys"]
    assert {cell.agent_name for cell in spec.cells} == set(AGENTS) - LATER


def test_a_file_may_name_every_agent_and_every_set_of_actions() -> None:
    concrete = {
        name for name, value in vars(agents).items() if isinstance(value, type) and value is not agents.Agent
    }
    assert set(AGENTS) == concrete
    assert all(issubclass(kind, agents.Agent) for kind in AGENTS.values())
    public = {kind for kind in vars(lbm.model.actions).values() if isinstance(kind, type)}
    sets = {kind for kind in public if issubclass(kind, ActionSet) and not kind.__name__.startswith("_")}
    # Arms that are offered step by step are a live policy's alone.
    assert set(ACTION_SETS.values()) == sets - {ActionSet, Offered}


def document(**agent: Any) -> dict[str, Any]:
    return {"T": 50, "env": {"e": {"theta": [0.6, 0.8], "m": 1, "gamma": -2.0}}, "agent": {"a": agent}}


def test_an_agent_around_another_one_is_a_table_in_a_table() -> None:
    (cell,) = parse(document(type="Doubling", agent={"type": "OFUL", "horizon": 8})).cells
    assert cell.agent == lbm.Doubling(lbm.OFUL(8))
    (cell,) = parse(document(type="EvidenceSelector", candidates=[[0, 0.0], [1, -2.0]], L=3)).cells
    assert cell.agent == lbm.EvidenceSelector([(0, 0.0), (1, -2.0)], 50, L=3)
    (cell,) = parse(document(type="Corral", candidates=[[0, 0.0], [1, -2.0]], L=[1, 3], smooth=False)).cells
    assert cell.agent == lbm.Corral([(0, 0.0), (1, -2.0)], 50, L=[1, 3], smooth=False)


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ({"type": "Doubling"}, "agent.a.agent: must be a table with the agent that Doubling plays"),
        (
            {"type": "Doubling", "agent": {"type": "Doubling"}},
            "agent.a.agent.type: cannot be Doubling again",
        ),
        (
            {"type": "Doubling", "agent": {"type": "UFO"}},
            "agent.a.agent.type: must be one of .*, got 'UFO'",
        ),
        ({"type": "BanditCombiner", "candidates": [[1]]}, "agent.a.candidates: candidates must be pairs"),
    ],
)
def test_errors_in_agents_name_the_key(agent: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        parse(document(**agent))


def test_actions_are_named_with_what_they_take() -> None:
    wrong = document(type="OracleGreedy")
    wrong["env"]["e"]["actions"] = 3
    with pytest.raises(
        StudyError, match=r"env.e.actions: must be one of \{ball = d\}, \{finite = arms\}, .*got 3"
    ):
        parse(wrong)
