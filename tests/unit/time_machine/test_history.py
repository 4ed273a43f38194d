"""What the time machine reads from a store: durations, failures, waits and outputs of the newest runs."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from ork.compile.content import make_version
from ork.model.ids import AttemptKey, RunId, SchedulerId, TaskKey
from ork.model.record import replaced
from ork.model.run import NewRun, RunStatus
from ork.model.task import (
    Attempt,
    AttemptStatus,
    Failure,
    FailureKind,
    InlineOutput,
    Output,
    StoredOutput,
    Task,
    TaskStatus,
)
from ork.objects.memory import MemoryObjects
from ork.state.memory import MemoryStore
from ork.state.records import RunChanges
from ork.time_machine.history import PastAttempt, TaskHistory, read_history
from tests.unit.time_machine.projects import at, workflow

FLOW = workflow("""
    name: flow
    tasks:
      list: {command: x}
      fetch: {command: x, foreach: list.pages}
      ok: {approval: {message: Go on?}, depends_on: [fetch]}
""")
VERSION = make_version(FLOW, "/project")
ME = SchedulerId("me")
pytestmark = pytest.mark.anyio


class Past:
    """A store with runs that have ended."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.objects = MemoryObjects()
        self._created_at = at(0)

    async def add(
        self, id: str, *attempts: Attempt, output: Output | None = None, status: RunStatus = RunStatus.SUCCESS
    ) -> None:
        begun, ended = at(1), at(2)
        await self.store.save_version(VERSION, origin=None, now=begun)
        await self.store.register(ME, "me", "scheduler", begun)
        self._created_at += timedelta(minutes=1)
        await self.store.create_runs([NewRun(RunId(id), "flow", VERSION.id)], self._created_at)
        (claimed,) = (await self.store.claim_runs(ME, 10, begun)).runs
        run = replaced(claimed.run, status=status, started_at=begun, finished_at=ended)
        tasks = (
            Task(TaskKey("list"), TaskStatus.SUCCESS, "process", 1, output=output),
            Task(TaskKey("ok"), TaskStatus.SUCCESS, "approval", started_at=at(1), finished_at=at(1, 30)),
        )
        changes = RunChanges(run.id, claimed.epoch, run, tasks, attempts, release_ownership=True)
        assert not (await self.store.commit(ME, [changes], ended)).fenced

    async def read(self) -> dict[tuple[str, str], TaskHistory]:
        return await read_history(self.store, self.objects, FLOW)


def attempt(
    run: str, task: str, number: int, end: datetime, status: AttemptStatus = AttemptStatus.SUCCESS, **more: object
) -> Attempt:
    key = AttemptKey(RunId(run), TaskKey(task), number)
    row = Attempt(key, status, "process", f"name of {key}", "hash", at(1), started_at=at(1, 0, 2), finished_at=end)
    return replaced(row, **more)


async def test_samples_are_those_of_the_attempts_and_of_people() -> None:
    past = Past()
    failure = Failure(FailureKind.EXCEPTION, "ValueError")
    await past.add(
        "one",
        attempt("one", "list", 1, at(1, 0, 5), AttemptStatus.FAILED, failure=failure),
        attempt("one", "list", 2, at(1, 0, 9)),
        attempt("one", "list", 3, at(1, 0, 9), AttemptStatus.CANCELLED),
        attempt("one", "list", 4, at(1, 0, 9), AttemptStatus.LOST, started_at=None),
    )
    await past.add("two", attempt("two", "list", 1, at(1, 1, 2), waits_for='[{"http": "https://jobs.test"}]'))
    history = await past.read()
    assert set(history["flow", "list"].samples) == {
        PastAttempt(2.0, 3.0, FailureKind.EXCEPTION), PastAttempt(2.0, 7.0), PastAttempt(2.0, 60.0, waited=True),
    }  # fmt: skip
    assert history["flow", "list"].typical() == PastAttempt(2.0, 33.5), "the median of the successes"
    assert history["flow", "ok"].samples == (PastAttempt(0.0, 1800.0), PastAttempt(0.0, 1800.0))
    assert ("flow", "fetch") not in history


async def test_the_output_is_that_of_the_newest_success_wherever_it_is_stored() -> None:
    past = Past()
    await past.add("old", output=InlineOutput('{"pages": [1]}'))
    assert (await past.read())["flow", "list"].output == '{"pages": [1]}'
    text = b'{"pages": [1, 2, 3]}'
    reference = past.objects.put_output("new/list/0/1", text)
    await past.add("new", output=StoredOutput(reference, len(text)))
    assert (await past.read())["flow", "list"].output == text.decode()
    await past.add("gone", output=StoredOutput("runs/gone/list/0/1/output.json", 5))
    assert (await past.read())["flow", "list"].output == text.decode(), "an object that was pruned tells nothing"


async def test_runs_that_were_cancelled_tell_nothing() -> None:
    past = Past()
    await past.add("one", attempt("one", "list", 1, at(1, 0, 9)), status=RunStatus.CANCELLED)
    assert await past.read() == {}
    assert TaskHistory().typical() is None
