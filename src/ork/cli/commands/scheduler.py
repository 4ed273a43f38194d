"""`ork scheduler` and `ork tick`: the services."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ork.cli.session import json_option, now, print_json, serve, store_options

if TYPE_CHECKING:
    from ork.app import Installation
    from ork.scheduler.service import TickReport
    from ork.telemetry import Happening


@click.command(name="scheduler")
@store_options
def scheduler_command() -> None:
    """Work on runs until stopped (SIGTERM or Ctrl-C). Several may serve one store; what runs goes on without them.

    \b
    Example:  ork scheduler &
    """
    serve(_work)


async def _work(installation: Installation) -> None:
    import asyncio
    import signal

    service = await installation.scheduler("scheduler")
    service.telemetry.listen(_tell)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, service.request_stop)
    await service.run()


def _tell(happening: Happening, fields: dict[str, Any]) -> None:
    """One plain line for what an operator wants to know; the rest is only counted."""
    words = _WORDS.get(happening)
    if words is None:
        return
    from ork.cli.visible import visible

    shown = "  ".join(f"{name}={visible(str(value))}" for name, value in fields.items() if value is not None)
    stream = sys.stdout if happening == "ready" else sys.stderr
    print(f"{now():%Y-%m-%dT%H:%M:%SZ}  {words}  {shown}".rstrip(), file=stream, flush=True)


_WORDS = {
    "ready": "ready",
    "stopped": "stopped",
    "run_started": "run started",
    "run_adopted": "run adopted",
    "run_finished": "run ended",
    "run_quarantined": "run quarantined",
    "step_failed": "step failed",
    "store_failed": "store failed",
    "store_recovered": "store works again",
    "document_refused": "document refused",
    "start_failed": "start failed",
    "objects_failed": "objects failed",
}


@click.command(name="tick")
@json_option
@store_options
def tick_command(as_json: bool) -> None:  # noqa: ARG001 - it is JSON either way
    """Work until nothing is due, then print when to wake next. Tasks that were started go on without it.

    \b
    Example:  ork tick
    """
    from ork.status.shapes import time_json

    report = serve(_tick)
    print_json(
        {
            "steps": report.steps,
            "launched": report.launched,
            "finished": report.finished,
            "next_wake": time_json(report.next_wake),
        }
    )


async def _tick(installation: Installation) -> TickReport:
    return await (await installation.scheduler("tick")).tick()
