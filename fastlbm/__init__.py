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
    from .blocks import block_ucb
    from .model import LBM
    from .planning import best_block, best_cycle, opt_bounds, plan_block

__all__ = [
    "LBM",
    "Ball",
    "Contextual",
    "Finite",
    "__version__",
    "best_block",
    "best_cycle",
    "block_ucb",
    "opt_bounds",
    "plan_block",
    "theory",
]

#: The module that owns each public name; a name that is not here is a module itself.
_OWNERS = {
    "Ball": "actions",
    "Contextual": "actions",
    "Finite": "actions",
    "LBM": "model",
    "best_block": "planning",
    "best_cycle": "planning",
    "block_ucb": "blocks",
    "opt_bounds": "planning",
    "plan_block": "planning",
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
