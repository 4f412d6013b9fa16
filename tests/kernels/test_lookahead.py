"""Plans from a history: their value, the bias of a cycle, given actions that stay, cycles that get better."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastlbm as lbm
from fastlbm.kernels.ascent import Ends, ascend
from fastlbm.kernels.lookahead import better_cycle, cycle_bias, plan_ahead
from fastlbm.kernels.memory import make_memory
from fastlbm.kernels.optimism import O3M, Belief
from fastlbm.kernels.search import Effort
from tests import naive

Array = np.ndarray
NEVER = np.zeros(1, dtype=np.int64)
EFFORT = Effort(starts=3, cycles=0, moves=8, ticks=40, polish=0, tolerance=1e-6, limit=2**62)


def a_belief(d: int, rng: np.random.Generator) -> Belief:
    M = rng.normal(size=(d, d))
    return Belief(rng.normal(size=d), 0.1 * np.eye(d) + 0.05 * M @ M.T, 0.7, O3M)


def ucbs(sequence: Array, m: int, gamma: float, A0: Array | None, belief: Belief) -> Array:
    """The UCB of every action behind the first m of a sequence (n, d)."""
    B = naive.features(sequence, m, gamma, A0)
    return B @ belief.theta + belief.beta * np.sqrt(np.einsum("ti,ij,tj->t", B, belief.V_inv, B))


def long_run_bias(cycle: Array, m: int, gamma: float, A0: Array | None, belief: Belief) -> Array:
    """What a cycle (P, d) collects in many periods from each phase, less the average over all phases."""
    P = len(cycle)
    values = ucbs(cycle[np.arange(-m, P) % P], m, gamma, A0, belief)
    # Over whole periods all phases collect the same; one that stops within a period is counted for each stop.
    stops = np.array(
        [[values[(s + np.arange(j)) % P].sum() - j * values.mean() for j in range(P)] for s in range(P)]
    )
    return stops.mean(axis=1)


@pytest.mark.nojit
@given(
    d=st.integers(1, 4),
    m=st.integers(1, 4),
    P=st.integers(1, 6),
    gamma=st.sampled_from([-2.0, -0.7, 1.0]),
    general=st.booleans(),
    seed=st.integers(0, 99),
)
def test_the_bias_of_a_cycle(d: int, m: int, P: int, gamma: float, general: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A0 = np.diag(rng.uniform(0.5, 2.0, d)) if general else np.eye(d)
    cycle, belief = lbm.Ball(d).sample(P, seed=seed), a_belief(d, rng)
    memory, form = make_memory(A0, m, gamma)
    bias = cycle_bias(memory, form, belief, np.ascontiguousarray(cycle.T))
    np.testing.assert_allclose(bias, long_run_bias(cycle, m, gamma, A0, belief), rtol=1e-9, atol=1e-10)
    assert bias.sum() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("d", "m", "gamma"), [(3, 2, -3.0), (2, 3, -1.5), (4, 1, 1.0), (3, 4, -2.0)])
@pytest.mark.parametrize("every_phase", [True, False])
def test_a_plan_is_worth_its_ucbs_and_what_comes_after(
    d: int, m: int, gamma: float, every_phase: bool
) -> None:
    rng = np.random.default_rng(d + m)
    belief, before, cycle = a_belief(d, rng), lbm.Ball(d).sample(m, seed=1), lbm.Ball(d).sample(m + 2, seed=2)
    memory, form = make_memory(np.eye(d), m, gamma)
    ahead, P = 5, len(cycle)
    warm = np.ascontiguousarray(lbm.Ball(d).sample(3, seed=3).T)
    plan, phase, value, evaluations = plan_ahead(
        memory, form, belief, before, np.ascontiguousarray(cycle.T), warm, np.array([1]),
        every_phase, ahead, EFFORT,
    )  # fmt: skip
    assert plan.shape == (d, ahead + m)
    assert evaluations > 0
    assert (np.linalg.norm(plan, axis=0) <= 1.0 + 1e-12).all()
    # The end is the cycle, which goes on from the phase that is told.
    np.testing.assert_array_equal(plan[:, ahead:].T, cycle[np.arange(phase - m, phase) % P])
    bias = long_run_bias(cycle, m, gamma, None, belief)
    total = ucbs(np.concatenate((before, plan.T)), m, gamma, None, belief).sum() + bias[phase]
    assert value == pytest.approx(total, rel=1e-10)
    # No start is better: the cycle from each phase, and the warm one.
    starts = [cycle[(s + np.arange(ahead + m)) % P] for s in range(P)] if every_phase else []
    starts.append(np.concatenate((warm.T, cycle[(1 + np.arange(ahead + m - 3)) % P])))
    phases = [(s + ahead + m) % P for s in range(P)] if every_phase else []
    phases.append((1 + ahead + m - 3) % P)
    for start, after in zip(starts, phases, strict=True):
        worth = ucbs(np.concatenate((before, start)), m, gamma, None, belief).sum() + bias[after]
        assert worth <= value + 1e-9


@pytest.mark.nojit
def test_given_actions_stay_and_lanes_that_are_done_leave() -> None:
    """Nine starts of different quality, more than there are lanes; each as good as when it climbs alone."""
    d, m, n, count = 3, 2, 7, 9
    belief = a_belief(d, np.random.default_rng(0))
    memory, form = make_memory(np.eye(d), m, -2.0)
    x = np.random.default_rng(1).uniform(-0.5, 0.5, (d, n * count))
    beyond = np.linspace(-1.0, 1.0, count)
    together, values = x.copy(), beyond.copy()
    ascend(memory, form, belief, together, Ends(0, 2, 1), 30, 0.0, -np.inf, values, NEVER)
    for s in range(count):
        alone, value = np.ascontiguousarray(x[:, s::count]), beyond[s : s + 1].copy()
        ascend(memory, form, belief, alone, Ends(0, 2, 1), 30, 0.0, -np.inf, value, NEVER)
        block = together[:, s::count]
        np.testing.assert_array_equal(block[:, :2], x[:, s::count][:, :2])
        np.testing.assert_array_equal(block[:, -1], x[:, s::count][:, -1])
        total = ucbs(block.T, m, -2.0, None, belief).sum() + beyond[s]
        assert values[s] == pytest.approx(total, rel=1e-10)
        assert values[s] <= value[0] + 1e-12  # it may be given up beside better ones
    best = int(values.argmax())
    alone, value = np.ascontiguousarray(x[:, best::count]), beyond[best : best + 1].copy()
    ascend(memory, form, belief, alone, Ends(0, 2, 1), 30, 0.0, -np.inf, value, NEVER)
    assert values[best] == value[0]


def test_cycles_get_better() -> None:
    d, m, gamma = 3, 3, -3.0
    env = lbm.LBM(np.array([0.5, 0.8, 0.3]) / np.linalg.norm([0.5, 0.8, 0.3]), m=m, gamma=gamma)
    belief = Belief(np.array(env.theta), np.eye(d), 0.0, O3M)
    memory, form = make_memory(np.eye(d), m, gamma)
    rng = np.random.default_rng(0)
    cycle, averages = np.empty((d, 0)), []
    for _ in range(12):
        cycle = better_cycle(memory, form, belief, cycle, 24, 4, EFFORT, rng)
        assert cycle.shape[1] <= 24
        wrapped = cycle.T[np.arange(-m, cycle.shape[1]) % cycle.shape[1]]
        averages.append(ucbs(wrapped, m, gamma, None, belief).mean())
    assert (np.diff(averages) >= -1e-9).all()
    assert averages[-1] >= 0.99 * lbm.best_cycle(env).average
