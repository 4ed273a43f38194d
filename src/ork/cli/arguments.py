"""The arguments that name a run, a task or a workflow, and their completion in a shell."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import click

from ork.errors import OrkError

if TYPE_CHECKING:
    from ork.app.installation import Installation

MOST_OFFERED = 50


def _offered(context: click.Context, read: Callable[[Installation], Coroutine[Any, Any, list[str]]]) -> list[str]:
    """Candidates from the store; empty if it cannot be read, since shell completion shows no errors."""
    from ork.cli.session import run_short

    with context.scope(cleanup=False):
        try:
            return run_short(read)[:MOST_OFFERED]
        except (OrkError, OSError):
            return []


def complete_run(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    async def newest(installation: Installation) -> list[str]:
        from ork.state.records import RunFilter

        if len(incomplete) > 3:
            return [*await installation.store.find_runs(incomplete, MOST_OFFERED)]
        page = await installation.store.list_runs(RunFilter(limit=MOST_OFFERED))
        return ["@last", *(run.id for run in page.runs)] if page.runs else []

    return [run for run in _offered(context, newest) if run.startswith(incomplete)]


def complete_task(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The tasks of the run that precedes on the command line."""
    named = context.params.get("run")

    async def tasks(installation: Installation) -> list[str]:
        from ork.status.ids import resolve_run

        run = await installation.store.get_run(await resolve_run(installation.store, str(named)))
        version = None if run is None else await installation.store.get_version(run.version)
        return [] if version is None else [spec.name for spec in version.workflow.tasks]

    return [task for task in _offered(context, tasks) if task.startswith(incomplete)] if named else []


def complete_workflow(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    async def names(installation: Installation) -> list[str]:
        return [entry.name for entry in await installation.store.list_workflows()]

    return [name for name in _offered(context, names) if name.startswith(incomplete)]


def complete_file_or_workflow(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    return [*complete_workflow(context, parameter, incomplete), CompletionItem(incomplete, type="file")]


run_argument = click.argument("run", shell_complete=complete_run)
task_argument = click.argument("task", required=False, shell_complete=complete_task)
workflow_argument = click.argument("name", shell_complete=complete_workflow)
