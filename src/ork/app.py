"""The composition root: settings in, wired services out. Backends are known here and nowhere else."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from ork.core.limits import EVERYTHING
from ork.errors import StoreError, UsageError
from ork.model.ids import RunId, SchedulerId
from ork.objects.local import LocalObjects, root_of_url
from ork.settings import Settings
from ork.state.store import StateStore

if TYPE_CHECKING:
    from ork.executors.executor import Executor
    from ork.scheduler.options import SchedulerOptions
    from ork.scheduler.poll import Poller
    from ork.scheduler.service import SchedulerService
    from ork.scheduler.waiting import Waiting

OnCommit = Callable[[Sequence[RunId]], None]


class Installation:
    """A store, its objects, and whatever was opened on top of them; `close` lets go of it all."""

    def __init__(self, settings: Settings, store: StateStore, objects: LocalObjects) -> None:
        self.settings = settings
        self.store = store
        self.objects = objects
        self._executors: list[Executor] = []
        self._service: SchedulerService | None = None

    async def scheduler(self, kind: str, on_commit: OnCommit | None = None) -> SchedulerService:
        """A scheduler of this process, ready to run. The limits in the settings hold from now on."""
        from ork.executors.processes import identity, is_provably_dead, watch_death
        from ork.scheduler.service import SchedulerService
        from ork.scheduler.step import Scheduler
        from ork.scheduler.waiting import Waiting

        rates = {f"pool:{name}": rate for name, rate in self.settings.pool_rates.items()}
        await self.store.set_limits(_limits(self.settings), rates)
        options = scheduler_options(self.settings, kind)
        waiting = Waiting(lambda: self._poller(options))

        def tell(runs: Sequence[RunId]) -> None:
            waiting.runs_changed(runs)
            if on_commit is not None:
                on_commit(runs)

        scheduler = Scheduler(
            id=SchedulerId(os.urandom(8).hex()),
            identity=identity(),
            kind=kind,
            store=self.store,
            objects=self.objects,
            executors={**self._local_executors(), **self._waiting_executors(waiting)},
            options=options,
            monotonic=_boot_seconds,
            is_provably_dead=is_provably_dead,
            on_commit=tell,
        )
        self._service = SchedulerService(scheduler, self.store, watch_death=watch_death, waiting=waiting)
        return self._service

    def _local_executors(self) -> dict[str, Executor]:
        from ork.executors.local import LocalExecutor
        from ork.objects.attempts import AttemptDocuments

        documents = AttemptDocuments(self.objects)
        made = {
            "process": LocalExecutor("process", documents, uses_project_python=False),
            "python": LocalExecutor("python", documents),
            "rust": LocalExecutor("rust", documents, uses_project_python=False),
        }
        # Custom executors are classes that its workers load: here they differ in their names (and limits) alone.
        from ork.compile.custom import custom_executors

        for name in custom_executors(self.settings.project):
            made[name] = LocalExecutor(name, documents)
        self._executors += made.values()
        return dict(made)

    def _poller(self, options: SchedulerOptions) -> Poller:
        from ork.executors.local_poll import ask_process
        from ork.objects.attempts import AttemptDocuments
        from ork.scheduler.poll import Poller

        return Poller(
            self.store,
            self.objects,
            log_path=AttemptDocuments(self.objects).log_path,
            secrets=options.secrets,
            ask_process=ask_process,
            on_change=self._wake_service,
            interpreter_for=options.interpreter_for,
        )

    def _waiting_executors(self, waiting: Waiting) -> dict[str, Executor]:
        """Those whose attempts take no process: they wait for something else to end."""
        from ork.scheduler.subworkflow import WorkflowExecutor

        workflow = WorkflowExecutor(self.store, self.objects, self._wake_service)
        self._executors += [waiting, workflow]
        return {waiting.name: waiting, workflow.name: workflow}

    def _wake_service(self) -> None:
        """What we write through our own store handle wakes everybody but ourselves."""
        if self._service is not None:
            self._service.wake()

    async def close(self) -> None:
        for executor in self._executors:
            await executor.close()
        await self.store.close()


async def open_installation(settings: Settings) -> Installation:
    """Opens store and objects for work that goes on for a while; the first one in a project creates `.ork`."""
    return _open(settings, inline=False)


async def open_for_a_look(settings: Settings, *, creates: bool) -> Installation:
    """Opens them for a few calls in one thread. Unless it `creates`, a project without a store gets an empty one
    in memory: looking leaves no traces."""
    path = store_path(settings)
    if creates or os.path.exists(path):
        return _open(settings, inline=True)
    from ork.state.sqlite import SqliteStore

    return Installation(settings, SqliteStore(":memory:", inline=True), _objects(settings))


def store_path(settings: Settings) -> str:
    """The database file a `sqlite:` URL names; any other kind of store is not there yet."""
    scheme, colon, path = settings.store.partition(":")
    if scheme != "sqlite" or not colon or not path:
        raise UsageError(f"cannot use the store {settings.store}", hint="a store is named sqlite:/path/to/ork.db")
    path = path[2:] if path.startswith("///") else path
    return os.path.join(settings.root, path)


def store_schema(settings: Settings) -> tuple[int, int]:
    """The schema the store has (0: there is none yet) and the one this Ork knows."""
    from ork.state.sqlite import db_status

    status = db_status(store_path(settings))
    return status.current, status.known


def migrate_store(settings: Settings) -> tuple[int, int]:
    """Brings the store up to date; gives the schema before and after."""
    from ork.state.sqlite import migrate

    before, _ = store_schema(settings)
    _make_home(settings)
    return before, migrate(store_path(settings)).current


def scheduler_options(settings: Settings, kind: str) -> SchedulerOptions:
    from ork.core.liveness import Patience
    from ork.scheduler.options import SchedulerOptions

    return SchedulerOptions(
        lease_seconds=settings.lease_seconds,
        renew_seconds=settings.renew_seconds,
        lease_margin_seconds=min(5.0, settings.lease_seconds / 4),
        patience=Patience(settings.stale_seconds, settings.start_limit_seconds),
        monitor_seconds=min(10.0, settings.stale_seconds / 3),
        stop_grace_seconds=settings.stop_grace_seconds,
        heartbeat_seconds=settings.heartbeat_seconds,
        fence_seconds=settings.stale_seconds * 0.75,
        durability=settings.durability,
        script_dir=settings.script_dir,
        builds_dir=settings.home,
        trust_saved_heartbeats=kind == "tick",
        secrets=settings.secret,
    )


def _open(settings: Settings, *, inline: bool) -> Installation:
    from ork.state.sqlite import SqliteStore

    path = store_path(settings)
    _make_home(settings)
    durability: Literal["normal", "full"] = "full" if settings.durability == "full" else "normal"
    store = SqliteStore(path, durability=durability, lease_seconds=settings.lease_seconds, inline=inline)
    return Installation(settings, store, _objects(settings))


def _objects(settings: Settings) -> LocalObjects:
    return LocalObjects(os.path.join(settings.root, root_of_url(settings.objects)), settings.durability)


def _make_home(settings: Settings) -> None:
    """`.ork` in the project, if anything is kept there, ignored by Git."""
    if not any(settings.home in url for url in (settings.store, settings.objects)) or os.path.isdir(settings.home):
        return
    try:
        os.makedirs(settings.home, mode=0o700, exist_ok=True)
        with open(os.path.join(settings.home, ".gitignore"), "w", encoding="utf-8") as file:
            file.write("*\n")
    except OSError as error:
        raise StoreError(f"cannot create {settings.home}: {error.strerror}", hint="see `ork doctor`") from error


def _limits(settings: Settings) -> dict[str, int]:
    limits = {EVERYTHING: settings.max_workers}
    limits |= {f"pool:{name}": slots for name, slots in settings.pools.items()}
    return limits | {f"executor:{name}": slots for name, slots in settings.executor_limits.items()}


def _boot_seconds() -> float:
    # Goes on while the machine sleeps, as leases do.
    return time.clock_gettime(time.CLOCK_BOOTTIME)
