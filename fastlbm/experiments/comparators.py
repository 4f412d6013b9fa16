"""Comparators: own what regret is measured against, each computed once; may touch planning."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import theory
from .._base.pool import Pool, Progress
from .._base.types import Array, Integers
from ..agents import OracleGreedy
from ..model.lbm import LBM
from ..planning.bounds import OptSearch, default_block
from ..planning.cycles import reward_of_cycle
from ..planning.plans import OptBounds
from ..running.episode import run

#: What regret is measured against, and how a figure says it.
COMPARATORS = {
    "opt": "OPT (upper bound where not exact)",
    "lower": "the lower bound on OPT",
    "best cycle": "the best cycle",
    "oracle greedy": "oracle greedy",
}
#: Horizons at which bounds on OPT are computed for a curve.
POINTS = 12


#: By which share the upper bound on OPT may exceed the lower one, for regret against it to say something.
LARGEST_GAP = 0.2
#: Names that a figure tells one by one.
_MOST_NAMES = 3


class Gap(NamedTuple):
    """The bounds on OPT at a horizon."""

    T: int
    lower: float
    upper: float

    @property
    def share(self) -> float:
        """By which share of the lower bound the upper one exceeds it.

        >>> Gap(10, lower=2.0, upper=3.0).share
        0.5
        """
        apart = self.upper - self.lower
        if apart <= 0.0:
            return 0.0
        return apart / abs(self.lower) if self.lower else math.inf

    @property
    def words(self) -> str:
        """The comparator "opt" here, in words."""
        if self.share == 0.0:
            return "OPT (exact)"
        return f"OPT (its upper bound, {_percent(self.share)} above the lower one at T={self.T})"

    @property
    def why_not(self) -> str:
        """Why regret is not measured against OPT here."""
        return f"the bounds on OPT, {self.lower:.4g} and {self.upper:.4g} at T={self.T}, are too far apart"


def _percent(share: float) -> str:
    if share < 1e-4:
        return "less than 0.01%"
    return f"{100.0 * share:.2g}%" if share < 0.995 else f"{share:.0%}"


def default_kinds(
    gaps: Mapping[str, Gap], together: bool = False, without_cycle: Collection[str] = ()
) -> dict[str, str]:
    """The comparator of each environment if none is chosen: OPT, or the best cycle where that says little.

    All have the same if they are drawn `together`, on one line; some have no cycle.

    >>> default_kinds({"near": Gap(9, 5.0, 5.1), "far": Gap(9, 5.0, 50.0)})
    {'near': 'opt', 'far': 'best cycle'}
    """
    far = {env for env, gap in gaps.items() if gap.share > LARGEST_GAP}
    if far and together:
        far = set(gaps)
    return {env: "best cycle" if env in far and env not in without_cycle else "opt" for env in gaps}


def opponent_words(kinds: Mapping[str, str], gaps: Mapping[str, Gap]) -> str:
    """What regret is measured against in environments, each with OPT or the best cycle as its comparator.

    >>> opponent_words({"e": "opt"}, {"e": Gap(9, 5.0, 5.1)})
    'regret against OPT (its upper bound, 2% above the lower one at T=9)'
    """
    near, far = ([env for env in kinds if kinds[env] == kind] for kind in ("opt", "best cycle"))
    clauses = []
    for names in filter(None, (near, far)):
        widest = max((gaps[env] for env in names), key=lambda gap: gap.share)
        words = widest.words if names is near else f"the best cycle: {widest.why_not}"
        if len(names) > 1 and widest.share > 0.0:
            most = f"up to {_percent(widest.share)}"
            words = f"OPT (its upper bound where it is not exact, {most} above the lower one)"
            if names is far:
                words = f"the best cycle: the bounds on OPT are too far apart, by {most}"
        where = f"in {_names(far)} " if near and names is far else ""
        clauses.append(f"{where}against {words}")
    return f"regret {'; '.join(clauses)}" if clauses else ""


def _names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


class Question(NamedTuple):
    """A comparator of a model at some steps."""

    env: LBM
    kind: str
    steps: Integers


class Refusal(NamedTuple):
    """A question without an answer, and why there is none."""

    question: Question
    error: ValueError


class Comparators:
    """The answers that were computed so far, each once."""

    def __init__(self) -> None:
        self._models: dict[tuple[Any, ...], _Model] = {}

    def compute(self, questions: Iterable[Question], progress: bool | str = False) -> list[Refusal]:
        """Answer all, by one thread a core, those about a model by one thread; those without an answer."""
        asked: dict[int, tuple[_Model, list[Question]]] = {}
        for question in questions:
            model = self._model(question.env)
            if not model.knows(question):
                asked.setdefault(id(model), (model, []))[1].append(question)
        tasks = [(None, {"model": model, "questions": mine}) for model, mine in asked.values()]
        refused: list[Refusal] = []
        with Progress(len(tasks), "comparators", shown=progress) as bar, Pool() as pool:
            for _, mine in pool.completed(_answer_all, tasks):
                refused += mine
                bar.add(1)
        return refused

    def answer(self, question: Question) -> Array:
        """The comparator at the steps."""
        return self._model(question.env).answer(question)

    def _model(self, env: LBM) -> _Model:
        silent = LBM(**{**env._arguments(), "sigma": 0.0, "noise": "gaussian"})
        return self._models.setdefault(silent._key(), _Model(silent))


class _Model:
    """A model without noise, which changes no comparator, and what is known of it."""

    def __init__(self, env: LBM) -> None:
        self._env, self._search = env, OptSearch(env)
        self._bounds: dict[int, OptBounds] = {}
        self._answers: dict[tuple[str, bytes], Array] = {}

    def knows(self, question: Question) -> bool:
        return (question.kind, question.steps.tobytes()) in self._answers

    def answer(self, question: Question) -> Array:
        if not self.knows(question):
            found = self._compute(question.kind, question.steps)
            self._answers[question.kind, question.steps.tobytes()] = found
        return self._answers[question.kind, question.steps.tobytes()]

    def _compute(self, kind: str, steps: Integers) -> Array:
        if kind == "oracle greedy":
            return run(self._env, OracleGreedy(), int(steps[-1]), record=steps).reward
        if kind == "best cycle":
            actions = self._search.cycle.actions
            return np.array([reward_of_cycle(self._env, actions, int(T)) for T in steps], dtype=np.float64)
        side = "upper" if kind == "opt" else "lower"
        chosen = self._points(steps)
        values = [float(getattr(self._bounds_at(int(T)), side)) for T in chosen]
        return np.interp(steps, [0, *chosen], [0.0, *values])

    def _points(self, steps: Integers) -> Integers:
        """At most POINTS of the steps, the first and the last among them.

        Those between are where whole blocks end, if there are such steps: others need a search for the rest.
        """
        chosen = steps[np.unique(np.linspace(0, len(steps) - 1, POINTS).round().astype(int))]
        whole = steps[steps % default_block(self._env.m) == 0]
        if len(whole):
            between = chosen[1:-1, None]
            chosen[1:-1] = whole[np.abs(whole - between).argmin(axis=1)]
        return np.unique(chosen)

    def _bounds_at(self, T: int) -> OptBounds:
        if T not in self._bounds:
            self._bounds[T] = self._search.bounds(T)
        return self._bounds[T]


def _answer_all(model: _Model, questions: list[Question]) -> list[Refusal]:
    refused = []
    for question in questions:
        try:  # a cycle needs sets that stay, a bound a memory that ends
            model.answer(question)
        except ValueError as error:
            refused.append(Refusal(question, error))
    return refused


def bound_of(env: LBM, T: Array | Integers) -> Array:
    """Theorem 1's bound at the horizons where it holds, NaN elsewhere."""
    m = 0 if env.is_stationary else env.m
    if m == np.inf or env.decay < 1.0 or env.response != "power":  # the theorem is about the paper's
        return np.full(len(T), np.nan)
    least = int(m) ** 2 * env.d**2 + 1
    return np.array(
        [
            theory.regret_bound(int(t), env.d, int(m), env.gamma, A0=env.A0) if t >= least else np.nan
            for t in T
        ]
    )
