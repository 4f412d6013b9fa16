"""Action sets: members, projections, samples, errors, and sets as values."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fastlbm.model.actions import ActionSet, Ball, Contextual, Finite

pytestmark = pytest.mark.nojit

CROSS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
SETS = [Ball(2), Finite(CROSS), Contextual(np.stack([CROSS, 0.5 * CROSS, CROSS[::-1]]))]
each_set = pytest.mark.parametrize("actions", SETS, ids=lambda s: type(s).__name__)


@st.composite
def sets_and_rows(draw: st.DrawFn) -> tuple[ActionSet, np.ndarray, int]:
    """A set, rows (n, d) of any size around it, and the step of the first row."""
    d, n, start, K = (draw(st.integers(1, 4)) for _ in range(4))
    kind = draw(st.sampled_from(["ball", "finite", "contextual"]))
    rows = draw(arrays(np.float64, (n, d), elements=st.floats(-3.0, 3.0)))
    if kind == "ball":
        return Ball(d), rows, start
    shape = (K, d) if kind == "finite" else (start + n, K, d)
    arms = draw(arrays(np.float64, shape, elements=st.floats(-0.5, 0.5)))
    return (Finite if kind == "finite" else Contextual)(arms), rows, start


@given(sets_and_rows())
def test_project_is_an_idempotent_member(case: tuple[ActionSet, np.ndarray, int]) -> None:
    actions, rows, start = case
    nearest = actions.project(rows, start)
    assert nearest.shape == rows.shape
    assert actions.contains(nearest, start).all()
    np.testing.assert_allclose(actions.project(nearest, start), nearest, rtol=1e-15, atol=0.0)


@given(sets_and_rows(), st.integers(0, 2**32))
def test_no_member_is_nearer_than_the_projection(case: tuple[ActionSet, np.ndarray, int], seed: int) -> None:
    actions, rows, start = case
    nearest = np.linalg.norm(rows - actions.project(rows, start), axis=1)
    other = np.linalg.norm(rows - actions.sample(len(rows), seed, start), axis=1)
    assert (nearest <= other + 1e-12).all()


@given(sets_and_rows(), st.integers(0, 2**32))
def test_samples_are_members(case: tuple[ActionSet, np.ndarray, int], seed: int) -> None:
    actions, rows, start = case
    drawn = actions.sample(len(rows), seed, start)
    assert drawn.shape == rows.shape
    assert actions.contains(drawn, start).all()


@each_set
def test_no_rows(actions: ActionSet) -> None:
    empty = np.empty((0, 2))
    assert actions.project(empty).shape == actions.sample(0).shape == (0, 2)
    assert actions.contains(empty).shape == (0,)


def test_ball_projects_rows_whose_square_overflows() -> None:
    np.testing.assert_allclose(Ball(2).project([[3e200, 4e200], [-1e308, 0.0]]), [[0.6, 0.8], [-1.0, 0.0]])
    assert not Ball(2).contains([[3e200, 4e200]]).any()


def test_contains_forgives_rounding_only() -> None:
    for actions in SETS:
        inside = actions.contains([[1.0 + 5e-10, 0.0]])
        outside = actions.contains([[1.0 + 2e-9, 0.0]])
        assert inside.dtype == np.bool_
        assert inside.all()
        assert not outside.any()


def test_finite_match_is_the_nearest_and_the_first_of_equals() -> None:
    finite = Finite([*CROSS, CROSS[0]])
    assert finite.K == 5
    assert finite.match([[0.9, 0.1], [-0.1, -0.2], [1.0, 0.0]]).tolist() == [0, 3, 0]
    assert finite.contains([[0.9, 0.1], [-1.0, 0.0]]).tolist() == [False, True]


def test_match_does_not_depend_on_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Ball(2).sample(50, seed=0)
    sets = [Finite(CROSS), Contextual(Ball(2).sample(50 * 3, seed=1).reshape(50, 3, 2))]
    whole = [s.match(rows) for s in sets]
    monkeypatch.setattr("fastlbm.model.actions._CHUNK", 17)
    for expected, s in zip(whole, sets, strict=True):
        np.testing.assert_array_equal(s.match(rows), expected)
        gaps = np.linalg.norm(rows[:, None] - s._sets(0, 50), axis=2)
        np.testing.assert_array_equal(expected, gaps.argmin(axis=1))


def test_contextual_uses_the_arms_of_the_step() -> None:
    sets = SETS[2]
    rows = [[0.9, 0.0], [0.0, 0.9]]
    np.testing.assert_array_equal(sets.project(rows), [[1.0, 0.0], [0.0, 0.5]])
    np.testing.assert_array_equal(sets.project(rows, start=1), [[0.5, 0.0], [0.0, 1.0]])
    assert sets.match(rows, start=1).tolist() == [0, 2]
    assert sets.contains([[0.5, 0.0]], start=1).all()
    assert not sets.contains([[0.5, 0.0]], start=2).any()
    assert np.linalg.norm(sets.sample(2, seed=0, start=1), axis=1).tolist() == [0.5, 1.0]


def test_a_contextual_ends() -> None:
    sets = SETS[2]
    sets.require(3)
    with pytest.raises(ValueError, match=r"actions must offer a set for each of T=100 steps, got 3"):
        sets.require(100)
    for beyond in (
        lambda: sets.project(np.zeros((3, 2)), start=1),
        lambda: sets.contains(np.zeros((3, 2)), start=1),
        lambda: sets.match(np.zeros((4, 2))),
        lambda: sets.sample(1, start=3),
    ):
        with pytest.raises(ValueError, match="T=4 steps, got 3"):
            beyond()
    with pytest.raises(ValueError, match="start"):
        sets.sample(1, start=-1)


def test_other_sets_never_end() -> None:
    for actions in SETS[:2]:
        actions.require(10**9)
        assert actions.sample(2, seed=0, start=10**9).shape == (2, 2)


@each_set
def test_seeds_follow_spec_7(actions: ActionSet) -> None:
    sequence = np.random.SeedSequence(7)
    for seed in (7, np.random.SeedSequence(7), np.random.default_rng(7)):
        np.testing.assert_array_equal(actions.sample(3, seed), actions.sample(3, sequence))
    rng = np.random.default_rng(7)
    first, second = actions.sample(3, rng), actions.sample(3, rng)
    np.testing.assert_array_equal(first, actions.sample(3, 7))
    assert isinstance(actions, Finite | Contextual) or not np.array_equal(first, second)
    assert actions.sample(3).shape == (3, 2)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_ball_samples_are_uniform(d: int) -> None:
    rows = Ball(d).sample(20_000, seed=0)
    quantiles = np.sort(np.linalg.norm(rows, axis=1) ** d)  # uniform on [0, 1]
    assert np.abs(quantiles - np.linspace(0.0, 1.0, len(rows))).max() < 1.63 / np.sqrt(len(rows))  # KS, 1%
    np.testing.assert_allclose(rows.mean(axis=0), 0.0, atol=0.02)
    np.testing.assert_allclose(rows.T @ rows / len(rows), np.eye(d) / (d + 2), atol=0.01)


def test_arms_are_drawn_uniformly() -> None:
    finite = Finite(CROSS)
    counts = np.bincount(finite.match(finite.sample(20_000, seed=0)), minlength=4)
    assert np.abs(counts - 5_000).max() < 250


@pytest.mark.parametrize("value", [0, -1, 1.5, float("nan"), float("inf")])
def test_bad_dimension(value: float) -> None:
    with pytest.raises(ValueError, match="d must"):
        Ball(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "arms"),
    [
        (Finite, np.empty((0, 2))),
        (Finite, np.empty((2, 0))),
        (Finite, [1.0, 0.0]),
        (Finite, [[1.0, 0.1]]),
        (Finite, [[np.nan, 0.0]]),
        (Contextual, CROSS),
        (Contextual, np.empty((0, 1, 1))),
        (Contextual, [[[1.0, 0.1]]]),
        (Contextual, [[[np.inf, 0.0]]]),
    ],
)
def test_bad_arms(make: type[Finite] | type[Contextual], arms: object) -> None:
    with pytest.raises(ValueError, match="arms must"):
        make(arms)  # type: ignore[arg-type]


def test_arguments_of_the_wrong_type() -> None:
    with pytest.raises(TypeError, match="d must"):
        Ball("3")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="arms must"):
        Finite([["a", "b"]])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="seed must"):
        Ball(2).sample(1, seed="a")  # type: ignore[arg-type]


@each_set
def test_bad_arguments(actions: ActionSet) -> None:
    for bad in ([0.0, 0.0], [[0.0, 0.0, 0.0]], [[np.nan, 0.0]]):
        with pytest.raises(ValueError, match="actions must"):
            actions.project(bad)
        with pytest.raises(ValueError, match="actions must"):
            actions.contains(bad)
    with pytest.raises(ValueError, match="n must"):
        actions.sample(-1)
    with pytest.raises(ValueError, match="seed must"):
        actions.sample(1, seed=-1)


@each_set
def test_sets_are_values(actions: ActionSet) -> None:
    again = type(actions)(*actions._arguments().values())
    copies = [again, copy.copy(actions), copy.deepcopy(actions), pickle.loads(pickle.dumps(actions))]
    for twin in copies:
        assert twin == actions
        assert hash(twin) == hash(actions)
        assert twin.d == actions.d == 2
        if not isinstance(actions, Ball):
            assert not twin.arms.flags.writeable
    assert all((actions == other) == (actions is other) for other in SETS)
    assert actions != "something else"


def test_equality_is_by_value() -> None:
    assert Ball(2) != Ball(3)
    assert Finite(CROSS) != Finite(CROSS[::-1])
    assert Finite(np.zeros((1, 4))) != Finite(np.zeros((2, 2)))
    assert Finite([[-0.0, 1.0]]) == Finite([[0.0, 1.0]])
    assert hash(Finite([[-0.0, 1.0]])) == hash(Finite([[0.0, 1.0]]))


def test_sets_are_immutable() -> None:
    arms = CROSS.copy()
    finite = Finite(arms)
    arms[0] = 0.0
    np.testing.assert_array_equal(finite.arms, CROSS)
    with pytest.raises(ValueError, match="read-only"):
        finite.arms[0, 0] = 0.5
    with pytest.raises(dataclasses.FrozenInstanceError):
        finite.arms = arms  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Ball(2).d = 3  # type: ignore[misc]
    assert not hasattr(finite, "__dict__")


def test_repr_shows_small_sets() -> None:
    assert repr(Ball(3)) == "Ball(d=3)"
    assert eval(repr(Finite(CROSS))) == Finite(CROSS)
    assert repr(Contextual(np.zeros((9, 2, 3)))) == "Contextual(arms=<array (9, 2, 3)>)"
