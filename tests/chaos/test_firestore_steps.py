"""A scheduler on Firestore and a bucket, killed at every step of a scheduled run; then another one finishes it.

A step is a request to Firestore or an object that is written. They are enumerated: the first experiment ends the scheduler at its first step,
the next one at its second, until the run ends before the scheduler does. P2, P3, P4, P5, P6.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import pytest

from ork.chaos.ledger import RECORDED
from ork.compile.content import make_version
from ork.model.task import AttemptStatus, TaskStatus
from ork.model.workflow import Catchup, Command, CompiledWorkflow, Const, Schedule, TaskSpec
from ork.state.records import RunFilter
from tests.chaos.judge import Court, eventually, kill
from tests.cloud.fake_gcs import WRITE, FakeGcs
from tests.firestore import HOST, emulator_or_skip

pytestmark = pytest.mark.slow

DUE = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS = 120.0  # for a whole experiment, on a busy machine
PARTS = 4
KINDS = ("request", "commit", "object")
"""Killed when a request arrives, which is not carried out; when a commit has been carried out, without its answer; when an object has been
written, by the scheduler or by a worker."""


class Stage:
    """One Firestore emulator and one bucket; each experiment has a database, a prefix and a folder of its own."""

    def __init__(self, folder: Path, proxy: Any, gcs: FakeGcs) -> None:
        self.folder, self.proxy, self.gcs = folder, proxy, gcs
        self._numbers = count()

    def experiment(self, kind: str, step: int) -> bool:
        """Whether a scheduler was killed at this step. Everything must have happened once in the end."""
        name = f"{next(self._numbers)}-{kind}-{step}"
        (self.folder / name).mkdir()
        url = self.proxy.emulator.new_database()
        settings = {"ORK_STORE": url, HOST: self.proxy.host, "ORK_OBJECTS": self.gcs.url(name)}
        court = Court(self.folder / name, settings)
        asyncio.run(_prepare(self._store(url), court))
        trap = Trap(self, kind, step)
        victim = trap.victim = court.start("scheduler")
        try:
            asyncio.run(_wait(self._store(url), victim))
        finally:
            trap.disarm()
            kill(victim)
        last = court.start("scheduler")
        try:
            asyncio.run(_wait(self._store(url), last))
            last.terminate()
            last.wait(60)
            asyncio.run(_judge(self._store(url), court))
        finally:
            kill(last)
        return trap.has_sprung.is_set()

    def _store(self, url: str) -> Any:
        from ork.state.firestore import FirestoreStore

        return FirestoreStore(url, emulator=self.proxy.emulator.host)


class Trap:
    """Kills the victim at one step."""

    def __init__(self, stage: Stage, kind: str, step: int) -> None:
        self.victim: subprocess.Popen[bytes] | None = None
        self.has_sprung = threading.Event()
        self._stage, self._step = stage, step
        self._seen = 0
        self._lock = threading.Lock()
        if kind == "object":
            stage.gcs.loses_answer = lambda what, _key: what == WRITE and self._counts() and self._spring()
        elif kind == "commit":
            stage.proxy.fault = lambda method, _number: "after" if method == "Commit" and self._counts() else None
            stage.proxy.on_loss = self._spring
        else:
            stage.proxy.fault = lambda _method, _number: "before" if self._counts() and self._spring() else None

    def disarm(self) -> None:
        self._stage.proxy.fault = lambda _method, _number: None
        self._stage.proxy.on_loss = lambda: None
        self._stage.gcs.loses_answer = lambda _kind, _key: False

    def _counts(self) -> bool:
        with self._lock:
            self._seen += 1
            return self._seen == self._step

    def _spring(self) -> bool:
        assert self.victim is not None
        self.victim.kill()
        self.has_sprung.set()
        return True


async def _prepare(store: Any, court: Court) -> None:
    """One run is due: two tasks, the second after the first."""
    words = (sys.executable, RECORDED, "stand-in", str(court.folder / "judged"), "0.05")
    action = Command(tuple(map(Const, words)))
    tasks = (
        TaskSpec("a", "process", action, retries=3),
        TaskSpec("b", "process", action, depends_on=("a",), retries=3),
    )
    schedule = Schedule("0 0 1 1 *", catchup=Catchup.ALL)
    version = make_version(CompiledWorkflow("flow", tasks, schedule=schedule), str(court.folder))
    await store.save_version(version, origin=None, now=DUE, next_fire=DUE)
    await store.set_limits({"*": 1})
    await store.close()


async def _wait(store: Any, scheduler: subprocess.Popen[bytes]) -> None:
    """Until the run has ended, or the scheduler has."""
    async with asyncio.timeout(SECONDS):
        while scheduler.poll() is None:
            runs = (await store.list_runs(RunFilter())).runs
            if runs and all(run.status.is_final for run in runs):
                break
            await store.wait_for_change(0.5)
    await store.close()


async def _judge(store: Any, court: Court) -> None:
    """The due time has one run, which succeeded; no attempt started twice; nothing is left."""
    (run,) = (await store.list_runs(RunFilter())).runs
    assert (run.scheduled_for, run.status.value) == (DUE, "success")
    tasks, attempts = (await store.run_updates(run.id)).tasks, await store.list_attempts(run.id)
    assert [task.status for task in tasks] == [TaskStatus.SUCCESS] * 2
    for task in tasks:
        own = [attempt for attempt in attempts if attempt.key.task == task.key]
        assert [attempt.key.number for attempt in own] == list(range(1, task.attempt + 1))
        assert [each.key.number for each in own if each.status is AttemptStatus.SUCCESS] == [task.attempt]
    assert not [who for who, number in court.starts().items() if number > 1], court.ledger()
    assert court.overlaps() == []
    assert Counter(who.split()[1] for who in court.starts()).keys() == {"a", "b"}
    assert [use.used for use in await store.limit_use()] == [0]
    assert await store.get_owner(run.id) is None
    # One that was killed when the run was over has nothing that anybody would take over.
    assert [entry.active_runs for entry in await store.list_schedulers() if entry.active_runs] == []
    await store.close()
    eventually(lambda: not court.processes())


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    emulator = emulator_or_skip()
    from tests.firestore_proxy import Proxy

    proxy, gcs = Proxy(emulator), FakeGcs()
    yield Stage(tmp_path, proxy, gcs)
    proxy.close()
    gcs.close()


def enumerate_steps(stage: Stage, kind: str, steps: Iterable[int]) -> int:
    """How many of these steps there were."""
    return sum(1 for _ in takewhile(lambda step: stage.experiment(kind, step), steps))


@pytest.mark.parametrize(("kind", "steps"), [("request", (9, 24)), ("commit", (3, 5)), ("object", (1, 4))])
def test_a_run_is_finished_once_when_its_scheduler_is_killed_at_some_steps(
    stage: Stage, kind: str, steps: tuple[int, ...]
) -> None:
    assert enumerate_steps(stage, kind, steps) == len(steps)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_finished_once_when_its_scheduler_is_killed_at_every_step(stage: Stage, kind: str, part: int) -> None:
    """Each part has every fourth step, so that parts can be run one by one, or at the same time."""
    number = enumerate_steps(stage, kind, count(1 + part, PARTS))
    print(f"{number} steps: {kind}, part {part}")
    assert number >= {"request": 25, "commit": 6, "object": 6}[kind] // PARTS
