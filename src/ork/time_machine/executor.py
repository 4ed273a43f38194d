"""Executors on virtual time: attempts have no processes, and end when their script says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from ork.executors.executor import (
    DEFERRED,
    Executor,
    ExecutorTraits,
    LaunchOrder,
    NotStarted,
    Presence,
    StatusCallback,
)
from ork.model.ids import AttemptKey, RunId
from ork.model.record import Record
from ork.model.run import CommandKind, Run, RunCommand, RunStatus
from ork.model.task import Attempt, Failure, FailureKind, InlineOutput, Status
from ork.objects import documents
from ork.objects.attempt_documents import AttemptDocuments
from ork.scheduler.child_output import output_of_run
from ork.state.scheduling import RunRequests
from ork.time_machine.script import AttemptScript
from ork.virtual_time.clock import FakeClock
from ork.virtual_time.kernel import Kernel

OUTPUT_LIMIT = 64 << 20
_JOB = json.dumps([{"job": "played"}])
ScriptOf = Callable[[AttemptKey], AttemptScript]


class Stage(Record):
    """What all executors share."""

    kernel: Kernel
    clock: FakeClock
    store: RunRequests
    objects: AttemptDocuments
    script_of: ScriptOf


class PlayedExecutor(Executor):
    """Takes the place of the executor of this name. Reports only the ends of attempts: nothing depends on the other statuses."""

    traits = ExecutorTraits(needs_specs=False)

    def __init__(self, name: str, stage: Stage) -> None:
        self.name = name
        self._stage = stage
        self._running: set[AttemptKey] = set()

    def name_for(self, attempt: AttemptKey) -> str:
        return f"played:{attempt}"

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        stage = self._stage
        for order in orders:
            key = order.attempt.key
            script = stage.script_of(key)
            gate = {"v": 1, "attempt": str(key), "state": "started"}
            stage.objects.claim_gate(str(key), documents.sign(gate, order.attempt.token_hash))
            self._running.add(key)
            started_at = stage.clock.now() + timedelta(seconds=script.start_seconds)
            end = _end_of(script, started_at)
            delay = script.start_seconds + script.seconds
            if script.waited:
                end = Status(1, "deferred", started_at, started_at, None, None, None, None, jobs=_JOB)
                delay = script.start_seconds
            stage.kernel.later(delay, _Report(self._running, key, on_status, end))
        return ()

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        return [Presence.RUNNING if attempt.key in self._running else Presence.GONE for attempt in attempts]

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        """Do nothing: there is one scheduler, and it started all attempts."""

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:  # noqa: ARG002 (there is no process)
        self._running -= {attempt.key for attempt in attempts}

    async def close(self) -> None:
        """Do nothing: there is nothing to free."""


class _Report:
    """The end of an attempt, unless it was stopped before."""

    def __init__(self, running: set[AttemptKey], key: AttemptKey, on_status: StatusCallback, end: Status) -> None:
        self._running, self._key, self._on_status, self._end = running, key, on_status, end

    def __call__(self) -> None:
        if self._key in self._running:
            self._running.discard(self._key)
            self._on_status(self._key, self._end)


class _PlayedWait(Record, frozen=False):
    attempt: Attempt
    on_status: StatusCallback
    run: RunId | None
    is_stopping: bool = False


class PlayedWaits(Executor):
    """Attempts that wait without a worker: for an external job, which their script describes, or for a child run."""

    name = DEFERRED

    def __init__(self, stage: Stage, on_change: Callable[[], None]) -> None:
        self._stage = stage
        self._on_change = on_change
        self._waits: dict[AttemptKey, _PlayedWait] = {}
        self._by_run: dict[RunId, AttemptKey] = {}

    def name_for(self, attempt: AttemptKey) -> str:
        return f"{DEFERRED}:{attempt}"

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:  # noqa: ARG002
        return [NotStarted(order.attempt.key, "a waiting attempt cannot be started", final=True) for order in orders]

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        return [Presence.RUNNING if attempt.key in self._waits else Presence.GONE for attempt in attempts]

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        for attempt in attempts:
            if attempt.key in self._waits:
                continue
            run = _child_of(attempt)
            self._waits[attempt.key] = _PlayedWait(attempt, on_status, run)
            if run is not None:
                self._by_run[run] = attempt.key
                continue
            script = self._stage.script_of(attempt.key)
            end = _end_of(script, self._stage.clock.now(), attempt.seq + 1)
            self._stage.kernel.later(script.seconds, lambda key=attempt.key, end=end: self._finish(key, end))  # type: ignore[misc]

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:  # noqa: ARG002 (a run is cancelled or not)
        for attempt in attempts:
            wait = self._waits.get(attempt.key)
            if wait is None:
                continue
            if wait.run is None:
                del self._waits[attempt.key]
            elif not wait.is_stopping:
                wait.is_stopping = True
                command = RunCommand(wait.run, CommandKind.CANCEL, by=f"task {attempt.key.task}")
                await self._stage.store.submit_command(command, self._stage.clock.now())
                self._on_change()

    async def close(self) -> None:
        self._waits.clear()

    def run_ended(self, run: Run) -> None:
        """A run has ended; an attempt may wait for it."""
        key = self._by_run.pop(run.id, None)
        if key is not None and key in self._waits:
            self._stage.kernel.spawn(f"end of {key}", self._end_with(key, run))

    async def _end_with(self, key: AttemptKey, run: Run) -> None:
        stage, wait = self._stage, self._waits[key]
        now = stage.clock.now()
        begun = wait.attempt.started_at or wait.attempt.dispatched_at
        end = Status(wait.attempt.seq + 1, "success", begun, now, now, None, None, None)
        if wait.is_stopping:
            end = Status.replaced(end, state="stopped")
        elif run.status is RunStatus.SUCCESS:
            text = await output_of_run(stage.store, stage.objects, run, OUTPUT_LIMIT)
            end = Status.replaced(end, output=None if text is None else InlineOutput(text))
        else:
            failure = Failure(FailureKind.EXIT, f"run {run.id} is {run.status}")
            end = Status.replaced(end, state="failed", failure=failure)
        self._finish(key, end)

    def _finish(self, key: AttemptKey, end: Status) -> None:
        wait = self._waits.pop(key, None)
        if wait is not None:
            wait.on_status(key, end)


def _end_of(script: AttemptScript, started_at: datetime, seq: int = 1) -> Status:
    end = started_at + timedelta(seconds=script.seconds)
    if script.failure is None:
        output = None if script.output is None else InlineOutput(script.output)
        return Status(seq, "success", started_at, end, end, 0, None, output)
    state = "timed_out" if script.failure.kind is FailureKind.TIMEOUT else "failed"
    return Status(seq, state, started_at, end, end, None, script.failure, None)


def _child_of(attempt: Attempt) -> RunId | None:
    """The child run that an attempt waits for."""
    (job,) = json.loads(attempt.waits_for or "[{}]")
    found: RunId | None = job.get("run")
    return found
