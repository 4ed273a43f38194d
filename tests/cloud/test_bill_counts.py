"""What a run by wakes alone costs in operations: the counts that docs/gcp.md and perf/bill.py multiply with prices.

`ork serve --on-request` on a Firestore emulator behind a proxy that counts as the service bills, with documents in a fake Cloud Storage,
tasks on a fake Cloud Run, and calls from a fake Cloud Tasks.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from perf.bill import ANOTHER_TICK, FAN_OUT_100, IDLE_TICK, THREE_TASKS, Operations

from tests.cloud.bucket_volumes import GcsBucket
from tests.cloud.cloud_run import FakeCloudRun
from tests.cloud.cloud_tasks import FakeCloudTasks
from tests.cloud.fake_gcs import BUCKET, LIST, READ, WRITE, FakeGcs
from tests.cloud.runners import ProcessRunner
from tests.firestore import emulator_or_skip
from tests.firestore_proxy import Proxy
from tests.postgres import free_port

pytestmark = pytest.mark.slow

IMAGE = "project:1"
CHAIN = "name: chain\ntasks:\n  a: {command: 'true'}\n  b: {command: 'true', depends_on: [a]}\n  c: {command: 'true', depends_on: [b]}\n"
FAN = f"name: fan\ntasks:\n  each: {{command: 'true', foreach: {list(range(100))}}}\n"


class Installation:
    def __init__(self, folder: Path, environment: dict[str, str], stack: ExitStack) -> None:
        emulator = emulator_or_skip()
        self.folder = folder
        self.firestore = Proxy(emulator)
        self.gcs = FakeGcs()
        self.url = f"http://127.0.0.1:{free_port()}"
        self.queue = FakeCloudTasks(lambda: datetime.now(UTC), self._send)
        self.cloud = FakeCloudRun(ProcessRunner({IMAGE: folder}))
        self.cloud.buckets[BUCKET] = GcsBucket(self.gcs.endpoint, BUCKET, self.gcs.keys)
        for each in (self.firestore, self.gcs, self.queue, self.cloud):
            stack.callback(each.close)
        (folder / "ork.yaml").write_text("default_where: cloudrun\ngcp: {project: acme, region: europe-west1}\n")
        (folder / "workers.yaml").write_text(f"default: {{image: '{IMAGE}'}}\n")
        self.environment = {
            **environment,
            "ORK_STORE": emulator.new_database(),
            "FIRESTORE_EMULATOR_HOST": self.firestore.host,
            "ORK_OBJECTS": self.gcs.url("documents"),
            "ORK_CLOUD_RUN_ENDPOINT": self.cloud.url,
            "ORK_ALARM": "cloud_tasks",
            "ORK_ALARM_QUEUE": self.queue.queue,
            "ORK_ALARM_URL": self.url,
            "ORK_ALARM_SERVICE_ACCOUNT": "ork-wake@acme.iam.gserviceaccount.com",
            "ORK_ALARM_ENDPOINT": self.queue.url,
            "ORK_ALARM_KEYS_URL": self.queue.keys_url,
            "ORK_WAKE_URL": f"{self.url}/api/v1/wake",
        }
        self.service = subprocess.Popen(
            [sys.executable, "-m", "ork", "serve", "--on-request", "--port", str(urlsplit(self.url).port), "--log-format", "json"],
            cwd=folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        stack.callback(self._end)
        assert self.service.stdout is not None
        assert "ready" in self.service.stdout.readline()

    def _end(self) -> None:
        self.service.terminate()
        self.service.wait(60)

    def _send(self, method: str, url: str, headers: dict[str, str], body: bytes, seconds: float) -> int:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=seconds)
        try:
            connection.request(method, parts.path, body, headers)
            return connection.getresponse().status
        finally:
            connection.close()

    def ork(self, *words: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "ork", *words, "--json"],
            cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def deliver_until_quiet(self) -> None:
        """Calls are made when they are due, until no task runs and nothing is due within half a minute."""
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            self.queue.deliver_due()
            following = self.queue.next_at()
            is_soon = following is not None and (following - datetime.now(UTC)).total_seconds() < 30
            if not (is_soon or self.queue.is_delivering or self.cloud.running()):
                return
            with self.queue.changed:
                self.queue.changed.wait(0.1)
        raise AssertionError("it does not become quiet")

    def counted(self) -> Counter[str]:
        kinds = Counter(each.kind for each in self.gcs.operations)
        ticks = len(self.queue.deliveries)
        return Counter(
            {
                "firestore.read": self.firestore.counts["reads"],
                "firestore.write": self.firestore.counts["writes"],
                "firestore.delete": self.firestore.counts["deletes"],
                "gcs.class_a": kinds[WRITE] + kinds[LIST],
                "gcs.class_b": kinds[READ],
                "cloudtasks.operation": sum(self.queue.calls.values()) + ticks,
                "ticks": ticks,
            }
        )


@pytest.fixture
def installation(tmp_path: Path, plain_environment: dict[str, str]) -> Iterator[Installation]:
    with ExitStack() as stack:
        yield Installation(tmp_path, plain_environment, stack)


def check(name: str, counted: Counter[str], declared: Operations) -> None:
    """Not more than declared, and not so much less that the bill would be wrong. On a slow machine tasks end one after the other,
    and more ticks are called: each may cost so much more."""
    print(name, dict(counted))
    more = max(0, counted["ticks"] - declared.counts["ticks"])
    for kind, number in declared.counts.items():
        most = number + more * ANOTHER_TICK.counts[kind]
        assert number * 0.4 - 2 <= counted[kind] <= most, (name, kind, counted[kind], number, more)


def count_run(installation: Installation, workflow: str) -> Counter[str]:
    """What the second run costs, from its start by a person: the first makes the Job and uploads the worker."""
    for _ in range(2):
        before = installation.counted()
        installation.ork("trigger", workflow)
        installation.deliver_until_quiet()
        made = installation.counted()
        made.subtract(before)
    return made


def test_what_runs_and_idle_ticks_cost(installation: Installation) -> None:
    for name, text in {"chain": CHAIN, "fan": FAN}.items():
        (installation.folder / f"{name}.yaml").write_text(text)
        installation.ork("deploy", f"{name}.yaml")
    check("three tasks", count_run(installation, "chain"), THREE_TASKS)
    before = installation.counted()
    installation.ork("tick")
    idle = installation.counted()
    idle.subtract(before)
    idle["ticks"] += 1
    idle["cloudtasks.operation"] += 1  # Cloud Scheduler calls, and not the queue: counted as if it did
    check("idle tick", idle, IDLE_TICK)
    check("fan-out of 100", count_run(installation, "fan"), FAN_OUT_100)
    runs = installation.ork("runs")["runs"]
    assert [run["status"] for run in runs] == ["success"] * 4
