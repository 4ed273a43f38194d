"""What a finished run gives back: the output of its last tasks."""

from __future__ import annotations

import json
from typing import Any

from ork.core.bind import Bound, Scope, walk
from ork.core.machine import RunMachine
from ork.errors import ObjectsError, UnreadableError
from ork.model.run import Run
from ork.model.workflow import CompiledWorkflow
from ork.objects.store import ObjectStore
from ork.state.reading import StateReader


async def output_of_run(store: StateReader, objects: ObjectStore, run: Run, limit: int) -> str | None:
    """JSON text: of the one last task its output, of several a map of them by name; None if there is none."""
    try:
        version = await store.get_version(run.version)
    except UnreadableError as problem:
        raise ObjectsError(problem.message) from problem
    update = await store.run_updates(run.id)
    if version is None or update is None:
        raise ObjectsError(f"run {run.id} is gone")
    machine = RunMachine(version.workflow, run, update.tasks, ())
    names = last_tasks(version.workflow)
    scope = Scope(run, {name: machine.output_of(name) for name in names})
    texts = {name: _text(scope.upstream(name), objects, limit) for name in names}
    if len(texts) == 1:
        return next(iter(texts.values()))
    members = (f"{json.dumps(name)}:{'null' if text is None else text}" for name, text in texts.items())
    return "{" + ",".join(members) + "}"


def last_tasks(workflow: CompiledWorkflow) -> list[str]:
    """Those that nothing depends on, in the order of the file."""
    above = {name for task in workflow.tasks for name in task.depends_on}
    return [task.name for task in workflow.tasks if task.name not in above]


def open_bound(bound: Bound, objects: ObjectStore, limit: int) -> Any:
    """The value; an object is read whole."""
    text = _text(bound, objects, limit)
    return None if text is None else json.loads(text)


def _text(bound: Bound, objects: ObjectStore, limit: int) -> str | None:
    match bound:
        case {"value": value}:
            return json.dumps(value, separators=(",", ":"))
        case {"object": key, "path": path}:
            data = objects.get(key, limit=limit)
            if data is None:
                raise ObjectsError(f"the output {key} is gone")
            return data.decode() if not path else json.dumps(walk(json.loads(data), path, key))
        case {"list": items}:
            return "[" + ",".join(_text(item, objects, limit) or "null" for item in items) + "]"
        case _:
            return None
