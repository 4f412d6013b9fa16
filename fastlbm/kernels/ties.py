"""Ties: owns what "better by more than rounding" and "as good up to rounding" mean, and how much rounding is.

Values that are computed in two ways, or in two orders, differ in their last digits. Whoever chooses between
them asks these functions, so that the choice is the same on every machine. The margin is a share of the size
of the values, one of the shares below.

The functions serve kernels; called from Python, with numbers or arrays, they run as Python.
"""

from __future__ import annotations

from typing import Any

from ._jit import inline

#: Blocks and cycles that ascents ended at: how well these end, far above rounding.
ASCENT_SHARE = 1e-9
#: Sums over the steps of a block or over the entries of a table.
SUM_SHARE = 1e-12
#: The value of one action, a sum over d entries.
ACTION_SHARE = 1e-13


@inline
def margin(size: Any, share: float) -> Any:
    """How much values of this size may differ and count as equal."""
    return share * abs(size)


@inline
def exceeds(x: Any, y: Any, rounding: float) -> Any:
    """Whether x is better than y by more than the margin `rounding`."""
    return x > y + rounding


@inline
def reaches(x: Any, y: Any, rounding: float) -> Any:
    """Whether x is as good as y, or better, up to the margin `rounding`."""
    return x >= y - rounding
