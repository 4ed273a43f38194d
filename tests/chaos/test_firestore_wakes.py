"""Four control planes on one Firestore, by wakes alone: answers are lost, wakes arrive twice and out of order, control planes are killed.

Each `ork serve --no-scheduler` works only when it is called. Workers call a relay, which passes every call on twice, late, to any of the four. P1–P6.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ork.model.task import AttemptStatus
from ork.state.records import RunFilter
from tests.chaos.judge import Court, eventually, kill
from tests.firestore import HOST, emulator_or_skip

pytestmark = pytest.mark.slow

CONTROL_PLANES = 4
LOST = 0.3
SLOTS = 2
LATE_SECONDS = 1.0
SAFETY_SECONDS = 2.0
WIDE = ("b1", "b2", "b3")  # tasks that share a pool


class Size(NamedTuple):
    runs: int
    kills: int
    seconds: float  # until everything must have ended


class ControlPlane:
    """`ork serve` without a scheduler of its own."""

    def __init__(self, court: Court) -> None:
        words = [sys.executable, "-m", "ork", "serve", "--no-scheduler", "--port", "0"]
        with open(court.folder / "services.log", "ab") as said:
            self.process = subprocess.Popen(
                words, cwd=court.folder, env=court.environment(), stdout=subprocess.PIPE, stderr=said
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        assert "url=" in line, line
        self.port = int(line.partition("url=")[2].split()[0].rpartition(":")[2])

    def ask(self, path: str, headers: dict[str, str], body: bytes = b"") -> tuple[int, bytes]:
        """The status, 0 without an answer, and the body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", f"/api/v1{path}", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()


class Fleet:
    """The control planes, the relay that workers call, and somebody who calls a tick now and then."""

    def __init__(self, court: Court, seed: int) -> None:
        from tests.cloud.cloud_tasks import QuietServer

        self.random = random.Random(seed)
        self.delivered: Counter[int] = Counter()  # wakes, by the status of the answer
        self._court = court
        self._over = threading.Event()
        self._relay = QuietServer(("127.0.0.1", 0), _relay(self))
        court.settings["ORK_WAKE_URL"] = f"http://127.0.0.1:{self._relay.server_address[1]}/api/v1/wake"
        threading.Thread(target=self._relay.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.members = [ControlPlane(court)]  # the first one makes the token
        self.members += [ControlPlane(court) for _ in range(CONTROL_PLANES - 1)]
        token = (court.folder / ".ork" / "token").read_text().strip()
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        threading.Thread(target=self._call_now_and_then, daemon=True).start()

    def any(self) -> ControlPlane:
        return self.random.choice(self.members)

    def relay(self, headers: dict[str, str], body: bytes) -> None:
        """Twice, each after a time of its own, so that a later call may overtake it."""
        for _ in range(2):
            threading.Timer(self.random.uniform(0.0, LATE_SECONDS), self._deliver, (headers, body)).start()

    def _deliver(self, headers: dict[str, str], body: bytes) -> None:
        self.delivered[self.any().ask("/wake", headers, body)[0]] += 1

    def _call_now_and_then(self) -> None:
        while not self._over.wait(SAFETY_SECONDS):
            self.any().ask("/tick", self.headers)

    def trigger(self, key: str) -> str:
        """Until it is acknowledged: then the run is durable, and there is only one for the key."""
        while True:
            status, body = self.any().ask("/workflows/flow/runs", {**self.headers, "Idempotency-Key": key}, b"{}")
            if status in (200, 201):
                return str(json.loads(body)["id"])
            assert status in (0, 503), body

    def replace_one(self) -> None:
        place = self.random.randrange(CONTROL_PLANES)
        kill(self.members[place].process)
        self.members[place] = ControlPlane(self._court)

    def close(self) -> None:
        self._over.set()
        self._relay.shutdown()
        self._relay.server_close()
        for member in self.members:
            kill(member.process)


def _relay(fleet: Fleet) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kept = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
            fleet.relay(kept, body)
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


@pytest.fixture
def proxy() -> Iterator[Any]:
    emulator = emulator_or_skip()
    from tests.firestore_proxy import Proxy

    made = Proxy(emulator)
    yield made
    made.close()


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(Size(3, 1, 240.0), id="small"),
        pytest.param(Size(20, 15, 1800.0), id="full", marks=pytest.mark.soak),
    ],
)
def test_every_acknowledged_run_ends_and_no_attempt_starts_twice(proxy: Any, tmp_path: Path, size: Size) -> None:
    url = proxy.emulator.new_database()
    court = Court(tmp_path, {"ORK_STORE": url, HOST: proxy.host})
    (tmp_path / "ork.yaml").write_text(json.dumps({"pools": {"narrow": SLOTS}}))
    wide = {name: court.task(0.1, depends_on=["a"], pool="narrow", retries=3) for name in WIDE}
    last = court.task(0.1, depends_on=list(WIDE), retries=3)
    court.write_workflow("flow", {"a": court.task(0.1, retries=3), **wide, "c": last})
    court.deploy("flow")
    chance = random.Random(17)
    with ExitStack() as stack:
        fleet = Fleet(court, 17)
        stack.callback(fleet.close)
        proxy.fault = lambda method, _number: (
            (chance.choice(("after", "after", "aborted")) if method == "Commit" else "before")
            if chance.random() < LOST
            else None
        )
        runs = {key: fleet.trigger(key) for key in (f"key {number}" for number in range(size.runs))}
        assert {key: fleet.trigger(key) for key in runs} == runs
        for _ in range(size.kills):
            before = len(court.ledger())
            eventually(lambda before=before: len(court.ledger()) > before + 2, size.seconds)
            fleet.replace_one()
        asyncio.run(_all_ended(proxy.emulator.host, url, runs, size.seconds))
        assert fleet.delivered[202] > 0, fleet.delivered
        proxy.fault = lambda _method, _number: None
    asyncio.run(_judge(proxy.emulator.host, url, court, runs))


async def _all_ended(host: str, url: str, runs: dict[str, str], seconds: float) -> None:
    from ork.state.firestore import FirestoreStore

    store: Any = FirestoreStore(url, emulator=host)
    async with asyncio.timeout(seconds):
        while True:
            found = {run.id: run.status for run in (await store.list_runs(RunFilter(limit=1000))).runs}
            if all(found[id].is_final for id in runs.values()):
                break
            await store.wait_for_change(1.0)
    await store.close()


async def _judge(host: str, url: str, court: Court, runs: dict[str, str]) -> None:
    from ork.state.firestore import FirestoreStore

    store: Any = FirestoreStore(url, emulator=host)
    found = (await store.list_runs(RunFilter(limit=1000))).runs
    assert {run.id for run in found} == set(runs.values())
    assert {run.status.value for run in found} == {"success"}
    for run in found:
        attempts = await store.list_attempts(run.id)
        done = Counter(attempt.key.task for attempt in attempts if attempt.status is AttemptStatus.SUCCESS)
        assert len(done) == len(WIDE) + 2
        assert set(done.values()) == {1}
    assert not [who for who, number in court.starts().items() if number > 1], court.ledger()
    assert court.overlaps() == []
    assert _most_at_once(court) <= SLOTS
    assert [use.used for use in await store.limit_use()] == [0] * len(await store.limit_use())
    await store.close()
    eventually(lambda: not court.processes())


def _most_at_once(court: Court) -> int:
    """Attempts in the pool that ran at the same time, by their own account."""
    most, running = 0, 0
    for what, who in court.ledger():
        if who.split()[1] in WIDE:
            running += {"start": 1, "end": -1}.get(what, 0)
            most = max(most, running)
    return most
