"""`ork schedules calendar`: the times of schedules in a range, with their runs."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from ork.cli.arguments import complete_workflow
from ork.cli.session import json_option, now, palette, print_json, run_short, store_options
from ork.cli.times import parse_time

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.cli.paint import Line

DEFAULT_DAYS = 7


@click.command(name="calendar")
@click.argument("workflow", required=False, shell_complete=complete_workflow)
@click.option("--from", "start", metavar="TIME", help="The first time; default: a week ago.")
@click.option("--to", "end", metavar="TIME", help="Times before this one; default: in a week. At most 92 days.")
@json_option
@store_options
def calendar_command(workflow: str | None, start: str | None, end: str | None, as_json: bool) -> None:
    """Show the times of schedules in a range: with their runs, missed, due or planned.

    \b
    Example:  ork schedules calendar my_etl --from 2026-03-01 --to 2026-04-01
    """
    week = timedelta(days=DEFAULT_DAYS)
    first = now() - week if start is None else parse_time(start, "--from")
    last = now() + week if end is None else parse_time(end, "--to")
    found = run_short(lambda installation: _read(installation, workflow, first, last))
    if as_json:
        print_json(found)
        return
    palette(sys.stdout).write(sys.stdout, _lines(found))
    sys.stdout.flush()
    for row in found["workflows"]:
        if row["partial"]:
            print(f"note: not all times of {row['workflow']} are shown: choose a shorter range", file=sys.stderr)


async def _read(installation: Installation, workflow: str | None, start: datetime, end: datetime) -> dict[str, Any]:
    """All pages as one."""
    from ork.errors import NotFoundError
    from ork.status.calendar import Range, calendar, check_range

    check_range(start, end)
    store = installation.store
    entries = [entry for entry in await store.list_schedules() if workflow in (None, entry.workflow)]
    if workflow is not None and not entries:
        raise NotFoundError(f"no workflow `{workflow}` with a schedule", hint="`ork schedules` lists them")
    found = page = await calendar(store, entries, Range(start, end, now()))
    while page["cursor"] is not None:
        entries = [entry for entry in entries if entry.workflow > page["cursor"]]
        page = await calendar(store, entries, Range(start, end, now()))
        found["workflows"] += page["workflows"]
    partial = any(row["partial"] for row in found["workflows"])
    return {**{name: value for name, value in found.items() if name != "cursor"}, "partial": partial}


def _lines(found: dict[str, Any]) -> list[Line]:
    from ork.cli.paint import line, visible
    from ork.cli.tables import table

    rows = [row for each in found["workflows"] for row in _rows(each)]
    notes = [
        line(f"{each['workflow']}: {visible(note['text'])}") for each in found["workflows"] for note in each["notes"]
    ]
    return [*table(("workflow", "time", "state", "run", "took"), rows, less=(4,)), *notes]


def _rows(workflow: dict[str, Any]) -> list[tuple[str, ...]]:
    from zoneinfo import ZoneInfo

    from ork.status.formatting import duration

    name = workflow["workflow"]
    if not workflow["times"]:
        return [(name, workflow["problem"] or ("no times" if workflow["enabled"] else "disabled"), "", "", "")]
    rows: list[tuple[str, ...]] = []
    for each in workflow["times"]:
        time = datetime.fromisoformat(each["time"]).astimezone(ZoneInfo(workflow["timezone"]))
        run = each["run"]
        state = each["state"] if run is None else run["status"]
        seconds = "" if run is None or run["seconds"] is None else duration(run["seconds"])
        rows.append((name, f"{time:%a %Y-%m-%d %H:%M:%S %Z}", state, "" if run is None else run["id"], seconds))
        name = ""
    return rows
