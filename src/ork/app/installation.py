"""The composition root: opens stores and creates services from settings. Only this package knows the backends."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, cast

from ork.app.stores import empty_store, has_store, make_home, open_store, uses_network
from ork.errors import AlarmError, NotFoundError, OrkError, UsageError
from ork.model.access import AuditEntry
from ork.model.ids import RunId, SchedulerId, VersionId
from ork.model.record import replaced
from ork.objects.opening import open_objects
from ork.settings import LOCATIONS_FILE, Settings
from ork.state.store import StateStore
from ork.state.urls import without_password
from ork.status.secret_masking import set_secret_lookup
from ork.system import system

if TYPE_CHECKING:
    from ork.alerts.outbox import Outbox
    from ork.api.client.connection import Server
    from ork.app.alarms import AlarmClock
    from ork.app.publishing import BackgroundPublisher, Publisher
    from ork.compile.pricing import Pricing
    from ork.definition.problems import Problem
    from ork.executors.executor import Executor
    from ork.locations.refresh import Refresher
    from ork.locations.source import ParseImage
    from ork.model.installation import SharedSettings
    from ork.model.location import Location
    from ork.model.run import Run
    from ork.model.workflow import Version
    from ork.objects.attempt_documents import AttemptDocuments
    from ork.scheduler.poll import Poller
    from ork.scheduler.service import SchedulerService, TickReport
    from ork.scheduler.waiting import DeferredExecutor
    from ork.status.code_report import CodeReport
    from ork.status.cost import CostReport
    from ork.status.explain import ExplainTimeouts, WhyAnswer
    from ork.status.ids import RunTarget
    from ork.status.run_search import FoundRuns, RunSearch
    from ork.telemetry import Telemetry
    from ork.traces.exporter import TraceExporter

REMOTE_HEARTBEAT_SECONDS = 1.0  # a bucket may refuse more than one write a second to the same object
OnCommit = Callable[[Sequence[RunId]], None]


class Installation:
    """A store, its objects, and everything that was opened for them; `close` closes it all."""

    can_work = True  # whether a scheduler may run in this process
    looks_into_images = True  # whether its scheduler refreshes images; folders are always refreshed

    def __init__(self, settings: Settings, store: StateStore, objects: AttemptDocuments) -> None:
        self.settings = settings
        self.own_store = store  # for schedulers: what they write needs no alarm
        self.clock: AlarmClock | None = None
        self.alarm_failure: AlarmError | None = None  # the last one
        self.store = store if settings.alarm is None or settings.server else self._with_alarm(store)
        self.objects = objects
        self.shared: SharedSettings | None = None  # set by `open_installation`
        self._has_set_limits = False
        self._executors: list[Executor] = []
        self._service: SchedulerService | None = None
        self._traces: TraceExporter | None = None
        self._pricing: Pricing | None = None
        self._publishing: BackgroundPublisher | None = None
        self._has_ended_runs = False
        set_secret_lookup(lambda names: settings.secrets.available_values(names))

    async def join(self) -> None:
        """Reads the shared settings of the installation. SettingsDifferError if this process has others."""
        from ork.app.shared_settings import join_installation

        self.shared = await join_installation(self.store, self.objects, self.settings)

    async def scheduler(
        self, kind: str, on_commit: OnCommit | None = None, *, only: RunId | None = None
    ) -> SchedulerService:
        """A scheduler for this process, ready to run; with `only`, for that run and its sub-workflows. Applies the limits
        in the settings."""
        from ork.app.executors import check_task_user
        from ork.app.scheduler_options import scheduler_options, start_traces
        from ork.executors.processes import identity, is_provably_dead, watch_death
        from ork.scheduler.service import SchedulerService
        from ork.scheduler.step import Scheduler
        from ork.scheduler.waiting import DeferredExecutor
        from ork.telemetry import Telemetry

        await self._set_limits()
        telemetry = Telemetry()
        self._traces = start_traces(self.settings, telemetry)
        self._publish_after_runs(kind, telemetry)
        check_task_user(self.settings.task_user)
        options = scheduler_options(self.settings, kind)
        if not self.objects.answers_at_once:
            options = replaced(options, heartbeat_seconds=max(REMOTE_HEARTBEAT_SECONDS, options.heartbeat_seconds))
        if self._traces is not None:
            options = replaced(options, traceparent=self._traces.traceparent)
        waiting = DeferredExecutor(self._poller)

        def notify(runs: Sequence[RunId]) -> None:
            waiting.runs_changed(runs)
            if on_commit is not None:
                on_commit(runs)

        scheduler = Scheduler(
            id=SchedulerId(os.urandom(8).hex()),
            identity=identity(),
            kind=kind,
            store=self.own_store,
            objects=self.objects,
            executors={**self._local_executors(kind, telemetry), **self._waiting_executors(waiting)},
            options=options,
            monotonic=system.awake_seconds,  # counts while the machine sleeps, as leases do
            is_provably_dead=is_provably_dead,
            on_commit=notify,
            telemetry=telemetry,
            terms=self.shared.terms if self.shared is not None else None,
            only=only,
        )
        outbox = self._outbox(telemetry)
        refresher = await self.refresher(telemetry) if kind != "run" else None
        self._service = SchedulerService(
            scheduler, self.own_store, watch_death=watch_death, waiting=waiting, outbox=outbox, refresher=refresher
        )
        return self._service

    def _publish_after_runs(self, kind: str, telemetry: Telemetry) -> None:
        """A scheduler that stays publishes beside its work; others leave a note, for `publish` or the next process."""
        publisher = self.publisher()
        if publisher is None:
            return
        from ork.telemetry import TelemetryEvent

        if kind == "scheduler":
            from ork.app.publishing import BackgroundPublisher

            self._publishing = publishing = BackgroundPublisher(publisher)
            publishing.start()
            telemetry.listen(lambda _event, _fields: publishing.wake(), TelemetryEvent.RUN_FINISHED)
        else:
            telemetry.listen(lambda _event, _fields: self._note_ended_run(), TelemetryEvent.RUN_FINISHED)

    def _note_ended_run(self) -> None:
        self._has_ended_runs = True

    def publisher(self) -> Publisher | None:
        """Writes the pages of the web UI where ork.yaml says; None if it does not."""
        if self.settings.project is None or self.settings.project.ui is None:
            return None
        from ork.app.publishing import publisher_of

        return publisher_of(self.settings, self.own_store)

    async def _publish_due(self) -> datetime | None:
        """When the pages have to be published; None if nothing has changed, or the store does not say."""
        publisher = self.publisher()
        if publisher is None:
            return None
        with suppress(OrkError):
            if self._has_ended_runs:
                await publisher.want()
                self._has_ended_runs = False
            return await publisher.due()
        return None

    async def publish(self, seconds: float | None = None) -> None:
        """Publishes the pages of the web UI if that is due, within `seconds`. To be called after a tick. Never fails."""
        publisher = self.publisher()
        if publisher is None:
            return
        from ork.app.publishing import LIMIT_SECONDS

        with suppress(OrkError):
            again = await publisher.publish(LIMIT_SECONDS if seconds is None else seconds)
            if again is not None and self.clock is not None:
                await self.clock.wake(again)

    def _with_alarm(self, store: StateStore) -> StateStore:
        from ork.app.alarms import AlarmClock, open_alarm, waking

        self.clock = AlarmClock(open_alarm(self.settings), self._note_alarm_failure)
        return waking(store, self.clock)

    def _note_alarm_failure(self, error: AlarmError) -> None:
        self.alarm_failure = error

    async def tick(
        self,
        telemetry: Telemetry | None = None,
        *,
        stays: bool = False,
        seconds: float | None = None,
        on_commit: OnCommit | None = None,
    ) -> TickReport:
        """One tick, which ends soon after `seconds`. Where there is an alarm, it is set to what is due next.

        AlarmError if the work is done, but the alarm cannot be set: somebody has to call again.
        """

        async def work() -> TickReport:
            return await self._tick(telemetry, stays=stays, seconds=seconds, on_commit=on_commit)

        if self.clock is None:
            return await work()
        return await self.clock.during(work, lambda report: report.next_wake)

    async def _tick(
        self, telemetry: Telemetry | None, *, stays: bool, seconds: float | None, on_commit: OnCommit | None
    ) -> TickReport:
        """A few reads determine whether there is work; only then a scheduler is created."""
        from ork.executors.processes import hostname
        from ork.scheduler.idle import next_due
        from ork.scheduler.service import TickReport

        await self._set_limits()
        locations = await self._set_locations()
        now = datetime.now(UTC)  # after _set_locations, so that new locations are due
        ahead = await self.store.look_ahead(() if locations is None else locations[0])
        due = await next_due(self.store, ahead, hostname(), now)
        if (locations is None or not locations[1]) and (due is None or due > now):
            return TickReport(0, 0, 0, _later(due, await self._publish_due(), now))
        service = await self.scheduler("tick", on_commit)
        if telemetry is not None:
            service.telemetry.listen(lambda event, fields: telemetry.emit(event, **fields), *telemetry.emitted_events)
        report = await service.tick(stays=stays, seconds=seconds, ahead=ahead)
        if telemetry is not None:
            telemetry.merge(service.telemetry)
        return replaced(report, next_wake=_later(report.next_wake, await self._publish_due(), now))

    async def prepare_tick(self) -> None:
        """Does ahead what the first tick would do once: applies the limits, and reads the key of signatures."""
        await self._set_limits()
        await self.store.signing_key()

    async def _set_limits(self) -> None:
        """Applies the limits in the settings, once for each process: setting them again would undo what others set since."""
        from ork.app.scheduler_options import limits_of, rates_of

        if not self._has_set_limits:
            await self.store.set_limits(limits_of(self.settings), rates_of(self.settings))
            self._has_set_limits = True

    async def _set_locations(self) -> tuple[dict[str, Location], Sequence[Problem]] | None:
        """Stores the project's locations. Returns those that this process refreshes, and errors in the file; None if the
        project has no locations."""
        if not os.path.exists(os.path.join(self.settings.root, LOCATIONS_FILE)):
            return None
        from ork.locations.project_locations import valid_locations

        locations, problems = valid_locations(self.settings.root) or ({}, ())
        known: dict[str, str] = {}
        if not self.looks_into_images:
            locations = {name: location for name, location in locations.items() if location.path is not None}
        if problems or not self.looks_into_images:
            # A location whose entry is invalid is kept with its last result.
            known = {entry.name: entry.source for entry in await self.store.list_locations()}
        sources = known | {name: location.source for name, location in locations.items()}
        await self.store.set_locations(sources, datetime.now(UTC))
        return locations, problems

    async def refresher(self, telemetry: Telemetry) -> Refresher | None:
        """Refreshes the project's locations; None if the project has none."""
        found = await self._set_locations()
        if found is None:
            return None
        from ork.executors.local_worker import inherited
        from ork.locations.refresh import Refresher
        from ork.locations.sources import WorkflowSources

        settings, (locations, problems) = self.settings, found
        places = WorkflowSources(
            settings.root,
            os.path.join(settings.home, "cache"),
            inherited(settings.environ, settings.pass_env),
            await self.store.signing_key(),
            settings.workers,
            settings.docker_host,
            settings.docker_certificates,
            settings.docker_config,
            settings.task_user,
            self._parse_image(await self.store.signing_key()),
        )
        mistakes = [f"{problem.message} ({problem.position})" for problem in problems]
        return Refresher(
            self.own_store, locations, places.of, telemetry, mistakes=mistakes, on_change=self._wake_service
        )

    def _parse_image(self, signing_key: bytes) -> ParseImage | None:
        """Runs `ork-parse` on the platform that tasks without `where` run on; None: a container engine does."""
        project = self.settings.project
        if project is None:
            return None
        is_there = project.default_where == "kubernetes" or (
            project.default_where == "cloudrun" and project.gcp is not None
        )
        if not is_there:
            return None
        from ork.app.image_parser import ImageParser

        return ImageParser(self.settings, self.objects, str(project.default_where), signing_key).parse

    def _outbox(self, telemetry: Telemetry) -> Outbox:
        from ork.alerts.outbox import Outbox

        channels = {}
        if self.settings.alerts:
            from ork.alerts.channels import read_channels

            channels = read_channels(self.settings.alerts)
        secrets, rule = self.settings.secrets.own_value, self.settings.outbound
        return Outbox(self.own_store, channels, secrets, telemetry, rule=rule)

    def _local_executors(self, kind: str, telemetry: Telemetry) -> dict[str, Executor]:
        from ork.app.executors import executors_of, note_missing_journal

        fallbacks, is_run = telemetry.fallbacks, kind == "run"
        note_missing_journal(self.settings, self.objects, fallbacks)
        made = executors_of(
            self.settings,
            self.objects,
            self.own_store,
            expects_work=is_run,
            watches_containers=not is_run,
            waits_for_platforms=kind == "tick",
            fallbacks=fallbacks,
        )
        self._executors += made.values()
        return made

    def _poller(self) -> Poller:
        from ork.executors.local_poll import ask_process
        from ork.scheduler.poll import Poller

        return Poller(
            self.own_store,
            self.objects,
            secrets=partial(self.settings.secrets.value, waits=True),
            rule=self.settings.outbound,
            ask_process=partial(ask_process, pass_env=self.settings.worker_env),
            on_change=self._wake_service,
        )

    def _waiting_executors(self, waiting: DeferredExecutor) -> dict[str, Executor]:
        """Executors whose attempts need no process, because they wait for something else to end."""
        from ork.executors.executor import ExecutorTraits, OnDemand

        workflow = OnDemand("workflow", self._workflow_executor, ExecutorTraits())
        self._executors += [waiting, workflow]
        return {waiting.name: waiting, workflow.name: workflow}

    def _workflow_executor(self) -> Executor:
        from ork.scheduler.subworkflow import WorkflowExecutor

        return WorkflowExecutor(self.own_store, self.objects, self._wake_service)

    def _wake_service(self) -> None:
        """Writes through our own store handle wake only other processes."""
        if self._service is not None:
            self._service.wake()

    @property
    def address(self) -> str:
        """The address of the store, without its password."""
        return without_password(self.settings.store)

    async def explain(self, target: RunTarget, now: datetime) -> WhyAnswer:
        """Explains why a run or task is (not) running."""
        from ork.status.explain import explain

        return await explain(self.store, self.objects, target, now, timeouts_of(self.settings))

    async def search_runs(self, search: RunSearch) -> FoundRuns:
        """A page of the runs that match."""
        from ork.status.run_search import search_runs

        return await search_runs(self.store, search)

    async def cost(self, run: RunId, now: datetime) -> CostReport:
        """The estimated cost of a run."""
        from ork.app.pricing import pricing_of
        from ork.status.cost import cost_report, read_facts

        if self._pricing is None:
            self._pricing = pricing_of(self.settings)
        return cost_report(await read_facts(self.store, run), self._pricing, now)

    async def code_report(self, run: RunId) -> CodeReport:
        """The code that the run's version recorded, and whether the project's files have changed since."""
        from ork.status.code_report import code_report

        return await code_report(self.store, run)

    async def same_code_version(self, run: Run) -> Version:
        """A version with the code of this run, ready for a new run. RefusedError says what is missing."""
        from ork.app.same_code import same_code_version

        return await same_code_version(self.store, self.settings, run)

    async def record(self, by: str, action: str, subject: str, detail: str | None = None) -> None:
        """Writes a change to the audit log."""
        await self.store.record(AuditEntry(datetime.now(UTC), by, action, subject, detail))

    async def close(self) -> None:
        await self.close_scheduler()
        await self.own_store.close()
        if self.clock is not None:
            if self._service is not None and self._service.scheduler.lease.kind == "scheduler":
                await self.clock.wake()  # from now on ticks do its work
            self.clock.alarm.close()

    async def close_scheduler(self) -> None:
        """Closes what was opened for the last scheduler. Store, documents and alarm stay open, for another one."""
        if self._publishing is not None:
            await self._publishing.stop()
            self._publishing = None
        if self._has_ended_runs:
            await self._publish_due()  # leaves a note: the next process that can publishes it
        executors, self._executors = self._executors, []
        for executor in executors:
            await executor.close()
        traces, self._traces = self._traces, None
        if traces is not None:
            import asyncio

            await asyncio.to_thread(traces.close)


def _later(due: datetime | None, publish_due: datetime | None, now: datetime) -> datetime | None:
    """When to wake next. What is due to be published now is published after this pass, and needs no other."""
    times = [due, publish_due if publish_due is not None and publish_due > now else None]
    return min((time for time in times if time is not None), default=None)


class RemoteInstallation(Installation):
    """An installation behind a server: its schedulers do the work, and the server writes the audit log."""

    can_work = False

    def __init__(self, settings: Settings, server: Server) -> None:
        from ork.api.client.objects import RemoteObjects
        from ork.api.client.store import RemoteStore

        # Calls that a server does not support raise an error that names them.
        super().__init__(
            settings, cast("StateStore", RemoteStore(server)), cast("AttemptDocuments", RemoteObjects(server))
        )
        self.server = server

    @property
    def address(self) -> str:
        return self.server.url

    async def scheduler(
        self,
        kind: str,  # noqa: ARG002
        on_commit: OnCommit | None = None,  # noqa: ARG002
        *,
        only: RunId | None = None,  # noqa: ARG002
    ) -> SchedulerService:
        raise UsageError("the schedulers of the server do the work", hint="run it without --server to work locally")

    async def explain(self, target: RunTarget, now: datetime) -> WhyAnswer:  # noqa: ARG002 (the server's clock counts)
        from ork.api.client.store import fetch_explanation

        return fetch_explanation(self.server, target)

    async def search_runs(self, search: RunSearch) -> FoundRuns:
        from ork.api.client.store import fetch_runs

        return fetch_runs(self.server, search)

    async def cost(self, run: RunId, now: datetime) -> CostReport:  # noqa: ARG002 (the server's clock counts)
        from ork.api.client.store import fetch_cost

        return fetch_cost(self.server, run)

    async def code_report(self, run: RunId) -> CodeReport:
        from ork.api.client.store import fetch_code_report
        from ork.status.code_report import CodeReport

        try:
            return fetch_code_report(self.server, run)
        except NotFoundError:  # a server of an older release
            return CodeReport(run, VersionId(""), None, None, note="this server does not record code")

    async def same_code_version(self, run: Run) -> Version:
        from ork.api.client.store import fetch_same_code

        version = await self.store.get_version(fetch_same_code(self.server, run.id))
        if version is None:
            raise UsageError("the server has just lost a version", hint="try again")
        return version

    async def record(self, by: str, action: str, subject: str, detail: str | None = None) -> None:
        """Does nothing: the server identifies the caller by its token."""


def timeouts_of(settings: Settings) -> ExplainTimeouts:
    from ork.status.explain import ExplainTimeouts

    stale = settings.stale_seconds
    return ExplainTimeouts(settings.heartbeat_seconds, stale, settings.start_limit_seconds, settings.fence_seconds)


def _remote(settings: Settings, url: str) -> Installation:
    from ork.api.client.connection import Server

    return RemoteInstallation(settings, Server(url, settings.token, settings.home))


async def open_installation(settings: Settings) -> Installation:
    """Opens store and objects for longer work; creates `.ork` in a new project.

    SettingsDifferError if the settings do not match those of the installation."""
    if settings.server is not None:
        return _remote(settings, settings.server)
    installation = _open(settings, inline=False)
    try:
        await installation.join()
    except BaseException:
        await installation.close()
        raise
    return installation


async def open_briefly(settings: Settings, *, creates: bool, may_be_new: bool = False) -> Installation:
    """Opens store and objects for a few calls in one thread. Without `creates`, a project without a store gets an empty
    one in memory, so that reading creates no files. NotFoundError if there is no project, or its store is gone, unless
    it `may_be_new`."""
    if settings.server is not None:
        return _remote(settings, settings.server)
    if creates or has_store(settings, may_be_new=may_be_new):
        from ork.app.shared_settings import objects_for_reading

        installation = _open(settings, inline=True)
        try:
            installation.objects = await objects_for_reading(installation.store, installation.objects, settings)
        except BaseException:
            await installation.close()
            raise
        return installation
    return Installation(settings, empty_store(), open_configured_objects(settings, creates=False))


def runs_without_event_loop(settings: Settings) -> bool:
    """Whether an installation from `open_briefly` needs no event loop."""
    from ork.objects.buckets.address import is_bucket

    return settings.server is not None or not (uses_network(settings) or is_bucket(settings.objects))


def _open(settings: Settings, *, inline: bool) -> Installation:
    make_home(settings)
    objects = open_configured_objects(settings, creates=not inline)  # reading creates nothing
    return Installation(settings, open_store(settings, inline=inline), objects)


def open_configured_objects(settings: Settings, *, creates: bool) -> AttemptDocuments:
    """The object store in the settings, whether or not it is the installation's."""
    return open_objects(
        settings.objects,
        settings.durability,
        within=settings.root,
        creates=creates,
        forks=False,
        token=settings.token,
    )
