"""Runs as they are, made beside the loop: one of a hundred thousand tasks must not keep everybody else waiting."""

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
    """A run with its tasks and their attempts, as JSON. Few are made at a time: each may take a lot of memory."""
    async with api.large_answers:
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
    """Task by task: one call for all of them would not let the loop have its turn before it is done."""
    rows, size = [], 0
    for task in tasks:
        rows.append(_json(task))
        size += len(rows[-1])
        if size > MOST_BYTES:
            raise RefusedError(
                f"run {run} is too large for one answer: its tasks take more than {MOST_BYTES >> 20} MiB",
                hint=f"read it page by page: GET {PREFIX}/runs/{run}/tasks and /attempts",
            )
    return ",".join(rows)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
