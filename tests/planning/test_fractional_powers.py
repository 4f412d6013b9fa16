"""Memories without end whose powers are sums of inverses: against fifty digits, and against spectra."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastlbm as lbm
from fastlbm.kernels.blocks import compute_value, make_work
from fastlbm.kernels.endless import without_spectra
from fastlbm.kernels.fading import Fading, Variant, push_past
from fastlbm.kernels.memory import Memory, as_cycle, make_memory
from fastlbm.kernels.optimism import O3M, Belief
from fastlbm.kernels.power_poles import MOST_TERMS
from tests import problems
from tests.naive import GAMMAS, OPTIMISM, Array, Problem
from tests.planning.test_decay import TOLERANCE, error, fading, failures

#: Half-integers, and what is no root at all.
FRACTIONS = (*(gamma for gamma in GAMMAS if gamma != round(gamma)), -1.7, -3.25, -0.01, 1.001)
DECAYS = (0.3, 0.5, 0.8, 0.9, 0.97)
MATRICES = ("default", "0.25", "corner", "40")


def made(A0: Array, gamma: float, decay: float) -> tuple[Memory, Fading]:
    memory, form = make_memory(A0, math.inf, gamma, Variant(decay))
    assert isinstance(form, Fading)
    return memory, form


def evaluated(memory: Memory, form: Fading, belief: Belief, blocks: Array) -> tuple[Array, Array]:
    """Values (lanes,) and gradients (lanes, L, d) of blocks (lanes, L, d)."""
    lanes, L, d = blocks.shape
    columns = np.ascontiguousarray(blocks.transpose(2, 1, 0).reshape(d, -1))
    values, grad = np.empty(lanes), np.empty_like(columns)
    work = make_work(memory, form, columns.shape[1], lanes)
    for array in (
        (work.B, work.D, work.tiles, work.group) if without_spectra(memory) else (work.D, work.group)
    ):
        array[:] = np.nan  # nothing is read before it is written
    compute_value(memory, form, belief, columns, lanes, work, values, grad)
    assert np.isfinite(values).all()
    assert np.isfinite(grad).all()
    return values, grad.reshape(d, L, lanes).transpose(2, 1, 0)


def test_all_gammas_have_poles() -> None:
    """The tests below would pass without."""
    for gamma, decay in itertools.product(FRACTIONS, DECAYS):
        for A0 in (np.eye(4), np.eye(9), 0.25 * np.eye(12), 40.0 * np.eye(9)):
            assert made(A0, gamma, decay)[1].poles.shape[1] > 0, (gamma, decay)


@pytest.mark.nojit
@pytest.mark.parametrize(("i", "gamma"), list(enumerate(FRACTIONS)))
def test_fifty_digits(i: int, gamma: float) -> None:
    kind, decay = MATRICES[i % len(MATRICES)], DECAYS[i % len(DECAYS)]
    d = 4 + i % 6
    problem = problems.problem(d=d, m=0, L=3, gamma=gamma, A0=kind, optimism=OPTIMISM[i % 3])
    assert error(fading(problem, decay, endless=True)) <= TOLERANCE


@pytest.mark.parametrize("d", range(3, 17))
def test_fifty_digits_after_a_history(d: int) -> None:
    """Of more actions than dimensions, so that no direction is left as it was."""
    past = problems.ball(d + 2, d, np.random.default_rng(d))
    gamma, decay = FRACTIONS[d % len(FRACTIONS)], DECAYS[d % len(DECAYS)]
    problem = problems.problem(d=d, m=0, L=2, gamma=gamma, optimism=OPTIMISM[d % 3])
    assert error(fading(problem, decay, endless=True) | {"history": past}) <= TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("d", range(3, 17))
def test_fifty_digits_everywhere(d: int, decay: float) -> None:
    past = problems.ball(4, d, np.random.default_rng(d))
    cases = {
        str(gamma): problems.problem(
            d=d, m=0, L=4, gamma=gamma, A0=MATRICES[(d + i) % 4], optimism=OPTIMISM[(d + i) % 3]
        )
        for i, gamma in enumerate(FRACTIONS)
    }
    assert failures({k: fading(p, decay, endless=True) | {"history": past} for k, p in cases.items()}) == {}


@pytest.mark.nojit
@pytest.mark.parametrize(("i", "gamma"), list(enumerate(FRACTIONS)))
def test_hard_cases(i: int, gamma: float) -> None:
    """Those that have poles and those that fall back."""
    d, rng, common = (
        4 + i % 6,
        np.random.default_rng(5),
        {"m": 0, "gamma": gamma, "optimism": OPTIMISM[i % 3]},
    )
    free, zero, Q = problems.ball(3, d, rng), np.zeros((2, d)), problems.orthogonal(d, rng)
    cases = {
        "only zero actions": {"actions": zero},
        "some zero actions": {"actions": np.vstack([free[:1], zero[:1], free[1:2], zero[:1]])},
        "one action again and again": {"actions": np.tile(free[0], (4, 1))},
        "coordinate axes": {"actions": np.eye(d)[:3]},
        "an orthonormal basis": {"actions": Q[:4]},
        "an action and its opposite": {"actions": np.vstack([free[0], -free[0], free[1]])},
        "almost parallel": {"actions": np.vstack([free[0], free[0] + 1e-9 * Q[0], free[1]])},
        "tiny actions": {"actions": 1e-8 * free},
        "tiny and large actions": {"actions": free * np.array([1e-150, 1.0, 1e-12])[:, None]},
        "small A0": {"actions": free, "A0": "0.01"},
        "tiny A0": {"actions": free, "A0": "0.0005"},
        "A0 with a gap": {"actions": free, "A0": np.diag([1e-3, *[2.0] * (d - 1)])},
        "long actions": {"actions": 3.0 * free},
        "very long actions": {"actions": 40.0 * free},
    }
    chosen = dict(itertools.islice(cases.items(), i % 2, None, 2))  # half of them, in turn
    decay = DECAYS[i % len(DECAYS)]
    hard = {name: problems.problem(**(common | case)) for name, case in chosen.items()}  # type: ignore[arg-type]
    assert failures({name: fading(p, decay, endless=True) for name, p in hard.items()}) == {}


@settings(max_examples=60, deadline=None)
@given(
    d=st.integers(3, 20),
    gamma=st.floats(-4.0, 4.0),
    decay=st.floats(0.05, 0.97),
    c=st.floats(0.05, 20.0),
    L=st.integers(1, 9),
    lanes=st.integers(1, 5),
    wraps=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_poles_do_what_spectra_do(
    d: int, gamma: float, decay: float, c: float, L: int, lanes: int, wraps: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    Q = problems.orthogonal(d, rng)
    A0 = (Q * rng.uniform(c, 2.0 * c, d)) @ Q.T
    memory, form = made(0.5 * (A0 + A0.T), gamma, decay)
    memory = as_cycle(memory) if wraps else memory
    push_past(form.past, decay, problems.ball(15, d, rng), 0, 15)
    belief = Belief(rng.standard_normal(d), problems.precision(d, rng), 0.8, O3M)
    blocks = problems.ball(lanes * L, d, rng).reshape(lanes, L, d)
    values, grads = evaluated(memory, form, belief, blocks)
    same, slopes = evaluated(memory, form._replace(poles=np.zeros((2, 0))), belief, blocks)
    scale = np.abs(slopes).max()
    np.testing.assert_allclose(values, same, rtol=0.0, atol=1e-11 * max(np.abs(same).max(), scale))
    np.testing.assert_allclose(grads, slopes, rtol=0.0, atol=1e-11 * scale)


@pytest.mark.parametrize("gamma", [-1.7, 0.5])
@pytest.mark.parametrize("d", [4, 9, 14])
def test_a_block_does_not_see_those_beside_it(d: int, gamma: float) -> None:
    """To the last bit, wherever its windows come to lie in groups of vectors."""
    rng = np.random.default_rng(d)
    memory, form = made(np.eye(d), gamma, 0.8)
    belief = Belief(rng.standard_normal(d), np.eye(d), 0.0, O3M)
    blocks = problems.ball(33, d, rng).reshape(3, 11, d)
    _, grads = evaluated(memory, form, belief, blocks)
    for s in range(3):
        np.testing.assert_array_equal(evaluated(memory, form, belief, blocks[s : s + 1])[1][0], grads[s])


@pytest.mark.parametrize("d", [3, 4, 9, 12])
def test_where_tiles_begin_does_not_matter(d: int) -> None:
    """With the most pairs of vectors that fit into them, and nothing behind."""
    gamma = -1.7  # one factor
    rng, L = np.random.default_rng(d), 64
    memory, form = made(np.eye(d), gamma, 0.8)
    s, w = np.repeat(form.poles, 4, axis=1)[:, : MOST_TERMS - 1]
    form = form._replace(poles=np.array([s, w]))
    assert form.poles.shape[1] == MOST_TERMS - 1
    belief = Belief(rng.standard_normal(d), np.eye(d), 0.0, O3M)
    columns = np.ascontiguousarray(problems.ball(L, d, rng).T)
    found = []
    for offset in range(9):
        work = make_work(memory, form, L, 1)
        room = np.full(work.tiles.size + 16, np.nan)
        tiles = room[offset : offset + work.tiles.size].reshape(work.tiles.shape)
        grad = np.empty_like(columns)
        compute_value(memory, form, belief, columns, 1, work._replace(tiles=tiles), np.empty(1), grad)
        assert np.isnan(room[:offset]).all()
        assert np.isnan(room[offset + work.tiles.size :]).all()
        found.append(grad.tobytes())
    assert len(set(found)) == 1


def test_a_plan_is_what_it_says() -> None:
    problem: Problem = {"m": math.inf, "gamma": -1.7, "theta": np.eye(10)[0], "decay": 0.8}
    plan = lbm.plan_block(d=10, L=6, **problem)
    value, _ = lbm.block_ucb(plan.actions, **problem)
    assert plan.value == pytest.approx(value, rel=1e-12)
    env = lbm.LBM(problem["theta"], m=math.inf, gamma=-1.7, decay=0.8)
    assert plan.value == pytest.approx(env.expected_rewards(plan.actions).sum(), rel=1e-12)
