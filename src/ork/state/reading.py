"""The state store for readers: what status, the API, the command line and the other parts look at.

Every sentence of a docstring is a test in tests/conformance.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

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
    TaskFilter,
    UnsentAlert,
)


class StateReader(Protocol):
    """Reads, and waiting for something new to read. Nothing here changes anything.

    Of a damaged row what can be decoded is shown, and `unreadable` says what cannot. A damaged version is an
    UnreadableError; saving it again repairs it.
    """

    async def wait_for_change(self, timeout: float | None) -> bool:
        """Returns True soon after another store handle committed something, False after `timeout` seconds.

        A change between two calls is not missed. Costs nothing while nothing happens. One caller waits at a time.
        """
        ...

    # ── workflows ────────────────────────────────────────────────────────────────────────────────

    async def get_version(self, version: VersionId) -> Version | None: ...

    async def list_versions(self, workflow: str, limit: int = 20) -> tuple[VersionEntry, ...]:
        """Newest first."""
        ...

    async def get_workflow(self, name: str) -> WorkflowEntry | None: ...

    async def list_workflows(self) -> tuple[WorkflowEntry, ...]:
        """By name."""
        ...

    async def list_schedules(self) -> tuple[ScheduleEntry, ...]:
        """Those of all workflows, by name."""
        ...

    async def list_locations(self) -> tuple[LocationEntry, ...]:
        """By name."""
        ...

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────

    async def get_run(self, run: RunId) -> Run | None: ...

    async def find_by_key(self, workflow: str, key: str) -> Run | None:
        """The run that was created under this idempotency key."""
        ...

    async def find_runs(self, prefix: str, limit: int = 10) -> tuple[RunId, ...]:
        """Ids that begin with the prefix, at most `limit`, in order."""
        ...

    async def shorten_ids(self, runs: Collection[RunId], least: int) -> Mapping[RunId, str]:
        """The shortest prefix of each of these ids, of at least `least` characters, with which no other run's id begins."""
        ...

    async def list_runs(self, query: RunFilter) -> RunPage:
        """Newest first; a run created between two pages is never seen twice. Their `params` are left out ({}): each may
        be a megabyte."""
        ...

    async def last_runs(self, workflows: Sequence[str]) -> Mapping[str, Run]:
        """The newest run of each of these workflows that has had one, without params."""
        ...

    async def count_unfinished(self) -> Mapping[RunStatus, int]:
        """How many runs are in each status that is not final; costs what is unfinished, not what has been."""
        ...

    async def changes_since(self, mark: str | None, limit: int = 100) -> Changes:
        """Up to `limit` runs that were created or changed after the mark, the oldest change first, without params.

        None for a mark gives no runs and the mark of now. The marks are those of `run_updates`; a later one sorts behind an earlier one, and nothing else may be
        concluded from it. One that is not of this store is UsageError. No change is ever
        passed over: one that is not among the answers of this call is among those of a later one with its mark.
        """
        ...

    async def run_updates(self, run: RunId, since: str | None = None, only: TaskFilter = ALL_TASKS) -> RunUpdate | None:
        """Without `since` all tasks, in the order the workflow names them. None: no such run.

        Page by page, what changes in between is among the updates behind the first page's mark. An `after` that
        the workflow does not have is UsageError.
        """
        ...

    async def list_attempts(
        self, run: RunId, task: TaskKey | None = None, *, after: AttemptKey | None = None, limit: int | None = None
    ) -> tuple[Attempt, ...]:
        """By task in the workflow's order, then by number: all of them, or at most `limit` of those behind `after`.
        An unknown run has none; an `after` that the workflow does not have is UsageError."""
        ...

    async def find_cached(self, key: str, since: datetime) -> Cached | None:
        """The newest success under this cache key that ended at `since` or later."""
        ...

    async def pending_commands(self, run: RunId) -> tuple[RunCommand, ...]: ...

    async def get_owner(self, run: RunId) -> SchedulerId | None: ...

    async def get_starter(self, run: RunId) -> str | None:
        """Who asked for the run, as it was created; None for schedules and for runs of an older schema."""
        ...

    # ── notices ──────────────────────────────────────────────────────────────────────────────────

    async def list_alerts(self, run: RunId) -> tuple[Alert, ...]:
        """The failures that people are notified of about the run, oldest first; no questions."""
        ...

    async def unsent_alerts(self, limit: int) -> tuple[UnsentAlert, ...]:
        """Up to `limit` notices that did not reach somebody after a try, newest first."""
        ...

    # ── the installation ─────────────────────────────────────────────────────────────────────────

    async def list_schedulers(self) -> tuple[SchedulerEntry, ...]:
        """Those that registered and have neither released all nor been replaced."""
        ...

    async def list_controls(self) -> tuple[Control, ...]:
        """By target."""
        ...

    async def limit_use(self) -> tuple[LimitUse, ...]: ...

    async def list_quarantined(self, limit: int = 100) -> tuple[Quarantined, ...]:
        """What has been set aside and why: by kind, then by id. `submit_command` and pruning take a run off this list.
        Workflows, schedules, locations and tokens are on it for as long as their rows are damaged."""
        ...

    async def signing_key(self) -> bytes:
        """32 random bytes made when the store was: attempts' tokens are derived from it."""
        ...
