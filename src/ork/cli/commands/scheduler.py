"""`ork scheduler` and `ork tick`: run a scheduler as a service, or once."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ork.app.stores import check_project
from ork.cli.commands.control import COMMANDS
from ork.cli.service_log import LOG_FORMAT, LOG_FORMAT_OR_NONE, LOG_LEVEL, ServiceLog
from ork.cli.session import (
    current_settings,
    json_option,
    now,
    print_json,
    run_long,
    run_service,
    store_options,
    task_user_option,
)
from ork.errors import UsageError

if TYPE_CHECKING:
    from ork.app.installation import Installation, RemoteInstallation
    from ork.scheduler.service import TickReport


@click.group(name="scheduler", invoke_without_command=True)
@click.option("--metrics-port", type=click.IntRange(1, 65535), help="Serve GET /metrics on this port, for Prometheus.")
@click.option("--metrics-host", default="127.0.0.1", show_default=True, help="The address of the metrics port.")
@LOG_FORMAT
@LOG_LEVEL
@task_user_option
@store_options
@click.pass_context
def scheduler_command(
    context: click.Context, log_format: str, log_level: str, metrics_port: int | None, metrics_host: str
) -> None:
    """Run a scheduler until stopped (SIGTERM or Ctrl-C). Several can share one store; running tasks outlive them.

    The commands below pause, drain and list schedulers.

    \b
    Example:  ork scheduler &
    """
    if context.invoked_subcommand is not None:
        return
    check_project(current_settings())
    log = ServiceLog(log_format, log_level)
    run_service(lambda installation: _work(installation, log, metrics_host, metrics_port), log)


for _command in COMMANDS:
    scheduler_command.add_command(_command)


async def _work(installation: Installation, log: ServiceLog, metrics_host: str, metrics_port: int | None) -> None:
    import asyncio
    import signal

    service = await installation.scheduler("scheduler")
    log.listen_to(service.telemetry)
    if metrics_port is not None:
        from ork.cli.metrics_port import serve_metrics

        await serve_metrics(installation, service.telemetry, metrics_host, metrics_port)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, service.request_stop)
    await service.run()


@click.command(name="tick")
@click.option(
    "--stay", "stays", is_flag=True, help="Exit only when no task is running, for containers that end with it."
)
@LOG_FORMAT_OR_NONE
@LOG_LEVEL
@json_option
@task_user_option
@store_options
def tick_command(as_json: bool, log_format: str | None, log_level: str, stays: bool) -> None:
    """Do all work that is due, then print when to wake next. Started tasks continue without it.

    Prints text on a terminal, otherwise JSON.

    \b
    Example:  ork tick
    """
    from ork.status.shapes import time_json

    check_project(current_settings())
    is_logged = log_format is not None or log_level == "debug"
    log = ServiceLog(log_format or "text", log_level) if is_logged else None
    report = run_long(lambda installation: _tick(installation, log, stays=stays))
    if sys.stdout.isatty() and not as_json:
        print(_text(report))
        return
    print_json(
        {
            "steps": report.steps,
            "launched": report.launched,
            "finished": report.finished,
            "next_wake": time_json(report.next_wake),
        }
    )


def _text(report: TickReport) -> str:
    from ork.status.formatting import ago, count

    done = [f"{count(report.launched, 'task')} started"] if report.launched else []
    done += [f"{count(report.finished, 'run')} ended"] if report.finished else []
    summary = ", ".join(done) or "nothing was due"
    if report.next_wake is None:
        return f"{summary}; nothing is scheduled"
    return f"{summary}; next wake-up {ago(report.next_wake, now())} ({report.next_wake.astimezone():%Y-%m-%d %H:%M:%S})"


async def _tick(installation: Installation, log: ServiceLog | None, *, stays: bool) -> TickReport:
    from ork.app.installation import RemoteInstallation

    if isinstance(installation, RemoteInstallation):
        if stays:
            raise UsageError("--stay does not work through a server", hint="use --stay without --server")
        return _tick_remotely(installation)
    from ork.telemetry import Telemetry, TelemetryEvent

    telemetry = Telemetry()
    if log is not None:
        log.listen_to(telemetry)
    else:
        telemetry.listen(ServiceLog("text"), TelemetryEvent.LOCATION_FAILED)
    report = await installation.tick(telemetry, stays=stays)
    await installation.publish()
    return report


def _tick_remotely(installation: RemoteInstallation) -> TickReport:
    from ork.scheduler.service import TickReport
    from ork.status.wire import read_time

    found = installation.server.post("tick")
    return TickReport(found["steps"], found["launched"], found["finished"], read_time(found["next_wake"]))
