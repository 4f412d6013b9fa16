"""Plans on sets of arms: `FinitePlanner`, built once for a set."""

from .planner import FinitePlanner

__all__ = ["FinitePlanner"]
