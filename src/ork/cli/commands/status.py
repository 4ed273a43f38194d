"""`ork status`: what goes on in this store right now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ork.cli.session import json_option, look, now, palette, print_json, store_options

if TYPE_CHECKING:
    from ork.app import Installation
    from ork.cli.paint import Line

MAX_RUNS = 20


@click.command(name="status")
@json_option
@store_options
def status_command(as_json: bool) -> None:
    """Schedulers, runs that have not ended, and limits that are in use.

    \b
    Example:  ork status --json
    """
    found = look(_gather)
    if as_json:
        print_json(_as_json(found))
    else:
        palette(sys.stdout).write(sys.stdout, _lines(found))


async def _gather(installation: Installation) -> dict[str, Any]:
    from ork.model.run import RunStatus
    from ork.state.store import RunFilter
    from ork.status.ids import short_ids
    from ork.status.serving import live_schedulers

    store = installation.store
    unfinished = frozenset(status for status in RunStatus if not status.is_final)
    page = await store.list_runs(RunFilter(statuses=unfinished, limit=MAX_RUNS))
    return {
        "store": installation.settings.store,
        "schedulers": await live_schedulers(store, None),
        "runs": page.runs,
        "more": page.cursor is not None,
        "short": await short_ids(store, [run.id for run in page.runs]),
        "limits": [use for use in await store.limit_use() if use.used],
    }


def _as_json(found: dict[str, Any]) -> dict[str, Any]:
    from ork.status.shapes import run_json, time_json

    return {
        "store": found["store"],
        "schedulers": [
            {
                "id": s.id,
                "kind": s.kind,
                "identity": s.identity,
                "started_at": time_json(s.started_at),
                "runs": s.active_runs,
            }
            for s in found["schedulers"]
        ],
        "runs": [run_json(run) for run in found["runs"]],
        "limits": [{"name": use.name, "slots": use.slots, "used": use.used} for use in found["limits"]],
    }


def _lines(found: dict[str, Any]) -> list[Line]:
    from ork.cli.looks import state_word
    from ork.cli.paint import Span, line
    from ork.cli.tables import table
    from ork.status.words import ago, count

    moment = now()
    lines = [line(Span("store       ", "dim"), found["store"])]
    for entry in found["schedulers"]:
        what = f"{entry.kind}, started {ago(entry.started_at, moment)}, {count(entry.active_runs, 'run')}"
        lines.append(line(Span("scheduler   ", "dim"), what))
    if not found["schedulers"]:
        lines.append(line(Span("scheduler   ", "dim"), "none is running"))
    for use in found["limits"]:
        lines.append(line(Span("limit       ", "dim"), f"{use.name}: {use.used} of {use.slots}"))
    if not found["runs"]:
        return [*lines, line(Span("runs        ", "dim"), "all have ended")]
    rows = [(found["short"][r.id], r.workflow, state_word(r.status), ago(r.created_at, moment)) for r in found["runs"]]
    return [*lines, line(""), *table(("run", "workflow", "status", "created"), rows)]
