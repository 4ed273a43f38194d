"""The responses of reads that are made for pages: large runs, many runs, and logs. See `ork.api.models`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from ork.api.models import Code, Failure, ProblemDetails, Progress, Response, Run, Task, fields_from
from ork.model import code
from ork.model.access import Role
from ork.model.alarm import AlarmKind
from ork.model.run import RunStatus
from ork.model.task import TaskStatus
from ork.model.workflow import Trigger
from ork.status.calendar import TimeState
from ork.status.previews import OutputKind


class TaskCounts(Response):
    """`status` is null before the run has started; `instances` counts the instances of a fan-out by status."""

    name: str
    status: TaskStatus | None
    instances: dict[TaskStatus, int] | None


class TaskFailure(Response):
    name: str
    index: int | None
    attempt: int
    failure: Failure | None
    exit_code: int | None
    finished_at: datetime | None


class Estimate(Response):
    """From the last `runs` successful runs of the workflow, which took `median` seconds."""

    seconds_left: float
    median: float | None
    runs: int


class CriticalStep(Response):
    """A task that decided when the run ended. `waited`: seconds between the step before and its start. `saves`: by how
    many seconds what comes after it could have started earlier without it."""

    name: str
    started_at: datetime
    finished_at: datetime
    seconds: float
    waited: float
    saves: float


class RunSummary(Response):
    """`failures` has at most 20 tasks; `critical_path` is empty until the run has ended."""

    run: Run
    mark: str
    counts: dict[TaskStatus, int]
    tasks: list[TaskCounts]
    failures: list[TaskFailure]
    more_failures: bool
    progress: Progress
    estimate: Estimate | None
    critical_path: list[CriticalStep]


class RunEvent(Response):
    """The data of an event `run`: with its changed tasks, of which `more` may exist, or with the number of tasks in each
    status."""

    run: Run
    tasks: list[Task] | None = None
    more: bool | None = None
    counts: dict[TaskStatus, int] | None = None


class TaskColumns(Response):
    """Columns of equal length. `task` and `status` are places in `names` and `statuses`; times are milliseconds: `queued`
    from the run's start to the dispatch, `wait` from there to the task's start, `ran` from there to its end."""

    task: list[int]
    index: list[int | None]
    status: list[int]
    attempt: list[int]
    queued: list[int | None]
    wait: list[int | None]
    ran: list[int | None]


class RunColumns(Response):
    """`start` is in milliseconds since 1970. `names` are the workflow's tasks in its order. A fan-out has a row of its own, without index, before those of its instances. `earlier` has up to 20 attempts of each of these tasks
    that ended before its current one. `mark` is the next `since`."""

    run: str
    status: RunStatus
    start: int
    mark: str
    names: list[str]
    statuses: list[str]
    tasks: TaskColumns
    earlier: TaskColumns


class RunMark(Response):
    """A run as one mark on a page. `seconds` from its start to its end."""

    id: str
    status: RunStatus
    trigger: Trigger
    created_at: datetime
    scheduled_for: datetime | None
    seconds: float | None


class GridCell(Response):
    """A task in a run; of a fan-out, how many `instances` it has and how many of them `failed`."""

    status: TaskStatus
    instances: int
    failed: int


class GridRun(RunMark):
    """`cells` has one entry for each of the grid's `tasks`; null if the run does not have the task."""

    version: str
    cells: list[GridCell | None]


class WorkflowGrid(Response):
    tasks: list[str]
    runs: list[GridRun]


class Spread(Response):
    """Seconds of `count` runs or tasks that succeeded. `change` is 0.1 if `p50` is 10 % more than `p50_before`."""

    count: int
    p50: float | None
    p95: float | None
    p50_before: float | None
    change: float | None


class TaskSpread(Spread):
    name: str


class WorkflowDurations(Response):
    """From up to 50 successful runs of the last week, and of the week before."""

    runs: Spread
    tasks: list[TaskSpread]


class CalendarTime(Response):
    """`run` is set if `state` is `run`. A `missed` time has passed without a run, or its run was deleted; the run of a
    `due` time is still to be created."""

    time: datetime
    state: TimeState
    run: RunMark | None


class ClockNote(Response):
    """A local time that a clock change skips or repeats, and when the schedule fires."""

    local: datetime
    kind: Literal["skipped", "repeated"]
    fires: list[datetime]
    text: str


class CalendarWorkflow(Response):
    """Times in ascending order. If `partial`, times from `until` on are missing, or some runs of an earlier schedule."""

    workflow: str
    cron: str
    timezone: str
    enabled: bool
    times: list[CalendarTime]
    partial: bool
    until: datetime | None
    notes: list[ClockNote]
    problem: str | None


class Pool(Response):
    """`rate` is the most starts in a time, such as `100/60s`; null if there is no limit."""

    name: str
    slots: int
    rate: str | None


class ExecutorEntry(Response):
    """`class` is null for an executor of Ork; `max_workers` if it has no limit of its own."""

    name: str
    target: str | None = Field(alias="class")
    max_workers: int | None


class InstallationAbout(Response):
    """The settings of this server. `has_scheduler`: one runs in the same process. `alarm` wakes it while none runs."""

    version: str
    store: str
    alarm: AlarmKind
    has_scheduler: bool
    pools: list[Pool]
    executors: list[ExecutorEntry]


class ExplainedCode(Response):
    """`wrong` and `right` are parts of a file or commands; empty if an example would not help."""

    code: str
    title: str
    why: str
    wrong: str
    right: str


class PendingApproval(Response):
    """A task that waits for approval; it fails at `due` if nobody decides. The person `not_by` must not approve it."""

    run: str
    workflow: str
    task: str
    message: str
    whom: str = Field(alias="for")
    not_by: str | None
    since: datetime | None
    due: datetime | None


class Approvals(Response):
    approvals: list[PendingApproval]


class Calendar(Response):
    """The times from `from` until before `to`."""

    first: datetime = Field(alias="from")
    to: datetime
    now: datetime
    workflows: list[CalendarWorkflow]
    partial: bool
    cursor: str | None


class RunningRun(Response):
    """`progress` is set for the first 20 runs."""

    run: Run
    progress: Progress | None


class LateSchedule(Response):
    """A schedule that should have fired at `due`."""

    workflow: str
    due: datetime


class BrokenLocation(Response):
    name: str
    code: str | None
    error: str


class WorkflowHealth(Response):
    """The last 20 runs, newest first. `p50` of the successful ones; `success_rate` of those that succeeded or failed."""

    name: str
    enabled: bool
    runs: list[RunMark]
    p50: float | None
    success_rate: float | None


class Overview(Response):
    """`unsent_alerts` counts up to 20."""

    since: datetime
    now: datetime
    failures: list[Run]
    more_failures: bool
    running: list[RunningRun]
    more_running: bool
    late: list[LateSchedule]
    unsent_alerts: int
    broken_locations: list[BrokenLocation]
    workflows: list[WorkflowHealth]
    cursor: str | None


class BulkResult(Response):
    """The result for one run: the id of the accepted `command`, or the `error`."""

    run: str
    command: str | None
    error: ProblemDetails | None


class BulkResults(Response):
    results: list[BulkResult]


class Pair(Response):
    """A value of run `a` and of run `b`."""

    a: Any
    b: Any


class Durations(Response):
    """Seconds; null for what has not ended."""

    a: float | None
    b: float | None


class LogDifference(Response):
    """The first line that differs, apart from times and ids; null for a log that ends before it."""

    line: int
    a: str | None
    b: str | None


class TaskDifference(Response):
    """What differs is set. An `output` is shown as text, at most 1000 characters, or as its size. `log` is set for up to 20
    tasks that ended differently."""

    name: str
    index: int | None
    seconds: Durations
    status: Pair | None
    attempts: Pair | None
    error: Pair | None
    output: Pair | None
    log: LogDifference | None


class DefinitionDifference(Response):
    """Tasks that were added and removed, the keys of tasks that changed, and the changed keys of the workflow."""

    added: list[str]
    removed: list[str]
    changed: dict[str, list[str]]
    keys: list[str]


@fields_from(code.Code, skip=("files",))
class CodeName(Response):
    """A version's code without the names of its files."""


@fields_from(code.CodeDifference)
class CodeDifference(Response):
    """The codes `a` and `b`, null if not recorded, and the files that differ, null if unknown."""

    a: CodeName | None
    b: CodeName | None


class CodeReport(Response):
    """The code of a run's version. `is_changed`: whether the project's files have changed since; null if that cannot be
    known, and `note` says why."""

    run: str
    version: str
    code: Code | None
    is_changed: bool | None
    difference: CodeDifference | None
    note: str | None


class PreparedVersion(Response):
    """A version for a new run of its workflow."""

    version: str


class RunDifference(Response):
    """What differs is set. If `partial`, the runs are large: `tasks` has only tasks that ended differently, some of them."""

    a: str
    b: str
    workflow: Pair | None
    version: Pair | None
    status: Pair | None
    trigger: Pair | None
    scheduled_for: Pair | None
    error: Pair | None
    params: dict[str, Pair]
    seconds: Durations
    definition: DefinitionDifference | None
    code: CodeDifference | None
    tasks: list[TaskDifference]
    partial: bool


class PreviousSuccess(Response):
    """The last successful run of the workflow before this one."""

    run: Run | None


class VersionDifference(DefinitionDifference):
    a: str
    b: str
    before: dict[str, Any] = Field(description="The definition of `a`.")
    after: dict[str, Any] = Field(description="The definition of `b`.")
    code: CodeDifference | None


class OutputKey(Response):
    """A member of an object; `value` is null if it is long (`is_shown` is false)."""

    name: str
    value: Any
    is_shown: bool


class OutputPreview(Response):
    """`size` is in bytes, null for a fan-out; `length` of a list, object or text, null if it was not read completely.
    A list has `items`, a table also `columns`, an object `keys`, a text `text`; another value is `value`. `is_complete`:
    nothing is left out. Of a value that is not JSON, `stored` is its description, and `preview` what its task's process
    wrote about it."""

    kind: OutputKind
    size: int | None
    length: int | None
    is_complete: bool
    items: list[Any] | None
    columns: list[str] | None
    keys: list[OutputKey] | None
    text: str | None
    value: Any
    stored: Any
    preview: Any


class LogLines(Response):
    """`offsets` are the bytes at which the lines 1, 1 + every, 1 + 2 * every… start. If `is_complete` is false, time ran
    out: they are those of the first `size` bytes."""

    offsets: list[int]
    lines: int
    size: int
    every: int
    is_complete: bool


class LogHit(Response):
    """Lines count from 1. `offset` is the byte at which `text` starts, which is cut if the line is long."""

    line: int
    offset: int
    text: str


class LogSearch(Response):
    """`total` lines have the text. If `is_complete` is false, time ran out after `searched` bytes."""

    hits: list[LogHit]
    total: int
    searched: int
    is_complete: bool


class LogWithHits(LogSearch):
    task: str
    index: int | None
    attempt: int


class RunLogSearch(Response):
    """`logs` are those with hits, each with a few of them; `searched` counts all. With a `cursor` there are more logs."""

    logs: list[LogWithHits]
    searched: int
    total: int
    cursor: str | None


class UiTicket(Response):
    """A ticket that `POST /session` accepts once, until `until`."""

    ticket: str
    until: datetime


class SessionState(Response):
    """Who sends the request. `until`: when the session ends or the token expires. `may` has the operation ids of this
    document that the role allows. `is_session` is false for a request with a token."""

    name: str
    role: Role
    until: datetime | None
    is_session: bool
    version: str
    time: datetime
    may: list[str]


class NewSession(SessionState):
    """`half` is the page's half of the session: send it as `X-Ork-Session` with every request."""

    half: str


class SingleSignOn(Response):
    """A provider that people can sign in with. A browser that opens `url` is sent there."""

    name: str
    url: str


class SignInWays(Response):
    """How people sign in to the web UI, besides with a token."""

    single_sign_on: SingleSignOn | None


class LogLink(Response):
    """An address on this server that works once, until `until`."""

    path: str
    until: datetime


class CheckedWorkflow(Response):
    name: str
    version: str
    tasks: list[str]
