"""O3M, OM and OM-Block: own their parameters, checked; Section 3.2 of the paper, sec:estimation.

They play blocks of m+L actions, learn from the last L rewards of each, and continue from the true history;
the last block is cut.

With `switch` = C > 0 a plan is repeated until det V has grown by more than 1 + C, but not for more than half
of the passes before it. On the ball O3M and OM plan, play and learn it as a cycle of period n = m+L: every
reward counts, with the feature really played.
Proven for O3M, for exact plans and while theta lies in the confidence sets (with probability 1 - delta): the
regret against T steps of the best cycle of that period is at most

    4 n R N + 2 beta sqrt(1 + C) sqrt(2 T d ln(1 + x) max(1, rho^2/lam))
    N <= 4 + d ln(1 + x)/ln(1 + C) + ln(T/n)/ln(4/3)

with x = T rho^2/(d lam), rho and beta as in `theory`, R the largest reward, and N plans. For every plan but
the last multiplies det V by more than 1 + C, where ln det V/det(lam I) <= d ln(1 + x), or the number of
passes by 4/3 or more. The first pass of a plan, whose windows hold other actions, and its last one lose at
most 2 n R each. In any other pass all features b are those that
were planned, so that optimism bounds its loss by the sum of 2 beta ||b|| in the norm of V at the plan; since
det V has not grown by more than 1 + C until then, that is at most sqrt(1 + C) times the norm of V at the step
(Abbasi-Yadkori, Pal and Szepesvari 2011, Lemma 12), and their elliptical potential bounds the sum.
Not proven: anything for plans that a search found, which may miss the best cycle, nor for OM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from .. import theory
from .._base import validation
from .._base.types import Array
from ..kernels import optimism
from ..model.actions import ActionSet
from ..model.lbm import LBM
from ..model.memory_matrix import check_memory_matrix
from .base import LearningAgent
from .learners import LearnerPolicy, Task, make_learner
from .policy import Rng


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class BlockAgent(LearningAgent):
    """A learner that plans blocks of m+L actions."""

    m: int
    gamma: float
    horizon: int
    L: int | None
    lam: float
    delta: float | None
    subgaussian: float | None
    switch: float
    radius: str
    A0: Array | None

    _kind: ClassVar[int]
    _name: ClassVar[str]

    def __init__(
        self,
        m: int,
        gamma: float,
        horizon: int,
        L: int | None = None,
        lam: float = 1.0,
        delta: float | None = None,
        subgaussian: float | None = 1.0,
        switch: float = 0.0,
        radius: str = "trace",
        A0: ArrayLike | None = None,
    ) -> None:
        memory = int(validation.memory("m", m, allow_inf=False))
        gamma = validation.real("gamma", gamma)
        self._set_learning(horizon=horizon, lam=lam, delta=delta, subgaussian=subgaussian, radius=radius)
        if self.subgaussian is None and self._kind == optimism.OM_BLOCK:
            raise ValueError("subgaussian must be a number for OMBlock, which learns from sums, got None")
        self._set(switch=validation.real("switch", switch, low=0.0))
        if L is not None:
            L = validation.integer("L", L, low=1)
            n = L + (memory if gamma != 0.0 else 0)
            if n > self.horizon:
                raise ValueError(f"horizon must hold a block of m+L={n} actions, got {self.horizon}")
        if A0 is not None:
            d = len(validation.array("A0", A0, (None, None)))
            A0, _ = check_memory_matrix(A0, d, memory, gamma)
        self._set(m=memory, gamma=gamma, L=L, A0=A0)

    def block_length(self, d: int) -> int:
        """L, or what the theory says for actions of dimension d.

        >>> O3M(m=2, gamma=-3.0, horizon=10**6).block_length(d=3)
        24
        """
        m = self.m if self.gamma != 0.0 else 0
        return self.L if self.L is not None else theory.block_length(self.horizon, d, m, self._name)

    def _policy(self, actions: ActionSet, env: LBM | None, rng: Rng, step: int) -> LearnerPolicy:
        if self.A0 is not None and len(self.A0) != actions.d:
            raise ValueError(f"A0 must have the dimension of the actions, {actions.d}, got {len(self.A0)}")
        # gamma = 0: the reward ignores the past, whatever m.
        m = self.m if self.gamma != 0.0 else 0
        L = self.block_length(actions.d)
        task = Task(kind=self._kind, m=m, gamma=self.gamma, L=L, A0=self.A0, switch=self.switch)
        return make_learner(self, task, actions, rng=rng, step=step)


class O3M(BlockAgent):
    """O3M (Remark 3 of the paper, rmk:over_opt): the block with the largest sum of optimistic rewards.

    Knows m, gamma and A0 (the identity by default). `horizon` sets the block length L (Theorem 1, unless
    given) and delta (1/horizon, unless given); `lam` regularises; `subgaussian` is the factor of the noise,
    None to estimate it from the rewards (see `Rolling`). `radius` is "trace", the paper's form,
    "determinant", never larger, or "estimate", never larger than that. With `switch` = C > 0 a block is
    repeated until det V has grown by the factor 1 + C, or for half of the time before it; with 0 every block
    is planned anew. What is proven of that is at the top of agents/block_learners.py.

    Use it where m and gamma are known and the paper's guarantee is needed; `Rolling` earns more.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    >>> run = lbm.run(env, lbm.O3M(m=1, gamma=-2.0, horizon=200, L=5), T=200, seed=0)
    >>> bool(run.reward[-1] > 100.0)
    True
    """

    __slots__ = ()
    _kind = optimism.O3M
    _name = "O3M"


class OM(BlockAgent):
    """OM (Algorithm 1 of the paper, alg:OFUL-memory-algo): optimism for the sum of a block's features.

    Arguments as for `O3M`.

    Use it to compare with the algorithm that the paper begins with; `Rolling` earns more.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    >>> bool(lbm.run(env, lbm.OM(m=1, gamma=-2.0, horizon=200, L=5), T=200).reward[-1] > 50.0)
    True
    """

    __slots__ = ()
    _kind = optimism.OM
    _name = "OM"


class OMBlock(BlockAgent):
    """OM-Block (equation (9) of the paper, eq:oful_block): a linear bandit over blocks, of dimension d(m+L).

    Arguments as for `O3M`.

    Use it to compare with the plain reduction to a linear bandit over blocks.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0)
    >>> lbm.run(env, lbm.OMBlock(m=1, gamma=-2.0, horizon=60, L=5), T=60).t[-1]
    np.int64(60)
    """

    __slots__ = ()
    _kind = optimism.OM_BLOCK
    _name = "OM-Block"
