"""State files of the versions before: they are read, and the policy goes on as if nothing had happened."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fastlbm as lbm

#: Written by version 0.1 after 18 steps of `play`, and by the last ones whose states had versions 2 and 3.
FILES, FILES_2, FILES_3 = (Path(__file__).parents[1] / "data" / f"live-{version}" for version in (1, 2, 3))
ARMS = lbm.Finite([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
PAIRS = [(0, 0.0), (1, -2.0)]
CASES: dict[str, tuple[lbm.agents.Agent, lbm.model.ActionSet | lbm.LBM]] = {
    "O3M": (lbm.O3M(1, -2.0, 100, L=3), lbm.Ball(2)),
    "OMBlock": (lbm.OMBlock(1, -1.0, 100, L=3), lbm.Ball(2)),
    "OFUL": (lbm.OFUL(100), ARMS),
    "Doubling": (lbm.Doubling(lbm.O3M(1, -1.0, 8, L=3)), ARMS),
    "EvidenceSelector": (lbm.EvidenceSelector(PAIRS, 100, L=3), lbm.Ball(2)),
    "BanditCombiner": (lbm.BanditCombiner(PAIRS, 100, L=3), lbm.Ball(2)),
    "OracleGreedy": (lbm.OracleGreedy(), lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)),
}
CASES_2 = CASES | {
    "Rolling": (lbm.Rolling(1, -2.0), lbm.Ball(2)),
    "RollingOnArms": (lbm.Rolling(1, -2.0), ARMS),
    "switching": (lbm.O3M(2, -2.0, 500, L=3, switch=1.0), lbm.Ball(2)),
}
CASES_3 = {"Auto": (lbm.Auto(memories=[0, 1], gammas=[-2.0, -1.0]), lbm.Ball(2))}
#: Those whose plans have other numbers by now: what they learned is what the file says.
OTHER_NUMBERS = {"switching"}


def play(live: lbm.Live, steps: int) -> list[np.ndarray]:
    """Some steps; every fifth reward does not come."""
    actions = []
    for _ in range(steps):
        t = live.t
        actions.append(live.act())
        if t % 5 != 3:
            live.update(0.3 * actions[-1][0] + 0.1 * (t % 3))
    return actions


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        *((name, FILES) for name in CASES),
        *((name, FILES_2) for name in CASES_2),
        *((name, FILES_3) for name in CASES_3),
    ],
)
def test_a_state_of_a_version_before_goes_on(name: str, folder: Path) -> None:
    agent, actions = (CASES_2 | CASES_3)[name]
    fresh = agent.start(actions, seed=4)
    play(fresh, 18)
    live = agent.start(actions).load(folder / f"{name}.npz")
    assert (live.t, live.plans) == (18, fresh.plans)
    if fresh.theta is not None:
        learned = fresh.theta
        if name in OTHER_NUMBERS:
            with np.load(folder / f"{name}.npz") as file:
                learned = file["estimator.theta"]
        # Another machine may round a plan differently; what was learned is nearly the same.
        np.testing.assert_allclose(live.theta, learned, rtol=1e-3, atol=1e-3)
        for policy in (live, fresh):
            policy.update(0.2, step=13)
    found, expected = play(live, 12), play(fresh, 12)
    if isinstance(actions, lbm.Finite):
        np.testing.assert_array_equal(found, expected)
    assert live.plans == fresh.plans


def test_a_state_of_version_1_becomes_one_of_today(tmp_path: Path) -> None:
    agent, actions = CASES["EvidenceSelector"]
    live = agent.start(actions).load(FILES / "EvidenceSelector.npz")
    again = agent.start(actions).load(live.save(tmp_path / "state"))
    np.testing.assert_array_equal(play(live, 9), play(again, 9))
    with np.load(tmp_path / "state") as file:
        assert not [name for name in file.files if "desk" in name or "jury" in name or "waiting" in name]


def test_a_state_of_version_1_that_learned_otherwise_is_refused() -> None:
    live = lbm.O3M(2, -2.0, 500, L=3, switch=1.0).start(lbm.Ball(2))
    with pytest.raises(ValueError, match=r"can go on from, got .* of version 1"):
        live.load(FILES / "switching.npz")
    live.act()


def test_a_state_of_version_2_of_auto_kept_other_things_and_is_refused() -> None:
    live = lbm.Auto(memories=[0, 1], gammas=[-2.0, -1.0]).start(lbm.Ball(2))
    with pytest.raises(ValueError, match=r"can go on from, got .* of version 2, in which Auto.* kept other"):
        live.load(FILES_2 / "Auto.npz")
    live.act()


def test_what_a_version_before_did_not_keep_of_the_past_is_not_learned_from() -> None:
    # O3M of version 2 is in the third action of its fifth block: its m = 1 action before is known, its
    # twelfth step is not. With switch and m = 2, the two actions before the first of a pass are not known.
    agent, actions = CASES_2["O3M"]
    live = agent.start(actions).load(FILES_2 / "O3M.npz")
    V = live.V_inv.copy()
    live.observe([1.0, 0.0], 0.5)
    assert (live.V_inv != V).any()
    agent = lbm.O3M(3, -2.0, 100, L=3)
    live = agent.start(lbm.Ball(2))
    live._recent[0] = np.nan
    V = live.V_inv.copy()
    live.observe([1.0, 0.0], 0.5)
    np.testing.assert_array_equal(live.V_inv, V)
    again = agent.start(lbm.Ball(2)).from_bytes(live.to_bytes())
    for policy in (live, again):
        policy.observe([1.0, 0.0], 0.5)
        assert (policy.V_inv != V).any()
