"""The settings of a scheduler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from ork.core.liveness import LivenessTimeouts
from ork.errors import UndeclaredSecretError
from ork.model.ids import AttemptKey
from ork.model.infra import WorkerConfig
from ork.model.record import Record, made
from ork.model.workflow import CompiledWorkflow, TaskSpec, Version

if TYPE_CHECKING:
    from ork.core.cost import PriceList


def _no_secrets(name: str, _workflow: str) -> str:
    raise UndeclaredSecretError(f"the project declares no secret `{name}`")


async def _are_ready(_wanted: Iterable[tuple[str, str]]) -> None:
    return None


def _no_code(_version: Version, _spec: TaskSpec) -> str:
    return ""


def _no_config(_spec: TaskSpec) -> WorkerConfig | None:
    return None


class SchedulerOptions(Record):
    """Intervals are upper bounds that apply when no event arrives; events wake the loop at once."""

    lease_seconds: float = 60.0
    renew_seconds: float = 30.0
    lease_margin_seconds: float = 5.0  # a scheduler treats its lease as expired this much before the store does
    liveness: LivenessTimeouts = made(default_factory=LivenessTimeouts)
    monitor_seconds: float = 10.0
    close_grace_seconds: float = 0.0  # > 0 where documents become visible late
    stop_grace_seconds: float = 10.0
    heartbeat_seconds: float = 10.0
    fence_seconds: float = 45.0
    max_claimed_runs: int = 100
    launch_batch: int = 200
    inline_limit: int = 64 * 1024
    output_limit: int = 256 * 1024 * 1024
    durability: str = "normal"
    script_dir: str | None = None
    builds_dir: str = ".ork"  # where environments and programs of tasks are built
    task_user: str | None = None  # the user that local tasks run as; None: the scheduler's
    fires_schedules: bool = True
    schedule_grace_seconds: float = 60.0  # a scheduled time older than this was missed
    wake_url: str | None = None  # URL that a worker calls at its end, to wake a sleeping control plane
    wake_look_seconds: float = 60.0  # with `wake_url`: first interval between checks of a worker by ticks
    wake_look_max_seconds: float = 600.0
    value_limit: int = 64 * 1024 * 1024  # of a value that a condition or a fan-out uses
    code_hash: Callable[[Version, TaskSpec], str] = _no_code
    secrets: Callable[[str, str], str] = _no_secrets  # name and workflow → value, or a SecretError
    secrets_ready: Callable[[Iterable[tuple[str, str]]], Awaitable[None]] = (
        _are_ready  # fetches secrets that are not available at once
    )
    traceparent: Callable[[AttemptKey], str | None] | None = None  # parent of the attempt's own spans
    worker_for: Callable[[TaskSpec], WorkerConfig | None] = _no_config  # from workers.yaml
    placed: Callable[[CompiledWorkflow], CompiledWorkflow] | None = None  # with the executors that its tasks get here
    # What a task on a platform adds to `container` of its spec: `cloud_run` or `kubernetes`.
    platform: Callable[[TaskSpec, Version], dict[str, Any] | None] | None = None
    prices: Callable[[], PriceList | None] | None = None  # for runs with a budget; without them budgets have no effect
