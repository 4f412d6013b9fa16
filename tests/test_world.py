"""The world of an episode: rewards, stretches, repetitions, records, noise, and the small eigensolver."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.kernels.eigen_tiles import LAPACK_FROM
from fastlbm.kernels.world import (
    GAUSSIAN,
    PLANS,
    PLAYED,
    POSITION,
    RADEMACHER,
    RECORDED,
    REPEATS,
    STEP,
    TIME,
    UNIFORM,
    Desk,
    Past,
    Tape,
    World,
    eigen,
    make_desk,
    make_past,
    make_world,
    play,
    product,
    push,
    response,
    rewards,
)
from fastlbm.model import LBM

from . import naive
from .naive import Array

MEMORIES = (0, 1, 2, 3, 4, 5, math.inf)
GAMMAS = (-3.0, -1.7, 0.0, 0.5, 1.0, 2.3)
MATRICES = ("default", "0.25", "corner", "dense", "0.0005")
NOISES = (GAUSSIAN, UNIFORM, RADEMACHER)


def matrix(kind: str, d: int) -> Array:
    A0 = naive.initial_matrix(kind, d, np.random.default_rng(d))
    return np.eye(d) if A0 is None else A0


def unit(d: int, seed: int = 0) -> Array:
    theta = np.random.default_rng([seed, d]).normal(size=d)
    return theta / np.linalg.norm(theta)


def a_world(
    d: int = 3,
    m: float = 2,
    gamma: float = -1.7,
    A0: str = "default",
    sigma: float = 0.0,
    noise: int = GAUSSIAN,
) -> World:
    return make_world(unit(d), matrix(A0, d), m, gamma, sigma, noise)


def block(n: int, d: int, seed: int = 0) -> Array:
    return naive.ball(n, d, np.random.default_rng([seed, n, d]))


class Stage(NamedTuple):
    """All that playing changes."""

    past: Past
    desk: Desk
    tape: Tape
    rng: np.random.Generator


def stage(world: World, n: int, T: int, points: list[int] | None = None, keep: bool = True) -> Stage:
    """A desk for blocks of n actions and a tape for T steps, with a record after every one by default."""
    d = len(world.theta)
    at = np.arange(1, T + 1) if points is None else np.array(points, dtype=np.int64)
    records = np.full(len(at), np.nan), np.full(len(at), np.nan)
    actions = np.full((T if keep else 0, d), np.nan)
    tape = Tape(np.zeros(2), np.zeros(2, dtype=np.int64), at, *records, actions)
    return Stage(make_past(world), make_desk(n, d), tape, np.random.default_rng(5))


def put(desk: Desk, actions: Array, often: int) -> None:
    """A new block on the desk."""
    desk.block[:] = actions
    desk.at[[POSITION, PLAYED]] = 0
    desk.at[REPEATS] = often
    desk.at[PLANS] += 1


def run(world: World, s: Stage, until: int) -> None:
    play(world, s.past, s.tape, s.desk, s.rng, until)


def reference(world: World, actions: Array) -> Array:
    m = math.inf if world.m < 0 else world.m
    return naive.expected_rewards(world.theta, m, world.gamma, world.A0, actions)


def assert_close(result: Array, expected: Array) -> None:
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12 * (1.0 + np.abs(expected).max()))


def assert_same(one: Stage, other: Stage) -> None:
    """Bit for bit."""
    for left, right in zip(one[:3], other[:3], strict=True):
        for x, y in zip(left, right, strict=True):
            np.testing.assert_array_equal(x, y)
    assert one.rng.bit_generator.state == other.rng.bit_generator.state


def check_past(world: World, past: Past, actions: Array) -> None:
    """The past is what was played."""
    if world.m < 0:
        assert past.recent.shape[0] == 0
        X = world.A0 + actions.T @ actions
        np.testing.assert_allclose(past.X, X, rtol=1e-12, atol=1e-12)
        return
    padded = np.vstack([np.zeros((world.m, len(world.theta))), actions])
    np.testing.assert_array_equal(past.recent, padded[len(padded) - world.m :])
    np.testing.assert_array_equal(past.X, world.A0)


# --- rewards ------------------------------------------------------------------------------------------


@pytest.mark.nojit
def test_parameters_of_a_world() -> None:
    theta = unit(3)
    assert make_world(theta, np.eye(3), math.inf, -1.0).m == -1
    assert make_world(theta, np.eye(3), math.inf, -1.0).c == 0.0
    assert make_world(theta, 0.5 * np.eye(3), 2, -1.0).c == 0.5
    for A0, m in ((np.eye(3), 3), (np.eye(3), 0), (1e-4 * np.eye(3), 2), (np.diag([1.0, 1.0, 2.0]), 1)):
        assert make_world(theta, A0, m, -1.0).c == 0.0
    past = make_past(make_world(theta, 0.5 * np.eye(3), 2, -1.0))
    assert past.recent.shape == (2, 3)
    assert not past.recent.any()


@pytest.mark.nojit
@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("m", MEMORIES)
@pytest.mark.parametrize("A0", MATRICES)
def test_rewards_match_the_reference(A0: str, m: float, gamma: float) -> None:
    for d in (1, 2, 4):
        world = a_world(d, m, gamma, A0)
        actions = block(9, d)
        past = make_past(world)
        assert_close(rewards(world, past, actions), reference(world, actions))
        check_past(world, past, actions)


@pytest.mark.parametrize("m", [3, 12, 14, 20, math.inf])
@pytest.mark.parametrize("A0", ["default", "dense"])
def test_rewards_in_many_dimensions(A0: str, m: float) -> None:
    for d in (LAPACK_FROM - 1, LAPACK_FROM, 15):
        world = a_world(d, m, -1.7, A0)
        actions = block(25, d)
        assert_close(rewards(world, make_past(world), actions), reference(world, actions))


@pytest.mark.nojit
@pytest.mark.parametrize("gamma", [1.0, 1.5, 2.0, 3.7])
@pytest.mark.parametrize("m", MEMORIES)
def test_rewards_of_a_singular_A0(m: float, gamma: float) -> None:
    for A0 in (np.zeros((3, 3)), np.diag([1.0, 0.0, 0.0]), np.ones((3, 3))):
        world = make_world(unit(3), A0, m, gamma)
        actions = block(8, 3)
        assert_close(rewards(world, make_past(world), actions), reference(world, actions))


@pytest.mark.nojit
@pytest.mark.parametrize("m", MEMORIES)
def test_rewards_of_zero_and_repeated_actions(m: float) -> None:
    a, b = block(2, 3)
    for world in (a_world(3, m), a_world(3, m, A0="dense")):
        for sequence in ([0 * a] * 7, [a] * 9, [a] * 9 + [b] * 8 + [a, b, b, a], [a, 0 * a, -a, a] * 3):
            actions = np.array(sequence)
            past = make_past(world)
            assert_close(rewards(world, past, actions), reference(world, actions))
            check_past(world, past, actions)


@pytest.mark.nojit
def test_no_actions_no_rewards() -> None:
    world = a_world()
    assert rewards(world, make_past(world), np.zeros((0, 3))).shape == (0,)


def step_by_step(world: World, actions: Array) -> Array:
    past, g, out = make_past(world), np.empty(len(world.theta)), []
    for action in actions:
        response(world, past, g)
        out.append(product(g, action))
        push(world, past, action)
    return np.array(out)


@pytest.mark.nojit
@pytest.mark.parametrize("m", MEMORIES)
@pytest.mark.parametrize("A0", ["default", "dense"])
@pytest.mark.parametrize("gamma", [-1.7, 2.0])
def test_rewards_are_those_of_single_steps_bit_for_bit(gamma: float, A0: str, m: float) -> None:
    world = a_world(4, m, gamma, A0)
    actions = block(16, 4)
    actions[3:10] = actions[3]
    whole = rewards(world, make_past(world), actions)
    np.testing.assert_array_equal(whole, step_by_step(world, actions))
    # In two parts, at every cut.
    for cut in range(17):
        past = make_past(world)
        parts = [rewards(world, past, actions[:cut]), rewards(world, past, actions[cut:])]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("m", [2, 13, 16, math.inf])
def test_rewards_are_those_of_single_steps_bit_for_bit_in_many_dimensions(m: float) -> None:
    for A0 in ("default", "dense"):
        world = a_world(14, m, -1.7, A0)
        actions = block(30, 14)
        actions[5:25] = actions[5]
        whole = rewards(world, make_past(world), actions)
        np.testing.assert_array_equal(whole, step_by_step(world, actions))


@pytest.mark.nojit
@pytest.mark.parametrize("gamma", [-3.0, -1.7, 0.0, 1.0])
@pytest.mark.parametrize("m", [0, 1, 2, 3, 5])
def test_the_history_of_a_model_is_exact(m: int, gamma: float) -> None:
    for A0 in (None, matrix("dense", 3)):
        env = LBM.random(3, m, gamma, seed=4, A0=A0)
        actions = block(12, 3)
        actions[4:9] = actions[4]
        whole = env.expected_rewards(actions)
        for t in range(12):
            assert env.expected_rewards(actions[t : t + 1], history=actions[:t])[0] == whole[t]
            np.testing.assert_array_equal(env.expected_rewards(actions[t:], history=actions[:t]), whole[t:])


# --- playing ------------------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("m", MEMORIES)
@pytest.mark.parametrize("A0", ["default", "dense"])
@pytest.mark.parametrize("gamma", [-1.7, 0.5])
def test_a_repeated_block_pays_what_its_actions_pay(gamma: float, A0: str, m: float, n: int) -> None:
    world = a_world(3, m, gamma, A0)
    often = 8
    actions = block(n, 3)
    s = stage(world, n, often * n)
    put(s.desk, actions, often)
    run(world, s, 10**6)
    played = np.tile(actions, (often, 1))
    expected = reference(world, played)
    np.testing.assert_array_equal(s.tape.actions, played)
    assert_close(s.tape.reward, expected.cumsum())
    np.testing.assert_array_equal(s.tape.reward, rewards(world, make_past(world), played).cumsum())
    np.testing.assert_array_equal(s.tape.observed, s.tape.reward)
    np.testing.assert_array_equal(s.tape.sums, [s.tape.reward[-1], s.tape.observed[-1]])
    assert_close(s.desk.total, expected.reshape(often, n).sum(axis=0))
    np.testing.assert_array_equal(s.desk.seen, np.full(n, often))
    np.testing.assert_array_equal(s.desk.at, [0, often, often, often * n, 1])
    np.testing.assert_array_equal(s.tape.clock, [often * n, often * n])
    check_past(world, s.past, played)


@pytest.mark.nojit
@pytest.mark.parametrize("gamma", [1.0, 2.3])
def test_a_repeated_block_from_a_singular_A0(gamma: float) -> None:
    for m in (1, 3, math.inf):
        world = make_world(unit(3), np.diag([1.0, 0.0, 0.0]), m, gamma)
        s = stage(world, 2, 20)
        put(s.desk, block(2, 3), 10)
        run(world, s, 20)
        assert_close(s.tape.reward, reference(world, s.tape.actions).cumsum())


@pytest.mark.nojit
@pytest.mark.parametrize("stretch", [1, 2, 3, 5, 11])
@pytest.mark.parametrize("m", [0, 1, 2, 5, math.inf])
def test_stretches_do_not_matter(m: float, stretch: int) -> None:
    for n, A0 in ((1, "default"), (3, "dense"), (4, "default")):
        world = a_world(3, m, -1.7, A0, sigma=0.3)
        T = 9 * n
        s, whole = stage(world, n, T), stage(world, n, T)
        for one in (s, whole):
            put(one.desk, block(n, 3), 9)
        run(world, whole, T)
        for until in range(0, T + stretch, stretch):
            run(world, s, until)
            assert s.tape.clock[TIME] == min(until, T)
            check_past(world, s.past, s.tape.actions[: min(until, T)])
        assert_same(s, whole)


class Plan(NamedTuple):
    world: World
    n: int
    often: list[int]
    cuts: set[int]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    d, n = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    world = make_world(
        unit(d),
        matrix(draw(st.sampled_from(MATRICES)), d),
        draw(st.sampled_from([*MEMORIES, 9])),
        draw(st.sampled_from(GAMMAS)),
        0.2,
        draw(st.sampled_from(NOISES)),
    )
    often = draw(st.lists(st.integers(1, 8), min_size=1, max_size=5))
    return Plan(world, n, often, draw(st.sets(st.integers(0, n * sum(often)), max_size=8)))


@pytest.mark.nojit
@settings(max_examples=60)
@given(plans())
def test_any_blocks_in_any_stretches(plan: Plan) -> None:
    world, n, often, cuts = plan
    T, d = n * sum(often), len(world.theta)
    whole, s = stage(world, n, T), stage(world, n, T)
    for seed, times in enumerate(often):
        actions = block(n, d, seed)
        # Some blocks stay the same, as those of a learner do.
        actions = block(n, d, seed - 1) if seed % 3 == 2 else actions
        for one in (whole, s):
            put(one.desk, actions, times)
        run(world, whole, T)
        end = n * sum(often[: seed + 1])
        for until in [*sorted(cut for cut in cuts if end - n * times <= cut), T]:
            run(world, s, until)
            check_past(world, s.past, s.tape.actions[: min(until, end)])
    assert_same(s, whole)
    assert whole.tape.clock[TIME] == whole.desk.at[STEP] == T
    assert_close(whole.tape.reward, reference(world, whole.tape.actions).cumsum())
    np.testing.assert_array_equal(
        whole.tape.reward, rewards(world, make_past(world), whole.tape.actions).cumsum()
    )


@pytest.mark.nojit
@pytest.mark.parametrize("m", [0, 1, 3, 4, 7])
def test_many_repetitions_are_single_blocks_bit_for_bit(m: int) -> None:
    world, n, often = a_world(3, m, sigma=0.1), 3, 40
    first, actions = block(n, 3, 1), block(n, 3, 2)
    T = n * (2 * often + 1)
    fast, fresh = stage(world, n, T), stage(world, n, T)
    for one in (fast, fresh):
        put(one.desk, first, 1)
        run(world, one, n)
    for b in (actions, first):
        put(fast.desk, b, often)
        run(world, fast, 10**6)
        for _ in range(often):
            put(fresh.desk, b, 1)
            run(world, fresh, 10**6)
        played = fast.tape.actions[: fast.tape.clock[TIME]]
        check_past(world, fast.past, played)
        np.testing.assert_array_equal(fast.past.recent, fresh.past.recent)
        for x, y in zip(fast.tape, fresh.tape, strict=True):
            np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(fast.desk.total, fresh.desk.total)
        np.testing.assert_array_equal(fast.desk.seen, fresh.desk.seen)
        np.testing.assert_array_equal(fast.desk.reward, fresh.desk.reward)
        assert_close(
            fast.tape.reward[: len(played)],
            reference(world, played).cumsum(),
        )


def test_a_million_repetitions() -> None:
    world, n, often = a_world(3, 5), 3, 10**6
    s = stage(world, n, n * often, points=[3 * n, n * often], keep=False)
    put(s.desk, block(n, 3), often)
    run(world, s, n * often)
    rest = reference(world, np.tile(block(n, 3), (6, 1)))
    late = rest[-n:].sum()
    assert s.tape.reward[1] == pytest.approx(rest[: 3 * n].sum() + (often - 3) * late, rel=1e-10)
    np.testing.assert_array_equal(s.desk.seen, np.full(n, often))
    np.testing.assert_array_equal(s.past.recent, np.tile(block(n, 3), (2, 1))[1:])


@pytest.mark.nojit
@pytest.mark.parametrize("m", [2, math.inf])
def test_a_block_may_be_left_unfinished(m: float) -> None:
    world = a_world(2, m, sigma=0.5)
    s = stage(world, 3, 8)
    put(s.desk, block(3, 2), 100)
    run(world, s, 8)
    np.testing.assert_array_equal(s.desk.at, [2, 100, 2, 8, 1])
    np.testing.assert_array_equal(s.desk.seen, [3, 3, 2])
    np.testing.assert_array_equal(s.tape.actions, np.tile(block(3, 2), (3, 1))[:8])
    check_past(world, s.past, s.tape.actions)


@pytest.mark.nojit
def test_nothing_to_play_changes_nothing() -> None:
    world = a_world(sigma=0.5)
    for played in (0, 4, 30):
        s, same = stage(world, 3, 30), stage(world, 3, 30)
        for one in (s, same):
            put(one.desk, block(3, 3), 10)
            run(world, one, played)
        for until in (-1, 0, played):
            run(world, s, until)
        if played == 30:
            run(world, s, 100)
        assert_same(s, same)
    empty, again = stage(world, 3, 30), stage(world, 3, 30)
    run(world, empty, 30)
    assert_same(empty, again)


@pytest.mark.nojit
def test_rewards_are_collected_by_position() -> None:
    world = a_world(3, 2, sigma=0.4)
    s = stage(world, 3, 17)
    put(s.desk, block(3, 3), 10)
    run(world, s, 14)
    observed = np.diff(s.tape.observed[:14], prepend=0.0)
    for position in range(3):
        assert s.desk.total[position] == pytest.approx(observed[position::3].sum(), rel=1e-12)
        assert s.desk.seen[position] == len(observed[position::3])
    # The desk adds up until a learner clears it.
    put(s.desk, block(3, 3, 1), 1)
    run(world, s, 17)
    np.testing.assert_array_equal(s.desk.seen, [6, 6, 5])


@pytest.mark.nojit
@pytest.mark.parametrize("points", [[], [1], [12], [3, 4, 9], [1, 2, 11, 12], [5, 100]])
def test_records_are_made_at_the_points_asked_for(points: list[int]) -> None:
    world = a_world(2, 1, sigma=0.3)
    every, s = stage(world, 2, 12), stage(world, 2, 12, points)
    for one in (every, s):
        put(one.desk, block(2, 2), 6)
    run(world, every, 12)
    for until in (4, 5, 12):
        run(world, s, until)
        assert s.tape.clock[RECORDED] == sum(point <= until for point in points)
    reached = [point for point in points if point <= 12]
    index = np.array(reached, dtype=np.int64) - 1
    np.testing.assert_array_equal(s.tape.reward[: len(reached)], every.tape.reward[index])
    np.testing.assert_array_equal(s.tape.observed[: len(reached)], every.tape.observed[index])
    assert np.isnan(s.tape.reward[len(reached) :]).all()
    np.testing.assert_array_equal(s.tape.sums, every.tape.sums)


@pytest.mark.nojit
def test_actions_are_kept_on_request_only() -> None:
    world = a_world(sigma=0.3)
    kept, bare = stage(world, 3, 12), stage(world, 3, 12, keep=False)
    for one in (kept, bare):
        put(one.desk, block(3, 3), 4)
        run(world, one, 12)
    assert bare.tape.actions.shape == (0, 3)
    assert_same(Stage(kept.past, kept.desk, kept.tape._replace(actions=bare.tape.actions), kept.rng), bare)


@pytest.mark.nojit
@pytest.mark.parametrize("m", [0, 1, 2, 6])
@pytest.mark.parametrize("A0", ["default", "dense"])
def test_an_episode_and_the_model_agree_bit_for_bit(A0: str, m: int) -> None:
    env = LBM.random(4, m, -1.7, seed=3, A0=matrix(A0, 4), sigma=0.2, noise="uniform")
    world = env._world()
    s = stage(world, 2, 40)
    for seed in range(4):
        put(s.desk, block(2, 4, seed), 5)
        run(world, s, 100)
    np.testing.assert_array_equal(env.expected_rewards(s.tape.actions).cumsum(), s.tape.reward)


@pytest.mark.parametrize("m", [2, 13, 16])
def test_an_episode_and_the_model_agree_bit_for_bit_in_many_dimensions(m: int) -> None:
    for A0 in ("default", "dense"):
        env = LBM.random(14, m, -1.7, seed=3, A0=matrix(A0, 14))
        world = env._world()
        s = stage(world, 3, 120)
        for seed in range(4):
            put(s.desk, block(3, 14, seed), 10)
            run(world, s, 30 * seed + 7)
            run(world, s, 1000)
        np.testing.assert_array_equal(env.expected_rewards(s.tape.actions).cumsum(), s.tape.reward)
        whole = env.expected_rewards(s.tape.actions[:40])
        for t in range(40):
            one = env.expected_rewards(s.tape.actions[t : t + 1], history=s.tape.actions[:t])
            assert one[0] == whole[t]


# --- noise --------------------------------------------------------------------------------------------


def noises(noise: int, T: int, sigma: float, often: int = 10**9) -> Array:
    """The noise of T steps that pay nothing."""
    world = make_world(np.zeros(1), np.eye(1), 1, -1.0, sigma, noise)
    s = stage(world, 1, T)
    put(s.desk, np.ones((1, 1)), often)
    run(world, s, T)
    assert not s.tape.reward.any()
    return s.tape.observed


@pytest.mark.nojit
@pytest.mark.parametrize("noise", NOISES)
def test_noise_is_the_stream_of_numpy(noise: int) -> None:
    T, sigma = 300, 0.7
    rng = np.random.default_rng(5)
    if noise == GAUSSIAN:
        eta = sigma * rng.standard_normal(T)
    elif noise == UNIFORM:
        eta = sigma * math.sqrt(3.0) * (2.0 * rng.random(T) - 1.0)
    else:
        eta = np.where(rng.random(T) < 0.5, sigma, -sigma)
    np.testing.assert_array_equal(noises(noise, T, sigma), eta.cumsum())


@pytest.mark.parametrize("noise", NOISES)
def test_noise_has_its_moments_and_support(noise: int) -> None:
    sigma, T = 0.3, 200_000
    eta = np.diff(noises(noise, T, sigma), prepend=0.0)
    assert abs(eta.mean()) < 4 * sigma / math.sqrt(T)
    assert eta.std() == pytest.approx(sigma, rel=0.01)
    assert np.mean(eta**4) == pytest.approx([3.0, 1.8, 1.0][noise] * sigma**4, rel=0.03)
    assert abs(np.mean(eta[1:] * eta[:-1])) < 4 * sigma**2 / math.sqrt(T)
    if noise == GAUSSIAN:
        assert 4.0 * sigma < np.abs(eta).max() < 6.0 * sigma
    elif noise == UNIFORM:
        assert 0.999 * sigma < np.abs(eta).max() / math.sqrt(3.0) < sigma * (1.0 + 1e-9)
    else:
        np.testing.assert_allclose(np.abs(eta), sigma, rtol=1e-9)


@pytest.mark.nojit
@pytest.mark.parametrize("noise", NOISES)
def test_every_block_meets_the_same_noise(noise: int) -> None:
    T, found = 24, []
    for n, m, often in ((1, 0, 24), (1, 3, 1), (3, 2, 8), (4, 5, 6), (2, math.inf, 3), (24, 1, 1)):
        world = a_world(3, m, sigma=0.5, noise=noise)
        s = stage(world, n, T)
        for seed in range(T // (n * often)):
            put(s.desk, block(n, 3, seed), often)
            run(world, s, T)
        assert s.tape.clock[TIME] == T
        found.append(s)
    for s in found:
        np.testing.assert_allclose(
            s.tape.observed - s.tape.reward, found[0].tape.observed - found[0].tape.reward, atol=1e-13
        )
        assert s.rng.bit_generator.state == found[0].rng.bit_generator.state


@pytest.mark.nojit
@pytest.mark.parametrize("noise", NOISES)
def test_no_noise(noise: int) -> None:
    assert not noises(noise, 20, 0.0).any()


# --- eigenvalues --------------------------------------------------------------------------------------


def check_eigen(A: Array) -> None:
    """Orthogonality, reconstruction and eigenvalues, relative to the norm of A."""
    k = len(A)
    work, Q = A.copy(), np.full((k, k), np.nan)
    eigen(work, Q)
    lam = np.diag(work)
    largest = np.abs(A).max() or 1.0
    norm = np.linalg.norm(A / largest) or 1.0
    np.testing.assert_allclose(Q.T @ Q, np.eye(k), rtol=0, atol=1e-14)
    np.testing.assert_allclose((Q * (lam / largest)) @ Q.T, A / largest, rtol=0, atol=1e-14 * norm)
    np.testing.assert_allclose(
        np.sort(lam / largest), np.linalg.eigvalsh(A / largest), rtol=0, atol=1e-14 * norm
    )


def with_spectrum(lam: Array, seed: int = 0) -> Array:
    Q = naive.orthogonal(len(lam), np.random.default_rng([seed, len(lam)]))
    A = (Q * lam) @ Q.T
    return 0.5 * (A + A.T)


@pytest.mark.nojit
@pytest.mark.parametrize("k", range(1, 15))
def test_eigen(k: int) -> None:
    rng = np.random.default_rng(k)
    for _ in range(5):
        X = rng.normal(size=(k, k))
        check_eigen(X + X.T)
        check_eigen(np.eye(k) + X @ X.T)


@pytest.mark.nojit
@pytest.mark.parametrize("k", range(1, 15))
def test_eigen_of_clusters_and_zeros(k: int) -> None:
    check_eigen(np.zeros((k, k)))
    check_eigen(np.eye(k))
    check_eigen(np.ones((k, k)))
    check_eigen(np.ones((k, k)) - np.eye(k))
    check_eigen(np.diag(np.arange(k) - 1.0))
    for several in range(k):
        check_eigen(with_spectrum(np.where(np.arange(k) < several, 1.0, 2.5)))
        check_eigen(with_spectrum(np.where(np.arange(k) < several, 0.0, 1.0)))
    for gap in (1e-4, 1e-8, 1e-12, 1e-15, 1e-17):
        check_eigen(with_spectrum(1.0 + gap * np.arange(k)))
        check_eigen(with_spectrum(gap * np.arange(k) + (np.arange(k) > k // 2)))


@pytest.mark.nojit
@pytest.mark.parametrize("scale", [1e-120, 1e-30, 1e30, 1e120])
@pytest.mark.parametrize("k", [1, 2, 3, 7, LAPACK_FROM])
def test_eigen_of_other_scales(k: int, scale: float) -> None:
    X = np.random.default_rng(k).normal(size=(k, k))
    check_eigen(scale * (X + X.T))
    grade = np.logspace(-8, 8, k)
    check_eigen(grade[:, None] * (X + X.T) * grade)


@pytest.mark.nojit
@pytest.mark.parametrize("k", [1, 2, 5, 11])
def test_eigen_of_a_diagonal_is_exact(k: int) -> None:
    values = np.random.default_rng(k).normal(size=k)
    A, Q = np.diag(values), np.empty((k, k))
    eigen(A, Q)
    np.testing.assert_array_equal(np.diag(A), values)
    np.testing.assert_array_equal(Q, np.eye(k))
