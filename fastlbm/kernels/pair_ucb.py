"""The UCB of O3M and its gradient in the closed forms of `pair`: owns one evaluation in one pass.

The UCB is a sum over windows, so that a group of them can be taken from its actions to its part of the
gradient at once, with all that is in between in registers or nearly so.
"""

from __future__ import annotations

from ._jit import inline, kernel_internal
from ._types import Rows, Tiles, Vector
from .arithmetic import fma
from .lanes import sum_lanes
from .memory import Memory
from .optimism import KINK, Belief
from .pair import (
    Pair,
    backward_group,
    columns_of,
    forward_group,
    gradient_of,
    groups_of,
    sum_parts,
    weights_of,
)
from .vectors import WIDTH, at_least, load, read, root, store, where_above, zeros


@kernel_internal
def pair_ucb(
    memory: Memory,
    belief: Belief,
    lanes: int,
    a: Rows,
    tiles: Tiles,
    parts: Rows,
    scratch: Rows,
    values: Vector,
    grad: Rows,
) -> None:
    """values (lanes,) and grad (d, N) of the blocks in a (d, N).

    parts (3 d + 1, N + WIDTH) is scratch whose columns without a window are 0, scratch is (2 d, WIDTH).
    """
    d, N = a.shape
    power = memory.power
    for group in range(groups_of(N - memory.m * lanes)):
        start, u, v = columns_of(memory, lanes, group)
        count = min(N - start, WIDTH)
        z = forward_group(memory, weights_of(memory), a, start, u, v, count, tiles, 0)
        for i in range(d):
            b = fma(z[0], read(a, i, u, count), power.c_power * read(a, i, start, count))
            store(scratch, i, 0, fma(z[1], read(a, i, v, count), b))
        ucb, scale = _ucb(belief, scratch)
        store(parts, 3 * d, group * WIDTH, ucb)
        pu, pv = zeros(), zeros()
        for i in range(d):
            g = fma(scale, load(scratch, d + i, 0), zeros() + belief.theta[i])
            store(scratch, d + i, 0, g)
            pu, pv = fma(read(a, i, u, count), g, pu), fma(read(a, i, v, count), g, pv)
        y, S = backward_group(power, weights_of(memory), pu, pv, tiles, 0)
        for i in range(d):
            g = load(scratch, d + i, 0)
            gradient_of(power.c_power, a, g, i, start, u, v, count, y, z, S, parts)
    sum_parts(parts, grad)
    sum_lanes(parts, 3 * d, N - memory.m * lanes, lanes, values.reshape(1, lanes), 0)


@inline
def _ucb(belief: Belief, scratch: Rows) -> Pair:
    """<b, theta> + beta ||b|| of a group whose features are the first rows of `scratch`.

    The derivative is theta + scale V_inv b: also returns scale, and leaves V_inv b in the last rows, or 0.
    """
    theta, V_inv, beta = belief.theta, belief.V_inv, belief.beta
    d = theta.shape[0]
    mean, square, nothing = zeros(), zeros(), zeros()
    for i in range(d):
        b, along = load(scratch, i, 0), zeros()
        mean = fma(theta[i], b, mean)
        if beta > 0.0:
            for j in range(d):
                along = fma(V_inv[i, j], load(scratch, j, 0), along)
            square = fma(along, b, square)
        store(scratch, d + i, 0, along)
    if beta == 0.0:
        return mean, nothing
    norm = root(at_least(square, 0.0))
    return fma(beta, norm, mean), where_above(square, KINK, beta / (norm + 1e-300), nothing)
