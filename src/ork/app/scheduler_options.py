"""The options of a scheduler, from the settings: times, limits, and worker configs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ork.app.platforms import placement_options
from ork.app.pricing import pricing_on_demand
from ork.core.limits import EVERYTHING
from ork.core.liveness import LivenessTimeouts
from ork.errors import DefinitionError, UsageError
from ork.model.workflow import Rate, TaskSpec, Version
from ork.scheduler.options import SchedulerOptions
from ork.settings import Settings

if TYPE_CHECKING:
    from ork.model.infra import WorkerConfig
    from ork.telemetry import Telemetry
    from ork.traces.exporter import TraceExporter


# How late a scheduled time may fire and still count as on time. Ticks are called from outside, so they get more.
SERVICE_GRACE, TICK_GRACE = 60.0, 900.0


def scheduler_options(settings: Settings, kind: str) -> SchedulerOptions:
    secrets = settings.secrets
    return SchedulerOptions(
        lease_seconds=settings.lease_seconds,
        renew_seconds=settings.renew_seconds,
        lease_margin_seconds=min(5.0, settings.lease_seconds / 4),
        liveness=LivenessTimeouts(settings.stale_seconds, settings.start_limit_seconds),
        monitor_seconds=min(10.0, settings.stale_seconds / 3),
        stop_grace_seconds=settings.stop_grace_seconds,
        heartbeat_seconds=settings.heartbeat_seconds,
        fence_seconds=settings.fence_seconds,
        durability=settings.durability,
        script_dir=settings.script_dir,
        builds_dir=settings.home,
        task_user=settings.task_user,
        fires_schedules=kind != "run",
        schedule_grace_seconds=settings.schedule_grace_seconds or (TICK_GRACE if kind == "tick" else SERVICE_GRACE),
        wake_url=settings.wake_url,
        wake_look_seconds=settings.wake_look_seconds,
        wake_look_max_seconds=max(settings.wake_look_seconds, settings.wake_look_max_seconds),
        code_hash=_code_hash,
        secrets=secrets.value,
        secrets_ready=secrets.ready,
        worker_for=worker_configs(settings),
        prices=pricing_on_demand(settings),
        **placement_options(settings),
    )


def _code_hash(version: Version, spec: TaskSpec) -> str:
    """A hash of the task's code. Imported here, because only tasks with a `cache` need it."""
    from ork.scheduler.code import code_hash

    return code_hash(version, spec)


def limits_of(settings: Settings) -> dict[str, int]:
    limits = {EVERYTHING: settings.max_workers}
    limits |= {f"pool:{name}": slots for name, slots in settings.pools.items()}
    return limits | {f"executor:{name}": slots for name, slots in settings.executor_limits.items()}


def rates_of(settings: Settings) -> dict[str, Rate]:
    return {f"pool:{name}": rate for name, rate in settings.pool_rates.items()}


def start_traces(settings: Settings, telemetry: Telemetry) -> TraceExporter | None:
    """The trace exporter, if traces are enabled. Missing packages are an error only if the settings require traces, not
    if only OpenTelemetry's variables are set."""
    if settings.disables_traces or not (settings.traces or settings.has_collector):
        return None
    try:
        from ork.traces.exporter import TraceExporter
    except ImportError as error:
        if settings.traces:
            raise UsageError(
                f"traces need packages that are not installed: {error.name}",
                hint="pip install 'ork-orchestrator[traces]'",
            ) from None
        return None
    from ork.telemetry import TelemetryEvent

    traces = TraceExporter(telemetry)
    telemetry.listen(traces, TelemetryEvent.RUN_FINISHED, TelemetryEvent.ATTEMPT_ENDED)
    return traces


def worker_configs(settings: Settings) -> Callable[[TaskSpec], WorkerConfig | None]:
    """A function that returns a task's config from workers.yaml, or raises DefinitionError if that config is invalid."""
    broken = settings.project.broken_workers if settings.project is not None else {}
    if not settings.workers and not broken:
        return lambda _spec: None
    from ork.compile.workers import broken_config, config_for

    def of(spec: TaskSpec) -> WorkerConfig | None:
        why = broken_config(spec, broken)
        if why is not None:
            raise DefinitionError(why, hint="correct workers.yaml, then retry the run")
        return config_for(spec, settings.workers)

    return of
