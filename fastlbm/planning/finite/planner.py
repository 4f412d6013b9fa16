"""The planner of a set of arms: owns which method serves a problem, and what is kept from plan to plan.

Section 3.1, sec:approx, of the paper for arms (K, d); one set of arms a step (n, K, d) is its Remark 1,
rmk:context. A reward depends on m+1 consecutive arms. Whatever is a sum of rewards is therefore planned
exactly by dynamic programming over the last m arms, K^m states; what is not is planned by a sequence of such
sums.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._base import validation
from ..._base.types import Array, Seed
from ...kernels.arm_search import ArmEffort
from ...kernels.fading import PAPER, Variant
from ...kernels.optimism import O3M, OM, OM_BLOCK, Belief
from ...kernels.powers import OWN
from ...kernels.rolling_arms import ArmTables, continued
from ..plans import Cycle, Index, Plan
from .cycles import closed_walk, maximum_mean_cycle
from .objective import Objective, largest_value
from .programs import early_steps, follow, late_steps, plan_additive, plan_joint
from .search import find, plan_by_search, search_cycle
from .states import WINDOWS, Model, States, Table, Tables, ucb

#: Bytes that tables may take.
BUDGET = 2**30
#: Steps of dynamic programs spent on a cycle of given length, some seconds.
_CYCLE_OPERATIONS = 5e8
#: Of these, what is spent before a search for a good cycle.
_EASY_CYCLE = 1e8
#: States times arms that a policy is found for in every plan from a history, some milliseconds.
_CONTINUED_OPERATIONS = 1e5
#: The same for L steps after a history.
_AFTER_OPERATIONS = 1e5
#: The same for a horizon, about ten seconds.
_HORIZON_OPERATIONS = 1e10


class FinitePlanner:
    """Plans blocks, cycles and horizons on arms (K, d), or (n, K, d) for one set a step.

    Made once for a set: states, windows and, where all steps are alike and they fit, the features of every
    window and arm are kept, so that a plan costs what depends on its belief. Nothing else is kept: a plan is
    what a new planner would give. Arguments come checked; A0 = None is the identity. Tables may take `budget`
    bytes; beyond that plans are searched for, or refused. With gamma = 0 nothing depends on the last m arms:
    there is one state instead of K^m.

    >>> planner = FinitePlanner(np.eye(2), m=1, gamma=-1.0)
    >>> belief = Belief(theta=np.array([0.6, 0.8]), V_inv=np.eye(2), beta=0.0, kind=O3M)
    >>> planner.plan(belief, L=3).indices
    array([0, 1, 0, 1])
    >>> planner.cycle(belief.theta, period=2).average, planner.long_run(belief.theta).average
    (0.7, 0.7)
    >>> planner.optimum(belief.theta, T=3), planner.best_sequence(belief.theta, T=3).indices
    (2.2, array([1, 0, 1]))
    """

    def __init__(
        self,
        arms: Array,
        *,
        m: int,
        gamma: float,
        A0: Array | None = None,
        budget: int = BUDGET,
        variant: Variant = PAPER,
    ) -> None:
        remembers = gamma != 0.0 or variant.response == OWN
        self.model = Model(arms, m=m if remembers else 0, gamma=gamma, A0=A0, variant=variant)
        self.budget = budget
        # Arms of a block before those whose rewards depend on nothing.
        self._lead = m - self.model.m
        self._states: States | None = None
        self._tables: Tables | None = None

    def plan(
        self,
        belief: Belief,
        L: int,
        rng: Seed = 0,
        *,
        start: int = 0,
        require_exact: bool = False,
        warm: Index | None = None,
        effort: ArmEffort | None = None,
    ) -> Plan:
        """The block of m+L arms with the largest UCB, its first action at step `start`.

        The step matters where every step has its own set; behind the last step its set goes on. O3M, and
        every kind with beta = 0, is exact. OM and OM-Block are the maximum of <b, theta'> over blocks and
        over the ellipsoid of theta' around theta: each is solved in turn for the other, from many theta'.
        Of blocks with the same value, O3M on (K, d) takes the one whose first m arms earn most after the
        last m, as in a cycle; exactly so unless ties are too many.

        Tables beyond the budget raise a `ValueError` with `require_exact`. Else a search plans, with some
        `effort`, where tables do not fit or would take longer: it begins at `warm` (k, m+L) as well.
        """
        # With gamma = 0 the parts of OM-Block are m+L actions, all alike.
        lead, L = (0, self._lead + L) if belief.kind == OM_BLOCK else (self._lead, L)
        model = self.model.from_step(start + lead, self.model.m + L)
        theta, V_inv = _own(belief.theta), _own(belief.V_inv)
        kind = O3M if belief.beta == 0.0 and belief.kind == OM else belief.kind
        belief = Belief(theta=theta, V_inv=V_inv, beta=float(belief.beta), kind=kind)
        objective = Objective(model, belief, model.m + L)
        with np.errstate(all="ignore"):
            fits = model.fits(L, belief, self.budget, require_exact)
            if not (fits and (require_exact or model.is_quick(L, belief))):
                generator = validation.generator("seed", rng)
                plan = plan_by_search(model, objective, generator, warm=warm, effort=effort)
            elif kind == O3M:
                plan = plan_additive(self._tables_of(model), objective, L)
            else:
                plan = plan_joint(self._tables_of(model), objective, L, validation.generator("seed", rng))
            return plan if lead == 0 else self._preceded(plan, belief, start, lead)

    def plan_after(
        self,
        belief: Belief,
        before: Array,
        L: int,
        rng: Seed = 0,
        *,
        start: int = 0,
        require_exact: bool = False,
        warm: Index | None = None,
        effort: ArmEffort | None = None,
    ) -> Plan:
        """L arms after the actions `before` (m, d), the first of them at step `start`; see `plan`."""
        model, kind = self.model.from_step(start, L), belief.kind
        exact = require_exact or kind == OM_BLOCK or model.m < len(before)
        if not exact:
            # Each action of the past is a set of equal arms, of which only one state comes.
            exact = (model.K ** (model.m + 1)) * L <= _AFTER_OPERATIONS
        if exact:
            planner = FinitePlanner(
                sets_after(before, self.model.arms, start, L),
                m=len(before),
                gamma=model.gamma,
                A0=model.params.A0,
                budget=self.budget,
                variant=model.variant,
            )
            plan = planner.plan(belief, L, rng, require_exact=require_exact)
            assert plan.indices is not None
            return replace(plan, actions=plan.actions[len(before) :], indices=plan.indices[len(before) :])
        own = Belief(theta=_own(belief.theta), V_inv=_own(belief.V_inv), beta=float(belief.beta), kind=kind)
        with np.errstate(all="ignore"):
            generator = validation.generator("seed", rng)
            indices, value = find(model, own, L, generator, before=before, warm=warm, effort=effort)
        return Plan(
            actions=model.actions(np.arange(L), indices),
            value=value,
            evaluations=1,
            converged=True,
            exact=False,
            upper=max(value, largest_value(model, own, L)),
            indices=indices,
        )

    def _preceded(self, plan: Plan, belief: Belief, start: int, lead: int) -> Plan:
        """The plan behind `lead` arms that its value does not depend on, each with the largest UCB."""
        model = self.model.from_step(start, lead)
        parts = belief.theta, belief.V_inv, belief.beta
        assert plan.indices is not None
        first = np.array([ucb(np.ascontiguousarray(model.at(t).T), *parts).argmax() for t in range(lead)])
        actions = np.concatenate((model.actions(np.arange(lead), first), plan.actions))
        return replace(plan, actions=actions, indices=np.concatenate((first, plan.indices)))

    def cycle(self, theta: Array, period: int, rng: Seed = 0) -> Cycle:
        """The cycle of `period` arms with the largest average reward, windows wrapping around; arms (K, d).

        A closed walk of `period` states: exact unless too many first states come into question.
        """
        model, belief = self.model, _knowing(theta)
        objective = Objective(model, belief, period, cyclic=True)
        generator = validation.generator("seed", rng)
        with np.errstate(all="ignore"):
            if not model.fits(period, belief, self.budget, False):
                indices = search_cycle(objective, generator, np.empty((0, period), dtype=np.intp))
                exact = False
            else:
                tables = self._tables_of(model)
                states, values = tables.states, tables.rewards(model.m, belief.theta)
                most = min(_EASY_CYCLE, _CYCLE_OPERATIONS)
                indices, exact = closed_walk(states, values, period, None, most)
                if not exact:
                    # What a search finds prunes most of the work.
                    indices = search_cycle(objective, generator, indices[None])
                    indices, exact = closed_walk(states, values, period, indices, _CYCLE_OPERATIONS)
            average = objective.total(indices) / period
        return Cycle(actions=model.arms[indices], average=average, exact=exact, indices=indices)

    def continued(self, belief: Belief, recent: Index, steps: int) -> Index | None:
        """What the policy with the largest average UCB in the long run plays after the arms `recent` (m,).

        Arms (K, d); O3M. Each arm is the best for its UCB and the bias of the state that it leads to. None
        where the states are too many to be looked at in every plan.
        """
        tables = self.policy_tables()
        if tables is None:
            return None
        own = Belief(theta=_own(belief.theta), V_inv=_own(belief.V_inv), beta=float(belief.beta), kind=O3M)
        found: Index = continued(tables, own, np.asarray(recent, dtype=np.int64), steps)
        return found

    def policy_tables(self) -> ArmTables | None:
        """What the kernel behind `continued` needs; None where the states are too many."""
        model = self.model
        S, K = model.K**model.m, model.K
        if model.varying or S * K > _CONTINUED_OPERATIONS:
            return None
        if not model.fits(1, _knowing(np.zeros(model.d))._replace(beta=1.0), self.budget, False):
            return None
        tables = self._tables_of(model)
        return ArmTables(arms=model.arms, B=tables.features(model.m), rank=tables.states.rank)

    def long_run(self, theta: Array) -> Cycle:
        """The largest long-run average reward: a maximum mean cycle over the K^m states; arms (K, d).

        Tables beyond the budget raise a `ValueError`.
        """
        model, belief = self.model, _knowing(theta)
        with np.errstate(all="ignore"):
            model.fits(1, belief, self.budget, True)
            tables = self._tables_of(model)
            best = maximum_mean_cycle(tables.states, tables.rewards(model.m, belief.theta))
        return Cycle(
            actions=model.arms[best.indices], average=best.mean, exact=best.exact, indices=best.indices
        )

    def optimum(self, theta: Array, T: int) -> float:
        """OPT: the largest total reward of T steps from an empty history; arms (K, d) or (T, K, d).

        Work or tables beyond what is feasible raise a `ValueError`.
        """
        return self._horizon(theta, T, keep=False)[0]

    def best_sequence(self, theta: Array, T: int) -> Plan:
        """T actions that collect the `optimum` from an empty history; takes a table of T K^m entries more."""
        value, early, late = self._horizon(theta, T, keep=True)
        indices = follow(early, late, self.model.K)
        return Plan(
            actions=self.model.actions(np.arange(T), indices),
            value=value,
            evaluations=1,
            converged=True,
            exact=True,
            upper=value,
            indices=indices,
        )

    def _horizon(self, theta: Array, T: int, keep: bool) -> tuple[float, list[Index], Table]:
        """OPT, and where `keep` says so the best arms of the states of early and of late steps."""
        model = self.model
        early = min(model.m, T)
        late, S = T - early, model.K**early
        self._check_horizon(T, late, S, keep)
        belief = _knowing(theta)
        V, shift = np.zeros(S), 0.0
        policy = np.empty((late if keep else 0, S), dtype=np.int32)
        with np.errstate(all="ignore"):
            if late > 0:
                model.fits(1, belief, self.budget, True)
                shift = late_steps(self._tables_of(model), belief.theta, T, V, policy)
            V, first = early_steps(model, belief.theta, V, early)
        return float(V[0] + shift), first, policy

    def _check_horizon(self, T: int, late: int, S: int, keep: bool) -> None:
        """Raise a `ValueError` where `late` steps of S states take too long or too much."""
        model, K, m = self.model, self.model.K, self.model.m
        each, most = (S, WINDOWS) if model.varying else (S * K, _HORIZON_OPERATIONS)
        if late * each > most:
            raise ValueError(
                f"T must be at most {m + int(most) // each} for the optimum of K={K} arms with m={m}, got {T}"
            )
        need = S * (12 * m + 32 + (4 * late if keep else 0))
        if need > self.budget:
            raise model.refusal(S, need, self.budget)

    def _tables_of(self, model: Model) -> Tables:
        """The tables of the model, or of the part of it that a block sees; made when first needed."""
        if self._states is None:
            self._states = States(model.K, model.m, distinct=model.unordered)
        if model is not self.model:
            return Tables(model, self._states, self.budget)
        if self._tables is None:
            self._tables = Tables(model, self._states, self.budget)
        return self._tables


def sets_after(before: Array, arms: Array, step: int, n: int) -> Array:
    """Sets of arms (m+n, K, d): the actions `before` (m, d), each a set of equal arms, then n sets.

    These are `arms` (K, d), or (S, K, d) from a step on; behind the last it goes on.
    """
    sets = arms if arms.ndim == 3 else arms[None]
    later = sets[np.minimum(step + np.arange(n), len(sets) - 1)]
    return np.concatenate((np.repeat(before[:, None], sets.shape[1], axis=1), later))


def _own(array: Array) -> Array:
    """A copy in the one form that kernels are compiled for."""
    return np.array(array, dtype=np.float64, order="C")


def _knowing(theta: Array) -> Belief:
    """The belief of who knows theta: UCBs are rewards."""
    return Belief(theta=_own(theta), V_inv=np.eye(len(theta)), beta=0.0, kind=O3M)
