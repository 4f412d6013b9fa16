"""Random models, from harmless to extreme, with every agent: no NaN, no crash, and the rewards are right."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import fastlbm as lbm
from tests import problems

EPS = float(np.finfo(np.float64).eps)
GAMMAS = (-6.0, -3.0, -2.5, -1.0, -0.5, 0.0, 0.05, 0.5, 1.0, 1.5, 2.0, 5.0, 6.0)
SETS = ("ball", "finite", "contextual", "scheduled")
#: Most states of a dynamic program: more take seconds.
STATES = 300


def lengths(n: int, rng: np.random.Generator) -> np.ndarray:
    """Of actions: 1, anything up to 1, zero, tiny, denormal."""
    kinds = (1.0, rng.uniform(), 0.0, 10.0 ** -rng.uniform(0.0, 30.0), 10.0 ** -rng.uniform(30.0, 323.0))
    weights = (0.4, 0.2, 0.1, 0.15, 0.15)
    drawn = rng.choice(5, n, p=weights)
    same = rng.random() < 0.15  # all of them of one tiny kind
    return np.array([kinds[4 if same else k] for k in drawn])


def vectors(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Actions (n, d) of the ball: random, along axes, or one again and again."""
    kind = rng.integers(4)
    if kind == 0:
        rows = np.eye(d)[rng.integers(d, size=n)] * rng.choice([-1.0, 1.0], (n, 1))
    else:
        rows = rng.normal(size=(1 if kind == 1 else n, d))
        rows = np.repeat(rows / np.linalg.norm(rows, axis=1, keepdims=True), n if kind == 1 else 1, axis=0)
    return rows * lengths(n, rng)[:, None]


def initial_matrix(d: int, gamma: float, rng: np.random.Generator) -> np.ndarray | None:
    """None, c I, any spectrum up to 1e12, or singular where gamma allows it."""
    kind = rng.integers(6)
    if kind == 0:
        return None
    if kind == 1:
        return 10.0 ** rng.uniform(-6.0, 12.0) * np.eye(d)
    spectrum = 10.0 ** rng.uniform(*((-12.0, 12.0) if kind == 2 else (-2.0, 1.0)), d)
    if kind >= 4 and gamma >= 0.0:
        spectrum[: rng.integers(1, d + 1)] = 0.0
    if kind % 2 == 0:
        return np.diag(spectrum)
    Q = problems.orthogonal(d, rng)
    A0 = (Q * spectrum) @ Q.T
    return 0.5 * (A0 + A0.T)


def random_model(rng: np.random.Generator, T: int) -> lbm.LBM:
    d = int(rng.choice([1, 2, 3, 4, 5, 8, 12], p=[0.15, 0.2, 0.2, 0.15, 0.15, 0.1, 0.05]))
    m = float(
        rng.choice([0, 1, 2, 3, 4, 5, 7, 10, math.inf], p=[0.1, 0.2, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05, 0.1])
    )
    gamma = float(rng.choice(GAMMAS) if rng.random() < 0.7 else rng.uniform(-6.0, 6.0))
    theta = rng.normal(size=d)
    theta *= rng.choice([1.0, 1.0, 0.5, 0.0, 1e-12, 1e-200]) / np.linalg.norm(theta)
    kind = SETS[rng.integers(len(SETS))]
    most = 5 if m in (0.0, math.inf) else max(1, int(STATES ** (1.0 / m)))
    K = int(rng.integers(1, min(most, 5) + 1))
    actions: dict[str, Any] = {
        "ball": lambda: lbm.Ball(d),
        "finite": lambda: lbm.Finite(vectors(K, d, rng)),
        "contextual": lambda: lbm.Contextual(np.array([vectors(K, d, rng) for _ in range(T)])),
        "scheduled": lambda: lbm.Scheduled(np.array([vectors(K, d, rng) for _ in range(T)])),
    }
    return lbm.LBM(
        theta, m=m, gamma=gamma, A0=initial_matrix(d, gamma, rng), sigma=0.1, actions=actions[kind]()
    )


def every_agent(env: lbm.LBM, T: int, rng: np.random.Generator) -> dict[str, Any]:
    """How to make each of them, for what it believes: the model, with a shorter memory if that has no end."""
    m = 2 if env.m == math.inf else int(env.m)
    known: dict[str, Any] = {"m": m, "gamma": env.gamma, "A0": env.A0, "horizon": 10 * T, "L": 2}
    pairs: dict[str, Any] = {
        "candidates": [(m, env.gamma), (0, 0.0), (1, 0.5 * env.gamma)],
        "A0": env.A0,
        "horizon": 10 * T,
        "L": 2,
    }
    arms = env.actions.sets()
    block = vectors(3, env.d, rng) if arms.shape[0] == 0 else arms.reshape(-1, *arms.shape[1:])[0]
    if env.actions.varies:
        block = arms[:, 0]
    return {
        "O3M": lambda: lbm.O3M(**known),
        "OM": lambda: lbm.OM(**known),
        "OMBlock": lambda: lbm.OMBlock(**known),
        "rarely": lambda: lbm.O3M(**known, switch=0.0 if env.actions.varies else 1.0),
        "OFUL": lambda: lbm.OFUL(10 * T),
        "LinTS": lambda: lbm.LinTS(10 * T),
        "LinTS, inflated": lambda: lbm.LinTS(10 * T, inflate=True),
        "EpsilonGreedy": lbm.EpsilonGreedy,
        "Random": lbm.Random,
        "OracleGreedy": lbm.OracleGreedy,
        "Doubling": lambda: lbm.Doubling(lbm.O3M(**{**known, "horizon": m + 3})),
        "EvidenceSelector": lambda: lbm.EvidenceSelector(**pairs),
        "BanditCombiner": lambda: lbm.BanditCombiner(**pairs),
        "RegretBalancing": lambda: lbm.RegretBalancing(**pairs, scale=float(rng.choice([1.0, 0.01]))),
        "Corral": lambda: lbm.Corral(**pairs, smooth=not env.actions.varies),
        "Cyclic": lambda: lbm.Cyclic(block),
        "Rolling": lambda: lbm.Rolling(m, env.gamma, A0=env.A0),
        "Rolling rarely": lambda: lbm.Rolling(
            m, env.gamma, A0=env.A0, switch=0.0 if env.actions.varies else 1.0
        ),
        "Auto": lambda: lbm.Auto(memories=sorted({0, 1, m}), gammas=sorted({env.gamma, 0.5}), A0=env.A0),
    }


def reference(env: lbm.LBM, actions: np.ndarray, t: int) -> tuple[float, float]:
    """The expected reward of step t in 50 digits, and what rounding may make of it.

    Rounding moves an eigenvalue by some eps of the largest; a power is that of anything in between.
    """
    first = 0 if env.m == math.inf else max(0, t - int(env.m))
    with mp.workdps(50):
        X = mp.matrix(env.A0.tolist())
        for a in actions[first:t].tolist():
            X += mp.matrix(a) * mp.matrix(a).T
        lam, Q = mp.eigsy(X)
        spectrum = np.array([max(float(x), 0.0) for x in lam])
        top, low = spectrum.max(), spectrum.min()
        rounding = 32.0 * (env.d + t + 1) * (EPS * top + 5e-324)
        power = mp.diag([max(x, mp.mpf(0)) ** mp.mpf(env.gamma) if env.gamma else mp.mpf(1) for x in lam])
        value = (mp.matrix(actions[t].tolist()).T * (Q * (power * (Q.T * mp.matrix(env.theta.tolist())))))[0]
        size = float(mp.norm(mp.matrix(actions[t].tolist())) * mp.norm(mp.matrix(env.theta.tolist())))
    gamma = env.gamma
    if gamma == 0.0:
        error = 0.0
    elif gamma < 0.0:
        floor = float(np.linalg.eigvalsh(env.A0)[0])
        error = max(floor, low - rounding) ** gamma - (low + rounding) ** gamma if low > 0.0 else math.inf
        error += 1e-11 * floor**gamma
    else:
        error = max((x + rounding) ** gamma - max(x - rounding, 0.0) ** gamma for x in spectrum)
    return float(value), size * error * 4.0 + 1e-300


def check_run(env: lbm.LBM, agent: Any, T: int, rng: np.random.Generator) -> None:
    run = lbm.run(env, agent, T=T, seed=1, record=T, keep_actions=True)
    assert run.actions is not None
    for numbers in (run.reward, run.observed, run.actions):
        assert np.isfinite(numbers).all()
    assert env.actions.contains(run.actions).all()
    rewards = np.diff(run.reward, prepend=0.0)
    again = env.expected_rewards(run.actions)
    # What is recorded are sums.
    scale = max(1.0, float(np.abs(run.reward).max()))
    np.testing.assert_allclose(rewards, again, rtol=1e-9, atol=1e-12 * scale)
    t = int(rng.integers(T))
    value, error = reference(env, run.actions, t)
    assert abs(again[t] - value) <= error + 1e-12 * abs(value)


def check_live(env: lbm.LBM, agent: Any, rng: np.random.Generator) -> None:
    """Own actions, offered arms and those of others, in any order: all in their sets, and all finite."""
    live = agent.start(env if isinstance(agent, lbm.OracleGreedy) else env.actions, seed=1)
    steps = 0
    while steps < 8:
        kind = rng.integers(4)
        if kind == 0:
            assert env.actions.contains(live.act()[None], start=steps).all()
        elif kind == 1:
            arms = vectors(int(rng.integers(1, 40)), env.d, rng)
            action = live.act(arms)
            assert (arms[live.arm] == action).all()
        elif kind == 2:
            live.observe(vectors(1, env.d, rng)[0], float(rng.normal()) if rng.random() < 0.5 else None)
        else:
            live.replay(vectors(3, env.d, rng), [math.nan, 0.5, -0.5])
        steps = live.t
        for step in live.missing:
            live.update(float(rng.normal()), step=step)
        if live.theta is not None:
            assert np.isfinite(live.theta).all()
            assert np.isfinite(live.V_inv).all()


def check_plan(env: lbm.LBM, rng: np.random.Generator) -> None:
    m = 2 if env.m == math.inf else int(env.m)
    plan = lbm.plan_block(
        d=env.d, m=m, gamma=env.gamma, L=2, theta=env.theta, A0=env.A0, actions=env.actions,
        V_inv=0.5 * np.eye(env.d), beta=0.3, starts=3, moves=0, max_evaluations=200,
    )  # fmt: skip
    assert np.isfinite(plan.actions).all()
    assert math.isfinite(plan.value)
    block = vectors(m + 2, env.d, rng)
    value, gradient = lbm.block_ucb(block, m=m, gamma=env.gamma, theta=env.theta, A0=env.A0)
    assert math.isfinite(value)
    assert np.isfinite(gradient).all()


def sentence(error: ValueError) -> str:
    """What was refused: a sentence that names an argument, never what NumPy says of a NaN."""
    words = str(error)
    assert words.split()[0] in ("gamma", "A0", "candidates", "actions", "memories")
    assert " must " in words
    return words


def check_model(seed: int) -> tuple[int, list[str]]:
    """Everything about one model; how many runs there were, and the sentences of what was refused."""
    rng = np.random.default_rng(seed)
    T = int(rng.integers(8, 24))
    refused = []
    runs = 0
    try:
        env = random_model(rng, T)
    except ValueError as error:
        return 0, [sentence(error)]
    for name, make in every_agent(env, T, rng).items():
        try:
            agent = make()
            check_run(env, agent, T, rng)
            repeats = getattr(agent, "switch", 0.0) > 0.0 or getattr(agent, "smooth", False)
            if not (name in ("OM", "OMBlock", "Cyclic") or repeats):
                check_live(env, agent, rng)
            runs += 1
        except ValueError as error:
            refused.append(f"{name}: {sentence(error)}")
    try:
        check_plan(env, rng)
    except ValueError as error:
        refused.append(f"plan: {sentence(error)}")
    return runs, refused


def check_many(seeds: range) -> int:
    """How many runs there were; most models must not be refused."""
    results = [check_model(seed) for seed in seeds]
    assert sum(runs > 0 for runs, _ in results) > 0.9 * len(seeds)
    return sum(runs for runs, _ in results)


def test_random_models() -> None:
    assert check_many(range(36)) > 300


@pytest.mark.slow
def test_many_random_models() -> None:
    assert check_many(range(5000)) > 46_000
