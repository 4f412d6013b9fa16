"""The model and its sets of actions; Section 2 of the paper."""

from .actions import ActionSet, Ball, Contextual, Finite
from .lbm import LBM

__all__ = ["LBM", "ActionSet", "Ball", "Contextual", "Finite"]
