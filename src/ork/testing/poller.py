"""The poller on virtual time: it waits for the external job or the child run of an attempt."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ork.errors import DocumentError, ExecutorError, ObjectsError, StoreError
from ork.executors.executor import DEFERRED, Executor, LaunchOrder, NotStarted, Presence, StatusCallback
from ork.model.ids import AttemptKey, RunId
from ork.model.record import Record
from ork.model.run import CommandKind, Run, RunCommand, RunStatus
from ork.model.task import Attempt
from ork.objects import documents
from ork.scheduler.child_output import output_of_run
from ork.state.store import StateStore
from ork.testing.cluster import Cluster
from ork.testing.faults import SimulatedProcess
from ork.testing.kernel import Crashed
from ork.testing.objects import FlakyObjects

ASK_SECONDS = 10.0
WRITE_AGAIN_SECONDS = 1.0
SETTLE_SECONDS = 0.01
OUTPUT_LIMIT = 1 << 20
INLINE_LIMIT = 200


class _SimulatedWait(Record, frozen=False):
    attempt: Attempt
    on_status: StatusCallback
    run: RunId | None = None  # the child run that it waits for, if it is a sub-workflow
    has_looked: bool = False
    is_stopping: bool = False
    is_over: bool = False


class ScriptedPoller(Executor):
    """The waits of one scheduler. They end with its process; the next owner of the run waits again."""

    name = DEFERRED

    def __init__(
        self, cluster: Cluster, process: SimulatedProcess, store: StateStore, on_change: Callable[[], None]
    ) -> None:
        self._cluster = cluster
        self._process = process
        self._store = store
        self._on_change = on_change
        self._objects = FlakyObjects(cluster.objects, process)
        self._waits: dict[AttemptKey, _SimulatedWait] = {}
        self._finished = 0

    def name_for(self, attempt: AttemptKey) -> str:
        return f"{DEFERRED}:{attempt}"

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:  # noqa: ARG002
        return [NotStarted(order.attempt.key, "a waiting attempt cannot be started", final=True) for order in orders]

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        await self._process.stumble_in_executor()
        return [Presence.RUNNING if await self._goes_on(attempt) else Presence.GONE for attempt in attempts]

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        await self._process.stumble_in_executor()
        for attempt in attempts:
            if attempt.key not in self._waits and attempt.waits_for is not None:
                self._read_spec(attempt)
                run = _run_of(attempt)
                wait = self._waits[attempt.key] = _SimulatedWait(
                    attempt, on_status, run, has_looked=attempt.closing is not None
                )
                if attempt.closing is None:
                    waiting = self._wait_for_run(wait) if wait.run is not None else self._wait_for(wait)
                    self._cluster.kernel.spawn(f"wait {attempt.key}", self._lives_through(waiting))

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        await self._process.stumble_in_executor()
        for attempt in attempts:
            wait, run = self._waits.get(attempt.key), _run_of(attempt)
            if wait is None and run is not None:
                wait = self._waits[attempt.key] = _SimulatedWait(
                    attempt, lambda _key, _told=None: None, run, has_looked=True
                )
            if wait is not None and at_once and run is None:
                self._drop(wait)
            elif wait is not None and not wait.is_stopping:
                wait.is_stopping = True
                self._cluster.kernel.spawn(f"tell {attempt.key}", self._lives_through(self._ask_to_stop(wait)))

    async def close(self) -> None:
        for wait in list(self._waits.values()):
            self._drop(wait)

    def forget_run(self, run: RunId) -> None:
        for key in [key for key in self._waits if key.run == run]:
            self._drop(self._waits[key])

    async def settle(self) -> bool:
        """Wait until every job has been polled. True if an attempt has ended."""
        before = self._finished
        while any(wait.is_stopping or not wait.has_looked for wait in self._waits.values()):
            await self._cluster.kernel.pause(SETTLE_SECONDS)
            self._process.check_alive()
        return self._finished != before

    async def _goes_on(self, attempt: Attempt) -> bool:
        if attempt.key in self._waits or attempt.closing is None or _run_of(attempt) is None:
            return attempt.key in self._waits
        try:
            run = await self._store.get_run(_run_of(attempt) or RunId(""))
        except StoreError as problem:
            raise ExecutorError(problem.message) from None
        return run is not None and not run.status.is_final

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────

    def _read_spec(self, attempt: Attempt) -> None:
        try:
            if self._objects.read_spec(str(attempt.key)) is None:
                raise ExecutorError(f"the spec of {attempt.key} is gone")
        except ObjectsError as problem:
            raise ExecutorError(problem.message) from None

    async def _wait_for(self, wait: _SimulatedWait) -> None:
        job = self._cluster.jobs[wait.attempt.key]
        while not job.is_done(self._cluster.kernel.time):
            wait.has_looked = True
            await self._cluster.kernel.pause(ASK_SECONDS)
            self._process.check_alive()
            if wait.is_over or wait.is_stopping:
                return
        await self._finish(wait, job.last_words(), None if job.fails else job.output)

    async def _lives_through(self, waiting: Awaitable[None]) -> None:
        """Run the wait. If the process dies here, its scheduler must be woken to die, too."""
        try:
            await waiting
        except Crashed:
            self._process.wakeup.set()
            raise

    async def _wait_for_run(self, wait: _SimulatedWait) -> None:
        run = await self._ended_run(wait)
        if run is None:
            return
        if run.status is RunStatus.SUCCESS:
            text = await self._output_of(run)
            await self._finish(wait, {"state": "success"}, text)
        else:
            failure = {"kind": "exit", "message": f"run {run.id} is {run.status}", "detail": None}
            await self._finish(wait, {"state": "failed", "failure": failure})

    async def _ended_run(self, wait: _SimulatedWait) -> Run | None:
        """The child run when it has ended; None if the wait was dropped."""
        was_stopping = wait.is_stopping
        while True:
            try:
                run = await self._store.get_run(wait.run or RunId(""))
                if run is not None and run.status.is_final:
                    return run
            except StoreError:
                pass
            wait.has_looked = True
            await self._cluster.kernel.pause(ASK_SECONDS)
            self._process.check_alive()
            if wait.is_over or wait.is_stopping != was_stopping:
                return None

    async def _output_of(self, run: Run) -> str | None:
        while True:
            try:
                return await output_of_run(self._store, self._objects, run, OUTPUT_LIMIT)
            except (StoreError, ObjectsError):
                await self._cluster.kernel.pause(WRITE_AGAIN_SECONDS)

    async def _cancel_run(self, wait: _SimulatedWait) -> None:
        command = RunCommand(wait.run or RunId(""), CommandKind.CANCEL, by=f"task {wait.attempt.key.task}")
        while not wait.is_over:
            try:
                await self._store.submit_command(command, self._process.clock.now())
            except StoreError:
                await self._cluster.kernel.pause(WRITE_AGAIN_SECONDS)
            else:
                self._on_change()
                await self._ended_run(wait)
                return

    async def _ask_to_stop(self, wait: _SimulatedWait) -> None:
        if wait.run is not None:
            await self._cancel_run(wait)
        failure = {"kind": "cancelled", "message": "stopped while it waited", "detail": None}
        await self._finish(wait, {"state": "stopped", "failure": failure})

    async def _finish(self, wait: _SimulatedWait, ending: dict[str, Any], text: str | None = None) -> None:
        while not wait.is_over:
            self._process.check_alive()
            try:
                self._write(wait.attempt, ending, text)
                break
            except DocumentError:
                break
            except ObjectsError:
                await self._cluster.kernel.pause(WRITE_AGAIN_SECONDS)
        wait.has_looked = True
        if not wait.is_over:
            self._finished += 1
            self._drop(wait)
            wait.on_status(wait.attempt.key)

    def _write(self, attempt: Attempt, ending: dict[str, Any], output: str | None) -> None:
        (data,) = self._cluster.objects.read_statuses([str(attempt.key)])
        handed_over = documents.open_signed(data, attempt.token_hash) if isinstance(data, bytes) else {}
        if handed_over.get("state") != "deferred":
            return  # there is a final status already
        self._cluster.will_report(attempt.key, ending["state"], output)
        if output is not None:
            job = self._cluster.jobs.get(attempt.key)
            is_large = len(output) > INLINE_LIMIT if job is None else job.output_is_large
            ending = {**ending, "output": self._stored(output, str(attempt.key), is_large=is_large)}
        at = self._process.clock.now().isoformat()
        kept = {name: value for name, value in handed_over.items() if name != "jobs"}
        status = {**kept, "seq": handed_over["seq"] + 1, "at": at, "finished_at": at, **ending}
        self._objects.put_status(str(attempt.key), documents.sign(status, attempt.token_hash))
        self._cluster.reported(attempt.key, ending["state"], output)

    def _stored(self, text: str, attempt: str, *, is_large: bool) -> dict[str, Any]:
        if not is_large:
            return {"inline": text}
        return {"object": self._objects.put_output(attempt, text.encode()), "size": len(text)}

    def _drop(self, wait: _SimulatedWait) -> None:
        wait.is_over = wait.has_looked = True
        self._waits.pop(wait.attempt.key, None)


def _run_of(attempt: Attempt) -> RunId | None:
    """The child run that an attempt waits for."""
    jobs = json.loads(attempt.waits_for or "[{}]")
    found: RunId | None = jobs[0].get("run")
    return found
