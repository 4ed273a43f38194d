"""`ork cost`: what runs cost, by estimate."""

from __future__ import annotations

import re
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from ork.cli.arguments import complete_run, complete_workflow
from ork.cli.session import current_settings, json_option, now, palette, print_json, run_short, store_options
from ork.errors import UsageError

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.model.ids import RunId
    from ork.status.cost import CostReport

_AGE = re.compile(r"(\d{1,6})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
MOST_RUNS = 10_000


@click.command(name="cost")
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=complete_run)
@click.option("--since", metavar="TIME", help="All runs created since then: a date, a time, or an age such as `7d`.")
@click.option(
    "--workflow", metavar="NAME", shell_complete=complete_workflow, help="With --since: runs of this workflow."
)
@click.option("--by", type=click.Choice(("run", "task")), help="How to list several runs.  [default: run]")
@click.option("--prices", "lists_prices", is_flag=True, help="List the prices, their dates and sources.")
@json_option
@store_options
def cost_command(
    runs: tuple[str, ...],
    since: str | None,
    workflow: str | None,
    by: str | None,
    lists_prices: bool,
    as_json: bool,
) -> None:
    """Estimate what runs cost: machines by the size of their worker config, and operations of the store and the bucket.

    It is an estimate from list prices and counted operations, not a bill: without free tiers, discounts, storage and network.

    \b
    Example:  ork cost @last
              ork cost --since 7d --by task
    """
    if lists_prices:
        _print_prices(as_json)
        return
    if workflow is not None and since is None:
        raise UsageError("--workflow needs --since", hint=f"ork cost --since 30d --workflow {workflow}")
    if since is not None and runs:
        raise UsageError("name runs, or use --since, not both")
    start = None if since is None else _start(since)
    reports, short = run_short(lambda installation: _read(installation, runs or ("@last",), start, workflow))
    is_one = len(reports) == 1 and start is None and by is None
    if as_json:
        from ork.model.json_fields import to_json

        if is_one:
            print_json(to_json(reports[0]))
        else:
            print_json({"estimate": True, "usd": _total(reports), "runs": [to_json(each) for each in reports]})
        return
    if not reports:
        print("no runs since then", file=sys.stderr)
        return
    from ork.cli.cost_lines import by_task_lines, note_lines, report_lines, runs_lines

    if is_one:
        lines = report_lines(reports[0], short[reports[0].run])
    elif by == "task":
        lines = by_task_lines(reports)
    else:
        lines = runs_lines(reports, short, now())
    palette(sys.stdout).write(sys.stdout, [*lines, *note_lines(reports)])


async def _read(
    installation: Installation, named: tuple[str, ...], start: datetime | None, workflow: str | None
) -> tuple[list[CostReport], dict[Any, str]]:
    from ork.status.ids import parse_target, resolve_run, short_ids

    store = installation.store
    if start is None:
        ids = [await resolve_run(store, parse_target(run).run) for run in named]
    else:
        ids = await _since(installation, start, workflow)
    reports = [await installation.cost(run, now()) for run in dict.fromkeys(ids)]
    return reports, await short_ids(store, [report.run for report in reports])


async def _since(installation: Installation, start: datetime, workflow: str | None) -> list[RunId]:
    """Newest first."""
    from ork.state.records import RunFilter

    found: list[RunId] = []
    cursor = None
    while True:
        page = await installation.store.list_runs(RunFilter(workflow, limit=500, cursor=cursor))
        recent = [run.id for run in page.runs if run.created_at >= start]
        found += recent
        if len(found) > MOST_RUNS:
            raise UsageError(
                f"more than {MOST_RUNS:,} runs since then", hint="choose a later --since, or one --workflow"
            )
        cursor = page.cursor
        if cursor is None or len(recent) < len(page.runs):
            return found


def _start(text: str) -> datetime:
    found = _AGE.fullmatch(text)
    if found is not None:
        return now() - timedelta(**{_UNITS[found[2]]: int(found[1])})
    from ork.cli.times import parse_time

    try:
        return parse_time(text, "--since")
    except UsageError as error:
        raise UsageError(error.message, hint="such as 7d, 12h, 2026-03-01 or 2026-03-01T12:00:00Z") from None


def _total(reports: list[CostReport]) -> float:
    return sum(report.usd for report in reports)


def _print_prices(as_json: bool) -> None:
    from ork.app.pricing import prices_of

    prices = prices_of(current_settings())
    if as_json:
        from ork.model.json_fields import to_json

        items = {name: to_json(price) for name, price in prices.items.items()}
        sources = {name: to_json(source) for name, source in prices.sources.items()}
        print_json({"date": prices.date, "file": prices.file, "prices": items, "sources": sources})
        return
    from ork.cli.cost_lines import price_lines

    palette(sys.stdout).write(sys.stdout, price_lines(prices))
