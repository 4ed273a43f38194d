"""Takes over claimed runs, and quarantines those that cannot be processed so that the others continue."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from ork.errors import ExecutorError, ObjectsError, OrkError
from ork.executors.executor import Executor
from ork.model.ids import RunId, SchedulerId
from ork.model.quarantine import QuarantinedRun
from ork.model.run import RunStatus
from ork.model.task import Attempt
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import DocumentCalls
from ork.scheduler.observe import Observer
from ork.scheduler.reporting import describe
from ork.scheduler.runs import OwnedRuns
from ork.scheduler.statuses import ask_to_stop, close_gate, gate_state
from ork.scheduler.watchlist import by_executor, last_signs
from ork.state.records import ClaimedRun
from ork.state.scheduling import SchedulerStore
from ork.telemetry import Telemetry, TelemetryEvent

if TYPE_CHECKING:
    from ork.core.budget import BudgetState


class TakeOver:
    def __init__(
        self,
        store: SchedulerStore,
        objects: AttemptDocuments,
        executors: Mapping[str, Executor],
        scheduler: SchedulerId,
        runs: OwnedRuns,
        observer: Observer,
        telemetry: Telemetry,
    ) -> None:
        self._store = store
        self._objects = objects
        self._calls = DocumentCalls(objects)
        self._executors = executors
        self._scheduler = scheduler
        self._runs = runs
        self._observer = observer
        self._telemetry = telemetry

    async def take_over(self, claimed: ClaimedRun, now: datetime) -> bool:
        """Take over a run. False if it raised and must be released. A run that keeps raising is quarantined."""
        run = claimed.run
        if (reason := self._runs.keeps_raising(run.id)) is not None:
            await self._set_aside(run.id, claimed.epoch, reason, now)
            return True
        is_new = run.status is RunStatus.PENDING
        self._telemetry.emit(TelemetryEvent.RUN_STARTED if is_new else TelemetryEvent.RUN_ADOPTED, **describe(run))
        owned = self._runs.take_over(claimed, now, await self._spent(claimed))
        if owned is None:
            return False
        try:
            adopted = [(attempt, owned.machine.spec(attempt.key.task)) for attempt in claimed.attempts]
            has_groups = any(attempt.group is not None for attempt in claimed.attempts)
            signs = last_signs(claimed.tasks) if has_groups else {}
            await self._observer.adopt(adopted, claimed.heartbeats, signs, now)
        except OrkError:
            raise
        except Exception as problem:
            self._runs.note_error(run.id, problem)
            return False
        return True

    async def _spent(self, claimed: ClaimedRun) -> BudgetState | None:
        """What is needed to know how much of its budget the run has spent; None if it has no budget."""
        if claimed.version.workflow.budget is None:
            return None
        from ork.core.budget import BudgetState

        run = claimed.run
        if run.status is RunStatus.PENDING:
            return BudgetState()
        return BudgetState(await self._store.list_attempts(run.id), await self._store.over_budget_at(run.id))

    async def set_aside_broken(self, now: datetime) -> list[RunId]:
        """Quarantine owned runs with permanently damaged documents. Returns the runs to drop."""
        broken, self._observer.broken = self._observer.broken, {}
        for run, reason in broken.items():
            if (owned := self._runs.get(run)) is not None:
                await self._set_aside(run, owned.epoch, reason, now)
        return list(broken)

    async def _set_aside(self, run: RunId, epoch: int, reason: str, now: datetime) -> None:
        broken = await self._store.set_aside(self._scheduler, run, epoch, reason, now)
        if broken is not None:
            await self.note(broken, now)

    async def note(self, broken: QuarantinedRun, now: datetime) -> None:
        """Emit the event and request the stop of the run's attempts, which are no longer watched and hold no slots."""
        self._telemetry.emit(
            TelemetryEvent.RUN_QUARANTINED, run=broken.run, workflow=broken.workflow, why=broken.reason
        )
        closed_at = now if broken.is_cancelled else None
        await self._calls.for_each(lambda attempt: self._ask_to_end(attempt, closed_at), broken.attempts)
        for executor, group in by_executor(list(broken.attempts)):
            with suppress(ExecutorError, KeyError):  # unreachable workers read the stop request
                await self._executors[executor].stop(group, at_once=broken.is_cancelled)

    async def _ask_to_end(self, attempt: Attempt, closed_at: datetime | None) -> None:
        """Write a stop request, which the worker reads with its next heartbeat."""
        try:
            if await self._calls.call(_may_live, self._objects, attempt, closed_at):
                await self._calls.call(ask_to_stop, self._objects, attempt, "set aside")
        except ObjectsError as problem:
            self._telemetry.emit(TelemetryEvent.OBJECTS_FAILED, attempt=attempt.key, why=problem.message)


def _may_live(objects: AttemptDocuments, attempt: Attempt, closed_at: datetime | None) -> bool:
    """True if the attempt may have started. For a cancelled run the gate is closed, so that it cannot start later."""
    if closed_at is not None:
        return not close_gate(objects, attempt, closed_at)
    return gate_state(objects, attempt) is not None
