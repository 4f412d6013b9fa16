"""Going on from a saved state: owns what it must fit, and what stays when the set has changed since."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base import validation
from .._base.types import Array
from ..agents.policy import Policy
from ..kernels.block_state import next_step
from ..model.actions import ActionSet, Finite, Offered
from ..model.lbm import LBM
from .pending import PendingRewards
from .state_file import VERSION, fill, fingerprint

if TYPE_CHECKING:
    from ..agents.base import Agent


#: What a policy can do without, and which version was the first to keep it: what Rolling planned and did not
#: play, and the probes of Auto.
_SINCE = {"rest": 3, "probing": 4, "kept.probed": 4}


class Restored(NamedTuple):
    """What a live policy goes on with."""

    policy: Policy
    pending: PendingRewards
    recent: Array  # (at least 1, d) the last actions, NaN where nobody knows them
    offered: bool  # whether the policy is one for arms that are offered step by step
    plans: int  # by policies before


def set_form(actions: ActionSet | LBM) -> list[Any]:
    """What a set must have in common with that of a state: all but the arms of a `Finite`."""
    return [type(actions).__name__, actions.d]


def restored(
    agent: Agent,
    actions: ActionSet | LBM,
    header: dict[str, Any],
    arrays: dict[str, Array],
    *,
    what: str,
    origin: str,
) -> Restored:
    """From header and arrays; `what` is the argument that they came from, `origin` what it was."""
    changed = False
    for name, value in (("agent", agent), ("actions", actions)):
        if header.get(name) != fingerprint(value):
            changed = name == "actions" and isinstance(value, Finite)
            if not (changed and header.get("set") == set_form(actions)):
                raise ValueError(f"{what} must be a state of the same {name}, {value!r}; got one of another")
    try:
        return _restored(agent, actions, header, arrays, changed)
    except Exception as error:  # a forged state can make of it what it likes
        if header["version"] < VERSION:
            raise ValueError(
                f"{what} must be a state that this version can go on from, got {origin} of version "
                f"{header['version']}, in which {agent!r} kept other things: {error}"
            ) from None
        raise ValueError(f"{what} must be an undamaged state, got {origin}: {error!r}") from None


def _restored(
    agent: Agent, actions: ActionSet | LBM, header: dict[str, Any], arrays: dict[str, Array], changed: bool
) -> Restored:
    env = actions if isinstance(actions, LBM) else None
    told = actions.actions if isinstance(actions, LBM) else actions
    rng = np.random.default_rng(0)
    rng.bit_generator.state = header["generator"]
    plans = validation.integer("plans", header.get("plans", 0), low=0)
    offered = bool(header.get("offered", False))
    policy = agent._policy(Offered(told.d) if offered else told, env, rng, 0)
    policy.set_cursor(header["policy"])
    for name, array in policy.state().items():
        if name in arrays or header["version"] >= _SINCE.get(name, 0):
            fill(name, array, arrays.pop(name))
    changed = changed and not offered
    policy.check(changed)
    recent = _history(arrays.pop("live.recent", None), policy)
    pending = PendingRewards.restored(arrays, policy)
    if changed:
        policy.forget_arms()
        policy.set_history(np.nan_to_num(recent))
        pending.close()
    return Restored(policy, pending, recent, offered=offered, plans=plans)


def _history(saved: Array | None, policy: Policy) -> Array:
    """The last actions as they were saved; versions before 3 have those that the policy itself knows."""
    step, d = int(next_step(policy.block)), policy.block.actions.shape[1]
    recent = np.full((max(1, policy.span), d), math.nan)
    if saved is not None:
        if saved.shape != recent.shape or saved.dtype != np.float64 or np.isinf(saved).any():
            raise ValueError(f"the last actions of shape {saved.shape}")
        validation.in_ball("the last actions", np.nan_to_num(saved))
        return saved
    known = policy.recent_actions()[-min(len(recent), step) :] if step > 0 else recent[:0]
    if len(known) >= step:
        recent[:] = 0.0  # nothing was played before
    recent[len(recent) - len(known) :] = known
    return recent
