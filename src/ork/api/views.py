"""Runs as they are, made beside the loop: one of a hundred thousand tasks must not keep everybody else waiting."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from ork.model.ids import RunId
from ork.model.workflow import Version
from ork.status.facts import with_facts
from ork.status.follow import RunView, version_of
from ork.status.ids import short_id
from ork.status.shapes import full_run_json
from ork.status.wire import run_row

if TYPE_CHECKING:
    from ork.api.context import Api


async def view_of_run(api: Api, run: RunId) -> RunView | None:
    update = await api.store.run_updates(run)
    if update is None:
        return None
    version = await version_of(api.store, update.run)
    view = RunView(update.run, version, await short_id(api.store, run))
    await asyncio.to_thread(view.apply, update)
    return view


async def whole_run(api: Api, run: RunId) -> str | None:
    """A run with its tasks and their attempts, as JSON."""
    update = await api.store.run_updates(run)
    if update is None:
        return None
    version = await version_of(api.store, update.run)
    attempts = await api.store.list_attempts(run)
    owner = await api.store.get_owner(run)

    def text(known: Version = version) -> str:
        shape = full_run_json(update.run, known, update.tasks, with_facts(api.objects, attempts))
        tasks = shape.pop("tasks")
        # Task by task: one call for all of them would not let the loop have its turn before it is done.
        rows = ",".join(_json(task) for task in tasks)
        return f'{_json({**shape, **run_row(update.run), "owner": owner})[:-1]},"tasks":[{rows}]}}'

    return await asyncio.to_thread(text)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
