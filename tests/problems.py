"""Problems for the tests: keyword arguments of `block_ucb`, from harmless to hard, and their parts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from tests.naive import Array, Problem


def orthogonal(d: int, rng: np.random.Generator) -> Array:
    Q, R = np.linalg.qr(rng.normal(size=(d, d)))
    return Q * np.sign(np.diag(R))


def ball(n: int, d: int, rng: np.random.Generator) -> Array:
    """Actions of norm 0.4 to 1: none is close to the kink of the bonus."""
    x = rng.normal(size=(n, d))
    return x * (rng.uniform(0.4, 1.0, n) / np.linalg.norm(x, axis=1))[:, None]


def precision(size: int, rng: np.random.Generator) -> Array:
    """A V_inv as a learner has it: the inverse of I + a Gram matrix."""
    x = rng.normal(size=(size, size)) / math.sqrt(size)
    V_inv = np.linalg.inv(np.eye(size) + 3.0 * x @ x.T)
    return 0.5 * (V_inv + V_inv.T)


def initial_matrix(kind: str, d: int, rng: np.random.Generator) -> Array | None:
    """A0 by name: "default", "dense", "corner" (c I but for its first two rows) or a number c for c I."""
    if kind == "default":
        return None
    if kind == "dense":
        Q = orthogonal(d, rng)
        A0 = (Q * rng.uniform(0.3, 2.0, d)) @ Q.T
        return 0.5 * (A0 + A0.T)
    if kind == "corner":
        A0 = 0.625 * np.eye(d)
        A0[:2, :2] = np.array([[1.5, 0.5], [0.5, 0.75]])[:d, :d]
        return A0
    return float(kind) * np.eye(d)


def problem(
    *,
    d: int = 3,
    m: int = 2,
    L: int = 2,
    gamma: float = -3.0,
    beta: float = 0.7,
    optimism: str = "O3M",
    A0: str | ArrayLike = "default",
    actions: ArrayLike | None = None,
    V_scale: float = 1.0,
    seed: int = 0,
) -> Problem:
    """The arguments of a block_ucb call: what is not given is random, actions (m+L, d) decide d and L."""
    rng = np.random.default_rng([seed, d, m, L])
    block = ball(m + L, d, rng) if actions is None else np.array(actions, dtype=np.float64)
    n, d = block.shape
    size = n * d if optimism == "OM-Block" else d
    theta = rng.normal(size=size)
    return {
        "actions": block,
        "m": m,
        "gamma": gamma,
        "theta": theta / np.linalg.norm(theta),
        "V_inv": V_scale * precision(size, rng),
        "beta": beta,
        "optimism": optimism,
        "A0": initial_matrix(A0, d, rng) if isinstance(A0, str) else np.array(A0, dtype=np.float64),
    }


def close_pair(gap: float, d: int, rng: np.random.Generator) -> Array:
    """Two orthogonal actions whose squared norms differ by `gap`, as two eigenvalues of X then do."""
    Q = orthogonal(d, rng)
    return np.array([math.sqrt(0.5) * Q[0], math.sqrt(0.5 + gap) * Q[1]])


def hard_problems(gamma: float, optimism: str) -> dict[str, Problem]:
    """Equal and nearly equal eigenvalues, zero and repeated actions, extreme scales; by name."""
    rng = np.random.default_rng(7)
    common: Problem = {"gamma": gamma, "optimism": optimism}
    Q = orthogonal(4, rng)
    free = ball(4, 4, rng)
    zero = np.zeros((2, 4))
    cases: dict[str, Problem] = {
        "empty history": {"m": 2, "actions": np.vstack([zero, free[:1]])},
        "empty history of a long block": {"m": 2, "actions": np.vstack([zero, free])},
        "empty history, dense A0": {"m": 2, "actions": np.vstack([zero, free[:2]]), "A0": "dense"},
        "only zero actions": {"m": 2, "actions": np.zeros((4, 4))},
        "only zero actions, dense A0": {"m": 2, "actions": np.zeros((4, 4)), "A0": "dense"},
        "some zero actions": {"m": 2, "actions": np.vstack([free[:1], zero, free[1:3], zero[:1]])},
        "orthonormal history": {"m": 3, "actions": np.vstack([Q[:3], free[:1]])},
        "orthonormal history and action": {"m": 3, "actions": Q},
        "orthonormal history, m = d": {"m": 4, "actions": np.vstack([Q, free[:1]])},
        "coordinate axes": {"m": 2, "actions": np.eye(4)},
        "coordinate axes, corner A0": {"m": 2, "actions": np.eye(4), "A0": "corner"},
        "one action again and again": {"m": 3, "actions": np.tile(free[0], (6, 1))},
        "one action again and again, m > d": {"m": 6, "actions": np.tile(free[0], (8, 1))},
        "one action again and again, dense A0": {"m": 3, "actions": np.tile(free[0], (5, 1)), "A0": "dense"},
        "two actions in turn": {"m": 3, "actions": np.tile(free[:2], (3, 1))},
        "an action and its opposite": {"m": 3, "actions": np.vstack([free[0], -free[0], free[0], free[1]])},
        "tiny actions": {"m": 2, "actions": 1e-8 * free},
        "tiny and large actions": {"m": 2, "actions": free * np.array([1e-12, 1.0, 1e-6, 1.0])[:, None]},
        "small A0": {"m": 2, "actions": free, "A0": "0.01"},
        "smaller A0": {"m": 2, "actions": free, "A0": "0.0005"},
        "small A0, m = d": {"m": 4, "actions": np.vstack([free, Q[:1]]), "A0": "0.01"},
        "large A0": {"m": 2, "actions": free, "A0": "40"},
        "beta = 0": {"m": 2, "actions": free, "beta": 0.0},
        "huge V_inv": {"m": 2, "actions": free, "V_scale": 1e12},
        "tiny V_inv": {"m": 2, "actions": free, "V_scale": 1e-12},
        "huge V_inv, zero actions": {"m": 2, "actions": np.vstack([free[:2], zero]), "V_scale": 1e12},
    }
    for gap in (1e-3, 1e-5, 1e-7, 1e-9, 1e-11, 1e-13, 1e-15):
        parallel = np.vstack([free[0], free[0] + gap * Q[0] * 0.1])
        for kind in ("default", "0.25", "corner"):
            cases[f"gap {gap:g}, A0 {kind}"] = {
                "m": 2,
                "actions": np.vstack([close_pair(gap, 4, rng), free[:1]]),
                "A0": kind,
            }
        cases[f"gap {gap:g}, m = d"] = {
            "m": 3,
            "actions": np.vstack([close_pair(gap, 3, rng), ball(3, 3, rng)]),
        }
        cases[f"almost parallel to {gap:g}"] = {"m": 2, "actions": np.vstack([parallel, free[1:3]])}
        lam = np.array([0.5, 0.5 + gap, 0.5 + 2.0 * gap, 2.0])
        A0 = (Q * lam) @ Q.T
        cases[f"gap {gap:g} in A0"] = {"m": 1, "actions": free[:2], "A0": 0.5 * (A0 + A0.T)}
        cases[f"gap {gap:g} in A0, no history"] = {
            "m": 1,
            "actions": np.vstack([zero[:1], free[:1]]),
            "A0": np.diag(lam),
        }
    return {name: problem(**(common | case)) for name, case in cases.items()}


def singular_problems(gamma: float, optimism: str) -> dict[str, Problem]:
    """A0 without full rank, for gamma >= 1 (and gamma = 0); by name."""
    rng = np.random.default_rng(11)
    free, plane = ball(6, 3, rng), ball(5, 2, rng)
    Q = orthogonal(3, rng)
    rank_one = np.outer(Q[0], Q[0])
    matrices: Sequence[tuple[str, ArrayLike, int, Array]] = [
        ("diag(1, 0)", np.diag([1.0, 0.0]), 1, plane[:4]),
        ("diag(1, 0), m = 0", np.diag([1.0, 0.0]), 0, plane[:2]),
        (
            "diag(1, 0), history in the range",
            np.diag([1.0, 0.0]),
            2,
            np.array([[0.5, 0.0], [1.0, 0.0], [0.6, 0.8]]),
        ),
        ("diag(1, 0), feature 0", np.diag([1.0, 0.0]), 1, np.array([[0.5, 0.0], [0.0, 1.0]])),
        ("[[1, 2], [2, 4]]", np.array([[1.0, 2.0], [2.0, 4.0]]), 1, plane[:3]),
        ("rank one", 0.5 * (rank_one + rank_one.T), 1, free[:3]),
        ("rank one, m = 3", 0.5 * (rank_one + rank_one.T), 3, free[:5]),
        (
            "diag(2, 0, 0), empty history",
            np.diag([2.0, 0.0, 0.0]),
            2,
            np.vstack([np.zeros((2, 3)), free[:1]]),
        ),
        ("zero", np.zeros((3, 3)), 2, free[:4]),
        ("zero, m = 1", np.zeros((3, 3)), 1, free[:3]),
        ("zero, m > d", np.zeros((3, 3)), 4, free),
        ("zero, m = 0", np.zeros((3, 3)), 0, free[:2]),
        ("zero, empty history", np.zeros((3, 3)), 2, np.vstack([np.zeros((2, 3)), free[:1]])),
        ("zero, only zero actions", np.zeros((3, 3)), 2, np.zeros((4, 3))),
        ("zero, repeated action", np.zeros((3, 3)), 2, np.vstack([free[[0, 0]], free[1:2]])),
        ("zero, d = 1", np.zeros((1, 1)), 2, np.array([[0.5], [0.25], [1.0]])),
    ]
    return {
        name: problem(gamma=gamma, optimism=optimism, A0=A0, m=m, actions=actions)
        for name, A0, m, actions in matrices
    }
