"""The output of a finished run: the output of its last tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ork.core.bind import Bound, Scope, walk
from ork.core.machine import RunMachine
from ork.errors import ObjectsError, UnreadableError
from ork.model.run import Run
from ork.model.workflow import CompiledWorkflow
from ork.objects.attempt_documents import AttemptDocuments, Found
from ork.objects.calls import DocumentCalls
from ork.objects.references import references_of
from ork.state.reading import StateReader


async def output_of_run(store: StateReader, objects: AttemptDocuments, run: Run, limit: int) -> str | None:
    """JSON text: the output of the last task, or a map by name if there are several; None if there is no output."""
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
    bounds = {name: scope.upstream(name) for name in names}
    found = await _read(list(bounds.values()), objects, limit)
    texts = {name: _text(bound, found) for name, bound in bounds.items()}
    if len(texts) == 1:
        return next(iter(texts.values()))
    members = (f"{json.dumps(name)}:{'null' if text is None else text}" for name, text in texts.items())
    return "{" + ",".join(members) + "}"


def last_tasks(workflow: CompiledWorkflow) -> list[str]:
    """Names of the tasks that no other task depends on, in definition order."""
    above = {name for task in workflow.tasks for name in task.depends_on}
    return [task.name for task in workflow.tasks if task.name not in above]


async def open_bound(bound: Bound, objects: AttemptDocuments, limit: int) -> Any:
    """The value; stored objects are read completely."""
    text = _text(bound, await _read([bound], objects, limit))
    return None if text is None else json.loads(text)


async def _read(bounds: Sequence[Bound], objects: AttemptDocuments, limit: int) -> dict[str, Found]:
    """The content of all objects that the values refer to."""
    references = [reference for bound in bounds for reference in references_of(bound)]
    found = await DocumentCalls(objects).call(objects.read_values, references, limit) if references else ()
    return dict(zip(references, found, strict=True))


def _text(bound: Bound, found: Mapping[str, Found]) -> str | None:
    match bound:
        case {"value": value}:
            return json.dumps(value, separators=(",", ":"))
        case {"object": key, "path": path}:
            data = found[key]
            if isinstance(data, ObjectsError):
                raise data
            if data is None:
                raise ObjectsError(f"the output {key} is gone")
            return data.decode() if not path else json.dumps(walk(json.loads(data), path, key))
        case {"list": items}:
            return "[" + ",".join(_text(item, found) or "null" for item in items) + "]"
        case _:
            return None
