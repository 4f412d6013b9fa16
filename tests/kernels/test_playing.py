"""Playing blocks: repetitions, stretches, records and noise."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlbm.kernels.block_state import (
    BlockState,
    cursor,
    make_block_state,
    next_step,
    plans_made,
    start_block,
)
from fastlbm.kernels.noise import GAUSSIAN, UNIFORM
from fastlbm.kernels.playing import Recorder, elapsed, make_recorder, play_block, recorded
from fastlbm.kernels.rewards import (
    History,
    ModelParams,
    make_history,
    make_model_params,
    rewards,
)
from fastlbm.model import LBM
from tests.naive import Array

from .models import (
    GAMMAS,
    MATRICES,
    MEMORIES,
    NOISES,
    a_model,
    assert_close,
    block,
    check_history,
    matrix,
    reference,
    unit,
)


class Stage(NamedTuple):
    """All that playing changes."""

    history: History
    block: BlockState
    recorder: Recorder
    rng: np.random.Generator


def stage(model: ModelParams, n: int, T: int, points: list[int] | None = None, keep: bool = True) -> Stage:
    """Blocks of n actions and a recorder for T steps, with a record after every one by default."""
    d = len(model.theta)
    at = np.arange(1, T + 1) if points is None else np.array(points, dtype=np.int64)
    recorder = make_recorder(at, T if keep else 0, d)
    for array in (recorder.reward, recorder.observed, recorder.actions):
        array.fill(np.nan)
    return Stage(make_history(model), make_block_state(n, d), recorder, np.random.default_rng(5))


def put(state: BlockState, actions: Array, often: int) -> None:
    """A new block."""
    state.actions[:] = actions
    start_block(state, often)


def run(model: ModelParams, s: Stage, until: int) -> None:
    play_block(model, s.history, s.recorder, s.block, s.rng, until)


def assert_same(one: Stage, other: Stage) -> None:
    """Bit for bit."""
    for left, right in zip(one[:3], other[:3], strict=True):
        for x, y in zip(left, right, strict=True):
            np.testing.assert_array_equal(x, y)
    assert one.rng.bit_generator.state == other.rng.bit_generator.state


# --- blocks ---------------------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("m", MEMORIES)
@pytest.mark.parametrize("A0", ["default", "dense"])
@pytest.mark.parametrize("gamma", [-1.7, 0.5])
def test_a_repeated_block_pays_what_its_actions_pay(gamma: float, A0: str, m: float, n: int) -> None:
    model = a_model(3, m, gamma, A0)
    often = 8
    actions = block(n, 3)
    s = stage(model, n, often * n)
    put(s.block, actions, often)
    run(model, s, 10**6)
    played = np.tile(actions, (often, 1))
    expected = reference(model, played)
    np.testing.assert_array_equal(s.recorder.actions, played)
    assert_close(s.recorder.reward, expected.cumsum())
    np.testing.assert_array_equal(s.recorder.reward, rewards(model, make_history(model), played).cumsum())
    np.testing.assert_array_equal(s.recorder.observed, s.recorder.reward)
    np.testing.assert_array_equal(s.recorder.sums, [s.recorder.reward[-1], s.recorder.observed[-1]])
    assert_close(s.block.reward_sums, expected.reshape(often, n).sum(axis=0))
    np.testing.assert_array_equal(s.block.reward_counts, np.full(n, often))
    assert cursor(s.block) == (0, often, often)
    assert (next_step(s.block), plans_made(s.block)) == (often * n, 1)
    assert elapsed(s.recorder) == recorded(s.recorder) == often * n
    check_history(model, s.history, played)


@pytest.mark.nojit
@pytest.mark.parametrize("gamma", [1.0, 2.3])
def test_a_repeated_block_from_a_singular_A0(gamma: float) -> None:
    for m in (1, 3, math.inf):
        model = make_model_params(unit(3), np.diag([1.0, 0.0, 0.0]), m, gamma)
        s = stage(model, 2, 20)
        put(s.block, block(2, 3), 10)
        run(model, s, 20)
        assert_close(s.recorder.reward, reference(model, s.recorder.actions).cumsum())


@pytest.mark.nojit
@pytest.mark.parametrize("stretch", [1, 2, 3, 5, 11])
@pytest.mark.parametrize("m", [0, 1, 2, 5, math.inf])
def test_stretches_do_not_matter(m: float, stretch: int) -> None:
    for n, A0 in ((1, "default"), (3, "dense"), (4, "default")):
        model = a_model(3, m, -1.7, A0, sigma=0.3)
        T = 9 * n
        s, whole = stage(model, n, T), stage(model, n, T)
        for one in (s, whole):
            put(one.block, block(n, 3), 9)
        run(model, whole, T)
        for until in range(0, T + stretch, stretch):
            run(model, s, until)
            assert elapsed(s.recorder) == min(until, T)
            check_history(model, s.history, s.recorder.actions[: min(until, T)])
        assert_same(s, whole)


class Plan(NamedTuple):
    model: ModelParams
    n: int
    often: list[int]
    cuts: set[int]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    d, n = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    model = make_model_params(
        unit(d),
        matrix(draw(st.sampled_from(MATRICES)), d),
        draw(st.sampled_from([*MEMORIES, 9])),
        draw(st.sampled_from(GAMMAS)),
        0.2,
        draw(st.sampled_from(NOISES)),
    )
    often = draw(st.lists(st.integers(1, 8), min_size=1, max_size=5))
    return Plan(model, n, often, draw(st.sets(st.integers(0, n * sum(often)), max_size=8)))


@pytest.mark.nojit
@settings(max_examples=60)
@given(plans())
def test_any_blocks_in_any_stretches(plan: Plan) -> None:
    model, n, often, cuts = plan
    T, d = n * sum(often), len(model.theta)
    whole, s = stage(model, n, T), stage(model, n, T)
    for seed, times in enumerate(often):
        actions = block(n, d, seed)
        # Some blocks stay the same, as those of a learner do.
        actions = block(n, d, seed - 1) if seed % 3 == 2 else actions
        for one in (whole, s):
            put(one.block, actions, times)
        run(model, whole, T)
        end = n * sum(often[: seed + 1])
        for until in [*sorted(cut for cut in cuts if end - n * times <= cut), T]:
            run(model, s, until)
            check_history(model, s.history, s.recorder.actions[: min(until, end)])
    assert_same(s, whole)
    assert elapsed(whole.recorder) == next_step(whole.block) == T
    assert_close(whole.recorder.reward, reference(model, whole.recorder.actions).cumsum())
    np.testing.assert_array_equal(
        whole.recorder.reward, rewards(model, make_history(model), whole.recorder.actions).cumsum()
    )


@pytest.mark.nojit
@pytest.mark.parametrize("m", [0, 1, 3, 4, 7])
def test_many_repetitions_are_single_blocks_bit_for_bit(m: int) -> None:
    model, n, often = a_model(3, m, sigma=0.1), 3, 40
    first, actions = block(n, 3, 1), block(n, 3, 2)
    T = n * (2 * often + 1)
    fast, fresh = stage(model, n, T), stage(model, n, T)
    for one in (fast, fresh):
        put(one.block, first, 1)
        run(model, one, n)
    for b in (actions, first):
        put(fast.block, b, often)
        run(model, fast, 10**6)
        for _ in range(often):
            put(fresh.block, b, 1)
            run(model, fresh, 10**6)
        played = fast.recorder.actions[: elapsed(fast.recorder)]
        check_history(model, fast.history, played)
        np.testing.assert_array_equal(fast.history.recent, fresh.history.recent)
        for x, y in zip(fast.recorder, fresh.recorder, strict=True):
            np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(fast.block.reward_sums, fresh.block.reward_sums)
        np.testing.assert_array_equal(fast.block.reward_counts, fresh.block.reward_counts)
        np.testing.assert_array_equal(fast.block.expected, fresh.block.expected)
        assert_close(
            fast.recorder.reward[: len(played)],
            reference(model, played).cumsum(),
        )


def test_a_million_repetitions() -> None:
    model, n, often = a_model(3, 5), 3, 10**6
    s = stage(model, n, n * often, points=[3 * n, n * often], keep=False)
    put(s.block, block(n, 3), often)
    run(model, s, n * often)
    rest = reference(model, np.tile(block(n, 3), (6, 1)))
    late = rest[-n:].sum()
    assert s.recorder.reward[1] == pytest.approx(rest[: 3 * n].sum() + (often - 3) * late, rel=1e-10)
    np.testing.assert_array_equal(s.block.reward_counts, np.full(n, often))
    np.testing.assert_array_equal(s.history.recent, np.tile(block(n, 3), (2, 1))[1:])


@pytest.mark.nojit
@pytest.mark.parametrize("m", [2, math.inf])
def test_a_block_may_be_left_unfinished(m: float) -> None:
    model = a_model(2, m, sigma=0.5)
    s = stage(model, 3, 8)
    put(s.block, block(3, 2), 100)
    run(model, s, 8)
    assert cursor(s.block) == (2, 2, 100)
    assert (next_step(s.block), plans_made(s.block)) == (8, 1)
    np.testing.assert_array_equal(s.block.reward_counts, [3, 3, 2])
    np.testing.assert_array_equal(s.recorder.actions, np.tile(block(3, 2), (3, 1))[:8])
    check_history(model, s.history, s.recorder.actions)


@pytest.mark.nojit
def test_nothing_to_play_changes_nothing() -> None:
    model = a_model(sigma=0.5)
    for played in (0, 4, 30):
        s, same = stage(model, 3, 30), stage(model, 3, 30)
        for one in (s, same):
            put(one.block, block(3, 3), 10)
            run(model, one, played)
        for until in (-1, 0, played):
            run(model, s, until)
        if played == 30:
            run(model, s, 100)
        assert_same(s, same)
    empty, again = stage(model, 3, 30), stage(model, 3, 30)
    run(model, empty, 30)
    assert_same(empty, again)


@pytest.mark.nojit
def test_rewards_are_collected_by_position() -> None:
    model = a_model(3, 2, sigma=0.4)
    s = stage(model, 3, 17)
    put(s.block, block(3, 3), 10)
    run(model, s, 14)
    observed = np.diff(s.recorder.observed[:14], prepend=0.0)
    for position in range(3):
        assert s.block.reward_sums[position] == pytest.approx(observed[position::3].sum(), rel=1e-12)
        assert s.block.reward_counts[position] == len(observed[position::3])
    # The block adds up until a learner clears it.
    put(s.block, block(3, 3, 1), 1)
    run(model, s, 17)
    np.testing.assert_array_equal(s.block.reward_counts, [6, 6, 5])


@pytest.mark.nojit
@pytest.mark.parametrize("points", [[], [1], [12], [3, 4, 9], [1, 2, 11, 12], [5, 100]])
def test_records_are_made_at_the_points_asked_for(points: list[int]) -> None:
    model = a_model(2, 1, sigma=0.3)
    every, s = stage(model, 2, 12), stage(model, 2, 12, points)
    for one in (every, s):
        put(one.block, block(2, 2), 6)
    run(model, every, 12)
    for until in (4, 5, 12):
        run(model, s, until)
        assert recorded(s.recorder) == sum(point <= until for point in points)
    reached = [point for point in points if point <= 12]
    index = np.array(reached, dtype=np.int64) - 1
    np.testing.assert_array_equal(s.recorder.reward[: len(reached)], every.recorder.reward[index])
    np.testing.assert_array_equal(s.recorder.observed[: len(reached)], every.recorder.observed[index])
    assert np.isnan(s.recorder.reward[len(reached) :]).all()
    np.testing.assert_array_equal(s.recorder.sums, every.recorder.sums)


@pytest.mark.nojit
def test_actions_are_kept_on_request_only() -> None:
    model = a_model(sigma=0.3)
    kept, bare = stage(model, 3, 12), stage(model, 3, 12, keep=False)
    for one in (kept, bare):
        put(one.block, block(3, 3), 4)
        run(model, one, 12)
    assert bare.recorder.actions.shape == (0, 3)
    assert_same(kept._replace(recorder=kept.recorder._replace(actions=bare.recorder.actions)), bare)


@pytest.mark.nojit
@pytest.mark.parametrize("m", [0, 1, 2, 6])
@pytest.mark.parametrize("A0", ["default", "dense"])
def test_an_episode_and_the_model_agree_bit_for_bit(A0: str, m: int) -> None:
    env = LBM.random(4, m, -1.7, seed=3, A0=matrix(A0, 4), sigma=0.2, noise="uniform")
    model = env._params()
    s = stage(model, 2, 40)
    for seed in range(4):
        put(s.block, block(2, 4, seed), 5)
        run(model, s, 100)
    np.testing.assert_array_equal(env.expected_rewards(s.recorder.actions).cumsum(), s.recorder.reward)


@pytest.mark.parametrize("m", [2, 13, 16])
def test_an_episode_and_the_model_agree_bit_for_bit_in_many_dimensions(m: int) -> None:
    for A0 in ("default", "dense"):
        env = LBM.random(14, m, -1.7, seed=3, A0=matrix(A0, 14))
        model = env._params()
        s = stage(model, 3, 120)
        for seed in range(4):
            put(s.block, block(3, 14, seed), 10)
            run(model, s, 30 * seed + 7)
            run(model, s, 1000)
        np.testing.assert_array_equal(env.expected_rewards(s.recorder.actions).cumsum(), s.recorder.reward)
        whole = env.expected_rewards(s.recorder.actions[:40])
        for t in range(40):
            one = env.expected_rewards(s.recorder.actions[t : t + 1], history=s.recorder.actions[:t])
            assert one[0] == whole[t]


# --- noise ----------------------------------------------------------------------------------------------


def noises(noise: int, T: int, sigma: float, often: int = 10**9) -> Array:
    """The noise of T steps that pay nothing."""
    model = make_model_params(np.zeros(1), np.eye(1), 1, -1.0, sigma, noise)
    s = stage(model, 1, T)
    put(s.block, np.ones((1, 1)), often)
    run(model, s, T)
    assert not s.recorder.reward.any()
    return s.recorder.observed


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
        model = a_model(3, m, sigma=0.5, noise=noise)
        s = stage(model, n, T)
        for seed in range(T // (n * often)):
            put(s.block, block(n, 3, seed), often)
            run(model, s, T)
        assert elapsed(s.recorder) == T
        found.append(s)
    for s in found:
        noise, same = (r.observed - r.reward for r in (s.recorder, found[0].recorder))
        np.testing.assert_allclose(noise, same, atol=1e-13)
        assert s.rng.bit_generator.state == found[0].rng.bit_generator.state


@pytest.mark.nojit
@pytest.mark.parametrize("noise", NOISES)
def test_no_noise(noise: int) -> None:
    assert not noises(noise, 20, 0.0).any()
