"""Creates the executors of a project from its settings."""

from __future__ import annotations

import contextlib
import json
import os
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from ork.app.platforms import placement_of, uses_cloud_run, uses_kubernetes
from ork.app.stores import create_home
from ork.errors import StoreError, UsageError
from ork.executors.executor import CONTAINER_TRAITS, PLATFORM_TRAITS, OnDemand
from ork.executors.fork_servers import ForkServers
from ork.executors.local import LocalExecutor
from ork.model.ids import RunId, TaskKey
from ork.model.workflow import Isolation
from ork.objects.opening import JOURNAL as JOURNAL_URL
from ork.objects.opening import root_of_url
from ork.system import system
from ork.telemetry import JOURNAL

if TYPE_CHECKING:
    from ork.executors.executor import Executor
    from ork.model.cloud_run import Place
    from ork.model.kubernetes import KubernetesPlace
    from ork.model.task import Attempt
    from ork.objects.attempt_documents import AttemptDocuments
    from ork.settings import Settings
    from ork.state.reading import StateReader
    from ork.telemetry import Fallbacks

CONTAINER = "container"
# Needed without root to run tasks as another user, to change the owner of files, and to watch and stop tasks.
_CAPABILITIES = {
    "CAP_SETUID": 7, "CAP_SETGID": 6, "CAP_CHOWN": 0, "CAP_KILL": 5, "CAP_DAC_OVERRIDE": 1, "CAP_SYS_PTRACE": 19,
}  # fmt: skip
EngineKey: TypeAlias = tuple[str | None, str | None]  # address and folder of certificates; None: the default


def executors_of(
    settings: Settings,
    objects: AttemptDocuments,
    store: StateReader,
    *,
    expects_work: bool = False,
    watches_containers: bool = False,
    waits_for_platforms: bool = False,
    fallbacks: Fallbacks | None = None,
) -> dict[str, Executor]:
    """The executors by name (see `ork.definition.custom.EXECUTORS`); the caller closes them. `expects_work`: a worker is started in advance.
    `watches_containers`: containers started by this project are watched, even if other schedulers own their runs.
    `waits_for_platforms`: for a tick, which ends soon."""
    # Custom executors are classes that workers load; for a scheduler they differ only in name and limits.
    from ork.definition.custom import custom_executors

    make = partial(
        LocalExecutor,
        documents=objects,
        isolation=Isolation(settings.isolation),
        servers=ForkServers(fallbacks, settings.preload),
        pass_env=settings.worker_env,
    )
    functions = make("python")
    if expects_work:
        functions.expect(settings.root)
    engines = _known_engines(settings) if watches_containers else []
    containers = OnDemand(CONTAINER, lambda: _containers(settings, objects, store, engines), CONTAINER_TRAITS)
    if engines:
        containers.make()
    made: dict[str, Executor] = {
        "process": make("process", uses_project_python=False),
        "python": functions,
        "rust": make("rust", uses_project_python=False),
        CONTAINER: containers,
    }
    if uses_cloud_run(settings):
        made |= _cloud_run(settings, objects, store, waits_for_platforms)
    if uses_kubernetes(settings):
        sweeps = watches_containers and not waits_for_platforms
        made |= _kubernetes(settings, objects, store, waits_for_platforms, sweeps)
    return made | {name: make(name) for name in custom_executors(settings.project)}


def _cloud_run(settings: Settings, objects: AttemptDocuments, store: StateReader, waits: bool) -> dict[str, Executor]:
    """One executor for each place on Cloud Run that tasks may run in, created for the first of them."""
    from ork.model.cloud_run import executor_name

    placement = placement_of(settings)

    def make(name: str, place: Place) -> Executor:
        from ork.app.cloud_run import executor_for

        return executor_for(name, place, settings, objects, partial(_attempt_of, store), waits=waits)

    names = {executor_name(place, placement.usual): place for place in placement.places()}
    return {name: OnDemand(name, partial(make, name, place), PLATFORM_TRAITS) for name, place in names.items()}


def _kubernetes(
    settings: Settings, objects: AttemptDocuments, store: StateReader, waits: bool, sweeps: bool
) -> dict[str, Executor]:
    """One executor for each namespace on Kubernetes that tasks may run in, created for the first of them; with `sweeps` now, to remove
    what earlier schedulers left."""
    from ork.model.kubernetes import cluster_executor

    placement = placement_of(settings)

    def make(name: str, place: KubernetesPlace) -> Executor:
        from ork.app.kubernetes import executor_for
        from ork.executors.unusable import UnusableExecutor

        try:
            made = executor_for(name, place, settings, objects, partial(_attempt_of, store), waits=waits)
        except UsageError as problem:
            return UnusableExecutor(name, problem)
        if sweeps:
            made.sweep_soon()
        return made

    names = {cluster_executor(place, placement.cluster.place): place for place in placement.namespaces()}
    found = {name: OnDemand(name, partial(make, name, place), PLATFORM_TRAITS) for name, place in names.items()}
    if sweeps:
        for executor in found.values():
            executor.make()
    return {**found}


def note_missing_journal(settings: Settings, objects: AttemptDocuments, fallbacks: Fallbacks) -> None:
    """Notes a fallback if a journal is configured but the folder cannot have one."""
    if settings.objects.startswith(JOURNAL_URL) and objects.kind != "journal" and system.HAS_JOURNALS:
        why = "it contained files before, or its file system may not append atomically"
        fallbacks.note(JOURNAL, f"documents of attempts are separate files in {root_of_url(objects.url)}: {why}")


def _containers(
    settings: Settings, objects: AttemptDocuments, store: StateReader, engines: list[EngineKey]
) -> Executor:
    """The container executor. It is loaded for the first task with an image, or if engines were used before."""
    from ork.executors.docker.executor import DockerExecutor
    from ork.scheduler.spec_secrets import mask_of
    from ork.worker.supervise.stand_in import StandIn, is_left_over

    made = DockerExecutor(
        CONTAINER,
        lambda attempt: StandIn(objects, attempt),
        objects.url,
        is_left_over=lambda attempt: is_left_over(objects, attempt),
        host=settings.docker_host,
        certificates=settings.docker_certificates,
        logins=settings.docker_config,
        find_mask=partial(mask_of, secrets=partial(settings.secrets.value, waits=True)),
        attempt_of=partial(_attempt_of, store),
        on_engines=partial(_remember_engines, settings),
    )
    made.sweep_engines(engines)
    return made


async def _attempt_of(store: StateReader, text: str) -> Attempt | None:
    """The row of the attempt that a container's label names."""
    run, name, *_ = text.split("/")
    for index in (None, *(int(part) for part in text.split("/")[2:3] if part.isdigit())):
        for attempt in await store.list_attempts(RunId(run), TaskKey(name, index)):
            if str(attempt.key) == text:
                return attempt
    return None


def _engines_file(settings: Settings) -> str:
    return os.path.join(settings.home, "engines.json")


def _known_engines(settings: Settings) -> list[EngineKey]:
    """Container engines that this project has used, also in earlier processes."""
    try:
        with open(_engines_file(settings), encoding="utf-8") as file:
            return [(host, certificates) for host, certificates in json.load(file)]
    except (OSError, ValueError, TypeError):
        return []


def _remember_engines(settings: Settings, engines: list[EngineKey]) -> None:
    """Stores the engines in `.ork`, which may not exist yet if the store and the objects are in other folders."""
    known = _known_engines(settings)
    new = [engine for engine in engines if engine not in known]
    if not new:
        return
    with contextlib.suppress(OSError, StoreError):
        create_home(settings)
        with open(_engines_file(settings), "w", encoding="utf-8") as file:
            json.dump([*known, *new], file)


def check_task_user(name: str | None) -> None:
    """UsageError if the user does not exist, or this process cannot run tasks as it. Checked when a scheduler starts, so
    that a task never runs as a wrong user."""
    if name is None:
        return
    if not system.HAS_TASK_USERS:
        raise UsageError(
            "task_user: only Linux can run tasks as another user", hint="remove task_user, or use a container"
        )
    from ork.worker.supervise.confinement import TaskUserError
    from ork.worker.supervise.task_user import TaskUser

    try:
        user = TaskUser(name)
    except TaskUserError as error:
        raise UsageError(str(error)) from None
    missing = _missing_capabilities() if user.uid != os.getuid() else []
    if missing:
        raise UsageError(
            f"task_user: this process may not run tasks as `{user.name}`: it lacks {', '.join(missing)}",
            hint="start it as root, or give the service these capabilities (systemd: the drop-in "
            "deploy/systemd/task-user.conf); or remove task_user (see docs/security.md)",
        )


def _missing_capabilities() -> list[str]:
    """The missing capabilities for running tasks as another user; none for root."""
    if os.geteuid() == 0:
        return []
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            effective = next(int(line.split()[1], 16) for line in file if line.startswith("CapEff:"))
    except (OSError, StopIteration):
        effective = 0
    return [name for name, bit in _CAPABILITIES.items() if not effective >> bit & 1]
