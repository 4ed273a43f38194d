"""`ork plan`: shows what a deploy would change."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ork.cli.definitions import all_versions, definition_error, print_problems, read_definitions, workflow_files
from ork.cli.errors import DONE, WRONG_USE
from ork.cli.session import json_option, now, print_json, run_short, settings_of, store_options

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.model.workflow import Schedule, Version

TIMES_SHOWN = 3
YEAR = timedelta(days=366)


@click.command(name="plan")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@json_option
@store_options
def plan_command(files: tuple[str, ...], as_json: bool) -> int:
    """Show what `ork deploy` of these files would change, and when schedules would fire. Changes nothing.

    \b
    Example:  ork plan flows/*.yaml
    """
    files = workflow_files(files)
    settings = settings_of(*files)
    results = [read for file in files for read in read_definitions(file, settings)]
    problems = [problem for result in results for problem in result.problems]
    if problems:
        if as_json:
            raise definition_error(problems)
        print_problems(problems)
        return WRONG_USE
    versions = all_versions((read, read.workflow) for read in results if read.workflow)
    plans = run_short(lambda installation: _plans(installation, versions), may_be_new=True)
    if as_json:
        print_json({"workflows": plans})
        return DONE
    for plan in plans:
        _print(plan)
    return DONE


async def _plans(installation: Installation, versions: list[Version]) -> list[dict[str, Any]]:
    from ork.status.diff import diff_code, diff_workflows

    store, plans = installation.store, []
    for version in versions:
        entry = await store.get_workflow(version.workflow.name)
        current = None if entry is None else await store.get_version(entry.version)
        state = "new" if current is None else "unchanged" if current.id == version.id else "changed"
        difference = diff_workflows(None if current is None else current.workflow, version.workflow)
        schedule = version.workflow.schedule
        plans.append(
            {
                "name": version.workflow.name,
                "state": state,
                "version": version.id,
                "current_version": current and current.id,
                **difference,
                "moved": bool(current and current.root != version.root),
                "code": diff_code(None if current is None else current.code, version.code),
                "commit": version.code and version.code.commit,
                "dirty": version.code and version.code.dirty,
                **_times(schedule),
            }
        )
    return plans


def _times(schedule: Schedule | None) -> dict[str, Any]:
    from ork.core.cron import moved_times, next_fire_times
    from ork.status.calendar import skipped_text
    from ork.status.shapes import schedule_json, time_json

    if schedule is None or not schedule.enabled:
        return {"schedule": schedule_json(schedule), "next": [], "warnings": []}
    after = now()
    warnings = [
        skipped_text(moved.local, (moved.instead,) if moved.instead else (), schedule.timezone)
        for moved in moved_times(schedule, after, after + YEAR)[:TIMES_SHOWN]
    ]
    times = next_fire_times(schedule, after, TIMES_SHOWN)
    return {"schedule": schedule_json(schedule), "next": [time_json(time) for time in times], "warnings": warnings}


def _print(plan: dict[str, Any]) -> None:
    from ork.cli.paint import visible
    from ork.status.code_report import commit_name, difference_text

    at = commit_name(plan["commit"], plan["dirty"])
    print(f"{plan['name']}  {plan['state']}  version {plan['version']}{f'  {at}' if at else ''}")
    for sign, names in (("+", plan["added"]), ("-", plan["removed"])):
        for name in names:
            print(f"  {sign} task {name}")
    for name, keys in plan["changed"].items():
        print(f"  ~ task {name}: {', '.join(keys)}")
    for key in plan["keys"]:
        print(f"  ~ {key}")
    if plan["code"] is not None:
        print(f"  ~ code: {visible(difference_text(plan['code']))}")
    if plan["moved"]:
        print("  ~ its folder")
    schedule = plan["schedule"]
    if schedule is not None:
        times = ", ".join(plan["next"]) or "never: the schedule is disabled"
        print(f"  schedule {schedule['cron']} {schedule['timezone']}: {times}")
    for warning in plan["warnings"]:
        print(f"  warning: {warning}", file=sys.stderr)
