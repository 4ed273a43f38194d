"""`ork logs`: shows the logs of tasks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ork.cli.arguments import run_argument, task_argument
from ork.cli.paint import visible
from ork.cli.session import json_option, now, print_json, run_long, run_short, store_options
from ork.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.cli.log_copy import LogCopier
    from ork.status.ids import RunTarget

MOST_HITS = 1_000_000  # in each log


@click.command(name="logs")
@run_argument
@task_argument
@click.option("-f", "--follow", is_flag=True, help="Follow until the task or run has ended.")
@click.option("--attempt", type=click.IntRange(min=1), help="An earlier attempt (default: the last one).")
@click.option("--search", metavar="TEXT", help="Only lines with this text, each after its task and line number.")
@json_option
@store_options
def logs_command(
    run: str, task: str | None, follow: bool, attempt: int | None, search: str | None, as_json: bool
) -> None:
    """Show the logs of tasks: unchanged into a file or pipe, made safe on a terminal.

    Without TASK the logs of all tasks, each line after its task's name.

    \b
    Example:  ork logs @last transform -f
    """
    from ork.status.ids import parse_target

    target = parse_target(run, task)
    if follow and attempt is not None:
        message = "--follow goes with the current attempt, --attempt with an earlier one"
        raise UsageError(message, hint="use only one of them")
    if search is not None and follow:
        raise UsageError("--search reads what is there, --follow waits for more", hint="use only one of them")
    if search:
        run_short(lambda installation: _search(installation, target, attempt, search, as_json))
    elif follow:
        run_long(lambda installation: _follow(installation, target, as_json))
    else:
        run_short(lambda installation: _print(installation, target, attempt, as_json))


async def _follow(installation: Installation, target: RunTarget, as_json: bool) -> None:
    copier = await _copier(installation, target, as_json)
    await copier.follow()


async def _print(installation: Installation, target: RunTarget, attempt: int | None, as_json: bool) -> None:
    copier = await _copier(installation, target, as_json)
    keys = copier.keys
    if attempt is not None and len(keys) != 1:
        raise UsageError("--attempt needs a task", hint="ork logs RUN TASK --attempt N")
    for key in keys:
        task = copier.view.tasks[key]
        if attempt is not None and attempt > task.attempt:
            raise NotFoundError(f"`{key}` has no attempt {attempt}", hint=f"its last one is {task.attempt}")
        if task.attempt:
            copier.copy(task, attempt or task.attempt)
    if not any(copier.view.tasks[key].attempt for key in keys):
        await _print_why_empty(installation, target)
    elif copier.missing_store is not None:
        print(f"{copier.missing_store} is missing: logs and large outputs in it are gone", file=sys.stderr)
    elif copier.missing_folder is not None:
        print(f"the logs of this run should be in {copier.missing_folder}, which is missing", file=sys.stderr)
    elif len(keys) == 1 and attempt is None:
        _print_earlier_hint(copier)


async def _search(installation: Installation, target: RunTarget, attempt: int | None, text: str, as_json: bool) -> None:
    from ork.model.ids import AttemptKey
    from ork.status.log_search import search_log

    copier = await _copier(installation, target, as_json)
    for key in copier.keys:
        number = attempt or copier.view.tasks[key].attempt
        if not number:
            continue
        name = AttemptKey(copier.view.run.id, key, number)
        for hit in search_log(installation.objects, name, text, MOST_HITS, float("inf")).hits:
            if as_json:
                place = {"task": key.name, "index": key.index, "attempt": number}
                print_json({**place, "number": hit.line, "line": hit.text})
            else:
                print(f"{key}:{hit.line}: {visible(hit.text)}")


async def _print_why_empty(installation: Installation, target: RunTarget) -> None:
    """Prints on stderr why there is no log."""
    sentences = (await installation.explain(target, now())).sentences
    subject = "nothing" if target.task is None else f"`{target.task}`"
    print(visible(f"{subject} has not started: {'; '.join(map(str.strip, sentences[:2]))}"), file=sys.stderr)


async def _copier(installation: Installation, target: RunTarget, as_json: bool) -> LogCopier:
    from ork.cli.log_copy import LogCopier
    from ork.status.ids import resolve_run
    from ork.status.run_view import open_view

    view, _ = await open_view(installation.store, await resolve_run(installation.store, target.run))
    return LogCopier(installation, view, target, as_json=as_json)


def _print_earlier_hint(copier: LogCopier) -> None:
    task = copier.view.tasks[copier.keys[0]]
    if task.attempt > 1:
        hint = f"ork logs {copier.view.short} {task.key} --attempt {task.attempt - 1}"
        print(f"(attempt {task.attempt}; the one before: {hint})", file=sys.stderr)
