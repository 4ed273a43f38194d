"""Builds responses about whole runs in threads, so that a run with many tasks does not block the event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fastapi import Request
from starlette.responses import Response

from ork.api.caching import entity_tag, not_modified, tagged
from ork.api.routing import PREFIX
from ork.errors import RefusedError
from ork.model.ids import RunId
from ork.model.workflow import Version
from ork.state.records import TaskCount, TaskFilter
from ork.status.facts import with_facts
from ork.status.grid import EndedRuns
from ork.status.run_view import version_of
from ork.status.secret_masking import hidden_params, mask_params
from ork.status.shapes import full_run_json
from ork.status.summary import counts_by_task, task_counts

if TYPE_CHECKING:
    from ork.api.context import Api


MOST_BYTES = 128 << 20
NODES_AT_ONCE = 500
"""Encoding one by one takes three times as long, and encoding all at once would hold the GIL."""


def graph_text(version: Version, counts: Iterable[TaskCount]) -> str:
    """The workflow's tasks with their dependencies and statuses, as JSON."""
    by_task = counts_by_task(version, counts)
    nodes = [
        {
            **task_counts(spec.name, by_task[spec.name]),
            "executor": spec.executor,
            "depends_on": spec.depends_on,
        }
        for spec in version.workflow.tasks
    ]
    parts = [_json(nodes[first : first + NODES_AT_ONCE])[1:-1] for first in range(0, len(nodes), NODES_AT_ONCE)]
    return f'{{"nodes":[{",".join(parts)}]}}'


async def ended_run(request: Request, api: Api, run: RunId) -> tuple[dict[str, str], Response | None]:
    """Headers for a response about the run, and the response itself if the client has it already.

    A run that has ended changes no more, but for a retry, which changes its mark."""
    update = await api.store.run_updates(run, None, TaskFilter(limit=0))
    if update is None or not update.run.status.is_final:
        return {}, None
    tag = entity_tag(run, update.mark)
    return tagged(tag), not_modified(request, tag)


def ended_runs(api: Api) -> EndedRuns:
    """The counts of runs that have ended, which this process keeps."""
    kept: EndedRuns = api.kept.setdefault(EndedRuns, EndedRuns())
    return kept


async def whole_run(api: Api, run: RunId) -> str | None:
    """A run with its tasks and attempts as JSON. Only a few are built at a time, because each may need much memory."""
    async with api.large_responses:
        update = await api.store.run_updates(run)
        if update is None:
            return None
        version = await version_of(api.store, update.run)
        attempts = await api.store.list_attempts(run)
        hidden = await hidden_params(api.store, update.run)
        owner = await api.store.get_owner(run)

        def text(known: Version = version) -> str:
            tasks = mask_params(hidden, update).tasks
            shape = full_run_json(update.run, known, tasks, with_facts(api.objects, attempts))
            rows = _bounded(shape.pop("tasks"), run)
            return f'{_json({**shape, "owner": owner})[:-1]},"tasks":[{rows}]}}'

        return await asyncio.to_thread(text)


def _bounded(tasks: Iterable[dict[str, Any]], run: RunId) -> str:
    """Encodes task by task, because one long call would hold the GIL and block the event loop."""
    rows, size = [], 0
    for task in tasks:
        rows.append(_json(task))
        size += len(rows[-1])
        if size > MOST_BYTES:
            raise RefusedError(
                f"run {run} is too large for one response: its tasks take more than {MOST_BYTES >> 20} MiB",
                hint=f"read it page by page: GET {PREFIX}/runs/{run}/tasks and /attempts",
            )
    return ",".join(rows)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
