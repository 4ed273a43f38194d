"""The responses of the HTTP API, for the OpenAPI document. Fields may be added, never changed.

Models of stored rows take their fields from the row's own class (`fields_from`). A response with a field that its model
does not name is a defect; the API's tests check every response.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, create_model

from ork.api.failure_models import FailureDetail
from ork.core import cost
from ork.model import access, code, installation, quarantine, run, task, workflow
from ork.model.json_fields import fields_of
from ork.model.notice import NoticeKind
from ork.model.record import Record
from ork.model.run import CommandKind, RunStatus, SchedulerKind
from ork.model.task import TaskStatus
from ork.model.workflow import Catchup
from ork.status.cost import CostReport
from ork.status.param_fields import FieldKind
from ork.status.reasons import ReasonCode
from ork.status.schedulers import Liveness

M = TypeVar("M", bound=BaseModel)


class Response(BaseModel):
    model_config = ConfigDict(extra="forbid")


def fields_from(record: type[Record], skip: Collection[str] = ()) -> Callable[[type[M]], type[M]]:
    """Adds the record's fields, in their JSON form, to a model. Fields that the model declares itself are kept."""

    def add(model: type[M]) -> type[M]:
        own = set(model.model_fields) | set(skip)
        fields: dict[str, Any] = {
            field.name: (_json_type(field.type, field.is_optional), ...)
            for field in fields_of(record)
            if field.name not in own
        }
        return create_model(model.__name__, __base__=model, __doc__=model.__doc__, __module__=__name__, **fields)

    return add


def _json_type(kind: Any, is_optional: bool) -> Any:
    if get_origin(kind) is tuple:
        kind = list[_json_type(get_args(kind)[0], False)]  # type: ignore[misc]
    elif isinstance(kind, type) and issubclass(kind, Record):
        kind = _NESTED[kind]
    else:
        kind = getattr(kind, "__supertype__", kind)
    return kind | None if is_optional else kind


class ProblemDetails(Response):
    """An error (RFC 9457). `code` never changes its meaning; `ork explain CODE` describes it."""

    model_config = ConfigDict(extra="allow")  # 409 adds the current run, 422 the problems of a definition

    type: str
    title: str
    status: int
    code: str
    detail: str
    hint: str | None


@fields_from(task.Failure)
class Failure(Response):
    """Why an attempt or task failed."""

    detail: FailureDetail | None


@fields_from(workflow.Schedule)
class Schedule(Response): ...


@fields_from(task.GroupPlace)
class GroupPlace(Response):
    """The place of an attempt that a platform started as one of a group: `parallelism` of the group run at the same time."""


@fields_from(cost.TaskCost)
class TaskCost(Response):
    """The attempts of a task together. `usd` is the part that is known; `unknown` counts the attempts that are not in it.
    Sizes and times that are not known are null."""


@fields_from(cost.OperationCost)
class OperationCost(Response):
    """Operations of one kind, multiplied from counted figures. `usd` is null if they have no price."""


_NESTED: dict[type[Record], type[BaseModel]] = {
    cost.TaskCost: TaskCost,
    cost.OperationCost: OperationCost,
    task.Failure: Failure,
    task.GroupPlace: GroupPlace,
    workflow.Schedule: Schedule,
}


@fields_from(run.Run)
class Run(Response):
    """`params` is null in lists, in `last_run` and in events, because they may be large. Get the run to read them."""

    params: dict[str, Any] | None


class Progress(Response):
    """Tasks that have ended, of all; a fan-out counts as its instances."""

    done: int
    total: int


class ListedRun(Run):
    """`progress` is set with `counts=true`, for the first 100 runs of a page."""

    progress: Progress | None


class RunPage(Response):
    """`count` is set with `counts=true`: the runs on all pages, at most 1000. If `count_is_exact` is false, there are or may
    be more. `partial`: some runs that match are on no page."""

    runs: list[ListedRun]
    cursor: str | None
    count: int | None
    count_is_exact: bool | None
    partial: bool


class RanIn(Response):
    """Where an attempt ran: its process, or its container."""

    host: str | None = None
    pid: int | None = None
    container: str | None = None
    image: str | None = None
    digest: str | None = None
    engine: str | None = None


@fields_from(task.Attempt, skip=("key", "token_hash"))
class Attempt(Response):
    """`waits_for` names the external jobs that the attempt waits for."""

    ran_in: RanIn | None

    task: str
    index: int | None
    attempt: int
    external_name: str | None
    waits_for: list[str] | None
    error: str | None


@fields_from(task.Task, skip=("key",))
class Task(Response):
    """A fan-out has a row of its own, with `instances` and `width`, in addition to those of its instances.

    A large output is null here, and `output_size` is its size; `GET …/output` returns it.
    """

    name: str
    index: int | None
    item: Any
    width: Any
    depends_on: list[str]
    cause: str | None
    error: str | None
    output: Any
    output_size: int | None


class TaskWithAttempts(Task):
    attempts: list[Attempt]


class RunWithTasks(Run):
    owner: str | None
    tasks: list[TaskWithAttempts]


class TaskPage(Response):
    """`mark` is the next `since`."""

    run: Run
    owner: str | None
    tasks: list[Task]
    mark: str
    cursor: str | None


class AttemptPage(Response):
    attempts: list[Attempt]
    cursor: str | None


class GraphNode(Response):
    """`instances` counts the instances of a fan-out by status."""

    name: str
    executor: str
    depends_on: list[str]
    status: TaskStatus | None
    instances: dict[TaskStatus, int] | None


class Graph(Response):
    nodes: list[GraphNode]


class Reference(Response):
    """A run, or a task of it."""

    run: str
    task: str | None
    index: int | None


class WhyItem(Response):
    """One sentence of the answer. `task` and `index`: the task that the sentence is about; null if it is about the subject.
    `until`: when that ends at the latest, or the next attempt starts. `refs`: who is waited for, or holds the slots."""

    code: ReasonCode
    text: str
    until: datetime | None
    task: str | None
    index: int | None
    refs: list[Reference]


class Explanation(Response):
    """`why` has the texts of `items`."""

    subject: str
    why: list[str]
    items: list[WhyItem]


@fields_from(CostReport)
class RunCost(Response):
    """What a run has cost until now, in US dollars: always an estimate, from list prices of `prices_date`. `usd` is the part
    that is known; it is all if `is_complete`."""


class AcceptedCommand(Response):
    accepted: CommandKind
    run: Run
    command: str


class PendingCommand(Response):
    id: str
    kind: CommandKind
    by: str
    task: str | None


class PendingCommands(Response):
    commands: list[PendingCommand]


class RunIds(Response):
    ids: list[str]


@fields_from(workflow.WorkflowEntry)
class Workflow(Response):
    last_run: Run | None


class WorkflowWithDefinition(Workflow):
    """`definition` is null if its version cannot be read."""

    definition: dict[str, Any] | None


class ParamField(Response):
    """A param as the field of a form. `type` is as written; `kind` says how to enter a value, one of `choices` if it is a
    choice. The default of a sensitive param is not shown."""

    name: str
    type: str
    kind: FieldKind
    choices: list[Any] | None
    may_be_null: bool
    required: bool
    default: Any
    description: str | None
    sensitive: bool


class WorkflowParams(Response):
    """The params of the current version."""

    workflow: str
    version: str
    params: list[ParamField]


class WorkflowPage(Response):
    workflows: list[Workflow]
    cursor: str | None


class DeployedWorkflow(Response):
    name: str
    version: str
    new: bool


class DeployedWorkflows(Response):
    workflows: list[DeployedWorkflow]


@fields_from(code.Code)
class Code(Response):
    """The project's files when the version was made: a hash of all, and of each by name, unless the names are too long."""


class Version(Response):
    id: str
    workflow: str
    root: str
    source: str | None
    definition: dict[str, Any]
    code: Code | None


@fields_from(workflow.VersionEntry)
class VersionEntry(Response):
    pass


class VersionPage(Response):
    versions: list[VersionEntry]
    cursor: str | None


class UpcomingSchedule(Response):
    """A schedule and its next times; `next_fire` is when it actually fires, including jitter."""

    workflow: str
    cron: str
    timezone: str
    catchup: Catchup
    enabled: bool
    next: list[datetime]
    jitter: float
    next_fire: datetime | None
    version: str


class SchedulePage(Response):
    schedules: list[UpcomingSchedule]
    cursor: str | None


class ScheduleState(Response):
    workflow: str
    enabled: bool


class BackfillTime(Response):
    """A time that would get a new run, or that has one."""

    time: datetime
    state: Literal["new", "exists"]
    run: str | None
    status: RunStatus | None


class Backfill(Response):
    """`times` and `plan` are set for a dry run only."""

    created: int
    total: int
    times: list[datetime] | None
    plan: list[BackfillTime] | None


class Scheduler(Response):
    """`liveness` is alive, unverified (idle, cannot be checked from the server) or dead. `kind` is a service, a command that
    ends with its own run, one pass by `ork tick`, or `ork store copy`."""

    id: str
    kind: SchedulerKind
    identity: str
    started_at: datetime
    runs: int
    lease_seconds_left: float
    liveness: Liveness
    notes: list[str]


class ListedScheduler(Scheduler):
    alive: bool


class Schedulers(Response):
    schedulers: list[ListedScheduler]


@fields_from(installation.Control)
class Control(Response):
    pass


class Controls(Response):
    controls: list[Control]


class LocationError(Response):
    code: str | None
    message: str
    output: str | None
    digest: str | None


class Location(Response):
    name: str
    source: str
    status: Literal["new", "looking", "ok", "failed"]
    digest: str | None
    workflows: list[str]
    vanished: list[str]
    looked_at: datetime | None
    changed_at: datetime | None
    looking_until: datetime | None
    next_refresh: datetime
    error: LocationError | None


class LocationPage(Response):
    locations: list[Location]
    cursor: str | None


class SlotHolder(Response):
    run: str
    task: str
    index: int | None
    attempt: int


class LimitUse(Response):
    name: str
    slots: int
    used: int


class Limit(LimitUse):
    holders: list[SlotHolder]


class Limits(Response):
    limits: list[Limit]


@fields_from(quarantine.Quarantined)
class QuarantinedItem(Response):
    pass


class Quarantine(Response):
    quarantined: list[QuarantinedItem]


class TaskSince(Response):
    run: str
    task: str
    since: datetime
    seconds: float


class UnsentAlert(Response):
    id: str
    kind: NoticeKind
    workflow: str | None
    run: str | None
    task: str | None
    index: int | None
    raised_at: datetime
    tries: int
    error: str | None
    retry_at: datetime | None


class InstallationStatus(Response):
    """`waiting` counts tasks that are ready but have no free slot or no scheduler."""

    is_disk_full: bool
    schedulers: list[Scheduler]
    controls: list[Control]
    unfinished: dict[RunStatus, int]
    runs: list[Run]
    limits: list[LimitUse]
    waiting: int
    oldest_waiting: TaskSince | None
    slowest: TaskSince | None
    unsent_alerts: list[UnsentAlert]
    quarantined: list[QuarantinedItem]


class TickReport(Response):
    steps: int
    launched: int
    finished: int
    next_wake: datetime | None


class Woken(Response):
    woken: Literal["scheduler", "alarm", "tick"]


class ObjectsAbout(Response):
    id: str | None
    kind: str
    installation: str
    version: str


class ObjectSize(Response):
    size: int | None


class ObjectWritten(Response):
    is_written: bool


class ObjectKeys(Response):
    keys: list[str]


@fields_from(access.Token, skip=("digest",))
class Token(Response):
    pass


class NewToken(Token):
    """`token` is shown once."""

    token: str | None


class TokenPage(Response):
    tokens: list[Token]
    cursor: str | None


@fields_from(access.AuditEntry)
class AuditEntry(Response):
    detail: Any


class AuditPage(Response):
    entries: list[AuditEntry]
    cursor: str | None


class PrunedRuns(Response):
    runs: list[str]


class Health(Response):
    status: Literal["ok", "ready"]
