"""Linear bandits with memory, with a compiled core.

The reward of an action depends on the last m actions through the memory matrix:
`y_t = <a_t, (A0 + sum of the last m a a^T)^gamma theta> + noise`.

The layers. Each imports only from those below it, but for `Agent.start`, which makes a live policy;
pyproject.toml has the contracts.

    cli/           arguments, printing and exit codes
    doctor         what is installed and whether it works
    precompile     compiles the core ahead of use
    gym/           the model for Gymnasium, and Gymnasium's environments for our agents
    experiments/   many runs: run_many, studies, their grammar and their store, results, comparators, reports
    running/       one run: an episode, compiled or step by step, and what of it is your own; a live policy,
                   what it is told and believes, late rewards, its state and how to go on from one; seeds
    plots/         arrays in, figures out
    agents/        what an agent is (base), what a policy is (policy), one file an algorithm
    planning/      blocks, cycles, bounds on OPT; effort has all presets; finite/ is the same for arms
    theory/        the paper's formulas, its contradictions, and what each label of it is
    model/         LBM, sets of actions, names of arms, the memory matrix
    kernels/       compiled code only, one file an idea; _jit says how it is compiled
    _base/         checks of arguments, values and how they are shown, types, files, interrupts, workers

One `run(env, O3M(...), T)` on the ball, file by file.

1. running/episode.py checks the arguments; running/seeds.py makes two streams, noise and agent.
2. agents/block_learners.py holds O3M's parameters; agents/learners.py makes the policy: a block state
   (kernels/block_state.py), an estimator (kernels/estimator.py) and a planner (kernels/planners.py).
3. model/lbm.py gives its parameters and an empty history (kernels/rewards.py).
4. `policy.advance` (agents/policy.py) enters compiled code, `run_blocks` in kernels/episode.py: the loop of
   Algorithm 1. While steps are left:
   a. learn: kernels/learning.py hands the rewards of the block to the estimator;
   b. plan: `plan_on_ball` in kernels/planners.py, by search.py (starts and moves), ascent.py (projected
      gradient), blocks.py (one evaluation): features by pair.py or memory.py, their UCB by optimism.py, and
      back to a gradient; for m <= 2 all at once by pair_ucb.py, in the vectors of vectors.py;
   c. play: kernels/playing.py adds noise and records, kernels/rewards.py has the reward of a step.
5. Back in running/episode.py the records become a `Run`; experiments/ collects many of them.

Memories that fade, or never end, are in kernels/fading.py and kernels/endless.py, responses other than the
power in kernels/responses.py and model/response.py.
A run in which an agent or the environment is not of the package goes step by step, in running/stepwise.py.
A live policy (running/live.py) does 4a and 4b with the same machine code and leaves 4c to you. Arms that are
told at each step are chosen by agents/offers.py and kernels/offers.py; what others play comes in by `watch`
of agents/policy.py.
`Rolling` plans from its history instead, in kernels/rolling.py and kernels/lookahead.py; `Auto` weighs models
(agents/auto_grid.py) in kernels/weighing.py, sees to what is rare in agents/auto_policy.py, and plans with
the same code (agents/auto_plans.py). On arms plans are dynamic programs over the last m arms
(planning/finite, kernels/dynamic_programs.py) or, beyond them, found by kernels/arm_search.py from starts and
changes, kernels/arm_breeding.py and arm_pools.py from several good blocks and dynamic programs of few arms,
kernels/arm_climbs.py arm by arm, kernels/arm_scores.py which arms are worth a look. Blocks of one set under
rotting, and what `Rolling` plays of it, are found by kernels/arm_rounds.py: annealed cycles, blocks and
stretches of them (arm_annealing.py, arm_grounds.py), exact plans of a few arms (arm_choice.py,
arm_programs.py), and where d <= 2m beams (arm_beams.py) and islands (arm_islands.py). What
arms are worth at a position is told by arm_looks.py: about, for all of them, by arm_inverses.py and
arm_screens.py where d <= 2m, elsewhere by the inner products of arm_tables.py in arm_spans.py; exactly, for a
few, in closed form (arm_inverses.py, arm_windows.py). Powers are sums of inverses there (arm_poles.py).
Sets revealed step by step are O3M's in kernels/revealed_blocks.py.

The symbols.

    paper            here                          shape
    d, m, gamma      d, m, gamma                   numbers
    theta*           theta of LBM                  (d,)
    A_0              A0                            (d, d)
    a_t              actions, one row a step       (T, d); in kernels (d, N), one column a step
    A_{t-1}          LBM.memory_matrix             (d, d)
    bold a, a block  actions of a Plan             (m+L, d)
    b_j, features    B in kernels, F in learners   (d, N); (L, d), for OM-Block (1, d(m+L))
    theta-hat, V     theta, V, V_inv of Estimator  (D,), (D, D); D = d, for OM-Block d(m+L)
    beta             beta, `radius`                number
    lambda, delta    lam, delta                    numbers
    r-tilde(a)       value of a Plan               number
    a-tilde          best_block                    (m+L, d)
    OPT              opt_bounds                    number
    R                LBM.reward_bound              number
    C_j, R_j, T_bc   theory.CombinerConstants      (N,), (N,), number

Working on it. `pip install -e '.[dev]'`, then `pytest`, `pytest --slow` with the long comparisons, `pytest
--doctest-modules fastlbm`, `pytest bench`. `.ci/run` does everything that must pass, in fresh clones of HEAD
with fresh environments and an empty cache. `tests/` mirrors the package; the module naive there has slow
references that can be read beside the paper, and the tests compare the core with them. Why the core is as it
is: `help("fastlbm.kernels")`.

Names load on first use: `import fastlbm` and `fastlbm --help` do not wait for Numba.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__
from .gym import announce as _announce

if TYPE_CHECKING:
    from . import theory
    from .agents import (
        O3M,
        OFUL,
        OM,
        Auto,
        BanditCombiner,
        Corral,
        Cyclic,
        Doubling,
        EpsilonGreedy,
        EvidenceSelector,
        LinTS,
        OMBlock,
        OracleGreedy,
        Random,
        RegretBalancing,
        Rolling,
    )
    from .experiments.many import run_many
    from .experiments.study import Study
    from .gym.adapter import GymEnvironment
    from .model.actions import Ball, Contextual, Finite, Scheduled
    from .model.lbm import LBM
    from .model.response import Response
    from .planning.blocks import best_block, plan_block
    from .planning.bounds import opt_bounds
    from .planning.cycles import best_cycle
    from .planning.objective import block_ucb
    from .running.episode import run
    from .running.live import Live
    from .running.own import OwnAgent, OwnEnvironment

__all__ = [
    "LBM",
    "O3M",
    "OFUL",
    "OM",
    "Auto",
    "Ball",
    "BanditCombiner",
    "Contextual",
    "Corral",
    "Cyclic",
    "Doubling",
    "EpsilonGreedy",
    "EvidenceSelector",
    "Finite",
    "GymEnvironment",
    "LinTS",
    "Live",
    "OMBlock",
    "OracleGreedy",
    "OwnAgent",
    "OwnEnvironment",
    "Random",
    "RegretBalancing",
    "Response",
    "Rolling",
    "Scheduled",
    "Study",
    "__version__",
    "best_block",
    "best_cycle",
    "block_ucb",
    "opt_bounds",
    "plan_block",
    "run",
    "run_many",
    "theory",
]

#: The module that owns each public name; a name that is not here is a module itself.
_OWNERS = {
    "Study": "experiments.study",
    "Auto": "agents",
    "BanditCombiner": "agents",
    "EvidenceSelector": "agents",
    "Ball": "model.actions",
    "Contextual": "model.actions",
    "Scheduled": "model.actions",
    "Corral": "agents",
    "Cyclic": "agents",
    "Doubling": "agents",
    "EpsilonGreedy": "agents",
    "Finite": "model.actions",
    "GymEnvironment": "gym.adapter",
    "LBM": "model.lbm",
    "LinTS": "agents",
    "Live": "running.live",
    "O3M": "agents",
    "OFUL": "agents",
    "OM": "agents",
    "OMBlock": "agents",
    "OracleGreedy": "agents",
    "OwnAgent": "running.own",
    "OwnEnvironment": "running.own",
    "Random": "agents",
    "RegretBalancing": "agents",
    "Response": "model.response",
    "Rolling": "agents",
    "best_block": "planning.blocks",
    "best_cycle": "planning.cycles",
    "block_ucb": "planning.objective",
    "opt_bounds": "planning.bounds",
    "plan_block": "planning.blocks",
    "run": "running.episode",
    "run_many": "experiments.many",
}


if not TYPE_CHECKING:  # a type checker knows the names above, and tells of others

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f".{_OWNERS.get(name, name)}", __name__)
        value = getattr(module, name) if name in _OWNERS else module
        globals()[name] = value  # found directly from now on
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_announce()
