"""One step at a time: the bits of whole sequences, in one model and in many at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastlbm.kernels.block_state import make_block_state, start_block
from fastlbm.kernels.playing import make_recorder, play_block, record_step
from fastlbm.kernels.rewards import make_history, rewards
from fastlbm.kernels.stepping import play_step, play_steps

from .models import GAMMAS, MATRICES, MEMORIES, NOISES, a_model, assert_close, block, check_history, reference

pytestmark = pytest.mark.nojit


@pytest.mark.parametrize("A0", MATRICES)
@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("m", MEMORIES)
def test_steps_pay_what_the_sequence_pays(m: float, gamma: float, A0: str) -> None:
    if A0 == "corner" and gamma < 0.0:
        pytest.skip("singular")
    model, actions = a_model(3, m, gamma, A0), block(9, 3)
    history, noise = make_history(model), np.random.default_rng(0)
    paid = np.array([play_step(model, history, action, noise) for action in actions])
    assert_close(paid[:, 1], reference(model, actions))
    np.testing.assert_array_equal(paid[:, 0], paid[:, 1])  # sigma is 0
    np.testing.assert_array_equal(paid[:, 1], rewards(model, make_history(model), actions))
    check_history(model, history, actions)


@pytest.mark.parametrize("noise", NOISES)
def test_steps_and_their_record_have_the_bits_of_a_block(noise: int) -> None:
    model, actions = a_model(3, 2, -1.7, sigma=0.3, noise=noise), block(6, 3)
    points = np.array([2, 3, 6])
    one, other = (make_recorder(points, 6, 3) for _ in range(2))
    state = make_block_state(6, 3)
    state.actions[:] = actions
    start_block(state, 1)
    play_block(model, make_history(model), one, state, np.random.default_rng(4), 6)
    history, rng = make_history(model), np.random.default_rng(4)
    for action in actions:
        record_step(other, action, *play_step(model, history, action, rng))
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)


@given(
    d=st.integers(1, 4), m=st.integers(0, 4), gamma=st.sampled_from(GAMMAS), n=st.integers(1, 5),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_many_at_once_are_one_after_the_other(d: int, m: int, gamma: float, n: int, seed: int) -> None:
    """Those that do not play are left as they are."""
    rng = np.random.default_rng(seed)
    model = a_model(d, m, gamma, sigma=0.2)
    one, many = np.random.default_rng(seed), np.random.default_rng(seed)
    recent = np.zeros((n, m, d))
    histories = [make_history(model) for _ in range(n)]
    for _ in range(4):
        actions, playing = block(n, d, int(rng.integers(99))), rng.random(n) < 0.7
        observed, expected = np.full(n, np.nan), np.full(n, np.nan)
        play_steps(model, recent, np.zeros((0, 0, 0)), actions, playing, many, observed, expected)
        for k in range(n):
            pair = play_step(model, histories[k], actions[k], one) if playing[k] else (0.0, 0.0)
            assert (observed[k], expected[k]) == pair
            np.testing.assert_array_equal(recent[k], histories[k].recent)
    assert one.bit_generator.state == many.bit_generator.state
