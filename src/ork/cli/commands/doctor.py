"""`ork doctor`: checks everything that Ork needs on this machine, and suggests fixes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

import click

from ork.cli.cloud_checks import (
    cloud_bucket,
    cloud_identity,
    cloud_jobs,
    cloud_queue,
    cloud_service,
    cloud_settings,
    cloud_store,
)
from ork.cli.damage_checks import Finding, damaged, has_no_store_yet, set_aside
from ork.cli.errors import DONE, FAILED
from ork.cli.session import current_settings, json_option, now, palette, print_json, run_short, store_options
from ork.cli.web_checks import provider, published
from ork.errors import OrkError, SettingsDifferError, UsageError
from ork.settings import Settings
from ork.system import system

LOW_DISK_BYTES = 200 * 1024 * 1024


@click.command(name="doctor")
@click.option(
    "--cloud",
    "in_cloud",
    is_flag=True,
    help="Check an installation on Google Cloud: settings, identity, database, bucket, queue, Cloud Run and service.",
)
@json_option
@store_options
def doctor_command(in_cloud: bool, as_json: bool) -> int:
    """Check interpreter, store, clock, folders, executors, permissions, alarm, alerts and traces; exit 1 if something is broken.

    With --cloud, each finding names the missing permission, service or setting, and how to add it.

    \b
    Example:  ork doctor
    """
    settings = current_settings()
    if in_cloud and settings.server is not None:
        raise UsageError(
            "`ork doctor --cloud` checks what an identity may do, and does not work through a server",
            hint="run it with ORK_STORE and ORK_OBJECTS; as the service: gcloud run jobs execute NAME-doctor --wait",
        )
    checks = CHECKS_IN_CLOUD if in_cloud else CHECKS if settings.server is None else CHECKS_THROUGH_SERVER
    found = [finding for check in checks for finding in _guarded(check, settings)]
    # Several checks need the store: its problem is shown only by the first of them.
    findings = [each for index, each in enumerate(found) if each.says not in (other.says for other in found[:index])]
    broken = any(finding.broken for finding in findings)
    if as_json:
        print_json({"ok": not broken, "checks": [finding._asdict() for finding in findings]})
    else:
        _print(findings)
    return FAILED if broken else DONE


def _print(findings: list[Finding]) -> None:
    from ork.cli.paint import Span, line, visible, width_of

    on, lines = palette(sys.stdout), []
    for finding in findings:
        mark = Span("✗", "bad") if finding.broken else Span("!", "wait") if finding.fix else Span("✓", "good")
        label, says = f" {finding.subject:<13}", visible(finding.says)
        fix = f"→ {finding.fix}" if finding.fix else ""
        whole = line(mark, label, says, Span(f"   {fix}" if fix else "", "wait"))
        if not on.is_terminal or width_of(whole) <= on.width:
            lines.append(whole)
            continue
        lines += on.hang(line(mark, label, says))
        lines += on.hang(line(" " * (1 + len(label)), Span(fix, "wait"))) if fix else []
    on.write(sys.stdout, lines)


def _guarded(check: Callable[[Settings], Iterator[Finding]], settings: Settings) -> list[Finding]:
    subject = check.__name__.strip("_").removeprefix("cloud_")
    try:
        return list(check(settings))
    except OrkError as error:
        return [Finding(subject, error.message, error.hint or "see above", broken=True)]
    except OSError as error:
        return [Finding(subject, f"{error.filename or ''} {error.strerror}".strip(), "check the folder", broken=True)]


def _interpreter(settings: Settings) -> Iterator[Finding]:  # noqa: ARG001
    version = ".".join(map(str, sys.version_info[:3]))
    fix = None if sys.version_info >= (3, 11) else "install Python 3.11 or newer"
    yield Finding("interpreter", f"Python {version}, {sys.executable}", fix, broken=fix is not None)


def _store(settings: Settings) -> Iterator[Finding]:
    from ork.app.installation import Installation
    from ork.app.stores import check_access, store_path, store_schema
    from ork.state.records import RunFilter
    from ork.state.urls import without_password
    from ork.status.formatting import count

    path = store_path(settings)
    if path is not None and not os.path.exists(path):
        yield Finding("store", f"none yet: the first run creates {path}")
        return
    check_access(settings)
    current, known = store_schema(settings)
    if current != known:
        yield Finding("store", f"schema {current}, this Ork knows {known}", "ork db migrate", broken=current > known)
        return

    async def read(installation: Installation) -> tuple[int, bool]:
        store = installation.store
        runs = (await store.list_runs(RunFilter())).runs
        return len(await store.list_workflows()), any(run.started_at for run in runs)

    workflows, has_run = run_short(read)
    writable = path is None or os.access(path, os.W_OK)
    fix = None if writable else f"chmod u+w {path}"
    where = path or without_password(settings.store)
    yield Finding("store", f"{where}, schema {current}, {count(workflows, 'workflow')}", fix, broken=not writable)
    objects = _objects_folder(settings)
    if has_run and objects is not None and not os.path.isdir(objects):
        yield Finding("objects", f"{objects} is missing: logs and large outputs in it are gone", "restore it")


def _shared(settings: Settings) -> Iterator[Finding]:
    """Whether the settings of this machine match those of the installation."""
    from ork.app.installation import Installation, open_configured_objects
    from ork.app.shared_settings import difference, local_shared_settings
    from ork.app.stores import store_schema
    from ork.objects.identity import read_identity

    if has_no_store_yet(settings) or len(set(store_schema(settings))) > 1:
        return

    async def read(installation: Installation) -> SettingsDifferError | None:
        recorded = await installation.store.read_shared_settings()
        objects = open_configured_objects(settings, creates=False)
        mine = local_shared_settings(settings, objects, read_identity(objects))
        return None if recorded is None else difference(recorded, mine)

    problem = run_short(read)
    if problem is not None:
        yield Finding("shared", problem.message, problem.hint, broken=True)


def _objects(settings: Settings) -> Iterator[Finding]:
    """Whether the server that keeps the documents is reached, accepts the token and belongs to this installation."""
    from ork.objects.opening import SERVER

    if not settings.objects.startswith(SERVER):
        return
    from ork.app.installation import Installation
    from ork.app.shared_settings import check_server
    from ork.objects.served import ServedObjects

    objects = ServedObjects(settings.objects, settings.token, is_patient=False)
    about = objects.check()
    if not has_no_store_yet(settings):

        async def compare(installation: Installation) -> None:
            await check_server(installation.store, objects)

        run_short(compare)
    yield Finding("objects", f"{objects.address} keeps them as {about['kind']}, Ork {about['version']}")


def _clock(settings: Settings) -> Iterator[Finding]:  # noqa: ARG001
    time = now()
    sane = 2024 < time.year < 2200
    yield Finding("clock", f"{time:%Y-%m-%d %H:%M:%S} UTC", None if sane else "set the system clock", broken=not sane)


def _folders(settings: Settings) -> Iterator[Finding]:
    folder = settings.home if os.path.isdir(settings.home) else settings.root
    writable = os.access(folder, os.W_OK | os.X_OK)
    fix = None if writable else f"make {folder} writable for this user"
    yield Finding("folders", f"project {settings.root}", fix, broken=not writable)
    yield from _disks(settings, folder)


def _objects_folder(settings: Settings) -> str | None:
    """The folder of the objects; None if they are not in a folder of this machine."""
    from ork.objects.opening import FILE, JOURNAL, root_of_url

    if not settings.objects.startswith((FILE, JOURNAL)):
        return None
    return os.path.join(settings.root, root_of_url(settings.objects))


def _bucket(settings: Settings) -> Iterator[Finding]:
    """Whether this process can do in the bucket what Ork needs."""
    from ork.objects.buckets.address import is_bucket

    if not is_bucket(settings.objects):
        return
    from ork.objects.buckets.opening import open_bucket
    from ork.objects.buckets.probe import try_bucket

    steps = list(try_bucket(open_bucket(settings.objects, forks=False)))
    for step in steps:
        if step.problem is not None:
            yield Finding("bucket", f"{step.name}: {step.problem}", step.hint or "see docs/buckets.md", broken=True)
    if all(step.problem is None for step in steps):
        yield Finding("bucket", f"{settings.objects}: {', '.join(step.name for step in steps)}")


def _disks(settings: Settings, project: str) -> Iterator[Finding]:
    """Free space on the disks of the project, the store and the objects, each disk once."""
    from ork.app.stores import store_path

    objects = _objects_folder(settings) or project
    seen = set()
    for folder in (project, os.path.dirname(store_path(settings) or objects or ""), objects or ""):
        if not os.path.isdir(folder) or (number := os.stat(folder).st_dev) in seen:
            continue
        seen.add(number)
        disk = os.statvfs(folder)
        free = disk.f_bavail * disk.f_frsize
        low = "free some space" if free < LOW_DISK_BYTES else None
        yield Finding("disk", f"{free / 2**30:,.1f} GiB free at {folder}", low, broken=free == 0)


def _executors(settings: Settings) -> Iterator[Finding]:  # noqa: ARG001
    shell = os.access("/bin/sh", os.X_OK)
    yield Finding("process", "/bin/sh runs commands", None if shell else "install a POSIX shell", broken=not shell)
    is_shown = system.start_time(os.getpid()) is not None
    fix = None if is_shown else system.PROCESS_LIST
    yield Finding("python", f"{sys.executable} runs functions", fix, broken=not is_shown)
    if not system.HAS_WORKER_POOL:
        weaker = "each task starts its own interpreter, limits and task_user have no effect: see docs/portable.md"
        yield Finding("system", f"{sys.platform}, with {system.NAME} processes; {weaker}")


def _fork_server(settings: Settings) -> Iterator[Finding]:
    """Starts a fork server and a worker that does nothing."""
    if settings.isolation == "interpreter" or not system.HAS_WORKER_POOL:
        return
    import asyncio

    from ork.executors.fork_probe import try_fork_server
    from ork.executors.local_worker import InterpreterError, Pythons

    try:
        interpreter = Pythons(uses_project_python=True).of_project(settings.root)
    except InterpreterError:
        return  # tasks that need it report the problem
    problem = asyncio.run(try_fork_server(interpreter, settings.environ))
    if problem is None:
        yield Finding("fork server", f"works in {interpreter}")
    else:
        fix = "until this is fixed, each task starts its own interpreter, 20 times slower for small tasks"
        yield Finding("fork server", f"does not work in {interpreter}: {problem}", fix)


def _engines(settings: Settings) -> Iterator[Finding]:
    if not settings.workers:
        return
    import asyncio

    from ork.cli.commands.workers import check_workers

    engines = [row["engine"] for row in asyncio.run(check_workers(settings)) if row["engine"] is not None]
    for address, engine in {engine["address"]: engine for engine in engines}.items():
        fix = None if engine["ok"] else "start it, or set `host` in workers.yaml"
        yield Finding(
            "containers", f"{address or 'engine'}: {engine['message']}" if engine["ok"] else engine["message"], fix
        )


def _permissions(settings: Settings) -> Iterator[Finding]:
    if not os.path.isdir(settings.home):
        return
    open_to_all = os.stat(settings.home).st_mode & 0o002
    fix = f"chmod o-w {settings.home}" if open_to_all else None
    yield Finding(
        "permissions", f"{settings.home} is {'writable by everybody' if open_to_all else 'private enough'}", fix
    )


def _task_user(settings: Settings) -> Iterator[Finding]:
    """Whether tasks can run as `task_user`, and that user can read the project."""
    name = settings.task_user
    if name is None:
        return
    import subprocess

    from ork.app.executors import check_task_user
    from ork.worker.supervise.task_user import TaskUser

    try:
        check_task_user(name)
    except UsageError as error:
        yield Finding("task user", error.message, error.hint, broken=True)
        return
    user = TaskUser(name)
    reads = ["test", "-r", settings.root, "-a", "-x", settings.root]
    done = subprocess.run(reads, user=user.uid, group=user.gid, extra_groups=[user.gid], cwd="/", check=False)
    can = done.returncode == 0
    fix = None if can else f"let {user.name} read {settings.root} and the folders above it"
    says = f"tasks run as {user.name}" if can else f"{user.name} cannot read {settings.root}"
    yield Finding("task user", says, fix, broken=not can)


def _schedulers(settings: Settings) -> Iterator[Finding]:
    from ork.app.installation import Installation
    from ork.model.installation import Control, host_of
    from ork.model.run import SchedulerEntry
    from ork.status.controls import control_text
    from ork.status.formatting import count
    from ork.status.schedulers import Liveness, fires_schedules, liveness, unverified_text

    if has_no_store_yet(settings):
        return

    async def read(installation: Installation) -> tuple[tuple[SchedulerEntry, ...], tuple[Control, ...], int, bool]:
        store = installation.store
        enabled = sum(entry.enabled for entry in await store.list_schedules())
        return await store.list_schedulers(), await store.list_controls(), enabled, await fires_schedules(store)

    entries, controls, schedules, is_served = run_short(read)
    for control in controls:
        says, _, fix = control_text(control, now()).rpartition("; ")
        yield Finding(control.mode, says, fix)
    dead = [entry for entry in entries if liveness(entry) is Liveness.DEAD]
    alive = [entry for entry in entries if liveness(entry) is Liveness.ALIVE]
    idle = [entry for entry in entries if liveness(entry) is Liveness.UNVERIFIED]
    if dead:
        runs = sum(entry.active_runs for entry in dead)
        yield Finding(
            "schedulers",
            f"{len(dead)} died and left {count(runs, 'run')} behind",
            "`ork tick` or `ork scheduler` continues them",
        )
    yield Finding("schedulers", f"{len(alive)} running")
    for entry in idle:
        yield Finding("schedulers", f"{host_of(entry.identity)}: {unverified_text(entry)}")
    for note in sorted({note for entry in alive for note in entry.notes}):
        yield Finding("schedulers", f"slower than it should be: {note}", "see docs/monitoring.md, Fall-backs")
    if schedules and not is_served and settings.alarm is None:
        fix = "start `ork scheduler` or `ork serve`, or call `ork tick` regularly"
        yield Finding("schedules", f"{count(schedules, 'schedule')} and no scheduler: they do not fire", fix)


def _alarm(settings: Settings) -> Iterator[Finding]:
    """Which alarm calls ticks, when it calls next, and whether it works."""
    from ork.app.alarms import read_alarm_state
    from ork.status.formatting import ago, count
    from ork.status.shapes import time_json

    state = read_alarm_state(settings)
    if state is None:
        return
    if state.problem is not None:
        fix = state.problem.hint or "see docs/scale-to-zero.md"
        yield Finding("alarm", f"does not work: {state.problem.message}", fix, broken=True)
        return
    when = "is not set" if state.next is None else f"calls {ago(state.next, now())} ({time_json(state.next)})"
    yield Finding("alarm", f"{state.describes} {when}")
    if state.failing:
        fix = "see the log of `ork serve --on-request`, and who may call it in docs/security.md"
        answer = f" (the last answer: {state.last_answer})" if state.last_answer else ""
        yield Finding("alarm", f"{count(state.failing, 'call')} without success so far, to be repeated{answer}", fix)


def _alerts(settings: Settings) -> Iterator[Finding]:
    """Whether each alert target has the secrets that it needs."""
    if not settings.alerts:
        return
    from ork.alerts.channels import read_channels, secrets_of

    channels, own_value = read_channels(settings.alerts), settings.secrets.own_value
    missing = [name for channel in channels.values() for name in secrets_of(channel) if own_value(name) is None]
    fix = f"set the secret {missing[0]} in the environment, .env or .ork/secrets" if missing else None
    yield Finding("alerts", f"are sent to {', '.join(sorted(channels))}", fix)


def _undefined_alerts(settings: Settings) -> Iterator[Finding]:
    """Alert targets that deployed workflows use but ork.yaml no longer defines."""
    from ork.cli.commands.alerts import workflows_by_alert

    if has_no_store_yet(settings):
        return
    named = run_short(lambda installation: workflows_by_alert(installation.store))
    for name, workflows in sorted(named.items()):
        if name not in settings.alerts:
            says = f"ork.yaml does not define `{name}`, which is used by {', '.join(workflows)}: nothing is sent to it"
            fix = f"define `{name}` below `alerts` in ork.yaml, or remove it from the workflow and deploy that again"
            yield Finding("alerts", says, fix)


def _secrets(settings: Settings) -> Iterator[Finding]:
    """Whether the secrets that ork.yaml declares have values on this machine."""
    declared = settings.project.secrets if settings.project is not None else {}
    if not declared:
        return
    missing = settings.secrets.missing()
    says = f"{len(declared)} declared, {len(missing)} without a value here" if missing else f"{len(declared)} declared"
    yield Finding("secrets", says, next(iter(missing.values())) if missing else None)


def _traces(settings: Settings) -> Iterator[Finding]:
    """Whether traces are sent. Checked only if a collector is configured or required."""
    if settings.disables_traces or not (settings.traces or settings.has_collector):
        return
    from importlib.util import find_spec

    if find_spec("opentelemetry") is None:
        fix = "pip install 'ork-orchestrator[traces]', or set `traces: false`"
        yield Finding(
            "traces", "a collector is configured, but nothing is sent to it", fix, broken=bool(settings.traces)
        )
    else:
        yield Finding("traces", "are sent to the collector in the OTEL_ variables")


def _server(settings: Settings) -> Iterator[Finding]:  # noqa: ARG001
    from ork.app.installation import Installation
    from ork.status.formatting import count

    async def read(installation: Installation) -> tuple[str, int]:
        return installation.address, len(await installation.store.list_workflows())

    address, workflows = run_short(read)
    yield Finding("server", f"{address} answers, {count(workflows, 'workflow')}")


CHECKS_THROUGH_SERVER = (_interpreter, _server, _clock, _schedulers, set_aside)
CHECKS = (
    _interpreter,
    _folders,
    _bucket,
    _objects,
    _store,
    _shared,
    _clock,
    _executors,
    _fork_server,
    _engines,
    _permissions,
    _task_user,
    _schedulers,
    set_aside,
    damaged,
    _secrets,
    _alarm,
    published,
    provider,
    _alerts,
    _undefined_alerts,
    _traces,
)
CHECKS_IN_CLOUD = (
    _interpreter,
    cloud_settings,
    cloud_identity,
    cloud_store,
    cloud_bucket,
    _shared,
    cloud_queue,
    _alarm,
    cloud_jobs,
    cloud_service,
    published,
    provider,
    _secrets,
    _alerts,
)
