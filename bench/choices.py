"""`python -m bench choices`: who plans in Auto, by ways to choose among its candidates, on random instances.

Every way chooses anew when the steps have grown by a tenth. The plan that is best on average: each of the
probable candidates has a cycle, and that one counts which is worth most under all of their estimates.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from unittest import mock

import numpy as np

import fastlbm as lbm
from fastlbm.agents.auto_policy import AutoPolicy
from fastlbm.agents.ball_plans import BallPlans
from fastlbm.agents.policy import BlockPolicy
from fastlbm.agents.rolling import ahead_of
from fastlbm.kernels.block_state import make_block_state
from fastlbm.kernels.evidence import member
from fastlbm.kernels.learning import Learner
from fastlbm.kernels.weighing import DRAW, REDRAW, STEPS
from fastlbm.planning.effort import auto_effort
from reproduce.instances import best_cycles, instances

Way = Callable[[AutoPolicy, np.ndarray], int]
COUNT, SEEDS, T = 60, (0, 1), 750
#: Instances that nothing else is measured on.
ROOT = 1
#: Candidates whose plans are compared, and the least probability beside the largest.
FEW, LEAST = 4, 0.02


def is_due(policy: AutoPolicy, posterior: np.ndarray) -> bool:
    """Whether it is time to choose anew."""
    if 0 <= policy.chosen < len(posterior) and policy.marks[STEPS] < policy.marks[DRAW]:
        return False
    policy.marks[DRAW] = math.ceil(REDRAW * policy.marks[STEPS])
    return True


def most_probable(policy: AutoPolicy, posterior: np.ndarray) -> int:
    return int(np.argmax(posterior >= posterior.max() - 1e-9))


def drawn(policy: AutoPolicy, posterior: np.ndarray) -> int:
    if not is_due(policy, posterior):
        return policy.chosen
    return int(np.argmax(posterior + policy.rng.gumbel(size=len(posterior))))


def best_on_average(policy: AutoPolicy, posterior: np.ndarray) -> int:
    if not is_due(policy, posterior):
        return policy.chosen
    order = np.argsort(-posterior, kind="stable")[:FEW]
    few = [int(j) for j in order if posterior[j] > posterior.max() + math.log(LEAST)]
    if len(few) == 1:
        return few[0]
    cycles = [cycle_of(policy, j) for j in few]
    worth = [[average(policy, cycle, j) for j in few] for cycle in cycles]
    return few[int(np.argmax(np.array(worth) @ np.exp(posterior[few])))]


def cycle_of(policy: AutoPolicy, j: int) -> np.ndarray:
    """The cycle (P, d) of the plan that a candidate would make."""
    model, d, M = policy.model(j), len(policy.A0), len(policy.recent)
    effort, ahead = auto_effort(d, model.turn), ahead_of(None, model.turn)
    plans = BallPlans(
        policy.A0, model.m, model.gamma, ahead=ahead, play=policy.play, effort=effort, variant=model.variant
    )
    past = policy.past[policy.candidates.endless[j]] if model.m == math.inf else policy.A0
    learner = Learner(policy.config_of(j), member(policy.candidates, j), np.zeros((policy.play, d)))
    recent = policy.recent[M - plans.outlook.recent.shape[0] :]
    plans.plan(learner, recent, past, make_block_state(policy.play, d, 0, 0), policy.rng)
    return plans.outlook.cycle[:, : plans.outlook.marks[1]].T.copy()


def average(policy: AutoPolicy, cycle: np.ndarray, j: int) -> float:
    """What a cycle is worth, a step, under the estimate of a candidate."""
    m, gamma, decay = policy.model(j)
    theta = member(policy.candidates, j).theta
    size = float(np.linalg.norm(theta)) or 1.0
    env = lbm.LBM(theta / size, m=m, gamma=gamma, A0=policy.A0, decay=decay)
    turns = 1 + -(-policy.model(j).window // len(cycle))
    return size * float(env.expected_rewards(np.tile(cycle, (turns, 1)))[-len(cycle) :].mean())


WAYS: dict[str, Way] = {
    "the most probable": most_probable,
    "a memory drawn, its most probable exponent": AutoPolicy._choose,
    "drawn": drawn,
    "the plan that is best on average": best_on_average,
}


def shares(envs: list[lbm.LBM], best: np.ndarray, way: Way) -> np.ndarray:
    """(instances, seeds): the share of the best cycle."""
    found = np.zeros((len(envs), len(SEEDS)))
    # Not compiled end to end, where there is one way.
    ways = mock.patch.multiple(AutoPolicy, _choose=way, advance=BlockPolicy.advance)
    with ways, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k, env in enumerate(envs):
            for i, seed in enumerate(SEEDS):
                run = lbm.run(env, lbm.Auto(A0=env.A0), T=T, seed=seed, record=1)
                found[k, i] = run.reward[-1] / (T * best[k])
    return found


def main() -> None:
    """Print, for every way, the shares of the best cycle and what a step costs."""
    envs = instances(COUNT, seed=ROOT)
    best = np.array([cycle.average for cycle in best_cycles(envs)])
    print(f"Auto on {COUNT} random instances, {len(SEEDS)} runs each, T={T}: share of the best cycle")
    for name, way in WAYS.items():
        start = time.process_time()
        found = shares(envs, best, way)
        seconds = (time.process_time() - start) / (found.size * T)
        print(
            f"  {name:43}: mean {found.mean():.4f}, worst instance {found.mean(axis=1).min():.3f}, "
            f"worst run {found.min():.3f}, runs below 0.8: {(found < 0.8).sum()}, "
            f"{1e6 * seconds:.0f} us a step",
            flush=True,
        )
