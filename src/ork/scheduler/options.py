"""Everything about a scheduler that can be set."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from ork.core.liveness import LivenessTimeouts
from ork.errors import UndeclaredSecretError
from ork.model.ids import AttemptKey
from ork.model.infra import WorkerConfig
from ork.model.record import Record, made
from ork.model.workflow import TaskSpec, Version


def _no_secrets(name: str, _workflow: str) -> str:
    raise UndeclaredSecretError(f"the project declares no secret `{name}`")


async def _are_ready(_wanted: Iterable[tuple[str, str]]) -> None:
    return None


def _no_code(_version: Version, _spec: TaskSpec) -> str:
    return ""


def _no_trace(_attempt: AttemptKey) -> str | None:
    return None


def _no_config(_spec: TaskSpec) -> WorkerConfig | None:
    return None


def _own_interpreter(_root: str) -> str | None:
    return None


class SchedulerOptions(Record):
    """Seconds are upper bounds for when no event arrives; events wake the loop at once."""

    lease_seconds: float = 60.0
    renew_seconds: float = 30.0
    lease_margin_seconds: float = 5.0  # we stop trusting our own lease this much before the store would
    liveness: LivenessTimeouts = made(default_factory=LivenessTimeouts)
    monitor_seconds: float = 10.0
    close_grace_seconds: float = 0.0  # > 0 where documents become visible late
    stop_grace_seconds: float = 10.0
    heartbeat_seconds: float = 10.0
    fence_seconds: float = 45.0
    claim_room: int = 100
    launch_batch: int = 200
    inline_limit: int = 64 * 1024
    output_limit: int = 256 * 1024 * 1024
    durability: str = "normal"
    script_dir: str | None = None
    builds_dir: str = ".ork"  # where environments and programs are built that tasks need
    task_user: str | None = None  # whom local tasks run as; None: as the scheduler
    fires_schedules: bool = True
    schedule_grace_seconds: float = 60.0  # a time that is later than this was missed
    wake_url: str | None = None  # what a worker calls when it has ended, to wake a control plane that sleeps
    wake_look_seconds: float = 60.0  # where workers call: how soon a tick looks at one again, at first and at most
    wake_look_max_seconds: float = 600.0
    value_limit: int = 64 * 1024 * 1024  # of a value that a condition or a fan-out looks at
    code_hash: Callable[[Version, TaskSpec], str] = _no_code
    secrets: Callable[[str, str], str] = _no_secrets  # name and workflow → value, or a SecretError
    secrets_ready: Callable[[Iterable[tuple[str, str]]], Awaitable[None]] = _are_ready  # gets what takes a moment
    traceparent: Callable[[AttemptKey], str | None] = _no_trace  # what the spans of the attempt itself hang below
    worker_for: Callable[[TaskSpec], WorkerConfig | None] = _no_config  # from workers.yaml
    interpreter_for: Callable[[str], str | None] = _own_interpreter  # a version's root → the user's Python
