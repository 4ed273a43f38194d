"""The options of a scheduler, from the settings: times, limits, and where the tasks of a project run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ork.app.pricing import pricing_on_demand
from ork.core.limits import EVERYTHING
from ork.core.liveness import LivenessTimeouts
from ork.errors import DefinitionError, UsageError
from ork.model.workflow import Rate, TaskSpec, Version
from ork.scheduler.options import SchedulerOptions
from ork.settings import Settings

if TYPE_CHECKING:
    from ork.compile.placement import Placement
    from ork.model.infra import WorkerConfig
    from ork.model.workflow import CompiledWorkflow
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


def uses_cloud_run(settings: Settings) -> bool:
    """Whether tasks of the project may run on Cloud Run. Imports nothing for projects that do not."""
    project = settings.project
    if project is None:
        return False
    return project.gcp is not None or any(
        where == "cloudrun" for where in (project.default_where, *(each.where for each in settings.workers.values()))
    )


def placement_of(settings: Settings) -> Placement:
    from ork.compile.placement import Placement

    return Placement(settings.project_or_default)


def cloud_run_document(settings: Settings) -> dict[str, Any]:
    """The settings on Cloud Run of what runs in the image of a code location without a worker config."""
    from ork.model.infra import WorkerConfig

    return _document(settings.workers.get("default") or WorkerConfig("default", None), has_ork=True, secrets={})


def _document(config: WorkerConfig, *, has_ork: bool, secrets: dict[str, str]) -> dict[str, Any]:
    return {
        "service_account": config.service_account,
        "vpc_connector": config.vpc_connector,
        "network": config.network,
        "subnet": config.subnet,
        "gpu": None if config.gpu is None else str(config.gpu),
        "has_ork": has_ork,
        "secrets": secrets,
    }


def placement_options(settings: Settings) -> dict[str, Any]:
    """Options of a scheduler: `placed` and `cloud_run` (see `SchedulerOptions`)."""
    if not uses_cloud_run(settings):
        return {}
    from ork.model.cloud_run import is_on_cloud_run
    from ork.model.infra import IMAGE_ROOT, WorkerConfig
    from ork.model.secret import named_secrets
    from ork.scheduler.spec_secrets import SECRET_PREFIX

    placement, secrets = placement_of(settings), settings.secrets
    project = placement.usual.project if placement.usual is not None else None

    def cloud_run(spec: TaskSpec, version: Version) -> dict[str, Any] | None:
        if not is_on_cloud_run(spec.executor):
            return None
        problem = placement.problem(spec)
        if problem is not None:
            raise DefinitionError(f"{problem[0]}: {problem[1]}")
        config = placement.config(spec) or WorkerConfig("default", None)
        in_location = version.root.startswith(IMAGE_ROOT) and (version.source or "").startswith(f"{spec.image}:")
        workflow = version.workflow.name
        references = {SECRET_PREFIX + name: secrets.reference(name, workflow, project) for name in named_secrets(spec)}
        return _document(config, has_ork=in_location, secrets=references)

    placed: Callable[[CompiledWorkflow], CompiledWorkflow] = placement.workflow
    return {"placed": placed, "cloud_run": cloud_run}
