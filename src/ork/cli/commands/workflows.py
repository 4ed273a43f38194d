"""`ork workflows` and `ork workflow show|versions|diff|enable|disable|delete`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ork.cli.arguments import workflow_argument
from ork.cli.session import current_user, json_option, now, palette, print_json, run_short, store_options
from ork.errors import NotFoundError

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.cli.paint import Line
    from ork.model.run import Run
    from ork.model.workflow import Version, WorkflowEntry


@click.command(name="workflows")
@json_option
@store_options
def workflows_command(as_json: bool) -> None:
    """List the deployed workflows with their schedules and last runs.

    \b
    Example:  ork workflows --json
    """
    entries = run_short(_entries)
    if as_json:
        from ork.status.shapes import workflow_json

        print_json({"workflows": [workflow_json(entry, run) for entry, run, _ in entries]})
        return
    if not entries:
        print("no workflows yet: `ork run FILE` or `ork deploy FILE` adds one", file=sys.stderr)
        return
    palette(sys.stdout).write(sys.stdout, _table(entries))


async def _entries(installation: Installation) -> list[tuple[WorkflowEntry, Run | None, str]]:
    from ork.status.ids import short_id

    store = installation.store
    entries = await store.list_workflows()
    last_runs = await store.last_runs([entry.name for entry in entries])
    found = []
    for entry in entries:
        run = last_runs.get(entry.name)
        found.append((entry, run, await short_id(store, run.id) if run else ""))
    return found


def _table(entries: list[tuple[WorkflowEntry, Run | None, str]]) -> list[Line]:
    from ork.cli.paint import status_span
    from ork.cli.tables import table
    from ork.status.formatting import ago

    rows = [
        (
            entry.name,
            "enabled" if entry.enabled else "disabled",
            f"{entry.schedule.cron} {entry.schedule.timezone}" if entry.schedule else "–",
            status_span(run.status) if run else "–",
            f"{short} {ago(run.created_at, now())}" if run else "–",
            entry.version,
        )
        for entry, run, short in entries
    ]
    return table(("workflow", "", "schedule", "last run", "", "version"), rows, less=(5,))


@click.group(name="workflow")
def workflow_command() -> None:
    """Show, compare, enable, disable or delete one workflow."""


@workflow_command.command(name="show")
@workflow_argument
@json_option
@store_options
def show_workflow(name: str, as_json: bool) -> None:
    """Show a workflow: its version, params, schedule and tasks.

    \b
    Example:  ork workflow show my_etl
    """
    entry, version, run = run_short(lambda installation: _one(installation, name))
    if as_json:
        from ork.compile.content import to_document
        from ork.status.shapes import workflow_json

        print_json({**workflow_json(entry, run), "definition": to_document(version.workflow)})
    else:
        palette(sys.stdout).write(sys.stdout, _workflow_lines(entry, version))


async def _one(installation: Installation, name: str) -> tuple[WorkflowEntry, Version, Run | None]:
    store = installation.store
    entry = await store.get_workflow(name)
    version = await store.get_version(entry.version) if entry else None
    if entry is None or version is None:
        raise _unknown(name)
    return entry, version, (await store.last_runs([name])).get(name)


def _workflow_lines(entry: WorkflowEntry, version: Version) -> list[Line]:
    from ork.cli.paint import Span, line, visible
    from ork.model.location import location_of

    workflow = version.workflow
    facts: list[tuple[str, Any]] = [
        ("version", version.id),
        ("state", "enabled" if entry.enabled else "disabled"),
        ("file", version.source or "–"),
        *([("location", location)] if (location := location_of(entry.origin)) else []),
        ("schedule", f"{entry.schedule.cron} {entry.schedule.timezone}" if entry.schedule else "none"),
    ]
    facts += [("param", f"{p.name}: {p.type}" + ("" if p.required else f" = {p.default}")) for p in workflow.params]
    lines = [line(Span(workflow.name, "bold"), f"  {visible(workflow.description or '')}")]
    lines += [line(Span(f"  {label:<10}", "dim"), visible(str(value))) for label, value in facts]
    for task in workflow.tasks:
        after = f"   after {', '.join(task.depends_on)}" if task.depends_on else ""
        lines.append(line(Span("  task      ", "dim"), f"{task.name}   {task.executor}", Span(after, "dim")))
    return lines


@workflow_command.command(name="versions")
@workflow_argument
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@json_option
@store_options
def list_versions(name: str, limit: int, as_json: bool) -> None:
    """List the versions of a workflow, newest first.

    \b
    Example:  ork workflow versions my_etl
    """
    found = run_short(lambda installation: installation.store.list_versions(name, limit))
    if not found:
        raise _unknown(name)
    if as_json:
        from ork.model.json_fields import to_json

        print_json({"versions": [to_json(each) for each in found]})
        return
    from ork.cli.tables import table
    from ork.status.formatting import ago

    rows = [(each.id, ago(each.saved_at, now()) if each.saved_at else "–", each.source or "–") for each in found]
    palette(sys.stdout).write(sys.stdout, table(("version", "deployed", "from"), rows))


@workflow_command.command(name="diff")
@click.argument("a", metavar="VERSION")
@click.argument("b", metavar="VERSION")
@json_option
@store_options
def diff_versions(a: str, b: str, as_json: bool) -> None:
    """Show the tasks and keys that differ between two versions.

    \b
    Example:  ork workflow diff ed4438ac7eda8df9 1f0c22aa9b3e4d51
    """
    from ork.cli.run_diff import definition_lines
    from ork.status.diff import diff_workflows

    one, other = run_short(lambda installation: _versions(installation, (a, b)))
    found = diff_workflows(one.workflow, other.workflow)
    if as_json:
        print_json({"a": one.id, "b": other.id, **found})
        return
    lines = definition_lines(found)
    palette(sys.stdout).write(sys.stdout, lines)
    if not lines:
        print("the definitions are the same", file=sys.stderr)


async def _versions(installation: Installation, ids: tuple[str, ...]) -> list[Version]:
    from ork.model.ids import VersionId

    found = []
    for id in ids:
        version = await installation.store.get_version(VersionId(id))
        if version is None:
            raise NotFoundError(f"no version `{id}`", hint="`ork workflow versions NAME` lists them")
        found.append(version)
    return found


@workflow_command.command(name="enable")
@workflow_argument
@json_option
@store_options
def enable_workflow(name: str, as_json: bool) -> None:
    """Enable a workflow's schedule.

    \b
    Example:  ork workflow enable my_etl
    """
    _set_enabled(name, True, as_json)


@workflow_command.command(name="disable")
@workflow_argument
@json_option
@store_options
def disable_workflow(name: str, as_json: bool) -> None:
    """Disable a workflow's schedule. Its runs are kept.

    \b
    Example:  ork workflow disable my_etl
    """
    _set_enabled(name, False, as_json)


@workflow_command.command(name="delete")
@workflow_argument
@store_options
def delete_workflow(name: str) -> None:
    """Delete a workflow. Its runs are kept. Refused while one of them is unfinished.

    
    Example:  ork workflow delete my_etl
    """

    async def delete(installation: Installation) -> bool:
        is_known = await installation.store.delete_workflow(name)
        if is_known:
            await installation.record(current_user(), "workflow.delete", name)
        return is_known

    if not run_short(delete):
        raise _unknown(name)
    print(f"workflow {name} is deleted; its runs are kept")


def _set_enabled(name: str, enabled: bool, as_json: bool) -> None:
    async def change(installation: Installation) -> bool:
        from ork.status.schedules import set_schedule_enabled

        is_known = await set_schedule_enabled(installation.store, name, enabled, now())
        if is_known:
            await installation.record(current_user(), "workflow.enable" if enabled else "workflow.disable", name)
        return is_known

    if not run_short(change):
        raise _unknown(name)
    if as_json:
        print_json({"name": name, "enabled": enabled})
    else:
        print(f"workflow {name} is {'enabled' if enabled else 'disabled'}")


def _unknown(name: str) -> NotFoundError:
    return NotFoundError(f"no workflow `{name}`", hint="`ork workflows` lists them")
