"""Responses other than the power: against fifty digits, and what plans and learners make of them."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import fastlbm as lbm
from fastlbm.kernels._jit import kernel
from fastlbm.kernels.powers import OWN, SATURATING
from fastlbm.kernels.responses import response_difference
from tests import naive, naive_fading, problems
from tests.naive import GAMMAS, OPTIMISM, Problem
from tests.planning.test_objective import TOLERANCE

INF = math.inf
DIMENSIONS = (1, 2, 3, 5, 8)


def value(x: float, gamma: float) -> float:
    return 1.0 + 0.2 * gamma * (x - 1.0) / (1.0 + x)


def slope(x: float, gamma: float) -> float:
    return 0.4 * gamma / (1.0 + x) ** 2


def cube(x: float, gamma: float) -> float:
    return x * x * x


def three_squares(x: float, gamma: float) -> float:
    return 3.0 * x * x


def wrong(x: float, gamma: float) -> float:
    return gamma


def not_compiled(x: float, gamma: float) -> float:
    return undefined_name(x)  # type: ignore[name-defined]  # noqa: F821


def turns_at_five(x: float, gamma: float) -> float:
    return x if x < 5.0 else 10.0 - x


def up(x: float, gamma: float) -> float:
    return 1.0


def raises_beyond_five(x: float, gamma: float) -> float:
    if x > 5.0:
        raise ValueError("too much")
    return x


def logarithm(x: float, gamma: float) -> float:
    return math.log(gamma) * x


def slope_of_logarithm(x: float, gamma: float) -> float:
    return math.log(gamma)


def bent(x: float, gamma: float) -> float:
    return abs(x - 1.5)


def slope_of_bent(x: float, gamma: float) -> float:
    return 1.0 if x > 1.5 else -1.0


OWN_RESPONSE = lbm.Response(value, slope)
RESPONSES: dict[str, Any] = {"saturating": "saturating", "own": OWN_RESPONSE}
IN_DIGITS: dict[str, Callable[[float], Callable[[Any], Any]]] = {
    "saturating": lambda gamma: lambda x: mp.exp(mp.mpf(gamma) * (1 - mp.exp(1 - x))),
    "own": lambda gamma: lambda x: 1 + mp.mpf(0.2) * mp.mpf(gamma) * (x - 1) / (1 + x),
}


def error(problem: Problem, name: str) -> float:
    found, grad = lbm.block_ucb(**problem, response=RESPONSES[name])
    exact = problem | {"gamma": IN_DIGITS[name](problem["gamma"])}
    expected, slopes = naive_fading.block_ucb_mp(**exact)
    scale = max(float(np.abs(slopes).max()), np.finfo(np.float64).tiny)
    errors = abs(found - expected) / max(abs(expected), scale), float(np.abs(grad - slopes).max()) / scale
    return max(errors) if math.isfinite(sum(errors)) else INF


@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize(("i", "m"), list(enumerate([1, 2, 3, 5, 8, INF])))
def test_fifty_digits(i: int, m: float, name: str) -> None:
    for j, gamma in enumerate(GAMMAS):
        d, A0 = DIMENSIONS[(i + j) % 5], ("default", "dense", "0.25")[(i + j) % 3]
        lead, L = (0, 4) if m == INF else (int(m), 2)
        problem = problems.problem(d=d, m=lead, L=L, gamma=gamma, optimism=OPTIMISM[j % 3], A0=A0)
        problem |= {"decay": 0.8, "m": INF} if m == INF else {"decay": (1.0, 0.6)[j % 2]}
        assert error(problem, name) <= TOLERANCE, (d, m, gamma, A0)


@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("gamma", [-3.0, -0.5, 2.0])
def test_hard_cases(gamma: float, name: str) -> None:
    hard = problems.hard_problems(gamma, "O3M")
    errors = {case: error(problem, name) for case, problem in hard.items()}
    assert {case: e for case, e in errors.items() if e > TOLERANCE} == {}


@kernel
def difference(kind, f, slope_of, gamma, x, y):  # type: ignore[no-untyped-def]
    return response_difference(kind, f, slope_of, gamma, x, y)


@pytest.mark.parametrize("gamma", [-4.0, -0.3, 0.7, 3.0])
def test_divided_differences(gamma: float) -> None:
    """Of the one to a few units in the last place; of one's own to a digit less."""
    points, gaps = (0.0, 1e-8, 0.5, 1.0, 3.0, 30.0), (1e-15, 1e-9, 1e-4, 0.05, 0.2, 0.5, 7.0)
    kinds = ((SATURATING, "saturating", (0, 0), 1e-14), (OWN, "own", OWN_RESPONSE._addresses(), 1e-13))
    for x, gap in itertools.product(points, gaps):
        y = x + gap
        for kind, name, addresses, tolerance in kinds if y > x else ():
            with mp.workdps(60):
                f = IN_DIGITS[name](gamma)
                exact = float((f(mp.mpf(y)) - f(mp.mpf(x))) / (mp.mpf(y) - mp.mpf(x)))
            for one, other in ((x, y), (y, x)):
                found = difference(kind, *addresses, gamma, one, other)
                assert found == pytest.approx(exact, rel=tolerance * (1.0 + 10.0 * abs(gamma))), (
                    x,
                    gap,
                    name,
                )


# --- plans, learners, the model ------------------------------------------------------------------------


@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("gamma", [-2.0, 0.0, 1.5])
def test_rewards_are_those_of_the_definition(gamma: float, name: str) -> None:
    env = lbm.LBM([0.6, 0.0, 0.8], m=2, gamma=gamma, decay=0.7, response=RESPONSES[name])
    f = np.vectorize(lambda x: float(IN_DIGITS[name](gamma)(mp.mpf(float(x)))))
    actions = lbm.Ball(3).sample(9, seed=1)
    rewards = env.expected_rewards(actions)
    for t in range(9):
        window = actions[max(t - 2, 0) : t]
        lam, Q = np.linalg.eigh(naive.memory_matrix(window.reshape(-1, 3), None, 0.7))
        expected = env.theta @ (Q * f(lam)) @ Q.T @ actions[t]
        assert rewards[t] == pytest.approx(expected, rel=1e-12, abs=1e-14)
        np.testing.assert_allclose(env.memory_matrix(actions[:t]), (Q * f(lam)) @ Q.T, rtol=0, atol=1e-13)
    assert np.abs(rewards).max() <= env.reward_bound * (1.0 + 1e-12)


def test_it_saturates() -> None:
    along = np.tile([0.6, 0.8], (300, 1))
    for gamma in (-2.0, 1.0):
        env = lbm.LBM([0.6, 0.8], m=INF, gamma=gamma, response="saturating")
        rewards = env.expected_rewards(along)
        assert rewards[0] == pytest.approx(1.0)
        assert rewards[-1] == pytest.approx(math.exp(gamma))
        assert env.reward_bound == pytest.approx(max(1.0, math.exp(gamma)))
    # 0 has a response, whatever gamma is.
    singular = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0, A0=np.zeros((2, 2)), response="saturating")
    assert singular.expected_rewards([[0.6, 0.8]])[0] == pytest.approx(math.exp(2.0 * (math.e - 1.0)))


@pytest.mark.parametrize("name", RESPONSES)
def test_rolling_that_knows_it_is_near_the_best_cycle(name: str) -> None:
    env = lbm.LBM([0.6, 0.0, 0.8], m=2, gamma=-2.0, response=RESPONSES[name])
    agent = lbm.Rolling(m=2, gamma=-2.0, response=RESPONSES[name])
    run = lbm.run(env, agent, T=400, seed=0)
    assert run.reward[-1] >= 0.95 * 400 * lbm.best_cycle(env, max_period=9).average


@pytest.mark.parametrize("name", RESPONSES)
def test_arms_are_planned_exactly(name: str) -> None:
    arms = lbm.Ball(2).sample(3, seed=4)
    problem = {"m": 2, "gamma": -2.0, "theta": [0.6, 0.8], "response": RESPONSES[name]}
    plan = lbm.plan_block(d=2, L=3, actions=lbm.Finite(arms), exact=True, **problem)
    index = np.indices((3,) * 5).reshape(5, -1).T
    assert plan.value == pytest.approx(max(lbm.block_ucb(arms[i], **problem)[0] for i in index), rel=1e-12)
    env = lbm.LBM([0.6, 0.8], m=2, gamma=-2.0, response=RESPONSES[name], actions=lbm.Finite(arms))
    agent = lbm.Rolling(m=2, gamma=-2.0, response=RESPONSES[name])
    assert lbm.run(env, agent, T=200, seed=0).reward[-1] >= 0.9 * 200 * lbm.best_cycle(env, period=3).average


def test_a_cube_of_ones_own_is_the_cube() -> None:
    mine = lbm.Response(cube, three_squares)
    problem = problems.problem(d=3, m=2, gamma=3.0)
    one, two = lbm.block_ucb(**problem), lbm.block_ucb(**problem, response=mine)
    assert one[0] == pytest.approx(two[0], rel=1e-13)
    np.testing.assert_allclose(one[1], two[1], rtol=0, atol=1e-12 * np.abs(one[1]).max())
    flat = lbm.LBM([1.0, 0.0], m=1, gamma=0.0, response=mine)  # gamma = 0 is no power of 0 here
    assert not flat.is_stationary
    np.testing.assert_allclose(flat.expected_rewards([[1.0, 0.0]] * 2), [1.0, 8.0])


def test_values_and_pickles() -> None:
    env = lbm.LBM([0.6, 0.8], response=OWN_RESPONSE)
    assert pickle.loads(pickle.dumps(env)) == env
    assert env != lbm.LBM([0.6, 0.8])
    assert lbm.LBM([0.6, 0.8], response="power")._key() == lbm.LBM([0.6, 0.8])._key()
    assert "saturating" in repr(lbm.LBM([0.6, 0.8], response="saturating"))


def test_what_is_no_response_is_refused() -> None:
    with pytest.raises(ValueError, match="response must be one of 'power', 'saturating'"):
        lbm.LBM([1.0, 0.0], response="logistic")
    with pytest.raises(ValueError, match="slope must be the derivative"):
        lbm.Response(value, wrong)
    with pytest.raises(TypeError, match="value must be a function"):
        lbm.Response(1.0, slope)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="response"):
        lbm.Rolling(m=1, gamma=-1.0, response="logistic")


def line(k: float) -> lbm.Response:
    return lbm.Response(lambda x, gamma: k * x, lambda x, gamma: k)


def test_one_s_own_is_looked_at_where_the_memory_goes() -> None:
    """Not only where every response is looked at when it is made."""
    late, raising = lbm.Response(turns_at_five, up), lbm.Response(raises_beyond_five, up)
    problem = {"gamma": 1.0, "theta": [0.6, 0.8]}
    for m in (1, 3):
        assert lbm.LBM(m=m, response=late, **problem).reward_bound == 1.0 + m
        lbm.LBM(m=m, response=raising, **problem)
    with pytest.raises(ValueError, match=r"response must have the derivative .* got 1 at x=5\.0"):
        lbm.LBM(m=8, response=late, **problem)
    with pytest.raises(ValueError, match="response must be finite at all eigenvalues from 1 to 9, got nan"):
        lbm.LBM(m=8, response=raising, **problem)
    with pytest.raises(ValueError, match="response must have the derivative"):
        lbm.block_ucb(np.eye(2)[[0] * 9], m=8, response=late, **problem)
    with pytest.raises(ValueError, match="response must have the derivative"):
        lbm.run(lbm.LBM([0.6, 0.8]), lbm.Rolling(m=8, gamma=1.0, response=late), T=5)


def test_one_s_own_may_have_kinks_and_may_need_a_gamma() -> None:
    lbm.LBM([0.6, 0.8], m=2, response=lbm.Response(bent, slope_of_bent))  # x = 1.5 is looked at
    positive = lbm.Response(logarithm, slope_of_logarithm)
    assert lbm.LBM([0.6, 0.8], gamma=2.0, response=positive).reward_bound == pytest.approx(
        3.0 * math.log(2.0)
    )
    with pytest.raises(ValueError, match=r"response must be finite .* gamma=-1"):
        lbm.LBM([0.6, 0.8], gamma=-1.0, response=positive)


def test_responses_have_names() -> None:
    assert repr(OWN_RESPONSE) == f"Response({__name__}:value, {__name__}:slope)"
    one, same, other = map(line, (1.0, 1.0, 2.0))
    assert one == same
    assert one != other


@pytest.mark.skipif(bool(__import__("numba").config.DISABLE_JIT), reason="needs the compiler")
def test_what_does_not_compile_is_refused() -> None:
    with pytest.raises(TypeError, match="value must be a function of two floats that Numba compiles"):
        lbm.Response(not_compiled, slope)
