"""The state store for readers: `ork status`, the API, the command line and other parts of Ork.

Every sentence of a docstring is a test in tests/conformance.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from ork.core.effects import Alert
from ork.model.ids import AttemptKey, RunId, SchedulerId, TaskKey, VersionId
from ork.model.installation import Control
from ork.model.location import LocationEntry
from ork.model.quarantine import Quarantined
from ork.model.run import Run, RunCommand, RunStatus, SchedulerEntry
from ork.model.task import Attempt
from ork.model.workflow import Version, VersionEntry, WorkflowEntry
from ork.state.records import (
    ALL_TASKS,
    Cached,
    Changes,
    LimitUse,
    RunFilter,
    RunPage,
    RunUpdate,
    ScheduleEntry,
    TaskCount,
    TaskFilter,
    TimesPage,
    UnsentAlert,
)


class StateReader(Protocol):
    """Reads, and waits for changes. Writes nothing.

    Of a damaged row the readable fields are returned, and `unreadable` describes the others. A damaged version raises
    UnreadableError; saving it again repairs it.
    """

    async def wait_for_change(self, timeout: float | None) -> bool:
        """Return True soon after another store handle committed something, False after `timeout` seconds.

        A change between two calls is not missed. Costs nothing while nothing happens. Only one caller may wait at a
        time.
        """
        ...

    # ── workflows ────────────────────────────────────────────────────────────────────────────────

    async def get_version(self, version: VersionId) -> Version | None: ...

    async def list_versions(self, workflow: str, limit: int = 20) -> tuple[VersionEntry, ...]:
        """The versions of a workflow, newest first."""
        ...

    async def get_workflow(self, name: str) -> WorkflowEntry | None: ...

    async def list_workflows(self) -> tuple[WorkflowEntry, ...]:
        """All workflows, by name."""
        ...

    async def list_schedules(self) -> tuple[ScheduleEntry, ...]:
        """The schedules of all workflows, by name."""
        ...

    async def list_locations(self) -> tuple[LocationEntry, ...]:
        """All locations, by name."""
        ...

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────

    async def get_run(self, run: RunId) -> Run | None: ...

    async def find_by_key(self, workflow: str, key: str) -> Run | None:
        """The run that was created under this idempotency key."""
        ...

    async def find_scheduled(self, workflow: str, times: Sequence[datetime]) -> Mapping[datetime, Run]:
        """The runs that a schedule or a backfill created for these times, by time and without params. Costs one read of
        an index for each time."""
        ...

    async def find_runs(self, prefix: str, limit: int = 10) -> tuple[RunId, ...]:
        """Up to `limit` ids that begin with the prefix, in order."""
        ...

    async def shorten_ids(self, runs: Collection[RunId], least: int) -> Mapping[RunId, str]:
        """For each id the shortest prefix, of at least `least` characters, that no other run's id has."""
        ...

    async def list_runs(self, query: RunFilter) -> RunPage:
        """A page of runs, newest first; a run created between two pages never appears twice. Of two times, only runs
        created at the first or later and before the second. `params` is always {},
        because each may be a megabyte."""
        ...

    async def param_values(self, runs: Sequence[RunId], name: str) -> Mapping[RunId, Any]:
        """The value of this param in those of the runs that have it, as it is stored. A run whose params cannot be read
        has none. The cost depends on the given runs only."""
        ...

    async def last_runs(self, workflows: Sequence[str]) -> Mapping[str, Run]:
        """The newest run of each of these workflows, without params."""
        ...

    async def count_unfinished(self) -> Mapping[RunStatus, int]:
        """The number of runs in each status that is not final. The cost depends on unfinished runs only."""
        ...

    async def changes_since(self, mark: str | None, limit: int = 100) -> Changes:
        """Up to `limit` runs that were created or changed after the mark, oldest change first, without params.

        Without a mark, no runs and the current mark. The marks are those of `run_updates`; later marks sort after
        earlier ones and have no other meaning. UsageError for a mark that is not of this store. No change is missed:
        one that is not returned by this call is returned by a later one with its mark.
        """
        ...

    async def run_updates(self, run: RunId, since: str | None = None, only: TaskFilter = ALL_TASKS) -> RunUpdate | None:
        """The run and its tasks in workflow order, without `since` all of them, or those that `only` selects; None if the
        run does not exist.

        Changes between two pages are among the updates after the first page's mark. UsageError if the workflow does not
        have the task `after`.
        """
        ...

    async def count_tasks(self, run: RunId) -> tuple[TaskCount, ...]:
        """The number of tasks in each status, by task in workflow order, own rows before instances. A damaged status
        counts as pending. Nothing for an unknown run. Costs one read of an index, and returns no rows."""
        ...

    async def task_times(
        self,
        run: RunId,
        since: str | None = None,
        *,
        after: TaskKey | None = None,
        limit: int = 1000,
        with_instances: bool = True,
    ) -> TimesPage:
        """The statuses and times of tasks in workflow order: about `limit` of those after `after`, all or those that
        changed after the mark `since`; without instances, only the tasks' own rows.

        `earlier` has the attempts that ended before the current one of each of these tasks, and of a pending task all, by
        task and number; of each task the latest EARLIER_ATTEMPTS. Nothing for an unknown run; UsageError if the
        workflow does not have the task `after`.
        """
        ...

    async def list_attempts(
        self, run: RunId, task: TaskKey | None = None, *, after: AttemptKey | None = None, limit: int | None = None
    ) -> tuple[Attempt, ...]:
        """Attempts by task in workflow order, then by number: all, or at most `limit` of those after `after`. None of
        an unknown run; UsageError if the workflow does not have the task of `after`. A scheduler that has claimed the
        run gets all that was committed before."""
        ...

    async def find_cached(self, key: str, since: datetime) -> Cached | None:
        """The newest success under this cache key that ended at `since` or later."""
        ...

    async def pending_commands(self, run: RunId) -> tuple[RunCommand, ...]: ...

    async def get_owner(self, run: RunId) -> SchedulerId | None: ...

    async def get_starter(self, run: RunId) -> str | None:
        """Who started the run, as recorded at its creation; None for schedules and for runs of an older schema."""
        ...

    async def get_key(self, run: RunId) -> str | None:
        """The idempotency key the run was created with."""
        ...

    # ── notices ──────────────────────────────────────────────────────────────────────────────────

    async def list_alerts(self, run: RunId) -> tuple[Alert, ...]:
        """The failures of the run that people are notified of, oldest first, without approval requests and budgets."""
        ...

    async def over_budget_at(self, run: RunId) -> datetime | None:
        """When people were last alerted that the run had exceeded its budget."""
        ...

    async def unsent_alerts(self, limit: int) -> tuple[UnsentAlert, ...]:
        """Up to `limit` notices that could not be sent to every target, newest first."""
        ...

    # ── the installation ─────────────────────────────────────────────────────────────────────────

    async def list_schedulers(self) -> tuple[SchedulerEntry, ...]:
        """Schedulers that have registered and have neither released everything nor been replaced."""
        ...

    async def list_controls(self) -> tuple[Control, ...]:
        """All controls, by target."""
        ...

    async def limit_use(self) -> tuple[LimitUse, ...]: ...

    async def list_quarantined(self, limit: int = 100) -> tuple[Quarantined, ...]:
        """Quarantined items with their reasons, by kind, then by id. `submit_command` and pruning remove a run from
        this list. Workflows, schedules, locations and tokens are listed while their rows are damaged."""
        ...

    async def signing_key(self) -> bytes:
        """The installation's key: 32 random bytes created with the store. The tokens of attempts are derived from
        it."""
        ...
