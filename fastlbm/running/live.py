"""Live policies: own an agent at work in a real system, one step at a time, and the file of its state.

A step is `act`, then `update` with its reward. A reward may come late or never: `act` goes on all the same.
"""

from __future__ import annotations

import bisect
import hashlib
import io
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import validation
from .._base.files import write_atomically
from .._base.validation import Array, Seed
from ..agents.policies import Policy
from ..kernels.world import PLAYED, POSITION, STEP
from ..model.actions import ActionSet
from ..model.lbm import LBM
from .seeds import streams

if TYPE_CHECKING:
    from ..agents.base import Agent

#: What a state file says of itself; the number changes with what is in it.
FORMAT = "fastlbm live state"
VERSION = 1
#: Steps after which a reward that has not come is given up.
PATIENCE = 10_000


class Live:
    """An agent at work; made by `agent.start`.

    `act()` gives the action (d,) of the next step, `update(y)` its reward. With rewards in time the actions
    are those of `run`. A reward that comes late is reported with `update(y, step=t)`: it counts from the next
    plan on. One that never comes is simply not learned from (OM-Block, which learns from the sum of a block's
    rewards, does not learn from that block); the action counts as played.

    >>> import fastlbm as lbm
    >>> env = lbm.LBM([0.6, 0.8], m=1, gamma=-2.0, sigma=0.0)
    >>> live = lbm.O3M(m=1, gamma=-2.0, horizon=100, L=4).start(lbm.Ball(2), seed=0)
    >>> past = []
    >>> for _ in range(20):
    ...     past.append(live.act())
    ...     live.update(env.expected_rewards(past)[-1])
    >>> live.t, live.theta.shape
    (20, (2,))
    """

    def __init__(self, agent: Agent, actions: ActionSet | LBM, seed: Seed = 0) -> None:
        self.agent = agent
        self._env = actions if isinstance(actions, LBM) else None
        self.actions: ActionSet = actions.actions if isinstance(actions, LBM) else actions
        if not isinstance(self.actions, ActionSet):
            raise TypeError(f"actions must be a Ball, a Finite, a Contextual or an LBM, got {actions!r}")
        self._policy = self._fresh(streams(seed)[1])
        self._waiting = _Waiting()

    def _fresh(self, rng: np.random.Generator) -> Policy:
        return self.agent._policy(self.actions, self._env, rng, 0)

    @property
    def t(self) -> int:
        """Actions given so far."""
        return int(self._policy.desk.at[STEP])

    @property
    def plans(self) -> int:
        """Plans made so far."""
        return self._policy.plans

    @property
    def theta(self) -> Array | None:
        """The estimate, as of the last plan; None if the agent does not learn."""
        e = self._policy.estimator
        return None if e is None else e.theta.copy()

    @property
    def V_inv(self) -> Array | None:
        """The inverse of V, as of the last plan; None if the agent does not learn."""
        e = self._policy.estimator
        return None if e is None else e.V_inv.copy()

    @property
    def beta(self) -> float | None:
        """The radius: the confidence set is (theta - x)^T V (theta - x) <= beta^2; None without learning."""
        return self._policy.beta()

    def details(self) -> dict[str, Any]:
        """What the agent has to tell of its choices since it was started or loaded, as arrays by name."""
        return self._policy.details()

    def act(self) -> Array:
        """The action (d,) of the next step, which is `t` - 1 afterwards."""
        self.actions.require(self.t + 1)
        policy = self._policy
        epoch, plans = policy.epoch, policy.plans
        policy.prepare()
        if policy.epoch != epoch:
            self._waiting = _Waiting()  # a new epoch of Doubling has forgotten them
        desk = policy.desk
        at = desk.at
        if policy.plans != plans or self.t == 0:
            self._waiting.begin(self.t, policy)
        action: Array = desk.block[at[POSITION]].copy()
        self._waiting.expect(self.t)
        at[STEP] += 1
        at[POSITION] += 1
        if at[POSITION] == len(desk.block):
            at[POSITION] = 0
            at[PLAYED] += 1
        return action

    def update(self, y: float, step: int | None = None) -> None:
        """The reward of a step: of the last one, or of an earlier `step` (0, 1, ...) that had none yet."""
        if self.t == 0:
            raise ValueError("update must come after act: there is no step to reward yet")
        y = validation.real("y", y.item() if isinstance(y, np.ndarray) and y.ndim == 0 else y)
        step = self.t - 1 if step is None else validation.integer("step", step, low=0, high=self.t - 1)
        if not self._waiting.expects(step):
            raise ValueError(
                f"step must be one whose reward is missing, among the last {PATIENCE} and since the last "
                f"restart of the agent, got {step}"
            )
        self._waiting.reward(step, y, self._policy)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the state to a file (a NumPy .npz without pickled objects), in one piece or not at all."""
        target = Path(path)
        arrays = {**self._policy.state(), **self._waiting.state()}
        header = {
            "format": FORMAT,
            "version": VERSION,
            "agent": _print(self.agent),
            "actions": _print(self._env or self.actions),
            "generator": self._policy.rng.bit_generator.state,
            "policy": self._policy.place(),
        }
        header["digest"] = _digest(arrays, header)
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        content = io.BytesIO()
        np.savez(content, header=text, **arrays)  # type: ignore[arg-type]
        write_atomically(target, content.getvalue())
        return target

    def load(self, path: str | os.PathLike[str]) -> Live:
        """Go on from a saved state of the same agent on the same set; unchanged if the file is not that."""
        header, arrays = _read(Path(path))
        for name, value in (("agent", self.agent), ("actions", self._env or self.actions)):
            if header.get(name) != _print(value):
                raise ValueError(f"path must be a state of the same {name}, {value!r}; got one of another")
        try:
            rng = np.random.default_rng(0)
            rng.bit_generator.state = header["generator"]
            policy = self._fresh(rng)
            policy.enter_place(header["policy"])
            for name, array in policy.state().items():
                _fill(name, array, arrays.pop(name))
            waiting = _Waiting.restored(arrays)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(f"path must be an undamaged state file, got {str(path)!r}: {error!r}") from None
        self._policy, self._waiting = policy, waiting
        return self


class _Waiting:
    """Rewards that have not come yet, and the features that they belong to."""

    def __init__(self) -> None:
        self._steps: dict[int, None] = {}  # in the order of time
        # By the first step of a plan: the length of its block, m, its author, and its features.
        self._plans: dict[int, tuple[int, int, int, Array]] = {}
        # OM-Block: rewards by the first step of a block, until all have come.
        self._blocks: dict[int, Array] = {}

    def begin(self, start: int, policy: Policy) -> None:
        """A new plan begins at a step."""
        if policy.F is None:
            return
        # Plans before that of the oldest step are not needed any more.
        oldest = self._plan_of(next(iter(self._steps), start))
        while self._plans and (first := next(iter(self._plans))) < oldest:
            del self._plans[first]
        self._plans[start] = (len(policy.desk.block), policy.m, policy.author, policy.F.copy())

    def _plan_of(self, step: int) -> int:
        starts = list(self._plans)
        at = bisect.bisect_right(starts, step)
        return starts[at - 1] if at else -1

    def expect(self, step: int) -> None:
        self._steps[step] = None
        while (oldest := next(iter(self._steps))) <= step - PATIENCE:
            del self._steps[oldest]
        while self._blocks and (first := next(iter(self._blocks))) <= step - 2 * PATIENCE:
            del self._blocks[first]

    def expects(self, step: int) -> bool:
        return step in self._steps

    def reward(self, step: int, y: float, policy: Policy) -> None:
        """The reward of an expected step: onto the desk, or into the estimator if its plan is over."""
        del self._steps[step]
        first = self._plan_of(step)
        if first < 0:
            return  # an agent that does not learn
        n, m, author, F = self._plans[first]
        position = (step - first) % n
        current = first == next(reversed(self._plans))
        if not policy.joint:
            if current:
                policy.desk.total[position] += y
                policy.desk.seen[position] += 1.0
            elif position >= m:
                policy.absorb(F[position - m], y, author)
            return
        rewards = self._blocks.setdefault(step - position, np.full(n, math.nan))
        rewards[position] = y
        if not np.isnan(rewards[m:]).any():
            del self._blocks[step - position]
            if current:
                policy.desk.total[m:] += rewards[m:]
                policy.desk.seen[m:] += 1.0
            else:
                policy.absorb(F[0], float(rewards[m:].sum()), author)

    def state(self) -> dict[str, Array]:
        """Everything, as arrays by name."""
        arrays: dict[str, Any] = {"waiting.steps": np.array(sorted(self._steps), dtype=np.int64)}
        for first, (n, m, author, F) in self._plans.items():
            arrays[f"waiting.plan.{first}.{n}.{m}.{author}"] = F
        for first, rewards in self._blocks.items():
            arrays[f"waiting.block.{first}"] = rewards
        return arrays

    @classmethod
    def restored(cls, arrays: dict[str, Array]) -> _Waiting:
        """What `state` gave."""
        waiting = cls()
        for name, array in arrays.items():
            if name == "waiting.steps":
                waiting._steps = dict.fromkeys(array.tolist())
            elif name.startswith("waiting.plan."):
                first, n, m, author = map(int, name.split(".")[2:])
                waiting._plans[first] = (n, m, author, array)
            elif name.startswith("waiting.block."):
                waiting._blocks[int(name.split(".")[2])] = array
            else:
                raise ValueError(f"a place for {name}")
        return waiting


def _print(value: Any) -> str:
    """A fingerprint of an agent or a set, the same in every process."""
    return hashlib.sha256(repr(value._key()).encode()).hexdigest()


def _digest(arrays: dict[str, Array], header: dict[str, Any]) -> str:
    rest = {name: value for name, value in header.items() if name != "digest"}
    total = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a state file, checked as far as that goes without the agent."""
    data = path.read_bytes()
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays.pop("header").tobytes())
    except Exception as error:  # zipfile raises what it likes on a damaged file
        raise ValueError(f"path must be a state file of a live policy, got {str(path)!r}: {error}") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"path must be a state file of a live policy, got {str(path)!r}, which is not one")
    if header.get("version") != VERSION:
        raise ValueError(
            f"path must be a state file of version {VERSION}, got version {header.get('version')!r}"
        )
    if header.get("digest") != _digest(arrays, header):
        raise ValueError(f"path must be an undamaged state file, got {str(path)!r}, whose digest differs")
    return header, arrays


def _fill(name: str, array: Array, saved: Array) -> None:
    if saved.shape != array.shape or saved.dtype != array.dtype:
        raise ValueError(f"{name} of shape {array.shape}")
    array[...] = saved
