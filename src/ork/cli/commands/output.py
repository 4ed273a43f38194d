"""`ork output`: shows the output of a task as JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ork.cli.arguments import run_argument, task_argument
from ork.cli.session import json_option, run_short, store_options
from ork.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.model.task import Task
    from ork.status.run_view import RunView


@click.command(name="output")
@run_argument
@task_argument
@json_option
@store_options
def output_command(run: str, task: str | None, as_json: bool) -> None:  # noqa: ARG001 - it is JSON either way
    """Show the output of a task as JSON: `null` without an output, a list for a fan-out.

    \b
    Example:  ork output @last extract | jq .rows
              ork output @last clean[3]
    """

    async def write(installation: Installation) -> None:
        from ork.status.outputs import check_has_output, output_parts

        view, chosen = await _find(installation, run, task)
        check_has_output(view, chosen)
        for part in output_parts(installation.objects, view, chosen):
            sys.stdout.write(_safe_text(part))
        sys.stdout.write("\n")

    run_short(write)


async def _find(installation: Installation, run: str, task: str | None) -> tuple[RunView, Task]:
    from ork.status.ids import parse_target, pick_tasks, resolve_run
    from ork.status.run_view import open_view

    target = parse_target(run, task)
    if target.task is None:
        raise UsageError("which task?", hint="ork output RUN TASK")
    view, _ = await open_view(installation.store, await resolve_run(installation.store, target.run))
    keys = pick_tasks(view.tasks or {}, target) if view.tasks else []
    if not keys:
        raise RefusedError("the run has not started", hint=f"ork why {view.short}")
    return view, view.tasks[keys[0]]  # the task itself precedes its instances


def _safe_text(data: bytes) -> str:
    """The JSON text; on a terminal with control characters made visible."""
    if not sys.stdout.isatty():
        return data.decode("utf-8", "replace")
    from ork.cli.paint import visible_bytes

    return visible_bytes(data)
