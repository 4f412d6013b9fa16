"""Arms that are offered one step at a time: owns what each of them is worth when later sets are not known.

An arm is worth its optimistic reward and what would follow it: the best arms by the estimate, one step after
the other, of sets drawn from what was offered lately, for as long as the arm is remembered.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import kernel
from ._types import Integers, Matrix, Rows, Vector
from .rewards import History, ModelParams, decompose, forgets, product, push, respond, response, weighted

#: Arms that are followed into the future, those with the largest optimistic rewards.
FOLLOWED = 32


@kernel
def best_offer(
    model: ModelParams,
    recent: Rows,
    V_inv: Matrix,
    beta: float,
    arms: Rows,
    pool: Rows,
    draws: Integers,
) -> int:
    """The number of the arm (K, d) to play after the actions `recent` (m, d).

    `model` has the estimate in the place of theta; `draws` (futures, later, size) are numbers of arms of the
    pool (P, d): the sets of so many later steps, in so many futures, the same for all arms.
    """
    K, d = arms.shape
    futures, later, _ = draws.shape
    now = optimistic_rewards(model, recent, V_inv, beta, arms)
    if futures == 0 or later == 0:
        return int(np.argmax(now))
    m, history, g, first = recent.shape[0], History(recent.copy(), model.A0), np.empty(d), np.empty(d)
    best, largest = 0, -np.inf
    for _ in range(min(K, FOLLOWED)):
        arm = int(np.argmax(now))
        worth, now[arm] = now[arm], -np.inf
        for future in range(futures):
            for i in range(d):
                for s in range(m - 1):
                    history.recent[s, i] = recent[s + 1, i]
                history.recent[m - 1, i] = arms[arm, i]
            if future == 0:
                response(model, history, first)  # the same in all futures
            for t in range(later):
                if t > 0:
                    response(model, history, g)
                for i in range(d if t == 0 else 0):
                    g[i] = first[i]
                chosen, most = 0, -np.inf
                for k in draws[future, t]:
                    reward = product(g, pool[k])
                    if reward > most:
                        chosen, most = k, reward
                worth += most / futures
                push(model, history, pool[chosen])
        if worth > largest:
            best, largest = arm, worth
    return best


@kernel
def optimistic_rewards(model: ModelParams, recent: Rows, V_inv: Matrix, beta: float, arms: Rows) -> Vector:
    """<b, theta> + beta ||b|| in the norm of V^-1 (K,), b = X^gamma a the feature of each arm (K, d)."""
    K, d = arms.shape
    power, W, g = np.eye(d), V_inv.copy(), model.theta.copy()
    if not forgets(model):
        size = model.m if model.c > 0.0 else d
        A, Q, row = np.empty((size, size)), np.empty((size, size)), np.zeros(d)
        if model.decay < 1.0:
            recent = weighted(recent, model.decay)
        decompose(model.c, model.A0, recent, A, Q)
        for i in range(d):
            row[:] = 0.0
            row[i] = 1.0
            c, gamma, floor = model.c, model.gamma, model.floor
            respond(model.kind, model.value, c, gamma, floor, recent, A, Q, row, power[i])
        half = np.zeros((d, d))
        W[:], g[:] = 0.0, 0.0
        for i in range(d):
            for k in range(d):
                g[i] += power[i, k] * model.theta[k]
                for j in range(d):
                    half[i, j] += V_inv[i, k] * power[k, j]
        for i in range(d):
            for k in range(d):
                for j in range(d):
                    W[i, j] += power[i, k] * half[k, j]
    found = np.empty(K)
    for a in range(K):
        value, squared = 0.0, 0.0
        for i in range(d):
            s = 0.0
            for j in range(d):
                s += W[i, j] * arms[a, j]
            squared += arms[a, i] * s
            value += arms[a, i] * g[i]
        found[a] = value + beta * math.sqrt(max(squared, 0.0))
    return found
