"""`python -m reproduce.service STORE`: a small music service, as an example of live policies for many users.

Every user has a live policy, which is at rest in a SQLite database and awake for the time of a request. A
request is answered after its transaction has been written to the disk: whoever has an answer can count on it,
also if the process is killed a moment later. Every request can be sent again, when no answer came.

    POST /act     {"user": "ann", "step": 0, "songs": ["song 3", "song 7"]}
                  -> {"step": 0, "song": "song 7"}
    POST /update  {"user": "ann", "step": 0, "reward": 0.4}
                  -> {"step": 0, "known": false}
    GET  /user?name=ann
                  -> {"steps": 1, "missing": []}

`step` is the number of songs that the user has had: the next one is chosen if it is new, and told again if it
is that of the last one. `songs` are those that can be played now, by default all. An update of a step whose
reward is known already, or was given up, changes nothing. Other songs may be sold after a restart.

It listens on this machine alone and knows no passwords: it is an example, not a product.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import queue
import sqlite3
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

import fastlbm as lbm

HOST = "127.0.0.1"
#: Limits of a request: bytes, letters of a user's name, seconds to send it; and requests at a time.
MOST_BYTES, LONGEST_NAME, PATIENCE, AT_ONCE = 2**16, 64, 10.0, 32

AGENT = lbm.Rolling(m=2, gamma=-1.0)


def catalogue(count: int, d: int = 4) -> lbm.Finite:
    """Songs, the first ones always the same."""
    arms = np.array([np.random.default_rng(k).standard_normal(d) for k in range(count)])
    return lbm.Finite(
        arms / np.linalg.norm(arms, axis=1, keepdims=True), names=[f"song {k}" for k in range(count)]
    )


class Refused(Exception):
    """A request that cannot be served: the status of the answer, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Store:
    """The states of all users, and what each was told last, in one SQLite database.

    One thread writes: all that waits, in one transaction. `put` returns when that is on the disk.
    """

    def __init__(self, path: str) -> None:
        self._reading, self._reader = threading.Lock(), _opened(path)
        self._waiting: queue.SimpleQueue[tuple[tuple[str, bytes, str], Future[None]] | None]
        self._waiting = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, args=(_opened(path),), daemon=True)
        self._writer.start()

    def get(self, user: str) -> tuple[bytes, str] | None:
        """State and last answer of a user."""
        with self._reading:
            found = self._reader.execute("SELECT state, answer FROM users WHERE name = ?", (user,))
            row: tuple[bytes, str] | None = found.fetchone()
            return row

    def put(self, user: str, state: bytes, answer: str) -> None:
        """Keep them, for good."""
        done: Future[None] = Future()
        self._waiting.put(((user, state, answer), done))
        done.result()

    def close(self) -> None:
        """Write what waits, and close the database."""
        self._waiting.put(None)
        self._writer.join()
        self._reader.close()

    def _write(self, database: sqlite3.Connection) -> None:
        going_on = True
        while going_on:
            given = [self._waiting.get()]
            while not self._waiting.empty():
                given.append(self._waiting.get())
            going_on = None not in given
            together = [one for one in given if one is not None]
            error = None
            try:
                with database:  # one transaction
                    database.executemany(
                        "INSERT INTO users VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE "
                        "SET state = excluded.state, answer = excluded.answer",
                        [row for row, _ in together],
                    )
            except sqlite3.Error as problem:
                error = problem
            for _, done in together:
                if error is None:
                    done.set_result(None)
                else:
                    done.set_exception(error)
        database.close()


def _opened(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=60.0, check_same_thread=False)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    with database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS users (name TEXT PRIMARY KEY, state BLOB NOT NULL, "
            "answer TEXT NOT NULL) WITHOUT ROWID"
        )
    return database


class Service:
    """What the requests do, whoever sends them."""

    def __init__(self, store: Store, agent: lbm.agents.Agent, songs: lbm.Finite) -> None:
        self.store, self.agent, self.songs = store, agent, songs
        # A user's requests come one after the other; users that share a lock wait for each other.
        self._locks = [threading.Lock() for _ in range(1024)]

    def _live(self, user: str) -> tuple[lbm.Live, str]:
        """The policy of a user, awake, and the last answer; a new user has a seed of its own."""
        live = self.agent.start(lbm.Ball(self.songs.d), seed=np.random.SeedSequence(list(user.encode())))
        found = self.store.get(user)
        return (live, "") if found is None else (live.from_bytes(found[0]), found[1])

    def _lock(self, user: str) -> threading.Lock:
        return self._locks[hash(user) % len(self._locks)]

    def act(self, request: dict[str, Any]) -> str:
        """The next song, or the last one again."""
        user, step = _user(request.get("user")), _step(request)
        songs = self._songs(request.get("songs"))
        with self._lock(user):
            live, answer = self._live(user)
            if step == live.t - 1:
                return answer
            if step != live.t:
                raise Refused(409, f"step must be {live.t}, or that of the last song, got {step}")
            live.act(songs)
            answer = json.dumps({"step": step, "song": live.name})
            self.store.put(user, live.to_bytes(), answer)
            return answer

    def update(self, request: dict[str, Any]) -> str:
        """The reward of a song."""
        user, step, y = _user(request.get("user")), _step(request), request.get("reward")
        with self._lock(user):
            live, answer = self._live(user)
            if step >= live.t:
                raise Refused(409, f"step must be that of a song before step {live.t}, got {step}")
            known = step not in live.missing
            if not known:
                try:
                    live.update(y, step=step)  # type: ignore[arg-type]
                except (TypeError, ValueError) as error:
                    raise Refused(400, f"reward: {error}") from None
                self.store.put(user, live.to_bytes(), answer)
            return json.dumps({"step": step, "known": known})

    def show(self, user: str) -> str:
        """How far a user is."""
        with self._lock(user):
            live, _ = self._live(user)
        return json.dumps({"steps": live.t, "missing": live.missing})

    def _songs(self, names: Any) -> lbm.Finite:
        if names is None:
            return self.songs
        known = self.songs.names or ()
        if not isinstance(names, list) or not names:
            raise Refused(400, "songs must be a list of names of songs, at least one")
        for name in names:
            if name not in known:
                got = json.dumps(name)[: LONGEST_NAME + 2]
                raise Refused(400, f"songs must be names of songs, got {got}, none of the {len(known)} songs")
        chosen = list(dict.fromkeys(names))
        return lbm.Finite(self.songs.arms[[known.index(name) for name in chosen]], names=chosen)


def _user(name: Any) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise Refused(400, f"user must be a text of 1 to {LONGEST_NAME} letters")
    return name


def _step(request: dict[str, Any]) -> int:
    step = request.get("step")
    if not isinstance(step, int) or isinstance(step, bool) or step < 0:
        raise Refused(400, "step must be an integer from 0 on")
    return step


class Handler(BaseHTTPRequestHandler):
    """HTTP around a `Service`, which the server has."""

    protocol_version = "HTTP/1.1"
    timeout = PATIENCE
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        self._serve(None)

    def do_POST(self) -> None:
        self._serve(self.headers.get("Content-Length", ""))

    def _serve(self, length: str | None) -> None:
        try:
            status, answer = 200, self._answer(length)
        except Refused as refused:
            status, answer = refused.status, json.dumps({"error": str(refused)})
            self.close_connection = True  # what is left of the request is not read
        except Exception as error:
            status, answer = 500, json.dumps({"error": repr(error)})
            self.close_connection = True
        content = answer.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _answer(self, length: str | None) -> str:
        service, url = self.server.service, urlsplit(self.path)
        # A page of the web that a browser on this machine shows must not reach the service by another name.
        if self.headers.get("Host", "").partition(":")[0] not in (HOST, "localhost"):
            raise Refused(403, f"Host must be {HOST} or localhost")
        if length is None:
            if url.path != "/user":
                raise Refused(404, "GET knows /user alone")
            return service.show(_user(parse_qs(url.query).get("name", [""])[0]))
        if not (length.isascii() and length.isdigit() and int(length) <= MOST_BYTES):
            raise Refused(413, f"Content-Length must be given, and at most {MOST_BYTES} bytes")
        try:
            request = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise Refused(400, "the request must be JSON") from None
        if not isinstance(request, dict):
            raise Refused(400, "the request must be a JSON object")
        if url.path not in ("/act", "/update"):
            raise Refused(404, "POST knows /act and /update")
        return service.act(request) if url.path == "/act" else service.update(request)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    """A thread a connection, at most AT_ONCE of them; others wait."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, service: Service) -> None:
        super().__init__((HOST, port), Handler)
        self.service, self._room = service, threading.BoundedSemaphore(AT_ONCE)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._room.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that has gone is no error here
            super().handle_error(request, client_address)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C; the first line that is printed is the address."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.service",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("store", metavar="STORE", help="the SQLite database, made if there is none")
    parser.add_argument("--port", type=int, default=0, help="default: any that is free")
    parser.add_argument("--songs", type=int, default=20, help="how many songs there are, default %(default)s")
    options = parser.parse_args(argv)
    if not 1 <= options.songs <= 10**4:
        parser.error(f"--songs must be from 1 to 10000, got {options.songs}")
    if not 0 <= options.port < 2**16:
        parser.error(f"--port must be from 0 to 65535, got {options.port}")
    songs = catalogue(options.songs)
    AGENT.start(lbm.Ball(songs.d)).act(songs)  # whatever has to be compiled is, before anybody waits for it
    try:
        server = Server(options.port, Service(Store(options.store), AGENT, songs))
    except (OSError, sqlite3.Error) as error:
        parser.error(f"STORE and --port must be usable: {error}")
    print(f"http://{HOST}:{server.server_address[1]}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
    server.server_close()
    server.service.store.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
