"""Installations by wakes alone, in a box: services that stand for a cloud's, and a clock that jumps while nothing is alive."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.cloud.bucket_volumes import GcsBucket
from tests.cloud.cloud_run import FakeCloudRun
from tests.cloud.cloud_tasks import FakeCloudTasks
from tests.cloud.fake_gcs import BUCKET, LIST, READ, WRITE, FakeGcs
from tests.cloud.front_end import FrontEnd
from tests.cloud.runners import ProcessRunner
from tests.cloud.virtual_clock import VirtualClock
from tests.firestore import HOST, Emulator
from tests.firestore_proxy import Proxy

ROOT = Path(__file__).resolve().parents[2]
BEGIN = datetime(2026, 3, 28, 11, 50, tzinfo=UTC)
ACCOUNT = "ork-wake@acme.iam.gserviceaccount.com"
SAFETY_JOB = "safety"
# A cold start begins this much before the call that it is for, so that the clock is never set back.
LEAD = timedelta(seconds=8)
# While nothing is alive, nothing may be counted for this long.
LISTENS = "0A"  # the state of a listening socket in /proc/net/tcp
QUIET_SECONDS = 0.1
CLOUD = "default_where: cloudrun\ngcp: {project: acme, region: europe-west1}\n"
IMAGE = "project:1"
# The command of a task that runs until the test lets it end.
WAITING = "touch waiting; until [ -e go ]; do sleep 0.2; done; rm waiting go"


class Box:
    """A project, its queue, the service that answers for it, and the clock of them all. State and tasks are on this machine."""

    def __init__(self, folder: Path, environment: Mapping[str, str], clock: VirtualClock, stack: ExitStack) -> None:
        self.folder = folder
        self.clock = clock
        self.begin = clock.now()
        self.gaps: list[timedelta] = []  # how long nothing was alive, each time
        base = {**environment, **clock.environment}
        self.front = FrontEnd(folder, base, clock)
        stack.callback(self.front.close)
        self.queue = FakeCloudTasks(clock.now, self.front.send)
        stack.callback(self.queue.close)
        self.environment = {
            **base,
            "ORK_ALARM": "cloud_tasks",
            "ORK_ALARM_QUEUE": self.queue.queue,
            "ORK_ALARM_URL": self.front.url,
            "ORK_ALARM_SERVICE_ACCOUNT": ACCOUNT,
            "ORK_ALARM_ENDPOINT": self.queue.url,
            "ORK_ALARM_KEYS_URL": self.queue.keys_url,
            "ORK_WAKE_URL": f"{self.front.url}/api/v1/wake",
        }
        self.front.environment = self.environment

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return name

    def ork(self, *args: str) -> Any:
        """What the command prints as JSON."""
        done = subprocess.run(
            [sys.executable, "-m", "ork", *args, "--json"],
            cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def add_safety_tick(self, every: timedelta) -> None:
        url = f"{self.front.url}/api/v1/tick"
        self.queue.add_job(SAFETY_JOB, every, self.begin + every, url, ACCOUNT, self.front.url)

    # ── time goes by ─────────────────────────────────────────────────────────────────────────────

    def live_until(self, end: datetime) -> None:
        """Calls are made when they are due. The clock jumps while nothing is alive; then nothing is counted, either."""
        while self.clock.now() < end:
            self.queue.deliver_due()
            if self.is_busy:
                with self.queue.changed:
                    self.queue.changed.wait(0.05)
                continue
            self._jump(self.queue.next_at() or end, end)

    def _jump(self, at: datetime, end: datetime) -> None:
        now = self.clock.now()
        if at > now + LEAD:
            before = self.counts()
            time.sleep(QUIET_SECONDS)
            assert not (happened := self.counts() - before), (
                f"while nothing was alive: {happened}, {self.front.requests[-3:]}"
            )
            self.gaps.append(min(at, end) - now)
            if at <= end:
                self.clock.move_to(at - LEAD)
                self.front.warm_up()
        self.clock.move_to(max(self.clock.now(), min(at, end)))

    @property
    def is_busy(self) -> bool:
        """Whether a process of the project is alive, or a call is being made. Calls are looked for last, too: a process that ends
        may have called.

        Processes are looked for twice: one that is forked during the first look, by a parent that then ends, is not seen in it.
        A look takes time, so there is none during a call.
        """
        return self.is_called or self.processes() > 0 or self.processes() > 0 or self.is_called

    @property
    def is_called(self) -> bool:
        return not self.front.is_idle or self.queue.is_delivering or self._has_unread_call()

    def _has_unread_call(self) -> bool:
        """Whether a call has arrived that the front end has not read yet. Whoever sent it may have ended."""
        port = f":{urlsplit(self.front.url).port:04X}"
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return any(
            row[1].endswith(port) and row[3] != LISTENS and int(row[4].partition(":")[2], 16) > 0 for row in rows
        )

    def processes(self) -> int:
        """How many processes of the project there are on this machine."""
        here, found = str(self.folder).encode(), 0
        for process in Path("/proc").glob("[0-9]*"):
            try:
                found += here in (process / "cmdline").read_bytes() or (process / "cwd").readlink() == self.folder
            except OSError:
                continue
        return found

    def counts(self) -> Counter[str]:
        """What has been requested of whom so far."""
        return Counter(
            {
                "requests": len(self.front.requests),
                "cold starts": self.front.cold_starts,
                "calls of Cloud Tasks": sum(self.queue.calls.values()),
            }
        )

    # ── what came of it ──────────────────────────────────────────────────────────────────────────

    def idle_calls(self, busy: Mapping[datetime, float]) -> list[Any]:
        """Calls of the queue, without the safety tick's, that were not within so many seconds of one of these times."""
        calls = [each for each in self.queue.deliveries if each.task != SAFETY_JOB]
        return [
            call
            for call in calls
            if not any(timedelta(0) <= call.began - at <= timedelta(seconds=seconds) for at, seconds in busy.items())
        ]


class CloudBox(Box):
    """State in the Firestore emulator, documents in a fake Cloud Storage, tasks as processes on a fake Cloud Run.

    The emulator's clock is the real one, so leases take real time; nothing else is compared with it.
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        clock: VirtualClock,
        emulator: Emulator,
        stack: ExitStack,
    ) -> None:
        super().__init__(folder, environment, clock, stack)
        self.front.preloads = True
        self.gcs = FakeGcs()
        stack.callback(self.gcs.close)
        runner = ProcessRunner({IMAGE: folder}, clock.environment)
        self.cloud = FakeCloudRun(runner, now=clock.now)
        stack.callback(self.cloud.close)
        self.cloud.buckets[BUCKET] = GcsBucket(self.gcs.endpoint, BUCKET, self.gcs.keys)
        self.firestore = Proxy(emulator)
        stack.callback(self.firestore.close)
        self.environment |= {
            "ORK_STORE": emulator.new_database(),
            HOST: self.firestore.host,
            "ORK_OBJECTS": self.gcs.url(),
            "ORK_CLOUD_RUN_ENDPOINT": self.cloud.url,
        }
        self.write("ork.yaml", CLOUD)
        self.write("workers.yaml", f"default: {{image: '{IMAGE}'}}\n")

    @property
    def is_busy(self) -> bool:
        if self.is_task_waiting:
            return self.is_called
        return self.cloud.running() > 0 or super().is_busy

    @property
    def is_task_waiting(self) -> bool:
        """Whether the only task there is waits for the test (`WAITING`): its worker does nothing but write heartbeats."""
        return (self.folder / "waiting").exists() and not (self.folder / "go").exists()

    def let_task_end(self) -> None:
        (self.folder / "go").touch()

    def counts(self) -> Counter[str]:
        operations = () if self.is_task_waiting else self.gcs.operations  # heartbeats are no news
        kinds = Counter(each.kind for each in operations)
        stored = {f"Firestore {kind}": self.firestore.counts[kind] for kind in ("reads", "writes", "deletes")}
        others = {
            "bucket class A": kinds[WRITE] + kinds[LIST],
            "bucket class B": kinds[READ],
            "calls of Cloud Run": sum(self.cloud.calls.values()),
            "executions": len(self.cloud.executions),
        }
        return super().counts() + Counter(stored) + Counter(others)


# ── figures ──────────────────────────────────────────────────────────────────────────────────────


def seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def due_times(every: timedelta, first: datetime, end: datetime) -> list[str]:
    """The due times of a schedule that fires regularly, by hand."""
    return [
        (first + number * every).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
        for number in range(int((end - first) / every) + 1)
        if first + number * every < end
    ]


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
