"""`ork schedules`: lists schedules and their next times, or plays them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ork.cli.commands.calendar import calendar_command
from ork.cli.commands.simulate import simulate_command
from ork.cli.session import json_option, now, palette, print_json, run_short, store_options
from ork.cli.times import parse_time

if TYPE_CHECKING:
    from datetime import datetime

    from ork.app.installation import Installation
    from ork.cli.paint import Line
    from ork.status.schedules import Upcoming


@click.group(name="schedules", invoke_without_command=True)
@click.option("--next", "count", type=click.IntRange(1, 1000), default=1, show_default=True, help="How many times.")
@click.option("--after", metavar="TIME", help="Show times after TIME instead of now.")
@json_option
@store_options
@click.pass_context
def schedules_command(context: click.Context, count: int, after: str | None, as_json: bool) -> None:
    """List schedules and their next times, in their own time zone and in local time, show a range with its runs
    (calendar), or play months of them (simulate).

    \b
    Example:  ork schedules --next 5
              ork schedules simulate --from 2026-01-01 --to 2026-04-01
    """
    if context.invoked_subcommand is not None:
        return
    start = now() if after is None else parse_time(after, "--after")
    from ork.status.schedulers import NOTHING_FIRES

    found, is_served = run_short(lambda installation: _upcoming(installation, start, count))
    if as_json:
        from ork.status.shapes import upcoming_json

        print_json({"schedules": [upcoming_json(each) for each in found], "is_served": is_served})
    elif not found:
        print("no schedules: give a workflow a `schedule` and `ork deploy` it", file=sys.stderr)
    else:
        palette(sys.stdout).write(sys.stdout, _table(found))
        if not is_served and any(each.entry.enabled for each in found):
            sys.stdout.flush()
            print(f"note: {NOTHING_FIRES}", file=sys.stderr)


schedules_command.add_command(calendar_command)
schedules_command.add_command(simulate_command)


async def _upcoming(installation: Installation, start: datetime, count: int) -> tuple[list[Upcoming], bool]:
    from ork.status.schedulers import fires_schedules
    from ork.status.schedules import upcoming

    store = installation.store
    found = [upcoming(entry, start, count) for entry in await store.list_schedules()]
    return found, await fires_schedules(store)


def _table(found: list[Upcoming]) -> list[Line]:
    from zoneinfo import ZoneInfo

    from ork.cli.tables import table
    from ork.status.formatting import ago, clock_time

    rows: list[tuple[str, ...]] = []
    for entry, times, problem in found:
        schedule = entry.schedule
        what = (entry.workflow, f"{schedule.cron} {schedule.timezone}", schedule.catchup.value)
        if not times:
            rows.append((*what, problem or ("never" if entry.enabled else "disabled"), "", ""))
        for time in times:
            scheduled = f"{time.astimezone(ZoneInfo(schedule.timezone)):%a %Y-%m-%d %H:%M:%S %Z}"
            rows.append((*what, scheduled, clock_time(time, now()), ago(time, now())))
            what = ("", "", "")
    return table(("workflow", "schedule", "catchup", "next", "local time", ""), rows, less=(2, 4))
