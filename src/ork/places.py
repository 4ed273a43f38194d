"""Where a project's tasks can run: settings in, executors out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ork.errors import DefinitionError
from ork.executors.fork_servers import ForkServers
from ork.executors.local import LocalExecutor
from ork.executors.on_demand import OnDemand
from ork.model.workflow import Isolation
from ork.objects.attempts import AttemptDocuments

if TYPE_CHECKING:
    from ork.executors.executor import Executor
    from ork.model.infra import WorkerConfig
    from ork.model.workflow import TaskSpec
    from ork.objects.local import LocalObjects
    from ork.settings import Settings

CONTAINER = "container"


def executors_of(settings: Settings, objects: LocalObjects, *, expects_work: bool = False) -> dict[str, Executor]:
    """By the names that tasks say. Whoever gets them closes them. `expects_work`: soon, so a worker is made ahead."""
    # Custom executors are classes that its workers load: here they differ in their names (and limits) alone.
    from ork.compile.custom import custom_executors

    make = partial(
        LocalExecutor,
        documents=AttemptDocuments(objects),
        isolation=Isolation(settings.isolation),
        servers=ForkServers(),
    )
    functions = make("python")
    if expects_work:
        functions.expect(settings.root)
    made: dict[str, Executor] = {
        "process": make("process", uses_project_python=False),
        "python": functions,
        "rust": make("rust", uses_project_python=False),
        CONTAINER: OnDemand(CONTAINER, lambda: _containers(settings, objects), vouches=True),
    }
    return made | {name: make(name) for name in custom_executors(settings.project)}


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


def _containers(settings: Settings, objects: LocalObjects) -> Executor:
    """Nothing of it is loaded before the first task with an image comes along."""
    from ork.executors.docker.executor import DockerExecutor
    from ork.scheduler.spec_secrets import mask_of
    from ork.worker.stand_in import StandIn, is_left_over

    return DockerExecutor(
        CONTAINER,
        lambda attempt: StandIn(objects, attempt),
        objects.url,
        is_left_over=lambda attempt: is_left_over(objects, attempt),
        host=settings.docker_host,
        certificates=settings.docker_certificates,
        logins=settings.docker_config,
        find_mask=partial(mask_of, secrets=partial(settings.secrets.value, waits=True)),
    )
