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
    from .actions import Ball, Contextual, Finite
    from .agents import O3M, OFUL, OM, Cyclic, Doubling, OMBlock, OracleGreedy
    from .blocks import block_ucb
    from .live import Live
    from .model import LBM
    from .planning import best_block, best_cycle, opt_bounds, plan_block
    from .runs import run, run_many
    from .selection import BanditCombiner, EvidenceSelector
    from .study import Study

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
    "Study": "study",
    "BanditCombiner": "selection",
    "EvidenceSelector": "selection",
    "Ball": "actions",
    "Contextual": "actions",
    "Cyclic": "agents",
    "Doubling": "agents",
    "Finite": "actions",
    "LBM": "model",
    "Live": "live",
    "O3M": "agents",
    "OFUL": "agents",
    "OM": "agents",
    "OMBlock": "agents",
    "OracleGreedy": "agents",
    "best_block": "planning",
    "best_cycle": "planning",
    "block_ucb": "blocks",
    "opt_bounds": "planning",
    "plan_block": "planning",
    "run": "runs",
    "run_many": "runs",
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
