"""Runs: create, list, get, and submit commands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Header, Query, Request
from starlette.responses import Response

from ork.api import models, page_models
from ork.api.bodies import BulkBody, CommandBody, TriggerBody, described, json_response, read_body
from ork.api.context import Api, Caller, api_of, caller_of
from ork.api.paging import fitting
from ork.api.parameters import (
    LARGEST_PAGE,
    AttemptCursor,
    Limit,
    Mark,
    OptionalName,
    RunCursor,
    RunText,
    TaskCursor,
    TaskTarget,
    Time,
    WorkflowName,
    parse_time,
)
from ork.api.problems import of_error
from ork.api.routes.workflows import known_workflow
from ork.api.routing import Routes
from ork.api.trigger import RunRequest, trigger
from ork.api.views import ended_run, ended_runs, graph_text, whole_run
from ork.core.commands import parse_key
from ork.errors import NotFoundError, RefusedError, UsageError
from ork.model.access import Role
from ork.model.ids import ID_ALPHABET, RUN_ID_LENGTH, TaskKey
from ork.model.json_fields import to_json
from ork.model.run import CommandKind, RunCommand, RunStatus
from ork.model.task import TaskStatus
from ork.model.workflow import Trigger
from ork.state.records import Accepted, RunFilter, TaskFilter, TooLate
from ork.status.approval_targets import check_approver, named_task, waiting_task
from ork.status.columns import run_columns
from ork.status.cost import cost_report, read_facts
from ork.status.damage import check_readable
from ork.status.declare_dead import check_declared_dead
from ork.status.explain import explain, why_json
from ork.status.facts import with_facts
from ork.status.ids import parse_target, resolve_run
from ork.status.refusals import check_retry, command_refused
from ork.status.run_search import Count, RunSearch, Sort, count_runs, progress_of, search_runs
from ork.status.run_view import MANY_TASKS, open_view, version_of
from ork.status.secret_masking import hidden_params, mask_params, mask_secrets_of
from ork.status.shapes import attempt_json, listed_run_json, run_json, task_row
from ork.status.summary import run_summary
from ork.status.wire import read_attempt_key, read_key

routes = Routes("runs")

KEY = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="The same key and body return the same run; the same key with another body is rejected.",
    ),
]
Status = Annotated[list[RunStatus] | None, Query(description="Only these; may be repeated.")]
TaskStatuses = Annotated[list[TaskStatus] | None, Query(description="Only these; may be repeated.")]


@routes.add(
    "POST",
    "/workflows/{name}/runs",
    Role.OPERATOR,
    status_code=201,
    response_model=models.Run,
    responses={200: {"model": models.Run, "description": "The run of an earlier request with this key."}},
    openapi_extra=described(TriggerBody),
)
async def create_run(request: Request, name: WorkflowName, key: KEY = None) -> Response:
    """Creates a run. It is stored durably when the response is sent."""
    api, caller = api_of(request), caller_of(request)
    body = await read_body(request, TriggerBody)
    await known_workflow(api, name)
    wanted = RunRequest(name, body.params, key, body.version, body.priority, body.fresh, body.parent)
    wanted = wanted._replace(started_by=caller.name)
    if body.scheduled_for is not None:
        time = parse_time(body.scheduled_for, "scheduled_for")
        wanted = wanted._replace(scheduled_for=time, by=Trigger.BACKFILL)
    run, is_new = await trigger(api, wanted)
    if is_new:
        await api.record_change(caller, "run.trigger", run.id, json.dumps({"workflow": name}))
    return json_response(run_json(run), 201 if is_new else 200)


@routes.add("GET", "/runs", Role.VIEWER, response_model=models.RunPage)
async def list_runs(
    request: Request,
    workflow: OptionalName = None,
    status: Status = None,
    created_after: Time = None,
    created_before: Time = None,
    trigger: Annotated[Trigger | None, Query(description="What started the run.")] = None,
    q: Annotated[
        str | None,
        Query(
            min_length=1, max_length=100, description="Part of a workflow's name, or four or more characters of an id."
        ),
    ] = None,
    param: Annotated[
        str | None,
        Query(
            max_length=500, pattern="^[^:]+:", description="NAME:VALUE; a value that is not text is written as JSON."
        ),
    ] = None,
    sort: Annotated[
        Sort | None, Query(description="By duration: of the newest 1000 that match and have ended, on one page.")
    ] = None,
    scheduled_for: Annotated[
        list[str] | None,
        Query(max_length=100, description="With `workflow`: the runs for these times of its schedule."),
    ] = None,
    counts: Annotated[bool, Query(description="Also count the runs that match, and the tasks of each run.")] = False,
    limit: Limit = 20,
    cursor: RunCursor = None,
) -> Response:
    """Lists runs, newest first, without params. Get a run to read its params. A page may be short, or even empty, and
    have a cursor: a search by `trigger`, `q` or `param` ends after some time, and `cursor` continues it."""
    api = api_of(request)
    if scheduled_for is not None:
        return await _scheduled_runs(api, workflow, scheduled_for)
    after = None if created_after is None else parse_time(created_after, "created_after")
    before = None if created_before is None else parse_time(created_before, "created_before")
    where = RunFilter(workflow, frozenset(status or ()), limit, cursor, after, before)
    named, _, value = (param or "").partition(":")
    search = RunSearch(where, trigger, q, (named, value) if param else None, sort)
    found = await search_runs(api.store, search)
    progress = await progress_of(api.store, ended_runs(api), found.runs) if counts else [None] * len(found.runs)
    rows = [{**listed_run_json(run), "progress": each} for run, each in zip(found.runs, progress, strict=True)]
    count = await count_runs(api.store, search) if counts else Count(None, None)
    return json_response(
        {
            "runs": rows,
            "cursor": found.cursor,
            "count": count.number,
            "count_is_exact": count.is_exact,
            "partial": found.is_partial,
        }
    )


async def _scheduled_runs(api: Api, workflow: str | None, times: list[str]) -> Response:
    if workflow is None:
        raise UsageError("`scheduled_for` needs a `workflow`")
    found = await api.store.find_scheduled(workflow, [parse_time(time, "scheduled_for") for time in times])
    rows = [{**listed_run_json(found[time]), "progress": None} for time in sorted(found, reverse=True)]
    return json_response({"runs": rows, "cursor": None, "count": None, "count_is_exact": None, "partial": False})


@routes.add("GET", "/run-ids", Role.VIEWER, response_model=models.RunIds)
async def find_runs(
    request: Request,
    prefix: Annotated[str, Query(min_length=1, max_length=RUN_ID_LENGTH, pattern=f"^[{ID_ALPHABET}]+$")],
    limit: Limit = 10,
) -> Response:
    """Lists the ids that start with the prefix."""
    return json_response({"ids": await api_of(request).store.find_runs(prefix, limit)})


@routes.add("GET", "/runs/{run}", Role.VIEWER, response_model=models.RunWithTasks)
async def get_run(request: Request, run: RunText) -> Response:
    """Returns a run with its tasks and their attempts."""
    api = api_of(request)
    found = await resolve_run(api.store, run)
    headers, kept = await ended_run(request, api, found)
    if kept is not None:
        return kept
    text = await whole_run(api, found)
    if text is None:
        raise unknown_run(run)
    return Response(text, media_type="application/json", headers=headers)


@routes.add("GET", "/runs/{run}/tasks", Role.VIEWER, response_model=models.TaskPage)
async def list_tasks(
    request: Request,
    run: RunText,
    since: Mark = None,
    name: OptionalName = None,
    status: TaskStatuses = None,
    limit: Limit = LARGEST_PAGE,
    cursor: TaskCursor = None,
) -> Response:
    """Returns the run and its tasks in workflow order, or those that changed after the mark `since`; `mark` is the next
    one. Changes between two pages come after the mark of the first page.

    A fan-out has a row of its own, with `instances`, in addition to those of its instances.
    """
    api = api_of(request)
    only = TaskFilter(name, frozenset(status or ()), read_key(cursor) if cursor else None, limit + 1)
    found = await resolve_run(api.store, run)
    update = await api.store.run_updates(found, since, only)
    if update is None:
        raise unknown_run(run)
    version = await version_of(api.store, update.run)
    mask_secrets_of(version.workflow)
    update = mask_params(await hidden_params(api.store, update.run), update)
    needs = {spec.name: spec.depends_on for spec in version.workflow.tasks}
    rows = fitting(task_row(task, needs.get(task.key.name, ())) for task in update.tasks[:limit])
    return json_response(
        {
            "run": run_json(update.run),
            "owner": await api.store.get_owner(found),
            "tasks": rows,
            "mark": update.mark,
            "cursor": str(update.tasks[len(rows) - 1].key) if len(update.tasks) > len(rows) else None,
        }
    )


@routes.add("GET", "/runs/{run}/attempts", Role.VIEWER, response_model=models.AttemptPage)
async def list_attempts(
    request: Request,
    run: RunText,
    task: OptionalName = None,
    index: Annotated[int | None, Query(ge=0, le=10**9)] = None,
    limit: Limit = LARGEST_PAGE,
    cursor: AttemptCursor = None,
) -> Response:
    """Lists all attempts in workflow order."""
    api = api_of(request)
    found = await resolve_run(api.store, run)
    key = None if task is None else TaskKey(task, index)
    after = None if cursor is None else read_attempt_key(found, cursor)
    attempts = await api.store.list_attempts(found, key, after=after, limit=limit + 1)
    shown = await asyncio.to_thread(with_facts, api.objects, attempts[:limit])
    rows = fitting(map(attempt_json, shown))
    last = attempts[len(rows) - 1].key if len(attempts) > len(rows) else None
    return json_response({"attempts": rows, "cursor": f"{last.task}/{last.number}" if last else None})


@routes.add("GET", "/runs/{run}/graph", Role.VIEWER, response_model=models.Graph)
async def get_graph(request: Request, run: RunText) -> Response:
    """Returns the workflow's tasks with their dependencies and statuses."""
    api = api_of(request)
    found = await resolve_run(api.store, run)
    headers, kept = await ended_run(request, api, found)
    if kept is not None:
        return kept
    row = await api.store.get_run(found)
    if row is None:
        raise unknown_run(run)
    version, counts = await version_of(api.store, row), await api.store.count_tasks(found)
    text = await asyncio.to_thread(graph_text, version, counts)
    return Response(text, media_type="application/json", headers=headers)


@routes.add("GET", "/runs/{run}/summary", Role.VIEWER, response_model=page_models.RunSummary)
async def get_summary(request: Request, run: RunText) -> Response:
    """Returns the run with its counts, first failures, progress, estimate and critical path, and none of its tasks."""
    api = api_of(request)
    found = await resolve_run(api.store, run)
    headers, kept = await ended_run(request, api, found)
    if kept is not None:
        return kept
    summary = await run_summary(api.store, found, api.now())
    if summary is None:
        raise unknown_run(run)
    if len(summary["tasks"]) < MANY_TASKS:
        return json_response(summary, headers=headers)
    return await asyncio.to_thread(json_response, summary, headers=headers)


@routes.add("GET", "/runs/{run}/columns", Role.VIEWER, response_model=page_models.RunColumns)
async def get_columns(request: Request, run: RunText, since: Mark = None) -> Response:
    """Returns the statuses and times of all tasks as columns of numbers, or those that changed after the mark `since`."""
    api = api_of(request)
    found = await resolve_run(api.store, run)
    headers, kept = await ended_run(request, api, found)
    if kept is not None:
        return kept
    async with api.large_responses:
        pieces = await run_columns(api.store, found, since)
        if pieces is None:
            raise unknown_run(run)
        body = b"".join(pieces)
    return Response(body, media_type="application/json", headers=headers)


@routes.add("GET", "/runs/{run}/why", Role.VIEWER, response_model=models.Explanation)
async def why(request: Request, run: RunText, task: TaskTarget = None) -> Response:
    """Explains why the run or task is (not) running, what happens next and when."""
    api = api_of(request)
    explained = await explain(api.store, api.objects, parse_target(run, task), api.now(), api.timeouts)
    return json_response(why_json(explained))


@routes.add("GET", "/runs/{run}/cost", Role.VIEWER, response_model=models.RunCost)
async def get_cost(request: Request, run: RunText) -> Response:
    """Estimates what the run has cost until now, by task and by kind of operation."""
    api = api_of(request)
    found = await resolve_run(api.store, run)
    async with api.large_responses:
        facts = await read_facts(api.store, found)
        report = await asyncio.to_thread(cost_report, facts, api.pricing(), api.now())
        return json_response(to_json(report))


@routes.add("GET", "/runs/{run}/commands", Role.VIEWER, response_model=models.PendingCommands)
async def list_commands(request: Request, run: RunText) -> Response:
    """Lists the commands that have not been applied yet."""
    api = api_of(request)
    waiting = await api.store.pending_commands(await resolve_run(api.store, run))
    rows = [{"id": each.id, "kind": each.kind.value, "by": each.by, "task": each.task} for each in waiting]
    return json_response({"commands": rows})


def _command_route(kind: CommandKind) -> Callable[[Request, RunText], Awaitable[Response]]:
    async def submit(request: Request, run: RunText) -> Response:
        return await _submit(api_of(request), caller_of(request), kind, run, await read_body(request, CommandBody))

    submit.__doc__ = f"Submits `{kind.value}` for the run: 202 if accepted, 409 if its status does not allow it."
    submit.__name__ = f"{kind.value.replace('-', '_')}_run"
    return submit


for _kind in CommandKind:
    routes.add(
        "POST",
        f"/runs/{{run}}/{_kind.value}",
        Role.OPERATOR,
        status_code=202,
        response_model=models.AcceptedCommand,
        openapi_extra=described(CommandBody),
    )(_command_route(_kind))


async def _submit(api: Api, caller: Caller, kind: CommandKind, run: str, body: CommandBody) -> Response:
    command, result = await _command(api, caller, kind, run, body)
    if isinstance(result, Accepted):
        accepted = {"accepted": kind.value, "run": run_json(result.run), "command": result.command_id}
        return json_response(accepted, 202)
    refused = of_error(command_refused(command, result.run, command.run))
    document = {**json.loads(bytes(refused.body)), "run": run_json(result.run)}
    return Response(json.dumps(document), refused.status_code, media_type=refused.media_type)


async def _command(
    api: Api, caller: Caller, kind: CommandKind, run: str, body: CommandBody
) -> tuple[RunCommand, Accepted | TooLate]:
    """Checks the command and submits it. Every check that fails raises."""
    found = await resolve_run(api.store, run)
    task = None
    if body.task is not None or kind in (CommandKind.APPROVE, CommandKind.REJECT):
        view, _ = await open_view(api.store, found)
        target = parse_target(found, body.task)
        choose = waiting_task if kind in (CommandKind.APPROVE, CommandKind.REJECT) else named_task
        task = choose(view, target)
    if kind is CommandKind.APPROVE and task is not None:
        await check_approver(api.store, view, task, caller.name)
    if kind is CommandKind.DECLARE_DEAD:
        if task is None:
            raise UsageError("`task` is required: it names the dead attempt", hint="TASK or TASK[3]")
        stale = api.timeouts.stale_seconds
        await check_declared_dead(api.store, api.objects, view, parse_key(task), api.now(), stale)
    command = RunCommand(found, kind, caller.name, task, body.everything, body.comment)
    before = await api.store.get_run(found)
    check_retry(command, before, found)
    await check_readable(api.store, command, before, found)
    result = await api.store.submit_command(command, api.now())
    if result is None:
        raise unknown_run(run)
    if isinstance(result, Accepted):
        detail: dict[str, Any] = {"task": task} if task else {}
        await api.record_change(caller, f"run.{kind}", found, json.dumps(detail) if detail else None)
    return command, result


@routes.add(
    "POST",
    "/run-commands",
    Role.OPERATOR,
    status_code=202,
    response_model=page_models.BulkResults,
    openapi_extra=described(BulkBody, required=True),
)
async def command_runs(request: Request) -> Response:
    """Submits one command for up to 500 runs, one after the other. The response has a result for each of them."""
    api, caller = api_of(request), caller_of(request)
    body = await read_body(request, BulkBody)
    one = CommandBody.model_construct(task=None, comment=None, everything=body.everything)
    results = []
    for run in body.runs:
        accepted, problem = None, None
        try:
            command, result = await _command(api, caller, CommandKind(body.kind), run, one)
            if isinstance(result, TooLate):
                raise command_refused(command, result.run, command.run)
            accepted = result.command_id
        except (RefusedError, UsageError, NotFoundError) as error:
            problem = json.loads(bytes(of_error(error).body))
        results.append({"run": run, "command": accepted, "error": problem})
    return json_response({"results": results}, 202)


def unknown_run(run: str) -> NotFoundError:
    return NotFoundError(f"no run `{run}`", hint="`ork runs` lists them")
