"""What is answered, described for the OpenAPI document. Fields may be added, never changed."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    model_config = ConfigDict(extra="allow")


class Problem(Shape):
    """An error (RFC 9457). `code` never changes its meaning; `ork explain CODE` tells more."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    hint: str | None


class RunShape(Shape):
    """`params` is null in lists, in `last_run` and in events: they may be large. Ask for the run."""

    id: str
    workflow: str
    version: str
    status: str
    trigger: str
    params: dict[str, Any] | None
    scheduled_for: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    error: str | None
    parent: str | None
    note: str | None
    unreadable: str | None


class RunPageShape(Shape):
    runs: list[RunShape]
    cursor: str | None


class AttemptShape(Shape):
    attempt: int
    status: str
    error: str | None
    exit_code: int | None
    dispatched_at: str | None
    started_at: str | None
    finished_at: str | None
    external_name: str | None
    ran_in: dict[str, Any] | None
    metrics: dict[str, float] | None


class TaskShape(Shape):
    name: str
    index: int | None
    status: str
    attempt: int
    executor: str
    depends_on: list[str]
    reason: str | None
    error: str | None
    exit_code: int | None
    dispatched_at: str | None
    started_at: str | None
    finished_at: str | None
    output: Any


class FullTaskShape(TaskShape):
    attempts: list[AttemptShape]


class FullRunShape(RunShape):
    tasks: list[FullTaskShape]


class TasksShape(Shape):
    run: RunShape
    owner: str | None
    tasks: list[TaskShape]
    mark: int
    cursor: str | None


class AttemptsShape(Shape):
    attempts: list[AttemptShape]
    cursor: str | None


class NodeShape(Shape):
    name: str
    executor: str
    depends_on: list[str]
    status: str | None


class GraphShape(Shape):
    nodes: list[NodeShape]


class WhyShape(Shape):
    subject: str
    why: list[str]


class AcceptedShape(Shape):
    accepted: str
    run: RunShape
    command: int


class CommandsShape(Shape):
    commands: list[dict[str, Any]]


class IdsShape(Shape):
    ids: list[str]


class ScheduleShape(Shape):
    cron: str
    timezone: str
    catchup: str
    enabled: bool


class WorkflowShape(Shape):
    name: str
    version: str
    schedule: ScheduleShape | None
    enabled: bool
    origin: str | None
    deployed_at: str
    last_run: RunShape | None


class WorkflowPageShape(Shape):
    workflows: list[WorkflowShape]
    cursor: str | None


class DeployedShape(Shape):
    name: str
    version: str
    new: bool


class DeployedListShape(Shape):
    workflows: list[DeployedShape]


class VersionShape(Shape):
    id: str
    workflow: str
    root: str
    source: str | None
    definition: dict[str, Any]


class VersionEntryShape(Shape):
    id: str
    saved_at: str | None
    source: str | None


class VersionsShape(Shape):
    versions: list[VersionEntryShape]
    cursor: str | None


class SchedulesShape(Shape):
    schedules: list[dict[str, Any]]
    cursor: str | None


class ScheduleStateShape(Shape):
    workflow: str
    enabled: bool


class BackfillShape(Shape):
    created: int
    total: int
    times: list[str] | None


class SchedulerShape(Shape):
    id: str
    kind: str
    identity: str
    started_at: str
    runs: int
    lease_seconds_left: float
    alive: bool
    liveness: str
    notes: list[str]


class SchedulersShape(Shape):
    schedulers: list[SchedulerShape]


class ControlShape(Shape):
    target: str
    mode: str
    by: str
    at: str
    reason: str | None


class ControlsShape(Shape):
    controls: list[ControlShape]


class LocationErrorShape(Shape):
    code: str | None
    message: str
    output: str | None
    digest: str | None


class LocationShape(Shape):
    name: str
    source: str
    status: str
    digest: str | None
    workflows: list[str]
    vanished: list[str]
    looked_at: str | None
    changed_at: str | None
    looking_until: str | None
    next_refresh: str
    error: LocationErrorShape | None


class LocationPageShape(Shape):
    locations: list[LocationShape]
    cursor: str | None


class WorkerShape(Shape):
    name: str
    where: str | None
    cpu: float | None
    memory: int | None
    pids: int | None
    timeout: float | None
    env: list[str]
    host: str | None
    network: str | None
    user: str | None
    read_only: bool
    capabilities: list[str]
    new_privileges: bool
    pull: str
    volumes: list[str]
    service_account: str | None
    vpc_connector: str | None


class WorkerPageShape(Shape):
    workers: list[WorkerShape]
    cursor: str | None


class LimitsShape(Shape):
    limits: list[dict[str, Any]]


class QuarantinedShape(Shape):
    kind: str
    id: str
    reason: str
    since: str | None


class QuarantineShape(Shape):
    quarantined: list[QuarantinedShape]


class TickShape(Shape):
    steps: int
    launched: int
    finished: int
    next_wake: str | None


class WakeShape(Shape):
    woken: str


class TokenShape(Shape):
    id: str
    name: str
    role: str
    created_at: str
    revoked_at: str | None
    expires_at: str | None
    last_used_at: str | None


class NewTokenShape(TokenShape):
    token: str | None


class TokensShape(Shape):
    tokens: list[TokenShape]
    cursor: str | None


class AuditShape(Shape):
    entries: list[dict[str, Any]]
    cursor: str | None


class PrunedShape(Shape):
    runs: list[str]


class HealthShape(Shape):
    status: str
