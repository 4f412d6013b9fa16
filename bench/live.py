"""`python -m bench live`: arms that are offered step by step, logs, and what the state of a user costs."""

from __future__ import annotations

import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

import fastlbm as lbm

T, SEEDS = 400, 5
#: Dimension, arms of a step, memory, exponent.
INSTANCES = [(3, 6, 2, -2.0), (3, 6, 2, -1.0), (3, 6, 2, 1.0), (8, 20, 3, -2.0), (8, 20, 3, 1.0)]


def unit(rng: np.random.Generator, *shape: int) -> np.ndarray:
    rows = rng.standard_normal(shape)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def offered(agent: lbm.agents.Agent, env: lbm.LBM, arms: np.ndarray, seed: int) -> float:
    """Total expected reward of an agent that is told the arms of each step at that step."""
    live = agent.start(lbm.Ball(env.d), seed=seed)
    noise = env.draw_noise(T, seed=seed)
    actions = np.zeros((T, env.d))
    total = 0.0
    for t in range(T):
        actions[t] = live.act(arms[t])
        expected = float(env.expected_rewards(actions[t : t + 1], history=actions[:t])[0])
        live.update(expected + noise[t])
        total += expected
    return total


def choices() -> None:
    """What not knowing the sets to come costs, where each is drawn anew."""
    print(f"Arms offered step by step, T={T}, {SEEDS} seeds; share of Rolling that knows all sets:")
    for d, K, m, gamma in INSTANCES:
        rng = np.random.default_rng([d, K, m])
        arms, theta = unit(rng, T, K, d), unit(rng, d)
        env = lbm.LBM(theta, m=m, gamma=gamma, sigma=0.1)
        known = lbm.LBM(theta, m=m, gamma=gamma, sigma=0.1, actions=lbm.Scheduled(arms))
        agents: dict[str, lbm.agents.Agent] = {
            "Rolling": lbm.Rolling(m, gamma),
            "O3M": lbm.O3M(m, gamma, T, L=8, subgaussian=None),
            "OFUL": lbm.OFUL(T, subgaussian=None),
            "LinTS": lbm.LinTS(T),
            "Random": lbm.Random(),
        }
        best = lbm.run(known, lbm.Rolling(m, gamma), T=T, seed=0, record=1).reward[-1]
        shares = {
            name: np.mean([offered(agent, env, arms, s) for s in range(SEEDS)]) / best
            for name, agent in agents.items()
        }
        told = ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
        print(f"  d={d}, K={K}, m={m}, gamma={gamma:g}: {told}", flush=True)


def seconds(work: Callable[[], object], times: int) -> float:
    begin = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begin) / times


def waiting() -> None:
    """How long `act(arms)` takes."""
    for K, d, m in ((200, 16, 4), (2000, 32, 4), (10_000, 32, 4)):
        rng = np.random.default_rng(0)
        live = lbm.Rolling(m, -1.0).start(lbm.Ball(d), seed=0)
        taken = []
        for _ in range(150):
            arms = unit(rng, K, d)
            begin = time.perf_counter()
            action = live.act(arms)
            taken.append(time.perf_counter() - begin)
            live.update(float(action[0]))
        middle, most = 1e3 * np.quantile(taken[20:], [0.5, 0.99])
        print(f"act(arms) of Rolling, K={K}, d={d}, m={m}: median {middle:.2f} ms, 99% within {most:.2f} ms")


def logs() -> None:
    """A log at once beside the same steps played."""
    rng = np.random.default_rng(0)
    n = 20_000
    actions, y = unit(rng, n, 8), rng.uniform(-1.0, 1.0, n)
    for name, agent in (
        ("OFUL", lbm.OFUL(n)),
        ("Rolling, m=3", lbm.Rolling(3, -1.0)),
        ("O3M, m=3, L=8", lbm.O3M(3, -1.0, n, L=8)),
        ("Auto, m 0 to 3", lbm.Auto(memories=range(4), gammas=[-2.0, -1.0, 0.0, 1.0])),
    ):
        agent.fit(actions[:100], y[:100])
        each = seconds(lambda agent=agent: agent.fit(actions, y), 1) / n  # type: ignore[misc]
        print(f"replay of {n} steps, d=8, {name}: {1e6 * each:.1f} us a step")


def states() -> None:
    """What a user costs: memory, bytes, a file, and the time to store and to go on."""
    rng = np.random.default_rng(0)
    for d, K, m in ((4, 50, 2), (16, 200, 4)):
        songs = lbm.Finite(unit(rng, K, d))
        for name, agent, actions in (
            ("OFUL", lbm.OFUL(10**4), songs),
            ("LinTS", lbm.LinTS(10**4), songs),
            ("Rolling, ball", lbm.Rolling(m, -1.0), lbm.Ball(d)),
            ("Rolling, offered", lbm.Rolling(m, -1.0), None),
            ("O3M, ball", lbm.O3M(m, -1.0, 10**4, L=8), lbm.Ball(d)),
            ("Auto, ball", lbm.Auto(), lbm.Ball(d)),
        ):
            _state(f"d={d}, {name}", agent, actions, songs)


def _state(
    name: str, agent: lbm.agents.Agent, actions: lbm.model.ActionSet | None, songs: lbm.Finite
) -> None:
    on = lbm.Ball(songs.d) if actions is None else actions

    def started() -> lbm.Live:
        live = agent.start(on, seed=0)
        for _ in range(12):
            action = live.act() if actions is not None else live.act(songs)
            live.update(float(action[0]))
        return live

    started()
    tracemalloc.start()
    kept = [started() for _ in range(20)]
    memory = tracemalloc.get_traced_memory()[0] / len(kept)
    tracemalloc.stop()
    live = kept[0]
    data = live.to_bytes()
    with tempfile.TemporaryDirectory() as folder:
        size = live.save(Path(folder) / "state").stat().st_size
    pack = seconds(live.to_bytes, 50)
    unpack = seconds(lambda: agent.start(on).from_bytes(data), 50)
    print(
        f"{name}: {memory / 1024:.1f} KiB in memory, {len(data) / 1024:.1f} in bytes, {size / 1024:.1f} in a "
        f"file; to_bytes {1e3 * pack:.2f} ms, start and from_bytes {1e3 * unpack:.2f} ms",
        flush=True,
    )


def main() -> None:
    choices()
    waiting()
    logs()
    states()
