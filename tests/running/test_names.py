"""Names in the place of numbers: what is offered, observed and replayed, and what a live policy calls it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fastlbm as lbm
from tests.running.test_live import snapshot

NAMES = ["Blue", "Jolene", "Respect"]
ARMS = [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]
SONGS = lbm.Finite(ARMS, names=NAMES)
AGENT = lbm.Rolling(1, -2.0)


def started(seed: int = 0) -> lbm.Live:
    return AGENT.start(SONGS, seed=seed)


# --- what it is called ----------------------------------------------------------------------------------


def test_an_arm_of_the_set_has_its_name_however_it_was_offered() -> None:
    live = started()
    live.act([ARMS[1]])
    assert (live.arm, live.name) == (0, "Jolene")
    live.act(lbm.Finite([ARMS[2]]))
    assert (live.arm, live.name) == (0, "Respect")
    live.act([[0.8, 0.6]])
    assert (live.arm, live.name) == (0, None)
    live.act(lbm.Finite([ARMS[0], ARMS[0]], names=["x", "y"]))
    assert (live.arm, live.name) == (0, "x")  # offered by a name of its own
    live.observe(ARMS[1], 0.4)
    assert (live.arm, live.name) == (1, "Jolene")
    live.replay([ARMS[2]], [0.4])
    assert live.name == "Respect"


def test_before_the_first_step_there_is_no_name() -> None:
    live = AGENT.start(lbm.Finite([[0.0, 0.0], [1.0, 0.0]], names=["rest", "Blue"]))
    assert (live.arm, live.name) == (None, None)  # though all actions before were zeros


def test_the_name_is_known_after_loading_and_in_another_thread(tmp_path: Path) -> None:
    live = started()
    live.act([ARMS[1]])
    assert started().load(live.save(tmp_path / "state")).name == "Jolene"
    assert started().from_bytes(live.to_bytes()).name == "Jolene"
    assert copy.copy(live).name == "Jolene"
    seen = []
    thread = threading.Thread(target=lambda: seen.append(live.name))
    thread.start()
    thread.join()
    assert seen == ["Jolene"]


# --- names that are told --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, lambda names: np.array(names, object)])
def test_names_are_the_arms_that_they_name(kind: Callable[[list[str]], object]) -> None:
    live, other = started(), started()
    for t, names in enumerate((["Jolene", "Blue"], ["Respect"], ["Respect", "Blue", "Jolene"]) * 4):
        action = live.act(kind(names))  # type: ignore[arg-type]
        np.testing.assert_array_equal(action, other.act([ARMS[NAMES.index(name)] for name in names]))
        assert live.arm == other.arm
        assert live.name == other.name == names[live.arm]
        for each in (live, other):
            each.update(0.1 * t)
    log = ["Blue", "Blue", "Respect"]
    live.replay(kind(log), [0.1, np.nan, 0.3])  # type: ignore[arg-type]
    other.replay([ARMS[NAMES.index(name)] for name in log], [0.1, np.nan, 0.3])
    live.observe("Jolene", 0.4)
    other.observe(ARMS[1], 0.4)
    assert (live.arm, live.name) == (other.arm, other.name) == (1, "Jolene")
    assert snapshot(live) == snapshot(other)


def test_an_agent_is_fitted_by_names() -> None:
    fitted = AGENT.fit(["Blue", "Jolene"], [0.1, 0.2], on=SONGS)
    assert snapshot(fitted) == snapshot(AGENT.fit(ARMS[:2], [0.1, 0.2], on=SONGS))
    assert fitted.name == "Jolene"
    model = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0, actions=SONGS)
    assert AGENT.fit(["Blue"], [0.1], on=model).name == "Blue"


def test_of_equal_arms_the_one_that_was_told_is_meant() -> None:
    live = AGENT.start(lbm.Finite([ARMS[0], ARMS[0]], names=["Blue", "Cover"]))
    live.observe("Cover", 0.5)
    assert (live.arm, live.name) == (1, "Cover")
    live.act(["Cover"])
    assert (live.arm, live.name) == (0, "Cover")
    live.observe(ARMS[0], 0.5)
    assert (live.arm, live.name) == (0, "Blue")


KNOWN = "where the names are 'Blue', 'Jolene', 'Respect'"
NONE = r"where the arms have no names: see Finite\(arms, names=\.\.\.\)"
MANY = lbm.Finite(np.full((30, 2), 0.1), names=[f"song {k}" for k in range(30)])


@pytest.mark.parametrize(
    ("actions", "mistake", "error", "words"),
    [
        (
            SONGS,
            lambda live: live.act(["Blue", "Bleu"]),
            ValueError,
            f"^arms must be names .* got 'Bleu', {KNOWN}",
        ),
        (SONGS, lambda live: live.act(["Blue", 0.5]), ValueError, f"^arms must be names .* got 0.5, {KNOWN}"),
        (
            SONGS,
            lambda live: live.act([ARMS[0], "Blue"]),
            ValueError,
            r"^arms must be .* got \[1.0, 0.0\], where",
        ),
        (
            SONGS,
            lambda live: live.act(["Blue", "Blue"]),
            ValueError,
            "^arms must be names that .* 'Blue' twice",
        ),
        (
            SONGS,
            lambda live: live.act("Blue"),
            TypeError,
            "^arms must be a list of names .* got the text 'Blue'",
        ),
        (
            SONGS,
            lambda live: live.observe("Bleu", 0.4),
            ValueError,
            f"^action must be .* got 'Bleu', {KNOWN}",
        ),
        (
            SONGS,
            lambda live: live.observe(["Blue"], 0.4),
            TypeError,
            r"^action must be .* got a list with texts",
        ),
        (
            SONGS,
            lambda live: live.replay(["Bleu"], [0.4]),
            ValueError,
            f"^actions must be .* got 'Bleu', {KNOWN}",
        ),
        (SONGS, lambda live: live.replay(["Blue"], [0.4, 0.5]), ValueError, "^rewards must have shape"),
        (SONGS, lambda live: live.replay("Blue", [0.4]), TypeError, "^actions must be a list of names"),
        (
            SONGS,
            lambda live: SONGS.arm("Bleu"),
            ValueError,
            f"^name must be the name of an arm, got 'Bleu', {KNOWN}",
        ),
        (MANY, lambda live: live.act(["sonk 7"]), ValueError, "where there are 30 names, such as 'song 7',"),
        (
            MANY,
            lambda live: live.act(["x" * 999]),
            ValueError,
            "there are 30 names, such as 'song 0', 'song 1',",
        ),
        (
            lbm.Finite(ARMS),
            lambda live: live.act(["Blue"]),
            ValueError,
            f"^arms must be .* got 'Blue', {NONE}",
        ),
        (lbm.Ball(2), lambda live: live.act(["Blue"]), ValueError, f"^arms must be .* got 'Blue', {NONE}"),
        (
            lbm.Ball(2),
            lambda live: live.observe("Blue"),
            ValueError,
            f"^action must be .* got 'Blue', {NONE}",
        ),
        (
            lbm.Ball(2),
            lambda live: live.replay(["Blue"], [1.0]),
            ValueError,
            f"^actions must .* 'Blue', {NONE}",
        ),
        (
            lbm.Ball(2),
            lambda live: AGENT.fit(["Blue"], [1.0]),
            ValueError,
            f"^actions must .* 'Blue', {NONE}",
        ),
    ],
)
def test_what_is_no_name_is_told_with_what_there_is(
    actions: lbm.Ball | lbm.Finite, mistake: Callable[[lbm.Live], object], error: type[Exception], words: str
) -> None:
    live = AGENT.start(actions)
    live.act()
    before = snapshot(live)
    with pytest.raises(error, match=words) as raised:
        mistake(live)
    assert len(str(raised.value)) < 300
    assert snapshot(live) == before
