"""The model, its memory matrix and its sets of actions; Section 2, sec:model, of the paper.

`LBM` loads Numba, and does so when it is asked for: `theory` needs the memory matrix alone.
"""

from typing import TYPE_CHECKING

from .actions import ActionSet, Ball, Contextual, Finite, Scheduled

if TYPE_CHECKING:
    from .lbm import LBM

__all__ = ["LBM", "ActionSet", "Ball", "Contextual", "Finite", "Scheduled"]


def __getattr__(name: str) -> object:
    if name == "LBM":
        from .lbm import LBM

        return LBM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
