"""Where a project's tasks can run: settings in, executors out."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from ork.app.stores import create_home
from ork.errors import DefinitionError, StoreError, UsageError
from ork.executors.executor import CONTAINER_TRAITS
from ork.executors.fork_servers import ForkServers
from ork.executors.local import LocalExecutor
from ork.executors.on_demand import OnDemand
from ork.fallbacks import JOURNAL
from ork.model.ids import RunId, TaskKey
from ork.model.workflow import Isolation
from ork.objects.opening import JOURNAL as JOURNAL_URL
from ork.objects.opening import root_of_url

if TYPE_CHECKING:
    from ork.executors.executor import Executor
    from ork.fallbacks import Fallbacks
    from ork.model.infra import WorkerConfig
    from ork.model.task import Attempt
    from ork.model.workflow import TaskSpec
    from ork.objects.attempt_documents import AttemptDocuments
    from ork.settings import Settings
    from ork.state.reading import StateReader

CONTAINER = "container"
# What a process without root needs to run tasks as another user, to hand files over, and to watch and stop the tasks.
_CAPABILITIES = {
    "CAP_SETUID": 7, "CAP_SETGID": 6, "CAP_CHOWN": 0, "CAP_KILL": 5, "CAP_DAC_OVERRIDE": 1, "CAP_SYS_PTRACE": 19,
}  # fmt: skip
EngineKey: TypeAlias = tuple[str | None, str | None]  # its address and the folder of its certificates, as far as given


def executors_of(
    settings: Settings,
    objects: AttemptDocuments,
    store: StateReader,
    *,
    expects_work: bool = False,
    attends: bool = False,
    fallbacks: Fallbacks | None = None,
) -> dict[str, Executor]:
    """By the names that tasks say. Whoever gets them closes them. `expects_work`: soon, so a worker is made ahead.
    `attends`: containers that were started from here are looked after, whoever owns their runs."""
    # Custom executors are classes that its workers load: here they differ in their names (and limits) alone.
    from ork.compile.custom import custom_executors

    make = partial(
        LocalExecutor,
        documents=objects,
        isolation=Isolation(settings.isolation),
        servers=ForkServers(fallbacks),
        pass_env=settings.pass_env,
    )
    functions = make("python")
    if expects_work:
        functions.expect(settings.root)
    engines = _known_engines(settings) if attends else []
    containers = OnDemand(CONTAINER, lambda: _containers(settings, objects, store, engines), CONTAINER_TRAITS)
    if engines:
        containers.make()
    made: dict[str, Executor] = {
        "process": make("process", uses_project_python=False),
        "python": functions,
        "rust": make("rust", uses_project_python=False),
        CONTAINER: containers,
    }
    return made | {name: make(name) for name in custom_executors(settings.project)}


def note_plain_files(settings: Settings, objects: AttemptDocuments, fallbacks: Fallbacks) -> None:
    """A journal was asked for, and the folder cannot have one."""
    if settings.objects.startswith(JOURNAL_URL) and objects.kind != "journal":
        why = "it held files before, or its file system is not known to append atomically"
        fallbacks.note(JOURNAL, f"documents of attempts are files of their own in {root_of_url(objects.url)}: {why}")


def worker_configs(settings: Settings) -> Callable[[TaskSpec], WorkerConfig | None]:
    """The config a task runs with, from workers.yaml; DefinitionError if there is a mistake in that one."""
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


def _containers(
    settings: Settings, objects: AttemptDocuments, store: StateReader, engines: list[EngineKey]
) -> Executor:
    """Nothing of it is loaded before the first task with an image comes along, unless one did before."""
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
    made.attend(engines)
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
    """Engines that containers were started on from here, by an earlier process perhaps."""
    try:
        with open(_engines_file(settings), encoding="utf-8") as file:
            return [(host, certificates) for host, certificates in json.load(file)]
    except (OSError, ValueError, TypeError):
        return []


def _remember_engines(settings: Settings, engines: list[EngineKey]) -> None:
    """Where the store and the objects are elsewhere, this file may be the first thing that is kept in `.ork`."""
    known = _known_engines(settings)
    new = [engine for engine in engines if engine not in known]
    if not new:
        return
    with contextlib.suppress(OSError, StoreError):
        create_home(settings)
        with open(_engines_file(settings), "w", encoding="utf-8") as file:
            json.dump([*known, *new], file)


def check_task_user(name: str | None) -> None:
    """UsageError if there is no such user, or this process cannot run anything as it. Said when a scheduler starts: a task
    never runs as somebody else than it should."""
    if name is None:
        return
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
    """Of those that running tasks as another user needs; none for root."""
    if os.geteuid() == 0:
        return []
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            effective = next(int(line.split()[1], 16) for line in file if line.startswith("CapEff:"))
    except (OSError, StopIteration):
        effective = 0
    return [name for name, bit in _CAPABILITIES.items() if not effective >> bit & 1]
