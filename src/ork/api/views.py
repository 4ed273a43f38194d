"""Builds responses about whole runs in threads, so that a run with many tasks does not block the event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ork.api.routing import PREFIX
from ork.errors import RefusedError
from ork.model.ids import RunId
from ork.model.workflow import Version
from ork.status.facts import with_facts
from ork.status.hidden_params import hidden_params, mask_params
from ork.status.ids import short_id
from ork.status.run_view import RunView, version_of
from ork.status.shapes import full_run_json

if TYPE_CHECKING:
    from ork.api.context import Api


MOST_BYTES = 128 << 20


async def view_of_run(api: Api, run: RunId) -> RunView | None:
    update = await api.store.run_updates(run)
    if update is None:
        return None
    version = await version_of(api.store, update.run)
    view = RunView(update.run, version, await short_id(api.store, run))
    await asyncio.to_thread(view.apply, update)
    return view


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
