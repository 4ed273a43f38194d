"""The one door to the state store. Every sentence below is a test in tests/conformance.

Writes are data: a scheduler hands over what it decided and the epoch it decided under, and the store writes
it all or refuses it. Losing a race is an answer, not an exception. StoreError means that nothing is known:
the caller forgets what it held in memory and reads again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from ork.core.effects import Alert, Wish
from ork.model.ids import AttemptKey, RunId, SchedulerId, TaskKey, VersionId
from ork.model.record import Record
from ork.model.run import NewRun, Run, RunCommand, RunStatus, SchedulerEntry
from ork.model.task import Attempt, Output, Task, TaskStatus
from ork.model.workflow import Rate, Version, VersionEntry, WorkflowEntry
from ork.state.access import AccessVerbs
from ork.state.claims import Claim as Claim
from ork.state.claims import ClaimedRun as ClaimedRun
from ork.state.heartbeats import HeartbeatVerbs
from ork.state.installation import InstallationVerbs
from ork.state.locations import LocationVerbs
from ork.state.quarantine import QuarantineVerbs
from ork.state.schedules import ScheduleVerbs

NO_RATES: Mapping[str, Rate] = {}


class RunChanges(Record):
    """One run's share of a commit: whole rows to write, launches to admit, commands that are done with. What an attempt
    is known by (its names and its token) does not change once it is written.

    `rest` says that nothing about this run needs an owner until a person asks for something (it is final, or
    paused with nothing running): the store takes the ownership back in the same transaction.
    """

    run_id: RunId
    epoch: int
    run: Run | None = None
    tasks: tuple[Task, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    wishes: tuple[Wish, ...] = ()
    commands_done: tuple[int, ...] = ()
    alerts: tuple[Alert, ...] = ()
    rest: bool = False

    @property
    def only_wishes(self) -> bool:
        """If none of its wishes is admitted, there is nothing to write."""
        return not (self.run or self.tasks or self.attempts or self.commands_done or self.alerts or self.rest)


class Committed(Record):
    """What came of a commit. Runs named in `fenced` or `overruled` had nothing written at all."""

    fenced: frozenset[RunId] = frozenset()  # the epoch is stale: somebody else owns the run
    overruled: frozenset[RunId] = frozenset()  # would have finished, but a cancel request stands: read it first
    admitted: frozenset[AttemptKey] = frozenset()
    full: frozenset[str] = frozenset()  # would turn away another wish like these; of rates, those that did
    again_in: float | None = None  # seconds until a rate that turned one away would let it pass


class Accepted(NamedTuple):
    """The command is durable and its owner has been woken."""

    run: Run
    command_id: int


class TooLate(NamedTuple):
    """The run is in a state in which this command means nothing; `run` shows it."""

    run: Run


class RunFilter(Record):
    workflow: str | None = None
    statuses: frozenset[RunStatus] = frozenset()
    limit: int = 20
    cursor: str | None = None  # as given by the previous page


class RunPage(NamedTuple):
    runs: tuple[Run, ...]
    cursor: str | None  # None on the last page


class TaskFilter(Record):
    """Which of a run's tasks: at most `limit`, and only those behind `after` in the workflow's order."""

    name: str | None = None
    statuses: frozenset[TaskStatus] = frozenset()
    after: TaskKey | None = None
    limit: int | None = None


ALL_TASKS = TaskFilter()


class RunUpdate(NamedTuple):
    """The run and those of its tasks that changed after `since`; `mark` is the next `since`."""

    run: Run
    tasks: tuple[Task, ...]
    mark: int


class Changes(Record):
    """Runs that changed, as they are now, and the mark behind the last of those changes."""

    runs: tuple[Run, ...]
    mark: int


class Cached(NamedTuple):
    """What came of equal work before, and in which run."""

    run: RunId
    output: Output | None


class LimitUse(NamedTuple):
    """How full a limit is, and who holds it (a few)."""

    name: str
    slots: int
    used: int
    holders: tuple[AttemptKey, ...] = ()


class StateStore(
    AccessVerbs, ScheduleVerbs, LocationVerbs, InstallationVerbs, HeartbeatVerbs, QuarantineVerbs, Protocol
):
    """The verbs that change something, and the reads that people need."""

    # ── definitions ──────────────────────────────────────────────────────────────────────────────

    async def save_version(
        self, version: Version, *, origin: str | None, now: datetime, next_fire: datetime | None = None
    ) -> bool:
        """The version is durable and new runs of its workflow get it; True if it was not known before.

        Saving an identical version again changes nothing but which one is current (and enables the workflow). A
        schedule that is new, changed or was off fires next at `next_fire` (None: not planned yet); one that is as it
        was keeps its time, so that deploying again loses no time that is due. RefusedError if a location has this
        workflow and `origin` is not of that location.
        """
        ...

    async def set_enabled(self, workflow: str, enabled: bool, *, next_fire: datetime | None = None) -> bool:
        """A disabled workflow keeps its history and gets no new scheduled runs. False if unknown.

        A schedule that was off fires next at `next_fire` (None: not planned yet); one that was on keeps its time.
        """
        ...

    async def delete_workflow(self, workflow: str) -> bool:
        """The name is free again; its runs and versions stay. False if unknown, RefusedError while one of its runs has
        not ended or a location has it."""
        ...

    async def set_limits(self, limits: Mapping[str, int], rates: Mapping[str, Rate] = NO_RATES) -> None:
        """These limits and rates (of "pool:NAME") hold from the next commit on, and no others.

        Running attempts are not touched, and how much of a rate is used up stays known. Where they hold already,
        nothing is written and nobody is woken.
        """
        ...

    # ── runs and what people ask of them ─────────────────────────────────────────────────────────

    async def create_runs(self, runs: Sequence[NewRun], now: datetime) -> tuple[Run, ...]:
        """Each run is durable and pending when this returns.

        A (workflow, key) that exists gives the existing run if version and params are equal, else RefusedError and
        nothing is created. A (workflow, scheduled_for) of trigger schedule or backfill that exists gives the existing
        run. An id that exists gives the existing run (the caller repeats an ambiguous call).
        """
        ...

    async def submit_command(self, command: RunCommand, now: datetime) -> Accepted | TooLate | None:
        """None: no such run. An accepted cancel stands on the run's row at once and is binding.

        CANCEL, PAUSE and RESUME are too late for a final run; RETRY is too early for one that is not final;
        PAUSE of a paused run and RESUME of one that is not paused are TooLate as well.
        """
        ...

    # ── ownership ────────────────────────────────────────────────────────────────────────────────

    async def introduce(
        self, scheduler: SchedulerId, identity: str, kind: str, now: datetime, *, terms: str | None = None
    ) -> None:
        """The scheduler is known and holds a lease of `lease_seconds` by the store's clock.

        It begins with nothing: runs it held under the same id have no owner any more and can be claimed at once.
        SettingsDifferError, and nothing is written, if `terms` are given and differ from the recorded shared settings.
        """
        ...

    async def claim_runs(
        self, scheduler: SchedulerId, room: int, now: datetime, *, only: Collection[RunId] | None = None
    ) -> Claim:
        """Up to `room` runs that need an owner become this scheduler's, each with its epoch raised by one.

        A run needs an owner if it is pending, running, or paused with something active, or has commands waiting, and if
        its owner is nobody, unknown, or one whose lease has run out. Higher priority first, then older first.
        `max_active_runs` of a workflow holds: a pending run beyond it stays unclaimed until another ends, unless it is
        to be cancelled. A scheduler that is unknown or whose own lease has run out gets nothing. With `only` they are
        those runs, their sub-workflows, and what was left in the middle (the owner's lease has run out, or there is no
        owner and an attempt is active). Commands come for every run the scheduler owns, in order of id, until a commit
        says they are done. Two schedulers never get the same run at the same epoch.
        A run that cannot be decoded (its row, a task, a current attempt, its version) is set aside, and a command of an
        unknown kind is done with and listed by `list_quarantined`.
        """
        ...

    async def commit(self, scheduler: SchedulerId, changes: Sequence[RunChanges], now: datetime) -> Committed:
        """All of a run's changes are durable together, or none are.

        A run whose epoch or owner differs is fenced, alone: its neighbours are written. A run that would become success
        or failed while a cancel request stands unseen (`run.cancel_requested_at` is None in the row to be written) is
        overruled, unless it had ended before: that request was for an earlier round. Wishes are admitted by priority while every limit they count against ("*", "executor:X", "pool:Y")
        has room, counting active attempts of all runs that wait for nothing external, and while every rate (the pool's,
        the task's own) has a start left by the store's clock; those admitted are written with the rest. Limits are
        never exceeded, whoever commits at the same time. Alerts become notices that are due at once; a run that
        succeeds where its workflow's run before it (the newest earlier one that succeeded or failed) had failed, or
        where it had been told of as failed itself, leaves a notice of recovery. A commit that came to nothing wakes
        nobody: two schedulers that wait for the same full pool would wake each other for ever.
        """
        ...

    async def renew(self, scheduler: SchedulerId) -> bool:
        """The lease runs `lease_seconds` from now. False: it had run out and somebody took a run over, or the
        scheduler is unknown; it must introduce itself and claim anew."""
        ...

    async def note_fallbacks(self, scheduler: SchedulerId, notes: Sequence[str]) -> None:
        """What `list_schedulers` says of it from now on. An unknown scheduler has no notes; nobody is woken."""
        ...

    async def bury(self, schedulers: Sequence[SchedulerId]) -> None:
        """These schedulers are provably dead: their leases have run out as of now."""
        ...

    async def release(self, scheduler: SchedulerId, runs: Sequence[RunId] | None = None) -> None:
        """The runs (None: all, and the scheduler is forgotten) have no owner and can be claimed at once."""
        ...

    # ── waking ───────────────────────────────────────────────────────────────────────────────────

    async def wait_for_change(self, timeout: float | None) -> bool:
        """Returns True soon after another store handle committed something, False after `timeout` seconds.

        A change between two calls is not missed. Costs nothing while nothing happens. One caller waits at a time.
        """
        ...

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    # Of a damaged row what can be decoded is shown, and `unreadable` says what cannot. A damaged version is an
    # UnreadableError; saving it again repairs it.

    async def get_version(self, version: VersionId) -> Version | None: ...

    async def list_versions(self, workflow: str, limit: int = 20) -> tuple[VersionEntry, ...]:
        """Newest first."""
        ...

    async def get_workflow(self, name: str) -> WorkflowEntry | None: ...

    async def list_workflows(self) -> tuple[WorkflowEntry, ...]:
        """By name."""
        ...

    async def get_run(self, run: RunId) -> Run | None: ...

    async def find_by_key(self, workflow: str, key: str) -> Run | None:
        """The run that was created under this idempotency key."""
        ...

    async def count_unfinished(self) -> Mapping[RunStatus, int]:
        """How many runs are in each status that is not final; costs what is unfinished, not what has been."""
        ...

    async def changes_since(self, mark: int | None, limit: int = 100) -> Changes:
        """Up to `limit` runs that were created or changed after the mark, the oldest change first, without params.

        None for a mark gives no runs and the mark of now. The marks are those of `run_updates`. No change is ever
        passed over: one that is not among the answers of this call is among those of a later one with its mark.
        """
        ...

    async def find_runs(self, prefix: str, limit: int = 10) -> tuple[RunId, ...]:
        """Ids that begin with the prefix, at most `limit`, in order."""
        ...

    async def list_runs(self, query: RunFilter) -> RunPage:
        """Newest first; a run created between two pages is never seen twice. Their `params` are left out ({}): each may
        be a megabyte."""
        ...

    async def last_runs(self, workflows: Sequence[str]) -> Mapping[str, Run]:
        """The newest run of each of these workflows that has had one, without params."""
        ...

    async def run_updates(self, run: RunId, since: int = 0, only: TaskFilter = ALL_TASKS) -> RunUpdate | None:
        """With since=0 all tasks, in the order the workflow names them. None: no such run.

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

    async def list_alerts(self, run: RunId) -> tuple[Alert, ...]:
        """The failures that people are told of about the run, oldest first; no questions."""
        ...

    async def list_schedulers(self) -> tuple[SchedulerEntry, ...]:
        """Those that introduced themselves and have neither released all nor been replaced."""
        ...

    async def get_owner(self, run: RunId) -> SchedulerId | None: ...

    async def get_starter(self, run: RunId) -> str | None:
        """Who asked for the run, as it was created; None for schedules and for runs of an older schema."""
        ...

    async def pending_commands(self, run: RunId) -> tuple[RunCommand, ...]: ...

    async def limit_use(self) -> tuple[LimitUse, ...]: ...

    async def signing_key(self) -> bytes:
        """32 random bytes made when the store was: attempts' tokens are derived from it."""
        ...

    async def statement_count(self) -> int:
        """How many statements this handle has run: what `ork bench` calls cost."""
        ...

    async def close(self) -> None: ...
