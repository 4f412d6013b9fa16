"""Block objectives: owns the public face of the kernels, `block_ucb`.

The UCBs of the paper's Section 4, sec:algo; OM-Block's is that of equation (9), eq:oful_block.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.types import Array
from .._base.values import writable
from ..kernels.blocks import compute_value, make_work
from ..kernels.fading import Fading, Variant, push_past, total_weight
from ..kernels.memory import Memory, make_memory
from ..kernels.optimism import O3M, OM, OM_BLOCK, Belief
from ..model.memory_matrix import check_memory_matrix
from ..model.response import Response, make_variant

OPTIMISM = {"O3M": O3M, "OM": OM, "OM-Block": OM_BLOCK}


def block_ucb(
    actions: ArrayLike,
    *,
    m: float,
    gamma: float,
    theta: ArrayLike,
    V_inv: ArrayLike | None = None,
    beta: float = 0.0,
    optimism: str = "O3M",
    A0: ArrayLike | None = None,
    decay: float = 1.0,
    history: ArrayLike | None = None,
    response: str | Response = "power",
) -> tuple[float, Array]:
    """Value of a block's upper confidence bound and its exact gradient with respect to every action.

    `actions` (m+L, d) is the block; its features are b_j = (A0 + sum of the m actions before)^gamma a_j for
    the last L actions. With ||b||^2 = b^T V_inv b the value is

    - "O3M": sum_j <b_j, theta> + beta ||b_j||
    - "OM": <s, theta> + beta ||s||, s = sum_j b_j
    - "OM-Block": <b, theta> + beta ||b||, b the first m actions and the L features, d(m+L) numbers

    `theta` and `V_inv` have d entries a side, for OM-Block d(m+L); beta = 0 needs no V_inv and gives the
    reward of the block. Returns the value and the gradient (m+L, d). A norm has no gradient at 0: there the
    bonus adds 0.

    With a `decay` below 1 the action s steps ago counts decay^(s-1) times in the memory, and m may be
    `math.inf`: then the block is (L, d), all of its actions count, and the window of each is all before it.
    What was played before the block comes as `history`, with an infinite m alone: (h, d), the oldest first.
    `response` is that of `LBM`, and b_j = f(A0 + ...) a_j.

    Use it to write a planner or a learner of your own.

    >>> import numpy as np
    >>> value, grad = block_ucb([[1.0, 0.0], [0.6, 0.8]], m=1, gamma=-1.0, theta=[1.0, 0.0])
    >>> value
    0.3
    >>> np.round(grad, 12)
    array([[-0.3, -0.4],
           [ 0.5,  0. ]])
    >>> value, _ = block_ucb([[1.0, 0.0]] * 3, m=math.inf, gamma=-1.0, decay=0.5, theta=[1.0, 0.0])
    >>> value
    1.9
    """
    m, decay = validation.memory("m", m, allow_inf=True), validation.decay(decay, m)
    gamma = validation.real("gamma", gamma)
    block = validation.array("actions", actions, (None, None))
    n, d = block.shape
    lead = 0 if m == math.inf else int(m)
    if n <= lead or d == 0:
        raise ValueError(
            f"actions must have shape (m+L, d) with m={lead}, L >= 1 and d >= 1, got {block.shape}"
        )
    if history is not None and m < math.inf:
        raise ValueError(f"history must be None for a finite m, whose block begins with it, got m={m}")
    belief = make_belief(theta, V_inv, beta, optimism, d, n)
    variant, weight = make_variant(decay, response), total_weight(m, decay)
    matrix, _ = check_memory_matrix(A0, d, weight, gamma, differentiable=True, variant=variant)
    with np.errstate(over="ignore"):
        longest = max(1.0, float(np.linalg.norm(block, axis=1).max()))
    memory, form = memory_after(matrix, m, gamma, variant, history, longest)
    columns = np.ascontiguousarray(block.T)
    value, grad = np.empty(1), np.empty((d, n))
    with np.errstate(all="ignore"):
        compute_value(memory, form, belief, columns, 1, make_work(memory, form, n, 1), value, grad)
    if not (np.isfinite(value[0]) and np.isfinite(grad).all()):
        raise ValueError(
            f"actions must keep the powers of the memory matrix finite, got an overflow at gamma={gamma:g}"
        )
    return float(value[0]), np.ascontiguousarray(grad.T)


def memory_after(
    A0: Array, m: float, gamma: float, variant: Variant, history: ArrayLike | None, longest: float = 1.0
) -> tuple[Memory, Array | None]:
    """`make_memory`; one without end holds what was played before, `history` (h, d)."""
    memory, form = make_memory(A0, m, gamma, variant, longest)
    if isinstance(form, Fading) and history is not None:
        rows = validation.in_ball("history", validation.array("history", history, (None, len(A0))))
        push_past(form.past, variant.decay, writable(rows), 0, len(rows))
    return memory, form


def make_belief(
    theta: ArrayLike, V_inv: ArrayLike | None, beta: float, optimism: str, d: int, n: int
) -> Belief:
    """The checked arguments that say what a learner knows, for blocks of n actions in d dimensions."""
    kind = OPTIMISM[validation.choice("optimism", optimism, tuple(OPTIMISM))]
    beta = validation.real("beta", beta, low=0.0, high=validation.LARGEST)
    size = d * n if kind == OM_BLOCK else d
    vector = writable(validation.bounded("theta", validation.array("theta", theta, (size,))))
    return Belief(theta=vector, V_inv=_inverse(V_inv, size, beta), beta=beta, kind=kind)


def _inverse(V_inv: ArrayLike | None, size: int, beta: float) -> Array:
    """V_inv, checked: symmetric and positive definite."""
    if V_inv is None:
        if beta > 0.0:
            raise ValueError(f"V_inv must be given when beta > 0, got None with beta={beta:g}")
        return np.eye(size)
    given = validation.bounded("V_inv", validation.array("V_inv", V_inv, (size, size)))
    matrix = validation.symmetric("V_inv", given)
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise ValueError("V_inv must be positive definite, got a matrix with an eigenvalue <= 0") from None
    return matrix
