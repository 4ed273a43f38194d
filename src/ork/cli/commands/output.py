"""`ork output`: what a task returned, as JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ork.cli.session import json_option, look, store_options
from ork.errors import NotFoundError, RefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ork.app import Installation
    from ork.model.task import Task
    from ork.status.follow import RunView


@click.command(name="output")
@click.argument("run")
@click.argument("task", required=False)
@json_option
@store_options
def output_command(run: str, task: str | None, as_json: bool) -> None:  # noqa: ARG001 - it is JSON either way
    """What a task returned, as JSON. A task without output prints `null`, one with instances the list of their outputs.

    \b
    Example:  ork output @last extract | jq .rows
              ork output @last clean[3]
    """

    async def write(installation: Installation) -> None:
        view, chosen = await _find(installation, run, task)
        _check_success(view, chosen)
        for part in _parts(installation, view, chosen):
            sys.stdout.write(_safe_text(part))
        sys.stdout.write("\n")

    look(write)


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
    return view, view.tasks[keys[0]]  # the whole task comes before its instances


def _check_success(view: RunView, task: Task) -> None:
    if task.status != "success":
        raise RefusedError(f"`{task.key}` is {task.status}: it has no output", hint=f"ork why {view.short} {task.key}")


def _parts(installation: Installation, view: RunView, task: Task) -> Iterator[bytes]:
    """The output piece by piece: of a fan-out one instance's after the other's, never all of them in memory."""
    from ork.model.ids import TaskKey
    from ork.status.instances import is_group

    if not is_group(task):
        yield _content(installation, task)
        return
    total = task.instances or 0
    width = int(task.item) if task.item else None  # a list of lists, where it fans out two ways
    yield b"["
    for index in range(total):
        if width is not None and index % width == 0:
            yield b"["
        yield _content(installation, view.tasks[TaskKey(task.key.name, index)])
        if width is not None and (index + 1) % width == 0:
            yield b"]"
        yield b"," if index + 1 < total else b""
    yield b"]"


def _content(installation: Installation, task: Task) -> bytes:
    from ork.model.task import InlineOutput, StoredOutput

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
