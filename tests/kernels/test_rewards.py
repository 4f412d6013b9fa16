"""Rewards of actions, one by one and in stretches, and the history behind them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fastlbm.kernels.eigen_tiles import LAPACK_FROM
from fastlbm.kernels.rewards import (
    ModelParams,
    make_history,
    make_model_params,
    product,
    push,
    response,
    rewards,
)
from fastlbm.model import LBM
from tests.naive import Array

from .models import (
    GAMMAS,
    MATRICES,
    MEMORIES,
    a_model,
    assert_close,
    block,
    check_history,
    matrix,
    reference,
    unit,
)


@pytest.mark.nojit
def test_parameters_of_a_world() -> None:
    theta = unit(3)
    assert make_model_params(theta, np.eye(3), math.inf, -1.0).m == -1
    assert make_model_params(theta, np.eye(3), math.inf, -1.0).c == 0.0
    assert make_model_params(theta, 0.5 * np.eye(3), 2, -1.0).c == 0.5
    for A0, m in ((np.eye(3), 3), (np.eye(3), 0), (1e-4 * np.eye(3), 2), (np.diag([1.0, 1.0, 2.0]), 1)):
        assert make_model_params(theta, A0, m, -1.0).c == 0.0
    history = make_history(make_model_params(theta, 0.5 * np.eye(3), 2, -1.0))
    assert history.recent.shape == (2, 3)
    assert not history.recent.any()


@pytest.mark.nojit
@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("m", MEMORIES)
@pytest.mark.parametrize("A0", MATRICES)
def test_rewards_match_the_reference(A0: str, m: float, gamma: float) -> None:
    for d in (1, 2, 4):
        model = a_model(d, m, gamma, A0)
        actions = block(9, d)
        history = make_history(model)
        assert_close(rewards(model, history, actions), reference(model, actions))
        check_history(model, history, actions)


@pytest.mark.parametrize("m", [3, 12, 14, 20, math.inf])
@pytest.mark.parametrize("A0", ["default", "dense"])
def test_rewards_in_many_dimensions(A0: str, m: float) -> None:
    for d in (LAPACK_FROM - 1, LAPACK_FROM, 15):
        model = a_model(d, m, -1.7, A0)
        actions = block(25, d)
        assert_close(rewards(model, make_history(model), actions), reference(model, actions))


@pytest.mark.nojit
@pytest.mark.parametrize("gamma", [1.0, 1.5, 2.0, 3.7])
@pytest.mark.parametrize("m", MEMORIES)
def test_rewards_of_a_singular_A0(m: float, gamma: float) -> None:
    for A0 in (np.zeros((3, 3)), np.diag([1.0, 0.0, 0.0]), np.ones((3, 3))):
        model = make_model_params(unit(3), A0, m, gamma)
        actions = block(8, 3)
        assert_close(rewards(model, make_history(model), actions), reference(model, actions))


@pytest.mark.nojit
@pytest.mark.parametrize("m", MEMORIES)
def test_rewards_of_zero_and_repeated_actions(m: float) -> None:
    a, b = block(2, 3)
    for model in (a_model(3, m), a_model(3, m, A0="dense")):
        for sequence in ([0 * a] * 7, [a] * 9, [a] * 9 + [b] * 8 + [a, b, b, a], [a, 0 * a, -a, a] * 3):
            actions = np.array(sequence)
            history = make_history(model)
            assert_close(rewards(model, history, actions), reference(model, actions))
            check_history(model, history, actions)


@pytest.mark.nojit
def test_no_actions_no_rewards() -> None:
    model = a_model()
    assert rewards(model, make_history(model), np.zeros((0, 3))).shape == (0,)


def step_by_step(model: ModelParams, actions: Array) -> Array:
    history, g, out = make_history(model), np.empty(len(model.theta)), []
    for action in actions:
        response(model, history, g)
        out.append(product(g, action))
        push(model, history, action)
    return np.array(out)


@pytest.mark.nojit
@pytest.mark.parametrize("m", MEMORIES)
@pytest.mark.parametrize("A0", ["default", "dense"])
@pytest.mark.parametrize("gamma", [-1.7, 2.0])
def test_rewards_are_those_of_single_steps_bit_for_bit(gamma: float, A0: str, m: float) -> None:
    model = a_model(4, m, gamma, A0)
    actions = block(16, 4)
    actions[3:10] = actions[3]
    whole = rewards(model, make_history(model), actions)
    np.testing.assert_array_equal(whole, step_by_step(model, actions))
    # In two parts, at every cut.
    for cut in range(17):
        history = make_history(model)
        parts = [rewards(model, history, actions[:cut]), rewards(model, history, actions[cut:])]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("m", [2, 13, 16, math.inf])
def test_rewards_are_those_of_single_steps_bit_for_bit_in_many_dimensions(m: float) -> None:
    for A0 in ("default", "dense"):
        model = a_model(14, m, -1.7, A0)
        actions = block(30, 14)
        actions[5:25] = actions[5]
        whole = rewards(model, make_history(model), actions)
        np.testing.assert_array_equal(whole, step_by_step(model, actions))


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
