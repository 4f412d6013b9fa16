"""The example service: no answered update is lost when it is killed, and its requests are bounded."""

from __future__ import annotations

import http.client
import json
import math
import os
import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlbm as lbm
from reproduce import service
from tests import naive

ROOT = Path(__file__).resolve().parent.parent
SONGS = service.catalogue(20)


class Process:
    """The service in a process of its own."""

    def __init__(self, store: Path, port: int = 0, songs: int = 20) -> None:
        command = [sys.executable, "-m", "reproduce.service", str(store), "--port", str(port)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            [*command, "--songs", str(songs)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        address = self._process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        self.port = int(address.rpartition(":")[2])

    def kill(self) -> None:
        """As the system does when memory runs out: without a word."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Client:
    """Sends a request until it is answered, over as many lives of the service as that takes."""

    def __init__(self, port: int) -> None:
        self.port, self._connection = port, http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def once(self, method: str, path: str, content: Any = None) -> tuple[int, Any]:
        body = None if content is None else json.dumps(content)
        self._connection.request(method, path, body=body)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def ask(self, path: str, **content: Any) -> Any:
        end = time.monotonic() + 300.0
        while time.monotonic() < end:
            try:
                status, answer = self.once("POST", path, content)
            except (OSError, http.client.HTTPException):
                self.close()
                time.sleep(0.05)
                self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
                continue
            assert status == 200, answer
            return answer
        raise TimeoutError(f"no answer to {path} {content}")

    def close(self) -> None:
        self._connection.close()


class Listener:
    """A user: what was played and what was answered."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.played: list[str] = []
        self.rewards: list[float | None] = []

    def listen(self, client: Client, rng: random.Random) -> None:
        """One song more; its reward now, later or never."""
        step = len(self.played)
        answer = client.ask("/act", user=self.name, step=step)
        assert answer["step"] == step
        self.played.append(answer["song"])
        self.rewards.append(None)
        if rng.random() < 0.8:
            self.reward(step, client, rng)
        late = [t for t, y in enumerate(self.rewards) if y is None]
        if late and rng.random() < 0.3:
            self.reward(rng.choice(late), client, rng)

    def reward(self, step: int, client: Client, rng: random.Random) -> None:
        y = round(rng.uniform(-1.0, 1.0), 3)
        client.ask("/update", user=self.name, step=step, reward=y)
        self.rewards[step] = y

    def check(self, store: service.Store) -> None:
        """The stored state is that of all answered requests, each of which counts once."""
        found = store.get(self.name)
        assert found is not None
        live = service.AGENT.start(lbm.Ball(SONGS.d)).from_bytes(found[0])
        assert live.t == len(self.played)
        assert live.missing == [t for t, y in enumerate(self.rewards) if y is None]
        live.replay(np.zeros((1, SONGS.d)), [math.nan])  # ends the block: all rewards are learned
        m, gamma = service.AGENT.m, service.AGENT.gamma
        actions = np.array([np.zeros(SONGS.d)] * m + [SONGS.arm(name) for name in self.played])
        kept = [t for t, y in enumerate(self.rewards) if y is not None]
        B = naive.features(actions, m, gamma, None)[kept]
        y = np.array([self.rewards[t] for t in kept])
        theta = np.linalg.solve(np.eye(SONGS.d) + B.T @ B, B.T @ y)
        np.testing.assert_allclose(live.theta, theta, rtol=0.0, atol=1e-10)


def kill_again_and_again(folder: Path, users: int, kills: int, threads: int) -> int:
    """Users listen while the service is killed and started again; returns the answered requests."""
    store = folder / "users.sqlite"
    running = Process(store)
    listeners = [Listener(f"user {k}") for k in range(users)]
    enough, problems = threading.Event(), []

    def work(mine: list[Listener], seed: int) -> None:
        rng, client, rounds = random.Random(seed), Client(running.port), 0
        try:
            while rounds == 0 or not enough.is_set():
                for listener in mine:
                    listener.listen(client, rng)
                    if rounds > 0 and enough.is_set():
                        break
                rounds += 1
        except BaseException as error:
            problems.append(error)
        finally:
            client.close()

    workers = [
        threading.Thread(target=work, args=(listeners[k::threads], k), daemon=True) for k in range(threads)
    ]
    for worker in workers:
        worker.start()
    rng = random.Random(0)
    for _ in range(kills):
        time.sleep(rng.uniform(0.05, 1.0))
        running.kill()
        running = Process(store, running.port)
    enough.set()
    for worker in workers:
        worker.join()
    running.kill()
    assert not problems
    kept = service.Store(str(store))
    for listener in listeners:
        listener.check(kept)
    kept.close()
    return sum(len(one.played) + sum(y is not None for y in one.rewards) for one in listeners)


def test_no_answered_update_is_lost_when_it_is_killed(tmp_path: Path) -> None:
    assert kill_again_and_again(tmp_path, users=12, kills=3, threads=4) > 24


@pytest.mark.slow
def test_ten_thousand_users_and_twenty_kills(tmp_path: Path) -> None:
    assert kill_again_and_again(tmp_path, users=10_000, kills=20, threads=8) > 18_000


def test_the_same_request_is_served_once(tmp_path: Path) -> None:
    running = Process(tmp_path / "users.sqlite")
    client = Client(running.port)
    try:
        first = client.ask("/act", user="ann", step=0)
        assert client.ask("/act", user="ann", step=0) == first
        assert client.ask("/update", user="ann", step=0, reward=0.5) == {"step": 0, "known": False}
        assert client.ask("/update", user="ann", step=0, reward=0.7) == {"step": 0, "known": True}
        assert client.once("GET", "/user?name=ann") == (200, {"steps": 1, "missing": []})
        told = client.ask("/act", user="ann", step=1, songs=["song 3", "song 3", "song 9"])
        assert told["song"] in ("song 3", "song 9")
    finally:
        client.close()
        running.kill()
    # Other songs are sold; the same users are there.
    running = Process(tmp_path / "users.sqlite", songs=2)
    client = Client(running.port)
    try:
        assert client.ask("/act", user="ann", step=1) == told
        assert client.ask("/act", user="ann", step=2)["song"] in ("song 0", "song 1")
        assert client.once("GET", "/user?name=ann") == (200, {"steps": 3, "missing": [1, 2]})
    finally:
        client.close()
        running.kill()


BAD: list[tuple[str, str, Any, int, str]] = [
    ("POST", "/act", [], 400, "JSON object"),
    ("POST", "/act", {"user": "", "step": 0}, 400, "user must be"),
    ("POST", "/act", {"user": "x" * 65, "step": 0}, 400, "user must be"),
    ("POST", "/act", {"user": "ann", "step": -1}, 400, "step must be"),
    ("POST", "/act", {"user": "ann", "step": True}, 400, "step must be"),
    ("POST", "/act", {"user": "ann", "step": 5}, 409, "step must be 0"),
    ("POST", "/act", {"user": "ann", "step": 0, "songs": []}, 400, "songs must be"),
    ("POST", "/act", {"user": "ann", "step": 0, "songs": "song 1"}, 400, "songs must be a list"),
    (
        "POST",
        "/act",
        {"user": "ann", "step": 0, "songs": ["song 1", "noise"]},
        400,
        'got "noise", none of the 3',
    ),
    ("POST", "/act", {"user": "ann", "step": 0, "songs": [["song 1"]]}, 400, 'got ["song 1"]'),
    ("POST", "/update", {"user": "ann", "step": 0, "reward": 1.0}, 409, "step must be"),
    ("POST", "/other", {"user": "ann", "step": 0}, 404, "knows /act"),
    ("GET", "/act", None, 404, "knows /user"),
    ("POST", "/act", {"user": "ann", "step": 0, "more": "x" * 2**16}, 413, "at most 65536 bytes"),
]


@pytest.fixture
def server(tmp_path: Path) -> Any:
    """The service in a thread of this process."""
    store = service.Store(str(tmp_path / "users.sqlite"))
    found = service.Server(0, service.Service(store, lbm.OFUL(100), service.catalogue(3)))
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()
    store.close()


def test_bad_requests_are_refused_and_change_nothing(server: Any) -> None:
    for method, path, content, status, words in BAD:
        client = Client(server.server_address[1])
        found, answer = client.once(method, path, content)
        client.close()
        assert found == status, (path, content, answer)
        assert words in answer["error"]
    client = Client(server.server_address[1])
    assert client.ask("/act", user="ann", step=0)["step"] == 0
    for reward in ("much", None, 1e300, [1.0]):
        status, answer = client.once("POST", "/update", {"user": "ann", "step": 0, "reward": reward})
        assert status == 400
        assert "reward" in answer["error"]
        client.close()
    assert client.ask("/update", user="ann", step=0, reward=1) == {"step": 0, "known": False}
    client.close()


def test_it_listens_on_this_machine_alone(server: Any) -> None:
    assert server.server_address[0] == "127.0.0.1"
    with socket.create_connection(server.server_address) as line:
        line.sendall(b"GET /user?name=ann HTTP/1.1\r\nHost: songs.example\r\n\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 403")
    with socket.create_connection(server.server_address) as line:
        line.sendall(b"POST /act HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nnot JSON!")
        assert line.recv(100).startswith(b"HTTP/1.1 400")


def test_an_update_is_not_answered_if_it_cannot_be_kept(server: Any, monkeypatch: Any) -> None:
    client = Client(server.server_address[1])
    client.ask("/act", user="ann", step=0)

    def full(*_: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(server.service.store, "put", full)
        status, answer = client.once("POST", "/update", {"user": "ann", "step": 0, "reward": 1.0})
        assert (status, "disk is full" in answer["error"]) == (500, True)
        client.close()
    assert client.ask("/update", user="ann", step=0, reward=1.0) == {"step": 0, "known": False}
    client.close()


def test_the_command_refuses_what_it_cannot_use(tmp_path: Path, capsys: Any) -> None:
    for arguments, words in (
        ([str(tmp_path)], "STORE and --port must be usable"),
        ([str(tmp_path / "x"), "--songs", "0"], "--songs must be from 1 to 10000, got 0"),
        ([str(tmp_path / "x"), "--port", "70000"], "--port must be from 0 to 65535, got 70000"),
    ):
        with pytest.raises(SystemExit) as end:
            service.main(arguments)
        assert end.value.code == 2
        assert words in capsys.readouterr().err
