"""Linear bandits with memory, with a compiled core.

The reward of an action depends on the last m actions through the memory matrix:
`y_t = <a_t, (A0 + sum of the last m a a^T)^gamma theta> + noise`.

Names load on first use: `import fastlbm` and `fastlbm --help` do not wait for Numba.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__

if TYPE_CHECKING:
    from . import theory
    from .agents import (
        O3M,
        OFUL,
        OM,
        BanditCombiner,
        Cyclic,
        Doubling,
        EvidenceSelector,
        OMBlock,
        OracleGreedy,
    )
    from .experiments.many import run_many
    from .experiments.study import Study
    from .model.actions import Ball, Contextual, Finite
    from .model.lbm import LBM
    from .planning.blocks import best_block, plan_block
    from .planning.bounds import opt_bounds
    from .planning.cycles import best_cycle
    from .planning.objective import block_ucb
    from .running.episode import run
    from .running.live import Live

__all__ = [
    "LBM",
    "O3M",
    "OFUL",
    "OM",
    "Ball",
    "BanditCombiner",
    "Contextual",
    "Cyclic",
    "Doubling",
    "EvidenceSelector",
    "Finite",
    "Live",
    "OMBlock",
    "OracleGreedy",
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
    "BanditCombiner": "agents",
    "EvidenceSelector": "agents",
    "Ball": "model.actions",
    "Contextual": "model.actions",
    "Cyclic": "agents",
    "Doubling": "agents",
    "Finite": "model.actions",
    "LBM": "model.lbm",
    "Live": "running.live",
    "O3M": "agents",
    "OFUL": "agents",
    "OM": "agents",
    "OMBlock": "agents",
    "OracleGreedy": "agents",
    "best_block": "planning.blocks",
    "best_cycle": "planning.cycles",
    "block_ucb": "planning.objective",
    "opt_bounds": "planning.bounds",
    "plan_block": "planning.blocks",
    "run": "running.episode",
    "run_many": "experiments.many",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{_OWNERS.get(name, name)}", __name__)
    value = getattr(module, name) if name in _OWNERS else module
    globals()[name] = value  # found directly from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
