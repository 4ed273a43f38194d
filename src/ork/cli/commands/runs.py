"""`ork runs` and `ork show`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ork.cli.arguments import complete_run, run_argument
from ork.cli.session import json_option, now, palette, print_json, run_short, store_options
from ork.cli.times import parse_time
from ork.model.secret import redacted_params

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.cli.paint import Line
    from ork.model.ids import TaskKey
    from ork.model.run import Run
    from ork.model.task import Attempt
    from ork.status.code_report import CodeReport
    from ork.status.cost import CostReport
    from ork.status.launch_groups import GroupStarts
    from ork.status.run_search import RunSearch
    from ork.status.run_view import RunView

STATUSES = ("pending", "running", "paused", "success", "failed", "cancelled")
TRIGGERS = ("manual", "schedule", "backfill", "event")


@click.group(name="runs", invoke_without_command=True)
@click.option("--workflow", metavar="NAME", help="Only runs of this workflow.")
@click.option("--status", "statuses", multiple=True, type=click.Choice(STATUSES), help="Only these; may be repeated.")
@click.option("--trigger", type=click.Choice(TRIGGERS), help="Only runs that were started by this.")
@click.option(
    "--search", "text", metavar="TEXT", help="Part of a workflow's name, or four or more characters of an id."
)
@click.option("-p", "--param", metavar="NAME=VALUE", help="Only runs with this param.")
@click.option("--after", metavar="TIME", help="Only runs created at TIME or later.")
@click.option("--before", metavar="TIME", help="Only runs created before TIME.")
@click.option("--longest", is_flag=True, help="Of the newest 1000 that have ended, the longest first.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--cursor", help="Continue after the previous page.")
@json_option
@store_options
@click.pass_context
def runs_command(context: click.Context, /, as_json: bool, **options: Any) -> None:
    """List the latest runs, newest first, or compare two.

    \b
    Example:  ork runs --workflow my_etl --status failed
              ork runs --search etl --trigger schedule --longest
    """
    if context.invoked_subcommand is not None:
        return
    search = _search(options)
    runs, short, zones, following, is_partial = run_short(lambda installation: _page(installation, search))
    if as_json:
        from ork.status.shapes import listed_run_json

        rows = [listed_run_json(run) for run in runs]
        print_json({"runs": rows, "cursor": following, "partial": is_partial})
        return
    if runs:
        palette(sys.stdout).write(sys.stdout, _runs_table(runs, short, zones))
        sys.stdout.flush()
    elif following is None:
        is_filtered = not search.is_plain or search.where.workflow or search.where.statuses
        print("no runs" + (" match" if is_filtered else " yet: start one with `ork run`"), file=sys.stderr)
    if is_partial:
        print("note: not all runs that match are shown: narrow the search", file=sys.stderr)
    if following:
        print(f"more: ork runs --cursor {following}", file=sys.stderr)


def _search(options: dict[str, Any]) -> RunSearch:
    from ork.errors import UsageError
    from ork.model.run import RunStatus
    from ork.model.workflow import Trigger
    from ork.state.records import RunFilter
    from ork.status.run_search import RunSearch, Sort

    times = [options[name] and parse_time(options[name], f"--{name}") for name in ("after", "before")]
    statuses = frozenset(map(RunStatus, options["statuses"]))
    where = RunFilter(options["workflow"], statuses, options["limit"], options["cursor"], *times)
    name, equals, value = (options["param"] or "").partition("=")
    if options["param"] and not (name and equals):
        raise UsageError(f"--param {options['param']} is not NAME=VALUE")
    trigger = options["trigger"] and Trigger(options["trigger"])
    sort = Sort.LONGEST if options["longest"] else None
    return RunSearch(where, trigger, options["text"], (name, value) if equals else None, sort)


@runs_command.command(name="diff")
@click.argument("a", shell_complete=complete_run)
@click.argument("b", required=False, shell_complete=complete_run)
@json_option
@store_options
def diff_command(a: str, b: str | None, as_json: bool) -> None:
    """Show the differences between two runs: params, definitions, states, durations, outputs, logs.

    With one run, compares the last success before it with it.

    \b
    Example:  ork runs diff 4f2a @last
              ork runs diff @last
    """
    from ork.cli.run_diff import difference_lines, read_difference

    difference = run_short(lambda installation: read_difference(installation, a, b))
    if as_json:
        print_json(difference)
    else:
        palette(sys.stdout).write(sys.stdout, difference_lines(difference))


class _Page(NamedTuple):
    runs: tuple[Run, ...]
    short: dict[Any, str]
    zones: dict[str, str]  # time zones of the schedules, by workflow
    cursor: str | None
    is_partial: bool


async def _page(installation: Installation, search: RunSearch) -> _Page:
    from ork.status.ids import short_ids

    store = installation.store
    page = await installation.search_runs(search)
    scheduled = {run.workflow for run in page.runs if run.scheduled_for is not None}
    entries = [await store.get_workflow(name) for name in sorted(scheduled)]
    zones = {entry.name: entry.schedule.timezone for entry in entries if entry is not None and entry.schedule}
    return _Page(page.runs, await short_ids(store, [run.id for run in page.runs]), zones, page.cursor, page.is_partial)


def _runs_table(runs: tuple[Run, ...], short: dict[Any, str], zones: dict[str, str]) -> list[Line]:
    from ork.cli.paint import run_status_span
    from ork.cli.tables import table
    from ork.status.formatting import ago, between, slot_time

    time = now()
    rows = [
        (
            short[run.id],
            run.workflow,
            run_status_span(run),
            ago(run.created_at, time),
            between(run.started_at, run.finished_at or (None if run.status.is_final else time)),
            run.trigger.value,
            slot_time(run.scheduled_for, zones.get(run.workflow)) if run.scheduled_for else "",
        )
        for run in runs
    ]
    titles = ("run", "workflow", "status", "created", "took", "trigger", "for")
    shown = len(titles) if any(run.scheduled_for for run in runs) else len(titles) - 1
    return table(titles[:shown], [row[:shown] for row in rows], less=(5, 3))


@click.command(name="show")
@run_argument
@click.option("--full", is_flag=True, help="Show every frame of a failure, and where each attempt ran.")
@click.option("--instances", "unfolded", is_flag=True, help="Show each instance of a fan-out on its own line.")
@click.option("--cost", "with_cost", is_flag=True, help="Show what it costs, by estimate; see `ork cost`.")
@json_option
@store_options
def show_command(run: str, full: bool, unfolded: bool, with_cost: bool, as_json: bool) -> None:
    """Show a run and its tasks, and why tasks failed.

    \b
    Example:  ork show @last --instances
    """
    from ork.model.json_fields import to_json
    from ork.status.facts import MOST_ATTEMPTS, with_facts
    from ork.status.ids import parse_target, resolve_run
    from ork.status.launch_groups import waiting_groups
    from ork.status.run_view import open_view
    from ork.status.shapes import full_run_json

    async def read(
        installation: Installation,
    ) -> tuple[RunView, tuple[Attempt, ...], tuple[GroupStarts, ...], CostReport | None, CodeReport]:
        store = installation.store
        view, _ = await open_view(store, await resolve_run(store, parse_target(run).run))
        wanted = as_json or full or view.total <= MOST_ATTEMPTS
        wanted = wanted or any(task.attempt > 1 for task in view.tasks.values())
        attempts = await store.list_attempts(view.run.id) if wanted else ()
        groups = () if as_json else await waiting_groups(store, view)
        cost = await installation.cost(view.run.id, now()) if with_cost else None
        code = await installation.code_report(view.run.id)
        return view, with_facts(installation.objects, attempts), groups, cost, code

    view, attempts, groups, cost, code = run_short(read)
    if as_json:
        shape = {**full_run_json(view.run, view.version, view.tasks.values(), attempts), "code": to_json(code)}
        print_json(shape if cost is None else {**shape, "cost": to_json(cost)})
    else:
        lines = show_lines(view, now(), attempts, full=full, unfolded=unfolded, groups=groups, code=code)
        palette(sys.stdout).write(sys.stdout, lines + _cost_lines(cost))


def _cost_lines(cost: CostReport | None) -> list[Line]:
    if cost is None:
        return []
    from ork.cli.cost_lines import cost_table, note_lines
    from ork.cli.paint import Span, line
    from ork.status.cost import total_line

    return [line(""), line(Span(f"cost: {total_line(cost)}", "bold")), *cost_table(cost), *note_lines([cost])]


def show_lines(
    view: RunView,
    time: datetime,
    attempts: Sequence[Attempt] = (),
    *,
    full: bool = False,
    unfolded: bool = False,
    groups: Sequence[GroupStarts] = (),
    code: CodeReport | None = None,
) -> list[Line]:
    """The run with its facts, params and tasks, and a summary."""
    from ork.cli import task_lines
    from ork.cli.paint import Span, line, visible
    from ork.status.code_report import commit_text, difference_text
    from ork.status.formatting import ago, slot_time

    run = view.run
    lines = [task_lines.header(view)]
    facts = [f"created {ago(run.created_at, time)}", run.trigger.value, f"version {run.version}"]
    if run.scheduled_for is not None:
        schedule = view.version.workflow.schedule
        facts.insert(2, f"for {slot_time(run.scheduled_for, schedule.timezone if schedule else None)}")
    if code is not None and (commit := commit_text(code.code)) is not None:
        facts.append(commit)
    lines.append(line(Span("  " + " · ".join(facts), "dim")))
    if code is not None and code.difference is not None:
        lines.append(line(Span("  code    ", "dim"), f"changed since: {visible(difference_text(code.difference))}"))
    if run.params:
        lines.append(line(Span("  params  ", "dim"), _params(redacted_params(run.params))))
    if run.parent:
        lines.append(line(Span("  from    ", "dim"), run.parent))
    tries: dict[TaskKey, list[Attempt]] = {}
    for attempt in attempts:
        tries.setdefault(attempt.key.task, []).append(attempt)
    for task in view.tasks.values():
        if task.key.index is None or unfolded:
            lines += task_lines.any_lines(view, task, time, full=full)
            lines += task_lines.earlier_lines(task, tries.get(task.key, ()))
            lines += task_lines.fact_lines(tries.get(task.key, ()), full=full)
        waiting = [group for group in groups if task.key == (group.task, None)]
        lines += [line(Span(f"      {group}", "dim")) for group in waiting]
        if task.key.index is None and not unfolded:
            lines += task_lines.instance_lines(view, task.key.name, time, full=full)
    lines += [line(""), task_lines.summary(view)]
    if run.note and not run.status.is_final:
        lines.append(line(f"  {run.note}"))
    if run.unreadable:
        lines.append(line(Span(f"  unreadable: {visible(run.unreadable)}", "bad")))
    return lines + (
        task_lines.next_steps(view, shown=True) if run.status.is_final else [line(f"  ork why {view.short}")]
    )


def _params(params: dict[str, Any]) -> str:
    import json

    from ork.cli.paint import shorten, visible

    return shorten(
        visible(", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in params.items())), 160
    )
