"""`ork output`: shows or saves the output of a task."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ork.cli.arguments import run_argument, task_argument
from ork.cli.session import json_option, run_short, store_options
from ork.errors import RefusedError, UsageError
from ork.model.value_reference import MARK, description_in

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.model.task import Task
    from ork.objects.attempt_documents import AttemptDocuments
    from ork.status.run_view import RunView


@click.command(name="output")
@run_argument
@task_argument
@click.option("--path", metavar="PATH", help="Only this part of the output: rows[0], report.table.")
@click.option("--to", "target", metavar="FILE", help="Save it to this file, or a folder of files to this folder.")
@json_option
@store_options
def output_command(run: str, task: str | None, path: str | None, target: str | None, as_json: bool) -> None:
    """Show the output of a task: JSON, `null` without an output, a list for a fan-out.

    Of a table the first rows are shown, of a file its beginning. --json describes it instead, and --to saves its bytes.

    \b
    Example:  ork output @last extract | jq .rows
              ork output @last clean[3]
              ork output @last clean --to clean.parquet
    """

    async def write(installation: Installation) -> None:
        from ork.status.outputs import check_has_output, output_parts

        view, chosen = await _find(installation, run, task)
        check_has_output(view, chosen)
        objects = installation.objects
        parts = output_parts(objects, view, chosen)
        value = _value(parts, path) if path is not None else _stored_output(chosen)
        description = description_in(value)
        if target is not None:
            _save(objects, description, target, parts if path is None else iter([json.dumps(value).encode()]))
        elif description is not None and not as_json:
            _show(objects, view, description)
        else:
            texts = parts if path is None else iter([json.dumps(value, ensure_ascii=False).encode()])
            for part in texts:
                sys.stdout.write(_safe_text(part))
            sys.stdout.write("\n")

    run_short(write)


def _value(parts: Iterator[bytes], path: str) -> Any:
    from ork.status.values import value_at

    return value_at(json.loads(b"".join(parts)), path)


def _stored_output(task: Task) -> Any:
    from ork.status.values import stored_value

    found = stored_value(task)
    return None if found is None else {MARK: found}


def _show(objects: AttemptDocuments, view: RunView, description: dict[str, Any]) -> None:
    from ork.cli.session import palette
    from ork.cli.value_text import shown_value
    from ork.status.previews import preview_of_value

    palette(sys.stdout).write(sys.stdout, shown_value(description, preview_of_value(objects, view, description)))


def _save(objects: AttemptDocuments, description: dict[str, Any] | None, target: str, parts: Iterator[bytes]) -> None:
    """Write the value to a file, or the files of a folder to a folder. A file appears when it is complete."""
    from ork.status.values import files_of, value_bytes

    if description is None:
        _write(target, parts)
    elif description["codec"] == "folder":
        if target == "-":
            raise UsageError("a folder of files needs a folder", hint="--to FOLDER")
        for name, reference, size in files_of(objects, description):
            _write(os.path.join(target, name), value_bytes(objects, reference, 0, size))
    else:
        _write(target, value_bytes(objects, str(description["object"]), 0, int(description["size"])))


def _write(target: str, parts: Iterator[bytes]) -> None:
    if target == "-":
        for part in parts:
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
        return
    folder, name = os.path.split(os.path.abspath(target))
    unfinished = os.path.join(folder, f".{name}.{os.getpid()}.part")
    try:
        os.makedirs(folder, exist_ok=True)
        with open(unfinished, "wb") as file:
            for part in parts:
                file.write(part)
        os.replace(unfinished, target)
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}") from None
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)


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
