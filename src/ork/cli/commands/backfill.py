"""`ork backfill`: runs for times of a schedule that have passed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

import click

from ork.cli.errors import DONE
from ork.cli.naming import workflow_argument
from ork.cli.session import json_option, now, print_json, serve, store_options
from ork.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.model.run import NewRun
    from ork.model.workflow import Schedule, Version

MOST_RUNS = 100_000
AT_ONCE = 100
LOOK_SECONDS = 30.0


@click.command(name="backfill")
@workflow_argument
@click.option("--from", "start", required=True, metavar="TIME", help="The first time; a date is its beginning.")
@click.option("--to", "end", required=True, metavar="TIME", help="The last time; a date is its end.")
@click.option("--max-active", type=click.IntRange(min=1), help="At most so many of them unfinished at once; stays.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Create at most so many; the rest another time.")
@click.option("-p", "--param", "params", multiple=True, metavar="KEY=VALUE", help="A param of every run.")
@click.option("--dry-run", is_flag=True, help="Only say which times there are.")
@json_option
@store_options
def backfill_command(
    name: str,
    start: str,
    end: str,
    max_active: int | None,
    limit: int | None,
    params: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> int:
    """Create the runs of a workflow for past times of its schedule, each with its `scheduled_for`.

    A time that has a run already gets no second one: stopped with Ctrl-C it pauses, and the same command goes on with
    the rest. Times without an offset are meant in the schedule's own zone. `max_active_runs` of the workflow holds as
    always.

    \b
    Example:  ork backfill my_etl --from 2026-01-01 --to 2026-01-31 --max-active 3
    """
    asked = Asked(name, start, end, params, max_active, limit, dry_run, as_json)
    made = serve(lambda installation: _backfill(installation, asked))
    if as_json:
        print_json(made)
    elif dry_run:
        for time in made["times"]:
            print(time)
        print(f"{made['total']:,} times; nothing was created.", file=sys.stderr)
    else:
        left = made["total"] - made["created"] - made["existing"]
        rest = f" {left:,} times are left for the next time." if left else ""
        print(f"{made['created']:,} runs created, {made['existing']:,} were there already.{rest}", flush=True)
        if not made["is_served"]:
            from ork.status.schedulers import NOTHING_STARTS

            print(f"note: {NOTHING_STARTS}", file=sys.stderr)
    return DONE


class Asked(NamedTuple):
    name: str
    start: str
    end: str
    params: Sequence[str]
    max_active: int | None
    limit: int | None
    dry_run: bool
    is_quiet: bool


async def _backfill(installation: Installation, asked: Asked) -> dict[str, Any]:
    from ork.cli.starting import known_version, stored_params
    from ork.status.schedulers import fires_schedules
    from ork.status.shapes import time_json

    version = await known_version(installation, asked.name)
    schedule = version.workflow.schedule
    if schedule is None:
        raise RefusedError(f"workflow `{asked.name}` has no schedule", hint="`ork trigger` creates a single run")
    times = _times(schedule, asked.start, asked.end)
    if asked.dry_run:
        return {"times": [time_json(time) for time in times], "total": len(times)}
    from ork.cli.definitions import parse_params

    values = await stored_params(installation, version.workflow, parse_params(version.workflow, asked.params))
    runs = _runs(version, times, values)
    progress = Progress(installation, len(times), asked)
    await progress.create(runs)
    is_served = await fires_schedules(installation.store)
    return {"created": progress.created, "existing": progress.existing, "total": len(times), "is_served": is_served}


def _times(schedule: Schedule, start: str, end: str) -> list[datetime]:
    from ork.core.cron import times_between

    zone = ZoneInfo(schedule.timezone)
    first, last = _bound(start, "--from", zone, is_end=False), _bound(end, "--to", zone, is_end=True)
    times = list(islice(times_between(schedule, first, min(last, now())), MOST_RUNS + 1))
    if len(times) > MOST_RUNS:
        raise UsageError(f"there are more than {MOST_RUNS:,} times between --from and --to", hint="take smaller parts")
    return times


def _bound(text: str, option: str, zone: ZoneInfo, *, is_end: bool) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} {text} is not a time", hint="such as 2026-03-01 or 2026-03-01T12:00:00Z") from None
    if len(text) <= len("2026-01-01") and is_end:
        moment += timedelta(days=1, microseconds=-1)
    return (moment.replace(tzinfo=zone) if moment.tzinfo is None else moment).astimezone(UTC)


def _runs(version: Version, times: Sequence[datetime], values: dict[str, Any]) -> Iterator[NewRun]:
    from ork.model.workflow import Trigger
    from ork.scheduler.fire import scheduled_run

    for time in times:
        yield scheduled_run(version, time, Trigger.BACKFILL, values)


class Progress:
    """Creates runs, and with a limit waits for earlier ones to end."""

    def __init__(self, installation: Installation, total: int, asked: Asked) -> None:
        self.created = 0
        self.existing = 0
        self._store = installation.store
        self._total = total
        self._limit = asked.limit
        self._max_active = asked.max_active
        self._is_shown = not asked.is_quiet and (asked.max_active is not None or total > AT_ONCE)
        self._is_nobody_told = asked.is_quiet
        self._unfinished: set[Any] = set()

    async def create(self, runs: Iterator[NewRun]) -> None:
        try:
            while wanted := list(islice(runs, await self._room())):
                await self._create_some(wanted)
        except BaseException:
            print(f"stopped: {self._standing()}; the same command goes on with the rest", file=sys.stderr)
            raise

    async def _create_some(self, wanted: Sequence[NewRun]) -> None:
        moment = now()
        for run in await self._store.create_runs(wanted, moment):
            is_new = run.created_at == moment
            self.created += is_new
            self.existing += not is_new
            if not run.status.is_final:
                self._unfinished.add(run.id)
        if self._is_shown:
            print(f"{self._standing()}, {len(self._unfinished)} go on", file=sys.stderr)

    async def _room(self) -> int:
        """How many may be created now; with a limit one by one, as those that exist do not count."""
        if self._limit is not None and self.created >= self._limit:
            return 0
        most = AT_ONCE if self._limit is None else 1
        return most if self._max_active is None else min(await self._free(self._max_active), most)

    async def _free(self, max_active: int) -> int:
        while True:
            for id in list(self._unfinished):
                run = await self._store.get_run(id)
                if run is None or run.status.is_final:
                    self._unfinished.discard(id)
            room = max_active - len(self._unfinished)
            if room > 0:
                return room
            await self._tell_if_nobody_works()
            await self._store.wait_for_change(LOOK_SECONDS)

    async def _tell_if_nobody_works(self) -> None:
        from ork.status.schedulers import NO_SCHEDULER, present_schedulers

        if not self._is_nobody_told and not await present_schedulers(self._store):
            print(NO_SCHEDULER, file=sys.stderr)
            self._is_nobody_told = True

    def _standing(self) -> str:
        return f"{self.created + self.existing:,} of {self._total:,} times have their runs"
