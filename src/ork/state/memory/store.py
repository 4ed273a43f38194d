"""The memory store: one process, any number of handles. Simpler and slower than SQLite, and checked by the same
conformance tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ork.core.effects import Alert
from ork.errors import NotFoundError
from ork.model.ids import AttemptKey, RunId, SchedulerId, TaskKey, VersionId
from ork.model.location import location_of
from ork.model.notice import NoticeKind
from ork.model.quarantine import ItemKind
from ork.model.record import replaced
from ork.model.run import CommandKind, NewRun, Run, RunCommand, RunStatus, SchedulerEntry
from ork.model.task import Attempt, TaskStatus
from ork.model.workflow import Trigger, Version, VersionEntry, WorkflowEntry
from ork.state.memory.access import AccessVerbs
from ork.state.memory.commit import came_to_nothing, write_changes
from ork.state.memory.installation import InstallationInMemory
from ork.state.memory.leases import LeasesInMemory
from ork.state.memory.locations import LocationsInMemory
from ork.state.memory.pages import attempts_page, limits_in_use, listed, runs_page, tasks_page
from ork.state.memory.quarantine import QuarantineVerbs
from ork.state.memory.rows import RunRow, Shared
from ork.state.memory.timely import TimelyVerbs, plan
from ork.state.paging import shortest_prefix
from ork.state.records import (
    ALL_TASKS,
    NO_TIMES,
    Accepted,
    Cached,
    Changes,
    Claim,
    ClaimedRun,
    Committed,
    LimitUse,
    RunChanges,
    RunFilter,
    RunPage,
    RunUpdate,
    TaskCount,
    TaskFilter,
    TimesPage,
    TooLate,
)
from ork.state.refusals import check_same_request, is_too_late, still_has_runs
from ork.state.rows import counts_of_records, number_of, text_of, times_of_records

if TYPE_CHECKING:
    from asyncio import Future

_BY_SLOT = (Trigger.SCHEDULE, Trigger.BACKFILL)


class MemoryStore(AccessVerbs, LocationsInMemory, InstallationInMemory, LeasesInMemory, QuarantineVerbs, TimelyVerbs):
    """One handle; `sibling` returns another one with the same data. Awaiting a verb never yields, except
    `wait_for_change`."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        lease_seconds: float = 60.0,
        shared: Shared | None = None,
    ) -> None:
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._shared = shared if shared is not None else Shared()
        self._seen = self._shared.changed
        self._waiter: Future[None] | None = None
        self._calls = 0
        self._shared.handles.append(self)

    def sibling(self) -> MemoryStore:
        return MemoryStore(self._clock, self._lease_seconds, self._shared)

    # ── definitions ──────────────────────────────────────────────────────────────────────────────

    async def save_version(
        self, version: Version, *, origin: str | None, now: datetime, next_fire: datetime | None = None
    ) -> bool:
        self._check_owner(version.workflow.name, origin)
        state = self._changing()
        is_new = version.id not in state.versions
        stored = state.versions.setdefault(version.id, version)
        state.version_saved.setdefault(version.id, (state.changed, now))
        name = version.workflow.name
        current = state.workflows.get(name)
        if current is not None and current.version == version.id:
            is_handed_on = location_of(origin) is not None or location_of(current.origin) is not None
            kept = origin if is_handed_on else current.origin
            state.workflows[name] = replaced(current, enabled=True, origin=kept)
        else:
            schedule = stored.workflow.schedule
            state.workflows[name] = WorkflowEntry(name, version.id, True, now, origin, schedule)
        plan(state, name, current, next_fire)
        return is_new

    async def add_version(self, version: Version, now: datetime) -> bool:
        is_new = version.id not in self._used().versions
        if is_new:
            state = self._changing()
            state.versions[version.id] = version
            state.version_saved[version.id] = (state.changed, now)
        return is_new

    async def set_enabled(self, workflow: str, enabled: bool, *, next_fire: datetime | None = None) -> bool:
        state = self._changing()
        entry = state.workflows.get(workflow)
        if entry is not None:
            state.workflows[workflow] = replaced(entry, enabled=enabled)
            plan(state, workflow, entry, next_fire)
        return entry is not None

    async def delete_workflow(self, workflow: str) -> bool:
        state = self._used()
        if workflow not in state.workflows:
            return False
        if any(row.run.workflow == workflow and not row.run.status.is_final for row in state.runs.values()):
            raise still_has_runs(workflow)
        self._check_owner(workflow, None)
        del self._changing().workflows[workflow]
        return True

    # ── runs and what people ask of them ─────────────────────────────────────────────────────────

    async def create_runs(self, runs: Sequence[NewRun], now: datetime) -> tuple[Run, ...]:
        self._changing()
        return self._create_all(runs, now)

    def _create_all(self, runs: Sequence[NewRun], now: datetime) -> tuple[Run, ...]:
        before = dict(self._shared.runs)
        try:
            return tuple(self._create(new, now) for new in runs)
        except BaseException:
            self._shared.runs = before
            raise

    def _create(self, new: NewRun, now: datetime) -> Run:
        state = self._shared
        if new.version not in state.versions:
            raise NotFoundError(f"There is no version {new.version}.", hint="Deploy the workflow first.")
        existing = self._existing(new)
        if existing is not None:
            return existing
        run = Run(
            new.id, new.workflow, new.version, RunStatus.PENDING, new.trigger, dict(new.params), now,
            scheduled_for=new.scheduled_for, priority=new.priority, fresh=new.fresh, parent=new.parent,
        )  # fmt: skip
        state.runs[new.id] = RunRow(run, new.key, state.changed, new.started_by)
        return run

    def _existing(self, new: NewRun) -> Run | None:
        same_workflow = [row for row in self._shared.runs.values() if row.run.workflow == new.workflow]
        if new.id in self._shared.runs:
            return self._shared.runs[new.id].run
        for row in same_workflow:
            if new.key is not None and row.key == new.key:
                check_same_request(new, row.run)
                return row.run
        for row in same_workflow:
            is_slot = new.scheduled_for is not None and new.trigger in _BY_SLOT and row.run.trigger in _BY_SLOT
            if is_slot and row.run.scheduled_for == new.scheduled_for:
                return row.run
        return None

    async def submit_command(self, command: RunCommand, now: datetime) -> Accepted | TooLate | None:
        row = self._shared.runs.get(command.run)
        if row is None:
            return None
        if is_too_late(command.kind, row.run.status):
            return TooLate(row.run)
        state = self._changing()
        state.last_command += 1
        id = text_of(state.last_command)
        state.commands[id] = replaced(command, id=id)
        if command.kind is CommandKind.CANCEL and row.run.cancel_requested_at is None:
            row.run = replaced(row.run, cancel_requested_at=now)
        state.quarantine.pop((ItemKind.RUN, command.run), None)  # the next claim decodes it again
        row.changed = state.changed
        return Accepted(row.run, id)

    # ── ownership ────────────────────────────────────────────────────────────────────────────────

    async def claim_runs(
        self,
        scheduler: SchedulerId,
        room: int,
        now: datetime,  # noqa: ARG002 (leases go by the store's clock)
        *,
        only: Collection[RunId] | None = None,
    ) -> Claim:
        state = self._used()
        lapsed = [id for id, row in state.schedulers.items() if row.lease_until <= self._clock()]
        if scheduler not in state.schedulers or scheduler in lapsed:
            return Claim()
        if room > 0:
            if only is not None:
                only = [*only, *(id for id, row in state.runs.items() if row.owner in lapsed)]
            state.disown(lapsed)
            for id in lapsed:
                del state.schedulers[id]
        claimed = self._take(scheduler, room, only)
        commands = (command for _, command in sorted(state.commands.items()))
        return Claim(claimed, tuple(c for c in commands if state.runs[c.run].owner == scheduler))

    def _take(self, scheduler: SchedulerId, room: int, only: Collection[RunId] | None) -> tuple[ClaimedRun, ...]:
        taken: list[RunRow] = []
        for row in self._shared.claimable(only):
            queued = row.run.status is RunStatus.PENDING and row.run.cancel_requested_at is None
            has_room = not queued or self._shared.room_in_workflow(row.run.workflow) > 0
            if has_room and len(taken) < room:
                row.owner = scheduler
                row.epoch += 1
                taken.append(row)
        return tuple(self._shared.claimed(row, self._clock()) for row in taken)

    async def commit(self, scheduler: SchedulerId, changes: Sequence[RunChanges], now: datetime) -> Committed:
        state = self._used()
        state.changed += 1  # the number of this change, undone if nothing is written
        committed = write_changes(state, scheduler, changes, self._clock(), now)
        state.changed -= 1
        if not came_to_nothing(changes, committed):
            self._changing()
        return committed

    # ── waking ───────────────────────────────────────────────────────────────────────────────────

    async def wait_for_change(self, timeout: float | None) -> bool:
        from asyncio import get_running_loop

        if self._seen == self._shared.changed:
            loop = get_running_loop()
            self._waiter = waiter = loop.create_future()
            timer = None if timeout is None else loop.call_later(timeout, self.wake)
            try:
                await waiter
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
        happened, self._seen = self._seen != self._shared.changed, self._shared.changed
        return happened

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _changing(self) -> Shared:
        """The data, for a change by this handle; wakes the other handles."""
        state = self._used()
        # If another handle changed something in between, `_seen` stays behind, so that the next wait finds that change.
        if self._seen == state.changed:
            self._seen += 1
        state.changed += 1
        for handle in state.handles:
            if handle is not self:
                handle.wake()
        return state

    def _used(self) -> Shared:
        self._calls += 1
        return self._shared

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    async def get_version(self, version: VersionId) -> Version | None:
        return self._used().versions.get(version)

    async def list_versions(self, workflow: str, limit: int = 20) -> tuple[VersionEntry, ...]:
        state = self._used()
        own = [version for version in state.versions.values() if version.workflow.name == workflow]
        own.sort(key=lambda version: state.version_saved[version.id], reverse=True)
        return tuple(VersionEntry(each.id, state.version_saved[each.id][1], each.source) for each in own[:limit])

    async def get_workflow(self, name: str) -> WorkflowEntry | None:
        return self._used().workflows.get(name)

    async def list_workflows(self) -> tuple[WorkflowEntry, ...]:
        return tuple(entry for _, entry in sorted(self._used().workflows.items()))

    async def get_run(self, run: RunId) -> Run | None:
        row = self._used().runs.get(run)
        return None if row is None else row.run

    async def find_by_key(self, workflow: str, key: str) -> Run | None:
        rows = self._used().runs.values()
        return next((row.run for row in rows if row.run.workflow == workflow and row.key == key), None)

    async def find_scheduled(self, workflow: str, times: Sequence[datetime]) -> Mapping[datetime, Run]:
        wanted, runs = set(times), [row.run for row in self._used().runs.values() if row.run.trigger in _BY_SLOT]
        return {
            run.scheduled_for: listed(run)
            for run in runs
            if run.workflow == workflow and run.scheduled_for is not None and run.scheduled_for in wanted
        }

    async def count_unfinished(self) -> Mapping[RunStatus, int]:
        statuses = [row.run.status for row in self._used().runs.values()]
        return {status: statuses.count(status) for status in RunStatus if not status.is_final}

    async def changes_since(self, mark: str | None, limit: int = 100) -> Changes:
        state = self._used()
        if mark is None:
            return Changes((), text_of(state.changed))
        behind = number_of(mark)
        later = sorted((row.changed, id) for id, row in state.runs.items() if row.changed > behind)
        # Runs of one commit share its number. They are returned together, because a mark between them would hide some.
        shown = [place for place in later if place[0] <= later[:limit][-1][0]] if later else []
        return Changes(tuple(listed(state.runs[id].run) for _, id in shown), text_of(shown[-1][0]) if shown else mark)

    async def find_runs(self, prefix: str, limit: int = 10) -> tuple[RunId, ...]:
        return tuple(sorted(id for id in self._used().runs if id.startswith(prefix))[:limit])

    async def shorten_ids(self, runs: Collection[RunId], least: int) -> Mapping[RunId, str]:
        ids = sorted(self._used().runs)
        others = {run: (*[id for id in ids if id < run][-1:], *[id for id in ids if id > run][:1]) for run in runs}
        return {run: shortest_prefix(run, neighbours, least) for run, neighbours in others.items()}

    async def list_runs(self, query: RunFilter) -> RunPage:
        return runs_page(self._used(), query)

    async def param_values(self, runs: Sequence[RunId], name: str) -> Mapping[RunId, Any]:
        known = {run: row.run.params for run in runs if (row := self._used().runs.get(run)) is not None}
        return {run: params[name] for run, params in known.items() if name in params}

    async def last_runs(self, workflows: Sequence[str]) -> Mapping[str, Run]:
        pages = [runs_page(self._used(), RunFilter(workflow=name, limit=1)) for name in workflows]
        return {run.workflow: run for page in pages for run in page.runs}

    async def run_updates(self, run: RunId, since: str | None = None, only: TaskFilter = ALL_TASKS) -> RunUpdate | None:
        state = self._used()
        row = state.runs.get(run)
        behind = 0 if since is None else number_of(since)
        return None if row is None else RunUpdate(row.run, tasks_page(state, row, behind, only), text_of(row.changed))

    async def count_tasks(self, run: RunId) -> tuple[TaskCount, ...]:
        state = self._used()
        row = state.runs.get(run)
        return () if row is None else counts_of_records(state.tasks_in_order(row))

    async def task_times(
        self,
        run: RunId,
        since: str | None = None,
        *,
        after: TaskKey | None = None,
        limit: int = 1000,
        with_instances: bool = True,
    ) -> TimesPage:
        state = self._used()
        row = state.runs.get(run)
        if row is None:
            return NO_TIMES
        tasks = tasks_page(state, row, 0 if since is None else number_of(since), TaskFilter(after=after))
        wanted = [task for task in tasks if with_instances or task.key.index is None]
        return times_of_records(wanted, attempts_page(state, row, None, None, None), limit)

    async def list_attempts(
        self, run: RunId, task: TaskKey | None = None, *, after: AttemptKey | None = None, limit: int | None = None
    ) -> tuple[Attempt, ...]:
        state = self._used()
        row = state.runs.get(run)
        return () if row is None else attempts_page(state, row, task, after, limit)

    async def find_cached(self, key: str, since: datetime) -> Cached | None:
        equal = [
            (task.finished_at, row.run.id, task.output)
            for row in self._used().runs.values()
            for task in row.tasks.values()
            if task.cache_key == key and task.status is TaskStatus.SUCCESS and task.finished_at is not None
        ]
        newest = max((found for found in equal if found[0] >= since), key=lambda found: found[0], default=None)
        return None if newest is None else Cached(newest[1], newest[2])

    async def list_alerts(self, run: RunId) -> tuple[Alert, ...]:
        row = self._used().runs.get(run)
        return () if row is None else tuple(row.alerts)

    async def over_budget_at(self, run: RunId) -> datetime | None:
        notices = (row.notice for row in self._used().notices)
        raised = [each.raised_at for each in notices if each.run == run and each.kind is NoticeKind.BUDGET]
        return max(raised, default=None)

    async def list_schedulers(self) -> tuple[SchedulerEntry, ...]:
        state = self._used()
        entries = [
            SchedulerEntry(
                id, row.identity, row.kind, row.started_at, row.lease_until - self._clock(),
                sum(run.owner == id for run in state.runs.values()), row.notes,
            )
            for id, row in state.schedulers.items()
        ]  # fmt: skip
        return tuple(sorted(entries, key=lambda entry: (entry.started_at, entry.id)))

    async def get_starter(self, run: RunId) -> str | None:
        row = self._used().runs.get(run)
        return None if row is None else row.started_by

    async def get_key(self, run: RunId) -> str | None:
        row = self._used().runs.get(run)
        return None if row is None else row.key

    async def get_owner(self, run: RunId) -> SchedulerId | None:
        row = self._used().runs.get(run)
        return None if row is None else row.owner

    async def pending_commands(self, run: RunId) -> tuple[RunCommand, ...]:
        return tuple(self._used().commands_of(run))

    async def limit_use(self) -> tuple[LimitUse, ...]:
        return limits_in_use(self._used())

    async def signing_key(self) -> bytes:
        return self._used().key

    @property
    def statements(self) -> int:
        """The number of calls, each counted as one statement."""
        return self._calls

    async def close(self) -> None:
        if self in self._shared.handles:
            self._shared.handles.remove(self)
