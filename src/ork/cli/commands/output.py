"""`ork output`: what a task returned, as JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ork.cli.session import json_option, look, store_options
from ork.errors import NotFoundError, RefusedError, UsageError

if TYPE_CHECKING:
    from ork.app import Installation
    from ork.model.task import Task
    from ork.status.follow import RunView


@click.command(name="output")
@click.argument("run")
@click.argument("task", required=False)
@json_option
@store_options
def output_command(run: str, task: str | None, as_json: bool) -> None:  # noqa: ARG001 - it is JSON either way
    """What a task returned, as JSON. A task without output prints `null`.

    \b
    Example:  ork output @last extract | jq .rows
    """

    async def read(installation: Installation) -> bytes:
        view, chosen = await _find(installation, run, task)
        return _content(installation, view, chosen)

    sys.stdout.write(_safe_text(look(read)))
    sys.stdout.write("\n")


async def _find(installation: Installation, run: str, task: str | None) -> tuple[RunView, Task]:
    from ork.status.follow import open_view
    from ork.status.ids import parse_target, pick_tasks, resolve_run

    target = parse_target(run, task)
    if target.task is None:
        raise UsageError("which task?", hint="ork output RUN TASK")
    view, _ = await open_view(installation.store, await resolve_run(installation.store, target.run))
    keys = pick_tasks(view.tasks or {}, target) if view.tasks else []
    if not keys:
        raise RefusedError("the run has not begun", hint=f"ork why {view.short}")
    if len(keys) > 1:
        raise UsageError(f"`{target.task}` has {len(keys)} instances", hint=f"say which: {target.task}[0]")
    return view, view.tasks[keys[0]]


def _content(installation: Installation, view: RunView, task: Task) -> bytes:
    from ork.model.task import InlineOutput, StoredOutput

    if task.status != "success":
        raise RefusedError(f"`{task.key}` is {task.status}: it has no output", hint=f"ork why {view.short} {task.key}")
    match task.output:
        case InlineOutput(text):
            return text.encode()
        case StoredOutput(key):
            data = installation.objects.get(key)
            if data is None:
                raise NotFoundError(f"the output of `{task.key}` is no longer in the object store")
            return data
        case None:
            return b"null"


def _safe_text(data: bytes) -> str:
    """JSON text as it is; on a terminal with what could act there made visible."""
    if not sys.stdout.isatty():
        return data.decode("utf-8", "replace")
    from ork.cli.visible import visible_bytes

    return visible_bytes(data)
