"""`ork backfill`: creates runs for past times of a schedule."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

import click

from ork.cli.arguments import workflow_argument
from ork.cli.errors import DONE
from ork.cli.session import json_option, now, print_json, run_long, store_options
from ork.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.model.run import NewRun
    from ork.model.workflow import Schedule, Version

MOST_RUNS = 100_000
AT_ONCE = 100
POLL_SECONDS = 30.0


@click.command(name="backfill")
@workflow_argument
@click.option("--from", "start", required=True, metavar="TIME", help="The first time; a date means its start.")
@click.option("--to", "end", required=True, metavar="TIME", help="The last time; a date means its end.")
@click.option(
    "--max-active", type=click.IntRange(min=1), help="Maximum of unfinished runs; waits for earlier ones to end."
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Create at most N runs now.")
@click.option("-p", "--param", "params", multiple=True, metavar="KEY=VALUE", help="A param of every run.")
@click.option("--dry-run", is_flag=True, help="Only print the times, and which of them have a run.")
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

    A time that already has a run gets no second one: after Ctrl-C, the same command continues with the rest. Times
    without an offset are in the schedule's time zone. The workflow's `max_active_runs` applies.

    \b
    Example:  ork backfill my_etl --from 2026-01-01 --to 2026-01-31 --max-active 3
    """
    options = BackfillOptions(name, start, end, params, max_active, limit, dry_run, as_json)
    made = run_long(lambda installation: _backfill(installation, options))
    if as_json:
        print_json(made)
    elif dry_run:
        for each in made["plan"]:
            print(each["time"] if each["run"] is None else f"{each['time']}  exists: {each['run']} {each['status']}")
        new = sum(each["run"] is None for each in made["plan"])
        print(f"{made['total']:,} times, {new:,} of them without a run; nothing was created.", file=sys.stderr)
    else:
        left = made["total"] - made["created"] - made["existing"]
        rest = f" {left:,} times are left." if left else ""
        print(f"{made['created']:,} runs created, {made['existing']:,} existed already.{rest}", flush=True)
        if not made["is_served"]:
            from ork.status.schedulers import NOTHING_STARTS

            print(f"note: {NOTHING_STARTS}", file=sys.stderr)
    return DONE


class BackfillOptions(NamedTuple):
    name: str
    start: str
    end: str
    params: Sequence[str]
    max_active: int | None
    limit: int | None
    dry_run: bool
    is_quiet: bool


async def _backfill(installation: Installation, options: BackfillOptions) -> dict[str, Any]:
    from ork.cli.new_run import known_version, stored_params
    from ork.status.schedulers import fires_schedules
    from ork.status.shapes import time_json

    version = await known_version(installation, options.name)
    schedule = version.workflow.schedule
    if schedule is None:
        raise RefusedError(f"workflow `{options.name}` has no schedule", hint="`ork trigger` creates a single run")
    times = _times(schedule, options.start, options.end)
    if options.dry_run:
        from ork.status.calendar import backfill_plan

        plan = await backfill_plan(installation.store, options.name, times)
        return {"times": [time_json(time) for time in times], "total": len(times), "plan": plan}
    from ork.cli.definitions import parse_params

    values = await stored_params(installation, version.workflow, parse_params(version.workflow, options.params))
    runs = _runs(version, times, values)
    progress = BackfillProgress(installation, len(times), options)
    await progress.create(runs)
    is_served = await fires_schedules(installation.store)
    return {"created": progress.created, "existing": progress.existing, "total": len(times), "is_served": is_served}


def _times(schedule: Schedule, start: str, end: str) -> list[datetime]:
    from ork.core.cron import times_between

    zone = ZoneInfo(schedule.timezone)
    first, last = _bound(start, "--from", zone, is_end=False), _bound(end, "--to", zone, is_end=True)
    times = list(islice(times_between(schedule, first, min(last, now())), MOST_RUNS + 1))
    if len(times) > MOST_RUNS:
        raise UsageError(
            f"there are more than {MOST_RUNS:,} times between --from and --to", hint="choose a shorter range"
        )
    return times


def _bound(text: str, option: str, zone: ZoneInfo, *, is_end: bool) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} {text} is not a time", hint="such as 2026-03-01 or 2026-03-01T12:00:00Z") from None
    if len(text) <= len("2026-01-01") and is_end:
        time += timedelta(days=1, microseconds=-1)
    return (time.replace(tzinfo=zone) if time.tzinfo is None else time).astimezone(UTC)


def _runs(version: Version, times: Sequence[datetime], values: dict[str, Any]) -> Iterator[NewRun]:
    from ork.model.workflow import Trigger
    from ork.scheduler.fire import scheduled_run

    for time in times:
        yield scheduled_run(version, time, Trigger.BACKFILL, values)


class BackfillProgress:
    """Creates runs; with `max_active` it waits for earlier ones to end."""

    def __init__(self, installation: Installation, total: int, options: BackfillOptions) -> None:
        self.created = 0
        self.existing = 0
        self._store = installation.store
        self._total = total
        self._limit = options.limit
        self._max_active = options.max_active
        self._is_shown = not options.is_quiet and (options.max_active is not None or total > AT_ONCE)
        self._has_warned = options.is_quiet
        self._unfinished: set[Any] = set()

    async def create(self, runs: Iterator[NewRun]) -> None:
        try:
            while wanted := list(islice(runs, await self._batch_size())):
                await self._create_some(wanted)
        except BaseException:
            print(f"stopped: {self._summary()}; the same command continues with the rest", file=sys.stderr)
            raise

    async def _create_some(self, wanted: Sequence[NewRun]) -> None:
        created_at = now()
        for run in await self._store.create_runs(wanted, created_at):
            is_new = run.created_at == created_at
            self.created += is_new
            self.existing += not is_new
            if not run.status.is_final:
                self._unfinished.add(run.id)
        if self._is_shown:
            print(f"{self._summary()}, {len(self._unfinished)} unfinished", file=sys.stderr)

    async def _batch_size(self) -> int:
        """How many runs may be created now. With a limit it is one, because existing runs do not count."""
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
            free = max_active - len(self._unfinished)
            if free > 0:
                return free
            await self._warn_without_scheduler()
            await self._store.wait_for_change(POLL_SECONDS)

    async def _warn_without_scheduler(self) -> None:
        from ork.status.schedulers import NO_SCHEDULER, present_schedulers

        if not self._has_warned and not await present_schedulers(self._store):
            print(NO_SCHEDULER, file=sys.stderr)
            self._has_warned = True

    def _summary(self) -> str:
        return f"{self.created + self.existing:,} of {self._total:,} times have their runs"
