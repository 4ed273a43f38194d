"""External jobs on virtual time, and the poller that waits for them in an attempt's stead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ork.errors import DocumentError, ExecutorError, ObjectsError
from ork.executors.executor import DEFERRED, LaunchOrder, News, NotStarted, Presence
from ork.model.ids import AttemptKey, RunId
from ork.model.record import Record
from ork.model.task import Attempt
from ork.objects import documents, layout
from ork.testing.cluster import Cluster
from ork.testing.faults import Process
from ork.testing.objects import FlakyObjects

ASK_SECONDS = 10.0
WRITE_AGAIN_SECONDS = 1.0
SETTLE_SECONDS = 0.01


class _Wait(Record, frozen=False):
    attempt: Attempt
    news: News
    has_looked: bool = False
    is_stopping: bool = False
    is_over: bool = False


class ScriptedPoller:
    """One scheduler's waiting: it dies with its process, and whoever takes the run over waits on."""

    name = DEFERRED

    def __init__(self, cluster: Cluster, process: Process) -> None:
        self._cluster = cluster
        self._process = process
        self._objects = FlakyObjects(cluster.objects, process)
        self._waits: dict[AttemptKey, _Wait] = {}
        self._finished = 0

    def name_for(self, attempt: AttemptKey) -> str:
        return f"{DEFERRED}:{attempt}"

    async def start(self, orders: Sequence[LaunchOrder], news: News) -> Sequence[NotStarted]:  # noqa: ARG002
        return [NotStarted(order.attempt.key, "nothing begins by waiting", final=True) for order in orders]

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        await self._process.stumble_in_executor()
        return [Presence.RUNNING if attempt.key in self._waits else Presence.GONE for attempt in attempts]

    async def watch(self, attempts: Sequence[Attempt], news: News) -> None:
        await self._process.stumble_in_executor()
        for attempt in attempts:
            if attempt.key not in self._waits and attempt.waits_for is not None:
                self._read_spec(attempt)
                wait = self._waits[attempt.key] = _Wait(attempt, news, has_looked=attempt.closing is not None)
                if attempt.closing is None:
                    self._cluster.kernel.spawn(f"wait {attempt.key}", self._wait_for(wait))

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        await self._process.stumble_in_executor()
        for attempt in attempts:
            wait = self._waits.get(attempt.key)
            if wait is not None and at_once:
                self._drop(wait)
            elif wait is not None and not wait.is_stopping:
                wait.is_stopping = True
                self._cluster.kernel.spawn(f"tell {attempt.key}", self._tell_to_stop(wait))

    async def close(self) -> None:
        for wait in list(self._waits.values()):
            self._drop(wait)

    def forget(self, run: RunId) -> None:
        for key in [key for key in self._waits if key.run == run]:
            self._drop(self._waits[key])

    async def settle(self) -> bool:
        """Waits until every job has been asked; whether an attempt has ended by that."""
        before = self._finished
        while any(wait.is_stopping or not wait.has_looked for wait in self._waits.values()):
            await self._cluster.kernel.pause(SETTLE_SECONDS)
            self._process.check_alive()
        return self._finished != before

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────

    def _read_spec(self, attempt: Attempt) -> None:
        try:
            if self._objects.get(layout.spec_key(layout.attempt_folder(attempt.key))) is None:
                raise ExecutorError(f"the spec of {attempt.key} is gone")
        except ObjectsError as problem:
            raise ExecutorError(problem.message) from None

    async def _wait_for(self, wait: _Wait) -> None:
        job = self._cluster.jobs[wait.attempt.key]
        while not job.is_done(self._cluster.kernel.time):
            wait.has_looked = True
            await self._cluster.kernel.pause(ASK_SECONDS)
            self._process.check_alive()
            if wait.is_over or wait.is_stopping:
                return
        await self._finish(wait, job.last_words())

    async def _tell_to_stop(self, wait: _Wait) -> None:
        failure = {"kind": "cancelled", "message": "stopped while it waited", "detail": None}
        await self._finish(wait, {"state": "stopped", "failure": failure})

    async def _finish(self, wait: _Wait, ending: dict[str, Any]) -> None:
        while not wait.is_over:
            self._process.check_alive()
            try:
                self._write(wait.attempt, ending)
                break
            except DocumentError:
                break
            except ObjectsError:
                await self._cluster.kernel.pause(WRITE_AGAIN_SECONDS)
        wait.has_looked = True
        if not wait.is_over:
            self._finished += 1
            self._drop(wait)
            wait.news(wait.attempt.key)

    def _write(self, attempt: Attempt, ending: dict[str, Any]) -> None:
        folder = layout.attempt_folder(attempt.key)
        data = self._cluster.objects.get(layout.status_key(folder))
        handed_over = documents.open_signed(data, attempt.token_hash) if data is not None else {}
        if handed_over.get("state") != "deferred":
            return  # somebody has written the last word already
        job = self._cluster.jobs[attempt.key]
        output = job.output if ending["state"] == "success" else None
        self._cluster.will_report(attempt.key, ending["state"], output)
        if output is not None:
            ending = {**ending, "output": self._stored(output, folder, is_large=job.output_is_large)}
        at = self._process.clock.now().isoformat()
        kept = {name: value for name, value in handed_over.items() if name != "jobs"}
        status = {**kept, "seq": handed_over["seq"] + 1, "at": at, "finished_at": at, **ending}
        self._objects.put(layout.status_key(folder), documents.sign(status, attempt.token_hash))
        self._cluster.reported(attempt.key, ending["state"], output)

    def _stored(self, text: str, folder: str, *, is_large: bool) -> dict[str, Any]:
        if not is_large:
            return {"inline": text}
        self._objects.put(layout.output_key(folder), text.encode())
        return {"object": layout.output_key(folder), "size": len(text)}

    def _drop(self, wait: _Wait) -> None:
        wait.is_over = wait.has_looked = True
        self._waits.pop(wait.attempt.key, None)
